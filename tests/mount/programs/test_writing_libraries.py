"""Zarr libraries that write through a mount: their chunks are in the store, as other libraries read them there."""
import json
import subprocess
import threading

import numpy as np
import pytest
import tensorstore
import zarr
from zarr.codecs import BloscCodec, GzipCodec, ShardingCodec, ZstdCodec

from support import readers, writing_samples
from support.mounting import ok
from support.writing_samples import ARGS, tree

SHAPE = (100, 90)
CODECS = {"none": None, "gzip": GzipCodec(level=1), "zstd": ZstdCodec(level=3), "blosc": BloscCodec(cname="lz4", shuffle="shuffle")}


@pytest.fixture
def pair(tmp_path, mount):
    """The store and the mount of an empty group."""
    store = tmp_path / "store"
    zarr.create_group(str(store), zarr_format=3)
    made = mount(store, *ARGS)
    yield store, made.path
    assert tree(made.path) == tree(store)
    left = [name for name in tree(store) if name.endswith((".partial", ".__lock"))]
    assert not left


def values(seed=0):
    return np.random.default_rng(seed).random(SHAPE, dtype="f4")


def by_tensorstore(path, driver):
    spec = {"driver": driver, "kvstore": {"driver": "file", "path": f"{path}/"}}
    return tensorstore.open(spec).result()[...].read().result()


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("shards", [None, (40, 45)])
def test_zarr_python_3(codec, shards, pair):
    store, path = pair
    group, wanted = zarr.open_group(str(path), mode="r+"), values()
    array = group.create_array("a", shape=SHAPE, chunks=(20, 15), shards=shards, dtype="<f4", compressors=CODECS[codec], fill_value=0)
    array[...] = wanted
    array[7:33, 11:80] = wanted[7:33, 11:80] = values(1)[7:33, 11:80]
    assert (array[...] == wanted).all()
    assert (by_tensorstore(store / "a", "zarr3") == wanted).all()
    array[:40, :45] = wanted[:40, :45] = 0
    array.attrs["about"] = "x" * 5000
    array.resize((80, 90))
    again = zarr.open_array(str(store / "a"), mode="r")
    assert again.shape == (80, 90) and (again[...] == wanted[:80]).all() and again.attrs["about"] == "x" * 5000
    array.resize((120, 90))
    assert (zarr.open_array(str(store / "a"), mode="r")[80:] == 0).all(), "what was cut off is not shown again"
    zarr.consolidate_metadata(str(path))
    assert "a" in json.loads((store / "zarr.json").read_text())["consolidated_metadata"]["metadata"]
    del group["a"]
    assert not (store / "a").exists()


@pytest.mark.parametrize("separator", [".", "/"])
def test_zarr_python_3_writes_v2(separator, pair):
    store, path = pair
    group = zarr.open_group(str(path / "g"), mode="w", zarr_format=2)
    array = group.create_array("a", shape=SHAPE, chunks=(20, 15), dtype="<f4", chunk_key_encoding={"name": "v2", "separator": separator})
    wanted = values()
    array[...] = wanted
    array[3:50] = wanted[3:50] = 7
    assert (by_tensorstore(store / "g/a", "zarr") == wanted).all()


@pytest.mark.parametrize("driver", ["zarr3", "zarr"])
def test_tensorstore(driver, pair):
    store, path = pair
    wanted = values()
    spec = {"driver": driver, "kvstore": {"driver": "file", "path": f"{path}/a/"}}
    array = tensorstore.open(spec, create=True, dtype=tensorstore.float32, shape=SHAPE, chunk_layout=tensorstore.ChunkLayout(chunk_shape=[20, 15])).result()
    array[...].write(wanted).result()
    array[5:44, 3:71].write(values(2)[5:44, 3:71]).result()
    wanted[5:44, 3:71] = values(2)[5:44, 3:71]
    assert (zarr.open_array(str(store / "a"), mode="r")[...] == wanted).all()
    # A chunk of fill value is removed.
    before = len(tree(store))
    array[:20, :15].write(0).result()
    wanted[:20, :15] = 0
    assert len(tree(store)) < before or driver == "zarr", "its fill value is null, which no element is"
    array.resize(exclusive_max=[60, 90]).result()
    assert (zarr.open_array(str(store / "a"), mode="r")[...] == wanted[:60]).all()


ZARR2 = """
import sys, numpy, zarr
group = zarr.open_group(sys.argv[1], mode="a")
array = group.create_dataset("a", shape=(100, 90), chunks=(20, 15), dtype="<f4", fill_value=0)
array[...] = numpy.load(sys.argv[2])
array[3:50] = 7
array.attrs["k"] = 1
array.append(numpy.ones((30, 90), "f4"))
array.resize(110, 90)
group.create_dataset("b", data=numpy.arange(10))
del group["b"]
group.move("a", "c")
"""


def test_zarr_python_2(tmp_path, mount):
    store = tmp_path / "store"
    zarr.create_group(str(store), zarr_format=2)
    made = mount(store, *ARGS)
    wanted = values()
    np.save(tmp_path / "x.npy", wanted)
    subprocess.run([readers.ZARR2, "-W", "ignore", "-c", ZARR2, made.path, tmp_path / "x.npy"], check=True)
    wanted[3:50] = 7
    found = by_tensorstore(store / "c", "zarr")
    assert found.shape == (110, 90) and (found[:100] == wanted).all() and (found[100:] == 1).all()
    assert sorted(name for name in tree(store) if "/" not in name) == [".zattrs", ".zgroup", "c"]
    assert tree(made.path) == tree(store)


def test_writers_side_by_side(pair):
    """Unaligned parts of one array, by tensorstore's conditional writes: none is lost."""
    store, path = pair
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{path}/a/"}, "recheck_cached_data": True}
    array = tensorstore.open(spec, create=True, dtype=tensorstore.int32, shape=[64], chunk_layout=tensorstore.ChunkLayout(chunk_shape=[16])).result()
    array[...].write(0).result()

    def count(n):
        mine = tensorstore.open(spec).result()
        for step in range(8):
            mine[n * 8 + step].write(step + 1).result()

    threads = [threading.Thread(target=count, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert zarr.open_array(str(store / "a"), mode="r")[...].tolist() == list(range(1, 9)) * 8


def test_a_store_is_copied_with_another_tool_and_edited(tmp_path, pair):
    store, path = pair
    sample = writing_samples.write(tmp_path / "sample")
    zarr.open_group(str(path), mode="r+")
    subprocess.run(["cp", "-a", sample / "a", path / "a"], check=True)
    array = zarr.open_array(str(path / "a"), mode="r+")
    array[0] = 1
    assert (zarr.open_array(str(store / "a"), mode="r")[0] == 1).all()


@pytest.mark.parametrize("view", ["keys", "chunks", "chunks --missing hide", "keys --as v2", "chunks --as v2"])
@pytest.mark.parametrize("zarr_format,separator,shards", [(2, ".", None), (2, "/", None), (3, "/", None), (3, "/", (8, 4)), (3, ".", (16, 4)),
                                                          (3, "/", "nested"), (3, "/", (4, 2))])
def test_zarr_python_2_makes_an_array_smaller(view, zarr_format, separator, shards, tmp_path, mount):
    """zarr-python 2 changes the document first, and then removes the chunks outside of the new shape. Elements that were cut off are not shown again."""
    if zarr_format == 3 and "--as" not in view:
        pytest.skip("zarr-python 2 does not read v3")
    store = tmp_path / "store"
    how = {"shards": shards}
    if shards == "nested":
        how = {"shards": None, "chunks": (16, 4), "compressors": None, "filters": None,
               "serializer": ShardingCodec(chunk_shape=(8, 4), codecs=[ShardingCodec(chunk_shape=(4, 2))])}
    array = zarr.create_array(str(store), **{"chunks": (4, 2)} | how, shape=(16, 4), dtype="i4", fill_value=0, zarr_format=zarr_format,
                              chunk_key_encoding={"name": "v2" if zarr_format == 2 else "default", "separator": separator})
    array[...] = np.arange(1, 65).reshape(16, 4)
    made = mount(store, "--rw", "--view", *view.split())
    program = "import sys, zarr; a = zarr.open_array(sys.argv[1], mode='r+'); a.resize(32, 4); a[:]; a.resize(4, 4); a.resize(16, 4)"
    ok(readers.ZARR2, "-c", program, made.path)
    # Inner chunks that are closed or removed are in the journal first.
    made.sync()
    found = zarr.open_array(str(store), mode="r")[...]
    assert (found[:4] == np.arange(1, 17).reshape(4, 4)).all()
    assert (found[4:] == 0).all()


@pytest.mark.parametrize("view", ["chunks", "chunks --as v2"])
def test_zarr_python_2_removes_chunks_of_fill_value_that_were_listed(view, tmp_path, mount):
    """The kernel knows their names for a while after the array has become smaller."""
    store = tmp_path / "store"
    array = zarr.create_array(str(store), shape=(16,), chunks=(2,), dtype="i4", fill_value=0, zarr_format=2 if view == "chunks" else 3)
    array[12:] = 7
    made = mount(store, "--rw", "--view", *view.split())
    ok("ls", "-lR", made.path)
    program = "import sys, zarr; a = zarr.open_array(sys.argv[1], mode='r+'); a.resize(2); a.resize(16)"
    ok(readers.ZARR2, "-c", program, made.path)
    assert (zarr.open_array(str(store), mode="r")[...] == 0).all()
