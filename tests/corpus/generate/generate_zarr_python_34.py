"""Stores written by zarr-python 3.4.2 (numcodecs 0.17.1, numpy 2.5.5, Python 3.13): its defaults, and its rectilinear chunk grids."""
import os
import warnings

import numpy as np
import zarr
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, ShardingCodec, TransposeCodec, ZstdCodec

from corpuslib import Store, sample

warnings.simplefilter("ignore")
zarr.config.set({"array.rectilinear_chunks": True})
W = {"name": "zarr-python", "version": zarr.__version__}
LITTLE, BIG = BytesCodec(endian="little"), BytesCodec(endian="big")


def put(s, path, a, stored=None, fill=None, only=None, **options):
    """Writes array a (or its box `only`, the rest being fill) with the defaults of the library, but for the options. `stored` has the
    values in the types of the store, where these differ."""
    options.setdefault("dtype", a.dtype)
    if fill is not None:
        options["fill_value"] = fill
    z = zarr.create_array(s.path, name=path, shape=a.shape, **options)
    want = a if stored is None else stored
    if only is None:
        z[...] = a
    else:
        z[only] = a[only]
        want, whole = np.full(want.shape, fill, want.dtype), want
        want[only] = whole[only]
    s.array(path, want)
    return z


def grow(s, path, z, want, shape):
    """Resizes the array, whose new elements are 0, and records it anew."""
    z.resize(shape)
    for folder, _, _ in os.walk(s.path, topdown=False):
        if not os.listdir(folder):
            os.rmdir(folder)  # what is left of removed chunks; no server has an empty directory
    whole = np.zeros(shape, want.dtype)
    box = tuple(slice(0, min(n, m)) for n, m in zip(shape, want.shape))
    whole[box] = want[box]
    s.arrays.pop()
    s.array(path, whole)


# --- every data type, with the defaults of the library
s = Store("zp34_types.zarr", W, "v3", notes="defaults of create_array")
zarr.create_group(s.path, attributes={"title": "data types", "numbers": [1, 2.5, None]})
for i, t in enumerate(["bool", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]):
    put(s, np.dtype(t).name, sample(t, (5, 7), i))
put(s, "from_big", sample(">i4", (5, 7), 20))
put(s, "big", sample("i4", (5, 7), 21), serializer=BIG)
put(s, "datetime", sample("M8[s]", (20,), 22), chunks=(7,))
put(s, "duration", sample("m8[10ms]", (20,), 23), chunks=(7,))
put(s, "text4", sample("<U4", (20,), 24), chunks=(7,))
put(s, "text4_big", sample("<U4", (20,), 24), chunks=(7,), serializer=BIG)
put(s, "bytes3", sample("S3", (20,), 25), chunks=(7,))
put(s, "raw5", sample("V5", (20,), 26), chunks=(7,))
put(s, "string", sample("O", (20,), 27), chunks=(7,), dtype="string")
put(s, "string_shards", sample("O", (20,), 28), chunks=(4,), shards=(8,), dtype="string")
put(s, "scalar", np.array(3.5))
put(s, "empty", np.zeros((0, 4), "f4"))
put(s, "named", sample("f4", (3, 4), 29), dimension_names=["y", None], attributes={"units": "K"})
put(s, "not_a_number", np.full((3, 4), np.nan, "f4"), fill=np.nan, only=np.s_[0:0])
s.save()

# --- records: the fields have the byte order of the codec, whatever order those of the given array had
s = Store("zp34_records.zarr", W, "v3", notes="zarr-python 3.3 and later converts the fields to the byte order that the document says")
zarr.create_group(s.path)
fields, orders = [("id", "i4"), ("v", "f8"), ("name", "S3"), ("flag", "u1")], {"little": LITTLE, "big": BIG}
for given in orders:
    for codec, serializer in orders.items():
        a, stored = (np.dtype(fields).newbyteorder(order) for order in (given, codec))
        values = sample(a, (9,), 1)
        put(s, "%s_as_%s" % (given, codec), values, stored=values.astype(stored), chunks=(4,), serializer=serializer)
a = np.dtype([("x", ">i2"), ("y", "<f4"), ("in", [("k", ">i8"), ("t", ">U2")])])
values = sample(a, (9,), 2)
put(s, "both_orders", values, stored=values.astype(a.newbyteorder("<")), chunks=(4,))
values = sample(np.dtype(fields).newbyteorder(">"), (9,), 3)
little = values.astype(values.dtype.newbyteorder("<"))
put(s, "filled", values, stored=little, chunks=(4,), fill=values[1], only=np.s_[4:8])
s.save()

# --- rectilinear grids
s = Store("zp34_rectilinear.zarr", W, "v3", notes="chunks of different lengths, an experimental feature that a setting turns on")
g = zarr.create_group(s.path)
x = sample("f4", (30, 41), 1)
put(s, "both", x, chunks=[[10, 5, 15], [20, 21]])
put(s, "one_length", x, chunks=[[1, 29], 10])
put(s, "equal_lengths", x, chunks=[[10, 10, 10], [41]])
put(s, "runs", sample("u1", (500,), 2), chunks=[[1] * 30 + [4] * 30 + [350]])
put(s, "no_compressor", x, chunks=[[7, 23], [40, 1]], compressors=None)
put(s, "big", sample("i4", (9, 11), 3), chunks=[[2, 7], [5, 5, 1]], serializer=BIG, compressors=[GzipCodec(), Crc32cCodec()])
put(s, "blosc", sample("f8", (9, 8, 7), 4), chunks=[[4, 5], 3, [6, 1]], compressors=BloscCodec(cname="zstd", shuffle="bitshuffle"))
put(s, "turned", sample("i2", (6, 7, 8), 5), chunks=[[1, 5], [3, 4], [2, 6]], filters=[TransposeCodec(order=(2, 0, 1))])
put(s, "filled", sample("i2", (12, 12), 6), chunks=[[5, 7], [6, 6]], fill=-3, only=np.s_[0:5, 0:6])
put(s, "strings", sample("O", (20,), 7), chunks=[[3, 12, 5]], dtype="string")
put(s, "text4", sample("<U4", (20,), 8), chunks=[[3, 12, 5]])
put(s, "delta", sample("i4", (20,), 9, nice=True), chunks=[[3, 12, 5]], filters=[zarr.codecs.numcodecs.Delta(dtype="<i4")])
put(s, "dots", x, chunks=[[10, 20], [41]], chunk_key_encoding={"name": "v2", "separator": "."})
values = sample("i2", (12, 9), 10)
grow(s, "grown", put(s, "grown", values, chunks=[[5, 7], [4, 5]]), values, (20, 9))
grow(s, "smaller", put(s, "smaller", values, chunks=[[5, 7], [4, 5]]), values, (4, 6))
grow(s, "one_length_grown", put(s, "one_length_grown", values, chunks=[5, [4, 5]]), values, (19, 9))
grow(s, "equal_lengths_grown", put(s, "equal_lengths_grown", values, chunks=[[4, 4, 4], [9]]), values, (17, 9))
s.save()

# --- shards: of different lengths, with inner chunks in each order, within each other
s = Store("zp34_shards.zarr", W, "v3")
g = zarr.create_group(s.path)
put(s, "auto", sample("i4", (100, 120), 1), chunks=(20, 30), shards="auto")
put(s, "rectilinear", sample("f4", (30, 40), 2), chunks=(5, 10), shards=[[10, 20], [40]])
put(s, "rectilinear_part", sample("f4", (30, 40), 3), chunks=(5, 10), shards=[[5, 25], [10, 30]], fill=2, only=np.s_[4:11, 8:40])
values = sample("i2", (12, 8), 4)
grow(s, "rectilinear_smaller", put(s, "rectilinear_smaller", values, chunks=(2, 4), shards=[[4, 8], [8]]), values, (9, 8))
grow(s, "rectilinear_grown", put(s, "rectilinear_grown", values, chunks=(2, 4), shards=[[4, 8], [8]]), values, (16, 8))
orders = ["lexicographic", "colexicographic", "unordered", "morton"]
for i, order in enumerate(orders):
    put(s, order, sample("u2", (24, 32), 5 + i), chunks=(12, 16), compressors=None,
        serializer=ShardingCodec(chunk_shape=(3, 8), subchunk_write_order=order))
inner = ShardingCodec(chunk_shape=(3, 4), codecs=[LITTLE, ZstdCodec()], index_location="start")
put(s, "nested", sample("u2", (24, 32), 10), chunks=(12, 16), compressors=None, serializer=ShardingCodec(chunk_shape=(6, 8), codecs=[inner]))
put(s, "nested_rectilinear", sample("u2", (24, 32), 11), chunks=[[6, 18], [16, 16]], compressors=None,
    serializer=ShardingCodec(chunk_shape=(6, 8), codecs=[inner]))
s.save()

# --- version 2, with the defaults of the library
s = Store("zp34_v2.zarr", W, "v2", notes="defaults of create_array with zarr_format=2")
zarr.create_group(s.path, zarr_format=2, attributes={"title": "version 2"})
for i, t in enumerate(["bool", "<i4", ">i4", "<f8", "<c16", "<M8[s]", "S3", "<U4"]):
    put(s, np.dtype(t).name + ("_big" if t[0] == ">" else ""), sample(t, (5, 7), i), zarr_format=2, chunks=(2, 4))
put(s, "string", sample("O", (20,), 9), zarr_format=2, chunks=(7,), dtype="string")
put(s, "fortran", sample("i2", (5, 7), 10), zarr_format=2, chunks=(2, 4), order="F")
put(s, "record", sample([("a", "<i4"), ("b", ">f8")], (9,), 11), zarr_format=2, chunks=(4,))
s.save()

# --- consolidated metadata, of a group with arrays of both grids
s = Store("zp34_consolidated.zarr", W, "v3", notes="consolidate_metadata; a copy of each document lies in the root's")
zarr.create_group(s.path).create_group("g")
put(s, "g/regular", sample("i4", (5, 7), 1), chunks=(2, 4))
put(s, "g/rectilinear", sample("i4", (5, 7), 2), chunks=[[1, 4], [7]])
zarr.consolidate_metadata(s.path)
s.save(groups=["", "g"])
