"""The closure rule: a mount of `keys` or `chunks` read as a Zarr store gives what the store gives."""
import base64
import json
import os
from pathlib import Path

import pytest
import zarr

from support import chunk_grids, corpus, reading

# Walks read every virtual chunk; two fixtures have grids of 800,000.
WALKABLE_CHUNKS = 20_000
DOCUMENTS = ("zarr.json", ".zarray", ".zgroup", ".zattrs")
CASES = [(store, view) for store in corpus.of_kind("v2", "v3") for view in ("keys", "chunks")]


@pytest.fixture(scope="module", params=CASES, ids=[f"{s.name}-{v}" for s, v in CASES])
def shown(request, module_mount):
    """(store, view, root of the mount)"""
    store, view = request.param
    made = module_mount(store.path, "--view", view)
    yield store, view, made.path
    made.unmount()


def documents(root):
    """Relative path of every metadata document below `root`."""
    for base, _, files in os.walk(root):
        for name in files:
            if name in DOCUMENTS:
                yield Path(base, name).relative_to(root)


def decodable_paths(store):
    return {a["path"] for a in store.decodable()}


def wrong_reads(reader, store, root):
    """The arrays that this reader reads differently through the mount and from the store, and the arrays that it cannot read from the store."""
    wrong, skipped = [], []
    for array in store.decodable():
        args = array["path"], array["zarr_format"]
        if "sha256" not in array:
            continue
        if not reading.reads_the_store(reader, str(store.path), *args, array["sha256"]):
            skipped.append(f"{store.name}/{array['path']}")
            continue
        try:
            got = reading.digest(reading.canonical(reading.READERS[reader](root, *args)))
        except Exception as error:  # whatever class a reader refuses with, the store itself opened
            wrong.append(f"{array['path']}: {type(error).__name__}: {error}")
            continue
        if got != array["sha256"]:
            wrong.append(f"{array['path']}: other values")
    return wrong, skipped


def test_zarr_python(shown):
    store, _, root = shown
    wrong, _ = wrong_reads("zarr_python", store, root)
    assert not wrong


def test_tensorstore(shown, figure):
    store, view, root = shown
    wrong, skipped = wrong_reads("tensorstore", store, root)
    if view == "keys":
        for name in skipped:
            figure(f"tensorstore does not read the store itself: {name}")
    assert not wrong


def consolidated(root):
    """Path of each node -> its document, as the consolidated copy at the root has it."""
    if (root / ".zmetadata").exists():
        return json.loads((root / ".zmetadata").read_bytes())["metadata"]
    if (root / "zarr.json").exists():
        inline = json.loads((root / "zarr.json").read_bytes()).get("consolidated_metadata")
        return {f"{path}/zarr.json": doc for path, doc in inline["metadata"].items()} if inline else {}
    return {}


def same(a, b):
    """Equal documents, NaN being equal to itself, members of consolidated copies left out."""
    a, b = ({k: v for k, v in d.items() if k != "consolidated_metadata"} for d in (a, b))
    return json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True)


@pytest.mark.about(when=lambda store, _: consolidated(store.path))
def test_consolidated(shown):
    store, _, root = shown
    wrong, _ = wrong_reads("zarr_python_consolidated", store, root)
    assert not wrong


@pytest.mark.about(when=lambda store, _: consolidated(store.path))
def test_consolidated_copies_agree(shown):
    store, _, root = shown
    stored = consolidated(store.path)
    for key, copy in consolidated(root).items():
        own = store.path / key
        assert (root / key).exists(), f"{key}: in the consolidated copy alone, so its chunks would read as fill value"
        if own.exists() and same(stored[key], json.loads(own.read_bytes())):
            assert same(copy, json.loads((root / key).read_bytes())), key


def test_documents(shown):
    store, view, root = shown
    for path in documents(store.path):
        before = (store.path / path).read_bytes()
        node = "" if path.parent == Path(".") else str(path.parent)
        if view == "chunks" and path.name != "zarr.json" and (store.path / path.parent / "zarr.json").exists():
            continue  # a second description of the node, in v2: the view follows the one in v3
        if not (root / path).exists():
            assert view == "chunks" and node not in decodable_paths(store), f"{path} is not shown"
            assert refused(root / path.parent, path.name), f"{path} is gone without a word"
            continue
        after = (root / path).read_bytes()
        if needs_no_change(before, path.name, view):
            assert after == before, f"{path} needs no change and was changed"
            continue
        before, after = json.loads(before), json.loads(after)
        if before.get("dtype") == "|u1" and before["fill_value"] == "0":
            before["fill_value"] = 0  # n5-universe quotes the number, which strict readers refuse
        if str(before.get("dtype")).startswith("|S") and before["fill_value"] is not None:
            # tensorstore takes the bytes of the whole element alone
            whole = base64.b64decode(before["fill_value"]).ljust(int(before["dtype"][2:]), b"\0")
            before["fill_value"] = base64.b64encode(whole).decode()
        for member in ("attributes", "dimension_names", "shape", "zarr_format", "node_type", "fill_value"):
            assert json.dumps(before.get(member)) == json.dumps(after.get(member)), f"{path}: {member}"


def needs_no_change(document, name, view):
    if b"sharding_indexed" in document:  # of the array, or of one in a consolidated copy
        return False
    if view == "keys" or name == ".zgroup":
        return True
    if name == ".zattrs":  # but for the bare numbers that Python writes
        return b"NaN" not in document and b"Infinity" not in document
    parsed = json.loads(document)
    return parsed.get("node_type") == "group" and "consolidated_metadata" not in parsed


def refused(directory, name):
    """Whether a directory shows that its array cannot be decoded."""
    return (directory / "ERROR.txt").stat().st_size > 0 and (directory / f"{name}.unsupported").exists()


@pytest.mark.about(when=lambda store, _: "groups" in store.entry)
def test_groups(shown):
    store, _, root = shown
    for path in store.entry["groups"]:
        # Without the copies of consolidated metadata, of which one may have a grid that this zarr-python does not know.
        there, here = (zarr.open_group(str(at), path=path or None, mode="r", use_consolidated=False) for at in (store.path, root))
        assert dict(here.attrs) == dict(there.attrs), path


@pytest.mark.about(when=lambda _, view: view == "chunks")
def test_chunk_files(shown):
    """The decoded chunk files, put together by hand, with no Zarr library between."""
    store, _, root = shown
    for array in store.decodable():
        hashed = "sha256" in array or "chunk_sha256" in array
        if not hashed or "dtype" not in array:
            continue
        here = reading.Shown.at(root / array["path"])
        if str(array["dtype"]).startswith("vlen"):
            read = here.strings
        else:
            size = reading.itemsize(array)
            read = lambda *box: here.values(size, *box).tobytes()
        assert here.shape == tuple(array["shape"])
        if "sha256" in array:
            assert reading.digest(read()) == array["sha256"], array["path"]
        for grid, hashes in (("chunks", "chunk_sha256"), ("inner_chunks", "inner_chunk_sha256")):
            for chunk in array.get(hashes, ()):
                start = [side.start for side in chunk_grids.box(array[grid], chunk["index"])]
                stop = [a + n for a, n in zip(start, chunk["shape"])]
                got = read(start, stop)
                assert reading.digest(got) == chunk["sha256"], (array["path"], grid, chunk["index"])


def test_chunks_that_are_not_listed_decode_or_are_refused(shown):
    """Codecs outside the list may come to work, and never give other values."""
    store, view, root = shown
    for array in store.arrays:
        if array["path"] in decodable_paths(store) or "sha256" not in array or view != "chunks":
            continue
        directory = root / array["path"]
        if not (directory / "zarr.json").exists() and not (directory / ".zarray").exists():
            assert (directory / "ERROR.txt").stat().st_size > 0, array["path"]
            continue
        args = array["path"], array["zarr_format"]
        if reading.reads_the_store("zarr_python", str(store.path), *args, array["sha256"]):
            got = reading.canonical(reading.with_zarr_python(root, *args))
            assert reading.digest(got) == array["sha256"], array["path"]


@pytest.mark.about(when=lambda store, _: store.most_chunks() <= WALKABLE_CHUNKS)
def test_a_mount_of_the_mount_is_the_same(shown, module_mount):
    store, view, root = shown
    again = module_mount(root, "--view", view)
    try:
        assert reading.tree(again.path) == reading.tree(root)
    finally:
        again.unmount()
