"""Icechunk repositories on servers: what they show, and how many requests that takes."""
import os
import shutil
import time
import urllib.request
from urllib.parse import quote

import numpy as np
import pytest
import zarr

from support import icechunk_repositories as repositories
from support import remote_servers
from support.icechunk_writer import Array, Repository, Virtual
from support.mounting import until
from support.remote_fault_server import FaultServer
from support.remote_samples import BUCKET, age, attempt, mounted

CHUNKS = 10


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "root" / BUCKET
    folder.mkdir(parents=True)
    return repositories.unpack(folder).parent


def check(folder, arrays):
    """Compares the `.npy` files of a mount with values."""
    for path, values in arrays.items():
        shown = np.load(folder / f"{path}.npy")
        assert shown.dtype == values.dtype and np.array_equal(shown, values), path


@pytest.mark.parametrize("kind", ["http", "s3", "az"])
@pytest.mark.parametrize("name", repositories.NAMES)
def test_a_repository_on_a_server(mount, root, kind, name):
    expected = repositories.expected(root / BUCKET)
    arrays = expected[name, "branch.main"]
    with FaultServer(root, kind) as server:
        made = mounted(mount, server, "--view", "arrays,keys", path=name)
        assert f"specification {name[-1]}" in (made.path / ".zarr-mount/snapshot").read_text()
        for path, values in arrays.items():
            assert np.array_equal(np.load(made.path / "arrays" / f"{path}.npy"), values), path
            assert np.array_equal(zarr.open_array(made.path / "keys" / path, mode="r")[...], values), path
        assert "small" not in os.listdir(made.path / "keys")
        made.unmount()
        for reference in ("branch.dev", "tag.T1"):
            made = mounted(mount, server, "--view", "arrays", path=f"{name}|icechunk:@{reference}")
            check(made.path, expected[name, reference])
            made.unmount()


@pytest.mark.parametrize("name", repositories.NAMES)
def test_requests(mount, root, name):
    values = repositories.expected(root / BUCKET)[name, "branch.main"]["t/a"]
    with FaultServer(root, "s3") as server:
        made = mounted(mount, server, "--view", "arrays", path=name)
        asked = server.requests(clear=True)
        # The branch and the documents are asked for at once, then the snapshot.
        snapshots = [request for request in asked if "snapshots/" in request["key"]]
        assert len(snapshots) == 1 and not [request for request in asked if request["method"] == "LIST"], asked
        assert np.array_equal(np.load(made.path / "t/a.npy"), values)
        asked = server.requests(clear=True)
        chunks = [request for request in asked if "chunks/" in request["key"]]
        manifests = [request for request in asked if "manifests/" in request["key"]]
        # Chunks of up to 64 bytes are in the manifest: those with one value.
        assert len(manifests) == 1 and 0 < len(chunks) <= CHUNKS, asked
        # The branch is asked for once more, so that all of the array is known to be of one snapshot.
        assert len(asked) == 2 + len(chunks), asked
        made.unmount()


@pytest.mark.parametrize("name", repositories.NAMES)
def test_a_branch_that_moves_on_a_server(mount, root, name):
    store = root / BUCKET / name
    expected = repositories.expected(root / BUCKET)
    if name == "ice1":
        file, before = store / "refs/branch.main/ref.json", (store / "refs/tag.T1/ref.json").read_bytes()
    else:
        file, before = store / "repo", sorted((store / "overwritten").iterdir())[1].read_bytes()
    after = file.read_bytes()
    (store / "new").write_bytes(before)
    os.replace(store / "new", file)
    with FaultServer(root, "s3") as server:
        made = mounted(mount, server, "--view", "arrays", "--ttl", "1", path=name)
        old, new = expected[name, "tag.T1"]["t/a"], expected[name, "branch.main"]["t/a"]
        assert np.array_equal(np.load(made.path / "t/a.npy"), old)
        (store / "new").write_bytes(after)
        os.replace(store / "new", file)
        server.clear()
        until(lambda: np.array_equal(np.load(made.path / "t/a.npy"), new), "the new snapshot")
        # Chunks that both snapshots have are not fetched again.
        asked = server.requests()
        changed = [request for request in asked if "chunks/" in request["key"]]
        assert len(changed) <= 3, asked
        made.unmount()
    shutil.rmtree(store)


DATA = np.arange(16, dtype="<i4")


class VirtualChunks:
    """A repository `ice` whose arrays have their two chunks in an object: `ice/near 1` or `far/far 1` below `base`, behind 100 bytes."""

    def __init__(self, root, base):
        self.folder, self.base, self.arrays = root / BUCKET, base, {}
        for name, path in (("near", "ice/near 1"), ("far", "far/far 1")):
            (self.folder / path).parent.mkdir(exist_ok=True)
            self.write(path, DATA)
            self.add(name, path)
        age(self.folder)

    def write(self, path, data):
        (self.folder / "new").write_bytes(b"x" * 100 + data.tobytes())
        os.replace(self.folder / "new", self.folder / path)

    def add(self, name, path, **checks):
        chunks = {(at,): Virtual(f"{self.base}/{quote(path)}", 100 + 32 * at, 32, **checks) for at in range(2)}
        self.arrays[name] = Array((16,), (8,), "int32", chunks)

    def commit(self):
        Repository(self.folder / "ice").commit(self.arrays)
        age(self.folder / "ice")


def base_of(server):
    return f"s3://{BUCKET}" if server.kind == "s3" else f"{server.url}/{BUCKET}"


def is_signed(request):
    return "authorization" in {name.lower() for name in request["headers"]}


def attributes(server, path):
    """ETag and time of modification of an object."""
    request = urllib.request.Request(f"{server.url}/{BUCKET}/{quote(path)}", method="HEAD")
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as answer:
        return answer.headers["ETag"], int((server.root / BUCKET / path).stat().st_mtime)


@pytest.mark.parametrize("kind", ["http", "s3"])
def test_virtual_chunks_on_a_server(mount, root, kind):
    with FaultServer(root, kind) as server:
        repository = VirtualChunks(root, base_of(server))
        repository.commit()
        path = mounted(mount, server, "--view", "arrays,keys", path="ice").path
        server.clear()
        assert (np.load(path / "arrays/near.npy") == DATA).all()
        asked = server.requests(clear=True)
        chunks = [request["method"] for request in asked if "near 1" in request["key"]]
        assert chunks == ["GET", "GET"], asked
        assert {is_signed(request) for request in asked} == {kind == "s3"}
        assert attempt(path / "keys/far/c/0") == "EACCES" and (path / "keys/far/c/0").stat().st_size == 32
        assert not server.requests(key="far 1")
        path = mounted(mount, server, "--view", "arrays,keys", "--allow-refs", f"{repository.base}/far/", path="ice").path
        server.clear()
        assert (np.load(path / "arrays/far.npy") == DATA).all()
        asked = server.requests(key="far 1")
        assert {is_signed(request) for request in asked} == {False}


@pytest.mark.parametrize("kind", ["http", "s3"])
def test_virtual_chunks_that_were_changed_on_a_server(mount, root, kind):
    with FaultServer(root, kind) as server:
        repository = VirtualChunks(root, base_of(server))
        etag, modified = attributes(server, "ice/near 1")
        checks = {"tag": {"etag": etag}, "bare": {"etag": etag.strip('"')}, "time": {"modified": modified}, "none": {},
                  "other": {"etag": '"other"'}, "weak": {"etag": f"W/{etag}"}, "earlier": {"modified": modified - 1}}
        for name, check in checks.items():
            repository.add(name, "ice/near 1", **check)
        repository.commit()
        path = mounted(mount, server, "--view", "keys", "--ttl", "1", path="ice").path
        for name in checks:
            is_same = name in ("tag", "bare", "time", "none")
            assert attempt(path / f"{name}/c/1") == (DATA[8:].tobytes() if is_same else "EIO"), name
        repository.write("ice/near 1", DATA + 1)
        time.sleep(1.5)  # longer than the time to live
        for name in checks:
            assert attempt(path / f"{name}/c/0") == ((DATA + 1)[:8].tobytes() if name == "none" else "EIO"), name


@pytest.mark.parametrize("fault", [{"fault": "status", "status": 404}, {"fault": "status", "status": 403}])
def test_virtual_chunks_whose_object_is_not_given(mount, root, fault):
    with FaultServer(root, "s3") as server:
        VirtualChunks(root, base_of(server)).commit()
        path = mounted(mount, server, "--view", "arrays,keys", path="ice").path
        server.rules({**fault, "key": "*near 1"})
        assert attempt(path / "keys/near/c/0") == ("EIO" if fault["status"] == 404 else "EACCES")
        assert attempt(path / "arrays/near.npy") == ("EIO" if fault["status"] == 404 else "EACCES")


@pytest.mark.parametrize("name", ["moto", "moto_as_google", *(pytest.param(name, marks=pytest.mark.heavy) for name in ("fake_gcs", "azurite"))])
def test_repositories_in_every_kind_of_bucket(mount, root, tmp_path, name):
    expected = repositories.expected(root / BUCKET)
    scheme = {"moto": "s3", "azurite": "az"}.get(name, "gs")
    VirtualChunks(root, f"{scheme}://{BUCKET}").commit()
    with getattr(remote_servers, name)(root, tmp_path) as server:
        env = remote_servers.clean_environment(**server.env)
        for repository in repositories.NAMES:
            for reference in ("branch.main", "tag.T1"):
                made = mount(server.url(f"{BUCKET}/{repository}|icechunk:@{reference}"), *server.args, "--view", "arrays", env=env)
                check(made.path, expected[repository, reference])
                made.unmount()
        made = mount(server.url(f"{BUCKET}/ice"), *server.args, "--view", "arrays", env=env)
        assert (np.load(made.path / "near.npy") == DATA).all()
        made.unmount()
