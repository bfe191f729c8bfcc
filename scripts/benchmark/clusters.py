"""Many readers of one server: daemons with and without a disk cache, and Dask beside xarray with obstore. See `scripts/clusters`."""
import argparse
import os
import shutil
import subprocess
import tempfile
import time
from collections import namedtuple
from contextlib import contextmanager
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import xarray as xr
import zarr
from distributed import Client, LocalCluster
from obstore.store import HTTPStore
from support import remote_servers
from zarr.storage import ObjectStore

from zarr_mount.dask import MountPlugin, from_npy

BINARY = os.environ["ZARR_MOUNT_BINARY"]
Seen = namedtuple("Seen", "seconds requests mebibytes")


def make(path, gib):
    """A store of float32 in chunks of 4 MiB (zstd), which compress to about two thirds."""
    if path.exists():
        return
    rows = int(gib * 256)
    group = zarr.create_group(path)
    array = group.create_array("t", shape=(rows, 1024, 1024), chunks=(4, 512, 512), dtype="f4", dimension_names=["time", "y", "x"])
    rng = np.random.default_rng(1)
    base = np.cumsum(rng.normal(size=(1024, 1024)).astype("f4"), axis=1)
    for first in range(0, rows, 64):
        steps = np.arange(first, min(first + 64, rows), dtype="f4")[:, None, None]
        array[first:first + len(steps)] = np.round(base + 0.1 * steps, 1)
    zarr.consolidate_metadata(path)


class Log:
    """What nginx has answered since the last look."""

    def __init__(self, path):
        self.path, self.position = path, 0

    def new(self):
        text = self.path.read_bytes()[self.position:]
        self.position += len(text)
        lines = text.decode().splitlines()
        return len(lines), sum(int(line.split()[9]) for line in lines) / 2**20


@contextmanager
def mounted(url, point, *options):
    point.mkdir()
    subprocess.run([BINARY, "--immutable", "--files", "npy", *options, url, point], check=True)
    try:
        yield point / "t.npy"
    finally:
        subprocess.run([BINARY, "--unmount", point], check=True)
        point.rmdir()


def daemons(url, log, work, count, caches):
    """Reads the whole array by `count` daemons at once. `caches` names the disk cache of each, or is empty."""
    log.new()
    options = [["--disk-cache", cache] for cache in caches] or [[]] * count
    begun = time.perf_counter()

    def read(number):
        if number == count:
            readers = [subprocess.Popen(["cat", path], stdout=subprocess.DEVNULL) for path in paths]
            assert not any(reader.wait() for reader in readers)
            return time.perf_counter() - begun
        with mounted(url, work / f"m{number}", "--cache-size", "256M", *options[number]) as path:
            paths.append(path)
            return read(number + 1)

    paths = []
    seconds = read(0)
    return Seen(seconds, *log.new())


def of_daemons(url, log, work):
    print("| daemons | disk cache | s | requests | MiB sent |\n|---|---|---|---|---|")
    has_cache = "--disk-cache" in subprocess.run([BINARY, "--help"], capture_output=True, text=True, check=True).stdout
    for count, kind in [(1, "none"), (8, "none"), (1, "its own"), (8, "one each"), (8, "one, shared"), (8, "the same, warm")]:
        if kind != "none" and not has_cache:
            continue
        names = [f"{kind}-{count}-{number}" for number in range(count)] if kind in ("its own", "one each") else ["shared"] * count
        caches = [] if kind == "none" else [work / name.replace(" ", "-") for name in names]
        seen = daemons(url, log, work, count, caches)
        print(f"| {count} | {kind} | {seen.seconds:.1f} | {seen.requests} | {seen.mebibytes:.0f} |", flush=True)
        if kind in ("its own", "one each"):
            for cache in caches:
                shutil.rmtree(cache)


def results(array):
    """The mean of all elements, and a sum over blocks of another shape, which other workers read."""
    columns = array.rechunk((-1, 128, 128))
    return dask.compute(array.mean(dtype="f8"), columns.max(axis=0).sum(dtype="f8"))


def of_dask(url, log, work, rounds):
    with LocalCluster(n_workers=4, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:

        def by_mount():
            plugin = MountPlugin(url, work / "dask", files=["npy"], immutable=True, cache_size="512M")
            client.register_plugin(plugin)
            found = results(from_npy(client, work / "dask" / "t.npy", chunks=(32, -1, -1)))
            client.unregister_worker_plugin(plugin.name)
            return found

        def by_xarray():
            store = ObjectStore(HTTPStore.from_url(url, client_options={"allow_http": True}), read_only=True)
            data = xr.open_zarr(store, consolidated=True, chunks={"time": 32})["t"].data
            return results(data)

        readers = {"mount": by_mount, "xarray + obstore": by_xarray}
        seen = {name: [] for name in readers}
        values = {}
        for _ in range(rounds):
            for name, read in readers.items():
                log.new()
                begun = time.perf_counter()
                values[name] = read()
                seen[name].append(Seen(time.perf_counter() - begun, *log.new()))
        # Blocks are added in the order in which they come.
        np.testing.assert_allclose(values["mount"], values["xarray + obstore"], rtol=1e-12)
    print("\n| Dask, 4 processes | s, each round | requests | MiB sent |\n|---|---|---|---|")
    for name, rows in seen.items():
        last = rows[-1]
        print(f"| {name} | {', '.join(f'{row.seconds:.1f}' for row in rows)} | {last.requests} | {last.mebibytes:.0f} |")
    best = {name: min(row.seconds for row in rows) for name, rows in seen.items()}
    print(f"\nThe values are equal. Speed of the mount: {best['xarray + obstore'] / best['mount']:.2f} of xarray + obstore.")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gib", type=float, default=4)
    parser.add_argument("--only", choices=["daemons", "dask"])
    parser.add_argument("--data", type=Path, help="a directory in which the store stays")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="zarr-mount-clusters-") as work:
        work = Path(work)
        os.environ["PATH"] = f"{work}:{os.environ['PATH']}"
        (work / "zarr-mount").symlink_to(BINARY)
        root = arguments.data or work / "data"
        make(root / f"{arguments.gib:g}.zarr", arguments.gib)
        with remote_servers.nginx(root, work) as server:
            log, url = Log(work / "nginx-access.log"), server.url(f"{arguments.gib:g}.zarr")
            if arguments.only != "dask":
                of_daemons(url, log, work)
            if arguments.only != "daemons":
                of_dask(url, log, work, arguments.rounds)


if __name__ == "__main__":
    main()
