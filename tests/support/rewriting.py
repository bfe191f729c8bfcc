"""A store whose chunk and shard are rewritten again and again, and the processes that rewrite and watch it.

Version k of the array is the number k everywhere, plus noise whose amount depends on k, so that encoded files of different versions
differ in size. Every decoded or encoded file of every version is known beforehand: a reader must get one of them, whole.
"""
import ctypes
import errno
import faulthandler
import mmap
import multiprocessing
import os
import random
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import zarr

VERSIONS = 6
PIECE = 32 << 10
SIDE = 256  # 256 KiB decoded: two FUSE requests at least, many pages
PATIENCE = 120
processes = multiprocessing.get_context("fork")

# The errors of a handle whose version is gone, or whose file is being written.
REFUSALS = {errno.ESTALE, errno.EIO}


def values(version):
    out = np.full((SIDE, SIDE), version << 24, "<u4")
    noisy = 40 * version
    out[:noisy] += np.random.RandomState(version).randint(0, 1 << 20, (noisy, SIDE)).astype("<u4")
    return out


def write_version(root, version):
    """One store: `plain` with one zstd chunk, `sharded` with one shard of 16 inner chunks, each with a checksum."""
    group = zarr.open_group(str(root), mode="w")
    codecs = [zarr.codecs.ZstdCodec(level=1, checksum=True)]
    for name, layout in {"plain": {"chunks": (SIDE, SIDE)}, "sharded": {"chunks": (64, 64), "shards": (SIDE, SIDE)}}.items():
        array = group.create_array(name, shape=(SIDE, SIDE), dtype="uint32", fill_value=9, compressors=codecs, **layout)
        array[...] = values(version)


@dataclass
class Rewritten:
    """The store, the bytes of its two files in each version, and the files to watch in the mount."""

    root: Path
    blobs: dict  # key -> list of whole stored files, one a version
    shown: dict  # key in the mount -> set of whole contents, one a version


def prepare(folder, view, read_mount):
    """Prepares the versions. `read_mount(store)` gives key -> content of a mount of one version that does not change."""
    blobs, shown = {}, {}
    for version in range(VERSIONS):
        root = folder / f"version{version}"
        write_version(root, version)
        for key in ("plain/c/0/0", "sharded/c/0/0"):
            blobs.setdefault(key, []).append((root / key).read_bytes())
        for key, content in read_mount(root).items():
            shown.setdefault(key, set()).add(content)
        check(view, version, root, shown)
    return Rewritten(folder / "version0", blobs, shown)


def check(view, version, root, shown):
    """Compares the mount that does not change with numpy and with the stored file."""
    if view == "arrays":
        assert {values(version).tobytes()} <= shown["plain.raw"] & shown["sharded.raw"]
    elif view == "chunks":
        assert values(version).tobytes() in shown["plain/c/0/0"]
        assert np.ascontiguousarray(values(version)[64:128, :64]).tobytes() in shown["sharded/c/1/0"]
    else:
        assert (root / "plain/c/0/0").read_bytes() in shown["plain/c/0/0"]


@dataclass
class Progress:
    """Shared counters. `writes` is odd while a write is under way, as in a seqlock."""

    writes: object
    reads: object
    holders: object  # processes that wait for the next write
    active: object  # readers that are not done
    stop: object

    @classmethod
    def new(cls):
        return cls(*(processes.Value("q", 0) for _ in range(4)), processes.Event())

    def time_to_write(self, goal):
        """Whether the readers have read enough without a rewrite, or half of them wait for the next write."""
        return self.reads.value >= goal or 2 * self.holders.value >= self.active.value

    def quiet(self, since):
        """Whether no write was under way from the moment when `writes` was `since` until now."""
        return since % 2 == 0 and self.writes.value == since

    def await_rewrite(self):
        """Waits until every file was written anew after this call."""
        goal = self.writes.value + 3
        add(self.holders, 1)
        wait(lambda: self.writes.value >= goal or self.stop.is_set())
        add(self.holders, -1)


def add(counter, n):
    with counter.get_lock():
        counter.value += n


def replace_by_rename(path, blob):
    fresh = path.with_name(".next")
    fresh.write_bytes(blob)
    os.rename(fresh, path)


def replace_in_place(path, blob):
    fd = os.open(path, os.O_WRONLY)
    os.pwrite(fd, blob, 0)
    os.ftruncate(fd, len(blob))
    os.close(fd)


def write_until_stopped(root, blobs, replace, progress):
    """Rewrites every file, then lets the readers go on. Their progress sets the pace, not the time."""
    version = 0
    while not progress.stop.is_set():
        version = (version + 1) % VERSIONS
        add(progress.writes, 1)
        for key, versions in blobs.items():
            replace(root / key, versions[version])
        add(progress.writes, 1)
        goal = progress.reads.value + 20
        wait(lambda: progress.time_to_write(goal) or progress.stop.is_set())


def wait(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "no progress"
        time.sleep(0.001)


def read_once(path, progress, dice):
    """Reads one handle in pieces, in random order. Now and then, holds it until the file was rewritten.

    Returns (content or errno, whether a write was under way during one of the calls).
"""
    since, disturbed = progress.writes.value, False
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError as error:
        return error.errno, True
    try:
        size = os.fstat(fd).st_size
        pieces = {}
        offsets = list(range(0, size, PIECE))
        dice.shuffle(offsets)
        hold = len(offsets) // 2 if dice.random() < 0.3 else None
        for n, offset in enumerate(offsets):
            if n == hold:
                disturbed |= not progress.quiet(since)
                progress.await_rewrite()
                since = progress.writes.value
            pieces[offset] = os.pread(fd, min(PIECE, size - offset), offset)
        disturbed |= not progress.quiet(since)
        return b"".join(pieces[o] for o in sorted(pieces)), disturbed
    except OSError as error:
        return error.errno, disturbed
    finally:
        os.close(fd)


def read_and_report(out, progress, *args):
    """Always sends a result, because the parent waits for it."""
    try:
        out.put(read_all(progress, *args))
    except BaseException as error:  # otherwise an assertion in this process would leave the parent waiting
        out.put(([("reader", repr(error))], 0))
    finally:
        add(progress.active, -1)


def read_all(progress, mount, shown, seed, rounds, torn_writes):
    """Reads `rounds` files. Returns those results that were neither wholly old, nor wholly new, nor an error."""
    dice, wrong, seen = random.Random(seed), [], set()
    keys = sorted(shown)
    for _ in range(rounds):
        key = dice.choice(keys)
        got, disturbed = read_once(mount / key, progress, dice)
        add(progress.reads, 1)
        if isinstance(got, int):
            if got not in REFUSALS:
                wrong.append((key, errno.errorcode[got]))
        elif got in shown[key]:
            seen.add(hash(got))
        # A writer in place leaves the stored file itself mixed while it writes, which is not the mount's fault.
        elif not (torn_writes and disturbed):
            wrong.append((key, f"{len(got)} bytes of no version"))
    return wrong, len(seen)


def map_until_rewritten(path, contents, progress):
    """Exit status of a process that maps a file, waits for a rewrite, and reads again: 0 if the contents are whole, 1 if they are mixed."""
    # SIGBUS is a valid outcome here (the version is gone), not a crash to report.
    faulthandler.disable()
    while True:
        since = progress.writes.value
        try:
            with open(path, "rb") as f:
                mapped = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
            first = mapped[0]
        except (OSError, ValueError):
            continue
        if progress.quiet(since):
            break
    progress.await_rewrite()
    whole = bytes(mapped)
    os._exit(0 if whole[0] == first and whole in contents else 1)


def run(made, rewritten, replace, readers=8, rounds=400):
    """Runs the writer and all readers. Returns (wrong reads, how many different contents were seen)."""
    progress, out = Progress.new(), processes.SimpleQueue()
    torn_writes = replace is replace_in_place
    progress.active.value = readers
    writer = start(write_until_stopped, rewritten.root, rewritten.blobs, replace, progress)
    watchers = [start(read_and_report, out, progress, made.path, rewritten.shown, seed, rounds, torn_writes)
                for seed in range(readers)]
    mappers = [start(map_until_rewritten, made.path / key, rewritten.shown[key], progress) for key in sorted(rewritten.shown)[:4]]
    try:
        results = [out.get() for _ in watchers]
        for process in mappers:
            process.join(PATIENCE)
    finally:
        progress.stop.set()
        for process in [writer, *watchers, *mappers]:
            process.join(PATIENCE)
            process.kill()
    wrong = [w for found, _ in results for w in found]
    # The kernel sends SIGBUS when a mapped page is gone.
    wrong += [("mmap", p.exitcode) for p in mappers if p.exitcode not in (0, -signal.SIGBUS)]
    assert writer.exitcode == 0, "the writer failed"
    return wrong, max(seen for _, seen in results)


def start(target, *args):
    process = processes.Process(target=die_with_parent, args=(target, *args), daemon=True)
    process.start()
    return process


def die_with_parent(target, *args):
    """Makes the kernel end the readers with a test run that hangs or dies."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL, 0, 0, 0)
    target(*args)
