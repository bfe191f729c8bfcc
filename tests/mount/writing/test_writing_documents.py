"""Metadata documents that are written through the chunks view: only documents that the view shows are saved, and no other object of the
store changes."""
import contextlib
import errno
import json
import os
import shutil
import threading
import time
import zlib
from pathlib import Path

import numcodecs
import numpy as np
import pytest
import tensorstore
import zarr

from support.mounting import held_lock, ok, opened_by_others, run, until

ARGS = ("--rw", "--view", "chunks")
DATA = np.arange(64, dtype="<i4").reshape(8, 8)


@pytest.fixture
def store(tmp_path):
    group = zarr.create_group(str(tmp_path / "store"), zarr_format=3)
    three = group.create_array("three", shape=(8, 8), chunks=(4, 4), dtype="<i4", attributes={"unit": "m"}, dimension_names=["y", "x"])
    three[...] = DATA
    two = zarr.create_group(str(tmp_path / "store/old"), zarr_format=2).create_array("two", shape=(8, 8), chunks=(4, 4), dtype=">i4", order="F")
    two[...] = DATA
    return tmp_path / "store"


@pytest.fixture
def made(store, mount):
    return mount(store, *ARGS)


def document(path):
    return json.loads(path.read_text())


def refused(call, *args):
    with pytest.raises(OSError) as caught:
        call(*args)
    return caught.value.errno


def reasons(made):
    return (made.path / ".zarr-mount/refused").read_text()


class TestAttributes:
    def test_of_v3_are_carried_back_and_the_rest_stays_byte_for_byte(self, made, store):
        before = (store / "three/zarr.json").read_text()
        shown = document(made.path / "three/zarr.json")
        assert shown["codecs"] == [{"name": "bytes", "configuration": {"endian": "little"}}]
        shown["attributes"] = {"unit": "km", "more": [1, 2.0, None]}
        (made.path / "three/zarr.json").write_text(json.dumps(shown))
        after = (store / "three/zarr.json").read_text()
        assert document(store / "three/zarr.json") == json.loads(before) | {"attributes": shown["attributes"]}
        begin, end = before.index('"attributes"'), before.index('"dimension_names"')
        assert after.startswith(before[:before.index('"m"')]) and after.endswith(before[end:]) and begin > 0
        assert document(made.path / "three/zarr.json") == shown
        assert dict(zarr.open_group(str(store))["three"].attrs) == shown["attributes"]

    @pytest.mark.parametrize("library", ["zarr", "tensorstore"])
    def test_are_set_by_libraries(self, library, made, store):
        if library == "zarr":
            zarr.open_group(str(made.path))["three"].attrs["unit"] = "cm"
            zarr.open_group(str(made.path / "old"))["two"].attrs["unit"] = "cm"
            assert dict(zarr.open_group(str(store / "old"))["two"].attrs) == {"unit": "cm"}
        else:
            array = tensorstore.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{made.path}/three/"}}).result()
            array.resize(exclusive_max=[12, 8]).result()
        found = zarr.open_group(str(store))["three"]
        np.testing.assert_array_equal(found[:8], DATA)

    def test_that_say_the_same_are_not_written(self, made, store):
        def version():  # without the time of the last reading
            found = os.stat(store / "three/zarr.json")
            return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns

        before = version()
        shown = document(made.path / "three/zarr.json")
        (made.path / "three/zarr.json").write_text(json.dumps(shown, indent=7))
        assert version() == before
        assert document(made.path / "three/zarr.json") == shown

    def test_a_document_of_attributes_is_removed(self, made, store):
        (made.path / "old/two/.zattrs").write_text('{"a": 1}')
        assert dict(zarr.open_group(str(store / "old"))["two"].attrs) == {"a": 1}
        os.unlink(made.path / "old/two/.zattrs")
        assert dict(zarr.open_group(str(store / "old"))["two"].attrs) == {}
        np.testing.assert_array_equal(zarr.open_group(str(store / "old"))["two"][...], DATA)


class TestResize:
    @pytest.mark.parametrize("name", ["three", "old/two"])
    def test_by_a_library(self, name, made, store):
        array = zarr.open_array(str(made.path / name))
        array.resize((12, 8))
        array[8:] = 7
        found = zarr.open_array(str(store / name))
        np.testing.assert_array_equal(found[...], np.vstack([DATA, np.full((4, 8), 7)]))
        array.resize((4, 4))
        np.testing.assert_array_equal(zarr.open_array(str(store / name))[...], DATA[:4, :4])

    def test_to_another_rank_is_refused(self, made):
        shown = document(made.path / "three/zarr.json")
        shown["shape"] = [8]
        assert refused((made.path / "three/zarr.json").write_text, json.dumps(shown)) == errno.EINVAL

    def test_an_open_chunk_that_is_outside_now_is_not_saved(self, made, store):
        fd = os.open(made.path / "three/c/1/1", os.O_WRONLY)
        os.write(fd, bytes(64))
        shown = document(made.path / "three/zarr.json") | {"shape": [4, 4]}
        (made.path / "three/zarr.json").write_text(json.dumps(shown))
        assert refused(os.close, fd) in (errno.EINVAL, errno.ESTALE)
        np.testing.assert_array_equal(zarr.open_group(str(store))["three"][...], DATA[:4, :4])


# A change of a document, and the member that the reason names.
REFUSED = {
    "codecs": (lambda d: d["codecs"].append({"name": "gzip", "configuration": {"level": 1}}), "codecs"),
    "data type": (lambda d: d.update(data_type="int64"), "data_type"),
    "fill value": (lambda d: d.update(fill_value=3), "fill_value"),
    "grid": (lambda d: d["chunk_grid"]["configuration"].update(chunk_shape=[2, 2]), "chunk_grid"),
    "key encoding": (lambda d: d["chunk_key_encoding"]["configuration"].update(separator="."), "chunk_key_encoding"),
    "node type": (lambda d: d.update(node_type="group"), "node_type"),
    "format": (lambda d: d.update(zarr_format=2), "zarr_format"),
    "attributes": (lambda d: d.update(attributes=[]), "attributes"),
}


@pytest.mark.parametrize("member", REFUSED)
def test_other_members_stay(member, made, store):
    before = (store / "three/zarr.json").read_bytes()
    shown = document(made.path / "three/zarr.json")
    change, _ = REFUSED[member]
    change(shown)
    text = json.dumps(shown)
    # The error is returned for all ways of writing.
    assert refused((made.path / "three/zarr.json").write_text, text) == errno.EINVAL
    (made.path / "three/x.partial").write_text(text)
    assert refused(os.rename, made.path / "three/x.partial", made.path / "three/zarr.json") == errno.EINVAL
    fd = os.open(made.path / "three/zarr.json", os.O_RDWR | os.O_TRUNC)
    os.write(fd, text.encode())
    assert refused(os.fsync, fd) == errno.EINVAL and refused(os.close, fd) == errno.EINVAL
    assert (store / "three/zarr.json").read_bytes() == before
    assert "three/zarr.json: not saved: " in reasons(made)
    assert document(made.path / "three/zarr.json")["shape"] == [8, 8]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"zarr_format": 3', "\xff", "null", "{}"])
@pytest.mark.local
def test_texts_that_are_not_documents_are_refused(text, made, store):
    before = {path: path.read_bytes() for path in store.rglob("*") if path.is_file()}
    for name in ("three/zarr.json", "zarr.json", "old/two/.zarray", "old/.zgroup"):
        fd = os.open(made.path / name, os.O_WRONLY | os.O_TRUNC)
        os.write(fd, text.encode("latin1"))
        errors = [refused(os.fsync, fd)]
        if text:
            errors.append(refused(os.close, fd))
        else:
            # No byte was written since the file was made empty, so close gives no error: shells close a duplicate before they write.
            os.close(fd)
        assert set(errors) == {errno.EINVAL}, name
    assert before == {path: path.read_bytes() for path in store.rglob("*") if path.is_file()}


# Changes that make a document which some readers refuse, or with which they read other values. Each has: whether the document is
# one of v3, the change, and the member that the reason names.
STRICT = {
    "no order": (False, lambda d: d.pop("order"), "order"),
    "no filters": (False, lambda d: d.pop("filters"), "filters"),
    "no separator": (False, lambda d: d.pop("dimension_separator"), "dimension_separator"),
    "compressor": (False, lambda d: d.update(compressor={"id": "zlib", "level": 1, "more": 1}), "compressor.more"),
    "codec": (True, lambda d: d["codecs"][0]["configuration"].update(more=1), "codecs[0].configuration.more"),
    "grid": (True, lambda d: d["chunk_grid"]["configuration"].update(more=1), "chunk_grid.configuration.more"),
    "key encoding": (True, lambda d: d["chunk_key_encoding"]["configuration"].update(more=1), "chunk_key_encoding.configuration.more"),
    "name alone": (True, lambda d: d.update(chunk_key_encoding="default"), "chunk_key_encoding"),
}


@pytest.mark.parametrize("args", [("--view", "chunks"), ("--view", "keys"), ("--view", "keys", "--as")], ids=" ".join)
def test_documents_that_strict_readers_refuse_are_refused(args, tmp_path, mount):
    """A `.zarray` without its separator would read as fill value, because its chunks have other keys."""
    with_as = args[-1] == "--as"
    root = tmp_path / "strict"
    # With --as, the group and its arrays are stored in the other version.
    for version in (2, 3):
        group = zarr.create_group(str(root / str(version)), zarr_format=5 - version if with_as else version)
        keys = {"name": "v2", "separator": "/"}
        array = group.create_array("t", shape=(8, 8), chunks=(4, 4), dtype="<i4", compressors=None, chunk_key_encoding=keys)
        array[...] = DATA
    for version, name in ((2, ".zarray"), (3, "zarr.json")):
        m = mount(root, "--rw", "--missing", "hide", *args, *([f"v{version}"] if with_as else []))
        place = m.path / str(version)
        (place / "new").mkdir()
        if not with_as:
            # Its chunks are there before the document.
            (place / "new/0").mkdir()
            (place / "new/0/0").write_bytes(bytes(64))
        before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
        for change, (is_v3, make, member) in STRICT.items():
            if is_v3 != (version == 3) or with_as and change == "no separator":
                continue
            text = document(place / "t" / name)
            make(text)
            for directory in ("t", "new"):
                if change == "compressor" and (directory == "t" or "chunks" in args):
                    continue
                assert refused((place / directory / name).write_text, json.dumps(text)) == errno.EINVAL, (change, directory)
                assert member in reasons(m).splitlines()[-1], (change, directory)
        assert before == {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
        m.unmount()


class TestNewNodes:
    @pytest.mark.parametrize("version", [2, 3])
    def test_by_zarr_python(self, version, made, store):
        group = zarr.open_group(str(made.path)) if version == 3 else zarr.open_group(str(made.path / "old"))
        array = group.create_array("new", shape=(5, 5), chunks=(2, 3), dtype="f8", compressors=None, fill_value=1)
        array[...] = np.arange(25).reshape(5, 5)
        sub = group.create_group("sub", attributes={"a": 1})
        sub.create_array("deep", shape=(3,), chunks=(3,), dtype="u1", compressors=None)[...] = 9
        found = zarr.open_group(str(store)) if version == 3 else zarr.open_group(str(store / "old"))
        np.testing.assert_array_equal(found["new"][...], np.arange(25).reshape(5, 5))
        assert dict(found["sub"].attrs) == {"a": 1} and (found["sub/deep"][...] == 9).all()

    def test_by_tensorstore(self, made, store):
        spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{made.path}/new/"},
                "metadata": {"shape": [6, 6], "data_type": "float32", "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [3, 3]}},
                             "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]}, "create": True}
        array = tensorstore.open(spec).result()
        array[...] = np.arange(36, dtype="f4").reshape(6, 6)
        np.testing.assert_array_equal(zarr.open_group(str(store))["new"][...], np.arange(36).reshape(6, 6))

    def test_by_cp(self, made, store, mount):
        """`cp -r` of the decoded array makes an array without compression. Chunks that are not there must not be shown."""
        assert run("cp", "-r", made.path / "three", made.path.parent / "copy").returncode == 0
        made.unmount()
        other = mount(store, *ARGS, "--missing", "hide")
        done = run("cp", "-r", other.path.parent / "copy", other.path / "again")
        assert done.returncode == 0, done.stderr
        np.testing.assert_array_equal(zarr.open_group(str(store))["again"][...], DATA)
        assert zarr.open_group(str(store))["again"].compressors == ()

    def test_with_codecs_are_refused_and_say_why(self, made, store):
        group = zarr.open_group(str(made.path))
        for options in ({}, {"shards": (4, 4), "compressors": None}):
            with pytest.raises(OSError) as caught:
                group.create_array("new", shape=(8, 8), chunks=(2, 2), dtype="f8", **options)
            assert caught.value.errno == errno.EINVAL and not (store / "new/zarr.json").exists()
        assert "no codec but `bytes`" in reasons(made) and "--shards keep" in reasons(made)


class TestRemoving:
    @pytest.mark.parametrize("how", ["rm -r", "rmtree", "zarr"])
    @pytest.mark.parametrize("name", ["three", "old/two"])
    def test_an_array(self, how, name, made, store):
        if how == "rm -r":
            done = run("rm", "-r", made.path / name)
            assert done.returncode == 0, done.stderr
        elif how == "rmtree":
            shutil.rmtree(made.path / name)
        else:
            parent, last = os.path.split(name)
            group = zarr.open_group(str(made.path / parent))
            del group[last]
        assert not (store / name).exists() and not (made.path / name).exists()

    def test_a_document_ends_the_array_and_its_chunks_stay_until_they_are_removed(self, made, store):
        os.unlink(made.path / "three/zarr.json")
        assert not (store / "three/zarr.json").exists()
        assert sorted(os.listdir(made.path / "three/c/0")) == ["0", "1"]
        assert (made.path / "three/c/0/0").read_bytes() == DATA[:4, :4].tobytes()

    @pytest.mark.parametrize("name", ["three/zarr.json", "old/two/.zarray"])
    def test_a_document_that_is_made_again_says_how_the_chunks_are_encoded(self, name, made, store):
        """git and tar replace files in this way: they remove the old one first."""
        before, shown = document(store / name), (made.path / name).read_bytes()
        os.unlink(made.path / name)
        (made.path / name).write_bytes(shown)
        assert document(store / name) == before
        np.testing.assert_array_equal(zarr.open_array(str((store / name).parent), mode="r")[...], DATA)
        # Another array cannot be made where the chunks of this one are.
        os.unlink(made.path / name)
        other = shown.replace(b'"int32"', b'"int64"').replace(b'"<i4"', b'"<i8"')
        assert refused((made.path / name).write_bytes, other) == errno.EINVAL
        assert "remove them first" in reasons(made)

    def test_an_array_is_replaced_by_another_one(self, made, store):
        group = zarr.open_group(str(made.path))
        array = group.create_array("three", shape=(4,), chunks=(2,), dtype="u2", compressors=None, overwrite=True)
        array[...] = [1, 2, 3, 4]
        np.testing.assert_array_equal(zarr.open_group(str(store))["three"][...], [1, 2, 3, 4])
        np.testing.assert_array_equal(np.fromfile(made.path / "three/c/1", "<u2"), [3, 4])


def test_a_directory_is_renamed_with_its_arrays(made, store):
    os.rename(made.path / "old", made.path / "older")
    np.testing.assert_array_equal(zarr.open_group(str(store / "older"))["two"][...], DATA)
    np.testing.assert_array_equal(np.fromfile(made.path / "older/two/0.0", "<i4").reshape(4, 4), DATA[:4, :4])
    zarr.open_group(str(made.path / "older"))["two"][0, 0] = 99
    assert zarr.open_group(str(store / "older"))["two"][0, 0] == 99


@pytest.mark.parametrize("args", [("--view", "chunks"), ("--view", "chunks", "--missing", "hide"), ("--view", "keys"), ("--view", "keys", "--shards", "keep")], ids=" ".join)
def test_a_touched_file_keeps_its_inode(args, store, mount, tmp_path):
    """cp and mv compare the inode number that they have found with that of the file that they have opened."""
    m = mount(store, "--rw", *args).path
    for name in ("three/c/0/1", "three/zarr.json", "old/two/0.0"):
        before = (m / name).read_bytes()
        ok("touch", m / name)
        ok("cp", m / name, tmp_path / "copy")
        assert (tmp_path / "copy").read_bytes() == before
        # touch(1) sets the times of a file that it has opened.
        ok("touch", "-d", "2001-02-03", m / name)
        ok("cp", "-p", m / name, tmp_path / "copy")
        assert (tmp_path / "copy").read_bytes() == before and (tmp_path / "copy").stat().st_mtime == (m / name).stat().st_mtime


def test_a_file_is_opened_after_the_document_of_its_array_is_gone(store, mount):
    """An older handle is still open, which was opened when the file was a chunk."""
    m = mount(store, "--rw", "--view", "keys", "--missing", "hide", "--ttl", "1").path
    name = m / "three/c/0/1"
    held = os.open(name, os.O_RDONLY)
    text = os.pread(held, 10_000, 0)
    (store / "three/zarr.json").unlink()
    until(lambda: not (m / "three/zarr.json").exists(), "the end of the array")
    for flags in (os.O_RDONLY, os.O_RDWR, os.O_RDWR | os.O_CREAT):
        fd = os.open(name, flags)
        assert os.pread(fd, 10_000, 0) == text
        os.close(fd)
    os.close(held)


@pytest.mark.parametrize("cache", ["1M", "64M"])
@pytest.mark.parametrize("name,text", [("three", "three/zarr.json"), ("old", "old/two/.zarray")])
def test_a_document_that_is_open_is_read_after_a_rename(name, text, cache, store, mount):
    """With a small cache, the text of the document is made again, from its path after the rename."""
    m = mount(store, *ARGS, "--cache-size", cache).path
    chunk = os.open(m / name / ("c/0/0" if name == "three" else "two/0.0"), os.O_RDWR)
    os.pwrite(chunk, b"\7" * 64, 0)
    with open(m / text) as file:
        os.rename(m / name, m / "new")
        shown = (m / text.replace(name, "new", 1)).read_text()
        assert json.loads(shown)["shape"] == [8, 8]
        assert file.read() == shown and os.fstat(file.fileno()).st_size == len(shown)
    os.close(chunk)
    assert zarr.open_array(str(store / "new" / ("" if name == "three" else "two")), mode="r")[0, 0] == 0x07070707


def test_a_change_of_the_document_by_an_outsider_is_not_overruled(made, store):
    fd = os.open(made.path / "three/zarr.json", os.O_RDWR)
    shown = json.loads(os.pread(fd, 10000, 0))
    zarr.open_group(str(store))["three"].attrs["theirs"] = 1
    os.ftruncate(fd, 0)
    os.pwrite(fd, json.dumps(shown | {"shape": [4, 4]}).encode(), 0)
    assert refused(os.close, fd) == errno.ESTALE
    found = document(store / "three/zarr.json")
    assert (found["shape"], found["attributes"].get("theirs")) == ([8, 8], 1)


def test_an_array_without_chunks_may_become_a_group(made, store):
    group = {"zarr_format": 3, "node_type": "group", "attributes": {"title": "mine"}}
    with pytest.raises(OSError) as told:
        (made.path / "three/zarr.json").write_text(json.dumps(group))
    assert told.value.errno == errno.EINVAL and "three/zarr.json: not saved: node_type: found a group" in reasons(made)
    zarr.create_array(str(store / "empty"), shape=(4,), chunks=(2,), dtype="u1")
    (made.path / "empty/zarr.json").write_text(json.dumps(group))
    zarr.create_array(str(made.path / "empty/inner"), shape=(4,), chunks=(2,), dtype="u1", compressors=None)[...] = 7
    found = zarr.open_group(str(store / "empty"))
    assert dict(found.attrs) == {"title": "mine"} and (found["inner"][...] == 7).all()


def test_a_refusal_names_the_file(made, store):
    """Names that cannot be made, or files that cannot be moved or removed, are named with where they would be."""
    assert refused(os.mkdir, made.path / "three/c/9") == errno.EINVAL
    assert refused(os.mkdir, made.path / "three/more") == errno.EPERM
    assert refused(os.rename, made.path / "three/c/0/0", made.path / "three/c/0/1") == errno.EPERM
    lines = reasons(made)
    assert "three" in lines.splitlines()[0] and "three: more" in lines and "three: chunk [0, 1]" in lines
    assert "a change through the mount" not in lines


@pytest.mark.parametrize("how", ["rename", "create", "truncate", "cut", "link"])
@pytest.mark.parametrize("name", ["three/zarr.json", "old/two/.zarray"])
def test_a_document_has_the_size_that_is_shown(how, name, made, store):
    """The written document may be spelled differently from the one that is shown afterwards."""
    path = made.path / name
    text = json.dumps(document(path), indent=9)
    if how == "rename":
        (path.parent / "x.partial").write_text(text)
        os.rename(path.parent / "x.partial", path)
    elif how == "truncate":
        path.write_text(text)
    elif how == "cut":  # as rsync --inplace does: the kernel asks for the size while the file has the written text
        with open(path, "r+b", buffering=0) as file:
            file.write(text.encode())
            file.truncate(len(text))
    else:
        os.unlink(path)
        if how == "create":
            path.write_text(text)
        else:
            (path.parent / "x.partial").write_text(text)
            os.link(path.parent / "x.partial", path)
            os.unlink(path.parent / "x.partial")
    for _ in range(5):
        assert path.stat().st_size == len(path.read_bytes())
        assert document(path) == json.loads(text)
        time.sleep(0.05)


@pytest.mark.parametrize("way", [(), ("--as", "v2")], ids=["as it is", "as v2"])
def test_arrays_that_the_view_could_not_show_are_refused(way, tmp_path, mount):
    zarr.create_group(str(tmp_path / "store")).create_array("a", shape=(8, 8), chunks=(4, 4), dtype="<i4", chunk_key_encoding={"name": "v2", "separator": "."})
    made = mount(tmp_path / "store", *ARGS, *way)
    options = {"zarr_format": 2} if way else {}
    name = ".zarray" if way else "zarr.json"
    before = (made.path / "a" / name).read_bytes()
    for shape in ([2**62, 8], [2**33, 2**33]):
        assert refused((made.path / "a" / name).write_text, json.dumps(json.loads(before) | {"shape": shape})) == errno.EINVAL
    assert "the number of chunks" in reasons(made)
    with pytest.raises(OSError):
        zarr.create_array(str(made.path), name="long", shape=(2**30,), chunks=(2**29,), dtype="i4", compressors=None, **options)
    assert "--max-chunk" in reasons(made)
    assert (made.path / "a" / name).read_bytes() == before


def test_documents_that_would_hide_something_are_refused(made, store):
    array = (made.path / "three/zarr.json").read_bytes()
    assert refused((made.path / "zarr.json").write_bytes, array) == errno.EINVAL
    shown = document(made.path / "three/zarr.json") | {"shape": [8.0, 8]}
    assert refused((made.path / "three/zarr.json").write_text, json.dumps(shown)) == errno.EINVAL
    for name in ("three/.zarray", "three/c/zarr.json", "three/.zgroup"):
        assert refused((made.path / name).write_text, "{}") == errno.EPERM


def test_attributes_of_v1_are_saved(tmp_path, mount):
    store = tmp_path / "one"
    store.mkdir()
    (store / "meta").write_text(json.dumps({"zarr_format": 1, "shape": [4], "chunks": [4], "dtype": "<i4", "compression": "zlib", "compression_opts": 1,
                                            "fill_value": 0, "order": "C"}))
    (store / "attrs").write_text("{}")
    (store / "0").write_bytes(zlib.compress(np.arange(4, dtype="<i4").tobytes()))
    made = mount(store, *ARGS)
    (made.path / "x").write_text('{"a": 1}')
    os.rename(made.path / "x", made.path / "attrs")
    assert document(store / "attrs") == {"a": 1}
    for text in ("junk", "[]", '{"a":'):
        assert refused((made.path / "attrs").write_text, text) == errno.EINVAL
    assert document(store / "attrs") == document(made.path / "attrs") == {"a": 1}
    np.arange(4, 8, dtype="<i4").tofile(made.path / "0")
    assert zlib.decompress((store / "0").read_bytes()) == np.arange(4, 8, dtype="<i4").tobytes()
    shown = document(made.path / "meta")
    (made.path / "y").write_text(json.dumps(shown | {"shape": [8]}))
    os.rename(made.path / "y", made.path / "meta")
    assert document(store / "meta") == {"zarr_format": 1, "shape": [8], "chunks": [4], "dtype": "<i4", "compression": "zlib", "compression_opts": 1,
                                        "fill_value": 0, "order": "C"}


@pytest.mark.parametrize("dtype", [str, "variable_length_bytes"])
def test_arrays_of_strings_are_changed(dtype, tmp_path, mount):
    """zarr-python writes an empty configuration where the view shows none."""
    store = tmp_path / "store"
    array = zarr.create_group(str(store)).create_array("s", shape=(4,), chunks=(2,), dtype=dtype)
    array[...] = np.array(["a", "bc", "", "d"], dtype=object) if dtype is str else np.array([b"a", b"bc", b"", b"d"], dtype=object)
    before = array[...].tolist()
    made = mount(store, *ARGS)
    shown = zarr.open_array(str(made.path / "s"), mode="r+")
    shown.attrs["unit"] = "m"
    shown.append(np.array(before, dtype=object))
    found = zarr.open_array(str(store / "s"), mode="r")
    assert found[...].tolist() == before * 2 and dict(found.attrs) == {"unit": "m"}
    assert document(store / "s/zarr.json")["codecs"][0]["name"].startswith("vlen")


class TestConsolidated:
    """Consolidated metadata agrees with the documents of the store, in whatever order documents are written."""

    @pytest.fixture(params=[2, 3])
    def group(self, request, store):
        path = store if request.param == 3 else store / "old"
        zarr.consolidate_metadata(str(path))
        return path.relative_to(store), "three" if request.param == 3 else "two"

    def of_store(self, store, group):
        """The consolidated metadata agrees with the nodes."""
        found = zarr.open_group(str(store / group), mode="r", use_consolidated=True)
        plain = zarr.open_group(str(store / group), mode="r", use_consolidated=False)
        members = {name: node.metadata for name, node in found.members(max_depth=None)}
        want = {name: node.metadata for name, node in plain.members(max_depth=None)}
        strip = lambda metadata: {key: value for key, value in metadata.to_dict().items() if key != "consolidated_metadata"}
        assert {name: strip(node) for name, node in members.items()} == {name: strip(node) for name, node in want.items()}
        return found

    def test_copies_follow_writes(self, group, store, mount):
        path, name = group
        made = mount(store, *ARGS)
        within = zarr.open_group(str(made.path / path), use_consolidated=False)
        within[name].attrs["unit"] = "mile"
        assert dict(self.of_store(store, path)[name].attrs) == {"unit": "mile"}
        within[name].resize((12, 8))
        assert self.of_store(store, path)[name].shape == (12, 8)
        within.create_group("sub").create_array("deep", shape=(3,), chunks=(3,), dtype="u1", compressors=None)
        assert self.of_store(store, path)["sub/deep"].shape == (3,)
        shutil.rmtree(made.path / path / "sub")
        shutil.rmtree(made.path / path / name)
        assert name not in self.of_store(store, path) and "sub" not in self.of_store(store, path)
        # Readers of the mount see the decoded form of it.
        shown = zarr.open_group(str(made.path / path), mode="r", use_consolidated=True)
        assert list(shown.members()) == list(within.members())

    def test_it_is_made_through_the_mount(self, group, store, mount):
        path, name = group
        made = mount(store, *ARGS)
        zarr.open_group(str(made.path / path), use_consolidated=False)[name].attrs["later"] = 1
        zarr.consolidate_metadata(str(made.path / path))
        assert dict(self.of_store(store, path)[name].attrs)["later"] == 1

    def test_copies_cannot_be_edited_by_hand(self, store, mount):
        zarr.consolidate_metadata(str(store))
        made = mount(store, *ARGS)
        shown = document(made.path / "zarr.json")
        shown["consolidated_metadata"]["metadata"]["three"]["attributes"]["unit"] = "inch"
        shown["attributes"]["title"] = "new"
        (made.path / "zarr.json").write_text(json.dumps(shown))
        assert document(store / "zarr.json")["attributes"] == {"title": "new"}
        assert self.of_store(store, ".")["three"].attrs["unit"] == "m"

    def test_a_node_is_changed_while_a_new_copy_of_it_is_saved(self, group, store, mount):
        """When the node is changed, there is no consolidated metadata yet that could be updated."""
        path, name = group
        made = mount(store, *ARGS, "--lock", "tensorstore")
        holder = "zarr.json" if path == Path(".") else ".zmetadata"
        text = (made.path / path / holder).read_text()
        os.unlink(made.path / path / holder)
        held = held_lock(store / path / f"{holder}.__lock")
        saver = threading.Thread(target=(made.path / path / holder).write_text, args=(text,))
        with opened_by_others(store / path / f"{holder}.__lock"):
            saver.start()
        assert saver.is_alive() and not (store / path / holder).exists()
        attributes = made.path / path / name / ("zarr.json" if holder == "zarr.json" else ".zattrs")
        changed = document(attributes)
        (changed["attributes"] if holder == "zarr.json" else changed)["unit"] = "mile"
        attributes.write_text(json.dumps(changed))
        held.close()
        saver.join(30)
        assert self.of_store(store, path)[name].attrs["unit"] == "mile"


@pytest.mark.parametrize("how", ["it was saved", "it is open", "both"])
def test_a_document_with_copies_of_others_is_never_longer_than_its_text(how, tmp_path, mount):
    """The text changes with the directories below, and not with the stored document. It is made again, because the cache has no room for it."""
    group = zarr.create_group(str(tmp_path / "store"), zarr_format=2)
    group.create_array("a", shape=(8 << 20,), chunks=(1 << 20,), dtype="u1", compressor=None)[...] = 1
    zarr.consolidate_metadata(str(tmp_path / "store"), zarr_format=2)
    shown = mount(tmp_path / "store", "--rw", "--view", "chunks", "--as", "v3", "--cache-size", "1M")
    path = shown.path / "zarr.json"
    if how != "it is open":
        path.write_text(json.dumps(document(path) | {"attributes": {"n": 1}}))
    with contextlib.ExitStack() as files:
        if how != "it was saved":
            assert files.enter_context(path.open("rb", buffering=0)).read(4096)
        (tmp_path / "store/new").mkdir()
        (tmp_path / "store/new/.zgroup").write_text('{"zarr_format": 2}')
        for chunk in range(8):
            (shown.path / f"a/{chunk}").read_bytes()

        def has_copy():
            text = path.read_bytes()
            assert text.rstrip().endswith(b"}")
            return "new" in json.loads(text)["consolidated_metadata"]["metadata"]

        until(has_copy, "a copy of what is new")


@pytest.mark.parametrize(
    "data_type,args",
    [
        ("i8", ("--check",)),
        ("i8", ("--check", "--shards", "keep")),
        ("i8", ("--check", "--as", "v2")),
        ("bool", ("--view", "chunks")),
        ("i8", ("--view", "chunks", "--as", "v2")),
    ],
)
def test_chunks_that_are_made_before_their_document_are_looked_at_with_it(args, data_type, store, mount, tmp_path):
    """tar(1) and cp -r make directories before the files beside them."""
    version = 2 if "--as" in args else 3
    codec = None if "chunks" in args else zarr.codecs.ZstdCodec() if version == 3 else numcodecs.Zstd()
    keys = {"name": "v2", "separator": "/"}
    source = zarr.create_array(str(tmp_path / "source"), shape=(8,), chunks=(4,), dtype=data_type, compressors=codec, chunk_key_encoding=keys, zarr_format=version)
    source[...] = 1
    name = "zarr.json" if version == 3 else ".zarray"
    good = {chunk: (tmp_path / "source" / chunk).read_bytes() for chunk in ("0", "1")}
    text = (tmp_path / "source" / name).read_bytes()
    m = mount(store, "--rw", "--missing", "hide", *args)
    place = m.path / "new"
    place.mkdir()
    bad = [b"\2" * len(good["0"])] if data_type == "bool" and "chunks" in args else []
    for wrong in [*bad, b"short", b"x" * (len(good["0"]) + 1)]:
        (place / "0").write_bytes(good["0"])
        (place / "1").write_bytes(wrong)
        assert refused((place / name).write_bytes, text) == errno.EINVAL, wrong
        assert "new/1, which was made before the document" in reasons(m).splitlines()[-1]
    (place / "1").write_bytes(b"short")
    fd = os.open(place / "1", os.O_WRONLY | os.O_TRUNC)
    try:
        os.write(fd, good["1"])
        assert refused((place / name).write_bytes, text) == errno.EINVAL
        # With `--shards keep`, files are shown as they are stored, and each chunk is decoded when it is closed.
        expected = "made before the document, is no chunk" if "keep" in args else "new/1 was made before the document, and a program is still writing it"
        assert expected in reasons(m).splitlines()[-1]
    finally:
        os.close(fd)
    (place / name).write_bytes(text)
    m.unmount()
    np.testing.assert_array_equal(zarr.open_array(str(store / "new"), mode="r")[...], source[...])
