"""`--serve`: the bytes of a mount over HTTP, and who gets them."""
import email
import gzip
import http.client
import json
import os
import re
import signal
import subprocess
import threading
from email.utils import parsedate_to_datetime

import numpy as np
import pytest
import zarr

from support.mounting import BINARY, ok, run
from support.serving import TOKEN, serving

NPY = "/air/temperature.npy"


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """A server of the arrays of the built-in store."""
    with serving("demo:", "--view", "arrays", "--files", "npy,nc,png", tmp_path=tmp_path_factory.mktemp("demo")) as server:
        yield server


def cat(path, *options):
    return subprocess.run([BINARY, "--cat", *options, "demo:", path], stdout=subprocess.PIPE, check=True).stdout


def test_files_are_those_of_a_mount(demo):
    for path in ("air/temperature.npy", "air/air.nc", "air/temperature.json", "cells/0.png"):
        answer = demo.ask("/" + path)
        assert answer.status == 200
        expected = cat(path, "--view", "arrays", "--files", "npy,nc,png")
        assert answer.bytes == expected
        assert int(answer.headers["Content-Length"]) == len(expected)
        head = demo.ask("/" + path, "HEAD")
        assert (head.status, head.bytes) == (200, b"")
        for name in ("Content-Length", "Content-Type", "ETag", "Accept-Ranges"):
            assert head.headers[name] == answer.headers[name], name


def test_ranges(demo):
    whole = demo.ask(NPY).bytes
    size = len(whole)
    for asked, start, end in (("0-9", 0, 10), ("100-", 100, size), ("-50", size - 50, size), (f"{size - 1}-{size + 9}", size - 1, size)):
        answer = demo.ask(NPY, Range=f"bytes={asked}")
        assert (answer.status, answer.bytes) == (206, whole[start:end])
        assert answer.headers["Content-Range"] == f"bytes {start}-{end - 1}/{size}"
    outside = demo.ask(NPY, Range=f"bytes={size}-")
    assert (outside.status, outside.headers["Content-Range"]) == (416, f"bytes */{size}")
    # The answer to a header that is not understood, to ranges that overlap, and to too many ranges is the whole file.
    for asked in ("bytes=5-2", "lines=1-2", "bytes=0-1,1-5", "bytes=" + ",".join(f"{2 * n}-{2 * n}" for n in range(65))):
        answer = demo.ask(NPY, Range=asked)
        assert (answer.status, answer.bytes) == (200, whole)
    etag = demo.ask(NPY, "HEAD").headers["ETag"]
    assert demo.ask(NPY, Range="bytes=0-9", If_Range=etag).status == 206
    assert demo.ask(NPY, Range="bytes=0-9", If_Range='"other"').status == 200


@pytest.mark.parametrize("path, kind", [(NPY, "application/octet-stream"), ("/air/temperature.json", "application/json")])
def test_several_ranges(path, kind, demo):
    whole = demo.ask(path).bytes
    size = len(whole)
    answer = demo.ask(path, Range="bytes=100-300, 0-1,-7", Accept_Encoding="gzip")
    assert answer.status == 206 and "Content-Range" not in answer.headers and "Content-Encoding" not in answer.headers
    assert int(answer.headers["Content-Length"]) == len(answer.bytes)
    message = email.message_from_bytes(f"Content-Type: {answer.headers['Content-Type']}\r\n\r\n".encode() + answer.bytes)
    assert message.get_content_type() == "multipart/byteranges" and not message.defects
    for part, (start, end) in zip(message.get_payload(), ((100, 301), (0, 2), (size - 7, size)), strict=True):
        assert (part["Content-Type"], part["Content-Range"]) == (kind, f"bytes {start}-{end - 1}/{size}")
        assert part.get_payload(decode=True) == whole[start:end]
    # Those that the file does not have are left out.
    one = demo.ask(path, Range=f"bytes=5-6,{size}-")
    assert (one.status, one.bytes, one.headers["Content-Range"]) == (206, whole[5:7], f"bytes 5-6/{size}")
    assert demo.ask(path, Range=f"bytes={size}-,{size + 5}-{size + 7}").status == 416
    etag = demo.ask(path, "HEAD").headers["ETag"]
    assert demo.ask(path, Range="bytes=0-1,5-6", If_Range=etag).status == 206
    assert demo.ask(path, Range="bytes=0-1,5-6", If_Range='"other"').bytes == whole


def test_a_damaged_part_among_several_is_an_error(tmp_path):
    array = zarr.create_array(tmp_path / "t.zarr", shape=(8,), chunks=(4,), dtype="<i4")
    array[:] = 1
    (tmp_path / "t.zarr" / "c" / "1").write_bytes(b"no such codec")
    with serving(tmp_path / "t.zarr", "--view", "arrays", tmp_path=tmp_path) as server:
        assert server.ask("/t.npy", Range="bytes=150-151,0-1").status == 500
        with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
            server.ask("/t.npy", Range="bytes=0-1,150-151")
        assert server.ask("/t.npy", Range="bytes=0-1,128-130").status == 206


def test_conditions(demo):
    answer = demo.ask(NPY)
    etag = answer.headers["ETag"]
    # The time of a whole array is that of its document, by which a client would miss changes of chunks.
    assert re.fullmatch(r'"[0-9a-f.-]+"', etag) and "Last-Modified" not in answer.headers
    known = demo.ask(NPY, If_None_Match=etag)
    assert (known.status, known.bytes, known.headers["ETag"]) == (304, b"", etag)
    assert demo.ask(NPY, If_None_Match='"other"').status == 200
    assert demo.ask(NPY, If_Match=etag).status == 200
    assert demo.ask(NPY, If_Match='"other"').status == 412
    assert demo.ask("/air/air.nc").headers["ETag"] != etag


def test_versions_of_stored_objects(tmp_path):
    """Stored objects have times. Their tags differ between two servers, because the second one may show other bytes."""
    zarr.create_array(tmp_path / "t.zarr", shape=(4,), chunks=(4,), dtype="i4")[:] = 1
    # A file that was changed a moment ago has no date.
    os.utime(tmp_path / "t.zarr/c/0", (10**9, 10**9))
    tags = []
    for options in ((), (), ("--view", "chunks")):
        with serving(tmp_path / "t.zarr", *options, tmp_path=tmp_path) as server:
            answer = server.ask("/c/0")
            tags.append(answer.headers["ETag"])
            modified = answer.headers["Last-Modified"]
            assert parsedate_to_datetime(modified).timestamp() == int((tmp_path / "t.zarr/c/0").stat().st_mtime)
            assert server.ask("/c/0", If_Modified_Since=modified).status == 304
            assert server.ask("/c/0", If_Unmodified_Since=modified).status == 200
            assert server.ask("/c/0", If_Unmodified_Since="Mon, 01 Jan 1990 00:00:00 GMT").status == 412
    assert len(set(tags)) == 3


@pytest.mark.parametrize("view", ["keys", "chunks"])
def test_no_chunk_is_older_than_a_document_that_was_sent(view, tmp_path):
    """A file stays open for a while, but not beyond the moment at which a client may know that its array was replaced."""
    def write(dtype, value):
        zarr.open_group(tmp_path / "s.zarr", mode="w").create_array("a", shape=(4,), chunks=(4,), dtype=dtype, compressors=None)[:] = value

    write("<i4", 1)
    with serving(tmp_path / "s.zarr", "--view", view, "--ttl", "10", tmp_path=tmp_path) as server:
        first = server.ask("/a/c/0")
        assert first.bytes == np.full(4, 1, "<i4").tobytes()
        assert server.ask("/a/c/0").headers["ETag"] == first.headers["ETag"]
        write("<f4", 2.5)
        # The document of the array was not open, so the new document is read.
        assert json.loads(server.ask("/a/zarr.json").bytes)["data_type"] == "float32"
        assert server.ask("/a/c/0").bytes == np.full(4, 2.5, "<f4").tobytes()


def test_a_served_path_is_a_directory(tmp_path):
    zarr.create_array(tmp_path / "s.zarr", shape=(4,), chunks=(4,), dtype="<i4")[:] = 1
    done = run(BINARY, "--serve", "0", tmp_path / "s.zarr", "zarr.json", timeout=30)
    assert done.returncode == 1 and "this is a file" in done.stderr, done


def test_documents_are_compressed_for_those_who_like_it(tmp_path):
    group = zarr.create_group(tmp_path / "a.zarr")
    group.attrs["long"] = "x" * 5000
    group.create_array("t", shape=(4,), chunks=(2,), dtype="i4")
    with serving(tmp_path / "a.zarr", tmp_path=tmp_path) as server:
        plain = server.ask("/zarr.json")
        assert "Content-Encoding" not in plain.headers
        assert json.loads(plain.bytes)["attributes"]["long"] == "x" * 5000
        packed = server.ask("/zarr.json", Accept_Encoding="gzip, deflate")
        assert packed.headers["Content-Encoding"] == "gzip" and len(packed.bytes) < 500
        assert gzip.decompress(packed.bytes) == plain.bytes
        assert packed.headers["ETag"] != plain.headers["ETag"]
        assert all("Accept-Encoding" in answer.headers["Vary"] for answer in (plain, packed))
        for answer in (plain, packed):
            assert server.ask("/zarr.json", If_None_Match=answer.headers["ETag"], Accept_Encoding="gzip").status == 304
        part = server.ask("/zarr.json", Range="bytes=0-9", Accept_Encoding="gzip")
        assert (part.status, part.bytes) == (206, plain.bytes[:10])


def test_directories(demo):
    listing = demo.ask("/air/", Accept="application/json")
    assert listing.headers["Content-Type"] == "application/json"
    entries = {entry["name"]: entry for entry in json.loads(listing.bytes)["entries"]}
    assert entries["temperature.npy"]["size"] == len(demo.ask(NPY).bytes)
    assert entries["temperature.npy"]["href"] == NPY and entries["temperature.npy"]["kind"] == "file"
    lines = demo.ask("/", Accept="text/plain").bytes.decode().splitlines()
    assert "air/" in lines and ".zarr-mount/" not in lines
    # Programs that list any web server look for links.
    links = demo.ask("/air/").bytes.decode()
    assert "<title>Index of /air/</title>" in links and '<a href="temperature.npy">temperature.npy</a>' in links
    assert '<a href="air/">air/</a>' in demo.ask("/", Accept="*/*").bytes.decode()
    for asked, location in (("/air", "/air/"), ("//", "/"), ("//air//temperature.npy", NPY)):
        moved = demo.ask(asked)
        assert (moved.status, moved.headers["Location"]) == (308, location)
    page = demo.ask("/air/", Accept="text/html")
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "script" not in page.headers["Content-Security-Policy"]
    moved = demo.ask("/air?from=1", Accept="text/html")
    assert (moved.status, moved.headers["Location"]) == (308, "/air/?from=1")


def test_absent_names(demo):
    for path in ("/no", "/air/no.npy", NPY + "/", NPY + "/x", "/.zarr-mount", "/.zarr-mount/log", "/.zarr-mount/metrics"):
        assert demo.ask(path).status == 404, path


def test_every_request_needs_the_token(demo):
    for path in ("/", NPY, "/metrics", "/no", "/../x", f"{NPY}?token={TOKEN}", f"/{TOKEN}{NPY}", f"{NPY}?access_token={TOKEN}"):
        for method in ("GET", "HEAD", "OPTIONS", "PUT"):
            answer = demo.ask(path, method, token=None)
            assert (answer.status, answer.headers["WWW-Authenticate"][:5]) == (401, "Basic"), (method, path)
    for told in ("Bearer " + TOKEN[:-1], "Bearer", f"Bearer {TOKEN}0", f"Digest {TOKEN}", TOKEN):
        assert demo.ask(NPY, Authorization=told).status == 401, told
    assert demo.ask(NPY, token=None, Cookie=f"zarr-mount-{demo.port}={TOKEN}").status == 401
    address = f"http://any:{TOKEN}@127.0.0.1:{demo.port}{NPY}"
    assert ok("curl", "-s", "-o", os.devnull, "-w", "%{http_code}", address) == "200"


def test_a_link_lets_one_browser_in(tmp_path):
    with serving("demo:", tmp_path=tmp_path) as server:
        link = server.link.removeprefix(server.url.rstrip("/"))
        assert TOKEN not in link
        # A program that only looks does not use it up.
        assert server.ask(link, "HEAD", token=None).status == 403
        assert server.ask(link, token=None, Sec_Purpose="prefetch").status == 403
        assert server.ask(link, token=None, Host="evil.example").status == 421
        opened = server.ask(link, token=None)
        cookie = opened.headers["Set-Cookie"]
        assert opened.status == 200 and {"HttpOnly", "SameSite=Strict"} <= set(cookie.split("; "))
        assert opened.headers["Referrer-Policy"] == "no-referrer" and opened.headers["Cache-Control"] == "no-store"
        assert server.ask(link, token=None).status == 403
        value = cookie.split(";")[0]
        assert TOKEN not in value
        assert server.ask("/zarr.json", token=None, Cookie=f"a=b; {value}").status == 200
        assert server.ask("/zarr.json", token=None, Cookie=f"{value}x").status == 401


def test_only_its_own_names_are_answered(demo, tmp_path):
    for host in ("127.0.0.1", f"localhost:{demo.port}", "[::1]:1"):
        assert demo.ask(NPY, Host=host).status == 200, host
    for host in ("evil.example", f"evil.example:{demo.port}", "localhost.evil.example", "10.1.2.3", "data.example", ""):
        assert demo.ask(NPY, Host=host).status == 421, host
    with serving("demo:", "--host", "data.example", tmp_path=tmp_path) as server:
        assert server.ask("/zarr.json", Host="data.example:443").status == 200
        assert server.ask("/zarr.json", Host="evil.example").status == 421


def test_other_sites_read_only_by_leave(demo, tmp_path):
    closed = demo.ask(NPY, Origin="https://view.example")
    assert "Access-Control-Allow-Origin" not in closed.headers
    assert closed.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    with serving("demo:", "--cors", "https://view.example", tmp_path=tmp_path) as server:
        asked = server.ask("/zarr.json", "OPTIONS", token=None, Origin="https://view.example",
                           Access_Control_Request_Method="GET", Access_Control_Request_Headers="authorization,range")
        assert asked.status == 204
        assert asked.headers["Access-Control-Allow-Origin"] == "https://view.example"
        assert {"authorization", "range"} <= set(asked.headers["Access-Control-Allow-Headers"].lower().split(", "))
        answer = server.ask("/zarr.json", Origin="https://view.example")
        assert answer.status == 200 and answer.headers["Access-Control-Allow-Origin"] == "https://view.example"
        assert server.ask("/zarr.json", token=None, Origin="https://view.example").status == 401
        other = server.ask("/zarr.json", Origin="https://evil.example")
        assert "Access-Control-Allow-Origin" not in other.headers and "Origin" in other.headers["Vary"]
        assert server.ask("/", "OPTIONS", token=None, Origin="https://evil.example", Access_Control_Request_Method="GET").status == 401


def test_what_is_stored_runs_nowhere(tmp_path):
    group = zarr.create_group(tmp_path / "a.zarr")
    group.create_array("t", shape=(1,), dtype="i4")
    for name in ("page.html", "image.svg", "code.js", "a.xhtml"):
        (tmp_path / "a.zarr" / name).write_text("<script>alert(1)</script>")
    with serving(tmp_path / "a.zarr", tmp_path=tmp_path) as server:
        for name in ("page.html", "image.svg", "code.js", "a.xhtml", "zarr.json"):
            answer = server.ask("/" + name)
            assert answer.status == 200
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert answer.headers["Content-Disposition"] == "attachment"
            policy = answer.headers["Content-Security-Policy"]
            assert policy.startswith("sandbox;") and "default-src 'none'" in policy and "allow" not in policy
            assert answer.headers["Content-Type"] in ("application/octet-stream", "application/json")


def test_a_changed_file_has_another_version(tmp_path):
    array = zarr.create_array(tmp_path / "t.zarr", shape=(4,), chunks=(4,), dtype="i4", fill_value=0)
    array[:] = 1
    with serving(tmp_path / "t.zarr", "--view", "arrays", "--ttl", "0", tmp_path=tmp_path) as server:
        old = server.ask("/t.npy")
        array[:] = 2
        new = server.ask("/t.npy", If_None_Match=old.headers["ETag"])
        assert new.status == 200 and new.headers["ETag"] != old.headers["ETag"]
        assert np.frombuffer(new.bytes[-16:], "<i4").tolist() == [2] * 4
        assert server.ask("/t.npy", If_Match=old.headers["ETag"]).status == 412


def test_a_file_that_changes_while_it_is_sent_breaks_off(tmp_path):
    chunks, chunk = 64, 1 << 20
    array = zarr.create_array(tmp_path / "t.zarr", shape=(chunks * chunk,), chunks=(chunk,), dtype="u1", compressors=None)
    array[:] = 1
    with serving(tmp_path / "t.zarr", "--view", "arrays", "--cache-size", "32M", tmp_path=tmp_path) as server:
        connection = server.connect()
        connection.request("GET", "/t.npy", headers={"Authorization": f"Bearer {TOKEN}"})
        answer = connection.getresponse()
        begun = answer.read(1 << 20)
        array[:] = 2
        with pytest.raises((http.client.IncompleteRead, ConnectionResetError)) as broken:
            answer.read()
        got = begun + getattr(broken.value, "partial", b"")
        assert set(got[128:]) == {1}
        connection.close()
        assert set(server.ask("/t.npy", Range=f"bytes=-{chunk}").bytes) == {2}


def test_a_damaged_chunk_is_no_absent_one(tmp_path):
    array = zarr.create_array(tmp_path / "t.zarr", shape=(8,), chunks=(4,), dtype="i4")
    array[:] = 1
    (tmp_path / "t.zarr" / "c" / "0").write_bytes(b"no such codec")
    with serving(tmp_path / "t.zarr", "--view", "chunks", tmp_path=tmp_path) as server:
        damaged = server.ask("/c/0")
        assert damaged.status == 500 and b"c/0" in damaged.bytes
        assert server.ask("/c/1").status == 200
        assert server.ask("/c/2").status == 404


def test_metrics(demo):
    from prometheus_client.openmetrics.parser import text_string_to_metric_families
    answer = demo.ask("/metrics")
    assert answer.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    families = {family.name: family for family in text_string_to_metric_families(answer.bytes.decode())}
    assert families["zarr_mount_http_connections"].samples[0].value >= 1
    assert {"zarr_mount_http_responses", "zarr_mount_read_bytes", "zarr_mount_memory_bytes"} <= families.keys()


def test_a_part_of_a_store_is_a_root(tmp_path):
    with serving("demo:", "--view", "arrays", path=["air"], tmp_path=tmp_path) as server:
        assert server.ask("/temperature.npy").status == 200
        assert server.ask("/air/temperature.npy").status == 404
    failed = run(BINARY, "--serve", "0", "--view", "arrays", "demo:", "no/such")
    assert failed.returncode == 1 and "no/such of demo:" in failed.stderr


def test_a_server_ends_by_a_signal_and_clients_get_their_answers(tmp_path):
    array = zarr.create_array(tmp_path / "t.zarr", shape=(8 << 20,), chunks=(1 << 20,), dtype="u1", fill_value=7)
    assert array.shape
    with serving(tmp_path / "t.zarr", "--view", "arrays", tmp_path=tmp_path) as server:
        connection = server.connect()
        connection.request("GET", "/t.npy", headers={"Authorization": f"Bearer {TOKEN}"})
        answer = connection.getresponse()
        got = [answer.read(1000)]
        reader = threading.Thread(target=lambda: got.append(answer.read()))
        server.process.send_signal(signal.SIGINT)
        reader.start()
        reader.join()
        assert sum(map(len, got)) == (8 << 20) + 128
        assert server.process.wait(60) == 0
        with pytest.raises(ConnectionError):
            server.ask("/")


def test_what_the_command_refuses(tmp_path):
    def refused(*options, status=1):
        done = run(BINARY, "--serve", *options)
        assert done.returncode == status and not done.stdout, done
        return done.stderr

    assert "--insecure" in refused("0.0.0.0:0", "demo:")
    assert "expected a port" in refused("localhost", "demo:")
    assert "STORE missing" in refused("0", status=2)
    assert "--token-file" in refused("0", "--quiet", "demo:", status=2)
    assert "expected an origin" in refused("0", "--cors", "*", "demo:", status=2)
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o644)
    assert "chmod 600" in refused("0", "--token-file", token, "demo:")


def test_a_random_token_is_printed_and_logged_nowhere(tmp_path):
    log = tmp_path / "log"
    with serving("demo:", "-vvv", "--log-file", log) as server:
        token = server.process.stdout.readline().split()[-1]
        assert re.fullmatch(r"[\w-]{43}", token)
        assert server.ask("/zarr.json", token=token).status == 200
        code = server.link.rsplit("/", 1)[1]
        assert server.ask(f"/.zarr-mount/open/{code}", token=None).status == 200
        assert server.ask(f"/zarr.json?token={token}", token=None).status == 401
    text = log.read_text()
    assert "GET /zarr.json: 200" in text
    assert token not in text and code not in text
