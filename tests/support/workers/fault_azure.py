"""The answers of Azure's Blob Storage that differ from those of S3, for a server of files.

The first part of a path is the account, and the second one the container, as in Azurite.
"""
import base64
from email.utils import formatdate
from xml.sax.saxutils import escape

import fault_answers
from fault_rules import Answer


def without_account(key):
    """The key as a web server or S3 has it: a container, and the name of an object."""
    return key.partition("/")[2]


def object_answer(files, method, key, headers, conditions=(), shift=0):
    """The answer to Get Blob and Get Blob Properties. Azure knows no ranges that count from the end."""
    container = key.partition("/")[0]
    if not files.bucket(container):
        return fault_answers.missing(container, "ContainerNotFound")
    if headers.get("range", "").startswith("bytes=-"):
        return Answer(400, {"Content-Type": "application/xml"}, fault_answers.error_xml("InvalidHeaderValue", key))
    answer = fault_answers.object_answer(files, method, key, headers, conditions, shift)
    answer.headers["x-ms-blob-type"] = "BlockBlob"
    return answer


def list_answer(files, container, query):
    """The answer to List Blobs. Its ETags have no quotes."""
    if not files.bucket(container):
        return fault_answers.missing(container, "ContainerNotFound")
    prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
    first = query.get("startFrom", "")
    if "marker" in query:
        first = base64.urlsafe_b64decode(query["marker"]).decode("utf-8", "surrogateescape")
    names = [name for name in files.names(container, prefix, delimiter) if name >= first]
    most = int(query.get("maxresults", fault_answers.MOST_NAMES))
    rows = []
    for name in names[:most]:
        if delimiter and name.endswith(delimiter) and name != prefix:
            rows.append(f"<BlobPrefix><Name>{escape(name)}</Name></BlobPrefix>")
            continue
        data, etag, modified = files.get(f"{container}/{name}")
        tag = etag.strip('"')
        rows.append(f"<Blob><Name>{escape(name)}</Name><Properties><Last-Modified>{formatdate(modified, usegmt=True)}</Last-Modified><Etag>{tag}</Etag>"
                    f"<Content-Length>{len(data)}</Content-Length><Content-Type>application/octet-stream</Content-Type></Properties></Blob>")
    following = base64.urlsafe_b64encode(names[most].encode("utf-8", "surrogateescape")).decode() if len(names) > most else ""
    text = (f"<?xml version='1.0' encoding='UTF-8'?><EnumerationResults ContainerName='{container}'><Prefix>{escape(prefix)}</Prefix>"
            f"<Blobs>{''.join(rows)}</Blobs><NextMarker>{following}</NextMarker></EnumerationResults>")
    return Answer(200, {"Content-Type": "application/xml"}, text.encode("utf-8", "replace"))
