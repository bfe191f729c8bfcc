"""Groups whose documents have faults, or whose consolidated metadata is old, show their arrays as they are."""
import json

import mounting
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


def test_a_group_document_of_another_version_is_none(mount, tmp_path):
    store = tmp_path / "s"
    zarr.open_group(str(store), mode="w", zarr_format=2).create_group("g")
    (store / "g" / ".zgroup").write_text('{"zarr_format": 4}')
    made = mount(store, "--view", "chunks")
    names = {path.name for path in (made.path / "g").iterdir()}
    assert {".zgroup.unsupported", "ERROR.txt"} <= names and ".zgroup" not in names


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_arrays_that_only_consolidated_metadata_names_are_told(mount, tmp_path, zarr_format):
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
