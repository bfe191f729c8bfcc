"""An array whose last axis has 3 or 4 channels is a colour picture in tif and ome.tif: tifffile, Pillow and GDAL see its colours."""
import subprocess

import numpy as np
import pytest
import zarr

import mounting
from array_client import Readers
from canonical import canonical, digest

RGB = ("y", "x", "c")
# Shape, type, dimension names, and whether the last axis becomes samples.
ARRAYS = {
    "rgb": ((11, 13, 3), "u1", RGB, True),
    "rgba": ((11, 13, 4), "u1", ("y", "x", "rgba"), True),
    "deep": ((11, 13, 3), "u2", ("y", "x", "channel"), True),
    "float": ((11, 13, 3), "f4", ("row", "col", "band"), True),
    "stack": ((5, 11, 13, 3), "u1", ("z", "y", "x", "c"), True),
    "two": ((11, 13, 2), "u1", RGB, False),
    "unnamed": ((11, 13, 3), "u1", ("z", "y", "x"), False),
    "signed": ((11, 13, 3), "i2", RGB, False),
}


@pytest.fixture(scope="module")
def readers():
    with Readers() as readers:
        yield readers


@pytest.fixture(scope="module")
def pictures(module_mount, tmp_path_factory):
    group = zarr.open_group(str(tmp_path_factory.mktemp("pictures") / "p.zarr"), mode="w")
    values = {}
    for number, (name, (shape, dtype, dimensions, _)) in enumerate(ARRAYS.items()):
        values[name] = np.random.default_rng(number).integers(0, 200, shape).astype(dtype)
        chunks = [max(1, n // 2) for n in shape]
        group.create_array(name, shape=shape, chunks=chunks, dtype=dtype, dimension_names=dimensions)[...] = values[name]
    made = module_mount(str(group.store.root), "--files", "tif,ome.tif")
    return made.path, values


@pytest.mark.parametrize("name", ARRAYS)
def test_tifffile(pictures, readers, name):
    path, values = pictures
    is_colour = ARRAYS[name][3]
    for extension in ("tif", "ome.tif"):
        found = readers.ask("tifffile", path / f"{name}.{extension}")
        assert tuple(found["shape"]) == values[name].shape, (extension, found["said"]["axes"])
        assert found["sha256"] == digest(canonical(values[name])), extension
        assert found["said"]["axes"].endswith("S") == is_colour, found["said"]["axes"]
    mapped = readers.ask("tifffile_mapped", path / f"{name}.tif")
    assert mapped["sha256"] == digest(canonical(values[name]))


@pytest.mark.parametrize("name, mode", [("rgb", "RGB"), ("rgba", "RGBA"), ("stack", "RGB")])
def test_pillow(pictures, readers, name, mode):
    path, values = pictures
    found = readers.ask("pillow", path / f"{name}.ome.tif")
    expected = values[name] if values[name].ndim == 4 else values[name][np.newaxis]
    assert found["said"]["mode"] == mode and found["sha256"] == digest(canonical(expected))
    first = readers.ask("pillow", path / f"{name}.tif")
    assert first["said"]["mode"] == mode and first["sha256"] == digest(canonical(expected[:1]))


@pytest.mark.parametrize("name", ["rgb", "rgba", "deep", "float"])
def test_gdal(pictures, tmp_path, name):
    """Bands of colours, with the values of the array."""
    path, values = pictures
    for extension in ("tif", "ome.tif"):
        told = mounting.ok("gdalinfo", path / f"{name}.{extension}")
        channels = values[name].shape[-1]
        assert f"Band {channels} " in told and f"Band {channels + 1} " not in told, told
        assert "ColorInterp=Red" in told and ("ColorInterp=Alpha" in told) == (channels == 4), told
        raw = tmp_path / "out"
        subprocess.run(["gdal_translate", "-q", "-of", "ENVI", "-co", "INTERLEAVE=BIP", path / f"{name}.{extension}", raw], check=True)
        assert raw.read_bytes() == values[name].tobytes(), extension
