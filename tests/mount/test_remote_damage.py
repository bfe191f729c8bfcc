"""What a server sends in place of what it was asked for is no absence: a chunk that is there is never read as fill values because of it."""
import errno
import os

import pytest

import remote_samples
from mounting import until
from remote_fault_server import FaultServer
from remote_samples import attempt, chunk, mounted, values

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
    """The version that the server tells of it is that of the good one."""
    with FaultServer(root, kind) as server:
        made = mounted(mount, server, "--view", "chunks", "--ttl", "0.2", "--timeout", "3")
        path = made.path / "plain/c/1"
        assert attempt(path) == chunk("plain", 1)
        server.rules({"fault": "empty", "key": "*/plain/zarr.json"})
        until(lambda: attempt(path) == "EIO", "an error of a damaged array")
        server.rules()
        until(lambda: attempt(path) == chunk("plain", 1), "the bytes of a mended array")
        made.unmount()
