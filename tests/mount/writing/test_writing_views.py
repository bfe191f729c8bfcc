"""Mounts that are written to through the views that they have by default, and through several at once."""
import errno
import json
import os
import shutil
import subprocess

import numcodecs
import numpy as np
import pytest
import tensorstore
import zarr

from support.mounting import BINARY, ok, run
from support.writing_samples import tree

DATA = np.arange(64, dtype="<i4").reshape(8, 8)
NEW = np.full((4, 4), 7, "<i4")


@pytest.fixture
def store(tmp_path):
    """A group with an array of v3, one of v2 in a group, and one of shards."""
    group = zarr.create_group(str(tmp_path / "store"), zarr_format=3)
    group.create_array("a", shape=(8, 8), chunks=(4, 4), dtype="<i4", compressors=zarr.codecs.GzipCodec(level=1))[...] = DATA
    group.create_array("s", shape=(8, 8), chunks=(2, 2), shards=(4, 4), dtype="<i4")[...] = DATA
    two = zarr.create_group(str(tmp_path / "store/old"), zarr_format=2)
    two.create_array("two", shape=(8, 8), chunks=(4, 4), dtype="<i4", compressors=numcodecs.Zlib(1))[...] = DATA
    return tmp_path / "store"


def refused(call, *args):
    with pytest.raises(OSError) as caught:
        call(*args)
    return errno.errorcode[caught.value.errno]


class TestKeys:
    """The keys view with its defaults, where shards are expanded."""

    @pytest.fixture
    def made(self, store, mount):
        return mount(store, "--rw")

    def test_encoded_chunks_are_the_writers_bytes(self, made, store):
        for name in ("a/c/0/1", "old/two/0.1"):
            other = (made.path / name.replace("1", "0")).read_bytes()
            (made.path / name).write_bytes(other)
            assert (store / name).read_bytes() == other
        expected = DATA.copy()
        expected[:4, 4:] = DATA[:4, :4]
        np.testing.assert_array_equal(zarr.open_array(str(store / "a"))[...], expected)
        (made.path / "a/c/0/1").write_bytes(b"no gzip at all")
        assert (store / "a/c/0/1").read_bytes() == b"no gzip at all"
        os.remove(made.path / "a/c/0/1")
        assert not (store / "a/c/0/1").exists() and not (made.path / "a/c/0/1").exists()

    def test_a_sharded_array_has_no_other_chunks(self, made, store):
        before = tree(store)
        assert refused((made.path / "s/c/0/9").write_bytes, b"x") == "EINVAL"
        assert refused(os.mkdir, made.path / "s/c/9") == "EINVAL"
        assert tree(store) == before
        assert "sharding_indexed" in ok(BINARY, "--info", store)

    def test_attributes_of_a_sharded_array_are_written(self, made, store):
        shown = zarr.open_array(str(made.path / "s"), mode="r+")
        assert shown.shards is None
        shown.attrs["unit"] = "m"
        stored = zarr.open_array(str(store / "s"))
        assert dict(stored.attrs) == {"unit": "m"} and stored.shards == (4, 4)
        shown.resize((12, 8))
        assert zarr.open_array(str(store / "s")).shape == (12, 8)

    def test_documents_are_those_that_the_view_shows(self, made, store):
        name = made.path / "a/zarr.json"
        shown = json.loads(name.read_text())
        name.write_text(json.dumps(shown | {"attributes": {"n": 1}, "shape": [6, 8]}))
        assert json.loads((store / "a/zarr.json").read_text()) == shown | {"attributes": {"n": 1}, "shape": [6, 8]}
        for change in ({"data_type": "int64"}, {"codecs": []}, {"fill_value": 1}):
            assert refused(name.write_text, json.dumps(shown | change)) == "EINVAL"
        # In this view a new array has no shards, because its chunks would be inner chunks.
        (made.path / "n").mkdir()
        sharded = (store / "s/zarr.json").read_text()
        assert refused((made.path / "n/zarr.json").write_text, sharded) == "EINVAL"
        assert "--shards keep" in (made.path / ".zarr-mount/refused").read_text()

    def test_new_arrays_have_the_codecs_of_their_documents(self, made, store):
        group = zarr.open_group(str(made.path), mode="r+")
        new = group.create_array("n", shape=(5,), chunks=(2,), dtype="<f8", compressors=zarr.codecs.ZstdCodec(level=7))
        new[...] = np.arange(5)
        stored = zarr.open_array(str(store / "n"))
        assert stored.compressors[0].level == 7 and stored[...].tolist() == [0, 1, 2, 3, 4]
        two = zarr.create_array(str(made.path), name="old/n", shape=(5,), chunks=(2,), dtype="<f8", zarr_format=2, compressors=numcodecs.BZ2(5))
        two[...] = np.arange(5)
        assert zarr.open_array(str(store / "old/n"))[...].tolist() == [0, 1, 2, 3, 4]
        spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{made.path}/t/"}, "metadata": {"shape": [4], "data_type": "int16"}, "create": True}
        tensorstore.open(spec).result()[...].write(np.arange(4, dtype="i2")).result()
        assert zarr.open_array(str(store / "t"))[...].tolist() == [0, 1, 2, 3]

    def test_scratch_stays_in_the_mount(self, made, store):
        (made.path / "a/c/0/0.tmp").write_bytes(b"x")
        assert "0.tmp" in os.listdir(made.path / "a/c/0") and not (store / "a/c/0/0.tmp").exists()
        os.rename(made.path / "a/c/0/0.tmp", made.path / "a/c/0/0")
        assert (store / "a/c/0/0").read_bytes() == b"x" and os.listdir(store / "a/c/0").sort() == os.listdir(made.path / "a/c/0").sort()

    @pytest.mark.parametrize("text", [b"", b"x"])
    def test_an_encoded_chunk_is_not_empty(self, text, made, store):
        before = (store / "a/c/0/0").read_bytes()
        with open(made.path / "a/c/0/0", "wb") as file:
            file.write(text)
        assert (store / "a/c/0/0").read_bytes() == (text or before)
        assert refused(os.truncate, made.path / "a/c/0/0", 0) == "EINVAL"

    def test_a_chunk_is_renamed_as_in_the_store(self, made, store):
        bytes_ = (store / "a/c/0/0").read_bytes()
        os.rename(made.path / "a/c/0/0", made.path / "a/c/1/1")
        assert (store / "a/c/1/1").read_bytes() == bytes_ and not (store / "a/c/0/0").exists()
        os.rename(made.path / "a/c/1/1", made.path / "chunk.bin")
        assert (made.path / "chunk.bin").read_bytes() == (store / "chunk.bin").read_bytes() == bytes_
        os.rename(made.path / "chunk.bin", made.path / "a/c/0/0")
        assert (store / "a/c/0/0").read_bytes() == bytes_ and not (store / "chunk.bin").exists()
        np.testing.assert_array_equal(zarr.open_array(str(made.path / "a"))[:4, :4], DATA[:4, :4])

    def test_chunks_that_a_resize_leaves_over_are_removed(self, made, store):
        name = made.path / "a/zarr.json"
        name.write_text(json.dumps(json.loads(name.read_text()) | {"shape": [4, 8]}))
        assert refused((made.path / "a/c/2/0").write_bytes, b"x") in ("EINVAL", "ENOENT")
        left = [entry for entry in ("a/c/1/0", "a/c/1/1") if (made.path / entry).exists()]
        for entry in left:
            os.remove(made.path / entry)
            assert not (store / entry).exists()
        shutil.rmtree(made.path / "a")
        assert not (store / "a").exists()

    def test_chunks_are_decoded_before_they_are_saved(self, store, mount):
        made = mount(store, "--rw", "--check")
        before = (store / "a/c/0/0").read_bytes()
        assert refused((made.path / "a/c/0/0").write_bytes, b"no gzip") == "EINVAL"
        assert (store / "a/c/0/0").read_bytes() == before
        (made.path / "a/c/0/0").write_bytes((store / "a/c/1/1").read_bytes())
        np.testing.assert_array_equal(zarr.open_array(str(store / "a"))[:4, :4], DATA[4:, 4:])


class TestSeveralViews:
    @pytest.fixture
    def made(self, store, mount):
        return mount(store, "--rw", "--view", "keys,chunks,arrays", "--files", "npy,raw")

    def test_a_write_through_one_view_is_seen_in_all(self, made, store):
        (made.path / "chunks/a/c/0/0").write_bytes(NEW.tobytes())
        expected = DATA.copy()
        expected[:4, :4] = NEW
        assert (made.path / "keys/a/c/0/0").read_bytes() == (store / "a/c/0/0").read_bytes()
        np.testing.assert_array_equal(np.load(made.path / "arrays/a.npy"), expected)
        (made.path / "keys/a/c/0/0").write_bytes((store / "a/c/1/1").read_bytes())
        assert (made.path / "chunks/a/c/0/0").read_bytes() == DATA[4:, 4:].tobytes()
        expected[:4, :4] = DATA[4:, 4:]
        np.testing.assert_array_equal(np.load(made.path / "arrays/a.npy"), expected)
        os.remove(made.path / "keys/a/c/0/0")
        assert (made.path / "chunks/a/c/0/0").read_bytes() == bytes(64)
        zarr.open_array(str(made.path / "chunks/a"), mode="r+").attrs["n"] = 1
        assert zarr.open_array(str(made.path / "keys/a")).attrs["n"] == 1

    def test_handles_of_other_views_go_on(self, made):
        keys = os.open(made.path / "keys/a/c/0/0", os.O_RDONLY)
        old = os.pread(keys, 1000, 0)
        chunks = os.open(made.path / "chunks/a/c/0/0", os.O_RDWR)
        assert os.pread(chunks, 4, 0) == DATA[0, :1].tobytes()
        (made.path / "keys/a/c/0/0").write_bytes((made.path / "keys/a/c/1/1").read_bytes())
        # For a view, another one is a different program: a read there may be old.
        assert refused(lambda: (os.pwrite(chunks, bytes(4), 0), os.fsync(chunks))) == "ESTALE"
        assert refused(os.close, chunks) == "ESTALE"
        os.close(keys)
        assert (made.path / "chunks/a/c/0/0").read_bytes() == DATA[4:, 4:].tobytes() and old

    def test_parts_of_blind_writers_are_merged_with_another_view(self, made, store):
        part = os.open(made.path / "chunks/a/c/0/0", os.O_WRONLY)
        os.pwrite(part, NEW[:1].tobytes(), 0)
        (made.path / "keys/a/c/0/0").write_bytes((store / "a/c/1/1").read_bytes())
        os.close(part)
        expected = DATA[4:, 4:].copy()
        expected[0] = 7
        assert (made.path / "chunks/a/c/0/0").read_bytes() == expected.tobytes()

    def test_the_arrays_view_is_only_read(self, made, store):
        before = tree(store)
        assert refused((made.path / "arrays/a.npy").write_bytes, b"") == "EPERM"
        assert refused(os.remove, made.path / "arrays/a.npy") == "EPERM"
        assert refused((made.path / "arrays/new").mkdir) == "EPERM"
        assert refused((made.path / "new").mkdir) == "EPERM"
        assert refused(os.rename, made.path / "keys/a", made.path / "chunks/b") == "EXDEV"
        assert tree(store) == before

    def test_other_files_are_written_through_the_keys_view(self, made, store):
        (made.path / "keys/note").write_bytes(b"mine")
        assert (made.path / "chunks/note").read_bytes() == b"mine"
        for call in (lambda: open(made.path / "chunks/note", "ab"), lambda: open(made.path / "chunks/new", "wb")):
            assert refused(call) == "EPERM"
        (made.path / "chunks/a/c/0/0.tmp").write_bytes(NEW.tobytes())
        os.rename(made.path / "chunks/a/c/0/0.tmp", made.path / "chunks/a/c/0/0")
        assert (zarr.open_array(str(store / "a"))[:4, :4] == 7).all()

    def test_a_directory_is_renamed_under_open_files_of_another_view(self, made, store):
        file = os.open(made.path / "chunks/a/c/0/0", os.O_WRONLY)
        os.pwrite(file, NEW.tobytes(), 0)
        os.rename(made.path / "keys/a", made.path / "keys/b")
        os.close(file)
        assert not (store / "a").exists()
        np.testing.assert_array_equal(zarr.open_array(str(store / "b"))[:4, :4], NEW)

    def test_the_control_files_are_of_all_views(self, made, store):
        file = os.open(made.path / "chunks/a/c/0/0", os.O_WRONLY)
        os.pwrite(file, NEW.tobytes(), 0)
        made.sync()
        np.testing.assert_array_equal(zarr.open_array(str(store / "a"))[:4, :4], NEW)
        os.close(file)

    def test_all_versions_at_once(self, store, mount):
        made = mount(store, "--rw", "--view", "keys,chunks", "--as", "v3")
        (made.path / "chunks/old/two/0.0").write_bytes(NEW.tobytes())
        zarr.open_array(str(made.path / "keys/old/two"), mode="r+").attrs["n"] = 1
        stored = zarr.open_array(str(store / "old/two"))
        assert stored.metadata.zarr_format == 2 and stored.attrs["n"] == 1 and (stored[:4, :4] == 7).all()


def test_options_of_a_view_that_is_not_there(store, tmp_path):
    for options, said in ((["--lossy"], "chunks"), (["--view", "chunks", "--check"], "keys"), (["--view", "keys,arrays", "--conflict", "merge"], "chunks")):
        done = run(BINARY, "--rw", *options, store, tmp_path / "m")
        assert done.returncode == 2 and f"--rw with --view {said}" in done.stderr, done.stderr


class TestHardLinks:
    """A file of several names is given one of its own before it is written: to the kernel, names of the mount are files."""

    @pytest.fixture
    def made(self, store, mount):
        return mount(store, "--rw", "--shards", "keep")

    def test_a_snapshot_keeps_its_bytes(self, made, store):
        (store / "log").write_bytes(b"old\n")
        subprocess.run(["cp", "-al", store, store.with_name("snapshot")], check=True)
        with open(made.path / "log", "ab") as file:
            file.write(b"new\n")
        assert (store / "log").read_bytes() == b"old\nnew\n"
        assert (store.with_name("snapshot") / "log").read_bytes() == b"old\n"

    @pytest.mark.local
    def test_two_names_are_two_files(self, made, store):
        (store / "one").write_bytes(b"")
        os.link(store / "one", store / "two")
        one, two = (os.open(made.path / name, os.O_WRONLY | os.O_APPEND) for name in ("one", "two"))
        for n in range(5):
            os.write(one, b"first ")
            os.write(two, b"second ")
        os.close(one)
        os.close(two)
        assert (store / "one").read_bytes() == b"first " * 5 and (store / "two").read_bytes() == b"second " * 5

    @pytest.mark.local
    def test_a_name_that_is_made_through_the_mount(self, made, store):
        (made.path / "one").write_bytes(b"same")
        os.link(made.path / "one", made.path / "two")
        assert (made.path / "two").read_bytes() == b"same"
        (made.path / "one").write_bytes(b"other")
        assert (store / "one").read_bytes() == b"other" and (store / "two").read_bytes() == b"same"

    def test_symbolic_links_are_refused_in_silence(self, made):
        assert refused(os.symlink, "x", made.path / "link") == "EPERM"
        assert "symlink" not in made.log_text()


def test_counters(store, mount):
    made = mount(store, "--rw", "--view", "chunks", "--missing", "hide")

    def writes():
        return made.stats()["writes"]

    nothing = {"drafts": 0, "scratch": 0, "unsaved": 0, "saved": 0, "erased": 0, "staged": 0, "deleted": 0, "packed": 0, "conflicts": 0, "lost": 0, "refused": 0, "without_effect": 0}
    assert writes() == nothing
    (made.path / "a/c/0/0").write_bytes(NEW.tobytes())
    (made.path / "a/c/0/1").write_bytes(bytes(64))
    assert writes() == nothing | {"saved": 1, "erased": 1}
    file = os.open(made.path / "a/c/1/0", os.O_RDWR)
    os.pwrite(file, NEW[:1].tobytes(), 0)
    (made.path / "a/note.tmp").write_bytes(b"x")
    assert (writes()["drafts"], writes()["scratch"]) == (1, 1)
    (store / "a/c/1/0").write_bytes((store / "a/c/1/1").read_bytes())
    assert refused(os.close, file) == "ESTALE"
    os.remove(made.path / "a/note.tmp")
    assert refused((made.path / "a/zarr.json").write_text, "{") == "EINVAL"
    os.chmod(made.path / "s/c/0/0", 0o600)
    made.unmount()
    made = mount(store, "--rw")
    assert writes() == nothing


def test_counters_of_losses(store, mount):
    made = mount(store, "--rw", "--view", "chunks")
    file = os.open(made.path / "a/c/1/0", os.O_RDWR)
    os.pwrite(file, NEW[:1].tobytes(), 0)
    (store / "a/c/1/0").write_bytes((store / "a/c/1/1").read_bytes())
    assert refused(os.close, file) == "ESTALE"
    assert refused((made.path / "a/zarr.json").write_text, "{") == "EINVAL"
    os.chmod(made.path / "s/c/0/0", 0o600)
    found = made.stats()["writes"]
    assert (found["conflicts"], found["lost"], found["without_effect"], found["drafts"]) == (1, 2, 1, 0) and found["refused"] >= 1
