"""Stores that GDAL itself wrote with Blosc: it spells the shuffle as a word that no other writer uses."""
import shutil

import numpy as np
import pytest
import zarr

from support.mounting import ok

pytestmark = pytest.mark.skipif(shutil.which("gdal_translate") is None, reason="needs gdal_translate")


def values():
    return np.random.default_rng(14).integers(-300, 300, size=(70, 90)).cumsum(axis=1).astype("<i2")


@pytest.fixture(scope="module")
def raster(tmp_path_factory):
    """A raster without georeference that GDAL reads: ENVI, a header beside raw values."""
    path = tmp_path_factory.mktemp("raster") / "elevation"
    values().tofile(path)
    path.with_suffix(".hdr").write_text(
        "ENVI\nsamples = 90\nlines = 70\nbands = 1\nheader offset = 0\nfile type = ENVI Standard\n"
        "data type = 2\ninterleave = bsq\nbyte order = 0\n")
    return path


@pytest.fixture(scope="module", params=["BIT", "BYTE", "NONE"])
def store(request, raster, tmp_path_factory):
    path = tmp_path_factory.mktemp("gdal") / "s.zarr"
    ok("gdal_translate", "-q", "-of", "Zarr", "-co", "COMPRESS=BLOSC", "-co", f"BLOSC_SHUFFLE={request.param}",
       "-co", "BLOCKSIZE=32,32", "-co", "ARRAY_NAME=elevation", raster, path)
    # GDAL writes a number where the option has its default.
    document = (path / "elevation" / ".zarray").read_text()
    assert request.param == "BYTE" or f'"shuffle":"{request.param}"' in document, document
    return path


def test_the_values_are_those_that_gdal_was_given(store, mount):
    for view, read in [
        ("chunks", lambda path: zarr.open_array(path / "elevation", mode="r")[...]),
        ("arrays", lambda path: np.load(path / "elevation.npy")),
    ]:
        found = read(mount(store, "--view", view).path)
        assert found.dtype == "<i2" and (found == values()).all(), view


def test_the_keys_view_shows_the_document_as_stored(store, mount):
    shown = mount(store).path / "elevation" / ".zarray"
    assert shown.read_bytes() == (store / "elevation" / ".zarray").read_bytes()


def test_another_version_has_the_word_of_its_specification(store, mount):
    path = mount(store, "--as", "v3").path
    assert (zarr.open_array(path / "elevation", mode="r")[...] == values()).all()
