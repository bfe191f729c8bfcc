"""Stores that cannot be mounted: one line has the problem, the URL and advice; nothing stays mounted."""
import re
import socket

import pytest

from support import mounting, remote_samples, remote_servers
from support.remote_fault_server import FaultServer


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("root")
    remote_samples.write(folder)
    (folder / remote_samples.BUCKET / "empty").mkdir()
    return folder


def refused(tmp_path, url, *args, env=None):
    """The message of the command for a mount that must fail."""
    point = tmp_path / "m"
    point.mkdir(exist_ok=True)
    try:
        done = mounting.run(mounting.BINARY, url, point, "--timeout", "3", *args, env=remote_servers.clean_environment(**env or {}),
                            timeout=mounting.PATIENCE)
        assert done.returncode != 0, f"it was mounted: {done.stderr}"
        assert not mounting.mount_entry(point) and not mounting.daemons(point)
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        # While a request is repeated or waited for, the user gets one message about it.
        waiting = [line for line in lines if re.search(r"warning: .*(it is repeated|the mount waits)", line)]
        assert len(waiting) == len(set(waiting)) <= 2 and lines[:len(waiting)] == waiting, done.stderr
        lines = lines[len(waiting):]
        assert len(lines) == 1, done.stderr
        assert url in lines[0], f"the line does not name the URL: {lines[0]}"
        return lines[0]
    finally:
        mounting.force_away(point)


def of_server(tmp_path, server, *args, path="z", env=None):
    url, more, keys = remote_samples.store(server, path)
    return refused(tmp_path, url, *more, *args, env={**keys, **(env or {})})


def test_no_server_listens(tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))  # the port is bound, so that no other program takes it, but nothing listens
        line = refused(tmp_path, f"http://127.0.0.1:{probe.getsockname()[1]}/z")
    assert re.search(r"connect|refused", line), line


def test_no_server_listens_at_the_endpoint(tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        line = refused(tmp_path, "s3://bucket/z", "--endpoint", f"http://127.0.0.1:{probe.getsockname()[1]}", "--region", "us-east-1",
                       "--anonymous")
    assert re.search(r"connect|refused", line), line


def test_redirects_that_are_not_followed(tmp_path, root):
    """The line names the redirect, and gives no advice about credentials."""
    with FaultServer(root) as server, FaultServer(root) as other:
        server.rules({"fault": "redirect", "location": f"{other.url}/{{key}}"})
        line = of_server(tmp_path, server)
        assert "redirect" in line and "redentials" not in line and "--header" not in line, line
        assert not other.requests()


def test_unknown_host(tmp_path):
    """A name with a part of more than 63 characters: no name server is asked for it, so none can be slow."""
    host = 64 * "x" + ".invalid"
    line = refused(tmp_path, f"http://{host}/z")
    assert re.search(r"lookup|resolve|not known", line), line


def test_the_server_says_nothing(root, tmp_path):
    with FaultServer(root) as server:
        server.rules({"fault": "stall"})
        line = of_server(tmp_path, server)
        assert re.search(r"answer|time", line), line


@pytest.mark.parametrize("kind", ["http", "s3"])
def test_everything_is_found(kind, root, tmp_path):
    """A page for logging in, or the one page of an application: absent chunks could not be distinguished from stored ones."""
    with FaultServer(root, kind) as server:
        server.rules({"fault": "login"})
        assert "absen" in of_server(tmp_path, server)


def test_no_bucket(root, tmp_path):
    with FaultServer(root, "s3") as server:
        line = refused(tmp_path, "s3://no-such-bucket/z", "--endpoint", server.url, "--region", "us-east-1", "--anonymous")
        assert "bucket" in line.replace("s3://no-such-bucket", ""), line


def test_no_bucket_of_moto(root, tmp_path):
    with remote_servers.moto(root, tmp_path) as server:
        line = refused(tmp_path, "s3://no-such-bucket/z", *server.args, env=server.env)
        assert "bucket" in line.replace("s3://no-such-bucket", ""), line


@pytest.mark.parametrize("kind", ["http", "s3"])
@pytest.mark.parametrize("status", [401, 403])
def test_denied(kind, status, root, tmp_path):
    with FaultServer(root, kind) as server:
        server.rules({"fault": "status", "status": status, "code": "AccessDenied"})
        line = of_server(tmp_path, server)
        assert re.search(r"denie|40[13]|permission", line, re.IGNORECASE), line
        # The advice says how credentials are given.
        assert re.search(r"credential|--header|AWS_|--anonymous|--profile", line), line


def test_a_private_bucket_of_moto(root, tmp_path):
    with remote_servers.moto(root, tmp_path, public=False) as server:
        line = refused(tmp_path, "s3://bucket/z", *server.args, "--anonymous")
        assert re.search(r"denie|403", line, re.IGNORECASE), line


def test_another_region(root, tmp_path):
    with FaultServer(root, "s3") as server:
        server.rules({"fault": "status", "status": 301, "code": "PermanentRedirect", "headers": {"x-amz-bucket-region": "eu-north-1"}})
        assert "eu-north-1" in of_server(tmp_path, server)


@pytest.mark.parametrize("kind", ["http", "s3"])
@pytest.mark.parametrize("status", [500, 503])
def test_the_server_is_ill(kind, status, root, tmp_path):
    with FaultServer(root, kind) as server:
        server.rules({"fault": "status", "status": status})
        assert str(status) in of_server(tmp_path, server)


@pytest.mark.parametrize("kind", ["http", "s3"])
@pytest.mark.parametrize("path", ["none", "empty"])
def test_nothing_is_there(kind, path, root, tmp_path):
    with FaultServer(root, kind) as server:
        of_server(tmp_path, server, path=path)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return remote_servers.certificate(tmp_path_factory.mktemp("tls"))


def test_a_certificate_of_an_unknown_authority(root, tmp_path, certificate, mount):
    with FaultServer(root, tls=(certificate.chain, certificate.key)) as server:
        line = of_server(tmp_path, server)
        assert "certificate" in line.lower() and "--ca-file" in line, line
        assert not server.requests(), "something was asked for before the certificate was checked"
        made = remote_samples.mounted(mount, server, "--ca-file", certificate.authority, "--view", "chunks")
        assert (made.path / "plain" / "c" / "0").read_bytes() == remote_samples.chunk("plain", 0)
        made.unmount()


def test_nginx_with_a_certificate_of_its_own(root, tmp_path, certificate, mount):
    with remote_servers.nginx(root, tmp_path, certificate) as server:
        assert "certificate" in refused(tmp_path, server.url("bucket/z")).lower()
        made = mount(server.url("bucket/z"), "--ca-file", certificate.authority, "--view", "chunks")
        assert (made.path / "plain" / "c" / "0").read_bytes() == remote_samples.chunk("plain", 0)
        made.unmount()


def test_a_certificate_of_another_host(root, tmp_path, certificate):
    other = f"https://localhost.localdomain:%d/{remote_samples.BUCKET}/z"
    with FaultServer(root, tls=(certificate.chain, certificate.key)) as server:
        url = other.replace("localhost.localdomain", "127.0.0.2") % server.port
        # No server listens at this address, or the certificate does not name it: both are errors.
        refused(tmp_path, url, "--ca-file", certificate.authority)


def test_https_of_a_server_that_speaks_http(root, tmp_path):
    with FaultServer(root) as server:
        refused(tmp_path, f"https://127.0.0.1:{server.port}/bucket/z")


@pytest.mark.parametrize("url", ["ftp://host/z", "s3://", "https://", "s3:///z", "nonsense://x/z"])
def test_urls_that_are_none(url, tmp_path):
    refused(tmp_path, url) if url not in ("ftp://host/z", "nonsense://x/z") else refused_scheme(tmp_path, url)


def refused_scheme(tmp_path, url):
    done = mounting.run(mounting.BINARY, url, tmp_path)
    assert done.returncode != 0 and url.partition(":")[0] in done.stderr and not mounting.mount_entry(tmp_path)


def test_info_says_the_same(root, tmp_path):
    with FaultServer(root, "s3") as server:
        server.rules({"fault": "status", "status": 403, "code": "AccessDenied"})
        url, more, env = remote_samples.store(server)
        done = mounting.run(mounting.BINARY, "--info", url, *more, "--timeout", "3", env=remote_servers.clean_environment(**env))
        assert done.returncode != 0 and url in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr
