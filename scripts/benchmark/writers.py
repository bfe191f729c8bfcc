"""Writers of an array, each time a new one: the mount, libraries in process, and the floors of encoding and of FUSE."""
import contextlib
import shutil
import signal
import tempfile
import time
from pathlib import Path

import numpy as np
import tensorstore
import zarr

import datasets
from workbench import MIB, program

MEMORY = Path("/dev/shm")
TENSORSTORE_THREADS = 2  # as many as the streams of the writer that it is compared with


class Source:
    """Decoded chunks: one after the other in a file, for programs, and in this process, for libraries."""

    def __init__(self, data, dataset, folder):
        values, self.chunks = data.values(dataset.source), dataset.chunks
        # Chunks at the edge would have filler, which costs next to nothing: there are none.
        self.shape = tuple(n // c * c for n, c in zip(values.shape, self.chunks))
        self.blocks = cut(values[tuple(map(slice, self.shape))], self.chunks)
        self.dtype, self.chunk_bytes, self.count = values.dtype, self.blocks[0].nbytes, len(self.blocks)
        self.path = folder / f"{dataset.source}.chunks"
        self.blocks.tofile(self.path)


class Writers:
    """Ways to write the first chunks of a source as one data set. Each call has a new array, made before its clock starts."""

    def __init__(self, bench, dataset, source, folder, shape=None):
        self.bench, self.dataset, self.source, self.folder = bench, dataset, source, folder
        self.shape = shape or source.shape
        self.indices = list(np.ndindex(*(n // c for n, c in zip(self.shape, dataset.chunks))))
        self.bytes = len(self.indices) * source.chunk_bytes
        self.checked = set()
        self.stored_bytes = None  # of a chunk, on average, once the mount has written some

    def mount(self, streams, call_bytes=MIB, syncs=False, build=None):
        """Through a mount of `build`, by programs that write(2) `call_bytes` at a time; `syncs` all of it at the end."""
        with (self._new_store(("mount", streams, call_bytes, build)) as store,
              self.bench.mount(store, "--rw", "--view", "chunks", build=build) as mounted):
            names = [self.bench.data.chunk_name(self.dataset, i) for i in self.indices]
            told = self._write([mounted.path / name for name in names], streams, call_bytes, [mounted.path / ".zarr-mount" / "sync"] if syncs else [])
            if not self.dataset.shards:
                self.stored_bytes = sum((store / name).stat().st_size for name in names) // len(names)
            return told

    def fuse_floor(self, streams, call_bytes=MIB):
        """The same calls, and nothing behind FUSE."""
        with self.bench.floor(f"files:{len(self.indices)}:{self.source.chunk_bytes}", write=True) as point:
            return self._write([point / "files" / str(n) for n in range(len(self.indices))], streams, call_bytes, [])

    def store_floor(self, streams):
        """Writes plain files beside the store, with as many bytes as the stored chunks have."""
        folder, n, each = self.folder / "plain", len(self.indices), min(self.stored_bytes, self.source.chunk_bytes)
        folder.mkdir()
        try:
            self.source.blocks.reshape(-1).view("u1")[:n * each].tofile(folder / "source")
            return program("writer", folder / "source", each, streams, MIB, lines=[folder / str(number) for number in range(n)])
        finally:
            remove(folder)

    def encode_floor(self, threads):
        return program("encode_floor", self.source.path, self.source.chunk_bytes, self.dataset.codec, self.source.dtype.itemsize, threads)

    def tensorstore(self):
        """A write for each chunk, all of them in flight."""
        with self._new_store("tensorstore") as store:
            array = self._open_tensorstore(store)
            return timed(lambda: [done.result() for done in [array[box].write(block) for box, block in self._boxes()]])

    def tensorstore_by_chunk(self):
        """A write for each chunk, one after the other."""
        with self._new_store("tensorstore by chunk") as store:
            array = self._open_tensorstore(store)
            return timed(lambda: [array[box].write(block).result() for box, block in self._boxes()])

    def tensorstore_at_once(self):
        """All writes in one transaction."""
        with self._new_store("tensorstore at once") as store:
            array = self._open_tensorstore(store)

            def write():
                with tensorstore.Transaction() as transaction:
                    target = array.with_transaction(transaction)
                    for box, block in self._boxes():
                        target[box] = block
            return timed(write)

    def zarr_python(self):
        """An assignment for each chunk."""
        with self._new_store("zarr-python") as store:
            array = zarr.open_array(str(store), mode="r+")

            def write():
                for box, block in self._boxes():
                    array[box] = block
            return timed(write)

    def _write(self, paths, streams, call_bytes, sync):
        told = program("writer", self.source.path, self.source.chunk_bytes, streams, call_bytes, *sync, lines=paths)
        assert told["bytes"] == self.bytes, told
        return told

    def _boxes(self):
        for indices, block in zip(self.indices, self.source.blocks):
            yield tuple(slice(i * c, (i + 1) * c) for i, c in zip(indices, self.dataset.chunks)), block

    def _open_tensorstore(self, store):
        driver = "zarr" if self.dataset.zarr_format == 2 else "zarr3"
        spec = {"driver": driver, "kvstore": {"driver": "file", "path": f"{store}/"},
                "context": {"data_copy_concurrency": {"limit": TENSORSTORE_THREADS}}}
        return tensorstore.open(spec, open=True, read=True, write=True).result()

    @contextlib.contextmanager
    def _new_store(self, way):
        """An array without chunks. After the first round of each way, zarr-python reads it back, outside of the measured time."""
        store = self.folder / f"{self.dataset.name}.zarr"
        try:
            datasets.create(store, self.dataset, self.shape, self.source.dtype)
            yield store
            if way not in self.checked:
                self._check(store, way)
                self.checked.add(way)
        finally:
            remove(store)

    def _check(self, store, way):
        found = cut(zarr.open_array(str(store), mode="r")[...], self.dataset.chunks)
        assert np.array_equal(found, self.source.blocks[:len(self.indices)]), f"{self.dataset.label}: {way} wrote wrong values"


def cut(values, chunks):
    """The chunks of an array that has no other than whole ones, in C order."""
    rank = len(chunks)
    split = values.reshape([n for length, c in zip(values.shape, chunks) for n in (length // c, c)])
    inner_last = split.transpose(*range(0, 2 * rank, 2), *range(1, 2 * rank, 2))
    return np.ascontiguousarray(inner_last).reshape(-1, *chunks)


def timed(write):
    start = time.perf_counter()
    write()
    return {"seconds": time.perf_counter() - start}


@contextlib.contextmanager
def folder_in_memory(bench, n_bytes):
    """A folder in memory, so that no disk is measured. Where there is no room for `n_bytes` it is in the folder of the run."""
    has_room = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > n_bytes
    folder = Path(tempfile.mkdtemp(prefix="zarr-mount-bench-", dir=MEMORY if has_room else bench.folder))
    if not has_room:
        bench.say(f"writing: no room for {n_bytes / MIB:.0f} MiB in {MEMORY}: the disk is measured, too")
    try:
        yield folder
    finally:
        remove(folder)


def remove(folder):
    """Removes a folder, without being interrupted by a signal. Waits for a daemon that has lost its mount and still saves."""
    stops = {signal.SIGINT, signal.SIGTERM}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, stops)
    try:
        for _ in range(50):
            shutil.rmtree(folder, ignore_errors=True)
            if not folder.exists():
                break
            time.sleep(0.1)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
