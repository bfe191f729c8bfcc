"""Runs in .venv-arrays: xarray and zarr-python change a data set through a mount. usage: writing_xarray.py WAY STORE MOUNTPOINT FORMAT SHARDS

The data set is in STORE before the change, and is compared there after it. SHARDS is 1 if it has shards.
"""
import os
import sys
import warnings
from pathlib import Path

import numpy as np
import xarray
import zarr

warnings.filterwarnings("ignore")
DICE = np.random.default_rng(3)
START = np.datetime64("2020-01-01", "ns")


def days(first, count):
    """Fields of some days. Those of the first days come with two fields without a time axis."""
    times = START + np.arange(first, first + count) * np.timedelta64(1, "D")
    made = xarray.Dataset(
        {"temperature": (("time", "lat", "lon"), DICE.random((count, 20, 30)).astype("f4"), {"units": "K"})},
        {"time": times, "lat": np.linspace(-10, 10, 20), "lon": np.arange(30.0)})
    if first == 0:
        made["height"] = ("lat", "lon"), DICE.integers(0, 99, (20, 30)).astype("i2")
        made["station"] = "lat", np.array([f"station {i}" for i in range(20)])
    return made


def write(path, zarr_format, shards):
    encoding = {"temperature": {"chunks": (2, 10, 15)}, "height": {"chunks": (10, 15)}}
    if shards:
        encoding = {"temperature": {"chunks": (1, 5, 15), "shards": (2, 10, 30)}, "height": {"chunks": (5, 15), "shards": (10, 15)}}
    data = days(0, 6)
    data.to_zarr(path, mode="w", zarr_format=zarr_format, encoding=encoding)
    return data


def create(_store, shown, zarr_format, shards):
    return write(shown, zarr_format, shards)


def append(store, shown, zarr_format, shards):
    data, more = write(store, zarr_format, shards), days(6, 5)
    more.to_zarr(shown, append_dim="time")
    return xarray.concat([data[["temperature"]], more[["temperature"]]], "time")


def region(store, shown, zarr_format, shards):
    data = write(store, zarr_format, shards).load()
    data["temperature"][2:4] *= 2
    part = data[["temperature"]].isel(time=slice(2, 4)).drop_vars(["lat", "lon"])
    part.to_zarr(shown, region={"time": slice(2, 4)})
    return data


def edit(store, shown, zarr_format, shards):
    """Changes a box across chunks, a chunk that becomes fill values, a string, and an attribute."""
    data = write(store, zarr_format, shards).load()
    group = zarr.open_group(shown, mode="r+")
    array, values, box = group["temperature"], data["temperature"].values, np.s_[1:5, 3:17, 4:29]
    values[box] = DICE.random(values[box].shape)
    array[box] = values[box]
    values[0] = array[0] = 0
    group["station"][3] = "another"
    names = data["station"].values.astype(object)
    names[3] = "another"
    data["station"] = "lat", names
    array.attrs["note"] = data["temperature"].attrs["note"] = "edited"
    return data


def compare(store, wanted):
    found = xarray.open_zarr(store, consolidated=False).load()
    for name, variable in wanted.data_vars.items():
        assert np.array_equal(found[name].values, variable.values), name
        assert found[name].attrs == variable.attrs, (found[name].attrs, variable.attrs)


if __name__ == "__main__":
    way, folder, mountpoint, version, with_shards = sys.argv[1:]
    places = [Path(root, "weather.zarr") for root in (folder, mountpoint)]
    changed = {"create": create, "append": append, "region": region, "edit": edit}[way](*places, int(version), with_shards == "1")
    with open(f"{mountpoint}/.zarr-mount/sync") as everything:
        os.fsync(everything)
    compare(places[0], changed)
