"""Readers, daemons and mounts that end while requests are on their way: no reader waits for ever. ZARR_MOUNT_KILLS is the number of
mounts, and ZARR_MOUNT_KILLED_READERS that of readers that are killed in each case."""
import json
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import zarr

from support import mounting, rings
from support.mounting import WORKERS, ok, run, until

ROUNDS = int(os.environ.get("ZARR_MOUNT_KILLS", "5"))
READERS = int(os.environ.get("ZARR_MOUNT_KILLED_READERS", "200"))

CHUNK = 64 << 10


@pytest.fixture(params=["device", "ring"])
def how(request):
    """The transport."""
    if request.param == "device":
        yield request.param
    else:
        with rings.switched("Y"):
            yield request.param


@pytest.fixture
def store(tmp_path):
    """64 chunks, which take turns in the cache of the mounts below."""
    root = zarr.open_group(tmp_path / "s.zarr", mode="w")
    values = np.random.default_rng(3).integers(100, size=64 * CHUNK, dtype="u1")
    root.create_array("a", data=values, chunks=(CHUNK,))
    return tmp_path / "s.zarr"


def readers(*args):
    return [sys.executable, WORKERS / "dying_readers.py", *map(str, args)]


def test_killed_readers_end(how, mount, store, figure):
    made = mount(store, "--view", "chunks", "--cache-size", "32MiB", "--transport", how)
    told = json.loads(ok(*readers("kill", made.path / "a/c", READERS, 5, made.pid), timeout=None))
    figure(f"{how}: {told['ended']} readers were killed, {told['waited']} of them while they waited for a reply")
    assert told["ended"] >= READERS and told["waited"] > 0 and not told["stuck"] and told["errors"] == []
    # The killed readers leave nothing behind: the mount answers, and is not busy.
    assert len(os.listdir(made.path / "a/c")) == 64
    made.unmount()


ENDS = {
    "killed": lambda made: os.kill(made.pid, signal.SIGKILL),
    "stopped and killed": lambda made: (os.kill(made.pid, signal.SIGSTOP), os.kill(made.pid, signal.SIGKILL)),
    "terminated": lambda made: os.kill(made.pid, signal.SIGTERM),
    "detached": lambda made: ok("umount", "--lazy", made.path),
    # umount(8) says that the mount is busy. Requests that wait are ended nevertheless.
    "forced": lambda made: run("umount", "--force", made.path),
}

# The errors of a dead mount, of a request without an answer, and of an empty mountpoint.
ERRORS = {"ENOTCONN", "ECONNABORTED", "ECANCELED", "EIO", "ENOENT"}


@pytest.mark.root
def test_readers_end_with_the_mount(how, mount, store, figure):
    chosen, ended = random.Random(9), 0
    for number in range(ROUNDS):
        what = list(ENDS)[number % len(ENDS)]
        made = mount(store, "--view", "chunks", "--cache-size", "32MiB", "--transport", how)
        with subprocess.Popen(readers("await", made.path / "a/c"), stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout.readline() == "reading\n"
            time.sleep(chosen.random() / 10)
            ENDS[what](made)
            told = json.loads(process.stdout.read())
        assert told["ended"] == 24 and not told["stuck"] and told["errors"] and ERRORS.issuperset(told["errors"]), f"{what}: {told}"
        ended += told["ended"]
        until(lambda: not made.alive(), "the end of the daemon")
        mounting.force_away(made.path)
    figure(f"{how}: {ended} readers ended with {ROUNDS} mounts")
