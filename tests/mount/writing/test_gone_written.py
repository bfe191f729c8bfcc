"""Arrays whose document is removed while their mount is written to: stored bytes never come under the name of a decoded chunk, and
programs remove the array, make it anew, and move it object by object."""
import json
import shutil

import numpy as np
import pytest
import zarr

from support.mounting import ok, run, until
from support.remote_samples import attempt

ARGUMENTS = ("--rw", "--missing", "hide")
CASES = [("chunks", "store", ()), ("chunks", "chunks", ()), ("keys,chunks", "keys", ()), ("keys,chunks", "chunks", ()), ("chunks", "store", ("--as", "v2"))]


def make(path, dtype=">i4"):
    zarr.create_group(str(path), zarr_format=2)
    array = zarr.create_array(str(path / "a"), shape=(8,), chunks=(4,), dtype=dtype, zarr_format=2, compressors=None, filters=None, fill_value=7)
    array[...] = np.arange(8)
    return path


def values(path):
    """The elements; None where no array is found."""
    try:
        return zarr.open_array(str(path), mode="r")[...].tolist()
    except (OSError, zarr.errors.ArrayNotFoundError):
        return None


def check(store, shown, expected):
    assert values(store / "a") == expected
    # A write through another view is seen after the time to live.
    until(lambda: values(shown) == expected, "the array is read")


@pytest.fixture(params=CASES, ids=lambda case: " ".join([case[0], case[1], *case[2]]))
def lost(request, mount, tmp_path):
    """The store; the directory of an array whose document was removed, in the view that decodes its chunks, and in the view to which programs
    write; and a copy of the array."""
    view, remover, more = request.param
    store = make(tmp_path / "store")
    made = mount(store, "--view", view, "--ttl", "0.05", *more, *ARGUMENTS)
    shown = made.path / "chunks" if "," in view else made.path
    # Where a mount has the keys view, new files are made there.
    written = made.path / "keys" if "," in view else shown
    assert attempt(shown / "a" / "0") == np.arange(4, dtype="<i4").tobytes()
    shutil.copytree(written / "a", tmp_path / "copy")
    document = {"store": store, "keys": written, "chunks": shown}[remover] / "a" / ".zarray"
    document.unlink()
    yield store, shown / "a", written / "a", tmp_path / "copy", remover
    made.unmount()


# If a document was removed through a view, this view still decodes the chunks by it, so that they can be moved, too.
DECODED = [np.arange(first, first + 4, dtype="<i4").tobytes() for first in (0, 4)]


def test_the_bytes_of_its_chunks_are_decoded_or_stale(lost):
    store, shown, written, _, remover = lost
    for _ in range(2):
        assert [attempt(shown / name) for name in "01"] == (DECODED if remover == "chunks" else ["ESTALE"] * 2)
    assert {"0", "1"} <= {path.name for path in shown.iterdir()}
    (shown / "0").unlink()
    assert not (store / "a" / "0").exists()
    ok("rm", "-r", shown)
    assert not (store / "a").exists()


def test_it_is_removed_and_made_anew_with_its_chunks_first(lost, tmp_path):
    store, shown, written, copy, _ = lost
    # tar(1) makes files in the order of its arguments, and cp(1) in that of the directory.
    ok("tar", "-C", copy, "-cf", tmp_path / "a.tar", "0", "1", ".zarray")
    for again in (("cp", "-r", copy, written), ("tar", "-C", written, "-xf", tmp_path / "a.tar")):
        ok("rm", "-r", written)
        assert not (store / "a").exists()
        if again[0] == "tar":
            written.mkdir()
        ok(*again)
        check(store, shown, list(range(8)))
        # The document goes once more.
        (written / ".zarray").unlink()
        assert attempt(shown / "0") == (DECODED[0] if shown == written else "ESTALE")


def test_it_is_moved_and_another_one_takes_its_place(lost):
    store, shown, written, _, _ = lost
    ok("mv", written, written.with_name("b"))
    for dtype, chunk, value in [("<u2", 2, 5), ("<i8", 4, 6)]:
        zarr.open_array(str(written), mode="w", shape=(4,), chunks=(chunk,), dtype=dtype, zarr_format=2, compressor=None)[...] = value
        check(store, shown, [value] * 4)
    assert (store / "b" / "0").exists()


@pytest.mark.parametrize("view", ["keys", "chunks"])
def test_an_array_is_moved_object_by_object_from_its_document_on(view, mount, tmp_path):
    store = make(tmp_path / "store")
    made = mount(store, "--view", view, *ARGUMENTS)
    here, there = made.path / "a", made.path / "b"
    names = [name for name in sorted(path.name for path in here.iterdir()) if name != ".zarray"]
    there.mkdir()
    for name in [".zarray", *names]:
        ok("cp", here / name, there / name)
        (here / name).unlink()
    here.rmdir()
    made.unmount()
    assert values(store / "b") == list(range(8))


def test_a_chunk_that_is_open_is_not_shared_once_its_document_is_another_one(mount, tmp_path):
    store = make(tmp_path / "store")
    made = mount(store, "--view", "chunks", "--ttl", "3600", *ARGUMENTS)
    with open(made.path / "a" / "0", "rb"):
        document = store / "a" / ".zarray"
        text = json.loads(document.read_text())
        document.write_text(json.dumps(text | {"dtype": "<i4"}))
        assert attempt(made.path / "a" / "0") == np.arange(4, dtype=">i4").tobytes()
    made.unmount()


PLAIN = dict(shape=(8,), chunks=(2,), dtype="<i2", compressors=None, fill_value=3)
SHARDED = dict(shape=(8,), shards=(8,), chunks=(4,), dtype="<i4", fill_value=7)


@pytest.mark.parametrize("first,second", [(SHARDED, PLAIN), (PLAIN, SHARDED), (SHARDED, SHARDED | {"dtype": "<u2", "shards": (4,), "chunks": (2,)})], ids=["sharded plain", "plain sharded", "sharded sharded"])
@pytest.mark.parametrize("view", ["keys", "chunks"])
def test_a_directory_that_was_emptied_takes_another_array_with_its_chunks_first(view, first, second, mount, tmp_path):
    store = tmp_path / "store"
    zarr.create_group(str(store))
    for name, what, value in [("a", first, 1), ("b", second, 2)]:
        zarr.create_array(str(store / name), **what)[...] = np.arange(8) + value
    made = mount(store, "--view", view, "--missing", "hide", "--rw")
    here = made.path / "a"
    # The views show an array without shards, so that its inner chunks are the chunks of the copy.
    ok("tar", "-C", made.path / "b", "-cf", tmp_path / "b.tar", "c", "zarr.json")
    for name in ("c", "zarr.json"):
        ok("rm", "-r", here / name)
    assert list(store.rglob("a/*")) == list(here.iterdir()) == []
    ok("tar", "-C", here, "-xf", tmp_path / "b.tar")
    assert values(store / "a") == values(here) == list(range(2, 10))
    ok("rm", "-r", here)
    assert not (store / "a").exists()


def test_another_array_over_one_without_its_document_is_refused(mount, tmp_path):
    """The shards are still in the store, and no document says how their inner chunks are encoded."""
    store = tmp_path / "store"
    zarr.create_group(str(store))
    for name, what in [("a", SHARDED), ("b", PLAIN)]:
        zarr.create_array(str(store / name), **what)[...] = np.arange(8)
    made = mount(store, "--view", "keys", "--missing", "hide", "--rw")
    (made.path / "a" / "zarr.json").unlink()
    copied = run("cp", "-r", f"{made.path / 'b'}/.", made.path / "a")
    assert copied.returncode != 0 and "Invalid argument" in copied.stderr
    assert sorted(path.name for path in (made.path / "a" / "c").iterdir()) == ["0", "1"]
    ok("rm", "-r", made.path / "a")
    ok("cp", "-r", made.path / "b", made.path / "a")
    assert values(store / "a") == values(made.path / "a") == list(range(8))
