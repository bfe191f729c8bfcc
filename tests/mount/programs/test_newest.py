"""Stores of the newest releases of zarr-python, xarray, dask, anndata and ome-zarr-py, which read and change them through mounts, too.

The libraries run in a system of their own (scripts/newest-root), because they need a newer Python.
"""
import shutil
import time

import pytest

from support import newest

pytestmark = [pytest.mark.root, pytest.mark.long, pytest.mark.alone, pytest.mark.local, pytest.mark.timeout(3600)]

VIEWS = {
    "keys": (),
    "whole shards": ("--shards", "keep"),
    "chunks": ("--view", "chunks"),
    "stored chunks": ("--view", "chunks", "--missing", "hide"),
    "keys as v2": ("--as", "v2"),
    "keys as v3": ("--as", "v3"),
    "chunks as v2": ("--view", "chunks", "--as", "v2"),
    "chunks as v3": ("--view", "chunks", "--as", "v3"),
}
# The grids of these arrays are not regular, and have no shards that could be expanded.
NOT_IN_V2 = {f"{group}/{name}_{dtype}" for group in ("plain", "copied") for name in ("lists", "one_length", "blosc") for dtype in ("f4", "i8")}


class Newest:
    """The libraries, which see the folder; and its store `written`."""

    def __init__(self, root, folder):
        self.root, self.folder = root, folder
        self.expected = self("write", "written")
        self.read = self("read", "written")

    def __call__(self, command, path):
        return newest.told(self.root, self.folder, command, path)

    def mounted(self, mount, store, name, *options):
        path = self.folder / name
        path.mkdir()
        return mount(self.folder / store, *options, path=path)


@pytest.fixture(scope="module")
def libraries(tmp_path_factory, figure):
    start = time.monotonic()
    root = newest.make()
    made = time.monotonic()
    found = Newest(root, tmp_path_factory.mktemp("newest"))
    figure(f"newest libraries: a system in {made - start:.0f} s, their stores in {time.monotonic() - made:.0f} s")
    return found


def test_the_libraries_read_what_they_wrote(libraries):
    assert {path: libraries.read[path] for path in libraries.expected} == libraries.expected
    assert not {name: said for name, said in libraries.read.items() if isinstance(said, str)}


@pytest.mark.parametrize("view", VIEWS)
def test_views(view, libraries, mount):
    name = view.replace(" ", "_")
    made = libraries.mounted(mount, "written", name, *VIEWS[view])
    found, expected = libraries("read", name), dict(libraries.read)
    if view.endswith("v2"):
        expected = {path: said for path, said in expected.items() if path not in NOT_IN_V2}
        for path in NOT_IN_V2:
            assert isinstance(found.pop(path), str)
            assert "cannot be expressed in v2" in (made.path / path / "ERROR.txt").read_text()
    if view == "keys as v2":
        found, expected = without_masks(found), without_masks(expected)
    assert found == expected


def without_masks(said):
    """The results without the variables in which xarray finds other missing values. Where absent chunks are filled with a value, the document
    of v2 has to say it, and xarray takes it for a missing value: a truth value, a time, and 0 in the data set with another `_FillValue`."""
    def without(variables):
        return {name: value for name, value in variables.items() if name not in ("land", "time")}

    return {name: without(found) if isinstance(found, dict) else found for name, found in said.items() if name not in ("xarray_encoded", "region")}


def test_files_of_whole_arrays(libraries, mount):
    libraries.mounted(mount, "written", "files", "--view", "arrays", "--files", "npy,nc,h5ad")
    found = libraries("files", "files")
    assert found == {path: libraries.read[path] for path in found}
    assert {"plain/sharded_lists_f4", "plain/record", "old/version_2_i8", "tissue", "xarray_encoded", "xarray_v2"} <= set(found)


@pytest.mark.parametrize("view", VIEWS)
def test_changes(view, libraries, mount):
    stores = [f"{way}_{view.replace(' ', '_')}" for way in ("direct", "through")]
    for store in stores:
        shutil.copytree(libraries.folder / "written", libraries.folder / store)
    direct = libraries("change", stores[0])
    made = libraries.mounted(mount, stores[1], f"{stores[1]}_mount", "--rw", *VIEWS[view])
    through = libraries("change", f"{stores[1]}_mount")
    made.unmount()
    stored, expected = libraries("read", stores[1]), libraries("read", stores[0])
    for path in NOT_IN_V2 & set(direct) if view.endswith("v2") else ():
        assert isinstance(through.pop(path), str) and direct.pop(path)
        assert stored.pop(path) == libraries.read[path] and expected.pop(path)
    if view != "whole shards":
        # A mount that does not show the store as it is keeps consolidated metadata up to date, which zarr-python does not.
        expected |= {path: said for path, said in direct.items() if path.startswith("copied/")}
    if view == "keys as v2":
        through, direct = (without_masks(said) for said in (through, direct))
    assert through == direct
    assert stored == expected
