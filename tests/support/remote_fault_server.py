"""A server of a directory that answers by rules: right, late, cut, changed, denied. It records every request.

    with FaultServer(root) as server:
        server.rules({"fault": "status", "status": 503, "key": "*/c/0", "count": 2})
        ...
        assert [r["method"] for r in server.requests()] == ["GET"]

The server is a process of its own: a reader of the mount may hold the interpreter's lock while the kernel waits for the mount, and the
mount for this server.
"""
import json
import subprocess
import sys
import threading
from pathlib import Path

from support import mounting


class FaultServer:
    """`kind` is `http`, `s3`, or `az` for Azure; `tls` a certificate and its key."""

    def __init__(self, root, kind="http", tls=()):
        self.root, self.kind, self.lock = Path(root), kind, threading.Lock()
        self.process = subprocess.Popen([sys.executable, mounting.WORKERS / "fault_worker.py", str(root), kind, *map(str, tls)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        assert line, "the server of faults did not start"
        self.port = int(line)
        self.scheme = "https" if tls else "http"
        self.url = f"{self.scheme}://127.0.0.1:{self.port}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(2)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    def _do(self, what, **asked):
        with self.lock:
            self.process.stdin.write(json.dumps({"do": what, **asked}) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        assert line, "the server of faults has ended"
        return json.loads(line)

    def rules(self, *rules, seed=0):
        """Uses these rules in place of all earlier ones; see fault_rules."""
        self._do("rules", rules=rules, seed=seed)

    def hits(self):
        """How many requests each rule has hit."""
        return self._do("hits")

    def snapshot(self):
        """Remembers the current contents of all files, for the fault `stale`."""
        self._do("snapshot")

    def requests(self, clear=False, method=None, key=None):
        """The requests so far, in their order: dictionaries with method (GET, HEAD, LIST ...), key, range, headers, query,
        status, bytes (of the body), faults, and the times at which it came (`begun`) and was answered (`ended`)."""
        found = self._do("records", clear=clear)
        return [r for r in found if method in (None, r["method"]) and (key is None or key in r["key"])]

    def clear(self):
        self.requests(clear=True)

    def load(self):
        """Requests in flight: now, and at most since the records were cleared; and connections since then."""
        return self._do("load")

    def counts(self):
        """How many requests there were of each method."""
        counts = {}
        for request in self.requests():
            counts[request["method"]] = counts.get(request["method"], 0) + 1
        return counts
