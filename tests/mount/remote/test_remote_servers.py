"""The servers themselves, before any mount: they must behave as the other tests require."""
import http.client
import json
import os
import re
import ssl
import threading
import time
from urllib.parse import quote, urlsplit

import pytest

from support import mounting, remote_servers
from support.remote_fault_server import FaultServer

BODY = bytes(range(256)) * 4


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "root"
    (folder / "bucket" / "z" / "c").mkdir(parents=True)
    (folder / "bucket" / "z" / "zarr.json").write_bytes(b"{}")
    for n in range(5):
        (folder / "bucket" / "z" / "c" / str(n)).write_bytes(BODY)
    (folder / "bucket" / "z-").write_bytes(b"sorts before z/")
    (folder / "bucket" / "sp ace").write_bytes(b"1")
    return folder


def ask(server, path, method="GET", context=None, **headers):
    """(status, headers, body); the body is what came, however it ended."""
    url = urlsplit(getattr(server, "endpoint", None) or server.url)
    kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    connection = kind(url.hostname, url.port, timeout=60, **({"context": context} if context else {}))
    try:
        connection.request(method, path, headers={k.replace("_", "-"): v for k, v in headers.items()})
        answer = connection.getresponse()
        try:
            body = answer.read()
        except http.client.IncompleteRead as cut:
            body = cut.partial
        return answer.status, dict(answer.getheaders()), body
    finally:
        connection.close()


def test_objects_and_ranges(root):
    with FaultServer(root) as server:
        path = "/bucket/z/c/0"
        status, headers, body = ask(server, path)
        assert (status, body) == (200, BODY) and headers["ETag"].startswith('"') and "Last-Modified" in headers
        etag = headers["ETag"]
        assert "Date" in headers
        assert ask(server, path, "HEAD")[0:3:2] == (200, b"")
        assert ask(server, path, "HEAD")[1]["Content-Length"] == "1024"
        for wanted, begin, end in (("0-9", 0, 10), ("1000-", 1000, 1024), ("-24", 1000, 1024), ("-5000", 0, 1024), ("1000-9999", 1000, 1024)):
            status, headers, body = ask(server, path, Range=f"bytes={wanted}")
            assert (status, body, headers["Content-Range"]) == (206, BODY[begin:end], f"bytes {begin}-{end - 1}/1024"), wanted
        assert ask(server, path, Range="bytes=1024-")[0] == 416
        assert ask(server, path, If_Match=etag)[0] == 200
        assert ask(server, path, If_Match='"other"')[0] == 412
        assert ask(server, path, If_None_Match=etag)[0:3:2] == (304, b"")
        assert ask(server, path, If_Unmodified_Since="Mon, 01 Jan 2001 00:00:00 GMT")[0] == 412
        assert ask(server, "/bucket/none")[0] == 404 and ask(server, "/bucket/z")[0] == 404
        assert ask(server, "/bucket/sp%20ace")[2] == b"1"
        found = server.requests()
        assert len(found) == 16 and found[-1]["key"] == "bucket/sp ace" and found[4]["range"] == "bytes=1000-"
        server.clear()
        assert not server.requests()


def listing(server, **query):
    text = "&".join(f"{k.replace('_', '-')}={quote(v, safe='')}" for k, v in query.items())
    status, _, body = ask(server, f"/bucket?list-type=2&{text}")
    names = [tuple(filter(None, pair))[0] for pair in re.findall(r"<Key>(.*?)</Key>|<CommonPrefixes><Prefix>(.*?)</Prefix>", body.decode())]
    token = re.search(r"<NextContinuationToken>(.*?)<", body.decode())
    return status, sorted(names), token and token[1]


def s3_servers(root, tmp_path):
    yield FaultServer(root, "s3")
    yield remote_servers.moto(root, tmp_path)


def test_lists_are_those_of_another_server(root, tmp_path):
    """The test server lists the same names as moto, which behaves like S3."""
    for n in range(25):
        (root / "bucket" / f"d{n}" / "x").mkdir(parents=True)
        (root / "bucket" / f"d{n}" / "x" / "y").write_bytes(b"")
    found = []
    for started in s3_servers(root, tmp_path):
        with started as server:
            seen = [listing(server), listing(server, prefix="z/", delimiter="/"), listing(server, prefix="z"), listing(server, delimiter="/"),
                    listing(server, prefix="z", delimiter="/"), listing(server, prefix="none/", delimiter="/"),
                    listing(server, start_after="d3", prefix="d"), listing(server, start_after="z/c/2", prefix="z/c/", delimiter="/")]
            pages, token = [], None
            while token or not pages:
                _, names, token = listing(server, delimiter="/", max_keys="4", **({"continuation_token": token} if token else {}))
                assert len(names) <= 4
                pages.append(names)
            absent = ask(server, "/bucket/none", Authorization="AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request")
            no_bucket = ask(server, "/nobucket?list-type=2")
            found.append((seen, pages, absent[0], b"NoSuchKey" in absent[2], no_bucket[0], b"NoSuchBucket" in no_bucket[2]))
    assert found[0] == found[1]
    assert found[0][0][4] == (200, ["z-", "z/"], None)


@pytest.mark.parametrize("fault, more, expected", [
    ("status", {"status": 503, "headers": {"Retry-After": "3"}}, lambda a: (a[0], a[1]["Retry-After"]) == (503, "3")),
    ("truncate", {"bytes": 4}, lambda a: a[0] == 206 and a[2] == BODY[10:26] and a[1]["Content-Length"] == "20"),
    ("lengthen", {"bytes": 3}, lambda a: a[2] == BODY[10:30] + b"\xee" * 3 and a[1]["Content-Range"] == "bytes 10-29/1024"),
    ("shorten", {"bytes": 3}, lambda a: a[2] == BODY[10:27] and a[1]["Content-Range"] == "bytes 10-29/1024"),
    ("whole", {}, lambda a: a[0] == 200 and a[2] == BODY and "Content-Range" not in a[1]),
    ("shift", {"by": 5}, lambda a: a[2] == BODY[15:35] and a[1]["Content-Range"] == "bytes 15-34/1024"),
    ("other_total", {}, lambda a: a[1]["Content-Range"] == "bytes 10-29/1025"),
    ("no_etag", {}, lambda a: "ETag" not in a[1]),
    ("weak_etag", {}, lambda a: a[1]["ETag"].startswith('W/"')),
    ("no_last_modified", {}, lambda a: "Last-Modified" not in a[1]),
    ("no_length", {}, lambda a: a[2] == BODY[10:30] and "Content-Length" not in a[1]),
    ("encode", {}, lambda a: a[1]["Content-Encoding"] == "gzip" and a[2] != BODY[10:30]),
    ("login", {}, lambda a: a[0] == 200 and a[2].startswith(b"<html")),
    ("redirect", {"location": "/else/{key}"}, lambda a: (a[0], a[1]["Location"]) == (302, "/else/bucket/z/c/0")),
])
def test_faults(root, fault, more, expected):
    with FaultServer(root) as server:
        server.rules({"fault": fault, "key": "*/c/0", "skip": 1, "count": 1, **more})
        answers = [ask(server, "/bucket/z/c/0", Range="bytes=10-29") for _ in range(3)]
        assert all(a[0] == 206 and a[2] == BODY[10:30] for a in (answers[0], answers[2]))
        assert expected(answers[1]), answers[1]
        assert server.hits() == [1]
        assert [r["faults"] for r in server.requests()] == [[], [fault], []]


def test_faults_of_names_of_versions_and_of_connections(root):
    with FaultServer(root, "s3") as server:
        server.rules({"fault": "forbid_absent"}, {"fault": "status", "status": 403, "method": "LIST"})
        assert [ask(server, p)[0] for p in ("/bucket/none", "/bucket/z/c/0", "/bucket?list-type=2")] == [403, 200, 403]
        server.rules({"fault": "unconditional"})
        assert ask(server, "/bucket/z/c/0", If_Match='"other"')[0] == 200
        server.rules({"fault": "changing_etag"})
        assert len({ask(server, "/bucket/z/c/0")[1]["ETag"] for _ in range(3)}) == 3
        server.snapshot()
        old = ask(server, "/bucket/z/c/0")
        server.rules({"fault": "stale", "count": 1})
        (root / "bucket" / "z" / "c" / "0").write_bytes(b"new")
        assert [ask(server, "/bucket/z/c/0")[2] for _ in range(2)] == [BODY, b"new"] and old[2] == BODY
        server.rules({"fault": "reset", "count": 1}, {"fault": "reset", "after": 100, "skip": 1, "count": 1})
        with pytest.raises((ConnectionError, http.client.RemoteDisconnected)):
            ask(server, "/bucket/z/c/1")
        try:
            assert len(ask(server, "/bucket/z/c/1")[2]) <= 100
        except ConnectionError:
            pass
        server.rules({"fault": "stall", "after": 10, "seconds": 0.2})
        begun = time.monotonic()
        assert ask(server, "/bucket/z/c/1")[2] == BODY[:10] and time.monotonic() - begun >= 0.2
        server.rules({"fault": "status", "status": 500, "probability": 0.3}, seed=7)
        first = [ask(server, "/bucket/z/c/1")[0] for _ in range(40)]
        server.rules({"fault": "status", "status": 500, "probability": 0.3}, seed=7)
        assert first == [ask(server, "/bucket/z/c/1")[0] for _ in range(40)] and 3 < first.count(500) < 25


def test_ten_thousand_requests_over_connections_that_stay(root, figure):
    def many(port, wrong):
        connection = http.client.HTTPConnection("127.0.0.1", port)
        for _ in range(1250):
            connection.request("GET", "/bucket/z/c/3", headers={"Range": "bytes=5-24"})
            wrong += [1] * (connection.getresponse().read() != BODY[5:25])
        connection.close()

    with FaultServer(root) as server:
        wrong, begun = [], time.monotonic()
        threads = [threading.Thread(target=many, args=(server.port, wrong)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        figure(f"server of faults: 10000 requests in {time.monotonic() - begun:.1f} s")
        assert not wrong and len(server.requests()) == 10_000
        assert server.load()["connections"] == 8


def test_nginx_and_its_certificate(root, tmp_path):
    with remote_servers.nginx(root, tmp_path) as server:
        status, headers, body = ask(server, "/bucket/z/c/0", Range="bytes=-24")
        assert (status, body) == (206, BODY[-24:]) and headers["ETag"]
        assert ask(server, "/bucket/z/c/0", If_Match='"other"')[0] == 412
    made = remote_servers.certificate(tmp_path / "tls")
    with remote_servers.nginx(root, tmp_path, made) as server:
        with pytest.raises(ssl.SSLError):
            ask(server, "/bucket/z/c/0")
        context = ssl.create_default_context(cafile=made.authority)
        assert ask(server, "/bucket/z/c/0", context=context)[2] == BODY
    with FaultServer(root, tls=(made.chain, made.key)) as server:
        assert ask(server, "/bucket/z/c/0", context=context)[2] == BODY


# A client library's own view of a server: names and bytes.
CLIENT = """
import json, sys
import obstore, obstore.store
kind, endpoint = sys.argv[1:]
options = {"client_options": {"allow_http": True}}
if kind == "az":
    store = obstore.store.AzureStore("bucket", account_name="devstoreaccount1", account_key=%(key)r, endpoint=endpoint, **options)
elif kind == "gs":
    store = obstore.store.GCSStore("bucket", config={"base_url": endpoint, "skip_signature": True}, **options)
else:
    store = obstore.store.S3Store("bucket", endpoint=endpoint, region="us-east-1", skip_signature=True, **options)
names = sorted(entry["path"] for page in obstore.list(store) for entry in page)
found = obstore.get(store, "z/c/0")
print(json.dumps([names, bytes(found.bytes()).hex(), bytes(obstore.get_range(store, "z/c/0", start=10, end=30)).hex()]))
"""


@pytest.mark.parametrize("name", ["s3", "az", "moto", "moto_as_google", *(
    pytest.param(n, marks=pytest.mark.heavy) for n in ("hadro", "fake_gcs", "azurite"))])
def test_another_client_reads_it(name, root, tmp_path):
    """obstore reads the same bytes. `name` is a server, or the kind of a `FaultServer`."""
    of_faults = name in ("s3", "az")
    with FaultServer(root, name) if of_faults else getattr(remote_servers, name)(root, tmp_path) as server:
        scheme = name if of_faults else server.scheme
        endpoint = f"{server.url}/{remote_servers.ACCOUNT}" if name == "az" else server.url if of_faults else server.endpoint
        done = mounting.ok(remote_servers.REMOTE_PYTHON, "-c", CLIENT % {"key": remote_servers.ACCOUNT_KEY}, scheme, endpoint,
                           env=remote_servers.clean_environment())
        names, whole, part = json.loads(done)
        assert bytes.fromhex(whole) == BODY and bytes.fromhex(part) == BODY[10:30]
        assert names == sorted(["sp ace", "z-", "z/zarr.json", *(f"z/c/{n}" for n in range(5))])


def test_objects_are_uploaded(root, tmp_path):
    (tmp_path / "empty").mkdir()
    with remote_servers.moto(tmp_path / "empty", tmp_path) as server:
        remote_servers.s3_upload(server, "bucket", root / "bucket")
        assert ask(server, "/bucket/z/c/0")[2] == BODY


@pytest.mark.heavy
def test_caddy(root, tmp_path):
    with remote_servers.caddy(root, tmp_path) as server:
        assert ask(server, "/bucket/z/c/0", Range="bytes=-24")[2] == BODY[-24:]
        assert ask(server, "/bucket/z/c/0", If_Match='"other"')[0] == 412
        assert os.path.exists(tmp_path / "caddy.log")
