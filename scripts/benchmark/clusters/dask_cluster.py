"""Mean and rechunk of an array by Dask with four worker processes: on the `.npy` of a mount, and by xarray with obstore."""
import json
import logging
import os
import statistics
import time
from collections import namedtuple
from contextlib import contextmanager

import numpy as np
import xarray as xr
from distributed import Client, LocalCluster
from obstore.store import HTTPStore
from served import cpu_seconds
from zarr.storage import ObjectStore

from zarr_mount.dask import MountPlugin, from_npy

# Blocks of 128 MiB, whose edges are edges of chunks.
ROWS = 32
Seen = namedtuple("Seen", "seconds cpu requests mebibytes")


def mean(array):
    return array.mean(dtype="f8").compute()


def rechunked(array):
    """The mean over time of columns, each of which is one block. All readers add the same values in the same order, so the means are equal."""
    return array.rechunk((-1, 128, 128)).mean(axis=0, dtype="f8").compute()


class ByMount:
    name = "`.npy` of a mount"

    def __init__(self, client, url, point):
        self.client, self.point = client, point
        self.plugin = MountPlugin(url, point, files=["npy"], immutable=True, cache_size="1G")

    @contextmanager
    def opened(self):
        self.client.register_plugin(self.plugin)
        try:
            yield from_npy(self.client, self.point / "t.npy", chunks=(ROWS, -1, -1))
        finally:
            self.client.unregister_worker_plugin(self.plugin.name)

    def cpu(self):
        """CPU time of the mount since it began."""
        return cpu_seconds(json.loads((self.point / ".zarr-mount" / "stats.json").read_bytes())["pid"])


class ByXarray:
    name = "xarray with zarr-python and obstore"

    def __init__(self, url):
        self.url = url

    @contextmanager
    def opened(self):
        store = ObjectStore(HTTPStore.from_url(self.url, client_options={"allow_http": True}), read_only=True)
        yield xr.open_zarr(store, consolidated=True, chunks={"time": ROWS})["t"].data

    def cpu(self):
        return 0


def measure(reader, compute, served, pids):
    """Seconds from the opening to the result, CPU time of the workers and of the mount, and what the server sent."""
    served.sent()
    before = sum(map(cpu_seconds, pids))
    begun = time.perf_counter()
    with reader.opened() as array:
        found = compute(array)
        seconds = time.perf_counter() - begun
        cpu = sum(map(cpu_seconds, pids)) - before + reader.cpu()
    return found, Seen(seconds, cpu, *served.sent())


def run(served, options):
    logging.getLogger("distributed.shuffle").setLevel(logging.ERROR)
    with served() as served, \
            LocalCluster(n_workers=4, threads_per_worker=1, dashboard_address=None, local_directory=served.work) as cluster, \
            Client(cluster) as client:
        pids = list(client.run(os.getpid).values())
        point = served.work / "dask"
        small, store = served.store(1 / 16), served.store(options.gib)
        seen = {}
        # The small store makes all workers import what they need.
        for number, path in enumerate([small] + [store] * (options.rounds or 3)):
            readers = [ByMount(client, served.url(path), point), ByXarray(served.url(path))]
            for compute in (mean, rechunked):
                values = []
                for reader in readers[::-1] if number % 2 else readers:
                    found, row = measure(reader, compute, served, pids)
                    values.append(found)
                    if number:
                        seen.setdefault((compute.__name__, reader.name), []).append(row)
                if compute is mean:
                    # Blocks are added in the order in which they come.
                    np.testing.assert_allclose(*values, rtol=1e-12)
                else:
                    np.testing.assert_array_equal(*values)
    show(seen, options.gib)


def show(seen, gib):
    print(f"\nDask, four processes, {gib:g} GiB: the values are equal.\n")
    print("| | reader | s, each round | CPU, s | requests | MiB sent |\n|---|---|---|---|---|---|")
    for (what, name), rows in seen.items():
        times = ", ".join(f"{row.seconds:.1f}" for row in rows)
        last = rows[-1]
        print(f"| {what} | {name} | {times} | {statistics.median(row.cpu for row in rows):.1f} | {last.requests} | {last.mebibytes:.0f} |")
    for what in ("mean", "rechunked"):
        mount, xarray = seen[what, ByMount.name], seen[what, ByXarray.name]
        ratios = [statistics.median(getattr(theirs, key) / getattr(ours, key) for ours, theirs in zip(mount, xarray)) for key in ("seconds", "cpu")]
        print(f"\n{what}: xarray / mount {ratios[0]:.2f} in time (median of the rounds; at least 0.9 is wanted), {ratios[1]:.2f} in CPU time.")
    print(flush=True)
