"""Documents that are written through a mount while another program changes them in the store: the changes of both are kept, or the writer
gets an error."""
import errno
import json
import os
import time

import pytest
import zarr

from support.mounting import until

# The options of the mount, and the files of the array `a` there: a document with its attributes, or a document of them alone.
VIEWS = {
    "chunks": (("--view", "chunks"), "three/a/zarr.json"),
    "keys": (("--view", "keys"), "three/a/zarr.json"),
    "chunks of v2": (("--view", "chunks"), "two/a/.zattrs"),
    "v2 as v3": (("--view", "keys", "--as", "v3"), "two/a/zarr.json"),
    "v3 as v2": (("--view", "chunks", "--as", "v2"), "three/a/.zattrs"),
}
BEFORE = {"unit": "m", "scale": 2}


@pytest.fixture(params=VIEWS)
def place(request, tmp_path):
    """A store with arrays of v2 and v3, the options of a mount, the name of a file in it, and the array as outsiders open it."""
    store, (args, name) = tmp_path / "store", VIEWS[request.param]
    zarr.create_group(str(store), zarr_format=3)
    for version, folder in ((2, "two"), (3, "three")):
        group = zarr.create_group(str(store / folder), zarr_format=version)
        # Shards, so that the expanded keys show another document than the stored one.
        shards = {"shards": (8,)} if version == 3 else {}
        group.create_array("a", shape=(8,), chunks=(4,), dtype="i4", attributes=BEFORE, **shards)
    return store, args, name, store / name.split("/")[0] / "a"


def attributes_of(text, name):
    found = json.loads(text)
    return found if name.endswith(".zattrs") else found["attributes"]


def with_attributes(text, name, attributes):
    if name.endswith(".zattrs"):
        return json.dumps(attributes)
    return json.dumps(json.loads(text) | {"attributes": attributes})


def theirs(array, **attributes):
    """The outsider's change: zarr-python writes the document anew."""
    time.sleep(0.02)
    zarr.open_array(str(array)).attrs.update(attributes)


def close(fd):
    """0, or the error number."""
    try:
        os.close(fd)
    except OSError as error:
        return error.errno
    return 0


def edit(made, name, change, during, flags=os.O_WRONLY | os.O_TRUNC):
    """Reads a document, opens it again, lets an outsider do its change meanwhile, and writes it with other attributes."""
    path = made.path / name
    text = path.read_text()
    fd = os.open(path, flags)
    during()
    new = with_attributes(text, name, change(attributes_of(text, name))).encode()
    os.ftruncate(fd, 0)
    os.write(fd, new)
    return close(fd)


@pytest.mark.parametrize("flags", [os.O_WRONLY | os.O_TRUNC, os.O_WRONLY, os.O_RDWR | os.O_TRUNC], ids=["O_TRUNC", "ftruncate", "O_RDWR"])
def test_other_members_are_kept(flags, place, mount):
    store, args, name, array = place
    made = mount(store, "--rw", *args)
    change = lambda old: old | {"ours": [1, None]}
    assert edit(made, name, change, lambda: theirs(array, theirs="x", scale=3), flags) == 0
    expected = BEFORE | {"theirs": "x", "scale": 3, "ours": [1, None]}
    assert dict(zarr.open_array(str(array)).attrs) == expected
    assert attributes_of((made.path / name).read_text(), name) == expected


def test_the_same_member_is_an_error_and_theirs_stays(place, mount):
    store, args, name, array = place
    made = mount(store, "--rw", *args)
    assert edit(made, name, lambda old: old | {"scale": 4}, lambda: theirs(array, scale=3)) == errno.ESTALE
    assert dict(zarr.open_array(str(array)).attrs) == BEFORE | {"scale": 3}
    assert attributes_of((made.path / name).read_text(), name) == BEFORE | {"scale": 3}
    assert edit(made, name, lambda old: old | {"scale": 4}, lambda: None) == 0
    assert dict(zarr.open_array(str(array)).attrs) == BEFORE | {"scale": 4}


def test_the_same_value_is_not_a_conflict_and_removed_members_stay_away(place, mount):
    store, args, name, array = place
    made = mount(store, "--rw", *args)
    change = lambda old: {"scale": 3}
    assert edit(made, name, change, lambda: theirs(array, scale=3, more=1)) == 0
    assert dict(zarr.open_array(str(array)).attrs) == {"scale": 3, "more": 1}


def test_a_writer_that_may_have_read_it_gets_the_error_unless_the_mount_merges(place, mount):
    store, args, name, array = place
    made = mount(store, "--rw", *args)
    change = lambda old: old | {"ours": 1}
    assert edit(made, name, change, lambda: theirs(array, theirs=1), os.O_RDWR) == errno.ESTALE
    assert dict(zarr.open_array(str(array)).attrs) == BEFORE | {"theirs": 1}
    made.unmount()
    if "chunks" not in args:  # the option is for chunks that are decoded
        return
    made = mount(store, "--rw", *args, "--conflict", "merge")
    assert edit(made, name, change, lambda: theirs(array, theirs=2), os.O_RDWR) == 0
    assert dict(zarr.open_array(str(array)).attrs) == BEFORE | {"theirs": 2, "ours": 1}


@pytest.mark.parametrize("is_emptied", [True, False])
def test_they_change_it_between_two_saves_of_one_handle(is_emptied, place, mount):
    """The writer knows the document that was saved last, and not later changes."""
    store, args, name, array = place
    made = mount(store, "--rw", *args)
    path = made.path / name
    text = path.read_text()
    fd = os.open(path, os.O_WRONLY)
    pad = lambda text: text.ljust(4096)
    their = {}
    for n in range(4):
        # The first save meets no change, and the second one a change that was made after it.
        if n > 0:
            their = {"theirs": n}
            theirs(array, **their)
        written = pad(with_attributes(text, name, BEFORE | {"ours": n}))
        if is_emptied:
            os.ftruncate(fd, 0)
        os.pwrite(fd, written.encode(), 0)
        os.fsync(fd)
        assert dict(zarr.open_array(str(array)).attrs) == BEFORE | their | {"ours": n}
    os.close(fd)
    assert attributes_of(path.read_text(), name) == BEFORE | {"theirs": 3, "ours": 3}


def test_they_change_it_again_and_again(place, mount):
    """Each of the writer's saves meets a new version, and two of its handles share a draft."""
    store, args, name, array = place
    made = mount(store, "--rw", *args)
    for i in range(6):
        change = lambda old: old | {f"ours{i}": i}
        assert edit(made, name, change, lambda: (theirs(array, **{f"theirs{i}": i}), theirs(array, last=i))) == 0
        # A writer that has the document open knows the text that it has written, and no later one.
        until(lambda: not made.open_objects(), "the end of the handle, of which the kernel tells after close(2) has returned")
    expected = BEFORE | {f"{who}{i}": i for who in ("ours", "theirs") for i in range(6)} | {"last": 5}
    assert dict(zarr.open_array(str(array)).attrs) == expected


def test_a_document_that_they_remove_is_not_made_again(place, mount):
    store, args, name, array = place
    made = mount(store, "--rw", *args)

    def remove():
        for own in ("zarr.json", ".zarray", ".zattrs"):
            (array / own).unlink(missing_ok=True)

    assert edit(made, name, lambda old: old | {"ours": 1}, remove) in (errno.ESTALE, errno.EINVAL, errno.ENOENT, errno.EIO)
    assert not [path for path in array.iterdir() if path.name != "c" and path.is_file() and path.suffix == ".json"]


def test_two_programs_that_make_one_group(tmp_path, mount):
    """Without an earlier document, all members are new: those of both programs are kept, or the second program gets an error."""
    store = tmp_path / "store"
    zarr.create_group(str(store))
    made = mount(store, "--rw", "--view", "chunks")
    for number, (ours, expected) in enumerate([({"ours": 1}, {"theirs": 1, "ours": 1}), ({"theirs": 2}, None)]):
        os.mkdir(made.path / f"g{number}")
        fd = os.open(made.path / f"g{number}/zarr.json", os.O_WRONLY | os.O_CREAT)
        zarr.create_group(str(store / f"g{number}"), attributes={"theirs": 1})
        os.write(fd, json.dumps({"zarr_format": 3, "node_type": "group", "attributes": ours}).encode())
        assert close(fd) == (0 if expected else errno.ESTALE)
        assert dict(zarr.open_group(str(store / f"g{number}")).attrs) == (expected or {"theirs": 1})


def test_bytes_that_are_no_document(place, mount):
    """The other program's damaged document stays, and the writer gets an error."""
    store, args, name, array = place
    own = array / (name.split("/")[-1] if (array / name.split("/")[-1]).exists() else ".zattrs" if (array / ".zattrs").exists() else "zarr.json")
    made = mount(store, "--rw", *args)
    assert edit(made, name, lambda old: old | {"ours": 1}, lambda: (time.sleep(0.02), own.write_text("{"))) != 0
    assert own.read_text() == "{"


def test_members_that_a_writer_never_saw_stay_when_it_saves_again(place, mount):
    """By a handle that goes on after its change was merged, and by one that was opened before."""
    store, args, name, array = place
    made = mount(store, "--rw", *args)
    path = made.path / name
    text = path.read_text()
    first, second = (os.open(path, os.O_WRONLY) for _ in range(2))

    def save(fd, **attributes):
        os.ftruncate(fd, 0)
        os.pwrite(fd, with_attributes(text, name, BEFORE | attributes).encode(), 0)

    save(first, ours=1)
    theirs(array, theirs=1)
    os.fsync(first)
    assert dict(zarr.open_array(str(array)).attrs) == BEFORE | {"ours": 1, "theirs": 1}
    save(first, ours=2)
    os.fsync(first)
    assert dict(zarr.open_array(str(array)).attrs) == BEFORE | {"ours": 2, "theirs": 1}
    os.ftruncate(first, 3)
    with pytest.raises(OSError) as told:
        os.fsync(first)
    assert told.value.errno == errno.EINVAL
    save(second, ours=3)
    assert close(second) == 0 and close(first) == 0
    assert dict(zarr.open_array(str(array)).attrs) == BEFORE | {"ours": 3, "theirs": 1}
    # A program that opens it then knows all of it, and may remove members that others have added.
    assert edit(made, name, lambda old: {"ours": 4}, lambda: None) == 0
    assert dict(zarr.open_array(str(array)).attrs) == {"ours": 4}


def test_an_array_that_has_become_a_group_is_no_array_with_other_attributes(tmp_path, mount):
    store = tmp_path / "store"
    zarr.create_array(str(store), name="a", shape=(4,), chunks=(2,), dtype="u1")
    made = mount(store, "--rw", "--view", "chunks")
    group = {"zarr_format": 3, "node_type": "group", "attributes": {}}
    during = lambda: (time.sleep(0.02), (store / "a/zarr.json").write_text(json.dumps(group)))
    assert edit(made, "a/zarr.json", lambda old: old | {"ours": 1}, during) == errno.ESTALE
    assert json.loads((store / "a/zarr.json").read_text()) == group


def test_copies_that_the_mount_makes_are_no_change_by_others(tmp_path, mount):
    store = tmp_path / "store"
    root = zarr.create_group(str(store))
    root.create_array("a", shape=(4,), chunks=(2,), dtype="u1")
    zarr.consolidate_metadata(str(store))
    made = mount(store, "--rw", "--view", "chunks")
    path = made.path / "zarr.json"
    fd = os.open(path, os.O_RDWR)
    shown = json.loads(os.pread(fd, 1 << 20, 0))
    child = json.loads((made.path / "a/zarr.json").read_text())
    (made.path / "a/zarr.json").write_text(json.dumps(child | {"attributes": {"unit": "m"}}))
    until(lambda: zarr.open_consolidated(str(store))["a"].attrs.get("unit") == "m", "the copy to be made")
    os.ftruncate(fd, 0)
    os.pwrite(fd, json.dumps(shown | {"attributes": {"title": "mine"}}).encode(), 0)
    assert close(fd) == 0
    found = zarr.open_consolidated(str(store))
    assert dict(found.attrs) == {"title": "mine"} and dict(found["a"].attrs) == {"unit": "m"}
