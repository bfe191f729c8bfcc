"""Mounts a store on every machine of a Dask cluster, and reads its files as Dask arrays.

    from distributed import Client
    from zarr_mount.dask import MountPlugin, from_npy

    with Client("tcp://scheduler:8786") as client:
        store = MountPlugin("s3://bucket/data.zarr", "/tmp/data", files=["npy"], immutable=True)
        client.register_plugin(store)
        print(from_npy(client, "/tmp/data/temperature.npy", chunks="128 MiB").mean().compute())

This needs the packages `dask[array]` and `distributed`, and `zarr-mount` on every machine of a worker.
"""
from __future__ import annotations

import fcntl
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, Worker, WorkerPlugin

from . import AnyPath, Mount, MountError, _run

__all__ = ["MountPlugin", "from_npy"]


class MountPlugin(WorkerPlugin):
    """Mounts `store` at `mountpoint` on each machine that has a worker, before the worker gets its first task.

    The workers of one user on one machine share the mount and its cache: the first one mounts, and the last one that is closed unmounts.
    They find out by locks in the directory of temporary files. The mount stays if the last one was killed. `mountpoint` is an
    absolute path on a file system of the machine. Other arguments are those of `zarr_mount.mount`.

    Raises MountError, which Dask passes on, where mounting fails, or something else is mounted at `mountpoint`.
    """

    def __init__(self, store: AnyPath, mountpoint: AnyPath, *, args: Sequence[str] = (), **options: object) -> None:
        self.store, self.mountpoint = os.fspath(store), os.fspath(mountpoint)
        if not os.path.isabs(self.mountpoint):
            raise ValueError(f"the mountpoint has to be an absolute path, which is the same on each machine: {self.mountpoint}")
        self.name = f"zarr-mount-{self.mountpoint}"
        self._args, self._options = list(args), options
        self._use: int | None = None

    def setup(self, worker: Worker) -> None:
        with self._alone() as lock:
            mounted = self._mounted()
            if mounted is None:
                Mount(self.store, self.mountpoint, args=self._args, **self._options).leave()
                self._note(lock, self._mounted())
            elif mounted not in {self.store, os.path.realpath(self.store), self._noted(lock)}:
                raise MountError(f"{mounted} is mounted at {os.path.realpath(self.mountpoint)}, and not {self.store}")
            self._use = self._open_lock("users")
            fcntl.flock(self._use, fcntl.LOCK_SH)

    def teardown(self, worker: Worker) -> None:
        if self._use is None:
            return
        use, self._use = self._use, None
        try:
            with self._alone() as lock:
                # It succeeds if no other worker of this machine uses the mount.
                fcntl.flock(use, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _run(["--unmount", self.mountpoint])
                os.ftruncate(lock, 0)
        except BlockingIOError:
            pass
        finally:
            os.close(use)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_use": None}

    @contextmanager
    def _alone(self) -> Iterator[int]:
        """No other worker of this machine mounts or unmounts here meanwhile. The file is that of `_note`."""
        lock = self._open_lock("mounting")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield lock
        finally:
            os.close(lock)

    def _open_lock(self, what: str) -> int:
        """A file to lock. The kernel releases the locks of a worker that was killed."""
        name = hashlib.sha256(os.fsencode(os.path.realpath(self.mountpoint))).hexdigest()[:32]
        path = Path(tempfile.gettempdir(), f"zarr-mount-{os.getuid()}-{name}.{what}")
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)

    def _mounted(self) -> str | None:
        """The name of the store that is mounted. A mount whose daemon was killed does not count: the next one replaces it."""
        point = os.path.realpath(self.mountpoint)
        for mount in json.loads(_run(["--list", "--json"]).stdout):
            if mount["mountpoint"] == point and mount["state"] != "dead":
                return str(mount["store"])
        return None

    def _note(self, lock: int, mounted: str | None) -> None:
        """Notes for other workers under which name the store is mounted: the program may spell it otherwise than this plugin."""
        note = json.dumps({"store": self.store, "mounted": mounted}).encode()
        os.ftruncate(lock, 0)
        os.pwrite(lock, note, 0)

    def _noted(self, lock: int) -> str | None:
        """The name under which a plugin of this store has mounted it."""
        try:
            note = json.loads(os.pread(lock, 1 << 20, 0))
            return str(note["mounted"]) if note["store"] == self.store else None
        except (ValueError, KeyError, TypeError):
            return None


def from_npy(client: Client, path: AnyPath, chunks: Any = "auto") -> da.Array:
    """The array in the `.npy` file at `path`, which the workers see: each block is read by the worker that needs it.

    `chunks` is that of `dask.array.from_array`. In a mount, each block is read as a separate file, which has only that part of the
    array. So blocks may have any shape. Blocks that begin and end where chunks do are read fastest.
    """
    path = os.fspath(path)
    shape, dtype = client.submit(_header, path, pure=False).result()
    chunks = da.core.normalize_chunks(chunks, shape, dtype=dtype)
    blocks: da.Array = da.map_blocks(_block, path, dtype=dtype, chunks=chunks, meta=np.empty((0,) * len(shape), dtype))
    return blocks


def _header(path: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    array = np.load(path, mmap_mode="r")
    return array.shape, array.dtype


def _block(path: str, block_info: Any = None) -> np.ndarray[Any, Any]:
    bounds = block_info[None]["array-location"]
    name, extension = os.path.splitext(path)
    part = ",".join(f"{first}:{end}" for first, end in bounds)
    try:
        # A reader of the whole file would make the mount read ahead beyond the end of the block.
        block: np.ndarray[Any, Any] = np.load(f"{name}@{part}{extension}")
    except FileNotFoundError:
        # It is no file of a mount, or is a part itself.
        block = np.array(np.load(path, mmap_mode="r")[tuple(slice(*each) for each in bounds)])
    return block
