"""Reads an array of a mount on a Dask cluster of four processes, and prints what it found as JSON.

    python dask_reader.py STORE ARRAY MOUNTPOINT
"""
import json
import os
import subprocess
import sys

import dask
import numpy as np
from distributed import Client, LocalCluster

from zarr_mount.dask import MountPlugin, from_npy


def mounts_of_this_user():
    return subprocess.run(["zarr-mount", "--list", "--quiet"], check=True, capture_output=True, text=True).stdout.splitlines()


def main(store, name, mountpoint):
    dask.config.set({"distributed.comm.timeouts.connect": "120s"})
    path = f"{mountpoint}/{name}.npy"
    with LocalCluster(n_workers=4, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        plugin = MountPlugin(store, mountpoint, files=["npy"], immutable=True)
        client.register_plugin(plugin)
        seen = client.run(lambda: (os.getpid(), sorted(os.listdir(mountpoint))))
        array = from_npy(client, path, chunks=(16, 48, 40))
        mean = array.mean(axis=0).compute()
        columns = array.rechunk((array.shape[0], 16, 40)).map_blocks(np.cumsum, axis=0, dtype="f8").compute()
        # The first blocks are not contiguous in the file; the others are of a file that shows a part of the array.
        pillars = from_npy(client, path, chunks=(-1, 16, 25)).compute()
        plane = from_npy(client, f"{mountpoint}/{name}@3.npy", chunks=(20, -1)).compute()
        rows = array.rechunk((5, -1, -1))
        blocks = [rows.blocks[number].compute().shape[0] for number in (0, rows.numblocks[0] - 1)]
        n_mounts = mounts_of_this_user().count(mountpoint)
        # The workers that are left keep the mount that they shared with the closed one.
        client.retire_workers([next(iter(client.scheduler_info()["workers"]))])
        after_one = mounts_of_this_user().count(mountpoint)
        again = float(from_npy(client, path).sum().compute())
        client.unregister_worker_plugin(plugin.name)
        np.savez(os.environ["RESULT"], mean=mean, columns=columns, pillars=pillars, plane=plane)
    print(json.dumps({
        "workers": len(seen), "names": sorted({name for _, names in seen.values() for name in names}), "blocks": blocks,
        "mounts": [n_mounts, after_one, mounts_of_this_user().count(mountpoint)], "sum": again,
    }))


if __name__ == "__main__":
    main(*sys.argv[1:])
