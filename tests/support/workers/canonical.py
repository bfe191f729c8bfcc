"""The bytes of an array's values that the manifest hashes. Imports only NumPy, because readers of every version import this module."""
import hashlib

import numpy as np


def digest(data):
    return hashlib.sha256(data).hexdigest()


def canonical(values, dtype=None):
    """C order, little-endian; structured items as stored, or as `dtype` of the manifest has them; strings framed."""
    values = np.asarray(values)
    if str(dtype).startswith("vlen"):
        return b"".join(framed(item) for item in values.flat)
    if values.dtype.names is not None and dtype is not None:
        values = values.astype(numpy_type(dtype))
    elif values.dtype.names is None and values.dtype.kind not in "SV":
        values = values.astype(values.dtype.newbyteorder("<"))
    return np.ascontiguousarray(values).tobytes()


def framed(item):
    """A string or bytes behind its length. For absent chunks, zarr-python 2 gives the number 0, or None."""
    data = item.encode() if isinstance(item, str) else bytes(item or b"")
    return len(data).to_bytes(4, "little") + data


def numpy_type(spelling):
    if isinstance(spelling, list):
        return np.dtype([(f[0], numpy_type(f[1]), *[tuple(x) for x in f[2:]]) for f in spelling])
    return np.dtype(spelling)
