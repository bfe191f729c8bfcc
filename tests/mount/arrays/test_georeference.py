"""Where arrays lie on the earth: what t.json and ENVI headers say, also after a change, and what is left out of hostile stores."""
import json
import re

import numpy as np
import pytest
import zarr
from support.array_view import info
from support.mounting import BINARY, ok as run_ok

UTM = "EPSG:32632"
NORTH_UP = [500000.0, 10.0, 0.0, 4600000.0, 0.0, -10.0]


def store(path, own=None, group=None, x=None, y=None, chunks=4):
    """A store of one array of 8 x 8 elements; `x` and `y` are its coordinates."""
    root = zarr.create_group(str(path), attributes=group or {})
    array = root.create_array("t", shape=(8, 8), chunks=(4, 4), dtype="u2", dimension_names=["y", "x"], attributes=own or {})
    array[...] = np.arange(64).reshape(8, 8)
    for name, values in (("y", y), ("x", x)):
        if values is not None:
            root.create_array(name, shape=values.shape, chunks=(chunks,), dtype=values.dtype, dimension_names=[name])[...] = values
    return path


def shown(mount, path, *more):
    return mount(path, "--view", "arrays", "--files", "envi,raw,nc", *more)


def map_info(made):
    """The numbers of ENVI's transform, in GDAL's order."""
    found = re.search(r"map info = \{[^,]*, 1, 1, ([^,]*), ([^,]*), ([^,]*), ([^,}]*)", (made.path / "t.raw.hdr").read_text())
    if not found:
        return None
    left, top, dx, dy = map(float, found.groups())
    return [left, dx, 0, top, 0, -dy]


def regular(first, step, dtype="f8"):
    return (first + step * np.arange(8)).astype(dtype)


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i2"])
def test_coordinates_are_centres_of_pixels(mount, tmp_path, dtype):
    made = shown(mount, store(tmp_path / "s", x=regular(105, 10, dtype), y=regular(-5, -20, dtype)))
    assert map_info(made) == [100, 10, 0, 5, 0, -20]
    assert "georeference" not in json.loads((made.path / "t.json").read_text())
    assert "coordinate system" not in (made.path / "t.raw.hdr").read_text()


def test_a_selection_begins_later(mount, tmp_path):
    own = {"proj:code": UTM, "spatial:transform": [10, 0, 500000, 0, -10, 4600000]}
    made = shown(mount, store(tmp_path / "s", own))
    assert map_info(made) == NORTH_UP
    header = (made.path / "t@2:,3:6.raw.hdr").read_text()
    assert "UTM, 1, 1, 500030.0, 4599980.0, 10.0, 10.0, 32, North, WGS-84" in header
    said = json.loads((made.path / "t.json").read_text())["georeference"]
    assert said == {"crs": UTM, "transform": NORTH_UP, "y": "y", "x": "x"}


def test_coordinates_that_change_are_read_again(mount, tmp_path):
    path = store(tmp_path / "s", x=regular(5, 10), y=regular(5, 10))
    made = shown(mount, path)
    assert map_info(made)[0] == 0
    # The second of two chunks: all coordinates count, and not the first ones alone.
    zarr.open_array(str(path / "x"), mode="r+")[4:] = regular(1005, 10)[4:]
    assert map_info(made) is None
    zarr.open_array(str(path / "x"), mode="r+")[:4] = regular(1005, 10)[:4]
    assert map_info(made)[0] == 1000


def test_a_transform_that_a_selection_has_kept_gives_way_to_coordinates(mount, tmp_path):
    path = store(tmp_path / "s", {"grid_mapping": "spatial_ref"}, x=regular(500035, 10), y=regular(4599975, -10))
    root = zarr.open_group(str(path), mode="r+")
    attributes = {"crs_wkt": 'PROJCS["a",AUTHORITY["EPSG","32632"]]', "GeoTransform": "500000 10 0 4600000 0 -10"}
    root.create_array("spatial_ref", shape=(), dtype="i8", attributes=attributes)[...] = 0
    assert map_info(shown(mount, path)) == [500030, 10, 0, 4599980, 0, -10]
    root["x"][:], root["y"][:] = regular(500005, 10), regular(4599995, -10)
    assert map_info(shown(mount, path)) == NORTH_UP


HOSTILE = {
    "long": ({"_CRS": {"wkt": 'GEOGCS["' + "a" * 1_000_000 + '"]'}}, "length of the description"),
    "deep": ({"_CRS": {"wkt": "A[" * 20_000 + "]" * 20_000}}, "neither Well-Known Text"),
    "type": ({"_CRS": {"wkt": 7}}, "no text"),
    "list": ({"proj:projjson": [1]}, "no PROJJSON"),
    "zero": ({"spatial:transform": [0, 0, 0, 0, 0, 0]}, "no transform"),
    "words": ({"spatial:transform": ["1", 0, 0, 0, 1, 0]}, "neither six numbers"),
    "absent": ({"grid_mapping": "crs\n"}, 'variable "crs\\n"'),
    "size": ({"spatial:transform": [1, 0, 0, 0, 1, 0], "spatial:shape": [1 << 40, 8]}, "another size"),
}


def test_info_names_coordinates_that_give_no_transform(tmp_path):
    path = store(tmp_path / "s", {"proj:code": UTM}, x=regular(5, 10) ** 2, y=regular(5, 10))
    facts = json.loads(run_ok(BINARY, "--info", "--json", "--files", "npy,envi", path, "t"))[0]
    assert facts["georeference_error"].startswith("x.coordinates: ")
    facts = json.loads(run_ok(BINARY, "--info", "--json", "--files", "npy", path, "t"))[0]
    assert "georeference_error" not in facts


@pytest.mark.parametrize("name", HOSTILE)
def test_wrong_descriptions_are_left_out_with_the_reason(mount, tmp_path, name):
    own, reason = HOSTILE[name]
    made = shown(mount, store(tmp_path / "s", own))
    said = json.loads((made.path / "t.json").read_text())
    assert reason in said["georeference_error"]
    assert "georeference" not in said
    assert f"no georeference, or not all of it: {said['georeference_error']}" in info(tmp_path / "s", "t", files="envi")
    header = (made.path / "t.raw.hdr").read_text()
    assert "map info" not in header and "coordinate system" not in header
    assert np.fromfile(made.path / "t.raw", "u2").tolist() == list(range(64))
    assert (made.path / "s.nc").stat().st_size > 128


def test_a_grid_mapping_of_many_megabytes_is_not_read(mount, tmp_path):
    path = store(tmp_path / "s", {"grid_mapping": "crs"})
    zarr.open_group(str(path), mode="r+").create_array("crs", shape=(), dtype="i4")
    document = json.loads((path / "crs/zarr.json").read_text())
    document["attributes"] = {"crs_wkt": 'GEOGCS["' + "a" * 20_000_000 + '"]'}
    (path / "crs/zarr.json").write_text(json.dumps(document))
    made = shown(mount, path)
    said = json.loads((made.path / "t.json").read_text())
    assert "georeference" not in said and "georeference_error" in said
    assert np.fromfile(made.path / "t.raw", "u2").tolist() == list(range(64))


@pytest.mark.parametrize("x", [regular(0, 0), np.array([0, 1, 2, 3, 4, 5, 6, 8.0]), np.full(8, np.nan), np.array(list("abcdefgh"), dtype="U1")],
                         ids=["same", "irregular", "nan", "text"])
def test_irregular_coordinates_give_no_transform(mount, tmp_path, x):
    made = shown(mount, store(tmp_path / "s", {"proj:code": UTM}, x=x, y=regular(5, 10)))
    assert map_info(made) is None
    assert "coordinate system string = {PROJCS" in (made.path / "t.raw.hdr").read_text()


def test_damaged_coordinates_give_no_transform(mount, tmp_path):
    path = store(tmp_path / "s", x=regular(5, 10), y=regular(5, 10))
    (path / "x/c/1").write_bytes(b"no zstd")
    made = shown(mount, path)
    assert map_info(made) is None
    assert np.fromfile(made.path / "t.raw", "u2").tolist() == list(range(64))


def test_only_files_with_a_transform_read_coordinates(mount, tmp_path):
    """NetCDF has the coordinates themselves: its header needs no chunk of them."""
    path = store(tmp_path / "s", {"proj:code": UTM}, x=regular(5, 10), y=regular(5, 10))
    (path / "x/c/1").write_bytes(b"no zstd")
    made = shown(mount, path)
    with open(made.path / "s.nc", "rb") as file:
        header = file.read(4096)
    assert b"spatial_ref" in header and b"PROJCS" in header and b"projection_x_coordinate" in header
