"""Reads arrays that `--serve` shows with zarr-python and xarray, and prints a digest of each as JSON.

usage: serve_reader.py TOKEN JOBS
JOBS is a JSON list of jobs: a reader (members, paths, xarray or netcdf), a URL and, for `paths`, the paths of arrays. Runs in the
environment `.venv-serve`, for many URLs at once, because importing the libraries takes seconds.
"""
import hashlib
import json
import sys

import fsspec
import numpy as np


def digest(values):
    return hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()


def zarr_store(url, headers):
    import zarr
    # With a slash at the end, zarr-python would ask for URLs with two slashes.
    return zarr.storage.FsspecStore.from_url(url.rstrip("/"), read_only=True, storage_options={"client_kwargs": {"headers": headers}})


def members(url, headers, _):
    """All arrays that consolidated metadata names: zarr-python does not find the arrays in a group by HTTP otherwise."""
    import zarr
    group = zarr.open_group(zarr_store(url, headers), mode="r")
    return {path: digest(array[...]) for path, array in group.members(max_depth=None) if isinstance(array, zarr.Array)}


def paths(url, headers, names):
    import zarr
    store = zarr_store(url, headers)
    return {name: digest(zarr.open_array(store, path=name, mode="r")[...]) for name in names}


def xarray_variables(url, headers, _):
    import xarray
    options = {"client_kwargs": {"headers": headers}}
    with xarray.open_zarr(url, storage_options=options, consolidated=True, decode_cf=False) as dataset:
        return {name: digest(variable.values) for name, variable in dataset.variables.items()}


def netcdf_variables(url, headers, _):
    import xarray
    # The file is read by ranges, and never downloaded whole.
    files = fsspec.filesystem("http", client_kwargs={"headers": headers})
    with files.open(url, block_size=1 << 14) as file, xarray.open_dataset(file, engine="h5netcdf", decode_cf=False) as dataset:
        return {name: digest(variable.values) for name, variable in dataset.variables.items()}


READERS = {"members": members, "paths": paths, "xarray": xarray_variables, "netcdf": netcdf_variables}

if __name__ == "__main__":
    token, jobs = sys.argv[1:]
    headers = {"Authorization": f"Bearer {token}"}
    print(json.dumps([READERS[kind](url, headers, names) for kind, url, names in json.loads(jobs)]))
