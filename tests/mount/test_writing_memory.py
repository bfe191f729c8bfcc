"""Many files that are open and written to: what they have is right wherever it is kept, and takes no more memory than it may."""
import errno
import json
import os
import random
import threading

import numpy as np
import pytest
import tensorstore
import zarr
from zarr.codecs import BloscCodec, GzipCodec

from mounting import ok

MIB = 1 << 20
FILES = 96
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


def write(folder, numbers, expected, failures):
    """Opens all these chunks, writes pieces of them in turns, reads them back, and closes them."""
    chance = random.Random(numbers[0])
    files = {}
    try:
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
    except BaseException as failure:
        failures.append(failure)
        raise


@pytest.mark.parametrize("cache", ["1M", "16M", "128M"])
@pytest.mark.parametrize("codecs", ARRAYS)
def test_many_open_drafts(tmp_path, mount, codecs, cache):
    store = tmp_path / "store"
    expected = make(store, codecs)
    mounted = mount(store, "--rw", "--view", "chunks", "--cache-size", cache)
    failures = []
    parts = [range(start, FILES, 4) for start in range(4)]
    threads = [threading.Thread(target=write, args=(mounted.path / "a/c", part, expected, failures)) for part in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    for n in range(FILES):
        shown = np.fromfile(mounted.path / f"a/c/{n}", "u1")
        assert np.array_equal(shown, expected[n]), f"chunk {n}"
    assert mounted.peak_bytes() <= (int(cache[:-1]) + 64) * MIB
    mounted.unmount()
    stored = zarr.open_array(str(store / "a"), mode="r")[...]
    np.testing.assert_array_equal(stored.view("u1").reshape(FILES, MIB), expected)


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
    with open(mounted.path / ".zarr-mount/sync", "rb") as sync:
        os.fsync(sync)
    shard = tensorstore.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{store}/{made.path}/"}}).result()
    np.testing.assert_array_equal(shard[...].read().result(), written)
