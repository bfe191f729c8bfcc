"""`--serve` beside the mount: one large file, many clients on random ranges, and a thousand clients for a minute."""
import contextlib
import os
import re
import signal
import subprocess

import workbench
from datasets import NAMED
from workbench import MIB, mounting, program

TOKEN = "0123456789abcdef0123456789abcdef"
FILES = ("raw", "zstd", "shblosc")
RANGES = (4 << 10, 64 << 10)
CLIENTS = 64
CACHE = "1GiB"


def run(bench):
    beside_the_mount(bench)
    a_thousand(bench)


@contextlib.contextmanager
def served(bench, dataset):
    """The process of a fresh server, and the URL of the dataset as one file."""
    file = bench.folder / "token"
    file.touch(mode=0o600)
    file.write_text(TOKEN)
    command = [mounting.BINARY, "--serve", "0", "--token-file", file, "--cache-size", CACHE, "--view", "arrays", "--files", "raw", bench.data.store(dataset)]
    server = subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE, text=True)
    try:
        line = server.stdout.readline()
        url = re.search(r" at (http://\S+/) ", line)
        if not url:
            raise RuntimeError(f"--serve: {line}")
        yield server, f"{url[1]}{dataset.name}.raw"
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()


def clients(source, *args):
    os.environ["TOKEN"] = TOKEN
    return program("clients", source, *args)


def beside_the_mount(bench):
    table = bench.report.table(
        "Over HTTP beside the mount", ["file", "what", "mount, MiB/s", "HTTP, MiB/s", "ratio"],
        note=f"A fresh mount or server each time, and one program for both. Pieces are read once each, by {CLIENTS} clients.")
    for name in FILES:
        dataset = NAMED[name]
        workbench.warm(workbench.files_below(bench.data.store(dataset)))
        for what, arguments, least in [("one client, whole", ["whole"], 0.9),
                                       *((f"{CLIENTS} clients, {size >> 10} KiB", ["ranges", CLIENTS, size], 1) for size in RANGES)]:
            bench.say(f"serve: {dataset.label}, {what}")

            def by_mount():
                with bench.mount(bench.data.store(dataset), "--view", "arrays", "--files", "raw", cache=CACHE) as mounted:
                    return clients(mounted.path / f"{dataset.name}.raw", *arguments)

            def by_http():
                with served(bench, dataset) as (_, url):
                    return clients(url, *arguments)
            found = bench.alternate({"mount": by_mount, "http": by_http})
            figure = workbench.ratio(found["http"], found["mount"])
            rates = [found[way][0]["bytes"] / MIB / workbench.median(found[way], "seconds") for way in found]
            table.add([f"{dataset.label}, .raw", what, *rates, figure], rounds=found, ratio=figure)
            bench.report.at_least(f"{dataset.label}, {what}: HTTP / mount", figure, least)


def a_thousand(bench):
    seconds, dataset = 5 if bench.quick else 60, NAMED["zstd"]
    bench.say(f"serve: 1,000 clients for {seconds} s")
    table = bench.report.table(f"1,000 clients for {seconds} s", ["requests/s", "MiB/s", "p50 / p99, ms", "failed", "peak, MiB"],
                               note="Each reads random pieces of 64 KiB of one array, over a connection of its own.")
    with served(bench, dataset) as (server, url):
        told = clients(url, "load", 1000, 64 << 10, seconds)
        peak = peak_bytes(server.pid)
    table.add([told["count"] / told["seconds"], told["bytes"] / MIB / told["seconds"],
               f"{told['p50'] / 1000:.1f} / {told['p99'] / 1000:.1f}", told["failed"], peak / MIB], told=told, peak=peak)
    bench.report.at_most("1,000 clients: requests that failed", told["failed"], 0)
    bench.report.at_most("1,000 clients: peak memory, MiB", peak / MIB, 1024 + workbench.ALLOWANCE_BYTES / MIB)


def peak_bytes(pid):
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))
