"""A directory of stores of every form: directories, zip files, OME-Zarr in one file, and sets of references in JSON and Parquet."""
import errno
import json
import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest
import zarr

from support import mounting
from support.mounting import BINARY, ok, run

LAZY = Path(__file__).parents[2] / "support" / "references" / "lazy"
VALUES = np.arange(24, dtype="<u2").reshape(4, 6)
OTHER_VALUES = VALUES + 1000
GROUP = {"zarr_format": 2}
ARRAY = GROUP | {"shape": [4, 6], "chunks": [2, 6], "dtype": "<u2", "compressor": None, "filters": None, "order": "C", "fill_value": 0}


def references(target="data.bin"):
    """A set with the array `t`, whose chunks are behind each other in `target`."""
    refs = {".zgroup": json.dumps(GROUP), "t/.zarray": json.dumps(ARRAY)}
    return {"version": 1, "refs": refs | {f"t/{i}.0": [target, 24 * i, 24] for i in range(2)}}


def write_store(folder, values=VALUES):
    zarr.open_group(str(folder), mode="w").create_array("t", shape=values.shape, chunks=(2, 6), dtype=values.dtype)[...] = values
    return folder


def pack(folder, path, below="", comment=b""):
    """A zip file of what is in `folder`, with its metadata documents first."""
    files = sorted((file for file in folder.rglob("*") if file.is_file()), key=lambda file: (file.name != "zarr.json", len(file.parts), file))
    with zipfile.ZipFile(path, "w") as packed:
        for file in files:
            packed.write(file, below + file.relative_to(folder).as_posix())
        packed.comment = comment
    return path


def write_lazy(path):
    """The set in Parquet, and its targets."""
    shutil.copytree(LAZY, path)
    (path.parent / "data").mkdir(exist_ok=True)
    for name, content in {"a": bytes(range(100, 120)), "b": bytes(range(4)), "c": bytes(range(50, 60))}.items():
        (path.parent / "data" / name).write_bytes(content)


def write_all(root):
    """Stores of every form; the array `t` is in all but the one in Parquet."""
    (root / "more").mkdir(parents=True)
    plain = write_store(root / "plain.zarr")
    pack(plain, root / "a.zarr.zip", below="a.zarr/")
    pack(plain, root / "image.ozx", comment=b'{"ome": {"version": "0.5"}}\0')
    (root / "data.bin").write_bytes(VALUES.tobytes())
    (root / "refs.json").write_text(json.dumps(references()))
    # Its target lies beside the set, and not at the root.
    (root / "more" / "data.bin").write_bytes(OTHER_VALUES.tobytes())
    (root / "more" / "deep.json").write_text(json.dumps(references()["refs"]))
    subprocess.run(["zstd", "-q", "--rm", root / "more" / "deep.json"], check=True)
    write_lazy(root / "lazy.parq")
    (root / "notes.json").write_text('{"version": 1, "title": "no set"}')
    with zipfile.ZipFile(root / "notes.zip", "w") as packed:
        packed.writestr("readme", "no Zarr")
    return root


@pytest.fixture
def stores(tmp_path):
    return write_all(tmp_path / "stores")


ARRAYS = {"plain.zarr": VALUES, "a.zarr.zip": VALUES, "image.ozx": VALUES, "refs.json": VALUES, "more/deep.json.zst": OTHER_VALUES}


def test_each_store_is_a_directory_in_chunks_and_arrays(mount, stores):
    made = mount(stores, "--view", "chunks,arrays", "--files", "npy,nc", "--sidecar", "no")
    assert made.said == ""
    for store, values in ARRAYS.items():
        assert (made.path / "chunks" / store).is_dir()
        assert (zarr.open_array(made.path / "chunks" / store / "t", mode="r")[...] == values).all(), store
        assert (np.load(made.path / "arrays" / store / "t.npy") == values).all(), store
    assert (made.path / "arrays/image.ozx/image.nc").is_file() and (made.path / "arrays/a.zarr.zip/a.nc").is_file()
    assert np.load(made.path / "arrays/lazy.parq/s.npy") == 53
    assert zarr.open_array(made.path / "chunks/lazy.parq/x", mode="r")[0].tolist() == [110, 111, *b"ab", 7]
    kinds = {entry.name: entry.is_dir() for entry in os.scandir(made.path / "chunks")}
    assert kinds == {"plain.zarr": True, "a.zarr.zip": True, "image.ozx": True, "refs.json": True, "lazy.parq": True, "more": True,
                     "data": True, "data.bin": False, "notes.json": False, "notes.zip": False}
    shown = {entry.name for entry in os.scandir(made.path / "arrays")}
    assert shown == {name for name, is_dir in kinds.items() if is_dir}


def test_files_are_files_in_the_keys_view(mount, stores):
    alone, beside = mount(stores), mount(stores, "--view", "keys,chunks")
    for keys in (alone.path, beside.path / "keys"):
        for name in ("a.zarr.zip", "image.ozx", "refs.json", "notes.json"):
            assert (keys / name).read_bytes() == (stores / name).read_bytes(), name
        # A directory that is a set is the store that it describes.
        assert sorted(os.listdir(keys / "lazy.parq" / "x")) == [".zarray", "0.0", "0.1", "1.0", "1.2"]
        assert zarr.open_array(keys / "lazy.parq" / "x", mode="r")[0].tolist() == [110, 111, *b"ab", 7]


def test_all_of_it_is_only_read(mount, stores):
    made = mount(stores, "--view", "chunks")
    for name in ("a.zarr.zip", "refs.json", "lazy.parq"):
        with pytest.raises(OSError) as raised:
            (made.path / name / "new").write_text("new")
        assert raised.value.errno == errno.EROFS
    made.unmount()
    written = mount(stores, "--view", "chunks", "--rw")
    assert (written.path / "refs.json").is_file() and (written.path / "a.zarr.zip").is_file()
    assert ".zmetadata" in os.listdir(written.path / "lazy.parq")


def test_targets_elsewhere_need_the_option(mount, stores, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "data.bin").write_bytes(VALUES.tobytes())
    for name, target in {"above": "../elsewhere/data.bin", "absolute": str(tmp_path / "elsewhere/data.bin")}.items():
        (stores / f"{name}.json").write_text(json.dumps(references(target)))
    refused = mount(stores, "--view", "arrays")
    for name in ("above", "absolute"):
        with pytest.raises(OSError) as raised:
            (refused.path / f"{name}.json" / "t.npy").read_bytes()
        assert raised.value.errno == errno.EACCES
    assert f"--allow-refs {tmp_path}/elsewhere allows it" in refused.log_text()
    allowed = mount(stores, "--view", "arrays", "--allow-refs", tmp_path / "elsewhere")
    for name in ("above", "absolute"):
        assert (np.load(allowed.path / f"{name}.json" / "t.npy") == VALUES).all()


@pytest.mark.parametrize("view", ["chunks", "arrays"])
def test_damaged_sets_are_errors_of_their_own(mount, stores, view):
    whole = (stores / "refs.json").read_text()
    (stores / "cut.json").write_text(whole[:-20])
    (stores / "lazy.parq" / ".zmetadata").write_text('{"metadata": 1, "record_size": 10}')
    made = mount(stores, "--view", view)
    assert {"cut.json", "refs.json"} <= set(os.listdir(made.path))
    for name in ("cut.json", "lazy.parq"):
        with pytest.raises(OSError) as raised:
            os.listdir(made.path / name)
        assert raised.value.errno == errno.EIO
    assert os.listdir(made.path / "refs.json") and made.alive()
    assert "cut.json: not read as a set of references" in made.log_text()


def test_a_set_that_is_replaced_is_noticed(mount, stores):
    made = mount(stores, "--view", "arrays", "--ttl", "0")
    assert (np.load(made.path / "refs.json" / "t.npy") == VALUES).all()
    (stores / "new").write_text(json.dumps(references("more/data.bin")))
    os.replace(stores / "new", stores / "refs.json")
    mounting.until(lambda: (np.load(made.path / "refs.json" / "t.npy") == OTHER_VALUES).all(), "the new set")
    (stores / "new").write_text("[]")
    os.replace(stores / "new", stores / "refs.json")
    mounting.until(lambda: not (made.path / "refs.json").exists(), "no set")
    (stores / "late.json").write_text(json.dumps(references()))
    assert "late.json" in os.listdir(made.path)


@pytest.mark.root
def test_chunks_have_the_rights_of_the_set_and_its_targets(mount, stores):
    for path in [stores, stores.parent]:
        os.chmod(path, 0o755)
    os.chmod(stores / "refs.json", 0o640)
    os.chmod(stores / "more", 0o700)
    os.chmod(stores / "data.bin", 0o604)
    made = mount(stores, "--view", "chunks,arrays", "-o", "allow_other")
    assert os.stat(made.path / "chunks/refs.json").st_mode & 0o777 == 0o550
    assert os.stat(made.path / "chunks/refs.json/t/.zarray").st_mode & 0o777 == 0o440
    assert os.stat(made.path / "chunks/refs.json/t/0.0").st_mode & 0o077 == 0
    # Users share the pages of a whole array, so it has no chunk that some of its readers may not read.
    with pytest.raises(PermissionError):
        (made.path / "arrays/refs.json/t.npy").read_bytes()
    assert os.stat(made.path / "arrays/more/deep.json.zst/t.npy").st_mode & 0o077 == 0


def test_info_lists_their_nodes(stores):
    paths = {node["path"] for node in json.loads(ok(BINARY, "--info", "--json", stores))}
    assert {f"{store}/t" for store in ARRAYS} | {"lazy.parq/x", "lazy.parq/s"} <= paths
    assert not any("notes" in path for path in paths)
    assert "= 1007\n" in ok(BINARY, "--info", "--at", "1,1", stores, "more/deep.json.zst/t")


def test_info_says_what_a_zip_file_is(stores):
    size = (stores / "image.ozx").stat().st_size
    first = ok(BINARY, "--info", stores / "image.ozx").splitlines()[0]
    assert first == f"{stores}/image.ozx: a zip file of {size} bytes, with OME-Zarr 0.5"
    size = (stores / "a.zarr.zip").stat().st_size
    assert ok(BINARY, "--info", stores / "a.zarr.zip").splitlines()[0] == f"{stores}/a.zarr.zip: a zip file of {size} bytes"


def test_hostile_comments_and_names(mount, tmp_path):
    plain = write_store(tmp_path / "plain")
    for comment in (b'{"ome": {"version": "\\u001b[31m"}}', b'{"ome": {"version": 5}}', b"{", b"\xff" * 0xffff):
        pack(plain, tmp_path / "a.ozx", comment=comment)
        first = ok(BINARY, "--info", tmp_path / "a.ozx").splitlines()[0]
        assert first.endswith(" bytes"), first
    folder = tmp_path / "stores"
    folder.mkdir()
    names = ["a\nb.json", "~.zip", ".hidden.json", "%2e.zip", "x.json.json"]
    for name in names:
        if name.endswith(".zip"):
            shutil.copy(tmp_path / "a.ozx", folder / name)
        else:
            (folder / name).write_text(json.dumps(references()))
    (folder / "data.bin").write_bytes(VALUES.tobytes())
    made = mount(folder, "--view", "arrays", "--sidecar", "no")
    assert sorted(os.listdir(made.path)) == sorted(names)
    for name in names:
        assert (np.load(made.path / name / "t.npy") == VALUES).all(), name


class TestSteps:
    """Steps behind a `|`."""

    @pytest.fixture
    def nested(self, tmp_path):
        """A zip file with two stores, and with a zip file that has one."""
        inner = tmp_path / "inner"
        write_store(inner / "one.zarr")
        write_store(inner / "deep" / "two.zarr", OTHER_VALUES)
        pack(inner / "one.zarr", inner / "packed.zip")
        return pack(inner, tmp_path / "outer.zip")

    @pytest.mark.parametrize("step, values", [("one.zarr", VALUES), ("deep/two.zarr/", OTHER_VALUES), ("packed.zip|zip:", VALUES),
                                              ("packed.zip|zip:|zarr3:", VALUES), ("deep|zarr3:two.zarr", OTHER_VALUES)])
    def test_a_part_of_a_zip_file(self, mount, nested, step, values):
        made = mount(f"{nested}|zip:{step}", "--view", "arrays")
        assert sorted(os.listdir(made.path)) == ["t.json", "t.npy"] and (np.load(made.path / "t.npy") == values).all()

    def test_the_whole_zip_file(self, mount, nested):
        """The step `|zip:` opens the zip file as no step does: the hierarchy in its only directory is shown."""
        made = mount(f"{nested}|zip:", "--view", "arrays", "--sidecar", "no")
        assert os.listdir(made.path) == ["t.npy"]

    @pytest.mark.parametrize("chain", ["zip://deep/two.zarr::{}", "zip://deep/two.zarr::file://{}"])
    def test_chains_of_fsspec(self, mount, nested, chain):
        made = mount(chain.format(nested), "--view", "arrays")
        assert (np.load(made.path / "t.npy") == OTHER_VALUES).all()

    @pytest.mark.parametrize("step, said", [("none", "has no directory none"), ("one.zarr/zarr.json", "this is a file"),
                                            ("one.zarr/zarr.json|zip:", "and this is no zip file"), ("../x", "not a valid key")])
    def test_what_is_not_there(self, nested, tmp_path, step, said):
        done = run(BINARY, "--info", f"{nested}|zip:{step}")
        assert done.returncode == 1 and said in done.stderr and done.stderr.count("\n") == 1, done.stderr

    def test_a_directory_is_no_zip_file(self, tmp_path):
        write_store(tmp_path / "s.zarr")
        done = run(BINARY, "--info", f"{tmp_path}/s.zarr|zip:t")
        assert done.returncode == 1 and "and this is no zip file" in done.stderr, done.stderr
