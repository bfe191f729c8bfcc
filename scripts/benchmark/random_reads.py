"""Random reads: 4 KiB in chunks that the daemon holds, and in chunks that were not decoded yet; images of 27 KiB."""
import os
import random
import statistics
import time

import datasets
import workbench
from workbench import median, program

from support import random_images  # of tests, which workbench makes known

PAGE = 4096
# Which files, of which data set: 64^3 chunks share a page of `.raw` with seven others, images with none.
CACHED = (("blosc", "chunks"), ("images", "raw"), ("blosc", "raw"))
ABSENT = (("raw", "chunks"), ("blosc", "chunks"), ("zstd", "chunks"), ("zlib", "chunks"), ("shblosc", "chunks"), ("shzstd", "chunks"),
          ("images", "raw"), ("blosc", "raw"))


def run(bench):
    cached(bench)
    absent(bench)
    images(bench)


def mount_args(view):
    return ["--view", "chunks"] if view == "chunks" else ["--view", "arrays", "--files", "raw"]


def page_in(bench, dataset, view, indices, rng):
    """Offset and path (below the mount) of a page in the chunk `indices`."""
    if view == "chunks":
        return rng.randrange(1, bench.data.chunk_bytes(dataset) // PAGE) * PAGE, bench.data.chunk_name(dataset, indices)
    values = bench.data.values(dataset.source)
    at = [i * c + rng.randrange(min(c, n - i * c)) for i, c, n in zip(indices, dataset.chunks, values.shape)]
    element = 0
    for index, length in zip(at, values.shape):
        element = element * length + index
    return element * values.dtype.itemsize // PAGE * PAGE, f"{dataset.name}.raw"


def reads(bench, dataset, view, count, seed):
    """Pages in chunks drawn at random, no page twice."""
    rng, indices, drawn = random.Random(seed), bench.data.chunk_indices(dataset), {}
    for _ in range(20 * count):
        drawn[page_in(bench, dataset, view, rng.choice(indices), rng)] = None
        if len(drawn) == count:
            break
    return list(drawn)


def first_touches(bench, dataset, view, seed):
    """One page in each chunk, in random order. For `.raw`, only pages whose chunks no earlier page has touched."""
    rng, indices = random.Random(seed), bench.data.chunk_indices(dataset)
    if view == "raw" and chunks_a_page(bench, dataset) > 1:
        indices = [i for i in indices if i[-1] == 0]
    rng.shuffle(indices)
    return [page_in(bench, dataset, view, i, rng) for i in indices[:2000]]


def chunks_a_page(bench, dataset):
    """Chunks that a page of `.raw` lies in: those side by side in a row of elements, no longer than a page."""
    values = bench.data.values(dataset.source)
    row = values.shape[-1] * values.dtype.itemsize
    return max(1, min(row, PAGE) // (dataset.chunks[-1] * values.dtype.itemsize))


def lines(mounted, places):
    return [f"{offset} {mounted.path}/{name}" for offset, name in places]


def floor_reads(bench, places):
    """The same offsets in files of memory behind FUSE."""
    names = list(dict.fromkeys(name for _, name in places))
    size = max(offset for offset, _ in places) + PAGE
    with bench.floor(f"files:{len(names)}:{size}") as point:
        number = {name: n for n, name in enumerate(names)}
        return program("reader", "random", lines=[f"{offset} {point}/files/{number[name]}" for offset, name in places])


def cached(bench):
    table = bench.report.table("Random reads of 4 KiB in chunks that the daemon holds",
                               ["store, view", "mount p50 / p99, µs", "FUSE floor p50 / p99, µs", "p50 / floor"], note="The kernel holds none of the pages. The floor is a file in memory behind FUSE, read at the same offsets.")
    for name, view in CACHED:
        dataset = datasets.NAMED[name]
        bench.say(f"random reads, cached: {dataset.label}, {view}")
        workbench.warm(workbench.files_below(bench.data.store(dataset)))
        touched = first_touches(bench, dataset, view, 0)
        places = [p for p in reads(bench, dataset, view, 500 if bench.quick else 3000, 1) if p not in set(touched)]

        def ours():
            with bench.mount(bench.data.store(dataset), *mount_args(view), cache="2GiB") as mounted:
                program("reader", "random", lines=lines(mounted, touched))
                return program("reader", "random", lines=lines(mounted, places))
        found = bench.alternate({"mount": ours, "floor": lambda: floor_reads(bench, places)})
        figure = workbench.ratio(found["floor"], found["mount"], "p50")
        table.add([f"{dataset.label}, {view}", *(f"{median(found[k], 'p50'):.0f} / {median(found[k], 'p99'):.0f}" for k in found), figure], rounds=found)
        bench.report.at_most(f"4 KiB in cached chunks, {dataset.label}, {view}: p50 / FUSE floor", figure, 1.5)


def absent(bench):
    table = bench.report.table(
        "Random reads of 4 KiB in chunks that are not decoded yet",
        ["store, view", "chunks a page", "decodes a read", "mount p50 / p99, µs", "FUSE round trip p50", "one chunk p50", "one part p50",
         "p50 / (cheapest + round trip)"],
        note="One read a chunk (or row of chunks that share the page), fresh mount. In process, on one thread: open, read and decode one chunk; the "
        "part is a blosc block, or 4 KiB of an uncompressed chunk. Where a page lies in several chunks, the cheapest is that many of them, "
        "divided over all cores.")
    for name, view in ABSENT:
        dataset = datasets.NAMED[name]
        bench.say(f"random reads, absent: {dataset.label}, {view}")
        workbench.warm(workbench.files_below(bench.data.store(dataset)))
        touched, shared = first_touches(bench, dataset, view, 2), chunks_a_page(bench, dataset) if view == "raw" else 1
        if shared > 1:
            touched = touched[:200]

        def ours():
            with bench.mount(bench.data.store(dataset), *mount_args(view), cache="2GiB") as mounted:
                told = program("reader", "random", lines=lines(mounted, touched))
                chunks = mounted.stats()["chunks"]
                return {**told, "decodes": (chunks["decodes"] + chunks["partial_decodes"]) / told["count"]}
        readers = {"mount": ours, "trip": lambda: floor_reads(bench, touched),
                   "one": lambda: program("decode_floor", bench.data.spec(dataset), "one", 500)}
        if dataset.codec in ("blosc", "none"):
            readers["part"] = lambda: program("decode_floor", bench.data.spec(dataset), "part", 500)
        found = bench.alternate(readers)
        middle = {key: median(results, "p50") for key, results in found.items()}
        figure = statistics.median(against_least(turn, shared) for turn in zip(*found.values()))
        table.add([f"{dataset.label}, {view}", shared, median(found["mount"], "decodes"),
                   f"{middle['mount']:.0f} / {median(found['mount'], 'p99'):.0f}", middle["trip"], middle["one"], middle.get("part"), figure],
                  rounds=found, ratio=figure)
        bench.report.at_most(f"4 KiB in absent chunks, {dataset.label}, {view}: p50 / in process", figure, 1.3)


def images(bench):
    """Reads random images of one `.npy` file in the ways in which programs read. The cache holds few of the images."""
    table = bench.report.table("Random images of 27 KiB", ["way", "ms an image", "chunks decoded an image"],
                               note="Chunks of 4 images, zstd; a cache of 16 MiB.")
    store, count = bench.folder / "stack.zarr", 20_000
    random_images.write(store, count, (4, *random_images.IMAGE_SHAPE))
    numbers = random.Random(3).sample(range(count), 300)
    for way, read in random_images.WAYS.items():
        bench.say(f"random images: {way}")

        def ours():
            with bench.mount(store, "--view", "arrays", cache="16MiB") as mounted:
                begun = time.perf_counter()
                for _ in read(mounted.path / "stack.npy", numbers):
                    pass
                seconds = time.perf_counter() - begun
                return {"ms": 1000 * seconds / len(numbers), "decodes": mounted.stats()["chunks"]["decodes"] / len(numbers)}
        found = bench.alternate({"mount": ours})["mount"]
        table.add([way, median(found, "ms"), median(found, "decodes")], rounds=found)


def against_least(turn, shared):
    """One round: the mount's median over the cheapest way in process and a round trip."""
    mount, trip, *in_process = (result["p50"] for result in turn)
    return mount / (min(in_process) * shared / min(shared, os.cpu_count()) + trip)
