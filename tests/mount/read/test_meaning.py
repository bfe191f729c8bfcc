"""The meaning of a key depends on the documents above it, which other programs make and change. The mount remembers for a while that there
were none: with a `--ttl` this long, it would do so for the whole test."""
import errno
import os
import shutil

import numpy as np
import pytest
import zarr

TTL = ("--ttl", "3600")
SHAPE, SHARD, CHUNK = (8, 8), (4, 4), (2, 2)
WRITABLE = pytest.mark.parametrize("writes", [(), ("--rw",)], ids=["ro", "rw"])
VIEWS = pytest.mark.parametrize("view", ["keys", "chunks"])


def make(root, version, **more):
    """The array `x`, in shards where the version has them, and compressed. Its elements are 1."""
    layout = {"shards": SHARD} if version == 3 else {"chunk_key_encoding": {"name": "v2", "separator": "/"}}
    array = zarr.open_group(str(root), mode="a").create_array("x", shape=SHAPE, chunks=CHUNK, dtype="i8", fill_value=0, **(layout | more))
    array[...] = 1


def chunk_names(version):
    """The directory of the first chunk, and the names of the first row of chunks in it."""
    return ("x/c/0", "0123") if version == 3 else ("x/0", "0123")


@pytest.fixture
def store(tmp_path, request):
    version = request.node.callspec.params.get("version", 3)
    zarr.open_group(str(tmp_path / "s.zarr"), mode="w", zarr_format=version)
    return tmp_path / "s.zarr"


def remember_nothing_there(mount_path, names):
    """Asks for the array `x` before it exists, as programs do that wait for it."""
    for name in names:
        assert not (mount_path / name).exists()


@WRITABLE
@pytest.mark.parametrize("version", [2, 3])
@VIEWS
def test_an_array_that_was_asked_for_before_it_existed_is_read_as_one(store, mount, view, version, writes):
    made = mount(store, "--view", f"arrays,{view}", *writes, *TTL)
    remember_nothing_there(made.path, ["arrays/x.npy", f"{view}/x/zarr.json", f"{view}/x/.zarray", f"{view}/x/c/0/0", f"{view}/x/0/0"])
    make(store, version)
    directory, names = chunk_names(version)
    chunks = [made.path / view / directory / name for name in names]
    if view == "chunks":
        assert [np.frombuffer(chunk.read_bytes(), "i8").tolist() for chunk in chunks] == [[1] * 4] * 4
        assert {os.stat(chunk).st_size for chunk in chunks} == {32}
    elif version == 3:
        whole = (store / "x/c/0/0").stat().st_size
        assert all(os.stat(chunk).st_size < whole for chunk in chunks), "no inner chunk is the shard"
    assert (zarr.open_array(str(made.path / view / "x"), mode="r")[...] == 1).all()


@pytest.mark.parametrize("before", ["directories", "listed", "group", "unsharded"])
@VIEWS
def test_a_shard_is_not_overwritten_by_a_write_to_a_key_of_no_array(store, mount, view, before):
    made = mount(store, "--rw", "--view", view, "--missing", "hide", *TTL)
    if before == "directories":
        os.makedirs(made.path / "x/c/0")
    elif before == "listed":
        os.makedirs(store / "x/c/0")
        list(os.walk(made.path))
    elif before == "group":
        zarr.open_group(str(store), mode="a").create_group("x/c")
        list(os.walk(made.path))
    else:
        make(store, 3, shards=None)
        (made.path / "x/c/0/0").read_bytes()
    shutil.rmtree(store / "x", ignore_errors=before != "directories" and before != "listed")
    make(store, 3, compressors=None)
    for name, how in (("0", "w"), ("1", "rename")):
        wanted = made.path / "x/c/0" / name
        written = wanted if how == "w" else made.path / "x/c/0" / f"{name}.0a.partial"
        written.write_bytes(np.full(4, 7, "i8").tobytes())
        os.replace(written, wanted)
    os.unlink(made.path / "x/c/1/1")
    made.unmount()
    expected = np.ones(SHAPE)
    expected[:2, :4], expected[2:4, 2:4] = 7, 0
    assert (zarr.open_array(str(store / "x"), mode="r")[...] == expected).all()


@pytest.mark.parametrize("version", [2, 3])
@VIEWS
def test_a_file_that_becomes_a_part_of_an_array_while_it_is_open_is_not_saved(store, mount, view, version):
    directory, _ = chunk_names(version)
    if view == "keys" and version == 2:
        pytest.skip("the view shows the stored chunk, which is what is written")
    made = mount(store, "--rw", "--view", view, *TTL)
    os.makedirs(made.path / directory)
    (made.path / directory / "0").write_bytes(b"of no array")
    fd = os.open(made.path / directory / "0", os.O_WRONLY)
    os.write(fd, b"OF")
    shutil.rmtree(store / "x")
    make(store, version)
    stored = (store / directory / "0").read_bytes()
    with pytest.raises(OSError) as refused:
        os.close(fd)
    assert refused.value.errno == errno.ESTALE
    assert (store / directory / "0").read_bytes() == stored
    assert "which array the key is part of" in made.log_text()
    assert (zarr.open_array(str(made.path / "x"), mode="r")[...] == 1).all()


@VIEWS
def test_a_chunk_of_an_array_that_becomes_another_one_while_it_is_open_is_not_saved(store, mount, view):
    make(store, 3, shards=None, compressors=None)
    made = mount(store, "--rw", "--view", view, *TTL)
    fd = os.open(made.path / "x/c/0/0", os.O_RDWR)
    os.write(fd, np.full(4, 7, "i8").tobytes())
    shutil.rmtree(store / "x")
    make(store, 3)
    with pytest.raises(OSError) as refused:
        os.close(fd)
    assert refused.value.errno == errno.ESTALE
    assert (zarr.open_array(str(store / "x"), mode="r")[...] == 1).all()
    assert "dropped" in made.log_text()


@pytest.mark.parametrize("arguments", [["--view", "keys"], ["--view", "chunks"], ["--view", "chunks", "--missing", "hide"],
                                       ["--view", "keys", "--as", "v3"]], ids=" ".join)
def test_a_directory_that_is_held_open_becomes_one_of_chunks(mount, tmp_path, arguments):
    """`rsync` copies a store in this order: it makes directories, holds them open, writes documents, then renames chunks in them."""
    values = np.arange(16, dtype="i4").reshape(4, 4)
    own = zarr.open_group(str(tmp_path / "own"), mode="w")
    # The documents of the chunks view name no compressor.
    compressors = None if "chunks" in arguments else "auto"
    own.create_array("a", shape=(4, 4), chunks=(2, 4), dtype="i4", compressors=compressors)[...] = values
    zarr.open_group(str(tmp_path / "s"), mode="w")
    made = mount(tmp_path / "s", "--rw", *arguments)
    os.makedirs(made.path / "a" / "c" / "0")
    held = os.open(made.path / "a" / "c" / "0", os.O_PATH | os.O_DIRECTORY)
    try:
        (made.path / "a" / "zarr.json").write_bytes((tmp_path / "own" / "a" / "zarr.json").read_bytes())
        content = (tmp_path / "own" / "a" / "c" / "0" / "0").read_bytes()
        with open(os.open(".0.tmp", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=held), "wb") as file:
            file.write(content)
        os.rename(".0.tmp", "0", src_dir_fd=held, dst_dir_fd=held)
        with open(os.open("0", os.O_RDONLY, dir_fd=held), "rb") as file:
            assert file.read() == content
    finally:
        os.close(held)
    made.unmount()
    np.testing.assert_array_equal(zarr.open_array(str(tmp_path / "s" / "a"), mode="r")[:2], values[:2])
