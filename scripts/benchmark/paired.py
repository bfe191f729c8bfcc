"""Two ways to mount, each reading and writing in turn: this build and another one (`--against BINARY`), or rings and the device."""
import itertools
import statistics

import random_reads
from support import mounting, rings, shards
import workbench
import writers
from datasets import NAMED
from workbench import MIB, Build, program, timed

WRITTEN = (("raw", 1), ("blosc", 2), ("zstd", 1), ("tiny", 1))  # data set, streams
WHOLE = ("raw", "blosc", "zstd", "zlib", "shblosc", "shzstd", "images", "climate", "tiny")
LEAST = 0.97
NOTE = ("Seconds of a whole reading or writing, or µs of a reading of 4 KiB at the median. The ratio is the median over the rounds of how many "
        "times faster the first is; both were measured in each round.")


def run(bench):
    other = bench.options.against
    if other is None:
        bench.say("paired: left out, because --against names no other build")
        return
    table = bench.report.table(
        "This build beside another one", ["what", "this one", "the other", "ratio", "lowest and highest of a round"],
        note=f"The other is {other.name} of --against. {NOTE}")
    compare(bench, table, {"this build": None, "the other": Build(other)}, LEAST)


def run_transports(bench):
    if not rings.is_there():
        bench.say(f"transports: left out, because {rings.SWITCH} is missing or closed to this user")
        return
    table = bench.report.table("Rings beside the device", ["what", "rings", "device", "ratio", "lowest and highest of a round"], note=NOTE)
    ways = {how: Build(mounting.BINARY, ("--transport", how)) for how in ("ring", "device")}
    with rings.switched("Y"):
        compare(bench, table, ways, 1)


def compare(bench, table, builds, least):
    """Reads and writes in two ways, and adds a line for each reading and writing to `table`."""
    with writers.folder_in_memory(bench, 3 * max(64, bench.options.size) * MIB) as folder:
        for what, key, way in itertools.chain(readings(bench), writings(bench, folder)):
            bench.say(f"{' and '.join(builds)}: {what}")
            found = bench.alternate({name: lambda b=build: way(b) for name, build in builds.items()})
            one, other = found.values()
            ratios = [b[key] / a[key] for a, b in zip(one, other)]
            figure = statistics.median(ratios)
            values = [workbench.median(rounds, key) for rounds in (one, other)]
            table.add([what, *values, figure, f"{min(ratios):.2f}, {max(ratios):.2f}"], rounds=found, ratio=figure)
            bench.report.at_least(f"{what}: {' / '.join(builds)}", figure, least)
            bench.report.write()


def readings(bench):
    """The readings that are compared: (title, name of the figure, function that reads once with a build)."""
    for name in WHOLE:
        dataset = NAMED[name]
        workbench.warm(workbench.files_below(bench.data.store(dataset)))
        yield f"{dataset.label}, .raw", "seconds", lambda build, d=dataset: whole(bench, d, "raw", build)
        yield f"{dataset.label}, chunk files", "seconds", lambda build, d=dataset: whole(bench, d, "chunks", build)
    for name, view in random_reads.CACHED[:2]:
        dataset = NAMED[name]
        yield (f"4 KiB in cached chunks, {dataset.label}, {view}", "p50",
               lambda build, d=dataset, v=view: pages(bench, d, v, build, is_cached=True))
    for name, view in (("raw", "chunks"), ("blosc", "chunks"), ("zstd", "chunks"), ("shblosc", "chunks")):
        dataset = NAMED[name]
        yield (f"4 KiB in absent chunks, {dataset.label}, {view}", "p50",
               lambda build, d=dataset, v=view: pages(bench, d, v, build, is_cached=False))
    n = 20_000 if bench.quick else 200_000
    store = bench.folder / "paired.zarr"
    shards.write(store, (n // 100, 100), 1, ".")
    for command in ("-f", "-ln"):
        yield f"ls {command} of {n:,} virtual chunks", "seconds", lambda build, c=command: listed(bench, store, c, build)


def writings(bench, folder):
    """Like `readings`, for writers: arrays in `folder` are written through a mount, and the time ends when the last file is closed."""
    for name, streams in WRITTEN:
        dataset = NAMED[name]
        source = writers.Source(bench.data, dataset if name == "tiny" else NAMED["raw"], folder)
        ways = writers.Writers(bench, dataset, source, folder)
        yield (f"{dataset.label}, chunk files written, {streams} at once", "seconds",
               lambda build, w=ways, s=streams: w.mount(s, build=build))
    dataset = NAMED["shblosc"]
    ways = writers.Writers(bench, dataset, writers.Source(bench.data, NAMED["raw"], folder), folder, dataset.shards)
    yield (f"{dataset.label}, inner chunks of one shard written and synced", "seconds",
           lambda build: ways.mount(1, syncs=True, build=build))


def whole(bench, dataset, view, build):
    """Every byte of an array, as one file or as all its chunk files."""
    arguments = random_reads.mount_args(view)
    with bench.mount(bench.data.store(dataset), *arguments, build=build) as mounted:
        if view == "raw":
            return program("reader", "file", mounted.path / f"{dataset.name}.raw")
        return program("reader", "tree", mounted.path)


def pages(bench, dataset, view, build, is_cached):
    """Reads pages of 4 KiB: several in chunks that the daemon holds, or one in each chunk that it does not hold."""
    touched = random_reads.first_touches(bench, dataset, view, 3)
    with bench.mount(bench.data.store(dataset), *random_reads.mount_args(view), cache="2GiB", build=build) as mounted:
        told = program("reader", "random", lines=random_reads.lines(mounted, touched))
        if not is_cached:
            return told
        count = 500 if bench.quick else 3000
        places = [p for p in random_reads.reads(bench, dataset, view, count, 4) if p not in set(touched)]
        return program("reader", "random", lines=random_reads.lines(mounted, places))


def listed(bench, store, command, build):
    with bench.mount(store, "--view", "chunks", build=build) as mounted:
        return {"seconds": timed(["ls", command, mounted.path])}
