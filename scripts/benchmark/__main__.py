"""Reads and writes through the mount beside its peers and its floors, in one run: see --help and scripts/bench."""
import argparse
import resource
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import arrays
import cache
import costs
import datasets
import floors
import growth
import listing
import paired
import random_reads
import remote
import serving
import workbench
import writing
from report import Report

SECTIONS = {
    "floor": (floors.run_floor, "FUSE with nothing behind it"),
    "arrays": (arrays.run, "whole arrays as .raw and as chunk files, beside zarr-python, tensorstore, zarrs and decoding by hand"),
    "plain": (floors.run_plain, "plain store bytes with and without passthrough, second reads, tiny files, cp, fsspec's FUSE"),
    "random": (random_reads.run, "4 KiB in cached and in absent chunks"),
    "listing": (listing.run, "ls -f, ls -ln and stat of very many virtual chunks"),
    "cache": (cache.run, "hit rates beside LRU and Belady on recorded traces"),
    "paired": (paired.run, "this build beside the one of --against, in the same rounds"),
    "transports": (paired.run_transports, "rings of io_uring beside the device, in the same rounds"),
    "costs": (costs.run, "what a chunk of 16 KiB costs the daemon, function by function"),
    "remote": (remote.run, "a web server over links of 0, 5, 20 and 50 ms, beside tensorstore, zarr-python with obstore, and object_store"),
    "remote-whole": (remote.run_whole, "the whole arrays of `remote` alone"),
    "serve": (serving.run, "--serve beside the mount: one large file, 64 clients on random ranges, and 1,000 clients for a minute"),
    "growth": (growth.run, "cost by the number of chunks and arrays"),
    "writing": (writing.run, "chunk files and shards written, beside tensorstore, zarr-python, and the floors of encoding and FUSE; reads of a --rw mount"),
}


def parse():
    parser = argparse.ArgumentParser(
        prog="scripts/bench", description="Measures the mount beside its peers and its floors.", formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="sections:\n" + "\n".join(f"  {name:12} {what}" for name, (_, what) in SECTIONS.items()))
    parser.add_argument("--only", action="append", choices=SECTIONS, metavar="SECTION", help="this section, and no other that is not named too")
    parser.add_argument("--store", action="append", choices=datasets.NAMED, help="in `arrays`: this data set only; may be given several times")
    parser.add_argument("--latency", action="append", type=int, metavar="MS", help="in `remote`: a link of this round trip [0, 5, 20 and 50]")
    parser.add_argument("--requests", action="append", type=int, metavar="N", help="in `remote`: requests of a library in flight, tried once [10, 32 .. 256]")
    parser.add_argument("--size", type=int, metavar="MIB", help="of each data set, decoded [512]")
    parser.add_argument("--rounds", type=int, help="readings of each, of which the median is told [5]")
    parser.add_argument("--quick", action="store_true", help="a smoke run: 64 MiB, one round, small directories")
    parser.add_argument("--against", type=Path, metavar="BINARY", help="another build of zarr-mount, which `paired` compares this one with")
    parser.add_argument("--output", type=Path, metavar="DIR", help="write report.md and report.json there")
    parser.add_argument("--data", type=Path, metavar="DIR", help="make the data sets there, and keep them for the next run")
    options = parser.parse_args()
    if options.against:
        options.against = options.against.resolve(strict=True)
    options.size = options.size or (64 if options.quick else 512)
    options.rounds = options.rounds or (1 if options.quick else 5)
    return options


def stop(*_):
    raise KeyboardInterrupt


def main():
    options = parse()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    # Thousands of chunk files are held open at a time.
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))
    folder = Path(tempfile.mkdtemp(prefix="zarr-mount-bench-"))
    report = Report(options, options.output)
    bench = workbench.Bench(options, folder, None, report)
    try:
        bench.data = datasets.Data(options.data or folder / "data", options.size, bench.say)
        for name in options.only or [name for name in SECTIONS if name != "remote-whole"]:
            start = time.monotonic()
            SECTIONS[name][0](bench)
            bench.say(f"{name}: {time.monotonic() - start:.0f} s")
            report.write()  # so that these figures are kept if a later section fails
        memory(bench)
        print(report.write())
    except KeyboardInterrupt:
        sys.exit("interrupted")
    finally:
        clean_up(folder)


def memory(bench):
    """The run that came nearest to its bound, of all."""
    if not bench.peaks:
        return
    table = bench.report.table("Peak memory of the daemon, the three mounts nearest to their bound", ["store", "peak, MiB", "bound, MiB"],
                               note=f"Of {len(bench.peaks)} mounts. The bound is the cache budget and 64 MiB.")
    nearest = sorted(bench.peaks, reverse=True)[:3]
    for over, store, peak, budget in nearest:
        table.add([store, peak / workbench.MIB, (peak - over) / workbench.MIB], peak=peak, budget=budget)
    bench.report.at_most("peak memory above cache budget + 64 MiB, worst mount, MiB", nearest[0][0] / workbench.MIB, 0)


def clean_up(folder):
    """Unmounts whatever is mounted below the folder, and removes it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for point in folder.iterdir():
        workbench.mounting.force_away(point)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
