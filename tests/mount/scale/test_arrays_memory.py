"""The cost of reading whole arrays: memory within the bound, and no chunk decoded more often than necessary."""
import json
import mmap
import os
import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import zarr

from support import array_view, mounting

MIB = 1 << 20
SHAPE, CHUNKS = (128, 1024, 64), (32, 128, 64)  # 32 MiB of u4 in 4 rows of 8 chunks of 1 MiB


def write(root, **kwargs):
    array = zarr.create_array(str(root), shape=SHAPE, chunks=CHUNKS, dtype="<u4", fill_value=0, **kwargs)
    array[...] = values()
    return root


def values():
    return (np.arange(np.prod(SHAPE), dtype="<u4") * 2654435761).reshape(SHAPE)


def pass_over(path, piece=MIB):
    """Reads a file from the first byte to the last, keeping nothing; its size."""
    total = 0
    with open(path, "rb", buffering=0) as file:
        while data := file.read(piece):
            total += len(data)
    return total


def mounted(mount, store, *arguments):
    made = mount(store, "--view", "arrays", "--files", "raw", *arguments)
    return made, made.path / f"{store.stem}.raw"


LAYOUTS = {
    "zstd": {}, "gzip": {"compressors": zarr.codecs.GzipCodec(level=1)}, "blosc": {"compressors": zarr.codecs.BloscCodec()},
    "uncompressed": {"compressors": None}, "sharded": {"shards": (64, 512, 64)},
    "transposed": {"filters": zarr.codecs.TransposeCodec(order=(2, 1, 0))},
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_chunk_is_decoded_once_a_pass(mount, tmp_path, layout):
    """A row of chunks is 8 MiB, and rings take an eighth of the cache."""
    made, path = mounted(mount, write(tmp_path / "a", **LAYOUTS[layout]), "--cache-size", "28M")
    assert path.read_bytes() == values().tobytes()
    assert array_view.decodes(made) == 32
    assert "--cache-size" not in made.log_text()


@pytest.mark.parametrize("layout", ["uncompressed", "blosc", "sharded", "zstd"])
def test_a_cache_smaller_than_a_row_of_chunks(mount, tmp_path, figure, layout):
    """The values are right, the memory bounded, the size that would help told once, and only as much as must is decoded."""
    made, path = mounted(mount, write(tmp_path / "a", **LAYOUTS[layout]), "--cache-size", "4M")
    assert path.read_bytes() == values().tobytes()
    stats = made.stats()
    figure(f"32 chunks of 1 MiB, rows of 8 MiB, cache 4 MiB, {layout}: {stats['chunks']['decodes']} decodes, "
           f"{stats['store']['bytes'] / MIB:.0f} MiB fetched")
    assert made.peak_bytes() <= 68 * MIB
    advice = [line for line in made.log_text().splitlines() if "--cache-size" in line]
    if layout in ("uncompressed", "blosc"):
        # Parts: not the whole chunk again for every read of it.
        assert stats["store"]["bytes"] <= 2 * values().nbytes
    assert len(advice) == 1, advice
    assert int(re.search(r"--cache-size[ =](\d+)", advice[0])[1]) >= 8


def test_the_reported_size_is_enough(mount, tmp_path):
    store = write(tmp_path / "a")
    made, path = mounted(mount, store, "--cache-size", "4M")
    pass_over(path)
    too_small = array_view.decodes(made)
    (advice,) = [line for line in made.log_text().splitlines() if "--cache-size" in line]
    size = re.search(r"--cache-size[ =](\w+)", advice)[1]
    again, path = mounted(mount, store, "--cache-size", size)
    pass_over(path)
    # The kernel reads ahead with several requests at once, and one that runs late on a busy machine may find that its chunk
    # has left. That costs a few decodes, where a cache that is too small decodes most chunks for each request.
    few = 32 + 16
    assert few < too_small
    assert 32 <= array_view.decodes(again) <= few and "--cache-size" not in again.log_text()
    told = json.loads(mounting.ok(mounting.BINARY, "--info", "--json", "--files", "npy", store))
    enough = told[0]["whole_array_cache_bytes"]
    assert 8 * MIB <= enough <= int(size.removesuffix("MiB")) * MIB
    third, path = mounted(mount, store, "--cache-size", str(enough))
    pass_over(path)
    assert 32 <= array_view.decodes(third) <= few


def test_memory_is_bounded_by_the_cache(mount, tmp_path, figure):
    root = tmp_path / "a"
    array = zarr.create_array(str(root), shape=(48, 1024, 1024), chunks=(8, 256, 256), dtype="<u4", fill_value=3)  # rows of 32 MiB
    array[...] = np.random.default_rng(1).integers(0, 4, array.shape, "<u4")
    made, path = mounted(mount, root, "--cache-size", "48M")
    assert pass_over(path) == array.nbytes
    figure(f"192 MiB read in one pass, cache 48 MiB: peak {made.peak_bytes() / MIB:.0f} MiB, {array_view.decodes(made)} decodes of 96")
    assert made.peak_bytes() <= (48 + 64) * MIB
    assert array_view.decodes(made) == 96


def test_records_of_one_number_each(mount, tmp_path, figure):
    """A file of very many records of a few bytes: what a read takes is in proportion to its bytes, not to its records."""
    n, root = 1_000_000, tmp_path / "series"
    group = zarr.open_group(str(root), mode="w", zarr_format=3)
    made_of = {"a": ">f4", "b": ">f8", "c": ">i4"}
    columns = {name: np.random.default_rng(number).integers(0, 1 << 20, n).astype(dtype) for number, (name, dtype) in enumerate(made_of.items())}
    for name, column in columns.items():
        array = group.create_array(name, shape=(n,), chunks=(1 << 16,), dtype=column.dtype.newbyteorder("<"), dimension_names=["time"])
        array[...] = column
    made = mount(root, "--view", "arrays", "--files", "nc", "--unlimited", "time", "--cache-size", "4M")
    (path,) = made.path.glob("*.nc")
    records = np.zeros(n, dtype=list(made_of.items()))
    for name, column in columns.items():
        records[name] = column
    expected = records.tobytes()
    head = path.stat().st_size - len(expected)
    with ThreadPoolExecutor(8) as pool:
        starts = [head + len(expected) * reader // 8 for reader in range(8)]
        parts = list(pool.map(lambda start: reading_at(path, start, len(expected) // 8), starts))
    assert b"".join(parts) == expected
    figure(f"{n} records of 16 bytes, 8 readers, cache 4 MiB: peak {made.peak_bytes() / MIB:.0f} MiB")
    assert made.peak_bytes() <= 68 * MIB


def reading_at(path, start, length):
    """Bytes of a file, by reads of 1 MiB."""
    fd = os.open(path, os.O_RDONLY)
    try:
        return b"".join(os.pread(fd, min(MIB, length - at), start + at) for at in range(0, length, MIB))
    finally:
        os.close(fd)


@pytest.mark.parametrize("layout", ["uncompressed", "blosc", "sharded"])
def test_a_small_read_fetches_little(mount, tmp_path, layout):
    """One element in the middle of an array, a row of whose large chunks (or shards) does not fit the cache."""
    root = tmp_path / "a"
    kwargs = {"uncompressed": {"compressors": None, "chunks": (1024, 2048)},
              "blosc": {"compressors": zarr.codecs.BloscCodec(shuffle="noshuffle"), "chunks": (1024, 2048)},
              "sharded": {"chunks": (128, 128), "shards": (1024, 2048)}}[layout]
    array = zarr.create_array(str(root), shape=(2048, 4096), dtype="<u4", fill_value=0, **kwargs)
    data = np.random.default_rng(2).integers(0, 1 << 32, array.shape, "<u4")
    array[...] = data
    made, path = mounted(mount, root, "--cache-size", "4M")
    before = made.stats()["store"]["bytes"]
    fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
    buffer = mmap.mmap(-1, 4)
    os.preadv(fd, [buffer], 4 * (1500 * 4096 + 3000))
    os.close(fd)
    assert buffer[:] == data[1500, 3000].tobytes()
    assert made.stats()["store"]["bytes"] - before < MIB, "more than a part of a chunk of 8 MiB was fetched"


def test_many_readers_share_decoded_chunks(mount, tmp_path):
    made, path = mounted(mount, write(tmp_path / "a"), "--cache-size", "64M")
    with ThreadPoolExecutor(6) as pool:
        starts = [n * values().nbytes // 6 for n in range(6)]
        found = list(pool.map(lambda start: read_round(path, start), starts))
    assert found == [values().tobytes()] * 6
    # A chunk that its first reader has passed may leave memory before the kernel has all of its pages for the others,
    # and is decoded once more. Without sharing there would be 192.
    assert 32 <= array_view.decodes(made) < 64


def read_round(path, start):
    """A whole file, begun somewhere in it, by a descriptor of its own."""
    with open(path, "rb", buffering=0) as file:
        file.seek(start)
        tail = file.readall()
        file.seek(0)
        return file.read(start) + tail if start else tail


def test_asking_for_many_parts_costs_no_memory(mount, tmp_path):
    """Each is a name of its own, which the kernel may forget."""
    zarr.create_array(str(tmp_path / "a"), shape=(20_000, 4), chunks=(1000, 4), dtype="<u4")[...] = np.arange(80_000).reshape(-1, 4)
    made = mount(tmp_path / "a", "--view", "arrays", "--cache-size", "16M")
    for n in range(20_000):
        assert os.stat(made.path / f"a@{n}.npy").st_size == 144
    assert np.load(made.path / "a@19999.npy").tolist() == [79_996, 79_997, 79_998, 79_999]
    assert made.peak_bytes() <= 80 * MIB
