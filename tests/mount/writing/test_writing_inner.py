"""Writing inner chunks of shards. Each inner chunk is a file, and its shard in the store is written anew once."""
import errno
import gzip
import json
import mmap
import os
import shutil
import struct
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import tensorstore
import zarr
from zarr.codecs import BytesCodec, Crc32cCodec, GzipCodec, ShardingCodec, TransposeCodec, ZstdCodec

from support import corpus, readers
from support.workers.canonical import canonical, digest
from support.mounting import BINARY, force_away, held_lock, ok, opened_by_others, other_program, run, until

SHAPE, SHARD, INNER = (19, 17), (8, 6), (4, 3)
FILL = -1.0
DATA = np.arange(323, dtype="<f8").reshape(SHAPE)
N = 4 * 3 * 8
VIEWS = ["chunks", "keys"]

KINDS = {
    "end": {},
    "start": {"index_location": "start"},
    "index without checksum": {"index_codecs": [BytesCodec(endian="little")]},
    "big-endian index": {"index_codecs": [BytesCodec(endian="big"), Crc32cCodec()]},
    "gzip": {"codecs": [BytesCodec(), GzipCodec(level=1)]},
    "zstd and checksum": {"codecs": [BytesCodec(), ZstdCodec(level=3), Crc32cCodec()]},
    "big-endian": {"codecs": [BytesCodec(endian="big")]},
    "transposed chunks": {"codecs": [TransposeCodec(order=(1, 0)), BytesCodec()]},
    "nested": {"codecs": [ShardingCodec(chunk_shape=(2, 3), codecs=[BytesCodec(), GzipCodec(level=1)])]},
    "nested, start": {"codecs": [ShardingCodec(chunk_shape=(2, 1), index_location="start")], "index_location": "start"},
}
# tensorstore refuses codecs around a shard, so only zarr-python reads these arrays.
AROUND = {"checksum around": {"compressors": [Crc32cCodec()]}, "gzip around": {"compressors": [GzipCodec(level=1)]},
          "transposed shard": {"filters": [TransposeCodec(order=(1, 0))]}}


def make(path, data=DATA, filters=None, compressors=None, **options):
    # zarr-python checks the shape of inner chunks before it transposes it.
    inner = (2, 2) if filters else INNER
    codec = ShardingCodec(chunk_shape=inner, **options)
    array = zarr.create_array(str(path), name="a", shape=SHAPE, chunks=SHARD, dtype="<f8", serializer=codec, filters=filters, compressors=compressors, fill_value=FILL)
    if data is not None:
        array[:] = data
    return path


def make_without_shards(path):
    zarr.create_array(str(path), name="a", shape=SHAPE, chunks=INNER, dtype="<f8", compressors=None, fill_value=FILL)[...] = DATA
    return path


def stored(store, by_both=True):
    found = zarr.open_array(str(store / "a"), mode="r")[...]
    if by_both:
        again = tensorstore.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{store}/a/"}}).result()[...].read().result()
        np.testing.assert_array_equal(found, again)
    return found


def part(array, shape, index):
    """The chunk of this index, with fill values beyond the edge."""
    chunk = np.full(shape, FILL)
    inside = array[tuple(slice(i * n, (i + 1) * n) for i, n in zip(index, shape))]
    chunk[tuple(slice(0, n) for n in inside.shape)] = inside
    return chunk


def put(array, shape, index, chunk):
    here = tuple(slice(i * n, (i + 1) * n) for i, n in zip(index, shape))
    array[here] = chunk[tuple(slice(0, n) for n in array[here].shape)]


def inner_shape(kind):
    return {"nested": (2, 3), "nested, start": (2, 1), "transposed shard": (2, 2)}.get(kind, INNER)


@pytest.mark.parametrize("data", [DATA, None], ids=["there", "new"])
@pytest.mark.parametrize("kind", [*KINDS, *AROUND])
def test_chunks_are_written_one_by_one(kind, data, tmp_path, mount):
    store = make(tmp_path / "store", data, **(KINDS | AROUND)[kind])
    shape = inner_shape(kind)
    counts = [-(-n // c) for n, c in zip(SHAPE, shape)]
    made = mount(store, "--rw", "--view", "chunks")
    expected = np.full(SHAPE, FILL) if data is None else DATA.copy()
    rng = np.random.default_rng(5)
    every = [(i, j) for i in range(counts[0]) for j in range(counts[1])]
    for number, index in enumerate(rng.permutation(every)[:25]):
        chunk = rng.random(shape)
        name = made.path / "a/c" / str(index[0]) / str(index[1])
        if number % 3:
            name.write_bytes(chunk.tobytes())
        else:
            with open(name, "r+b") as file:
                file.seek(8)
                file.write(chunk.tobytes()[8:16])
            whole = part(expected, shape, index)
            whole.flat[1] = chunk.flat[1]
            chunk = whole
        put(expected, shape, index, chunk)
        shown = np.frombuffer(name.read_bytes(), "<f8").reshape(shape)
        again = np.full(SHAPE, FILL)
        put(again, shape, index, shown)
        np.testing.assert_array_equal(part(again, shape, index), part(expected, shape, index))
    made.sync()
    np.testing.assert_array_equal(stored(store, kind in KINDS), expected)
    made.unmount()
    assert not (store / ".zarr-mount").exists()
    np.testing.assert_array_equal(stored(store, kind in KINDS), expected)


def test_one_shard_is_written_once(tmp_path, mount):
    store = make(tmp_path / "store", None)
    made = mount(store, "--rw", "--view", "chunks")
    for i in range(2):
        for j in range(2):
            assert not (store / "a/c/0/0").exists()
            (made.path / f"a/c/{i}/{j}").write_bytes(np.full(INNER, 10 * i + j, "<f8").tobytes())
    until((store / "a/c/0/0").exists, "the shard, all of whose chunks were written")
    assert (store / "a/c/0/0").stat().st_size == 4 * N + 4 * 16 + 4
    until(lambda: not (store / ".zarr-mount/journal").exists() or not os.listdir(store / ".zarr-mount/journal"), "the end of the journal")
    writes = json.loads((made.path / ".zarr-mount/stats.json").read_text())["writes"]
    assert (writes["packed"], writes["staged"], writes["saved"]) == (1, 0, 4)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.local
def test_staged_chunks_are_shown(view, tmp_path, mount):
    store = make(tmp_path / "store", codecs=[BytesCodec(), GzipCodec(level=1)])
    made = mount(store, "--rw", "--view", view)
    other = made.path / "a/c/0/0"
    name = made.path / "a/c/0/1"
    before = other.read_bytes()
    new = part(DATA + 1000, INNER, (0, 1)).tobytes() if view == "chunks" else other.read_bytes()
    name.write_bytes(new)
    assert (store / ".zarr-mount/journal").is_dir()
    assert name.read_bytes() == new and name.stat().st_size == len(new)
    assert other.read_bytes() == before
    assert sorted(os.listdir(made.path / "a/c/0")) == [str(i) for i in range(6)]
    # A listing needs the index of the shard, so the shard was written first.
    assert not os.listdir(store / ".zarr-mount/journal")
    assert name.read_bytes() == new
    expected = DATA.copy()
    put(expected, INNER, (0, 1), part(DATA + 1000, INNER, (0, 1)) if view == "chunks" else part(DATA, INNER, (0, 0)))
    np.testing.assert_array_equal(stored(store), expected)


def test_all_views_see_it_at_once(tmp_path, mount):
    store = make(tmp_path / "store", codecs=[BytesCodec(), GzipCodec(level=1)])
    made = mount(store, "--rw", "--view", "keys,chunks,arrays")
    new = part(DATA + 1000, INNER, (0, 1))
    (made.path / "chunks/a/c/0/1").write_bytes(new.tobytes())
    assert gzip.decompress((made.path / "keys/a/c/0/1").read_bytes()) == new.tobytes()
    expected = DATA.copy()
    put(expected, INNER, (0, 1), new)
    np.testing.assert_array_equal(np.load(made.path / "arrays/a.npy"), expected)


def test_all_views_see_the_first_chunk_of_a_directory_at_once(tmp_path, mount):
    """The store has neither the shard nor its directory before the shard is packed."""
    store = make(tmp_path / "store", data=None)
    made = mount(store, "--rw", "--view", "keys,chunks,arrays")
    new = part(DATA, INNER, (2, 1))
    assert not (made.path / "keys/a/c/2").exists() and not (store / "a/c").exists()
    (made.path / "chunks/a/c/2/1").write_bytes(new.tobytes())
    assert (made.path / "keys/a/c/2/1").read_bytes() == new.tobytes()
    found = zarr.open_array(str(made.path / "keys/a"), mode="r")[8:12, 3:6]
    np.testing.assert_array_equal(found, new)
    os.unlink(made.path / "chunks/a/c/2/1")
    made.sync()
    assert not (store / "a/c").exists() or not any(path.is_file() for path in (store / "a/c").rglob("*"))


@pytest.mark.parametrize("shards", ["shards", "none"])
@pytest.mark.parametrize("view", VIEWS)
def test_a_document_that_is_spelled_otherwise_meanwhile_keeps_its_open_chunks(view, shards, tmp_path, mount):
    """Another program sets an attribute, with a library that puts other spaces into documents."""
    store = (make if shards == "shards" else make_without_shards)(tmp_path / "store")
    made = mount(store, "--rw", "--view", view)
    document, chunk, new = store / "a/zarr.json", made.path / "a/c/0/0", part(DATA + 1000, INNER, (0, 0))
    handles = [os.open(chunk, flags) for flags in (os.O_RDWR, os.O_WRONLY)]
    for n, fd in enumerate(handles):
        assert n or os.pread(fd, 8, 0) == DATA[:1, :1].tobytes()
        text = json.dumps(json.loads(document.read_text()) | {"attributes": {"n": n}}, indent=n or None)
        (store / "new.json").write_text(text)
        os.rename(store / "new.json", document)
        os.pwrite(fd, new.tobytes()[n * 48:n * 48 + 48], n * 48)
        os.fsync(fd)
        os.close(fd)
    expected = DATA.copy()
    put(expected, INNER, (0, 0), new)
    np.testing.assert_array_equal(stored(store), expected)


@pytest.mark.parametrize("view", VIEWS)
def test_writes_to_mapped_memory_are_saved_when_their_own_file_is_closed(view, tmp_path, mount):
    """The kernel writes the pages through any handle that has the file mapped, here the one that stays open."""
    store = make(tmp_path / "store")
    made = mount(store, "--rw", "--view", view)
    chunk, new = made.path / "a/c/0/0", part(DATA + 1000, INNER, (0, 0)).tobytes()
    first = os.open(chunk, os.O_RDWR)
    mapped = mmap.mmap(first, N)
    other = os.open(chunk, os.O_RDWR)
    stays = mmap.mmap(other, N)
    mapped[:] = new
    mapped.close()
    os.close(first)
    assert json.loads((made.path / ".zarr-mount/stats.json").read_text())["writes"]["drafts"] == 0
    made.sync()
    expected = DATA.copy()
    put(expected, INNER, (0, 0), part(DATA + 1000, INNER, (0, 0)))
    np.testing.assert_array_equal(stored(store), expected)
    assert stays[:] == new
    stays.close()
    os.close(other)


@pytest.mark.parametrize("view, options", [("keys", ()), ("chunks", ("--missing", "hide"))])
@pytest.mark.parametrize("shards", ["shards", "none"])
def test_a_chunk_is_made_while_a_reader_has_one_open_that_became_nothing(shards, view, options, tmp_path, mount):
    store = (make if shards == "shards" else make_without_shards)(tmp_path / "store")
    made = mount(store, "--rw", "--view", view, *options)
    chunk, new = made.path / "a/c/0/0", part(DATA + 1000, INNER, (0, 0))
    os.unlink(chunk)
    made.sync()
    maker = os.open(chunk, os.O_RDWR | os.O_CREAT)
    reader = os.open(chunk, os.O_RDONLY)
    os.close(maker)
    until(lambda: not chunk.exists(), "the file that became nothing to be gone")
    chunk.write_bytes(new.tobytes())
    assert chunk.read_bytes() == new.tobytes()
    os.close(reader)
    made.sync()
    expected = DATA.copy()
    put(expected, INNER, (0, 0), new)
    np.testing.assert_array_equal(stored(store), expected)


def test_directories_are_synced_that_the_store_does_not_have(tmp_path, mount):
    """Absent chunks are shown in them. tensorstore syncs a directory after each change of a name in it."""
    store = make(tmp_path / "store", data=None)
    made = mount(store, "--rw", "--view", "chunks", "--durability", "close")
    for name in ("a/c/1", "a/c", "a", "."):
        fd = os.open(made.path / name, os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)
    assert not (store / "a/c").exists()
    chunk = made.path / "a/c/1/1"
    fd = os.open(chunk.parent, os.O_RDONLY)
    for content in (np.full(INNER, FILL).tobytes(), part(DATA, INNER, (1, 1)).tobytes()):
        chunk.write_bytes(content)
        os.fsync(fd)
        os.unlink(chunk)
        os.fsync(fd)
    os.close(fd)
    array = tensorstore.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": str(made.path / "a")}}, open=True).result()
    array[:, 0:6] = FILL
    array[8:16, :] = DATA[8:16]
    made.sync()
    expected = np.full(SHAPE, FILL)
    expected[8:16] = DATA[8:16]
    np.testing.assert_array_equal(stored(store), expected)


@pytest.mark.parametrize("view", VIEWS)
def test_a_handle_that_writes_anew_saves_the_bytes_that_others_left_to_it(view, tmp_path, mount):
    """A program that has made a file empty gets an error, even if another one has written the bytes."""
    store = make(tmp_path / "store")
    made = mount(store, "--rw", "--view", view)
    chunk, new = made.path / "a/c/0/0", part(DATA + 1000, INNER, (0, 0)).tobytes()

    def write(content):
        emptied = os.open(chunk, os.O_RDWR | os.O_TRUNC)
        other = os.open(chunk, os.O_WRONLY)
        os.write(other, content)
        os.close(other)
        os.close(emptied)

    write(new)
    assert json.loads((made.path / ".zarr-mount/stats.json").read_text())["writes"]["drafts"] == 0
    if view == "chunks":
        with pytest.raises(OSError) as caught:
            write(new[:8])
        assert caught.value.errno == errno.EIO
    made.sync()
    expected = DATA.copy()
    put(expected, INNER, (0, 0), part(DATA + 1000, INNER, (0, 0)))
    np.testing.assert_array_equal(stored(store), expected)


@pytest.mark.parametrize("view", VIEWS)
def test_untouched_chunks_stay_the_same_files(view, tmp_path, mount):
    store = make(tmp_path / "store")
    made = mount(store, "--rw", "--view", view)
    names = [made.path / f"a/c/{i}/{j}" for i in range(2) for j in range(2)]
    written, untouched = names[0], names[1:]
    look = lambda path: (lambda found: (found.st_ino, found.st_mtime_ns, found.st_size))(path.stat())
    before = [look(path) for path in untouched]
    bytes_before = [path.read_bytes() for path in untouched]
    reads = lambda: json.loads((made.path / ".zarr-mount/stats.json").read_text())["requests"]["read"]
    for round in range(3):
        written.write_bytes(np.full(INNER, round, "<f8").tobytes())
        own = look(written)
        assert [look(path) for path in untouched] == before
        made.sync()
        assert look(written) == own and [look(path) for path in untouched] == before
        count = reads()
        assert [path.read_bytes() for path in untouched] == bytes_before
        # The kernel still has the pages of the chunks: only stats.json was read.
        assert reads() - count <= 2
    # A chunk that another program has written is another file.
    array = zarr.open_array(str(store / "a"), mode="r+")
    array[4:8, 0:3] = 5
    until(lambda: look(names[2]) != before[1], "another file")
    assert names[2].read_bytes() == np.full(INNER, 5.0).tobytes()


@pytest.mark.parametrize("view", VIEWS)
def test_chunks_are_erased(view, tmp_path, mount):
    store = make(tmp_path / "store")
    made = mount(store, "--rw", "--view", view, "--missing", "hide") if view == "chunks" else mount(store, "--rw", "--view", view)
    expected = DATA.copy()
    os.unlink(made.path / "a/c/0/1")
    assert not (made.path / "a/c/0/1").exists()
    with pytest.raises(FileNotFoundError):
        os.unlink(made.path / "a/c/0/1")
    made.sync()
    put(expected, INNER, (0, 1), np.full(INNER, FILL))
    np.testing.assert_array_equal(stored(store), expected)
    for name in ("0/0", "1/0", "1/1"):
        os.unlink(made.path / "a/c" / name)
    until(lambda: not (store / "a/c/0/0").exists(), "the end of a shard without chunks")
    expected[:8, :6] = FILL
    np.testing.assert_array_equal(stored(store), expected)
    # All chunks of a directory of the view, whose directory in the store also has other chunks.
    shutil.rmtree(made.path / "a/c/2")
    made.sync()
    expected[8:12] = FILL
    np.testing.assert_array_equal(stored(store), expected)
    shutil.rmtree(made.path / "a")
    assert not (store / "a").exists()


@pytest.mark.parametrize("view", ["keys", "chunks", "chunks --missing hide"])
@pytest.mark.parametrize("shards", [None, (2, 4, 2)])
@pytest.mark.parametrize("shape", [(3, 4, 4), (3, 4, 0), (0, 4, 4)])
def test_an_array_of_three_dimensions_is_removed(shape, shards, view, tmp_path, mount):
    """The array is removed, too, if its document is removed first, or if zarr-python left empty directories after a resize."""
    store = tmp_path / "store"
    group = zarr.create_group(str(store))
    made = mount(store, "--rw", "--view", *view.split())
    for first in ([], ["zarr.json"]):
        array = group.create_array("a", shape=(3, 4, 4), chunks=(1, 2, 1), shards=shards, dtype="i4", compressors=None)
        array[...] = 1
        array.resize(shape)
        for name in first:
            (made.path / "a" / name).unlink()
        shutil.rmtree(made.path / "a")
        assert not (store / "a").exists() and os.listdir(made.path) == ["zarr.json"]


@pytest.mark.parametrize("view", ["keys", "chunks --missing hide", "keys --as v2"])
@pytest.mark.parametrize("shape,shard,chunks", [((4, 1), (2, 2), [(0, 0), (2, 0)]), ((4, 4), (2, 2), [(1, 3), (3, 0)]), ((6, 4), (3, 4), [(0, 0), (1, 1), (4, 3)]),
                                                ((4, 4), (2, 2), None)])
@pytest.mark.parametrize("files_first", [False, True])
def test_an_array_with_few_inner_chunks_is_removed(files_first, shape, shard, chunks, view, tmp_path, mount):
    """A directory of the view has chunks whose shards are in several directories of the store."""
    store = tmp_path / "store"
    array = zarr.create_group(str(store)).create_array("a", shape=shape, chunks=(1, 1), shards=shard, dtype="u1", fill_value=0, compressors=None)
    if chunks is None:
        array[...] = 1
    for place in chunks or []:
        array[place] = 1
    m = mount(store, "--rw", "--view", *view.split()).path
    if files_first:
        ok("find", m / "a", "-type", "f", "-delete")
    ok("rm", "-r", m / "a")
    assert not (store / "a").exists()


@pytest.mark.parametrize("by", ["the mount", "the directory", "a reader", "a writer"])
@pytest.mark.parametrize("shards", ["expand", "keep"])
@pytest.mark.parametrize("view", VIEWS)
def test_a_half_written_chunk_is_not_saved_by_the_sync_of_another_program(view, shards, by, tmp_path, mount):
    store = make(tmp_path / "store", codecs=[BytesCodec()])
    if shards == "keep" and view == "chunks":
        pytest.skip("the chunks view does not write shards that are kept whole")
    m = mount(store, "--rw", "--view", view, "--shards", shards).path
    name = m / "a/c/0/0"
    text = name.read_bytes()
    with other_program() as sync, open(name, "wb", buffering=0) as file:
        file.write(text[:len(text) // 2])
        sync(*{"the mount": (m / ".zarr-mount/sync", os.O_RDONLY), "the directory": (m / "a/c/0", os.O_RDONLY),
               "a reader": (name, os.O_RDONLY), "a writer": (name, os.O_WRONLY)}[by])
        if by != "the mount" or view == "chunks":
            np.testing.assert_array_equal(stored(store), DATA)
        # A sync of the file itself saves the bytes, if they are a valid chunk.
        file.write(text[len(text) // 2:][::-1])
        os.fsync(file.fileno())
        assert name.read_bytes() == text[:len(text) // 2] + text[len(text) // 2:][::-1]
    if shards == "expand":
        assert stored(store)[0, 0] == 0 and stored(store)[3, 2] != DATA[3, 2]
    else:
        assert (store / "a/c/0/0").read_bytes() == name.read_bytes()


@pytest.mark.parametrize("by", ["rename", "unlink", "write"])
@pytest.mark.parametrize("view", VIEWS)
def test_a_file_that_is_synced_after_it_lost_its_name_leaves_nothing_older_in_the_shard(view, by, tmp_path, mount):
    store = make(tmp_path / "store", codecs=[BytesCodec()])
    m = mount(store, "--rw", "--view", view, "--missing", "hide").path
    name = m / "a/c/0/0"
    fd = os.open(name, os.O_RDWR | os.O_TRUNC)
    os.write(fd, np.full(INNER, 2.0).tobytes())
    os.close(os.dup(fd))
    if by == "unlink":
        name.unlink()
    else:
        other = m / "a/c/0/other" if by == "rename" else name
        other.write_bytes(np.full(INNER, 3.0).tobytes())
        if by == "rename":
            os.rename(other, name)
    os.fsync(fd)
    assert (stored(store)[:4, :3] == (FILL if by == "unlink" else 3)).all()
    os.close(fd)


def test_closed_chunks_are_in_the_store_after_an_unmount(tmp_path, mount):
    store = make(tmp_path / "store")
    for n in range(10):
        made = mount(store, "--rw", "--view", "chunks")
        (made.path / "a/c/0/1").write_bytes(np.full(INNER, n).astype("<f8").tobytes())
        ok(BINARY, "--unmount", made.path)
        assert zarr.open_array(str(store / "a"), mode="r")[0, 3] == n
        made.wait_for_the_end()


def test_fill_values_are_not_stored(tmp_path, mount):
    store = make(tmp_path / "store")
    made = mount(store, "--rw", "--view", "chunks")
    for i in range(2):
        for j in range(2):
            (made.path / f"a/c/{i}/{j}").write_bytes(np.full(INNER, FILL).tobytes())
    until(lambda: not (store / "a/c/0/0").exists(), "the end of the shard")
    assert (stored(store)[:8, :6] == FILL).all() and (made.path / "a/c/0/0").read_bytes() == np.full(INNER, FILL).tobytes()


def test_an_outsider_is_merged_by_slots(tmp_path, mount):
    store = make(tmp_path / "store")
    made = mount(store, "--rw", "--view", "chunks")
    (made.path / "a/c/0/0").write_bytes(np.full(INNER, 7.0).tobytes())
    (made.path / "a/c/0/1").write_bytes(np.full(INNER, 8.0).tobytes())
    # Another program writes another chunk of the shard, and one of the chunks that the mount has written.
    array = zarr.open_array(str(store / "a"), mode="r+")
    array[4:8, 0:3] = 50
    array[0:4, 3:6] = 60
    made.sync()
    expected = DATA.copy()
    expected[:4, :3], expected[4:8, :3], expected[:4, 3:6] = 7, 50, 60
    np.testing.assert_array_equal(stored(store), expected)
    assert (made.path / "a/c/0/1").read_bytes() == np.full(INNER, 60.0).tobytes()
    writes = json.loads((made.path / ".zarr-mount/stats.json").read_text())["writes"]
    assert writes["lost"] == 1


@pytest.mark.parametrize("value", [7.0, FILL])
def test_a_sync_gets_the_error_of_a_loss(value, tmp_path, mount):
    store = make(tmp_path / "store")
    made = mount(store, "--rw", "--view", "chunks")
    file = os.open(made.path / "a/c/0/0", os.O_WRONLY)
    again = os.dup(file)
    os.pwrite(file, np.full(INNER, value).tobytes(), 0)
    os.close(again)  # which stages it
    zarr.open_array(str(store / "a"), mode="r+")[0:4, 0:3] = 60
    with pytest.raises(OSError) as told:
        os.fsync(file)
    assert told.value.errno == errno.ESTALE
    os.close(file)
    assert (stored(store)[:4, :3] == 60).all()


def test_a_reader_of_another_chunk_is_not_disturbed(tmp_path, mount):
    """A handle that has read may write, even if another program changes another chunk of the shard."""
    store = make(tmp_path / "store")
    made = mount(store, "--rw", "--view", "chunks")
    with open(made.path / "a/c/0/0", "r+b") as file:
        assert file.read(8) == DATA[:1, :1].tobytes()
        zarr.open_array(str(store / "a"), mode="r+")[4:8, 0:3] = 50
        file.seek(16)
        file.write(np.float64(99).tobytes())
    made.sync()
    expected = DATA.copy()
    expected[4:8, 0:3], expected[0, 2] = 50, 99
    np.testing.assert_array_equal(stored(store), expected)


def test_an_open_chunk_stays_the_same_file_when_another_one_changes(tmp_path, mount):
    store = make(tmp_path / "store")
    made = mount(store, "--rw", "--view", "chunks", "--ttl", "0")
    name = made.path / "a/c/0/0"
    expected = DATA.copy()
    with open(name, "r+b", buffering=0) as file:
        inode = name.stat().st_ino
        zarr.open_array(str(store / "a"), mode="r+")[4:8, 0:3] = 50
        expected[4:8, 0:3] = 50
        assert name.stat().st_ino == inode
        file.write(np.float64(7).tobytes())
        expected[0, 0] = 7
        # A program that opens the chunk by its name sees the bytes that the handle has written.
        assert name.read_bytes() == part(expected, INNER, (0, 0)).tobytes()
    made.sync()
    np.testing.assert_array_equal(stored(store), expected)


@pytest.mark.parametrize("durability", ["never", "close"])
def test_closed_chunks_are_in_the_journal_or_in_the_shard(durability, tmp_path, mount):
    store = make(tmp_path / "store")
    made = mount(store, "--rw", "--view", "chunks", "--durability", durability)
    expected = DATA.copy()
    for i in range(3):
        (made.path / f"a/c/0/{i}").write_bytes(np.full(INNER, i + 7.0).tobytes())
        expected[0:4, 3 * i:3 * i + 3] = i + 7
    made.unmount()
    np.testing.assert_array_equal(stored(store), expected)


@pytest.mark.parametrize("by", ["mount", "recover"])
def test_a_killed_daemon_loses_nothing(by, tmp_path, mount):
    store = make(tmp_path / "store")
    made = mount(store, "--rw", "--view", "chunks")
    (made.path / "a/c/0/0").write_bytes(np.full(INNER, 7.0).tobytes())
    (made.path / "a/c/4/5").write_bytes(np.full(INNER, 8.0).tobytes())
    (made.path / "a/c/0/0").write_bytes(np.full(INNER, 9.0).tobytes())
    os.truncate(made.path / "a/c/1/1", N)
    os.unlink(made.path / "a/c/1/1")
    made.kill()
    force_away(made.path)
    expected = DATA.copy()
    np.testing.assert_array_equal(stored(store), expected)
    waiting = mount(store, "--view", "chunks")
    assert (waiting.path / "a/c/0/0").read_bytes() == part(DATA, INNER, (0, 0)).tobytes()
    waiting.unmount()
    if by == "mount":
        mount(store, "--rw", "--view", "chunks").unmount()
    else:
        for said in ("3 chunks saved", "nothing was left"):
            done = subprocess.run([BINARY, "--recover", store], capture_output=True, text=True, check=True)
            assert said in done.stdout, done
    expected[:4, :3], expected[4:8, 3:6], expected[16:20, 15:18] = 9, FILL, 8
    np.testing.assert_array_equal(stored(store), expected)
    assert not (store / ".zarr-mount").exists()


@pytest.mark.parametrize("by", ["mount", "recover"])
def test_a_staging_directory_has_the_waiting_chunks(by, tmp_path, mount):
    store, staging = make(tmp_path / "store"), tmp_path / "staging"
    staging.mkdir()
    made = mount(store, "--rw", "--view", "chunks", "--staging", staging)
    (made.path / "a/c/0/0").write_bytes(np.full(INNER, 7.0).tobytes())
    [own] = staging.iterdir()
    assert len(os.listdir(own)) == 1 and not (store / ".zarr-mount").exists()
    made.kill()
    force_away(made.path)
    # Without the name of the directory, nothing is found in the store.
    mount(store, "--rw", "--view", "chunks").unmount()
    np.testing.assert_array_equal(stored(store), DATA)
    if by == "mount":
        made = mount(store, "--rw", "--view", "chunks", "--staging", staging)
        assert (made.path / "a/c/0/0").read_bytes() == np.full(INNER, 7.0).tobytes()
        made.unmount()
    else:
        done = run(BINARY, "--recover", store, "--staging", staging)
        assert done.returncode == 0 and "1 chunk saved" in done.stdout, done
    expected = DATA.copy()
    expected[:4, :3] = 7
    np.testing.assert_array_equal(stored(store), expected)
    assert not os.listdir(staging)


def test_a_staging_directory_that_cannot_be_used_is_an_error(tmp_path):
    store, point = make(tmp_path / "store"), tmp_path / "m"
    point.mkdir()
    inside = store / "inside"
    inside.mkdir()
    for directory, more, says in [(tmp_path / "none", ["--rw"], "No such file"), (store / "a/zarr.json", ["--rw"], "STORE"),
                                  (inside, ["--rw"], "is in STORE"), (tmp_path, [], "--staging is for --rw")]:
        said = run(BINARY, store, point, *more, "--view", "chunks", "--staging", directory)
        assert said.returncode != 0 and says in said.stderr, said


def test_a_shard_with_a_false_index_is_not_written_anew(tmp_path, mount):
    store = make(tmp_path / "store")
    shard = store / "a/c/0/0"
    damaged = bytearray(shard.read_bytes())
    damaged[-1] ^= 1
    shard.write_bytes(damaged)
    made = mount(store, "--rw", "--view", "chunks")
    with pytest.raises(OSError) as told:
        (made.path / "a/c/0/0").write_bytes(np.full(INNER, 7.0).tobytes())
    assert told.value.errno == errno.EIO
    assert shard.read_bytes() == damaged
    # Chunks of neighbouring shards are written.
    (made.path / "a/c/0/2").write_bytes(np.full(INNER, 7.0).tobytes())
    made.sync()
    assert zarr.open_array(str(store / "a"), mode="r")[0, 6] == 7 and shard.read_bytes() == damaged


def test_unaligned_writers_together(tmp_path, mount):
    """The loss of zarr-python's issue 3682: processes that write parts of one shard."""
    store = make(tmp_path / "store", None)
    made = mount(store, "--rw", "--view", "chunks")
    program = """
import sys, numpy as np
path, number = sys.argv[1], int(sys.argv[2])
for row in range(number, 8, 4):
    for j in range(2):
        with open(f"{path}/a/c/{row // 4}/{j}", "r+b") as file:
            file.seek((row % 4) * 24); file.write(np.full(3, row * 10.0 + j).tobytes())
"""
    running = [subprocess.Popen([sys.executable, "-c", program, str(made.path), str(n)]) for n in range(4)]
    assert all(process.wait() == 0 for process in running)
    made.sync()
    expected = np.full(SHAPE, FILL)
    for row in range(8):
        expected[row, :3], expected[row, 3:6] = row * 10, row * 10 + 1
    np.testing.assert_array_equal(stored(store), expected)


@pytest.mark.parametrize("target", [None, "v3"])
@pytest.mark.parametrize("name", ["zp2_draft_v3_sharded.zarr", "draft22_sharded.zarr", "zp3_shards.zarr"])
def test_shards_of_real_writers(name, target, tmp_path, mount):
    """Each inner chunk of these stores is written through the mount, in the stored version of Zarr and in another one."""
    store = tmp_path / "store"
    shutil.copytree(corpus.stores()[name].path, store)
    options = ["--as", target] if target else []
    made = mount(store, "--rw", "--view", "chunks", *options)
    written, shards = {}, {}
    for folder, _, names in os.walk(made.path):
        for entry in sorted(names):
            path = os.path.join(folder, entry)
            if not entry.lstrip("c").isdigit() or not os.stat(path).st_mode & 0o200 or "/." in path:
                continue
            with open(path, "r+b") as file:
                old = file.read()
                # Reversed bytes are valid elements of all types, except of booleans.
                new = old[::-1] if set(old) - {0, 1} else old
                file.seek(0)
                file.write(new)
            written[os.path.relpath(path, made.path)] = new
    assert len(written) > 10
    for relative, new in written.items():
        assert (made.path / relative).read_bytes() == new, relative
    made.unmount()
    assert not (store / ".zarr-mount").exists()
    made = mount(store, "--view", "chunks", *options)
    for relative, new in written.items():
        assert (made.path / relative).read_bytes() == new, relative


def test_zarr_python_2_reads_chunks_written_to_the_shards_of_a_draft(tmp_path, mount):
    store = tmp_path / "store"
    shutil.copytree(corpus.stores()["zp2_draft_v3_sharded.zarr"].path, store)
    made = mount(store, "--rw", "--view", "chunks,arrays", "--as", "v3")
    expected = {}
    for path in (made.path / "chunks/sh").iterdir():
        if not (path / "c").is_dir():
            continue
        name = f"sh/{path.name}"
        values = np.load(made.path / f"arrays/{name}.npy")
        document = json.loads((path / "zarr.json").read_text())
        shape = document["chunk_grid"]["configuration"]["chunk_shape"]
        codecs = document["codecs"]
        if codecs[0]["name"] == "sharding_indexed":
            shape = codecs[0]["configuration"]["chunk_shape"]
        first = (path / "c").joinpath(*["0"] * len(shape))
        chunk = np.arange(np.prod(shape)).astype(values.dtype).reshape(shape)
        first.write_bytes(chunk.tobytes())
        here = tuple(slice(0, n) for n in shape)
        values[here] = chunk[tuple(slice(0, n) for n in values[here].shape)]
        expected[name] = values
    made.unmount()
    assert len(expected) >= 3
    with readers.Zarr2() as zarr2:
        for name, values in expected.items():
            found = zarr2.open(store, name, boxes=[None], dtype=values.dtype.str, zarr_version=3)
            assert found["sha256"] == [digest(canonical(values, values.dtype.str))], name


@pytest.mark.parametrize("view", VIEWS)
def test_eight_processes_with_zarr_python(view, tmp_path, mount):
    """The script of zarr-python's issue 3682: regions of inner chunks, which cut shards, by 8 processes that do not coordinate."""
    data = np.arange(60 ** 3, dtype="f8").reshape(60, 60, 60)
    zarr.create_array(str(tmp_path / "store"), name="a", shape=data.shape, dtype="f8", chunks=(15, 15, 15), shards=(30, 30, 30))
    made = mount(tmp_path / "store", "--rw", "--view", view)
    program = """
import itertools, sys, numpy as np, zarr
path, number = sys.argv[1], int(sys.argv[2])
data = np.arange(60 ** 3, dtype="f8").reshape(60, 60, 60)
array = zarr.open_array(path + "/a", mode="r+")
assert array.shards is None and array.chunks == (15, 15, 15)
for place in list(itertools.product(range(0, 60, 15), repeat=3))[number::8]:
    here = tuple(slice(n, n + 15) for n in place)
    array[here] = data[here]
"""
    running = [subprocess.Popen([sys.executable, "-c", program, str(made.path), str(n)]) for n in range(8)]
    assert all(process.wait() == 0 for process in running)
    made.unmount()
    np.testing.assert_array_equal(zarr.open_array(str(tmp_path / "store/a"), mode="r")[...], data)


def test_outsiders_that_write_the_same_shard_meanwhile(tmp_path, mount):
    """tensorstore writes some inner chunks, straight to the store, while others are written through the mount."""
    store = make(tmp_path / "store")
    made = mount(store, "--rw", "--view", "chunks", "--ttl", "0")
    theirs = tensorstore.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{store}/a/"}}, recheck_cached_data=True).result()
    expected = DATA.copy()
    for n in range(30):
        (made.path / "a/c/0/0").write_bytes(np.full(INNER, n + 100.0).tobytes())
        expected[0:4, 0:3] = n + 100
        theirs[4:8, 3:6].write(np.full(INNER, n + 200.0)).result()
        expected[4:8, 3:6] = n + 200
        if n % 3 == 0:
            made.sync()
        assert (made.path / "a/c/0/0").read_bytes() == np.full(INNER, n + 100.0).tobytes()
        assert (made.path / "a/c/1/1").read_bytes() == np.full(INNER, n + 200.0).tobytes()
    made.unmount()
    np.testing.assert_array_equal(stored(store), expected)


@pytest.mark.parametrize("lock", [(), ("--lock", "tensorstore")])
def test_the_lock_of_tensorstore(lock, tmp_path, mount):
    """Another program locks the key, reads the shard, writes the file that is locked, and renames it to the key, as tensorstore does."""
    store, other = make(tmp_path / "store"), tmp_path / "other"
    shutil.copytree(store, other)
    zarr.open_array(str(other / "a"), mode="r+")[0:4, 3:6] = 8
    made = mount(store, "--rw", "--view", "chunks", *lock)
    shard, locked = store / "a/c/0/0", store / "a/c/0/0.__lock"
    held = held_lock(locked)
    (made.path / "a/c/0/0").write_bytes(np.full(INNER, 7.0).tobytes())
    waiter = threading.Thread(target=made.sync)
    if lock:
        with opened_by_others(locked):
            waiter.start()
        assert waiter.is_alive()
    else:
        waiter.start()
        waiter.join()
    held.write((other / "a/c/0/0").read_bytes())
    held.flush()
    os.rename(locked, shard)
    held.close()
    waiter.join(30)
    assert not waiter.is_alive()
    made.unmount()
    found = stored(store)
    assert (found[0:4, 3:6] == 8).all()
    # Without the lock, chunks that were saved in between would be lost.
    assert (found[0:4, 0:3] == (7 if lock else DATA[0:4, 0:3])).all()
    assert not locked.exists()


def test_a_lock_of_the_mount_is_not_one_of_a_program(tmp_path, mount):
    """The lock of the shard 0.0 in the store has the same name as the lock of the inner chunk 0.0 in the view."""
    store = make(tmp_path / "store")
    made = mount(store, "--rw", "--view", "chunks", "--lock", "tensorstore")
    (store / "a/c/0/0.__lock").write_bytes(b"of the mount")
    locked = made.path / "a/c/0/0.__lock"
    assert not locked.exists() and locked.name not in os.listdir(locked.parent)
    locked.write_bytes(np.full(INNER, 7.0).tobytes())
    assert locked.exists() and (store / "a/c/0/0.__lock").read_bytes() == b"of the mount"
    os.unlink(store / "a/c/0/0.__lock")
    os.rename(locked, made.path / "a/c/0/0")
    made.unmount()
    assert (stored(store)[0:4, 0:3] == 7).all()


def test_nothing_else_waits_while_many_saves_wait_for_locks(tmp_path, mount):
    """Each save waits on its own thread, and only reserves the name of its own file."""
    n = 32
    zarr.create_group(str(tmp_path / "store"))
    array = zarr.create_array(str(tmp_path / "store"), name="a", shape=(2 * n,), chunks=(1,), dtype="u1", compressors=None, fill_value=0)
    array[:] = 1
    made = mount(tmp_path / "store", "--rw", "--view", "chunks", "--lock", "tensorstore")
    locks = [tmp_path / f"store/a/c/{i}.__lock" for i in range(n)]
    held = [held_lock(lock) for lock in locks]
    saves = [threading.Thread(target=lambda i=i: (made.path / f"a/c/{i}").write_bytes(b"\7")) for i in range(n)]
    for save in saves:
        save.start()
    until(lambda: made.stats()["requests"]["write"] == n, "all chunks to be written")
    assert [(made.path / f"a/c/{n + i}").read_bytes() for i in range(n)] == [b"\1"] * n
    assert [(made.path / f"a/c/{i}").stat().st_size for i in range(n)] == [1] * n
    assert {str(i) for i in range(2 * n)} == set(os.listdir(made.path / "a/c")), "without the locks"
    (made.path / "a/c/40").write_bytes(b"\5")
    (made.path / "a/c/41").unlink()
    (made.path / "notes").write_text("about a")
    (made.path / "notes").rename(made.path / "about")
    (made.path / "a/c/42.partial").write_bytes(b"\6")
    (made.path / "a/c/42.partial").rename(made.path / "a/c/42")
    zarr.open_group(str(made.path)).create_group("g").attrs["about"] = "g"
    assert made.stats()["writes"]["drafts"] == n
    assert all(save.is_alive() for save in saves), "each of them still waits"
    for lock, file in zip(locks, held, strict=True):
        lock.unlink()
        file.close()
    for save in saves:
        save.join()
    expected = [7] * n + [1] * n
    expected[40:43] = [5, 0, 6]
    assert (zarr.open_array(str(tmp_path / "store/a"), mode="r")[:] == expected).all()
    assert (tmp_path / "store/about").read_text() == "about a"


@pytest.mark.parametrize("writes", [False, True])
@pytest.mark.parametrize("view", ["keys", "chunks"])
def test_writes_in_place_by_another_program_are_shown(view, writes, tmp_path, mount):
    """Another program replaces a shard in place with one of the same length, while one of its chunks is open. The old chunk is then in no file."""
    store = make(tmp_path / "store")
    made = mount(store, "--rw", "--view", view)
    chunk, shard = made.path / "a/c/0/0", store / "a/c/0/0"
    before, other = chunk.read_bytes(), (made.path / "a/c/2/2").read_bytes()
    assert before != other and shard.stat().st_size == (store / "a/c/1/1").stat().st_size
    held = os.open(chunk, os.O_RDWR)
    assert os.read(held, len(before)) == before
    with open(shard, "r+b") as file:
        file.write((store / "a/c/1/1").read_bytes())
    time.sleep(1.1)  # the time to live
    assert chunk.read_bytes() == other
    if writes:
        with pytest.raises(OSError) as caught:
            try:
                os.pwrite(held, before[:4], 0)
            finally:
                os.close(held)
        assert caught.value.errno == errno.ESTALE
    else:
        os.close(held)
    assert chunk.read_bytes() == other
    made.unmount()
    assert shard.read_bytes() == (store / "a/c/1/1").read_bytes()


def begun(call):
    """A thread that has begun the call `call`, which waits."""
    thread = threading.Thread(target=call)
    thread.start()
    thread.join(0.2)
    assert thread.is_alive()
    return thread


def test_a_directory_is_renamed_while_a_save_in_it_waits(tmp_path, mount):
    """The rename waits for the save, and the kernel makes lookups in `top` wait. Other lookups do not wait."""
    store = tmp_path / "store"
    for name in ("top/g/a", "b"):
        zarr.create_array(str(store), name=name, shape=(4,), chunks=(1,), dtype="u1", compressors=None, fill_value=0)[:] = 1
    made = mount(store, "--rw", "--view", "chunks", "--lock", "tensorstore")
    lock = store / "top/g/a/c/0.__lock"
    held = held_lock(lock)
    with opened_by_others(lock):
        save = begun(lambda: (made.path / "top/g/a/c/0").write_bytes(b"\7"))
    rename = begun(lambda: (made.path / "top/g").rename(made.path / "top/h"))
    assert (made.path / "b/c/0").read_bytes() == b"\1" and len(os.listdir(made.path / "b/c")) == 4
    (made.path / "b/c/1").write_bytes(b"\5")
    (made.path / "b/c/2").unlink()
    (made.path / "new").mkdir()
    (made.path / "new").rename(made.path / "newer")
    assert save.is_alive() and rename.is_alive()
    lock.unlink()
    held.close()
    save.join()
    rename.join()
    made.unmount()
    assert zarr.open_array(str(store / "top/h/a"), mode="r")[:].tolist() == [7, 1, 1, 1]
    assert zarr.open_array(str(store / "b"), mode="r")[:].tolist() == [1, 5, 0, 1]
    assert (store / "newer").is_dir() and not (store / "top/g").exists()


@pytest.mark.parametrize("view", [("keys",), ("chunks",), ("chunks", "--as", "v2")])
def test_an_array_is_not_removed_while_a_chunk_is_saved(view, tmp_path, mount):
    """Otherwise, the saved chunk would become a chunk of the next array at this path."""
    store = tmp_path / "store"
    zarr.create_array(str(store), name="a", shape=(4,), chunks=(1,), dtype="u1", compressors=None, fill_value=0)[:] = 1
    made = mount(store, "--rw", "--view", *view, "--lock", "tensorstore")
    lock = store / "a/c/0.__lock"
    held = held_lock(lock)
    chunk, document = ("a/0", "a/.zarray") if "v2" in view else ("a/c/0", "a/zarr.json")
    with opened_by_others(lock):
        save = begun(lambda: (made.path / chunk).write_bytes(b"\7"))
    remove = begun((made.path / document).unlink)
    assert (store / "a/zarr.json").exists()
    lock.unlink()
    held.close()
    save.join()
    remove.join()
    assert not (store / "a/zarr.json").exists() and (store / "a/c/0").read_bytes() == b"\7"


@pytest.mark.root
def test_a_full_disk_loses_nothing_that_was_closed(disk, mount):
    """The disk has room for the journal, but not for the new shard. This mount and the next one show closed chunks, and pack them once
    there is room."""
    store = disk("2M") / "store"
    array = zarr.create_array(str(store), name="a", shape=(1 << 20,), chunks=(1 << 16,), shards=(1 << 20,), dtype="u1", compressors=None, fill_value=0)
    array[:] = 1
    made = mount(store, "--rw", "--view", "chunks")
    put = lambda made, i, value: (made.path / f"a/c/{i}").write_bytes(bytes([value]) * (1 << 16))
    shown = lambda made: [(made.path / f"a/c/{i}").read_bytes()[0] for i in range(16)]
    expected = [1] * 16
    with pytest.raises(OSError) as told:
        for i in range(16):
            put(made, i, 10 + i)
            expected[i] = 10 + i
    assert told.value.errno == errno.ENOSPC and 4 < i
    assert shown(made) == expected
    with pytest.raises(OSError) as told:
        made.sync()
    assert told.value.errno == errno.ENOSPC and (array[:] == 1).all()
    done = run(BINARY, "--unmount", made.path)
    assert done.returncode == 1 and "is unmounted, but not all that was written is in the store: " in done.stderr
    assert "journal" in done.stderr and "No space left" in done.stderr
    made.wait_for_the_end()
    made = mount(store, "--rw", "--view", "chunks")
    assert shown(made) == expected
    ok("mount", "-o", "remount,size=8m", store.parent)
    # A chunk is changed, and then gets its content in the shard again. The journal must not bring back the change later.
    for value in (20, 1):
        put(made, 3, value)
        made.sync()
    expected[3] = 1
    made.unmount()
    assert not (store / ".zarr-mount").exists()
    assert array[:].reshape(16, -1)[:, 0].tolist() == expected


@pytest.mark.root
@pytest.mark.parametrize("pages", range(0, 8))
def test_a_disk_that_is_full_before_the_first_inner_chunk_is_closed(disk, mount, pages):
    """If the disk has no room for a new journal, or for its first record, the draft stays and is saved later."""
    store = disk("2M") / "store"
    array = zarr.create_array(str(store), name="a", shape=(1 << 18,), chunks=(1 << 16,), shards=(1 << 18,), dtype="u1", compressors=None, fill_value=0)
    array[:] = 1
    made = mount(store, "--rw", "--view", "chunks")
    with open(store.parent / "filler", "wb", buffering=0) as filler, open(made.path / "a/c/2", "r+b", buffering=0) as file:
        os.pwrite(file.fileno(), b"new", 500)
        status = os.statvfs(store.parent)
        os.posix_fallocate(filler.fileno(), 0, (status.f_bavail - pages) * status.f_bsize)
        for _ in range(3):
            with pytest.raises(OSError) as told:
                os.fsync(file.fileno())
            assert told.value.errno == errno.ENOSPC
        assert os.pread(file.fileno(), 5, 499) == b"\1new\1"
        os.ftruncate(filler.fileno(), 0)
        os.fsync(file.fileno())
    at = (2 << 16) + 500
    assert array[at:at + 3].tobytes() == b"new" and array[:].sum() == (1 << 18) - 3 + sum(b"new")
    (made.path / "a/c/2").write_bytes(bytes(1 << 16))
    made.unmount()
    assert "panic" not in made.log_text() and not (store / ".zarr-mount").exists()
    assert array[:].sum() == 3 << 16


def test_sizes_are_set_and_asked_for_while_a_neighbour_is_saved(tmp_path, mount):
    made = mount(make(tmp_path / "store"), "--rw", "--view", "chunks")
    ended = threading.Event()

    def save_the_neighbour():
        with open(made.path / "a/c/0/1", "r+b", buffering=0) as file:
            while not ended.is_set():
                file.write(os.urandom(8))
                file.seek(0)
                os.fsync(file)
    neighbour = threading.Thread(target=save_the_neighbour)
    neighbour.start()
    try:
        with open(made.path / "a/c/0/0", "r+b", buffering=0) as file:
            for n in range(700):
                file.truncate(N)
                os.posix_fallocate(file.fileno(), 0, N)
                assert os.fstat(file.fileno()).st_size == N
                os.pwrite(file.fileno(), struct.pack("<d", n), 0)
                os.fsync(file)
    finally:
        ended.set()
        neighbour.join()
    made.unmount()
    assert stored(tmp_path / "store")[0, 0] == 699


@pytest.mark.local
def test_an_array_that_is_made_anew_while_its_chunks_wait(tmp_path, mount):
    """Staged chunks are not chunks of the new array: they stay in the journal, and do no harm."""
    store = make(tmp_path / "store")
    made = mount(store, "--rw", "--view", "chunks", "--ttl", "0")
    (made.path / "a/c/0/0").write_bytes(np.full(INNER, 7.0).tobytes())
    shutil.rmtree(store / "a")
    make(store, codecs=[BytesCodec(endian="big")])
    until(lambda: (made.path / "a/c/0/0").read_bytes() == part(DATA, INNER, (0, 0)).tobytes(), "the new array")
    expected = DATA.copy()
    for i in range(2):
        new = part(DATA + 1000, INNER, (i, 1))
        (made.path / f"a/c/{i}/1").write_bytes(new.tobytes())
        assert (made.path / f"a/c/{i}/1").read_bytes() == new.tobytes()
        put(expected, INNER, (i, 1), new)
    made.sync()
    np.testing.assert_array_equal(stored(store), expected)
    (made.path / "a/c/0/1").write_bytes(np.full(INNER, 9.0).tobytes())
    put(expected, INNER, (0, 1), np.full(INNER, 9.0))
    made.kill()
    force_away(made.path)
    done = run(BINARY, "--recover", store)
    assert done.returncode == 1 and "1 chunk stays in the journal" in done.stderr, done
    np.testing.assert_array_equal(stored(store), expected)


@pytest.mark.parametrize("by", ["pack", "recover"])
@pytest.mark.local
def test_chunks_erased_of_an_array_are_not_erased_of_the_next_one(by, tmp_path, mount):
    """The new array has the same bytes, and another fill value."""
    make_ones = lambda fill: zarr.create_array(
        str(tmp_path / "store"), name="a", shape=(8,), chunks=(2,), shards=(8,), dtype="u1", compressors=None, fill_value=fill, overwrite=True)
    array = make_ones(7)
    array[:] = 1
    made = mount(tmp_path / "store", "--rw", "--view", "chunks")
    (made.path / "a/c/1").unlink()
    if by == "recover":
        made.kill()
        force_away(made.path)
    array = make_ones(0)
    array[:] = 1
    if by == "pack":
        made.unmount()
    done = run(BINARY, "--recover", tmp_path / "store")
    assert done.returncode == 0 and "an array that another array has replaced" in done.stderr, done
    assert (array[:] == 1).all() and not (tmp_path / "store/.zarr-mount").exists()


def test_a_journal_that_cannot_be_used_is_reported(tmp_path):
    store = make(tmp_path / "store")
    folder = store / ".zarr-mount/journal"
    folder.mkdir(parents=True)
    (folder / "0123456789abcdef.journal").write_bytes(b"no journal at all, but another file")
    done = run(BINARY, "--recover", store)
    assert done.returncode == 1 and "1 journal is not used and left alone" in done.stderr and "nothing was left" not in done.stdout, done
    assert os.listdir(folder) == ["0123456789abcdef.journal"]


def test_a_change_by_another_program_during_a_pack_is_seen_by_the_next_one(tmp_path, mount):
    """A chunk is written while its shard is packed, and its old version is replaced in this time."""
    size = 1 << 20
    array = zarr.create_array(str(tmp_path / "store"), name="a", shape=(100 * size,), chunks=(size,), shards=(100 * size,), dtype="u1", compressors=None)
    array[:] = 1
    shard = tmp_path / "store/a/c/0"
    other = tmp_path / "other"
    shutil.copy(shard, other)
    with open(other, "r+b") as file:
        file.seek(5 * size)
        file.write(bytes([77]) * size)
    made = mount(tmp_path / "store", "--rw", "--view", "chunks")
    for i, value in ((0, 9), (5, 50)):
        (made.path / f"a/c/{i}").write_bytes(bytes([value]) * size)
        if i == 0:
            thread = threading.Thread(target=made.sync)
            thread.start()
            time.sleep(0.02)
    os.rename(other, shard)
    thread.join()
    made.unmount()
    # The inner chunk that the other program has changed stays. The first chunk is that of the other program, too, if the other program
    # replaced the shard after the first pack.
    assert array[5 * size] == 77 and array[0] in (1, 9) and array[size] == 1, made.log_text()


@pytest.mark.parametrize("shards", [SHARD, None])
def test_a_chunk_is_not_moved_onto_another_one(shards, tmp_path, mount):
    """If a rename gave EXDEV, mv(1) would remove the target and copy the file. But the target stays if absent chunks are shown as files."""
    array = zarr.create_array(str(tmp_path / "store"), name="a", shape=(16, 12), chunks=INNER, shards=shards, dtype="<f8", fill_value=FILL)
    array[:] = DATA[:16, :12]
    made = mount(tmp_path / "store", "--rw", "--view", "chunks")
    done = run("mv", made.path / "a/c/0/0", made.path / "a/c/0/1")
    assert done.returncode == 1 and "Operation not permitted" in done.stderr
    made.unmount()
    np.testing.assert_array_equal(array[:], DATA[:16, :12])


def test_a_limit_of_file_sizes_is_an_error_of_the_write(tmp_path, mount):
    """By default, SIGXFSZ would end the daemon."""
    array = zarr.create_array(str(tmp_path / "store"), name="a", shape=(1 << 20,), chunks=(1 << 16,), shards=(1 << 20,), dtype="u1", compressors=None, fill_value=0)
    array[:] = 1
    made = mount(tmp_path / "store", "--rw", "--view", "chunks", prefix=("prlimit", "--fsize=500000"))
    written = []
    with pytest.raises(OSError) as told:
        for i in range(16):
            (made.path / f"a/c/{i}").write_bytes(bytes([10 + i]) * (1 << 16))
            written.append(i)
    assert told.value.errno == errno.EFBIG and len(written) == 7
    assert [(made.path / f"a/c/{i}").read_bytes()[0] for i in range(8)] == [*range(10, 17), 1]
    assert run(BINARY, "--unmount", made.path).returncode == 1
    made.wait_for_the_end()
    ok(BINARY, "--recover", tmp_path / "store")
    assert array[:].reshape(16, -1)[:, 0].tolist() == [*range(10, 17)] + [1] * 9


@pytest.mark.parametrize("codec", [GzipCodec(level=1), ZstdCodec(level=1), zarr.codecs.BloscCodec()])
def test_a_small_cache_is_enough(codec, tmp_path, mount):
    array = zarr.create_array(str(tmp_path / "store"), name="a", shape=(16, 12), chunks=INNER, shards=SHARD, dtype="<f8", compressors=codec)
    array[:] = 1
    made = mount(tmp_path / "store", "--rw", "--view", "chunks", "--cache-size", "1M", "--timeout", "2")
    (made.path / "a/c/0/0").write_bytes(np.full(INNER, 5.0).tobytes())
    with open(made.path / "a/c/0/1", "r+b") as file:
        file.write(np.float64(6).tobytes())
    made.unmount()
    assert (array[:4, :3] == 5).all() and array[0, 3] == 6 and array[0, 4] == 1


def test_journals_of_many_shards_leave_descriptors_for_all_else(tmp_path, mount):
    n = 400
    array = zarr.create_array(str(tmp_path / "store"), name="a", shape=(4 * n,), chunks=(2,), shards=(4,), dtype="<i8", compressors=None, fill_value=0)
    made = mount(tmp_path / "store", "--rw", "--view", "chunks", "--durability", "never", prefix=("prlimit", "--nofile=256"))
    for i in range(n):
        (made.path / f"a/c/{2 * i}").write_bytes(np.full(2, i, "<i8").tobytes())
        assert len(os.listdir(f"/proc/{made.pid}/fd")) < 256
    assert [np.frombuffer((made.path / f"a/c/{2 * i}").read_bytes(), "<i8")[0] for i in range(n)] == list(range(n))
    assert len(os.listdir(made.path / "a/c")) == 2 * n and json.loads((made.path / "a/zarr.json").read_text())
    made.sync()
    assert (array[::4] == np.arange(n)).all()
