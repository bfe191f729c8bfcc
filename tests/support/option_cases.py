"""Random stores whose values are known, and random combinations of the options that show them.

The model is numpy: each array is kept as it was written. It shares no code with the mount, and knows
nothing of codecs, shards or caches.
"""
import json
import math
import random
from dataclasses import dataclass, field

import numcodecs
import numpy as np
import zarr

TYPES = ["|b1", "|u1", "<i2", ">u2", "<u4", ">i4", "<i8", "<f4", ">f8", "<c8", "<M8[s]", "<m8[ms]"]
CACHES = ["1M", "2M", "3M", "8M", "64M"]
FILES = ["npy", "raw", "h5", "nc", "nhdr"]
LARGE_ITEMS = 300_000  # elements of a chunk that takes a large part of the smallest cache, or more


@dataclass
class Array:
    path: str
    values: np.ndarray
    chunks: tuple
    shards: tuple | None

    def box(self, index, shape):
        """The part of the array that the chunk `index` of a grid of chunks of `shape` holds."""
        return self.values[tuple(slice(i * n, (i + 1) * n) for i, n in zip(index, shape))]


@dataclass
class Store:
    root: object
    zarr_format: int
    arrays: list = field(default_factory=list)


def random_store(dice, root):
    """Writes a store of one to four arrays, some of them in groups, with chunks that are absent."""
    store = Store(root, dice.choice([2, 3]))
    zarr.open_group(str(root), mode="w", zarr_format=store.zarr_format)
    for number in range(dice.randint(1, 4)):
        path = f"{dice.choice(['', 'g/', 'g/h/'])}a{number}"
        store.arrays.append(random_array(dice, store, path))
    return store


def random_array(dice, store, path):
    dtype = np.dtype(dice.choice(TYPES))
    rank = dice.choice([0, 1, 1, 2, 2, 2, 3])
    chunks = tuple(dice.randint(1, 5) for _ in range(rank))
    if rank and dice.random() < 0.15:
        chunks = (*chunks[:-1], max(1, dice.randint(1, LARGE_ITEMS) // math.prod(chunks[:-1])))
    inner = tuple(c * dice.randint(1, 3) for c in chunks)
    is_sharded = store.zarr_format == 3 and rank > 0 and dice.random() < 0.6
    stored = inner if is_sharded else chunks
    shape = tuple(max(0, s * dice.randint(1, 3) - dice.choice([0, 0, 1])) for s in stored)
    is_undefined = store.zarr_format == 2 and dice.random() < 0.4
    fill = None if is_undefined else random_values(dice, dtype, ())[()]
    kwargs = {"shards": inner} if is_sharded else {}
    if store.zarr_format == 2:
        kwargs |= {"order": dice.choice("CF"), "compressors": dice.choice([
            None, numcodecs.Zlib(1), numcodecs.Blosc("lz4", 5, 1), numcodecs.Zstd(1)])}
        kwargs["chunk_key_encoding"] = {"name": "v2", "separator": dice.choice("./")}
    else:
        kwargs["compressors"] = dice.choice([None, zarr.codecs.GzipCodec(level=1), zarr.codecs.ZstdCodec(level=1),
                                             zarr.codecs.BloscCodec(cname="lz4", clevel=1)])
        kwargs["chunk_key_encoding"] = {"name": dice.choice(["default", "v2"]), "separator": dice.choice("./")}
    array = zarr.create_array(str(store.root), name=path, shape=shape, chunks=chunks, dtype=dtype, fill_value=fill,
                              zarr_format=store.zarr_format, attributes={"units": "K", "n": dice.randint(0, 9)}, **kwargs)
    # For absent chunks of an array without a fill value, zarr-python reads arbitrary values, which are expected here.
    values = np.array(array[...]) if is_undefined else np.full(shape, fill, dtype)
    for index in np.ndindex(*(-(-n // c) for n, c in zip(shape, chunks))):
        if dice.random() < 0.7:
            box = tuple(slice(i * c, (i + 1) * c) for i, c in zip(index, chunks))
            values[box] = random_values(dice, dtype, values[box].shape)
            if values[box].size:
                array[box] = values[box]
    return Array(path, values, chunks, inner if is_sharded else None)


def random_values(dice, dtype, shape):
    """Any values of the type."""
    generator = np.random.default_rng(dice.getrandbits(32))
    if dtype.kind == "b":
        return generator.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "fc":
        return generator.standard_normal(shape).astype(dtype)
    top = min(np.iinfo(f"i{dtype.itemsize}").max, 1 << 40)
    return generator.integers(0, top, shape).astype(dtype)


@dataclass
class Options:
    views: list
    shards: str
    missing: str
    shown_as: str | None
    files: list
    cache: str

    @classmethod
    def random(cls, dice):
        views = dice.sample(["keys", "chunks", "arrays"], dice.choice([1, 2, 2, 3, 3]))
        files = dice.sample(FILES, dice.randint(1, 3)) if "arrays" in views else []
        if {"nhdr"} & set(files) and "raw" not in files:
            files.append("raw")
        return cls(views, dice.choice(["expand", "keep"]), dice.choice(["fill", "hide"]),
                   dice.choice([None, None, "v2", "v3"]), files, dice.choice(CACHES))

    def arguments(self):
        found = ["--view", ",".join(self.views), "--shards", self.shards, "--cache-size", self.cache]
        found += ["--missing", self.missing]
        found += ["--as", self.shown_as] if self.shown_as else []
        return found + (["--files", ",".join(self.files)] if self.files else [])

    def root(self, mounted, view):
        return mounted / view if len(self.views) > 1 else mounted

    def zarr_format(self, store):
        return int(self.shown_as[1]) if self.shown_as else store.zarr_format

    def chunk_shape(self, array):
        """The shape of the chunks that the `chunks` view shows."""
        return array.shards if array.shards and self.shards == "keep" else array.chunks


def document(directory):
    """The metadata document of an array, as a mount shows it; None if the mount refuses to show one."""
    for name in ("zarr.json", ".zarray"):
        if (directory / name).exists():
            return json.loads((directory / name).read_bytes())
    return None


def same(one, other):
    """Whether two arrays are the same to the bit, whatever their byte orders; NaN and NaT equal themselves."""
    one, other = (np.asarray(a) for a in (one, other))
    little = [a.astype(a.dtype.newbyteorder("<")).tobytes() for a in (one, other)]
    return one.shape == other.shape and little[0] == little[1]


def dice_of(seed):
    return random.Random(f"options {seed}")
