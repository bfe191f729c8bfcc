"""The library zarrs, through its pipeline for zarr-python: zarr-python reads and writes the documents, and zarrs the chunks.

The pipeline is strict: what zarrs cannot do is an error. Else zarr-python would do it, and nobody would notice."""
from contextlib import contextmanager

import numpy as np
import zarr
import zarrs
from zarr.core.buffer.cpu import NDBuffer
from zarrs.pipeline import UnsupportedDataTypeError, UnsupportedMetadataError

# The last is zarr-python's, which opens the array for zarrs.
REFUSALS = (UnsupportedMetadataError, UnsupportedDataTypeError, ValueError)


@contextmanager
def pipeline(**options):
    """Arrays that are opened or made meanwhile have their chunks read and written by zarrs, also later."""
    settings = {"path": "zarrs.ZarrsCodecPipeline", "strict": True, **options}
    with zarr.config.set({f"codec_pipeline.{name}": value for name, value in settings.items()}):
        yield


def of_zarrs(array):
    """The array, after a look whether zarrs has it, and nothing to fall back to."""
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
    # zarrs wants room in C order, also for an array whose chunks are in order F.
    out = np.empty(array.shape, array.dtype.newbyteorder("="))
    array.get_basic_selection(..., out=NDBuffer.from_numpy_array(out))
    return out


def refusal(path):
    """What zarrs says of an array that it cannot read. Fails where it can."""
    try:
        values(path)
    except REFUSALS as error:
        return f"{type(error).__name__}: {error.__cause__ or error}"
    raise AssertionError(f"zarrs reads {path}")
