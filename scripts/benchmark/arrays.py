"""Whole arrays: `.raw` and chunk files through the mount, beside the libraries in process and decoding by hand."""
import os
import time
import zlib

import numpy as np

import datasets
import workbench
from peers import Peers
from workbench import median, program, ratio

LEAST = {"uncompressed": None, "blosc": 0.40, "zstd, inflate": 0.60}  # of the floor on all cores
COLD = ("raw", "blosc", "zstd")  # read once more with the store out of the page cache


def run(bench):
    columns = ["store", "best library", "mount", "zarr-python", "tensorstore", "zarrs", "floor, 1 / all cores", "mount / best library",
               "mount / floor", "decodes a chunk", "CPU s, user + system", "peak MiB (bound)"]
    names = ("raw", "chunks")
    tables = {
        "raw": bench.report.table("Whole array as one file: `.raw` of the arrays view", columns, note="GB/s of decoded bytes."),
        "chunks": bench.report.table(
            "All chunk files of the chunks view", columns,
            note="GB/s of decoded bytes. The libraries and the floor are those of the whole array, in the same rounds.")}
    chosen = datasets.ALL if not bench.options.store else [datasets.NAMED[n] for n in bench.options.store]
    for dataset in chosen:
        bench.say(f"whole arrays: {dataset.label}")
        peers = Peers(bench.data, dataset)
        check(bench, dataset)
        found = bench.alternate({
            "raw": lambda d=dataset: read_raw(bench, d), "chunks": lambda d=dataset: read_chunks(bench, d),
            **peers.libraries(), **peers.floors()})
        for view in names:
            add_row(bench, tables[view], dataset, found, view, peers.bytes)
        bench.report.write()
    if not bench.options.store:
        cold(bench)


def add_row(bench, table, dataset, found, view, n_bytes):
    speed = {name: n_bytes / median(results, "seconds") / 1e9 for name, results in found.items()}
    mounted = found[view]
    n_read = mounted[0]["bytes"]
    speed[view] = n_read / median(mounted, "seconds") / 1e9
    # Chunk files hold the filler at the array's edge too: rates are compared, not times.
    more = n_read / n_bytes
    libraries = ("zarr-python", "tensorstore", "zarrs")
    best = max(libraries, key=speed.get)
    to_best, to_floor = more * ratio(mounted, found[best]), more * ratio(mounted, found["floor"])
    peak, bound = max(r["peak"] for r in mounted), mounted[0]["bound"]
    table.add(
        [dataset.label, best, speed[view], *(speed[name] for name in libraries),
         f"{speed['floor, 1 thread']:.2f} / {speed['floor']:.2f}", to_best, to_floor, f"{median(mounted, 'decodes'):.2f}",
         f"{median(mounted, 'user'):.2f} + {median(mounted, 'system'):.2f}", f"{peak / workbench.MIB:.0f} ({bound / workbench.MIB:.0f})"],
        seconds={name: [r["seconds"] for r in results] for name, results in found.items()}, to_best_library=to_best, to_floor=to_floor, best_library=best, gb_per_s=speed, mount=mounted)
    if view == "chunks" and bench.data.chunk_bytes(dataset) < datasets.CHUNK_FILES_FROM_BYTES:
        return
    what = f"{dataset.label}, {'.raw' if view == 'raw' else 'chunk files'}"
    bench.report.at_least(f"{what}: mount / best library", to_best, 1.0)
    if least := LEAST[dataset.family]:
        bench.report.at_least(f"{what}: mount / floor on all cores", to_floor, least)


def measured(bench, mounted, chunks, read):
    """Reads, and returns what that cost the daemon."""
    before = workbench.cpu_seconds(mounted.pid)
    told = read()
    user, system = (b - a for a, b in zip(before, workbench.cpu_seconds(mounted.pid)))
    stats = mounted.stats()
    return {**told, "user": user, "system": system, "decodes": stats["chunks"]["decodes"] / chunks,
            "peak": mounted.peak_bytes(), "bound": stats["cache"]["budget_bytes"] + workbench.ALLOWANCE_BYTES}


def read_raw(bench, dataset):
    store = bench.data.store(dataset)
    with bench.mount(store, "--view", "arrays", "--files", "raw") as mounted:
        chunks = len(bench.data.chunk_indices(dataset))
        told = measured(bench, mounted, chunks, lambda: program("reader", "file", mounted.path / f"{dataset.name}.raw"))
    assert told["bytes"] == bench.data.values(dataset.source).nbytes, told
    return told


def read_chunks(bench, dataset):
    store = bench.data.store(dataset)
    with bench.mount(store, "--view", "chunks") as mounted:
        chunks = len(bench.data.chunk_indices(dataset))
        told = measured(bench, mounted, chunks, lambda: program("reader", "tree", mounted.path))
    assert told["bytes"] == chunks * bench.data.chunk_bytes(dataset), told
    return told


def check(bench, dataset):
    """Every value of both views, outside the clock; the page cache has the store from then on."""
    store, values = bench.data.store(dataset), bench.data.values(dataset.source)
    workbench.warm(workbench.files_below(store))
    with bench.mount(store, "--view", "arrays", "--files", "raw") as mounted:
        crc = 0
        with open(mounted.path / f"{dataset.name}.raw", "rb", buffering=0) as file:
            while part := file.read(workbench.MIB):
                crc = zlib.crc32(part, crc)
    assert crc == bench.data.crc(dataset.source), f"{dataset.label}: wrong values in .raw"
    with bench.mount(store, "--view", "chunks") as mounted:
        for indices in bench.data.chunk_indices(dataset):
            box = tuple(slice(i * c, (i + 1) * c) for i, c in zip(indices, dataset.chunks))
            want = values[box]
            chunk = np.fromfile(mounted.path / bench.data.chunk_name(dataset, indices), values.dtype).reshape(dataset.chunks)
            inside = tuple(slice(0, n) for n in want.shape)
            assert np.array_equal(chunk[inside], want), f"{dataset.label}: wrong values in chunk {indices}"


def cold(bench):
    """The same readings, with the store evicted from the page cache before each of them, so that the disk is read."""
    table = bench.report.table("Whole array, the store cold",
                               ["store", "mount `.raw`", "zarr-python", "tensorstore", "zarrs", "mount / best library"], note="GB/s of decoded bytes. The files of the store are dropped from the page cache before each reading; "
                               "nothing is wanted of these figures, they are the disk's.")
    for name in COLD:
        dataset = datasets.NAMED[name]
        bench.say(f"cold store: {dataset.label}")
        peers, files = Peers(bench.data, dataset), workbench.files_below(bench.data.store(dataset))

        def after_dropping(read, files=files):
            drop(files)
            return read()
        readers = {"mount": lambda d=dataset: read_raw(bench, d), **peers.libraries()}
        found = bench.alternate({name: lambda r=read: after_dropping(r) for name, read in readers.items()})
        speed = {name: peers.bytes / median(results, "seconds") / 1e9 for name, results in found.items()}
        best = max(("zarr-python", "tensorstore", "zarrs"), key=speed.get)
        table.add([dataset.label, *speed.values(), ratio(found["mount"], found[best])], gb_per_s=speed)
        workbench.warm(files)


def drop(files):
    """Takes files out of the page cache. Dirty pages stay, so they are written first."""
    for path in files:
        fd = os.open(path, os.O_RDONLY)
        os.fdatasync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)
    time.sleep(0.05)
