"""`--threads`: how many chunks are decoded at once, and the default."""
import contextlib
import os
import re
import threading
from pathlib import Path

import numpy as np
import pytest
import zarr

from support.mounting import BINARY, run

CGROUP = Path("/sys/fs/cgroup")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    store = tmp_path_factory.mktemp("threads") / "a.zarr"
    array = zarr.create_array(str(store), shape=(64, 4096), chunks=(1, 4096), dtype="i4")
    array[...] = values()
    return store


def values():
    return np.arange(64 * 4096, dtype="i4").reshape(64, 4096)


def decode_threads(made):
    return int(re.search(r"threads that decode: (\d+)", made.log_text())[1])


@pytest.mark.parametrize("number", [1, 64])
def test_any_number_of_them_reads_for_many_at_once(store, mount, number):
    made = mount(store, "--view", "arrays,chunks", "--threads", number, "-v")
    assert decode_threads(made) == number
    expected, wrong = values(), []

    def reads(first):
        for row in range(first, 64, 8):
            chunk = np.fromfile(made.path / "chunks" / "c" / str(row) / "0", "i4")
            whole = np.load(made.path / "arrays" / "a.npy", mmap_mode="r")
            if not np.array_equal(chunk, expected[row]) or not np.array_equal(whole[row], expected[row]):
                wrong.append(row)

    readers = [threading.Thread(target=reads, args=(n,)) for n in range(8)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    assert not wrong and made.alive()


@pytest.mark.parametrize("number", ["0", "-1", "1025", "many", "1.5"])
def test_other_numbers_are_refused_in_one_line(store, tmp_path, number):
    done = run(BINARY, store, tmp_path / "m", f"--threads={number}")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "1 to 1024" in line and not (tmp_path / "m").exists()


def test_the_default_is_the_cores_of_the_affinity(store, mount):
    cores = len(os.sched_getaffinity(0))
    if quota_of_ours():
        pytest.skip("a CPU quota decides here")
    assert decode_threads(mount(store, "-v")) == cores
    first = min(os.sched_getaffinity(0))
    assert decode_threads(mount(store, "-v", prefix=["taskset", "-c", str(first)])) == 1


@pytest.mark.root
def test_the_default_is_no_more_than_the_quota_of_the_control_group(store, mount):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one core: a quota changes nothing")
    with control_group(quota=150_000, period=100_000) as group:
        join = ["sh", "-c", 'echo $$ > "$0"/cgroup.procs && exec "$@"', str(group)]
        made = mount(store, "-v", prefix=join)
        assert decode_threads(made) == 1
        made.unmount()


def quota_of_ours():
    """Whether this process is in a control group that may be limited."""
    return any(line.split(":", 2)[2].strip() != "/" for line in Path("/proc/self/cgroup").read_text().splitlines()
               if line.split(":")[1] in ("", "cpu", "cpu,cpuacct"))


@contextlib.contextmanager
def control_group(quota, period):
    """A control group of version 2 or 1 with this CPU quota in microseconds, empty at the end."""
    name = f"zarr-mount-test-{os.getpid()}"
    is_v2 = (CGROUP / "cgroup.controllers").exists()
    group = CGROUP / name if is_v2 else CGROUP / "cpu" / name
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made: {error}")
    try:
        try:
            if is_v2:
                (group / "cpu.max").write_text(f"{quota} {period}")
            else:
                (group / "cpu.cfs_period_us").write_text(str(period))
                (group / "cpu.cfs_quota_us").write_text(str(quota))
        except OSError as error:
            pytest.skip(f"no CPU quota can be set: {error}")
        yield group
    finally:
        group.rmdir()
