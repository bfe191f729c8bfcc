"""Rights: through a mount, a user reads only objects that the same user may read in the store, whatever other users have read before.

The daemon is root's, and all users may see the mount (`allow_other`), unless a test says otherwise.
"""
import json
import os
import random
import shutil
import stat
import tempfile
from pathlib import Path

import pytest

from support import mounting, rights_stores
from support.mounting import BINARY, run
from support.rights_stores import GROUP, MEMBER, STRANGER
from support.rights_users import as_user, look, read_error, read_whole, walk

pytestmark = pytest.mark.root

FORMATS = "npy,raw,jsonl,nhdr,nii,nc,h5"
USERS = {"stranger": (STRANGER, [STRANGER]), "member": (MEMBER, [MEMBER, GROUP])}
OUTSIDER = USERS["stranger"]
# A user with a name, without which fusermount3 mounts nothing.
NOBODY = 65534
# The number of random stores, unless the environment has another one.
SEEDS = range(int(os.environ.get("ZARR_MOUNT_RIGHTS_SEEDS", "3")))


@pytest.fixture
def folder():  # before `mount` in an argument list, so that the mount ends first
    """A folder that all users can enter; the test runner's own folders are closed to other users."""
    path = Path(tempfile.mkdtemp(prefix="zarr-mount-rights-", dir=os.environ.get("ZARR_MOUNT_TEST_TMP")))
    path.chmod(0o755)
    if not as_user(OUTSIDER, os.access, str(path), os.X_OK):
        pytest.skip(f"{path} cannot be entered by another user")
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def show(folder, mount):
    def show(store, *args, options="allow_other", **kwargs):
        point = Path(tempfile.mkdtemp(prefix="m", dir=folder))
        point.chmod(0o755)
        return mount(store, "-o", options, *args, path=point, **kwargs)
    return show


@pytest.fixture
def show_as_nobody(folder):
    """show(store, *args): a mount by a user who may not read everything, for that user alone."""
    os.chown(folder, NOBODY, NOBODY)
    command, points = folder / "zarr-mount", []
    shutil.copy(BINARY, command)
    prefix = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]

    def show(store, *args):
        points.append(folder / f"own{len(points)}")
        return mounting.Mount(store, points[-1], *args, log=folder / "log", prefix=prefix, binary=command)
    yield show
    for point in points:
        mounting.force_away(point)
        mounting.until(lambda: not mounting.daemons(point), "the daemon's end")


@pytest.fixture
def store(folder):
    """A v3 store `s.zarr`, open to all: an array `t` with a chunk in each of two directories, a group `g` with an array `t`."""
    root = folder / "s.zarr"
    group(root, {"title": "outer"})
    group(root / "g", {"title": "INNER"})
    array(root / "t", "outer", b"aaaabbbb")
    array(root / "g" / "t", "INNER", b"ccccdddd")
    return root


def group(path, attributes):
    path.mkdir(parents=True)
    (path / "zarr.json").write_text(json.dumps({"zarr_format": 3, "node_type": "group", "attributes": attributes}))


def array(path, name, data):
    """Two rows of four bytes, each in a chunk, each in a directory."""
    path.mkdir(parents=True)
    (path / "zarr.json").write_text(json.dumps({
        "zarr_format": 3, "node_type": "array", "shape": [2, 4], "data_type": "uint8", "fill_value": 0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1, 4]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "codecs": [{"name": "bytes"}], "attributes": {"long_name": name}}))
    for row in range(2):
        chunk = path / "c" / str(row) / "0"
        chunk.parent.mkdir(parents=True)
        chunk.write_bytes(data[4 * row:4 * row + 4])


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


# The promises that every random store must keep.

@pytest.mark.parametrize("version", [None, "v2", "v3"])
@pytest.mark.parametrize("seed", SEEDS)
def test_no_user_reads_objects_that_the_store_denies(folder, show, seed, version, figure):
    dice = random.Random(1000 * seed + len(version or ""))
    made = rights_stores.write(folder / "s.zarr", dice)
    if dice.random() < 0.5:
        made.link_some()
    made.close_some(dice.choice([0.05, 0.15, 0.3]))
    views = ["--view", "keys,chunks,arrays", "--files", FORMATS, "--missing", "hide", "--ttl", "0"]
    mounted = show(made.root, *views, *(["--as", version] if version else []))
    names = sorted(walk(mounted.path))
    assert names
    allowed = {user: set() for user in USERS}
    for turn in ("first", "after changes"):
        if dice.random() < 0.5:
            # The objects that root reads are in the kernel's cache, and in the daemon's.
            look(mounted.path, [])
        for user, who in USERS.items():
            _, readable = as_user(who, look, str(made.root), made.objects())
            # A user may still read pages of a file that were read when the user had the right to, as long as the file does not change.
            allowed[user] |= made.allowed(readable)
            found, whole = as_user(who, look, str(mounted.path), names)
            leaks = {name: sorted(set(markers) - allowed[user]) for name, markers in found.items()}
            leaks = {name: [(m, sorted(made.holders[m])) for m in markers] for name, markers in leaks.items() if markers}
            assert not leaks, (turn, user)
            if version is None and turn == "first":
                agree_about_keys(made, readable, whole)
            figure(f"rights {seed} as {version}, {turn}: the {user} reads {len(readable)} of {len(made.objects())} objects, "
                   f"{len(whole)} of {len(names)} files")
        made.close_some(0.1)


def agree_about_keys(made, readable, whole):
    """In the keys view, files that are shown as they are stored can be read by the users who can read them in the store, except for rights
    from access lists."""
    listed = [path for path in [made.root, *made.root.rglob("*")] if has_list(path)]
    as_stored = {key for key in made.objects() if "/c/" not in key or "shards" not in key.split("/")}
    as_stored -= {key for key in as_stored if any(Path(made.root, key).is_relative_to(path) for path in listed)}
    shown = {name.removeprefix("keys/") for name in whole if name.startswith("keys/")}
    assert shown & as_stored == set(readable) & as_stored


def has_list(path):
    return "system.posix_acl_access" in os.listxattr(path)


def test_an_open_store_is_open(folder, show):
    """The test above would pass if no user could read anything."""
    made = rights_stores.write(folder / "s.zarr", random.Random(5))
    for path in [made.root, *made.root.rglob("*")]:
        os.chmod(path, 0o755 if path.is_dir() else 0o644)
    mounted = show(made.root, "--view", "keys,chunks,arrays", "--files", FORMATS, "--missing", "hide")
    everything, _ = look(mounted.path, [])
    found, whole = as_user(OUTSIDER, look, str(mounted.path), list(everything))
    assert found == everything and set(whole) == set(everything)
    seen = {marker for markers in found.values() for marker in markers}
    # An outdated copy gives way to the document that it is a copy of.
    held = {marker for marker, holders in made.holders.items() if holders - {".zmetadata", "zarr.json"}}
    assert {marker for marker in held if marker.startswith("Mk")} <= seen


# The rule, part by part.

@pytest.mark.parametrize("closed, expected", [
    ({}, 0o444),
    ({".": 0o750}, 0o440),
    ({"g": 0o700}, 0o400),
    ({"g/t": 0o711}, 0o444),
    ({"g/t": 0o744}, 0o400),
    ({"g/t/zarr.json": 0o640}, 0o440),
    ({"g": 0o705, "g/t/zarr.json": 0o640}, 0o400),
    ({"zarr.json": 0o600, "t": 0o700, "g/zarr.json": 0o600}, 0o444),
])
def test_the_mode_of_an_arrays_file_is_the_meet_of_those_of_its_objects(store, show, closed, expected):
    for path, bits in closed.items():
        os.chmod(store / path, bits)
    made = show(store, "--view", "arrays", "--files", "npy,raw")
    assert {mode(made.path / "g" / name) for name in ("t.npy", "t.raw", "t.json", "t@0.npy")} == {expected}


@pytest.mark.parametrize("closed, expected", [
    ({}, 0o444),
    ({"g": 0o750}, 0o440),
    ({"g/zarr.json": 0o600}, 0o400),
    ({"g": 0o711}, 0o444),
    ({"zarr.json": 0o600, "g/t": 0o700, "t": 0o700}, 0o444),
])
def test_the_attributes_of_a_group_are_read_by_those_who_may_read_its_document(store, show, closed, expected):
    for path, bits in closed.items():
        os.chmod(store / path, bits)
    made = show(store, "--view", "arrays")
    assert mode(made.path / "g" / "g.json") == expected
    assert "INNER" in read_whole(made.path / "g" / "g.json")


def test_names_in_the_attributes_of_a_group_are_read_by_those_who_may_list_it(store, show):
    os.chmod(store / "g" / "t", 0o700)
    array(store / "g" / "u", "INNER", b"ccccdddd")
    arguments = ["--view", "arrays", "--files", "nc"]
    assert json.loads(read_whole(show(store, *arguments).path / "g" / "g.json"))["left_out"]["nc"].keys() == {"t"}
    os.chmod(store / "g", 0o711)
    assert mode(show(store, *arguments).path / "g" / "g.json") == 0o400


@pytest.mark.parametrize("owner, bits, expected", [
    ((STRANGER, 0), 0o700, 0o000),
    ((STRANGER, 0), 0o755, 0o444),
    ((STRANGER, 0), 0o750, 0o040),
    ((0, GROUP), 0o750, 0o400),
    ((STRANGER, GROUP), 0o751, 0o444),
    ((STRANGER, GROUP), 0o770, 0o000),
])
def test_where_owners_differ_a_class_has_the_bits_of_others(store, show, owner, bits, expected):
    os.chown(store / "t", *owner)
    os.chmod(store / "t", bits)
    assert mode(show(store, "--view", "arrays").path / "t.npy") == expected


def left_out(store):
    """The parts that the files of the root leave out, according to `--info`."""
    nodes = json.loads(mounting.ok(BINARY, "--info", "--json", "--files", "nc,h5", "-o", "allow_other", store))
    return next(node["left_out"] for node in nodes if node["path"] == "/")


@pytest.mark.parametrize("closed", [{"g": 0o700}, {"g/zarr.json": 0o600}, {"g": 0o750}])
def test_a_group_file_leaves_out_and_names_a_private_group(store, show, closed):
    for path, bits in closed.items():
        os.chmod(store / path, bits)
    made = show(store, "--view", "arrays", "--files", "nc,h5")
    assert mode(made.path / "s.h5") == 0o444
    for name in ("s.h5", "s.nc"):
        read = as_user(OUTSIDER, read_whole, str(made.path / name))
        assert "aaaabbbb" in read and "cccc" not in read and "INNER" not in read
    assert "zarr_omitted" in read_whole(made.path / "s.h5") and "g: " in left_out(store)["h5"]
    assert "g is not in the HDF5 file" in made.log_text()


def test_a_group_file_leaves_out_and_names_a_private_array(store, show):
    os.chmod(store / "g" / "t", 0o700)
    array(store / "u", "outer", b"eeeeffff")
    os.chmod(store / "u" / "zarr.json", 0o640)
    made = show(store, "--view", "arrays", "--files", "nc,h5")
    for name in ("s.h5", "s.nc"):
        read = as_user(OUTSIDER, read_whole, str(made.path / name))
        assert "aaaabbbb" in read and "cccc" not in read and "eeee" not in read
    assert "u: " in left_out(store)["nc"]
    sidecar = json.loads((made.path / "u.json").read_text())
    assert "fewer users" in sidecar["left_out"]["h5"]


def test_a_private_group_has_its_own_file(store, show):
    """The file has all parts that all of its readers may read."""
    for path in ("g", "g/t"):
        os.chmod(store / path, 0o700)
    made = show(store, "--view", "arrays", "--files", "h5")
    assert mode(made.path / "g" / "g.h5") == 0o400
    assert "ccccdddd" in read_whole(made.path / "g" / "g.h5")


def test_a_private_coordinate_says_nothing_of_others(store, show):
    document = json.loads((store / "t/zarr.json").read_text())
    (store / "t/zarr.json").write_text(json.dumps({**document, "dimension_names": ["y", "x"]}))
    y = {**document, "shape": [2], "dimension_names": ["y"], "attributes": {"units": "m", "long_name": "SECRET", "axis": "Y"}}
    y["chunk_grid"] = {"name": "regular", "configuration": {"chunk_shape": [2]}}
    (store / "y").mkdir()
    (store / "y/zarr.json").write_text(json.dumps(y))
    os.chmod(store / "y", 0o700)
    made = show(store, "--view", "arrays", "--files", "npy,nhdr")
    for name in ("t.npy", "t.nhdr", "t.json"):
        assert mode(made.path / name) == 0o444
        assert "SECRET" not in read_whole(made.path / name)


# Chunks.

@pytest.mark.parametrize("closed", [{"t/c/1": 0o700}, {"t/c/1/0": 0o600}, {"t/c/1": 0o744}])
@pytest.mark.parametrize("extra", [[], ["--immutable"]])
def test_a_private_chunk_is_denied_to_all_and_the_others_are_not(store, show, closed, extra):
    for path, bits in closed.items():
        os.chmod(store / path, bits)
    made = show(store, "--view", "arrays", "--files", "npy,h5", *extra)
    for name in ("t.npy", "t@1.npy", "s.h5"):
        # Root comes first: all users could read the cached results of its reads.
        for user in (0, []), OUTSIDER, (0, []):
            assert as_user(user, read_error, str(made.path / name)) == "EACCES", (name, user)
    assert as_user(OUTSIDER, read_error, str(made.path / "t@0.npy")) is None


def test_a_private_directory_of_all_chunks(store, show):
    os.chmod(store / "t/c", 0o700)
    made = show(store, "--view", "keys,chunks,arrays")
    for name in ("keys/t/c/0/0", "chunks/t/c/0/0", "arrays/t.npy"):
        assert as_user(OUTSIDER, read_error, str(made.path / name)) == "EACCES", name
    assert read_error(made.path / "arrays/g/t.npy") is None


@pytest.mark.parametrize("view", ["keys", "chunks"])
def test_a_directory_that_names_in_another_version_leave_out_counts(store, show, view):
    os.chmod(store / "t/c", 0o700)
    made = show(store, "--view", view, "--as", "v2")
    assert as_user(OUTSIDER, read_error, str(made.path / "t/0/0")) == "EACCES"
    assert mode(made.path / "t/0/0") == 0o400
    assert as_user(OUTSIDER, read_error, str(made.path / "g/t/0/0")) is None


def test_a_chunk_that_another_owns(store, show):
    """The chunk's owner is not the owner of the array's file, and the readers of the file may not read the chunk."""
    os.chmod(store / "t/zarr.json", 0o640)
    os.chown(store / "t/zarr.json", 0, GROUP)
    os.chmod(store / "t/c/1/0", 0o640)
    os.chown(store / "t/c/1/0", 0, STRANGER)
    made = show(store, "--view", "arrays")
    assert as_user(USERS["member"], read_error, str(made.path / "t.npy")) == "EACCES"
    assert as_user(USERS["member"], read_error, str(made.path / "t@0.npy")) is None


def test_without_other_users_nothing_is_kept_from_the_daemons_own(store, show):
    os.chmod(store / "t/c/1/0", 0o600)
    made = show(store, "--view", "arrays", options="ro")
    assert read_whole(made.path / "t.npy").endswith("aaaabbbb")


def test_several_writers_of_one_group_read_their_own_files(store, show_as_nobody):
    """A directory of a group's, its array written by one of them: the owner of an array is not kept from it."""
    for base, _, names in os.walk(store):
        for path in (Path(base), *(Path(base, name) for name in names)):
            os.chown(path, NOBODY, NOBODY)
            os.chmod(path, 0o750 if path.is_dir() else 0o640)
    os.chown(store, 0, NOBODY)
    os.chmod(store, 0o2770)
    for arguments in (["--view", "arrays", "--files", "npy,h5"], ["--view", "chunks", "--as", "v2"]):
        made = show_as_nobody(store, *arguments)
        files = [str(Path(base, name)) for base, _, names in os.walk(store) for name in names]
        shown = as_user((NOBODY, []), readable_below, str(made.path))
        assert files and shown, "nothing to read"
        assert [name for name, error in shown if error] == []
        made.unmount()


def readable_below(root):
    """Each file below and the error of reading it."""
    return [(str(Path(base, name)), read_error(str(Path(base, name)))) for base, _, names in os.walk(root) for name in names]


def test_the_mounts_own_directories_have_the_mode_that_the_store_has(store, show):
    made = show(store, "--view", "keys,arrays", "--ttl", "0")
    assert as_user(OUTSIDER, read_error, str(made.path / ".zarr-mount" / "stats.json")) is None
    os.chmod(store, 0o700)
    mounting.until(lambda: mode(made.path) == 0o500, "the new mode")
    assert as_user(OUTSIDER, read_error, str(made.path / ".zarr-mount" / "stats.json")) == "EACCES"
    os.chmod(store, 0o755)
    mounting.until(lambda: mode(made.path) == 0o555, "the mode before")


# Consolidated metadata.

def test_generated_consolidated_metadata_leaves_private_nodes_out_and_names_them(store, show):
    os.chmod(store / "g", 0o700)
    made = show(store, "--as", "v2")
    read = as_user(OUTSIDER, read_whole, str(made.path / ".zmetadata"))
    assert "outer" in read and "INNER" not in read
    assert "t/.zarray" in json.loads(read)["metadata"]
    assert "g is not in the consolidated metadata" in made.log_text()


def test_a_consolidated_copy_is_not_brought_up_to_date_from_a_private_document(folder, show):
    root = folder / "s.zarr"
    (root / "t").mkdir(parents=True)
    own = {"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "|u1", "compressor": {"id": "zlib", "level": 1},
           "filters": None, "order": "C", "fill_value": 97}
    (root / ".zgroup").write_text('{"zarr_format": 2}')
    (root / "t/.zarray").write_text(json.dumps(own))
    copies = {".zgroup": {"zarr_format": 2}, "t/.zarray": {**own, "chunks": [4], "fill_value": 0}}
    (root / ".zmetadata").write_text(json.dumps({"zarr_consolidated_format": 1, "metadata": copies}))
    made = show(root, "--view", "chunks")
    assert json.loads((made.path / ".zmetadata").read_text())["metadata"]["t/.zarray"]["fill_value"] == 97
    made.unmount()
    os.chmod(root / "t", 0o700)
    made = show(root, "--view", "chunks")
    read = json.loads(as_user(OUTSIDER, read_whole, str(made.path / ".zmetadata")))
    assert "t/.zarray" not in read["metadata"]


# A daemon that may not read everything.

def test_one_unreadable_group_is_left_out_and_the_rest_is_shown(store, show_as_nobody):
    os.chmod(store / "g", 0o700)
    made = show_as_nobody(store, "--view", "arrays", "--files", "nc,h5")
    for name in ("s.nc", "s.h5"):
        read = as_user((NOBODY, [NOBODY]), read_whole, str(made.path / name))
        assert "aaaabbbb" in read and "cccc" not in read and "zarr_omitted" in read
    assert "g is not in the HDF5 file" in made.log_text()


def test_an_unreadable_group_is_no_hole_in_consolidated_metadata(store, show_as_nobody):
    os.chmod(store / "g", 0o700)
    made = show_as_nobody(store, "--as", "v2")
    read = json.loads(as_user((NOBODY, [NOBODY]), read_whole, str(made.path / ".zmetadata")))
    assert "t/.zarray" in read["metadata"] and not any(key.startswith("g/") for key in read["metadata"])


# Modes that change under a living mount.

def test_a_mode_that_changes_is_shown_and_heeded(store, show):
    made = show(store, "--view", "keys,arrays", "--files", "npy,h5", "--ttl", "0")
    paths = [made.path / name for name in ("keys/t/zarr.json", "arrays/t.npy", "arrays/s.h5")]
    assert [mode(path) for path in paths] == [0o444] * 3
    for name in ("t.npy", "s.h5"):
        assert as_user(OUTSIDER, read_error, str(made.path / "arrays" / name)) is None
    os.chmod(store / "t/zarr.json", 0o600)
    mounting.until(lambda: [mode(path) for path in paths[:2]] == [0o400] * 2, "the new mode")
    mounting.until(lambda: "aaaabbbb" not in as_user(OUTSIDER, read_whole, str(paths[2])), "the group's file without the array")
    os.chmod(store / "t/zarr.json", 0o644)
    mounting.until(lambda: mode(paths[1]) == 0o444, "the old mode")
    os.chmod(store / "t", 0o700)
    mounting.until(lambda: mode(paths[1]) == 0o400, "the mode of the directory")


def test_a_chunk_that_becomes_private_is_denied_when_it_is_loaded(store, show):
    made = show(store, "--view", "arrays", "--ttl", "0")
    assert as_user(OUTSIDER, read_error, str(made.path / "t@0.npy")) is None
    os.chmod(store / "t/c/1", 0o700)
    assert as_user(OUTSIDER, read_error, str(made.path / "t.npy")) == "EACCES"
    os.chmod(store / "t/c/1", 0o755)
    mounting.until(lambda: as_user(OUTSIDER, read_error, str(made.path / "t.npy")) is None, "the open directory")


@pytest.mark.parametrize("reopened", [0, 1, 3])
@pytest.mark.parametrize("closed", ["t/c", "t/c/1", "t"])
def test_a_directory_of_chunks_that_becomes_private_after_they_were_read(store, show, reopened, closed):
    """However often the file was opened before, and so was found to be as it was."""
    made = show(store, "--view", "arrays", "--ttl", "0")
    for _ in range(1 + reopened):
        assert as_user(OUTSIDER, read_error, str(made.path / "t.npy")) is None
    os.chmod(store / closed, 0o700)
    mounting.until(lambda: as_user(OUTSIDER, read_error, str(made.path / "t.npy")) == "EACCES", "the closed directory")
    os.chmod(store / closed, 0o755)
    mounting.until(lambda: as_user(OUTSIDER, read_error, str(made.path / "t.npy")) is None, "the open directory")


def test_a_file_that_becomes_private_while_another_user_has_it_open(store, show):
    made = show(store, "--ttl", "0")
    path = made.path / "t/c/0/0"
    with open(path, "rb") as held:
        assert held.read() == b"aaaa"
        assert as_user(OUTSIDER, read_error, str(path)) is None
        os.chmod(store / "t/c/0/0", 0o600)
        mounting.until(lambda: as_user(OUTSIDER, read_error, str(path)) == "EACCES", "the new mode")
        held.seek(0)
        assert held.read() == b"aaaa"


def test_extended_attributes_say_nothing_of_a_private_document(store, show):
    made = show(store, options="allow_other,xattr")
    assert as_user(OUTSIDER, os.listxattr, str(made.path / "t"))
    made.unmount()
    os.chmod(store / "t/zarr.json", 0o600)
    made = show(store, options="allow_other,xattr")
    assert not as_user(OUTSIDER, os.listxattr, str(made.path / "t"))


def test_a_shard_that_becomes_private(folder, show):
    made = rights_stores.Store(folder / "s.zarr", random.Random(1))
    rights_stores.sharded(made, {}, "a")
    mounted = show(made.root, "--view", "keys,chunks", "--ttl", "0")
    inner = [mounted.path / view / "a/c/1/1" for view in ("keys", "chunks")]
    assert [as_user(OUTSIDER, read_error, str(path)) for path in inner] == [None, None]
    os.chmod(made.root / "a/c/0/0", 0o600)
    mounting.until(lambda: [mode(path) for path in inner] == [0o400] * 2, "the mode of the shard")


# Access control lists.

@pytest.mark.parametrize("entries, bits", [(rights_stores.GRANTS_ONE, 0o640), (rights_stores.DENIES_ONE, 0o644)])
@pytest.mark.parametrize("key, shown", [
    ("notes.txt", "keys/notes.txt"), ("t/zarr.json", "keys/t/zarr.json"), ("t/zarr.json", "arrays/t.npy"),
    ("t/c/0/0", "keys/t/c/0/0"), ("t/c/0/0", "chunks/t/c/0/0"),
])
def test_the_mask_of_a_list_is_not_the_right_of_the_group(store, show, entries, bits, key, shown):
    (store / "notes.txt").write_text("no array owns this")
    os.chown(store / key, 0, GROUP)
    rights_stores.give_list(store / key, entries)
    assert mode(store / key) == bits
    made = show(store, "--view", "keys,chunks,arrays")
    # Listed with their attributes, as well as looked up.
    os.listdir((made.path / shown).parent)
    assert mode(made.path / shown) == 0o400
    for user in USERS.values():
        assert as_user(user, read_error, str(made.path / shown)) == "EACCES"


def test_a_zip_file_is_reported_with_its_mode_and_with_the_mode_under_a_list(store, show):
    packed = Path(shutil.make_archive(store, "zip", store))
    os.chmod(packed, 0o644)
    made = show(packed, "--view", "keys,arrays", "--ttl", "0")
    paths = [made.path / name for name in ("keys/t/zarr.json", "arrays/t.npy", "keys/t/c/0/0")]
    assert [as_user(OUTSIDER, read_error, str(path)) for path in paths] == [None] * 3
    os.chmod(packed, 0o600)
    mounting.until(lambda: [mode(path) for path in paths] == [0o400] * 3, "the new mode")
    os.chown(packed, 0, GROUP)
    os.chmod(packed, 0o640)
    member = USERS["member"]
    mounting.until(lambda: [as_user(member, read_error, str(path)) for path in paths] == [None] * 3, "the group's bits")
    rights_stores.give_list(packed, rights_stores.GRANTS_ONE)
    assert mode(packed) == 0o640
    mounting.until(lambda: [as_user(member, read_error, str(path)) for path in paths] == ["EACCES"] * 3, "the list")


# Links.

def test_a_link_leads_through_the_directories_of_its_target(store, show):
    (store / "closed").mkdir()
    (store / "t").rename(store / "closed" / "t")
    (store / "t").symlink_to("closed/t")
    (store / "notes.txt").symlink_to("closed/t/zarr.json")
    names = ["keys/t/zarr.json", "keys/t/c/0/0", "keys/notes.txt", "chunks/t/c/0/0", "arrays/t.npy"]
    made = show(store, "--view", "keys,chunks,arrays", "--ttl", "0")
    assert [as_user(OUTSIDER, read_error, str(made.path / name)) for name in names] == [None] * 5
    os.chmod(store / "closed", 0o700)
    # Listed with their attributes, as well as looked up.
    os.listdir(made.path / "keys")
    mounting.until(lambda: [as_user(OUTSIDER, read_error, str(made.path / name)) for name in names] == ["EACCES"] * 5,
                   "the mode of the directory")


def test_a_list_of_a_directory_that_a_link_leads_through_counts(store, show):
    (store / "closed").mkdir()
    (store / "t").rename(store / "closed" / "t")
    (store / "t").symlink_to("closed/t")
    os.chmod(store / "closed", 0o755)
    rights_stores.give_list(store / "closed", rights_stores.SEARCHED_BUT_BY_ONE)
    made = show(store, "--view", "keys,chunks,arrays", "--ttl", "0")
    for name in ("keys/t/zarr.json", "keys/t/c/0/0", "chunks/t/c/0/0", "arrays/t.npy"):
        assert as_user(OUTSIDER, read_error, str(made.path / name)) == "EACCES", name
