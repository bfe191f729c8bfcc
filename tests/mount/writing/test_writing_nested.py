"""Writers of a directory of stores, and of a store in it: there is one at a time, and each finds what the other has left."""
import contextlib
import os

import numpy as np
import pytest
import zarr

from support.mounting import BINARY, force_away, ok, run

ARGS = ("--rw", "--view", "chunks")


def make(path):
    """A directory with two stores, each of an array with shards. It is no group itself."""
    for name in ("a.zarr", "b.zarr"):
        array = zarr.create_array(str(path / name), shape=(64,), chunks=(8,), shards=(32,), dtype="i8")
        array[...] = 1
    return path


@pytest.fixture
def stores(tmp_path):
    return make(tmp_path / "stores")


def refused(store, path, mounted):
    """A mount of the store is refused, and the message names the daemon that keeps it out."""
    path.mkdir(exist_ok=True)
    done = run(BINARY, *ARGS, store, path)
    assert done.returncode != 0, "it was mounted"
    assert f"process {mounted.pid} " in done.stderr and "for writing" in done.stderr, done.stderr


@pytest.mark.parametrize("through", ["its path", pytest.param("a bind mount", marks=pytest.mark.root)])
def test_there_is_one_writer_of_a_directory_and_of_the_stores_in_it(through, stores, mount, tmp_path):
    with contextlib.ExitStack() as ends:
        other = stores
        if through == "a bind mount":
            other = tmp_path / "bound"
            other.mkdir()
            ok("mount", "--bind", stores, other)
            ends.callback(force_away, other)
        outer = mount(stores, *ARGS)
        refused(other / "a.zarr", tmp_path / "no", outer)
        outer.unmount()
        inner = mount(stores / "a.zarr", *ARGS)
        refused(other, tmp_path / "no", inner)
        refused(other / "a.zarr", tmp_path / "no", inner)
        # Stores beside each other have a writer each.
        mount(other / "b.zarr", *ARGS).unmount()
        inner.unmount()
        mount(other, *ARGS).unmount()


@pytest.mark.root
def test_the_writer_on_another_disk_is_not_taken_for_the_one_on_this_disk(disk, mount, tmp_path):
    """Directories of two disks have one inode number."""
    both = [make(disk("2M") / "stores") for _ in range(2)]
    assert len({path.stat().st_ino for path in both}) == 1
    for path, writer in [(path, mount(path, *ARGS)) for path in both]:
        refused(path, tmp_path / "no", writer)
        refused(path / "a.zarr", tmp_path / "no", writer)


@pytest.mark.root
def test_a_store_that_is_mounted_elsewhere_has_the_writers_of_the_directories_above_it(stores, mount, tmp_path):
    """The path through the bind mount does not have the directories that the store is in."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    ok("mount", "--bind", stores / "a.zarr", elsewhere)
    with contextlib.ExitStack() as ends:
        ends.callback(force_away, elsewhere)
        outer = mount(stores, *ARGS)
        refused(elsewhere, tmp_path / "no", outer)
        outer.unmount()
        inner = mount(elsewhere, *ARGS)
        refused(stores, tmp_path / "no", inner)
        refused(stores / "a.zarr", tmp_path / "no", inner)
        mount(stores / "b.zarr", *ARGS).unmount()
        inner.unmount()


@pytest.fixture
def journal(stores, mount):
    """A killed writer of the directory of stores has left a chunk of one of them in its journal."""
    for _ in range(50):
        outer = mount(stores, *ARGS)
        (outer.path / "a.zarr/c/1").write_bytes(np.full(8, 7).tobytes())
        outer.kill()
        force_away(outer.path)
        # On a slow machine, the shard was written already.
        if any((stores / ".zarr-mount").glob("journal/*.journal")):
            return
        zarr.open_array(str(stores / "a.zarr"))[...] = 1
    pytest.fail("nothing was left")


def test_chunks_left_by_a_killed_writer_of_the_directory_are_found_by_its_store(journal, stores, mount):
    for view in ("keys", "chunks", "arrays"):
        for store in (stores, stores / "a.zarr"):
            m = mount(store, "--view", view)
            assert "1 chunk waits in a journal" in m.said, (view, store, m.said)
            m.unmount()
    assert "nothing was left" in run(BINARY, "--recover", stores / "b.zarr").stdout
    done = run(BINARY, "--recover", stores / "a.zarr")
    assert done.returncode == 0 and "1 chunk saved" in done.stdout, done
    np.testing.assert_array_equal(zarr.open_array(str(stores / "a.zarr"), mode="r")[8:16], 7)
    assert "nothing was left" in run(BINARY, "--recover", stores).stdout


def test_chunks_left_by_a_killed_writer_of_a_store_are_logged_when_it_is_listed(journal, stores, mount):
    """The directory of stores is not searched, because there may be many."""
    (stores / ".zarr-mount").rename(stores / "b.zarr/.zarr-mount")
    m = mount(stores, *ARGS)
    assert "c" in os.listdir(m.path / "b.zarr")
    assert "b.zarr: a mount of this directory alone has left" in m.log_text()
