"""A mount with `--rw`: the files that programs see, the contents of the store at each moment, and the requests that are refused."""
import errno
import fcntl
import mmap
import os
import re
import shutil
import signal
import stat
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import zarr

from support import mounting, writing_samples
from support.mounting import BINARY, ok, run, until
from support.writing_samples import ARGS, CHUNK, SHAPE, store, tree, values, written  # noqa: F401, two of them are fixtures

C = "a/c/0/0"  # a chunk


def refused(call, *args):
    with pytest.raises(OSError) as caught:
        call(*args)
    return errno.errorcode[caught.value.errno]


def opened(path, flags=os.O_RDWR, mode=0o644):
    return os.open(path, flags, mode)


def test_a_chunk_is_replaced_when_it_is_closed_and_its_readers_see_it_at_once(store, written):
    old, new = (store / C).read_bytes(), os.urandom(700)
    path = written.path / C
    before = path.stat()
    reader, writer = opened(path, os.O_RDONLY), opened(path, os.O_WRONLY | os.O_TRUNC)
    assert os.write(writer, new[:300]) == 300
    assert (path.stat().st_size, (store / C).read_bytes()) == (300, old), "the store has the old one"
    assert os.pread(reader, 1000, 0) == new[:300]
    assert path.read_bytes() == new[:300]
    assert os.write(writer, new[300:]) == 400
    os.close(writer)
    assert (store / C).read_bytes() == new == os.pread(reader, 1000, 0)
    os.close(reader)
    after = path.stat()
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)
    assert (store / C).stat().st_nlink == 1


def test_a_part_of_a_chunk_is_written_and_the_rest_stays(store, written):
    old = (store / C).read_bytes()
    fd = opened(written.path / C)
    os.pwrite(fd, b"new", 5)
    assert os.pread(fd, len(old), 0) == old[:5] + b"new" + old[8:]
    os.ftruncate(fd, 20)
    assert (store / C).read_bytes() == old
    os.fsync(fd)
    assert (store / C).read_bytes() == (old[:5] + b"new" + old[8:])[:20]
    os.pwrite(fd, b"more", 30)
    os.close(fd)
    assert (store / C).read_bytes() == (old[:5] + b"new" + old[8:])[:20] + bytes(10) + b"more"


def test_a_new_chunk_appears_in_the_store_when_it_is_closed(store, written):
    path = written.path / "a/c/9"
    path.mkdir()
    fd = opened(path / "9", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o640)
    assert os.listdir(path) == ["9"] and os.listdir(store / "a/c/9") == []
    assert refused(opened, path / "9", os.O_WRONLY | os.O_CREAT | os.O_EXCL) == "EEXIST"
    assert refused(os.rmdir, path) == "ENOTEMPTY"
    os.write(fd, b"abc")
    assert (path / "9").read_bytes() == b"abc"
    os.close(fd)
    assert (store / "a/c/9/9").read_bytes() == b"abc"
    assert stat.S_IMODE((store / "a/c/9/9").stat().st_mode) == 0o640
    # An empty file appears too, but only a moment later, because programs may close a duplicate of a file before they write to it.
    (path / "8").touch()
    until((store / "a/c/9/8").exists, "the release of an empty file")


def test_files_that_are_no_zarr_are_written_in_place(store, written):
    (store / "notes.txt").write_text("one\n")
    inode = (store / "notes.txt").stat().st_ino
    with open(written.path / "notes.txt", "a") as file:
        file.write("two\n")
        file.flush()
        assert (store / "notes.txt").read_text() == "one\ntwo\n"
        file.write("three\n")
    assert (written.path / "notes.txt").read_text() == "one\ntwo\nthree\n"
    assert (store / "notes.txt").stat().st_ino == inode


def test_memory_that_is_mapped_is_saved(store, written):
    old = (store / C).read_bytes()
    fd = opened(written.path / C)
    mapped = mmap.mmap(fd, len(old))
    mapped[3:6] = b"xyz"
    mapped.flush()
    mapped[0:1] = b"!"
    os.close(fd)
    mapped.close()
    wanted = b"!" + old[1:3] + b"xyz" + old[6:]
    until(lambda: (store / C).read_bytes() == wanted, "the release of a mapped file")


def test_a_file_without_a_name_lives_with_its_handles(store, written):
    fd = opened(written.path / C)
    os.pwrite(fd, b"new", 0)
    os.unlink(written.path / C)
    assert not (store / C).exists() and not (written.path / C).exists()
    assert os.pread(fd, 3, 0) == b"new" and os.fstat(fd).st_size > 3
    os.pwrite(fd, b"more", 3)
    assert os.pread(fd, 7, 0) == b"newmore"
    (written.path / C).write_bytes(b"another")
    os.close(fd)
    assert (store / C).read_bytes() == b"another"


def test_renames_and_links(store, written):
    m, data = written.path, os.urandom(100)
    (m / "a/0.partial").write_bytes(data)
    number = (m / "a/0.partial").stat().st_ino
    os.rename(m / "a/0.partial", m / C)
    assert (store / C).read_bytes() == data == (m / C).read_bytes()
    assert (m / C).stat().st_ino == number, "the number goes along"
    (m / "a/0.partial").write_bytes(b"second")
    assert (m / "a/0.partial").stat().st_ino != number
    assert refused(os.link, m / "a/0.partial", m / C) == "EEXIST"
    os.link(m / "a/0.partial", m / "a/c/0/7")
    os.unlink(m / "a/0.partial")
    assert (store / "a/c/0/7").read_bytes() == b"second"
    # An open file goes on under its new name, and so do those below a directory.
    fd = opened(m / C)
    os.pwrite(fd, b"1", 0)
    os.rename(m / C, m / "a/c/0/8")
    os.pwrite(fd, b"2", 1)
    os.rename(m / "a", m / "b")
    os.pwrite(fd, b"3", 2)
    assert not (m / "a").exists() and (m / "b/c/0/8").read_bytes()[:3] == b"123"
    os.close(fd)
    assert (store / "b/c/0/8").read_bytes() == b"123" + data[3:]
    assert refused(os.rename, m / "b", m / "b/c/x") == "EINVAL"
    assert refused(os.rename, m / "b/c", m / "zarr.json") == "ENOTDIR"


def test_a_file_that_is_moved_onto_an_open_one_takes_its_name_alone(store, written):
    m = written.path
    fd = opened(m / C)
    os.pwrite(fd, b"draft", 0)
    (m / "new").write_bytes(b"moved")
    os.rename(m / "new", m / C)
    assert (m / C).read_bytes() == b"moved" == (store / C).read_bytes()
    assert os.pread(fd, 5, 0) == b"draft"
    os.close(fd)
    assert (store / C).read_bytes() == b"moved"


def test_directories(store, written):
    m = written.path
    (m / "g/h").mkdir(parents=True)
    (m / "g").chmod(0o2750)
    assert stat.S_IMODE((store / "g").stat().st_mode) == 0o2750
    assert refused(os.mkdir, m / "g") == "EEXIST"
    assert refused(os.rmdir, m / "g") == "ENOTEMPTY"
    assert refused(os.rmdir, m / "zarr.json") == "ENOTDIR"
    assert refused(os.unlink, m / "g") in ("EISDIR", "EPERM")
    (m / "g/h/0").write_bytes(b"x")
    os.rename(m / "g", m / "k")
    (m / "g").mkdir()
    assert (m / "k/h/0").read_bytes() == b"x" and os.listdir(m / "g") == []
    os.unlink(m / "k/h/0")
    os.removedirs(m / "k/h")
    assert not (store / "k").exists()
    fd = os.open(m / "a", os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(fd)
    os.close(fd)


def test_modes_and_times(store, written):
    path = written.path / C
    number = path.stat().st_ino
    path.chmod(0o600)
    # Some file systems keep whole seconds.
    (store / "notes").touch()
    os.utime(store / "notes", (1, 2.5))
    kept = (store / "notes").stat().st_mtime
    os.utime(path, (1, 2.5))
    found = (store / C).stat()
    assert (stat.S_IMODE(found.st_mode), found.st_atime, found.st_mtime) == (0o600, 1, kept)
    assert (path.stat().st_mtime, path.stat().st_ino) == (kept, number)
    # As cp -p sets them: on the open file, before it is closed.
    fd = opened(path, os.O_WRONLY | os.O_TRUNC)
    os.write(fd, b"new")
    os.utime(fd, (3, 4))
    os.fchmod(fd, 0o640)
    os.close(fd)
    found = (store / C).stat()
    assert (stat.S_IMODE(found.st_mode), found.st_mtime) == (0o640, 4)
    # A chunk that is replaced keeps its mode.
    path.write_bytes(b"newer")
    assert stat.S_IMODE((store / C).stat().st_mode) == 0o640


@pytest.mark.local
def test_space_is_allocated(store, written):
    fd = opened(written.path / C)
    size = os.fstat(fd).st_size
    os.posix_fallocate(fd, 0, size + 100)
    assert os.fstat(fd).st_size == size + 100
    os.close(fd)
    assert (store / C).stat().st_size == size + 100
    ok("fallocate", "--punch-hole", "--offset", 0, "--length", 10, written.path / C)
    assert (store / C).read_bytes()[:10] == bytes(10)
    assert run("fallocate", "--collapse-range", "--offset", 0, "--length", 10, written.path / C).returncode


def test_requests_for_other_kinds_of_files_are_refused(written):
    m = written.path
    assert refused(os.symlink, "x", m / "link") == "EPERM"
    assert refused(os.mkfifo, m / "fifo") == "EPERM"
    assert refused(os.setxattr, m / C, "user.x", b"1") in ("EOPNOTSUPP", "ENOTSUP")
    assert refused(os.mkdir, m / ("n" * 256)) == "ENAMETOOLONG"
    assert refused(opened, m / "absent/0", os.O_CREAT | os.O_WRONLY) == "ENOENT"
    for name in ("log", "stats.json", "new"):
        assert refused(opened, m / ".zarr-mount" / name, os.O_CREAT | os.O_WRONLY) in ("EPERM", "EACCES")
    assert refused(os.rename, m / C, m / ".zarr-mount") in ("EPERM", "ENOTDIR", "EISDIR")


def test_locks_work_between_programs(written):
    path = written.path / "a/c/0/0.__lock"
    one, two = (opened(path, os.O_RDWR | os.O_CREAT) for _ in range(2))
    assert os.fstat(one).st_ino == os.fstat(two).st_ino
    fcntl.flock(one, fcntl.LOCK_EX)
    assert refused(fcntl.flock, two, fcntl.LOCK_EX | fcntl.LOCK_NB) == "EAGAIN"
    os.close(one)
    fcntl.flock(two, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(two)
    path.unlink()


# Outsiders: programs that write to the store without the mount.


def test_a_change_by_another_program_since_the_read_is_not_overwritten(store, written):
    fd = opened(written.path / C)
    os.pwrite(fd, b"mine", 0)
    (store / "theirs").write_bytes(b"theirs")
    os.rename(store / "theirs", store / C)
    other = opened(written.path / C, os.O_WRONLY)
    assert refused(os.fsync, fd) == "ESTALE"
    # Every write to the lost file is refused. A new open gets the file of the other program.
    assert refused(os.pwrite, fd, b"x", 0) == "ESTALE" == refused(os.pwrite, other, b"x", 0)
    assert refused(os.close, other) == "ESTALE"
    assert refused(os.close, fd) == "ESTALE"
    assert (store / C).read_bytes() == b"theirs" == (written.path / C).read_bytes()
    assert "another program has changed it" in written.log_text()


def test_a_write_in_place_by_another_program_is_not_overwritten(store, written):
    fd = opened(written.path / C)
    os.pwrite(fd, b"mine", 0)
    with open(store / C, "r+b") as file:
        file.write(b"theirs")
    theirs = (store / C).read_bytes()
    assert refused(os.close, fd) == "ESTALE"
    assert (store / C).read_bytes() == theirs == (written.path / C).read_bytes()


def test_a_writer_that_has_not_read_replaces_a_write_by_another_program(store, written):
    fd = opened(written.path / C, os.O_WRONLY | os.O_TRUNC)
    os.write(fd, b"mine")
    (store / C).unlink()
    (store / C).write_bytes(b"theirs")
    os.close(fd)
    assert (store / C).read_bytes() == b"mine"
    new = opened(written.path / "a/c/0/5", os.O_WRONLY | os.O_CREAT)
    os.write(new, b"mine")
    (store / "a/c/0/5").write_bytes(b"theirs")
    os.close(new)
    assert (store / "a/c/0/5").read_bytes() == b"mine"


def test_a_change_by_another_program_is_seen(store, written):
    path = written.path / C
    path.write_bytes(b"mine")
    time.sleep(0.05)
    with open(store / C, "r+b") as file:
        file.write(b"thei")
    os.utime(store / C, (1, 1))
    assert path.read_bytes() == b"thei"
    (store / C).unlink()
    assert refused(path.read_bytes) == "ENOENT"
    (store / C).write_bytes(b"again")
    assert path.read_bytes() == b"again"
    (store / "b").mkdir()
    assert "b" in os.listdir(written.path)


def test_links_are_not_written(store, written, tmp_path):
    (tmp_path / "outside").write_bytes(b"kept")
    (store / "a/c/0/6").symlink_to(store / C)
    (store / "out").symlink_to(tmp_path / "outside")
    (store / "dir").symlink_to(store / "a")
    m = written.path
    assert refused(opened, m / "a/c/0/6", os.O_WRONLY) == "EACCES"
    assert refused(opened, m / "dir/new", os.O_CREAT | os.O_WRONLY) == "EACCES"
    assert refused(os.unlink, m / "a/c/0/6") == "EACCES"
    assert (tmp_path / "outside").read_bytes() == b"kept"
    for name in ("a/c/0/6", "out", "dir"):
        (store / name).unlink()


def test_a_second_name_in_the_store_keeps_its_bytes(store, written):
    old = (store / C).read_bytes()
    os.link(store / C, store / "snapshot")
    (written.path / C).write_bytes(b"new")
    assert (store / "snapshot").read_bytes() == old


# Starting and ending.


def test_sync_saves_everything(store, written):
    files = [opened(written.path / "a/c/0" / str(n), os.O_CREAT | os.O_WRONLY | os.O_TRUNC) for n in range(6)]
    for fd in files:
        os.write(fd, b"new")
    assert (store / C).read_bytes() != b"new"
    sync = os.open(written.path / ".zarr-mount/sync", os.O_RDONLY)
    os.fsync(sync)
    assert all((store / "a/c/0" / str(n)).read_bytes() == b"new" for n in range(6))
    for fd in [*files, sync]:
        os.close(fd)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_open_files_are_saved_when_the_mount_ends(number, store, mount):
    made = mount(store, *ARGS)
    fd = opened(made.path / C, os.O_WRONLY | os.O_TRUNC)
    os.write(fd, b"unsaved")
    os.kill(made.pid, number)
    until(lambda: not made.alive(), "the end of the daemon")
    assert (store / C).read_bytes() == b"unsaved"
    try:
        os.close(fd)
    except OSError:
        pass
    assert not (store / ".zarr-mount").exists()


@pytest.mark.parametrize("call", [(os.mkdir, "x"), (os.open, "x", os.O_WRONLY | os.O_CREAT)], ids=lambda call: call[0].__name__)
def test_no_file_is_made_in_a_directory_of_an_array_that_another_program_removed(call, store, mount):
    """The error is ENOENT and not ESTALE, because a second lookup would not find the directory either."""
    directory = os.open(mount(store, "--rw", "--view", "chunks").path / "a/c/0", os.O_RDONLY | os.O_DIRECTORY)
    function, *arguments = call
    try:
        shutil.rmtree(store / "a")
        # The document is remembered for a moment.
        until(lambda: refused(lambda: function(*arguments, dir_fd=directory)) == "ENOENT", "an error of what is made in no directory")
    finally:
        os.close(directory)


@pytest.mark.parametrize("args", [ARGS, ("--rw", "--view", "chunks")])
def test_the_mode_of_a_program_is_shown_as_it_is_after_a_write(args, store, mount):
    m = mount(store, *args, "--ttl", "3600").path
    (m / "program").write_bytes(b"#!/bin/sh\n")

    def mode():
        # A program that requests only the mode gets the one that the kernel knows.
        return ok("stat", "-c", "%a", m / "program").strip()

    for flags in (os.O_WRONLY, os.O_WRONLY | os.O_TRUNC):
        (m / "program").chmod(0o6755)
        assert mode() == "6755"
        file = opened(m / "program", flags)
        os.write(file, b"#!/bin/sh\n")
        assert mode() == "755"
        os.close(file)
        assert mode() == "755"


def test_one_writer_at_a_time(store, mount, tmp_path):
    made = mount(store, *ARGS)
    for path in (store, store / "a"):
        done = run(BINARY, *ARGS, path, tmp_path / "other")
        assert done.returncode == 1 and f"process {made.pid} (" in done.stderr, done.stderr
    reader = mount(store)
    (made.path / C).write_bytes(b"new")
    assert (reader.path / C).read_bytes() == b"new"
    assert refused(opened, reader.path / C, os.O_WRONLY) == "EROFS"
    assert refused(os.mkdir, reader.path / "x") == "EROFS"
    made.unmount()
    mount(store / "a", *ARGS)


@pytest.mark.parametrize("args, said", [
    (["--view", "arrays"], "--view arrays,chunks"),
    (["--shards", "keep", "--immutable"], "not --immutable"),
])
def test_stores_that_cannot_be_written_are_refused_at_the_start(args, said, store, tmp_path):
    done = run(BINARY, "--rw", *args, store, tmp_path / "m")
    assert done.returncode == 2 and said in done.stderr and not (tmp_path / "m").exists()


@pytest.mark.root
def test_a_read_only_file_system_is_refused_with_advice(tmp_path):
    (tmp_path / "disk").mkdir()
    mounting.ok("mount", "-t", "tmpfs", "-o", "ro", "none", tmp_path / "disk")
    try:
        done = run(BINARY, "--rw", tmp_path / "disk", tmp_path / "m")
    finally:
        mounting.ok("umount", tmp_path / "disk")
    assert done.returncode == 1 and "mounted read-only; without --rw, it can be" in done.stderr, done.stderr
    assert not (tmp_path / "m").exists()


def test_other_stores_are_refused_at_the_start(tmp_path):
    zarr.create_array(zarr.storage.ZipStore(tmp_path / "a.zip", mode="w"), shape=(1,), dtype="i1")
    for name in ("demo:", tmp_path / "a.zip", "http://127.0.0.1:1/z"):
        done = run(BINARY, *ARGS, name, tmp_path / "m")
        assert done.returncode == 2 and "only a directory can be written to" in done.stderr, done.stderr


def test_mount_options(store, mount):
    made = mount(store, "--shards", "keep", "-o", "rw,writable")
    (made.path / C).write_bytes(b"new")
    assert "rw" in mounting.mount_entry(made.path)[1]
    made.unmount()
    for options in ("ro,writable", "rw"):
        made = mount(store, "--shards", "keep", "-o", options)
        assert "ro" in mounting.mount_entry(made.path)[1]
        assert ("-o rw does not make the mount writable: say --rw" in made.said) is (options == "rw"), made.said
        assert refused(opened, made.path / C, os.O_WRONLY) == "EROFS"
        made.unmount()
    made = mount(store, *ARGS, "-o", "ro")
    assert refused(opened, made.path / C, os.O_WRONLY) == "EROFS"


def is_traced(thread):
    try:
        return "TracerPid:\t0" not in (thread / "status").read_text()
    except FileNotFoundError:  # It has ended.
        return True


@contextmanager
def traced(made, calls, log):
    """Has strace write to `log` which of these system calls the daemon makes."""
    with subprocess.Popen(["strace", "-f", "-y", "-e", f"trace={calls}", "-o", log, "-p", str(made.pid)], stderr=subprocess.DEVNULL) as program:
        try:
            until(lambda: all(map(is_traced, Path(f"/proc/{made.pid}/task").iterdir())), "strace")
            yield
        finally:
            program.terminate()


@pytest.mark.parametrize("what", ["never", "atomic", "close"])
def test_durability(what, store, mount, tmp_path):
    """Which calls keep bytes and names through a loss of power, as strace sees them."""
    made = mount(store, *ARGS, "--durability", what)
    log = tmp_path / "strace"
    with traced(made, "fdatasync,fsync,linkat,renameat2", log):
        (made.path / C).write_bytes(b"new")
        (made.path / "a/c/0/9").write_bytes(b"new")
    calls = [line.split("(")[0].split()[-1] for line in log.read_text().splitlines() if "(" in line and "resumed" not in line]
    data, names = calls.count("fdatasync"), calls.count("fsync")
    assert data == (0 if what == "never" else 2), calls
    assert (names > 0) == (what == "close"), calls
    first = calls.index("linkat")
    assert what == "never" or calls.index("fdatasync") < first, "the bytes come before the name"


def synced(line):
    """The path that a line of `strace -y` says was synced."""
    found = re.search(r"f(?:data)?sync\(\d+<([^>]*)>\) += 0", line)
    return found and found[1]


@pytest.mark.parametrize("how", [".zarr-mount/sync", "", "a", "a/c"])
@pytest.mark.parametrize("what", ["never", "atomic"])
def test_closed_files_survive_a_sync_of_their_directories(what, how, store, mount, tmp_path):
    made = mount(store, *ARGS, "--durability", what)
    (made.path / C).write_bytes(b"new")
    (made.path / "a/c/notes").write_bytes(b"in place")
    os.mkdir(made.path / "a/c/9")
    os.rename(made.path / "a/c/9", made.path / "a/c/8")
    (made.path / "a/c/8/0").write_bytes(b"new")
    os.unlink(made.path / "a/c/1/1")
    log = tmp_path / "strace"

    def calls(path):
        with traced(made, "fdatasync,fsync", log):
            fd = os.open(path, os.O_RDONLY)
            os.fsync(fd)
            os.close(fd)
        found = {synced(line) for line in log.read_text().splitlines()} - {None}
        return {os.path.relpath(path, store) for path in found}

    found = calls(made.path / how)
    names = {"a/c/0", "a/c/1", "a/c/8", "a/c", "."} | ({"a"} if how.startswith("a") else set())
    data = {C, "a/c/8/0"} if what == "never" else set()
    assert found == names | data | {"a/c/notes"}, "each once"
    assert not calls(made.path / how) & (data | {"a/c/notes", "a/c/0", "a/c/8"}), "and not again"


def test_a_second_name_survives_with_its_bytes(store, mount, tmp_path):
    made = mount(store, *ARGS, "--durability", "never")
    (made.path / "notes").write_bytes(b"in place")
    os.link(made.path / "notes", made.path / "other")
    os.unlink(made.path / "notes")
    # A removed file does not prevent the sync of others.
    (made.path / "gone").write_bytes(b"in place")
    os.unlink(store / "gone")
    os.mkfifo(store / "gone")
    log = tmp_path / "strace"
    with traced(made, "fdatasync,fsync", log):
        made.sync()
    found = {synced(line) for line in log.read_text().splitlines()}
    assert str(store / "other") in found and str(store / "gone") not in found


def test_when_much_was_closed_the_whole_file_system_is_synced(store, mount, tmp_path):
    made = mount(store, *ARGS, "--durability", "never")
    for number in range(5000):
        (made.path / f"a/c/0/{number}").write_bytes(b"new")
    log = tmp_path / "strace"
    with traced(made, "syncfs", log):
        for _ in range(2):
            made.sync()
    assert len(re.findall(r"syncfs\(\d+<[^>]*>\) += 0", log.read_text())) == 1


@pytest.mark.root
def test_a_full_disk_keeps_the_old_bytes(disk, mount):
    store = writing_samples.write(disk("4M") / "store")
    made = mount(store, *ARGS)
    old = (store / C).read_bytes()
    fd = opened(made.path / C, os.O_WRONLY | os.O_TRUNC)
    with pytest.raises(OSError) as caught:
        for _ in range(100):
            os.write(fd, bytes(1 << 20))
    assert caught.value.errno == errno.ENOSPC
    assert (store / C).read_bytes() == old
    os.ftruncate(fd, 10)
    os.close(fd)
    assert (store / C).read_bytes() == bytes(10)
    made.unmount()


def test_figures_of_writes(written):
    before = written.stats()
    (written.path / C).write_bytes(bytes(5000))
    after = written.stats()
    assert after["bytes_written"] - before["bytes_written"] == 5000
    assert after["requests"]["write"] > before["requests"]["write"]


def test_numpy_edits_a_plain_file_in_place(store, written):
    np.save(written.path / "x.npy", np.arange(1000))
    edited = np.load(written.path / "x.npy", mmap_mode="r+")
    edited[7] = -1
    edited.flush()
    del edited
    assert np.load(store / "x.npy")[7] == -1


class TestCheck:
    """`--check`: bytes that the codecs of the array cannot decode are not saved."""

    @pytest.fixture(params=[None, (32, 32)], ids=["chunks", "shards"])
    def checked(self, request, tmp_path, mount):
        group = zarr.create_group(str(tmp_path / "store"))
        array = group.create_array("a", shape=SHAPE, chunks=CHUNK, shards=request.param, dtype="<f4")
        array[...] = values()
        return tmp_path / "store", mount(tmp_path / "store", *ARGS, "--check")

    def test_wrong_bytes_are_refused(self, checked):
        store, made = checked
        name, old = "a/c/0/0", (store / "a/c/0/0").read_bytes()
        for wrong in (b"", old[:-1], b"x" * 100, old[:20] + bytes([old[20] ^ 255]) + old[21:]):
            with pytest.raises(OSError) as caught:
                fd = os.open(made.path / name, os.O_WRONLY | os.O_TRUNC)
                os.write(fd, wrong)
                try:
                    os.fsync(fd)
                finally:
                    try:
                        os.close(fd)
                    except OSError:
                        pass
            assert caught.value.errno == errno.EINVAL
            (made.path / "a/c/0/0.partial").write_bytes(wrong)
            with pytest.raises(OSError) as caught:
                os.rename(made.path / "a/c/0/0.partial", made.path / name)
            assert caught.value.errno == errno.EINVAL
            assert (store / name).read_bytes() == old
        assert "a/c/0/0: not saved" in (made.path / ".zarr-mount/refused").read_text()

    def test_libraries_write_as_ever(self, checked):
        store, made = checked
        array = zarr.open_group(str(made.path))["a"]
        array[...] = values(1)
        assert (zarr.open_group(str(store))["a"][...] == values(1)).all()
        other = zarr.open_group(str(made.path)).create_array("b", shape=SHAPE, chunks=CHUNK, dtype="<f4")
        other[...] = values(2)
        assert (zarr.open_group(str(store))["b"][...] == values(2)).all()
        (made.path / "notes/0.1").parent.mkdir()
        (made.path / "notes/0.1").write_bytes(b"no chunk of any array")
        assert (store / "notes/0.1").read_bytes() == b"no chunk of any array"


@pytest.mark.parametrize("names, format", [(["attributes.json"], "N5"), (["snapshots/", "manifests/", "refs/"], "an Icechunk repository")])
def test_stores_of_other_formats_are_not_written(names, format, tmp_path):
    for name in names:
        if name.endswith("/"):
            (tmp_path / "store" / name).mkdir(parents=True)
        else:
            (tmp_path / "store").mkdir()
            (tmp_path / "store" / name).write_text('{"n5": "2.5.0"}')
    (tmp_path / "m").mkdir()
    done = run(BINARY, "--rw", tmp_path / "store", tmp_path / "m")
    assert done.returncode == 1 and f"it is {format}, which cannot be written" in done.stderr
    assert not os.path.ismount(tmp_path / "m")
