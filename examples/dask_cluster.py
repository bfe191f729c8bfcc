"""Computes the mean of an array of a Zarr store on a Dask cluster whose workers read the file of a mount.

    python dask_cluster.py demo: air/temperature                                   # four processes on this machine
    python dask_cluster.py s3://bucket/data.zarr temperature tcp://scheduler:8786   # a cluster that runs

Each machine mounts the store once, at the same path. Its workers share the mount, and its cache. All machines need the same packages, for example by
`pip install zarr_mount-*.whl "dask[array]" distributed`.
"""
import argparse
import contextlib
import os
import tempfile

import dask.array as da
from distributed import Client, LocalCluster

from zarr_mount.dask import MountPlugin, from_npy


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("store")
    parser.add_argument("array", help="the path of the array in the store")
    parser.add_argument("scheduler", nargs="?", help="the address of a cluster [default: one of this machine]")
    parser.add_argument("--mountpoint", default=os.path.join(tempfile.gettempdir(), f"zarr-mount-dask-{os.getuid()}"))
    parser.add_argument("--cache-size", default="2G", help="memory of the mount of each machine")
    arguments = parser.parse_args()

    with contextlib.ExitStack() as stack:
        cluster = arguments.scheduler or stack.enter_context(LocalCluster(n_workers=4, threads_per_worker=1, dashboard_address=None))
        client = stack.enter_context(Client(cluster))
        store = MountPlugin(arguments.store, arguments.mountpoint, files=["npy"], immutable=True, cache_size=arguments.cache_size)
        client.register_plugin(store)
        array = from_npy(client, f"{arguments.mountpoint}/{arguments.array}.npy", chunks="128 MiB")
        mean = da.nanmean(array, dtype="f8").compute()
        print(f"{array.shape} {array.dtype} in {array.npartitions} blocks: mean {mean:.6g}")
        client.unregister_worker_plugin(store.name)


if __name__ == "__main__":
    main()
