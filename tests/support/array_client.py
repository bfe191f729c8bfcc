"""Questions to the readers of plain formats, which run in environments of their own."""
import json
import select
import subprocess

from support import mounting
from support.readers import Refused


class Readers:
    """One process for all questions, because starting the libraries costs more than most reads."""

    def __init__(self, environment="arrays", worker="array_worker.py"):
        python = mounting.CHECKOUT / f".venv-{environment}" / "bin" / "python"
        self.process = subprocess.Popen([python, "-W", "ignore", mounting.WORKERS / worker], text=True, bufsize=1,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def ask(self, reader, path, **arguments):
        """The worker's answer about a file; raises `Refused`."""
        self.process.stdin.write(json.dumps({"reader": reader, "path": str(path), **arguments}) + "\n")
        ready, _, _ = select.select([self.process.stdout], [], [], 5 * mounting.PATIENCE)
        assert ready, f"{reader} gives no answer: {path}"
        line = self.process.stdout.readline()
        assert line, f"{reader} ended its process: {path}"
        found = json.loads(line)
        if "error" in found:
            raise Refused(found["error"])
        return found
