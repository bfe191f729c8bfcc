"""How a system mounts: as a plain user through fusermount3, by mount(8) and fstab, for other users."""
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from support import mounting, sample
from support.mounting import BINARY, run

NOBODY = 65534
AS_NOBODY = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
ON_PATH = Path("/usr/local/bin/zarr-mount")

pytestmark = pytest.mark.root


@pytest.fixture
def folder():  # before `mount` in an argument list, so that the mount ends first
    """A folder that all users can enter; the test runner's own folders are closed to other users."""
    path = Path(tempfile.mkdtemp(prefix="zarr-mount-system-", dir=os.environ.get("ZARR_MOUNT_TEST_TMP")))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def open_path(folder):
    """Skips where a folder above is closed to other users: no daemon of theirs could reach the store."""
    if run(*AS_NOBODY, "test", "-x", folder).returncode != 0:
        pytest.skip(f"{folder} cannot be entered by another user")
    return folder


@pytest.fixture
def store(folder):
    return sample.write(folder / "s.zarr")


@pytest.fixture
def command(folder):
    """A copy of the binary that every user can run: the checkout may lie in a closed home directory."""
    shutil.copy(BINARY, folder / "zarr-mount")
    return folder / "zarr-mount"


@pytest.fixture
def on_path():
    """The binary as mount(8) finds it."""
    with mounting.linked(ON_PATH) as link:
        if not link:
            pytest.skip(f"{ON_PATH} exists, and is not ours to replace")
        yield link


def test_a_plain_user_mounts_through_fusermount3(open_path, store, command):
    point = open_path / "m"
    point.mkdir()
    os.chown(point, NOBODY, NOBODY)
    try:
        mounting.ok(*AS_NOBODY, command, store, point)
        read = mounting.ok(*AS_NOBODY, "cat", point / "notes.txt")
        assert read == (store / "notes.txt").read_text()
        # Without allow_other, no other user sees it, not even root.
        assert run("ls", point).returncode != 0
        mounting.ok(*AS_NOBODY, command, "--unmount", point)
        assert not mounting.mount_entry(point)
        mounting.until(lambda: not mounting.daemons(point), "the daemon's end")
    finally:
        mounting.force_away(point)


def test_allow_other_opens_the_mount_and_not_private_files(open_path, store, mount):
    os.chmod(store / "notes.txt", 0o600)
    point = open_path / "m"
    point.mkdir()
    made = mount(store, "-o", "ro,allow_other,default_permissions", path=point)
    assert mounting.ok(*AS_NOBODY, "cat", point / "zarr.json") == (store / "zarr.json").read_text()
    assert run(*AS_NOBODY, "cat", point / "notes.txt").returncode != 0
    made.unmount()


def test_mount_by_type(folder, store, on_path):
    point = folder / "m"
    point.mkdir()
    try:
        mounting.ok("mount", "-t", "fuse.zarr-mount", store, point, "-o", "ro,allow_other,view=chunks")
        assert mounting.mount_entry(point)[0] == "fuse.zarr-mount"
        assert len((point / "sharded/c/0/0").read_bytes()) == 16 * 16 * 4
        mounting.ok("umount", point)
        mounting.until(lambda: not mounting.daemons(point), "the daemon's end")
    finally:
        mounting.force_away(point)


def test_an_fstab_line(folder, store, on_path):
    point = folder / "m"
    point.mkdir()
    table = folder / "fstab"
    table.write_text(f"{store} {point} fuse.zarr-mount ro,noauto,nofail,allow_other,default_permissions 0 0\n")
    try:
        mounting.ok("mount", "--fstab", table, point)
        assert (point / "notes.txt").read_bytes() == (store / "notes.txt").read_bytes()
        mounting.ok("umount", point)
        mounting.until(lambda: not mounting.daemons(point), "the daemon's end")
    finally:
        mounting.force_away(point)


def test_owner_and_mask_options(store, mount):
    made = mount(store, "--uid", "1234", "--gid", "5678", "--umask", "077")
    status = os.stat(made.path / "notes.txt")
    assert (status.st_uid, status.st_gid, status.st_mode & 0o777) == (1234, 5678, 0o400)
