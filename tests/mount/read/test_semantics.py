"""Attributes, reads and refused calls of the file system, seen through the kernel."""
import errno
import json
import os
import random
import stat

import numpy as np
import pytest

from support import mounting, reading, sample


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return sample.write(tmp_path_factory.mktemp("sample") / "s.zarr")


@pytest.fixture(scope="module", params=["keys", "chunks"])
def shown(request, store, module_mount):
    made = module_mount(store, "--view", request.param)
    yield made.path
    made.unmount()


def files(root):
    return [p for p in root.rglob("*") if p.is_file()]


WRITES = {
    "open for writing": lambda d, f: os.open(f, os.O_WRONLY),
    "append": lambda d, f: os.open(f, os.O_RDWR | os.O_APPEND),
    "create": lambda d, f: os.open(d / "new", os.O_WRONLY | os.O_CREAT),
    "unlink": lambda d, f: os.unlink(f),
    "mkdir": lambda d, f: os.mkdir(d / "new"),
    "rmdir": lambda d, f: os.rmdir(d / "plain"),
    "rename": lambda d, f: os.rename(f, d / "new"),
    "link": lambda d, f: os.link(f, d / "new"),
    "symlink": lambda d, f: os.symlink("x", d / "new"),
    "mkfifo": lambda d, f: os.mkfifo(d / "new"),
    "chmod": lambda d, f: os.chmod(f, 0o600),
    "chown": lambda d, f: os.chown(f, os.getuid(), os.getgid()),
    "truncate": lambda d, f: os.truncate(f, 0),
    "utime": lambda d, f: os.utime(f),
    "setxattr": lambda d, f: os.setxattr(f, "user.x", b"1"),
    "removexattr": lambda d, f: os.removexattr(f, "user.x"),
}


@pytest.mark.parametrize("attempt", WRITES)
def test_every_write_is_erofs(shown, attempt):
    with pytest.raises(OSError) as raised:
        WRITES[attempt](shown, shown / "zarr.json")
    assert raised.value.errno == errno.EROFS


def test_mount_type_and_options(shown):
    kind, options = mounting.mount_entry(shown)
    assert kind == "fuse.zarr-mount"
    assert {"ro", "nosuid", "nodev"} <= options


def test_attributes_of_files(shown):
    for path in files(shown):
        status = os.stat(path)
        assert status.st_blocks == -(-status.st_size // 512), path
        assert status.st_nlink == 1, path
        assert len(path.read_bytes()) == status.st_size, path
        assert status.st_mode & 0o222 == 0, path


def test_every_path_has_its_own_inode(shown):
    paths = [shown, *shown.rglob("*")]
    assert len({os.stat(p).st_ino for p in paths}) == len(paths)


def test_listing_and_stat_agree(shown):
    for base, _, _ in os.walk(shown):
        for entry in os.scandir(base):
            assert entry.inode() == os.stat(entry.path).st_ino
            assert entry.is_dir() == stat.S_ISDIR(os.stat(entry.path).st_mode)


def test_statfs_answers(shown):
    assert os.statvfs(shown).f_namemax >= 255


@pytest.mark.parametrize("key", ["zarr.json", "notes.txt", "plain/zarr.json", "plain/c/1/2", "raw/c/3/2"])
def test_times_are_the_backing_objects(shown, store, key):
    assert os.stat(shown / key).st_mtime_ns == os.stat(store / key).st_mtime_ns


def test_inner_chunks_have_their_shards_time(shown, store):
    for index, shard in {"0/0": "0/0", "3/3": "0/0", "4/1": "1/0", "6/5": "1/1"}.items():
        here, there = os.stat(shown / "sharded/c" / index), os.stat(store / "sharded/c" / shard)
        assert here.st_mtime_ns == there.st_mtime_ns, index


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o400])
def test_read_bits_are_the_backing_objects(mount, tmp_path, mode):
    root = sample.write(tmp_path / "s.zarr")
    for key in ("plain/c/0/0", "sharded/c/0/0", "notes.txt"):
        os.chmod(root / key, mode)
    for view in ("keys", "chunks"):
        made = mount(root, "--view", view)
        for key in ("plain/c/0/0", "sharded/c/1/2", "notes.txt"):
            assert stat.S_IMODE(os.stat(made.path / key).st_mode) == mode & 0o444, (view, key)


def test_a_closed_directory_stays_closed(mount, tmp_path):
    root = sample.write(tmp_path / "s.zarr")
    os.chmod(root / "plain", 0o700)
    made = mount(root, "--view", "chunks")
    assert stat.S_IMODE(os.stat(made.path / "plain").st_mode) == 0o500


def test_reads_at_any_offset_are_slices(shown):
    dice = random.Random(5)
    for path in files(shown):
        whole = path.read_bytes()
        fd = os.open(path, os.O_RDONLY)
        try:
            for _ in range(8):
                offset = dice.randrange(len(whole) + 100)
                length = dice.randrange(1, len(whole) + 200)
                assert os.pread(fd, length, offset) == whole[offset:offset + length], (path, offset, length)
        finally:
            os.close(fd)


def test_seek_hole_does_not_lie(shown):
    """A false hole makes `cp --sparse=always` and `tar -S` write zeros."""
    for path in files(shown):
        fd = os.open(path, os.O_RDONLY)
        try:
            size = os.fstat(fd).st_size
            if size:
                assert os.lseek(fd, 0, os.SEEK_DATA) == 0
                assert os.lseek(fd, 0, os.SEEK_HOLE) == size
        finally:
            os.close(fd)


def test_a_missing_chunk_is_a_file_of_fill_values(mount, store):
    made = mount(store, "--view", "chunks")
    chunk = np.frombuffer((made.path / "holes/c/2/1").read_bytes(), "<i4")
    assert chunk.size == 32 * 32 and (chunk == 5).all()
    assert sorted(os.listdir(made.path / "holes/c")) == ["0", "1", "2", "3"]


def test_missing_hide_leaves_them_out(mount, store):
    made = mount(store, "--view", "chunks", "--missing", "hide")
    listed = [p.relative_to(made.path) for p in (made.path / "holes/c").rglob("*") if p.is_file()]
    assert [str(p) for p in listed] == ["holes/c/0/0"]
    assert not (made.path / "holes/c/2/1").exists()
    assert (reading.with_zarr_python(made.path, "holes", 3)[50:] == 5).all()


def test_keys_lists_the_chunks_of_the_shard_index(mount, store):
    made = mount(store)
    listed = {str(p.relative_to(made.path / "sharded/c")) for p in (made.path / "sharded/c").rglob("*") if p.is_file()}
    assert listed == {f"{i}/{j}" for i in range(7) for j in range(6)}


def test_names_outside_the_grid_are_absent(shown):
    for key in ("sharded/c/7/0", "sharded/c/00/0", "sharded/c/0/0/0", "sharded/c/+1/0", "plain/c/-1/0", "nothing"):
        assert not (shown / key).exists(), key


def test_several_views_stand_side_by_side(mount, store):
    made = mount(store, "--view", "keys,chunks")
    assert sorted(os.listdir(made.path)) == ["chunks", "keys"]
    for view in ("keys", "chunks"):
        assert (reading.with_zarr_python(made.path / view, "sharded", 3) == sample.values()).all()


def test_stats_are_reachable_by_name_and_not_listed(shown):
    assert ".zarr-mount" not in os.listdir(shown)
    stats = json.loads((shown / ".zarr-mount/stats.json").read_bytes())
    for group in ("requests", "store", "chunks", "cache", "opens", "errors"):
        assert isinstance(stats[group], dict), group
    assert stats["requests"]["lookup"] > 0
    assert stats["cache"]["budget_bytes"] > 0


def test_extended_attributes_by_option_only(mount, store):
    plain = mount(store)
    with pytest.raises(OSError) as raised:
        os.getxattr(plain.path / "sharded", "user.zarr.shape")
    assert raised.value.errno in (errno.ENOTSUP, errno.ENODATA)
    made = mount(store, "-o", "xattr")
    assert json.loads(os.getxattr(made.path / "sharded", "user.zarr.shape")) == [100, 90]
    assert os.getxattr(made.path / "sharded/c/0/1", "user.zarr.key") == b"sharded/c/0/0"


def test_a_node_inside_a_hierarchy_can_be_mounted(mount, store):
    made = mount(store / "sharded", "--view", "chunks")
    assert (reading.with_zarr_python(made.path, "", 3) == sample.values()).all()


def test_the_demo_store(mount):
    made = mount("demo:")
    assert any(p.is_file() for p in made.path.rglob("*"))


def test_a_replaced_chunk_is_seen_by_the_next_open(mount, tmp_path):
    root = sample.write(tmp_path / "s.zarr")
    made = mount(root, "--view", "chunks")
    before = (made.path / "raw/c/0/0").read_bytes()
    other = np.full((32, 32), 9, "<i4").tobytes()
    (tmp_path / "next").write_bytes(other)
    os.rename(tmp_path / "next", root / "raw/c/0/0")
    assert before != other
    assert (made.path / "raw/c/0/0").read_bytes() == other
