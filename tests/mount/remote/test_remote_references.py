"""Sets of references on servers, and targets there: what is read of them, with which credentials, and in how many requests."""
import errno
import json
import os
import time

import numpy as np
import pytest

from support import remote_samples, remote_servers
from support.mounting import until
from support.remote_fault_server import FaultServer
from support.remote_samples import BUCKET, attempt, mounted

DATA = np.arange(24, dtype="<i4").reshape(4, 6)

def chunk(i, j):
    return np.ascontiguousarray(DATA[2 * i:2 * i + 2, 3 * j:3 * j + 3]).tobytes()


def references(address):
    """References of the array `x`, whose rows are at `address`."""
    array = {"zarr_format": 2, "shape": [4, 6], "chunks": [2, 3], "dtype": "<i4", "compressor": None, "filters": None, "order": "C", "fill_value": -1}
    refs = {".zgroup": {"zarr_format": 2}, "x/.zarray": array}
    return refs | {f"x/{i}.{j}": [address.format(i=i), 100 + 24 * j, 24] for i in range(2) for j in range(2)}


@pytest.fixture
def root(tmp_path):
    """A bucket with the rows of an array in `sets/data` and `other`, each after 100 other bytes, and a set of references to `sets/data`."""
    root = tmp_path / "root"
    for folder in ("sets/data", "other"):
        (root / BUCKET / folder).mkdir(parents=True)
        for i in range(2):
            (root / BUCKET / folder / f"row{i}").write_bytes(b"x" * 100 + chunk(i, 0) + chunk(i, 1))
    (root / BUCKET / "sets" / "set.json").write_text(json.dumps(references("data/row{i}")))
    os.chmod(tmp_path, 0o755)
    remote_samples.age(root)
    return root


def local_set(tmp_path, address):
    path = tmp_path / "set.json"
    path.write_text(json.dumps(references(address)))
    return path


def options(server):
    return ["--endpoint", server.url, "--region", "us-east-1"]


def signed(requests):
    return {"authorization" in request["headers"] for request in requests}


@pytest.mark.parametrize("kind", ["http", "s3"])
def test_paths_of_a_set_on_a_server_begin_there(kind, root, mount):
    with FaultServer(root, kind) as server:
        made = mounted(mount, server, "--view", "arrays", path="sets/set.json")
        assert (np.load(made.path / "x.npy") == DATA).all()
        made.unmount()


def test_objects_of_other_buckets_need_the_option_and_are_read_unsigned(root, mount, tmp_path):
    (root / "second").mkdir()
    (root / BUCKET / "sets" / "far.json").write_text(json.dumps(references("s3://second/row{i}")))
    for i in range(2):
        os.rename(root / BUCKET / "other" / f"row{i}", root / "second" / f"row{i}")
    with FaultServer(root, "s3") as server:
        made = mounted(mount, server, path="sets/far.json")
        assert attempt(made.path / "x" / "0.0") == "EACCES"
        assert "--allow-refs s3://second/" in made.log_text()
        made.unmount()
        made = mounted(mount, server, "--allow-refs", "s3://second/", "--view", "arrays", path="sets/far.json")
        server.clear()
        assert (np.load(made.path / "x.npy") == DATA).all()
        assert signed(server.requests(key="second/")) == {False}
        made.unmount()
        made = mounted(mount, server, path="sets/set.json")
        server.clear()
        assert attempt(made.path / "x" / "0.0") == chunk(0, 0)
        assert signed(server.requests(key="sets/data")) == {True}
        made.unmount()


@pytest.mark.parametrize("start", ["moto", "moto_as_google", *(pytest.param(n, marks=pytest.mark.heavy) for n in ("fake_gcs", "azurite"))])
def test_targets_in_each_kind_of_object_store(start, root, mount, tmp_path):
    with getattr(remote_servers, start)(root, tmp_path) as server:
        place = server.url(f"{BUCKET}/other")
        path = local_set(tmp_path, f"{place}/row{{i}}")
        env = remote_servers.clean_environment(**server.env)
        args = [argument for argument in server.args if argument != "--anonymous"]
        assert attempt(mount(path, *args, env=env).path / "x" / "0.0") == "EACCES"
        made = mount(path, *args, "--allow-refs", place, "--view", "arrays", env=env)
        assert (np.load(made.path / "x.npy") == DATA).all()


def test_object_stores_do_not_send_readers_elsewhere(root, mount, tmp_path):
    path = local_set(tmp_path, f"s3://{BUCKET}/other/row{{i}}")
    with FaultServer(root, "s3") as server, FaultServer(root) as private:
        server.rules({"fault": "redirect", "location": f"{private.url}/{{key}}"})
        made = mount(path, *options(server), "--allow-refs", f"s3://{BUCKET}/", "--timeout", "5", env=remote_servers.clean_environment())
        assert attempt(made.path / "x" / "0.0") in ("EIO", "EACCES")
        assert private.requests() == []


@pytest.mark.parametrize("kind", ["http", "s3"])
def test_a_chunk_is_one_request(kind, root, mount, tmp_path):
    with FaultServer(root, kind) as server:
        place = f"s3://{BUCKET}/other" if kind == "s3" else f"{server.url}/{BUCKET}/other"
        made = mount(local_set(tmp_path, f"{place}/row{{i}}"), *options(server), "--allow-refs", place, "--view", "keys,chunks",
                     "--readahead", "0", env=remote_servers.clean_environment())
        server.clear()
        assert sorted(os.listdir(made.path / "keys" / "x")) == [".zarray", "0.0", "0.1", "1.0", "1.1"]
        assert os.stat(made.path / "keys" / "x" / "0.0").st_size == 24
        assert server.requests() == []
        for path, range, is_first in [("keys/x/0.0", "bytes=100-123", True), ("keys/x/0.1", "bytes=124-147", False),
                                      ("chunks/x/1.1", "bytes=124-147", True), ("chunks/x/1.0", "bytes=100-123", False)]:
            i, j = map(int, path[-3:].split("."))
            assert attempt(made.path / path) == chunk(i, j)
            asked = server.requests(clear=True)
            told = [(r["method"], r["key"], r["range"], "if-match" in r["headers"]) for r in asked]
            assert told == [("GET", f"{BUCKET}/other/row{i}", range, not is_first)], told
        made.unmount()


@pytest.mark.parametrize("is_near", [True, False], ids=["near", "far"])
@pytest.mark.parametrize("kind", ["http", "s3"])
def test_no_open_file_mixes_two_versions_of_an_object(kind, is_near, root, mount, tmp_path):
    """A version of the object is trusted for a second if the set is beside the object, and for a minute if the set is a local file."""
    old, new = (np.random.default_rng(seed).integers(0, 1 << 32, (4, 1 << 16), "<u4") for seed in (1, 2))
    target, length = root / BUCKET / "sets/data/rows", 1 << 18
    target.write_bytes(old.tobytes())
    remote_samples.age(root)
    with FaultServer(root, kind) as server:
        base = "data/rows" if is_near else f"s3://{BUCKET}/sets/data/rows" if kind == "s3" else f"{server.url}/{BUCKET}/sets/data/rows"
        refs = {key: value | {"shape": list(old.shape), "chunks": [1, 1 << 16], "dtype": "<u4"} if key == "x/.zarray" else value
                for key, value in references("").items() if not key.startswith("x/0") and not key.startswith("x/1")}
        refs |= {f"x/{i}.0": [base, i * length, length] for i in range(4)}
        path = root / BUCKET / "sets/rows.json" if is_near else tmp_path / "rows.json"
        path.write_text(json.dumps(refs))
        remote_samples.age(root)
        args = ["--view", "keys,arrays", "--files", "raw", "--readahead", "0", "--ttl", "1"]
        if is_near:
            made = mounted(mount, server, *args, path="sets/rows.json")
        else:
            made = mount(path, *args, *options(server), "--allow-refs", f"{server.url}/", "--allow-refs", f"s3://{BUCKET}/",
                         env=remote_servers.clean_environment())
        file = os.open(made.path / "arrays/x.raw", os.O_RDONLY)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)
        assert os.pread(file, 4096, 0) == old.tobytes()[:4096]
        target.write_bytes(new.tobytes())
        time.sleep(1.5)  # longer than the time to live
        for row in (2, 3, 2):
            try:
                found = os.pread(file, 4096, row * length)
            except OSError as error:
                assert error.errno == errno.ESTALE
            else:
                assert found == old[row].tobytes()[:4096], "new bytes in a file that gave old ones"
        os.close(file)
        until(lambda: attempt(made.path / "arrays/x.raw") == new.tobytes(), "the new object")
        assert attempt(made.path / "keys/x/1.0") == new[1].tobytes()
        made.unmount()


@pytest.mark.parametrize("kind", ["http", "s3"])
def test_targets_that_end_too_early_or_are_missing(kind, root, mount):
    refs = references("data/row{i}") | {"x/0.0": ["data/row0", 140, 24], "x/0.1": ["data/row0", 1000, 24], "x/1.0": ["data/none", 0, 24]}
    (root / BUCKET / "sets" / "bad.json").write_text(json.dumps(refs))
    remote_samples.age(root)
    with FaultServer(root, kind) as server:
        made = mounted(mount, server, path="sets/bad.json")
        assert [attempt(made.path / "x" / name) for name in ("0.0", "0.1", "1.0", "1.1")] == ["EIO", "EIO", "EIO", chunk(1, 1)]
        log = made.log_text()
        assert "which has 148" in log and "the target of a reference is missing" in log, log
        made.unmount()


@pytest.mark.parametrize("kind", ["http", "s3"])
def test_a_server_without_ranges(kind, root, mount):
    with FaultServer(root, kind) as server:
        server.rules({"fault": "whole", "key": "*/row*"})
        made = mounted(mount, server, "--view", "arrays", path="sets/set.json")
        assert (np.load(made.path / "x.npy") == DATA).all()
        made.unmount()
