"""Listings of shards whose index is damaged: all slots are named if they are few, and none if they are many."""
import errno
import json
import os

import pytest

FEW = {"shape": [4, 4], "shard": [4, 4], "chunk": [1, 4]}
MANY = {"shape": [1 << 31, 4], "shard": [1 << 31, 4], "chunk": [1, 1]}  # 2^33 slots
ROW = {"shape": [1 << 33], "shard": [1 << 33], "chunk": [1]}
BYTES = {"name": "bytes", "configuration": {"endian": "little"}}


def sharded(root, layout, separator, **objects):
    """A sharded array of bytes; `objects` are the stored shards, by their keys below `c`."""
    root.mkdir()
    sharding = {"chunk_shape": layout["chunk"], "codecs": [BYTES], "index_codecs": [BYTES]}
    (root / "zarr.json").write_text(json.dumps({
        "zarr_format": 3, "node_type": "array", "data_type": "uint8", "fill_value": 0, "shape": layout["shape"],
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": layout["shard"]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": separator}},
        "codecs": [{"name": "sharding_indexed", "configuration": sharding}]}))
    for index, data in objects.items():
        path = root / separator.join(["c", *index.split("_")[1:]])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return root


def listed(directory):
    """The names in a directory, and the name of the error that the listing ended with, if it did."""
    names = set()
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                names.add(entry.name)
                assert len(names) < 2_000_000, "the listing does not end"
    except OSError as error:
        return names, errno.errorcode[error.errno]
    return names, None


@pytest.mark.parametrize("view", ["keys", "chunks"])
@pytest.mark.parametrize("layout, separator, below", [(MANY, "/", "c"), (MANY, ".", ""), (ROW, "/", "c"), (ROW, ".", "")])
def test_too_many_unknown_slots_are_left_out(mount, tmp_path, view, layout, separator, below):
    shard = "s" + "_0" * len(layout["shape"])
    store = sharded(tmp_path / "a", layout, separator, **{shard: b"no index"})
    made = mount(store, "--view", view)
    assert listed(made.path / below) == ({"zarr.json"} if below == "" else set(), "EIO")
    # The lookup of a name still gives the error.
    chunk = made.path / separator.join(["c", *("7" for _ in layout["shape"][1:]), "2"])
    with pytest.raises(OSError) as error:
        chunk.read_bytes()
    assert error.value.errno == errno.EIO
    assert made.alive()


def test_few_unknown_slots_are_named(mount, tmp_path):
    made = mount(sharded(tmp_path / "a", FEW, ".", s_0_0=b"no index"))
    assert listed(made.path) == ({"zarr.json", *(f"c.{i}.0" for i in range(4))}, None)


def test_other_names_of_the_directory_are_listed(mount, tmp_path):
    """Those entries come first, and only then does the listing end with the error."""
    store = sharded(tmp_path / "a", ROW, ".", s_0=b"no index")
    (store / "other").mkdir()
    assert listed(mount(store).path) == ({"zarr.json", "other"}, "EIO")


def test_directories_without_any_shard_are_not_listed(mount, tmp_path):
    store = sharded(tmp_path / "a", MANY, "/")
    (store / "c" / "0").mkdir(parents=True)
    made = mount(store)
    assert listed(made.path / "c") == (set(), None)


def test_directories_of_a_sound_shard_are_listed(mount, tmp_path):
    """A shard of 2 x 10^6 slots, of which the first holds a chunk."""
    n = 2 << 20
    layout = {"shape": [n, 1], "shard": [n, 1], "chunk": [1, 1]}
    index = (0).to_bytes(8, "little") + (1).to_bytes(8, "little") + b"\xff" * (16 * (n - 1))
    store = sharded(tmp_path / "a", layout, "/", s_0_0=b"x" + index)
    made = mount(store)
    with os.scandir(made.path / "c") as entries:
        assert next(entries).name.isdigit()
    assert (made.path / "c" / "0" / "0").read_bytes() == b"x"
    assert listed(made.path / "c" / "5") == (set(), None)
