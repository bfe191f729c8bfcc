"""Stores for the tests of mounts with `--rw`, and their contents."""
import os
from pathlib import Path

import numpy as np
import pytest
import zarr

ARGS = ("--rw", "--view", "keys", "--shards", "keep")
SHAPE, CHUNK = (64, 64), (16, 16)


def values(seed=0):
    return np.random.default_rng(seed).random(SHAPE, dtype="f4")


def write(path):
    """A group with an array `a`, whose chunks are of 16 x 16 float32."""
    group = zarr.create_group(str(path), zarr_format=3)
    array = group.create_array("a", shape=SHAPE, chunks=CHUNK, dtype="<f4")
    array[...] = values()
    return Path(path)


def tree(path):
    """The contents of a directory: each name with its bytes, or None for a directory. The program's own directory is left out."""
    found = {}
    for folder, directories, names in os.walk(path):
        directories[:] = [name for name in directories if name != ".zarr-mount"]
        for name in directories:
            found[os.path.relpath(os.path.join(folder, name), path)] = None
        for name in names:
            file = os.path.join(folder, name)
            found[os.path.relpath(file, path)] = Path(file).read_bytes()
    return found


@pytest.fixture
def store(tmp_path):
    return write(tmp_path / "store")


@pytest.fixture
def written(store, mount):
    """A mount of `store`. After every test, the mount must show the contents of the store."""
    made = mount(store, *ARGS)
    yield made
    assert tree(made.path) == tree(store)
