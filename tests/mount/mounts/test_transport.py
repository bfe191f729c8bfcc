"""How requests reach the daemon: through rings of io_uring, or through the device."""
import errno
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import zarr

from support import rings, sample
from support.mounting import BINARY, ok, run, until

DISABLED = Path("/proc/sys/kernel/io_uring_disabled")


@pytest.fixture
def store(tmp_path):
    return sample.write(tmp_path / "s.zarr")


@pytest.fixture
def written(tmp_path):
    """A store with one array, whose chunks of 4 MiB are longer than a request."""
    root = zarr.open_group(tmp_path / "w.zarr", mode="w")
    values = np.arange(4 << 20, dtype="u4")
    root.create_array("a", data=values, chunks=(1 << 20,), compressors=None)
    return tmp_path / "w.zarr", values


def transport(mount):
    return mount.stats()["transport"]


def test_auto_takes_rings_where_the_kernel_has_them(mount, store):
    with rings.switched("Y"):
        made = mount(store)
        assert transport(made)["name"] == "ring"
        assert transport(made)["rings"] >= len(os.sched_getaffinity(0))
        # The memory of the rings is a part of the budget.
        assert 0 < transport(made)["bytes"] <= made.stats()["cache"]["bytes"]
        assert transport(mount(store, "--transport", "device"))["name"] == "device"
        # A budget without room for rings.
        assert transport(mount(store, "--cache-size", "1MiB"))["name"] == "device"
    with rings.switched("N"):
        assert transport(mount(store)) == {"name": "device", "rings": 0, "bytes": 0}


def test_rings_that_are_requested_and_not_there_are_refused(store, tmp_path):
    (tmp_path / "m").mkdir()
    with rings.switched("N"):
        done = run(BINARY, store, tmp_path / "m", "--transport", "ring")
    assert done.returncode == 1
    assert "no rings of io_uring" in done.stderr and f"echo Y > {rings.SWITCH}" in done.stderr
    assert not os.path.ismount(tmp_path / "m")


def test_a_few_descriptors_are_for_files(store, tmp_path):
    (tmp_path / "m").mkdir()
    with rings.switched("Y"):
        few = ["prlimit", "--nofile=70", BINARY, store, tmp_path / "m"]
        done = run(*few, "--transport", "ring")
        assert done.returncode == 1 and "ulimit -n" in done.stderr
        ok(*few)
    assert b'"name": "device"' in (tmp_path / "m" / ".zarr-mount" / "stats.json").read_bytes()
    ok(BINARY, "--unmount", tmp_path / "m")


@pytest.mark.root
def test_a_system_that_forbids_io_uring_has_the_device(mount, store, tmp_path):
    if not DISABLED.exists():
        pytest.skip(f"{DISABLED} is missing (Linux 6.6 has it)")
    (tmp_path / "m").mkdir()
    with rings.switched("Y"):
        before = DISABLED.read_text()
        DISABLED.write_text("2")
        try:
            assert transport(mount(store))["name"] == "device"
            done = run(BINARY, store, tmp_path / "m", "--transport", "ring")
            assert done.returncode == 1 and "no rings of io_uring" in done.stderr
        finally:
            DISABLED.write_text(before)


def test_a_mount_that_programs_write_to_has_the_device(mount, store, tmp_path):
    (tmp_path / "m").mkdir()
    with rings.switched("Y"):
        done = run(BINARY, store, tmp_path / "m", "--rw", "--transport", "ring")
        assert transport(mount(store, "--rw"))["name"] == "device"
    assert done.returncode == 1 and "requests in order" in done.stderr


def test_each_operation_has_the_same_result(mount, store):
    """Runs the operations of POSIX through both transports, and compares their results."""
    outcomes = []
    with rings.switched("Y"):
        for how in ("device", "ring"):
            made = mount(store, "--view", "keys,chunks", "-o", "xattr", "--transport", how)
            assert transport(made)["name"] == how
            outcomes.append(operations(made.path))
            made.unmount()
    assert outcomes[0] == outcomes[1]
    assert len(outcomes[0]) > 20


def operations(root):
    """The results of operations in the mount at `root`, in order."""
    results = []

    def attempt(operation, *args, **kwargs):
        try:
            results.append(operation(*args, **kwargs))
        except OSError as error:
            results.append(errno.errorcode[error.errno])

    files = sorted(path for path in root.rglob("*") if path.is_file())
    results.append([(str(path.relative_to(root)), path.stat().st_mode, path.stat().st_size, path.read_bytes()) for path in files])
    folder, file = root / "chunks" / "plain" / "c" / "0", root / "chunks" / "plain" / "c" / "0" / "1"
    for flags in (os.O_RDONLY, os.O_RDONLY | os.O_DIRECT, os.O_RDWR, os.O_WRONLY | os.O_TRUNC, os.O_CREAT | os.O_RDWR):
        attempt(lambda: os.close(os.open(file, flags)))
        attempt(lambda: os.close(os.open(folder / "new", flags)))
    handle = os.open(file, os.O_RDONLY)
    attempt(os.pread, handle, 4096, 100)
    attempt(os.pread, handle, 1 << 20, 0)
    attempt(os.pread, handle, 10, 1 << 30)
    attempt(os.lseek, handle, 0, os.SEEK_END)
    attempt(os.fsync, handle)
    os.close(handle)
    attempt(os.stat, folder / "absent")
    attempt(os.stat, folder / ("n" * 300))
    for change in (os.mkdir, os.unlink, os.rmdir):
        attempt(change, folder)
    attempt(os.rename, file, folder / "other")
    attempt(os.link, file, folder / "other")
    attempt(os.symlink, "1", folder / "other")
    attempt(os.chmod, file, 0o600)
    attempt(os.truncate, file, 0)
    attempt(os.setxattr, file, "user.x", b"1")
    attempt(os.getxattr, file, "user.zarr.none")
    attempt(lambda: sorted((name, os.getxattr(file, name)) for name in os.listxattr(file)))
    attempt(lambda: sorted(os.listdir(folder)))
    attempt(lambda: (os.statvfs(root).f_namemax, os.statvfs(root).f_bsize))
    attempt(os.readlink, file)
    handle = os.open(folder, os.O_RDONLY)
    attempt(os.fsync, handle)
    os.close(handle)
    return results


def test_long_reads_are_split_and_whole(mount, written):
    store, values = written
    with rings.switched("Y"):
        made = mount(store, "--view", "chunks,arrays", "--files", "raw", "--transport", "ring")
        read = np.fromfile(made.path / "arrays" / "a.raw", "<u4")
        assert np.array_equal(read, values)
        # A long read of a short file, and one whose bytes are in the cache.
        assert b'"name": "ring"' in ok("cat", made.path / ".zarr-mount" / "stats.json").encode()
        assert np.array_equal(np.fromfile(made.path / "chunks" / "a" / "c" / "1", "<u4"), values[1 << 20:2 << 20])
        made.unmount()


def test_readers_get_an_error_when_the_daemon_is_killed(mount, written):
    """Threads read through every queue while the daemon is killed: each gets an error, and none waits for ever."""
    store, _ = written
    reader = "import os, sys\nwhile True:\n for name in os.listdir(sys.argv[1]):\n  open(f'{sys.argv[1]}/{name}', 'rb').read(70000)\n"
    with rings.switched("Y"):
        made = mount(store, "--view", "chunks", "--transport", "ring")
        before = made.stats()["requests"]["read"]
        readers = [subprocess.Popen([sys.executable, "-c", reader, made.path / "a" / "c"], stderr=subprocess.PIPE)
                   for _ in range(2 * len(os.sched_getaffinity(0)))]
        until(lambda: made.stats()["requests"]["read"] > before + 100, "reads in flight")
        made.kill()
        for process in readers:
            _, said = process.communicate(timeout=60)
            assert process.returncode == 1 and b"Error: [Errno " in said


def test_a_reader_waits_while_the_daemon_is_stopped(mount, written):
    store, values = written
    with rings.switched("Y"):
        made = mount(store, "--view", "arrays", "--files", "raw", "--transport", "ring")
        os.kill(made.pid, signal.SIGSTOP)
        read = []
        reader = threading.Thread(target=lambda: read.append(np.fromfile(made.path / "a.raw", "<u4")))
        reader.start()
        os.kill(made.pid, signal.SIGCONT)
        reader.join(60)
        assert np.array_equal(read[0], values)
        made.unmount()
