"""`--export` and `--cat`: the bytes of a mount, without one."""
import errno
import fcntl
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import zarr

from support import corpus
from support.mounting import BINARY, ok, run

# The stores that are mounted and exported, each as a name of the corpus (or a STORE), and options.
CASES = [
    ("demo:", ["--view", "keys,chunks,arrays", "--files", "npy,raw,nhdr,nc,tif,ome.tif,jsonl"]),
    ("demo:", ["--view", "chunks", "--as", "v2"]),
    ("zp3_shards.zarr", []),
    ("zp3_shards.zarr", ["--view", "chunks", "--missing", "hide"]),
    ("zp3_shards.zarr", ["--shards", "keep"]),
    ("zp2_filters.zarr", ["--as", "v3"]),
]


def store_of(name):
    return name if name == "demo:" else corpus.stores()[name].path


def files(root):
    """The files below `root`: bytes and time of each path."""
    found = {}
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder, name)
            found[str(path.relative_to(root))] = (path.read_bytes(), path.stat().st_mtime_ns)
    return found


@pytest.fixture
def store(tmp_path):
    """A store of 64 chunks of 4 KiB, and the values of its array."""
    values = np.arange(65536, dtype="<i4").reshape(256, 256)
    group = zarr.create_group(tmp_path / "s.zarr")
    group.create_array("x", shape=values.shape, chunks=(32, 32), dtype="<i4", compressors=None)[...] = values
    return tmp_path / "s.zarr", values


@pytest.mark.parametrize("name, options", CASES)
def test_files_are_those_of_a_mount(name, options, mount, tmp_path):
    ok(BINARY, "--export", tmp_path / "out", *options, store_of(name))
    expected = files(mount(store_of(name), *options).path)
    assert files(tmp_path / "out") == expected
    assert len(expected) > 5


@pytest.mark.parametrize("path, options", [("air/temperature.npy", ["--view", "arrays"]), ("air/temperature/c/1/2/3", ["--view", "chunks"]),
                                           ("arrays/air/air.nc", ["--view", "keys,arrays", "--files", "nc"]), ("zarr.json", [])])
def test_cat_prints_the_bytes_of_a_mount(path, options, mount):
    shown = (mount("demo:", *options).path / path).read_bytes()
    printed = subprocess.run([BINARY, "--cat", *options, "demo:", path], capture_output=True, timeout=60)
    assert (printed.returncode, printed.stdout, printed.stderr) == (0, shown, b"")


def test_parts_of_a_mount_are_exported(tmp_path):
    ok(BINARY, "--export", tmp_path / "group", "--files", "npy", "demo:", "air")
    assert (tmp_path / "group" / "temperature.npy").exists() and not (tmp_path / "group" / "air").exists()
    said = ok(BINARY, "--export", tmp_path / "file", "--files", "npy", "demo:", "air/temperature.npy")
    assert os.listdir(tmp_path / "file") == ["temperature.npy"]
    assert said == f"1 file, 144.12 KiB, in {tmp_path}/file\n"
    assert ok(BINARY, "--export", tmp_path / "quiet", "--quiet", "--files", "npy", "demo:", "air/lat.npy") == ""


def test_what_cannot_be_done_is_said(tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a").write_text("")
    for words, status, expected in [
        (["--cat", "demo:"], 2, "PATH missing"),
        (["--cat", "demo:", "no/such"], 1, "no/such of demo:: no such file in this view"),
        (["--cat", "demo:", "zarr.json/x"], 1, "no such file in this view"),
        (["--cat", "demo:", "air"], 1, "air of demo:: this is a directory"),
        (["--cat", "--rw", "demo:", "zarr.json"], 2, "cannot be used with"),
        (["--export", tmp_path / "full", "demo:"], 1, "the directory is not empty; --resume"),
        (["--export", tmp_path / "full" / "a", "demo:"], 1, "File exists"),
        (["--export", tmp_path / "new", "demo:", "no/such"], 1, "no such file or directory in this view"),
        (["--export", tmp_path / "new"], 2, "STORE missing"),
        (["--resume", "demo:"], 2, "--export"),
        (["--export", tmp_path / "new", "--array", "nope*", "demo:"], 1, "--export: --array nope*: it selects no array\n"),
        (["--export", tmp_path / "new", "--array", "lat", "--array", "nope", "demo:"], 1, "--array nope: it selects no array\n"),
        (["--export", tmp_path / "new", "--array", "lat", "demo:", "cells"], 1, "--array lat: it selects no array at or below cells"),
        (["--export", tmp_path / "new", "--array", "lat", "--view", "keys,arrays", "demo:", "arrays/cells"], 1, "at or below arrays/cells"),
    ]:
        done = run(BINARY, *words)
        assert (done.returncode, expected in done.stderr) == (status, True), (words, done)
    assert not (tmp_path / "new").exists()


def test_arrays_are_selected_in_what_is_exported(tmp_path):
    for number, (path, options) in enumerate([("", []), ("air", []), ("arrays/air", ["--view", "keys,arrays"]), ("air/lat.npy", [])]):
        ok(BINARY, "--export", tmp_path / str(number), "--quiet", "--array", "lat", "--sidecar", "no", *options, "demo:", path)
        found = [name for _, _, names in os.walk(tmp_path / str(number)) for name in names]
        assert found == ["lat.npy"], path


@pytest.mark.parametrize("words", [["--cat", "demo:", "zarr.json"], ["--cat", "--view", "arrays", "demo:", "air/temperature.npy"], ["--info", "demo:"],
                                   ["--version"]])
def test_output_that_is_lost_is_an_error(words):
    """Standard output on a full disk, and a closed one. A reader that has read enough is no error."""
    command = " ".join(f"'{word}'" for word in (BINARY, *words))
    for redirected, number in ((">/dev/full", errno.ENOSPC), (">&-", errno.EBADF)):
        done = subprocess.run(["sh", "-c", f"exec {command} {redirected}"], capture_output=True, text=True, timeout=60)
        assert done.returncode == 1 and os.strerror(number) in done.stderr, (redirected, done)
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {command} | true"], capture_output=True, text=True, timeout=60)
    assert done.stderr == "", done
    assert subprocess.run([BINARY, *words], stdout=subprocess.DEVNULL, timeout=60).returncode == 0


def test_damage_of_one_file_stops_no_other(store, tmp_path):
    path, values = store
    (path / "x" / "c" / "3" / "5").write_bytes(b"short")
    done = run(BINARY, "--export", tmp_path / "out", "--view", "chunks", path)
    assert done.returncode == 1 and "x/c/3/5: " in done.stderr and "1 file or directory was not exported" in done.stderr, done.stderr
    out = tmp_path / "out" / "x" / "c"
    assert sorted(os.listdir(tmp_path / "out")) == ["x", "zarr.json"], "nothing unfinished is left"
    for i, j in np.ndindex(8, 8):
        if (i, j) == (3, 5):
            assert not (out / "3" / "5").exists()
        else:
            assert (out / str(i) / str(j)).read_bytes() == values[32 * i:32 * i + 32, 32 * j:32 * j + 32].tobytes()


def test_what_an_interrupted_export_has_left_is_not_exported(store, tmp_path):
    path, _ = store
    expected = set(files(path))
    (path / ".zarr-mount-export").mkdir()
    (path / ".zarr-mount-export" / ".tmpAbCdEf").write_bytes(b"half of a file")
    done = run(BINARY, "--export", tmp_path / "out", path)
    assert done.returncode == 1 and ".zarr-mount-export: an export that was interrupted" in done.stderr, done.stderr
    assert set(files(tmp_path / "out")) == expected


@pytest.mark.parametrize("options", [[], ["--view", "chunks"], ["--view", "arrays"]])
def test_a_node_that_cannot_be_examined_is_named(options, store, tmp_path):
    path, _ = store
    zarr.open_group(path).create_array("y", shape=(4,), dtype="u1")
    document = path / "x" / "zarr.json"
    document.unlink()
    document.symlink_to("/dev/null")
    done = run(BINARY, "--export", tmp_path / "out", *options, path)
    assert done.returncode == 1 and "zarr-mount: x: x/zarr.json: access denied" in done.stderr, done.stderr
    assert "1 file or directory was not exported" in done.stderr
    assert any(name.startswith("y") for name in files(tmp_path / "out")), "the other array is exported"


def test_an_interrupted_export_is_resumed(store, tmp_path):
    path, values = store
    out = tmp_path / "out"
    ok(BINARY, "--export", out, "--view", "chunks,arrays", path)
    expected = files(out)
    # The state that a killed export leaves: some files are missing, one is not whole, and one has another time.
    (out / "chunks" / "x" / "c" / "0" / "1").unlink()
    (out / "arrays" / "x.npy").write_bytes(b"half")
    os.utime(out / "chunks" / "x" / "c" / "0" / "2", (1, 1))
    shutil.rmtree(out / "chunks" / "x" / "c" / "7")
    (out / ".zarr-mount-export").mkdir()
    (out / ".zarr-mount-export" / ".tmpabc").write_bytes(b"left")
    (out / "mine").write_text("another file")
    untouched = (out / "chunks" / "x" / "c" / "0" / "0").stat().st_ino
    said = ok(BINARY, "--export", out, "--resume", "--view", "chunks,arrays", path)
    assert said.startswith("11 files, ") and f"; {len(expected) - 11} files were there already" in said, said
    assert (out / "mine").read_text() == "another file"
    (out / "mine").unlink()
    assert files(out) == expected
    assert (out / "chunks" / "x" / "c" / "0" / "0").stat().st_ino == untouched
    np.testing.assert_array_equal(np.load(out / "arrays" / "x.npy"), values)


def test_an_export_of_other_files_is_not_resumed(tmp_path):
    """Chunks that are not compressed have the same names, lengths and times in both views, and other bytes."""
    array = zarr.create_array(tmp_path / "s.zarr", shape=(4096,), chunks=(512,), dtype=">i4", compressors=None, zarr_format=2)
    array[...] = np.arange(4096)
    out = tmp_path / "out"
    ok(BINARY, "--export", tmp_path / "whole", tmp_path / "s.zarr")
    # The first name is that of a file of the export's own.
    killed = subprocess.run(["strace", "-f", "-o", os.devnull, "-e", "inject=rename,renameat,renameat2:signal=KILL:when=4",
                             BINARY, "--export", out, tmp_path / "s.zarr"])
    assert killed.returncode != 0 and (out / ".zarr-mount-export").exists() and len(os.listdir(out)) > 1
    for options in (["--view", "chunks"], ["--as", "v3"]):
        done = run(BINARY, "--export", out, "--resume", *options, tmp_path / "s.zarr")
        assert done.returncode == 1 and "had other options" in done.stderr, done.stderr
    ok(BINARY, "--export", out, "--resume", tmp_path / "s.zarr")
    assert files(out) == files(tmp_path / "whole")


def test_a_full_disk_leaves_no_half_file(store, tmp_path):
    path, values = store
    disk = tmp_path / "disk"
    disk.mkdir()
    if run("mount", "-t", "tmpfs", "-o", "size=128k", "none", disk).returncode:
        pytest.skip("only root can make a small file system")
    try:
        done = run(BINARY, "--export", disk / "out", "--view", "chunks", path)
        assert done.returncode == 1 and os.strerror(errno.ENOSPC) in done.stderr, done.stderr
        kept = files(disk / "out")
        assert 1 < len(kept) < 64 and all(len(data) == 4096 for name, (data, _) in kept.items() if "/c/" in name)
        run("mount", "-o", "remount,size=10m", disk)
        ok(BINARY, "--export", disk / "out", "--resume", "--view", "chunks", path)
        shown = zarr.open_array(disk / "out" / "x", mode="r")[...]
        np.testing.assert_array_equal(shown, values)
    finally:
        run("umount", disk)


def test_two_exports_do_not_write_to_one_directory(store, tmp_path):
    path, _ = store
    unfinished = tmp_path / "out" / ".zarr-mount-export"
    unfinished.mkdir(parents=True)
    held = os.open(unfinished, os.O_RDONLY)
    try:
        # The lock of an export that runs.
        fcntl.flock(held, fcntl.LOCK_EX)
        done = run(BINARY, "--export", tmp_path / "out", "--resume", path)
    finally:
        os.close(held)
    assert done.returncode == 1 and "another export writes to this directory" in done.stderr, done.stderr
    assert os.listdir(tmp_path / "out") == [".zarr-mount-export"]


@pytest.mark.parametrize("place", ["s.zarr", "s.zarr/out", "s.zarr/x/new/out", "link", "link/out", ".", "new/../s.zarr/out"])
def test_nothing_is_exported_into_the_store(place, tmp_path):
    """Inner chunks would replace shards, and files that were exported would be exported again."""
    group = zarr.create_group(tmp_path / "s.zarr")
    group.create_array("x", shape=(64, 64), shards=(32, 32), chunks=(8, 8), dtype="<i4")[...] = 7
    (tmp_path / "link").symlink_to("s.zarr")
    before = files(tmp_path / "s.zarr")
    for options in ([], ["--resume"], ["--resume", "--view", "chunks"]):
        done = run(BINARY, "--export", place, *options, "s.zarr", cwd=tmp_path)
        assert done.returncode != 0 and "name another directory" in done.stderr, done
        assert files(tmp_path / "s.zarr") == before
    ok(BINARY, "--export", "s.zarr2", "s.zarr", cwd=tmp_path)


@pytest.mark.parametrize("version, options", [(2, ["--as", "v2"]), (3, []), (2, ["--view", "chunks", "--as", "v2"]), (3, ["--view", "chunks"])])
def test_an_export_is_a_store(version, options, tmp_path):
    values = np.random.default_rng(5).normal(size=(100, 70))
    group = zarr.create_group(tmp_path / "s.zarr", attributes={"title": "t"})
    group.create_array("x", shape=values.shape, shards=(50, 40), chunks=(25, 20), dtype="<f8")[...] = values
    ok(BINARY, "--export", tmp_path / "out.zarr", *options, tmp_path / "s.zarr")
    array = zarr.open_group(tmp_path / "out.zarr", mode="r")["x"]
    assert (array.metadata.zarr_format, array.chunks, array.shards) == (version, (25, 20), None)
    np.testing.assert_array_equal(array[...], values)
