"""The levels of an image of OME-NGFF are one file of `ome.tif`, with the name, the voxel sizes and the channels of the image."""
import json
import os
import shutil
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
import zarr

from support import mounting, pictures
from support.array_client import Readers
from support.workers.canonical import canonical, digest

OME = "{http://www.openmicroscopy.org/Schemas/OME/2016-06}"
UNITS = {"µm": "micrometer", "s": "second"}


@pytest.fixture(scope="module")
def readers():
    with Readers() as readers:
        yield readers


@pytest.fixture(scope="module")
def written(module_mount, tmp_path_factory):
    """The images of ome-zarr-py, bioio, acquire-zarr and ngff-zarr, and the descriptions of them by these libraries."""
    folder = pictures.unpack(tmp_path_factory.mktemp("pictures"))
    return module_mount(folder, "--view", "arrays", "--files", "ome.tif"), pictures.each("images")


def file_of(root, group):
    """`G/G.ome.tif`, whose name lacks the suffix of a store."""
    return root / group / f"{group.rsplit('/', 1)[-1].removesuffix('.zarr')}.ome.tif"


def number(text):
    return None if text is None else float(text)


def test_levels_have_the_values_of_the_arrays(written, readers):
    made, images = written
    arrays = pictures.each("arrays")
    assert len(images) > 10
    for group, said in images.items():
        left_out = said.get("left_out_levels", [])
        expected = [arrays[f"{group}/{level}"] for number, level in enumerate(said["levels"]) if number not in left_out]
        found = readers.ask("tifffile_levels", file_of(made.path, group))["said"]
        assert [level["sha256"] for level in found["levels"]] == [array["sha256"] for array in expected], group
        assert [np.dtype(level["dtype"]).str for level in found["levels"]] == [np.dtype(array["dtype"]).str for array in expected]
        assert found["n_series"] == 1 and all(level["is_tiled"] for level in found["levels"]), group


def test_the_xml_says_what_the_writer_said(written, readers):
    made, images = written
    for group, said in images.items():
        found = readers.ask("tifffile_levels", file_of(made.path, group))["said"]
        image = ElementTree.fromstring(found["ome"]).find(f"{OME}Image")
        pixels = image.find(f"{OME}Pixels")
        assert image.get("Name") == said["name"] or said["name"] is None, group
        for axis, size in said["voxel"].items():
            if axis not in "xyz":
                assert axis != "t" or number(pixels.get("TimeIncrement")) == size, group
                continue
            assert number(pixels.get(f"PhysicalSize{axis.upper()}")) == size, (group, axis)
            assert UNITS[pixels.get(f"PhysicalSize{axis.upper()}Unit")] == said["units"][axis], (group, axis)
        channels = pixels.findall(f"{OME}Channel")
        for channel, expected in zip(channels, said["channels"] or [], strict=bool(said["channels"])):
            colour = int(channel.get("Color")) & 0xFFFFFFFF
            assert (channel.get("Name"), f"{colour >> 8:06X}") == (expected["label"], expected["color"]), group
        if said["channels"]:
            assert "&quot;window&quot;" in found["ome"] or '"window"' in found["ome"], group
        if {"x", "y"} <= said["units"].keys():
            per_centimetre = [numerator / denominator for numerator, denominator in found["resolution"]]
            assert per_centimetre == pytest.approx([1e4 / said["voxel"][axis] for axis in "xy"]), group


def test_gdal_reads_the_finest_level(written, tmp_path):
    made, _ = written
    path = made.path / "ome05_flat.zarr/plane/plane.ome.tif"
    told = json.loads(mounting.ok("gdalinfo", "-json", path))
    assert told["size"] == [90, 70] and told["bands"][0]["block"] != [90, 70]
    mounting.ok("gdal_translate", "-q", "-of", "ENVI", path, tmp_path / "out")
    assert digest((tmp_path / "out").read_bytes()) == pictures.each("arrays")["ome05_flat.zarr/plane/s0"]["sha256"]


def make_image(root, levels, attributes=None, axes="yx", **described):
    """An image of OME-NGFF 0.5 whose levels are these arrays, by path; returns the root."""
    group = zarr.open_group(str(root), mode="a")
    for path, values in levels.items():
        group.create_array(path, shape=values.shape, chunks=tuple(min(16, n) for n in values.shape), dtype=values.dtype)[...] = values
    kinds = {"t": "time", "c": "channel"}
    multiscale = {"axes": [{"name": name, "type": kinds.get(name, "space")} for name in axes],
                  "datasets": [{"path": path, "coordinateTransformations": [{"type": "scale", "scale": [1] * len(axes)}]} for path in levels]}
    ome = {"version": "0.5", "multiscales": [multiscale | described]} | (attributes or {})
    group.attrs["ome"] = ome
    return root


def plane(n, dtype="u2", *outer):
    return np.random.default_rng(n).integers(0, 200, (*outer, n, n)).astype(dtype)


def names(path):
    return sorted(os.listdir(path))


def omitted(store, *options):
    """The lines of `--info` about the file of the group."""
    return mounting.ok(mounting.BINARY, "--info", "--files", "ome.tif", *options, store).split("\n  0 ")[0]


def test_an_array_with_the_name_of_its_image_gives_way(mount, tmp_path, readers):
    """A field of a well often has the same name as its finest level. Then the file of all levels gets this name, and the file of the level another one."""
    levels = {"0": plane(64), "1": plane(32)}
    make_image(tmp_path / "p.zarr" / "B" / "3" / "0", levels)
    other = zarr.open_group(str(tmp_path / "p.zarr" / "g"), mode="w")
    other.create_array("g", shape=(8, 8), chunks=(8, 8), dtype="u1")
    root = zarr.open_group(str(tmp_path / "p.zarr"), mode="a")
    root.attrs["ome"] = {"plate": {"name": "screen", "wells": [{"path": "B/3"}]}}
    root.require_group("B/3").attrs["ome"] = {"well": {"images": [{"path": "0"}]}}
    made = mount(tmp_path / "p.zarr", "--files", "ome.tif", "--sidecar", "no")
    field = made.path / "B" / "3" / "0"
    assert names(field) == ["0.ome.tif", "0.ome.tif~", "1.ome.tif"]
    found = readers.ask("tifffile_levels", field / "0.ome.tif")["said"]
    assert [level["sha256"] for level in found["levels"]] == [digest(canonical(values)) for values in levels.values()]
    assert 'Name="screen B/3 field 0"' in found["ome"]
    alone = readers.ask("tifffile_levels", field / "0.ome.tif~")["said"]
    assert len(alone["levels"]) == 1
    # A group that is no image has no such file, and its array keeps its name.
    assert names(made.path / "g") == ["g.ome.tif"]


def test_levels_that_do_not_fit_are_named(mount, tmp_path, readers):
    fitting = {"0": plane(64, "u2", 4), "1": plane(32, "u2", 4), "deep/3": plane(8, "u2", 4)}
    levels = fitting | {"fewer": plane(16, "u2", 2), "wide": plane(40, "u2", 4), "type": plane(16, "i4", 4), "damaged": plane(16, "u2", 4)}
    order = ["0", "1", "fewer", "wide", "type", "damaged", "gone", "labels", "deep/3"]
    root = make_image(tmp_path / "i.zarr", levels, axes="zyx")
    document = json.loads((root / "zarr.json").read_text())
    ome = document["attributes"]["ome"]
    ome["multiscales"][0]["datasets"] = [{"path": path} for path in order] + [{"path": "../i.zarr/0"}, 7]
    ome["multiscales"].append({"datasets": [{"path": "0"}]})
    ome["omero"] = {"channels": "none"}
    (root / "zarr.json").write_text(json.dumps(document))
    (root / "damaged" / "zarr.json").write_text("{")
    zarr.open_group(str(root / "labels"), mode="w")
    told = omitted(root)
    for part in ["fewer: shape: 2 slices", "wide: shape: 40 x 40", "type: data type", "damaged: ", "gone: path: there is no array",
                 "labels: path: there is no array", "datasets[9]: path", "datasets[10]: path", "multiscales[1]: "]:
        assert part in told, (part, told)
    made = mount(root, "--files", "ome.tif")
    found = readers.ask("tifffile_levels", made.path / "i.ome.tif")["said"]
    assert [level["sha256"] for level in found["levels"]] == [digest(canonical(values)) for values in fitting.values()]
    assert "fewer: shape: 2 slices" in found["ome"] and "multiscales[1]" in made.log_text()
    sidecar = json.loads((made.path / "i.json").read_text())
    assert sidecar["files"] == {"ome.tif": "i.ome.tif"} and sidecar["left_out"]["ome.tif"]["gone"] == "path: there is no array"


def test_images_that_no_file_can_hold(mount, tmp_path, readers):
    root = zarr.open_group(str(tmp_path / "s.zarr"), mode="w")
    make_image(tmp_path / "s.zarr" / "labels", {"0": plane(32, "i8"), "1": plane(16, "i8")})
    make_image(tmp_path / "s.zarr" / "empty", {}, datasets=[{"path": "gone"}])
    make_image(tmp_path / "s.zarr" / "none", {})
    root["none"].create_array("0", shape=(4, 4), chunks=(4, 4), dtype="u1")
    made = mount(tmp_path / "s.zarr", "--files", "ome.tif", "--sidecar", "no")
    assert [names(made.path / group) for group in ("labels", "empty", "none")] == [[], [], ["0.ome.tif"]]
    told = omitted(tmp_path / "s.zarr")
    assert "not ome.tif: 0.data type" in told and "not ome.tif: gone.path: there is no array" in told, told
    made.unmount()
    made = mount(tmp_path / "s.zarr", "--files", "ome.tif", "--integers", "uint8")
    found = readers.ask("tifffile_levels", made.path / "labels" / "labels.ome.tif")["said"]
    assert [level["sha256"] for level in found["levels"]] == [digest(canonical(plane(n, "u1"))) for n in (32, 16)]


def test_colours_are_samples(mount, tmp_path, readers):
    values = {"0": np.random.default_rng(0).integers(0, 255, (40, 50, 3)).astype("u1")}
    values["1"] = values["0"][::2, ::2].copy()
    root = make_image(tmp_path / "i.zarr", values, axes="yxc")
    made = mount(root, "--files", "ome.tif")
    found = readers.ask("tifffile_levels", made.path / "i.ome.tif")["said"]
    assert [level["axes"] for level in found["levels"]] == ["YXS", "YXS"]
    assert [level["sha256"] for level in found["levels"]] == [digest(canonical(level)) for level in values.values()]


def test_a_changed_level_is_read_anew(mount, tmp_path, readers):
    root = make_image(tmp_path / "i.zarr", {"0": plane(32), "1": plane(16)})
    made = mount(root, "--files", "ome.tif", "--ttl", "0")
    assert len(readers.ask("tifffile_levels", made.path / "i.ome.tif")["said"]["levels"]) == 2
    shutil.rmtree(root / "1")
    found = readers.ask("tifffile_levels", made.path / "i.ome.tif")["said"]
    assert [level["sha256"] for level in found["levels"]] == [digest(canonical(plane(32)))]


def test_other_transformations_are_named(mount, tmp_path):
    """The levels are shown without voxel sizes."""
    transformations = [{"type": "affine", "affine": [[1, 0, 0], [0, 1, 0]], "input": {"path": "0"}, "output": {"name": "own"}}]
    axes = [{"name": name, "type": "space", "unit": "micrometer"} for name in "yx"]
    root = make_image(tmp_path / "i.zarr", {"0": plane(32)}, coordinateSystems=[{"name": "own", "axes": axes}],
                      datasets=[{"path": "0", "coordinateTransformations": transformations}])
    assert "0:coordinateTransformations: coordinateTransformations: `affine`" in omitted(root)
    made = mount(root, "--files", "ome.tif")
    assert (made.path / "i.ome.tif").exists()
    told = json.loads((made.path / "0.json").read_text())
    assert "`affine`" in told["axes_error"] and told["axes"] == [{"name": "y", "type": "space"}, {"name": "x", "type": "space"}]


def test_a_million_tiles_take_little_memory(mount, tmp_path):
    """The header is computed for the range that is read, and no chunk is decoded for it."""
    group = zarr.open_group(str(tmp_path / "i.zarr"), mode="w")
    sides = [1 << 18, 1 << 17, 1 << 16]
    make_image(tmp_path / "i.zarr", {}, datasets=[{"path": str(level)} for level in range(3)])
    for level, side in enumerate(sides):
        group.create_array(str(level), shape=(side, side), chunks=(256, 256), dtype="u1", fill_value=7)
    made = mount(tmp_path / "i.zarr", "--files", "ome.tif", "--sidecar", "no")
    path = made.path / "i.ome.tif"
    assert path.stat().st_size >= sum(side * side for side in sides)
    with open(path, "rb", buffering=0) as file:
        assert file.read(1 << 20).startswith(b"II\x2b\0")
        assert made.stats()["chunks"]["decodes"] == 0
        file.seek(-1, 2)
        assert file.read() == b"\7"
    assert made.peak_bytes() < 256 << 20
