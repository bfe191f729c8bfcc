"""xarray, zarr-python and GDAL as scientists use them: they make, extend and change data sets through a mount, and the store has it all."""
import itertools

import pytest

from support import mounting

PYTHON = {"xarray": mounting.CHECKOUT / ".venv-arrays/bin/python", "gdal": "/usr/bin/python3"}
VIEWS = {
    "keys": ("--view", "keys"),
    "whole shards": ("--view", "keys", "--shards", "keep"),
    "chunks": ("--view", "chunks"),
    "stored chunks": ("--view", "chunks", "--missing", "hide"),
    "keys as v2": ("--view", "keys", "--as", "v2"),
    "chunks as v2": ("--view", "chunks", "--as", "v2"),
    "chunks as v3": ("--view", "chunks", "--as", "v3"),
}
FORMATS = [(2, 0), (3, 0), (3, 1)]


def change(mount, tmp_path, view, program, way, *args, document):
    store = tmp_path / "store"
    store.mkdir()
    (store / document[0]).write_text(document[1])
    made = mount(store, "--rw", *VIEWS[view])
    mounting.ok(PYTHON[program], mounting.WORKERS / f"writing_{program}.py", way, store, made.path, *args, timeout=mounting.PATIENCE)
    assert made.stats()["writes"]["lost"] == 0
    assert (made.path / ".zarr-mount/refused").read_text() == ""


def root_of(zarr_format):
    if zarr_format == 2:
        return ".zgroup", '{"zarr_format": 2}'
    return "zarr.json", '{"zarr_format": 3, "node_type": "group", "attributes": {}}'


def changes():
    """Every way, in every view and format; `edit` in v3 is tried always, the other ones in the long tests."""
    for way, view, (zarr_format, shards) in itertools.product(("append", "region", "edit"), VIEWS, FORMATS):
        is_short = way == "edit" and (zarr_format, shards) == (3, 1)
        yield pytest.param(way, view, zarr_format, shards, marks=() if is_short else pytest.mark.long)


@pytest.mark.parametrize("way,view,zarr_format,shards", changes())
def test_xarray_changes_a_data_set(way, view, zarr_format, shards, mount, tmp_path):
    change(mount, tmp_path, view, "xarray", way, zarr_format, shards, document=root_of(zarr_format))


# In the other views a new array has no compressor, which xarray gives to each.
@pytest.mark.parametrize("zarr_format,shards", FORMATS[:2])
@pytest.mark.parametrize("view", ["keys", pytest.param("whole shards", marks=pytest.mark.long)])
def test_xarray_makes_a_data_set(view, zarr_format, shards, mount, tmp_path):
    change(mount, tmp_path, view, "xarray", "create", zarr_format, shards, document=root_of(zarr_format))


@pytest.mark.parametrize("view", ["keys", "whole shards", "chunks", "stored chunks", "chunks as v2"])
@pytest.mark.parametrize("way", ["create", "update"])
def test_gdal(way, view, mount, tmp_path):
    compressor = "none" if way == "create" and "chunks" in view else "ZLIB"
    change(mount, tmp_path, view, "gdal", way, compressor, document=root_of(2))
