"""Stores on a web server that counts its requests, and mounts of them."""
import itertools
import os
import shutil
import subprocess
from collections import namedtuple
from contextlib import contextmanager

import numpy as np
import zarr
from support import remote_servers

BINARY = os.environ["ZARR_MOUNT_BINARY"]
MIB = 1 << 20
Sent = namedtuple("Sent", "requests mebibytes")
Layout = namedtuple("Layout", "chunks shards")

# Chunks of 4 MiB, as for reading from a bucket.
LARGE = Layout((4, 512, 512), None)


class Served:
    """A directory of stores that nginx serves, as a context manager. `more` is added to the configuration of nginx, with `{root}` for the directory."""

    def __init__(self, root, work, more=""):
        self.root, self.work, self.more = root, work, more.replace("{root}", str(root))
        self.numbers = itertools.count()
        root.mkdir(exist_ok=True)

    def __enter__(self):
        log = self.work / "nginx-access.log"
        log.unlink(missing_ok=True)
        self._running = remote_servers.nginx(self.root, self.work, more=self.more)
        self._server, self._log, self._position = self._running.__enter__(), log, 0
        return self

    def __exit__(self, *error):
        return self._running.__exit__(*error)

    def url(self, store):
        return self._server.url(store.name)

    def sent(self):
        """The requests that the server has answered since the last call."""
        text = self._log.read_bytes()[self._position:]
        self._position += len(text)
        lines = text.decode().splitlines()
        return Sent(len(lines), sum(int(line.split()[9]) for line in lines) / MIB)

    def store(self, gib, layout=LARGE):
        """A store of this decoded size with one array `t` of float32 (zstd), made when it is first asked for."""
        label = "x".join(map(str, layout.chunks)) + ("-shards" if layout.shards else "")
        path = self.root / f"{gib:g}-{label}.zarr"
        if not path.exists():
            part = path.with_suffix(".part")
            shutil.rmtree(part, ignore_errors=True)
            fill(part, int(gib * 256), layout)
            part.rename(path)
        return path

    @contextmanager
    def mounted(self, store, *options):
        """A new mount of a URL or of a directory, without anything that earlier mounts have read."""
        point = self.work / f"m{next(self.numbers)}"
        point.mkdir()
        subprocess.run([BINARY, "--view", "arrays", "--files", "npy", *map(str, options), store, point], check=True)
        try:
            yield point
        finally:
            subprocess.run([BINARY, "--unmount", point], check=True)
            point.rmdir()


def fill(path, rows, layout):
    """Planes of 1024 x 1024 that change slowly, rounded as instruments do: zstd makes a third of them."""
    group = zarr.create_group(path)
    array = group.create_array("t", shape=(rows, 1024, 1024), chunks=layout.chunks, shards=layout.shards, dtype="f4",
                               dimension_names=["time", "y", "x"])
    base = np.cumsum(np.random.default_rng(1).normal(size=(1024, 1024)).astype("f4"), axis=1)
    for first in range(0, rows, 64):
        steps = np.arange(first, min(first + 64, rows), dtype="f4")[:, None, None]
        array[first:first + len(steps)] = np.round(base + 0.1 * steps, 1)
    zarr.consolidate_metadata(path)


def cpu_seconds(pid):
    """User and system time of a process so far."""
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
