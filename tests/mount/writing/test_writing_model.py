"""Random calls on a mount that is written to, and the same calls on a plain directory: both answer the same at each step, and in the end
both have the same names and bytes, and so does the store."""
import errno
import os
import random
import stat
from pathlib import Path

import pytest

from support import writing_samples
from support.mounting import until
from support.writing_samples import ARGS, tree

SEEDS = int(os.environ.get("ZARR_MOUNT_WRITING_SEEDS", "12"))
STEPS = 400
# Names of documents and chunks, which are replaced as a whole; of other files, which are written in place; and of directories.
NAMES = ["zarr.json", "0", "0.1", "c", "notes", "0.x.partial", "d", "e"]
FLAGS = [os.O_RDONLY, os.O_WRONLY, os.O_RDWR]


class Walk:
    """One random walk: `here` and `there` are the two directories, each with a handle for each that the other has."""

    def __init__(self, seed, here, there):
        self.random, self.roots, self.handles, self.log = random.Random(seed), (here, there), [], []

    def path(self):
        depth = self.random.choice([1, 1, 2, 2, 3])
        return "/".join(self.random.choice(NAMES) for _ in range(depth))

    def both(self, what, call):
        """Calls `call` on both roots and compares the results, or the errno."""
        answers = []
        for side in (0, 1):
            try:
                answers.append(call(side))
            except OSError as error:
                answers.append(errno.errorcode[error.errno])
        self.log.append((what, answers[0]))
        assert answers[0] == answers[1], f"{what}: {answers}; before it: {self.log[-12:]}"
        return answers[0]

    def step(self):
        choose = self.random.choices(
            [self.open, self.write, self.read, self.truncate, self.close, self.sync, self.unlink, self.rename, self.mkdir, self.rmdir, self.list,
             self.look, self.replace, self.chmod],
            [10, 14, 8, 5, 8, 2, 5, 6, 5, 3, 4, 6, 5, 2])
        choose[0]()

    def open(self):
        path, how = self.path(), self.random.choice(FLAGS)
        how |= self.random.choice([0, 0, os.O_CREAT, os.O_CREAT | os.O_EXCL])
        if how & 3 != os.O_RDONLY:
            how |= self.random.choice([0, 0, os.O_TRUNC, os.O_APPEND])
        pair = [None, None]

        def call(side):
            pair[side] = os.open(self.roots[side] / path, how, 0o644)
            return "opened"

        if self.both(("open", path, how), call) == "opened":
            self.handles.append((pair, how))

    def handle(self):
        return self.random.choice(self.handles) if self.handles else None

    def write(self):
        found = self.handle()
        if not found:
            return
        pair, how = found
        data = self.random.randbytes(self.random.choice([1, 10, 5000]))
        if how & os.O_APPEND:
            return self.both(("append", len(data)), lambda side: os.write(pair[side], data))
        at = self.random.choice([0, 3, 4096, 10_000])
        self.both(("write", len(data), at), lambda side: os.pwrite(pair[side], data, at))

    def read(self):
        found = self.handle()
        if found:
            self.both(("read",), lambda side: os.pread(found[0][side], 20_000, 0))
            # File systems give directories any size, and those that were removed another one.
            is_file = [stat.S_ISREG(os.fstat(fd).st_mode) for fd in found[0]]
            self.both(("fstat",), lambda side: os.fstat(found[0][side]).st_size if is_file[side] else None)

    def truncate(self):
        size = self.random.choice([0, 0, 1, 100, 6000])
        found = self.handle()
        if found and self.random.random() < 0.5:
            return self.both(("ftruncate", size), lambda side: os.ftruncate(found[0][side], size))
        path = self.path()
        self.both(("truncate", path, size), lambda side: os.truncate(self.roots[side] / path, size))

    def close(self):
        if self.handles:
            pair, _ = self.handles.pop(self.random.randrange(len(self.handles)))
            self.both(("close",), lambda side: os.close(pair[side]))

    def sync(self):
        found = self.handle()
        if found:
            self.both(("fsync",), lambda side: os.fsync(found[0][side]))

    def unlink(self):
        path = self.path()
        self.both(("unlink", path), lambda side: os.unlink(self.roots[side] / path))

    def rename(self):
        one, two = self.path(), self.path()
        self.both(("rename", one, two), lambda side: os.rename(self.roots[side] / one, self.roots[side] / two))

    def mkdir(self):
        path = self.path()
        self.both(("mkdir", path), lambda side: os.mkdir(self.roots[side] / path))

    def rmdir(self):
        path = self.path()
        self.both(("rmdir", path), lambda side: os.rmdir(self.roots[side] / path))

    def list(self):
        path = self.path()
        self.both(("list", path), lambda side: sorted(os.listdir(self.roots[side] / path)))

    def look(self):
        path = self.path()

        def call(side):
            found = os.stat(self.roots[side] / path)
            return found.st_mode, found.st_size if os.path.isfile(self.roots[side] / path) else None

        self.both(("stat", path), call)

    def replace(self):
        path, data = self.path(), self.random.randbytes(self.random.choice([0, 20, 9000]))
        self.both(("replace", path), lambda side: Path(self.roots[side], path).write_bytes(data))
        self.both(("bytes", path), lambda side: Path(self.roots[side], path).read_bytes())

    def chmod(self):
        path, mode = self.path(), self.random.choice([0o600, 0o644, 0o755])
        self.both(("chmod", path, mode), lambda side: os.chmod(self.roots[side] / path, mode))

    def end(self):
        while self.handles:
            self.close()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_calls_are_answered_as_by_a_directory(seed, tmp_path, mount):
    store, plain = tmp_path / "store", tmp_path / "plain"
    store.mkdir()
    plain.mkdir()
    made = mount(store, *ARGS)
    walk = Walk(seed, made.path, plain)
    for _ in range(STEPS):
        walk.step()
    walk.end()
    assert tree(made.path) == tree(plain)
    # A file that was only made empty is saved a moment after it is closed.
    until(lambda: tree(store) == tree(plain), "the store to have it all")
    made.unmount()
    assert tree(plain) == tree(store) and not (store / ".zarr-mount").exists()


@pytest.mark.parametrize("seed", range(3))
def test_random_calls_after_a_restart(seed, tmp_path, mount):
    """Like the test above, but the store is unmounted and mounted again between the calls."""
    store, plain = tmp_path / "store", tmp_path / "plain"
    writing_samples.write(store)
    writing_samples.write(plain)
    for part in range(3):
        made = mount(store, *ARGS)
        walk = Walk((seed, part).__repr__(), made.path / "a", plain / "a")
        for _ in range(STEPS // 2):
            walk.step()
        walk.end()
        made.unmount()
        assert tree(plain) == tree(store)
