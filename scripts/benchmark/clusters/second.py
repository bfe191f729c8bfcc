"""A second mount, for which a disk cache has everything, beside a mount of the same store in a local directory."""
import shutil
import statistics
import subprocess
from collections import namedtuple

from daemons import seconds_of
from served import MIB, Layout

GIB = 1 / 4
LAYOUTS = {"chunks of 1 MiB": Layout((1, 512, 512), None), "inner chunks of 64 KiB in shards": Layout((1, 128, 128), (64, 512, 512))}
Seen = namedtuple("Seen", "seconds requests")


def run(served, options):
    print(f"\nA second mount with a warm disk cache, the whole `.npy` of {GIB:g} GiB, medians:\n")
    print("| store | mount | s | speed, of the local directory's | requests |\n|---|---|---|---|---|")
    with served() as served:
        for label, layout in LAYOUTS.items():
            store = served.store(GIB, layout)
            cache = served.work / "second"
            kept = ["--disk-cache", cache]
            mounts = {
                "local directory": (store, []),
                "disk cache, `--immutable`": (served.url(store), [*kept, "--immutable"]),
                "disk cache": (served.url(store), kept),
            }
            # This fills the cache, and the page cache of the system.
            first = values(served, *mounts["disk cache"])
            assert all(values(served, *mount) == first for mount in mounts.values()), "wrong values"
            seen = {name: [] for name in mounts}
            for number in range(options.rounds or 7):
                for name in rotated(list(mounts), number):
                    seen[name].append(read(served, *mounts[name]))
            local = seen["local directory"]
            for name, rows in seen.items():
                ratio = statistics.median(theirs.seconds / ours.seconds for ours, theirs in zip(rows, local))
                seconds = statistics.median(row.seconds for row in rows)
                print(f"| {label} | {name} | {seconds:.2f} | {ratio:.2f} | {rows[-1].requests} |", flush=True)
            shutil.rmtree(cache)
    print("\nAt least 0.8 is wanted.\n", flush=True)


def rotated(names, number):
    return names[number % len(names):] + names[:number % len(names)]


def read(served, store, options):
    served.sent()
    with served.mounted(store, *options) as point:
        seconds = seconds_of([["cat", point / "t.npy"]])
    return Seen(seconds, served.sent().requests)


def values(served, store, options):
    """A checksum of all values."""
    with served.mounted(store, *options) as point:
        done = subprocess.run(["sha256sum", point / "t.npy"], stdout=subprocess.PIPE, check=True)
    return done.stdout.split()[0]
