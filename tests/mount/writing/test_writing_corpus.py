"""Stores of real writers, whose chunks are written anew: with the values that they show, so that no value may change, and with other
values."""
import contextlib
import os
import shutil
from errno import EACCES, EINVAL, EIO, EPERM

import pytest

from support import corpus, readers, reading
from support.workers.canonical import canonical, digest
from support.array_corpus import check, check_strings, file_of

MOST_CHUNKS = 20_000  # one fixture has a grid of 800,000
OLDER = ("pre-v1", "v1", "v3-draft", "v3-draft-2022")
STORES = [s for s in corpus.of_kind("v2", "v3", *OLDER) if s.arrays and s.most_chunks() <= MOST_CHUNKS]
VIEWS = {
    "keys": ("--view", "keys"),
    "chunks": ("--view", "chunks"),
    "v2": ("--view", "chunks", "--as", "v2"),
    "v3": ("--view", "chunks", "--as", "v3"),
}
NO_CHUNKS = ("ERROR.txt", ".array.json", ".group.json", ".unsupported")
# The order of the elements of the first is in doubt, and the only chunk of the second cannot be decoded.
NOT_WRITTEN = ("zp1_110_forder_zlib.zarr", "nczarr_49_char.zarr")
DOCUMENTS = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata", "meta", "attrs")


def cases(views):
    """Every store in each view. The `chunks` view is tried always, the other ones in the long tests."""
    found = [(store, view) for store in STORES for view in views]
    return pytest.mark.parametrize("store,view", [
        pytest.param(store, view, id=f"{store.name}-{view}", marks=() if view == "chunks" else pytest.mark.long) for store, view in found])


def values_of(array):
    """The values that a library has read, in a form that can be compared: strings by their characters."""
    if array.dtype.kind in "OT":
        return [repr(item) for item in array.reshape(-1).tolist()]
    return str(array.dtype), array.tobytes()


@pytest.fixture(scope="module")
def zarr2():
    with readers.Zarr2() as worker:
        yield worker


def read_by_all(store, root, zarr2):
    """The values that each library reads of each array, or its reason for not reading them."""
    libraries = {name: reading.READERS[name] for name in ("zarr_python", "tensorstore")}
    found = {}
    for array in store.arrays:
        path = array["path"]
        for name, read in libraries.items() if array["zarr_format"] in (2, 3) else ():
            try:
                found[name, path] = values_of(read(root, path, array["zarr_format"]))
            except Exception as error:  # whatever class it refuses with
                found[name, path] = type(error).__name__
        if "dtype" not in array:
            continue  # items of which only their addresses could be compared
        try:
            found["zarr-python 2", path] = zarr2.open(root, path, boxes=[None], dtype=array["dtype"])
        except readers.Refused:
            found["zarr-python 2", path] = "refused"
    return found


def chunk_files(root):
    """The files that are no documents, below `root`."""
    for folder, directories, names in os.walk(root):
        directories[:] = [name for name in directories if name != ".zarr-mount"]
        for name in names:
            if name not in DOCUMENTS and not name.endswith(NO_CHUNKS):
                yield os.path.relpath(os.path.join(folder, name), root)


def write_anew(path):
    """Writes a file over itself. False where it cannot be read, or where its array cannot be written."""
    try:
        file = open(path, "r+b", buffering=0)
    except OSError as error:
        assert error.errno in (EPERM, EACCES), error
        return False
    with file:
        try:
            data = file.read()
        except OSError as error:
            assert error.errno == EIO
            return False
        file.seek(0)
        assert file.write(data) == len(data), path
    return True


def wrong_arrays(store, root):
    """The arrays that must decode and have other values than the manifest says."""
    old = store.kind in OLDER  # their codecs are spelled in other ways
    for array in store.arrays:
        if array["expect"] != "ok" or "dtype" not in array or not (old or corpus.codecs_listed(array)):
            continue
        strings = str(array["dtype"]).startswith("vlen")
        problem = (check_strings if strings else check)(root, store, array)
        if problem:
            yield array["path"], problem


@cases(VIEWS)
def test_each_chunk_written_anew(store, view, mount, zarr2, tmp_path):
    copy = tmp_path / store.path.name
    shutil.copytree(store.path, copy, symlinks=True)
    before = read_by_all(store, copy, zarr2)
    # Absent chunks are left out, because the fill value that the mount shows for them may differ from that of the libraries.
    stored = mount(copy, "--missing", "hide", *VIEWS[view])
    names = list(chunk_files(stored.path))
    writer = mount(copy, "--rw", *VIEWS[view])
    written = [name for name in names if write_anew(writer.path / name)]
    writer.sync()
    assert writer.stats()["writes"]["lost"] == 0
    writer.unmount()
    stored.unmount()
    assert written or not names or store.name in NOT_WRITTEN
    after = read_by_all(store, copy, zarr2)
    assert not [key for key in before if before[key] != after[key]]
    arrays = mount(copy, "--view", "arrays", "--files", "npy,raw,jsonl")
    assert not list(wrong_arrays(store, arrays.path))


def reversed_items(data, itemsize):
    return b"".join(data[at : at + itemsize] for at in range(len(data) - itemsize, -1, -itemsize))


def write_reversed(path, itemsize):
    """Writes the items of a file in the reverse order. False if they cannot be stored; then the store is unchanged."""
    try:
        fd = os.open(path, os.O_RDWR)
    except OSError as error:
        assert error.errno in (EPERM, EACCES), error
        return False
    try:
        data = os.read(fd, os.fstat(fd).st_size)
        assert os.pwrite(fd, reversed_items(data, itemsize), 0) == len(data), path
        os.fsync(fd)
        return True
    except OSError as error:
        assert error.errno in (EIO, EINVAL), error
        return False
    finally:
        with contextlib.suppress(OSError):
            os.close(fd)


def digests_of(arrays, root, zarr2):
    """The values that each library reads, as the manifest hashes them: (library, array) -> hash."""
    for path, array in arrays.items():
        for name in ("zarr_python", "tensorstore") if array["zarr_format"] in (2, 3) else ():
            with contextlib.suppress(Exception):  # it does not read the array, in whatever words
                values = reading.READERS[name](root, path, array["zarr_format"])
                yield (name, path), digest(canonical(values, array["dtype"]))
        with contextlib.suppress(readers.Refused):
            yield ("zarr-python 2", path), zarr2.open(root, path, boxes=[None], dtype=array["dtype"])["sha256"][0]


@cases([view for view in VIEWS if view != "keys"])
def test_other_values(store, view, mount, zarr2, tmp_path):
    """Each library that has read an array before reads the values that were written to its chunks."""
    copy = tmp_path / store.path.name
    shutil.copytree(store.path, copy, symlinks=True)
    fixed = {a["path"]: a for a in store.arrays if "sha256" in a and not str(a["dtype"]).startswith("vlen")}
    agree = {key for key, found in digests_of(fixed, copy, zarr2) if found == fixed[key[1]]["sha256"]}
    writer = mount(copy, "--rw", *VIEWS[view])
    changed = set()
    for name in chunk_files(writer.path):
        owners = [path for path in fixed if name.startswith(f"{path}/") or not path]
        owner = max(owners, key=len, default=None)
        if owner is not None and write_reversed(writer.path / name, reading.itemsize(fixed[owner])):
            changed.add(owner)
    writer.unmount()
    shown = mount(copy, "--view", "arrays", "--files", "raw")
    ours = {path: digest(file_of(shown.path, store, fixed[path], "raw").read_bytes()) for path in changed}
    compared = [key for key in agree if key[1] in changed]
    assert compared or not agree or view != "chunks" or store.name in NOT_WRITTEN
    now = dict(digests_of(fixed, copy, zarr2))
    assert {key: now[key] for key in compared} == {key: ours[key[1]] for key in compared}
