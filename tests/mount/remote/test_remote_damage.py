"""A wrong answer of a server is not an absence: a chunk that exists is never read as fill values because of it."""
import contextlib
import errno
import http.server
import os
import threading

import pytest

from support import remote_samples
from support.mounting import until
from support.remote_fault_server import FaultServer
from support.remote_samples import attempt, chunk, mounted, values

HOLE = values(remote_samples.PLAIN)[remote_samples.PLAIN_CHUNK:2 * remote_samples.PLAIN_CHUNK].tobytes()
NO_PAGES = {"a page for logging in": {"fault": "login"}, "an error of status 200": {"fault": "status", "status": 200}}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("root")
    remote_samples.write(folder)
    remote_samples.age(folder)
    return folder


def listed(path):
    """The names, or the name of the error that came instead."""
    try:
        return sorted(os.listdir(path))
    except OSError as error:
        return errno.errorcode[error.errno]


@pytest.mark.parametrize("rule", NO_PAGES.values(), ids=NO_PAGES)
def test_a_document_that_is_no_page_of_names_hides_no_chunk(root, mount, rule):
    with FaultServer(root, "s3") as server:
        made = mounted(mount, server, "--view", "chunks", "--ttl", "3600", "--timeout", "3")
        server.rules({**rule, "method": "LIST"})
        for n in (0, 2, 3):  # After three absent chunks, names are listed.
            assert set(attempt(made.path / "hole/c" / str(n))) == {0, 7}
        assert attempt(made.path / "hole/c/1") == HOLE
        assert sum(server.hits()) > 0
        made.unmount()


@pytest.mark.parametrize("rule", [*NO_PAGES.values(), {"fault": "same_page"}], ids=[*NO_PAGES, "the same page again"])
def test_a_server_that_has_listed_names_is_not_taken_for_one_that_cannot(root, mount, rule):
    with FaultServer(root, "s3") as server:
        made = mounted(mount, server, "--view", "keys", "--shards", "keep", "--timeout", "3")
        assert listed(made.path) == ["big", "first", "hole", "plain", "small", "zarr.json"]
        server.rules({**rule, "method": "LIST"})
        assert listed(made.path / "plain") == "EIO"
        server.rules()
        until(lambda: listed(made.path / "plain") == ["c", "zarr.json"], "the names")
        made.unmount()


@pytest.mark.parametrize("rule", [{"fault": "status", "status": 404}, {"fault": "empty"}], ids=["404", "no length"])
def test_a_server_that_answers_requests_for_attributes_wrongly(root, mount, rule):
    with FaultServer(root) as server:
        server.rules({**rule, "method": "HEAD"})
        made = mounted(mount, server, "--view", "keys,chunks", "--timeout", "3")
        for view in ("keys", "chunks"):
            for name in ("plain", "small"):
                assert attempt(made.path / view / name / "c/1") == chunk(name, 1), (view, name)
        assert attempt(made.path / "keys/hole/c/1") == HOLE
        assert attempt(made.path / "keys/hole/c/2") == "ENOENT"
        made.unmount()


@pytest.mark.parametrize("kind", ["http", "s3"])
def test_a_document_that_was_sent_empty_is_asked_for_again(root, mount, kind):
    """The server sends the version of the good document with the empty one."""
    with FaultServer(root, kind) as server:
        made = mounted(mount, server, "--view", "chunks", "--ttl", "0.2", "--timeout", "3")
        path = made.path / "plain/c/1"
        assert attempt(path) == chunk("plain", 1)
        server.rules({"fault": "empty", "key": "*/plain/zarr.json"})
        until(lambda: attempt(path) == "EIO", "an error of a damaged array")
        server.rules()
        until(lambda: attempt(path) == chunk("plain", 1), "the bytes of a mended array")
        made.unmount()


class Dav(http.server.SimpleHTTPRequestHandler):
    """A web server that lists names, as long as it `lists`. It answers only requests with its `key`, if it has one. The first requests for names
    get the statuses in `failures`, and no answer for 0."""
    protocol_version = "HTTP/1.1"
    lists = True
    failures = []
    key = None

    def parse_request(self):
        if not super().parse_request():
            return False
        if self.headers["X-Key"] == self.key:
            return True
        self.send_error(401)
        return False

    def log_message(self, *_):
        pass

    def do_PROPFIND(self):
        folder = self.translate_path(self.path)
        if Dav.failures:
            self.close_connection = True
            if status := Dav.failures.pop(0):
                self.send_error(status)
            return
        if not Dav.lists or not os.path.isdir(folder):
            self.send_error(503 if os.path.isdir(folder) else 404)
            return
        rows = "".join(self.row(name, os.path.isdir(os.path.join(folder, name))) for name in ["", *sorted(os.listdir(folder))])
        body = f"<D:multistatus xmlns:D='DAV:'>{rows}</D:multistatus>".encode()
        self.send_response(207)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def row(self, name, is_folder):
        kind = "<D:collection/>" if is_folder or not name else ""
        return (f"<D:response><D:href>{self.path.rstrip('/')}/{name}</D:href><D:propstat><D:prop><D:resourcetype>{kind}</D:resourcetype>"
                "<D:getcontentlength>1</D:getcontentlength><D:getlastmodified>Mon, 03 Nov 2025 00:00:00 GMT</D:getlastmodified></D:prop>"
                "<D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>")


NAMES = ["big", "first", "hole", "plain", "small", "zarr.json"]


@contextlib.contextmanager
def dav_server(root):
    """Runs a server of the class `Dav`, and gives the URL of the store."""
    handler = lambda *args: Dav(*args, directory=str(root / remote_samples.BUCKET))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/z"
        server.shutdown()


def test_headers_are_sent_with_requests_for_names(root, mount, tmp_path, monkeypatch):
    monkeypatch.setattr(Dav, "key", "open sesame")
    (tmp_path / "key").write_text(Dav.key)
    with dav_server(root) as url:
        made = mount(url, "--view", "keys", "--header", f"X-Key: @{tmp_path / 'key'}", "--timeout", "3")
        assert listed(made.path) == NAMES
        assert attempt(made.path / "plain/c/1") == chunk("plain", 1)
        made.unmount()


@pytest.mark.parametrize("failures", [[503], [500, 429], [0]], ids=["503", "500 and 429", "a lost connection"])
def test_a_request_for_names_that_fails_is_repeated(failures, root, mount, tmp_path, monkeypatch):
    monkeypatch.setattr(Dav, "failures", failures)
    with dav_server(root) as url:
        for _ in range(2):
            made = mount(url, "--view", "keys", "--disk-cache", tmp_path / "cache", "--immutable", "--timeout", "10")
            assert listed(made.path) == NAMES
            made.unmount()
    assert not failures


@pytest.mark.parametrize("failure", [500, 0], ids=["500", "a lost connection"])
def test_a_web_server_that_never_lists_names_and_does_not_say_so(failure, root, mount, monkeypatch):
    monkeypatch.setattr(Dav, "failures", [failure] * 1000)
    with dav_server(root) as url:
        made = mount(url, "--view", "chunks", "--timeout", "2")
        assert "no list of names" in made.log_text()
        assert attempt(made.path / "plain/c/1") == chunk("plain", 1)
        # Names come from documents, and no listing waits for as long as requests are repeated.
        asked = len(Dav.failures)
        assert set(listed(made.path)) >= {"plain", "zarr.json"}
        assert asked - len(Dav.failures) <= 4
        made.unmount()


def test_a_web_server_that_has_listed_names_and_fails_now(root, mount):
    with dav_server(root) as url:
        made = mount(url, "--view", "keys", "--ttl", "0.2", "--timeout", "3")
        assert listed(made.path) == NAMES
        Dav.lists = False
        until(lambda: listed(made.path) == "EIO", "an error, and not a part of the names")
        Dav.lists = True
        until(lambda: listed(made.path) == NAMES, "the names")
        made.unmount()
