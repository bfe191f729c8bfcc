"""Writing whole shards. With `--shards keep`, a file is a decoded shard, and the store has its inner chunks and their index."""
import errno
import os

import numpy as np
import pytest
import tensorstore
import zarr

from support import corpus
from zarr.codecs import BytesCodec, Crc32cCodec, GzipCodec, ShardingCodec, TransposeCodec

ARGS = ("--rw", "--view", "chunks", "--shards", "keep")
SHAPE, SHARD, INNER = (16, 12), (8, 6), (4, 3)
DATA = np.arange(192, dtype="<f8").reshape(SHAPE)
N = 8 * 6 * 8

KINDS = {
    "end": {},
    "start": {"index_location": "start"},
    "index without checksum": {"index_codecs": [BytesCodec(endian="little")]},
    "big-endian index": {"index_codecs": [BytesCodec(endian="big"), Crc32cCodec()]},
    "gzip": {"codecs": [BytesCodec(), GzipCodec(level=1)]},
    "big-endian": {"codecs": [BytesCodec(endian="big")]},
    "transposed chunks": {"codecs": [TransposeCodec(order=(1, 0)), BytesCodec()]},
    "nested": {"codecs": [ShardingCodec(chunk_shape=(2, 3), codecs=[BytesCodec(), GzipCodec(level=1)])]},
}


def make(path, **options):
    codec = ShardingCodec(chunk_shape=INNER, **options)
    array = zarr.create_array(str(path), name="a", shape=SHAPE, chunks=SHARD, dtype="<f8", serializer=codec, filters=None, compressors=None, fill_value=-1)
    array[:] = DATA
    return path


def stored(store):
    found = zarr.open_array(str(store / "a"), mode="r")[...]
    again = tensorstore.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{store}/a/"}}).result()[...].read().result()
    np.testing.assert_array_equal(found, again)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_shard_is_written(kind, tmp_path, mount):
    store = make(tmp_path / "store", **KINDS[kind])
    made = mount(store, *ARGS)
    expected = DATA.copy()
    name = made.path / "a/c/1/0"
    assert name.read_bytes() == DATA[8:, :6].tobytes() and name.stat().st_mode & 0o200
    new = np.random.default_rng(3).random(SHARD)
    name.write_bytes(new.tobytes())
    expected[8:, :6] = new
    np.testing.assert_array_equal(stored(store), expected)
    assert name.read_bytes() == new.tobytes()
    # Only a part of a shard is written: the other inner chunks stay.
    with open(made.path / "a/c/0/1", "r+b") as file:
        file.seek(8 * 20)
        file.write(np.full(5, 77.0).tobytes())
    shard = expected[:8, 6:].copy()
    shard.reshape(-1)[20:25] = 77
    expected[:8, 6:] = shard
    np.testing.assert_array_equal(stored(store), expected)


def test_inner_chunks_of_fill_value_are_left_out(tmp_path, mount):
    store = make(tmp_path / "store")
    made = mount(store, *ARGS)
    shard = np.full(SHARD, -1.0)
    shard[0, 0] = 5
    (made.path / "a/c/0/0").write_bytes(shard.tobytes())
    # One inner chunk, and the index of four.
    assert (store / "a/c/0/0").stat().st_size < 4 * 3 * 8 + 4 * 16 + 4 + 40
    assert (stored(store)[:8, :6] == shard).all()
    (made.path / "a/c/0/0").write_bytes(np.full(SHARD, -1.0).tobytes())
    assert not (store / "a/c/0/0").exists() and (stored(store)[:8, :6] == -1).all()


def test_a_shard_with_a_false_index_is_replaced_whole_only(tmp_path, mount):
    store = make(tmp_path / "store")
    path = store / "a/c/0/0"
    path.write_bytes(path.read_bytes()[:-1] + b"\x00")
    before = path.read_bytes()
    made = mount(store, *ARGS)
    file = os.open(made.path / "a/c/0/0", os.O_WRONLY)
    os.pwrite(file, b"x" * 8, 0)
    with pytest.raises(OSError) as caught:
        os.close(file)
    assert caught.value.errno == errno.EIO and path.read_bytes() == before
    new = np.ones(SHARD)
    (made.path / "a/c/0/0").write_bytes(new.tobytes())
    assert (stored(store)[:8, :6] == 1).all()


def test_strings_in_shards_are_not_written(tmp_path, mount):
    array = zarr.create_array(str(tmp_path / "store"), name="a", shape=(4,), chunks=(2,), shards=(4,), dtype=str)
    array[:] = ["a", "b", "c", "d"]
    made = mount(tmp_path / "store", *ARGS)
    name = made.path / "a/c/0"
    assert not name.stat().st_mode & 0o200
    with pytest.raises(PermissionError):
        name.write_bytes(b"x")


@pytest.mark.parametrize("target", [None, "v3"])
@pytest.mark.parametrize("name", ["zp2_draft_v3_sharded.zarr", "draft22_sharded.zarr", "zp3_shards.zarr"])
def test_shards_of_real_writers(name, target, tmp_path, mount):
    import shutil
    store = tmp_path / "store"
    shutil.copytree(corpus.stores()[name].path, store)
    made = mount(store, *ARGS, *(["--as", target] if target else []))
    written = {}
    for folder, _, names in os.walk(made.path):
        for entry in names:
            path = os.path.join(folder, entry)
            if entry.lstrip("c").isdigit() and os.stat(path).st_mode & 0o200 and "/." not in path:
                old = open(path, "rb").read()
                # Reversed bytes are valid elements of all types, except of booleans.
                new = old[::-1] if set(old) - {0, 1} else old
                with open(path, "wb") as file:
                    file.write(new)
                written[os.path.relpath(path, made.path)] = new
    assert written
    made.unmount()
    made = mount(store, "--view", "chunks", "--shards", "keep", *(["--as", target] if target else []))
    for relative, new in written.items():
        assert (made.path / relative).read_bytes() == new, relative
