"""Chunks of an array that is rewritten with another layout: they are never decoded by the document that was there before."""
import ctypes
import os

import numpy as np
import pytest
import zarr

from support import remote_samples
from support.remote_fault_server import FaultServer
from support.remote_samples import attempt, mounted

CHUNK = 4
RENAME_EXCHANGE = 2


def write(folder, first, endian, shards=None):
    """An array of numbers from `first` on, whose bytes have the given order."""
    codec = zarr.codecs.BytesCodec(endian=endian)
    array = zarr.create_array(str(folder), shape=(2 * CHUNK,), chunks=(CHUNK,), shards=shards, dtype="i4", compressors=None,
                              serializer=codec, zarr_format=3, overwrite=True)
    array[...] = np.arange(first, first + 2 * CHUNK)


def decoded(first, chunk):
    return np.arange(first + CHUNK * chunk, first + CHUNK * (chunk + 1), dtype="<i4").tobytes()


@pytest.mark.parametrize("views", ["chunks", "arrays,chunks"])
@pytest.mark.parametrize("shards", [None, (CHUNK,)])
@pytest.mark.parametrize("kind", ["http", "s3"])
def test_on_a_server(kind, shards, views, mount, tmp_path):
    """The times of the new files are as old as those of the old ones, as after `rsync -a`. A shard would look damaged."""
    store = tmp_path / remote_samples.BUCKET / "z"
    write(store, 100, "little", shards)
    remote_samples.age(store.parent)
    with FaultServer(tmp_path, kind) as server:
        made = mounted(mount, server, "--view", views, "--readahead", "0", "--ttl", "3600")
        chunks = made.path / "c" if views == "chunks" else made.path / "chunks" / "c"
        assert attempt(chunks / "0") == decoded(100, 0)
        write(store, 200, "big")
        if kind == "http":
            remote_samples.age(store.parent)
        assert [attempt(chunks / name) for name in "101"] == [decoded(200, 1), decoded(200, 0), decoded(200, 1)]
        made.unmount()


def test_in_a_directory_that_takes_the_place_of_another(mount, tmp_path):
    store = tmp_path / "store"
    zarr.create_group(str(store), zarr_format=3)
    write(store / "a", 100, "little")
    write(store / "b", 200, "big")
    made = mount(store, "--view", "chunks")
    places = [os.fsencode(store / name) for name in "ab"]
    for turn in range(20):
        first = (100, 200)[turn % 2]
        assert attempt(made.path / "a" / "c" / str(turn % 2)) == decoded(first, turn % 2)
        assert ctypes.CDLL(None).renameat2(-100, places[0], -100, places[1], RENAME_EXCHANGE) == 0
    made.unmount()
