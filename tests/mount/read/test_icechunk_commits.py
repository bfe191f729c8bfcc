"""Commits to an Icechunk repository while it is read: what an open file has is of one snapshot, or its reads give ESTALE."""
import errno
import io
import os
import random
import threading
from pathlib import Path

import numpy as np
import pytest

from support.icechunk_writer import Array, Inline, Native, Repository, Virtual
from support.mounting import until

STATES = 7
KINDS = ("native", "inline", "virtual", "mixed")
READERS = 8


def state(folder, number):
    """Arrays whose elements all have the same value, which is the number of the state."""
    value = number + 1
    files = folder / f"state {number}.bin"
    files.write_bytes(np.full(64, value, "<i4").tobytes())
    data = np.full(16, value, "<i4").tobytes()

    def chunk(kind, at):
        kind = KINDS[(at + number) % 3] if kind == "mixed" else kind
        return {"native": Native(data), "inline": Inline(data), "virtual": Virtual(f"file://{folder}/state%20{number}.bin", 64 * (at % 4), 64)}[kind]

    arrays = {kind: Array((8, 32), (2, 8), "int32", {(i, j): chunk(kind, 4 * i + j) for i in range(4) for j in range(4)}) for kind in KINDS}
    # Its chunks are absent in every other state, so that all of it is the fill value, and it grows.
    chunks = {} if number % 2 else {(at,): chunk("native", at) for at in range(2 + number // 2)}
    arrays["g/grown"] = Array((32 + 16 * (number // 2),), (16,), "int32", chunks, {"fill_value": value})
    return arrays


class Branch:
    """A repository whose branch shows one prepared snapshot after the other."""

    def __init__(self, folder, spec):
        self.repository = Repository(folder / "repo", spec)
        snapshots = [self.repository.prepare(state(folder / "repo", number)) for number in range(STATES)]
        self.files = [self.repository.branch(snapshot) for snapshot in snapshots]
        self.begun = self.ended = 0
        self.repository.replace(*self.files[0])

    def move(self):
        self.begun += 1
        self.repository.replace(*self.files[self.begun % STATES])
        self.ended = self.begun

    def states(self, before):
        """The values of the states that were shown since `before`, which is an earlier `ended`."""
        return {commit % STATES + 1 for commit in range(before, self.begun + 1)}


def values_of(path, pieces):
    """The elements of a file, which is read in several pieces; `None` where it became stale."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            size = os.fstat(descriptor).st_size
            step = -(-size // pieces)
            data = b"".join(os.pread(descriptor, step, offset) for offset in range(0, size, step))
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno == errno.ESTALE:
            return None
        raise
    if path.suffix != ".npy":
        return np.frombuffer(data, "<i4")
    return np.load(io.BytesIO(data))


def read_on(root, branch, seed, ended, done, wrong):
    """Reads files until `ended`. Counts in `done` the reads that gave one state, and those that became stale."""
    dice = random.Random(seed)
    # A chunk that is absent in some states is no file then.
    chunks = [f"{kind}/c/{i}/{j}" for kind in KINDS for i in range(4) for j in range(4)]
    files = [f"arrays/{name}.npy" for name in (*KINDS, "g/grown")] + [f"{view}/{chunk}" for view in ("keys", "chunks") for chunk in chunks[::5]]
    while not ended.is_set():
        path, before = root / dice.choice(files), branch.ended
        try:
            values = values_of(path, dice.choice((1, 2, 5)))
        except OSError as error:
            wrong.append((path.name, error))
            return
        if values is None:
            done[1] += 1
            continue
        done[0] += 1
        found, possible = set(values.flat), branch.states(before)
        if len(found) != 1 or not found <= possible or path.name == "grown.npy" and len(values) != 32 + 16 * ((found.pop() - 1) // 2):
            wrong.append((str(path), values.shape, sorted(found), sorted(possible)))
            return


@pytest.mark.parametrize("spec", [1, 2])
@pytest.mark.parametrize("commits", [150, pytest.param(5000, marks=[pytest.mark.long, pytest.mark.timeout(3600)])])
def test_commits_while_files_are_read(mount, tmp_path, figure, spec, commits):
    branch = Branch(tmp_path, spec)
    root = Path(mount(branch.repository.folder, "--view", "arrays,chunks,keys", "--ttl", "0").path)
    ended, wrong = threading.Event(), []
    done = [[0, 0] for _ in range(READERS)]
    readers = [threading.Thread(target=read_on, args=(root, branch, seed, ended, done[seed], wrong)) for seed in range(READERS)]
    dice = random.Random(spec)
    for reader in readers:
        reader.start()
    try:
        for _ in range(commits):
            # A commit falls into a read, or between two of them.
            count = sum(map(sum, done)) + dice.choice((0, 1, 3, 9))
            until(lambda: sum(map(sum, done)) >= count or wrong, "files to be read")
            if wrong:
                break
            branch.move()
    finally:
        ended.set()
        for reader in readers:
            reader.join()
    whole, stale = (sum(each[kind] for each in done) for kind in (0, 1))
    figure(f"icechunk {spec}: {branch.ended} commits, {whole} reads of one state, {stale} that became stale")
    assert not wrong, wrong[:3]
    assert whole > commits / 4
    until(lambda: (np.load(root / "arrays/mixed.npy") == branch.ended % STATES + 1).all(), "the last commit")
