"""An array that is rewritten with another layout, and read again at once, while its document is still remembered."""
import shutil

import numpy as np
import pytest
import zarr

LAYOUTS = {
    "rows": {"chunks": (1, 4)}, "columns": {"chunks": (4, 1)}, "squares": {"chunks": (2, 2)},
    "shards of rows": {"chunks": (1, 4), "shards": (4, 4)}, "shards of columns": {"chunks": (4, 1), "shards": (4, 4)},
    "high shards": {"chunks": (2, 2), "shards": (4, 2)}, "wide shards": {"chunks": (2, 2), "shards": (2, 4)},
    "big endian": {"chunks": (4, 4), "serializer": zarr.codecs.BytesCodec(endian="big")},
    "transposed": {"chunks": (4, 4), "filters": [zarr.codecs.TransposeCodec(order=(1, 0))]},
    "zstd": {"chunks": (4, 4), "compressors": [zarr.codecs.ZstdCodec()]},
}


def write(root, layout, turn):
    """The array `t` of one turn: its values say which one."""
    values = np.arange(16, dtype="i4").reshape(4, 4) + 100 * turn
    arguments = {"compressors": None} | LAYOUTS[layout]
    array = zarr.create_array(str(root), name="t", shape=(4, 4), dtype="i4", overwrite=True, fill_value=-1, **arguments)
    array[...] = values
    return values


def write_aside(root, layout, turn):
    """Like `write`, but renames the new array over the old one, so that its files may be older than the replacement."""
    aside = root.parent / f"aside{turn}"
    zarr.open_group(str(aside), mode="w", zarr_format=3)
    values = write(aside, layout, turn)
    (root / "t").rename(root.parent / f"old{turn}")
    (aside / "t").rename(root / "t")
    shutil.rmtree(aside)
    return values


@pytest.mark.parametrize("view, version", [("keys", None), ("chunks", None), ("chunks", "v2"), ("chunks", "v3"), ("keys", "v3")])
@pytest.mark.parametrize("rewrite", [write, write_aside])
def test_a_reader_that_opens_the_array_anew_reads_the_new_values(mount, tmp_path, view, version, rewrite):
    """The remembered document lasts for longer than the test: no second of waiting hides a mistake."""
    root = tmp_path / "s.zarr"
    zarr.open_group(str(root), mode="w", zarr_format=3)
    write(root, "zstd", 0)
    made = mount(root, "--view", view, "--ttl", "3600", *(["--as", version] if version else []))
    for turn, layout in enumerate([*LAYOUTS, *reversed(LAYOUTS)], 1):
        values = rewrite(root, layout, turn)
        got = zarr.open_array(str(made.path), path="t", mode="r")[...]
        assert np.array_equal(got, values), f"{layout}: {got.ravel().tolist()}"


@pytest.mark.parametrize("view", ["keys", "chunks"])
def test_an_array_that_grows_has_its_new_chunks(mount, tmp_path, view):
    root = tmp_path / "s.zarr"
    zarr.open_group(str(root), mode="w", zarr_format=3)
    array = zarr.create_array(str(root), name="t", shape=(2,), chunks=(1,), shards=(2,), dtype="i4", fill_value=-1)
    array[...] = [1, 2]
    made = mount(root, "--view", view, "--ttl", "3600")
    assert zarr.open_array(str(made.path), path="t", mode="r")[...].tolist() == [1, 2]
    array.resize((4,))
    array[2:] = [3, 4]
    assert zarr.open_array(str(made.path), path="t", mode="r")[...].tolist() == [1, 2, 3, 4]
