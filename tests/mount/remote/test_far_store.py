"""A store that is slow, or does not answer at all: no other reader waits for it, and its own readers do not wait long.

The store is a directory behind `--inject`, which a debug build has.
"""
import os
import signal
import threading
import time

import numpy as np
import pytest
import zarr

from support import mounting

DEBUG_BINARY = mounting.CHECKOUT / "target" / "debug" / "zarr-mount"
PATIENCE = 60
# More than there are permits for requests to a store that is far away.
CHUNKS = 80
LENGTH = 4096


@pytest.fixture(scope="module", autouse=True)
def debug_binary():
    if not os.access(DEBUG_BINARY, os.X_OK):
        mounting.ok("cargo", "build", cwd=mounting.CHECKOUT, timeout=1800)


@pytest.fixture
def store(tmp_path):
    root = tmp_path / "store"
    group = zarr.create_group(str(root), zarr_format=2)
    for name in ("a", "b"):
        array = group.create_array(name, shape=(CHUNKS * LENGTH,), chunks=(LENGTH,), dtype="<u4")
        array[...] = values()
    return root


def values():
    return np.arange(CHUNKS * LENGTH, dtype="<u4") * 2654435761


def chunk(n):
    return values()[n * LENGTH:(n + 1) * LENGTH].tobytes()


class Readers:
    """Threads that read a file each."""

    def __init__(self, paths):
        self.found = {}
        self.threads = [threading.Thread(target=self.read, args=(path,), daemon=True) for path in paths]
        for thread in self.threads:
            thread.start()

    def read(self, path):
        self.found[path.name] = path.read_bytes()

    def wait(self):
        for thread in self.threads:
            thread.join(PATIENCE)
        assert not any(thread.is_alive() for thread in self.threads)
        return self.found


def within(action):
    """The result of `action`, on a thread of its own: a mount that waits must not block the test."""
    given = []
    thread = threading.Thread(target=lambda: given.append(action()), daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert given, "no answer"
    return given[0]


# A local store, whose event threads may wait, and one that is far away.
@pytest.mark.parametrize("slow", [(), ("--inject=slow=1ms",)], ids=["local", "far"])
def test_reads_that_hang_leave_the_others_alone(mount, store, tmp_path, slow):
    hang = tmp_path / "hang"
    made = mount(store, "--view", "chunks,arrays", "--files", "raw", *slow, f"--inject=hang={hang}", binary=DEBUG_BINARY)
    with open(made.path / "arrays" / "b.raw", "rb", buffering=0) as warm:
        # Without this, the kernel reads ahead, which hangs.
        os.posix_fadvise(warm.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        assert warm.read(4096) == chunk(0)[:4096]
        (made.path / "chunks" / "b" / "1").read_bytes()
        hang.touch()
        try:
            paths = [made.path / "chunks" / "a" / str(n) for n in range(CHUNKS)]
            readers = Readers(paths)
            time.sleep(1)
            assert not readers.found, "nothing hangs"
            # Names, and pages in memory: the page was dropped, but the chunk was not.
            os.posix_fadvise(warm.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            assert within(lambda: os.pread(warm.fileno(), 4096, 8192)) == chunk(0)[8192:12288]
            assert within(lambda: os.stat(made.path / "chunks" / "b" / "7").st_size) == 4 * LENGTH
            assert len(within(lambda: os.listdir(made.path / "chunks" / "b"))) >= CHUNKS
            assert within(lambda: (made.path / ".zarr-mount" / "stats.json").stat().st_size) > 0
            assert not readers.found
        finally:
            hang.unlink()
        assert readers.wait() == {str(n): chunk(n) for n in range(CHUNKS)}


def test_a_mount_ends_while_its_store_hangs(mount, store, tmp_path):
    hang = tmp_path / "hang"
    made = mount(store, "--view", "chunks", "--inject=slow=1ms", f"--inject=hang={hang}", binary=DEBUG_BINARY)
    os.stat(made.path / "a" / "0")
    hang.touch()
    try:
        reader = threading.Thread(target=lambda: pytest.raises(OSError, (made.path / "a" / "0").read_bytes), daemon=True)
        reader.start()
        time.sleep(0.5)
        os.kill(made.pid, signal.SIGTERM)
        made.wait_for_the_end()
        reader.join(PATIENCE)
        assert not reader.is_alive()
    finally:
        hang.unlink()


def test_a_whole_array_is_read_with_many_requests_at_once(mount, store):
    made = mount(store, "--view", "arrays", "--files", "raw", "--immutable", "--inject=slow=50ms", binary=DEBUG_BINARY)
    begun = time.monotonic()
    assert (made.path / "a.raw").read_bytes() == values().tobytes()
    # One after the other, the chunks alone would take 4 s.
    print(f"{CHUNKS} chunks in {time.monotonic() - begun:.2f} s")
    stats = made.stats()
    assert stats["chunks"]["decodes"] == CHUNKS
