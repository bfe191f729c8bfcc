"""This build beside another one (`--against BINARY`), each reading and writing in turn: what a change costs or gains."""
import statistics

import random_reads
from support import shards
import workbench
import writers
from datasets import NAMED
from workbench import MIB, program, timed

WRITTEN = (("raw", 1), ("blosc", 2), ("zstd", 1), ("tiny", 1))  # data set, streams
WHOLE = ("raw", "blosc", "zstd", "zlib", "shblosc", "shzstd", "images", "climate", "tiny")
LEAST = 0.97


def run(bench):
    other = bench.options.against
    if other is None:
        bench.say("paired: left out, because --against names no other build")
        return
    table = bench.report.table(
        "This build beside another one", ["what", "this one", "the other", "ratio", "lowest and highest of a round"],
        note=f"The other is {other.name} of --against. Seconds of a whole reading or writing, or µs of a reading of 4 KiB at the median. The ratio is the "
        "median over the rounds of how many times faster this build is; both were measured in each round.")
    with writers.folder_in_memory(bench, 3 * max(64, bench.options.size) * MIB) as folder:
        compare(bench, table, readings(bench), other)
        compare(bench, table, writings(bench, folder), other)


def compare(bench, table, ways, other):
    for what, key, way in ways:
        bench.say(f"paired: {what}")
        found = bench.alternate({"this": lambda: way(None), "other": lambda: way(other)})
        ratios = [b[key] / a[key] for a, b in zip(found["this"], found["other"])]
        figure = statistics.median(ratios)
        values = [workbench.median(found[name], key) for name in ("this", "other")]
        table.add([what, *values, figure, f"{min(ratios):.2f}, {max(ratios):.2f}"], rounds=found, ratio=figure)
        bench.report.at_least(f"{what}: this build / the other", figure, LEAST)
        bench.report.write()


def readings(bench):
    """(what it is, the figure that counts, a function of the binary that reads once)."""
    for name in WHOLE:
        dataset = NAMED[name]
        workbench.warm(workbench.files_below(bench.data.store(dataset)))
        yield f"{dataset.label}, .raw", "seconds", lambda binary, d=dataset: whole(bench, d, "raw", binary)
        yield f"{dataset.label}, chunk files", "seconds", lambda binary, d=dataset: whole(bench, d, "chunks", binary)
    for name, view in random_reads.CACHED[:2]:
        dataset = NAMED[name]
        yield (f"4 KiB in cached chunks, {dataset.label}, {view}", "p50",
               lambda binary, d=dataset, v=view: pages(bench, d, v, binary, is_cached=True))
    for name, view in (("raw", "chunks"), ("blosc", "chunks"), ("zstd", "chunks"), ("shblosc", "chunks")):
        dataset = NAMED[name]
        yield (f"4 KiB in absent chunks, {dataset.label}, {view}", "p50",
               lambda binary, d=dataset, v=view: pages(bench, d, v, binary, is_cached=False))
    n = 20_000 if bench.quick else 200_000
    store = bench.folder / "paired.zarr"
    shards.write(store, (n // 100, 100), 1, ".")
    for command in ("-f", "-ln"):
        yield f"ls {command} of {n:,} virtual chunks", "seconds", lambda binary, c=command: listed(bench, store, c, binary)


def writings(bench, folder):
    """As `readings`, of arrays in `folder` that are written through a mount, until the last file is closed."""
    for name, streams in WRITTEN:
        dataset = NAMED[name]
        source = writers.Source(bench.data, dataset if name == "tiny" else NAMED["raw"], folder)
        ways = writers.Writers(bench, dataset, source, folder)
        yield (f"{dataset.label}, chunk files written, {streams} at once", "seconds",
               lambda binary, w=ways, s=streams: w.mount(s, binary=binary))
    dataset = NAMED["shblosc"]
    ways = writers.Writers(bench, dataset, writers.Source(bench.data, NAMED["raw"], folder), folder, dataset.shards)
    yield (f"{dataset.label}, inner chunks of one shard written and synced", "seconds",
           lambda binary: ways.mount(1, syncs=True, binary=binary))


def whole(bench, dataset, view, binary):
    """Every byte of an array, as one file or as all its chunk files."""
    arguments = random_reads.mount_args(view)
    with bench.mount(bench.data.store(dataset), *arguments, binary=binary) as mounted:
        if view == "raw":
            return program("reader", "file", mounted.path / f"{dataset.name}.raw")
        return program("reader", "tree", mounted.path)


def pages(bench, dataset, view, binary, is_cached):
    """4 KiB in chunks that the daemon holds, or one in each chunk that it does not."""
    touched = random_reads.first_touches(bench, dataset, view, 3)
    with bench.mount(bench.data.store(dataset), *random_reads.mount_args(view), cache="2GiB", binary=binary) as mounted:
        told = program("reader", "random", lines=random_reads.lines(mounted, touched))
        if not is_cached:
            return told
        count = 500 if bench.quick else 3000
        places = [p for p in random_reads.reads(bench, dataset, view, count, 4) if p not in set(touched)]
        return program("reader", "random", lines=random_reads.lines(mounted, places))


def listed(bench, store, command, binary):
    with bench.mount(store, "--view", "chunks", binary=binary) as mounted:
        return {"seconds": timed(["ls", command, mounted.path])}
