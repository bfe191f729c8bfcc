"""Reading in order: the next chunks are decoded before they are read, each once, and no more when the reader stops."""
import os
import time

import numpy as np
import pytest
import zarr

MIB = 1 << 20
CORES = os.cpu_count()


def write(root, shape, chunks, **kwargs):
    array = zarr.create_array(str(root), shape=shape, chunks=chunks, dtype="<u4", fill_value=0, **kwargs)
    array[...] = values(shape)
    return root


def values(shape):
    return (np.arange(np.prod(shape), dtype="<u4") * 2654435761).reshape(shape)


def counts(mount):
    stats = mount.stats()
    return stats["chunks"]["decodes"], stats["cache"]["ahead"], stats["cache"]["ahead_unused"]


def settled(mount):
    """The counts when nothing is under way any more."""
    now = counts(mount)
    before = None
    while before != now:
        time.sleep(0.2)
        before, now = now, counts(mount)
    return now


def give_way(mount):
    """Whether a chunk was read ahead, for which a reader waits a second. On a machine with much to do, a reader may load
    each chunk before the daemon does, and the daemon leaves some out."""
    deadline = time.monotonic() + 1
    while counts(mount)[1] == 0 and time.monotonic() < deadline:
        time.sleep(0.01)
    return counts(mount)[1] > 0


@pytest.mark.parametrize("piece", [4096, 100_000, MIB])
def test_a_file_is_read_ahead(mount, tmp_path, piece):
    """64 chunks of 256 KiB in 8 rows of 8."""
    shape = (64, 512, 128)
    store = write(tmp_path / "a", shape, (8, 64, 128))
    made = mount(store, "--view", "arrays", "--files", "raw")
    found = bytearray()
    with open(made.path / "a.raw", "rb", buffering=0) as file:
        while data := file.read(piece):
            found += data
    assert found == values(shape).tobytes()
    decodes, ahead, unused = settled(made)
    assert (decodes, unused) == (64, 0)
    assert ahead > 0


def test_a_reader_that_stops_leaves_few_chunks_unread(mount, tmp_path):
    """1024 chunks of 64 KiB in rows of 4."""
    store = write(tmp_path / "a", (4096, 4, 1024), (4, 4, 1024))
    made = mount(store, "--view", "arrays", "--files", "raw")
    with open(made.path / "a.raw", "rb", buffering=0) as file:
        assert len(file.read(MIB)) == MIB
    decodes, _, _ = settled(made)
    # The chunks that were read, those of the kernel's readahead, and those of the daemon's: 4 MiB, or two chunks for each core.
    assert 16 <= decodes <= 3 * 16 + 4 + max(64, 2 * CORES)


@pytest.mark.parametrize(("size", "most"), [("0", 0), ("1M", 0), ("4M", 1), ("8M", 2)])
def test_no_more_is_loaded_ahead_than_allowed(mount, tmp_path, size, most):
    """16 chunks of 4 MiB, one after the other in the file."""
    store = write(tmp_path / "a", (64, 1024, 256), (4, 1024, 256))
    made = mount(store, "--view", "arrays", "--files", "raw", "--readahead", size)
    with open(made.path / "a.raw", "rb", buffering=0) as file:
        for _ in range(17):
            assert len(file.read(MIB // 2)) == MIB // 2
    decodes, ahead, _ = settled(made)
    # Half of the third chunk was read, and the kernel reads ahead less than the other half.
    assert decodes <= 3 + most
    # A reader that is quicker loads all chunks itself.
    assert most or ahead == 0


def test_nothing_is_prefetched_for_a_reader_that_jumps(mount, tmp_path):
    shape = (4096, 4, 1024)
    store = write(tmp_path / "a", shape, (4, 4, 1024))
    made = mount(store, "--view", "arrays", "--files", "raw")
    expected = values(shape).tobytes()
    places = np.random.default_rng(1).permutation(1024)[:100] * 65536 + 8192
    fd = os.open(made.path / "a.raw", os.O_RDONLY)
    try:
        for place in map(int, places):
            assert os.pread(fd, 4096, place) == expected[place:place + 4096]
    finally:
        os.close(fd)
    decodes, ahead, _ = settled(made)
    assert ahead == 0 and decodes <= 100


ORDERS = {"as listed": lambda n: n, "by name": str}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("cache", ["8M", "1G"])
def test_chunk_files_are_read_ahead(mount, tmp_path, order, cache):
    shape = (48 * 1024, 64)
    store = write(tmp_path / "a", shape, (1024, 64), zarr_format=2)
    made = mount(store, "--view", "chunks", "--cache-size", cache)
    expected = values(shape)
    files = sorted(range(48), key=ORDERS[order])
    for count, n in enumerate(files, 1):
        assert (made.path / f"{n}.0").read_bytes() == expected[n * 1024:(n + 1) * 1024].tobytes()
        if count >= 24:
            give_way(made)
    decodes, ahead, unused = settled(made)
    assert ahead > 0
    assert (decodes, unused) == (48, 0)


@pytest.mark.parametrize(("size", "most"), [("0", 0), ("255K", 0), ("512K", 2)])
def test_no_more_chunk_files_are_read_ahead_than_allowed(mount, tmp_path, size, most):
    store = write(tmp_path / "a", (48 * 1024, 64), (1024, 64), zarr_format=2)
    made = mount(store, "--view", "chunks", "--readahead", size)
    for n in range(48):
        (made.path / f"{n}.0").read_bytes()
        if n >= 23 and (not most or give_way(made)):
            break
    decodes, ahead, unused = settled(made)
    assert decodes <= n + 1 + most and unused == 0
    assert bool(ahead) == bool(most)


def test_chunk_files_in_another_order_are_decoded_once(mount, tmp_path):
    store = write(tmp_path / "a", (48 * 1024, 64), (1024, 64), zarr_format=2)
    made = mount(store, "--view", "chunks")
    for n in reversed(range(48)):
        (made.path / f"{n}.0").read_bytes()
    assert settled(made) == (48, 0, 0)


def test_a_chunk_that_is_damaged_is_an_error_where_it_is(mount, tmp_path):
    """This also holds if it was found before it was read."""
    shape = (64, 512, 128)
    store = write(tmp_path / "a", shape, (8, 64, 128))
    bad = store / "c" / "4" / "3" / "0"
    bad.write_bytes(b"nothing of zstd")
    made = mount(store, "--view", "arrays", "--files", "raw")
    row = 8 * 512 * 128 * 4
    with open(made.path / "a.raw", "rb") as file:
        assert file.read(row - MIB) == values(shape).tobytes()[:row - MIB]
        file.seek(4 * row)
        with pytest.raises(OSError):
            while file.read(MIB):
                pass
    assert made.alive()
