"""Directories of stores in a bucket: zip files, OME-Zarr in one file and sets of references are read there, and a listing opens no zip file."""
import json
import os
import shutil
import subprocess
import zipfile

import numpy as np
import pytest
import zarr

from support import remote_samples
from support.mounting import BINARY, ok
from support.remote_fault_server import FaultServer
from support.remote_samples import BUCKET, attempt, chunk, mounted
from test_remote_requests import LATE, Asked

VALUES = np.arange(24, dtype="<u2").reshape(4, 6)
ARRAY = {"zarr_format": 2, "shape": [4, 6], "chunks": [2, 6], "dtype": "<u2", "compressor": None, "filters": None, "order": "C", "fill_value": 0}
REFS = {".zgroup": '{"zarr_format": 2}', "t/.zarray": json.dumps(ARRAY)} | {f"t/{i}.0": ["data.bin", 24 * i, 24] for i in range(2)}


def pack(folder, path, below=""):
    """The chunks of `plain` come first, so that they are not among the last bytes."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    with zipfile.ZipFile(path, "w") as packed:
        for file in sorted(files, key=lambda file: ("plain" not in file.parts, file)):
            packed.write(file, below + file.relative_to(folder).as_posix())


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """The bucket `bucket` with a directory `d` of stores."""
    root = tmp_path_factory.mktemp("root")
    sample = remote_samples.write(tmp_path_factory.mktemp("sample"), consolidate=True)
    folder = root / BUCKET / "d"
    (folder / "deep").mkdir(parents=True)
    for name in ("plain", "zarr.json", "hole"):
        copy = shutil.copytree if (sample / name).is_dir() else shutil.copy
        copy(sample / name, (folder / "p.zarr").mkdir(exist_ok=True) or folder / "p.zarr" / name)
    pack(sample, folder / "a.zarr.zip", below="a.zarr/")
    pack(sample, folder / "deep" / "image.ozx")
    zarr.save_array(zarr.storage.ZipStore(folder / "array.zip", mode="w"), np.arange(5))
    (folder / "data.bin").write_bytes(VALUES.tobytes())
    # A set that is longer than the part of it that is looked at.
    long = {f"u/{i}": ["none.bin", i, 1] for i in range(4000)}
    (folder / "refs.json").write_text(json.dumps({"version": 1, "refs": REFS | long}))
    (folder / "small.json").write_text(json.dumps(REFS))
    subprocess.run(["zstd", "-q", folder / "small.json"], check=True)
    for n in range(5):
        (folder / f"notes{n}.json").write_text(json.dumps({"n": n}))
    (folder / "text.zip").write_bytes(100 * b"no zip file")
    remote_samples.age(root)
    return root


@pytest.fixture
def server(root):
    with FaultServer(root, "s3") as server:
        yield server


DIRECTORIES = {"p.zarr", "a.zarr.zip", "array.zip", "deep", "refs.json", "small.json", "small.json.zst", "text.zip"}


def test_each_store_is_a_directory(server, mount):
    made = mounted(mount, server, "--view", "chunks,arrays", "--files", "npy,raw", "--sidecar", "no", path="d")
    assert made.said == ""
    kinds = {entry.name: entry.is_dir() for entry in os.scandir(made.path / "chunks")}
    assert {name for name, is_dir in kinds.items() if is_dir} == DIRECTORIES
    assert {name for name, is_dir in kinds.items() if not is_dir} == {"data.bin", *(f"notes{n}.json" for n in range(5))}
    for store in ("p.zarr", "a.zarr.zip", "deep/image.ozx"):
        assert attempt(made.path / "chunks" / store / "plain" / "c" / "2") == chunk("plain", 2), store
        assert attempt(made.path / "arrays" / store / "plain.raw", 4096, 4096) == chunk("plain", 1), store
    for store in ("refs.json", "small.json", "small.json.zst"):
        assert (np.load(made.path / "arrays" / store / "t.npy") == VALUES).all(), store
        assert (zarr.open_array(made.path / "chunks" / store / "t", mode="r")[...] == VALUES).all(), store
    for view in ("chunks", "arrays"):
        assert attempt(made.path / view / "text.zip" / "zarr.json") == "EIO"
    assert "d/text.zip" not in made.log_text() and "text.zip: this is no zip file" in made.log_text()
    # It is an array, which is known as soon as it was looked up.
    assert np.load(made.path / "arrays" / "array.zip.npy").tolist() == [0, 1, 2, 3, 4]
    assert "array.zip.npy" in os.listdir(made.path / "arrays") and "array.zip" not in os.listdir(made.path / "arrays")
    made.unmount()


def test_files_are_files_in_the_keys_view(server, root, mount):
    made = mounted(mount, server, "--view", "keys", path="d")
    for name in ("a.zarr.zip", "refs.json", "text.zip"):
        assert attempt(made.path / name) == (root / BUCKET / "d" / name).read_bytes(), name
    made.unmount()


@pytest.mark.parametrize("view", ["chunks", "arrays"])
def test_a_listing_opens_no_zip_file(view, server, mount):
    """A listing takes one round trip, and another one for the first bytes of all JSON files and for the documents of nodes."""
    server.rules(LATE)
    made = mounted(mount, server, "--view", view, path="d")
    with Asked(server) as asked:
        names = set(os.listdir(made.path))
    assert DIRECTORIES <= names
    assert not [r for r in asked.told if ".zip" in r[1]], asked.told
    looked = [r for r in asked.requests if r["method"] == "GET" and ".json" in r["key"] and r["status"] != 404]
    looked = [r for r in looked if not r["key"].endswith(("zarr.json", "attributes.json"))]
    assert len(looked) == 8 and len({r["key"] for r in looked}) == 8 and max(r["bytes"] for r in looked) <= 32 << 10, asked.told
    # A directory without documents is looked for once more.
    assert asked.rounds <= {"chunks": 2, "arrays": 4}[view], asked.told
    # The mount remembers what each version of a file is, and reads no file again.
    with Asked(server) as asked:
        assert {entry.name for entry in os.scandir(made.path)} == names
    assert not [r for r in asked.told if r[0] == "GET"], asked.told
    made.unmount()


@pytest.mark.parametrize("name", ["a.zarr.zip", "deep/image.ozx"])
def test_requests_of_a_zip_file(name, server, mount):
    """The last bytes of the file take one request, and each entry another one. A file that was not listed before takes no further requests."""
    made = mounted(mount, server, "--view", "chunks", path="d")
    os.listdir(made.path)
    with Asked(server) as asked:
        assert (made.path / name / "plain").is_dir()
    [opened] = [r for r in asked.requests if r["key"].endswith(name)]
    assert opened["method"] == "GET" and opened["bytes"] == 65557
    assert opened["range"].startswith("bytes=-") == (name != "a.zarr.zip")
    os.stat(made.path / name / "plain" / "zarr.json")
    with Asked(server) as asked:
        assert attempt(made.path / name / "plain" / "c" / "2") == chunk("plain", 2)
    assert len(asked) == 1 and asked.requests[0]["bytes"] <= len(chunk("plain", 2)) + 512, asked.told
    with Asked(server) as asked:
        assert attempt(made.path / "none.zip") == "ENOENT"
    assert len(asked) <= 3, asked.told
    made.unmount()


def test_requests_of_a_set_of_references(server, mount):
    made = mounted(mount, server, "--view", "chunks", path="d")
    os.listdir(made.path)
    with Asked(server) as asked:
        assert attempt(made.path / "refs.json" / "t" / "1.0") == VALUES[2:].tobytes()
    # The set, which has the document of the array as well; and the chunk.
    assert [r[:2] for r in asked.told] == [("GET", "bucket/d/refs.json"), ("GET", "bucket/d/data.bin")], asked.told
    made.unmount()


def test_a_hierarchy_is_not_looked_into(root, mount, tmp_path):
    """A group has no children that its store does not have."""
    folder = tmp_path / BUCKET / "d"
    shutil.copytree(root / BUCKET / "d", folder)
    (folder / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
    remote_samples.age(tmp_path)
    with FaultServer(tmp_path, "s3") as server:
        made = mounted(mount, server, "--view", "chunks", path="d")
        with Asked(server) as asked:
            kinds = {entry.name: entry.is_dir() for entry in os.scandir(made.path)}
        assert {name for name, is_dir in kinds.items() if is_dir} == {"p.zarr", "deep"}
        assert [r[0] for r in asked.told] == ["LIST"], asked.told
        assert attempt(made.path / "a.zarr.zip") == (folder / "a.zarr.zip").read_bytes()
        made.unmount()


def test_info_lists_the_nodes(server):
    url, more, env = remote_samples.store(server, "d")
    paths = {node["path"] for node in json.loads(ok(BINARY, "--info", "--json", *more, url, env=os.environ | env))}
    assert {"p.zarr/plain", "a.zarr.zip/plain", "deep/image.ozx/big", "array.zip", "refs.json/t", "small.json.zst/t"} <= paths


@pytest.mark.parametrize("kind", ["http", "s3"])
def test_steps_into_a_zip_file(kind, root, mount):
    with FaultServer(root, kind) as server:
        url, more, env = remote_samples.store(server, "d/a.zarr.zip")
        for step in ("|zip:a.zarr", "|zip:", "|zip:a.zarr|zarr3:"):
            made = mount(url + step, *more, "--view", "chunks", env=os.environ | env)
            assert attempt(made.path / "plain" / "c" / "1") == chunk("plain", 1), step
            made.unmount()
        made = mount(f"zip://a.zarr/plain::{url}", *more, "--view", "arrays", "--files", "raw", env=os.environ | env)
        assert attempt(made.path / "plain.raw", 0, 4096) == chunk("plain", 0)
        made.unmount()
