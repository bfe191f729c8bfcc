"""Records of v3: the byte order of their fields, which zarr-python 3.1 did not write down, and fields of text."""
import json

import numpy as np
import pytest
import zarr

from support import corpus

FIELDS = [("a", "i4"), ("b", "f8")]
VALUES = [(1, 1.5), (2, -2.5), (3, 3.5)]
WITH_TEXT = [("t", "U3"), ("s", "S4"), ("i", "i2"), ("in", [("u", "U2"), ("f", "f4")])]
TEXTS = [("Zür", b"ab", 1, ("日本", 1.5)), ("", b"", -2, ("", 2.5)), ("🙂", b"abcd", 3, ("x", -0.5))]


def written(store, order, fields=FIELDS, rows=VALUES):
    values = np.array(rows, np.dtype(fields).newbyteorder(order))
    array = zarr.create_array(str(store), name="a", shape=values.shape, chunks=(2,), dtype=values.dtype, compressors=None)
    array[...] = values
    return values


@pytest.mark.parametrize("order", ["<", ">"])
def test_records_without_a_byte_order_are_little_endian_with_a_warning(order, mount, tmp_path):
    values = written(tmp_path / "store", order)
    made = mount(tmp_path / "store", "--view", "arrays", "--files", "npy")
    found = np.load(made.path / "a.npy")
    # Both byte orders have the same document, so zarr-python itself also reads one of them wrongly.
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


def test_text_in_records_of_zarr_python_3_1(mount, tmp_path):
    values = written(tmp_path / "store", "<", WITH_TEXT, TEXTS)
    made = mount(tmp_path / "store", "--view", "arrays,chunks", "--files", "npy")
    found = np.load(made.path / "arrays/a.npy")
    assert found.dtype == values.dtype and (found == values).all()
    assert (zarr.open_array(str(made.path / "chunks/a"), mode="r")[...] == values).all()


@pytest.mark.parametrize("order, endian", [("<", "little"), (">", "big")])
def test_text_in_records_has_the_byte_order_of_the_codec(order, endian, mount, tmp_path):
    """Text as zarr-python 3.3 and later write it."""
    values = np.array(TEXTS, np.dtype(WITH_TEXT).newbyteorder(order))
    store = tmp_path / "store" / "a"
    (store / "c").mkdir(parents=True)
    (store / "zarr.json").write_text(json.dumps(document({"name": "bytes", "configuration": {"endian": endian}})))
    (store / "c/0").write_bytes(values.tobytes())
    made = mount(store.parent, "--view", "arrays", "--files", "npy")
    found = np.load(made.path / "a.npy")
    assert found.dtype == values.dtype and (found == values).all()
    assert "byte order" not in made.log_text()


@pytest.mark.parametrize("of_any_length", ["string", "bytes", "variable_length_bytes"])
def test_elements_of_any_length_in_records_are_refused_by_name(of_any_length, mount, tmp_path):
    store = tmp_path / "store" / "a"
    (store / "c").mkdir(parents=True)
    refused = document({"name": "bytes", "configuration": {"endian": "little"}})
    refused["data_type"]["configuration"]["fields"][0]["data_type"] = of_any_length
    (store / "zarr.json").write_text(json.dumps(refused))
    (store / "c/0").write_bytes(bytes(100))
    made = mount(store.parent, "--view", "arrays,chunks")
    told = (made.path / "chunks/a/ERROR.txt").read_text()
    assert f"`t`: unsupported data type `{of_any_length}`" in told, told
    assert not (made.path / "arrays/a.npy").exists()


def document(codec):
    """The document of an array of `TEXTS`."""
    def text(units):
        return {"name": "fixed_length_utf32", "configuration": {"length_bytes": 4 * units}}

    def record(**fields):
        return {"name": "struct", "configuration": {"fields": [{"name": name, "data_type": type_} for name, type_ in fields.items()]}}
    of_bytes = {"name": "null_terminated_bytes", "configuration": {"length_bytes": 4}}
    data_type = record(t=text(3), s=of_bytes, i="int16", **{"in": record(u=text(2), f="float32")})
    return {"zarr_format": 3, "node_type": "array", "shape": [3], "data_type": data_type, "codecs": [codec],
            "fill_value": {"t": "", "s": "", "i": 0, "in": {"u": "", "f": 0}},
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [3]}}, "chunk_key_encoding": {"name": "default"}}
