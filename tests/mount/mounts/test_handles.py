"""File handles, as NFS servers give them out: name_to_handle_at(2) and open_by_handle_at(2)."""
import ctypes
import errno
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
import zarr

from support import mounting, sample
from support.mounting import until
from support.remote_servers import free_port

pytestmark = pytest.mark.root

LIBC = ctypes.CDLL(None, use_errno=True)
AT_FDCWD, AT_EMPTY_PATH = -100, 0x1000


class Handle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_uint), ("type", ctypes.c_int), ("data", ctypes.c_ubyte * 128)]


def handle_of(path):
    handle, mount_id = Handle(bytes=128), ctypes.c_int()
    if LIBC.name_to_handle_at(AT_FDCWD, os.fsencode(path), ctypes.byref(handle), ctypes.byref(mount_id), 0):
        raise OSError(ctypes.get_errno(), "name_to_handle_at", str(path))
    return handle


def open_handle(root, handle, flags=os.O_RDONLY):
    """A descriptor of the file of `handle`, on the mount that the directory `root` is on."""
    on = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        found = LIBC.open_by_handle_at(on, ctypes.byref(handle), flags)
        if found < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), "open_by_handle_at")
        return found
    finally:
        os.close(on)


def read_handle(root, handle):
    with open(open_handle(root, handle), "rb") as file:
        return file.read()


def is_stale(root, handle):
    with pytest.raises(OSError) as caught:
        os.close(open_handle(root, handle))
    return caught.value.errno == errno.ESTALE


def forget():
    """Makes the kernel forget every inode that is not in use. Those of a mount that is only read are never dirty."""
    Path("/proc/sys/vm/drop_caches").write_text("2")
    time.sleep(0.05)


def replace(path, data):
    other = path.with_name("other")
    other.write_bytes(data)
    other.rename(path)


@pytest.fixture
def store(tmp_path):
    return sample.write(tmp_path / "s.zarr")


VIEWS = [
    ("keys", ["notes.txt", "zarr.json", "plain/zarr.json", "plain/c/1/2", "sharded/c/0/3"]),
    ("chunks", ["notes.txt", "zarr.json", "plain/c/1/2", "sharded/c/2/3", "holes/c/2/2"]),
    ("arrays", ["plain.npy", "sharded@2.npy"]),
    ("keys,chunks", ["keys/notes.txt", "keys/sharded/c/0/3", "chunks/sharded/c/2/3"]),
]


@pytest.mark.parametrize("views, names", VIEWS, ids=[views for views, _ in VIEWS])
@pytest.mark.parametrize("opened", [False, True], ids=["looked-up", "opened"])
def test_a_handle_outlives_the_kernels_memory(mount, store, views, names, opened):
    root = mount(store, "--view", views).path
    handles = {name: handle_of(root / name) for name in names}
    if opened:
        for name in names:
            (root / name).read_bytes()
    for _ in range(2):
        for name, handle in handles.items():
            assert read_handle(root, handle) == (root / name).read_bytes(), name
        forget()
        for name, handle in handles.items():
            found = read_handle(root, handle)
            assert found == (root / name).read_bytes(), name
        forget()


DIRECTORIES = [
    ("keys", ["", "plain", "plain/c", "plain/c/1", "sharded/c/3", "deep/er/z"]),
    ("chunks", ["", "plain/c/1", "sharded/c", "old/1", "deep/er/z/c"]),
    ("arrays", ["", "deep", "deep/er"]),
    ("chunks,keys", ["", "keys", "keys/plain/c/1", "chunks/deep/er", "chunks/old/1"]),
]


@pytest.mark.parametrize("views, names", DIRECTORIES, ids=[views for views, _ in DIRECTORIES])
def test_a_directory_is_found_with_those_above_it(mount, store, views, names):
    """The kernel asks for `..` of a directory that it has forgotten, and for its name there."""
    group = zarr.open_group(str(store), mode="a")
    group.create_array("deep/er/z", shape=(4, 4), chunks=(2, 2), dtype="i2")[...] = np.ones((4, 4))
    old = zarr.create_array(str(store / "old"), shape=(4, 4), chunks=(2, 2), dtype="i2", zarr_format=2,
                            chunk_key_encoding={"name": "v2", "separator": "/"})
    old[...] = np.ones((4, 4))
    root = mount(store, "--view", views).path
    handles = {name: handle_of(root / name) for name in names}
    entries = {name: sorted(os.listdir(root / name)) for name in names}
    for name, handle in handles.items():
        forget()
        found = open_handle(root, handle)
        try:
            assert sorted(os.listdir(found)) == entries[name]
            assert os.readlink(f"/proc/self/fd/{found}") == str(root / name).rstrip("/")
        finally:
            os.close(found)


@pytest.mark.parametrize("dropped", [False, True], ids=["kept", "forgotten"])
@pytest.mark.parametrize("opened", [False, True], ids=["looked-up", "opened"])
@pytest.mark.parametrize("name", ["notes.txt", "plain/zarr.json", "raw/c/0/0"])
def test_a_replaced_file_is_stale_and_never_shows_other_bytes(mount, store, name, opened, dropped):
    root = mount(store).path
    old = handle_of(root / name)
    before = (store / name).read_bytes()
    if opened:
        assert (root / name).read_bytes() == before
    replace(store / name, before + b"  ")
    if dropped:
        forget()
    assert is_stale(root, old)
    until(lambda: (root / name).read_bytes() == before + b"  ", "the new bytes")
    assert is_stale(root, old)
    new = handle_of(root / name)
    assert bytes(new.data) != bytes(old.data)
    for _ in range(2):
        assert read_handle(root, new) == before + b"  "
        assert is_stale(root, old)
        forget()


def test_many_versions_have_many_handles(mount, store):
    root = mount(store, "--ttl", "0").path
    handles = []
    for n in range(20):
        replace(store / "notes.txt", b"%d" % n * (n + 1))
        handles.append(handle_of(root / "notes.txt"))
        if n % 3 == 0:
            forget()
    assert len({bytes(handle.data) for handle in handles}) == 20
    for handle in handles[:-1]:
        assert is_stale(root, handle)
    assert read_handle(root, handles[-1]) == b"19" * 20


def test_a_removed_file_is_stale(mount, store):
    root = mount(store).path
    handles = [handle_of(root / name) for name in ("notes.txt", "plain/c/1/2", "plain/c", "plain")]
    forget()
    (store / "notes.txt").unlink()
    shutil.rmtree(store / "plain")
    assert all(is_stale(root, handle) for handle in handles)


def test_chunks_of_a_replaced_array_are_stale(mount, store):
    root = mount(store, "--view", "chunks", "--ttl", "0").path
    handles = [handle_of(root / name) for name in ("plain/c/1/2", "plain/c/1")]
    for _ in range(2):
        shutil.rmtree(store / "plain")
        group = zarr.open_group(str(store), mode="a")
        group.create_array("plain", shape=(60, 60), chunks=(8, 8), dtype="i1")[...] = np.ones((60, 60))
        assert all(is_stale(root, handle) for handle in handles)
        forget()
        assert all(is_stale(root, handle) for handle in handles)


def test_a_handle_of_another_mount_at_the_same_place_is_stale(mount, store):
    """Two daemons have different inode numbers, or give the same numbers to different files."""
    made = mount(store, "--view", "chunks")
    names = ["plain/c/0/0", "plain/c/1/2", "sharded/c/2/3", "zarr.json", "plain"]
    handles = [handle_of(made.path / name) for name in names]
    made.unmount()
    root = mount(store, "--view", "chunks", path=made.path).path
    for name in reversed(names):  # ranges of numbers are given out in another order
        os.stat(root / name)
    assert all(is_stale(root, handle) for handle in handles)


def test_the_daemons_own_files(mount, store):
    root = mount(store).path
    handles = [handle_of(root / ".zarr-mount" / name) for name in ("stats.json", "log")]
    forget()
    assert read_handle(root, handles[0]).startswith(b"{")
    os.close(open_handle(root, handles[1]))


@pytest.fixture
def ganesha(tmp_path):
    """ganesha(path): exports `path` by NFS-Ganesha, and returns a pattern of URLs for libnfs, and the path of the log."""
    if not shutil.which("ganesha.nfsd") or not shutil.which("nfs-cat"):
        pytest.skip("needs nfs-ganesha-vfs and libnfs-utils")
    servers = []

    def export(path):
        port, log = free_port(), tmp_path / "ganesha.log"
        (tmp_path / "ganesha.conf").write_text(f"""
            NFS_CORE_PARAM {{
                Protocols = 4; NFS_Port = {port}; Bind_addr = 127.0.0.1;
                Enable_NLM = false; Enable_RQUOTA = false;
            }}
            NFSv4 {{ Grace_Period = 0; Lease_Lifetime = 1; Graceless = true; RecoveryRoot = "{tmp_path}/recovery"; }}
            EXPORT {{
                Export_Id = 77; Path = {path}; Pseudo = /z; Access_Type = RO; Squash = None; SecType = sys;
                Protocols = 4; Transports = TCP; Filesystem_Id = 77.7; FSAL {{ Name = VFS; }}
            }}""")
        (tmp_path / "recovery").mkdir()
        server = subprocess.Popen(["ganesha.nfsd", "-F", "-L", log, "-f", tmp_path / "ganesha.conf",
                                   "-p", tmp_path / "ganesha.pid", "-N", "EVENT"], stdin=subprocess.DEVNULL)
        servers.append(server)

        def answers():
            assert server.poll() is None, log.read_text()
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0

        until(answers, "the NFS server")
        return f"nfs://127.0.0.1/z{{}}?version=4&nfsport={port}", log

    yield export
    for server in servers:
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


@pytest.mark.heavy
@pytest.mark.alone
def test_an_nfs_server_exports_it(mount, store, ganesha):
    root = mount(store, "--view", "chunks", "-o", "allow_other").path
    url, log = ganesha(root)

    def try_cat(name):
        return subprocess.run(["nfs-cat", url.format(f"/{name}")], stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=60)

    def cat(name):
        done = try_cat(name)
        assert done.returncode == 0, (name, done.stderr, log.read_text()[-3000:])
        return done.stdout

    names = ["notes.txt", "zarr.json", "plain/c/1/2", "sharded/c/2/3"]
    for _ in range(2):
        for name in names:
            assert cat(name) == (root / name).read_bytes(), name
        forget()
    listed = mounting.ok("nfs-ls", url.format("/sharded/c/2"))
    assert {line.split()[-1] for line in listed.splitlines()} >= set(os.listdir(root / "sharded/c/2"))
    replace(store / "notes.txt", b"replaced\n")
    # The NFS server remembers the handle of the old file until the handle is stale. A client gets the old bytes or the new bytes.
    seen = []
    until(lambda: seen.append(try_cat("notes.txt").stdout) or seen[-1] == b"replaced\n", "the new bytes")
    assert set(seen) <= {b"no array owns this key\n", b"", b"replaced\n"}, seen
