"""A FUSE file system with nothing behind it (the FUSE floor), and mounted files that are plain bytes of the store, compared with both."""
import contextlib
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import datasets
from support import mounting
import workbench
from workbench import MIB, median, program, ratio

PAGE = 4096
SERVE = "import fsspec, fsspec.fuse, sys; fsspec.fuse.run(fsspec.filesystem('file'), sys.argv[1], sys.argv[2], foreground=True, threads=False)"


def run_floor(bench):
    """Figures of a FUSE mount that serves memory, for this machine and this run."""
    size, tiny = bench.options.size * MIB, 1000 if bench.quick else 10_000
    reads = 1000 if bench.quick else 10_000
    keep = {"sequential": [], "again": [], "random": [], "tiny": [], "tiny_again": [], "no_open": [], "no_open_again": []}
    for _ in range(bench.rounds):
        bench.say("FUSE floor")
        with bench.floor(f"big:1:{size}", f"tiny:{tiny}:{PAGE}") as point:
            offsets = random.Random(1).sample(range(size // PAGE), reads)
            keep["random"].append(program("reader", "random", lines=[f"{n * PAGE} {point}/big/0" for n in offsets]))
        with bench.floor(f"big:1:{size}", f"tiny:{tiny}:{PAGE}") as point:
            keep["sequential"].append(program("reader", "file", point / "big" / "0"))
            keep["again"].append(program("reader", "file", point / "big" / "0"))
            paths = [f"{point}/tiny/{n}" for n in range(tiny)]
            keep["tiny"].append(program("reader", "open", lines=paths))
            keep["tiny_again"].append(program("reader", "open", lines=paths))
        with bench.floor(f"tiny:{tiny}:{PAGE}", no_open=True) as point:
            paths = [f"{point}/tiny/{n}" for n in range(tiny)]
            keep["no_open"].append(program("reader", "open", lines=paths))
            keep["no_open_again"].append(program("reader", "open", lines=paths))
    table = bench.report.table("FUSE floor: files in memory, 2 threads, clone_fd, keep_cache, read-ahead 1 MiB", ["what", "figure"])
    table.add(["sequential, cold, GB/s", size / median(keep["sequential"], "seconds") / 1e9], rounds=keep["sequential"])
    table.add(["sequential, in the page cache, GB/s", size / median(keep["again"], "seconds") / 1e9], rounds=keep["again"])
    table.add(["4 KiB random, p50 / p99, µs", f"{median(keep['random'], 'p50'):.0f} / {median(keep['random'], 'p99'):.0f}"], rounds=keep["random"])
    for key, label in (("tiny", ""), ("no_open", ", without a request to open")):
        pair = [f"{tiny / median(keep[k], 'seconds'):,.0f}" for k in (key, f"{key}_again")]
        table.add([f"open + read 4 KiB + close a second{label}, cold / again", " / ".join(pair)], rounds=keep[key])


def run_plain(bench):
    """Compares plain bytes of a store with the store (with passthrough) and with the floor (without), and second reads with native files."""
    table = bench.report.table("Plain files", ["what", "mount", "held against", "its figure", "mount / that", "wanted"],
                               note="GB/s, or files a second where a row says so.")
    trees(bench, table)
    second_reads(bench, table)
    tiny_files(bench, table)
    copies(bench, table)


def compare(bench, table, label, against, wanted, found, n):
    """Adds a row from the rounds of two readers. In each round, a reader reads `n` bytes, or `n` files."""
    ours, theirs = found["mount"], found["other"]
    figure = ratio(ours, theirs)
    scale = 1e9 if n > 1e6 else 1
    table.add([label, n / median(ours, "seconds") / scale, against, n / median(theirs, "seconds") / scale, figure,
               f"≥ {wanted}" if wanted else "–"], ratio=figure, seconds=found)
    if wanted:
        bench.report.at_least(f"{label} / {against}", figure, wanted)


def mounted_tree(bench, store, *args):
    with bench.mount(store, *args) as mounted:
        return program("reader", "tree", mounted.path)


def trees(bench, table):
    raw, blosc = datasets.NAMED["raw"], datasets.NAMED["blosc"]
    for dataset, view in ((raw, "chunks"), (blosc, "keys")):
        store = bench.data.store(dataset)
        files = [f for f in workbench.files_below(store) if not f.name.startswith(".") and f.name != "zarr.json"]
        workbench.warm(files)
        total = sum(f.stat().st_size for f in files)
        bench.say(f"plain files: {dataset.label}, {view}")
        passed = bench.alternate({"mount": lambda: mounted_tree(bench, store, "--view", view, "--passthrough", "always"),
                                  "other": lambda: program("reader", "tree", store)})
        compare(bench, table, f"{dataset.label}, `{view}`, passthrough", "the store", 0.9, passed, total)

        def floor(n=len(files), each=total // len(files)):
            with bench.floor(f"files:{n}:{each}") as point:
                return program("reader", "tree", point)
        served = bench.alternate({"mount": lambda: mounted_tree(bench, store, "--view", view, "--passthrough", "never"), "other": floor})
        compare(bench, table, f"{dataset.label}, `{view}`, no passthrough", "FUSE floor", 0.8, served, total)
        if dataset is raw:
            with fsspec_fuse(bench, store) as point:
                peer = bench.alternate({"mount": lambda: mounted_tree(bench, store, "--view", view, "--passthrough", "never"),
                                        "other": lambda: program("reader", "tree", point)})
            compare(bench, table, f"{dataset.label}, `{view}`, no passthrough", "fsspec.fuse", None, peer, total)


def second_reads(bench, table):
    dataset = datasets.NAMED["blosc"]
    store, values = bench.data.store(dataset), bench.data.values(dataset.source)
    native = bench.folder / "native"
    native.mkdir()
    values.tofile(native / "whole")
    program("reader", "file", native / "whole")
    with bench.mount(store, "--view", "arrays", "--files", "raw") as mounted:
        path = mounted.path / f"{dataset.name}.raw"
        program("reader", "file", path)
        found = bench.alternate({"mount": lambda: program("reader", "file", path), "other": lambda: program("reader", "file", native / "whole")})
    compare(bench, table, "second read of `.raw`", "a native file", 0.9, found, values.nbytes)
    (native / "whole").unlink()
    with bench.mount(store, "--view", "chunks") as mounted:
        shutil.copytree(mounted.path, native / "chunks")
        program("reader", "tree", native / "chunks")
        found = bench.alternate({"mount": lambda: program("reader", "tree", mounted.path), "other": lambda: program("reader", "tree", native / "chunks")})
    compare(bench, table, "second read of chunk files of 1 MiB", "native files", 0.9, found, values.nbytes)
    shutil.rmtree(native)


def tiny_files(bench, table):
    dataset = datasets.NAMED["tiny"]
    store = bench.data.store(dataset)
    indices = bench.data.chunk_indices(dataset)[:2000 if bench.quick else 10_000]
    names = [bench.data.chunk_name(dataset, i) for i in indices]
    each = sum((store / name).stat().st_size for name in names) // len(names)

    def ours(when, passthrough):
        with bench.mount(store, "--view", "keys", "--passthrough", passthrough) as mounted:
            paths = [f"{mounted.path}/{name}" for name in names]
            for _ in range(when):
                program("reader", "open", lines=paths)
            return program("reader", "open", lines=paths)

    def floor(when):
        with bench.floor(f"tiny:{len(names)}:{each}") as point:
            paths = [f"{point}/tiny/{n}" for n in range(len(names))]
            for _ in range(when):
                program("reader", "open", lines=paths)
            return program("reader", "open", lines=paths)
    for when, label in ((0, "cold"), (1, "again")):
        for passthrough in ("never", "always"):
            bench.say(f"plain files: tiny, {label}, passthrough {passthrough}")
            found = bench.alternate({"mount": lambda: ours(when, passthrough), "other": lambda: floor(when)})
            compare(bench, table, f"open + read + close of {each} B a second, {label}, passthrough {passthrough}", "FUSE floor",
                    0.9 if passthrough == "never" else None, found, len(names))


def copies(bench, table):
    dataset = datasets.NAMED["raw"]
    store, values = bench.data.store(dataset), bench.data.values(dataset.source)
    native = bench.folder / "native.raw"
    values.tofile(native)
    program("reader", "file", native)

    def copy(source, folder):
        return {"seconds": workbench.timed(["cp", "--reflink=never", source, folder])}

    def ours(folder):
        with bench.mount(store, "--view", "arrays", "--files", "raw") as mounted:
            return copy(mounted.path / f"{dataset.name}.raw", folder)
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="zarr-mount-bench-", dir=memory if memory.is_dir() else bench.folder) as folder:
        found = bench.alternate({"mount": lambda: ours(folder), "other": lambda: copy(native, folder)})
    compare(bench, table, "`cp` of `.raw`, uncompressed", "`cp` of a native file", None, found, values.nbytes)
    native.unlink()


@contextlib.contextmanager
def fsspec_fuse(bench, store):
    """The store, mounted by fsspec's FUSE, for comparison."""
    point = bench.folder / "fsspec"
    point.mkdir()
    server = subprocess.Popen([sys.executable, "-c", SERVE, str(store), str(point)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        mounting.until(lambda: mounting.mount_entry(point) or server.poll() is not None, "fsspec's mount")
        yield point
    finally:
        mounting.force_away(point)
        server.terminate()
        server.wait(10)
