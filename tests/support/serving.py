"""The command as a server (`--serve`), and clients of it."""
import http.client
import re
import signal
import socket
import subprocess
from contextlib import contextmanager
from urllib.parse import urlsplit

from support.mounting import BINARY, PATIENCE

TOKEN = "0123456789abcdef0123456789abcdef"


class Server:
    """A server that answers at `url`, and its process."""

    def __init__(self, process, url, link):
        self.process, self.url, self.link = process, url, link
        self.port = urlsplit(url).port

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)

    def ask(self, path, method="GET", token=TOKEN, body=None, **headers):
        """The response, whose body was read: `status`, `headers` and `bytes`. Underscores in names of headers are dashes."""
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if token:
            headers.setdefault("Authorization", f"Bearer {token}")
        connection = self.connect()
        try:
            connection.putrequest(method, path, skip_host="Host" in headers, skip_accept_encoding=True)
            if body is not None:
                headers["Content-Length"] = str(len(body))
            for name, value in headers.items():
                connection.putheader(name, value)
            connection.endheaders(body)
            response = connection.getresponse()
            response.bytes = response.read()
            return response
        finally:
            connection.close()

    def send(self, request):
        """All bytes that the server sends for `request`, until it closes the connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as client:
            client.sendall(request)
            answer = b""
            try:
                while part := client.recv(1 << 16):
                    answer += part
            except ConnectionResetError:
                pass
            return answer


@contextmanager
def serving(store, *options, address="0", path=(), token=TOKEN, tmp_path=None):
    """Serves `store`, with `token` if `tmp_path` is given, a folder for the file of the token."""
    if tmp_path:
        file = tmp_path / "token-of-the-server"
        file.touch(mode=0o600)
        file.write_text(token)
        options = (*options, "--token-file", file)
    command = [BINARY, "--serve", address, *map(str, options), str(store), *path]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        found = re.search(r" at (https?://\S+/) until Ctrl-C; .*: (https?://\S+)$", line)
        assert found, line + process.stderr.read()
        yield Server(process, *found.groups())
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(PATIENCE)
        finally:
            process.kill()
            process.communicate()
