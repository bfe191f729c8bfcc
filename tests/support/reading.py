"""Reads arrays three ways: by hand from the files of a `chunks` mount, with zarr-python, with tensorstore."""
import errno
import json
import math
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import tensorstore
import zarr

from support import chunk_grids
from support.workers.canonical import canonical, digest, numpy_type


# The codecs of strings and bytes, which stay in a decoded chunk.
FRAMED = {"vlen-utf8", "vlen-bytes"}


@dataclass
class Shown:
    """An array, described by its document in a `chunks` mount. Asserts that, by the document, chunks are uncompressed."""

    directory: Path
    document: dict

    @classmethod
    def at(cls, directory):
        name = "zarr.json" if (directory / "zarr.json").exists() else ".zarray"
        shown = cls(directory, json.loads((directory / name).read_bytes()))
        shown.assert_uncompressed()
        return shown

    @property
    def is_v3(self):
        return self.document["zarr_format"] == 3

    @property
    def shape(self):
        return tuple(self.document["shape"])

    @property
    def chunks(self):
        """The lengths of the chunks along each axis, as `chunk_grids` has them."""
        if not self.is_v3:
            return tuple(self.document["chunks"])
        grid = self.document["chunk_grid"]
        if grid["name"] == "rectilinear":
            return tuple(chunk_grids.listed(axis) for axis in grid["configuration"]["chunk_shapes"])
        return tuple(grid["configuration"]["chunk_shape"])

    def assert_uncompressed(self):
        doc = self.document
        if self.is_v3:
            (codec,) = doc["codecs"]
            if codec["name"] in FRAMED:
                return
            assert codec["name"] == "bytes", codec
            # The fields of a record keep their byte order.
            is_record = isinstance(doc["data_type"], dict) and doc["data_type"]["name"] in ("struct", "structured")
            assert is_record or codec.get("configuration", {}).get("endian", "little") == "little", codec
        else:
            assert doc["compressor"] is None and doc["order"] == "C", doc
            filters = [f["id"] for f in doc["filters"] or []]
            assert not filters or doc["dtype"] == "|O" and filters[0] in FRAMED and len(filters) == 1, doc
            assert not str(doc["dtype"]).startswith(">"), doc["dtype"]

    def chunk_path(self, index):
        if self.is_v3:
            encoding = self.document["chunk_key_encoding"]
            encoding = {"name": encoding} if isinstance(encoding, str) else encoding
            prefix = ["c"] if encoding["name"] == "default" else []
            default = "/" if prefix else "."
            separator = encoding.get("configuration", {}).get("separator", default)
        else:
            prefix, separator = [], self.document.get("dimension_separator", ".")
        parts = prefix + [str(i) for i in index]
        return self.directory / (separator.join(parts) if parts else "0")

    def grid(self):
        return tuple(chunk_grids.count(c, n) for c, n in zip(self.chunks, self.shape))

    def strings(self, start=None, stop=None):
        """The items of the box, each behind its length, put together from whole chunk files."""
        start = start or (0,) * len(self.shape)
        stop = stop or self.shape
        out = np.empty(self.shape, object)
        for index in np.ndindex(*self.grid()):
            items = framed_items(self.chunk_path(index).read_bytes())
            shape = chunk_grids.shape(self.chunks, index)
            assert len(items) == math.prod(shape), index
            chunk = np.empty(len(items), object)
            chunk[:] = items
            self.put(out, index, chunk.reshape(shape))
        return b"".join(out[tuple(slice(a, b) for a, b in zip(start, stop))].flat)

    def values(self, itemsize, start=None, stop=None):
        """The items of the box as opaque bytes, put together from whole chunk files."""
        start = start or (0,) * len(self.shape)
        stop = stop or self.shape
        item = np.dtype(f"V{itemsize}")
        out = np.zeros(self.shape if math.prod(self.shape) < 1 << 28 else (), item)
        first = [chunk_grids.chunk_at(c, a) for a, c in zip(start, self.chunks)]
        count = [chunk_grids.count(c, b) - f for b, c, f in zip(stop, self.chunks, first)]
        for offset in np.ndindex(*count):
            index = [f + o for f, o in zip(first, offset)]
            data = self.chunk_path(index).read_bytes()
            shape = chunk_grids.shape(self.chunks, index)
            assert len(data) == math.prod(shape) * itemsize, (index, len(data))
            self.put(out, index, np.frombuffer(data, item).reshape(shape))
        return out[tuple(slice(a, b) for a, b in zip(start, stop))]

    def put(self, out, index, chunk):
        """The elements of a chunk that are elements of the array."""
        box = chunk_grids.box(self.chunks, index)
        out[box] = chunk[tuple(slice(0, n - side.start) for n, side in zip(self.shape, box))]


def framed_items(data):
    """The items of a decoded chunk of strings, each with the length in front of it."""
    count, at, items = int.from_bytes(data[:4], "little"), 4, []
    for _ in range(count):
        end = at + 4 + int.from_bytes(data[at : at + 4], "little")
        assert end <= len(data), "an item that is cut off"
        items.append(data[at:end])
        at = end
    assert at == len(data), "bytes after the last item"
    return items


def itemsize(array):
    """The size of an element, by a manifest entry."""
    count = math.prod(array["shape"])
    return array["nbytes"] // count if count and array.get("nbytes") else numpy_type(array["dtype"]).itemsize


def with_zarr_python(root, path, zarr_format):
    return zarr.open_array(str(root), path=path or None, mode="r", zarr_format=zarr_format)[...]


def with_zarr_python_consolidated(root, path, zarr_format):
    return zarr.open_consolidated(str(root), mode="r", zarr_format=zarr_format)[path][...]


def with_tensorstore(root, path, zarr_format):
    folder = os.path.join(root, path).rstrip("/") + "/"
    spec = {"driver": "zarr3" if zarr_format == 3 else "zarr", "kvstore": {"driver": "file", "path": folder}}
    return tensorstore.open(spec, open=True, read=True).result().read().result()


READERS = {f.__name__.removeprefix("with_"): f for f in (with_zarr_python, with_zarr_python_consolidated, with_tensorstore)}


@cache
def reads_the_store(reader, root, path, zarr_format, expected):
    """Whether this reader gives the expected values from the store itself. If it does not, it cannot judge the mount."""
    try:
        return digest(canonical(READERS[reader](root, path, zarr_format))) == expected
    except Exception:  # any refusal of a reader, in whatever class
        return False


def tree(root, limit=200_000):
    """Relative path -> "dir", or (size, hash), or the errno name that reading it gave."""
    root = os.fsencode(root)
    found, todo = {}, [b""]
    while todo:
        base = todo.pop()
        for name in os.listdir(os.path.join(root, base)):
            key = os.path.join(base, name)
            assert len(found) < limit, "more entries than any store of the corpus has"
            found[key] = entry(os.path.join(root, key))
            if found[key] == "dir":
                todo.append(key)
    return found


def entry(path):
    try:
        if os.path.islink(path):
            return "link"
        if os.path.isdir(path):
            return "dir"
        with open(path, "rb") as f:
            data = f.read()
        return (os.stat(path).st_size, len(data), digest(data))
    except OSError as error:
        return errno.errorcode[error.errno]
