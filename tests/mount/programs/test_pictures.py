"""Maps and microscope images that real libraries wrote: programs find in the mount what the library that wrote a store says of it."""
import json
import posixpath
import re

import numpy as np
import pytest

from support import mounting, pictures
from support.workers.canonical import canonical, digest

FILES = "npy,envi,raw,nc"


@pytest.fixture(scope="module")
def stores(module_mount, tmp_path_factory):
    folder = pictures.unpack(tmp_path_factory.mktemp("pictures"))
    return module_mount(folder, "--view", "arrays", "--files", FILES)


def test_values(stores):
    for path, said in pictures.each("arrays").items():
        values = np.load(stores.path / f"{path}.npy")
        assert (list(values.shape), digest(canonical(values))) == (said["shape"], said["sha256"]), path


RASTERS = pictures.each("rasters")
# A header of ENVI has no rotation, and no system that has neither a code nor a text of version 1.
NOT_IN_ENVI = {"rio_turned.zarr", "gdal310_island.zarr", "gdal_island_draft.zarr", "geozarr_wkt2.zarr", "geozarr_projjson.zarr"}


def told(name):
    """The transform, the code and the name of the coordinate system that GDAL finds."""
    found = json.loads(mounting.ok("gdalinfo", "-json", name))
    wkt = found.get("coordinateSystem", {}).get("wkt")
    return found.get("geoTransform"), code_of(wkt), wkt and wkt.split('"')[1]


def code_of(wkt):
    """The code at the end of a text, if it has one."""
    code = re.search(r'(?:ID|AUTHORITY)\["EPSG","?(\d+)"?\]\]$', (wkt or "").strip())
    return code and int(code[1])


@pytest.mark.parametrize("path", RASTERS)
def test_gdal_finds_where_a_map_is(stores, path):
    said, store = RASTERS[path], path.split("/")[0]
    crs = said.get("crs") or {"wkt": None}
    expected = (said["transform"], code_of(crs["wkt"]), crs["wkt"] and crs["wkt"].split('"')[1])
    if store not in NOT_IN_ENVI and crs["wkt"]:
        assert told(stores.path / f"{path}.raw") == expected
    group, array = posixpath.split(path)
    file = stores.path / group / f"{posixpath.basename(group).removesuffix('.zarr')}.nc"
    found = told(f"NETCDF:{file}:{array}")
    if expected[0][5] > 0 and expected[0][2] == 0:
        # GDAL turns a NetCDF file round whose rows go north.
        assert found[1:] == expected[1:]
    elif crs["wkt"]:
        assert np.allclose(found[0], expected[0], rtol=0, atol=1e-12) and found[1:] == expected[1:]
    else:
        assert found[0] == expected[0]
