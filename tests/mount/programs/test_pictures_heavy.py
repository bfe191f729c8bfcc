"""The large programs that read maps and microscope images; `scripts/test --all` installs and runs them."""
import pytest

from support import mounting, pictures
from support.array_client import Readers
from support.mounting import ok

pytestmark = pytest.mark.heavy
ARRAYS, RASTERS, IMAGES = (pictures.each(key) for key in ("arrays", "rasters", "images"))
# The voxel of an image in micrometers, as it was given to its writer.
VOXEL = {path: [said["voxel"].get(axis) for axis in "zyx"] for path, said in IMAGES.items()}


@pytest.fixture(scope="module")
def readers():
    with Readers("pictures") as readers:
        yield readers


@pytest.fixture(scope="module")
def stores(module_mount, tmp_path_factory):
    folder = pictures.unpack(tmp_path_factory.mktemp("pictures"))
    return module_mount(folder, "--view", "arrays", "--files", "ome.tif,geo.tif")


@pytest.mark.parametrize("path", RASTERS)
def test_rasterio(stores, readers, path):
    """The coordinate system and the transform are those of the store to the last bit, and the file is cloud-optimised."""
    said, file = RASTERS[path], stores.path / f"{path}.geo.tif"
    found = readers.ask("rasterio", file, same_as=said.get("crs", {}).get("wkt"))
    assert found["said"]["transform"] == said["transform"]
    assert found["said"].get("is_same", True) and ("wkt" in found["said"]) == ("crs" in said), found["said"]
    assert found["sha256"] == ARRAYS[path]["sha256"]
    for number, level in enumerate(pictures.levels(path)[1:]):
        assert readers.ask("rasterio", file, level=number)["sha256"] == ARRAYS[level]["sha256"], level
    assert readers.ask("rio_cogeo", file)["said"] == {"valid": True, "against": []}


@pytest.mark.parametrize("path", IMAGES)
def test_ome_types(stores, readers, path):
    """The description is valid by the schema of OME, and has the name, the voxel and the channels of the store."""
    said = IMAGES[path]
    found = readers.ask("ome_types", pictures.pyramid(stores.path, path))["said"]
    assert said["name"] is None or found["name"] == said["name"]
    assert [size for size, _ in found["sizes"].values()] == VOXEL[path]
    assert {unit for size, unit in found["sizes"].values() if size} <= {"µm"} and found["step"] == said["voxel"].get("t")
    if said["channels"]:
        assert found["channels"] == [[channel["label"], f"#{channel['color'].lower()}"] for channel in said["channels"]]


@pytest.mark.parametrize("path", IMAGES)
def test_bioio(stores, readers, path):
    said = IMAGES[path]
    file, first = pictures.pyramid(stores.path, path), ARRAYS[f"{path}/{said['levels'][0]}"]
    found = readers.ask("bioio", file)
    assert found["sha256"] == first["sha256"] and found["said"]["sizes"] == VOXEL[path], found
    if said["channels"]:
        assert found["said"]["names"] == [channel["label"] for channel in said["channels"]]
    assert readers.ask("bioio_tifffile", file)["sha256"] == first["sha256"]


@pytest.mark.parametrize("path", [path for path, said in IMAGES.items() if said["axes"] == "yx"])
def test_slides(stores, readers, path):
    """tiffslide and libvips find the levels and the size of a pixel."""
    file = pictures.pyramid(stores.path, path)
    for number, level in enumerate(IMAGES[path]["levels"]):
        array = ARRAYS[f"{path}/{level}"]
        for reader in ("tiffslide", "pyvips"):
            found = readers.ask(reader, file, level=number)
            assert (found["shape"][:2], found["sha256"]) == (array["shape"], array["sha256"]), (reader, level)
    assert readers.ask("tiffslide", file)["said"]["mpp"] == VOXEL[path][:0:-1]
    assert readers.ask("pyvips", file)["said"]["steps"] == VOXEL[path][:0:-1]


def test_bio_formats(stores, readers, tmp_path):
    """Bio-Formats finds no fault of the description, and copies all levels."""
    jar = mounting.CHECKOUT / ".venv-heavy/bio-formats/bioformats/jars/bioformats_package.jar"
    java = ["java", "-Djava.awt.headless=true", "-cp", jar]
    for path in ("ome05_5d.zarr", "ome05_flat.zarr/plane"):
        file, copy = pictures.pyramid(stores.path, path), tmp_path / "copy.ome.tif"
        assert "No validation errors found" in ok(*java, "loci.formats.tools.ImageInfo", "-nopix", "-omexml", file)
        ok(*java, "loci.formats.tools.ImageConverter", "-overwrite", "-noflat", file, copy)
        copied = readers.ask("tifffile_levels", copy)["said"]["levels"]
        assert [level["sha256"] for level in copied] == [ARRAYS[f"{path}/{level}"]["sha256"] for level in IMAGES[path]["levels"]]
