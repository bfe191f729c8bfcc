"""Servers of objects and files by other authors, each on a free port of 127.0.0.1: `with nginx(root, tmp) as server`.

`root` is a directory. A web server serves it at `/`. For the other servers, each directory in it is a bucket, and is uploaded.
"""
import base64
import hashlib
import hmac
import http.client
import os
import random
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path
from urllib.parse import quote, urlsplit

from support import mounting

REMOTE_PYTHON = mounting.CHECKOUT / ".venv-remote" / "bin" / "python"
AZURITE = mounting.CHECKOUT / ".npm-remote" / "node_modules" / ".bin" / "azurite-blob"
# Azurite's account, whose key is public.
ACCOUNT = "devstoreaccount1"
ACCOUNT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
PATIENCE = 60
# Variables that the machine may have set. A test sets its own credentials.
CREDENTIALS = ("AWS_", "AZURE_", "GOOGLE_", "GCP_", "GCS_")
PROXIES = {"http_proxy", "https_proxy", "all_proxy", "no_proxy"}


@dataclass
class Server:
    """A running server: `url(bucket, path)` is STORE, and the mount needs `args` and `env` to reach it."""

    endpoint: str
    scheme: str
    args: list = field(default_factory=list)
    env: dict = field(default_factory=dict)

    def url(self, path):
        return f"{self.endpoint}/{path}" if self.scheme in ("http", "https") else f"{self.scheme}://{path}"


def clean_environment(**more):
    """This process's environment without credentials and proxies."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(CREDENTIALS) and name.lower() not in PROXIES}
    # No file of the user is read, and no metadata server is asked for credentials.
    return {**kept, "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_EC2_METADATA_DISABLED": "true",
            **more}


def free_port():
    """A port on which no program listens. It is below those that Linux gives to connections, of which other tests make many at the same
    time."""
    while True:
        port = random.randrange(10_000, 32_768)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


def tool(name):
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin:/sbin")
    assert found, f"{name} is missing: scripts/test installs it"
    return found


@contextmanager
def process(log, port, *command, **kwargs):
    """Runs a server until the block ends. It has started when it accepts connections."""
    with open(log, "wb") as out:
        running = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=out, stderr=out, **kwargs)
    try:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                said = Path(log).read_text(errors="replace")
                assert running.poll() is None, f"{command[0]} ended: {said}"
                assert time.monotonic() < deadline, f"{command[0]} does not answer: {said}"
                time.sleep(0.02)
        yield running
    finally:
        running.terminate()
        try:
            running.wait(5)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()


@contextmanager
def moto(root, tmp, public=True):
    """S3, and Google's XML interface. Objects are public, unless `public` is false."""
    assert REMOTE_PYTHON.exists(), f"{REMOTE_PYTHON} is missing: scripts/test makes it"
    port = free_port()
    worker = mounting.WORKERS / "moto_worker.py"
    with process(tmp / "moto.log", port, REMOTE_PYTHON, worker, port, root, "public-read" if public else "private"):
        endpoint = f"http://127.0.0.1:{port}"
        yield Server(endpoint, "s3", ["--endpoint", endpoint, "--region", "us-east-1"],
                     {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"})


@contextmanager
def moto_as_google(root, tmp):
    with moto(root, tmp) as server:
        yield Server(server.endpoint, "gs", ["--endpoint", server.endpoint, "--anonymous"])


@contextmanager
def hadro(root, tmp):
    """S3 of a directory, read-only; ignores `If-Match`."""
    assert REMOTE_PYTHON.exists(), f"{REMOTE_PYTHON} is missing: scripts/test makes it"
    port = free_port()
    with process(tmp / "hadro.log", port, REMOTE_PYTHON.with_name("hadro"), "--host", "127.0.0.1", "--port", port, "--region",
                 "us-east-1", root):
        endpoint = f"http://127.0.0.1:{port}"
        yield Server(endpoint, "s3", ["--endpoint", endpoint, "--region", "us-east-1", "--anonymous"])


NGINX = """
daemon off; pid {tmp}/nginx.pid; error_log {tmp}/nginx-error.log; worker_processes 1; {user}
events {{ worker_connections 1024; }}
http {{
  access_log {tmp}/nginx-access.log; etag on; keepalive_requests 100000; sendfile on; default_type application/octet-stream;
  client_body_temp_path {tmp}/body; proxy_temp_path {tmp}/proxy; fastcgi_temp_path {tmp}/fastcgi;
  uwsgi_temp_path {tmp}/uwsgi; scgi_temp_path {tmp}/scgi;
  {more}
  server {{ listen 127.0.0.1:{port}{ssl}; root {root}; location / {{ autoindex on; }} }}
}}
"""


@contextmanager
def nginx(root, tmp, certificate=None, more=""):
    """A web server; HTTPS with a certificate of `authority`. `more` is more of its configuration."""
    port = free_port()
    ssl = f" ssl; ssl_certificate {certificate.chain}; ssl_certificate_key {certificate.key}" if certificate else ""
    user = "user root;" if os.geteuid() == 0 else ""  # its workers must get at the files
    config = tmp / "nginx.conf"
    config.write_text(NGINX.format(tmp=tmp, port=port, ssl=ssl, root=root, user=user, more=more))
    with process(tmp / "nginx.log", port, tool("nginx"), "-c", config, "-p", tmp, "-e", tmp / "nginx-error.log"):
        scheme = "https" if certificate else "http"
        yield Server(f"{scheme}://127.0.0.1:{port}", scheme)


@contextmanager
def caddy(root, tmp, browse=True):
    """Caddy answers for directories, by a page or a redirect to it, only with `--browse`."""
    port = free_port()
    home = {"HOME": str(tmp), "XDG_DATA_HOME": str(tmp), "XDG_CONFIG_HOME": str(tmp)}
    with process(tmp / "caddy.log", port, tool("caddy"), "file-server", "--root", root, "--listen", f"127.0.0.1:{port}",
                 *["--browse"] * browse, env={**os.environ, **home}):
        yield Server(f"http://127.0.0.1:{port}", "http")


@contextmanager
def azurite(root, tmp):
    assert AZURITE.exists(), f"{AZURITE} is missing: scripts/test --all installs it"
    port = free_port()
    with process(tmp / "azurite.log", port, AZURITE, "--silent", "--disableTelemetry", "--skipApiVersionCheck",
                 "--inMemoryPersistence", "--blobHost", "127.0.0.1", "--blobPort", port, cwd=tmp):
        endpoint = f"http://127.0.0.1:{port}/{ACCOUNT}"
        for container in sorted(p for p in Path(root).iterdir() if p.is_dir()):
            upload(AzureUpload(port, container.name), container)
        yield Server(endpoint, "az", ["--endpoint", endpoint],
                     {"AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT, "AZURE_STORAGE_ACCOUNT_KEY": ACCOUNT_KEY})


@contextmanager
def fake_gcs(root, tmp):
    found = sorted((REMOTE_PYTHON.parents[1]).glob("lib/python*/site-packages/fake_gcs_server*/vendor/**/fake-gcs-server-linux-*"))
    assert found, "fake-gcs-server is missing: scripts/test makes .venv-remote"
    os.chmod(found[0], 0o755)
    port = free_port()
    with process(tmp / "fake-gcs.log", port, found[0], "-scheme", "http", "-host", "127.0.0.1", "-port", port, "-backend", "memory",
                 "-public-host", f"127.0.0.1:{port}", "-external-url", f"http://127.0.0.1:{port}"):
        endpoint = f"http://127.0.0.1:{port}"
        for bucket in sorted(p for p in Path(root).iterdir() if p.is_dir()):
            upload(GoogleUpload(port, bucket.name), bucket)
        yield Server(endpoint, "gs", ["--endpoint", endpoint, "--anonymous"])


# Uploading

class Upload:
    """Requests that create a bucket and its objects, over one connection."""

    def __init__(self, port, bucket):
        self.connection, self.bucket = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE), bucket

    def send(self, method, path, headers, body=b""):
        self.connection.request(method, path, body, headers)
        answer = self.connection.getresponse()
        said = answer.read()
        assert answer.status in (200, 201), f"{method} {path}: {answer.status}: {said[:500]!r}"


class S3Upload(Upload):
    # Moto requires a caller's identity, but does not check it.
    WHO = {"Authorization": "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"}

    def create(self):
        self.send("PUT", f"/{self.bucket}", self.WHO)

    def put(self, key, data):
        self.send("PUT", f"/{self.bucket}/{quote(key)}", {**self.WHO, "x-amz-acl": "public-read"}, data)


class GoogleUpload(Upload):
    def create(self):
        self.send("POST", "/storage/v1/b?project=test", {"Content-Type": "application/json"}, f'{{"name":"{self.bucket}"}}'.encode())

    def put(self, key, data):
        self.send("POST", f"/upload/storage/v1/b/{self.bucket}/o?uploadType=media&name={quote(key, safe='')}",
                  {"Content-Type": "application/octet-stream"}, data)


class AzureUpload(Upload):
    """Signed with the key of the account ("Shared Key")."""

    def create(self):
        # A client without the key may read the objects of the container, but not list them.
        self.signed(f"/{self.bucket}", {"x-ms-blob-public-access": "blob"}, b"", {"restype": "container"})

    def put(self, key, data):
        self.signed(f"/{self.bucket}/{quote(key)}", {"x-ms-blob-type": "BlockBlob"}, data, {})

    def signed(self, path, more, data, query):
        headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06", **more}
        canonical = "".join(f"{name}:{value}\n" for name, value in sorted(headers.items()))
        # The emulator has the account in the path too.
        resource = f"/{ACCOUNT}/{ACCOUNT}{path}" + "".join(f"\n{name}:{value}" for name, value in sorted(query.items()))
        length = str(len(data)) if data else ""
        text = f"PUT\n\n\n{length}\n\napplication/octet-stream\n\n\n\n\n\n\n{canonical}{resource}"
        signature = base64.b64encode(hmac.new(base64.b64decode(ACCOUNT_KEY), text.encode(), hashlib.sha256).digest()).decode()
        target = f"/{ACCOUNT}{path}" + ("?" + "&".join(f"{n}={v}" for n, v in query.items()) if query else "")
        self.send("PUT", target, {**headers, "Content-Type": "application/octet-stream", "Content-Length": str(len(data)),
                                  "Authorization": f"SharedKey {ACCOUNT}:{signature}"}, data)


def upload(to, folder):
    """Creates the bucket, with all files below `folder`."""
    to.create()
    for path, _, names in os.walk(folder):
        for name in names:
            file = Path(path, name)
            to.put(file.relative_to(folder).as_posix(), file.read_bytes())


def s3_upload(server, bucket, folder):
    upload(S3Upload(urlsplit(server.endpoint).port, bucket), folder)


# An authority of certificates

@dataclass(frozen=True)
class Certificate:
    authority: Path  # whom to trust
    chain: Path
    key: Path


def certificate(tmp, name="127.0.0.1"):
    """A certificate for 127.0.0.1 of an authority that no other program knows."""
    tmp.mkdir(exist_ok=True)
    made = Certificate(tmp / "authority.pem", tmp / "server.pem", tmp / "server.key")
    openssl = tool("openssl")
    mounting.ok(openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                "-subj", "/CN=authority of a test", "-keyout", tmp / "authority.key", "-out", made.authority,
                "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign")
    mounting.ok(openssl, "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", f"/CN={name}",
                "-keyout", made.key, "-out", tmp / "server.csr")
    extensions = tmp / "extensions"
    extensions.write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\nbasicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth\n")
    mounting.ok(openssl, "x509", "-req", "-in", tmp / "server.csr", "-CA", made.authority, "-CAkey", tmp / "authority.key",
                "-CAcreateserial", "-days", "2", "-extfile", extensions, "-out", made.chain)
    return made
