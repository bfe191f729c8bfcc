"""Arrays that zarr-python makes, replaces, changes and deletes at random while they are mounted, read after each change."""
import os
import random
import subprocess
import time

import numpy as np
import pytest
import zarr

PATHS = ["a", "b", "g/a", "g/h/a"]
VIEWS = [("keys",), ("keys", "--as", "v2"), ("keys", "--as", "v3"), ("chunks",), ("chunks", "--as", "v3"), ("keys", "--rw"), ("chunks", "--rw"),
         ("keys", "--shards", "keep"), ("arrays",), ("keys", "--ttl", "0"), ("chunks", "--ttl", "60")]


class Store:
    """A store, and the elements that each of its arrays has."""

    def __init__(self, path, version, chooser):
        self.path, self.version, self.chooser = str(path), version, chooser
        self.root = zarr.open_group(self.path, mode="w", zarr_format=version)
        self.arrays = {}
        self.is_consolidated = False  # Whether consolidated metadata has the current documents.
        self.history = []

    def make(self, path):
        choose = self.chooser.choice
        rank = choose([1, 1, 2, 2, 3])
        shape = tuple(choose([4, 6, 8]) for _ in range(rank))
        chunks = tuple(choose([2, 4]) for _ in range(rank))
        options = {"compressors": choose([None, "auto"])}
        if self.version == 2 or choose([True, False]):
            options["chunk_key_encoding"] = {"name": "v2", "separator": choose("/.")}
        if self.version == 3 and choose([True, False]):
            options["shards"] = tuple(2 * length for length in chunks)
        elements = np.array([self.chooser.randrange(1, 1000) for _ in range(int(np.prod(shape)))])
        elements = elements.astype(choose(["<i4", "<u4", "<f4", ">i4"])).reshape(shape)
        self.root.create_array(path, shape=shape, chunks=chunks, dtype=elements.dtype, fill_value=0, overwrite=True, **options)[...] = elements
        self.arrays[path] = elements
        self.is_consolidated = False
        self.history.append(("make", path, shape, chunks, options))

    def change(self):
        kind = self.chooser.choice(["make", "make", "make", "write", "delete", "consolidate"])
        if kind == "make" or len(self.arrays) < 2:
            return self.make(self.chooser.choice(PATHS))
        if kind == "consolidate":
            return self.consolidate()
        path = self.chooser.choice(sorted(self.arrays))
        self.history.append((kind, path))
        if kind == "delete":
            del self.root[path], self.arrays[path]
            self.is_consolidated = False
        else:
            part = tuple(slice(0, self.chooser.randrange(1, length + 1)) for length in self.arrays[path].shape)
            self.root[path][part] = self.arrays[path][part] = self.chooser.randrange(1000, 2000)

    def consolidate(self):
        zarr.consolidate_metadata(self.path)
        self.is_consolidated = True
        self.history.append(("consolidate",))


def look(mountpoint, store):
    """Makes the kernel remember names, or not."""
    command = store.chooser.choice([None, None, ["ls", "-lR", mountpoint], ["ls", "-l", f"{mountpoint}/a"], ["find", mountpoint, "-type", "f"]])
    if command is not None:
        store.history.append(tuple(map(str, command)))
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def read(mountpoint, store, path, view):
    if view == "arrays":
        return np.load(os.path.join(mountpoint, f"{path}.npy"))
    by_copy = store.is_consolidated and store.chooser.choice([True, False])
    store.history.append(("read", path, by_copy))
    if by_copy:
        return zarr.open_group(str(mountpoint), mode="r", use_consolidated=True)[path][...]
    return zarr.open_array(os.path.join(mountpoint, path), mode="r")[...]


def check(tmp_path, mount, view, seed):
    chooser = random.Random(seed)
    store = Store(tmp_path / "s.zarr", chooser.choice([2, 3]), chooser)
    for path in chooser.sample(PATHS, k=2):
        store.make(path)
    if chooser.choice([True, False]):
        store.consolidate()
    made = mount(store.path, "--view", *view)
    for _ in range(10):
        for _ in range(chooser.choice([1, 1, 2])):
            store.change()
        look(made.path, store)
        for path in chooser.sample(sorted(store.arrays), k=chooser.randrange(1, len(store.arrays) + 1)):
            found, expected = read(made.path, store, path, view[0]), store.arrays[path]
            assert found.shape == expected.shape and np.array_equal(found, expected), (seed, path, store.history)
        if chooser.random() < 0.1:
            time.sleep(1.1)  # Longer than the time to live.


@pytest.mark.parametrize("view", VIEWS, ids=" ".join)
def test_arrays_are_read_as_they_are(tmp_path, mount, view):
    check(tmp_path, mount, view, seed=" ".join(view))


@pytest.mark.long
@pytest.mark.parametrize("number", range(20))
@pytest.mark.parametrize("view", VIEWS, ids=" ".join)
def test_arrays_are_read_as_they_are_in_more_sequences(tmp_path, mount, view, number):
    check(tmp_path, mount, view, seed=f"{number} {' '.join(view)}")
