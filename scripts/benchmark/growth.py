"""The effect of the size of a store: mount, first `ls`, lookups, first read and memory, from 10 to 10^7 chunks and 1 to 10^5 arrays."""
import json
import os
import random
import shutil
import time

from support import shards
import workbench
from workbench import MIB, program, timed

COLUMNS = ["mount, ms", "first `ls` of the root, ms", "`ls` of a full directory, ms", "`ls -l` of it, ms",
           "lookup p50, µs", "first read, ms", "memory, MiB"]
COLUMNS_PER_ROW = 1000  # chunks in a directory
SHARD_CHUNKS = 100_000  # at most: an index of 1.6 MB
ARRAYS_PER_GROUP, GROUPS_PER_GROUP = 10, 3


def run(bench):
    chunks = [10 ** n for n in range(1, 6 if bench.quick else 8)]
    table = bench.report.table("Cost by the number of chunks (one array, `chunks` view)", ["chunks", *COLUMNS],
                               note=f"Virtual chunks of one byte in shards of at most {SHARD_CHUNKS:,}, in directories of at most {COLUMNS_PER_ROW:,}; "
                               "each figure from a fresh mount but memory, which is the daemon's after all of them. Lookups are of 200 files at random.")
    for n in chunks:
        bench.say(f"growth: {n} chunks")
        store = bench.folder / "growth.zarr"
        columns = min(n // 10 or 1, COLUMNS_PER_ROW)
        rows = n // columns
        shards.write(store, (rows, columns), max(1, n // SHARD_CHUNKS), "/")
        pick = random.Random(n)
        names = [f"c/{pick.randrange(rows)}/{pick.randrange(columns)}" for _ in range(200)]
        add_row(bench, table, n, store, ["--view", "chunks"], names, "c/0")
        shutil.rmtree(store)
    arrays = [10 ** n for n in range(0, 4 if bench.quick else 6)]
    table = bench.report.table("Cost by the number of arrays (one group, `arrays` view)", ["arrays", *COLUMNS],
                               note="Arrays of 1,000 elements in one chunk, as `.npy`, all in one directory.")
    for n in arrays:
        bench.say(f"growth: {n} arrays")
        store = bench.folder / "growth.zarr"
        write_arrays(store, n)
        pick = random.Random(n)
        names = [f"g/a{pick.randrange(n)}.npy" for _ in range(200)]
        add_row(bench, table, n, store, ["--view", "arrays"], names, "g")
        shutil.rmtree(store)
    nested(bench)


def nested(bench):
    """The files of groups within each other: each of them has what is in all groups below it."""
    formats = ("npy", "h5")
    table = bench.report.table("Cost by the number of groups (`arrays` view, `find`)", ["groups", *(f"`--files {name}`, ms" for name in formats)],
                               note=f"{ARRAYS_PER_GROUP} arrays and up to {GROUPS_PER_GROUP} groups in each group; a fresh mount each.")
    for n in (10, 100) if bench.quick else (10, 100, 800):
        bench.say(f"growth: {n} groups")
        store = bench.folder / "growth.zarr"
        write_groups(store, n)

        def find(name):
            with bench.mount(store, "--view", "arrays", "--files", name) as mounted:
                return {"seconds": timed(["find", mounted.path])}
        found = bench.alternate({name: lambda name=name: find(name) for name in formats})
        table.add([f"{n:,}", *(f"{workbench.median(found[name], 'seconds') * 1e3:.1f}" for name in formats)], rounds=found)
        shutil.rmtree(store)


def add_row(bench, table, n, store, args, names, full):
    rounds = []
    for _ in range(bench.rounds):
        with bench.mount(store, *args) as mounted:
            ms = {"mount": mounted.mount_seconds * 1e3, "root": timed(["ls", mounted.path]) * 1e3}
        with bench.mount(store, *args) as mounted:
            ms["full"] = timed(["ls", mounted.path / full]) * 1e3
            resident = workbench.resident_bytes(mounted.pid)
        with bench.mount(store, *args) as mounted:
            ms["long"] = timed(["ls", "-l", mounted.path / full]) * 1e3
        with bench.mount(store, *args) as mounted:
            start = time.perf_counter()
            with open(mounted.path / names[0], "rb", buffering=0) as file:
                file.read(4096)
            ms["read"] = (time.perf_counter() - start) * 1e3
            looked = program("reader", "stat", lines=[str(mounted.path / name) for name in dict.fromkeys(names)])
            resident = max(resident, workbench.resident_bytes(mounted.pid))
        rounds.append({**ms, "lookup": looked["p50"], "resident": resident / MIB})
    keys = ("mount", "root", "full", "long", "lookup", "read", "resident")
    table.add([f"{n:,}", *(f"{workbench.median(rounds, key):.1f}" for key in keys)], rounds=rounds)


ARRAY = json.dumps({
    "zarr_format": 3, "node_type": "array", "shape": [1000], "data_type": "int32", "fill_value": 0,
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1000]}},
    "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]})
GROUP = json.dumps({"zarr_format": 3, "node_type": "group"})


def write_groups(store, n):
    """A tree of `n` groups with arrays that have no chunks."""
    folders = [store]
    for i in range(n):
        folder = folders[i]
        folders += [folder / f"g{j}" for j in range(GROUPS_PER_GROUP)]
        folder.mkdir(parents=True)
        (folder / "zarr.json").write_text(GROUP)
        for j in range(ARRAYS_PER_GROUP):
            (folder / f"a{j}").mkdir()
            (folder / f"a{j}" / "zarr.json").write_text(ARRAY)


def write_arrays(store, n):
    """A group `g` of `n` arrays, written by hand: the library would take an hour."""
    (store / "g").mkdir(parents=True)
    for place in (store, store / "g"):
        (place / "zarr.json").write_text(GROUP)
    values = b"".join(i.to_bytes(4, "little") for i in range(1000))
    for i in range(n):
        folder = f"{store}/g/a{i}"
        os.makedirs(f"{folder}/c")
        with open(f"{folder}/zarr.json", "w") as file:
            file.write(ARRAY)
        with open(f"{folder}/c/0", "wb") as file:
            file.write(values)
