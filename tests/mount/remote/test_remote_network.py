"""Servers that redirect, end, or do not answer: the redirects that are followed, and the results of readers."""
import os
import threading

import pytest

from support import mounting, remote_samples, remote_servers
from support.remote_fault_server import FaultServer
from support.remote_samples import attempt, key, mounted
from test_remote_faults import ARGS, BOTH, RIGHT, got, got_of_chunks


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("root")
    remote_samples.write(folder, consolidate=True)
    return folder


# Redirects

def target(server, path="{key}"):
    return f"{server.url}/{path}"


def test_redirects_of_the_same_origin_are_followed(root, mount, tmp_path):
    with FaultServer(root) as server:
        made = mounted(mount, server, *ARGS)
        for status, n in ((301, 0), (302, 1), (307, 2), (308, 3)):
            other = remote_samples.key("plain").replace("/c/0", f"/c/{n}")
            moved = root / "moved" / str(n)
            moved.parent.mkdir(exist_ok=True)
            moved.write_bytes((root / other).read_bytes())
            server.rules({"fault": "redirect", "status": status, "location": f"/moved/{n}", "key": other})
            assert got(made, "plain", n) == RIGHT, status
        made.unmount()


def test_five_redirects_are_followed_and_no_more(root, mount):
    for count, expected in ((5, {RIGHT}), (6, {"EACCES"})):
        with FaultServer(root) as server:
            made = mounted(mount, server, *ARGS)
            # Each request of this key is sent to itself, so many times.
            server.rules({"fault": "redirect", "location": "/{key}", "key": key("plain"), "count": count})
            assert got(made, "plain", 0) in expected, count
            made.unmount()


def test_redirects_that_do_not_end(root, mount):
    with FaultServer(root) as server:
        made = mounted(mount, server, *ARGS)
        server.clear()
        server.rules({"fault": "redirect", "location": "/{key}", "key": key("plain")})
        assert got(made, "plain", 0) == "EACCES"
        assert len([r for r in server.requests() if r["key"] == key("plain")]) == 6
        made.unmount()


def test_redirects_to_private_addresses_are_refused(root, mount):
    """Another origin may be anywhere but on this machine or its own network, whatever its name is."""
    with FaultServer(root) as server, FaultServer(root) as other:
        made = mounted(mount, server, *ARGS)
        for location in (target(other), target(other).replace("127.0.0.1", "localhost"), target(other).replace("127.0.0.1", "[::1]"),
                         target(other).replace("127.0.0.1", "127.1"), target(other).replace("127.0.0.1", "[::ffff:127.0.0.1]"),
                         target(other).replace("127.0.0.1", "0.0.0.0"), "http://169.254.169.254/{key}", "http://10.0.0.1/{key}",
                         "file:///etc/passwd", "gopher://127.0.0.1/{key}"):
            server.rules({"fault": "redirect", "location": location, "key": key("plain")})
            assert got(made, "plain", 0) == "EACCES", location
        assert not other.requests()
        made.unmount()
        assert made.log_text().count("redirect") >= 1


def test_a_refused_redirect_is_no_absence(root, mount):
    """`--absent-403` takes what the server denies for absent, and not what this program does."""
    with FaultServer(root) as server, FaultServer(root) as other:
        made = mounted(mount, server, *ARGS, "--absent-403")
        server.rules({"fault": "redirect", "location": target(other), "key": key("plain")})
        assert got(made, "plain", 0) == "EACCES"
        assert attempt(made.path / "arrays" / "plain.raw") == "EACCES"
        assert got(made, "plain", 1) == RIGHT
        made.unmount()


def test_https_is_not_left(root, mount, tmp_path):
    certificate = remote_servers.certificate(tmp_path / "tls")
    with FaultServer(root, tls=(certificate.chain, certificate.key)) as server, FaultServer(root) as other:
        made = mounted(mount, server, *ARGS, "--ca-file", certificate.authority)
        assert got(made, "plain", 1) == RIGHT
        server.rules({"fault": "redirect", "location": target(other), "key": key("plain")})
        assert got(made, "plain", 0) == "EACCES"
        assert not other.requests()
        made.unmount()


def test_object_stores_do_not_redirect(root, mount):
    with FaultServer(root, "s3") as server:
        made = mounted(mount, server, *ARGS)
        server.rules({"fault": "redirect", "status": 307, "location": "/" + key("plain").replace("/c/0", "/c/1"), "key": key("plain")})
        assert got(made, "plain", 0) in ("EIO", "EACCES")
        made.unmount()


# The network

@pytest.mark.long
@BOTH
def test_a_server_that_has_ended(kind, root, mount):
    with FaultServer(root, kind) as server:
        made = mounted(mount, server, *ARGS)
        assert got(made, "plain", 0) == RIGHT
    assert got(made, "plain", 1) == "EIO"
    # Chunks in memory stay.
    assert got(made, "plain", 0) == RIGHT
    assert made.alive()
    made.unmount()


@pytest.mark.long
def test_a_mount_ends_while_its_server_says_nothing(root, mount):
    with FaultServer(root, "s3") as server:
        url, more, env = remote_samples.store(server)
        made = mount(url, *more, "--view", "chunks", "--timeout", "300", env=remote_servers.clean_environment(**env))
        os.stat(made.path / "plain" / "c" / "0")
        server.rules({"fault": "stall"})
        readers = [threading.Thread(target=got_of_chunks, args=(made, "big", n), daemon=True) for n in range(16)]
        for reader in readers:
            reader.start()
        mounting.until(lambda: server.load()["in_flight"] > 0, "a request")
        mounting.run("kill", "-TERM", made.pid)
        made.wait_for_the_end()
        for reader in readers:
            reader.join(mounting.PATIENCE)
            assert not reader.is_alive()


@pytest.mark.long
@BOTH
def test_a_body_that_stalls_is_read_on(kind, root, mount):
    """After 10 s without a byte, the rest is requested again."""
    with FaultServer(root, kind) as server:
        made = mounted(mount, server, "--view", "chunks,arrays")
        server.rules({"fault": "stall", "after": 100, "key": "*/plain/c/*", "count": 1})
        assert got(made, "plain", 1) == RIGHT
        made.unmount()


@pytest.mark.long
@BOTH
def test_many_faults_at_once(kind, root, mount):
    """One request in five fails in one of many ways: every byte is right, and the reader gets no error."""
    faults = [{"fault": "status", "status": 503}, {"fault": "status", "status": 500}, {"fault": "reset"}, {"fault": "reset", "after": 1000},
              {"fault": "truncate", "bytes": 100}, {"fault": "truncate", "bytes": 1 << 30}, {"fault": "latency", "seconds": 0.05}]
    with FaultServer(root, kind) as server:
        made = mounted(mount, server, "--view", "chunks,arrays", "--files", "raw", "--timeout", "60", "--ttl", "0", "--cache-size", "16M")
        server.rules(*({"probability": 0.03, "key": "*/c/*", **fault} for fault in faults), seed=3)
        for name, count in (("big", remote_samples.BIG), ("first", remote_samples.BIG), ("plain", remote_samples.PLAIN)):
            for _ in range(3):
                assert attempt(made.path / "arrays" / f"{name}.raw") == remote_samples.values(count).tobytes(), name
        assert sum(server.hits()) > 0
        made.unmount()
