"""Many open files with drafts: their contents are right wherever they are kept, and take no more memory than they may."""
import errno
import json
import os
import random
import struct
import threading
from concurrent.futures import ThreadPoolExecutor

import google_crc32c
import numpy as np
import pytest
import tensorstore
import zarr
from zarr.codecs import BloscCodec, BytesCodec, GzipCodec, ShardingCodec, ZstdCodec

from support import mounting
from support.mounting import ok, run

MIB = 1 << 20
# More than the smaller caches of the tests hold, and less than the largest.
FILES = 48
STEP = 4096

ARRAYS = {
    "none": {"compressors": None},
    "blosc": {"compressors": BloscCodec(cname="lz4")},
    "gzip": {"compressors": GzipCodec(level=1)},
    "shards": {"compressors": BloscCodec(cname="lz4"), "shards": (16 * MIB // 4,)},
}


def make(path, codecs):
    """An array of chunks of 1 MiB, of which every other one is stored."""
    group = zarr.create_group(str(path), zarr_format=3)
    made = group.create_array("a", shape=(FILES * MIB // 4,), chunks=(MIB // 4,), dtype="<u4", fill_value=7, **ARRAYS[codecs])
    expected = np.full(made.shape, 7, "<u4")
    for n in range(0, FILES, 2):
        expected[n * MIB // 4:(n + 1) * MIB // 4] = np.arange(MIB // 4, dtype="<u4") + n
    made[...] = expected
    return expected.view("u1").reshape(FILES, MIB)


def together(count, work):
    """Calls work(n) in a thread for each n, and raises what one of them raised."""
    with ThreadPoolExecutor(count) as threads:
        list(threads.map(work, range(count)))


def write(folder, numbers, expected):
    """Opens all these chunks, writes pieces of them in turns, reads them back, and closes them."""
    chance = random.Random(numbers[0])
    files = {}
    for n in numbers:
        anew = chance.random() < 0.5
        files[n] = os.open(f"{folder}/{n}", os.O_RDWR | os.O_CREAT | (os.O_TRUNC if anew else 0), 0o644)
        if anew:
            expected[n] = 0
            os.ftruncate(files[n], MIB)
    for _ in range(8):
        for n, file in files.items():
            at, data = chance.randrange(MIB - STEP), chance.randbytes(STEP)
            os.pwrite(file, data, at)
            expected[n, at:at + STEP] = np.frombuffer(data, "u1")
            at = chance.randrange(MIB - STEP)
            assert os.pread(file, STEP, at) == expected[n, at:at + STEP].tobytes(), f"chunk {n} at {at}"
            assert os.fstat(file).st_size == MIB
    for file in files.values():
        os.close(file)


@pytest.mark.parametrize("cache", ["1M", pytest.param("16M", marks=pytest.mark.long), "128M"])
@pytest.mark.parametrize("codecs", ARRAYS)
def test_many_open_drafts(tmp_path, mount, codecs, cache):
    store = tmp_path / "store"
    expected = make(store, codecs)
    mounted = mount(store, "--rw", "--view", "chunks", "--cache-size", cache)
    together(4, lambda start: write(mounted.path / "a/c", range(start, FILES, 4), expected))
    for n in range(FILES):
        shown = np.fromfile(mounted.path / f"a/c/{n}", "u1")
        assert np.array_equal(shown, expected[n]), f"chunk {n}"
    assert mounted.peak_bytes() <= (int(cache[:-1]) + 64) * MIB
    mounted.unmount()
    stored = zarr.open_array(str(store / "a"), mode="r")[...]
    np.testing.assert_array_equal(stored.view("u1").reshape(FILES, MIB), expected)


@pytest.mark.parametrize("around", [False, True])
@pytest.mark.parametrize("cache,files,size", [pytest.param(64, 16, 16, marks=pytest.mark.long), (16, 32, 8)])
def test_inner_chunks_that_are_closed_at_the_same_time(tmp_path, mount, cache, files, size, around):
    """Each close encodes, and looks at the shard, which takes memory beside what others hold."""
    store, length = tmp_path / "store", size * MIB // 4
    sharding = ShardingCodec(chunk_shape=(length,), codecs=[BytesCodec(), BloscCodec(cname="lz4")])
    outer = [ZstdCodec(level=1)] if around else None
    group = zarr.create_group(str(store), zarr_format=3)
    expected = np.empty(files * length, "<u4")
    made = group.create_array(
        "a", shape=expected.shape, chunks=(files * length // 4,), dtype="<u4", fill_value=7, serializer=sharding, compressors=outer
    )
    for n in range(files):
        expected[n * length:(n + 1) * length] = np.arange(length, dtype="<u4") * (n + 1)
    made[...] = 9
    mounted = mount(store, "--rw", "--view", "chunks", "--cache-size", f"{cache}M")
    ready = threading.Barrier(files)

    def work(n):
        with open(mounted.path / f"a/c/{n}", "wb") as file:
            file.write(expected[n * length:(n + 1) * length].tobytes())
            ready.wait()

    together(files, work)
    mounted.sync()
    if not around:  # a codec around a shard takes all of it into memory
        assert mounted.peak_bytes() <= (cache + 64) * MIB
    mounted.unmount()
    np.testing.assert_array_equal(zarr.open_array(str(store / "a"), mode="r")[...], expected)


def test_a_part_of_a_long_encoded_chunk_is_written(tmp_path, mount):
    """The keys view shows the bytes of the object, which are not taken into memory for that."""
    store, length = tmp_path / "store", 200 * MIB
    made = zarr.create_group(str(store)).create_array("a", shape=(length,), chunks=(length,), dtype="u1", compressors=None)
    made[...] = 5
    mounted = mount(store, "--rw", "--view", "keys", "--cache-size", "1M", "--max-chunk", "1G")
    with open(mounted.path / "a/c/0", "r+b", buffering=0) as file:
        os.pwrite(file.fileno(), b"new", 150 * MIB)
    assert mounted.peak_bytes() <= 65 * MIB
    mounted.unmount()
    expected = bytearray(b"\5") * length
    expected[150 * MIB:150 * MIB + 3] = b"new"
    assert (store / "a/c/0").read_bytes() == expected


@pytest.mark.parametrize("view,shards", [("chunks", None), ("chunks", (4 * MIB,)), ("keys", (4 * MIB,))])
def test_a_part_of_a_chunk_that_is_far_too_long_is_not_written(tmp_path, mount, view, shards):
    store, length = tmp_path / "store", 4 << 30
    made = zarr.create_group(str(store)).create_array(
        "a", shape=(4 * MIB,), chunks=(MIB,), shards=shards, dtype="u1", fill_value=0, compressors=GzipCodec(level=1)
    )
    made[...] = np.arange(4 * MIB) % 251
    chunk = store / "a/c/0"
    before = chunk.read_bytes()
    if shards:  # the first entry of the index says that its chunk has nearly all of these bytes
        index = before[-4 * 16 - 4:-4]
        index = struct.pack("<QQ", 0, length) + index[16:]
        with open(chunk, "r+b") as file:
            file.seek(length)
            file.write(index + struct.pack("<I", google_crc32c.value(index)))
    else:
        os.truncate(chunk, length)
    head, size = chunk.open("rb").read(1 << 16), chunk.stat().st_size
    mounted = mount(store, "--rw", "--view", view, "--cache-size", "1M")
    with pytest.raises(OSError) as told:
        with open(mounted.path / "a/c/0", "r+b", buffering=0) as file:
            os.pwrite(file.fileno(), b"new", 150)
    assert told.value.errno == errno.EIO
    assert mounted.peak_bytes() <= 65 * MIB
    mounted.unmount()
    assert chunk.open("rb").read(1 << 16) == head and chunk.stat().st_size == size


def test_a_limit_of_file_sizes_is_an_error_of_the_write(tmp_path, mount):
    zarr.create_group(str(tmp_path / "store")).create_array("a", shape=(MIB,), chunks=(MIB,), dtype="u1", fill_value=0, compressors=GzipCodec(level=1))
    mounted = mount(tmp_path / "store", "--rw", "--view", "chunks", prefix=("prlimit", f"--fsize={MIB // 2}:"))
    with open(mounted.path / "a/c/0", "w+b", buffering=0) as file:
        with pytest.raises(OSError) as told:
            os.pwrite(file.fileno(), b"q" * STEP, MIB - STEP)
        assert told.value.errno == errno.EFBIG
        assert os.fstat(file.fileno()).st_size == 0 and os.pread(file.fileno(), STEP, 0) == b""
        file.truncate(0)
        os.pwrite(file.fileno(), b"W" * 10, 100)
        assert os.fstat(file.fileno()).st_size == 110 and os.pread(file.fileno(), STEP, 0) == bytes(100) + b"W" * 10
        ok("prlimit", "--pid", mounted.pid, "--fsize=unlimited:")
        os.pwrite(file.fileno(), b"q" * STEP, MIB - STEP)
    wanted = bytes(100) + b"W" * 10 + bytes(MIB - STEP - 110) + b"q" * STEP
    assert (mounted.path / "a/c/0").read_bytes() == wanted
    mounted.unmount()
    assert zarr.open_array(str(tmp_path / "store/a"), mode="r")[...].tobytes() == wanted


SHARDS = {
    "plain": lambda size: {"chunks": (4 * size,), "serializer": sharding(size)},
    "in shards": lambda size: {"chunks": (8 * size,), "serializer": ShardingCodec(chunk_shape=(4 * size,), codecs=[sharding(size)])},
    "around": lambda size: {"chunks": (4 * size,), "serializer": sharding(size), "compressors": [ZstdCodec(level=1)]},
}


def sharding(size):
    return ShardingCodec(chunk_shape=(size,), codecs=[BytesCodec(), BloscCodec(cname="lz4")])


@pytest.mark.parametrize("shards", SHARDS)
@pytest.mark.parametrize("cache,size", [(1, 4), pytest.param(8, 4, marks=pytest.mark.long), pytest.param(16, 16, marks=pytest.mark.long)])
def test_inner_chunks_are_written_and_read_at_the_same_time(tmp_path, mount, cache, size, shards):
    """With hardly any memory, no thread waits for a thread that waits for it: each writes its own chunk, whole or a part, and reads any."""
    store, length, n_threads = tmp_path / "store", size * MIB, 4
    made = zarr.create_group(str(store)).create_array(
        "a", shape=(8 * length,), dtype="u1", fill_value=0, **({"compressors": None} | SHARDS[shards](length))
    )
    made[...] = 1
    mounted = mount(store, "--rw", "--view", "chunks", "--cache-size", f"{cache}M")
    expected = np.ones((8, length), "u1")

    def work(thread):
        chance = random.Random(thread)
        for turn in range(8):
            n, value = thread + 4 * (turn % 2), chance.randrange(256)
            if chance.random() < 0.5:
                (mounted.path / f"a/c/{n}").write_bytes(bytes([value]) * length)
                expected[n] = value
            else:
                with open(mounted.path / f"a/c/{n}", "r+b", buffering=0) as file:
                    os.pwrite(file.fileno(), bytes([value]) * STEP, STEP * turn)
                expected[n, STEP * turn:STEP * (turn + 1)] = value
            assert (mounted.path / f"a/c/{n}").read_bytes() == expected[n].tobytes()
            (mounted.path / f"a/c/{chance.randrange(8)}").read_bytes()  # another thread may be writing this chunk

    together(n_threads, work)
    if shards == "plain":
        assert mounted.peak_bytes() <= (cache + 64) * MIB
    mounted.unmount()
    np.testing.assert_array_equal(zarr.open_array(str(store / "a"), mode="r")[...].reshape(8, length), expected)


def test_a_nested_shard_that_is_far_too_long_is_not_written_anew(tmp_path, mount):
    store, chunk, length = tmp_path / "store", 1024, 3 << 30
    nested = ShardingCodec(chunk_shape=(4 * chunk,), codecs=[ShardingCodec(chunk_shape=(chunk,), codecs=[BytesCodec(), ZstdCodec()])])
    made = zarr.create_group(str(store)).create_array("a", shape=(16 * chunk,), chunks=(16 * chunk,), dtype="u1", fill_value=0, serializer=nested, compressors=None)
    made[...] = 1
    shard, absent = store / "a/c/0", struct.pack("<QQ", 2**64 - 1, 2**64 - 1)
    inner = struct.pack("<QQ", 0, length) + absent * 3
    outer = struct.pack("<QQ", 0, length + len(inner) + 4) + absent * 3
    with open(shard, "wb") as file:
        file.seek(length)
        for index in (inner, outer):
            file.write(index + struct.pack("<I", google_crc32c.value(index)))
    size = shard.stat().st_size
    mounted = mount(store, "--rw", "--view", "chunks", "--cache-size", "1M")
    (mounted.path / "a/c/1").write_bytes(bytes([2]) * chunk)
    with pytest.raises(OSError) as told:
        mounted.sync()
    assert told.value.errno == errno.EIO
    assert (mounted.path / "a/c/1").read_bytes() == bytes([2]) * chunk and shard.stat().st_size == size
    assert mounted.peak_bytes() <= 65 * MIB
    done = run(mounting.BINARY, "--unmount", mounted.path)
    assert done.returncode == 1 and "not all that was written is in the store" in done.stderr
    mounted.wait_for_the_end()


@pytest.mark.parametrize("view", ["chunks", "keys"])
def test_a_document_that_is_longer_than_the_cache(tmp_path, mount, view):
    zarr.create_group(str(tmp_path / "store")).create_array("a", shape=(10,), chunks=(10,), dtype="<f4", attributes={"x": "y" * 3 * MIB})
    shards = ["--shards", "keep"] if view == "keys" else []
    mounted = mount(tmp_path / "store", "--rw", "--view", view, "--cache-size", "1M", *shards)
    document = json.loads((mounted.path / "a/zarr.json").read_bytes())
    document["attributes"]["z"] = 5
    (mounted.path / "a/zarr.json").write_text(json.dumps(document))
    mounted.unmount()
    assert zarr.open_array(str(tmp_path / "store/a"), mode="r").attrs.asdict() == document["attributes"]


def test_a_shard_whose_index_is_longer_than_the_cache(tmp_path, mount):
    store, n = tmp_path / "store", 1 << 17  # 16 bytes of the index for each
    group = zarr.create_group(str(store), zarr_format=3)
    made = group.create_array("a", shape=(n,), chunks=(1,), shards=(n,), dtype="<u4", fill_value=0, compressors=None)
    written = np.arange(n, dtype="<u4")
    tensorstore.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{store}/{made.path}/"}}).result()[...].write(written).result()
    mounted = mount(store, "--rw", "--view", "chunks", "--cache-size", "1M")
    for at in (1, 8):
        (mounted.path / f"a/c/{at}").write_bytes(b"abcd")
        written[at] = int.from_bytes(b"abcd", "little")
    mounted.sync()
    shard = tensorstore.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{store}/{made.path}/"}}).result()
    np.testing.assert_array_equal(shard[...].read().result(), written)
