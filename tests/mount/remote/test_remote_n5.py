"""Containers of N5 on servers and in zip files: the values of every array, and the nodes of a named format."""
import errno
import json
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest

from support import corpus
from support.array_corpus import check
from support.remote_fault_server import FaultServer
from support.remote_samples import BUCKET, mounted

# Only in one of them, the groups have documents.
STORES = {name: corpus.stores()[name] for name in ("ts_n5.n5", "zp2_n5.n5")}
TYPES = ("/int16", "/float64")
VIEW = ("--view", "arrays", "--files", "npy,raw")


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A bucket with the containers, and with two zip files of one of them: it is at the root of the first, and in a directory of the second."""
    root = tmp_path_factory.mktemp("n5")
    for name, store in STORES.items():
        shutil.copytree(store.path, root / BUCKET / name)
    for name, below in [("own.zip", ""), ("directory.zip", "some.n5/")]:
        pack(STORES["ts_n5.n5"].path, root / BUCKET / name, below)
    return root


def pack(folder, path, below):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for file in sorted(Path(folder).rglob("*")):
            if file.is_file():
                packed.write(file, below + file.relative_to(folder).as_posix())


def faults(shown, store, arrays=None):
    of_type = [array for array in store.arrays if array["path"].endswith(TYPES)]
    found = {array["path"]: check(shown, store, array) for array in arrays or of_type}
    return {path: fault for path, fault in found.items() if fault}


@pytest.mark.parametrize("kind", ["http", "s3"])
@pytest.mark.parametrize("name", STORES)
def test_a_container_on_a_server(mount, root, kind, name):
    store = STORES[name]
    with FaultServer(root, kind) as server:
        made = mounted(mount, server, *VIEW, path=name)
        below = "a/b/c/"
        # This web server does not list directories, so that a group without a document is not found. STORE can still name its arrays.
        has_name = kind == "s3" or (store.path / "a/attributes.json").exists()
        deep = [array for array in store.arrays if array["path"].startswith(below)]
        assert not faults(made.path, store) and not faults(made.path, store, deep if has_name else None)
        made.unmount()
        made = mounted(mount, server, *VIEW, path=f"{name}|n5:{below}volume")
        (volume,) = [{**array, "path": ""} for array in deep if array["path"] == f"{below}volume"]
        assert not faults(made.path, store, [volume])
        made.unmount()


def test_a_document_without_an_answer_is_no_absence(mount, root):
    with FaultServer(root) as server:
        made = mounted(mount, server, *VIEW, "--timeout", "1", path="ts_n5.n5")
        server.rules({"fault": "status", "status": 500, "key": "*/int8/attributes.json"})
        with pytest.raises(OSError) as error:
            (made.path / "raw" / "int8.npy").stat()
        assert error.value.errno == errno.EIO
        server.rules()
        assert np.load(made.path / "raw" / "int8.npy").dtype == np.int8
        made.unmount()


@pytest.mark.parametrize("name", ["own.zip", "directory.zip"])
@pytest.mark.parametrize("kind", ["local", "http", "s3"])
def test_a_container_in_a_zip_file(mount, root, kind, name):
    store = STORES["ts_n5.n5"]
    if kind == "local":
        made = mount(root / BUCKET / name, *VIEW)
        assert not faults(made.path, store)
        made.unmount()
        return
    with FaultServer(root, kind) as server:
        made = mounted(mount, server, *VIEW, path=name)
        assert not faults(made.path, store)
        made.unmount()


@pytest.mark.parametrize("kind", ["http", "s3"])
def test_a_node_is_named_with_its_format(mount, root, kind):
    """Documents of Zarr beside those of N5 count only where their format is named, those of consolidated metadata too."""
    folder = root / BUCKET / f"both of {kind}"
    shutil.copytree(STORES["ts_n5.n5"].path, folder)
    group = {"zarr_format": 3, "node_type": "group", "attributes": {}}
    copies = {"kind": "inline", "must_understand": False, "metadata": {"raw": group}}
    (folder / "zarr.json").write_text(json.dumps({**group, "consolidated_metadata": copies}))
    (folder / "raw/zarr.json").write_text(json.dumps(group))
    with FaultServer(root, kind) as server:
        made = mounted(mount, server, "--view", "arrays,keys", path=f"{folder.name}|n5:raw")
        for array in STORES["ts_n5.n5"].arrays:
            if array["path"].startswith("raw/"):
                inside = {**array, "path": array["path"].removeprefix("raw/")}
                assert np.load(made.path / "arrays" / f"{inside['path']}.npy").shape == tuple(array["shape"])
        assert not (made.path / "keys/zarr.json").exists() and (made.path / "keys/attributes.json").exists()
        made.unmount()
        made = mounted(mount, server, "--view", "arrays,keys", path=f"{folder.name}|zarr3:")
        assert (made.path / "keys/zarr.json").exists() and not (made.path / "keys/attributes.json").exists()
        assert not (made.path / "arrays/raw/int8.npy").exists()
        made.unmount()
