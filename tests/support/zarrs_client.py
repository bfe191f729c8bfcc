"""The library zarrs, through its pipeline for zarr-python: zarr-python reads and writes the documents, and zarrs the chunks.

The pipeline is strict: a feature that zarrs lacks is an error. Otherwise zarr-python would take over unnoticed."""
from contextlib import contextmanager

import numpy as np
import zarr
import zarrs
from zarr.core.buffer.cpu import NDBuffer
from zarrs.pipeline import UnsupportedDataTypeError, UnsupportedMetadataError

# The last pipeline is zarr-python's, which opens the array for zarrs.
REFUSALS = (UnsupportedMetadataError, UnsupportedDataTypeError, ValueError)


@contextmanager
def pipeline(**options):
    """Arrays that are opened or made in this block have their chunks read and written by zarrs, even after it."""
    settings = {"path": "zarrs.ZarrsCodecPipeline", "strict": True, **options}
    with zarr.config.set({f"codec_pipeline.{name}": value for name, value in settings.items()}):
        yield


def of_zarrs(array):
    """The array. Asserts that zarrs reads it, without another pipeline to fall back on."""
    found = array._async_array.codec_pipeline
    assert isinstance(found, zarrs.ZarrsCodecPipeline) and found.impl is not None and found.python_impl is None
    return array


def opened(path, mode="r", **options):
    with pipeline(**options):
        return of_zarrs(zarr.open_array(str(path), mode=mode))


def values(path):
    """All elements of the array in a store, as zarrs decodes them."""
    array = opened(path)
    if array.dtype.kind == "T":
        return array[...]
    # zarrs writes into memory in C order, even if the array's chunks are in order F.
    out = np.empty(array.shape, array.dtype.newbyteorder("="))
    array.get_basic_selection(..., out=NDBuffer.from_numpy_array(out))
    return out


def refusal(path):
    """The reason why zarrs does not read an array. Fails if zarrs reads it."""
    try:
        values(path)
    except REFUSALS as error:
        return f"{type(error).__name__}: {error.__cause__ or error}"
    raise AssertionError(f"zarrs reads {path}")
