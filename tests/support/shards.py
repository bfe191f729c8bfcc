"""Shards written with numpy alone, without a Zarr library: millions of inner chunks in a moment."""
import json

import google_crc32c
import numpy as np


def write(root, shape, shards, separator):
    """An array of bytes in chunks of one byte, its rows divided over `shards` files. Returns its values.

    A shard is its chunks, then the index, one entry (u64 offset, u64 length) for each chunk in C order,
    then the CRC32C of the index:

        | b0 b1 ... bn | 0 1 | 1 1 | ... | n 1 | crc |
    """
    values = (np.arange(shape[0] * shape[1], dtype="u4") * 7 % 251).astype("u1").reshape(shape)
    rows = shape[0] // shards
    root.mkdir()
    (root / "zarr.json").write_text(json.dumps(document(shape, (rows, shape[1]), separator)))
    for n in range(shards):
        path = root / separator.join(("c", str(n), "0"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(shard(values[n * rows:(n + 1) * rows].tobytes()))
    return values


def shard(chunks):
    index = np.ones((len(chunks), 2), "<u8")
    index[:, 0] = np.arange(len(chunks))
    index = index.tobytes()
    return chunks + index + google_crc32c.value(index).to_bytes(4, "little")


def document(shape, shard_shape, separator):
    return {
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "uint8", "fill_value": 0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": shard_shape}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": separator}},
        "codecs": [{"name": "sharding_indexed", "configuration": {
            "chunk_shape": (1, 1), "codecs": [{"name": "bytes"}], "index_location": "end",
            "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]}}],
    }
