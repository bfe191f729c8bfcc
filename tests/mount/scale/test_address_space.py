"""With little address space (`ulimit -v`), each read is right or gets EIO, and does not disturb the other reads."""
import errno
import struct
import threading

import numcodecs
import numpy as np
import pytest
import zarr

from support.mounting import BINARY, force_away, mount_entry, run

GIVEN_UP = 60  # seconds


def limited(what, limit, *command):
    """A command line that runs under a limit."""
    return ["prlimit", f"--{what}={limit}:{limit}", *command]


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """24 chunks of 8 MiB. Chunk n has the values `element(n)`."""
    store = tmp_path_factory.mktemp("large") / "large.zarr"
    array = zarr.create_array(str(store), shape=(24, 1024, 1024), chunks=(1, 1024, 1024), dtype="i8",
                              compressors=zarr.codecs.BloscCodec())
    for n in range(24):
        array[n] = element(n)
    return store


def element(n):
    return n * 10_000 + np.arange(1 << 20).reshape(1024, 1024) % 997


def read_beside(n_readers, read):
    """Each reader reads all chunks, and each begins at another chunk. Returns the number of right reads, and the errors of the others."""
    right, errors, wrong = [0] * n_readers, set(), []

    def reads(me):
        for step in range(24):
            n = (me * 3 + step) % 24
            try:
                values = np.frombuffer(read(n), "i8")
            except OSError as error:
                errors.add(error.errno)
                continue
            if np.array_equal(values, element(n).ravel()):
                right[me] += 1
            else:
                wrong.append(n)

    readers = [threading.Thread(target=reads, args=(me,)) for me in range(n_readers)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    assert not wrong, wrong
    return sum(right), errors


def readers_of(made, view):
    def read(n):
        if view == "chunks":
            return (made.path / "c" / str(n) / "0" / "0").read_bytes()
        with open(made.path / "large.npy", "rb") as file:
            file.seek(128 + (n << 23))
            return file.read(1 << 23)
    return read


@pytest.mark.parametrize("view", ["chunks", "arrays"])
@pytest.mark.parametrize("limit_kib", [pytest.param(600_000, marks=pytest.mark.long), pytest.param(300_000, marks=pytest.mark.long), 150_000])
def test_little_address_space_suffices_for_many_readers(large, mount, view, limit_kib):
    made = mount(large, "--view", view, prefix=limited("as", limit_kib << 10))
    right, errors = read_beside(8, readers_of(made, view))
    assert made.alive(), made.log_text()
    assert errors <= {errno.EIO}
    if limit_kib == 600_000:
        assert right == 8 * 24 and not errors, made.log_text()
    assert np.array_equal(np.frombuffer(readers_of(made, view)(0), "i8"), element(0).ravel()), "it goes on"


def test_a_cache_larger_than_the_address_space_does_not_end_the_mount(large, mount):
    made = mount(large, "--view", "arrays", "--cache-size", "4G", prefix=limited("as", 300_000 << 10))
    _, errors = read_beside(8, readers_of(made, "arrays"))
    assert made.alive() and errors <= {errno.EIO}, made.log_text()


def test_too_little_address_space_is_one_line(large, tmp_path):
    point = tmp_path / "point"
    try:
        done = run(*limited("as", 120 << 20, BINARY, large, point), timeout=GIVEN_UP)
        assert done.returncode == 1
        lines = done.stderr.splitlines()
        assert len(lines) == 1 and "the limit of address space is 122880 kB" in lines[0], lines
        assert mount_entry(point) is None
    finally:
        force_away(point)


def test_memory_that_the_system_does_not_give_is_an_error_of_that_read(tmp_path, mount):
    """One chunk is larger than the address space: its read gets EIO, and its neighbour in the same folder is read."""
    store = tmp_path / "s.zarr"
    group = zarr.open_group(str(store), mode="w")
    group.create_array("vast", shape=(1 << 29,), chunks=(1 << 29,), dtype="i1", fill_value=1)
    (store / "vast" / "c").mkdir()
    (store / "vast" / "c" / "0").write_bytes(bytes(100))
    group.create_array("small", shape=(4,), chunks=(4,), dtype="i1")[...] = 7
    made = mount(store, "--view", "chunks", prefix=limited("as", 300_000 << 10))
    with open(made.path / "vast" / "c" / "0", "rb") as file:
        with pytest.raises(OSError) as error:
            file.read(10)
    assert error.value.errno == errno.EIO
    assert (made.path / "small" / "c" / "0").read_bytes() == b"\x07" * 4
    assert made.alive()


BLOCK = 150 << 20  # one such block can be had in 300,000 kB of addresses, and not two


def blosc_of_one_block(compressor):
    """A buffer of one block, which is shuffled and has `BLOCK` zeros."""
    if compressor != "snappy":
        encoder = numcodecs.Blosc(compressor, clevel=1, shuffle=numcodecs.Blosc.SHUFFLE, blocksize=BLOCK)
        return encoder.encode(np.zeros(BLOCK // 32, "S32"))  # blocks of shorter elements are cut into splits, of 2 MiB in all
    # numcodecs is built without Snappy, so this makes the bytes: the length, a literal of 64 bytes, and copies of it.
    length = bytes([BLOCK & 0x7f | 0x80, BLOCK >> 7 & 0x7f | 0x80, BLOCK >> 14 & 0x7f | 0x80, BLOCK >> 21])
    split = length + b"\xf0\x3f" + bytes(64) + b"\xfe\x40\x00" * (BLOCK // 64 - 1)
    return struct.pack("<4B5i", 2, 1, 0x51, 8, BLOCK, BLOCK, 24 + len(split), 20, len(split)) + split


@pytest.mark.parametrize("compressor", ["blosclz", "lz4", "snappy", "zlib", "zstd"])
def test_blosc_without_memory_for_a_second_block_is_an_error_of_that_read(tmp_path, mount, compressor):
    """A shuffled block is decoded to scratch memory. C-Blosc itself would write to the null page if it got none."""
    store = tmp_path / "s.zarr"
    group = zarr.open_group(str(store), mode="w")
    group.create_array("long", shape=(BLOCK // 8,), chunks=(BLOCK // 8,), dtype="f8", compressors=zarr.codecs.BloscCodec())
    (store / "long" / "c").mkdir()
    (store / "long" / "c" / "0").write_bytes(blosc_of_one_block(compressor))
    group.create_array("small", shape=(4,), chunks=(4,), dtype="i1")[...] = 7
    made = mount(store, "--view", "chunks", prefix=limited("as", 300_000 << 10))
    with open(made.path / "long" / "c" / "0", "rb") as file:
        with pytest.raises(OSError) as error:
            file.read(10)
    assert error.value.errno == errno.EIO
    assert (made.path / "small" / "c" / "0").read_bytes() == b"\x07" * 4
    assert made.alive(), made.log_text()
    unlimited = mount(store, "--view", "chunks")
    with open(unlimited.path / "long" / "c" / "0", "rb") as file:
        assert not any(file.read(1 << 20))
