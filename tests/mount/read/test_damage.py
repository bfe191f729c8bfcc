"""The document of an array is damaged while a program has the array open through the mount, as happens for a moment if a writer writes it in
place. As long as it is not known whether a chunk exists, the mount must not say that it is absent, because a reader takes absence for fill values."""
import errno
import json
import os
import shutil
import zipfile
from contextlib import ExitStack

import numpy as np
import pytest
import zarr

from support.mounting import ok, until
from support.remote_fault_server import FaultServer

TTL = ("--ttl", "0.2")
REFUSALS = {errno.EIO, errno.EOPNOTSUPP, errno.ESTALE}
VIEWS = {"keys": ("keys",), "chunks": ("chunks", "--missing", "hide"), "keys as the other version": ("keys", "--as")}


def unknown_codec(document):
    """The document, which names an unknown codec."""
    document = json.loads(document)
    if document["zarr_format"] == 2:
        document["compressor"] = {"id": "nobody-knows"}
    else:
        document["codecs"] = [{"name": "bytes"}, {"name": "nobody-knows"}]
    return json.dumps(document).encode()


DAMAGES = {"empty": lambda document: b"", "cut": lambda document: document[:-20], "unknown codec": unknown_codec}


class Place:
    """A directory of a store, and the mount of it."""

    def __init__(self, root, kind, served):
        self.root, self.kind = root, kind
        self.store = {"directory": lambda: root, "zip": lambda: root.with_suffix(".zip"), "http": lambda: served(root.parent) + "/" + root.name}[kind]()
        self.publish()

    def publish(self):
        if self.kind == "zip":
            made = self.store.with_suffix(".new")
            with zipfile.ZipFile(made, "w") as archive:
                for path in sorted(self.root.rglob("*")):
                    if path.is_file():
                        archive.write(path, path.relative_to(self.root))
            os.replace(made, self.store)

    def put(self, path, content):
        path.write_bytes(content)
        self.publish()


@pytest.fixture
def served():
    with ExitStack() as servers:
        yield lambda root: servers.enter_context(FaultServer(root)).url


def make(root, version):
    """The array `x`, of which the first row of chunks is 1, and all others are absent."""
    layout = {"shards": (4, 4)} if version == 3 else {"chunk_key_encoding": {"name": "v2", "separator": "/"}}
    group = zarr.open_group(str(root), mode="w", zarr_format=version)
    array = group.create_array("x", shape=(8, 8), chunks=(2, 2), dtype="i4", fill_value=9, **layout)
    array[:2] = 1
    return root / "x" / ("zarr.json" if version == 3 else ".zarray")


def outcome(array, expected):
    """None if a read of the array gives the expected values, or the number of its error. Other values fail the test."""
    try:
        found = array[...]
    except OSError as error:
        assert error.errno in REFUSALS, error
        return error.errno
    assert (found == expected).all()
    return None


def refusal(look, *args):
    try:
        look(*args)
    except OSError as error:
        return error.errno
    return None


@pytest.mark.parametrize("kind, damage", [pytest.param(kind, damage, marks=[pytest.mark.long] if kind != "directory" and damage != "cut" else [])
                                          for kind in ("directory", "zip", "http") for damage in DAMAGES])
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("view", VIEWS)
def test_a_reader_gets_no_fill_values_of_an_array_whose_document_is_damaged(tmp_path, mount, served, view, version, kind, damage):
    options = list(VIEWS[view])
    if "--as" in options:
        options.append(f"v{5 - version}")
    document = make(tmp_path / "s.zarr", version)
    place = Place(tmp_path / "s.zarr", kind, served)
    made = mount(place.store, "--view", *options, *TTL)
    array = zarr.open_array(str(made.path / "x"), mode="r")
    expected = np.full((8, 8), 9)
    expected[:2] = 1
    assert outcome(array, expected) is None
    good = document.read_bytes()
    place.put(document, DAMAGES[damage](good))
    # The names of chunks of v2 are those of the store, whatever the codecs are.
    if (view, version, damage) != ("keys", 2, "unknown codec"):
        until(lambda: outcome(array, expected), "an error of a damaged array")
        wanted = errno.EOPNOTSUPP if damage == "unknown codec" else errno.EIO
        chunk = "x/3/3" if (version == 2) != ("--as" in options) else "x/c/3/3"
        until(lambda: refusal(os.stat, made.path / chunk) == wanted, "an error of a chunk")
    assert refusal(os.stat, made.path / "x/notes.txt") == errno.ENOENT
    if view != "keys" and kind != "http":
        assert "ERROR.txt" in os.listdir(made.path / "x")
    place.put(document, good)
    until(lambda: outcome(array, expected) is None, "the values of a mended array")


@pytest.mark.parametrize("view", ["keys", "chunks"])
def test_nothing_is_written_below_an_array_whose_document_is_damaged(tmp_path, mount, view):
    root = tmp_path / "s.zarr"
    document = make(root, 3)
    made = mount(root, "--rw", "--view", view, *TTL)
    (made.path / "x/c/0/0").read_bytes()
    good, shard = document.read_bytes(), (root / "x/c/0/0").read_bytes()
    document.write_bytes(b"")
    chunk = made.path / "x/c/0/0"
    until(lambda: refusal(os.stat, chunk) == errno.EIO, "an error of a chunk")
    assert refusal(chunk.write_bytes, b"\7" * 16) == errno.EIO
    assert refusal(os.unlink, chunk) == errno.EIO
    assert (root / "x/c/0/0").read_bytes() == shard
    document.write_bytes(good)
    until(lambda: refusal(os.stat, chunk) is None, "the mended array")
    assert (zarr.open_array(str(made.path / "x"), mode="r")[:2] == 1).all()


def test_the_keys_view_shows_and_removes_the_objects_of_a_damaged_array(tmp_path, mount):
    root = tmp_path / "s.zarr"
    make(root, 3).write_bytes(b"{")
    made = mount(root, "--rw", *TTL)
    assert (made.path / "x/c/0/0").read_bytes() == (root / "x/c/0/0").read_bytes()
    assert refusal(os.stat, made.path / "x/c/1/1") == errno.EIO
    assert refusal((made.path / "x/c/0/0").write_bytes, b"1") == errno.EIO
    shutil.rmtree(made.path / "x")
    assert not (root / "x").exists()


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("view", ["chunks", "keys as the other version"])
def test_an_array_whose_document_is_damaged_is_removed_with_its_chunks(tmp_path, mount, view, version, damage):
    root = tmp_path / "store"
    group = zarr.create_group(str(root), zarr_format=version)
    array = group.create_array("a", shape=(8, 8), chunks=(2, 2), dtype="u1", attributes={"k": 1})
    array[...] = 1
    group.create_array("b", shape=(4,), chunks=(2,), dtype="u1")[...] = 1
    document = root / "a" / (".zarray" if version == 2 else "zarr.json")
    document.write_bytes(DAMAGES[damage](document.read_bytes()))
    name, *more = VIEWS[view]
    arguments = [*more, f"v{5 - version}"] if "--as" in more else more
    made = mount(root, "--rw", "--view", name, *arguments)
    # Without the document, the directory is not removed: no program has asked for the removal of the chunks.
    with pytest.raises(OSError):
        os.rmdir(made.path / "a")
    assert document.exists()
    ok("rm", "-r", made.path / "a")
    assert not (root / "a").exists() and not (made.path / "a").exists()
    assert (root / "b").exists()
    # A new directory of this name is not taken for that of the removed array.
    (made.path / "a").mkdir()
    (made.path / "a/0").write_bytes(b"new")
    with pytest.raises(OSError):
        os.rmdir(made.path / "a")
    assert (root / "a/0").read_bytes() == b"new"


def test_files_that_others_put_beside_a_removed_document_stay(tmp_path, mount):
    root = tmp_path / "store"
    make(root, 3)
    document = root / "x/zarr.json"
    good = document.read_bytes()
    document.write_bytes(b"{")
    made = mount(root, "--rw", "--view", "chunks", "--ttl", "3600")
    assert (made.path / "x/zarr.json.unsupported").exists()
    # The document was repaired after it was listed.
    document.with_name("draft").write_bytes(good)
    document.with_name("draft").rename(document)
    assert refusal(os.unlink, made.path / "x/zarr.json.unsupported") in (errno.ENOENT, errno.ESTALE)
    assert document.read_bytes() == good
    document.write_bytes(b"{")
    made.unmount()
    made = mount(root, "--rw", "--view", "chunks")
    os.unlink(made.path / "x/zarr.json.unsupported")
    (root / "x/2024/11").mkdir(parents=True)
    (root / "x/2024/11/28").write_bytes(b"others")
    assert refusal(os.rmdir, made.path / "x") == errno.ENOTEMPTY
    assert (root / "x/2024/11/28").read_bytes() == b"others"
    assert (root / "x/c/0/0").exists()


@pytest.mark.parametrize("after", ["nothing", "group", "directory"])
@pytest.mark.parametrize("arguments", [[], ["--as", "v3"]], ids=["", "as v3"])
def test_a_stored_shard_is_no_inner_chunk_once_the_array_is_gone(tmp_path, mount, arguments, after):
    root = tmp_path / "store"
    array = zarr.create_group(str(root)).create_array("x", shape=(48,), chunks=(4,), shards=(16,), dtype="i4", fill_value=-5)
    array[...] = np.arange(48)
    made = mount(root, *arguments, "--ttl", "0")
    inner = (made.path / "x/c/1").read_bytes()
    assert inner != (root / "x/c/1").read_bytes()
    document = root / "x/zarr.json"
    document.unlink()
    if after == "group":
        document.write_text('{"zarr_format": 3, "node_type": "group"}')
    elif after == "directory":
        document.mkdir()
    for name in ("c/1", "c/2", "c/5"):
        assert refusal(os.stat, made.path / "x" / name) == errno.ESTALE, name


def test_a_chunk_is_stale_and_not_absent_while_the_document_is_replaced(tmp_path, mount):
    """A writer may remove the document before it writes another one."""
    root = tmp_path / "s.zarr"
    document = make(root, 3)
    made = mount(root, "--ttl", "3600")
    array = zarr.open_array(str(made.path / "x"), mode="r")
    expected = np.full((8, 8), 9)
    expected[:2] = 1
    assert outcome(array, expected) is None
    os.rename(document, document.with_name("kept"))
    until(lambda: outcome(array, expected) == errno.ESTALE, "an error of an array without a document")
    os.rename(document.with_name("kept"), document)
    until(lambda: outcome(array, expected) is None, "the values of the array")


@pytest.mark.parametrize("arguments", [(), ("--shards", "keep")], ids=["expand", "keep"])
@pytest.mark.parametrize("damage", ["cut", "unknown codec"])
@pytest.mark.parametrize("version", [2, 3])
def test_a_server_without_directories_does_not_hide_chunks(tmp_path, mount, served, version, damage, arguments):
    """The directory of a chunk key is no object there. That it is absent says nothing of the chunks below it."""
    group = zarr.open_group(str(tmp_path / "s"), mode="w", zarr_format=version)
    keys = {"chunk_key_encoding": {"name": "v2", "separator": "/"}} if version == 2 else {}
    group.create_array("x", shape=(4, 4), chunks=(2, 2), dtype="i4", **keys)[...] = 7
    document = tmp_path / "s" / "x" / (".zarray" if version == 2 else "zarr.json")
    document.write_bytes(DAMAGES[damage](document.read_bytes()))
    made = mount(served(tmp_path) + "/s", "--view", "keys", *arguments)
    chunk = made.path / "x" / ("0/0" if version == 2 else "c/0/0")
    assert refusal(chunk.read_bytes) in REFUSALS
    assert refusal((made.path / "x" / "notes.txt").read_bytes) == errno.ENOENT
    made.unmount()


DRAFT_ROOT = {"zarr_format": "https://purl.org/zarr/spec/protocol/core/3.0", "metadata_key_suffix": ".json", "extensions": [],
              "metadata_encoding": "https://purl.org/zarr/spec/protocol/core/3.0"}
DRAFT_ARRAY = {"shape": [4], "data_type": "|u1", "fill_value": 7, "chunk_memory_layout": "C", "extensions": [], "attributes": {},
               "chunk_grid": {"type": "regular", "chunk_shape": [2], "separator": "/"}}


@pytest.mark.parametrize("kind", ["directory", "http"])
@pytest.mark.parametrize("view", ["keys", "chunks"])
def test_the_arrays_of_a_draft_are_errors_while_its_root_is_damaged(tmp_path, mount, served, view, kind):
    root = tmp_path / "s.zarr"
    for key, content in {"zarr.json": json.dumps(DRAFT_ROOT), "meta/root/g.group.json": '{"attributes": {}}', "data/root/g/a/c0": "ab",
                         "meta/root/g/a.array.json": json.dumps(DRAFT_ARRAY)}.items():
        (root / key).parent.mkdir(parents=True, exist_ok=True)
        (root / key).write_text(content)
    place = Place(root, kind, served)
    made = mount(place.store, "--view", view, "--as", "v3", *TTL)
    array, expected = zarr.open_array(str(made.path / "g/a"), mode="r"), np.array([*b"ab", 7, 7])
    assert outcome(array, expected) is None
    good = (root / "zarr.json").read_bytes()
    place.put(root / "zarr.json", good[:20])
    until(lambda: outcome(array, expected) == errno.EIO, "an error of a damaged root")
    for name in ("g", "g/a", "g/a/c/1"):
        until(lambda: refusal(os.stat, made.path / name) == errno.EIO, f"an error of {name}")
    assert outcome(array, expected) == errno.EIO
    place.put(root / "zarr.json", good)
    until(lambda: outcome(array, expected) is None, "the values of a mended draft")


@pytest.mark.parametrize("view", ["keys", "chunks"])
def test_an_array_is_stale_when_a_directory_above_it_is_renamed(tmp_path, mount, view):
    root = tmp_path / "s.zarr"
    zarr.create_group(str(root)).create_array("g/h/x", shape=(4,), chunks=(2,), dtype="u1", fill_value=7)[:2] = 1
    made = mount(root, "--view", view, "--ttl", "3600")
    array, expected = zarr.open_array(str(made.path / "g/h/x"), mode="r"), np.array([1, 1, 7, 7])
    assert outcome(array, expected) is None
    os.rename(root / "g", root / "kept")
    until(lambda: outcome(array, expected) == errno.ESTALE, "an error of an array that is gone")
    os.rename(root / "kept", root / "g")
    until(lambda: outcome(array, expected) is None, "the values of the array")
