"""Maps and microscope images by the libraries that users write them with, and what these libraries say of each.

They are in `tests/corpus/pictures.tar.gz`, which `tests/corpus/generate/generate_pictures_*.py` have made. Its folder of stores is
mounted as a whole.
"""
import json
import tarfile
from functools import cache

from support.corpus import CHECKOUT

ARCHIVE = CHECKOUT / "tests" / "corpus" / "pictures.tar.gz"


@cache
def expected():
    """The entries of the stores, each with `arrays`, `rasters` and `images` by path."""
    with tarfile.open(ARCHIVE) as tar:
        return json.load(tar.extractfile("expect.json"))["stores"]


def unpack(folder):
    """Puts the stores into `folder`, and returns it."""
    with tarfile.open(ARCHIVE) as tar:
        tar.extractall(folder, filter="data")
    (folder / "expect.json").unlink()
    return folder


def each(key):
    """Every item of this key as (path below the folder of stores, its expectation)."""
    return {f"{entry['name']}/{path}".rstrip("/"): said for entry in expected() for path, said in entry.get(key, {}).items()}


def pyramid(root, path):
    """The file of an image in a mount, which has the name of its group."""
    folder = root / path
    return folder / f"{folder.name.removesuffix('.zarr')}.ome.tif"


def levels(path):
    """The paths of a map and of the coarser levels of the same pyramid."""
    store = path.split("/")[0]
    for said in each("rasters").values():
        found = [f"{store}/{level}" for level in said.get("levels", [])]
        if path in found:
            return found[found.index(path):]
    return [path]
