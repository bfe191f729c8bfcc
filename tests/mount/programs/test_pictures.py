"""Maps and microscope images that real libraries wrote: programs find in the mount what the library that wrote a store says of it."""
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from support import pictures
from support.array_client import Readers
from support.workers.canonical import canonical, digest

FILES = "npy,tif,ome.tif,png"
IMAGES = pictures.each("images")


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
