"""Rights in a store that is written to through a mount: no change gives anybody more than the store's own owners and modes do."""
import errno
import os
import shutil
import stat
import struct
import tempfile
from pathlib import Path

import numpy as np
import pytest
import zarr

from support import mounting
from support.rights_stores import GROUP, MEMBER, STRANGER
from support.rights_users import as_user, read_error

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

def test_a_user_that_only_seems_to_own_a_store_gets_no_rights_of_its_owner(store, show):
    made = show(store, "--uid", str(STRANGER)).path

    def does(what, name, *args):
        return as_user(GUEST, attempt, what, str(made / name), *args)
    assert does("write", "notes", "#!/bin/sh\nid\n") is None
    for name in ("notes", "t/c/0", "t/zarr.json"):
        assert does("chmod", name, 0o7755) is None, name
        assert (bits(store / name), owner(store / name)) == (0o755, (0, 0)), name
        # A program that copies attributes sets the owner that is shown. The stored owner stays the same.
        assert does("chown", name, STRANGER, -1) is None, name
        for uid, gid in ((0, -1), (-1, STRANGER), (STRANGER, STRANGER)):
            assert does("chown", name, uid, gid) == "EPERM", (name, uid, gid)
        assert owner(store / name) == (0, 0), name
    # Files and directories that the user makes belong to the user, in the store too.
    os.chown(store, 0, STRANGER)
    os.chmod(store, 0o3777)
    assert does("make", "program", 0o6755) is None
    assert does("mkdir", "below", 0o1777) is None
    assert (bits(store / "program"), owner(store / "program")) == (0o755, (STRANGER, STRANGER))
    assert (bits(store / "below"), owner(store / "below")) == (0o2777, (STRANGER, STRANGER))
    # Set-group-ID and sticky bits of a directory can be removed, but not added.
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


# Names in another version.

@pytest.mark.parametrize("view", ["keys", "chunks"])
def test_a_directory_that_names_in_another_version_leave_out_counts(view, store, show):
    os.chmod(store / "t/c", 0o700)
    os.unlink(store / "t/c/1")
    made = show(store, "--view", view, "--as", "v2").path

    def is_private(name):
        return as_user(GUEST, read_error, str(made / name)) == "EACCES" and bits(made / name) == 0o600
    assert is_private("t/0")
    for name, mode in ("t/0", "r+b"), ("t/1", "w+b"):
        with open(made / name, mode) as file:
            file.write(bytes(range(64)))
            file.flush()
            assert is_private(name)
        assert is_private(name)


# Set-user-ID and set-group-ID bits.

@pytest.mark.parametrize("user", [GUEST, (0, [])], ids=["guest", "root"])
def test_a_written_file_gives_no_user_the_rights_of_its_owner(user, store, show):
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
def test_a_packed_shard_gives_no_user_the_rights_of_its_owner(view, store, show):
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
    """Set-user-ID bits that are set between two writes are removed when the draft is saved."""
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
    # A mode that was set after the last write stays.
    os.chmod(made / "notes", 0o4755)
    assert bits(store / "notes") == 0o4755


# Access control lists.

ACCESS, DEFAULT = "system.posix_acl_access", "system.posix_acl_default"
NOBODY = 65534
ALL_VIEWS = [("keys", "keep"), ("keys", "expand"), ("chunks", "expand")]


def acl(owner, others, mask):
    """Lets the user STRANGER read, and the group nothing. If the list is lost, the mode gives the group the rights of the mask."""
    entries = [(1, owner, -1), (2, 4, STRANGER), (4, 0, -1), (16, mask, -1), (32, others, -1)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", tag, given, number & 0xffffffff) for tag, given, number in entries)


def set_list(path, name, value):
    try:
        os.setxattr(path, name, value)
    except OSError as error:
        if error.errno != errno.EOPNOTSUPP:
            raise
        pytest.skip(f"{path}: the file system keeps no access lists")


def lists(path):
    return {name: os.getxattr(path, name) for name in os.listxattr(path) if name in (ACCESS, DEFAULT)}


@pytest.mark.parametrize("view, shards", ALL_VIEWS)
def test_a_list_stays_when_its_file_is_replaced(view, shards, store, show):
    names = ["t/c/0", "s/c/0", "t/zarr.json"]
    inner = "s/c/0" if shards == "keep" else "s/c/1"
    for name in names:
        os.chown(store / name, 0, GROUP)
        set_list(store / name, ACCESS, acl(6, 0, 4))
    made = show(store, "--view", view, "--shards", shards)
    document = (made.path / "t/zarr.json").read_text().replace('"attributes": {}', '"attributes": {"q": 1}')
    written = [("t/c/0", os.urandom(64)), (inner, os.urandom((store / "s/c/0").stat().st_size if shards == "keep" else 64)),
               ("t/zarr.json", document.encode())]
    for name, data in written:
        fd = os.open(made.path / name, os.O_WRONLY | os.O_TRUNC)
        try:
            os.write(fd, data)
            # While it is written, when it is closed and once it is saved.
            assert as_user(USER, read_error, str(made.path / name)) == "EACCES", name
        finally:
            os.close(fd)
        assert as_user(USER, read_error, str(made.path / name)) == "EACCES", name
    made.sync()
    for name in names:
        assert (bits(store / name), owner(store / name), lists(store / name)) == (0o640, (0, GROUP), {ACCESS: acl(6, 0, 4)}), name
        assert as_user(USER, read_error, str(store / name)) == "EACCES", name
        assert as_user(GUEST, read_error, str(store / name)) is None, name
    for name, _ in written:
        assert as_user(USER, read_error, str(made.path / name)) == "EACCES", name
    assert '"q": 1' in (store / "t/zarr.json").read_text()


def test_a_new_file_has_the_list_that_its_directory_gives(store, show, request):
    request.addfinalizer(lambda before=os.umask(0o022): os.umask(before))
    for directory in ("t", "t/c", "s/c"):
        set_list(store / directory, DEFAULT, acl(7, 0, 6))
    expected = {}
    for folder in ("t", "t/c"):
        (store / folder / "local").write_bytes(b"x")
        expected[folder] = (bits(store / folder / "local"), lists(store / folder / "local"))
    assert expected["t"] == (0o660, {ACCESS: acl(6, 0, 6)}), "the umask is not applied"
    for name in ("t/c/0", "s/c/0", "s/c/1"):
        os.unlink(store / name)
    made = show(store, "--view", "chunks", "--missing", "hide")
    fd = os.open(made.path / "s/c/0", os.O_CREAT | os.O_WRONLY, 0o666)
    try:
        os.write(fd, os.urandom(64))
        assert as_user(USER, read_error, str(made.path / "s/c/0")) == "EACCES"
    finally:
        os.close(fd)
    assert as_user(USER, read_error, str(made.path / "s/c/0")) == "EACCES", "in the journal"
    (made.path / "t/c/0").write_bytes(os.urandom(64))
    (made.path / "t/notes").write_bytes(b"x")
    made.sync()
    made.unmount()
    for name in ("t/c/0", "s/c/0"):
        assert (bits(store / name), lists(store / name)) == expected["t"], name
    # If the view shows chunks as they are stored, files that are made beside them are in the store.
    made = show(store, "--view", "keys", "--shards", "keep").path
    (made / "t/notes").write_bytes(b"x")
    (made / "t/c/0").unlink()
    (made / "t/c/0").write_bytes(b"x" * 64)
    (made / "t/below").mkdir(mode=0o777)
    for name in ("t/notes", "t/c/0"):
        assert (bits(store / name), lists(store / name)) == expected["t"], name
    os.mkdir(store / "t/local-below", 0o777)
    assert lists(store / "t/below") == lists(store / "t/local-below") and bits(store / "t/below") == bits(store / "t/local-below")
    # If the directory has no default list, the umask is applied.
    (made / "notes2").write_bytes(b"x")
    assert (bits(store / "notes2"), lists(store / "notes2")) == (0o644, {})


def test_the_sticky_bit_of_a_directory_with_a_list_keeps_others_from_removing(store, show):
    os.chmod(store / "t/c", 0o1777)
    set_list(store / "t/c", ACCESS, acl(7, 7, 7))
    os.chmod(store / "t/c/0", 0o666)
    made = show(store, "--view", "keys", "--shards", "keep").path
    assert bits(made / "t/c") & stat.S_ISVTX
    assert as_user(GUEST, attempt, "unlink", str(made / "t/c/0")) in ("EPERM", "EACCES")


# A daemon that is not root.

@pytest.fixture
def show_as_nobody(folder):
    """show(store, *args): a mount by a user who is in the group GROUP, for that user alone."""
    os.chown(folder, NOBODY, NOBODY)
    command, points = folder / "zarr-mount", []
    shutil.copy(mounting.BINARY, command)
    prefix = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", f"--groups={GROUP}"]

    def show(store, *args):
        points.append(folder / f"own{len(points)}")
        return mounting.Mount(store, points[-1], "--rw", *args, log=folder / "log", prefix=prefix, binary=command)
    yield show
    for point in points:
        mounting.force_away(point)
        mounting.until(lambda: not mounting.daemons(point), "the daemon's end")


def give_to(user, group, root, directory, file):
    for base, _, names in os.walk(root):
        os.chown(base, user, group)
        os.chmod(base, directory)
        for name in names:
            os.chown(Path(base, name), user, group)
            os.chmod(Path(base, name), file)


def as_nobody(*args):
    return as_user((NOBODY, [GROUP]), *args)


def save(mount_point):
    with open(Path(mount_point, ".zarr-mount/sync")) as everything:
        os.fsync(everything)


@pytest.mark.parametrize("view, shards", ALL_VIEWS)
def test_a_daemon_that_may_not_give_files_away_says_so_once(view, shards, store, show_as_nobody):
    give_to(MEMBER, GROUP, store, 0o2775, 0o664)
    made = show_as_nobody(store, "--view", view, "--shards", shards)
    names = ["t/c/0", "t/c/1", "s/c/0"]
    for name in names:
        text = "y" * (64 if shards == "expand" or name.startswith("t") else (store / name).stat().st_size)
        assert as_nobody(attempt, "overwrite", str(made.path / name), 0, text) is None, name
    as_nobody(save, str(made.path))
    for name in names:
        assert owner(store / name) == (NOBODY, GROUP) and bits(store / name) == 0o664, name
    said = [line for line in made.log_text().splitlines() if "only root may give files away" in line]
    assert len(said) == 1 and f"user {MEMBER}" in said[0], made.log_text()


def test_a_store_that_the_daemon_may_not_write_is_reported_at_the_start(store, show_as_nobody):
    give_to(NOBODY, NOBODY, store, 0o755, 0o644)
    made = show_as_nobody(store)
    assert "may not write" not in made.said
    made.unmount()
    give_to(0, 0, store, 0o755, 0o644)
    made = show_as_nobody(store)
    assert f"STORE {store}: this user may not write to this directory" in made.said, made.said
    assert as_nobody(attempt, "overwrite", str(made.path / "t/c/0"), 0, "y" * 64) == "EACCES"


def test_a_group_that_the_daemon_may_not_give_is_none_that_gets_more(store, show_as_nobody):
    give_to(NOBODY, NOBODY, store, 0o755, 0o644)
    os.chown(store / "t/c/0", NOBODY, MEMBER)
    os.chmod(store / "t/c/0", 0o664)
    set_list(store / "t/c/1", ACCESS, acl(6, 0, 6))
    os.chown(store / "t/c/1", NOBODY, MEMBER)
    made = show_as_nobody(store, "--view", "keys", "--shards", "keep")
    for name in ("t/c/0", "t/c/1"):
        assert as_nobody(attempt, "overwrite", str(made.path / name), 0, "y" * 64) is None, name
    assert (bits(store / "t/c/0"), owner(store / "t/c/0")) == (0o644, (NOBODY, NOBODY))
    assert (lists(store / "t/c/1"), owner(store / "t/c/1")) == ({ACCESS: acl(6, 0, 6)}, (NOBODY, NOBODY))


@pytest.mark.parametrize("view, shards", ALL_VIEWS)
def test_files_that_the_daemon_may_not_replace_cannot_be_opened_for_writing(view, shards, store, show_as_nobody):
    give_to(MEMBER, GROUP, store, 0o3775, 0o664)
    # An absent file may be made, and a file of the user of the daemon may be replaced.
    os.unlink(store / "t/c/2")
    os.chown(store / "t/c/3", NOBODY, GROUP)
    before = {name: (store / name).read_bytes() for name in ("t/c/0", "s/c/0", "t/zarr.json")}
    made = show_as_nobody(store, "--view", view, "--shards", shards, "--missing", "hide")
    for name in before:
        assert as_nobody(attempt, "overwrite", str(made.path / name), 0, "{") == "EPERM", name
        assert as_nobody(attempt, "truncate", str(made.path / name), 0) == "EPERM", name
    for name in ("t/c/0", "s/c/0"):
        assert as_nobody(attempt, "unlink", str(made.path / name)) == "EPERM", name
    for name in ("t/c/2", "t/c/3"):
        assert as_nobody(attempt, "write", str(made.path / name), "y" * 64) is None, name
    as_nobody(save, str(made.path))
    assert {name: (store / name).read_bytes() for name in before} == before
    made.unmount()
    assert not (store / ".zarr-mount").exists(), "nothing waits"


def test_a_shard_in_a_directory_that_the_daemon_may_not_write_cannot_be_opened_for_writing(store, show_as_nobody):
    give_to(MEMBER, GROUP, store, 0o2775, 0o664)
    os.chmod(store / "s/c", 0o755)
    made = show_as_nobody(store, "--view", "chunks")
    assert as_nobody(attempt, "overwrite", str(made.path / "s/c/0"), 0, "y" * 64) == "EACCES"
    assert as_nobody(attempt, "overwrite", str(made.path / "t/c/0"), 0, "y" * 64) is None
