"""A mount with `--rw` for several users: each has the same rights as in the store, and new files belong to the user who makes them."""
import errno
import os
import shutil
import stat
import tempfile
from pathlib import Path

import pytest
import zarr

from support import mounting, writing_samples
from support.rights_stores import GROUP, MEMBER, STRANGER
from support.rights_users import as_user
from support.writing_samples import ARGS

pytestmark = pytest.mark.root

OTHER, GUEST = (MEMBER, [MEMBER, GROUP]), (STRANGER, [STRANGER])


@pytest.fixture
def folder():  # before `mount` in an argument list, so that the mount ends first
    path = Path(tempfile.mkdtemp(prefix="zarr-mount-users-", dir=os.environ.get("ZARR_MOUNT_TEST_TMP")))
    path.chmod(0o755)
    if not as_user(GUEST, os.access, str(path), os.X_OK):
        pytest.skip(f"{path} cannot be entered by another user")
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def shared(folder, mount):
    store = writing_samples.write(folder / "store")
    (folder / "m").mkdir()
    made = mount(store, *ARGS, "-o", "allow_other", path=folder / "m")
    yield store, made.path


def attempt(what, *args):
    """The errno of a call, or None. Called as another user."""
    try:
        {"write": lambda path: Path(path).write_bytes(b"theirs"), "unlink": os.unlink, "rename": os.rename, "link": os.link, "mkdir": os.mkdir,
         "chmod": os.chmod, "open": lambda path, flags: os.close(os.open(path, flags, 0o640)), "rmdir": os.rmdir}[what](*args)
    except OSError as error:
        return errno.errorcode[error.errno]
    return None


def test_users_have_no_more_rights_than_in_the_store(shared):
    store, m = shared
    chunk = "a/c/0/0"
    for user in (OTHER, GUEST):
        for what, *args in [("write", m / chunk), ("unlink", m / chunk), ("rename", m / chunk, m / "a/c/0/1"), ("mkdir", m / "x"),
                            ("chmod", m / chunk, 0o666), ("write", m / "a/zarr.json"), ("write", m / "new"), ("rmdir", m / "a/c/0")]:
            said = as_user(user, attempt, what, *map(lambda a: a if isinstance(a, int) else str(a), args))
            assert said in ("EACCES", "EPERM"), (what, args, said)
    assert (store / chunk).read_bytes() != b"theirs"


def test_new_files_belong_to_the_user_who_makes_them(shared):
    store, m = shared
    (store / "a/c/0").chmod(0o1777)
    assert as_user(OTHER, attempt, "open", str(m / "a/c/0/7"), os.O_CREAT | os.O_WRONLY) is None
    assert as_user(OTHER, attempt, "write", str(m / "a/c/0/notes")) is None
    assert as_user(OTHER, attempt, "mkdir", str(m / "a/c/0/d")) is None
    for name in ("7", "notes", "d"):
        found = (store / "a/c/0" / name).stat()
        assert (found.st_uid, found.st_gid) == (MEMBER, MEMBER), name
    assert stat.S_IMODE((store / "a/c/0/7").stat().st_mode) == 0o640
    # The maker may change it, and no other user may. The bit of the directory prevents others from removing it.
    assert as_user(OTHER, attempt, "write", str(m / "a/c/0/7")) is None
    assert (store / "a/c/0/7").stat().st_uid == MEMBER
    for what, *args in [("write", "7"), ("unlink", "7"), ("unlink", "notes"), ("rmdir", "d"), ("chmod", "7", 0o777)]:
        said = as_user(GUEST, attempt, what, str(m / "a/c/0" / args[0]), *args[1:])
        assert said in ("EACCES", "EPERM"), (what, args, said)


def test_owner_and_mode_stay_when_another_user_replaces_a_chunk(shared):
    store, m = shared
    chunk = store / "a/c/0/0"
    os.chown(chunk, STRANGER, GROUP)
    chunk.chmod(0o664)
    assert as_user(OTHER, attempt, "write", str(m / "a/c/0/0")) is None, "its group may write"
    found = chunk.stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (STRANGER, GROUP, 0o664)
    assert chunk.read_bytes() == b"theirs"


def test_a_directory_that_passes_its_group_on(shared):
    store, m = shared
    os.chown(store / "a/c/0", 0, GROUP)
    (store / "a/c/0").chmod(0o2777)
    for name, what in [("8", "write"), ("plain", "write"), ("d", "mkdir")]:
        assert as_user(GUEST, attempt, what, str(m / "a/c/0" / name)) is None
        assert (store / "a/c/0" / name).stat().st_gid == GROUP, name
    assert stat.S_IMODE((store / "a/c/0/d").stat().st_mode) & stat.S_ISGID


def test_a_daemon_of_a_plain_user_writes_the_files_that_the_user_may_write(folder):
    store = writing_samples.write(folder / "store")
    os.chown(store / "a/c/0", 65534, 65534)
    os.chown(folder, 65534, 65534)
    shutil.copy(mounting.BINARY, folder / "zarr-mount")
    (folder / "m").mkdir()
    os.chown(folder / "m", 65534, 65534)
    prefix = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    user = (65534, [65534])
    done = mounting.run(*prefix, folder / "zarr-mount", store, folder / "m", *ARGS)
    if done.returncode and "fusermount3" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    try:
        m = folder / "m"
        assert as_user(user, attempt, "write", str(m / "a/c/0/9")) is None
        assert as_user(user, attempt, "write", str(m / "a/c/1/1")) == "EACCES", "it is root's"
        assert as_user(user, attempt, "write", str(m / "notes")) == "EACCES"
        found = (store / "a/c/0/9").stat()
        assert found.st_uid == 65534
    finally:
        mounting.ok(*prefix, folder / "zarr-mount", "--unmount", folder / "m")


@pytest.mark.parametrize("view", ["chunks", "keys"])
@pytest.mark.parametrize("missing", ["fill", "hide"])
def test_no_user_changes_a_shard_by_a_new_inner_chunk_without_the_right_to_replace_it(missing, view, folder, mount):
    store = folder / "store"
    array = zarr.create_group(str(store)).create_array("a", shape=(16, 16), chunks=(8, 8), shards=(16, 16), dtype="f4", fill_value=0)
    array[:8, :8] = 7
    shard, before = store / "a/c/0/0", (store / "a/c/0/0").read_bytes()
    (store / "a/zarr.json").chmod(0o666)
    (store / "a/c/0").chmod(0o1777)
    (folder / "m").mkdir()
    made = mount(store, "--rw", "--view", view, "--missing", missing, "-o", "allow_other", path=folder / "m")
    absent = made.path / "a/c/0/1"
    if missing == "fill" and view == "chunks":
        assert stat.S_IMODE(absent.stat().st_mode) == 0o644
    assert as_user(GUEST, attempt, "write", str(absent)) in ("EACCES", "EPERM")
    # Nor by a temporary file that gets its name.
    other = made.path / "a/c/0/other"
    assert as_user(GUEST, write, str(other), bytes(8 * 8 * 4 - 1) + b"\1") is None
    for what in ("rename", "link"):
        assert as_user(GUEST, attempt, what, str(other), str(absent)) in ("EACCES", "EPERM", "EEXIST"), what
    made.sync()
    assert shard.read_bytes() == before
    # A user who may replace the shard may change it.
    shard.chmod(0o666)
    assert as_user(GUEST, write, str(absent), bytes(8 * 8 * 4 - 1) + b"\1") is None
    made.sync()
    assert shard.read_bytes() != before


def write(path, data):
    Path(path).write_bytes(data)


@pytest.mark.parametrize("view", ["chunks", "keys"])
@pytest.mark.parametrize("by", ["write", "rename", "link"])
def test_a_shard_belongs_to_the_maker_of_its_first_inner_chunk(by, view, folder, mount):
    store = folder / "store"
    zarr.create_group(str(store)).create_array("a", shape=(16, 16), chunks=(8, 8), shards=(16, 16), dtype="u1", fill_value=0, compressors=None)
    (store / "a/c/0").mkdir(parents=True)
    (store / "a/c/0").chmod(0o1777)
    (store / "a/zarr.json").chmod(0o666)
    (folder / "m").mkdir()
    made = mount(store, "--rw", "--view", view, "--missing", "hide", "-o", "allow_other", path=folder / "m")
    chunks = made.path / "a/c/0"
    if by == "write":
        assert as_user(OTHER, write, str(chunks / "0"), bytes([1] * 64)) is None
    else:
        assert as_user(OTHER, write, str(chunks / "t"), bytes([1] * 64)) is None
        assert as_user(OTHER, attempt, by, str(chunks / "t"), str(chunks / "0")) is None
    # No other user can change the shard, neither before it is packed nor after that.
    for _ in range(2):
        assert as_user(GUEST, write, str(chunks / "g"), bytes([2] * 64)) is None
        assert as_user(GUEST, attempt, "rename", str(chunks / "g"), str(chunks / "1")) in ("EACCES", "EPERM")
        made.sync()
        found = (store / "a/c/0/0").stat()
        assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (MEMBER, MEMBER, 0o644)
    assert as_user(OTHER, write, str(chunks / "1"), bytes([3] * 64)) is None
    made.sync()
    shown = zarr.open_array(str(store / "a"), mode="r")[...]
    assert (shown[:8, :8] == 1).all() and (shown[:8, 8:] == 3).all()


@pytest.mark.parametrize("shards", [None, (16, 16)])
@pytest.mark.parametrize("directory,made_by_others", [(0o755, False), (0o777, True)])
def test_no_user_writes_a_chunk_of_fill_values_without_the_right_to_make_it(directory, made_by_others, shards, folder, mount):
    store = folder / "store"
    zarr.create_group(str(store)).create_array("a", shape=(16, 16), chunks=(8, 8), shards=shards, dtype="u1", fill_value=0)
    (store / "a/c/0").mkdir(parents=True)
    (store / "a/c/0").chmod(directory)
    (store / "a/zarr.json").chmod(0o666)
    (folder / "m").mkdir()
    made = mount(store, "--rw", "--view", "chunks", "-o", "allow_other", path=folder / "m")
    absent = made.path / "a/c/0/0"
    assert stat.S_IMODE(absent.stat().st_mode) == (0o666 if made_by_others else 0o644)
    said = as_user(GUEST, attempt_write, str(absent), bytes([1] * 64))
    assert said == (None if made_by_others else "EACCES")
    made.sync()
    assert bool(zarr.open_array(str(store / "a"), mode="r")[0, 0]) == made_by_others


def attempt_write(path, data):
    try:
        write(path, data)
    except OSError as error:
        return errno.errorcode[error.errno]
    return None


@pytest.mark.parametrize("view", ["chunks", "keys"])
def test_a_file_from_before_does_not_get_into_the_shard_of_another_user(view, folder, mount):
    store = folder / "store"
    zarr.create_group(str(store)).create_array("a", shape=(16, 16), chunks=(8, 8), shards=(16, 16), dtype="u1", fill_value=0, compressors=None)
    (store / "a/c/0").mkdir(parents=True)
    (store / "a/c/0").chmod(0o1777)
    (folder / "m").mkdir()
    made = mount(store, "--rw", "--view", view, "--missing", "hide", "-o", "allow_other", path=folder / "m")
    chunks = made.path / "a/c/0"
    (ready, is_ready), (goes_on, go_on) = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(STRANGER)
            os.setuid(STRANGER)
            fd = os.open(chunks / "1", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
            os.write(is_ready, b"1")
            os.read(goes_on, 1)
            os.write(fd, bytes([2] * 64))
            try:
                os.fsync(fd)
            except PermissionError:
                os._exit(0)
        finally:
            os._exit(1)
    os.read(ready, 1)
    assert as_user(OTHER, write, str(chunks / "0"), bytes([1] * 64)) is None
    os.write(go_on, b"1")
    assert os.waitpid(child, 0)[1] == 0
    made.sync()
    shown = zarr.open_array(str(store / "a"), mode="r")[...]
    assert (shown[:8, :8] == 1).all() and (shown[:8, 8:] == 0).all()
