"""System calls of the daemon that fail, or at which it is killed, one after the other: `strace` makes them.

The same steps are made in a plain directory, which for decoded chunks works where the array has no codecs. After a kill, the store is as after the steps that had returned, or one step further; after an
error, each file is wholly old or wholly new, the caller got the error, and the mount goes on.
"""
import contextlib
import errno
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest
import zarr
from zarr.codecs import ZstdCodec

from support import mounting, writing_samples
from support.mounting import BINARY, ok, until
from support.writing_samples import ARGS, CHUNK, SHAPE, tree, values

# The calls by which the daemon changes the store. `openat` makes drafts and files.
CALLS = ["openat", "fchmod", "pwrite64", "ftruncate", "copy_file_range", "fdatasync", "linkat", "renameat2", "unlinkat", "mkdirat", "utimensat"]
ERRORS = ["ENOSPC", "EDQUOT", "EIO"]


def replace(path, data):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        os.write(fd, data)
    finally:
        os.close(fd)


def patch(path, at, data):
    fd = os.open(path, os.O_RDWR)
    try:
        os.pwrite(fd, data, at)
        os.fsync(fd)
    finally:
        os.close(fd)


def by_rename(path, data):
    """Writes as zarr-python does. If the rename fails, the temporary file beside the chunk is removed."""
    other = path.with_name(path.name + ".partial")
    try:
        replace(other, data)
        os.replace(other, path)
    finally:
        if other.exists():
            other.unlink()


# The steps: the name that a step changes, and the change. There are no steps for plain files, which are written in place and so may
# be partly written after a kill.
STEPS = [
    ("a/c/0/0", lambda root: replace(root / "a/c/0/0", b"new " * 300)),
    ("a/c/0/1", lambda root: patch(root / "a/c/0/1", 3, b"patched")),
    ("a/c/0/9", lambda root: replace(root / "a/c/0/9", b"made")),
    ("a/c/0/2", lambda root: by_rename(root / "a/c/0/2", b"renamed " * 100)),
    ("a/c/0/3", lambda root: os.truncate(root / "a/c/0/3", 7)),
    ("a/c/1/0", lambda root: os.unlink(root / "a/c/1/0")),
    ("b", lambda root: os.mkdir(root / "b")),
    ("a/c/2", lambda root: os.rename(root / "a/c/2", root / "b/2")),
    ("a/zarr.json", lambda root: replace(root / "a/zarr.json", b"{}")),
    ("a/c/0/0", lambda root: patch(root / "a/c/0/0", 4, b"again")),
    ("a/c/1/1", lambda root: os.utime(root / "a/c/1/1", (1, 2))),
    ("a/c/3", lambda root: shutil.rmtree(root / "a/c/3")),
]
N = CHUNK[0] * CHUNK[1] * 4
# The same steps for decoded chunks, which all have the same length.
CHUNK_STEPS = [
    ("a/c/0/0", lambda root: replace(root / "a/c/0/0", b"new " * (N // 4))),
    ("a/c/0/1", lambda root: patch(root / "a/c/0/1", 3, b"patched")),
    ("a/c/3/3", lambda root: replace(root / "a/c/3/3", b"made" * (N // 4))),
    ("a/c/0/2", lambda root: by_rename(root / "a/c/0/2", b"renamed." * (N // 8))),
    ("a/c/1/0", lambda root: os.unlink(root / "a/c/1/0")),
    ("b", lambda root: os.mkdir(root / "b")),
    ("g", lambda root: os.rename(root / "g", root / "b/g")),
    ("a/zarr.json", lambda root: replace(root / "a/zarr.json", (root / "a/zarr.json").read_bytes().replace(b'"attributes": {}', b'"attributes": {"a": 1}'))),
    ("a/c/0/0", lambda root: patch(root / "a/c/0/0", 4, b"again")),
    ("a/c/0/0", lambda root: replace(root / "a/c/0/0", bytes(N))),
    ("a/c/1/1", lambda root: os.utime(root / "a/c/1/1", (1, 2))),
    ("a/c/3", lambda root: shutil.rmtree(root / "a/c/3")),
]


def write_uncompressed(path):
    group = zarr.create_group(str(path))
    array = group.create_array("a", shape=SHAPE, chunks=CHUNK, dtype="<f4", compressors=None, fill_value=7, attributes={})
    array[:48] = values()[:48]
    array[48:, :48] = 1
    group.create_group("g")
    # The document is spelled as the view spells it.
    document = path / "a/zarr.json"
    document.write_text(re.sub(r'"codecs": \[.*?\]', '"codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]', document.read_text(), flags=re.DOTALL))
    return path


# How the mount is made, the steps, and who makes the store.
VIEWS = {
    "keys": (ARGS, STEPS, writing_samples.write),
    "chunks": (("--rw", "--view", "chunks", "--missing", "hide"), CHUNK_STEPS, write_uncompressed),
}


def names(path):
    """The tree, without what a step may leave when it is cut short."""
    return {name: data for name, data in tree(path).items() if not name.endswith(".partial")}


@pytest.fixture(scope="module", params=VIEWS)
def view(request):
    return VIEWS[request.param]


@pytest.fixture(scope="module")
def original(view, tmp_path_factory):
    return view[2](tmp_path_factory.mktemp("original") / "store")


@pytest.fixture(scope="module")
def states(view, original, tmp_path_factory):
    """The tree after each number of steps. Removing a directory is not one change: any part of it may be gone."""
    plain = tmp_path_factory.mktemp("plain") / "store"
    shutil.copytree(original, plain)
    found = [names(plain)]
    for _, step in view[1]:
        step(plain)
        found.append(names(plain))
    return found


def traced(pid, what, log):
    """A tracer of all threads of a daemon, which injects the given faults."""
    command = ["strace", "-f", "-qq", "-e", f"trace={what.split(':')[0]}", "-e", f"inject={what}", "-o", log, "-p", str(pid)]
    tracer = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def is_traced(thread):
        try:
            status = Path(f"/proc/{pid}/task/{thread}/status").read_text()
        except (FileNotFoundError, ProcessLookupError):  # The thread has ended meanwhile.
            return True
        return f"TracerPid:\t{tracer.pid}\n" in status

    def attached():
        assert tracer.poll() is None, f"strace ended with {tracer.returncode}: {tracer.stderr.read()}"
        return all(map(is_traced, os.listdir(f"/proc/{pid}/task")))

    until(attached, "strace")
    return tracer


def end(tracer):
    tracer.terminate()
    try:
        tracer.wait(5)
    except subprocess.TimeoutExpired:
        # It waits for the end of a thread that it has killed.
        tracer.kill()
        tracer.wait()


def is_between(found, one, two):
    """Whether `found` is `one`, `two`, or in the middle of removing what only `one` has."""
    if found in (one, two):
        return True
    removed = one.keys() - two.keys()
    return bool(removed) and one.items() >= found.items() and found.items() >= two.items()


@pytest.mark.parametrize("first", [1, pytest.param(2, marks=pytest.mark.long)])
@pytest.mark.parametrize("call", CALLS)
def test_a_daemon_that_is_killed_at_any_call_leaves_whole_files(call, first, view, original, states, tmp_path, mount):
    """At every second one, from the first or the second on."""
    (arguments, steps, _), reached = view, 0
    for number in range(first, 40, 2):
        store = tmp_path / f"store{number}"
        shutil.copytree(original, store)
        made = mount(store, *arguments)
        tracer = traced(made.pid, f"{call}:signal=SIGKILL:when={number}", tmp_path / "strace")
        done = 0
        try:
            for _, step in steps:
                step(made.path)
                done += 1
        except OSError:
            pass
        end(tracer)
        if done == len(steps):
            assert made.alive()
            made.unmount()
            assert names(store) == states[-1]
            break
        until(lambda: not made.alive(), "the end of the daemon")
        mounting.force_away(made.path)
        reached += 1
        found = names(store)
        assert is_between(found, states[done], states[done + 1]), f"{call} {number}, after {done} steps: {difference(found, states[done])}"
        ok(BINARY, "--recover", store)
        assert names(store) == found and not (store / ".zarr-mount").exists()
        shutil.rmtree(store)
    else:
        pytest.fail("the steps never came to an end")
    assert reached > 0 or first == 2 or call == "copy_file_range" and steps is CHUNK_STEPS, "no step makes this call"


def difference(found, wanted):
    return {name: (found.get(name, "absent"), wanted.get(name, "absent")) for name in found.keys() | wanted.keys()
            if found.get(name, "absent") != wanted.get(name, "absent")}


@pytest.mark.parametrize("call", CALLS)
def test_a_call_that_fails_is_reported_and_loses_nothing(call, view, original, tmp_path, mount):
    (arguments, steps, _), told = view, 0
    for number in range(1, 40):
        name = ERRORS[number % len(ERRORS)]
        store, plain = tmp_path / f"store{number}", tmp_path / f"plain{number}"
        shutil.copytree(original, store)
        shutil.copytree(original, plain)
        made = mount(store, *arguments)
        # A commit goes on if its object does not get a time of its own, so many of these calls cause no error.
        when = "1+" if call == "utimensat" and number == 1 else number
        tracer = traced(made.pid, f"{call}:error={name}:when={when}", tmp_path / "strace")
        failed = 0
        for target, step in steps:
            before = names(store)
            try:
                step(made.path)
            except OSError as error:
                failed += 1
                found, change = names(store), set()
                if errno.errorcode[error.errno] != name:
                    # Another error is right only if an earlier step, on which this one depends, has failed.
                    assert failed > 1, f"{call} {number}: {target}: {error}"
                for changed in difference(found, before):
                    change.add(changed)
                assert all(part == target or part.startswith((target, "b")) for part in change), f"{call} {number}: {target} failed, and {change} changed"
                shutil.rmtree(plain)
                shutil.copytree(store, plain, ignore=shutil.ignore_patterns(".zarr-mount"))
            else:
                step(plain)
            assert names(made.path) == names(plain), f"{call} {number}: {target}"
        end(tracer)
        injected = "INJECTED" in (tmp_path / "strace").read_text()
        told += bool(failed)
        (made.path / "a/c/0/0").write_bytes(b"goes on." * (N // 8))
        made.unmount()
        assert (store / "a/c/0/0").read_bytes() == b"goes on." * (N // 8)
        assert names(store) | {"a/c/0/0": 0} == names(plain) | {"a/c/0/0": 0}
        if (store / ".zarr-mount").exists():
            assert call == "unlinkat", "a temporary file that cannot be removed stays"
            ok(BINARY, "--recover", store)
        assert not (store / ".zarr-mount").exists()
        if not injected:
            break
    else:
        pytest.fail("the steps never came to an end")
    # Of decoded chunks nothing is copied by the kernel.
    assert told > 0 or call == "unlinkat" or call == "copy_file_range" and steps is CHUNK_STEPS, "no step was told of the error"


@pytest.mark.parametrize("codecs", [None, ZstdCodec(level=1)], ids=["plain", "encoded"])
@pytest.mark.parametrize("call", [*CALLS, "fsync"])
def test_a_chunk_is_whole_after_a_call_that_fails(call, codecs, tmp_path, mount):
    """A commit may fail after the store has got the chunk. Bytes that are written after that are not in the store before their own commit."""
    chance = np.random.default_rng(3)
    array = zarr.create_group(str(tmp_path / "store")).create_array("a", shape=(2048,), chunks=(1024,), dtype="<u4", fill_value=0, compressors=codecs)
    array[:1024] = 5
    made = mount(tmp_path / "store", "--rw", "--view", "chunks", "--durability", "close")
    told = 0
    for number in range(1, 9):
        for chunk, start in ((0, 0), (1, 0), (0, 1000)):  # where the first byte is written, the chunk is emptied first
            place = slice(1024 * chunk, 1024 * (chunk + 1))
            before = array[place].tobytes()
            written = chance.integers(9, size=1024, dtype="<u4").tobytes()[start:]
            data = before[:start] + written
            # First: where a program is started, the file is closed once in it.
            tracer = traced(made.pid, f"{call}:error=EIO:when={number}", tmp_path / "strace")
            file, is_written = None, False
            flags = os.O_RDWR | (0 if start else os.O_TRUNC)
            try:
                file = os.open(made.path / f"a/c/{chunk}", flags)
                is_written = os.pwrite(file, written, start) == len(written)
                os.fsync(file)
                is_told = False
            except OSError:
                is_told = True
            end(tracer)
            told += is_told
            found = array[place].tobytes()
            assert found == data or is_told and found == before, f"{call} {number}"
            if not is_written:
                if file is not None:  # the bytes of a write that has failed are not saved
                    with contextlib.suppress(OSError):
                        os.close(file)
                    assert array[place].tobytes() == before
                file = os.open(made.path / f"a/c/{chunk}", flags)
                os.pwrite(file, written, start)
            assert os.pread(file, 8192, 0) == data and os.fstat(file).st_size == 4096
            os.pwrite(file, b"more", 1020)
            assert array[place].tobytes() == found, f"{call} {number}: what is not committed is in the store"
            os.fsync(file)
            os.close(file)
            assert array[place].tobytes() == data[:1020] + b"more" + data[1024:], f"{call} {number}, tried again"
    assert told > 0 or call in ("copy_file_range", "unlinkat", "mkdirat", "utimensat"), "no call was told of the error"


def test_bytes_of_a_failed_write_are_not_saved_by_a_truncation_that_cuts_nothing(tmp_path, mount):
    array = zarr.create_group(str(tmp_path / "store")).create_array("a", shape=(4096,), chunks=(4096,), dtype="u1", fill_value=0, compressors=None)
    array[...] = 1
    made = mount(tmp_path / "store", "--rw", "--view", "chunks")
    file = os.open(made.path / "a/c/0", os.O_RDWR)
    tracer = traced(made.pid, "pwrite64:error=ENOSPC:when=1", tmp_path / "strace")
    with pytest.raises(OSError) as told:
        os.pwrite(file, b"NEW", 100)
    end(tracer)
    assert told.value.errno == errno.ENOSPC
    os.ftruncate(file, 4096)
    with pytest.raises(OSError) as told:
        os.fsync(file)
    assert told.value.errno == errno.ENOSPC and os.pread(file, 10, 95) == b"\1" * 10
    with contextlib.suppress(OSError):
        os.close(file)
    assert array[...].tobytes() == (made.path / "a/c/0").read_bytes() == b"\1" * 4096
