"""Requests that are under way for a file when it is closed: they are cancelled, and the next reader gets the bytes."""
import os
import time

import pytest
import zarr

from support import remote_samples
from support.remote_fault_server import FaultServer
from support.remote_samples import attempt, mounted

PATIENCE = 20
# The time limit of requests is so long that no request ends by itself during the test.
ARGS = ("--view", "arrays", "--files", "raw", "--timeout", "40")
COUNT, CHUNK, SHARD = 8 << 20, 16 << 10, 256 << 10  # elements of 4 bytes


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("root")
    group = zarr.create_group(str(folder / remote_samples.BUCKET / "z"), zarr_format=3)
    for name, shards in (("plain", None), ("shard", (SHARD,))):
        array = group.create_array(name, shape=(COUNT,), chunks=(CHUNK,), shards=shards, dtype="<u4", compressors=None)
        array[...] = remote_samples.values(COUNT)
    zarr.consolidate_metadata(str(folder / remote_samples.BUCKET / "z"), zarr_format=3)
    remote_samples.age(folder)
    return folder


def until(is_so, what):
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


# The requests that get no answer, for each array. They are for chunks that are only prefetched. The first request for a shard is
# answered, because it brings the index, for which readers of other files may wait. Requests for attributes are answered, too: on a
# web server, they prove that all bytes of the file are of one moment.
HANGS = {"plain": [{"key": "*/plain/c/1??", "method": "GET"}],
         "shard": [{"key": f"*/shard/c/{n}", "skip": 1, "method": "GET"} for n in range(8, 32)]}


@pytest.mark.parametrize("name", HANGS)
@pytest.mark.parametrize("kind", ["http", "s3"])
def test_requests_for_a_closed_file_are_given_up(kind, name, root, mount):
    with FaultServer(root, kind) as server:
        made = mounted(mount, server, *ARGS)
        server.rules(*({"fault": "stall", **rule} for rule in HANGS[name]))

        def hanging():
            return made.stats()["server"]["in_flight"]

        path, right = made.path / f"{name}.raw", remote_samples.values(COUNT).tobytes()
        first, second = (os.open(path, os.O_RDONLY) for _ in range(2))
        try:
            assert os.pread(first, 1 << 20, 0) == right[:1 << 20]
            until(lambda: any(server.hits()), "nothing was prefetched")
        finally:
            os.close(first)
        # The other handle is open, and waits for the same chunks.
        time.sleep(0.2)
        assert hanging() > 0
        os.close(second)
        until(lambda: hanging() == 0, lambda: made.stats())
        server.rules()
        assert attempt(path) == right
        assert hanging() == 0
