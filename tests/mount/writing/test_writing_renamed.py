"""Groups and arrays are renamed while the kernel knows the files in them. After that, each name shows the file that has it now, and writes go
to this file."""
import errno
import os
import shutil
import threading

import numpy as np
import pytest
import zarr

VIEWS = [("keys",), ("chunks",), ("chunks", "--missing", "hide"), ("keys", "--as", "v2"), ("keys", "--shards", "keep")]
LAYOUTS = {"v2": {"zarr_format": 2}, "v3": {"zarr_format": 3}, "shards": {"zarr_format": 3, "shards": (4, 4)}}


def make(store, layout):
    """Two groups with an array each, of the same form; nine out of ten files of the one are not those of the other."""
    root = zarr.create_group(str(store), zarr_format=LAYOUTS[layout]["zarr_format"])
    for n, name in enumerate(["g", "k"]):
        options = {"chunk_key_encoding": {"name": "v2", "separator": "/"}} if layout == "v2" else {}
        array = root.create_group(name).create_array("b", shape=(8, 8), chunks=(2, 2), dtype="<i4", compressors=None, fill_value=7, **options,
                                                     **{key: value for key, value in LAYOUTS[layout].items() if key != "zarr_format"})
        array[...] = data(n)
    return store


def data(n):
    return np.arange(64, dtype="<i4").reshape(8, 8) + 1000 * (n + 1)


def chunk(path, i, j):
    """The name of a chunk file, whatever the version is."""
    return path / "c" / str(i) / str(j) if (path / "c").exists() else path / str(i) / str(j)


def at(values, i, j):
    return values[2 * i:2 * i + 2, 2 * j:2 * j + 2].ravel().tolist()


def read(path):
    return np.fromfile(path, "<i4").tolist()


def of_store(store, name):
    return zarr.open_array(str(store / name / "b"), mode="r")[...]


def is_whole(layout, view):
    return layout == "shards" and "keep" in view


@pytest.fixture(params=[(layout, view) for layout in LAYOUTS for view in VIEWS if not is_whole(layout, view)],
                ids=lambda pair: f"{pair[0]}-{' '.join(pair[1])}")
def made(request, tmp_path, mount):
    layout, view = request.param
    store = make(tmp_path / "store", layout)
    return store, mount(store, "--rw", "--view", *view)


@pytest.mark.parametrize("name", ["g", "g/b"])
def test_files_below_a_new_name_are_those_below_the_old_one(name, made):
    store, mounted = made
    m, new = mounted.path, name.replace("g", "G") if name == "g" else "g/B"
    # The kernel knows the directory of these chunks, and one of them.
    assert read(chunk(m / "g/b", 3, 1)) == at(data(0), 3, 1)
    number = chunk(m / "g/b", 3, 1).stat().st_ino
    os.rename(m / name, m / new)
    array = m / ("G/b" if name == "g" else "g/B")
    assert chunk(array, 3, 1).stat().st_ino == number
    for j in range(4):
        assert read(chunk(array, 3, j)) == at(data(0), 3, j)
    chunk(array, 3, 2).write_bytes(np.full(4, 5, "<i4").tobytes())
    os.unlink(chunk(array, 3, 3))
    assert not os.path.exists(m / "g/b")
    mounted.sync()
    wanted = data(0)
    wanted[6:, 4:6], wanted[6:, 6:] = 5, 7
    kept = store / array.relative_to(m)
    np.testing.assert_array_equal(zarr.open_array(str(kept), mode="r")[...], wanted)
    assert not (store / "g/b").exists()


def test_two_groups_change_their_names(made):
    store, mounted = made
    m = mounted.path
    for n, name in enumerate("gk"):
        assert read(chunk(m / name / "b", 3, 1)) == at(data(n), 3, 1)
    for old, new in [("g", "t"), ("k", "g"), ("t", "k")]:
        os.rename(m / old, m / new)
    for n, name in enumerate("kg"):
        assert read(chunk(m / name / "b", 3, 2)) == at(data(n), 3, 2)
        np.testing.assert_array_equal(zarr.open_array(str(m / name / "b"), mode="r")[...], data(n))
    chunk(m / "g/b", 3, 3).write_bytes(np.full(4, 5, "<i4").tobytes())
    mounted.sync()
    wanted = data(1)
    wanted[6:, 6:] = 5
    np.testing.assert_array_equal(of_store(store, "g"), wanted)
    np.testing.assert_array_equal(of_store(store, "k"), data(0))


def test_a_chunk_that_came_by_a_rename_is_one_like_others(made):
    store, mounted = made
    m = mounted.path
    other = chunk(m / "g/b", 3, 1).with_name("other")
    other.write_bytes(np.full(4, 5, "<i4").tobytes())
    os.rename(other, chunk(m / "g/b", 3, 1))
    chunk(m / "g/b", 3, 1).stat()
    os.rename(m / "g", m / "G")
    name = chunk(m / "G/b", 3, 1)
    name.chmod(0o600)
    os.utime(name, (1, 1))
    assert read(name) == [5] * 4


def test_half_written_files_move_along(made):
    store, mounted = made
    m = mounted.path
    new = np.full(4, 5, "<i4").tobytes()
    handle = os.open(chunk(m / "g/b", 3, 1), os.O_WRONLY | os.O_TRUNC)
    os.write(handle, new[:5])
    os.rename(m / "g", m / "G")
    np.testing.assert_array_equal(of_store(store, "G"), data(0))
    os.write(handle, new[5:])
    os.close(handle)
    mounted.sync()
    wanted = data(0)
    wanted[6:, 2:4] = 5
    np.testing.assert_array_equal(of_store(store, "G"), wanted)
    assert read(chunk(m / "G/b", 3, 1)) == [5] * 4


def test_an_open_directory_is_listed_by_its_new_name(made):
    _, mounted = made
    m = mounted.path
    handles = {name: os.open(m / name, os.O_RDONLY) for name in ("g", "g/b", "k")}
    before = {name: sorted(os.listdir(fd)) for name, fd in handles.items()}
    assert "b" in before["g"]
    (m / "g/more").mkdir()
    before["g"] = sorted([*before["g"], "more"])
    for old, new in [("g", "t"), ("k", "g"), ("t", "k")]:
        os.rename(m / old, m / new)
    for name, fd in handles.items():
        assert sorted(os.listdir(fd)) == before[name]
        os.close(fd)


@pytest.mark.parametrize("through", ["keys", "chunks"])
def test_all_views_follow(through, tmp_path, mount):
    store = make(tmp_path / "store", "v3")
    mounted = mount(store, "--rw", "--view", "keys,chunks,arrays", "--files", "raw")
    m = mounted.path
    for view in ("keys", "chunks"):
        assert read(m / view / "g/b/c/3/1") == at(data(0), 3, 1)
    os.rename(m / through / "g", m / through / "G")
    for view in ("keys", "chunks"):
        assert read(m / view / "G/b/c/3/2") == at(data(0), 3, 2)
    assert (np.fromfile(m / "arrays/G/b.raw", "<i4").reshape(8, 8) == data(0)).all()


@pytest.mark.parametrize("view,name", [(("keys", "--as", "v3"), "zarr.json"), (("chunks", "--as", "v3"), "zarr.json"), (("keys",), ".zattrs"), (("chunks",), ".zattrs")])
@pytest.mark.parametrize("node", ["g/b", "g"])
def test_a_document_is_written_by_a_handle_from_before(node, view, name, tmp_path, mount):
    store = make(tmp_path / "store", "v2")
    m = mount(store, "--rw", "--view", *view).path
    zarr.open(str(store / node), mode="r+").attrs["unit"] = "m"
    with open(m / node / name, "r+b") as file:
        text = file.read()
        os.rename(m / "g", m / "G")
        file.seek(0)
        file.write(text.replace(b'"m"', b'"s"'))
    new = m / node.replace("g", "G", 1) / name
    assert new.read_bytes() == text.replace(b'"m"', b'"s"')
    assert zarr.open(str(store / node.replace("g", "G", 1)), mode="r").attrs["unit"] == "s"


@pytest.mark.parametrize("held", ["a/c/0/0", "a/c/0"])
@pytest.mark.parametrize("view", VIEWS[:3], ids=" ".join)
@pytest.mark.local
def test_a_directory_is_made_again_while_something_in_it_is_open(view, held, tmp_path, mount):
    store = tmp_path / "store"
    zarr.create_group(str(store)).create_array("a", shape=(4, 4), chunks=(2, 2), dtype="<i4", compressors=None, fill_value=0)[...] = 1
    m = mount(store, "--rw", "--view", *view).path
    fd = os.open(m / held, os.O_RDONLY)
    for n in range(2, 5):
        shutil.rmtree(m / "a/c/0")
        (m / "a/c/0").mkdir(exist_ok=True)
        (m / "a/c/0/1").write_bytes(np.full(4, n, "<i4").tobytes())
        assert read(m / "a/c/0/1") == [n] * 4
        assert "1" in os.listdir(m / "a/c/0")
        assert zarr.open_array(str(store / "a"), mode="r")[0].tolist() == [0, 0, n, n]
    os.close(fd)


@pytest.mark.local
def test_an_array_is_made_anew_while_a_program_reads_it(tmp_path, mount):
    store = tmp_path / "store"
    zarr.create_group(str(store))
    m = mount(store, "--rw", "--view", "keys").path
    for n in range(1, 4):
        array = zarr.create_array(str(m / "a"), shape=(4, 4), chunks=(2, 2), dtype="<i4", overwrite=True)
        array[...] = n
        fd = os.open(m / "a/c/0/0", os.O_RDONLY)
        assert (zarr.open_array(str(store / "a"), mode="r")[...] == n).all()
        array = zarr.create_array(str(m / "a"), shape=(4, 4), chunks=(2, 2), dtype="<i4", overwrite=True)
        array[...] = -n
        os.close(fd)
        assert (zarr.open_array(str(store / "a"), mode="r")[...] == -n).all()


@pytest.mark.parametrize("view", VIEWS[:2], ids=" ".join)
def test_files_are_made_below_a_directory_that_is_renamed_meanwhile(view, tmp_path, mount):
    store = tmp_path / "store"
    zarr.create_group(str(store)).create_group("g").create_group("s")
    m = mount(store, "--rw", "--view", *view).path
    here, wrong = os.open(m / "g/s", os.O_RDONLY), []

    def make():
        for n in range(300):
            try:
                os.mkdir(f"d{n}", dir_fd=here)
                os.close(os.open(f"f{n}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, dir_fd=here))
            except OSError as error:
                wrong.append(error)

    maker = threading.Thread(target=make)
    maker.start()
    names = ["g", "t"]
    while maker.is_alive():
        # Nothing has made the old name again.
        os.rename(m / names[0], m / names[1])
        names.reverse()
    maker.join()
    os.close(here)
    assert not (store / names[1]).exists()
    # The kernel asks twice at most whether a name is there still.
    found = os.listdir(store / names[0] / "s")
    assert len(found) >= 2 * 300 + 1 - len(wrong) and all(error.errno == errno.ESTALE for error in wrong), wrong


@pytest.mark.parametrize("through", ["keys", "chunks"])
def test_a_directory_is_renamed_while_a_program_writes_through_another_view(through, tmp_path, mount):
    """The directory has one name at each time, and saved files are in it, whatever its name was when the file was opened."""
    store = make(tmp_path / "store", "v3")
    made = mount(store, "--rw", "--view", "keys,chunks")
    ended, saved, wrong = threading.Event(), [0, 0], []
    files = [os.open(chunk(made.path / "chunks/g/b", 0, n), os.O_WRONLY) for n in range(2)]

    def write(n):
        file = files[n]
        try:
            while not ended.is_set():
                os.pwrite(file, np.full(4, saved[n] + 1, "<i4").tobytes(), 0)
                os.fsync(file)
                saved[n] += 1
        except OSError as error:
            wrong.append(error)
        os.close(file)

    writers = [threading.Thread(target=write, args=(n,)) for n in range(2)]
    for writer in writers:
        writer.start()
    for _ in range(50):
        (made.path / through / "g").rename(made.path / through / "l")
        (made.path / through / "l").rename(made.path / through / "g")
    ended.set()
    for writer in writers:
        writer.join()
    assert not wrong
    made.unmount()
    assert sorted(os.listdir(store)) == ["g", "k", "zarr.json"]
    for n in range(2):
        assert saved[n] and (np.fromfile(chunk(store / "g/b", 0, n), "<i4") == saved[n]).all()
