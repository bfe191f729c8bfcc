"""Whole-array files of a store that changes: the next open sees the change, and an open handle never mixes versions."""
import errno
import itertools
import os
import re
import threading
import time

import numpy as np
import pytest
import zarr

from support import array_view, mounting, rewriting

SHAPE, CHUNK = (512, 1024), (64, 1024)  # 2 MiB in 8 rows of chunks, each more than the kernel reads ahead
ROW = CHUNK[0] * CHUNK[1] * 4


@pytest.fixture
def array(tmp_path):
    made = zarr.create_array(str(tmp_path / "s"), shape=SHAPE, chunks=CHUNK, dtype="<u4", fill_value=77)
    made[...] = values(1)
    return made


def values(seed):
    return np.random.default_rng(seed).integers(0, 1 << 32, SHAPE, "<u4")


def shown_at(mount, folder, *arguments):
    made = mount(folder / "s", "--view", "arrays", "--files", "raw", *arguments)
    return made, made.path / "s.raw"


def chunk(folder, row):
    return folder / "s/c" / str(row) / "0"


def other_blob(folder, row, seed=2):
    """The stored file of a chunk with other values."""
    other = zarr.create_array(str(folder / f"other{seed}"), shape=SHAPE, chunks=CHUNK, dtype="<u4", fill_value=77)
    other[...] = values(seed)
    return (folder / f"other{seed}/c" / str(row) / "0").read_bytes()


@pytest.mark.parametrize("replace", [rewriting.replace_by_rename, rewriting.replace_in_place], ids=lambda f: f.__name__)
def test_a_new_open_sees_a_replaced_chunk(mount, tmp_path, array, replace):
    _, path = shown_at(mount, tmp_path)
    assert path.read_bytes() == values(1).tobytes()
    replace(chunk(tmp_path, 3), other_blob(tmp_path, 3))
    expected = values(1)
    expected[192:256] = values(2)[192:256]
    assert path.read_bytes() == expected.tobytes()


def test_a_new_open_sees_a_deleted_and_a_new_chunk(mount, tmp_path, array):
    _, path = shown_at(mount, tmp_path)
    assert path.read_bytes() == values(1).tobytes()
    blob = chunk(tmp_path, 7).read_bytes()
    chunk(tmp_path, 7).unlink()
    expected = values(1)
    expected[448:] = 77
    assert path.read_bytes() == expected.tobytes()
    chunk(tmp_path, 7).write_bytes(blob)
    assert path.read_bytes() == values(1).tobytes()


@pytest.mark.parametrize("replace", [rewriting.replace_by_rename, rewriting.replace_in_place], ids=lambda f: f.__name__)
def test_an_open_handle_never_mixes(mount, tmp_path, array, replace):
    """Row 0 was read; then rows 0 and 5 are replaced: what the handle gives of 5 is old, or ESTALE."""
    blobs = {row: other_blob(tmp_path, row, 2 + row) for row in (0, 5)}
    made, path = shown_at(mount, tmp_path)
    fd = os.open(path, os.O_RDONLY)
    try:
        first = os.pread(fd, 4096, 0)
        assert first == values(1).tobytes()[:4096]
        for row, blob in blobs.items():
            replace(chunk(tmp_path, row), blob)
        assert_old_or_stale(fd, 5 * ROW, 4096)
    finally:
        os.close(fd)
    assert path.read_bytes()[5 * ROW : 6 * ROW] == values(7).tobytes()[5 * ROW : 6 * ROW]


def assert_old_or_stale(fd, offset, length):
    """A read that met ESTALE after some bytes, perhaps of the page cache, gives these alone."""
    try:
        got = os.pread(fd, length, offset)
    except OSError as error:
        assert error.errno == errno.ESTALE
    else:
        assert got and values(1).tobytes()[offset:].startswith(got), "new bytes in a handle that gave old ones"


def test_an_open_handle_may_move_on_while_nothing_that_it_gave_changed(mount, tmp_path, array):
    _, path = shown_at(mount, tmp_path)
    blob = other_blob(tmp_path, 5)
    fd = os.open(path, os.O_RDONLY)
    try:
        os.pread(fd, 4096, 0)
        rewriting.replace_by_rename(chunk(tmp_path, 5), blob)
        after = os.pread(fd, 4096, 5 * ROW)
        assert after in [values(seed).tobytes()[5 * ROW : 5 * ROW + 4096] for seed in (1, 2)]
        rewriting.replace_by_rename(chunk(tmp_path, 0), other_blob(tmp_path, 0, 3))
        rewriting.replace_by_rename(chunk(tmp_path, 3), other_blob(tmp_path, 3, 4))
        assert_old_or_stale(fd, 3 * ROW, 4096)
    finally:
        os.close(fd)


def test_a_chunk_replaced_under_a_handle_that_read_it(mount, tmp_path, array):
    _, path = shown_at(mount, tmp_path)
    fd = os.open(path, os.O_RDONLY)
    try:
        os.pread(fd, 10, 2 * ROW)
        rewriting.replace_by_rename(chunk(tmp_path, 2), other_blob(tmp_path, 2))
        assert_old_or_stale(fd, 2 * ROW, ROW)
    finally:
        os.close(fd)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("replace", [rewriting.replace_by_rename, rewriting.replace_in_place], ids=lambda f: f.__name__)
def test_every_handle_reads_one_version(mount, tmp_path, replace):
    """Arrays of one chunk and of one shard, rewritten as a whole under eight readers."""
    def quietly(root):
        quiet = mount(root, "--view", "arrays", "--files", "raw,npy")
        found = {p.name: p.read_bytes() for p in quiet.path.iterdir() if p.suffix != ".json"}
        quiet.unmount()
        return found

    rewritten = rewriting.prepare(tmp_path, "arrays", quietly)
    made = mount(rewritten.root, "--view", "arrays", "--files", "raw,npy")
    wrong, seen = rewriting.run(made, rewritten, replace, rounds=100)
    assert made.alive() and not wrong, wrong[:10]
    assert seen > 1, "no reader saw a second version: nothing was tested"


def test_a_resized_array_changes_its_size(mount, tmp_path, array):
    made, path = shown_at(mount, tmp_path, "--ttl", "0")
    assert path.stat().st_size == 512 * 4096
    array.resize((600, 1024))
    assert path.stat().st_size == 600 * 4096
    whole = path.read_bytes()
    assert whole[: 512 * 4096] == values(1).tobytes() and whole[512 * 4096 :] == np.full((88, 1024), 77, "<u4").tobytes()
    array.resize((64, 1024))
    assert path.stat().st_size == 64 * 4096 and path.read_bytes() == values(1)[:64].tobytes()


def test_changed_metadata_are_seen(mount, tmp_path, array):
    made, path = shown_at(mount, tmp_path, "--ttl", "0")
    assert "title" not in array_view.told(made.path, "s")["attributes"]
    array.attrs["title"] = "other"
    assert array_view.told(made.path, "s")["attributes"]["title"] == "other"


def test_new_and_deleted_arrays_come_and_go(mount, tmp_path):
    group = zarr.open_group(str(tmp_path / "s"), mode="w")
    group.create_array("a", shape=4, chunks=2, dtype="u1")
    made = mount(tmp_path / "s", "--view", "arrays", "--ttl", "0")
    assert sorted(os.listdir(made.path)) == ["a.json", "a.npy"]
    group.create_array("b", shape=4, chunks=2, dtype="u1")
    assert "b.npy" in os.listdir(made.path) and np.load(made.path / "b.npy").tolist() == [0] * 4
    del group["a"]
    assert sorted(os.listdir(made.path)) == ["b.json", "b.npy"]


def test_group_files_follow_their_arrays(mount, tmp_path):
    """A new array, a resized one, other attributes, a replaced chunk: each is in the next open."""
    group = zarr.open_group(str(tmp_path / "s"), mode="w")
    group.create_array("a", shape=(4, 6), chunks=(2, 6), dtype="<i4", compressors=None)[...] = 1
    made = mount(tmp_path / "s", "--view", "arrays", "--files", "nc,h5", "--ttl", "0")

    def dumped(variable):
        texts = [mounting.ok("ncdump", "-v", variable, made.path / f"s.{extension}") for extension in ("nc", "h5")]
        assert all((made.path / f"s.{e}").stat().st_size == len((made.path / f"s.{e}").read_bytes()) for e in ("nc", "h5"))
        return texts

    assert all("1, 1, 1, 1, 1, 1 ;" in text for text in dumped("a"))
    group.create_array("b", shape=3, chunks=3, dtype="<i2")[...] = 5
    assert all("b = 5, 5, 5 ;" in text for text in dumped("b"))
    group["a"].resize((8, 6))
    assert all(text.count("1, 1, 1, 1, 1, 1") == 4 and text.count("0, 0, 0, 0, 0, 0") == 4 for text in dumped("a"))
    group.attrs["title"] = "other"
    assert all(':title = "other"' in text for text in dumped("a"))
    rewriting.replace_by_rename(tmp_path / "s/a/c/1/0", np.full((2, 6), 9, "<i4").tobytes())
    assert all(text.count("9, 9, 9, 9, 9, 9") == 2 for text in dumped("a"))


def test_immutable_keeps_the_page_cache(mount, tmp_path, array):
    made, path = shown_at(mount, tmp_path, "--immutable")
    whole = path.read_bytes()
    before = made.stats()
    for _ in range(3):
        assert path.read_bytes() == whole
    after = made.stats()
    assert after["opens"]["kept"] - before["opens"]["kept"] == 3
    # The statistics themselves are read too; the file would take 16 reads.
    assert after["requests"]["read"] - before["requests"]["read"] <= 2
    assert after["store"]["fetches"] == before["store"]["fetches"]


def test_an_unreadable_chunk_is_eio_there_alone(mount, tmp_path, array):
    chunk(tmp_path, 6).write_bytes(chunk(tmp_path, 6).read_bytes()[:100])
    made, path = shown_at(mount, tmp_path)
    fd = os.open(path, os.O_RDONLY)
    try:
        with pytest.raises(OSError) as raised:
            os.pread(fd, 4096, 6 * ROW)
        assert raised.value.errno == errno.EIO
        assert os.pread(fd, 4096, 0) == values(1).tobytes()[:4096]
    finally:
        os.close(fd)
    assert "c/6/0" in made.log_text()


@pytest.mark.parametrize("format", ["jsonl", "nc5"])
def test_strings_of_a_shard_are_of_one_version(mount, tmp_path, format):
    """Four inner chunks of one shard, which a writer replaces while the file is read: all of one version, or ESTALE. After some versions,
    the writer waits until one was read, so that readers get some on a slow machine, too."""
    def write(folder, version):
        made = zarr.create_array(str(folder), shape=(40,), chunks=(10,), shards=(40,), dtype="string")
        made[...] = [f"{version:06} {'x' * (i % 7)}" for i in range(40)]
        return folder / "c/0"

    shard = write(tmp_path / "s", 0)
    blobs = [write(tmp_path / f"other{version}", version).read_bytes() for version in range(1, 9)]
    made = mount(tmp_path / "s", "--view", "arrays", "--files", format)
    path = made.path / f"s.{'jsonl' if format == 'jsonl' else 'nc'}"
    stop, was_read = threading.Event(), threading.Event()

    def replace():
        for n in itertools.count():
            if n % 8 == 0:
                was_read.clear()
                while not was_read.wait(.02):
                    if stop.is_set():
                        return
            if stop.wait(.02):
                return
            (tmp_path / "new").write_bytes(blobs[n % len(blobs)])
            os.replace(tmp_path / "new", shard)

    writer = threading.Thread(target=replace)
    writer.start()
    seen = set()
    try:
        deadline, reads = time.monotonic() + mounting.PATIENCE, 0
        while reads < 100 or len(seen) < 2:
            assert time.monotonic() < deadline, f"{reads} reads, {seen}"
            reads += 1
            try:
                data = path.read_bytes()
            except OSError as error:
                assert error.errno == errno.ESTALE
                continue
            versions = set(re.findall(rb"00000\d", data))
            assert len(versions) == 1, versions
            seen |= versions
            was_read.set()
    finally:
        stop.set()
        writer.join()
