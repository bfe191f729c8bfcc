"""Runs in .venv-heavy: xarray writes a climate-like store, or reports the contents of one. usage: array_xarray.py write|tell PATH [FORMAT]"""
import json
import sys
import warnings

import numpy as np
import xarray


def write(path, zarr_format):
    """Two years of monthly fields, packed to int16; time as CF has it, some values missing."""
    dice = np.random.default_rng(5)
    times = np.arange("2001-01", "2003-01", dtype="datetime64[M]").astype("datetime64[ns]")
    values = 280 + 15 * dice.standard_normal((24, 19, 36)).cumsum(0) / 5
    values[dice.random(values.shape) < 0.03] = np.nan
    data = xarray.Dataset(
        {"t2m": (("time", "lat", "lon"), values, {"units": "K", "long_name": "2 metre temperature"}),
         "height": (("lat", "lon"), dice.standard_normal((19, 36)).astype("f4") * 1000, {"units": "m"})},
        {"time": times, "lat": ("lat", np.linspace(-90, 90, 19), {"units": "degrees_north", "standard_name": "latitude"}),
         "lon": ("lon", np.arange(0, 360, 10.0), {"units": "degrees_east", "standard_name": "longitude"})},
        {"Conventions": "CF-1.8", "institution": "nobody"})
    packing = {"dtype": "int16", "scale_factor": 0.01, "add_offset": 280.0, "_FillValue": -32767}
    encoding = {"t2m": packing | {"chunks": (5, 8, 20)}, "time": {"units": "hours since 1990-01-01", "dtype": "int32"}}
    data.to_zarr(path, mode="w", zarr_format=int(zarr_format), encoding=encoding, consolidated=False)


def tell(path):
    """Statistics, decoded, of a Zarr store or a NetCDF file."""
    zarr = not path.endswith((".nc", ".h5"))
    with (xarray.open_zarr(path, consolidated=False) if zarr else xarray.open_dataset(path, engine="netcdf4")) as data:
        t2m = data.t2m
        print(json.dumps({
            "dtype": str(t2m.dtype), "sizes": dict(t2m.sizes), "units": t2m.attrs["units"],
            "times": [str(t) for t in data.time.values], "missing": int(t2m.isnull().sum()),
            "mean": float(t2m.mean()), "min": t2m.min(("lat", "lon")).values.tolist(), "max": t2m.max(("lat", "lon")).values.tolist(),
            "by_latitude": t2m.mean(("time", "lon")).values.tolist(), "by_time": t2m.mean("time").values.ravel().tolist(),
            "height": float(data.height.astype("f8").sum()), "values": t2m.fillna(-1).values.ravel().tolist(),
            "attributes": {k: v for k, v in data.attrs.items()}}))


warnings.simplefilter("ignore")
{"write": write, "tell": tell}[sys.argv[1]](*sys.argv[2:])
