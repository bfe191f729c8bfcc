"""Zip files, read in place: the mount holds what the file holds."""
import os
import zipfile
from pathlib import Path

import pytest

from support import corpus, reading

STORES = [s for s in corpus.stores().values() if s.entry["container"] == "zip"]


@pytest.fixture(params=STORES, ids=[s.name for s in STORES])
def store(request):
    return request.param


@pytest.fixture(params=["as written", "deflated in a folder"])
def packed(request, store, tmp_path):
    """The zip file of `store`, and its entries below the root of the hierarchy."""
    with zipfile.ZipFile(store.path) as source:
        entries = {name: source.read(name) for name in source.namelist() if not name.endswith("/")}
    if request.param == "as written":
        return store.path, entries
    path = tmp_path / "deflated.data"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
        for name, content in entries.items():
            target.writestr(f"some.zarr/{name}", content)
    return path, entries


def below(root):
    return {str(Path(base, name).relative_to(root)): Path(base, name).read_bytes()
            for base, _, names in os.walk(root) for name in names}


def test_entries_are_files(packed, mount):
    path, entries = packed
    assert below(mount(path, "--shards", "keep").path) == entries


@pytest.mark.parametrize("view", ["keys", "chunks"])
def test_arrays_have_their_values(store, packed, view, mount):
    root = mount(packed[0], "--view", view).path
    for array in store.decodable():
        for reader in ("zarr_python", "tensorstore"):
            got = reading.READERS[reader](root, array["path"], array["zarr_format"])
            assert reading.digest(reading.canonical(got)) == array["sha256"], (reader, array["path"])


def test_a_key_that_is_appended_appears(mount, tmp_path):
    path = tmp_path / "s.zip"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("zarr.json", '{"zarr_format":3,"node_type":"group"}')
        packed.writestr("note", "first")
    root = mount(path, "--ttl", "0").path
    assert (root / "note").read_text() == "first"
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(path, "a") as packed:
        packed.writestr("note", "second")
        packed.writestr("more", "appended")
    assert (root / "more").read_text() == "appended"
    assert (root / "note").read_text() == "second"
