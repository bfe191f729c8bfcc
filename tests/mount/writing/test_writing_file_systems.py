"""Stores on file systems that can do less than those of local disks."""
import ctypes
import errno
import functools
import itertools
import os
import random
import signal

import numpy as np
import pytest
import zarr

from support import file_systems
from support.mounting import BINARY, force_away, ok, until

FILL, CHUNK, SHARD, N = -1, 8, 32, 64
RENAME_NOREPLACE = 1


@pytest.fixture
def disk(request, tmp_path):
    """A directory on such a file system."""
    with file_systems.KINDS[request.param](tmp_path) as path:
        yield path


on = functools.partial(pytest.mark.parametrize, "disk", indirect=True)
COARSE = pytest.param("coarse", marks=pytest.mark.root)
SSHFS = pytest.param("sshfs", marks=pytest.mark.heavy)


def make(path):
    """A store of two arrays, without shards and with them."""
    group = zarr.open_group(str(path), mode="w")
    for name, more in {"plain": {}, "sharded": {"shards": (SHARD,)}}.items():
        array = group.create_array(name, shape=(N,), chunks=(CHUNK,), dtype="i8", fill_value=FILL, compressors=None, **more)
        array[...] = 0
    return path


def put(name, value):
    """Writes a chunk of one value, and syncs it."""
    with open(name, "wb") as file:
        file.write(np.full(CHUNK, value, "i8").tobytes())
        file.flush()
        os.fsync(file.fileno())


def change(path, values, steps, seed):
    """Writes, erases and fills chunks in an order that looks random. `values` has what each is then."""
    chosen = random.Random(seed)
    for number in range(1, steps):
        name, i = chosen.choice(["plain", "sharded"]), chosen.randrange(N // CHUNK)
        chunk, what = path / name / "c" / str(i), chosen.randrange(5)
        values[name, i] = FILL if what < 2 else number
        if what == 0:
            chunk.unlink()
        else:
            put(chunk, values[name, i])
        assert np.frombuffer(chunk.read_bytes(), "i8").tolist() == [values[name, i]] * CHUNK


def names(folder):
    """The names in a directory, without those of files that were removed while they were open."""
    return sorted(name for name in os.listdir(folder) if not name.startswith(".fuse_hidden"))


def check(store, values):
    for (name, i), value in values.items():
        found = zarr.open_array(f"{store}/{name}", mode="r")[i * CHUNK:(i + 1) * CHUNK]
        assert (found == value).all(), (name, i, value, found)


@on(argvalues=["bindfs", COARSE, SSHFS])
def test_all_that_is_written_is_saved(disk, tmp_path, mount):
    store = make(disk / "store")
    values = {(name, i): 0 for name in ("plain", "sharded") for i in range(N // CHUNK)}
    made = mount(store, "--rw", "--view", "chunks")
    change(made.path, values, 80, seed=1)
    made.sync()
    check(store, values)
    # Whole shards go, and come again.
    for i in range(N // CHUNK):
        for name in ("plain", "sharded"):
            put(made.path / name / "c" / str(i), FILL)
            values[name, i] = FILL
    made.sync()
    check(store, values)
    assert names(store / "sharded/c") == []
    change(made.path, values, 20, seed=2)
    # A killed program leaves its closed chunks in the journal.
    (made.path / "sharded/c/1").write_bytes(np.full(CHUNK, 77, "i8").tobytes())
    values["sharded", 1] = 77
    os.kill(made.pid, signal.SIGKILL)
    until(lambda: not made.alive(), "the end of the daemon")
    force_away(made.path)
    ok(BINARY, "--recover", store)
    check(store, values)


@on(argvalues=["bindfs", COARSE, SSHFS])
@pytest.mark.parametrize("how", ["before close", "after close"])
def test_times_that_a_writer_sets_do_not_make_a_chunk_an_older_one(disk, mount, how):
    store, same = make(disk / "store"), (1_000_000_000, 1_000_000_000)
    made = mount(store, "--rw", "--view", "keys,chunks,arrays", "--files", "raw")
    for number in range(1, 7):
        for name in ("plain", "sharded"):
            chunk = made.path / "chunks" / name / "c/0"
            with open(chunk, "wb") as file:
                file.write(np.full(CHUNK, number, "i8").tobytes())
                file.flush()
                if how == "before close":
                    os.utime(file.fileno(), same)
            if how == "after close":
                os.utime(chunk, same)
            for path in (chunk, made.path / f"arrays/{name}.raw"):
                assert np.frombuffer(path.read_bytes(), "i8")[:CHUNK].tolist() == [number] * CHUNK, path


@on(argvalues=[COARSE])
def test_a_file_with_the_inode_number_and_the_time_of_another_one_is_another_one(disk, mount):
    """The file system has no time at which a file was made."""
    store, same = make(disk / "store"), (1_000_000_000, 1_000_000_000)
    zarr.open_array(f"{store}/plain", mode="r+")[CHUNK:2 * CHUNK] = 5
    chunk, other = store / "plain/c/0", (store / "plain/c/1").read_bytes()
    os.utime(chunk, same)
    old, made = chunk.stat(), mount(store, "--view", "chunks")
    read = lambda: np.frombuffer((made.path / "plain/c/0").read_bytes(), "i8").tolist()
    assert read() == [0] * CHUNK and old.st_size == len(other)
    chunk.unlink()
    for number in itertools.count():
        new = chunk.with_name(f"new{number}")
        new.write_bytes(other)
        if new.stat().st_ino == old.st_ino:
            break
    os.utime(new, same)
    new.rename(chunk)
    assert read() == [5] * CHUNK


@on(argvalues=["bindfs", SSHFS])
def test_names_are_kept_that_are_taken(disk, mount):
    store = make(disk / "store")
    made = mount(store, "--rw", "--shards", "keep")
    libc = ctypes.CDLL(None, use_errno=True)

    def rename(old, new):
        done = libc.renameat2(-100, os.fsencode(made.path / old), -100, os.fsencode(made.path / new), RENAME_NOREPLACE)
        return 0 if done == 0 else ctypes.get_errno()

    (made.path / "one").write_text("one")
    (made.path / "two").write_text("two")
    for old, new in [("one", "two"), ("plain", "sharded"), ("plain", "one"), ("one", "plain"), ("plain/c/0", "plain/c/1")]:
        assert rename(old, new) == errno.EEXIST, (old, new)
    assert rename("none", "three") == errno.ENOENT
    assert rename("one", "plain/three") == rename("plain", "moved") == rename("sharded/c/0", "moved/c/9") == 0
    assert (store / "moved/three").read_text() == "one" and (store / "two").read_text() == "two"
    assert names(store) == ["moved", "sharded", "two", "zarr.json"]
    assert not (store / "sharded/c/0").exists() and (store / "moved/c/9").exists()
    made.unmount()
    assert "an object that another program renames" in made.log_text()


@pytest.mark.long
@on(argvalues=[COARSE])
def test_saves_within_one_second_are_seen_by_other_mounts(disk, mount):
    store = make(disk / "store")
    made, other = mount(store, "--rw", "--view", "chunks"), mount(store, "--view", "chunks")
    chunk = "sharded/c/1"
    for number in range(1, 10):
        # Each time the shard has another content and the same length.
        for again in range(5):
            put(made.path / chunk, 10 * number + again)
        found = np.frombuffer((other.path / chunk).read_bytes(), "i8")
        assert found.tolist() == [10 * number + 4] * CHUNK
