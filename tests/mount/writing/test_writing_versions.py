"""Stores that are written through `--as`: documents and chunks in one Zarr version, which are stored in another one."""
import errno
import json
import os
import shutil
import subprocess

import numpy as np
import pytest
import tensorstore
import zarr

from support import corpus
from support.mounting import run, until
from support.writing_samples import tree

DATA = np.arange(64, dtype="<i4").reshape(8, 8)
VIEWS = ["keys", "chunks"]
# The version in which a store is made, and the one that is shown.
VERSIONS = [(2, "v3"), (3, "v2")]
KEYS = {"name": "v2", "separator": "."}
# Stores of other versions: real writers' ones, with an array of each.
OLD = {"zp2_draft_v3.zarr": "grp/codec_gzip", "draft22_tree.zarr": "big", "gdal_v3draft_gzip.zarr": "band", "zp1_110_zlib.zarr": ".", "prev1_script_i4.zarr": "."}
DRAFTS = [name for name, array in OLD.items() if array != "."]


def make(path, version):
    group = zarr.create_group(str(path), zarr_format=version)
    options = {"chunk_key_encoding": KEYS} if version == 3 else {}
    array = group.create_array("a", shape=(8, 8), chunks=(4, 4), dtype="<i4", attributes={"unit": 1.5}, **options)
    array[...] = DATA
    return path


def refused(call, *args):
    with pytest.raises(OSError) as caught:
        call(*args)
    return errno.errorcode[caught.value.errno]


def reasons(made):
    return (made.path / ".zarr-mount/refused").read_text()


@pytest.fixture(params=[(view, *versions) for view in VIEWS for versions in VERSIONS], ids=lambda found: f"{found[0]}-v{found[1]}-as-{found[2]}")
def both(request, tmp_path, mount):
    """A mount, its store, the version that is shown, and the options of arrays that the view can show."""
    view, version, target = request.param
    store = make(tmp_path / "store", version)
    made = mount(store, "--rw", "--view", view, "--as", target)
    return made, store, int(target[1]), {"compressors": None} if view == "chunks" else {}


def array(made, version, path="a"):
    return zarr.open_array(str(made.path / path), mode="r+", zarr_format=version)


@pytest.mark.parametrize("view", VIEWS)
def test_copies_of_documents_change_with_them(view, tmp_path, mount):
    """The group's document has copies of another one, which is saved; the group's own was saved before, and is, meanwhile."""
    store = make(tmp_path / "store", 2)
    zarr.consolidate_metadata(str(store), zarr_format=2)
    made = mount(store, "--rw", "--view", view, "--as", "v3")
    group, array = made.path / "zarr.json", made.path / "a/zarr.json"

    def change(path, attributes):
        document = json.loads(path.read_text()) | {"attributes": attributes}
        path.write_text(json.dumps(document))

    change(group, {"about": "all"})
    for n in range(6):
        before = group.read_text()
        with open(group) as reader, open(group, "r+") as writer:
            assert reader.read() == before
            mine = json.loads(writer.read()) | {"attributes": {"about": n}}
            change(array, {"n": n, "pad": "x" * (n * 37 % 50)})
            shown = json.loads(group.read_text())
            assert shown["consolidated_metadata"]["metadata"]["a"] == json.loads(array.read_text())
            writer.seek(0)
            writer.truncate()
            writer.write(json.dumps(mine))
        shown = json.loads(group.read_text())
        assert shown["attributes"] == {"about": n}
        assert shown["consolidated_metadata"]["metadata"]["a"] == json.loads(array.read_text())


@pytest.mark.parametrize("target", [(), ("--as", "v2"), ("--as", "v3")], ids=" ".join)
@pytest.mark.parametrize("version", [2, 3])
def test_copies_follow_a_node_to_its_new_name(version, target, tmp_path, mount):
    """After a rename, the consolidated metadata of the store has the existing nodes under their new names."""
    store = tmp_path / "store"
    keys = {"chunk_key_encoding": KEYS} if version == 3 else {}
    for path in ("g/a", "g/h/b", "c"):
        zarr.create_array(str(store), name=path, shape=(4,), chunks=(2,), dtype="<i4", zarr_format=version, compressors=None, **keys)[...] = 5
    for path in ("g/h", "g", ""):
        zarr.consolidate_metadata(str(store), path=path, zarr_format=version)
    made = mount(store, "--rw", "--view", "chunks", *target)

    def nodes(path):
        found = {}
        for group in ("", "g", "moved", "c"):
            try:
                shown = int(target[-1][1]) if target and path != store else version
                opened = zarr.open_group(str(path), path=group, mode="r", zarr_format=shown, use_consolidated=True)
            except (ValueError, KeyError, FileNotFoundError):
                continue
            found[group] = {name for name, _ in opened.members(max_depth=None)}
            assert all((array[...] == 5).all() for name, array in opened.members(max_depth=None) if isinstance(array, zarr.Array))
        return found

    assert nodes(store)[""] == {"g", "g/a", "g/h", "g/h/b", "c"}
    (made.path / "g/h").rename(made.path / "moved")
    expected = {"g", "g/a", "moved", "moved/b", "c"}
    assert nodes(store) == {"": expected, "g": {"a"}, "moved": {"b"}}
    assert nodes(made.path) == nodes(store)
    (made.path / "c").rename(made.path / "g/c")
    assert nodes(store) == {"": expected - {"c"} | {"g/c"}, "g": {"a", "c"}, "moved": {"b"}}
    assert nodes(made.path) == nodes(store)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("version", [2, 3])
def test_a_document_is_removed_and_made_again_in_its_own_version(version, view, tmp_path, mount):
    store = make(tmp_path / "store", version)
    made = mount(store, "--rw", "--view", view, "--as", f"v{version}")
    document, stored = [path / "a" / ("zarr.json" if version == 3 else ".zarray") for path in (made.path, store)]
    before, text = json.loads(stored.read_bytes()), document.read_bytes()
    document.unlink()
    assert not stored.exists()
    document.write_bytes(text)
    assert json.loads(stored.read_bytes()) == before and document.read_bytes() == text
    assert (zarr.open_array(str(store / "a"), mode="r")[...] == DATA).all()


class TestZarrPython:
    def test_values_and_attributes(self, both):
        made, store, version, _ = both
        shown = array(made, version)
        np.testing.assert_array_equal(shown[...], DATA)
        shown[1:3, 2:7] = 9
        expected = DATA.copy()
        expected[1:3, 2:7] = 9
        np.testing.assert_array_equal(zarr.open_array(str(store / "a"))[...], expected)
        shown.attrs["more"] = {"x": [1, None]}
        assert dict(zarr.open_array(str(store / "a")).attrs) == {"unit": 1.5, "more": {"x": [1, None]}}
        shown.attrs.put({"only": 1})
        assert dict(zarr.open_array(str(store / "a")).attrs) == {"only": 1}
        zarr.open_group(str(made.path), zarr_format=version, mode="r+").attrs["of the group"] = 1
        assert dict(zarr.open_group(str(store)).attrs) == {"of the group": 1}

    def test_a_resize_changes_the_shape_alone(self, both):
        made, store, version, _ = both
        name = ".zarray" if version == 3 else "zarr.json"
        before = (store / "a" / name).read_text()
        array(made, version).resize((12, 6))
        after = json.loads((store / "a" / name).read_text())
        assert after["shape"] == [12, 6] and after == json.loads(before) | {"shape": [12, 6], **({"storage_transformers": []} if "storage_transformers" in after else {})}
        np.testing.assert_array_equal(zarr.open_array(str(store / "a"))[:8], DATA[:, :6])

    def test_new_nodes_have_the_version_of_their_group(self, both):
        made, store, version, options = both
        group = zarr.open_group(str(made.path), zarr_format=version, mode="r+")
        new = group.create_array("g/b", shape=(6,), chunks=(3,), dtype="<f8", chunk_key_encoding=KEYS, attributes={"x": 1}, **options)
        new[...] = np.arange(6)
        group.create_group("h", attributes={"y": 2})
        stored = zarr.open_array(str(store / "g/b"))
        assert stored.metadata.zarr_format == 5 - version and dict(stored.attrs) == {"x": 1}
        np.testing.assert_array_equal(stored[...], np.arange(6))
        assert dict(zarr.open_group(str(store / "h")).attrs) == {"y": 2}
        other = {".zarray", ".zgroup", ".zattrs"} if version == 2 else {"zarr.json"}
        assert not other & {os.path.basename(name) for name in tree(store)}

    @pytest.mark.parametrize("how", ["rm -r", "rmtree", "zarr"])
    def test_a_node_is_removed(self, how, both):
        made, store, version, options = both
        if how == "rm -r":
            subprocess.run(["rm", "-r", made.path / "a"], check=True)
        elif how == "rmtree":
            shutil.rmtree(made.path / "a")
        else:
            del zarr.open_group(str(made.path), zarr_format=version, mode="r+")["a"]
        assert not (store / "a").exists() and not (made.path / "a").exists()
        again = zarr.create_array(str(made.path), name="a", shape=(3,), chunks=(2,), dtype="i2", zarr_format=version, chunk_key_encoding=KEYS, **options)
        again[...] = 5
        assert zarr.open_array(str(store / "a"))[...].tolist() == [5, 5, 5]

    def test_consolidated_metadata_is_made_of_the_store(self, both):
        made, store, version, _ = both
        zarr.consolidate_metadata(str(made.path), zarr_format=version)
        array(made, version).attrs["later"] = 1
        found = zarr.open_consolidated(str(store), zarr_format=5 - version)
        assert dict(found["a"].attrs) == {"unit": 1.5, "later": 1}
        assert dict(zarr.open_consolidated(str(made.path), zarr_format=version)["a"].attrs) == {"unit": 1.5, "later": 1}

    def test_an_array_is_made_anew(self, both):
        made, store, version, options = both
        new = zarr.create_array(str(made.path), name="a", shape=(4,), chunks=(2,), dtype="<u2", overwrite=True, zarr_format=version, chunk_key_encoding=KEYS, **options)
        new[1:] = 3
        assert zarr.open_array(str(store / "a"))[...].tolist() == [0, 3, 3, 3]


def test_tensorstore_makes_and_writes_an_array(both):
    made, store, version, _ = both
    if version == 3:
        metadata = {"shape": [4], "data_type": "int16", "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
                    "chunk_key_encoding": {"name": "v2", "configuration": {"separator": "."}}, "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]}
    else:
        metadata = {"shape": [4], "chunks": [2], "dtype": "<i2", "compressor": None, "fill_value": 0}
    spec = {"driver": "zarr3" if version == 3 else "zarr", "kvstore": {"driver": "file", "path": f"{made.path}/t/"}, "metadata": metadata, "create": True}
    written = tensorstore.open(spec).result()
    written[...].write(np.arange(4, dtype="i2")).result()
    assert zarr.open_array(str(store / "t"))[...].tolist() == [0, 1, 2, 3]
    written.resize(exclusive_max=[6]).result()
    assert zarr.open_array(str(store / "t")).shape == (6,)


def test_members_that_cannot_be_expressed_are_refused_by_name(both):
    made, store, version, _ = both
    before = tree(store)
    name = made.path / "a" / ("zarr.json" if version == 3 else ".zarray")
    shown = json.loads(name.read_text())
    changes = [({"fill_value": 7}, "fill_value"), ({"shape": [8]}, "shape"), ({"shape": [8.0, 8]}, "shape")]
    if version == 3:
        changes += [({"data_type": "int64"}, "data_type"), ({"mine": {"must_understand": False}}, "mine"), ({"codecs": []}, "codecs"),
                    ({"chunk_key_encoding": {"name": "default"}}, "chunk_key_encoding"), ({"attributes": []}, "attributes")]
    else:
        changes += [({"dtype": "<i8"}, "dtype"), ({"mine": 1}, "mine"), ({"order": "F"}, "order")]
    for change, member in changes:
        assert refused(name.write_text, json.dumps(shown | change)) == "EINVAL", change
        assert member in reasons(made).splitlines()[-1], change
    for text in ("{", "[]", "\xff", "null"):
        with pytest.raises(OSError):
            name.write_bytes(text.encode("latin1"))
    # The refused text is shown until the kernel has released the file, after close(2) has returned.
    until(lambda: name.read_text() not in ("{", "[]", "\xff", "null"), "the release of a refused document")
    assert json.loads(name.read_text()) == shown and tree(store) == before


def test_documents_of_the_stored_version_are_not_there(both):
    made, store, version, _ = both
    hidden = "a/.zarray" if version == 3 else "a/zarr.json"
    assert not (made.path / hidden).exists()
    assert refused((made.path / hidden).write_text, "{}") == "EPERM"
    assert (store / hidden).exists()


def test_names_of_dimensions(tmp_path, mount):
    """In v2, the names are the attribute `_ARRAY_DIMENSIONS`. In v3, they are a member of the document."""
    store = make(tmp_path / "two", 2)
    made = mount(store, "--rw", "--as", "v3")
    name = made.path / "a/zarr.json"
    shown = json.loads(name.read_text())
    name.write_text(json.dumps(shown | {"dimension_names": ["y", "x"]}))
    assert json.loads((store / "a/.zattrs").read_text()) == {"unit": 1.5, "_ARRAY_DIMENSIONS": ["y", "x"]}
    assert json.loads(name.read_text())["dimension_names"] == ["y", "x"]
    zarr.open_array(str(made.path / "a"), mode="r+").attrs.put({})
    assert json.loads((store / "a/.zattrs").read_text()) == {"_ARRAY_DIMENSIONS": ["y", "x"]}
    assert refused(name.write_text, json.dumps(shown | {"dimension_names": ["y", None]})) == "EINVAL"
    store = make(tmp_path / "three", 3)
    made = mount(store, "--rw", "--as", "v2")
    (made.path / "a/.zattrs").write_text(json.dumps({"unit": 1.5, "_ARRAY_DIMENSIONS": ["y", "x"]}))
    stored = json.loads((store / "a/zarr.json").read_text())
    # With names, xarray takes the fill value of v2 for missing, which is `_FillValue` in v3.
    mask = {"_FillValue": 0}
    assert (stored["dimension_names"], stored["attributes"]) == (["y", "x"], {"unit": 1.5} | mask)
    # A value that is not a list of names, one for each dimension, is an attribute like any other.
    for other in (["y"], "y, x", [0, 1], None, []):
        for attributes in ({"_ARRAY_DIMENSIONS": other}, {"_ARRAY_DIMENSIONS": other, "unit": 1}):
            (made.path / "a/.zattrs").write_text(json.dumps(attributes))
            stored = json.loads((store / "a/zarr.json").read_text())
            assert stored["attributes"] == attributes | mask and "dimension_names" not in stored
        (made.path / "a/.zattrs").write_text(json.dumps({"_ARRAY_DIMENSIONS": ["t", "x"]}))
        stored = json.loads((store / "a/zarr.json").read_text())
        assert (stored["dimension_names"], stored["attributes"]) == (["t", "x"], mask)
    # A document may have `dimension_names` and `_ARRAY_DIMENSIONS`. Readers of v3, xarray among them, take the former, so
    # these names are shown, and the attribute stays as it is until the names change.
    stored["attributes"] = {"_ARRAY_DIMENSIONS": ["p", "q"], "unit": 2}
    (store / "a/zarr.json").write_text(json.dumps(stored))
    os.utime(store / "a/zarr.json", ns=(1, 1))
    names = {"_ARRAY_DIMENSIONS": ["t", "x"]}
    until(lambda: json.loads((made.path / "a/.zattrs").read_text()) == names | {"unit": 2}, "the names")
    (made.path / "a/.zattrs").write_text(json.dumps(names | {"unit": 3}))
    found = json.loads((store / "a/zarr.json").read_text())
    assert (found["dimension_names"], found["attributes"]) == (["t", "x"], {"_ARRAY_DIMENSIONS": ["p", "q"], "unit": 3})
    (made.path / "a/.zattrs").write_text(json.dumps({"unit": 3}))
    found = json.loads((store / "a/zarr.json").read_text())
    assert "dimension_names" not in found and found["attributes"] == {"unit": 3}
    stored = found | {"dimension_names": ["y", "x"], "attributes": {}}
    (store / "a/zarr.json").write_text(json.dumps(stored))
    os.utime(store / "a/zarr.json", ns=(1, 1))
    made.unmount()
    made = mount(store, "--rw", "--as", "v2")
    (made.path / "a/.zattrs").write_text(json.dumps({"unit": 2, "_ARRAY_DIMENSIONS": ["t", "x"]}))
    stored = json.loads((store / "a/zarr.json").read_text())
    assert (stored["dimension_names"], stored["attributes"]) == (["t", "x"], {"unit": 2})
    os.remove(made.path / "a/.zattrs")
    stored = json.loads((store / "a/zarr.json").read_text())
    assert "dimension_names" not in stored and stored["attributes"] == {}
    assert not (made.path / "a/.zattrs").exists()
    (made.path / "a/.zattrs").write_text("{}")
    assert json.loads((made.path / "a/.zattrs").read_text()) == {}


def test_an_array_without_dimensions_has_no_names(tmp_path, mount):
    """xarray opens no variable of v2 without a list, and stores none for a scalar in v3."""
    store = make(tmp_path / "three", 3)
    zarr.open_group(str(store)).create_array("s", shape=(), dtype="i4", attributes={"n": 1})
    made = mount(store, "--rw", "--as", "v2")
    shown = made.path / "s/.zattrs"
    assert json.loads(shown.read_text()) == {"_ARRAY_DIMENSIONS": [], "n": 1}
    for written, attributes in [({"_ARRAY_DIMENSIONS": [], "n": 2}, {"n": 2}), ({"n": 3}, {"n": 3}), ({}, {}),
                                ({"_ARRAY_DIMENSIONS": []}, {})]:
        shown.write_text(json.dumps(written))
        assert json.loads((store / "s/zarr.json").read_text())["attributes"] == attributes
        assert json.loads(shown.read_text()) == {"_ARRAY_DIMENSIONS": []} | written
    # With any other list, xarray opens no variable of the group in v2, and the empty one is what is shown.
    for other in (5, ["x"]):
        assert refused(shown.write_text, json.dumps({"_ARRAY_DIMENSIONS": other})) == "EINVAL"
    group = zarr.open_group(str(made.path), mode="r+", zarr_format=2)
    group.create_array("new", shape=(), dtype="i4", fill_value=0, compressors=None, attributes={"_ARRAY_DIMENSIONS": []})
    # The fill value of v2 is named as missing, in whichever order the library writes the two documents.
    assert json.loads((store / "new/zarr.json").read_text())["attributes"] == {"_FillValue": 0}


@pytest.mark.parametrize("target", ["v2", "v3"])
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", OLD)
def test_old_versions_are_edited_by_todays_zarr_python(name, view, target, tmp_path, mount):
    store = tmp_path / "store"
    shutil.copytree(corpus.stores()[name].path, store)
    made = mount(store, "--rw", "--view", view, "--as", target)
    version = int(target[1])

    def shown():
        return zarr.open_array(str(made.path / OLD[name]), mode="r+", zarr_format=version)

    values = shown()[...]
    before = tree(store)
    shown()[...] = values[::-1]
    np.testing.assert_array_equal(shown()[...], values[::-1])
    shown().attrs["new"] = 1
    shape = shown().shape
    shown().resize((shape[0] + 3, *shape[1:]))
    made.unmount()
    # Only chunks, and the documents of this array, have changed.
    after = tree(store)
    changed = {key for key in before.keys() | after.keys() if before.get(key, b"") != after.get(key, b"")}
    documents = {key for key in changed if key.endswith((".json", "meta", "attrs", "__zmeta__", "__zattr__"))}
    assert 1 <= len(documents) <= 2 and len(changed) > len(documents), changed
    made = mount(store, "--as", target)
    again = zarr.open_array(str(made.path / OLD[name]), mode="r", zarr_format=version)
    assert again.attrs["new"] == 1 and again.shape[0] == shape[0] + 3
    np.testing.assert_array_equal(again[:shape[0]], values[::-1])


@pytest.mark.parametrize("target", ["v2", "v3"])
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", DRAFTS)
def test_new_nodes_of_drafts(name, view, target, tmp_path, mount):
    store = tmp_path / "store"
    shutil.copytree(corpus.stores()[name].path, store)
    before = tree(store)
    made = mount(store, "--rw", "--view", view, "--as", target)
    group = zarr.open_group(str(made.path), zarr_format=int(target[1]), mode="r+")
    options = {} if target == "v3" else {"chunk_key_encoding": {"name": "v2", "separator": "/"}}
    new = group.create_array("new/b", shape=(6, 2), chunks=(3, 2), dtype="<f8", compressors=None, attributes={"x": 1}, **options)
    new[...] = np.arange(12).reshape(6, 2)
    group.create_group("new/g", attributes={"y": 2})
    added = {key for key, found in tree(store).items() if key not in before and found is not None}
    meta, data = ("meta/new", "data/new") if name.startswith("draft22") else ("meta/root/new", "data/root/new")
    # The group above is there already, as a directory, and may have a document.
    assert added - {f"{meta}.group.json"} == {f"{meta}/b.array.json", f"{meta}/g.group.json", f"{data}/b/c0/0", f"{data}/b/c1/0"}
    found = zarr.open_array(str(made.path / "new/b"), zarr_format=int(target[1]), mode="r")
    assert dict(found.attrs) == {"x": 1} and found[5, 1] == 11
    assert refused(os.rename, made.path / "new", made.path / "other") == "EXDEV"
    assert refused(os.rmdir, made.path / "new") == "ENOTEMPTY"
    subprocess.run(["rm", "-r", made.path / "new"], check=True)
    assert tree(store) == before


def test_nothing_is_made_in_the_draft_of_2019(tmp_path, mount):
    store = tmp_path / "store"
    (store / "meta/root").mkdir(parents=True)
    (store / "zarr.json").write_text(json.dumps({"zarr_format": "https://purl.org/zarr/spec/protocol/core/3.0", "metadata_encoding": "https://purl.org/zarr/spec/protocol/core/3.0", "metadata_key_suffix": "", "extensions": []}))
    (store / "meta/root/a.array").write_text(json.dumps({"shape": [4], "data_type": "<i4", "chunk_grid": {"type": "regular", "chunk_shape": [2], "separator": "."}, "chunk_memory_layout": "C", "fill_value": 0, "extensions": [], "attributes": {}}))
    made = mount(store, "--rw", "--view", "chunks", "--as", "v3")
    zarr.open_array(str(made.path / "a"), mode="r+")[...] = 7
    (made.path / "n").mkdir()
    shown = (made.path / "a/zarr.json").read_text()
    assert refused((made.path / "n/zarr.json").write_text, shown) == "EINVAL" and "2019" in reasons(made)
    assert sorted(os.listdir(store / "data/root/a")) == ["0", "1"]
    # The end of the mount would report the refused text as lost before the kernel has released its file.
    until(lambda: "zarr.json" not in os.listdir(made.path / "n"), "the release of a refused document")


def test_scratch_files_beside_nodes_that_are_shown_elsewhere(tmp_path, mount):
    """Temporary files beside the chunks and documents of a draft have no directory in the store that they could be in."""
    store = tmp_path / "store"
    shutil.copytree(corpus.stores()["draft22_tree.zarr"].path, store)
    made = mount(store, "--rw", "--view", "chunks", "--as", "v3")
    for folder in ("big", "foo", "big/c", "foo/bar"):
        scratch = made.path / folder / "notes.tmp"
        scratch.write_text("mine")
        assert scratch.read_text() == "mine" and "notes.tmp" in os.listdir(made.path / folder)
        inode = scratch.stat().st_ino
        os.rename(scratch, made.path / folder / "other.tmp")
        assert (made.path / folder / "other.tmp").stat().st_ino == inode
        os.remove(made.path / folder / "other.tmp")
        assert "other.tmp" not in os.listdir(made.path / folder)
    assert not [key for key in tree(store) if "tmp" in key]


def test_a_change_of_a_document_by_an_outsider_is_not_overruled(both):
    made, store, version, _ = both
    name, stored = (made.path / "a/zarr.json", store / "a/.zattrs") if version == 3 else (made.path / "a/.zattrs", store / "a/zarr.json")
    file = os.open(name, os.O_RDWR)
    text = os.read(file, 10000)
    there = json.loads(stored.read_text())
    (there if version == 3 else there["attributes"])["theirs"] = 1
    stored.write_text(json.dumps(there))
    os.pwrite(file, text.replace(b"1.5", b"2.5"), 0)
    assert refused(os.close, file) == "ESTALE"
    assert json.loads(stored.read_text()) == there
    # A program that writes all of it has not read it.
    shown = json.loads(name.read_text())
    (shown["attributes"] if version == 3 else shown)["mine"] = 2
    name.write_text(json.dumps(shown))
    now = json.loads(stored.read_text())
    assert (now if version == 3 else now["attributes"]) == {"unit": 1.5, "theirs": 1, "mine": 2}


def test_two_documents_of_one_object(tmp_path, mount):
    """.zarray and .zattrs are one zarr.json: both are written, at once and one after the other."""
    store = make(tmp_path / "store", 3)
    made = mount(store, "--rw", "--as", "v2")
    zarray, zattrs = made.path / "a/.zarray", made.path / "a/.zattrs"
    shape = json.loads(zarray.read_text())
    for n in range(1, 30):
        zarray.write_text(json.dumps(shape | {"shape": [8 + n, 8]}))
        zattrs.write_text(json.dumps({"n": n}))
        stored = json.loads((store / "a/zarr.json").read_text())
        assert (stored["shape"], stored["attributes"]) == ([8 + n, 8], {"n": n})
        assert (json.loads(zarray.read_text())["shape"], json.loads(zattrs.read_text())) == ([8 + n, 8], {"n": n})
    with open(zattrs, "w") as one, open(zarray, "w") as other:
        one.write(json.dumps({"both": 1}))
        other.write(json.dumps(shape | {"shape": [9, 9]}))
    stored = json.loads((store / "a/zarr.json").read_text())
    assert (stored["shape"], stored["attributes"]) == ([9, 9], {"both": 1})


def test_a_document_keeps_its_mode(both):
    made, store, version, _ = both
    name = made.path / "a" / ("zarr.json" if version == 3 else ".zattrs")
    own = store / "a" / ("zarr.json" if version == 2 else ".zattrs")
    own.chmod(0o640)
    for n in range(3):
        shown = json.loads(name.read_text())
        (shown["attributes"] if version == 3 else shown)["n"] = n
        name.write_text(json.dumps(shown))
        assert own.stat().st_mode & 0o777 == 0o640
        assert json.loads(name.read_text()) == shown and name.stat().st_size == len(name.read_bytes())


def test_tar_extracts_over_existing_files(both, tmp_path, mount):
    """tar removes a file before it makes it anew, even one that the store does not have."""
    made, store, version, options = both
    made.unmount()
    view = ["keys", "chunks"][bool(options)]
    # Chunks that are shown without being there cannot be made anew either.
    made = mount(store, "--rw", "--view", view, "--as", f"v{version}", "--missing", "hide")
    group = zarr.open_group(str(made.path), mode="r+", zarr_format=version)
    group.create_array("g/h/b", shape=(6,), chunks=(3,), dtype="<f8", chunk_key_encoding=KEYS, **options)[...] = np.arange(6)
    archive = tmp_path / "all.tar"
    subprocess.run(["tar", "-C", made.path, "-cf", archive, "g"], check=True, timeout=20)
    for _ in range(2):
        subprocess.run(["tar", "-C", made.path, "--exclude=*.0", "--exclude=[0-9]", "-xf", archive], check=True, timeout=20)
        assert zarr.open_array(str(store / "g/h/b"))[...].tolist() == [0, 1, 2, 3, 4, 5]
    shutil.rmtree(made.path / "g")
    subprocess.run(["tar", "-C", made.path, "-xf", archive], check=True, timeout=20)
    assert zarr.open_array(str(store / "g/h/b"))[...].tolist() == [0, 1, 2, 3, 4, 5]


def test_a_document_that_was_removed_without_being_there_comes_back(tmp_path, mount):
    store = make(tmp_path / "store", 3)
    (store / "i").mkdir()
    shutil.copytree(store / "a", store / "i/a")
    made = mount(store, "--rw", "--as", "v2")
    os.remove(made.path / "i/.zgroup")
    assert ".zgroup" not in os.listdir(made.path / "i")
    (made.path / "i/.zgroup").write_text('{"zarr_format": 2}')
    assert zarr.open_group(str(store / "i")).metadata.zarr_format == 3
    stored = zarr.open_array(str(store / "a"), mode="r+")
    stored.attrs.put({})
    os.remove(made.path / "a/.zattrs")
    assert not (made.path / "a/.zattrs").exists()
    stored.attrs.put({"theirs": 1})
    os.utime(store / "a/zarr.json", ns=(1, 1))
    assert json.loads((made.path / "a/.zattrs").read_text()) == {"theirs": 1}


def test_the_directories_of_chunks_may_come_before_the_document(both):
    made, store, version, options = both
    shown = json.loads((made.path / "a" / ("zarr.json" if version == 3 else ".zarray")).read_text())
    (made.path / "n/0").mkdir(parents=True)
    if version == 3:
        shown["chunk_key_encoding"] = {"name": "v2", "configuration": {"separator": "/"}}
    else:
        shown["dimension_separator"] = "/"
    name = made.path / "n" / ("zarr.json" if version == 3 else ".zarray")
    with open(name, "x") as file:
        file.write(json.dumps(shown))
    array(made, version, "n")[...] = DATA
    np.testing.assert_array_equal(zarr.open_array(str(store / "n"))[...], DATA)


def test_attributes_that_are_written_twice(both):
    made, store, version, _ = both
    name = made.path / ("zarr.json" if version == 3 else ".zattrs")
    for text, expected in (('{"a": 7}', {"a": 7}), ('{"a": 1, "a": 22}', {"a": 22}), ('{"shape": [1.5], "b": {"x": 1, "x": 2}}', {"shape": [1.5], "b": {"x": 2}})):
        name.write_text(text if version == 2 else '{"zarr_format": 3, "node_type": "group", "attributes": %s}' % text)
        assert dict(zarr.open_group(str(store)).attrs) == expected


def test_a_scalar_of_a_draft_gets_attributes(tmp_path, mount):
    store = tmp_path / "store"
    shutil.copytree(corpus.stores()["zp2_draft_v3.zarr"].path, store)
    for target in (2, 3):
        made = mount(store, "--rw", "--as", f"v{target}")
        group = zarr.open_group(str(made.path), mode="r+", zarr_format=target)
        group["grp/scalar"].attrs["new"] = target
        assert dict(zarr.open_group(str(made.path), mode="r", zarr_format=target)["grp/scalar"].attrs)["new"] == target
        made.unmount()


def test_very_many_attributes(both):
    made, store, version, _ = both
    many = {f"name {n}": n for n in range(30_000)}
    for attributes in (many, {"few": 1}):
        array(made, version).attrs.put(attributes)
        assert dict(zarr.open_array(str(store / "a")).attrs) == attributes


def test_chunks_of_a_draft_come_after_the_document(tmp_path, mount):
    """Without it they have no place in the store."""
    store = tmp_path / "store"
    shutil.copytree(corpus.stores()["draft22_tree.zarr"].path, store)
    made = mount(store, "--rw", "--as", "v2", "--missing", "hide")
    (made.path / "n").mkdir()
    assert refused((made.path / "n/0").write_bytes, b"x") == "EPERM"


def test_documents_behind_links_are_read(tmp_path, mount):
    store = make(tmp_path / "store", 2)
    os.rename(store / "a/.zattrs", store / "a/real")
    os.symlink("real", store / "a/.zattrs")
    for options in (["--as", "v3"], [], ["--view", "chunks"], ["--shards", "keep"]):
        made = mount(store, "--rw", *options)
        if options == ["--as", "v3"]:
            assert json.loads((made.path / "a/zarr.json").read_text())["attributes"] == {"unit": 1.5}
            name = made.path / "a/zarr.json"
        else:
            name = made.path / "a/.zattrs"
            assert json.loads(name.read_text()) == {"unit": 1.5}
        with pytest.raises(OSError):
            name.write_text("{}")
        assert json.loads((store / "a/real").read_text()) == {"unit": 1.5}
        made.unmount()


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name, path", [("draft22_root_array.zarr", "meta/array.json"), ("draft22_tree.zarr", "meta/group.json"),
                                        ("zp1_110_zlib.zarr", "meta"), ("zp1_110_zlib.zarr", "attrs")])
def test_documents_of_old_versions_are_whole(name, path, view, tmp_path, mount):
    """The store has no part of them before they are closed, and texts that are not documents are refused."""
    store = tmp_path / "store"
    shutil.copytree(corpus.stores()[name].path, store)
    before, made = (store / path).read_bytes(), mount(store, "--rw", "--view", view)
    text = (made.path / path).read_bytes()
    for wrong in (b"junk", b"[]", text[:-1]):
        file = os.open(made.path / path, os.O_WRONLY | os.O_TRUNC)
        os.write(file, wrong)
        assert (store / path).read_bytes() == before
        assert refused(os.close, file) == "EINVAL"
        assert (store / path).read_bytes() == before
        # The kernel sends the release a moment later.
        until(lambda: (made.path / path).read_bytes() == text, "the document as it is")
    (made.path / path).write_bytes(text + b"\n")
    assert json.loads((made.path / path).read_bytes()) == json.loads(text)


@pytest.mark.parametrize("view", [*VIEWS, "chunks --missing hide"])
@pytest.mark.parametrize("target", [None, "v2"])
def test_an_array_is_removed_with_directories_that_are_not_shown(target, view, tmp_path, mount):
    group = zarr.create_group(str(tmp_path / "store"), zarr_format=3)
    for name in ("a", "b", "g/c"):
        group.create_array(name, shape=(8, 8), chunks=(4, 4), dtype="<i4")[...] = DATA
    made = mount(tmp_path / "store", "--rw", "--view", *view.split(), *(["--as", target] if target else []))
    options = {"zarr_format": 2 if target else 3}
    zarr.open_array(str(made.path / "a"), mode="r+", **options).resize((4, 8))
    shutil.rmtree(made.path / "a")
    codecs = {"compressors": None} if view != "keys" else {}
    again = zarr.create_array(str(made.path), name="b", shape=(4,), chunks=(2,), dtype="<u2", overwrite=True, **codecs, **options)
    again[...] = [1, 2, 3, 4]
    shutil.rmtree(made.path / "g")
    assert sorted(entry.name for entry in (tmp_path / "store").iterdir() if entry.name != ".zarr-mount") == ["b", "zarr.json"]
    made.unmount()
    assert zarr.open_array(str(tmp_path / "store/b"), mode="r")[...].tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("target", ["v2", "v3"])
@pytest.mark.parametrize("view", VIEWS)
class TestGroupsWithoutADocument:
    """A directory without a document is shown as a group, so that a program need not make the document."""

    def test_a_group_that_was_opened_is_stored_with_its_first_array(self, view, target, tmp_path, mount):
        (tmp_path / "store").mkdir()
        made = mount(tmp_path / "store", "--rw", "--view", view, "--as", target)
        group = zarr.open_group(str(made.path), mode="a", zarr_format=int(target[1]))
        group.create_array("x", shape=(4,), chunks=(2,), dtype="i4", compressors=None)[...] = 1
        assert (zarr.open_group(str(tmp_path / "store"), mode="r")["x"][...] == 1).all()

    def test_groups_that_are_made_at_once_are_all_stored(self, view, target, tmp_path, mount):
        store = tmp_path / "store"
        group = zarr.create_group(str(store), zarr_format=int(target[1]))
        made = mount(store, "--rw", "--view", view, "--as", target)
        within = zarr.open_group(str(made.path), mode="a")
        for number in range(12):
            within.create_group(f"g{number}/deep/k")
        names = {name for name, _ in zarr.open_group(str(store), mode="r", use_consolidated=False).members(max_depth=None)}
        assert names == {f"g{number}{below}" for number in range(12) for below in ("", "/deep", "/deep/k")}

    def test_a_directory_of_stores_gets_no_document(self, view, target, tmp_path, mount):
        make(tmp_path / "stores/one", 2)
        make(tmp_path / "new", 3)
        made = mount(tmp_path / "stores", "--rw", "--view", view, "--as", target)
        assert "one" in os.listdir(made.path)
        array = zarr.open_array(str(made.path / "one/a"), mode="r+", zarr_format=int(target[1]))
        array.attrs["unit"] = 2
        made.unmount()
        assert os.listdir(tmp_path / "stores") == ["one"]
        assert zarr.open_array(str(tmp_path / "stores/one/a"), mode="r").attrs["unit"] == 2


@pytest.mark.parametrize("stored,shown", [(3, 2), (2, 3)])
@pytest.mark.parametrize("order", [1, -1])
def test_a_group_is_copied_whatever_comes_first(stored, shown, order, tmp_path, mount):
    """cp(1) makes each file as a new one, because it has made their directory: a document that is shown already would be in its way."""
    zarr.open_group(str(tmp_path / "store"), mode="w", zarr_format=stored)
    keys = {"name": "v2", "separator": "."}
    group = zarr.open_group(str(tmp_path / "source"), mode="w", zarr_format=shown, attributes={"title": "kept"})
    options = {"shape": (8,), "chunks": (4,), "dtype": "f4", "compressors": None, "chunk_key_encoding": keys, "fill_value": 0}
    group.create_array("with", attributes={"unit": "m"}, **options)[...] = 1
    group.create_array("without", **options)[...] = 2
    m = mount(tmp_path / "store", "--rw", "--view", "chunks", "--missing", "hide", "--as", f"v{shown}")

    def copy(source, target):
        target.mkdir()
        for entry in sorted(source.iterdir())[::order]:
            if entry.is_dir():
                copy(entry, target / entry.name)
                continue
            fd = os.open(target / entry.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            os.write(fd, entry.read_bytes())
            os.close(fd)

    copy(tmp_path / "source", m.path / "new")
    assert run("cp", "-r", tmp_path / "source", m.path / "again").returncode == 0
    for root in (m.path, tmp_path / "store"):
        for name in ("new", "again"):
            found = zarr.open_group(str(root), mode="r")[name]
            assert dict(found.attrs) == {"title": "kept"} and dict(found["with"].attrs) == {"unit": "m"}
            np.testing.assert_array_equal([found["with"][...], found["without"][...]], [[1] * 8, [2] * 8])


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("target", ["v2", "v3"])
def test_an_empty_store_has_no_group_yet(view, target, tmp_path, mount):
    """A group that the mount shows there would be in the way of the one that a library makes, or would take its attributes away."""
    (tmp_path / "store").mkdir()
    made = mount(tmp_path / "store", "--rw", "--view", view, "--as", target)
    assert os.listdir(made.path) == []
    options = {"zarr_format": int(target[1]), "attributes": {"title": "t"}}
    group = zarr.create_group(str(made.path), **options)
    group.create_array("a", data=DATA, chunks=(4, 4), compressors=None)
    made.unmount()
    found = zarr.open_group(str(tmp_path / "store"), mode="r")
    assert dict(found.attrs) == {"title": "t"}
    np.testing.assert_array_equal(found["a"][...], DATA)
