"""Rights in a store that is written to through a mount: no change gives anybody more than the store's own owners and modes do."""
import errno
import os
import shutil
import stat
import tempfile
from pathlib import Path

import numpy as np
import pytest
import zarr

from rights_stores import GROUP, MEMBER, STRANGER
from rights_users import as_user

pytestmark = pytest.mark.root

USER, GUEST = (MEMBER, [MEMBER, GROUP]), (STRANGER, [STRANGER])


@pytest.fixture
def folder():  # before `mount` in an argument list, so that the mount ends first
    """A folder that everybody can enter; the test runner's own are closed to other users."""
    path = Path(tempfile.mkdtemp(prefix="zarr-mount-writing-rights-", dir=os.environ.get("ZARR_MOUNT_TEST_TMP")))
    path.chmod(0o755)
    if not as_user(GUEST, os.access, str(path), os.X_OK):
        pytest.skip(f"{path} cannot be entered by another user")
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def show(folder, mount):
    def show(store, *args):
        point = Path(tempfile.mkdtemp(prefix="m", dir=folder))
        point.chmod(0o755)
        return mount(store, "--rw", "-o", "allow_other", *args, path=point)
    return show


@pytest.fixture
def store(folder):
    """Arrays `t` of chunks and `s` of shards, both of 64 bytes a chunk, and a file `notes`. All is root's."""
    root = folder / "s.zarr"
    group = zarr.open_group(str(root), mode="w")
    for name, more in (("t", {}), ("s", {"shards": (32,)})):
        array = group.create_array(name, shape=(64,), chunks=(8,), dtype="i8", compressors=None, fill_value=0, **more)
        array[...] = np.arange(64) + 1
    (root / "notes").write_bytes(b"x" * 64)
    return root


def bits(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def owner(path):
    found = os.stat(path)
    return found.st_uid, found.st_gid


def attempt(what, path, *args):
    """The errno of a call, or None."""
    def make(mode):
        os.umask(0)
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))

    def mkdir(mode):
        os.umask(0)
        os.mkdir(path, mode)

    def overwrite(offset, text):
        fd = os.open(path, os.O_WRONLY)
        try:
            os.pwrite(fd, text.encode(), offset)
        finally:
            os.close(fd)
    calls = {"write": lambda text: Path(path).write_bytes(text.encode()), "overwrite": overwrite, "make": make, "mkdir": mkdir,
             "chmod": lambda mode: os.chmod(path, mode), "chown": lambda uid, gid: os.chown(path, uid, gid),
             "truncate": lambda length: os.truncate(path, length), "unlink": lambda: os.unlink(path)}
    try:
        calls[what](*args)
    except OSError as error:
        return errno.errorcode[error.errno]
    return None


# Mounts that show other owners and modes than the store has.

def test_who_only_seems_to_own_a_store_gets_no_rights_of_its_owner(store, show):
    made = show(store, "--uid", str(STRANGER)).path

    def does(what, name, *args):
        return as_user(GUEST, attempt, what, str(made / name), *args)
    assert does("write", "notes", "#!/bin/sh\nid\n") is None
    for name in ("notes", "t/c/0", "t/zarr.json"):
        assert does("chmod", name, 0o7755) is None, name
        assert (bits(store / name), owner(store / name)) == (0o755, (0, 0)), name
        # Who copies attributes sets the owner that is shown. It stays what it is.
        assert does("chown", name, STRANGER, -1) is None, name
        for uid, gid in ((0, -1), (-1, STRANGER), (STRANGER, STRANGER)):
            assert does("chown", name, uid, gid) == "EPERM", (name, uid, gid)
        assert owner(store / name) == (0, 0), name
    # What the user makes is its own, in the store too.
    os.chown(store, 0, STRANGER)
    os.chmod(store, 0o3777)
    assert does("make", "program", 0o6755) is None
    assert does("mkdir", "below", 0o1777) is None
    assert (bits(store / "program"), owner(store / "program")) == (0o755, (STRANGER, STRANGER))
    assert (bits(store / "below"), owner(store / "below")) == (0o2777, (STRANGER, STRANGER))
    # The bits of a directory can be taken away, and stay where they are.
    for asked, left in ((0o7775, 0o3775), (0o0775, 0o0775), (0o7775, 0o0775)):
        assert does("chmod", ".", asked) is None and bits(store) == left, oct(asked)


@pytest.mark.parametrize("option", [("--gid", str(STRANGER)), ("--umask", "020")])
def test_a_program_of_a_user_does_not_get_the_group_of_the_store(option, store, show):
    """The user owns the file, whose group is root's."""
    os.chown(store / "notes", STRANGER, 0)
    os.chmod(store, 0o2777)
    made = show(store, *option).path
    assert as_user(GUEST, attempt, "write", str(made / "notes"), "#!/bin/sh\nid\n") is None
    assert as_user(GUEST, attempt, "chmod", str(made / "notes"), 0o6755) is None
    assert (bits(store / "notes"), owner(store / "notes")) == (0o755, (STRANGER, 0))
    assert as_user(GUEST, attempt, "make", str(made / "new"), 0o6755) is None
    assert (bits(store / "new"), owner(store / "new")) == (0o755, (STRANGER, 0))


# Set-user-ID and set-group-ID bits.

@pytest.mark.parametrize("user", [GUEST, (0, [])], ids=["guest", "root"])
def test_what_is_written_gives_nobody_the_rights_of_its_owner(user, store, show):
    os.chmod(store / "t/zarr.json", 0o6777)
    changes = [("notes", ("overwrite", 3, "y")), ("cut", ("truncate", 10)), ("longer", ("truncate", 100)), ("anew", ("write", "z")),
               ("emptied", ("write", "")), ("linked", ("overwrite", 0, "y")), ("t/c/0", ("overwrite", 3, "y")), ("t/c/1", ("write", "y" * 64)),
               ("s/c/0", ("overwrite", 8, "y")), ("t/c/2", ("overwrite", 0, "y" * 64))]
    for name, _ in changes:
        if not (store / name).exists():
            (store / name).write_bytes(b"x" * 64)
    os.link(store / "linked", store / "other")
    for mode, after in ((0o6777, 0o777), (0o6767, 0o2767)):
        made = show(store, "--view", "keys", "--shards", "keep")
        for name, change in changes:
            # By a chmod of the mount, too, after which the kernel knows the mode.
            os.chmod((made.path if name in ("notes", "t/c/0") else store) / name, mode)
            os.stat(made.path / name)
            assert as_user(user, attempt, change[0], str(made.path / name), *change[1:]) is None, name
            assert bits(store / name) == after, (name, oct(mode))
            if name != "linked":
                assert bits(made.path / name) == after, (name, oct(mode))
        assert bits(store / "t/zarr.json") == 0o6777, "it was not written"
        made.unmount()


@pytest.mark.parametrize("view", ["chunks", "keys"])
def test_a_shard_that_is_packed_gives_nobody_the_rights_of_its_owner(view, store, show):
    for name in ("t/c/0", "s/c/0"):
        os.chmod(store / name, 0o6777)
    made = show(store, "--view", view)
    for name in ("t/c/0", "s/c/0"):
        assert as_user(GUEST, attempt, "overwrite", str(made.path / name), 0, "y" * 64) is None, name
    made.sync()
    for name in ("t/c/0", "s/c/0"):
        assert (bits(store / name), owner(store / name)) == (0o777, (0, 0)), name
        assert b"y" * 64 in (store / name).read_bytes(), name


def test_bits_that_are_set_before_the_last_write_are_gone(store, show):
    """Also of a draft, and of one that is written after that."""
    made = show(store, "--view", "keys", "--shards", "keep").path
    for name in ("t/c/0", "t/c/9"):
        fd = os.open(made / name, os.O_CREAT | os.O_WRONLY, 0o644)
        try:
            os.write(fd, b"y" * 32)
            os.fchmod(fd, 0o6777)
            os.write(fd, b"z" * 32)
        finally:
            os.close(fd)
        assert bits(store / name) == 0o777, name
    # What was set after the last write stays.
    os.chmod(made / "notes", 0o4755)
    assert bits(store / "notes") == 0o4755
