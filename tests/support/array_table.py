"""The type of each data type in each format: table 2 of the plain formats, as the readers' NumPy types."""
import numpy as np

# Name -> NumPy type, as arrays of it are decoded.
TYPES = {name: np.dtype(name) for name in (
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
    "float16", "float32", "float64", "complex64", "complex128")}
TYPES |= {
    "datetime": np.dtype("<M8[s]"), "timedelta": np.dtype("<m8[ms]"), "bytes": np.dtype("S5"), "text": np.dtype("<U3"),
    "opaque": np.dtype("V6"), "record": np.dtype([("a", "<i4"), ("b", ">f8"), ("c", "S3")]),
}
STRINGS = "string"  # of any length: they have no NumPy type, and only jsonl and the files of groups hold them
INTEGERS = [name for name in TYPES if "int" in name]
REALS = [*INTEGERS, "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
TIMES = ["datetime", "timedelta"]


def same(*names):
    return {name: TYPES[name] for name in names}


BOOL_AS_BYTE = {"bool": np.dtype("u1")}
TIME_AS_INTEGER = {name: np.dtype("<i8") for name in TIMES}
# These types have one more axis, of length 2.
PAIRS = {"complex64": np.dtype("<f4"), "complex128": np.dtype("<f8")}
# These types have one more axis, of single bytes.
LETTERS = {"bytes": np.dtype("S1"), "text": np.dtype("S1")}

# Format -> data type -> the type that the reader gives. The format refuses types without an entry.
READ_AS = {
    "npy": TYPES,
    "raw": TYPES,
    "nhdr": {**same(*REALS), **BOOL_AS_BYTE, **TIME_AS_INTEGER, **PAIRS},
    "mhd": {**same(*REALS), **BOOL_AS_BYTE, **TIME_AS_INTEGER, **PAIRS},
    "envi": {**same(*(set(REALS) - {"int8"}), *COMPLEX), **BOOL_AS_BYTE, **TIME_AS_INTEGER},
    "nc5": {**same(*REALS), **BOOL_AS_BYTE, **TIME_AS_INTEGER, **PAIRS, **LETTERS},
    "h5": {**same(*(set(TYPES) - {"text", *TIMES})), **TIME_AS_INTEGER, "text": np.dtype("S12")},
    "tif": {**same("uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32"), **BOOL_AS_BYTE},
    # The OME model has no 64-bit integers and no short floats, though TIFF has.
    "ome.tif": {**same(*(set(REALS) - {"int64", "uint64"}), *COMPLEX), **BOOL_AS_BYTE},
    "geo.tif": {**same("float16", *REALS, *COMPLEX), **BOOL_AS_BYTE},
    "nii": {**same(*REALS, *COMPLEX), **BOOL_AS_BYTE},
    "vti": {**same(*REALS), **BOOL_AS_BYTE, **PAIRS},
    "mrc": same("int8", "int16", "uint16", "float16", "float32", "complex64"),
    "fits": {**same(*REALS), **BOOL_AS_BYTE},
    "jsonl": {STRINGS: None},
}
# CDF-2 has no unsigned types: the bits are kept, and an attribute marks them as unsigned.
CDF2 = {"bool": "i1", "int8": "i1", "uint8": "i1", "int16": "<i2", "uint16": "<i2", "int32": "<i4", "uint32": "<i4",
        "float32": "<f4", "float64": "<f8", "complex64": "<f4", "complex128": "<f8", "bytes": "S1", "text": "S1"}

# These formats have one file for each array; the others hold a group.
GROUPS = ["nc", "nc4", "nc5", "h5"]
PER_ARRAY = [format for format in READ_AS if format not in GROUPS]
EXTENSION = {format: format for format in [*READ_AS, *GROUPS]} | {"envi": "raw.hdr", "nc4": "nc", "nc5": "nc"}


def in_format(values, format, type_name):
    """The bytes of `values` as `format` holds them, little-endian."""
    if format == "tif" and values.ndim == 5:  # (t, c, z, y, x) has channels fastest there
        values = values.transpose(0, 2, 1, 3, 4)
    if format in ("h5", "nc", "nc5") and type_name == "text":
        return b"".join(item.encode().ljust(values.dtype.itemsize, b"\0") for item in values.flat)
    return np.ascontiguousarray(values).tobytes()
