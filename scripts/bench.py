"""Decoded chunks through the mount beside readers in process, alternating in one run.

Every value read is checked once; the timed readings only add up bytes. Compare columns of one
row: figures of different runs, or machines, differ by a factor of two for no reason of ours.
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import tensorstore
import zarr

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "mount"))
import mounting  # noqa: E402
import shards  # noqa: E402

CHUNK = 64
MIB = 1 << 20
READ_SIZE = MIB


def codecs():
    """Name of a data set -> arguments of zarr.create_array."""
    blosc = zarr.codecs.BloscCodec(cname="lz4", clevel=5, shuffle="shuffle", typesize=4)
    chunks = {"chunks": (CHUNK,) * 3}
    return {
        "uncompressed": {**chunks, "compressors": None},
        "blosc lz4": {**chunks, "compressors": [blosc]},
        "zstd": {**chunks, "compressors": [zarr.codecs.ZstdCodec(level=3)]},
        "gzip": {**chunks, "compressors": [zarr.codecs.GzipCodec(level=1)]},
        "sharded blosc lz4": {**chunks, "compressors": [blosc], "shards": (2 * CHUNK,) * 3},
    }


def smooth_data(mebibytes):
    """float32 that compresses about as weather does: waves and a little noise."""
    depth = max(CHUNK, mebibytes * MIB // 4 // 256 // 256 // CHUNK * CHUNK)
    z, y, x = np.ogrid[:depth, :256, :256]
    waves = 280 + 10 * np.sin(z / 17) * np.cos(y / 23) + 5 * np.sin(x / 31)
    noise = np.random.RandomState(1).normal(0, 0.1, waves.shape)
    return np.round(waves + noise, 2).astype("<f4")


class Mounted:
    """A fresh mount for each reading: neither its cache nor the kernel's pages are warm."""

    def __init__(self, store, folder):
        self.path = folder / "m"
        self.path.mkdir(exist_ok=True)
        self.store = store

    def __enter__(self):
        mounting.ok(mounting.BINARY, self.store, self.path, "--view", "chunks")
        return self.path

    def __exit__(self, *_):
        mounting.ok(mounting.BINARY, "--unmount", self.path)
        mounting.until(lambda: not mounting.daemons(self.path), "the daemon's end")


def chunk_files(path):
    return sorted(p for p in (path / "c").rglob("*") if p.is_file())


def read_mount(store, folder):
    """Seconds for reading every chunk file, as `cat` does, in one process."""
    with Mounted(store, folder) as path:
        start, total = time.perf_counter(), 0
        buffer = bytearray(READ_SIZE)
        for base, _, names in os.walk(path / "c"):
            for name in names:
                fd = os.open(os.path.join(base, name), os.O_RDONLY)
                while n := os.readv(fd, [buffer]):
                    total += n
                os.close(fd)
        return time.perf_counter() - start, total


def read_zarr(store, _):
    start = time.perf_counter()
    total = zarr.open_array(str(store), mode="r")[...].nbytes
    return time.perf_counter() - start, total


def read_tensorstore(store, _):
    start = time.perf_counter()
    total = open_tensorstore(store).read().result().nbytes
    return time.perf_counter() - start, total


def open_tensorstore(store):
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{store}/"}}
    return tensorstore.open(spec, open=True, read=True).result()


def check(store, folder, data):
    """Every value of every reader, once, outside the clock."""
    assert (zarr.open_array(str(store), mode="r")[...] == data).all()
    assert (open_tensorstore(store).read().result() == data).all()
    with Mounted(store, folder) as path:
        for file in chunk_files(path):
            index = [int(i) for i in file.relative_to(path / "c").parts]
            box = tuple(slice(i * CHUNK, (i + 1) * CHUNK) for i in index)
            assert file.read_bytes() == data[box].tobytes(), file


def reading_table(folder, mebibytes, rounds):
    data = smooth_data(mebibytes)
    print(f"All decoded chunks of {data.nbytes // MIB} MiB float32, chunks {CHUNK}^3, MiB/s, median of {rounds};\nthe store is in the page cache.\n")
    print("| store | ratio | mount | zarr-python | tensorstore | mount / zarr-python | mount / tensorstore |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, layout in codecs().items():
        store = folder / "s.zarr"
        zarr.create_array(str(store), shape=data.shape, dtype="float32", fill_value=0, **layout)[...] = data
        check(store, folder, data)
        stored = sum(p.stat().st_size for p in store.rglob("*") if p.is_file())
        speeds = [[] for _ in range(3)]
        for _ in range(rounds):
            for reader, found in zip((read_mount, read_zarr, read_tensorstore), speeds):
                seconds, total = reader(store, folder)
                assert total == data.nbytes, (reader.__name__, total)
                found.append(total / MIB / seconds)
        mount, python, tensor = map(statistics.median, speeds)
        cells = [name, f"{data.nbytes / stored:.1f}", f"{mount:.0f}", f"{python:.0f}", f"{tensor:.0f}",
                 f"{mount / python:.2f}", f"{mount / tensor:.2f}"]
        print("|", " | ".join(cells), "|", flush=True)
        shutil.rmtree(store)


def listing_table(folder, entries, rounds):
    shards.write(folder / "many.zarr", (entries // 100, 100), 1, ".")
    lines, speeds = 0, []
    for _ in range(rounds):
        with Mounted(folder / "many.zarr", folder) as path:
            start = time.perf_counter()
            listed = subprocess.run(["ls", "-ln", path], stdout=subprocess.PIPE, check=True).stdout
            speeds.append(entries / (time.perf_counter() - start))
            lines = sum(line.split()[4] == b"1" for line in listed.splitlines()[1:])
        assert lines == entries, f"{lines} chunk files of one byte listed"
    print(f"\n`ls -l` of {entries} virtual chunks, fresh mount: {statistics.median(speeds):,.0f} entries a second, median of {rounds}.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=64, help="MiB of each data set")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--entries", type=int, default=100_000)
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="zarr-mount-bench-"))
    try:
        reading_table(folder, args.size, args.rounds)
        listing_table(folder, args.entries, args.rounds)
    finally:
        mounting.force_away(folder / "m")
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
