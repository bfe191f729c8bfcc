"""Decoded chunks that are written: any program writes raw numbers, and the store has valid, encoded chunks."""
import ctypes
import errno
import json
import mmap
import os
import shutil
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import tensorstore
import zarr

from support.mounting import ok, other_program, run, until
from support.writing_samples import CHUNK, SHAPE, values

ARGS = ("--rw", "--view", "chunks")
N = CHUNK[0] * CHUNK[1] * 4
FILL = 1.5
NEW = np.random.default_rng(5).random(CHUNK, dtype="f4")


def make(path, **options):
    """A group with the array `a`, of which all chunks but 3.3 are stored."""
    group = zarr.create_group(str(path), zarr_format=3)
    made = group.create_array("a", shape=SHAPE, chunks=CHUNK, dtype="<f4", fill_value=FILL, **options)
    made[...] = values()
    made[48:, 48:] = FILL
    return path


def stored(store, name="a"):
    """The array as two libraries read it from the store."""
    found = zarr.open_array(str(store / name), mode="r")[...]
    again = tensorstore.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{store}/{name}/"}}).result()[...].read().result()
    np.testing.assert_array_equal(found, again)
    return found


def expected(**chunks):
    """The numbers of the sample with other chunks: `c0_1=NEW`."""
    found = values()
    found[48:, 48:] = FILL
    for name, chunk in chunks.items():
        i, j = (int(index) * 16 for index in name[1:].split("_"))
        found[i:i + 16, j:j + 16] = chunk
    return found


@pytest.fixture
def store(tmp_path):
    return make(tmp_path / "store")


@pytest.fixture
def chunks(store, mount):
    """A mount of `store`. What it shows of the array is what the store has, after every test."""
    made = mount(store, *ARGS)
    yield made
    if (store / "a/zarr.json").exists():
        found = stored(store)
        for i in range(found.shape[0] // 16):
            for j in range(found.shape[1] // 16):
                shown = np.fromfile(made.path / f"a/c/{i}/{j}", "<f4").reshape(CHUNK)
                np.testing.assert_array_equal(shown, found[i * 16:i * 16 + 16, j * 16:j * 16 + 16])


# The command for a source $S of the numbers NEW and a target $T, and what the chunk then has.
def spliced(old):
    changed = np.frombuffer(old.tobytes()[:20] + NEW.tobytes()[:12] + old.tobytes()[32:], "<f4")
    return changed.reshape(CHUNK)


COMMANDS = {
    "cp": ("cp $S $T", lambda old: NEW),
    "cp -p": ("cp -p $S $T", lambda old: NEW),
    "cp --remove-destination": ("cp --remove-destination $S $T || cp $S $T", lambda old: NEW),
    "mv": ("cp $S $T.tmp && mv $T.tmp $T", lambda old: NEW),
    "mv -n": ("cp $S $T.tmp && mv -n $T.tmp $T; rm -f $T.tmp", lambda old: old),
    "install": ("install -m 640 $S $T || cp $S $T", lambda old: NEW),
    "cat >": ("cat $S > $T", lambda old: NEW),
    "two programs >": ("(head -c 500 $S; tail -c +501 $S) > $T", lambda old: NEW),
    "two programs >>": ("head -c 500 $S > $T.part && tail -c +501 $S >> $T.part && mv $T.part $T", lambda old: NEW),
    "dd": ("dd if=$S of=$T bs=100 status=none", lambda old: NEW),
    "dd conv=notrunc": ("dd if=$S of=$T bs=4 count=3 seek=5 conv=notrunc status=none", spliced),
    "dd oflag=direct": ("dd if=$S of=$T bs=4096 oflag=direct status=none", lambda old: NEW),
    "tee": ("tee $T < $S > /dev/null", lambda old: NEW),
    "rsync": ("rsync -c $S $T", lambda old: NEW),
    "rsync -a": ("rsync -a -I $S $T", lambda old: NEW),
    "rsync --inplace": ("rsync -c --inplace $S $T", lambda old: NEW),
    "tar": ("tar -C $(dirname $S) -cf - --transform s/source/$(basename $T)/ source | tar -C $(dirname $T) --overwrite -xf -", lambda old: NEW),
    "numpy.tofile": ("$PYTHON -c 'import numpy, sys; numpy.fromfile(sys.argv[1]).tofile(sys.argv[2])' $S $T", lambda old: NEW),
    "numpy.memmap": ("$PYTHON -c 'import numpy, sys; m = numpy.memmap(sys.argv[2], \"<f4\", \"r+\"); m[:] = numpy.fromfile(sys.argv[1], \"<f4\"); m.flush()' $S $T",
                     lambda old: NEW),
    "numpy.memmap w+": ("$PYTHON -c 'import numpy, sys; m = numpy.memmap(sys.argv[2], \"<f4\", \"w+\", shape=256); m[:] = numpy.fromfile(sys.argv[1], \"<f4\"); m.flush()'"
                        " $S $T", lambda old: NEW),
}


@pytest.mark.parametrize("target", ["c/0/1", "c/3/3"], ids=["stored", "absent"])
@pytest.mark.parametrize("program", COMMANDS)
def test_programs_write_raw_numbers_and_the_store_has_valid_chunks(program, target, chunks, store, tmp_path):
    (tmp_path / "source").write_bytes(NEW.tobytes())
    command, then = COMMANDS[program]
    environment = dict(os.environ, S=str(tmp_path / "source"), T=str(chunks.path / "a" / target), PYTHON=sys.executable)
    done = run("bash", "-c", command, env=environment)
    assert done.returncode == 0, done.stderr
    name = "c" + target.removeprefix("c/").replace("/", "_")
    i, j = (int(index) * 16 for index in name[1:].split("_"))
    old = expected()[i:i + 16, j:j + 16]
    np.testing.assert_array_equal(stored(store), expected(**{name: then(old)}))
    assert set(os.listdir(store / "a/c/3")) <= {"0", "1", "2", "3"} and set(os.listdir(store / "a/c/0")) == {"0", "1", "2", "3"}


def test_a_write_is_read_at_once_and_stored_at_close(chunks, store):
    name = chunks.path / "a/c/0/0"
    fd = os.open(name, os.O_RDWR)
    os.pwrite(fd, np.float32([7, 8]).tobytes(), 12)
    want = expected()[:16, :16].copy()
    np.testing.assert_array_equal(np.frombuffer(os.pread(fd, N, 0), "<f4").reshape(CHUNK)[0, 3:5], [7, 8])
    np.testing.assert_array_equal(np.fromfile(name, "<f4").reshape(CHUNK)[0, 3:5], [7, 8])
    np.testing.assert_array_equal(stored(store), expected())
    os.close(fd)
    want[0, 3:5] = [7, 8]
    np.testing.assert_array_equal(stored(store), expected(c0_0=want))


def test_no_byte_is_loaded_where_all_are_written(chunks, store):
    """A chunk whose stored bytes are damaged can only be replaced by a writer that writes all of it."""
    (store / "a/c/0/0").write_bytes(b"damaged")
    for flags in (os.O_WRONLY, os.O_WRONLY | os.O_TRUNC):
        (store / "a/c/0/0").write_bytes(b"damaged")
        fd = os.open(chunks.path / "a/c/0/0", flags)
        os.write(fd, NEW.tobytes())
        os.close(fd)
        np.testing.assert_array_equal(stored(store), expected(c0_0=NEW))
    (store / "a/c/0/0").write_bytes(b"damaged")
    fd = os.open(chunks.path / "a/c/0/0", os.O_WRONLY)
    os.write(fd, b"x")
    with pytest.raises(OSError) as caught:
        os.close(fd)
    assert caught.value.errno == errno.EIO and (store / "a/c/0/0").read_bytes() == b"damaged"
    shutil.copy(store / "a/c/0/1", store / "a/c/0/0")


def refused(call, *args):
    with pytest.raises(OSError) as caught:
        call(*args)
    return caught.value.errno


def test_a_chunk_has_one_length(chunks, store):
    name = chunks.path / "a/c/0/0"
    fd = os.open(name, os.O_RDWR)
    assert refused(os.pwrite, fd, b"x", N) == errno.EFBIG
    assert refused(os.pwrite, fd, b"xx", N - 1) == errno.EFBIG
    assert refused(os.ftruncate, fd, N + 1) == errno.EFBIG
    assert refused(os.posix_fallocate, fd, 0, N + 1) == errno.EFBIG
    os.posix_fallocate(fd, 0, N)
    os.close(fd)
    fd = os.open(name, os.O_WRONLY | os.O_APPEND)
    assert refused(os.write, fd, b"x") == errno.EFBIG
    os.close(fd)
    assert refused(os.truncate, name, 100) == errno.EINVAL
    assert refused(os.truncate, name, 0) == errno.EINVAL
    os.truncate(name, N)
    np.testing.assert_array_equal(stored(store), expected())
    # Bytes that are cut off and come back are zero, not the stored ones.
    fd = os.open(name, os.O_RDWR)
    os.ftruncate(fd, 64)
    os.ftruncate(fd, N)
    os.close(fd)
    cut = expected()[:16, :16].copy()
    cut[1:] = 0
    np.testing.assert_array_equal(stored(store), expected(c0_0=cut))


def test_a_hole_is_zeros(chunks, store):
    fd = os.open(chunks.path / "a/c/0/0", os.O_RDWR)
    subprocess.run(["fallocate", "-p", "-o", "64", "-l", "128", f"/proc/self/fd/{fd}"], pass_fds=[fd], check=True)
    os.close(fd)
    punched = expected()[:16, :16].copy()
    punched[1:3] = 0
    np.testing.assert_array_equal(stored(store), expected(c0_0=punched))


@pytest.mark.parametrize("how", ["before close", "after close"])
def test_times_that_a_writer_sets_do_not_make_a_chunk_an_older_one(how, tmp_path, mount):
    """`cp -p` and tar(1) set times. File systems give the inode number of a file that was replaced to the next file."""
    store, size = tmp_path / "store", 4000
    zarr.create_array(str(store), name="a", shape=(size,), chunks=(size,), dtype="u1", compressors=None, fill_value=0)
    made = mount(store, "--rw", "--view", "keys,chunks,arrays", "--files", "raw")
    chunk, same = made.path / "chunks/a/c/0", (1_000_000_000, 1_000_000_000)
    for n in range(1, 9):
        fd = os.open(chunk, os.O_WRONLY | os.O_TRUNC)
        os.write(fd, bytes([n]) * size)
        if how == "before close":
            os.utime(fd, same)
        os.close(fd)
        if how == "after close":
            os.utime(chunk, same)
        assert chunk.stat().st_mtime_ns == 10**18
        for path in ("chunks/a/c/0", "keys/a/c/0", "arrays/a.raw"):
            assert set((made.path / path).read_bytes()) == {n}, path
        # A version is used again when it is old enough to be trusted.
        time.sleep(0.03)


def test_an_open_file_of_a_group_shows_a_chunk_that_is_saved_before_it_is_read(tmp_path, mount):
    """The daemon's own directory in the store, in which a commit makes a name, is none of the group's."""
    store, size = tmp_path / "store", 1 << 20
    zarr.create_group(str(store)).create_array("a", shape=(8 * size,), chunks=(size,), dtype="i1", compressors=None, fill_value=0)
    made = mount(store, "--rw", "--view", "chunks,arrays", "--files", "nc")
    chunks, group = made.path / "chunks", made.path / "arrays/store.nc"
    for n in (1, 2):
        (chunks / "a/c/7").write_bytes(bytes([n]) * size)
    time.sleep(0.03)
    fd = os.open(group, os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
    assert os.pread(fd, 3, 0) == b"CDF"
    (chunks / "a/c/7").write_bytes(bytes([3]) * size)
    assert os.pread(fd, 4, group.stat().st_size - 4) == bytes([3]) * 4
    os.close(fd)
    assert os.listdir(store / ".zarr-mount") == [] and ".zarr-mount" not in os.listdir(group.parent)
    assert not (group.parent / ".zarr-mount").exists()


def test_a_chunk_that_is_only_emptied_stays_and_the_mount_says_so(chunks, store):
    """No call of `: > chunk` can fail, because others begin a file in the same way."""
    ok("sh", "-c", f": > {chunks.path}/a/c/0/0")
    told = chunks.path / ".zarr-mount/refused"
    until(lambda: "a/c/0/0: the changes are not saved: a/c/0/0: it does not have all its bytes" in told.read_text(), "why nothing was saved")
    np.testing.assert_array_equal(np.fromfile(chunks.path / "a/c/0/0", "<f4").reshape(16, 16), expected()[:16, :16])
    np.testing.assert_array_equal(stored(store), expected())


@pytest.mark.parametrize("length", [0, 1, N - 1])
def test_a_part_is_not_saved_and_close_says_so(length, chunks, store):
    name = chunks.path / "a/c/0/0"
    fd = os.open(name, os.O_WRONLY | os.O_TRUNC)
    os.write(fd, NEW.tobytes()[:length])
    if length == 0:
        # Shells close a duplicate before they write anything, so this close is no error yet.
        os.close(os.dup(fd))
        os.ftruncate(fd, 1)
    assert refused(os.fsync, fd) == errno.EIO
    assert refused(os.close, fd) == errno.EIO
    until(lambda: name.stat().st_size == N, "the stored chunk to be shown again")
    np.testing.assert_array_equal(stored(store), expected())
    assert "a/c/0/0: it does not have all its bytes" in (chunks.path / ".zarr-mount/refused").read_text()


def test_mapped_memory_that_is_written_after_close_is_saved(chunks, store):
    fd = os.open(chunks.path / "a/c/0/0", os.O_RDWR)
    mapped = mmap.mmap(fd, N)
    os.close(fd)
    mapped[:] = NEW.tobytes()
    mapped.close()
    until(lambda: np.array_equal(stored(store), expected(c0_0=NEW)), "the mapped numbers to be saved")


def test_fill_value_is_not_stored(mount, store):
    made = mount(store, *ARGS)
    fill = np.full(CHUNK, FILL, "<f4")
    inode = os.stat(made.path / "a/c/0/0").st_ino
    (made.path / "a/c/0/0").write_bytes(fill.tobytes())
    assert not (store / "a/c/0/0").exists()
    assert (made.path / "a/c/0/0").read_bytes() == fill.tobytes() and os.stat(made.path / "a/c/0/0").st_ino == inode
    (made.path / "a/c/0/0").write_bytes(NEW.tobytes())
    np.testing.assert_array_equal(stored(store), expected(c0_0=NEW))
    made.unmount()
    other = mount(store, *ARGS, "--write-empty-chunks")
    (other.path / "a/c/0/0").write_bytes(fill.tobytes())
    assert (store / "a/c/0/0").exists()


@pytest.mark.parametrize("codec,dtype,fill", [("vlen-utf8", "|O", 0), ("vlen-bytes", "|O", "YWI="), (None, "|S3", 0), (None, "<U2", 0)])
def test_a_fill_value_that_libraries_read_in_two_ways_is_stored(codec, dtype, fill, mount, tmp_path):
    store = tmp_path / "store"
    store.mkdir()
    filters = [{"id": codec}] if codec else None
    document = {"zarr_format": 2, "shape": [4], "chunks": [4], "dtype": dtype, "fill_value": fill, "order": "C",
                "compressor": None, "filters": filters}
    (store / ".zarray").write_text(json.dumps(document))
    made = mount(store, *ARGS)
    shown = (made.path / "0").read_bytes()
    (made.path / "0").write_bytes(shown)
    assert (store / "0").read_bytes() == shown


def test_a_chunk_that_is_removed_is_fill_value(chunks, store):
    reader = open(chunks.path / "a/c/0/0", "rb")
    os.unlink(chunks.path / "a/c/0/0")
    os.unlink(chunks.path / "a/c/0/0")
    assert not (store / "a/c/0/0").exists()
    assert reader.read() == expected()[:16, :16].tobytes()
    reader.close()
    np.testing.assert_array_equal(np.fromfile(chunks.path / "a/c/0/0", "<f4"), np.full(256, FILL, "<f4"))
    np.testing.assert_array_equal(stored(store), expected(c0_0=FILL))


def test_absent_chunks_can_be_hidden_and_are_made(mount, store):
    made = mount(store, *ARGS, "--missing", "hide")
    assert sorted(os.listdir(made.path / "a/c/3")) == ["0", "1", "2"]
    fd = os.open(made.path / "a/c/3/3", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o640)
    assert sorted(os.listdir(made.path / "a/c/3")) == ["0", "1", "2", "3"]
    os.write(fd, NEW.tobytes())
    os.close(fd)
    np.testing.assert_array_equal(stored(store), expected(c3_3=NEW))
    assert os.stat(store / "a/c/3/3").st_mode & 0o777 == 0o640
    assert refused(os.open, made.path / "a/c/3/4", os.O_WRONLY | os.O_CREAT) == errno.EINVAL
    assert refused(os.open, made.path / "a/c/3/3", os.O_WRONLY | os.O_CREAT | os.O_EXCL) == errno.EEXIST
    assert refused(os.mkdir, made.path / "a/c/9") == errno.EINVAL
    os.unlink(made.path / "a/c/3/3")
    assert refused(os.unlink, made.path / "a/c/3/3") == errno.ENOENT


def test_a_chunk_is_not_moved_away(chunks, store):
    # In these cases mv would remove the target, and still find it there.
    assert refused(os.rename, chunks.path / "a/c/0/0", chunks.path / "a/c/0/1") == errno.EPERM
    for target in ("a/c/0/x", "x"):
        assert refused(os.rename, chunks.path / "a/c/0/0", chunks.path / target) == errno.EXDEV
    # mv(1) copies then.
    assert run("mv", chunks.path / "a/c/0/0", chunks.path / "raw").returncode == 0
    assert (store / "raw").read_bytes() == expected()[:16, :16].tobytes()
    assert refused(os.rename, chunks.path / "a/zarr.json", chunks.path / "x") == errno.EXDEV
    np.testing.assert_array_equal(stored(store), expected(c0_0=FILL))


def test_scratch_stays_in_the_mount(chunks, store):
    folder = chunks.path / "a/c/0"
    scratch = folder / ".0.Ab12Cd"
    scratch.write_bytes(b"half")
    inode = scratch.stat().st_ino
    os.chmod(scratch, 0o600)
    assert ".0.Ab12Cd" in os.listdir(folder) and not (store / "a/c/0/.0.Ab12Cd").exists()
    assert scratch.read_bytes() == b"half" and scratch.stat().st_ino == inode
    with open(scratch, "ab") as file:
        file.write(b"more")
    assert scratch.read_bytes() == b"halfmore"
    assert refused(os.rename, scratch, folder / "0") == errno.EINVAL
    assert scratch.read_bytes() == b"halfmore"
    # Outside of arrays it becomes a file of the store, as everything there is.
    (folder / "note").write_bytes(b"note")
    os.rename(folder / "note", chunks.path / "note")
    assert (store / "note").read_bytes() == b"note" and "note" not in os.listdir(folder)
    os.rename(scratch, folder / "other")
    assert "other" in os.listdir(folder) and ".0.Ab12Cd" not in os.listdir(folder)
    (folder / "other").write_bytes(NEW.tobytes())
    os.utime(folder / "other", (1, 1000000000))
    os.rename(folder / "other", folder / "0")
    np.testing.assert_array_equal(stored(store), expected(c0_0=NEW))
    assert os.stat(store / "a/c/0/0").st_mtime == 1000000000 and os.stat(store / "a/c/0/0").st_mode & 0o777 == 0o600
    (folder / "third").write_bytes(b"x")
    os.unlink(folder / "third")
    assert "third" not in os.listdir(folder) and refused(os.stat, folder / "third") == errno.ENOENT
    # This one is gone with the mount.
    (folder / "left").write_bytes(b"x")


def test_a_link_makes_a_chunk_only_where_there_is_none(mount, store):
    """zarr-python makes objects in this way if they must not exist yet."""
    made = mount(store, *ARGS, "--missing", "hide")
    folder = made.path / "a/c/3"
    (folder / "3.partial").write_bytes(NEW.tobytes())
    os.link(folder / "3.partial", folder / "3")
    np.testing.assert_array_equal(stored(store), expected(c3_3=NEW))
    assert refused(os.link, folder / "3.partial", folder / "3") == errno.EEXIST
    assert refused(os.link, folder / "3.partial", folder / "2") == errno.EEXIST
    os.unlink(folder / "3.partial")
    assert sorted(os.listdir(folder)) == ["0", "1", "2", "3"] == sorted(os.listdir(store / "a/c/3"))


def merged():
    """The chunk 0.0 after an outsider has made its right half 4, and a program its first number -1."""
    both = expected()[:16, :16].copy()
    both[:, 8:] = 4
    both[0, 0] = -1
    return both


class TestOutsiders:
    """A program that writes to the store without the mount."""

    @pytest.fixture
    def change(self, store):
        def change(value):
            array = zarr.open_array(str(store / "a"), mode="r+")
            array[:16, 8:16] = value
        return change

    def test_a_blind_writer_is_merged(self, chunks, store, change):
        fd = os.open(chunks.path / "a/c/0/0", os.O_WRONLY)
        os.pwrite(fd, np.float32([-1]).tobytes(), 0)
        change(4)
        os.close(fd)
        both = merged()
        np.testing.assert_array_equal(stored(store), expected(c0_0=both))

    def test_a_writer_that_may_have_read_gets_the_error(self, chunks, store, change):
        fd = os.open(chunks.path / "a/c/0/0", os.O_RDWR)
        os.pwrite(fd, np.float32([-1]).tobytes(), 0)
        change(4)
        assert refused(os.close, fd) == errno.ESTALE
        outsiders = expected()[:16, :16].copy()
        outsiders[:, 8:] = 4
        np.testing.assert_array_equal(stored(store), expected(c0_0=outsiders))

    def test_conflict_merge_merges_there_too(self, mount, store, change):
        made = mount(store, *ARGS, "--conflict", "merge")
        fd = os.open(made.path / "a/c/0/0", os.O_RDWR)
        os.pwrite(fd, np.float32([-1]).tobytes(), 0)
        change(4)
        os.close(fd)
        both = merged()
        np.testing.assert_array_equal(stored(store), expected(c0_0=both))

    def test_an_absent_chunk_that_appears_is_merged(self, chunks, store):
        fd = os.open(chunks.path / "a/c/3/3", os.O_WRONLY)
        os.pwrite(fd, np.float32([-1]).tobytes(), 0)
        zarr.open_array(str(store / "a"), mode="r+")[48:, 56:] = 9
        os.close(fd)
        both = np.full(CHUNK, FILL, "<f4")
        both[:, 8:] = 9
        both[0, 0] = -1
        np.testing.assert_array_equal(stored(store), expected(c3_3=both))

    def test_a_chunk_that_is_removed_meanwhile_is_fill_value_where_nothing_was_written(self, chunks, store):
        fd = os.open(chunks.path / "a/c/0/0", os.O_WRONLY)
        os.pwrite(fd, np.float32([-1]).tobytes(), 0)
        os.unlink(store / "a/c/0/0")
        os.close(fd)
        both = np.full(CHUNK, FILL, "<f4")
        both[0, 0] = -1
        np.testing.assert_array_equal(stored(store), expected(c0_0=both))

    def test_fill_values_do_not_erase_a_write_by_another_program(self, chunks, store, change):
        fd = os.open(chunks.path / "a/c/0/0", os.O_RDWR)
        os.pwrite(fd, np.full(CHUNK, FILL, "<f4").tobytes(), 0)
        change(4)
        assert refused(os.close, fd) == errno.ESTALE
        assert (store / "a/c/0/0").exists()

    def test_the_mount_shows_the_merged_chunk(self, chunks, store, change):
        """This includes pages of the old chunk in the kernel: otherwise they would be written back, and undo the change."""
        name = chunks.path / "a/c/0/0"
        name.read_bytes()
        fd = os.open(name, os.O_WRONLY)
        os.pwrite(fd, np.float32([-1]).tobytes(), 0)
        change(4)
        os.close(fd)
        both = merged()
        assert name.read_bytes() == both.tobytes()

    def test_a_blind_writer_is_merged_into_a_write_in_place(self, chunks, store):
        fd = os.open(chunks.path / "a/c/0/0", os.O_WRONLY)
        os.pwrite(fd, np.float32([-1]).tobytes(), 0)
        other = (store / "a/c/0/1").read_bytes()
        with open(store / "a/c/0/0", "r+b") as file:
            file.write(other)
            file.truncate()
        os.close(fd)
        both = expected()[:16, 16:32].copy()
        both[0, 0] = -1
        np.testing.assert_array_equal(stored(store), expected(c0_0=both))

    def test_a_dropped_draft_is_not_shown(self, chunks, store):
        name = chunks.path / "a/c/3/3"
        fd = os.open(name, os.O_RDWR)
        os.pwrite(fd, NEW.tobytes(), 0)
        os.fsync(fd)
        os.unlink(store / "a/c/3/3")
        reader = open(name, "rb")
        assert reader.read() == np.full(CHUNK, FILL, "<f4").tobytes()
        os.pwrite(fd, np.float32([9]).tobytes(), 0)
        assert refused(os.fsync, fd) == errno.ESTALE and refused(os.close, fd) == errno.ESTALE
        assert name.read_bytes() == np.full(CHUNK, FILL, "<f4").tobytes()
        reader.close()

    def test_names_of_files_that_could_not_be_saved_are_used_again(self, mount, store):
        """Each file is opened again while its faulty draft is still being dropped."""
        m = mount(store, "--rw", "--view", "chunks", "--missing", "hide").path
        names = [m / f"a/c/{i}/{j}" for i in range(3) for j in range(3)]
        text = names[0].read_bytes()
        for name in names:
            name.unlink()
        for n in range(60):
            name = names[n % len(names)]
            os.close(os.open(name, os.O_CREAT | os.O_WRONLY))
            name.write_bytes(text)
            assert name.read_bytes() == text
            name.unlink()

    def test_a_file_is_made_where_one_could_not_be_saved(self, mount, store):
        m = mount(store, "--rw", "--view", "chunks", "--missing", "hide").path
        name = m / "a/c/0/0"
        text = name.read_bytes()
        name.unlink()
        with pytest.raises(OSError):
            name.write_bytes(text[1:])
        # The kernel knows the name still.
        name.write_bytes(text)
        assert name.read_bytes() == text

    def test_a_rename_that_must_not_replace_keeps_its_source(self, mount, store):
        """An outsider makes the chunk at any moment."""
        stop = threading.Event()

        def make():
            source, target = store / "source", store / "a/c/3/3"
            shutil.copy(store / "a/c/0/0", source)
            while not stop.is_set():
                os.link(source, target)
                time.sleep(0.0005)
                os.unlink(target)
                time.sleep(0.0005)

        libc, thread = ctypes.CDLL(None, use_errno=True), threading.Thread(target=make)
        made = mount(store, *ARGS, "--missing", "hide")
        scratch, target = made.path / "a/c/3/3.partial", made.path / "a/c/3/3"
        thread.start()
        try:
            for _ in range(300):
                scratch.write_bytes(NEW.tobytes())
                if libc.renameat2(-100, os.fsencode(scratch), -100, os.fsencode(target), 1):
                    assert ctypes.get_errno() == errno.EEXIST and scratch.read_bytes() == NEW.tobytes()
                else:
                    try:
                        os.unlink(target)
                    except FileNotFoundError:
                        pass
        finally:
            stop.set()
            thread.join()
            (store / "source").unlink(missing_ok=True)

    @pytest.mark.local
    def test_a_new_encoding_is_obeyed(self, chunks, store):
        """The document is replaced while a chunk is open: its bytes are never encoded in the old way."""
        fd = os.open(chunks.path / "a/c/0/0", os.O_WRONLY)
        os.write(fd, NEW.tobytes())
        shutil.rmtree(store / "a")
        make(store.parent / "other", compressors=None)
        shutil.copytree(store.parent / "other/a", store / "a")
        try:
            os.close(fd)
        except OSError as error:
            assert error.errno == errno.ESTALE
        found = stored(store)
        assert np.array_equal(found, expected()) or np.array_equal(found, expected(c0_0=NEW))


def test_a_handle_outlives_the_name_of_its_chunk(chunks, store):
    name = chunks.path / "a/c/0/0"
    replaced, removed = os.open(name, os.O_RDWR), os.open(chunks.path / "a/c/0/1", os.O_RDWR)
    (chunks.path / "a/c/0/x").write_bytes(NEW.tobytes())
    os.rename(chunks.path / "a/c/0/x", name)
    os.unlink(chunks.path / "a/c/0/1")
    for fd, old in ((replaced, expected()[:16, :16]), (removed, expected()[:16, 16:32])):
        assert os.pwrite(fd, b"abcd", 4) == 4
        assert os.pread(fd, N, 0) == old.tobytes()[:4] + b"abcd" + old.tobytes()[8:]
        os.close(fd)
    np.testing.assert_array_equal(stored(store), expected(c0_0=NEW, c0_1=FILL))


def test_a_handle_goes_along_with_the_directory_of_its_array(mount, store):
    made = mount(store, *ARGS)
    fd = os.open(made.path / "a/c/0/0", os.O_RDWR)
    os.pwrite(fd, b"abcd", 0)
    os.rename(made.path / "a", made.path / "b")
    os.pwrite(fd, b"efgh", 4)
    assert os.pread(fd, 8, 0) == b"abcdefgh"
    os.close(fd)
    assert stored(store, "b")[0, :2].tobytes() == b"abcdefgh"


def test_truncate_by_path_is_refused_while_others_read(chunks, store):
    with open(chunks.path / "a/c/0/0", "rb") as reader:
        for length in (0, 100):
            assert refused(os.truncate, chunks.path / "a/c/0/0", length) == errno.EINVAL
        os.truncate(chunks.path / "a/c/0/0", N)
        assert reader.read() == expected()[:16, :16].tobytes()
    np.testing.assert_array_equal(stored(store), expected())


def test_other_files_of_the_store_beside_chunks_are_no_scratch(chunks, store):
    (store / "a/notes.txt").write_text("old")
    assert run("sed", "-i", "s/old/new/", chunks.path / "a/notes.txt").returncode == 0
    assert (store / "a/notes.txt").read_text() == "new"
    assert os.listdir(chunks.path / "a").count("notes.txt") == 1
    (chunks.path / "a/notes.txt").write_text("newer")
    assert (store / "a/notes.txt").read_text() == "newer"


@pytest.mark.parametrize("view", ["chunks", "keys"])
def test_a_name_that_is_made_and_removed_all_the_time_is_never_forbidden(view, mount, store):
    """tensorstore makes and removes its lock files like that."""
    made = mount(store, "--rw", "--view", view, *(["--shards", "keep"] if view == "keys" else []))
    errors = set()

    def lock():
        for _ in range(400):
            try:
                os.close(os.open(made.path / "a/0.__lock", os.O_RDWR | os.O_CREAT))
                os.unlink(made.path / "a/0.__lock")
            except OSError as error:
                errors.add(errno.errorcode[error.errno])

    threads = [threading.Thread(target=lock) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors <= {"ENOENT", "ESTALE"}


def test_scratch_leaves_descriptors_for_others(mount, store):
    made = mount(store, *ARGS, prefix=("prlimit", "--nofile=256:256"))
    with pytest.raises(OSError) as caught:
        for n in range(400):
            (made.path / f"a/c/0/scratch{n}").write_bytes(b"x")
    assert caught.value.errno == errno.ENFILE
    (made.path / "a/c/0/0").write_bytes(NEW.tobytes())
    np.testing.assert_array_equal(stored(store), expected(c0_0=NEW))


def test_two_handles_share_a_chunk(chunks, store):
    name = chunks.path / "a/c/0/0"
    one, two = os.open(name, os.O_RDWR), os.open(name, os.O_RDWR)
    os.pwrite(one, np.float32([1]).tobytes(), 0)
    os.pwrite(two, np.float32([2]).tobytes(), 4)
    assert os.pread(one, 8, 0) == np.float32([1, 2]).tobytes()
    os.close(one)
    os.pwrite(two, np.float32([3]).tobytes(), 8)
    os.close(two)
    both = expected()[:16, :16].copy()
    both[0, :3] = [1, 2, 3]
    np.testing.assert_array_equal(stored(store), expected(c0_0=both))


def test_a_child_that_writes_a_part_is_no_error(chunks, store):
    name = chunks.path / "a/c/0/0"
    script = f"(head -c 100 {store.parent}/new; (tail -c +101 {store.parent}/new | head -c 200); tail -c +301 {store.parent}/new) > {name}"
    (store.parent / "new").write_bytes(NEW.tobytes())
    assert run("bash", "-c", script).returncode == 0
    np.testing.assert_array_equal(stored(store), expected(c0_0=NEW))


@pytest.mark.parametrize("conflict", ["refuse", "merge"])
@pytest.mark.parametrize("how", ["r+b", "r+b blind", "wb"])
def test_a_writer_that_has_read_a_chunk_and_empties_it_does_not_overrule_others(how, conflict, tmp_path, mount):
    array = zarr.create_group(str(tmp_path / "store")).create_array("a", shape=(64,), chunks=(64,), dtype="u1", fill_value=0)
    array[...] = 1
    made = mount(tmp_path / "store", "--rw", "--view", "chunks", "--conflict", conflict)
    path = made.path / "a/c/0"
    fd = os.open(path, os.O_RDWR | (os.O_TRUNC if how == "wb" else 0) if "blind" not in how else os.O_WRONLY)
    if how == "r+b":
        assert os.read(fd, 64) == bytes([1]) * 64
    time.sleep(0.02)
    array[...] = 77
    os.ftruncate(fd, 0)
    os.pwrite(fd, bytes([2]) * 64, 0)
    if how == "r+b" and conflict == "refuse":
        with pytest.raises(OSError) as told:
            os.close(fd)
        assert told.value.errno == errno.ESTALE
        assert (array[...] == 77).all()
    else:
        os.close(fd)
        assert (array[...] == 2).all()


@pytest.mark.parametrize("keys", [None, {"name": "v2", "separator": "."}, {"name": "v2", "separator": "/"}])
@pytest.mark.parametrize("shards", [None, (32, 32)])
@pytest.mark.local
def test_an_array_is_removed_with_the_chunks_that_it_has_left_over(keys, shards, tmp_path, mount):
    """Only the document was changed, so the store has chunks outside of the grid, which are not shown."""
    store = make(tmp_path / "store", chunk_key_encoding=keys, shards=shards)
    made = mount(store, *ARGS)
    document = json.loads((made.path / "a/zarr.json").read_text())
    (made.path / "a/zarr.json").write_text(json.dumps(document | {"shape": [16, 16]}))
    with pytest.raises(OSError):
        os.rmdir(made.path / "a/c/0" if keys is None else made.path / "a")
    ok("rm", "-r", made.path / "a")
    made.unmount()
    assert os.listdir(store) == ["zarr.json"]


def test_remains_of_an_array_stay_while_other_chunks_do(tmp_path, mount):
    store = make(tmp_path / "store")
    made = mount(store, *ARGS)
    text = (made.path / "a/zarr.json").read_text()
    (made.path / "a/zarr.json").write_text(json.dumps(json.loads(text) | {"shape": [16, 16]}))
    os.unlink(made.path / "a/zarr.json")
    for directory in ("a", "a/c", "a/c/0"):
        assert refused(os.rmdir, made.path / directory) == errno.ENOTEMPTY
    (made.path / "a/zarr.json").write_text(text)
    np.testing.assert_array_equal(stored(store), expected())


def test_an_array_that_another_program_has_made_anew_is_not_left_over(tmp_path, mount):
    store = make(tmp_path / "store")
    made = mount(store, *ARGS)
    document = json.loads((made.path / "a/zarr.json").read_text())
    (made.path / "a/zarr.json").write_text(json.dumps(document | {"shape": [16, 16]}))
    os.unlink(made.path / "a/zarr.json")
    shutil.rmtree(store / "a")
    array = zarr.open_group(str(store)).create_array("a", shape=SHAPE, chunks=CHUNK, dtype="<f4", fill_value=FILL)
    array[16:] = 7  # none of the chunks that the old grid has
    for directory in ("a/c/1", "a/c", "a"):
        with pytest.raises(OSError):
            os.rmdir(made.path / directory)
    assert (zarr.open_array(str(store / "a"), mode="r")[16:] == 7).all()


def test_a_chunk_that_was_made_as_long_as_it_is_to_be_is_not_saved_by_others(tmp_path, mount):
    """NumPy maps a new file in this way, and writes its bytes later."""
    store = make(tmp_path / "store")
    made = mount(store, *ARGS)
    with other_program() as sync, open(made.path / "a/c/0/0", "wb", buffering=0) as file:
        file.truncate(N)
        file.write(NEW.tobytes()[:N // 2])
        sync(made.path / "a/c/0/0")
        sync(made.path / "a/c")
        np.testing.assert_array_equal(stored(store), expected())
        file.write(NEW.tobytes()[N // 2:])
        sync(made.path / "a/c/0/0")
        np.testing.assert_array_equal(stored(store), expected(c0_0=NEW))
