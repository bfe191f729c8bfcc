"""A small store that the tests write themselves, so that they know its values and bytes."""
import os

import numpy as np
import zarr

# Each backing file gets its own time, with nanoseconds, so that the times of two files cannot be confused.
FIRST_TIME_NS = 1_000_000_000_123_456_789
SHAPE = (100, 90)


def values():
    return (np.arange(9000, dtype="<i4") * 7 - 20000).reshape(SHAPE)


def write(root):
    """A v3 group: `plain` (zstd), `raw` (uncompressed), `sharded`, `holes` (chunks missing), and a key that belongs to no array."""
    group = zarr.open_group(str(root), mode="w", attributes={"title": "sample"})
    data = values()
    plain = {"shape": SHAPE, "dtype": "int32", "fill_value": 5}
    make(group, "plain", chunks=(32, 32), **plain)[...] = data
    make(group, "raw", chunks=(32, 32), compressors=None, **plain)[...] = data
    make(group, "sharded", chunks=(16, 16), shards=(64, 64), **plain)[...] = data
    make(group, "holes", chunks=(32, 32), **plain)[:32, :32] = data[:32, :32]
    (root / "notes.txt").write_bytes(b"no array owns this key\n")
    give_times(root)
    return root


def make(group, name, **kwargs):
    return group.create_array(name, **kwargs)


def give_times(root):
    for n, path in enumerate(sorted(p for p in root.rglob("*") if p.is_file())):
        stamp = FIRST_TIME_NS + n * 1_000_000_007
        os.utime(path, ns=(stamp, stamp))
