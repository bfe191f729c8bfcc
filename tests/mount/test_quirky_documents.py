"""Documents with quirks of real writers: in the chunks view, strict readers read the numbers, in each version."""
import json

import numpy as np
import pytest
import tensorstore
import zarr

VALUES = np.arange(48, dtype="i4").reshape(6, 8)


def without(name):
    return lambda document: document.pop(name)


def member(name, value):
    return lambda document: document.__setitem__(name, value)


# What is done to the document that zarr-python writes, and the keys of chunks.
V2 = {
    "nested keys, not said": (without("dimension_separator"), "/"),
    "no order": (without("order"), "."),
    "no filters": (without("filters"), "."),
    "no fill value": (without("fill_value"), "."),
    "null separator": (member("dimension_separator", None), "."),
    "order of bytes not said": (member("dtype", "|i4"), "."),
    "fill value in a list": (member("fill_value", [-7]), "."),
    "fill value as text": (member("fill_value", "-7"), "."),
    "lengths as floats": (member("shape", [6.0, 8.0]), "."),
}
V3 = {"bare name of chunk keys": member("chunk_key_encoding", "default")}


def strictly(folder, driver):
    spec = {"driver": driver, "kvstore": {"driver": "file", "path": str(folder)}}
    return tensorstore.open(spec).result().read().result()


def check(made):
    driver = "zarr" if (made.path / "t" / ".zarray").exists() else "zarr3"
    np.testing.assert_array_equal(strictly(made.path / "t", driver), VALUES)
    np.testing.assert_array_equal(zarr.open_array(str(made.path / "t"), mode="r")[...], VALUES)
    made.unmount()


@pytest.mark.parametrize("quirk", V2)
def test_v2(mount, tmp_path, quirk):
    change, separator = V2[quirk]
    group = zarr.open_group(str(tmp_path / "s"), mode="w", zarr_format=2)
    array = group.create_array("t", shape=VALUES.shape, chunks=(3, 4), dtype="i4", fill_value=0,
                               chunk_key_encoding={"name": "v2", "separator": separator})
    array[...] = VALUES
    path = tmp_path / "s" / "t" / ".zarray"
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    for arguments in ([], ["--as", "v2"], ["--as", "v3"]):
        check(mount(tmp_path / "s", "--view", "chunks", *arguments))


@pytest.mark.parametrize("quirk", V3)
def test_v3(mount, tmp_path, quirk):
    group = zarr.open_group(str(tmp_path / "s"), mode="w", zarr_format=3)
    group.create_array("t", shape=VALUES.shape, chunks=(3, 4), dtype="i4", fill_value=0)[...] = VALUES
    path = tmp_path / "s" / "t" / "zarr.json"
    document = json.loads(path.read_text())
    V3[quirk](document)
    path.write_text(json.dumps(document))
    for arguments in ([], ["--as", "v2"], ["--as", "v3"]):
        check(mount(tmp_path / "s", "--view", "chunks", *arguments))
