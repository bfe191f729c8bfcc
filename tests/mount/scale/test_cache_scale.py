"""A mount whose disk cache has a million entries begins as fast as one whose cache is empty, because it lists no directory of the cache."""
import ctypes
import os
import random
import statistics
import struct
import time

import pytest

from support import remote_samples
from support.remote_fault_server import FaultServer
from support.remote_samples import mounted

ENTRIES, DIRECTORIES = 1_000_000, 256
ROUNDS = 9
IN_ACCESS, IN_NONBLOCK = 0x1, 0o4000


class Listings:
    """Counts the listings of some directories."""

    def __init__(self, folders):
        libc = ctypes.CDLL(None, use_errno=True)
        self.events = libc.inotify_init1(IN_NONBLOCK)
        for folder in folders:
            assert libc.inotify_add_watch(self.events, os.fsencode(folder), IN_ACCESS) >= 0, os.strerror(ctypes.get_errno())

    def count(self):
        n = 0
        while True:
            try:
                data = os.read(self.events, 1 << 16)
            except BlockingIOError:
                return n
            while data:
                _, _, _, length = struct.unpack_from("iIII", data)
                # An event of a directory itself has no name.
                n += length == 0
                data = data[16 + length:]

    def close(self):
        os.close(self.events)


def fill(inner):
    rng = random.Random(6)
    for number in range(DIRECTORIES):
        folder = inner / f"{number:02x}"
        folder.mkdir(mode=0o700, exist_ok=True)
        at = os.open(folder, os.O_RDONLY)
        for _ in range(ENTRIES // DIRECTORIES + 1):
            os.close(os.open(f"{rng.getrandbits(248):062x}", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=at))
        os.close(at)


@pytest.mark.long
@pytest.mark.alone
def test_a_mount_lists_no_directory_of_a_cache_of_a_million_entries(mount, tmp_path, figure):
    root, caches = tmp_path / "root", [tmp_path / "few", tmp_path / "many"]
    remote_samples.write(root, "z", consolidate=True)
    remote_samples.age(root)
    with FaultServer(root, "s3") as server:
        def made(cache):
            begun = time.monotonic()
            made = mounted(mount, server, "--disk-cache", cache, "--immutable")
            assert sorted(os.listdir(made.path)) == ["big", "first", "hole", "plain", "small", "zarr.json"]
            return made, time.monotonic() - begun

        for cache in caches:
            made(cache)[0].unmount()
        fill(caches[1] / "zarr-mount-1")
        listings = Listings([caches[1] / "zarr-mount-1", *(caches[1] / "zarr-mount-1").glob("??")])
        times = {cache: [] for cache in caches}
        for _ in range(ROUNDS):
            for cache in caches:
                one, took = made(cache)
                times[cache].append(took)
                assert listings.count() == 0
                one.unmount()
                # `--unmount` reads the counters, for which the daemon estimates the size of the cache from a few directories.
                listings.count()
        assert os.listdir(caches[1] / "zarr-mount-1")
        assert listings.count() > 0, "a listing is noticed"
        listings.close()
    few, many = (statistics.median(times[cache]) for cache in caches)
    figure(f"mount and ls with an empty disk cache and with one of 10^6 entries: {few * 1000:.0f} ms, {many * 1000:.0f} ms")
