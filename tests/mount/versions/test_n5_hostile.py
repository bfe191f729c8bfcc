"""Containers of N5 that lie: blocks, frames, sizes and trees that are wrong or too large. Reads fail, and memory stays bounded."""
import gzip
import json
import lzma
import os
import struct
import time

import numcodecs
import numpy as np
import pytest

from test_n5 import COMPRESSORS, block, dataset, values_of, xxh32

VALUES = values_of("int16")
# Whole blocks, and their elements.
ELEMENTS = np.arange(24, dtype="i2").reshape(3, 4, 2)
BYTES = ELEMENTS.astype(">i2").tobytes()
HEADER = block(ELEMENTS, lambda data: b"")
BOMB = bytes(256 << 20)
BOUND = (16 + 64) << 20


def frame(data, decoded, token=0x16, compressed=None, length=None, checksum=None):
    """A block of lz4-java, which may lie."""
    checksum = xxh32(decoded) & 0x0fffffff if checksum is None else checksum
    compressed, length = (len(data) if compressed is None else compressed), (len(decoded) if length is None else length)
    return b"LZ4Block" + struct.pack("<BIII", token, compressed, length, checksum) + data


END = frame(b"", b"", checksum=0)
PACKED = numcodecs.LZ4().encode(BYTES)[4:]
# Bombs are functions, because each process that collects the tests would make them.
LIES = {
    "lz4: a checksum": ("lz4", frame(BYTES, BYTES, checksum=1) + END),
    "lz4: a compressed length": ("lz4", frame(BYTES, BYTES, compressed=2**32 - 1) + END),
    "lz4: a decoded length": ("lz4", frame(PACKED, BYTES, token=0x2f, length=2**25) + END),
    "lz4: both lengths": ("lz4", frame(BYTES, BYTES, token=0x1f, compressed=2**32 - 1, length=2**32 - 1) + END),
    "lz4: more frames than elements": ("lz4", frame(BYTES, BYTES) * 2 + END),
    "lz4: no end": ("lz4", frame(BYTES, BYTES)),
    "lz4: an end alone": ("lz4", END),
    "lz4: an unknown method": ("lz4", frame(BYTES, BYTES, token=0x36) + END),
    "lz4: bytes behind the end": ("lz4", frame(BYTES, BYTES) + END + b"\0"),
    "lz4: a length of numcodecs": ("lz4", struct.pack("<I", 2**31) + PACKED),
    "lz4: nothing": ("lz4", b""),
    "gzip: a bomb": ("gzip", lambda: gzip.compress(BOMB, 1)),
    "gzip: members without end": ("gzip", gzip.compress(b"") * 10_000),
    "gzip: cut off": ("gzip", gzip.compress(BYTES)[:-9]),
    "xz: a bomb": ("xz", lambda: lzma.compress(BOMB, preset=0)),
    "bzip2: nothing": ("bzip2", b""),
    "zstd: a bomb": ("zstd", lambda: numcodecs.Zstd(1).encode(BOMB)),
    "zstd: a length": ("zstd", bytes.fromhex("28b52ffde0ffffffffffffff7f")),
    "blosc: a length": ("blosc", struct.pack("<BBBBIII", 2, 1, 0x21, 2, 2**31 - 17, 2**31 - 17, 64) + bytes(48)),
    "raw: too short": ("raw", BYTES[:-1]),
    "raw: too long": ("raw", BYTES + b"\0"),
}
SIZES = {
    "four billion elements": (2**16, 2**16, 1), "no elements": (2, 0, 3), "a negative length": (2, 2**32 - 1, 3), "longer than a block": (3, 4, 3),
}


@pytest.fixture(scope="module")
def lying(tmp_path_factory, module_mount):
    store = tmp_path_factory.mktemp("lying") / "l.n5"
    for name, (compression, data) in LIES.items():
        dataset(store / name, VALUES, *COMPRESSORS[compression], is_truncated=True)
        (store / name / "0/0/0").write_bytes(HEADER + (data() if callable(data) else data))
    for name, lengths in SIZES.items():
        dataset(store / name, VALUES, *COMPRESSORS["raw"], is_truncated=True)
        (store / name / "0/0/0").write_bytes(struct.pack(">HHIII", 0, 3, *lengths) + bytes(48))
    return module_mount(store, "--view", "chunks,arrays", "--files", "npy", "--cache-size", "16M")


@pytest.mark.parametrize("name", [*LIES, *SIZES])
def test_a_block_that_lies_is_an_error(lying, name):
    with pytest.raises(OSError):
        (lying.path / "chunks" / name / "0/0/0").read_bytes()
    with pytest.raises(OSError):
        np.load(lying.path / "arrays" / f"{name}.npy")
    last = np.frombuffer((lying.path / "chunks" / name / "1/1/1").read_bytes(), "<i2").reshape(3, 4, 2)
    assert np.array_equal(last[:2, :3, :1], VALUES[3:, 4:, 2:])
    assert lying.alive() and lying.peak_bytes() <= BOUND


@pytest.mark.parametrize("size, dimensions, problem", [
    ([2**31 - 1] * 3, [2**40] * 3, "a block"), ([2**63, 2, 2], [2**62] * 3, "chunks"), ([3, 4, 2], [2**63 + 1, 2**63 + 1, 4], "dimensions"),
    ([2, 2, 2], [2**62] * 3, "dimensions"),
])
def test_sizes_that_no_memory_has_are_refused(tmp_path, mount, size, dimensions, problem):
    store = tmp_path / "l.n5"
    dataset(store / "a", VALUES, *COMPRESSORS["raw"], is_truncated=True, attributes={"blockSize": size, "dimensions": dimensions})
    dataset(store / "b", VALUES, *COMPRESSORS["raw"], is_truncated=True)
    made = mount(store, "--view", "chunks,arrays", "--cache-size", "16M")
    assert (made.path / "chunks/a/ERROR.txt").exists(), os.listdir(made.path / "chunks/a")
    assert np.array_equal(np.load(made.path / "arrays/b.npy"), VALUES)
    assert made.alive() and made.peak_bytes() <= BOUND


def test_a_block_above_the_limit_is_not_loaded(tmp_path, mount):
    store = tmp_path / "l.n5"
    attributes = {"blockSize": [2**16, 2**16, 1], "dimensions": [2**16, 2**16, 1]}
    dataset(store / "a", values_of("uint8"), *COMPRESSORS["raw"], is_truncated=True, attributes=attributes)
    (store / "a/0/0/0").write_bytes(struct.pack(">HHIII", 0, 3, 2**16, 2**16, 1) + bytes(48))
    made = mount(store, "--view", "chunks", "--cache-size", "16M")
    with pytest.raises(OSError), open(made.path / "a/0/0/0", "rb") as chunk:
        chunk.read(1)
    assert made.alive() and made.peak_bytes() <= BOUND


@pytest.mark.parametrize("text", ["{}", None], ids=["documents", "directories"])
def test_a_deep_tree_takes_little_memory(tmp_path, mount, text):
    """Only the outermost directory says that this is N5, so a lookup may have to ask about each directory above a deep one."""
    levels, name = 300, "a" * 10
    store = tmp_path / "d.n5"
    path = store
    path.mkdir()
    (store / "attributes.json").write_text('{"n5": "4.0.0"}')
    for _ in range(levels):
        path = path / name
        path.mkdir()
        if text is not None:
            (path / "attributes.json").write_text(text)
    dataset(path / "s", VALUES, *COMPRESSORS["raw"], is_truncated=True)
    made = mount(store, "--view", "chunks,arrays", "--cache-size", "16M")
    below = path.relative_to(store)
    assert np.array_equal(np.load(made.path / "arrays" / below / "s.npy"), VALUES)
    for depth in range(0, levels, 30):
        assert ".zgroup" in os.listdir(made.path / "chunks" / os.path.join(*[name] * (depth + 1)))
    assert json.loads((made.path / "chunks" / below / "s/.zarray").read_text())["shape"] == list(VALUES.shape)
    assert made.peak_bytes() <= BOUND


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("count", [100_000, 1_000_000])
def test_many_directories(tmp_path, mount, figure, count):
    """Groups without a document, one of them with an array. The arrays view looks for documents in each."""
    store = tmp_path / "m.n5"
    (store / "g").mkdir(parents=True)
    (store / "attributes.json").write_text('{"n5": "4.0.0"}')
    folder = os.open(store / "g", os.O_RDONLY)
    for number in range(count):
        os.mkdir(str(number), dir_fd=folder)
    os.close(folder)
    dataset(store / "g/77777/s", VALUES, *COMPRESSORS["raw"], is_truncated=True)
    started = time.monotonic()
    made = mount(store, "--view", "chunks,arrays,keys", "--cache-size", "64M")
    figure(f"{count} directories of N5: mounted in {time.monotonic() - started:.2f} s")
    for view in ("chunks", "arrays", "keys"):
        started = time.monotonic()
        with os.scandir(made.path / view / "g") as entries:
            found = sum(entry.name.isdigit() for entry in entries)
        assert found == count, view
        figure(f"{view}: listed in {time.monotonic() - started:.1f} s, {made.peak_bytes() >> 20} MiB so far")
    assert np.array_equal(np.load(made.path / "arrays/g/77777/s.npy"), VALUES)
    assert made.alive() and made.peak_bytes() <= (64 + 64) << 20
