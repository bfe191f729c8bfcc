"""Ten million chunk files cost neither memory nor patience. Times are printed, never judged."""
import json
import os
import random
import subprocess
import time
from itertools import islice

import pytest

from support import shards

MIB = 1 << 20
BOUND = 128 * MIB
DEFAULT = [("1shard-flat", "keys"), ("16shards-nested", "chunks")]
SIZES = [pytest.param((160, 625), id="1e5"), pytest.param((1600, 6250), id="1e7", marks=pytest.mark.long)]
# Each kind of key, number of shards and view once by default, and all arrangements with --all.
ARRANGEMENTS = [pytest.param(count, separator, view, id=f"{names}-{view}", marks=() if (names, view) in DEFAULT else pytest.mark.long)
                for count, separator, names in [(1, ".", "1shard-flat"), (1, "/", "1shard-nested"), (16, ".", "16shards-flat"), (16, "/", "16shards-nested")]
                for view in ["keys", "chunks"]]


class Clock:
    """Named durations of one case, for the figures."""

    def __init__(self):
        self.parts, self.last = [], time.monotonic()

    def lap(self, name):
        now = time.monotonic()
        self.parts.append(f"{name} {now - self.last:.2f} s")
        self.last = now

    def __str__(self):
        return ", ".join(self.parts)


def count_lines(*command):
    """Lines that a program prints, counted as they come: 10^7 of them must not be held here either."""
    with subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE) as process:
        lines = sum(block.count(b"\n") for block in iter(lambda: process.stdout.read(MIB), b""))
    assert process.returncode == 0
    return lines


def chunk_path(root, index, separator):
    return root / separator.join(("c", *map(str, index)))


def directories(shape, separator):
    """Directories below the root: `c` and one for each row, where names are nested."""
    return 1 + shape[0] if separator == "/" else 0


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("count,separator,view", ARRANGEMENTS)
@pytest.mark.parametrize("shape", SIZES)
def test_inner_chunks(mount, tmp_path, figure, shape, count, separator, view):
    values = shards.write(tmp_path / "s.zarr", shape, count, separator)
    clock = Clock()
    made = mount(tmp_path / "s.zarr", "--view", view, "--cache-size", "64M")
    clock.lap("mount")
    first = list(islice(os.scandir(made.path), 3))
    assert first
    clock.lap("first entries")
    everything = values.size + directories(shape, separator) + 2  # the root and its document
    assert count_lines("find", made.path) == everything
    clock.lap("find")
    # -printf asks for the attributes of each: a stat of every file.
    assert count_lines("find", made.path, "-size", "-2c", "-type", "f", "-printf", "%s\n") == values.size
    clock.lap("stat of each")
    dice = random.Random(1)
    for _ in range(1000):
        index = tuple(dice.randrange(n) for n in shape)
        assert chunk_path(made.path, index, separator).read_bytes() == values[index].tobytes(), index
    clock.lap("1000 random chunks")
    peak = made.peak_bytes()
    figure(f"{values.size} chunks, {count} shards, keys `{separator}`, {view}: {clock}, peak {peak / MIB:.0f} MiB")
    assert peak <= BOUND
    made.unmount()


def linked_chunks(root, count):
    """An unsharded array of `count` one-byte chunks: hard links to few files, as a file each would fill disks."""
    per_file = 60_000  # ext4 allows 65,000 links
    root.mkdir()
    document = shards.document((count,), (1,), ".")
    document["codecs"] = [{"name": "bytes"}]
    (root / "zarr.json").write_text(json.dumps(document))
    for n in range(count):
        if n % per_file == 0:
            source = root / f"c.{n}"
            source.write_bytes(bytes([n // per_file]))
        else:
            os.link(source, root / f"c.{n}")
    return lambda n: bytes([n // per_file])


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("view", [pytest.param("keys", marks=pytest.mark.long), "chunks"])
@pytest.mark.parametrize("count", [pytest.param(20_000, id="2e4"), pytest.param(10 ** 6, id="1e6", marks=pytest.mark.long)])
def test_opening_unsharded_chunks(mount, tmp_path, figure, count, view):
    expected = linked_chunks(tmp_path / "s.zarr", count)
    made = mount(tmp_path / "s.zarr", "--view", view, "--cache-size", "64M")
    clock = Clock()
    for n in range(count):
        fd = os.open(made.path / f"c.{n}", os.O_RDONLY)
        data = os.read(fd, 2)
        os.close(fd)
        assert data == expected(n), n
    clock.lap("open, read, close")
    peak = made.peak_bytes()
    figure(f"{count} unsharded chunk files, {view}: {clock}, peak {peak / MIB:.0f} MiB")
    assert peak <= BOUND
    made.unmount()
