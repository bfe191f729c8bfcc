"""The process of moto: `python moto_worker.py PORT ROOT ACL`. Each directory in ROOT is a bucket.

Objects are put into moto's memory directly, because uploads by requests take minutes.
"""
import os
import sys
from pathlib import Path

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.s3.models import get_canned_acl, s3_backends
from werkzeug.serving import WSGIRequestHandler, make_server

ACCOUNT = "123456789012"  # moto's own


class Handler(WSGIRequestHandler):
    """Connections carry more than one request, and nothing is logged."""

    protocol_version = "HTTP/1.1"

    def log(self, *_):
        pass


def fill(root, acl):
    backend = s3_backends[ACCOUNT]["aws"]
    for bucket in sorted(path for path in Path(root).iterdir() if path.is_dir()):
        backend.create_bucket(bucket.name, "us-east-1")
        for path, _, names in os.walk(bucket):
            for name in names:
                file = Path(path, name)
                key = file.relative_to(bucket).as_posix()
                backend.put_object(bucket.name, key, file.read_bytes()).set_acl(get_canned_acl(acl))


if __name__ == "__main__":
    port, root, acl = sys.argv[1:]
    fill(root, acl)
    make_server("127.0.0.1", int(port), DomainDispatcherApplication(create_backend_app), True,
                request_handler=Handler).serve_forever()
