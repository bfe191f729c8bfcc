"""An array whose last axis has 3 or 4 channels is a colour picture in tif and ome.tif: tifffile, Pillow and GDAL see its colours."""
import errno
import json
import re
import subprocess

import numpy as np
import pytest
import zarr

from support import mounting
from support.array_client import Readers
from support.workers.canonical import canonical, digest

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


MASKS = {"truth": "?", "int32": "<i4", "uint32": ">u4", "int64": "<i8", "uint64": "<u8"}


@pytest.fixture(scope="module")
def masks(module_mount, tmp_path_factory):
    """Masks of labels, of which no value is known from the documents: those of 64 bits use all of them."""
    group = zarr.open_group(str(tmp_path_factory.mktemp("masks") / "m.zarr"), mode="w")
    values = {}
    for name, dtype in MASKS.items():
        values[name] = np.arange(3 * 11 * 13).reshape(3, 11, 13).astype(dtype)
        if np.dtype(dtype).kind != "b":
            values[name][:, 0, :2] = np.iinfo(dtype).min, np.iinfo(dtype).max
        group.create_array(name, shape=(3, 11, 13), chunks=(2, 6, 13), dtype=dtype, dimension_names=("z", "y", "x"))[...] = values[name]
    return module_mount(str(group.store.root), "--files", "tif,ome.tif"), values


@pytest.mark.parametrize("name", MASKS)
def test_masks_of_labels_are_images(masks, readers, tmp_path, name):
    made, values = masks
    expected = values[name].astype("u1") if name == "truth" else values[name]
    is_wide = expected.itemsize == 8
    for extension in ["tif"] if is_wide else ["tif", "ome.tif"]:
        path = made.path / f"{name}.{extension}"
        for reader in ["tifffile", "tifffile_mapped"] if extension == "tif" else ["tifffile"]:
            found = readers.ask(reader, path)
            assert (tuple(found["shape"]), found["sha256"]) == (expected.shape, digest(canonical(expected))), (extension, reader)
        mounting.ok("gdal_translate", "-q", "-mo", "TIFFTAG_IMAGEDESCRIPTION=copy", path, tmp_path / "copy.tif")
        copied = readers.ask("tifffile", tmp_path / "copy.tif")
        assert (copied["dtype"], copied["sha256"]) == (found["dtype"], digest(canonical(expected[0]))), extension
    if not is_wide:  # Pillow has no images of 64 bits
        found = readers.ask("pillow", made.path / f"{name}.tif")
        signed = expected[:1].astype("<i4") if expected.itemsize == 4 else expected[:1]
        assert found["sha256"] == digest(canonical(signed))
    # The model of OME has no integers of 64 bits, and each report of omissions says so.
    assert (made.path / f"{name}.ome.tif").exists() != is_wide
    left_out = json.loads((made.path / f"{name}.json").read_text()).get("left_out", {})
    told = mounting.ok(mounting.BINARY, "--info", "--files", "tif,ome.tif", made.store, name)
    assert ("ome.tif" in left_out) == is_wide and ("not ome.tif: data type" in told) == is_wide, told
    assert "not tif" not in told


@pytest.fixture(scope="module")
def labels(tmp_path_factory):
    """Masks of wide integers: of small labels, of labels that 16 bits do not hold, and of one that float32 does not hold."""
    group = zarr.open_group(str(tmp_path_factory.mktemp("labels") / "l.zarr"), mode="w")
    values = {}
    for name, dtype, most in [("small", "<i8", 250), ("many", "u8", 70_000), ("huge", "<i8", (1 << 24) + 1), ("wide", ">i4", 60_000)]:
        values[name] = (np.arange(3 * 11 * 13).reshape(3, 11, 13) % 200).astype(dtype)
        values[name][2, 10, 12] = most
        group.create_array(name, shape=(3, 11, 13), chunks=(2, 6, 13), dtype=dtype, dimension_names=("z", "y", "x"))[...] = values[name]
    return str(group.store.root), values


@pytest.mark.parametrize("integers, name", [
    ("uint8", "small"), ("uint16", "small"), ("uint16", "wide"), ("float32", "small"), ("float32", "many"), ("float32", "wide")])
def test_labels_are_narrowed_on_request(module_mount, labels, readers, integers, name):
    store, values = labels
    made = module_mount(store, "--files", "npy,tif,ome.tif,nii,mrc", "--integers", integers)
    expected = values[name].astype(integers)
    asked = [("tifffile", "tif"), ("tifffile_mapped", "tif"), ("tifffile", "ome.tif"), ("pillow", "ome.tif"), ("nibabel", "nii")]
    for reader, extension in asked + ([] if integers == "uint8" else [("mrcfile", "mrc")]):
        found = readers.ask(reader, made.path / f"{name}.{extension}")
        assert np.dtype(found["dtype"]) == np.dtype(integers), (reader, extension)
        assert found["sha256"] == digest(canonical(expected)), (reader, extension)
    # Files for programs that open wide integers have them as they are.
    assert np.array_equal(np.load(made.path / f"{name}.npy"), values[name])


@pytest.mark.parametrize("integers, name, most", [("uint8", "wide", 60_000), ("uint16", "many", 70_000), ("float32", "huge", 16_777_217)])
def test_a_label_that_does_not_fit_cannot_be_read(mount, labels, integers, name, most):
    """The label does not become another one. Planes without it can be read."""
    store, values = labels
    made = mount(store, "--files", "tif", "--integers", integers)
    size = values[name].size * np.dtype(integers).itemsize
    with open(made.path / f"{name}.tif", "rb", buffering=0) as file:
        with pytest.raises(OSError) as caught:
            file.seek(-size, 2)
            file.read()
        assert caught.value.errno == errno.EIO
    mounting.until(lambda: f"{most} is no {integers} (see --integers)" in made.log_text(), "a word in the log")


def test_info_names_integers_that_many_programs_do_not_open(labels):
    store, _ = labels
    told = mounting.ok(mounting.BINARY, "--info", "--files", "tif", store)
    # The line of an array has its name, and the lines below it are indented more.
    parts = re.split(r"\n  (?! )", told)
    hinted = [part.split()[0] for part in parts if "no integers of 64 bits (see --integers)" in part]
    assert hinted == ["huge", "many", "small"], told
    told = mounting.ok(mounting.BINARY, "--info", "--files", "ome.tif", store, "small")
    assert "not ome.tif: data type" in told and "(see --integers)" in told, told
    narrowed = mounting.ok(mounting.BINARY, "--info", "--files", "tif,ome.tif", "--integers", "uint16", store)
    assert "--integers" not in narrowed and "not ome.tif" not in narrowed, narrowed
    refused = mounting.run(mounting.BINARY, "--info", "--files", "npy", "--integers", "uint16", store)
    assert refused.returncode == 2 and "--integers is for images" in refused.stderr


def test_info_says_it_of_tiff_files_only(labels):
    store, _ = labels
    assert "integers of 64 bits" not in mounting.ok(mounting.BINARY, "--info", "--files", "nii,mrc,fits,vti", store)
    # An array without planes has no such files, whatever its integers are.
    told = mounting.ok(mounting.BINARY, "--info", "--files", "tif,ome.tif", "demo:", "air/time")
    assert "not tif: shape" in told and "integers of 64 bits" not in told, told
