"""A store that is made anew, or replaced, at its path, while it is mounted."""
import errno
import json
import os
import shutil
import subprocess
import threading
import time

import numcodecs
import numpy as np
import pytest
import zarr

from support.mounting import ok, until

SHAPE, CHUNK = (8, 8), (2, 2)
ZSTD = b"\x28\xb5\x2f\xfd"


def write(path, value, dtype="i4"):
    """A store whose every element is `value`."""
    group = zarr.open_group(str(path), mode="w")
    array = group.create_array("a", shape=SHAPE, chunks=CHUNK, dtype=dtype, fill_value=-1)
    array[...] = value
    return path


def shown(mount):
    return np.unique(zarr.open_group(str(mount.path), mode="r")["a"][...]).tolist()


@pytest.mark.parametrize("view", ["keys", "chunks"])
def test_a_store_opened_for_writing_anew_is_shown(tmp_path, mount, view):
    store = write(tmp_path / "s.zarr", 1)
    made = mount(store, "--view", view)
    assert shown(made) == [1]
    for value in (2, 3):
        write(store, value)
        until(lambda: shown(made) == [value], f"the store of value {value}")


@pytest.mark.parametrize("writes", [(), ("--rw",)], ids=["ro", "rw"])
@pytest.mark.parametrize("shapes", [((8, 8), (8,)), ((8,), (8, 8))], ids=["2d-1d", "1d-2d"])
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("view", [("keys",), ("keys", "--shards", "keep"), ("chunks",), ("keys", "--as", "v3")], ids=" ".join)
def test_an_array_of_another_rank_has_other_names(tmp_path, mount, view, version, shapes, writes):
    """`a/c/0` is a directory, and then a file, or the other way round. The kernel remembers the old one, and must not answer that there is
    no such chunk, which would be read as fill values."""
    group = zarr.open_group(str(tmp_path / "s.zarr"), mode="w", zarr_format=version)
    keys = {"name": "v2", "separator": "/"} if version == 2 else None

    def make(shape):
        group.create_array("a", shape=shape, chunks=(2,) * len(shape), dtype="i4", fill_value=-1, overwrite=True, chunk_key_encoding=keys)[...] = len(shape)

    make(shapes[0])
    made = mount(tmp_path / "s.zarr", "--view", *view, *writes)
    for shape in (shapes[0], shapes[1], shapes[0]):
        if shape != group["a"].shape:
            make(shape)
        found = zarr.open_array(str(made.path / "a"), mode="r")
        assert found.shape == shape and (found[...] == len(shape)).all()


@pytest.mark.parametrize("view", ["keys", "chunks"])
@pytest.mark.parametrize("version", [2, 3])
def test_an_array_of_another_rank_is_read_after_a_listing(tmp_path, mount, version, view):
    """The listing has told the kernel of the new document already."""
    made = None
    for rank in (2, 1, 2):
        write_ranked(tmp_path / "s.zarr", rank, version)
        made = made or mount(tmp_path / "s.zarr", "--view", view)
        subprocess.run(["ls", "-l", made.path / "a"], check=True, stdout=subprocess.DEVNULL)
        found = zarr.open_array(str(made.path / "a"), mode="r")
        assert found.ndim == rank and (found[...] == rank).all()


@pytest.mark.parametrize("view", [("keys",), ("keys", "--rw"), ("keys", "--shards", "keep"), ("keys", "--as", "v2"), ("keys", "--as", "v3"), ("chunks",)], ids=" ".join)
@pytest.mark.parametrize("version", [2, 3])
def test_an_array_of_another_rank_is_read_by_its_copied_document(tmp_path, mount, version, view):
    """A reader of consolidated metadata opens no document of an array."""
    made = None
    for rank in (2, 1, 2):
        write_ranked(tmp_path / "s.zarr", rank, version)
        zarr.consolidate_metadata(str(tmp_path / "s.zarr"))
        made = made or mount(tmp_path / "s.zarr", "--view", *view)
        found = zarr.open_group(str(made.path), mode="r", use_consolidated=True)["a"]
        assert found.ndim == rank and (found[...] == rank).all()


DRAFT = "https://purl.org/zarr/spec/protocol/core/3.0"


@pytest.mark.parametrize("kind", ["draft", "n5"])
def test_names_of_older_formats_follow_their_document(tmp_path, mount, kind):
    """A reader takes the error of a name that is still a file for the absence of the chunk below it."""
    store = tmp_path / "s"
    document, chunk = {"draft": ("meta/root/a.array.json", "data/root/a/c1"), "n5": ("a/attributes.json", "a/1")}[kind]
    made = None
    for rank in (1, 2, 1):
        shutil.rmtree(store, ignore_errors=True)
        grid = {"type": "regular", "chunk_shape": [2] * rank, "separator": "/"}
        texts = {"draft": {"shape": [8] * rank, "data_type": "|u1", "fill_value": 7, "chunk_memory_layout": "C", "chunk_grid": grid,
                           "extensions": [], "attributes": {}},
                 "n5": {"dimensions": [8] * rank, "blockSize": [2] * rank, "dataType": "uint8", "compression": {"type": "raw"}}}
        root = {"zarr_format": DRAFT, "metadata_encoding": DRAFT, "metadata_key_suffix": ".json", "extensions": []}
        stored = chunk if rank == 1 else f"{chunk}/0"
        for path, text in ((document, json.dumps(texts[kind])), (stored, "x" * 2 ** rank), ("zarr.json" if kind == "draft" else "attributes.json",
                                                                                            json.dumps(root if kind == "draft" else {"n5": "2.5.0"}))):
            (store / path).parent.mkdir(parents=True, exist_ok=True)
            (store / path).write_text(text)
        made = made or mount(store, "--view", "keys")
        assert f"[{', '.join(['8'] * rank)}]" in (made.path / document).read_text()
        assert (made.path / stored).read_text() == "x" * 2 ** rank


@pytest.mark.parametrize("view", [("chunks",), ("chunks", "--as", "v2"), ("keys", "--as", "v2"), ("keys", "--as", "v3")], ids=" ".join)
@pytest.mark.parametrize("version", [2, 3])
def test_copies_are_as_new_as_the_documents(tmp_path, mount, version, view):
    """The chunks have the same names and lengths as before, so that an old copy would make a reader exchange elements. The store's own
    consolidated metadata is older than the array."""
    elements = np.arange(32, dtype="i4")
    made = None
    for shape, chunks in (((8, 4), (4, 2)), ((4, 8), (2, 4)), ((8, 4), (4, 2))):
        group = zarr.open_group(str(tmp_path / "s.zarr"), mode="a", zarr_format=version)
        group.create_array("a", shape=shape, chunks=chunks, dtype="i4", overwrite=True)[...] = elements.reshape(shape)
        if made is None:
            zarr.consolidate_metadata(str(tmp_path / "s.zarr"))
            made = mount(tmp_path / "s.zarr", "--view", *view)
        found = zarr.open_group(str(made.path), mode="r", use_consolidated=None)["a"]
        assert found.shape == shape and np.array_equal(found[...].ravel(), elements)


@pytest.mark.parametrize("view", [("chunks", "--as", "v2"), ("keys", "--as", "v3")], ids=" ".join)
def test_an_array_below_a_group_that_was_an_array_is_shown_in_its_version(tmp_path, mount, view):
    store = tmp_path / "s.zarr"
    zarr.open_group(str(store), mode="w", zarr_format=2).create_array("b", shape=(4,), chunks=(2,), dtype="i4", compressors=numcodecs.GZip(1))
    made = mount(store, "--view", *view)
    name = ".zarray" if "v2" in view else "zarr.json"
    (made.path / "b" / name).read_bytes()
    inner = zarr.open_group(str(store), mode="a").create_group("b", overwrite=True).create_array(
        "in", shape=(4,), chunks=(2,), dtype="i4", compressors=numcodecs.GZip(1))
    inner[...] = 2
    chunk = (made.path / "b" / "in" / "0").read_bytes()
    document = json.loads((made.path / "b" / "in" / name).read_text())
    if "v2" in view:
        assert document["compressor"] is None and chunk == np.full(2, 2, "<i4").tobytes()
    else:
        assert document["codecs"][-1]["name"] == "gzip" and chunk == (store / "b" / "in" / "0").read_bytes()


def test_links_that_are_exchanged_are_not_mixed_in_an_open_file(tmp_path, mount):
    """git-annex keeps chunks in this way. The targets of the new links are older than the open."""
    store = tmp_path / "s.zarr"
    for version in (1, 2):
        group = zarr.open_group(str(tmp_path), mode="a", zarr_format=2)
        array = group.create_array(f"v{version}", shape=(4 * 4096,), chunks=(4096,), dtype="<i4", compressors=None)
        array[...] = version
    shutil.copytree(tmp_path / "v1", store / "t")
    pool = store / "pool"
    pool.mkdir()

    def point(version):
        for number in range(4):
            (store / "t" / str(number)).unlink()
            (store / "t" / str(number)).symlink_to(f"../pool/{version}-{number}")

    for version in (1, 2):
        for number in range(4):
            shutil.copy(tmp_path / f"v{version}" / str(number), pool / f"{version}-{number}")
    point(1)
    time.sleep(0.1)  # The links must be old enough to be trusted.
    made = mount(store, "--view", "arrays", "--files", "raw", "--readahead", "0")
    with open(made.path / "t.raw", "rb", buffering=0) as held:
        os.posix_fadvise(held.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        assert os.pread(held.fileno(), 4, 0) == np.int32(1).tobytes()
        point(2)
        for number in (1, 2, 3):
            with pytest.raises(OSError) as refused:
                os.pread(held.fileno(), 4, number * 4 * 4096)
            assert refused.value.errno == errno.ESTALE
    assert set(np.fromfile(made.path / "t.raw", "<i4").tolist()) == {2}


def write_ranked(path, rank, version):
    """An array `a` of `rank` dimensions, whose every element is `rank`."""
    group = zarr.open_group(str(path), mode="a", zarr_format=version)
    keys = {"name": "v2", "separator": "/"} if version == 2 else None
    shape, chunks = (8,) * rank, (2,) * rank
    array = group.create_array("a", shape=shape, chunks=chunks, dtype="i4", fill_value=-1, overwrite=True, chunk_key_encoding=keys)
    array[...] = rank


def test_a_deleted_store_is_an_error_until_it_is_there_again(tmp_path, mount):
    store = write(tmp_path / "s.zarr", 1)
    made = mount(store, "--view", "chunks", "--ttl", "0")
    assert shown(made) == [1]
    shutil.rmtree(store)
    for look in (lambda: (made.path / "a" / "c" / "0" / "0").read_bytes(),
                 lambda: os.stat(made.path / "a" / "zarr.json"),
                 lambda: os.listdir(made.path)):
        with pytest.raises(OSError) as refused:
            look()
        assert refused.value.errno == errno.EIO, "absence would be the fill value"
    assert "was deleted" in made.log_text()
    write(store, 2)
    assert shown(made) == [2]


def test_a_store_renamed_into_place_is_shown_by_the_next_open(tmp_path, mount):
    store, other = write(tmp_path / "s.zarr", 1), write(tmp_path / "other.zarr", 2)
    made = mount(store, "--view", "chunks")
    chunk = made.path / "a" / "c" / "0" / "0"
    old, new = (np.full(CHUNK, value, "i4").tobytes() for value in (1, 2))
    for _ in range(20):
        assert chunk.read_bytes() == old
        with open(chunk, "rb") as held:
            os.rename(store, tmp_path / "between")
            os.rename(other, store)
            os.rename(tmp_path / "between", other)
            assert chunk.read_bytes() == new
            assert held.read() == old, "a handle goes on with its version"
        os.rename(store, tmp_path / "between")
        os.rename(other, store)
        os.rename(tmp_path / "between", other)


def test_stores_that_are_exchanged_quickly_are_shown_by_the_next_open(tmp_path, mount):
    """Other requests may have looked at the path a few microseconds before the exchange."""
    store, other, between = map(str, (write(tmp_path / "s.zarr", 1), write(tmp_path / "other.zarr", 2), tmp_path / "between"))
    chunk = str(mount(store, "--view", "chunks").path / "a" / "c" / "0" / "0")
    right = [np.full(CHUNK, value, "i4").tobytes() for value in (1, 2)]
    wrong = 0
    for number in range(4000):
        fd = os.open(chunk, os.O_RDONLY)
        wrong += os.pread(fd, 100, 0) != right[number % 2]
        os.close(fd)
        for source, target in ((store, between), (other, store), (between, other)):
            os.rename(source, target)
    assert not wrong


def test_readers_of_a_store_that_is_made_again_see_one_store_or_an_error(tmp_path, mount):
    """Each chunk file has only one value: one that was written or, while it is being written, the fill value."""
    store = write(tmp_path / "s.zarr", 0)
    made = mount(store, "--view", "chunks", "--ttl", "0")
    wrong, reads, stop = [], [0] * 4, threading.Event()

    def read(me):
        while not stop.is_set():
            for chunk in ("0/0", "1/2", "3/3"):
                try:
                    data = (made.path / "a" / "c" / chunk).read_bytes()
                except OSError as error:
                    if error.errno not in (errno.EIO, errno.ESTALE, errno.ENOENT):
                        wrong.append(repr(error))
                    continue
                if len(data) != 16 and data.startswith(ZSTD):
                    continue  # Its array is deleted or not written yet: a key of no array, as stored.
                values = np.unique(np.frombuffer(data, "i4")).tolist()
                if len(values) != 1 or not -1 <= values[0] <= 40:
                    wrong.append((chunk, values))
            reads[me] += 1

    readers = [threading.Thread(target=read, args=(me,)) for me in range(len(reads))]
    for reader in readers:
        reader.start()
    for value in range(1, 41):
        write(store, value)
    before = list(reads)
    until(lambda: all(now > then for now, then in zip(reads, before)), "a round of each reader")
    stop.set()
    for reader in readers:
        reader.join()
    assert not wrong
    assert shown(made) == [40] and made.alive()


def refusals(made):
    """The result of looking up the chunk and the root."""
    found = set()
    for look in (lambda: (made.path / "a" / "c" / "0" / "0").read_bytes(), lambda: os.listdir(made.path)):
        try:
            look()
            found.add(None)
        except OSError as error:
            found.add(error.errno)
    return found


def test_a_link_in_the_place_of_the_store_leads_nowhere(tmp_path, mount):
    store, private = write(tmp_path / "s.zarr", 1), write(tmp_path / "private.zarr", 2)
    made = mount(store, "--view", "chunks", "--ttl", "0")
    assert shown(made) == [1]
    os.rename(store, tmp_path / "away")
    store.symlink_to(private)
    assert refusals(made) == {errno.EIO}
    assert "a symbolic link" in made.log_text()
    store.unlink()
    os.rename(tmp_path / "away", store)
    assert shown(made) == [1]


@pytest.mark.root
def test_a_directory_of_another_owner_is_not_shown(tmp_path, mount):
    store = write(tmp_path / "s.zarr", 1)
    made = mount(store, "--view", "chunks", "--ttl", "0")
    assert shown(made) == [1]
    # The directory gets its other owner before it is moved to the path of the store. Otherwise, any
    # request to the mount in between, for example by `df`, would make it the store.
    write(tmp_path / "other.zarr", 2)
    os.chown(tmp_path / "other.zarr", 4711, 4711)
    shutil.rmtree(store)
    os.rename(tmp_path / "other.zarr", store)
    assert refusals(made) == {errno.EIO}
    assert "owned by user 4711" in made.log_text()
    os.chown(store, 0, 0)
    assert shown(made) == [2]


@pytest.mark.root
def test_a_directory_of_another_device_is_not_shown(tmp_path, mount):
    store = write(tmp_path / "s.zarr", 1)
    made = mount(store, "--view", "chunks", "--ttl", "0")
    assert shown(made) == [1]
    ok("mount", "-t", "tmpfs", "none", store)
    try:
        write(store / "inner.zarr", 2)
        assert refusals(made) == {errno.EIO}
        assert "another file system" in made.log_text()
    finally:
        ok("umount", store)
    assert shown(made) == [1]
