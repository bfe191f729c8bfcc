"""`--disk-cache` and `--offline`: bytes that were read once come from the disk, and nothing that happens to the disk gives a wrong byte."""
import json
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import zarr

from support import mounting, remote_samples, remote_servers, rights_users
from support.remote_fault_server import FaultServer
from support.remote_samples import attempt, chunk, mounted

BOTH = pytest.mark.parametrize("kind", ["http", "s3"])
VIEWS = ("--view", "chunks,keys,arrays", "--files", "npy,raw")
ARRAYS = {"plain": remote_samples.PLAIN, "small": remote_samples.SMALL, "big": remote_samples.BIG, "first": remote_samples.BIG}
FILL = b"\7\0\0\0" * remote_samples.PLAIN_CHUNK


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return written(tmp_path_factory.mktemp("root"))


def written(folder):
    remote_samples.write(folder, "z", consolidate=True)
    remote_samples.write(folder, "bare")
    remote_samples.age(folder)
    return folder


def caching(mount, server, cache, *args, **kwargs):
    return mounted(mount, server, *VIEWS, "--disk-cache", cache, *args, **kwargs)


def read_all(made):
    """Reads the whole store, and asserts that each byte is right."""
    for name, count in ARRAYS.items():
        assert np.load(made.path / "arrays" / f"{name}.npy").tobytes() == remote_samples.values(count).tobytes(), name
    hole = made.path / "chunks" / "hole" / "c"
    assert (hole / "0").read_bytes() == FILL
    assert (hole / "1").read_bytes() == chunk("plain", 1)
    for view in ("chunks", "keys"):
        assert sorted(os.listdir(made.path / view)) == ["big", "first", "hole", "plain", "small", "zarr.json"]
        json.loads((made.path / view / "big" / "zarr.json").read_bytes())


def entries(cache):
    """The files of all entries."""
    return sorted(path for path in Path(cache).glob("zarr-mount-1/??/*"))


def counters(made):
    return {name: n for name, n in made.stats()["server"].items() if name.startswith("disk_")}


def asked_for(server):
    return [(r["method"], r["key"], r["status"]) for r in server.requests()]


def warm(mount, server, cache, **kwargs):
    """Fills the cache by reading everything."""
    made = caching(mount, server, cache, **kwargs)
    read_all(made)
    made.unmount()


@BOTH
def test_a_warm_immutable_mount_sends_no_request(kind, root, mount, tmp_path):
    cache = tmp_path / "cache"
    with FaultServer(root, kind) as server:
        warm(mount, server, cache)
        server.clear()
        made = caching(mount, server, cache, "--immutable")
        read_all(made)
        assert not asked_for(server)
        told = counters(made)
        assert told["disk_hits"] > 0 and told["disk_hit_bytes"] > 8 << 20 and told["disk_bytes"] > 8 << 20, told
        assert told["disk_corrupt"] == told["disk_refused"] == 0 and told["disk_limit_bytes"] == 10 << 30, told
        made.unmount()


def test_what_is_on_the_disk_is_not_read_far_ahead(mount, tmp_path):
    """Reading ahead saves no time where no request is waited for, and takes memory and threads."""
    n_chunks, n_read = 192, 64
    array = zarr.create_array(tmp_path / "root" / "bucket" / "z", shape=(n_chunks << 20,), chunks=(1 << 20,), dtype="u1")
    for number in range(n_chunks):
        array[number << 20:(number + 1) << 20] = number + 1
    remote_samples.age(tmp_path / "root")
    options = ("--disk-cache", tmp_path / "cache", "--immutable", "--view", "arrays", "--files", "raw", "--threads", "2")

    def read(n):
        made = mounted(mount, server, *options)
        with open(made.path / "z.raw", "rb", buffering=0) as file:
            for number in range(n):
                assert file.read(1 << 20) == bytes([number + 1]) * (1 << 20), number
            before = -1
            while (decodes := made.stats()["chunks"]["decodes"]) != before:
                before = decodes
                time.sleep(0.3)
        told = made.stats()["server"]
        made.unmount()
        return decodes, told

    with FaultServer(tmp_path / "root", "http") as server:
        assert read(n_chunks)[0] == n_chunks
        decodes, told = read(n_read)
    assert told["gets"] + told["heads"] + told["lists"] == 0, told
    assert n_read <= decodes < n_read + 32, decodes


@BOTH
@pytest.mark.parametrize("path", ["z", "bare"])
def test_a_warm_mount_gets_no_chunk_again(kind, path, root, mount, tmp_path):
    """A mount asks the server whether each cached version that it has not asked for yet is current. The server sends no bytes of chunks."""
    cache = tmp_path / "cache"
    with FaultServer(root, kind) as server:
        warm(mount, server, cache, path=path)
        server.clear()
        made = caching(mount, server, cache, "--ttl", "600", path=path)
        for name, count in ARRAYS.items():
            assert np.load(made.path / "arrays" / f"{name}.npy").tobytes() == remote_samples.values(count).tobytes(), name
        asked = asked_for(server)
        chunks = [r for r in asked if "/c/" in r[1]]
        assert not [r for r in chunks if r[2] != 304 and r[0] != "HEAD"], chunks
        if kind == "s3":
            # A web server does not say when an object was uploaded, so that each is requested a second time.
            assert len(chunks) == len(set(chunks)), chunks
            documents = [key for _, key, status in asked if status in (200, 304) and "/c/" not in key and key != "bucket"]
            assert len(documents) == len(set(documents)), documents
        made.unmount()


@BOTH
def test_a_changed_store_is_read_anew(kind, mount, tmp_path):
    """After the time to live, the mount asks the server whether a version is still current."""
    root, cache = written(tmp_path / "root"), tmp_path / "cache"
    with FaultServer(root, kind) as server:
        warm(mount, server, cache)
        remote_samples.write(root, "z", version=1, consolidate=True)
        made = caching(mount, server, cache, "--ttl", "0")
        for name, count in ARRAYS.items():
            assert np.load(made.path / "arrays" / f"{name}.npy").tobytes() == remote_samples.values(count, 1).tobytes(), name
        made.unmount()


def test_an_unchanged_chunk_is_not_sent_again_after_the_time_to_live(root, mount, tmp_path):
    cache = tmp_path / "cache"
    with FaultServer(root, "s3") as server:
        warm(mount, server, cache)
        server.clear()
        made = caching(mount, server, cache, "--ttl", "0", "--readahead", "0")
        assert attempt(made.path / "chunks" / "plain" / "c" / "2") == chunk("plain", 2)
        found = [r for r in server.requests() if r["key"].endswith("plain/c/2")]
        assert found and all(r["status"] == 304 for r in found), found
        made.unmount()


@BOTH
def test_offline(kind, root, mount, tmp_path):
    """Bytes that were read before are in the cache, and so are answers of the server that an object is absent. All other requests are errors that say why."""
    cache = tmp_path / "cache"
    with FaultServer(root, kind) as server:
        made = caching(mount, server, cache, "--readahead", "0")
        hole = made.path / "chunks" / "hole" / "c"
        assert (hole / "0").read_bytes() == FILL
        plain = made.path / "chunks" / "plain" / "c"
        assert (plain / "1").read_bytes() == chunk("plain", 1)
        assert np.load(made.path / "arrays" / "big.npy").tobytes() == remote_samples.values(remote_samples.BIG).tobytes()
        made.unmount()
        server.clear()
        made = caching(mount, server, cache, "--offline", "--readahead", "0")
        assert (made.path / "chunks" / "plain" / "c" / "1").read_bytes() == chunk("plain", 1)
        assert (made.path / "chunks" / "hole" / "c" / "0").read_bytes() == FILL
        assert np.load(made.path / "arrays" / "big.npy").tobytes() == remote_samples.values(remote_samples.BIG).tobytes()
        for path in ("plain/c/2", "hole/c/3", "first/c/0"):
            assert attempt(made.path / "chunks" / path) == "EIO", path
        assert "not in the disk cache, and --offline sends no request" in made.log_text()
        assert not asked_for(server)
        made.unmount()
        url, args, env = remote_samples.store(server, "elsewhere")
        done = mounting.run(mounting.BINARY, url, tmp_path, *args, "--disk-cache", cache, "--offline",
                            env=remote_servers.clean_environment(**env))
        assert done.returncode != 0 and "not in the disk cache" in done.stderr, done.stderr
        assert not asked_for(server)


def test_an_older_listing_hides_no_object_that_was_read_later(mount, tmp_path):
    root, cache = written(tmp_path / "root"), tmp_path / "cache"
    with FaultServer(root, "s3") as server:
        made = caching(mount, server, cache)
        assert os.listdir(made.path / "keys" / "hole" / "c") == ["1"]
        made.unmount()
        folder = root / "bucket" / "z"
        shutil.copy(folder / "plain" / "c" / "0", folder / "hole" / "c" / "0")
        remote_samples.age(root)
        made = caching(mount, server, cache)
        assert attempt(made.path / "chunks" / "hole" / "c" / "0") == chunk("plain", 0)
        made.unmount()
        made = caching(mount, server, cache, "--offline")
        os.listdir(made.path / "keys" / "hole" / "c")
        assert attempt(made.path / "chunks" / "hole" / "c" / "0") == chunk("plain", 0)
        made.unmount()


def test_mounts_share_a_cache_while_they_run(root, mount, tmp_path):
    cache = tmp_path / "cache"
    with FaultServer(root, "s3") as server:
        first, second = (caching(mount, server, cache, "--readahead", "0") for _ in range(2))
        for made in (first, second):
            assert attempt(made.path / "chunks" / "plain" / "c" / "3") == chunk("plain", 3)
        assert [r["bytes"] for r in server.requests(key="plain/c/3")] in ([4096], [4096, 0])
        assert counters(first)["disk_writes"] > 0 and counters(second)["disk_hits"] > 0
        first.unmount()
        second.unmount()


def damage(cache, rng):
    """Flips a bit in each entry."""
    found = entries(cache)
    for path in found:
        data = bytearray(path.read_bytes())
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
    return len(found)


def swap(cache, rng):
    """Gives each entry the contents of another."""
    found = entries(cache)
    others = found[1:] + found[:1]
    data = [path.read_bytes() for path in others]
    for path, contents in zip(found, data):
        path.write_bytes(contents)
    return len(found)


@pytest.mark.parametrize("harm", [damage, swap])
@pytest.mark.parametrize("args", [(), ("--immutable",)])
def test_damaged_and_swapped_files_cost_requests_alone(harm, args, root, mount, tmp_path):
    cache = tmp_path / "cache"
    with FaultServer(root, "s3") as server:
        warm(mount, server, cache)
        n_harmed = harm(cache, random.Random(49))
        made = caching(mount, server, cache, *args)
        read_all(made)
        told = counters(made)
        assert 0 < told["disk_corrupt"] <= n_harmed, told
        assert made.log_text().count("is damaged, and is deleted") == 1
        made.unmount()


def test_a_full_disk_costs_one_line_and_no_answer(root, mount, disk):
    cache = disk("3M")
    cache.chmod(0o700)
    with FaultServer(root, "s3") as server:
        made = caching(mount, server, cache)
        read_all(made)
        assert shutil.disk_usage(cache).free >= (3 << 20) // 20
        assert counters(made)["disk_refused"] > 0
        made.unmount()
        # Other programs fill the disk.
        filler = os.open(cache / "filler", os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            while os.write(filler, bytes(4096)):
                pass
        except OSError:
            os.close(filler)
        made = caching(mount, server, cache)
        read_all(made)
        made.unmount()


def test_a_removed_directory_costs_one_line_and_no_answer(root, mount, tmp_path):
    cache = tmp_path / "cache"
    with FaultServer(root, "s3") as server:
        made = caching(mount, server, cache)
        done = threading.Event()

        def remove():
            while not done.is_set():
                shutil.rmtree(cache, ignore_errors=True)

        thread = threading.Thread(target=remove)
        thread.start()
        try:
            for _ in range(3):
                read_all(made)
        finally:
            done.set()
            thread.join()
        assert made.log_text().count("the bytes come from the server") <= 1, made.log_text()
        made.unmount()


READER = """
import sys, numpy as np
from pathlib import Path
for path in sys.argv[1:]:
    np.load(path)
"""


def killed_while_writing(times, root, mount, tmp_path):
    """Daemons are killed while they write entries, each when the cache has a random number of them. Then everything is read."""
    cache, rng = tmp_path / "cache", random.Random(7)
    with FaultServer(root, "s3") as server:
        for number in range(times):
            if number % 5 == 0:
                shutil.rmtree(cache, ignore_errors=True)
            made = caching(mount, server, cache)
            paths = [made.path / "arrays" / f"{name}.npy" for name in ARRAYS]
            reader = subprocess.Popen([sys.executable, "-c", READER, *paths], stderr=subprocess.DEVNULL)
            wanted = rng.randrange(1, 40)
            mounting.until(lambda: len(entries(cache)) >= wanted or reader.poll() is not None, "entries")
            made.kill()
            mounting.force_away(made.path)
            reader.wait()
        made = caching(mount, server, cache)
        read_all(made)
        assert counters(made)["disk_corrupt"] == 0, "a process that is killed leaves no part of an entry"
        made.unmount()


def test_daemons_that_are_killed_while_they_write(root, mount, tmp_path):
    killed_while_writing(20, root, mount, tmp_path)


@pytest.mark.long
def test_many_daemons_that_are_killed_while_they_write(root, mount, tmp_path):
    killed_while_writing(200, root, mount, tmp_path)


def test_the_size_is_a_bound(root, mount, tmp_path):
    cache = tmp_path / "cache"
    with FaultServer(root, "s3") as server:
        made = caching(mount, server, cache, "--disk-cache-size", "4M")
        read_all(made)
        mounting.until(lambda: counters(made)["disk_evictions"] > 0, "evictions")
        read_all(made)
        size = sum(path.stat().st_size for path in entries(cache) if path.exists())
        assert size <= 8 << 20, size
        made.unmount()


@pytest.mark.parametrize("harm, expected", [
    (lambda path: path.chmod(0o777), "chmod 700"),
    (lambda path: path.chmod(0o770), "chmod 700"),
    (lambda path: (path.rename(path.with_name("real")), path.symlink_to(path.with_name("real"))), "symbolic link"),
    pytest.param(lambda path: os.chown(path, 65534, 65534), "belongs to another user", marks=pytest.mark.root),
])
def test_a_directory_that_others_may_write_is_refused(harm, expected, root, tmp_path):
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    harm(cache)
    with FaultServer(root, "s3") as server:
        url, args, env = remote_samples.store(server)
        done = mounting.run(mounting.BINARY, url, tmp_path, *args, "--disk-cache", cache, env=remote_servers.clean_environment(**env))
    assert done.returncode != 0 and expected in done.stderr and "--disk-cache" in done.stderr, done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr


def refused(inner, entry):
    """The number of attempts that the system refuses."""
    attempts = [lambda: os.listdir(inner), lambda: open(entry, "rb"), lambda: open(entry, "wb"), lambda: open(f"{inner}/lock", "wb"),
                lambda: os.unlink(entry)]
    n_refused = 0
    for do in attempts:
        try:
            do()
        except PermissionError:
            n_refused += 1
    return n_refused


@pytest.mark.root
def test_another_user_can_neither_read_nor_change_it(root, mount, tmp_path):
    cache = tmp_path / "cache"
    with FaultServer(root, "s3") as server:
        warm(mount, server, cache)
    # The cache and the directories above it are opened to the other user, as a directory in /var/cache is.
    for folder in (cache, *cache.parents):
        if folder == Path("/"):
            break
        if not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o055)
    inner = cache / "zarr-mount-1"
    assert rights_users.as_user((65534, []), refused, str(inner), str(entries(cache)[0])) == 5


def test_no_secret_is_in_it(root, mount, tmp_path):
    """Access keys rotate: a mount with another access key reads the same entries."""
    cache = tmp_path / "cache"
    with FaultServer(root, "s3") as server:
        url, args, _ = remote_samples.store(server)

        def mounted_as(name, *more):
            env = remote_servers.clean_environment(AWS_ACCESS_KEY_ID=f"AKIA{name}", AWS_SECRET_ACCESS_KEY=f"secret{name}")
            return mount(url, *args, *VIEWS, "--disk-cache", cache, *more, env=env)

        made = mounted_as("FIRST")
        assert attempt(made.path / "chunks" / "plain" / "c" / "0") == chunk("plain", 0)
        made.unmount()
        for path in entries(cache):
            assert b"FIRST" not in path.read_bytes()
        server.clear()
        made = mounted_as("NEXT", "--immutable")
        assert attempt(made.path / "chunks" / "plain" / "c" / "0") == chunk("plain", 0)
        assert not asked_for(server)
        made.unmount()
