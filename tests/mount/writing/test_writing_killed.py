"""Daemons that are killed while programs write: each chunk and document is wholly old or wholly new, and closed files exist."""
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

import numcodecs
import numpy as np
import pytest
import tensorstore
import zarr

from support import mounting, writing_samples, zarrs_client
from support.mounting import BINARY, ok, run, until
from support.writing_samples import ARGS, CHUNK

ROUNDS = int(os.environ.get("ZARR_MOUNT_KILLS", "12"))
SIDE = 8  # chunks


def stamped(number):
    """A chunk of one number, as bytes. Which it is can be told from any of its elements."""
    return np.full(CHUNK, number, "<f4").tobytes()


def write_for_ever(path, seed, done):
    """Replaces chunks in the ways that writers do, until the mount is gone. Notes the closed chunks."""
    chosen = random.Random(seed)
    for n in range(1, 1 << 20):
        # Each writer has other files than the others, because two writers of one file would overwrite each other, as in any directory.
        i, number = chosen.randrange(seed - 1, SIDE * SIDE, 3), seed * 1_000_000 + n
        name, data = path / f"a/{i // SIDE}.{i % SIDE}", stamped(number)
        try:
            how = n % 3
            if how == 0:
                name.write_bytes(data)
            elif how == 1:
                other = name.with_name(f"{name.name}.{seed}.partial")
                other.write_bytes(data)
                os.replace(other, name)
            else:
                fd = os.open(name, os.O_RDWR | os.O_CREAT)
                os.pwrite(fd, data[: len(data) // 2], 0)
                os.pwrite(fd, data[len(data) // 2:], len(data) // 2)
                os.close(fd)
            if seed == 1:
                (path / "a/.zattrs").write_text(json.dumps({"number": number, "pad": "x" * chosen.randrange(9000)}))
        except OSError:
            return
        done[i] = number


# The arguments of a mount, and the compressor of the array. A decoded chunk has the same bytes with any.
VIEWS = {"keys": (ARGS, None), "chunks": (("--rw", "--view", "chunks"), numcodecs.Blosc())}


@pytest.mark.parametrize("view", VIEWS)
def test_every_chunk_is_wholly_old_or_wholly_new(view, tmp_path, mount, figure):
    store = tmp_path / "store"
    arguments, compressor = VIEWS[view]
    group = zarr.create_group(str(store), zarr_format=2)
    array = group.create_array("a", shape=(SIDE * CHUNK[0], SIDE * CHUNK[1]), chunks=CHUNK, dtype="<f4", compressors=compressor, fill_value=0)
    array[...] = 0
    chosen, written, left = random.Random(7), 0, 0
    for _ in range(ROUNDS):
        made = mount(store, *arguments)
        done = [{}, {}, {}]
        threads = [threading.Thread(target=write_for_ever, args=(made.path, seed + 1, done[seed])) for seed in range(3)]
        for thread in threads:
            thread.start()
        time.sleep(chosen.random() * 0.4)
        os.kill(made.pid, signal.SIGKILL)
        for thread in threads:
            thread.join()
        until(lambda: not made.alive(), "the end of the daemon")
        mounting.force_away(made.path)
        own = store / ".zarr-mount"
        left += len(os.listdir(own)) if own.exists() else 0
        found = zarr.open_array(str(store / "a"), mode="r")[...]
        again = tensorstore.open({"driver": "zarr", "kvstore": {"driver": "file", "path": f"{store}/a/"}}).result()[...].read().result()
        assert (found == again).all() and (found == zarrs_client.values(store / "a")).all()
        for i in range(SIDE * SIDE):
            row, column = i // SIDE * CHUNK[0], i % SIDE * CHUNK[1]
            chunk = found[row:row + CHUNK[0], column:column + CHUNK[1]]
            assert (chunk == chunk[0, 0]).all(), f"chunk {i} has {np.unique(chunk)}"
        # The first of them writes it after each chunk.
        assert "number" in json.loads((store / "a/.zattrs").read_text()) or not done[0]
        written += sum(max(part.values(), default=0) % 1_000_000 for part in done)
    # After this, nothing of the killed daemon is left.
    said = ok(BINARY, "--recover", store)
    assert "nothing was left" in said or "temporary file" in said
    assert not (store / ".zarr-mount").exists()
    figure(f"{view}: {ROUNDS} daemons killed while 3 threads wrote {written} chunks; {left} temporary files were left")


def write_inner_for_ever(path, seed, closed, trying):
    """Replaces a third of the inner chunks, until the mount is gone. Notes the closed ones, and the one that is being written."""
    chosen = random.Random(seed)
    for n in range(1, 1 << 20):
        i, number = chosen.randrange(seed - 1, SIDE * SIDE, 3), 0 if n % 7 == 0 else seed * 1_000_000 + n
        name, data = path / f"a/c/{i // SIDE}/{i % SIDE}", stamped(number)
        trying[:] = [(i, number)]
        try:
            if number == 0:
                os.unlink(name)
            elif n % 4 == 0:
                with open(name, "r+b", buffering=0) as file:
                    file.write(data)
                    os.fsync(file)
            else:
                name.write_bytes(data)
        except OSError:
            return
        closed[i] = number


@pytest.mark.parametrize("durability", ["atomic", "close"])
def test_every_inner_chunk_that_was_closed_is_there(durability, tmp_path, mount, figure):
    """Chunks in a journal when the daemon is killed are packed by `--recover`, or by the next mount. A second recovery changes nothing."""
    store = tmp_path / "store"
    shards = (4 * CHUNK[0], 4 * CHUNK[1])
    array = zarr.create_array(str(store), name="a", shape=(SIDE * CHUNK[0], SIDE * CHUNK[1]), chunks=CHUNK, shards=shards, dtype="<f4", fill_value=0)
    array[:shards[0]] = 1
    chosen, written, left = random.Random(11), 0, 0
    known = [1] * (4 * SIDE) + [0] * (4 * SIDE)
    for round in range(ROUNDS):
        made = mount(store, "--rw", "--view", "chunks", "--durability", durability)
        closed, trying = {}, [[], [], []]
        threads = [threading.Thread(target=write_inner_for_ever, args=(made.path, seed + 1, closed, trying[seed])) for seed in range(3)]
        for thread in threads:
            thread.start()
        # Some of them end after the shards were packed for the first time.
        time.sleep(chosen.random() * (0.4 if round % 4 else 1.6))
        os.kill(made.pid, signal.SIGKILL)
        for thread in threads:
            thread.join()
        until(lambda: not made.alive(), "the end of the daemon")
        mounting.force_away(made.path)
        journals = store / ".zarr-mount/journal"
        left += len(os.listdir(journals)) if journals.exists() else 0
        # A second daemon is killed while it recovers the journals of the first one.
        with subprocess.Popen([BINARY, "--recover", store], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as recovery:
            time.sleep(chosen.random() * 0.03)
            recovery.kill()
        ok(BINARY, "--recover", store)
        before = writing_samples.tree(store)
        assert "nothing was left" in ok(BINARY, "--recover", store) and writing_samples.tree(store) == before
        assert not (store / ".zarr-mount").exists()
        found = zarr.open_array(str(store / "a"), mode="r")[...]
        again = tensorstore.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{store}/a/"}}).result()[...].read().result()
        assert (found == again).all()
        for i in range(SIDE * SIDE):
            row, column = i // SIDE * CHUNK[0], i % SIDE * CHUNK[1]
            chunk = found[row:row + CHUNK[0], column:column + CHUNK[1]]
            assert (chunk == chunk[0, 0]).all(), f"chunk {i} has {np.unique(chunk)}"
            allowed = [closed.get(i, known[i]), *(number for last in trying for tried, number in last if tried == i)]
            assert chunk[0, 0] in allowed, (i, chunk[0, 0], allowed)
            known[i] = chunk[0, 0]
        written += sum(number % 1_000_000 for last in trying for _, number in last)
    assert left > ROUNDS // 4
    figure(f"{durability}: {ROUNDS} daemons killed while 3 threads wrote {written} inner chunks, and {ROUNDS} recoveries; {left} journals were left")


def test_recovery_reports_its_outcome(tmp_path, mount):
    store = writing_samples.write(tmp_path / "store")
    own = store / ".zarr-mount"
    own.mkdir()
    (own / "0123456789abcdef.tmp").write_bytes(b"left")
    assert "1 temporary file removed" in ok(BINARY, "--recover", store)
    assert "nothing was left" in ok(BINARY, "--recover", store)
    assert not own.exists()
    made = mount(store, *ARGS)
    done = run(BINARY, "--recover", store)
    assert done.returncode == 1 and f"process {made.pid} (" in done.stderr
    assert run(BINARY, "--recover", "demo:").returncode == 1


def test_closed_chunks_exist_after_a_kill(tmp_path, mount):
    store = writing_samples.write(tmp_path / "store")
    made = mount(store, *ARGS)
    wanted = {}
    for n in range(50):
        data = os.urandom(2000)
        (made.path / f"a/c/0/{n}").write_bytes(data)
        wanted[n] = hashlib.sha256(data).digest()
    os.kill(made.pid, signal.SIGKILL)
    until(lambda: not made.alive(), "the end of the daemon")
    mounting.force_away(made.path)
    for n, digest in wanted.items():
        assert hashlib.sha256((store / f"a/c/0/{n}").read_bytes()).digest() == digest


WRITER = """
import os, sys, time
fd = os.open(sys.argv[1], os.O_RDWR | os.O_TRUNC)
os.write(fd, b"half")
print("written", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("name", ["a/c/0/0", "a/c/0/77", "notes.txt"])
def test_the_writes_of_a_killed_program_are_saved(name, tmp_path, mount):
    """The kernel closes the files of a killed program. In this view, the bytes that were written until then are saved."""
    store = writing_samples.write(tmp_path / "store")
    made = mount(store, *ARGS)
    (made.path / name).touch()
    with subprocess.Popen([sys.executable, "-c", WRITER, made.path / name], stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout.readline() == "written\n"
        program.kill()
    until(lambda: (store / name).read_bytes() == b"half", "the kernel closes the file")
