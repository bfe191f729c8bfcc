"""fio writes blocks in random order, each with a checksum of its own, and reads them again: through `write`, and through mapped memory."""
import json
import os

import numpy as np
import pytest
import zarr

from support.mounting import ok, run

pytestmark = pytest.mark.heavy
MIB = 1 << 20
N = 2 * MIB
CODECS = {"zstd": zarr.codecs.ZstdCodec(level=1), "blosc": zarr.codecs.BloscCodec(cname="lz4"), "raw": None}
# Blocks of fio begin with a header of 0xacca, which is followed by the kind of checksum.
MAGIC = b"\xca\xac"


def fio(path, engine, *more):
    """Runs fio on a file of N bytes, and asserts that it found no fault."""
    done = run("fio", "--name=blocks", f"--filename={path}", f"--filesize={N}", "--rw=randwrite", "--bs=4k", f"--ioengine={engine}", "--verify=crc32c",
               "--fallocate=none", "--end_fsync=1", "--randseed=7", "--verify_state_save=0", "--output-format=json", *more)
    assert done.returncode == 0, f"{done.stderr}\n{done.stdout[-2000:]}"
    job = json.loads(done.stdout[done.stdout.index("{"):])["jobs"][0]
    assert job["error"] == 0
    return job


def make(path, codec, shards=None):
    """An array of four chunks of N bytes, of which the first two are stored."""
    array = zarr.create_group(str(path), zarr_format=3).create_array(
        "a", shape=(4 * N,), chunks=(N,), shards=(shards * N,) if shards else None, dtype="u1", compressors=CODECS[codec], fill_value=3)
    array[:2 * N] = np.random.default_rng(1).integers(0, 9, 2 * N, "u1")
    return path


def blocks(data):
    assert len(data) == N
    return [data[at:at + 4096] for at in range(0, len(data), 4096)]


@pytest.mark.parametrize("index", [0, 2], ids=["stored", "absent"])
@pytest.mark.parametrize("engine", ["psync", "mmap"])
@pytest.mark.parametrize("codec", CODECS)
def test_a_chunk_has_the_bytes_that_fio_wrote(codec, engine, index, tmp_path, mount):
    store = make(tmp_path / "store", codec)
    made = mount(store, "--rw", "--view", "chunks")
    before = zarr.open_array(f"{store}/a")[...]
    job = fio(made.path / f"a/c/{index}", engine)
    assert job["write"]["total_ios"] == N // 4096 and job["read"]["total_ios"] == N // 4096
    check(store, made, before, index)
    # fio writes once more, in blocks of other sizes, and verifies them after a restart of the mount.
    fio(made.path / f"a/c/{index}", engine, "--randseed=8", "--bsrange=4k-64k", "--do_verify=0")
    made.unmount()
    again = mount(store, "--rw", "--view", "chunks")
    fio(again.path / f"a/c/{index}", engine, "--randseed=8", "--bsrange=4k-64k", "--verify_only=1")
    assert np.array_equal(zarr.open_array(f"{store}/a")[index * N:index * N + N], np.fromfile(again.path / f"a/c/{index}", "u1"))


def check(store, made, before, index, verified=True):
    """zarr-python reads from the store the same blocks as from the mount: fio finds no fault in them, and all other chunks are unchanged."""
    stored = zarr.open_array(f"{store}/a", mode="r")[...]
    shown = (made.path / f"a/c/{index}").read_bytes()
    assert all(block.startswith(MAGIC) for block in blocks(shown))
    assert stored[index * N:index * N + N].tobytes() == shown
    if verified:
        copy = store.with_name("stored.bin")
        copy.write_bytes(stored[index * N:index * N + N].tobytes())
        fio(copy, "psync", "--verify_only=1")
    for other in {0, 1, 2, 3} - {index}:
        np.testing.assert_array_equal(stored[other * N:other * N + N], before[other * N:other * N + N])


@pytest.mark.parametrize("engine", ["psync", "mmap"])
def test_an_inner_chunk_of_a_shard(engine, tmp_path, mount):
    store = make(tmp_path / "store", "zstd", shards=2)
    made = mount(store, "--rw", "--view", "chunks")
    before = zarr.open_array(f"{store}/a")[...]
    fio(made.path / "a/c/1", engine)
    # fio ends with an fsync, so the shard is in the store.
    check(store, made, before, 1)


def test_two_programs_in_halves_of_one_chunk(tmp_path, mount):
    """The programs use write(2) only, because two jobs of fio 3.33 that map halves of one file map the same half, in any file system."""
    store = make(tmp_path / "store", "zstd")
    made = mount(store, "--rw", "--view", "chunks")
    before = zarr.open_array(f"{store}/a")[...]
    half = N // 2
    # --filesize would let both jobs write everywhere.
    done = run("fio", f"--filename={made.path}/a/c/0", "--rw=randwrite", "--bs=4k", "--ioengine=psync", "--verify=crc32c", "--fallocate=none", "--end_fsync=1",
               f"--size={half}", "--verify_state_save=0", "--name=first", "--offset=0", "--name=second", f"--offset={half}")
    assert done.returncode == 0, done.stderr
    check(store, made, before, 0, verified=False)


@pytest.mark.parametrize("engine", ["psync", "mmap"])
@pytest.mark.parametrize("view", [["--shards", "keep"], []], ids=["as stored", "expanded"])
def test_a_plain_key(view, engine, tmp_path, mount):
    store = make(tmp_path / "store", "zstd")
    made = mount(store, "--rw", "--view", "keys", *view)
    with open(made.path / "blocks.bin", "wb") as file:
        file.truncate(N)
    fio(made.path / "blocks.bin", engine)
    shown = (made.path / "blocks.bin").read_bytes()
    assert all(block.startswith(MAGIC) for block in blocks(shown)) and (store / "blocks.bin").read_bytes() == shown
    np.testing.assert_array_equal(zarr.open_array(f"{store}/a")[2 * N:], np.full(2 * N, 3, "u1"))


def test_fio_finds_false_bytes(tmp_path, mount):
    """One byte of the store is changed. The check of the whole file, which finds nothing in the tests above, finds it."""
    store = make(tmp_path / "store", "raw")
    made = mount(store, "--rw", "--view", "chunks")
    fio(made.path / "a/c/0", "psync", "--do_verify=0")
    with open(store / "a/c/0", "r+b") as file:
        byte = os.pread(file.fileno(), 1, 100_000)[0]
        os.pwrite(file.fileno(), bytes([byte ^ 1]), 100_000)
    done = run("fio", "--name=blocks", f"--filename={made.path}/a/c/0", f"--filesize={N}", "--rw=randwrite", "--bs=4k", "--verify=crc32c",
               "--verify_only=1", "--randseed=7", "--fallocate=none", "--verify_state_save=0")
    assert done.returncode != 0 and "verify" in done.stderr
