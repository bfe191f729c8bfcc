"""Hit rates of the chunk cache on access patterns for which plain LRU is bad, compared with LRU and the optimum on the recorded trace."""
import os
import random

import cache_model
import datasets
from workbench import MIB

PAGE = 4096
DATASET = "zstd"  # no part of a chunk can be decoded: each use needs a whole one
PLANES = 64  # one row of chunks of the whole array: 64 chunks, 64 MiB
TRACE = ("--log-level", "trace")


def run(bench):
    table = bench.report.table(
        "Cache: hit rates on recorded traces",
        ["pattern", "budget, MiB", "chunks touched", "decodes", "accesses", "the daemon's", "plain LRU", "Belady"],
        note=f"{datasets.NAMED[DATASET].label}, chunks of 1 MiB. The hit rate is the part of the accesses to the chunk cache that needed no decode. LRU and Belady are simulated "
        "on the trace of the daemon with the whole budget, of which the daemon needs a part for buffers.")
    patterns = {
        "C-order scan of a row of 64 chunks, larger than the budget": (scan_once, 40),
        "the same three times, budget larger than the row": (scan_thrice, 96),
        "cyclic scan of 64 chunk files, 4 times, larger than the budget": (cyclic, 40),
        "random reads in 16 chunks, mixed with a scan of 48 others": (mixed, 40),
    }
    for label, (pattern, budget) in patterns.items():
        bench.say(f"cache: {label}")
        one(bench, table, label, pattern, budget)


def one(bench, table, label, pattern, budget_mib):
    dataset = datasets.NAMED[DATASET]
    store = bench.data.store(dataset)
    view = ["--view", "arrays", "--files", "raw"] if pattern in (scan_once, scan_thrice) else ["--view", "chunks"]
    with bench.mount(store, *view, *TRACE, cache=f"{budget_mib}MiB") as mounted:
        before = mounted.stats()
        touched = pattern(bench, dataset, mounted)
        after = mounted.stats()
        log = mounted.log
    count = {key: after["cache"][key] - before["cache"][key] for key in ("hits", "misses", "joins")}
    trace = [access for access in cache_model.read_trace(log) if access[1]]
    log.unlink()
    accesses = len(trace) or sum(count.values())
    decodes = after["chunks"]["decodes"] - before["chunks"]["decodes"]
    # The rate is computed from the decodes, so that the first use of a prefetched chunk does not count as a hit.
    rates = [1 - decodes / max(1, accesses), None, None]
    if trace:
        budget = after["cache"]["budget_bytes"]
        rates[1:] = (f(trace, budget) / len(trace) for f in (cache_model.lru_hits, cache_model.belady_hits))
    table.add([label, budget_mib, touched, decodes, accesses, *("no trace" if r is None else f"{r:.3f}" for r in rates)],
              **count, decodes=decodes, lru=rates[1], belady=rates[2], traced=len(trace))


def read_all(path):
    """Reads a file from end to end, and drops its pages, so that the next reading asks again."""
    fd = os.open(path, os.O_RDONLY)
    while os.read(fd, MIB):
        pass
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def scan_once(bench, dataset, mounted):
    read_all(mounted.path / f"{dataset.name}@0:{PLANES}.raw")
    return PLANES


def scan_thrice(bench, dataset, mounted):
    for _ in range(3):
        scan_once(bench, dataset, mounted)
    return PLANES


def row_of_files(bench, dataset, mounted):
    return [mounted.path / bench.data.chunk_name(dataset, i) for i in bench.data.chunk_indices(dataset)[:64]]


def cyclic(bench, dataset, mounted):
    for _ in range(4):
        for path in row_of_files(bench, dataset, mounted):
            read_all(path)
    return 64


def mixed(bench, dataset, mounted):
    """Every chunk file of the scan is followed by reads of 4 KiB in four of sixteen hot chunks."""
    rng, files = random.Random(4), row_of_files(bench, dataset, mounted)
    hot = files[:16]
    for path in (files[16:] * 3):
        read_all(path)
        for _ in range(4):
            fd = os.open(rng.choice(hot), os.O_RDONLY)
            os.pread(fd, PAGE, rng.randrange(256) * PAGE)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)
    return 64
