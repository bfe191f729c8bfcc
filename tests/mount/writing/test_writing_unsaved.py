"""Memory that is mapped and written after the file was closed: what cannot be saved then is kept, and tried again."""
import ctypes
import errno
import mmap
import os

import numpy as np
import pytest
import zarr

from support.mounting import BINARY, run, until

N = 1 << 16
OLD, NEW = bytes(N), np.random.default_rng(3).integers(0, 256, N, dtype="u1").tobytes()

pytestmark = pytest.mark.root


def write_after_close(path, data):
    """Python's own mmap has a duplicate of the handle, whose close would be told."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    fd = os.open(path, os.O_RDWR)
    place = libc.mmap(None, N, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, fd, 0)
    assert place != ctypes.c_void_p(-1).value, os.strerror(ctypes.get_errno())
    os.close(fd)
    ctypes.memmove(place, data, N)
    assert libc.munmap(place, N) == 0


def told(path):
    """The error that a program gets who opens a file for writing and closes it again."""
    fd = os.open(path, os.O_WRONLY)
    with pytest.raises(OSError) as caught:
        os.close(fd)
    return caught.value.errno


def writes(made, name):
    return made.stats()["writes"][name]


def fill(store):
    """Writes a file beside the store until the disk is full."""
    filler = store.parent / "filler"
    with pytest.raises(OSError), open(filler, "wb", buffering=0) as out:
        while True:
            out.write(bytes(4096))
    return filler


@pytest.fixture(params=["chunk", "inner chunk"])
def full(request, disk, mount):
    """A mount of an array on a disk that is full, and what makes room. One chunk was written to mapped memory."""
    store = disk("4M") / "store"
    options = {"chunks": (N,), "shards": (4 * N,)} if request.param == "inner chunk" else {"chunks": (N,)}
    array = zarr.create_array(str(store), name="a", shape=(4 * N,), dtype="u1", fill_value=7, **options)
    array[...] = 0
    made = mount(store, "--rw", "--view", "chunks", "--durability", "never")
    filler = fill(store)
    name = made.path / "a/c/1"
    write_after_close(name, NEW)
    until(lambda: writes(made, "unsaved") == 1, "the file to be released")
    assert name.read_bytes() == NEW and (array[...] == 0).all()
    yield array, made, name, filler
    assert writes(made, "unsaved") == 0 if os.path.ismount(made.path) else True


def test_it_is_saved_when_there_is_room(full):
    array, made, name, filler = full
    filler.unlink()
    until(lambda: writes(made, "unsaved") == 0, "the file to be saved")
    assert writes(made, "lost") == 0 and name.read_bytes() == NEW
    os.close(os.open(name, os.O_WRONLY))
    made.unmount()
    assert array[N:2 * N].tobytes() == NEW and (array[:N] == 0).all()


def test_the_next_writer_of_the_file_gets_the_error_and_then_it_is_dropped(full):
    array, made, name, filler = full
    assert name.read_bytes() == NEW
    assert told(name) == errno.ENOSPC
    until(lambda: writes(made, "lost") == 1, "what was written to be dropped")
    until(lambda: name.read_bytes() == OLD, "the stored chunk to be shown")
    filler.unlink()
    name.write_bytes(NEW[::-1])
    made.unmount()
    assert array[N:2 * N].tobytes() == NEW[::-1]


def test_a_sync_of_the_whole_mount_says_so_and_nothing_is_dropped(full):
    array, made, name, filler = full
    fd = os.open(made.path / ".zarr-mount/sync", os.O_RDONLY)
    with pytest.raises(OSError) as caught:
        os.fsync(fd)
    assert caught.value.errno == errno.ENOSPC and writes(made, "unsaved") == 1
    filler.unlink()
    os.fsync(fd)
    os.close(fd)
    assert writes(made, "unsaved") == 0 and array[N:2 * N].tobytes() == NEW


def test_a_removal_of_the_file_drops_its_draft(full):
    array, made, name, filler = full
    # The journal of a shard wants room for it.
    filler.unlink()
    os.unlink(name)
    assert writes(made, "unsaved") == 0 and name.read_bytes() == bytes([7]) * N
    made.unmount()
    assert (array[N:2 * N] == 7).all()


def test_an_unmount_says_how_many_files_are_not_saved(full):
    array, made, name, filler = full
    done = run(BINARY, "--unmount", made.path)
    assert done.returncode == 1 and "1 file is not saved" in done.stderr and "No space left" in done.stderr
    made.wait_for_the_end()
    assert (array[...] == 0).all()


@pytest.fixture
def elsewhere(disk, tmp_path, mount):
    """An array without shards on a full disk, a staging directory on another disk, and drafts that were not saved when the mount ended."""
    store, staging = disk("4M") / "store", tmp_path / "staging"
    staging.mkdir()
    array = zarr.create_array(str(store), name="a", shape=(4 * N,), dtype="u1", chunks=(N,), fill_value=7)
    array[...] = 0
    made = mount(store, "--rw", "--view", "chunks", "--staging", staging)
    filler = fill(store)
    for i, data in ((1, NEW), (2, NEW[::-1])):
        write_after_close(made.path / f"a/c/{i}", data)
    until(lambda: writes(made, "unsaved") == 2, "the files to be released")
    done = run(BINARY, "--unmount", made.path)
    assert done.returncode == 1 and "2 files are not saved" in done.stderr
    made.wait_for_the_end()
    assert (array[...] == 0).all()
    [own] = staging.iterdir()
    assert len(os.listdir(own)) == 2
    return array, store, staging, filler


@pytest.mark.parametrize("by", ["mount", "recover"])
def test_drafts_that_are_not_saved_when_the_mount_ends_go_to_the_journal(by, elsewhere, mount):
    array, store, staging, filler = elsewhere
    recover = lambda: run(BINARY, "--recover", store, "--staging", staging)
    done = recover()
    assert done.returncode == 1 and "2 chunks stay in the journal" in done.stderr and "No space left" in done.stderr, done
    filler.unlink()
    if by == "mount":
        made = mount(store, "--rw", "--view", "chunks", "--staging", staging)
        assert (made.path / "a/c/1").read_bytes() == NEW
        made.unmount()
    else:
        for said in ("2 chunks saved that waited", "nothing was left"):
            done = recover()
            assert done.returncode == 0 and said in done.stdout, done
    assert array[N:3 * N].tobytes() == NEW + NEW[::-1] and (array[:N] == 0).all() and (array[3 * N:] == 0).all()
    assert not os.listdir(staging)


@pytest.mark.parametrize("writes_other_bytes", [True, False])
def test_a_later_write_is_newer_than_the_journal(writes_other_bytes, elsewhere, mount):
    """This includes a chunk that has the same content again as when the journal was written."""
    array, store, staging, filler = elsewhere
    made = mount(store, "--rw", "--view", "chunks", "--staging", staging)
    name = made.path / "a/c/1"
    assert name.read_bytes() == OLD
    filler.unlink()
    if writes_other_bytes:
        name.write_bytes(bytes([3]) * N)
    name.write_bytes(OLD)
    made.unmount()
    done = run(BINARY, "--recover", store, "--staging", staging)
    assert done.returncode == 0 and "1 chunk saved" in done.stdout, done
    assert (array[:2 * N] == 0).all() and array[2 * N:3 * N].tobytes() == NEW[::-1]
    assert not os.listdir(staging)


def test_a_later_change_by_another_program_stays(elsewhere):
    array, store, staging, filler = elsewhere
    filler.unlink()
    array[N:2 * N] = 5
    done = run(BINARY, "--recover", store, "--staging", staging)
    assert "1 chunk saved" in done.stdout and "1 chunk dropped" in done.stdout, done
    assert (array[N:2 * N] == 5).all() and array[2 * N:3 * N].tobytes() == NEW[::-1]
    assert not os.listdir(staging)


def test_bytes_that_the_store_must_not_get_are_dropped_at_once(tmp_path, mount):
    array = zarr.create_array(str(tmp_path / "store"), name="a", shape=(N,), chunks=(N,), dtype="bool", fill_value=True)
    array[...] = False
    made = mount(tmp_path / "store", "--rw", "--view", "chunks")
    write_after_close(made.path / "a/c/0", bytes([2]) * N)
    until(lambda: writes(made, "lost") == 1, "what was written to be dropped")
    until(lambda: (made.path / "a/c/0").read_bytes() == OLD, "the stored chunk to be shown")
    assert writes(made, "unsaved") == 0 and not array[...].any()


@pytest.mark.parametrize("args", [("--view", "keys"), ("--view", "keys", "--shards", "keep"), ("--view", "chunks")], ids=" ".join)
def test_drafts_without_room_on_the_disk_are_counted_and_not_shown(args, disk, mount):
    """Chunks that are not encoded are kept in files of the store's disk, which has no room for them."""
    store = disk("4M") / "store"
    array = zarr.create_array(str(store), name="a", shape=(2 * N,), dtype="u1", chunks=(N,), fill_value=7, compressors=None)
    array[...] = 0
    made = mount(store, "--rw", *args)
    filler = fill(store)
    for i in range(2):
        write_after_close(made.path / f"a/c/{i}", NEW)
    until(lambda: writes(made, "lost") == 2, "what was written to be lost")
    until(lambda: all((made.path / f"a/c/{i}").read_bytes() == OLD for i in range(2)), "the stored chunks to be shown")
    assert "not saved" in (made.path / ".zarr-mount/log").read_text() and (array[...] == 0).all()
    # A program that writes by write(2) gets the error, and again when it closes the file.
    fd = os.open(made.path / "a/c/0", os.O_WRONLY)
    with pytest.raises(OSError) as caught:
        os.write(fd, NEW)
    assert caught.value.errno == errno.ENOSPC
    with pytest.raises(OSError) as caught:
        os.close(fd)
    assert caught.value.errno == errno.ENOSPC and writes(made, "lost") in (2, 3)
    filler.unlink()
    (made.path / "a/c/0").write_bytes(NEW)
    assert array[:N].tobytes() == NEW


def test_a_directory_that_cannot_be_renamed_loses_nothing(disk, mount):
    store = disk("4M") / "store"
    array = zarr.create_array(str(store), name="a", shape=(4 * N,), dtype="u1", chunks=(N,), fill_value=7)
    array[...] = 0
    made = mount(store, "--rw", "--view", "chunks")
    filler = fill(store)
    for i in range(4):
        write_after_close(made.path / f"a/c/{i}", NEW)
    until(lambda: writes(made, "unsaved") == 4, "the files to be released")
    with pytest.raises(OSError):
        os.rename(made.path / "a", made.path / "b")
    filler.unlink()
    until(lambda: writes(made, "unsaved") == 0, "the files to be saved")
    assert writes(made, "lost") == 0 and array[...].tobytes() == 4 * NEW


def test_a_failed_save_is_not_shown_to_readers(tmp_path, mount):
    """Once its writers are gone, the stored chunk is shown, and others write it."""
    array = zarr.create_array(str(tmp_path / "store"), name="a", shape=(N,), chunks=(N,), dtype="u1", fill_value=7)
    array[...] = 0
    made = mount(tmp_path / "store", "--rw", "--view", "chunks")
    name = made.path / "a/c/0"
    reader = os.open(name, os.O_RDONLY)
    writer = os.open(name, os.O_WRONLY | os.O_TRUNC)
    os.write(writer, NEW[:100])
    assert os.pread(reader, N, 0) == NEW[:100]
    with pytest.raises(OSError) as caught:
        os.close(writer)
    assert caught.value.errno == errno.EIO
    until(lambda: os.pread(reader, N, 0) == OLD, "the stored chunk to be read")
    other = os.open(name, os.O_WRONLY)
    os.pwrite(other, NEW[:100], 0)
    os.close(other)
    assert os.pread(reader, N, 0) == NEW[:100] + OLD[100:] == array[...].tobytes()
    os.close(reader)


@pytest.mark.parametrize("shards", [None, (2 * N,)])
@pytest.mark.parametrize("is_stored", [True, False])
def test_memory_that_is_mapped_over_a_new_chunk_where_absent_ones_are_hidden(is_stored, shards, tmp_path, mount):
    """numpy.memmap writes one byte at the end, which is saved as fill value, and goes on."""
    array = zarr.create_array(str(tmp_path / "store"), name="a", shape=(2 * N,), chunks=(N,), shards=shards, dtype="u1", fill_value=0)
    if is_stored:
        array[...] = 1
    made = mount(tmp_path / "store", "--rw", "--view", "chunks", "--missing", "hide")
    name = made.path / "a/c/0"
    name.parent.mkdir(parents=True, exist_ok=True)
    mapped = np.memmap(name, "u1", "w+", shape=(N,))
    assert not mapped.any()
    mapped[:] = np.frombuffer(NEW, "u1")
    mapped.flush()
    assert name.read_bytes() == NEW
    del mapped
    until(lambda: array[:N].tobytes() == NEW, "the mapped numbers to be saved")
    fd = os.open(name, os.O_RDWR | os.O_TRUNC)
    os.write(fd, OLD)
    os.fsync(fd)
    assert os.pread(fd, N, 0) == OLD and name.exists()
    os.close(fd)
    until(lambda: not name.exists(), "the chunk to be hidden")
    made.unmount()
    assert not array[:N].any()
