"""The costs of a chunk of 16 KiB for the daemon: processor time, switches between threads, and by `perf` the time of each function."""
import collections
import contextlib
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import random_reads
from datasets import NAMED
from support import rings
from workbench import files_below, median, program, warm

DATASET = NAMED["tiny"]
VIEWS = {"raw": "one file, .raw", "chunks": "chunk files, each opened, read and closed"}
LEAST_US = 0.3  # functions that take less are left out
SHOWN = 60
NOTE = ("µs for each chunk, of all threads of the daemon together. `self` leaves out the functions that it calls. A function is in the kernel, "
        "or in the program, where a thread waits or runs; inlined functions count as their callers.")


def run(bench):
    transports = ["device"] + (["ring"] if rings.is_there() else [])
    store = bench.data.store(DATASET)
    warm(files_below(store))
    table = bench.report.table("What a chunk of 16 KiB costs the daemon", ["what", "transport", "processor, µs", "switches of threads", "time, µs"],
                               note="For each chunk, the median over the rounds, of a daemon that was just mounted.")
    costs = {}
    for view, label in VIEWS.items():
        found = bench.alternate({way: lambda w=way, v=view: read(bench, store, v, w) for way in transports})
        for way in transports:
            figures = [median(found[way], key) for key in ("processor", "switches", "microseconds")]
            costs[view, way] = figures[0]
            table.add([label, way, *figures], rounds=found[way])
    if shutil.which("perf") is None:
        bench.say("functions: left out, because perf is missing")
        return
    for (view, way), cost in costs.items():
        functions(bench, store, view, way, cost)


def read(bench, store, view, transport, record=None):
    """Reads the whole array once, through a daemon that was just mounted. Returns what each chunk cost it. Writes the call stacks to `record`."""
    n_chunks = bench.data.values(DATASET.source).nbytes // bench.data.chunk_bytes(DATASET)
    arguments = [*random_reads.mount_args(view), "--transport", transport]
    with contextlib.ExitStack() as until_end:
        with rings.switched("Y") if transport == "ring" else contextlib.nullcontext():
            mounted = until_end.enter_context(bench.mount(store, *arguments))
        if record:
            until_end.enter_context(recorded(record))
        before = spent(mounted.pid)
        told = program("reader", *(("file", mounted.path / f"{DATASET.name}.raw") if view == "raw" else ("tree", mounted.path)))
        processor, switches = (after - first for after, first in zip(spent(mounted.pid), before))
        return {"pid": mounted.pid, "processor": processor / n_chunks, "switches": switches / n_chunks,
                "microseconds": told["seconds"] * 1e6 / n_chunks}


def spent(pid):
    """Processor time of all threads of a process so far, in µs, and how often they waited."""
    nanoseconds = waits = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # of a thread that ends now
            nanoseconds += int((task / "schedstat").read_text().split()[0])
            waits += int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", (task / "status").read_text(), re.MULTILINE)[1])
    return nanoseconds / 1000, waits


@contextlib.contextmanager
def recorded(path):
    """Has `perf` record the call stacks of all processes, because those of one process would lack the threads that it starts later."""
    command = ["perf", "record", "-q", "-a", "-e", "cpu-clock", "-F", "2000", "--call-graph", "dwarf,8192", "-o", path]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as recorder:
        try:
            time.sleep(1)  # until it has begun
            yield
        finally:
            recorder.send_signal(signal.SIGINT)


def functions(bench, store, view, transport, cost):
    path = bench.folder / f"perf-{view}-{transport}"
    pid = read(bench, store, view, transport, path)["pid"]
    command = ["perf", "script", "--no-inline", "-i", path, "--pid", str(pid), "-F", "comm,ip,sym"]
    script = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    path.unlink()
    total, own, stacks = collections.Counter(), collections.Counter(), 0
    for record in script.split("\n\n"):
        # The innermost function comes first.
        frames = [frame(line) for line in record.splitlines()[1:] if line.strip()]
        if frames:
            stacks += 1
            own[frames[0]] += 1
            total.update(set(frames))
    table = bench.report.table(f"Functions: {VIEWS[view]}, {transport}", ["function", "in", "all", "self"], note=NOTE)
    for (name, where), count in total.most_common(SHOWN):
        if name != "[unknown]" and count * cost / stacks >= LEAST_US:
            table.add([f"`{name}`", where, count * cost / stacks, own[name, where] * cost / stacks])


def frame(line):
    """The name of the function in a line of `perf script`, and whether it is in the kernel."""
    address, _, name = line.strip().partition(" ")
    name = re.sub(r"::h[0-9a-f]{16}$", "", re.sub(r"\+0x[0-9a-f]+$", "", name))
    return name, "kernel" if int(address, 16) >> 63 else "program"
