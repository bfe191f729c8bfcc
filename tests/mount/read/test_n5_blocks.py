"""Arrays of v3 with the codec `n5_default`, whose blocks are written here from the specification of N5."""

import bz2
import gzip
import json
import lzma
import struct
import zlib

import numcodecs
import numpy as np
import pytest

SHAPE, CHUNK = (5, 7), (3, 4)
COMPRESSORS = {
    "none": (None, bytes),
    "gzip": ({"name": "gzip", "configuration": {"level": 1}}, gzip.compress),
    "zstd": ({"name": "zstd", "configuration": {"level": 1, "checksum": False}}, numcodecs.Zstd(1).encode),
    "blosc": ({"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 2, "blocksize": 0}},
              numcodecs.Blosc("lz4", 5, 1).encode),
    "zlib": ({"name": "numcodecs.zlib", "configuration": {"level": 1}}, zlib.compress),
    "bz2": ({"name": "numcodecs.bz2", "configuration": {"level": 1}}, bz2.compress),
    "lzma": ({"name": "numcodecs.lzma", "configuration": {"format": 1}}, lzma.compress),
}
TYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64"]


def block(elements, compress):
    header = struct.pack(">HH", 0, elements.ndim) + struct.pack(f">{elements.ndim}I", *elements.shape)
    return header + bytes(compress(elements.astype(elements.dtype.newbyteorder(">")).tobytes("F")))


def array(store, values, compressor, compress, *, is_truncated):
    """Writes the array `values`. Blocks at its edges are truncated, or padded with 99, which a reader must ignore."""
    codecs = [{"name": "transpose", "configuration": {"order": [1, 0]}}, {"name": "bytes", "configuration": {"endian": "big"}}]
    store.mkdir(parents=True)
    (store / "zarr.json").write_text(json.dumps({
        "zarr_format": 3, "node_type": "array", "shape": SHAPE, "data_type": values.dtype.name, "fill_value": 0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": CHUNK}},
        "chunk_key_encoding": {"name": "v2", "configuration": {"separator": "/"}},
        "codecs": [{"name": "n5_default", "configuration": {"codecs": codecs + ([compressor] if compressor else [])}}],
    }))
    for i, j in np.ndindex(2, 2):
        part = values[i * 3:i * 3 + 3, j * 4:j * 4 + 4]
        if not is_truncated:
            part = np.pad(part, [(0, whole - own) for whole, own in zip(CHUNK, part.shape)], constant_values=99)
        (store / str(i)).mkdir(exist_ok=True)
        (store / str(i) / str(j)).write_bytes(block(part, compress))


def values_of(dtype):
    return (np.arange(35).reshape(SHAPE) * 3 - 20).astype(dtype)


@pytest.mark.parametrize("is_truncated", [True, False], ids=["truncated", "padded"])
def test_blocks_of_every_type_and_compressor_are_decoded(tmp_path, mount, is_truncated):
    store = tmp_path / "store"
    for name, (compressor, compress) in COMPRESSORS.items():
        for dtype in TYPES:
            array(store / name / dtype, values_of(dtype), compressor, compress, is_truncated=is_truncated)
    shown = mount(store, "--view", "chunks,arrays").path
    for name in COMPRESSORS:
        for dtype in TYPES:
            values = values_of(dtype)
            assert np.array_equal(np.load(shown / "arrays" / name / f"{dtype}.npy"), values), (name, dtype)
            padded = np.pad(values, [(0, 1), (0, 1)], constant_values=0 if is_truncated else 99)
            corner = np.frombuffer((shown / "chunks" / name / dtype / "1/1").read_bytes(), np.dtype(dtype).newbyteorder("<"))
            assert np.array_equal(corner.reshape(CHUNK), padded[3:, 4:]), (name, dtype)


def test_chunks_are_written_as_whole_blocks(tmp_path, mount):
    store = tmp_path / "store"
    array(store, values_of("int16"), *COMPRESSORS["none"], is_truncated=True)
    shown = mount(store, "--view", "chunks", "--rw").path
    new = np.arange(12, dtype="<i2").reshape(CHUNK)
    (shown / "1/1").write_bytes(new.tobytes())
    assert (store / "1/1").read_bytes() == block(new, bytes)
    assert (shown / "1/1").read_bytes() == new.tobytes()


@pytest.mark.parametrize("stored", [
    b"", b"\0\0\0\2\0\0\0\3", b"\0\1\0\2\0\0\0\3\0\0\0\4\0\0\0\x0c" + bytes(24), b"\0\0\0\2\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\0\0\0\2\0\0\0\3\0\0\0\4" + bytes(23), b"\0\0\0\2\0\0\0\3\0\0\0\0", b"\0\0\0\3\0\0\0\3\0\0\0\4\0\0\0\1" + bytes(24),
], ids=["empty", "cut off", "mode 1", "huge", "short", "length 0", "rank 3"])
def test_a_false_block_is_an_error(tmp_path, mount, stored):
    store = tmp_path / "store"
    array(store, values_of("int16"), *COMPRESSORS["none"], is_truncated=True)
    (store / "0/0").write_bytes(stored)
    shown = mount(store, "--view", "chunks").path
    with pytest.raises(OSError):
        (shown / "0/0").read_bytes()
    assert (shown / "0/1").read_bytes()
