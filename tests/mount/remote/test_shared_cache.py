"""Daemons that share a disk cache and want the same at the same time: one of them requests it, and none depends on the others."""
import hashlib
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import zarr

from support import mounting, remote_samples
from support.remote_fault_server import FaultServer
from support.remote_samples import attempt, chunk, mounted

DAEMONS = 8
VIEWS = ("--view", "chunks,arrays", "--files", "npy")
ARRAYS = {"plain": remote_samples.PLAIN, "small": remote_samples.SMALL, "big": remote_samples.BIG, "first": remote_samples.BIG}

# It prints the hashes of all arrays, of a chunk and of an absent one.
READER = f"""
import hashlib, sys, numpy as np
from pathlib import Path
root = Path(sys.argv[1])
for name in {list(ARRAYS)}:
    print(hashlib.sha256(np.load(root / "arrays" / f"{{name}}.npy").tobytes()).hexdigest())
for n in range(4):
    print(hashlib.sha256((root / "chunks" / "hole" / "c" / str(n)).read_bytes()).hexdigest())
"""


def expected(version=0):
    fill = np.full(remote_samples.PLAIN_CHUNK, 7, "<u4").tobytes()
    contents = [remote_samples.values(count, version).tobytes() for count in ARRAYS.values()]
    contents += [fill, chunk("plain", 1, version), fill, fill]
    return [hashlib.sha256(content).hexdigest() for content in contents]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return written(tmp_path_factory.mktemp("root"))


def written(folder, **kwargs):
    remote_samples.write(folder, "z", consolidate=True, **kwargs)
    remote_samples.age(folder)
    return folder


def read_at_once(daemons):
    """Reads everything through all of these mounts at the same time, each in a program of its own."""
    readers = [subprocess.Popen([sys.executable, "-c", READER, made.path], stdout=subprocess.PIPE, text=True) for made in daemons]
    for reader in readers:
        out, _ = reader.communicate(timeout=mounting.PATIENCE)
        assert reader.returncode == 0 and out.split() == expected()


def caching(mount, server, cache, *args):
    return mounted(mount, server, *VIEWS, "--disk-cache", cache, *args)


@pytest.mark.parametrize("args", [("--immutable",), ("--ttl", "600")], ids=["immutable", "changing"])
def test_daemons_that_begin_together_send_the_requests_of_one(args, root, mount, tmp_path, figure):
    with FaultServer(root, "s3") as server:
        server.rules({"fault": "latency", "seconds": 0.02})
        counts = {}
        for number in (1, DAEMONS):
            cache = tmp_path / f"cache of {number}"
            server.clear()
            with ThreadPoolExecutor(DAEMONS) as pool:
                daemons = list(pool.map(lambda _: caching(mount, server, cache, *args), range(number)))
            read_at_once(daemons)
            counts[number] = server.requests()
            shared = sum(made.stats()["server"]["disk_shared"] for made in daemons)
            for made in daemons:
                made.unmount()
        chunks = {number: [r for r in requests if "/c/" in r["key"]] for number, requests in counts.items()}
        asked = {number: len(requests) for number, requests in counts.items()}
        figure(f"requests of one daemon and of {DAEMONS} that share a cache, {args[0]}: {asked[1]}, {asked[DAEMONS]}")
        of_chunks = sorted((r["method"], r["key"], str(r["range"]), r["status"]) for r in chunks[DAEMONS])
        assert len(chunks[DAEMONS]) <= 1.1 * len(chunks[1]), of_chunks
        if args == ("--immutable",):
            assert asked[DAEMONS] <= 1.1 * asked[1]
        else:
            # Each mount asks for documents, unless another one has asked for them since it began.
            assert asked[DAEMONS] - len(chunks[DAEMONS]) <= DAEMONS * (asked[1] - len(chunks[1]))
        assert shared > 0


def test_a_second_mount_asks_for_documents_alone(root, mount, tmp_path):
    """Within the time to live, and as long as the documents are unchanged."""
    with FaultServer(root, "s3") as server:
        for number in range(2):
            server.clear()
            made = caching(mount, server, tmp_path / "cache", "--ttl", "600")
            for name, count in ARRAYS.items():
                assert np.load(made.path / "arrays" / f"{name}.npy").tobytes() == remote_samples.values(count).tobytes(), name
            assert attempt(made.path / "chunks" / "hole" / "c" / "1") == chunk("plain", 1)
            made.unmount()
        asked = server.requests()
        assert not [r["key"] for r in asked if "/c/" in r["key"]], [(r["method"], r["key"]) for r in asked]
        keys = [r["key"] for r in asked]
        assert f"{remote_samples.BUCKET}/z/zarr.json" in keys and len(keys) == len(set(keys)), keys


def test_a_second_mount_reads_no_chunk_of_an_earlier_array(mount, tmp_path):
    """The chunks are still in the cache, and their answers are younger than the time to live."""
    root = written(tmp_path / "root")
    with FaultServer(root, "s3") as server:
        made = caching(mount, server, tmp_path / "cache", "--ttl", "600")
        read_at_once([made])
        made.unmount()
        folder = remote_samples.write(root, "z", version=1)
        group = zarr.open_group(str(folder))
        for name in (*ARRAYS, "hole"):
            group[name].attrs["is"] = "another"
        zarr.consolidate_metadata(str(folder))
        made = caching(mount, server, tmp_path / "cache", "--ttl", "600")
        for name, count in ARRAYS.items():
            assert np.load(made.path / "arrays" / f"{name}.npy").tobytes() == remote_samples.values(count, 1).tobytes(), name
        assert attempt(made.path / "chunks" / "hole" / "c" / "1") == chunk("plain", 1, 1)
        made.unmount()


CHUNK = f"{remote_samples.BUCKET}/z/plain/c/1"


@pytest.mark.parametrize("stopped", [False, True], ids=["killed", "stopped"])
def test_a_daemon_that_requests_and_ends_holds_nobody_up(stopped, root, mount, tmp_path):
    with FaultServer(root, "s3") as server:
        first, *others = (caching(mount, server, tmp_path / "cache", "--readahead", "0", "--timeout", "600") for _ in range(4))
        server.rules({"fault": "hold", "key": f"*{CHUNK}", "count": 1})
        with ThreadPoolExecutor(4) as pool:
            pending = pool.submit(attempt, first.path / "chunks" / "plain" / "c" / "1")
            mounting.until(lambda: server.hits() == [1], "the request of the first daemon")
            readers = [pool.submit(attempt, made.path / "chunks" / "plain" / "c" / "1") for made in others]
            if stopped:
                os.kill(first.pid, signal.SIGSTOP)
            else:
                first.kill()
            assert [reader.result(mounting.PATIENCE) for reader in readers] == [chunk("plain", 1)] * 3
            # A daemon that comes later finds in the cache what an earlier one has requested.
            assert attempt(others[0].path / "chunks" / "plain" / "c" / "2") == chunk("plain", 2)
            server.rules()
            if stopped:
                os.kill(first.pid, signal.SIGCONT)
                assert pending.result(mounting.PATIENCE) == chunk("plain", 1)
            else:
                mounting.force_away(first.path)
                assert pending.result(mounting.PATIENCE) != chunk("plain", 1)
        for made in others:
            made.unmount()
