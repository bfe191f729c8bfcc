"""Zip stores in a directory of stores: directories in the chunks and arrays views, files in the keys view."""
import errno
import json
import os
import shutil
import zipfile

import numpy as np
import pytest
import zarr

from support.mounting import BINARY, ok, run

VALUES = np.arange(60, dtype="<i4").reshape(6, 10)
GROUP = '{"zarr_format":3,"node_type":"group"}'


def write_zip(path, values=VALUES, folder=""):
    """A zip file, at `path` from one moment to the next, with an array `t` in a group."""
    store = path.with_suffix(".tmp.zarr")
    zarr.open_group(str(store), mode="w").create_array("t", shape=values.shape, chunks=(4, 4), dtype="i4")[...] = values
    with zipfile.ZipFile(path.with_suffix(".new"), "w") as packed:
        for base, _, names in os.walk(store):
            for name in names:
                file = os.path.join(base, name)
                packed.write(file, os.path.join(folder, os.path.relpath(file, store)))
    shutil.rmtree(store)
    os.replace(path.with_suffix(".new"), path)


@pytest.fixture
def stores(tmp_path):
    root = tmp_path / "stores"
    (root / "more" / "deep").mkdir(parents=True)
    write_zip(root / "a.zip")
    write_zip(root / "more" / "deep" / "b.zip", VALUES + 100, folder="b.zarr")
    with zipfile.ZipFile(root / "notes.zip", "w") as packed:
        packed.writestr("readme", "no Zarr")
    (root / "c.zarr").mkdir()
    (root / "c.zarr" / "zarr.json").write_text(GROUP)
    # A group has no children that its store does not have.
    write_zip(root / "c.zarr" / "in_group.zip")
    return root


def test_the_chunks_view(mount, stores):
    made = mount(stores, "--view", "chunks")
    assert made.said == ""
    assert sorted(os.listdir(made.path)) == ["a.zip", "c.zarr", "more", "notes.zip"]
    kinds = {entry.name: entry.is_dir() for entry in os.scandir(made.path)}
    assert kinds == {"a.zip": True, "c.zarr": True, "more": True, "notes.zip": False}
    assert (zarr.open_array(made.path / "a.zip" / "t", mode="r")[...] == VALUES).all()
    deep = zarr.open_group(made.path / "more/deep/b.zip", mode="r")
    assert (deep["t"][...] == VALUES + 100).all()
    assert (made.path / "c.zarr/in_group.zip").is_file()
    assert (made.path / "notes.zip").read_bytes() == (stores / "notes.zip").read_bytes()


def test_the_arrays_view(mount, stores):
    made = mount(stores, "--view", "arrays", "--sidecar", "no")
    found = sorted(str(p.relative_to(made.path)) for p in made.path.rglob("*"))
    assert found == ["a.zip", "a.zip/t.npy", "c.zarr", "more", "more/deep", "more/deep/b.zip", "more/deep/b.zip/t.npy"]
    assert (np.load(made.path / "a.zip/t.npy") == VALUES).all()
    assert (np.load(made.path / "more/deep/b.zip/t@-1.npy") == VALUES[-1] + 100).all()
    assert not (made.path / "notes.zip").exists()
    assert not (made.path / "c.zarr/in_group.zip").exists()


def test_the_keys_view_shows_files_also_beside_the_others(mount, stores):
    alone, beside = mount(stores), mount(stores, "--view", "keys,chunks,arrays")
    for keys in (alone.path, beside.path / "keys"):
        assert (keys / "a.zip").read_bytes() == (stores / "a.zip").read_bytes()
        assert (keys / "more/deep/b.zip").is_file()
    assert (np.load(beside.path / "arrays/a.zip/t.npy") == VALUES).all()
    assert (beside.path / "chunks/a.zip/t/zarr.json").is_file()


def test_a_replaced_zip_file_is_noticed(mount, stores):
    made = mount(stores, "--view", "chunks,arrays", "--ttl", "0")
    file = made.path / "arrays/a.zip/t.npy"
    opened = open(file, "rb")
    assert opened.read(8)[:6] == b"\x93NUMPY"
    write_zip(stores / "a.zip", VALUES * 2)
    assert (np.load(file) == VALUES * 2).all()
    assert (zarr.open_array(made.path / "chunks/a.zip/t", mode="r")[...] == VALUES * 2).all()
    opened.close()
    write_zip(stores / "late.zip", VALUES * 3)
    assert "late.zip" in os.listdir(made.path / "arrays")
    assert (np.load(made.path / "arrays/late.zip/t.npy") == VALUES * 3).all()
    (stores / "a.zip").unlink()
    assert not file.exists() and "a.zip" not in os.listdir(made.path / "chunks")


@pytest.mark.parametrize("view", ["chunks", "arrays"])
def test_damaged_zip_files_leave_the_others_alone(mount, stores, view):
    whole = (stores / "a.zip").read_bytes()
    for at in (10, len(whole) // 2, len(whole) - 1):
        (stores / f"cut{at}.zip").write_bytes(whole[:at])
    (stores / "bombed.zip").write_bytes(whole[:-12] + b"\xff" * 12)
    made = mount(stores, "--view", view)
    os.listdir(made.path)
    for name in ["bombed.zip", f"cut{len(whole) // 2}.zip"]:
        with pytest.raises(OSError) as raised:
            os.listdir(made.path / name)
        assert raised.value.errno == errno.EIO
    assert os.listdir(made.path / "a.zip")
    assert made.alive() and "bombed.zip" in made.log_text()


@pytest.mark.root
def test_entries_of_a_zip_file_have_its_rights(mount, stores):
    os.chmod(stores, 0o755)
    os.chmod(stores / "a.zip", 0o640)
    os.chmod(stores / "more", 0o700)
    made = mount(stores, "--view", "chunks,arrays", "-o", "allow_other")
    for path in ["chunks/a.zip", "arrays/a.zip"]:
        assert os.stat(made.path / path).st_mode & 0o777 == 0o550
    for path in ["chunks/a.zip/t/zarr.json", "chunks/a.zip/t/c/0/0", "arrays/a.zip/t.npy"]:
        assert os.stat(made.path / path).st_mode & 0o777 == 0o440, path
    assert os.stat(made.path / "arrays/more/deep/b.zip/t.npy").st_mode & 0o077 == 0


def test_info_describes_their_contents(stores):
    told = ok(BINARY, "--info", stores)
    paths = {node["path"] for node in json.loads(ok(BINARY, "--info", "--json", stores))}
    assert {"a.zip/t", "more/deep/b.zip/t"} <= paths
    assert "\n  a.zip " in told and "\n    deep " in told and "\n      b.zip " in told
    assert "in_group" not in told and "notes" not in told
    assert "= 11\n" in ok(BINARY, "--info", "--at", "1,1", stores, "a.zip/t")


def test_only_zip_files_are_found(mount, tmp_path):
    write_zip(tmp_path / "a.zip")
    (tmp_path / "m").mkdir()
    folder = tmp_path / "stores"
    folder.mkdir()
    os.rename(tmp_path / "a.zip", folder / "a.zip")
    assert mount(folder, "--view", "arrays").said == ""
    said = mount(folder).said
    assert "no Zarr node" in said and "--view chunks" in said
    assert run(BINARY, "--info", folder).returncode == 0
