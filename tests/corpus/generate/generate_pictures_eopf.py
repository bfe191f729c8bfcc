"""A product of Sentinel-2 with few and small bands by eopf 2.8.1 (over zarr 2.18), with the names and attributes that ESA's products have."""
import dask.array
import numpy as np
import xarray as xr
import zarr
from affine import Affine
from eopf import EOGroup, EOProduct, EOVariable
from eopf.common.constants import OpeningMode
from eopf.store.zarr import EOZarrStore
from pyproj import CRS

from pictureslib import OUT, Store, digest, hills, versions

UTM = CRS.from_epsg(32632)
BANDS = {"r10m": (10, 96, {"b02": 492.7, "b03": 559.8, "b04": 664.6}), "r20m": (20, 48, {"b02": 492.7, "b11": 1613.7})}
PACKING = {"add_offset": -0.1, "scale_factor": 0.0001}


def variable(values, step, dims, attributes):
    """A variable with the centres of its pixels, which EOPF has as integers, and attributes of STAC's extension proj."""
    transform = Affine(step, 0, 699960, 0, -step, 4700040)
    size = values.shape[-1]
    along = np.arange(size) * step + step // 2
    coords = {"y": 4700040 - along, "x": 699960 + along}
    if "band" in dims:
        coords["band"] = np.arange(1, 4)
    chunked = dask.array.from_array(values, chunks=(1,) * (values.ndim - 2) + (48, 48))
    where = {"proj:bbox": [699960.0, 4700040.0 - step * size, 699960.0 + step * size, 4700040.0], "proj:epsg": 32632,
             "proj:shape": [size, size], "proj:transform": list(transform), "proj:wkt2": UTM.to_wkt("WKT1_GDAL")}
    return EOVariable(data=xr.DataArray(chunked, dims=dims, coords=coords, attrs={**attributes, **where})), transform


def main():
    store = Store("S2A_MSIL2A_TEST.zarr", versions("eopf", "zarr"), "v2")
    product = EOProduct("S2A_MSIL2A_TEST")
    product.attrs["stac_discovery"] = {"type": "Feature", "id": "S2A_MSIL2A_TEST", "properties": {"platform": "sentinel-2a"}}
    for group in ["measurements", "measurements/reflectance", "quality", "quality/l2a_quicklook", "quality/l2a_quicklook/r10m"]:
        product[group] = EOGroup()
    for folder, (step, size, names) in BANDS.items():
        product[f"measurements/reflectance/{folder}"] = EOGroup()
        for number, (name, wavelength) in enumerate(names.items()):
            said = {"long_name": f"BOA reflectance from MSI acquisition at spectral band {name} {wavelength} nm", "units": "digital_counts"}
            values = hills((size, size), "u2", number)
            path = f"measurements/reflectance/{folder}/{name}"
            product[path], transform = variable(values, step, ("y", "x"), {**PACKING, **said, "valid_min": 1, "valid_max": 65535})
            store.raster(path, values, UTM, transform.to_gdal(), dims=["y", "x"], nodata=None, **PACKING, **said)
    colours, path = hills((3, 96, 96), "u1", 9), "quality/l2a_quicklook/r10m/tci"
    product[path], transform = variable(colours, 10, ("band", "y", "x"), {"long_name": "TCI: True Color Image"})
    store.raster(path, colours, UTM, transform.to_gdal(), dims=["band", "y", "x"], nodata=None, long_name="TCI: True Color Image")
    writer = EOZarrStore(str(OUT))
    writer.open(OpeningMode.CREATE_OVERWRITE)
    writer["S2A_MSIL2A_TEST"] = product
    writer.close()
    written = zarr.open_group(str(store.path), mode="r")
    for path, expected in store.entry["arrays"].items():
        assert digest(written[path][...]) == expected["sha256"], path
    store.save()


if __name__ == "__main__":
    main()
