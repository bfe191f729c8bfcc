"""Whole-array files as files: sizes before decoding, reads at any offset, times, refusals to write."""
import errno
import mmap
import os
import random

import numpy as np
import pytest

from support import array_samples, array_view, sample
from support.array_table import GROUPS, PER_ARRAY
from support.mounting import ok

SHAPE = (40, 30, 50)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """One layout of each kind, and arrays of four types, of which each format can hold at least one."""
    root = tmp_path_factory.mktemp("semantics") / "s"
    array_samples.write_layouts(root)
    group = array_samples.reopen(root)
    for name, dtype in {"words": "uint16", "bytes": "uint8", "reals": "float32", "flags": "bool"}.items():
        values = array_samples.random_values(np.dtype(dtype), SHAPE)
        group.create_array(name, shape=SHAPE, chunks=(7, 16, 20), dtype=dtype)[...] = values
    array_samples.write_strings(root, array_samples.STRING_VALUES)
    sample.give_times(root)
    return root


@pytest.fixture(scope="module")
def shown(store, module_mount):
    return module_mount(store, *array_view.everything("nc", "h5"))


@pytest.fixture(scope="module")
def materialised(shown, tmp_path_factory):
    """Name of each file -> its bytes, read from the first to the last."""
    return {path.name: path.read_bytes() for path in shown.path.iterdir()}


def test_a_listing_decodes_nothing_and_has_exact_sizes(store, mount):
    made = mount(store, *array_view.everything("nc", "h5"), "--strings", "0")
    # The size of a jsonl file depends on its strings. So does that of a group's file, which leaves strings out with `--strings 0`.
    lines = [line.split() for line in ok("ls", "-lR", "--ignore=*.jsonl", made.path).splitlines() if line.startswith("-")]
    assert len(lines) > 100
    assert array_view.decodes(made) == 0
    assert made.stats()["store"]["bytes"] < 1 << 20
    for line in lines:
        path = made.path / line[-1]
        assert int(line[4]) == len(path.read_bytes()), path.name
    assert array_view.decodes(made) > 0


def test_attributes(shown, materialised):
    paths = [shown.path / name for name in materialised]
    for path in paths:
        status = os.stat(path)
        assert status.st_size == len(materialised[path.name]), path.name
        assert status.st_blocks == -(-status.st_size // 512) and status.st_nlink == 1 and status.st_mode & 0o222 == 0, path.name
    assert len({os.stat(path).st_ino for path in paths}) == len(paths)


@pytest.mark.parametrize("format", ["npy", "raw", "nii", "json", "tif", "fits"])
def test_times_are_the_metadata_documents(shown, store, format):
    for name in ("rank3", "words", "sharded"):
        assert os.stat(shown.path / f"{name}.{format}").st_mtime_ns == os.stat(store / name / "zarr.json").st_mtime_ns


@pytest.mark.parametrize("attempt", [
    lambda d, f: os.open(f, os.O_RDWR), lambda d, f: os.truncate(f, 0), lambda d, f: os.unlink(f), lambda d, f: os.utime(f),
    lambda d, f: os.open(d / "new.npy", os.O_WRONLY | os.O_CREAT), lambda d, f: os.rename(f, d / "other.npy"),
], ids=["open", "truncate", "unlink", "utime", "create", "rename"])
def test_writes_are_erofs(shown, attempt):
    with pytest.raises(OSError) as raised:
        attempt(shown.path, shown.path / "rank3.npy")
    assert raised.value.errno == errno.EROFS


def test_everyday_programs(shown, materialised, tmp_path):
    path, whole = shown.path / "words.npy", materialised["words.npy"]
    ok("cp", "--sparse=always", path, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == whole
    for block, skip, count in [(1, 127, 3), (4097, 5, 2), (131071, 0, 2), (13, len(whole) // 13 - 2, 9)]:
        ok("dd", f"if={path}", f"of={tmp_path / 'part'}", f"bs={block}", f"skip={skip}", f"count={count}")
        assert (tmp_path / "part").read_bytes() == whole[block * skip : block * (skip + count)]
    ok("bash", "-c", f"tail -c 100 '{path}' > '{tmp_path}/tail'")
    assert (tmp_path / "tail").read_bytes() == whole[-100:]


def test_the_middle_by_mmap(store, mount, materialised):
    made = mount(store, *array_view.everything("nc", "h5"))
    for name in ("words.npy", "reals.tif", "reals.nii", "bytes.vti"):
        whole = materialised[name]
        with open(made.path / name, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
            middle = len(whole) // 2
            assert mapped[middle : middle + 9] == whole[middle : middle + 9]
            assert mapped[-1:] == whole[-1:]


def direct_read(fd, length, offset):
    """Reads past the page cache, so that the daemon gets a request for exactly this range."""
    buffer = mmap.mmap(-1, max(length, 1))
    return buffer[: os.preadv(fd, [memoryview(buffer)[:length]], offset)]


@pytest.mark.parametrize("format", [*PER_ARRAY, *(format for format in GROUPS if format != "h5ad")])
def test_any_slice_is_one_of_the_whole(store, mount, format):
    """The file is read as a whole and in slices by two mounts, so that slices are not answered from the cache of the first."""
    arguments = ["--view", "arrays", "--files", format]
    whole = {p.name: p.read_bytes() for p in mount(store, *arguments).path.iterdir() if p.suffix != ".json"}
    made, dice = mount(store, *arguments, "--cache-size", "256K"), random.Random(format)
    assert whole
    for name, data in whole.items():
        path = made.path / name
        cached, direct = os.open(path, os.O_RDONLY), os.open(path, os.O_RDONLY | os.O_DIRECT)
        try:
            for n in range(25):
                offset = dice.randrange(len(data) + 20)
                length = dice.choice([1, 2, 3, 7, 64, 4096, 5001, 70001])
                expected = data[offset : offset + length]
                assert direct_read(direct, length, offset) == expected, (name, offset, length, "direct")
                if n % 5 == 0:
                    assert os.pread(cached, length, offset) == expected, (name, offset, length)
        finally:
            os.close(cached)
            os.close(direct)


def test_seek_hole_does_not_lie(shown, materialised):
    for name in ("missing.npy", "nothing_stored.raw", "words.nii"):
        fd = os.open(shown.path / name, os.O_RDONLY)
        assert os.lseek(fd, 0, os.SEEK_DATA) == 0 and os.lseek(fd, 0, os.SEEK_HOLE) == len(materialised[name])
        os.close(fd)


def test_unchanged_files_keep_their_inodes(mount, tmp_path):
    """Inodes stay, however many other files were opened in between. `cp` skips a file that was replaced since it looked."""
    group, many = array_samples.reopen(tmp_path / "many"), 100
    for n in range(many):
        group.create_array(f"a{n}", shape=4, chunks=4, dtype="u1", fill_value=1)
    made = mount(tmp_path / "many", "--view", "arrays")
    before = {n: os.stat(made.path / f"a{n}.npy").st_ino for n in range(many)}
    for n in range(many):
        (made.path / f"a{n}.npy").read_bytes()
    ok("cp", "-r", made.path, tmp_path / "copy")
    assert {n: os.stat(made.path / f"a{n}.npy").st_ino for n in range(many)} == before
    assert len(os.listdir(tmp_path / "copy")) == 2 * many
