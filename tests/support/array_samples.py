"""Stores that the tests of the arrays view write: every data type, every layout, with known values."""
import json

import numpy as np
import zarr

from support.array_table import STRINGS, TYPES

SHAPE = (3, 5, 7)
CHUNKS = (2, 3, 4)  # edges everywhere
STRING_VALUES = np.array([["a", "é日𝛼"], ["", 'quote " \\ line\nend'], ["\x00\u2028", "x" * 300]], object)


def random_values(dtype, shape, seed=0):
    """Values that use every bit of the type. Among floats are NaN and infinities. Text has letters of one to four bytes."""
    dice = np.random.default_rng(seed)
    count = int(np.prod(shape))
    if dtype.kind == "b":
        data = dice.integers(0, 2, count).astype(bool)
    elif dtype.kind in "US":
        letters = [f"{a}{b}"[: dtype.itemsize] for a in "aé𝛼z" for b in ("", "x", "日")]
        letters = [x.encode()[: dtype.itemsize].decode(errors="ignore").encode() for x in letters] if dtype.kind == "S" else letters
        data = np.array([letters[n] for n in dice.integers(0, len(letters), count)], dtype)
    elif dtype.names:
        data = np.zeros(count, dtype)
        for n, name in enumerate(dtype.names):
            data[name] = random_values(dtype[name], (count,), seed + n)
    else:
        data = np.frombuffer(dice.bytes(count * dtype.itemsize), dtype).copy()
        if dtype.kind in "fc" and count > 3:
            data[:3] = np.nan, np.inf, -0.0
    return data.reshape(shape)


def write_types(root, endian="little"):
    """A v2 group with an array of each data type, named after the type. Returns name -> values."""
    group = zarr.open_group(str(root), mode="w", zarr_format=2)
    expected = {}
    for seed, (name, dtype) in enumerate(TYPES.items()):
        values = expected[name] = random_values(dtype, SHAPE, seed)
        stored = values if endian == "little" or dtype.names else values.astype(dtype.newbyteorder(">"))
        array = group.create_array(name, shape=SHAPE, chunks=CHUNKS, dtype=stored.dtype, fill_value=None)
        array[...] = stored
    return expected


def write_strings(root, values):
    array = zarr.open_group(str(root), mode="a").create_array(STRINGS, shape=values.shape, chunks=(2,) * values.ndim, dtype=str)
    array[...] = values


def write_layouts(root, dtype="uint16"):
    """A v3 group with an array of each layout: rank 0 to 5, zero length, F order, shards, holes. Returns name -> values."""
    group = zarr.open_group(str(root), mode="w", zarr_format=3)
    dtype, expected = np.dtype(dtype), {}

    def add(name, shape, stored=None, **kwargs):
        values = random_values(dtype, shape, len(expected))
        array = group.create_array(name, shape=shape, dtype=dtype, **kwargs)
        if stored is None:
            array[...] = values
        else:
            array[stored] = values[stored]
            hole = np.full(shape, array.fill_value, dtype)
            hole[stored] = values[stored]
            values = hole
        expected[name] = values

    for rank, (shape, chunks) in enumerate([((), ()), ((9,), (4,)), ((5, 7), (3, 3)), (SHAPE, CHUNKS),
                                            ((3, 2, 5, 7), (2, 1, 3, 4)), ((2, 3, 2, 5, 7), (1, 2, 2, 3, 7))]):
        add(f"rank{rank}", shape, chunks=chunks)
    add("one_chunk", SHAPE, chunks=SHAPE)
    add("chunk_beyond_the_end", SHAPE, chunks=(4, 8, 16))
    add("elements", (2, 3, 4), chunks=(1, 1, 1))
    add("no_rows", (0, 5, 7), chunks=CHUNKS)
    add("no_columns", (3, 5, 0), chunks=(2, 3, 1))
    add("uncompressed", SHAPE, chunks=CHUNKS, compressors=None)
    add("blosc", (20, 50, 70), chunks=(7, 30, 70), compressors=zarr.codecs.BloscCodec(cname="lz4", shuffle="shuffle"))
    add("big_endian", SHAPE, chunks=CHUNKS, serializer=zarr.codecs.BytesCodec(endian="big"))
    add("transposed", SHAPE, chunks=CHUNKS, filters=zarr.codecs.TransposeCodec(order=(2, 0, 1)))
    add("sharded", (6, 10, 14), chunks=(2, 5, 4), shards=(4, 10, 12))
    add("sharded_missing", (6, 10, 14), stored=np.s_[:2, 5:, :4], chunks=(2, 5, 4), shards=(4, 10, 12), fill_value=513)
    add("missing", SHAPE, stored=np.s_[:2, 3:, 4:], chunks=CHUNKS, fill_value=513)
    add("nothing_stored", SHAPE, stored=np.s_[:0], chunks=CHUNKS, fill_value=7)
    return expected


def write_f_order(root):
    """A v2 group with chunks in F order, of either byte order. Returns name -> values."""
    group = zarr.open_group(str(root), mode="w", zarr_format=2)
    expected = {}
    for name, dtype in {"little": "<i2", "big": ">i2"}.items():
        values = expected[name] = random_values(np.dtype("<i2"), SHAPE)
        group.create_array(name, shape=SHAPE, chunks=CHUNKS, dtype=dtype, order="F", compressors=None)[...] = values
        document = json.loads((root / name / ".zarray").read_bytes())
        assert document["order"] == "F"
    return expected


def reopen(root):
    return zarr.open_group(str(root), mode="a")
