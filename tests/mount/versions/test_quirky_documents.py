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


# The change of the document that zarr-python writes, and the keys of chunks.
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
    "version as a float": (member("zarr_format", 2.0), "."),
    "parameter that the codec lacks": (lambda document: document["compressor"].update(more=1), "."),
    "parameter as a float": (lambda document: document["compressor"].update(level=1.0), "."),
    "parameter of newer releases": (lambda document: document["compressor"].update(checksum=False), "."),
}
V3 = {
    "bare name of chunk keys": member("chunk_key_encoding", "default"),
    "no fill value": member("fill_value", None),
    "no codecs, as GDAL": both(without("codecs"), member("fill_value", None)),
    "empty codecs, as zarrita.js": both(member("codecs", []), member("fill_value", None)),
    "data type as an object": member("data_type", {"name": "int32"}),
    "lengths as floats": member("shape", [6.0, 8.0]),
    "parameter that the codec lacks": lambda document: document["codecs"][0]["configuration"].update(more=1),
    "members that are null": both(member("dimension_names", None), member("attributes", None)),
    "attributes as an empty list": member("attributes", []),
    "null configuration": member("chunk_key_encoding", {"name": "default", "configuration": None}),
    "rectilinear grid of equal chunks": member("chunk_grid", {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [3.0, [[4, 2]]]}}),
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


# Types and fill values of v2 as other programs have written them, and the element.
FILL_VALUES = {
    "complex number as one number": ("<c8", 3.0, 3 + 0j),
    "raw bytes as zero": ("|V4", 0, bytes(4)),
    "record as zero": ([["a", "<i2"], ["b", "<i4"]], 0, bytes(6)),
    "bytes as zero": ("|S4", 0, b""),
    "bytes that are not padded": ("|S4", "YWI=", b"ab"),
    "bytes as they are": ("|S4", "a", b"a"),
    "characters as zero": ("<U2", 0, ""),
}


@pytest.mark.parametrize("arguments", SHOWN, ids=" ".join)
def test_fill_values_of_v2(mount, tmp_path, arguments):
    for name, (dtype, fill_value, _) in FILL_VALUES.items():
        folder = tmp_path / "s" / name
        folder.mkdir(parents=True)
        (folder / ".zarray").write_text(json.dumps({
            "zarr_format": 2, "shape": [3], "chunks": [2], "dtype": dtype, "compressor": None,
            "fill_value": fill_value, "order": "C", "filters": None,
        }))
    made = mount(tmp_path / "s", *arguments)
    for name, (dtype, _, element) in FILL_VALUES.items():
        folder = made.path / name
        found = zarr.open_array(str(folder), mode="r")
        expected = np.frombuffer(element, found.dtype)[0] if isinstance(element, bytes) and found.dtype.kind == "V" else element
        for value in (found.fill_value, *found[...]):
            assert np.asarray(value, found.dtype).tobytes() == np.asarray(expected, found.dtype).tobytes(), name
        driver = "zarr" if (folder / ".zarray").exists() else "zarr3"
        if driver == "zarr" and found.dtype.kind in "cSV":
            field = {"field": "a"} if found.dtype.names else {}
            spec = {"driver": driver, "kvstore": {"driver": "file", "path": str(folder)}, **field}
            tensorstore.open(spec).result().read().result()


@pytest.mark.parametrize("nothing", ["null", "[]"])
def test_attributes_that_say_nothing_are_none(mount, tmp_path, nothing):
    group = zarr.open_group(str(tmp_path / "s"), mode="w", zarr_format=2)
    group.create_array("t", shape=VALUES.shape, chunks=(3, 4), dtype="i4", fill_value=0)[...] = VALUES
    for name in (".zattrs", "t/.zattrs"):
        (tmp_path / "s" / name).write_text(nothing)
    for arguments in SHOWN:
        made = mount(tmp_path / "s", *arguments)
        assert not list(made.path.rglob("ERROR.txt"))
        for path in made.path.rglob(".zattrs"):
            assert json.loads(path.read_text()) == {}
        assert dict(zarr.open_group(str(made.path), mode="r").attrs) == {}
        check(made)


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
    for path in made.path.rglob("*"):
        if path.name in {"zarr.json", ".zmetadata", ".zattrs"}:
            document = strict_json(path)
            if path.name == ".zmetadata":
                assert document["metadata"]["t/.zattrs"] == AS_STRINGS
            elif path.name == ".zattrs":
                assert {key: document[key] for key in AS_STRINGS} == AS_STRINGS
            else:
                assert document["attributes"] == AS_STRINGS
    np.testing.assert_array_equal(zarr.open_group(str(made.path), mode="r")["t"][...], VALUES)


# Documents that some parsers of JSON refuse, and how they are shown.
LOOSE = {
    "a number beyond all doubles": ('{"a": -1e400}', {"a": "-Infinity"}),
    "half of a pair of surrogates": ('{"a": "x\\ud800", "\\udfff": 1}', {"a": "x\ufffd", "\ufffd": 1}),
    "members of one name": ('{"a": 1, "b": {"c": 1, "c": 2}, "\\u0061": 3}', {"b": {"c": 2}, "a": 3}),
    "bare numbers": (NAN_ATTRIBUTES, AS_STRINGS),
}


@pytest.mark.parametrize("loose", LOOSE)
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_attributes_are_json_that_every_parser_takes(mount, tmp_path, zarr_format, loose):
    text, expected = LOOSE[loose]
    group = zarr.open_group(str(tmp_path / "s"), mode="w", zarr_format=zarr_format, attributes={"x": 1})
    array = group.create_array("t", shape=VALUES.shape, chunks=(3, 4), dtype="i4", fill_value=0, attributes={"x": 1})
    array[...] = VALUES
    for name in ("", "t/"):
        path = tmp_path / "s" / f"{name}{'.zattrs' if zarr_format == 2 else 'zarr.json'}"
        stored = json.loads(path.read_text())
        if zarr_format == 2:
            path.write_text("\ufeff" + text)
        else:
            path.write_text(json.dumps(stored).replace(json.dumps(stored["attributes"]), text, 1))
    for arguments in SHOWN:
        made = mount(tmp_path / "s", *arguments)
        for name in ("", "t/"):
            attributes = made.path / f"{name}.zattrs"
            shown = attributes if attributes.exists() else made.path / f"{name}zarr.json"
            # Not the bytes of the parser alone: a mark at the beginning is an error for some.
            found = json.loads(shown.read_bytes().decode("utf-8"), object_pairs_hook=once)
            assert (found if shown is attributes else found["attributes"]) == expected, (arguments, name)
        check(made)


def once(pairs):
    found = dict(pairs)
    assert len(found) == len(pairs), f"two members of one name: {pairs}"
    return found


def test_attributes_of_v2_are_written_where_they_were_no_json(mount, tmp_path):
    group = zarr.open_group(str(tmp_path / "s"), mode="w", zarr_format=2)
    group.create_array("t", shape=VALUES.shape, chunks=(3, 4), dtype="i4", fill_value=0)[...] = VALUES
    for text, after in (("", {"k": 1}), ("{", {"k": 1}), ('{"n": NaN, "old": 1}', {"n": "NaN", "old": 1, "k": 1})):
        path = tmp_path / "s" / "t" / ".zattrs"
        path.write_text(text)
        made = mount(tmp_path / "s", "--view", "chunks", "--rw")
        shown = made.path / "t" / ".zattrs"
        before = json.loads(shown.read_text()) if text != "{" else {}
        shown.write_text(json.dumps(before | {"k": 1}))
        assert json.loads(shown.read_text()) == after
        made.unmount()
        # Members that were not changed stay as they are stored.
        assert path.read_text().startswith('{"n": NaN' if "NaN" in text else '{"k"')


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_fill_value_is_the_same_number_for_all_readers(mount, tmp_path, zarr_format):
    group = zarr.open_group(str(tmp_path / "s"), mode="w", zarr_format=zarr_format)
    group.create_array("t", shape=(4,), chunks=(2,), dtype="f4", fill_value=1.5)
    path = tmp_path / "s" / "t" / ("zarr.json" if zarr_format == 3 else ".zarray")
    text = path.read_text()
    # The nearest float32 is the largest one. By way of a double it is infinity.
    path.write_text(text.replace('"fill_value": 1.5', '"fill_value": 3.4028235677973366e+38'))
    assert path.read_text() != text
    largest = np.full(4, np.finfo("f4").max)
    for arguments in SHOWN:
        made = mount(tmp_path / "s", *arguments, "--missing", "hide")
        driver = "zarr" if (made.path / "t" / ".zarray").exists() else "zarr3"
        assert "3.4028234663852886e+38" in next((made.path / "t").glob("*zarr*")).read_text()
        np.testing.assert_array_equal(strictly(made.path / "t", driver), largest)
        np.testing.assert_array_equal(zarr.open_array(str(made.path / "t"), mode="r")[...], largest)
        made.unmount()


@pytest.mark.parametrize("data_type", [
    {"name": "int32", "configuration": {"scale": 2}}, {"name": "r32", "configuration": {"scale": 2}},
])
def test_a_data_type_of_unknown_parameters_is_reported(mount, tmp_path, data_type):
    group = zarr.open_group(str(tmp_path / "s"), mode="w", zarr_format=3)
    group.create_array("t", shape=VALUES.shape, chunks=(3, 4), dtype="i4", fill_value=0)[...] = VALUES
    path = tmp_path / "s" / "t" / "zarr.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"data_type": data_type}))
    for arguments in (("--view", "chunks"), ("--view", "keys", "--as", "v2")):
        made = mount(tmp_path / "s", *arguments)
        assert "data_type.configuration.scale: unsupported member" in (made.path / "t" / "ERROR.txt").read_text()
        made.unmount()


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
