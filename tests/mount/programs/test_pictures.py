"""Maps and microscope images that real libraries wrote: programs find in the mount what the library that wrote a store says of it."""
import numpy as np
import pytest

from support import pictures
from support.workers.canonical import canonical, digest

FILES = "npy"


@pytest.fixture(scope="module")
def stores(module_mount, tmp_path_factory):
    folder = pictures.unpack(tmp_path_factory.mktemp("pictures"))
    return module_mount(folder, "--view", "arrays", "--files", FILES)


def test_values(stores):
    for path, said in pictures.each("arrays").items():
        values = np.load(stores.path / f"{path}.npy")
        assert (list(values.shape), digest(canonical(values))) == (said["shape"], said["sha256"]), path
