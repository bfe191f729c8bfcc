"""The answers of a server of files before any fault: as a web server, and as S3 in path style.

The first part of a path is the bucket of S3. A file is read whole for each answer, so that an answer is of one version.
"""
import base64
import hashlib
import os
from email.utils import formatdate, parsedate_to_datetime
from pathlib import Path
from urllib.parse import quote
from xml.sax.saxutils import escape

from fault_rules import Answer

MOST_NAMES = 1000


class Files:
    """The files below a directory, and a snapshot of their earlier contents."""

    def __init__(self, root):
        self.root = os.path.abspath(root)
        self.known = {}  # path -> (identity, bytes, ETag)
        self.old = {}

    def get(self, key, old=False):
        """(bytes, ETag, seconds since 1970 of the modification), or None."""
        if old and key in self.old:
            return self.old[key]
        path = os.path.join(self.root, key)
        try:
            with open(path, "rb") as file:
                found = os.fstat(file.fileno())
                identity = (found.st_ino, found.st_size, found.st_mtime_ns)
                if self.known.get(path, (None,))[0] != identity:
                    data = file.read()
                    self.known[path] = (identity, data, f'"{hashlib.md5(data).hexdigest()}"')
                _, data, etag = self.known[path]
                return data, etag, int(found.st_mtime)
        except (OSError, ValueError):
            return None

    def take_snapshot(self):
        self.old = {}
        for path, _, names in os.walk(self.root):
            for name in names:
                key = os.path.relpath(os.path.join(path, name), self.root)
                self.old[key] = self.get(key)

    def bucket(self, name):
        return bool(name) and os.path.isdir(os.path.join(self.root, name))

    def names(self, bucket, prefix, delimiter):
        """Keys and common prefixes, in the order of their bytes."""
        root = Path(self.root, bucket)
        # Only directories that may hold keys with the prefix are walked.
        folder = prefix.rpartition("/")[0]
        found = set()
        for path, folders, names in os.walk(root / folder):
            shown = os.path.relpath(path, root)
            shown = "" if shown == "." else f"{shown}/"
            if delimiter == "/" and shown.startswith(prefix) and "/" in shown[len(prefix):]:
                if names:
                    found.add(prefix + shown[len(prefix):].partition("/")[0] + "/")
                    folders.clear()
                continue
            for name in names:
                key = shown + name
                if key.startswith(prefix):
                    rest = key[len(prefix):]
                    is_below = bool(delimiter) and delimiter in rest
                    found.add(prefix + rest.partition(delimiter)[0] + delimiter if is_below else key)
        return sorted(found, key=lambda key: key.encode("utf-8", "surrogateescape"))


def object_answer(files, method, key, headers, conditions=(), shift=0):
    """The answer to GET or HEAD of an object. `conditions` are the faults that it is made with."""
    found = files.get(key, old="stale" in conditions)
    if found is None:
        return missing(key)
    data, etag, modified = found
    told = {"ETag": etag, "Last-Modified": formatdate(modified, usegmt=True), "Accept-Ranges": "bytes",
            "Content-Type": "application/octet-stream"}
    status = 200 if "unconditional" in conditions else condition_status(headers, etag, modified)
    if status != 200:
        return Answer(status, told if status == 304 else {}, b"" if status == 304 else error_xml("PreconditionFailed", key))
    span = parse_range(headers.get("range"), len(data))
    if span is None or "whole" in conditions:
        return Answer(200, told, data)
    begin, end = span
    if begin >= end:
        return Answer(416, {"Content-Range": f"bytes */{len(data)}"}, error_xml("InvalidRange", key))
    begin, end = begin + shift, min(end + shift, len(data))
    told["Content-Range"] = f"bytes {begin}-{end - 1}/{len(data)}"
    return Answer(206, told, data[begin:end])


def condition_status(headers, etag, modified):
    if "if-match" in headers:
        if headers["if-match"] not in ("*", etag):
            return 412
    elif "if-unmodified-since" in headers and modified > seconds(headers["if-unmodified-since"]):
        return 412
    if "if-none-match" in headers:
        if headers["if-none-match"].removeprefix("W/") in ("*", etag):
            return 304
    elif "if-modified-since" in headers and modified <= seconds(headers["if-modified-since"]):
        return 304
    return 200


def seconds(date):
    return parsedate_to_datetime(date).timestamp()


def parse_range(text, length):
    """(begin, end) of `Range`; None if there is none."""
    if not text or not text.startswith("bytes="):
        return None
    first, _, last = text.removeprefix("bytes=").partition("-")
    if not first:
        return max(0, length - int(last)), length
    return int(first), min(length, int(last) + 1 if last else length)


def missing(key, code="NoSuchKey"):
    return Answer(404, {"Content-Type": "application/xml"}, error_xml(code, key))


def error_xml(code, key):
    return f"<?xml version='1.0'?><Error><Code>{code}</Code><Key>{escape(key)}</Key></Error>".encode("utf-8", "replace")


def list_answer(files, bucket, query):
    """The answer to ListObjectsV2."""
    if not files.bucket(bucket):
        return missing(bucket, "NoSuchBucket")
    prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
    after = query.get("start-after", "")
    if "continuation-token" in query:
        after = base64.urlsafe_b64decode(query["continuation-token"]).decode("utf-8", "surrogateescape")
    names = [name for name in files.names(bucket, prefix, delimiter) if follows(name, after, delimiter)]
    most = min(MOST_NAMES, int(query.get("max-keys", MOST_NAMES)))
    shown, is_cut = names[:most], len(names) > most
    spell = quote if query.get("encoding-type") == "url" else escape
    rows = []
    for name in shown:
        if delimiter and name.endswith(delimiter) and name != prefix:
            rows.append(f"<CommonPrefixes><Prefix>{spell(name)}</Prefix></CommonPrefixes>")
        else:
            data, etag, modified = files.get(f"{bucket}/{name}")
            date = formatdate(modified, usegmt=True)
            date = parsedate_to_datetime(date).strftime("%Y-%m-%dT%H:%M:%S.000Z")
            rows.append(f"<Contents><Key>{spell(name)}</Key><LastModified>{date}</LastModified><ETag>{escape(etag)}</ETag>"
                        f"<Size>{len(data)}</Size><StorageClass>STANDARD</StorageClass></Contents>")
    token = base64.urlsafe_b64encode(shown[-1].encode("utf-8", "surrogateescape")).decode() if is_cut and shown else ""
    text = (f"<?xml version='1.0' encoding='UTF-8'?><ListBucketResult><Name>{bucket}</Name><Prefix>{spell(prefix)}</Prefix>"
            f"<KeyCount>{len(shown)}</KeyCount><MaxKeys>{most}</MaxKeys><Delimiter>{delimiter}</Delimiter>"
            f"<IsTruncated>{str(is_cut).lower()}</IsTruncated>{''.join(rows)}"
            + (f"<NextContinuationToken>{token}</NextContinuationToken>" if token else "") + "</ListBucketResult>")
    return Answer(200, {"Content-Type": "application/xml"}, text.encode("utf-8", "replace"))


def follows(name, after, delimiter):
    """Whether a name comes after a key. A common prefix that contains the key has been passed."""
    if after and delimiter and name.endswith(delimiter) and after.startswith(name):
        return False
    return name.encode("utf-8", "surrogateescape") > after.encode("utf-8", "surrogateescape")
