"""Troubles around a mount with `--rw` cause messages, and no closed file is lost."""
import errno
import os
import shutil
import signal

import numpy as np
import pytest
import zarr

from support.mounting import BINARY, ok, run, until

N = 1 << 16
NEW = np.random.default_rng(5).integers(0, 256, N, dtype="u1").tobytes()


def array(store, name="a", **options):
    made = zarr.create_array(str(store), name=name, shape=(4 * N,), chunks=(N,), dtype="u1", fill_value=0, compressors=None, **options)
    made[...] = 1
    return made


@pytest.fixture
def layers(disk):
    """A directory of an overlay, of which the upper layer is empty."""
    path = disk("16M")
    parts = {name: path / name for name in ("lower", "upper", "work", "merged")}
    for part in parts.values():
        part.mkdir()
    yield parts["lower"], parts["merged"], lambda: ok(
        "mount", "-t", "overlay", "overlay", "-o", ",".join(f"{name}dir={parts[name]}" for name in ("lower", "upper", "work")), parts["merged"])
    run("umount", "--lazy", parts["merged"])


@pytest.mark.root
@pytest.mark.parametrize("view", ["chunks", "keys"])
@pytest.mark.parametrize("shards", [None, (4 * N,)], ids=["chunks", "shards"])
def test_chunks_of_a_lower_layer_are_changed(layers, mount, view, shards):
    """An overlay gives a file another time of birth when it is changed first. No other program has changed it."""
    lower, merged, join = layers
    array(lower / "store", shards=shards)
    join()
    made = mount(merged / "store", "--rw", "--view", view)
    handles = [os.open(made.path / f"a/c/{n}", os.O_RDWR if n % 2 else os.O_RDONLY) for n in range(4)]
    for n in range(4):
        with open(made.path / f"a/c/{n}", "r+b", buffering=0) as file:
            os.pwrite(file.fileno(), b"new", 10 + n)
            os.fsync(file.fileno())
            os.pwrite(file.fileno(), b"newer", 20 + n)
    for n, handle in enumerate(handles):
        assert os.pread(handle, 6, 9 + n) == b"\1new\1\1"
        os.close(handle)
    assert made.stats()["writes"]["conflicts"] == 0
    made.unmount()
    found = zarr.open_array(str(merged / "store/a"), mode="r")[...].reshape(4, N)
    for n in range(4):
        assert found[n, 10 + n:13 + n].tobytes() == b"new" and found[n, 20 + n:25 + n].tobytes() == b"newer"
        assert found[n].sum() == N - 8 + sum(b"newnewer")


@pytest.mark.root
@pytest.mark.parametrize("shards", [None, (4 * N,)], ids=["chunks", "shards"])
def test_the_reason_is_kept_for_programs_that_do_not_ask_for_it(disk, mount, shards):
    store = disk("2M") / "store"
    array(store, shards=shards)
    made = mount(store, "--rw", "--view", "chunks")
    with pytest.raises(OSError), open(store.parent / "filler", "wb", buffering=0) as filler:
        while True:
            filler.write(bytes(4096))
    for n in range(2):
        fd = os.open(made.path / f"a/c/{n}", os.O_RDWR)
        with pytest.raises(OSError) as told:
            for _ in range(32):
                os.pwrite(fd, NEW, 0)
                os.fsync(fd)
        assert told.value.errno == errno.ENOSPC
        with pytest.raises(OSError):
            os.close(fd)
    for text in ((made.path / ".zarr-mount/refused").read_text(), made.log_text()):
        lines = [line for line in text.splitlines() if "No space left" in line]
        assert any("a/c/0" in line for line in lines), text
        assert shards or any("a/c/1" in line for line in lines), text


@pytest.mark.parametrize("sharded", [False, True], ids=["chunks", "shards"])
def test_where_the_store_is_gone_the_mount_says_so(tmp_path, mount, sharded):
    store = tmp_path / "store"
    array(store, shards=(4 * N,) if sharded else None)
    made = mount(store, "--rw", "--view", "chunks")
    (made.path / "a/c/1").write_bytes(NEW)
    shutil.rmtree(store)
    until(lambda: run("ls", made.path / "a").returncode, "the store to be missed")
    with pytest.raises(OSError):
        (made.path / "a/c/2").write_bytes(NEW)
    for name in ("refused", "log", "stats.json"):
        assert (made.path / ".zarr-mount" / name).read_bytes() or name == "refused"
    done = run(BINARY, "--unmount", made.path)
    assert done.returncode == 1 and "not all that was written is in the store" in done.stderr, done.stderr
    # The journal was deleted with the store.
    assert ("1 inner chunk is lost" in done.stderr) == sharded and "in the journal" not in done.stderr, done.stderr
    made.wait_for_the_end()


@pytest.mark.root
def test_an_unmount_says_when_it_cannot_ask(tmp_path, mount):
    store = tmp_path / "store"
    array(store, shards=(4 * N,))
    made = mount(store, "--rw", "--view", "chunks")
    (made.path / "a/c/1").write_bytes(NEW)
    ok("prlimit", "--pid", made.pid, "--nofile=3:")
    done = run(BINARY, "--unmount", made.path)
    assert done.returncode == 1 and "not all that was written" in done.stderr or "cannot be asked" in done.stderr, done.stderr
    made.wait_for_the_end()
    ok(BINARY, "--recover", store)
    assert zarr.open_array(str(store / "a"), mode="r")[N:2 * N].tobytes() == NEW


def test_a_limit_of_file_sizes_does_not_end_a_recovery(tmp_path, mount):
    store = tmp_path / "store"
    array(store, shards=(4 * N,))
    made = mount(store, "--rw", "--view", "chunks")
    (made.path / "a/c/1").write_bytes(NEW)
    os.kill(made.pid, signal.SIGKILL)
    until(lambda: not made.alive(), "the daemon's end")
    run("umount", made.path)
    done = run("prlimit", f"--fsize={N}:", BINARY, "--recover", store)
    assert done.returncode == 1 and "File too large" in done.stderr, done
    ok(BINARY, "--recover", store)
    assert zarr.open_array(str(store / "a"), mode="r")[N:2 * N].tobytes() == NEW


@pytest.mark.parametrize("view", ["keys", "chunks"])
def test_the_directory_of_a_mount_is_not_a_store_to_write_to(tmp_path, mount, view):
    array(tmp_path / "store")
    made = mount(tmp_path / "store", "--rw", "--view", view)
    (tmp_path / "again").mkdir()
    for shown in (made.path, made.path / "a"):
        done = run(BINARY, "--rw", shown, tmp_path / "again")
        assert done.returncode and "STORE is in a mount of zarr-mount" in done.stderr, done
    ok(BINARY, made.path, tmp_path / "again")
    assert (tmp_path / "again/a/c/0").read_bytes() == bytes([1]) * N
    ok(BINARY, "--unmount", tmp_path / "again")
