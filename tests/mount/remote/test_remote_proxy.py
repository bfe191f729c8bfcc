"""Proxies: the requests of a store go through the one that the environment names, and those for a machine's own credentials never."""
import http.client
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pytest

from support import remote_samples, remote_servers
from support.remote_fault_server import FaultServer


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("root")
    remote_samples.write(folder, consolidate=True)
    return folder


class Server(ThreadingHTTPServer):
    """Records its requests."""

    def __init__(self, handler):
        super().__init__(("127.0.0.1", 0), handler)
        self.daemon_threads, self.targets, self.store, self.padding, self.busy = True, [], None, "", 0

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, headers, body):
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


class Proxy(Handler):
    """Sends each request to the server of the store, whatever host it is for."""

    def pass_on(self):
        self.server.targets.append(self.path)
        url = urlsplit(self.path)
        to = http.client.HTTPConnection("127.0.0.1", self.server.store.port)
        to.request(self.command, url.path + (f"?{url.query}" if url.query else ""), headers=dict(self.headers))
        found = to.getresponse()
        body = found.read()
        to.close()
        self.answer(found.status, found.getheaders(), body)

    do_GET = do_HEAD = do_PUT = do_PROPFIND = pass_on


class Machine(Handler):
    """The metadata server of a machine of AWS."""

    def do_PUT(self):
        self.say("token")

    def do_GET(self):
        is_list = self.path.endswith("/security-credentials/")
        keys = {"AccessKeyId": "AKIAMACHINE", "SecretAccessKey": "secret", "Token": "token", "Expiration": "2099-01-01T00:00:00Z"}
        self.say("role" if is_list else json.dumps(keys) + self.server.padding)

    def say(self, text):
        self.server.targets.append(self.path)
        if self.server.busy:
            self.server.busy -= 1
            self.answer(503, [("Content-Length", "0")], b"")
            return
        self.answer(200, [("Content-Length", str(len(text)))], text.encode())


def environment(proxy, **more):
    return {**remote_servers.clean_environment(**more), "HTTP_PROXY": proxy, "http_proxy": proxy}


def test_a_web_server_behind_a_proxy(root, mount):
    """Only the proxy resolves the name of the web server. A line of the log says that the proxy has to check the targets of redirects."""
    with FaultServer(root) as store, Server(Proxy) as proxy:
        proxy.store = store
        made = mount("http://store.invalid/bucket/z", "--view", "chunks", "--log-level", "info", env=environment(proxy.url))
        assert remote_samples.attempt(made.path / "plain" / "c" / "0") == remote_samples.chunk("plain", 0)
        assert proxy.targets and all(target.startswith("http://store.invalid/") for target in proxy.targets)
        assert (made.said + made.log_text()).count("checked by the proxy") == 1, made.log_text()
        made.unmount()


def test_no_proxy_for_some_hosts(root, mount):
    with FaultServer(root) as store, Server(Proxy) as proxy:
        proxy.store = store
        made = mount(f"{store.url}/bucket/z", "--view", "chunks", env={**environment(proxy.url), "NO_PROXY": "127.0.0.1"})
        assert remote_samples.attempt(made.path / "plain" / "c" / "0") == remote_samples.chunk("plain", 0)
        assert not proxy.targets
        made.unmount()


def test_credentials_of_a_machine_are_not_asked_for_through_a_proxy(root, mount):
    with FaultServer(root, "s3") as store, Server(Proxy) as proxy, Server(Machine) as machine:
        proxy.store = store
        env = environment(proxy.url, AWS_EC2_METADATA_SERVICE_ENDPOINT=machine.url)
        del env["AWS_EC2_METADATA_DISABLED"]
        made = mount("s3://bucket/z", "--endpoint", store.url, "--region", "us-east-1", "--view", "chunks", env=env)
        assert remote_samples.attempt(made.path / "plain" / "c" / "0") == remote_samples.chunk("plain", 0)
        assert machine.targets, "the machine was not asked"
        assert proxy.targets and not [target for target in proxy.targets if "latest" in target]
        sent = store.requests(method="GET")
        assert sent and all("AKIAMACHINE" in r["headers"]["authorization"] for r in sent)
        made.unmount()


def test_refused_credentials_of_a_machine_are_fetched_anew(root, mount):
    """They are fetched once, however many requests need them, like the credentials of a program."""
    with FaultServer(root, "s3") as store, Server(Machine) as machine:
        env = remote_servers.clean_environment(AWS_EC2_METADATA_SERVICE_ENDPOINT=machine.url)
        del env["AWS_EC2_METADATA_DISABLED"]
        made = mount("s3://bucket/z", "--endpoint", store.url, "--region", "us-east-1", "--view", "chunks", env=env)
        before = [target for target in machine.targets if target.endswith("/role")]
        store.rules({"fault": "status", "status": 401, "key": "*/plain/c/*", "count": 1})
        assert remote_samples.attempt(made.path / "plain" / "c" / "0") == remote_samples.chunk("plain", 0), made.log_text()
        assert len([target for target in machine.targets if target.endswith("/role")]) == len(before) + 1
        made.unmount()


def test_a_machine_that_cannot_give_credentials_for_a_moment_is_asked_again(root, mount):
    with FaultServer(root, "s3") as store, Server(Machine) as machine:
        env = remote_servers.clean_environment(AWS_EC2_METADATA_SERVICE_ENDPOINT=machine.url)
        del env["AWS_EC2_METADATA_DISABLED"]
        made = mount("s3://bucket/z", "--endpoint", store.url, "--region", "us-east-1", "--view", "chunks", env=env)
        machine.busy = 3
        store.rules({"fault": "status", "status": 401, "key": "*/plain/c/*", "count": 1})
        assert remote_samples.attempt(made.path / "plain" / "c" / "0") == remote_samples.chunk("plain", 0), made.log_text()
        assert machine.busy == 0
        made.unmount()


def test_credentials_of_a_machine_that_are_too_long_are_not_read(root, mount):
    with FaultServer(root, "s3") as store, Server(Machine) as machine:
        machine.padding = " " * (2 << 20)
        env = remote_servers.clean_environment(AWS_EC2_METADATA_SERVICE_ENDPOINT=machine.url)
        del env["AWS_EC2_METADATA_DISABLED"]
        made = mount("s3://bucket/z", "--endpoint", store.url, "--region", "us-east-1", "--view", "chunks", "-v", env=env)
        assert "anonymous: no credentials found" in made.said + made.log_text()
        made.unmount()
