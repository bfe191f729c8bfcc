"""Icechunk repositories on servers: what they show, and how many requests that takes."""
import os
import shutil

import numpy as np
import pytest
import zarr

from support import icechunk_repositories as repositories
from support.mounting import until
from support.remote_fault_server import FaultServer
from support.remote_samples import BUCKET, mounted

CHUNKS = 10


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "root" / BUCKET
    folder.mkdir(parents=True)
    return repositories.unpack(folder).parent


@pytest.mark.parametrize("kind", ["http", "s3"])
@pytest.mark.parametrize("name", repositories.NAMES)
def test_a_repository_on_a_server(mount, root, kind, name):
    arrays = repositories.expected(root / BUCKET)[name, "branch.main"]
    with FaultServer(root, kind) as server:
        made = mounted(mount, server, "--view", "arrays,keys", path=name)
        assert f"specification {name[-1]}" in (made.path / ".zarr-mount/snapshot").read_text()
        for path, values in arrays.items():
            assert np.array_equal(np.load(made.path / "arrays" / f"{path}.npy"), values), path
            assert np.array_equal(zarr.open_array(made.path / "keys" / path, mode="r")[...], values), path
        assert "small" not in os.listdir(made.path / "keys")
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
