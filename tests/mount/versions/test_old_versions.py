"""Stores of v1, of before v1 and of the v3 drafts as they are: no `--as`, which no library reads."""
import json
import math

import numpy as np
import pytest

from support import corpus, reading
from support.workers.canonical import numpy_type

OLD = corpus.of_kind("v1", "pre-v1", "v3-draft", "v3-draft-2022")


def chunk_file(root, path, index):
    """Where the mount has a chunk, by the layout of its store."""
    if not (root / "zarr.json").exists():
        return root / path / ".".join(map(str, index))
    inside = "root" if (root / "meta" / "root").exists() or (root / "meta" / "root.array.json").exists() else ""
    name = f"{inside}/{path}".strip("/") if path or inside else ""
    document = root / "meta" / (f"{name}.array.json" if name else "array.json")
    separator = json.loads(document.read_bytes())["chunk_grid"].get("separator", "/")
    base = root / "data" / name
    key = "c" + separator.join(map(str, index))
    # zarr-python 2 wrote `c0` for the one chunk of rank 0, the text has `c`.
    return base / "c0" if not index and (base / "c0").exists() else base / key


def cut(data, dtype, chunk_shape, shape):
    whole = np.frombuffer(data, f"V{dtype.itemsize}").reshape(chunk_shape)
    return whole[tuple(slice(0, n) for n in shape)].tobytes()


@pytest.mark.parametrize("store", OLD, ids=lambda s: s.name)
def test_decoded_chunks(store, mount):
    arrays = [a for a in store.arrays if a["expect"] == "ok" and a.get("chunk_sha256")]
    arrays = [a for a in arrays if not str(a["dtype"]).startswith("vlen")]
    if not arrays:
        pytest.skip("no hashes")
    root = mount(store.path, "--view", "chunks").path
    for array in arrays:
        dtype = numpy_type(array["dtype"])
        for chunk in array["chunk_sha256"]:
            file = chunk_file(root, array["path"], chunk["index"])
            if not (store.path / file.relative_to(root)).parent.exists() and not file.exists():
                continue  # a draft's array without any chunk has no directory to show them in
            data = file.read_bytes()
            assert len(data) == math.prod(array["chunks"]) * dtype.itemsize
            got = reading.digest(cut(data, dtype, array["chunks"], chunk["shape"]))
            assert got == chunk["sha256"], (array["path"], chunk["index"])


@pytest.mark.parametrize("store", OLD, ids=lambda s: s.name)
def test_keys_are_those_of_the_store(store, mount):
    root = mount(store.path, "--view", "keys", "--shards", "keep").path
    assert reading.tree(root) == reading.tree(store.path)


@pytest.mark.parametrize("name", ["zp2_draft_v3_sharded.zarr", "draft22_sharded.zarr"])
def test_draft_shards_expand_under_their_own_keys(name, mount):
    store = corpus.stores()[name]
    root = mount(store.path, "--view", "keys").path
    documents = [p for p in root.glob("meta/**/*.array.json")]
    assert documents
    for path in documents:
        shown = json.loads(path.read_bytes())
        stored = json.loads((store.path / path.relative_to(root)).read_bytes())
        assert stored.pop("storage_transformers") and shown.get("storage_transformers") in (None, [])
        shown.pop("storage_transformers", None)
        assert shown == stored
    chunks = [p for p in root.glob("data/**/*") if p.is_file()]
    shards = [p for p in store.path.glob("data/**/*") if p.is_file()]
    assert len(chunks) > len(shards)
    assert all(p.stat().st_size == len(p.read_bytes()) > 0 for p in chunks)
