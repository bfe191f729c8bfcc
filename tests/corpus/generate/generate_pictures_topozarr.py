"""A pyramid of maps with the GeoZarr conventions by topozarr 0.2 (Python 3.12 or later): each level is a group, with coordinates of its own."""
import numpy as np
import xarray as xr
import xproj  # noqa: F401, which adds the accessor proj
import zarr
from affine import Affine
from pyproj import CRS
from topozarr import create_pyramid

from pictureslib import Store, hills, versions


def main():
    store = Store("topozarr.zarr", versions("topozarr", "xarray", "zarr"), "v3")
    values = hills((96, 128), "f4", 4)
    y, x = 5000000 - 10 * (np.arange(96) + 0.5), 600000 + 10 * (np.arange(128) + 0.5)
    made = xr.Dataset({"height": (("y", "x"), values, {"units": "m"})}, coords={"y": y, "x": x}).proj.assign_crs(spatial_ref="EPSG:32633")
    create_pyramid(made, levels=3, target_chunk_bytes=4096).write(str(store.path))
    levels = [f"{number}/height" for number in range(3)]
    written = zarr.open_group(str(store.path), mode="r")
    assert (written[levels[0]][...] == values).all()
    for number, (path, item) in enumerate(zip(levels, written.attrs["multiscales"]["layout"], strict=True)):
        transform = Affine(*item["spatial:transform"])
        store.raster(path, written[path][...], CRS.from_user_input(written.attrs["proj:code"]), transform.to_gdal(), dims=["y", "x"],
                     units="m", **({} if number else {"levels": levels}))
    store.save()


if __name__ == "__main__":
    main()
