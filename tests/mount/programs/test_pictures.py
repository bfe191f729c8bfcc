"""Maps and microscope images that real libraries wrote: programs find in the mount what the library that wrote a store says of it."""
import itertools
import json
import math
import re
import shutil
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from support import pictures
from support.array_client import Readers
from support.mounting import ok
from support.workers.canonical import canonical, digest

FILES = "npy,tif,ome.tif,geo.tif,nc,envi,png"
RASTERS, IMAGES = pictures.each("rasters"), pictures.each("images")
# A header of ENVI has no rotation, and no coordinate system that has neither a code of EPSG nor a text of version 1.
NOT_IN_ENVI = {"rio_turned", "gdal310_island", "gdal_island_draft", "geozarr_wkt2", "geozarr_projjson"}
# One map of each store. test_pictures_heavy.py reads all of them.
MAPS = [next(paths) for _, paths in itertools.groupby(RASTERS, lambda path: path.split("/")[0])]
needs_gdal = pytest.mark.skipif(shutil.which("gdalinfo") is None, reason="needs gdalinfo")


@pytest.fixture(scope="module")
def readers():
    with Readers() as readers:
        yield readers


@pytest.fixture(scope="module")
def stores(module_mount, tmp_path_factory):
    folder = pictures.unpack(tmp_path_factory.mktemp("pictures"))
    return module_mount(folder, "--view", "arrays", "--files", FILES)


def test_values(stores):
    for path, said in pictures.each("arrays").items():
        values = np.load(stores.path / f"{path}.npy")
        assert (list(values.shape), digest(canonical(values))) == (said["shape"], said["sha256"]), path


def seen(name):
    """GDAL's description of a raster."""
    return json.loads(ok("gdalinfo", "-json", name))


def proj4(crs):
    return ok("gdalsrsinfo", "-o", "proj4", crs).strip()


def assert_is_crs(wkt, said):
    """Whether the coordinate system that GDAL has found is that of the store."""
    if epsg := said["epsg"]:
        assert re.sub(r"\s", "", wkt).endswith(f'ID["EPSG",{epsg}]]'), wkt
    else:
        assert proj4(wkt) == proj4(said["wkt"]), wkt


def assert_is_in_place(found, said, transform=None):
    """Whether GDAL has the coordinate system and the transform that the store has."""
    assert found.get("geoTransform") == pytest.approx(transform or said["transform"], rel=1e-14), found.get("geoTransform")
    if "crs" in said:
        assert_is_crs(found["coordinateSystem"]["wkt"], said["crs"])
    else:
        assert not found.get("coordinateSystem", {}).get("wkt"), found["coordinateSystem"]


def same_number(found, expected):
    """Whether two numbers are equal, or are the same absence of one."""
    if expected is None or found is None:
        return found is expected
    return float(found) == float(expected) or math.isnan(float(found)) and math.isnan(float(expected))


def values_by_gdal(path, folder, *options):
    """The hash of all bands."""
    ok("gdal_translate", "-q", "-of", "ENVI", *options, path, folder / "bands")
    return digest((folder / "bands").read_bytes())


@needs_gdal
@pytest.mark.parametrize("path", MAPS)
def test_gdal_opens_geotiff(stores, tmp_path, path):
    said, file = RASTERS[path], stores.path / f"{path}.geo.tif"
    found = seen(file)
    assert_is_in_place(found, said)
    band = found["bands"][0]
    assert same_number(band.get("noDataValue"), said.get("nodata")), band
    assert (band.get("scale"), band.get("offset")) == (said.get("scale_factor"), said.get("add_offset")), band
    assert band.get("unit") == said.get("units")
    arrays, levels = pictures.each("arrays"), pictures.levels(path)
    assert [o["size"] for o in band.get("overviews", [])] == [arrays[level]["shape"][:-3:-1] for level in levels[1:]]
    for number, level in enumerate(levels):
        options = ["-oo", f"OVERVIEW_LEVEL={number - 1}"] if number else []
        assert values_by_gdal(file, tmp_path, *options) == arrays[level]["sha256"], level


@needs_gdal
@pytest.mark.parametrize("path", MAPS)
def test_gdal_opens_netcdf(stores, path):
    """GDAL turns maps over whose first row is in the south."""
    said, variable = RASTERS[path], stores.path / path
    if path.startswith("cf_parameters"):
        # GDAL makes a coordinate system of the parameters of the projection.
        said = {**said, "crs": {"wkt": "EPSG:3035", "epsg": None}}
    x0, dx, rx, y0, ry, dy = said["transform"]
    height = pictures.each("arrays")[path]["shape"][-2]
    north_up = [x0, dx, rx, y0 + height * dy, ry, -dy] if dy > 0 else said["transform"]
    group = variable.parent.name.removesuffix(".zarr")
    assert_is_in_place(seen(f'NETCDF:"{variable.parent}/{group}.nc":{variable.name}'), said, north_up)


@needs_gdal
@pytest.mark.parametrize("path", [path for path in MAPS if path.split(".")[0] not in NOT_IN_ENVI and "crs" in RASTERS[path]])
def test_gdal_opens_envi(stores, path):
    """GDAL finds the same place; it makes no code of the text."""
    said = RASTERS[path]
    assert_is_in_place(seen(stores.path / f"{path}.raw"), {**said, "crs": {**said["crs"], "epsg": None}})


@needs_gdal
@pytest.mark.parametrize("view", ["keys", "chunks"])
def test_gdal_opens_the_stores_as_v2(mount, tmp_path, view):
    """GDAL's driver of Zarr knows a coordinate system by the attribute `_CRS` alone."""
    made = mount(pictures.unpack(tmp_path / "stores"), "--view", view, "--as", "v2")
    for path in MAPS:
        store, array = path.split("/", 1)
        found = json.loads(ok("gdalmdiminfo", "-array", f"/{array}", f'ZARR:"{made.path / store}"'))
        if "crs" in RASTERS[path]:
            assert_is_crs(found["srs"]["wkt"], RASTERS[path]["crs"])
        else:
            assert "srs" not in found, path


@pytest.mark.parametrize("path", IMAGES)
def test_pyramids(stores, readers, path):
    """tifffile finds the levels, and the description of OME has the name, the voxel and the channels."""
    said, arrays = IMAGES[path], pictures.each("arrays")
    found = readers.ask("tifffile_levels", pictures.pyramid(stores.path, path))["said"]
    levels = [level for number, level in enumerate(said["levels"]) if number not in said.get("left_out_levels", [])]
    assert [level["sha256"] for level in found["levels"]] == [arrays[f"{path}/{level}"]["sha256"] for level in levels]
    pixels = ElementTree.fromstring(found["ome"]).find("{*}Image/{*}Pixels")
    assert {axis: float(pixels.get(f"PhysicalSize{axis.upper()}")) for axis in said["voxel"] if axis != "t"} == {
        axis: size for axis, size in said["voxel"].items() if axis != "t"}
    if said["channels"]:
        shown = [(channel.get("Name"), f"{int(channel.get('Color')) & 0xffffffff:08X}"[:6]) for channel in pixels.findall("{*}Channel")]
        assert shown == [(channel["label"], channel["color"]) for channel in said["channels"]]


@pytest.mark.parametrize("path", [path for path, said in IMAGES.items() if said["channels"]])
def test_channels_of_imagej(stores, readers, path):
    """The stacks for ImageJ name their planes after the channels, and have the colours and windows."""
    said = IMAGES[path]
    found = readers.ask("tifffile", stores.path / path / f"{said['levels'][0]}.tif")["said"]["imagej"]
    names = [channel["label"] for channel in said["channels"]]
    assert found["Labels"][: len(names)] == names and set(found["Labels"]) == set(names)
    assert found["Ranges"] == [end for channel in said["channels"] for end in channel["window"]]
    assert ["".join(f"{row[255]:02X}" for row in table) for table in found["LUTs"]] == [channel["color"] for channel in said["channels"]]


def test_previews(stores, readers):
    """Three channels whose windows are the whole range of the type, and whose colours are red, green and blue, are the picture itself."""
    values = np.load(stores.path / "ome05_flat.zarr/colours/s0.npy")
    found = readers.ask("pillow", stores.path / "ome05_flat.zarr/colours/s0.png")
    opaque = np.concatenate([np.moveaxis(values, 0, -1), np.full((*values.shape[1:], 1), 255, "u1")], axis=-1)
    assert found["said"]["mode"] == "RGBA" and found["sha256"] == digest(canonical(opaque[np.newaxis]))
    # Where the map has NODATA, the picture has its transparent colour, which is the first one of its table.
    height = np.load(stores.path / "rio_utm_v2.zarr/height.npy")[1]
    found = readers.ask("pillow", stores.path / "rio_utm_v2.zarr/height.png", with_values=True)
    assert ((np.array(found["values"][0]) == 0) == (height == -9999)).all()
