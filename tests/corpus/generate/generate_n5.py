"""Containers of N5: every type in every compression of a writer, with truncated or whole blocks at the edges.

usage: generate_n5.py WRITER     WRITER: zarr-python (2.18.7: N5Store, N5FSStore; numcodecs 0.15.1, with fsspec) | tensorstore (0.1.86) | z5py (3.0.2)
                               | java (n5 4.0.2, whose classes and dependencies are in N5_CLASSPATH)
"""
import base64
import itertools
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

from corpuslib import Store, sample

TYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64"]
SHAPE, CHUNKS = (3, 4), (2, 3)
ATTRIBUTES = {"unit": "nm", "resolution": [4, 4, 40]}


class Container(Store):
    """A container and its writer: `create` makes an array, and returns a function that writes `values[selection]`."""

    def __init__(self, name, writer, create, group, notes=""):
        super(Container, self).__init__(name, writer, "n5", notes=notes)
        self.create, self.group, self.groups, self.attributes = create, group, [], {}

    def put_group(self, path, attributes):
        self.group(self.path, path, attributes)
        self.groups.append(path)
        self.attributes[path] = attributes

    def put(self, path, values, chunks, compression, part=(Ellipsis,), attributes=None):
        write = self.create(self.path, path, values, chunks, compression, attributes or {})
        want = np.zeros_like(values)
        for selection in part:
            write(selection, values[selection])
            want[selection] = values[selection]
        self.array(path, want)
        if attributes:
            self.attributes[path] = attributes

    def put_all(self, compressions):
        """`compressions` by the names of groups."""
        self.put_group("", {"title": "every type"})
        for name, compression in compressions.items():
            self.put_group(name, {"compression of": [name], "made": True})
            for i, dtype in enumerate(TYPES):
                self.put("%s/%s" % (name, dtype), sample(dtype, SHAPE, i), CHUNKS, compression)

    def put_shapes(self, compression):
        """Ranks, deep paths, attributes, and blocks that are not stored."""
        self.put_group("a/b", {"depth": 2, "axes": ["z", "y"]})
        self.put("a/b/c/volume", sample("int16", (7, 5, 4), 1), (3, 2, 3), compression, attributes=ATTRIBUTES)
        self.put("a/b/c/line", sample("float64", (11,), 2), (4,), compression)
        self.put("a/b/c/rank 4", sample("uint8", (2, 3, 2, 5), 3), (1, 2, 2, 3), compression)
        self.put("a/b/c/whole", sample("uint16", (4, 6), 4), (2, 3), compression)
        self.put("a/b/c/one block", sample("int32", (3, 2), 5), (8, 8), compression)
        self.put("a/b/c/part", sample("uint32", (9, 10), 6), (4, 3), compression, part=[np.s_[0:4, 3:6], np.s_[8:9, 9:10]])
        self.put("a/b/c/nothing", sample("float32", (5, 5), 7), (2, 2), compression, part=[])

    def save(self):
        Store.save(self, groups=self.groups + ["a", "a/b/c"], attributes=self.attributes)


def with_zarr_python():
    import numcodecs
    import zarr
    from zarr.n5 import N5FSStore, N5Store

    writer = {"name": "zarr-python", "version": zarr.__version__}

    def of(kind):
        def create(store, path, values, chunks, codec, attributes):
            array = zarr.open_array(kind(store), path=path, mode="w", shape=values.shape, chunks=chunks, dtype=values.dtype,
                                    compressor=codec)
            array.attrs.update(attributes)
            return array.__setitem__

        def group(store, path, attributes):
            zarr.open_group(kind(store), path=path or None, mode="a").attrs.update(attributes)
        return create, group

    codecs = {"raw": None, "gzip": numcodecs.GZip(1), "zlib": numcodecs.Zlib(1), "bzip2": numcodecs.BZ2(1), "xz": numcodecs.LZMA(1),
              "zstd": numcodecs.Zstd(1), "blosc": numcodecs.Blosc("lz4", 5, 1), "lz4": numcodecs.LZ4()}
    store = Container("zp2_n5.n5", writer, *of(N5Store), notes="blocks at the edges are whole, and lz4 has no frames")
    store.put_all(codecs)
    store.put_shapes(numcodecs.GZip(1))
    store.save()
    store = Container("zp2_n5fs.n5", writer, *of(N5FSStore))
    store.put_group("", {"title": "N5FSStore"})
    store.put_shapes(numcodecs.Zstd(3))
    store.save()


def with_tensorstore():
    import tensorstore as ts
    from tsput import W

    def create(store, path, values, chunks, compression, attributes):
        metadata = dict(attributes, dimensions=list(reversed(values.shape)), blockSize=list(reversed(chunks)),
                        dataType=values.dtype.name, compression=compression)
        kvstore = {"driver": "file", "path": "%s/%s/" % (store, path)}
        array = ts.open({"driver": "n5", "kvstore": kvstore, "metadata": metadata}, create=True, delete_existing=True).result()
        # tensorstore has the axes in the order of N5.
        return lambda selection, part: array.T[selection].write(part).result()

    def group(store, path, attributes):
        """tensorstore has no groups: a directory with attributes is one."""
        os.makedirs(os.path.join(store, path), exist_ok=True)
        with open(os.path.join(store, path, "attributes.json"), "w") as f:
            json.dump(dict(attributes, n5="2.0.0") if not path else attributes, f)

    compressions = {"raw": {"type": "raw"}, "gzip": {"type": "gzip", "level": 3}, "zlib": {"type": "gzip", "useZlib": True},
                    "bzip2": {"type": "bzip2", "blockSize": 3}, "xz": {"type": "xz", "preset": 1}, "zstd": {"type": "zstd", "level": 2},
                    "blosc": {"type": "blosc", "cname": "zstd", "clevel": 5, "shuffle": 2}}
    store = Container("ts_n5.n5", W, create, group, notes="groups by hand")
    store.put_all(compressions)
    store.put_shapes({"type": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1})
    store.put("axes", sample("int16", (3, 4, 5), 8), (2, 2, 3), {"type": "gzip"}, attributes={"axes": ["x", "y", "z"], "units": ["nm"] * 3})
    store.save()


def with_z5py():
    import z5py

    def create(store, path, values, chunks, compression, attributes):
        array = z5py.File(store, "a", use_zarr_format=False).create_dataset(
            path, shape=values.shape, dtype=values.dtype, chunks=chunks, compression=compression)
        for name, value in attributes.items():
            array.attrs[name] = value
        return lambda selection, part: array.__setitem__(np.s_[:] if selection is Ellipsis else selection, part)

    def group(store, path, attributes):
        made = z5py.File(store, "a", use_zarr_format=False)
        made = made.require_group(path) if path else made
        for name, value in attributes.items():
            made.attrs[name] = value

    names = ["raw", "gzip", "bzip2", "xz", "zstd", "blosc", "lz4"]
    store = Container("z5_n5.n5", {"name": "z5py", "version": z5py.__version__}, create, group, notes="lz4 has no frames")
    store.put_all({name: name for name in names})
    store.put_shapes("gzip")
    store.save()


def with_java():
    """n5 encodes blocks, and leaves their shapes to its caller. Here the blocks at the edge are truncated, as n5-imglib2 truncates them."""
    plan = []

    def create(store, path, values, chunks, compression, attributes):
        node = {"path": path, "attributes": attributes, "dataType": values.dtype.name, "compression": compression,
                "dimensions": values.shape[::-1], "blockSize": chunks[::-1], "blocks": []}
        plan.append(node)

        def write(selection, part):
            whole = np.ma.masked_all(values.shape, values.dtype)
            whole[selection] = part
            for index in itertools.product(*(range(-(-n // c)) for n, c in zip(values.shape, chunks))):
                block = whole[tuple(slice(i * c, (i + 1) * c) for i, c in zip(index, chunks))]
                if block.mask is not np.ma.nomask and block.mask.all():
                    continue
                elements = block.filled(0).astype(values.dtype.newbyteorder(">")).tobytes()
                node["blocks"].append({"position": index[::-1], "size": block.shape[::-1], "elements": base64.b64encode(elements).decode()})
        return write

    store = Container("java_n5.n5", {"name": "n5", "version": "4.0.2"}, create,
                      lambda _, path, attributes: plan.append({"path": path, "attributes": attributes}), notes="lz4 in frames")
    # The document of an array is read for the manifest, so the container is written when all is planned.
    later, store.array = [], lambda *arguments: later.append(arguments)
    store.put_all({name: name for name in ["raw", "gzip", "zlib", "bzip2", "xz", "lz4"]})
    store.put_shapes("lz4")
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(plan, file)
        file.flush()
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "WriteN5.java")
        subprocess.check_call(["java", "-cp", os.environ["N5_CLASSPATH"], source, store.path, file.name])
    for path, values in later:
        Store.array(store, path, values)
    store.save()


{"zarr-python": with_zarr_python, "tensorstore": with_tensorstore, "z5py": with_z5py, "java": with_java}[sys.argv[1]]()
