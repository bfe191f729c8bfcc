"""A store of a web server, over links of several lengths: through the mount, and by libraries in processes of their own.

Server, link, readers and the mount share the machine, so that the figures of short links are those of its cores.
"""
import contextlib
import functools
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import time
import zlib
from pathlib import Path

import zarr

import datasets
from support import mounting
import workbench
from datasets import Dataset
from workbench import MIB, median, program, ratio

from support import remote_servers  # of tests, which workbench makes known

ZSTD = zarr.codecs.ZstdCodec(level=1)
STORES = [
    Dataset("plain", "chunks of 1 MiB", "waves", "zstd", (1, 512, 512), compressor=ZSTD),
    Dataset("shards", "the same in shards of 64", "waves", "zstd", (1, 512, 512), (64, 512, 512), compressor=ZSTD),
    Dataset("small", "chunks of 64 KiB", "waves", "zstd", (1, 128, 128), compressor=ZSTD),
]
LATENCIES = (0, 5, 20, 50)
# Requests in flight at once: what the libraries have by default, and what may suit them better.
DEFAULTS = {"tensorstore": 0, "zarr-python": 0, "object_store": 10}
REQUESTS = (10, 32, 64, 128, 256)
READERS, RANDOM_CHUNKS = 64, 1000
FIRST_BYTE_ALLOWANCE = 0.030  # seconds
HEADER_BYTES = 4096  # no .npy here has a longer header


def run(bench):
    each_store(bench, compare)


def run_whole(bench):
    each_store(bench, lambda bench, tables, remote, latency: whole(bench, tables.all, remote, f"{latency} ms, {remote.dataset.label}"))


def each_store(bench, measure):
    data = datasets.Data(bench.data.folder.parent, 64 if bench.quick else 256, bench.say)
    tables = Tables(bench.report)
    folder = bench.folder / "remote"
    folder.mkdir()
    for dataset in STORES:
        workbench.warm(workbench.files_below(data.store(dataset)))
    with remote_servers.nginx(data.folder, folder) as server:
        for latency in bench.options.latency or LATENCIES:
            with link(server.endpoint, latency) as endpoint:
                for dataset in STORES:
                    bench.say(f"remote: {dataset.label}, {latency} ms")
                    measure(bench, tables, Remote(bench, data, dataset, f"{endpoint}/{dataset.name}.zarr"), latency)
                    bench.report.write()


@contextlib.contextmanager
def link(endpoint, latency):
    """The address of the server behind a link with a round trip of `latency` milliseconds. If that is 0, the address of the server itself."""
    if not latency:
        yield endpoint
        return
    port, address = remote_servers.free_port(), endpoint.rpartition(":")[2]
    with subprocess.Popen([workbench.PROGRAMS / "link", str(port), address, str(latency)]) as running:
        try:
            mounting.until(lambda: is_listening(port) or running.poll() is not None, "the link")
            assert running.poll() is None, "the link ended"
            yield f"http://127.0.0.1:{port}"
        finally:
            running.terminate()


def is_listening(port):
    return any(line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A" for line in Path("/proc/net/tcp").read_text().splitlines()[1:])


class Tables:
    def __init__(self, report):
        self.all = report.table(
            "Remote: the whole array", ["link, store", "mount, s", "with --immutable", "tensorstore", "zarr-python", "object_store",
                                        "the best of any number of requests", "best default / mount", "best / mount", "best / mount with --immutable", "CPU, s: mount and `cat`", "tensorstore", "zarr-python", "object_store",
                                        "mount / zarr-python", "requests of the mount", "with --immutable", "allowed in flight at its end"],
            note="Seconds from the opening (or from the first read of a fresh mount) to the last byte: `cat` of the `.npy` through the mount; the libraries "
            f"decode into memory, with the requests in flight that they have by default (object_store: {DEFAULTS['object_store']}). Imports are not counted. "
            "zarr-python reads by obstore. On a web server a mount asks whether objects change while it reads, as no library does; with --immutable it sends the same requests as they. The CPU time of the mount is that of the daemon since its start, and of `cat`.")
        self.some = report.table(
            "Remote: random chunks by 64 readers", ["link, store", "chunks", "mount, s", "tensorstore, 64", "zarr-python", "object_store, 64", "best / mount"],
            note="Files of the chunks view, each opened and read once; by the libraries, the same chunks with 64 in flight.")
        self.first = report.table(
            "Remote: first byte", ["link, store", "mount, ms", "object_store", "tensorstore", "zarr-python", "without imports: tensorstore", "zarr-python",
                                   "mount - 1.1 x best, without imports", "with imports"],
            note="From exec to the first decoded element; for the mount, from exec of zarr-mount through the mount to a read of the `.npy`.")


class Remote:
    """One store behind one link. Each method reads once, and returns what that took."""

    def __init__(self, bench, data, dataset, url):
        self.bench, self.data, self.dataset, self.url = bench, data, dataset, url
        self.bytes, self.crc = data.values(dataset.source).nbytes, data.crc(dataset.source)
        self.spec = data.spec(dataset)
        indices = data.chunk_indices(dataset)
        self.numbers = random.Random(7).sample(range(len(indices)), min(RANDOM_CHUNKS, len(indices)))
        self.chosen = [indices[number] for number in self.numbers]
        self.checked = set()

    def mount(self, *args):
        return self.bench.mount(self.url, *args, cache=None)

    def mounted_all(self, *args):
        with self.mount("--view", "arrays", "--files", "npy", *args) as mounted:
            path = mounted.path / f"{self.dataset.name}.npy"
            before = children_cpu()
            seconds = workbench.timed(["cat", path])
            cpu = children_cpu() - before + sum(workbench.cpu_seconds(mounted.pid))
            told = {"seconds": seconds, "cpu": cpu, "server": mounted.stats().get("server")}
            self.once("mount", lambda: {"bytes": path.stat().st_size - npy_header(path), "crc": crc_from(path, npy_header(path))})
        return told

    def mounted_some(self):
        with self.mount("--view", "chunks") as mounted:
            paths = [f"{mounted.path}/{self.data.chunk_name(self.dataset, indices)}" for indices in self.chosen]
            told = program("reader", "beside", READERS, lines=paths)
            assert told["bytes"] == len(paths) * self.data.chunk_bytes(self.dataset), told
            return {**told, "server": mounted.stats().get("server")}

    def mounted_first(self):
        point = self.bench.folder / f"m{next(self.bench.numbers)}"
        start = time.perf_counter()
        done = subprocess.run([mounting.BINARY, self.url, point, "--view", "arrays", "--files", "npy"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        try:
            with open(point / f"{self.dataset.name}.npy", "rb", buffering=0) as file:
                assert os.pread(file.fileno(), 4, HEADER_BYTES)
            return {"seconds": time.perf_counter() - start}
        finally:
            mounting.ok(mounting.BINARY, "--unmount", point)

    def library(self, name, requests, how, lines=()):
        """The result `exec` is the time from the start of the process to its end, or to its first byte."""
        if name == "object_store":
            command = [workbench.PROGRAMS / "object_store_read", self.url, self.spec, str(requests), how]
        else:
            command = [sys.executable, "-W", "ignore", Path(__file__).with_name("remote_reader.py"), name, self.url, str(requests), how]
        before, start = children_cpu(), time.perf_counter()
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
            running.stdin.write("".join(f"{line}\n" for line in lines).encode())
            running.stdin.close()
            first = running.stdout.readline()
            elapsed = time.perf_counter() - start
            rest = running.stdout.read()
        assert running.returncode == 0, f"{name}, {how}: {running.returncode}"
        told = json.loads(rest or first)
        told.setdefault("cpu", children_cpu() - before)
        if how == "all":
            self.once(name, lambda: told)
        return {**told, "exec": elapsed}

    def some(self, name):
        if name == "object_store":
            return self.library(name, READERS, "some", self.numbers)
        return self.library(name, READERS, "some", [" ".join(map(str, indices)) for indices in self.chosen])

    def first(self, name):
        if name == "object_store":
            return self.library(name, 1, "some", [0])
        return self.library(name, 0, "first")

    def once(self, who, read):
        """Compares the bytes that `who` read with those of the data set, the first time."""
        if who not in self.checked:
            self.checked.add(who)
            told = read()
            assert (told["bytes"], told["crc"]) == (self.bytes, self.crc), f"{self.dataset.label}, {who}: wrong values"


def compare(bench, tables, remote, latency):
    where = f"{latency} ms, {remote.dataset.label}"
    whole(bench, tables.all, remote, where)
    libraries = {name: functools.partial(remote.some, name) for name in DEFAULTS}
    found = bench.alternate({"mount": remote.mounted_some, **libraries})
    to_best = least_ratio(found, libraries)
    tables.some.add([where, len(remote.numbers), *(median(found[n], "seconds") for n in found), to_best], rounds=found, ratio=to_best)
    bench.report.at_least(f"remote, random chunks, {where}: best / mount", to_best, 0.9)
    first_byte(bench, tables.first, remote, where)


def whole(bench, table, remote, where):
    readers = {name: functools.partial(remote.library, name, requests, "all") for name, requests in DEFAULTS.items()}
    others = {f"{name}, {n}": functools.partial(remote.library, name, n, "all") for name in DEFAULTS for n in bench.options.requests or REQUESTS}
    # Every number of requests is tried, and the best of each library goes into the rounds.
    tried = {name: reader()["seconds"] for name, reader in others.items()}
    best = [min((n for n in tried if n.startswith(name)), key=tried.get) for name in DEFAULTS]
    chosen = {name: others[name] for name in best}
    immutable = functools.partial(remote.mounted_all, "--immutable")
    found = bench.alternate({"mount": remote.mounted_all, "immutable": immutable, **readers, **chosen})
    to_default, to_best = least_ratio(found, readers), least_ratio(found, {**readers, **chosen})
    same_requests = least_ratio(found, {**readers, **chosen}, "immutable")
    fastest = min(chosen, key=lambda name: median(found[name], "seconds"))
    cpu = statistics.median(a["cpu"] / b["cpu"] for a, b in zip(found["mount"], found["zarr-python"]))
    server, server_of_immutable = (found[n][-1]["server"] or {} for n in ("mount", "immutable"))
    table.add([where, *(median(found[n], "seconds") for n in ("mount", "immutable", *DEFAULTS)), f"{fastest}: {median(found[fastest], 'seconds'):.2f}",
               to_default, to_best, same_requests, *(median(found[n], "cpu") for n in ("mount", *DEFAULTS)), cpu,
               requests_of(server), requests_of(server_of_immutable), server_of_immutable.get("in_flight_limit")],
              rounds=found, tried=tried, to_default=to_default, to_best=to_best, same_requests=same_requests, cpu=cpu)
    bench.report.at_least(f"remote, whole array, {where}: best default / mount", to_default, 1.0)
    bench.report.at_least(f"remote, whole array, {where}: best of any number of requests / mount", to_best, 0.67)
    bench.report.at_least(f"remote, whole array, {where}: best of any number of requests / mount with --immutable", same_requests, 0.9)
    bench.report.at_most(f"remote, whole array, {where}: CPU, mount / zarr-python with obstore", cpu, 1.3)


def first_byte(bench, table, remote, where):
    libraries = {name: functools.partial(remote.first, name) for name in ("object_store", "tensorstore", "zarr-python")}
    found = bench.alternate({"mount": remote.mounted_first, **libraries})
    mount = median(found["mount"], "seconds")
    imported = {n: median(found[n], "exec") for n in libraries}
    # The program of object_store imports nothing.
    bare = {n: median(found[n], "exec" if n == "object_store" else "seconds") for n in libraries}
    over = {key: mount - 1.1 * min(each.values()) for key, each in (("bare", bare), ("imported", imported))}
    table.add([where, *(1000 * s for s in (mount, *imported.values(), bare["tensorstore"], bare["zarr-python"], over["bare"], over["imported"]))], rounds=found)
    bench.report.at_most(f"remote, first byte, {where}: mount - 1.1 x best without imports, s", over["bare"], FIRST_BYTE_ALLOWANCE)


def least_ratio(found, names, mount="mount"):
    """How many times faster the mount is than the fastest of the others, which is that of the medians."""
    best = min(names, key=lambda name: median(found[name], "seconds"))
    return ratio(found[mount], found[best])


def requests_of(server):
    return sum(server.get(kind, 0) for kind in ("gets", "heads", "lists"))


def children_cpu():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def npy_header(path):
    with open(path, "rb") as file:
        start = file.read(10)
    return 10 + int.from_bytes(start[8:10], "little")


def crc_from(path, offset):
    crc = 0
    with open(path, "rb", buffering=0) as file:
        file.seek(offset)
        while part := file.read(MIB):
            crc = zlib.crc32(part, crc)
    return crc
