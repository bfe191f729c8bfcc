"""`--warm`: the disk cache is filled beforehand, and what a mount then reads is not requested."""
import json
import os
import shutil

import numpy as np
import pytest

import zarr

from support import corpus, remote_samples, remote_servers
from support.array_corpus import check
from support.mounting import BINARY, run
from support.remote_fault_server import FaultServer

ARRAYS = {"plain": remote_samples.PLAIN, "small": remote_samples.SMALL, "big": remote_samples.BIG, "first": remote_samples.BIG}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("root")
    remote_samples.write(folder, "z", consolidate=True)
    remote_samples.age(folder)
    return folder


def warm(server, cache, *args):
    """The exit status, what was found, and the summary."""
    url, more, env = remote_samples.store(server)
    command = [BINARY, "--warm", "--json", "--quiet", "--immutable", "--disk-cache", cache, *more, url, *args]
    done = run(*command, env=remote_servers.clean_environment(**env))
    *findings, summary = json.loads(done.stdout)
    return done.returncode, findings, summary


def requests_for_chunks(server):
    return [request for request in server.requests(clear=True) if "/c/" in request["key"] and request["method"] != "LIST"]


def chunks_asked_for(server):
    return [request["key"] for request in requests_for_chunks(server)]


@pytest.mark.parametrize("kind", ["http", "s3"])
def test_a_mount_of_a_warm_cache_sends_no_request(kind, root, mount, tmp_path):
    cache = tmp_path / "cache"
    with FaultServer(root, kind) as server:
        status, findings, summary = warm(server, cache)
        assert (status, findings) == (0, []) and summary["arrays"] == 5 and summary["disk_written_bytes"] > 8 << 20, summary
        assert summary["read_bytes"] == 4 * (2 * remote_samples.BIG + remote_samples.PLAIN + remote_samples.PLAIN_CHUNK + remote_samples.SMALL), summary
        assert chunks_asked_for(server)
        # A second --warm requests no chunk, because all are in the cache. So an interrupted --warm goes on where it was.
        status, findings, summary = warm(server, cache)
        assert (status, findings) == (0, []) and summary["disk_hits"] > 0 and not chunks_asked_for(server), summary
        made = remote_samples.mounted(mount, server, "--view", "arrays", "--immutable", "--disk-cache", cache)
        for name, count in ARRAYS.items():
            assert np.load(made.path / f"{name}.npy").tobytes() == remote_samples.values(count).tobytes(), name
        assert not chunks_asked_for(server)
        made.unmount()
        server.clear()
        made = remote_samples.mounted(mount, server, "--view", "arrays", "--offline", "--disk-cache", cache)
        for name, count in ARRAYS.items():
            assert np.load(made.path / f"{name}.npy").tobytes() == remote_samples.values(count).tobytes(), name
        # All chunks but one are absent.
        hole = np.full(remote_samples.PLAIN, 7, "<u4")
        stored = slice(remote_samples.PLAIN_CHUNK, 2 * remote_samples.PLAIN_CHUNK)
        hole[stored] = remote_samples.values(remote_samples.PLAIN)[stored]
        assert np.load(made.path / "hole.npy").tobytes() == hole.tobytes()
        assert not server.requests()
        made.unmount()


def test_groups_without_documents_are_read_offline(mount, tmp_path):
    store = corpus.stores()["ts_n5.n5"]
    shutil.copytree(store.path, tmp_path / "root" / remote_samples.BUCKET / "z")
    remote_samples.age(tmp_path / "root")
    cache = tmp_path / "cache"
    with FaultServer(tmp_path / "root", "s3") as server:
        status, findings, _ = warm(server, cache)
        assert (status, findings) == (0, [])
        server.clear()
        made = remote_samples.mounted(mount, server, "--view", "arrays", "--files", "npy,raw", "--offline", "--disk-cache", cache)
        below = [array for array in store.arrays if array["path"].startswith("a/b/c/")]
        faults = {array["path"]: check(made.path, store, array) for array in below}
        assert below and not any(faults.values()), faults
        assert not server.requests()
        made.unmount()


@pytest.mark.parametrize("task", ["--warm", "--verify"])
@pytest.mark.parametrize("kind", ["http", "s3"])
def test_a_chunk_is_one_request_and_so_are_the_chunks_of_a_shard(kind, task, root, tmp_path):
    with FaultServer(root, kind) as server:
        url, more, env = remote_samples.store(server)
        done = run(BINARY, task, "--quiet", "--immutable", "--disk-cache", tmp_path / "cache", *more, url, env=remote_servers.clean_environment(**env))
        assert done.returncode == 0, done
        asked = requests_for_chunks(server)
    assert all(request["method"] == "GET" for request in asked), asked
    counts = {name: sum(f"/{name}/" in request["key"] for request in asked) for name in ("plain", "big", "first")}
    # Two shards each: an index, and all of its chunks.
    assert counts == {"plain": 4, "big": 4, "first": 4}, asked


@pytest.mark.parametrize("most, expected", [(4, range(2, 5)), (256, range(17, 257))])
def test_as_many_chunks_are_requested_at_once_as_the_link_carries(most, expected, tmp_path):
    folder = tmp_path / "root" / remote_samples.BUCKET / "z"
    zarr.create_array(str(folder), shape=(600,), chunks=(1,), dtype="<u4", compressors=None)[...] = 1
    remote_samples.age(tmp_path / "root")
    with FaultServer(tmp_path / "root", "s3") as server:
        server.rules({"fault": "latency", "seconds": 0.2})
        status, findings, summary = warm(server, tmp_path / "cache", "--requests", str(most))
        assert (status, findings, summary["chunks"]) == (0, [], 600), findings
        asked = requests_for_chunks(server)
    at_once = max(sum(other["begun"] <= request["begun"] < other["ended"] for other in asked) for request in asked)
    assert at_once in expected, at_once


def test_chosen_arrays_are_in_the_cache_and_others_are_not(root, tmp_path):
    with FaultServer(root, "s3") as server:
        for number, chosen in enumerate([["--array", "b*"], ["big"]]):
            status, _, summary = warm(server, tmp_path / f"cache{number}", *chosen)
            asked = {key.split("/")[2] for key in chunks_asked_for(server)}
            assert status == 0 and summary["arrays"] == 1 and asked == {"big"}, (summary, asked)


def test_what_cannot_be_read_is_named(root, tmp_path):
    url_of_nothing = "http://127.0.0.1:9/z"
    done = run(BINARY, "--warm", "--disk-cache", tmp_path / "cache", "--timeout", "1", url_of_nothing)
    assert done.returncode == 1 and "127.0.0.1:9" in done.stderr, done
    with FaultServer(root, "s3") as server:
        server.rules({"key": f"{remote_samples.BUCKET}/z/plain/c/2", "fault": "status", "status": 403})
        status, findings, _ = warm(server, tmp_path / "cache2")
        assert status == 1 and [(found["path"], found["chunk"]) for found in findings] == [("plain", [2])], findings


def test_a_cache_is_needed(tmp_path):
    done = run(BINARY, "--warm", "http://127.0.0.1:9/z")
    assert done.returncode == 2 and "--disk-cache" in done.stderr, done
    os.makedirs(tmp_path / "s")
    done = run(BINARY, "--warm", "--disk-cache", tmp_path / "cache", tmp_path / "s")
    assert done.returncode == 2 and "only stores on servers are kept in the disk cache" in done.stderr, done
