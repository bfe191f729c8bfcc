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


def both(one, other):
    return lambda document: (one(document), other(document))


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
V3 = {
    "bare name of chunk keys": member("chunk_key_encoding", "default"),
    "no fill value": member("fill_value", None),
    "no codecs, as GDAL": both(without("codecs"), member("fill_value", None)),
    "empty codecs, as zarrita.js": both(member("codecs", []), member("fill_value", None)),
    "data type as an object": member("data_type", {"name": "int32"}),
    "lengths as floats": member("shape", [6.0, 8.0]),
    "members that are null": both(member("dimension_names", None), member("attributes", None)),
}


# The ways to show a store in which documents are edited or made.
SHOWN = [
    ("--view", "chunks"), ("--view", "chunks", "--as", "v2"), ("--view", "chunks", "--as", "v3"),
    ("--view", "keys", "--as", "v2"), ("--view", "keys", "--as", "v3"),
]


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
    for arguments in SHOWN:
        check(mount(tmp_path / "s", *arguments))


@pytest.mark.parametrize("quirk", V3)
def test_v3(mount, tmp_path, quirk):
    group = zarr.open_group(str(tmp_path / "s"), mode="w", zarr_format=3)
    group.create_array("t", shape=VALUES.shape, chunks=(3, 4), dtype="i4", compressors=None, fill_value=0)[...] = VALUES
    path = tmp_path / "s" / "t" / "zarr.json"
    document = json.loads(path.read_text())
    V3[quirk](document)
    path.write_text(json.dumps(document))
    for arguments in SHOWN:
        check(mount(tmp_path / "s", *arguments))


def strict_json(path):
    """The document, as readers parse it that know JSON alone."""
    def refuse(word):
        raise AssertionError(f"{path}: {word} is not JSON")
    return json.loads(path.read_text(), parse_constant=refuse)


NAN_ATTRIBUTES = '{"nodata": NaN, "range": [Infinity, -Infinity], "text": "a NaN"}'
AS_STRINGS = {"nodata": "NaN", "range": ["Infinity", "-Infinity"], "text": "a NaN"}


@pytest.mark.parametrize("arguments", [
    ("--view", "chunks"), ("--view", "chunks", "--as", "v2"), ("--view", "chunks", "--as", "v3"),
    ("--view", "keys", "--as", "v2"), ("--view", "keys", "--as", "v3"),
], ids=" ".join)
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_made_documents_are_json(mount, tmp_path, zarr_format, arguments):
    attributes = json.loads(NAN_ATTRIBUTES)
    group = zarr.open_group(str(tmp_path / "s"), mode="w", zarr_format=zarr_format, attributes=attributes)
    array = group.create_array("t", shape=VALUES.shape, chunks=(3, 4), dtype="i4", fill_value=0, attributes=attributes)
    array[...] = VALUES
    zarr.consolidate_metadata(str(tmp_path / "s"), zarr_format=zarr_format)
    made = mount(tmp_path / "s", *arguments)
    stored = ".zattrs" if zarr_format == 2 and "v3" not in arguments else None
    for path in made.path.rglob("*"):
        if path.name in {"zarr.json", ".zmetadata", ".zattrs"} and path.name != stored:
            document = strict_json(path)
            if path.name == ".zmetadata":
                assert document["metadata"]["t/.zattrs"] == AS_STRINGS
            elif path.name == ".zattrs":
                assert {key: document[key] for key in AS_STRINGS} == AS_STRINGS
            else:
                assert document["attributes"] == AS_STRINGS
    np.testing.assert_array_equal(zarr.open_group(str(made.path), mode="r")["t"][...], VALUES)


def test_the_keys_view_shows_the_bytes_of_the_store(mount, tmp_path):
    group = zarr.open_group(str(tmp_path / "s"), mode="w", zarr_format=3, attributes={"n": float("nan")})
    group.create_array("t", shape=(2,), chunks=(2,), dtype="i4", fill_value=0)
    path = tmp_path / "s" / "t" / "zarr.json"
    document = json.loads(path.read_text()) | {"fill_value": None, "data_type": {"name": "int32"}}
    path.write_text(json.dumps(document))
    made = mount(tmp_path / "s", "--view", "keys")
    for name in ("zarr.json", "t/zarr.json"):
        assert (made.path / name).read_bytes() == (tmp_path / "s" / name).read_bytes()


@pytest.mark.parametrize("text", ["", " \n"])
def test_attributes_without_text_are_none(mount, tmp_path, text):
    group = zarr.open_group(str(tmp_path / "s"), mode="w", zarr_format=2)
    group.create_array("t", shape=VALUES.shape, chunks=(3, 4), dtype="i4", fill_value=0)[...] = VALUES
    for path in (".zattrs", "t/.zattrs"):
        (tmp_path / "s" / path).write_text(text)
    made = mount(tmp_path / "s", "--view", "chunks", "--as", "v3")
    assert strict_json(made.path / "zarr.json")["attributes"] == {}
    np.testing.assert_array_equal(zarr.open_group(str(made.path), mode="r")["t"][...], VALUES)
    made.unmount()
    made = mount(tmp_path / "s", "--view", "arrays")
    assert strict_json(made.path / "t.json")["attributes"] == {}
