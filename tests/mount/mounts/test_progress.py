"""The progress of commands that take long: a bar on a terminal, and nothing with `--quiet`. A debug build makes stores slow."""
import os
import pty
import subprocess

import numpy as np
import pytest
import zarr

from support import mounting

DEBUG_BINARY = mounting.CHECKOUT / "target" / "debug" / "zarr-mount"


@pytest.fixture(scope="module", autouse=True)
def debug_binary():
    if not os.access(DEBUG_BINARY, os.X_OK):
        mounting.ok("cargo", "build", cwd=mounting.CHECKOUT, timeout=1800)


def on_a_terminal(*words):
    """The exit status, and what the command writes to a terminal as standard error."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([DEBUG_BINARY, *map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        shown += part
    os.close(ours)
    return process.wait(timeout=mounting.PATIENCE), shown.decode(errors="replace")


@pytest.fixture
def store(tmp_path):
    values = np.arange(32 * 16, dtype="<i4").reshape(32, 16)
    zarr.create_array(tmp_path / "s.zarr", shape=values.shape, chunks=(16, 16), dtype="<i4")[...] = values
    return tmp_path / "s.zarr"


@pytest.mark.parametrize("task, words", [
    ("--verify", "of 2 parts of arrays"),
    ("--export", "files"),
    ("--info", "stored objects"),
])
def test_progress_on_a_terminal(store, tmp_path, task, words):
    def options(name):
        return {"--export": [tmp_path / name], "--info": ["--sizes"]}.get(task, [])

    # A request takes longer than the time between two updates.
    threads = [] if task == "--info" else ["--threads", "1"]
    slow = ["--inject", "slow=400ms", *threads, store]
    status, shown = on_a_terminal(task, *options("out"), *slow)
    assert status == 0 and words in shown, shown
    assert ("░" in shown) == (task != "--info"), "a bar, if the number of things is known"
    assert on_a_terminal(task, *options("more"), "--quiet", *slow) == (0, "")


def test_progress_in_a_pipe(store):
    """A line every ten seconds, without the control characters that a log cannot show."""
    told = mounting.run(DEBUG_BINARY, "--info", "--sizes", "--inject", "slow=3s", store)
    lines = told.stderr.splitlines()
    assert told.returncode == 0 and lines, told
    assert all("stored objects" in line and line.isprintable() for line in lines), lines
