"""Writing: chunk files through a `--rw` mount beside libraries and floors, inner chunks of a shard, and what `--rw` costs readers."""
import statistics

import datasets
import workbench
import writers
from workbench import MIB, median, program, ratio

STREAMS = (1, 2)
CODECS = ("raw", "blosc", "zstd", "gzip")
SMALL_CALLS = ("blosc", 1, 128 << 10)  # data set, streams, bytes of a call: as programs with smaller buffers write
LEAST_OF_FLOOR, LEAST_OF_READS, MOST_OF_A_SHARD_SECONDS = 0.8, 0.97, 0.3
READS_A_ROUND = 3  # each is short, and a difference of 3 % is looked for


def run(bench):
    # There is room for the source, for an array of the same size, and for as many bytes in temporary files.
    with writers.folder_in_memory(bench, 3 * max(64, bench.options.size) * MIB) as folder:
        waves = writers.Source(bench.data, datasets.NAMED["raw"], folder)
        chunk_files(bench, waves, folder)
        inner_chunks(bench, waves, folder)
        waves.path.unlink()
        small_files(bench, folder)
    reads(bench)


def chunk_files(bench, source, folder):
    table = bench.report.table(
        f"Chunk files of 1 MiB written, {source.count} of them",
        ["store", "write(2)", "streams", "mount", "encode floor", "FUSE floor", "joined floor", "mount / joined", "store floor", "mount / all three",
         "tensorstore", "zarr-python", "mount / tensorstore"],
        note="GB/s of decoded bytes, until the last file is closed. The store is in memory, where syncs cost nothing; `--durability` is atomic; the array had no chunks before. "
        "The encode floor encodes chunks in memory, with a thread for each stream; without a codec it copies them. The FUSE floor has the same "
        "writers, and its two threads copy what arrives to a buffer. The joined floor adds the seconds of both: 1 / (1 / encode + 1 / FUSE). With one stream "
        "nothing overlaps, because write(2) and close(2) wait for the daemon. With two streams on two cores, it assumes that both floors keep both cores busy; "
        "the seconds of the FUSE floor include the CPU time of the writers. Where a core is idle in one of the floors, the mount can be faster than the joined "
        f"floor. The store floor writes files of the encoded length to the same file system, without FUSE; all three floors together are work that the mount cannot "
        f"avoid. tensorstore has all writes in flight and {writers.TENSORSTORE_THREADS} threads that encode; zarr-python writes one chunk after the other. Neither "
        "depends on the streams, so their figures are the same in all rows of a store.")
    for name in CODECS:
        dataset = datasets.NAMED[name]
        bench.say(f"writing: {dataset.label}")
        ways = writers.Writers(bench, dataset, source, folder)
        cases = [(streams, MIB) for streams in STREAMS] + [SMALL_CALLS[1:]] * (name == SMALL_CALLS[0])
        found = bench.alternate({
            **{("mount", *case): lambda c=case: ways.mount(*c) for case in cases},
            **{("fuse", *case): lambda c=case: ways.fuse_floor(*c) for case in cases},
            **{("encode", streams): lambda s=streams: ways.encode_floor(s) for streams in STREAMS},
            **{("store", streams): lambda s=streams: ways.store_floor(s) for streams in STREAMS},
            "tensorstore": ways.tensorstore, "zarr-python": ways.zarr_python})
        for streams, call in cases:
            mounted, encode, fuse = found["mount", streams, call], found["encode", streams], found["fuse", streams, call]
            stored = found["store", streams]
            joined = [{"seconds": e["seconds"] + f["seconds"]} for e, f in zip(encode, fuse)]
            everything = [{"seconds": j["seconds"] + s["seconds"]} for j, s in zip(joined, stored)]
            to_joined, to_everything, to_tensorstore = ratio(mounted, joined), ratio(mounted, everything), ratio(mounted, found["tensorstore"])
            of_libraries = [found["tensorstore"], found["zarr-python"]]
            speed = [ways.bytes / median(results, "seconds") / 1e9 for results in (mounted, encode, fuse, joined, stored, *of_libraries)]
            table.add([dataset.label, size(call), streams, *speed[:4], to_joined, speed[4], to_everything, *speed[5:], to_tensorstore], to_joined=to_joined,
                      to_everything=to_everything, to_tensorstore=to_tensorstore, mount=mounted, encode=encode, fuse=fuse, store=stored,
                      tensorstore=of_libraries[0], zarr_python=of_libraries[1])
            what = f"{dataset.label} written in calls of {size(call)}, {streams} {'stream' if streams == 1 else 'streams'}"
            bench.report.at_least(f"{what}: mount / joined floor", to_joined, LEAST_OF_FLOOR)
        bench.report.write()


def small_files(bench, folder):
    dataset = datasets.NAMED["tiny"]
    bench.say(f"writing: {dataset.label}")
    source = writers.Source(bench.data, dataset, folder)
    ways = writers.Writers(bench, dataset, source, folder)
    found = bench.alternate({(name, streams): lambda w=way, s=streams: w(s) for streams in STREAMS
                             for name, way in (("mount", ways.mount), ("fuse", ways.fuse_floor))})
    table = bench.report.table(f"Chunk files of 16 KiB written, {source.count:,} of them", ["streams", "mount", "FUSE floor", "mount / FUSE floor"],
                               note=f"Files a second: open, one write(2), close. {dataset.label[0].upper()}{dataset.label[1:]}. The floor encodes nothing and makes no files.")
    for streams in STREAMS:
        mounted, fuse = found["mount", streams], found["fuse", streams]
        table.add([streams, source.count / median(mounted, "seconds"), source.count / median(fuse, "seconds"), ratio(mounted, fuse)],
                  mount=mounted, fuse=fuse)


def inner_chunks(bench, source, folder):
    dataset = datasets.NAMED["shblosc"]
    bench.say(f"writing: {dataset.label}")
    ways = writers.Writers(bench, dataset, source, folder, dataset.shards)
    found = bench.alternate({
        "mount, 1 stream": lambda: ways.mount(1, syncs=True), "mount, 2 streams": lambda: ways.mount(2, syncs=True),
        "tensorstore, one write after the other": ways.tensorstore_by_chunk, "tensorstore, one transaction": ways.tensorstore_at_once,
        "zarr-python, one write after the other": ways.zarr_python})
    table = bench.report.table(f"{len(ways.indices)} inner chunks of one shard written, one by one", ["way", "seconds", "mount, 1 stream, is faster by"],
                               note=f"{dataset.label}, 1 MiB each. The time of the mount ends with an fsync of `.zarr-mount/sync`: then the shard is in the store.")
    bench.report.at_most(f"{len(ways.indices)} inner chunks of one shard written, s", median(found["mount, 1 stream"], "seconds"), MOST_OF_A_SHARD_SECONDS)
    for way, results in found.items():
        table.add([way, f"{median(results, 'seconds'):.3f}", ratio(found["mount, 1 stream"], results)], rounds=results)


def reads(bench):
    table = bench.report.table("Reads of a mount with `--rw` beside one without", ["chunk files of", "when", "without, s", "with, s", "with / without", "lowest and highest of a round"],
                               note=f"Seconds of all chunk files of the store, {READS_A_ROUND} readings of both mounts in each round. The last two columns compare speeds.")
    for name, label in (("tiny", "16 KiB"), ("blosc", "1 MiB")):
        store = bench.data.store(datasets.NAMED[name])
        workbench.warm(workbench.files_below(store))
        bench.say(f"reading with --rw: {label}")

        def read(*args):
            with bench.mount(store, "--view", "chunks", *args) as mounted:
                cold, again = (program("reader", "tree", mounted.path) for _ in range(2))
                return {"cold": cold["seconds"], "again": again["seconds"]}
        found = bench.alternate({"ro": read, "rw": lambda: read("--rw")}, READS_A_ROUND)
        for when in ("cold", "again"):
            ratios = [a[when] / b[when] for a, b in zip(found["ro"], found["rw"])]
            figure = statistics.median(ratios)
            table.add([label, when, median(found["ro"], when), median(found["rw"], when), figure, f"{min(ratios):.2f}, {max(ratios):.2f}"],
                      rounds=found, ratio=figure)
            bench.report.at_least(f"chunk files of {label} read, {when}: with --rw / without", figure, LEAST_OF_READS)


def size(n_bytes):
    return f"{n_bytes // MIB} MiB" if n_bytes >= MIB else f"{n_bytes >> 10} KiB"
