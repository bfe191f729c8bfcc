"""Documents of more than a megabyte, of which only an outline is remembered: the parts that it leaves out must be sound, too."""
import json

import numpy as np
import pytest
import zarr

LONG = 1_400_000  # characters of one attribute


def write(root, edit):
    """A sharded array with long attributes, whose document is edited as text."""
    array = zarr.create_array(str(root), shape=(4, 4), chunks=(1, 4), shards=(4, 4), dtype="i4", compressors=None)
    array[...] = np.arange(16).reshape(4, 4)
    document = json.loads((root / "zarr.json").read_text())
    document["attributes"] = {"pad": "x" * LONG, "n": 1}
    (root / "zarr.json").write_bytes(edit(json.dumps(document).encode()))
    return root


DAMAGES = {
    "a word": lambda text: text.replace(b'"n": 1', b'"n": oops'),
    "a control character": lambda text: text.replace(b"xxx", b"x\x01x", 1),
    "no UTF-8": lambda text: text.replace(b"xxx", b"x\xffx", 1),
    "a comma": lambda text: text.replace(b'"n": 1}', b'"n": 1,}'),
    "no object": lambda text: text.replace(b'{"pad": ', b"[", 1).replace(b', "n": 1}', b"]"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_in_long_attributes_is_seen(mount, tmp_path, damage):
    root = write(tmp_path / "a", DAMAGES[damage])
    keys = mount(root).path
    assert (keys / "zarr.json").read_bytes() == (root / "zarr.json").read_bytes()
    assert (keys / "c" / "0" / "0").read_bytes() == (root / "c" / "0" / "0").read_bytes(), "the shard as it is stored"
    chunks = mount(root, "--view", "chunks").path
    assert (chunks / "ERROR.txt").stat().st_size > 0
    assert not (chunks / "zarr.json").exists()


def test_sound_long_attributes_are_shown(mount, tmp_path):
    root = write(tmp_path / "a", lambda text: text)
    for view in ("keys", "chunks"):
        array = zarr.open_array(str(mount(root, "--view", view).path), mode="r")
        assert np.array_equal(array[...], np.arange(16).reshape(4, 4))
        assert array.attrs["pad"] == "x" * LONG


def test_kept_texts_are_shared_and_leave_room(mount, tmp_path):
    """Handles of one long text take its memory once, and cost other files nothing."""
    group = zarr.open_group(str(tmp_path / "s.zarr"), mode="w", zarr_format=2)
    group.create_array("t", shape=(2,), chunks=(2,), dtype="i4", attributes={"pad": "x" * 3_000_000})[...] = 1
    group.create_array("u", shape=(2,), chunks=(2,), dtype="i4")[...] = 2
    made = mount(tmp_path / "s.zarr", "--view", "arrays", "--files", "npy,h5", "--cache-size", "64M")
    handles = [open(made.path / "t.json", "rb") for _ in range(40)]
    try:
        assert made.stats()["cache"]["bytes"] < 16 << 20
        assert (made.path / "s.h5").read_bytes()[:4] == b"\x89HDF"
        assert made.stats()["cache"]["waits"] == 0
        assert all(json.load(handle)["attributes"]["pad"] == "x" * 3_000_000 for handle in handles)
    finally:
        for handle in handles:
            handle.close()
