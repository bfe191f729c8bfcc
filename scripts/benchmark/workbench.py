"""Helpers of all sections: paths, programs, mounts, and rounds that alternate between what is compared."""
import contextlib
import dataclasses
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT / "tests"))
from support import mounting  # noqa: E402

PROGRAMS = CHECKOUT / "target" / "benches" / "release"
MIB = 1 << 20
ALLOWANCE_BYTES = 64 * MIB  # what the daemon may use beside its cache


def program(name, *args, lines=()):
    """Runs one of the programs of benches/ and returns the results that it prints."""
    command = [str(PROGRAMS / name), *map(str, args)]
    done = subprocess.run(command, input="".join(f"{line}\n" for line in lines), capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{name} {' '.join(map(str, args))[:300]}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def timed(command):
    """Seconds that a command takes, its output thrown away."""
    start = time.perf_counter()
    subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


@dataclasses.dataclass(frozen=True)
class Build:
    """A program that mounts, and options that it gets each time."""
    binary: Path
    options: tuple = ()


class Bench:
    """One run of the benchmark: its options, its folder, and functions that mount."""

    def __init__(self, options, folder, data, report):
        self.options, self.folder, self.data, self.report = options, folder, data, report
        self.rounds, self.quick = options.rounds, options.quick
        self.numbers = itertools.count()
        self.peaks = []

    def say(self, text):
        print(f"-- {text}", file=sys.stderr, flush=True)

    @contextlib.contextmanager
    def mount(self, store, *args, cache="1GiB", build=None):
        """A fresh mount by this build, or by another `build`. If `cache` is None, the cache has its default size. For this build, the peak memory is noted at the end."""
        binary, options = (build.binary, build.options) if build else (mounting.BINARY, ())
        point = self.folder / f"m{next(self.numbers)}"
        log = point.with_suffix(".log")
        start = time.perf_counter()
        mounted = mounting.Mount(store, point, *(["--cache-size", cache] if cache else []), *args, *options, log=log, binary=binary)
        mounted.mount_seconds = time.perf_counter() - start
        try:
            yield mounted
            if build is None:
                self.note_peak(mounted, store)
        except BaseException:
            mounting.force_away(point)
            raise
        mounted.unmount()

    def note_peak(self, mounted, store):
        peak, budget = mounted.peak_bytes(), mounted.stats()["cache"]["budget_bytes"]
        self.peaks.append((peak - budget - ALLOWANCE_BYTES, Path(store).name, peak, budget))

    @contextlib.contextmanager
    def floor(self, *directories, no_open=False, write=False):
        """A FUSE file system that does as little as possible: files in memory, `name:count:bytes` for each directory. Written bytes are dropped."""
        point = self.folder / f"f{next(self.numbers)}"
        point.mkdir()
        flags = [flag for flag, is_set in (("--no-open", no_open), ("--write", write)) if is_set]
        server = subprocess.Popen([PROGRAMS / "fuse_floor", point, *flags, *directories])
        try:
            mounting.until(lambda: mounting.mount_entry(point) or server.poll() is not None, "the floor's mount")
            os.listdir(point)
            time.sleep(0.05)  # read-ahead is set right after the mount answers
            yield point
        finally:
            mounting.force_away(point)
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:
                server.kill()

    def alternate(self, readers, times=1):
        """Runs every reader once a round (`times` as many rounds), each in another order. Name -> results of all rounds."""
        names = list(readers)
        found = {name: [] for name in names}
        for turn in range(self.rounds * times):
            for name in names[turn % len(names):] + names[:turn % len(names)]:
                found[name].append(readers[name]())
        return found


def cpu_seconds(pid):
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    tick = os.sysconf("SC_CLK_TCK")
    return int(fields[11]) / tick, int(fields[12]) / tick


def resident_bytes(pid):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


def median(results, key):
    return statistics.median(result[key] for result in results)


def ratio(ours, theirs, key="seconds"):
    """Median over the rounds of how many times faster ours is: both were measured in the same round."""
    return statistics.median(b[key] / a[key] for a, b in zip(ours, theirs))


def warm(paths):
    """Reads files so that the page cache holds them."""
    for path in paths:
        with open(path, "rb", buffering=0) as file:
            while file.read(MIB):
                pass


def files_below(folder):
    return [Path(base, name) for base, _, names in os.walk(folder) for name in names]
