"""The log of a mount says of each damaged chunk once where it is."""
import numpy as np
import pytest
import zarr

VIEWS = ["chunks", "arrays"]


@pytest.fixture
def store(tmp_path):
    """An array of 2 x 2 shards, each of 2 x 2 chunks of 4 x 4 elements, and one without shards."""
    group = zarr.create_group(str(tmp_path / "s.zarr"))
    values = np.arange(256, dtype="i4").reshape(16, 16)
    group.create_array("shards", shape=(16, 16), shards=(8, 8), chunks=(4, 4), dtype="i4", compressors=[zarr.codecs.Crc32cCodec()])[...] = values
    group.create_array("plain", shape=(16, 16), chunks=(8, 8), dtype="i4", compressors=[zarr.codecs.GzipCodec()])[...] = values
    return tmp_path / "s.zarr"


def index_of(data):
    return np.frombuffer(bytes(data[-4 - 16 * 4:-4]), "<u8").reshape(2, 2, 2)


def damage(path, *places):
    data = bytearray(path.read_bytes())
    for place in places:
        data[place] ^= 1
    path.write_bytes(data)


def read_all(made, view):
    """Reads every file of the mount; those that cannot be read are errors."""
    failed = 0
    for path in sorted(made.path.rglob("*")):
        if view == "arrays" and path.suffix != ".raw" or not path.is_file() or path.name == "zarr.json":
            continue
        try:
            path.read_bytes()
        except OSError:
            failed += 1
    return failed


def messages(made):
    lines = (made.path / ".zarr-mount/log").read_text().splitlines()
    return [line.split("] ", 1)[1] for line in lines if "WARN" in line and "error::log" in line]


def mounted(mount, store, view):
    return mount(store, "--view", view, *(["--files", "raw"] if view == "arrays" else []))


@pytest.mark.parametrize("view", VIEWS)
def test_each_chunk_is_named_once_with_its_place(mount, store, view):
    shard = store / "shards/c/1/0"
    index = index_of(shard.read_bytes())
    ranges = {chunk: (int(index[chunk][0]), int(index[chunk].sum())) for chunk in ((0, 1), (1, 0))}
    damage(shard, *(start + 3 for start, _ in ranges.values()))
    (store / "plain/c/0/1").write_bytes(b"no gzip")
    made = mounted(mount, store, view)
    expected = ["plain: chunk (0, 1) [0:8, 8:16]: plain/c/0/1: bytes 0..7: gzip: "]
    for (i, j), (start, end) in ranges.items():
        region = f"{8 + 4 * i}:{12 + 4 * i}, {4 * j}:{4 + 4 * j}"
        expected.append(f"shards: chunk ({2 + i}, {j}) [{region}] of shard (1, 0): shards/c/1/0: bytes {start}..{end}: crc32c: ")
    if view == "chunks":
        # The file of each chunk is read, and read again.
        assert read_all(made, view) == 3 and read_all(made, view) == 3
        found = messages(made)
        assert len(found) == 3
        assert all(any(line.startswith(wanted) for line in found) for wanted in expected), found
    else:
        assert read_all(made, view) == 2
        found = messages(made)
        assert found and all(any(line.startswith(wanted) for wanted in expected) for line in found), found
        assert len(found) == len(set(found))


@pytest.mark.parametrize("cut, word", [(lambda data: data[:60], "truncated shard of 60 bytes"), (lambda data: data[:-30], "truncated shard"),
                                       (lambda data: data[:-1] + b"\0", "the checksum of the index is wrong")], ids=["short", "cut", "checksum"])
def test_a_shard_says_what_is_wrong_with_it(mount, store, cut, word):
    shard = store / "shards/c/0/1"
    shard.write_bytes(cut(shard.read_bytes()))
    made = mounted(mount, store, "arrays")
    assert read_all(made, "arrays") == 1
    [found] = messages(made)
    assert found.startswith("shards: shard (0, 1) [0:8, 8:16]: shards/c/0/1: bytes 0..") and word in found
