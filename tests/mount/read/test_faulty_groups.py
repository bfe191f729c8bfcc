"""Groups whose documents have faults, or whose consolidated metadata is old, show their arrays as they are."""
import json

from support import mounting
import numpy as np
import pytest
import zarr

VALUES = np.arange(6, dtype="i2")


@pytest.mark.parametrize("arguments", [("--view", "chunks"), ("--view", "keys", "--as", "v2")], ids=" ".join)
def test_copies_are_those_of_the_shown_documents(mount, tmp_path, arguments):
    store = str(tmp_path / "s")
    group = zarr.open_group(store, mode="w", zarr_format=2, attributes={"of": "the group before"})
    for name in ("a", "gone"):
        group.create_array(name, shape=(3,), chunks=(3,), dtype="i2", fill_value=0, attributes={"u": "old"})
    zarr.consolidate_metadata(store, zarr_format=2)
    group = zarr.open_group(store, mode="r+", use_consolidated=False)
    group["a"].resize((6,))
    group["a"][...] = VALUES
    group["a"].attrs["u"] = "new"
    group.attrs["of"] = "the group"
    del group["gone"]
    made = mount(store, *arguments)
    shown = zarr.open_group(str(made.path), mode="r", use_consolidated=True)
    np.testing.assert_array_equal(shown["a"][...], VALUES)
    assert (shown.attrs["of"], shown["a"].attrs["u"]) == ("the group", "new")
    assert list(shown.array_keys()) == ["a"]
    copies = json.loads((made.path / ".zmetadata").read_text())["metadata"]
    for name in (".zattrs", "a/.zarray", "a/.zattrs"):
        assert copies[name] == json.loads((made.path / name).read_text()), name


def test_copies_of_v3_are_those_of_the_shown_documents(mount, tmp_path):
    store = str(tmp_path / "s")
    group = zarr.open_group(store, mode="w", zarr_format=3)
    group.create_array("a", shape=(3,), chunks=(3,), dtype="i2", fill_value=0, attributes={"u": "old"})
    zarr.consolidate_metadata(store, zarr_format=3)
    group = zarr.open_group(store, mode="r+", use_consolidated=False)
    group["a"].resize((6,))
    group["a"][...] = VALUES
    group["a"].attrs["u"] = "new"
    made = mount(store, "--view", "chunks")
    shown = zarr.open_group(str(made.path), mode="r", use_consolidated=True)["a"]
    np.testing.assert_array_equal(shown[...], VALUES)
    assert shown.attrs["u"] == "new"


@pytest.mark.parametrize("document", ['{"zarr_format": "2"}', '{"zarr_format": 2', "{}", ""])
def test_a_group_of_v2_whose_document_has_a_fault_is_a_group(mount, tmp_path, document):
    store = tmp_path / "s"
    group = zarr.open_group(str(store), mode="w", zarr_format=2)
    below = group.create_group("g", attributes={"k": 1})
    below.create_array("a", shape=(6,), chunks=(3,), dtype="i2", fill_value=0)[...] = VALUES
    (store / "g" / ".zgroup").write_text(document)

    made = mount(store, "--view", "arrays")
    assert sorted(path.name for path in made.path.iterdir()) == ["g"]
    np.testing.assert_array_equal(np.load(made.path / "g" / "a.npy"), VALUES)
    made.unmount()

    for arguments in (("--view", "chunks"), ("--view", "keys", "--as", "v3"), ("--view", "chunks", "--as", "v3")):
        made = mount(store, *arguments)
        shown = zarr.open_group(str(made.path), mode="r", use_consolidated=False)
        assert [path for path, _ in shown.members(max_depth=None)] == ["g", "g/a"]
        assert shown["g"].attrs.asdict() == {"k": 1}
        np.testing.assert_array_equal(shown["g/a"][...], VALUES)
        made.unmount()
    made = mount(store, "--view", "keys")
    assert (made.path / "g" / ".zgroup").read_text() == document


@pytest.mark.parametrize("document, attributes", [
    ('{"zarr_format": "3", "node_type": "group", "attributes": {"k": 1}}', {"k": 1}),
    ('{"node_type": "group", "attributes": null}', {}),
    ('{"zarr_format": 3.0, "node_type": "group", "attributes": {"k": NaN, "k": 1e400, "\\ud800": 1}, "extensions": [],'
     ' "consolidated_metadata": null, "other": {"must_understand": false}}', {"k": "Infinity", "\ufffd": 1}),
])
@pytest.mark.parametrize("arguments", [
    ("--view", "chunks"), ("--view", "keys", "--as", "v2"), ("--view", "chunks", "--as", "v3"),
], ids=" ".join)
def test_a_group_of_v3_whose_document_has_a_fault_is_a_group(mount, tmp_path, document, attributes, arguments):
    store = tmp_path / "s"
    group = zarr.open_group(str(store), mode="w", zarr_format=3)
    group.create_array("g/a", shape=(6,), chunks=(3,), dtype="i2", fill_value=0)[...] = VALUES
    zarr.consolidate_metadata(str(store), zarr_format=3)
    (store / "g" / "zarr.json").write_text(document)
    made = mount(store, *arguments)
    for consolidated in (False, True):
        shown = zarr.open_group(str(made.path), mode="r", use_consolidated=consolidated)
        assert {path for path, _ in shown.members(max_depth=None)} == {"g", "g/a"}
        assert shown["g"].attrs.asdict() == attributes
        np.testing.assert_array_equal(shown["g/a"][...], VALUES)


@pytest.mark.parametrize("document", [
    '{"zarr_format": 3, "node_type": "group", "attributes": {"k": 1', '{"zarr_format": 4, "node_type": "group"}',
    '{"zarr_format": 3, "node_type": "group", "attributes": [1]}',
    '{"zarr_format": 3, "node_type": "group", "other": {"must_understand": true}}',
])
def test_nodes_in_a_group_that_cannot_be_shown_are_shown(mount, tmp_path, document):
    store = tmp_path / "s"
    group = zarr.open_group(str(store), mode="w", zarr_format=3)
    for name in ("g/a", "g/0", "b"):
        group.create_array(name, shape=(6,), chunks=(3,), dtype="i2", fill_value=0)[...] = VALUES
    zarr.consolidate_metadata(str(store), zarr_format=3)
    (store / "g" / "zarr.json").write_text(document)
    made = mount(store, "--view", "arrays")
    assert {path.name for path in made.path.iterdir()} >= {"b.npy", "g", "g.ERROR.txt"}
    np.testing.assert_array_equal(np.load(made.path / "g" / "a.npy"), VALUES)
    assert (made.path / "g.ERROR.txt").read_text().startswith("The group g cannot be shown")
    made.unmount()
    for arguments in (("--view", "chunks"), ("--view", "keys", "--as", "v2"), ("--view", "chunks", "--as", "v3")):
        made = mount(store, *arguments)
        assert (made.path / "g" / "ERROR.txt").read_text().startswith("The group g cannot be shown")
        for name in ("g/a", "g/0"):
            np.testing.assert_array_equal(zarr.open_array(str(made.path / name), mode="r")[...], VALUES)
        # Copies below it would hide all nodes from zarr-python.
        shown = zarr.open_group(str(made.path), mode="r", use_consolidated=True)
        assert [path for path, _ in shown.members(max_depth=None)] == ["b"]
        made.unmount()
    said = json.loads(mounting.run(mounting.BINARY, "--info", "--json", store).stdout)
    assert {node["path"]: node["node_type"] for node in said}["g"] == "group"


def test_copies_of_groups_of_v3_are_those_of_the_shown_documents(mount, tmp_path):
    store = str(tmp_path / "s")
    group = zarr.open_group(store, mode="w", zarr_format=3)
    group.create_group("g", attributes={"of": "the group before"}).create_group("h", attributes={"k": float("nan")})
    zarr.consolidate_metadata(store, zarr_format=3)
    zarr.open_group(store, mode="r+", use_consolidated=False)["g"].attrs["of"] = "the group"
    made = mount(store, "--view", "chunks")
    shown = zarr.open_group(str(made.path), mode="r", use_consolidated=True)
    assert shown["g"].attrs["of"] == "the group"
    copies = json.loads((made.path / "zarr.json").read_text())["consolidated_metadata"]["metadata"]
    for name in ("g", "g/h"):
        own = json.loads((made.path / name / "zarr.json").read_text())
        assert copies[name]["attributes"] == own["attributes"], name


@pytest.mark.parametrize("version", ['"2"', "2.0"])
def test_copies_of_groups_of_v2_are_those_of_the_shown_documents(mount, tmp_path, version):
    store = tmp_path / "s"
    zarr.open_group(str(store), mode="w", zarr_format=2).create_group("g")
    zarr.consolidate_metadata(str(store), zarr_format=2)
    for name, before in ((".zmetadata", '"zarr_format": 2'), (".zgroup", '"zarr_format": 2'), ("g/.zgroup", '"zarr_format": 2')):
        text = (store / name).read_text()
        assert before in text
        (store / name).write_text(text.replace(before, f'"zarr_format": {version}'))
    for arguments in (("--view", "chunks"), ("--view", "keys", "--as", "v2")):
        made = mount(store, *arguments)
        copies = json.loads((made.path / ".zmetadata").read_text())["metadata"]
        for name in (".zgroup", "g/.zgroup"):
            for text in (json.dumps(copies[name]), (made.path / name).read_text()):
                assert json.dumps(json.loads(text)["zarr_format"]) == "2", (name, text)
        made.unmount()


def test_a_group_document_of_another_version_is_none(mount, tmp_path):
    store = tmp_path / "s"
    zarr.open_group(str(store), mode="w", zarr_format=2).create_group("g")
    (store / "g" / ".zgroup").write_text('{"zarr_format": 4}')
    made = mount(store, "--view", "chunks")
    names = {path.name for path in (made.path / "g").iterdir()}
    assert {".zgroup.unsupported", "ERROR.txt"} <= names and ".zgroup" not in names


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_arrays_that_only_consolidated_metadata_names_are_reported(mount, tmp_path, zarr_format):
    store = tmp_path / "s"
    group = zarr.open_group(str(store), mode="w", zarr_format=zarr_format)
    for name in ("a", "h/b", "kept"):
        group.create_array(name, shape=(6,), chunks=(3,), dtype="i2", fill_value=0)[...] = VALUES
    zarr.consolidate_metadata(str(store), zarr_format=zarr_format)
    for name in ("a", "h/b"):
        for document in (".zarray", ".zattrs", "zarr.json"):
            (store / name / document).unlink(missing_ok=True)
    said = mounting.run(mounting.BINARY, "--info", store).stdout
    assert "only in consolidated metadata, so not shown: a, h/b" in said
    for version in ("v2", "v3"):
        made = mount(store, "--as", version)
        assert "2 arrays (such as a) not shown" in made.said
        for name in ("a", "a/c", "h/b"):
            assert not (made.path / name / ".zgroup").exists() and not (made.path / name / "zarr.json").exists(), name
        np.testing.assert_array_equal(zarr.open_array(str(made.path / "kept"), mode="r")[...], VALUES)
        made.unmount()
