"""How requests reach the daemon: through rings of io_uring, or through the device."""
import errno
import json
import os
import signal
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import zarr

from support import rings, sample
from support.mounting import BINARY, WORKERS, ok, run, until

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
        made = mount(store, "-v", "--transport", "device")
        assert transport(made)["name"] == "device" and "requests come through /dev/fuse" in made.log_text()
        made = mount(store, "-v", "--transport", "auto")
        assert transport(made)["name"] == "ring" and f"requests come through {transport(made)['rings']} rings" in made.log_text()
        assert transport(made)["rings"] >= len(os.sched_getaffinity(0))
        # The memory of the rings is a part of the budget.
        assert 0 < transport(made)["bytes"] <= made.stats()["cache"]["bytes"]
        # A budget without room for rings.
        assert transport(mount(store, "--transport", "auto", "--cache-size", "1MiB"))["name"] == "device"
    with rings.switched("N"):
        assert transport(mount(store, "--transport", "auto")) == {"name": "device", "rings": 0, "bytes": 0}


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
        ok(*few, "--transport", "auto")
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
            assert transport(mount(store, "--transport", "auto"))["name"] == "device"
            done = run(BINARY, store, tmp_path / "m", "--transport", "ring")
            assert done.returncode == 1 and "no rings of io_uring" in done.stderr
        finally:
            DISABLED.write_text(before)


@pytest.mark.root
def test_a_container_that_forbids_io_uring_has_the_device(mount, store, tmp_path):
    (tmp_path / "m").mkdir()
    container = (sys.executable, WORKERS / "without_io_uring.py")
    with rings.switched("Y"):
        made = mount(store, "--transport", "auto", prefix=container)
        assert transport(made)["name"] == "device" and made.said == ""
        done = run(*container, BINARY, store, tmp_path / "m", "--transport", "ring")
        assert done.returncode == 1 and "no rings of io_uring" in done.stderr


def test_each_operation_has_the_same_result(mount, tmp_path):
    """Runs the operations of POSIX through both transports, and compares what they return and what they leave."""
    outcomes = []
    with rings.switched("Y"):
        for how in ("device", "ring"):
            copy = sample.write(tmp_path / f"{how}.zarr")
            made = mount(copy, "--rw", "-o", "xattr", "--transport", how)
            assert transport(made)["name"] == how
            outcomes.append(operations(made.path))
            made.unmount()
            outcomes[-1].append(sorted((str(path.relative_to(copy)), path.stat().st_mode, path.is_file() and path.read_bytes())
                                       for path in copy.rglob("*") if path.name != "zarr.json"))
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

    results.append(sorted((str(path.relative_to(root)), path.lstat().st_mode, path.lstat().st_size) for path in root.rglob("*")))
    attempt(os.mkdir, root / "d", 0o750)
    attempt(os.mkdir, root / "d")
    attempt(os.mknod, root / "d" / "n")
    (root / "d" / "f").write_bytes(bytes(range(256)) * 5000)
    attempt((root / "d" / "f").read_bytes)
    for flags in (os.O_RDONLY | os.O_DIRECT, os.O_RDWR):
        handle = os.open(root / "d" / "f", flags)
        attempt(os.pread, handle, 4096, 8192)
        attempt(os.pwrite, handle, b"text", 3)
        attempt(os.fsync, handle)
        attempt(os.posix_fallocate, handle, 0, 2_000_000)
        os.close(handle)
    attempt(os.truncate, root / "d" / "f", 1_500_000)
    attempt(os.utime, root / "d" / "f", ns=(1_000_000_007, 2_000_000_009))
    attempt(lambda: (os.stat(root / "d" / "f").st_size, os.stat(root / "d" / "f").st_mtime_ns))
    attempt(os.chmod, root / "d" / "f", 0o640)
    attempt(os.rename, root / "d" / "f", root / "d" / "g")
    attempt(os.link, root / "d" / "g", root / "d" / "l")
    attempt(os.symlink, "g", root / "d" / "s")
    attempt(os.setxattr, root / "d" / "g", "user.x", b"1")
    attempt(os.getxattr, root / "d" / "g", "user.zarr.none")
    attempt(lambda: sorted(os.listxattr(root / "d" / "g")))
    attempt(os.stat, root / "d" / ("n" * 300))
    attempt(os.rmdir, root / "d")
    attempt(os.unlink, root / "d" / "n")
    attempt(lambda: sorted(os.listdir(root / "d")))
    attempt(lambda: os.statvfs(root).f_namemax)
    handle = os.open(root / "d", os.O_RDONLY)
    attempt(os.fsync, handle)
    os.close(handle)
    return results


def kept_drafts(folder, stored):
    """How many of 400 chunks were truncated although they had been closed."""
    kept = 0
    for n in range(400):
        chunk = folder / str(n % 8)
        chunk.write_bytes(stored[n % 8])
        try:
            os.truncate(chunk, 0)
            kept += 1
        except OSError as error:
            assert error.errno == errno.EINVAL
    return kept


def test_a_closed_file_is_closed_for_the_next_request(mount, tmp_path):
    """An encoded chunk is never empty: its truncation is refused, unless it is open, as it would be for a moment after close(2)."""
    root = zarr.open_group(tmp_path / "e.zarr", mode="w")
    root.create_array("a", data=np.arange(1, 9, dtype="u1"), chunks=(1,), compressors=zarr.codecs.ZstdCodec())
    stored = [(tmp_path / "e.zarr" / "a" / "c" / str(n)).read_bytes() for n in range(8)]
    with rings.switched("Y"):
        made = mount(tmp_path / "e.zarr", "--rw", "--transport", "ring")
        # The daemon waits 20 ms for the end of a file. Where it gets no processor for so long, the file is still open.
        kept = [kept_drafts(made.path / "a" / "c", stored)]
        while kept[-1] and len(kept) < 5:
            kept.append(kept_drafts(made.path / "a" / "c", stored))
        assert kept[-1] == 0, kept
        made.unmount()


def test_long_reads_and_writes_are_split_and_whole(mount, written):
    store, values = written
    with rings.switched("Y"):
        made = mount(store, "--view", "chunks,arrays", "--rw", "--files", "raw", "--transport", "ring")
        read = np.fromfile(made.path / "arrays" / "a.raw", "<u4")
        assert np.array_equal(read, values)
        # A long read of a short file, and one whose bytes are in the cache.
        assert b'"name": "ring"' in ok("cat", made.path / ".zarr-mount" / "stats.json").encode()
        assert np.array_equal(np.fromfile(made.path / "chunks" / "a" / "c" / "1", "<u4"), values[1 << 20:2 << 20])
        (made.path / "chunks" / "a" / "c" / "2").write_bytes((values[:1 << 20] + 5).astype("<u4").tobytes())
        made.unmount()
    assert np.array_equal(zarr.open_group(store, mode="r")["a"][2 << 20:3 << 20], values[:1 << 20] + 5)


def test_a_reader_waits_while_the_daemon_is_stopped(mount, written):
    store, values = written
    with rings.switched("Y"):
        made = mount(store, "--view", "arrays", "--files", "raw", "--transport", "ring")
        os.kill(made.pid, signal.SIGSTOP)
        read = []
        reader = threading.Thread(target=lambda: read.append(np.fromfile(made.path / "a.raw", "<u4")))
        reader.start()
        waits_in = Path(f"/proc/self/task/{reader.native_id}/wchan")
        # For the reply to a request, or for pages that the kernel has requested before the daemon stopped.
        try:
            until(lambda: waits_in.read_text() in ("request_wait_answer", "folio_wait_bit_common"), "a reader that waits for a reply")
        finally:
            os.kill(made.pid, signal.SIGCONT)
        reader.join(60)
        assert np.array_equal(read[0], values)
        made.unmount()


def has_stopped(pid):
    """Whether no thread of the process runs. A signal takes a moment to stop them."""
    states = [stat.read_text().rpartition(")")[2].split()[0] for stat in Path(f"/proc/{pid}/task").glob("*/stat")]
    return set(states) == {"T"}


def test_a_stopped_daemon_and_a_killed_one_are_distinguished(mount, store):
    """With rings, the kernel passes requests on to a stopped daemon, and a program that waits for such a request cannot end. `--list` ends nevertheless."""
    with rings.switched("Y"):
        made = mount(store, "--transport", "ring")
        os.kill(made.pid, signal.SIGSTOP)
        try:
            until(lambda: has_stopped(made.pid), "a daemon whose threads have all stopped")
            listed = {found["mountpoint"]: found["state"] for found in json.loads(ok(BINARY, "--list", "--json"))}
            assert listed[str(made.path)] == "silent"
            done = run(BINARY, "--status", made.path)
            assert done.returncode == 1 and "does not answer" in done.stderr, done
        finally:
            os.kill(made.pid, signal.SIGCONT)
        # With rings, the kernel ends a mount a moment after its daemon.
        for _ in range(5):
            made.kill()
            made = mount(store, "--transport", "ring", path=made.path)
            assert (made.path / "notes.txt").read_bytes() == (store / "notes.txt").read_bytes()
        made.unmount()
