"""Climate data and microscope images: what CF and OME-NGFF say arrives in the readers of other formats."""
import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from support import array_samples, array_science as science, array_view, corpus
from support.array_client import Readers
from support.workers.canonical import canonical, digest
from support.mounting import ok


@pytest.fixture(scope="module")
def readers():
    with Readers() as found:
        yield found


@pytest.fixture(scope="module", params=[2, 3], ids=["v2", "v3"])
def climate(request, tmp_path_factory, module_mount):
    root = science.write_climate(tmp_path_factory.mktemp("climate") / "era", request.param)
    return module_mount(root, *array_view.everything("nc", "h5")).path


@pytest.fixture(scope="module", params=["0.4", "0.5"])
def microscope(request, tmp_path_factory, module_mount):
    root = science.write_image(tmp_path_factory.mktemp("ome") / "cells", request.param)
    return module_mount(root, *array_view.everything("nc", "h5")).path


@pytest.mark.parametrize("format", ["nc", "h5"])
def test_packed_values_unpack(climate, readers, format):
    path = climate / f"era.{format}"
    stored = readers.ask("netcdf4", path, name="t2m")
    assert stored["dtype"] == "<i2" and stored["sha256"] == digest(canonical(science.packed()))
    said = stored["said"]
    assert said["dimensions"] == ["time", "lat", "lon"] and said["unlimited"] == []
    assert (said["scale_factor"], said["add_offset"], said["_FillValue"]) == (science.SCALE, science.OFFSET, science.MISSING)
    assert said["valid_range"] == [-30000, 30000] and said["units"] == "K"
    assert said["global"]["Conventions"] == "CF-1.8" and said["global"]["title"] == "températures" and said["global"]["runs"] == 3
    assert "_ARRAY_DIMENSIONS" not in said
    shown = readers.ask("netcdf4", path, name="t2m", converted=True, with_values=True)
    expected = science.unpacked()
    assert np.allclose(np.where(np.isnan(expected), 0, shown["values"]), np.where(np.isnan(expected), 0, expected), rtol=1e-12)


def test_the_climate_file_is_cdf2(climate, readers):
    found = readers.ask("scipy_netcdf", climate / "era.nc", name="lat")
    assert (found["dtype"], found["sha256"]) == ("<f4", digest(canonical(science.coordinates()["lat"])))
    header = ok("ncdump", "-c", climate / "era.nc")
    assert re.search(r"short t2m\(time, lat, lon\) ;", header) and "t2m:_FillValue = -32768s ;" in header
    assert 't2m:grid = "{\\"kind\\":' in header and "lat = -85.5, " in header


def test_gdal_sees_the_grid(climate):
    told = ok("gdalinfo", f"NETCDF:{climate / 'era.nc'}:t2m")
    assert "Size is 20, 10" in told and "Band 6" in told
    assert re.search(r"Pixel Size = \(18\.0*,-?19\.0*\)", told), told
    assert "Scale:0.01" in told and "NoData Value=-32768" in told


@pytest.mark.parametrize("name", ["xarray_v2.zarr", "xarray_v3.zarr", "xarray_v3_plain.zarr"])
def test_stores_that_xarray_wrote(name, readers, mount):
    """The files of the group have each array of integers or floats, bit for bit, unless they leave it out."""
    store = corpus.stores()[name]
    made = mount(store.path, *array_view.everything("nc", "h5"))
    for format in ("nc", "h5"):
        path = array_view.file_of(made.path, "x", format)
        for array in store.decodable():
            if format in array_view.left_out(made.path, array["path"]) or "sha256" not in array or str(array["dtype"])[1] not in "iuf":
                continue
            found = readers.ask("netcdf4", path, name=array["path"])
            assert (found["dtype"], found["sha256"]) == (array["dtype"], array["sha256"]), (format, array["path"])


def approx(*values):
    return pytest.approx(values, rel=1e-6)


def test_imagej_knows_the_voxel(microscope, readers):
    found = readers.ask("tifffile", microscope / "0.tif")
    assert found["sha256"] == digest(canonical(science.image().transpose(0, 2, 1, 3, 4))) and found["said"]["axes"] == "TZCYX"
    imagej = found["said"]["imagej"]
    assert (imagej["channels"], imagej["slices"], imagej["frames"]) == (3, 4, 2)
    assert imagej["spacing"] == science.VOXEL[2] and imagej["finterval"] == science.INTERVAL
    assert imagej["unit"] in ("micron", "um", "\\u00B5m", "µm")
    steps = [denominator / numerator for numerator, denominator in found["said"]["resolution"]]
    assert steps == approx(*science.VOXEL[:2])


def test_imagej_knows_the_channels(microscope, readers):
    imagej = readers.ask("tifffile", microscope / "0.tif")["said"]["imagej"]
    names = [name for name, _, _ in science.CHANNELS]
    assert imagej["Labels"] == names * 8, "channels vary fastest"
    assert imagej["Ranges"] == [number for _, _, window in science.CHANNELS for number in window]
    assert [[row[255] for row in table] for table in imagej["LUTs"]] == [list(bytes.fromhex(color)) for _, color, _ in science.CHANNELS]
    assert imagej["mode"] == "composite"
    # A part of the array has the channels of the part.
    imagej = readers.ask("tifffile", microscope / "0@:,1:3.tif")["said"]["imagej"]
    assert imagej["Labels"] == names[1:] * 8


def test_ome_tiff_knows_the_channels(microscope, readers):
    ome = ElementTree.fromstring(readers.ask("tifffile", microscope / "0.ome.tif")["said"]["ome"])
    found = [(channel.get("Name"), channel.get("Color")) for channel in ome.iterfind(".//{*}Channel")]
    assert found == [(name, str(int.from_bytes(bytes.fromhex(color + "FF"), "big", signed=True))) for name, color, _ in science.CHANNELS]
    assert ome.find("{*}Image").get("Name") == "image"


def test_the_sidecar_has_the_channels(microscope):
    axes = json.loads((microscope / "0.json").read_text())["axes"]
    expected = [{"label": name, "color": color, "window": list(window)} for name, color, window in science.CHANNELS]
    assert [axis.get("channels") for axis in axes] == [None, expected, None, None, None]


def test_ome_tiff_knows_the_voxel(microscope, readers):
    found = readers.ask("tifffile", microscope / "0.ome.tif")
    assert found["sha256"] == digest(canonical(science.image())) and found["said"]["axes"] == "TCZYX"
    ome = found["said"]["ome"]
    sizes = [float(re.search(rf'PhysicalSize{axis}="([^"]+)"', ome)[1]) for axis in "XYZ"]
    assert sizes == approx(*science.VOXEL)
    assert float(re.search(r'TimeIncrement="([^"]+)"', ome)[1]) == science.INTERVAL
    units = re.findall(r'PhysicalSize[XYZ]Unit="([^"]+)"', ome)
    assert set(units) <= {"µm"}, "µm is the schema's default"


def test_nifti_knows_the_voxel(microscope, readers):
    found = readers.ask("nibabel", microscope / "0.nii")
    assert found["sha256"] == digest(canonical(science.image()))
    said = found["said"]
    assert said["zooms"][:3] == approx(*science.VOXEL) and said["units"][0] == "micron"
    assert [said["affine"][n][n] for n in range(3)] == approx(*science.VOXEL)
    # The dataset's translation is applied before the scale of the whole image.
    assert [row[3] for row in said["affine"][:3]] == approx(6.0, 2.0, 8.0)


def test_volumes_of_one_channel_at_one_time(microscope, readers):
    """MRC, VTK and FITS hold volumes: a selection is opened by its name."""
    values = np.ascontiguousarray(science.image()[1, 2])
    mrc = readers.ask("mrcfile", microscope / "0@1,2.mrc")
    assert mrc["sha256"] == digest(values) and mrc["said"]["valid"]
    assert mrc["said"]["voxel"] == approx(*(1e4 * step for step in science.VOXEL))
    vti = readers.ask("vti", microscope / "0@1,2.vti")
    assert vti["sha256"] == digest(values)
    assert [float(n) for n in vti["said"]["Spacing"].split()] == approx(*science.VOXEL)
    assert [float(n) for n in vti["said"]["Origin"].split()] == approx(6.0, 2.0, 8.0)
    fits = readers.ask("astropy", microscope / "0@1,2.fits")
    assert fits["sha256"] == digest(values)
    assert [fits["said"][f"CDELT{n}"] for n in (1, 2, 3)] == approx(*science.VOXEL)


def test_nrrd_and_metaimage_know_the_voxel(microscope, readers):
    nrrd = readers.ask("nrrd", microscope / "0@1,2.nhdr")
    said = nrrd["said"]
    steps = said.get("spacings") or [max(map(abs, row)) for row in said["space directions"]]
    assert nrrd["sha256"] == digest(canonical(science.image()[1, 2])) and steps == list(approx(*science.VOXEL).expected)
    mhd = readers.ask("metaimage", microscope / "0.mhd")
    assert mhd["sha256"] == digest(canonical(science.image()))
    # Lengths in MetaImage are millimeters, whatever the unit of the image.
    assert [float(n) for n in mhd["said"]["ElementSpacing"].split()[:3]] == approx(*(1e-3 * step for step in science.VOXEL))


def test_a_level_has_its_own_voxel(microscope, readers):
    found = readers.ask("nibabel", microscope / "1.nii")
    assert found["said"]["zooms"][:3] == approx(0.5, 1.0, 2.0)


def test_fill_values_in_fits(mount, tmp_path, readers):
    """A reader may make NaN of the fill value (BLANK) of each integer type, and must not lose other values."""
    group = array_samples.reopen(tmp_path / "s")
    for name in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"):
        values = np.arange(12, dtype=name).reshape(3, 4)
        group.create_array(name, shape=(3, 4), chunks=(2, 4), dtype=name, attributes={"_FillValue": 3})[...] = values
    made = mount(tmp_path / "s", "--view", "arrays", "--files", "fits")
    for name, _ in group.arrays():
        found = np.array(readers.ask("astropy", made.path / f"{name}.fits", with_values=True)["values"], float).ravel()
        assert np.delete(found, 3).tolist() == [0, 1, 2, *range(4, 12)] and (np.isnan(found[3]) or found[3] == 3), name


def test_nrrd_headers_are_ascii(mount, tmp_path, readers):
    group = array_samples.reopen(tmp_path / "s")
    attributes = {"é": 1, "ü": "日本", "title": "two\nlines", "a:=b": 2, "plain": "x"}
    group.create_array("a", shape=(3, 4), chunks=(2, 4), dtype="<i2", attributes=attributes)[...] = 5
    made = mount(tmp_path / "s", "--view", "arrays", "--files", "nhdr")
    assert readers.ask("nrrd", made.path / "a.nhdr")["said"]["plain"] == "x"
    (made.path / "a.nhdr").read_bytes().decode("ascii")
