"""Zip files on servers, read in place by ranges: the mount holds what the mount of the local file holds."""
import errno
import hashlib
import os
import random
import shutil
import stat
import zipfile
from pathlib import Path

import numpy as np
import pytest
import zarr

from support import corpus, mounting, remote_samples, remote_servers
from support.remote_fault_server import FaultServer
from support.remote_samples import BUCKET, attempt, mounted
from test_remote_corpus import canonical

STORES = [s for s in corpus.stores().values() if s.entry["container"] == "zip"]
VIEWS = ("--view", "arrays,chunks,keys", "--files", "npy,raw")
MOST_BYTES = 8 << 20


def look(root):
    """Each path of a mount, and its names, the hash of its bytes, or the name of its error."""
    found, waiting = {}, [""]
    while waiting:
        path = waiting.pop()
        try:
            what = os.stat(root / path)
            if stat.S_ISDIR(what.st_mode):
                found[path] = sorted(os.listdir(root / path))
                waiting += [f"{path}/{name}".lstrip("/") for name in found[path]]
            elif what.st_size > MOST_BYTES:
                found[path] = what.st_size
            else:
                found[path] = hashlib.sha256(canonical(path, (root / path).read_bytes())).hexdigest()
        except OSError as error:
            found[path] = errno.errorcode[error.errno]
    return found


def pack(folder, path, method=zipfile.ZIP_STORED, below="", extra=b"", comment=b"", seed=None):
    """Packs a directory. With a seed, its entries are in any order."""
    files = sorted(file for file in Path(folder).rglob("*") if file.is_file())
    if seed is not None:
        random.Random(seed).shuffle(files)
    with zipfile.ZipFile(path, "w", method) as packed:
        for file in files:
            entry = zipfile.ZipInfo(below + file.relative_to(folder).as_posix(), (2026, 1, 2, 3, 4, 6))
            entry.compress_type, entry.extra = method, extra
            packed.writestr(entry, file.read_bytes())
        packed.comment = comment


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A store to pack."""
    found = tmp_path_factory.mktemp("unpacked")
    return remote_samples.write(found, consolidate=True)


@pytest.fixture
def root(tmp_path):
    (tmp_path / "root" / BUCKET).mkdir(parents=True)
    return tmp_path / "root"


def same_as_local(mount, server, path, file, *args):
    local = mount(file, *VIEWS)
    remote = mounted(mount, server, *VIEWS, *args, path=path)
    expected, found = look(local.path), look(remote.path)
    assert found == expected
    remote.unmount()
    local.unmount()
    return expected


@pytest.mark.parametrize("kind", ["http", "s3"])
@pytest.mark.parametrize("store", STORES, ids=[s.name for s in STORES])
def test_stores_of_others(store, kind, root, mount):
    """The name of the file says nothing."""
    shutil.copy(store.path, root / BUCKET / "data")
    with FaultServer(root, kind) as server:
        same_as_local(mount, server, "data", root / BUCKET / "data")


CASES = {
    "deflated in a folder": {"method": zipfile.ZIP_DEFLATED, "below": "some.zarr/"},
    "extra fields": {"extra": b"\x99\x99\x0c\x00" + 12 * b"x", "seed": 1},
    "long extra fields": {"extra": b"\x99\x99\x60\x00" + 96 * b"x", "seed": 2},
    "extra fields, deflated": {"method": zipfile.ZIP_DEFLATED, "extra": b"\x99\x99\x60\x00" + 96 * b"x", "seed": 3},
    "a comment": {"comment": 0xffff * b"c"},
}


@pytest.mark.parametrize("name", CASES)
def test_zip_files_of_any_kind(name, folder, root, mount):
    file = root / BUCKET / "z.zip"
    pack(folder, file, **CASES[name])
    with FaultServer(root, "s3") as server:
        found = same_as_local(mount, server, "z.zip", file)
    assert "plain.npy" in found["arrays"] and not [v for v in found.values() if v == "EIO"]


def test_bytes_in_front_of_a_zip_file(folder, root, mount):
    file = root / BUCKET / "z.zip"
    pack(folder, file)
    file.write_bytes(b"#!/bin/sh\n" + file.read_bytes())
    with FaultServer(root) as server:
        same_as_local(mount, server, "z.zip", file)


def test_many_entries(root, mount):
    """The directory is longer than what opening reads: it takes one request more."""
    array = zarr.create_array(zarr.storage.ZipStore(root / BUCKET / "many.zip", mode="w"), shape=(3000,), chunks=(1,), dtype="<u4",
                              compressors=None)
    array[...] = np.arange(3000)
    array.store.close()
    with FaultServer(root, "s3") as server:
        made = mounted(mount, server, "--view", "chunks", path="many.zip")
        assert len(os.listdir(made.path / "c")) == 3000
        of_directory = [r for r in server.requests(key="many.zip") if r["method"] == "GET" and r["bytes"] > 60_000]
        assert len(of_directory) == 2 and [r["range"][:7] for r in of_directory].count("bytes=-") == 1
        for n in (0, 77, 2999):
            assert attempt(made.path / "c" / str(n)) == n.to_bytes(4, "little")
        made.unmount()


def test_from_nginx(folder, root, mount, tmp_path):
    for path in (root, *root.parents):
        if path == Path("/tmp") or os.stat(path).st_uid != os.geteuid():
            break
        path.chmod(0o755)
    pack(folder, root / BUCKET / "a store.zip")
    local = look(mount(root / BUCKET / "a store.zip", *VIEWS).path)
    (tmp_path / "nginx").mkdir()
    with remote_servers.nginx(root, tmp_path / "nginx") as server:
        made = mount(server.url(f"{BUCKET}/a%20store.zip"), *VIEWS, env=remote_servers.clean_environment())
        assert look(made.path) == local
        made.unmount()


def test_from_moto(folder, root, mount, tmp_path):
    pack(folder, root / BUCKET / "z.zip")
    local = look(mount(root / BUCKET / "z.zip", *VIEWS).path)
    with remote_servers.moto(root, tmp_path) as server:
        made = mount(server.url(f"{BUCKET}/z.zip"), *server.args, *VIEWS, env=remote_servers.clean_environment(**server.env))
        assert look(made.path) == local
        made.unmount()


@pytest.mark.heavy
def test_from_azurite(folder, root, mount, tmp_path):
    """Azurite does not support ranges that count from the end."""
    pack(folder, root / BUCKET / "z.zip")
    local = look(mount(root / BUCKET / "z.zip", *VIEWS).path)
    with remote_servers.azurite(root, tmp_path) as server:
        made = mount(server.url(f"{BUCKET}/z.zip"), *server.args, *VIEWS, env=remote_servers.clean_environment(**server.env))
        assert look(made.path) == local
        made.unmount()


def test_a_server_that_denies_absent_objects(folder, root, mount):
    """The zip file alone is public."""
    pack(folder, root / BUCKET / "z.zip")
    with FaultServer(root, "s3") as server:
        server.rules({"fault": "status", "status": 403, "key": "bucket/z.zip/*"}, {"fault": "status", "status": 403, "method": "LIST"})
        made = mounted(mount, server, "--view", "chunks", path="z.zip")
        assert attempt(made.path / "plain" / "c" / "1") == remote_samples.chunk("plain", 1)
        made.unmount()


@pytest.mark.parametrize("kind", ["http", "s3"])
def test_a_server_without_ranges(kind, folder, root, mount):
    """The server answers each request for a range with the whole file."""
    pack(folder, root / BUCKET / "z.zip")
    with FaultServer(root, kind) as server:
        server.rules({"fault": "whole"})
        made = mounted(mount, server, "--view", "chunks", path="z.zip")
        assert attempt(made.path / "big" / "c" / "2") == remote_samples.chunk("big", 2)
        made.unmount()


def test_requests_of_shards(folder, root, mount):
    """The local header comes with the index, the chunks after it in one request each."""
    pack(folder, root / BUCKET / "z.zip")
    with FaultServer(root, "s3") as server:
        made = mounted(mount, server, "--view", "chunks", "--readahead", "0", path="z.zip")
        os.stat(made.path / "big" / "zarr.json")
        server.clear()
        assert attempt(made.path / "big" / "c" / "2") == remote_samples.chunk("big", 2)
        first = server.requests(clear=True)
        assert len(first) <= 3 and {r["method"] for r in first} == {"GET"}, [(r["range"], r["bytes"]) for r in first]
        assert attempt(made.path / "big" / "c" / "5") == remote_samples.chunk("big", 5)
        again = server.requests()
        assert [(r["method"], r["bytes"]) for r in again] == [("GET", len(remote_samples.chunk("big", 5)))]
        assert all("if-match" in r["headers"] for r in first + again)
        assert made.stats()["server"]["gets"] >= len(first) + len(again)
        made.unmount()


@pytest.mark.parametrize("kind", ["http", "s3"])
def test_a_zip_file_that_is_replaced(kind, root, mount, tmp_path):
    """An open file is wholly old, or stale; after the time to live the new one is there."""
    file = root / BUCKET / "z.zip"
    for version in (0, 1):
        pack(remote_samples.write(tmp_path / str(version), version=version), tmp_path / f"{version}.zip")
    shutil.copy(tmp_path / "0.zip", file)
    with FaultServer(root, kind) as server:
        made = mounted(mount, server, "--view", "chunks,keys", "--ttl", "1", "--readahead", "0", path="z.zip")
        old, new = (remote_samples.chunk("plain", 2, version) for version in (0, 1))
        # Not one of the last bytes, which are in memory.
        opened = os.open(made.path / "keys" / "big" / "c" / "2", os.O_RDONLY)
        try:
            shutil.copy(tmp_path / "1.zip", tmp_path / "fresh")
            os.replace(tmp_path / "fresh", file)
            with pytest.raises(OSError) as raised:
                os.pread(opened, 4096, 0)
            assert raised.value.errno == errno.ESTALE
        finally:
            os.close(opened)
        for view in ("keys", "chunks"):
            assert attempt(made.path / view / "plain" / "c" / "2") in (old, new, "ESTALE")
            mounting.until(lambda: attempt(made.path / view / "plain" / "c" / "2") == new, "the new version")
        assert attempt(made.path / "keys" / "big" / "c" / "2") == remote_samples.chunk("big", 2, 1)
        # It goes, and comes back.
        file.unlink()
        mounting.until(lambda: attempt(made.path / "chunks" / "plain" / "c" / "3") not in (new, "ESTALE")
                       and attempt(made.path / "chunks" / "plain" / "c" / "3") == "EIO", "the error")
        shutil.copy(tmp_path / "0.zip", file)
        mounting.until(lambda: attempt(made.path / "chunks" / "plain" / "c" / "2") == old, "the old version")
        made.unmount()


def test_a_zip_file_that_is_cut_short_under_the_mount(folder, root, mount):
    file = root / BUCKET / "z.zip"
    pack(folder, file)
    whole = file.read_bytes()
    with FaultServer(root, "s3") as server:
        made = mounted(mount, server, "--view", "chunks", "--ttl", "0.2", path="z.zip")
        file.write_bytes(whole[:-1000])
        mounting.until(lambda: attempt(made.path / "plain" / "c" / "2") == "EIO", "the error")
        file.write_bytes(whole)
        mounting.until(lambda: attempt(made.path / "plain" / "c" / "2") == remote_samples.chunk("plain", 2), "the bytes")
        made.unmount()


def refusal(tmp_path, server, path):
    url, more, keys = remote_samples.store(server, path)
    point = tmp_path / "m"
    point.mkdir(exist_ok=True)
    done = mounting.run(mounting.BINARY, url, point, "--timeout", "5", *more, env=remote_servers.clean_environment(**keys),
                        timeout=mounting.PATIENCE)
    assert done.returncode != 0 and not mounting.mount_entry(point), done.stderr
    assert url in done.stderr, done.stderr
    return done.stderr


@pytest.mark.parametrize("kind", ["http", "s3"])
def test_an_object_that_is_not_a_zip_file_is_refused(kind, folder, root, tmp_path):
    pack(folder, root / BUCKET / "z.zip")
    whole = (root / BUCKET / "z.zip").read_bytes()
    (root / BUCKET / "cut.zip").write_bytes(whole[:-1000])
    (root / BUCKET / "text").write_bytes(1000 * b"no zip file")
    (root / BUCKET / "long").write_bytes(20_000 * b"no zip file")
    with FaultServer(root, kind) as server:
        assert "cut short" in refusal(tmp_path, server, "cut.zip")
        assert "one object of 11000 bytes, which is no zip file" in refusal(tmp_path, server, "text")
        assert "one object of 220000 bytes, which is no zip file" in refusal(tmp_path, server, "long")


def test_an_object_that_cannot_be_read_is_no_empty_directory(folder, root, tmp_path):
    pack(folder, root / BUCKET / "z.zip")
    with FaultServer(root, "s3") as server:
        server.rules({"fault": "encode", "key": "bucket/z.zip"})
        assert "in the coding" in refusal(tmp_path, server, "z.zip")
        server.rules({"fault": "status", "status": 403, "code": "AccessDenied", "key": "bucket/z.zip"})
        assert "403" in refusal(tmp_path, server, "z.zip")


def test_a_bucket_that_does_not_send_last_bytes(folder, root, mount):
    pack(folder, root / BUCKET / "z.zip")
    with FaultServer(root, "s3") as server:
        server.rules({"fault": "status", "status": 501, "key": "bucket/z.zip", "method": "GET", "count": 1})
        made = mounted(mount, server, "--view", "chunks", path="z.zip")
        assert attempt(made.path / "plain" / "c" / "1") == remote_samples.chunk("plain", 1)
        made.unmount()


def test_a_prefix_whose_name_is_denied_as_an_object(root, mount):
    """Only the objects below the prefix are public, and it has no document of its own."""
    remote_samples.write(root, path="several/z")
    with FaultServer(root, "s3") as server:
        server.rules({"fault": "status", "status": 403, "code": "AccessDenied", "key": "bucket/several"})
        made = mounted(mount, server, "--view", "chunks", path="several")
        assert attempt(made.path / "z" / "plain" / "c" / "1") == remote_samples.chunk("plain", 1)
        made.unmount()


def test_a_page_for_a_directory_is_no_object(folder, root, mount):
    """Some web servers have one at the path without a slash. This one has it in the place of the object."""
    remote_samples.write(root)
    (root / BUCKET / "z" / "page").write_bytes(b"\n<!DOCTYPE html><html>names</html>")
    with FaultServer(root) as server:
        server.rules({"fault": "status", "status": 404, "key": "*/zarr.json"})
        line = mounting.run(mounting.BINARY, "--info", f"{server.url}/{BUCKET}/z/page", env=remote_servers.clean_environment())
        assert line.returncode != 0 and "no Zarr node" in line.stderr, line.stderr


def test_info_says_the_version(folder, root):
    pack(folder, root / BUCKET / "z.zip")
    size = (root / BUCKET / "z.zip").stat().st_size
    with FaultServer(root) as server:
        url = f"{server.url}/{BUCKET}/z.zip"
        said = mounting.ok(mounting.BINARY, "--info", url, env=remote_servers.clean_environment())
        first, *rest = said.splitlines()
        assert first.startswith(f'{url}: a zip file of {size} bytes, ETag "'), first
        assert any("plain" in line for line in rest)


def test_damaged_bytes_are_never_values(folder, root, mount):
    """Any byte of the zip file is changed: reads give the right bytes, or an error."""
    file = root / BUCKET / "z.zip"
    small = root / "small"
    for name in ("zarr.json", "plain", "small"):
        source = folder / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, small.mkdir(exist_ok=True) or small / name)
    pack(small, file, zipfile.ZIP_DEFLATED)
    whole = file.read_bytes()
    right = {chunk: remote_samples.chunk("plain", chunk) for chunk in range(4)}
    generator = random.Random(7)
    with FaultServer(root, "s3") as server:
        made = mounted(mount, server, "--view", "chunks", "--ttl", "0", "--shards", "keep", path="z.zip")
        for _ in range(15):
            damaged = bytearray(whole)
            at = generator.randrange(len(whole))
            damaged[at] ^= 1 << generator.randrange(8)
            file.with_name("fresh").write_bytes(damaged)
            os.replace(file.with_name("fresh"), file)
            for chunk, expected in right.items():
                found = attempt(made.path / "plain" / "c" / str(chunk))
                # A damaged name of a chunk is another key, so that the chunk is absent.
                absent = np.full(remote_samples.PLAIN_CHUNK, 7, "<u4").tobytes()
                assert found in (expected, absent) or isinstance(found, str), (at, chunk)
        made.unmount()
