"""`--serve` as a network drive: PROPFIND, and encrypted connections."""
import http.client
import os
import ssl
import subprocess
import xml.etree.ElementTree as ElementTree
from email.utils import parsedate_to_datetime

import pytest
import zarr

from support.mounting import BINARY, run
from support.serving import TOKEN, serving

D = "{DAV:}"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    root = tmp_path_factory.mktemp("webdav")
    group = zarr.create_group(root / "a.zarr")
    group.create_array("t", shape=(4,), chunks=(2,), dtype="i4")[:] = 1
    # A file that was changed a moment ago has no date in GET.
    for name in ("zarr.json", "t/zarr.json", "t/c/0"):
        os.utime(root / "a.zarr" / name, (10**9, 10**9))
    (root / "a.zarr" / "a & <b>.txt").write_text("text")
    for n in range(1000):
        (root / "a.zarr" / f"many-{n}").write_text("")
    with serving(root / "a.zarr", "--view", "keys,arrays", tmp_path=root) as server:
        yield server


def properties(server, path, depth="1", body=None):
    """The properties that each path has, and the names of those that it lacks."""
    answer = server.ask(path, "PROPFIND", body=body and body.encode(), Depth=depth)
    assert answer.status == 207, answer.bytes
    found = {}
    for response in ElementTree.fromstring(answer.bytes):
        there, missing = {}, []
        for stat in response.findall(f"{D}propstat"):
            names = stat.find(f"{D}prop")
            if " 200 " in stat.find(f"{D}status").text:
                there |= {element.tag.removeprefix(D): element for element in names}
            else:
                assert " 404 " in stat.find(f"{D}status").text
                missing += [element.tag for element in names]
        found[response.find(f"{D}href").text] = (there, missing)
    return found


def test_properties_are_those_of_get(server):
    for path in ("/keys/zarr.json", "/keys/t/c/0", "/arrays/t.npy"):
        ((href, (there, _)),) = properties(server, path, "0").items()
        answer = server.ask(path)
        assert href == path and len(there["resourcetype"]) == 0
        assert there["getcontentlength"].text == answer.headers["Content-Length"]
        assert there["getcontenttype"].text == answer.headers["Content-Type"]
        if path.startswith("/keys"):
            assert there["getetag"].text == answer.headers["ETag"]
            assert there["getlastmodified"].text == answer.headers["Last-Modified"]
        else:
            assert "getetag" not in there
            # The time of the document would not show changes of chunks.
            modified = parsedate_to_datetime(there["getlastmodified"].text)
            assert modified.year > 2001 and "Last-Modified" not in answer.headers


def test_a_directory_of_any_number_of_names(server):
    found = properties(server, "/keys")
    assert next(iter(found)) == "/keys/" and {"/keys/t/", "/keys/zarr.json", "/keys/a%20%26%20%3Cb%3E.txt"} <= found.keys()
    assert len([path for path in found if "many-" in path]) == 1000
    there, _ = found["/keys/t/"]
    assert [element.tag for element in there["resourcetype"]] == [f"{D}collection"] and "getcontentlength" not in there
    there, _ = found["/keys/a%20%26%20%3Cb%3E.txt"]
    assert there["displayname"].text == "a & <b>.txt" and there["getcontentlength"].text == "4"
    assert properties(server, "/keys/", "0").keys() == {"/keys/"}
    assert properties(server, "/").keys() == {"/", "/keys/", "/arrays/"}


def test_named_properties(server):
    body = '<propfind xmlns="DAV:"><prop><getcontentlength/><quota/><x xmlns="urn:&quot;w"/></prop></propfind>'
    there, missing = properties(server, "/keys/zarr.json", "0", body)["/keys/zarr.json"]
    assert list(there) == ["getcontentlength"] and missing == [f"{D}quota", '{urn:"w}x']
    there, _ = properties(server, "/keys/zarr.json", "0", '<propfind xmlns="DAV:"><propname/></propfind>')["/keys/zarr.json"]
    assert {"getetag", "resourcetype"} <= there.keys() and not any(element.text for element in there.values())


def test_what_is_refused(server):
    options = server.ask("/", "OPTIONS")
    assert options.headers["DAV"] == "1" and "PROPFIND" in options.headers["Allow"]
    for depth in ("infinity", "2", ""):
        answer = server.ask("/", "PROPFIND", Depth=depth)
        assert answer.status == 403 and b"propfind-finite-depth" in answer.bytes
    assert server.ask("/", "PROPFIND", token=None, Depth="0").status == 401
    assert server.ask("/no", "PROPFIND", Depth="0").status == 404
    assert server.ask("/keys/.zarr-mount", "PROPFIND", Depth="1").status == 404
    assert server.ask("/keys/../x", "PROPFIND", Depth="1").status == 400
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><propfind xmlns="DAV:"><prop><getetag/></prop></propfind>'
    for body in ("no xml", "<propfind/>", bomb):
        assert server.ask("/", "PROPFIND", body=body.encode(), Depth="0").status == 400
    assert server.ask("/", "PROPFIND", body=b" " * 100_000, Depth="0").status == 413
    for method in ("PROPPATCH", "MKCOL", "LOCK", "PUT", "DELETE", "MOVE", "COPY", "POST"):
        assert server.ask("/keys/zarr.json", method).status == 405


def test_encrypted_connections(tmp_path):
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-addext",
                    "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate, "-days", "2"], check=True, capture_output=True)
    options = ("--tls-cert", certificate, "--tls-key", key)
    with serving("demo:", *options, tmp_path=tmp_path) as server:
        assert server.url.startswith("https://")
        context = ssl.create_default_context(cafile=certificate)
        connection = http.client.HTTPSConnection("localhost", server.port, context=context, timeout=60)
        connection.request("GET", "/zarr.json", headers={"Authorization": f"Bearer {TOKEN}"})
        answer = connection.getresponse()
        assert answer.status == 200 and answer.read().startswith(b"{")
        link = server.link.removeprefix(server.url.rstrip("/"))
        connection.request("GET", link)
        answer = connection.getresponse()
        assert "Secure" in answer.headers["Set-Cookie"].split("; ") and answer.read()
        connection.close()
        # A client that does not encrypt gets nothing.
        assert b"zarr_format" not in server.send(b"GET /zarr.json HTTP/1.1\r\nHost: localhost\r\n\r\n")
    failed = run(BINARY, "--serve", "0", "--tls-cert", key, "--tls-key", key, "demo:")
    assert failed.returncode == 1 and "key.pem" in failed.stderr
    failed = run(BINARY, "--serve", "0", "--tls-cert", certificate, "demo:")
    assert failed.returncode == 2 and "--tls-key" in failed.stderr
