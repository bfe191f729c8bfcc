"""Records that zarr-python 3.1 wrote without a byte order, whatever order their fields had in memory."""
import numpy as np
import pytest
import zarr

from support import corpus

FIELDS = [("a", "i4"), ("b", "f8")]
VALUES = [(1, 1.5), (2, -2.5), (3, 3.5)]


def written(store, order):
    values = np.array(VALUES, np.dtype(FIELDS).newbyteorder(order))
    array = zarr.create_array(str(store), name="a", shape=values.shape, chunks=(2,), dtype=values.dtype, compressors=None)
    array[...] = values
    return values


@pytest.mark.parametrize("order", ["<", ">"])
def test_records_without_a_byte_order_are_little_endian_with_a_warning(order, mount, tmp_path):
    values = written(tmp_path / "store", order)
    made = mount(tmp_path / "store", "--view", "arrays", "--files", "npy")
    found = np.load(made.path / "a.npy")
    # The document is the same for both, so that nothing tells what zarr-python itself reads wrongly, too.
    assert (found == zarr.open_array(str(tmp_path / "store/a"))[...]).all()
    assert (found == values).all() == (order == "<")
    assert "zarr-python 3.1 wrote big-endian fields under the same description" in made.log_text()


def test_records_of_today_have_the_byte_order_that_they_say(mount):
    store = corpus.stores()["zp34_records.zarr"]
    made = mount(store.path, "--view", "arrays", "--files", "npy")
    for given in ("little", "big"):
        for codec, order in (("little", "<"), ("big", ">")):
            found = np.load(made.path / f"{given}_as_{codec}.npy")
            assert found.dtype["id"] == np.dtype(f"{order}i4")
    assert "byte order" not in made.log_text()
