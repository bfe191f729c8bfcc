"""Rasters with coordinate systems by rioxarray 0.19, odc-geo 0.5.3, GDAL 3.6 (of Debian) and 3.10 (of rasterio 1.4), xarray 2026.9 and zarr 3.1.

Each expectation is what the library that wrote a store reads from it.
"""
import json
import subprocess
import tempfile

import numpy as np
import odc.geo.xr  # noqa: F401, which adds the accessor odc
import rasterio
import rioxarray  # noqa: F401, which adds the accessor rio
import xarray as xr
import zarr
from affine import Affine
from odc.geo.geobox import GeoBox
from pyproj import CRS

from pictureslib import OUT, Store, halved, hills, versions

# A projection that no authority has a code for.
ISLAND = CRS.from_proj4("+proj=laea +lat_0=47.5 +lon_0=11.25 +x_0=1000 +y_0=2000 +ellps=GRS80 +units=m +no_defs")
UTM = Affine(30, 0, 500000, 0, -30, 5200000)


def centres(transform, height, width):
    return (transform.f + (np.arange(height) + 0.5) * transform.e, transform.c + (np.arange(width) + 0.5) * transform.a)


def dataset(values, dims, crs, transform, attributes, nodata=None, axes=("y", "x")):
    """A dataset of one variable, as users of rioxarray make it."""
    coords = {}
    if transform.is_rectilinear and transform.b == 0:
        coords = dict(zip(axes, centres(transform, *values.shape[-2:])))
        coords = {axis: (axis, at) for axis, at in coords.items()}
    if "time" in dims:
        coords["time"] = ("time", np.datetime64("2024-05-01", "ns") + np.arange(values.shape[0]) * np.timedelta64(1, "D"))
    found = xr.Dataset({"height": (dims, values, attributes)}, coords=coords)
    found = found.rio.set_spatial_dims(axes[1], axes[0]).rio.write_crs(crs).rio.write_transform(transform)
    if coords:
        found = found.rio.write_coordinate_system()
    if nodata is not None:
        found["height"] = found["height"].rio.write_nodata(nodata)
    return found


def by_rioxarray(name, zarr_format, values, crs, transform, chunks, nodata=None, dims=("y", "x"), attributes=None):
    store = Store(name, versions("rioxarray", "xarray", "zarr"), "v%d" % zarr_format)
    attributes = attributes or {}
    made = dataset(values, dims, crs, transform, attributes, nodata, dims[-2:])
    # The argument `encoding` of to_zarr would replace the name of the grid mapping.
    made["height"].encoding["chunks"] = chunks
    made.to_zarr(store.path, zarr_format=zarr_format, consolidated=False)
    read = xr.open_zarr(store.path, decode_coords="all", mask_and_scale=False, consolidated=False)["height"]
    assert (read.values == values).all()
    read = read.rio.set_spatial_dims(dims[-1], dims[-2])
    store.raster("height", values, CRS(read.rio.crs.to_wkt()), read.rio.transform().to_gdal(), dims=list(dims),
                 nodata=None if read.rio.nodata is None else float(read.rio.nodata), **attributes)
    store.save()


def rioxarray_stores():
    masked = hills((3, 70, 90), "f4")
    masked[:, :9, :20] = -9999
    units = {"units": "m", "long_name": "height above the sea"}
    by_rioxarray("rio_utm_v2.zarr", 2, masked, 32632, UTM, (1, 32, 48), -9999, ("time", "y", "x"), units)
    by_rioxarray("rio_utm_v3.zarr", 3, masked, 32632, UTM, (1, 32, 48), -9999, ("time", "y", "x"), units)
    packed = hills((45, 60), "i2")
    packed[0, :5] = -32768
    by_rioxarray("rio_degrees_up.zarr", 3, packed, 4326, Affine(0.25, 0, -20, 0, 0.25, 35.5), (17, 23), -32768,
                 ("latitude", "longitude"), {"scale_factor": 0.1, "add_offset": 2.5, "units": "K"})
    by_rioxarray("rio_island.zarr", 3, hills((40, 33), "u1", 3), ISLAND, Affine(12.5, 0, -3000, 0, -12.5, 9000), (16, 16), 0)
    turned = Affine.translation(400000, 5100000) @ Affine.rotation(30) @ Affine.scale(20, -20)
    by_rioxarray("rio_turned.zarr", 2, hills((50, 40), "f8", 5), 25832, turned, (32, 32))


def by_odc():
    box = GeoBox((64, 80), Affine(100, 0, 1200000, 0, -100, 6500000), "EPSG:3857")
    store = Store("odc_mercator.zarr", versions("odc-geo", "xarray", "zarr"), "v3")
    values = hills(box.shape, "u2", 7)
    made = odc.geo.xr.wrap_xr(values, box, nodata=0)
    made = made.to_dataset(name="height")
    made["height"].encoding["chunks"] = (32, 32)
    made.to_zarr(store.path, zarr_format=3, consolidated=False)
    read = xr.open_zarr(store.path, decode_coords="all", mask_and_scale=False, consolidated=False)["height"]
    found = read.odc.geobox
    assert found == box and (read.values == values).all()
    store.raster("height", values, CRS(found.crs.to_wkt()), found.affine.to_gdal(), dims=["y", "x"],
                 nodata=float(read.odc.nodata) if read.odc.nodata is not None else None)
    store.save()


def geotiff(folder, values, crs, transform, nodata=None):
    """A GeoTIFF for gdal_translate to read."""
    path = folder / "height.tif"
    bands = values if values.ndim == 3 else values[np.newaxis]
    with rasterio.open(path, "w", driver="GTiff", count=len(bands), height=bands.shape[1], width=bands.shape[2], dtype=bands.dtype,
                       crs=crs, transform=transform, nodata=nodata) as out:
        out.write(bands)
    return path


def told_by_gdal(path):
    said = json.loads(subprocess.run(["gdalinfo", "-json", path], check=True, capture_output=True, text=True).stdout)
    band = said["bands"][0]
    return CRS(said["coordinateSystem"]["wkt"]), said["geoTransform"], band.get("noDataValue")


def by_gdal(name, kind, options, values, crs, transform, nodata=None):
    """With the gdal_translate of the system, whose "Zarr v3" is a draft of it."""
    release = subprocess.run(["gdalinfo", "--version"], check=True, capture_output=True, text=True).stdout.split(",")[0]
    store = Store(name, release + " -of ZARR " + " ".join(options), kind)
    with tempfile.TemporaryDirectory() as folder:
        source = geotiff(OUT.joinpath(folder), values, crs, transform, nodata)
        command = ["gdal_translate", "-q", "-of", "ZARR", "-co", "ARRAY_NAME=height"]
        for option in options:
            command += ["-co", option]
        subprocess.run([*command, source, store.path], check=True)
    found = told_by_gdal(f'ZARR:"{store.path}":/height')
    store.raster("height", values, *found[:2], nodata=found[2], dims=["Y", "X"])
    store.save()


def gdal_stores():
    values = hills((70, 90), "i2")
    values[:9, :20] = -32768
    by_gdal("gdal_utm_none.zarr", "v2", ["BLOCKSIZE=32,48"], values, "EPSG:32632", UTM, -32768)
    by_gdal("gdal_utm_zlib.zarr", "v2", ["COMPRESS=ZLIB", "BLOCKSIZE=32,48"], values, "EPSG:32632", UTM, -32768)
    by_gdal("gdal_island_draft.zarr", "v3-draft", ["FORMAT=ZARR_V3", "COMPRESS=GZIP", "BLOCKSIZE=32,48"], hills((70, 90), "f4"),
            ISLAND.to_wkt(), Affine(12.5, 0, -3000, 0, -12.5, 9000))
    with rasterio.Env():
        for name, crs, transform in [("gdal310_degrees.zarr", "EPSG:4326", Affine(0.5, 0, -10, 0, -0.5, 60)),
                                     ("gdal310_island.zarr", ISLAND.to_wkt(), Affine(12.5, 0, -3000, 0, -12.5, 9000))]:
            store = Store(name, "GDAL " + rasterio.__gdal_version__, "v3")
            values = hills((50, 70), "f4", 2)
            # GDAL names the array after the store.
            with rasterio.open(str(store.path), "w", driver="Zarr", count=1, height=50, width=70, dtype="float32", crs=crs, transform=transform,
                               nodata=-1, FORMAT="ZARR_V3", COMPRESS="GZIP", BLOCKSIZE="32,32", ARRAY_NAME="height") as out:
                out.write(values, 1)
            with rasterio.open(f'ZARR:"{store.path}":/height') as read:
                assert (read.read(1) == values).all()
                store.raster("height", values, CRS(read.crs.to_wkt()), read.transform.to_gdal(), nodata=read.nodata, dims=["Y", "X"])
            store.save()


def convention(name, version_, uuid):
    address = f"https://github.com/zarr-conventions/{name}/blob/{version_}/README.md"
    return {"name": name, "uuid": uuid, "spec_url": address}


PROJ = convention("proj", "v1", "f17cb550-5864-4468-aeb7-f3180cfb622f")
SPATIAL = convention("spatial", "v1", "689b58e2-cf7b-45e0-9fff-9cfc0883d6b4")
MULTISCALES = convention("multiscales", "v1", "d35379db-88df-4056-af3a-620245f8e347")


def spatial(transform, **more):
    return {"zarr_conventions": [PROJ, SPATIAL], "spatial:dimensions": ["y", "x"], "spatial:transform": list(transform)[:6], **more}


def geozarr(name, attributes, transform, crs, node=False):
    """One array with GeoZarr's conventions. GDAL's transform of a grid whose nodes are given begins half a cell earlier."""
    store = Store(name, versions("zarr") + ", attributes of the GeoZarr conventions", "v3")
    values = hills((48, 64), "f4", 1)
    made = zarr.create_array(str(store.path / "height"), shape=values.shape, chunks=(16, 32), dtype="f4", fill_value=float("nan"),
                             dimension_names=["y", "x"], attributes=attributes)
    made[...] = values
    zarr.open_group(str(store.path), mode="a")
    corner = transform @ Affine.translation(-0.5, -0.5) if node else transform
    store.raster("height", values, crs, corner.to_gdal(), dims=["y", "x"])
    store.save()


def geozarr_pyramid():
    store = Store("geozarr_pyramid.zarr", versions("zarr") + ", attributes of the GeoZarr conventions", "v3")
    levels, transforms = [hills((96, 128), "u2", 4)], [Affine(10, 0, 600000, 0, -10, 5000000)]
    for _ in range(2):
        levels.append(halved(levels[-1], (0, 1)))
        transforms.append(transforms[-1] @ Affine.scale(2))
    layout = []
    for number, transform in enumerate(transforms):
        item = {"asset": str(number), "transform": {"scale": [2.0, 2.0] if number else [1.0, 1.0], "translation": [0.0, 0.0]},
                "spatial:shape": list(levels[number].shape), "spatial:transform": list(transform)[:6]}
        layout.append(item | ({"derived_from": str(number - 1), "resampling_method": "nearest"} if number else {}))
    group = zarr.create_group(str(store.path), attributes={
        "zarr_conventions": [MULTISCALES, PROJ, SPATIAL], "multiscales": {"layout": layout, "resampling_method": "nearest"},
        "proj:code": "EPSG:32633", "spatial:dimensions": ["y", "x"]})
    for number, values in enumerate(levels):
        group.create_array(str(number), shape=values.shape, chunks=(32, 32), dtype="u2", fill_value=0, dimension_names=["y", "x"])[...] = values
        store.raster(str(number), values, CRS.from_epsg(32633), transforms[number].to_gdal(), dims=["y", "x"])
    store.entry["rasters"]["0"]["levels"] = ["0", "1", "2"]
    store.save()


def geozarr_stores():
    north_up = Affine(30, 0, 500000, 0, -30, 5000000)
    utm = CRS.from_epsg(32633)
    geozarr("geozarr_code.zarr", spatial(north_up, **{"proj:code": "EPSG:32633"}), north_up, utm)
    geozarr("geozarr_node.zarr", spatial(north_up, **{"proj:code": "EPSG:32633", "spatial:registration": "node"}), north_up, utm, node=True)
    geozarr("geozarr_wkt2.zarr", spatial(north_up, **{"proj:wkt2": ISLAND.to_wkt()}), north_up, ISLAND)
    geozarr("geozarr_projjson.zarr", spatial(north_up, **{"proj:projjson": ISLAND.to_json_dict()}), north_up, ISLAND)
    geozarr_pyramid()


def by_xarray():
    """Latitudes and longitudes of CF without a grid mapping, and a grid mapping of CF that has parameters alone."""
    store = Store("cf_plain.zarr", versions("xarray", "zarr"), "v3")
    values = hills((36, 72), "f4", 6)
    lat, lon = np.arange(87.5, -90, -5), np.arange(2.5, 360, 5)
    made = xr.Dataset({"tas": (("lat", "lon"), values, {"units": "K", "standard_name": "air_temperature"})}, coords={
        "lat": ("lat", lat, {"units": "degrees_north", "standard_name": "latitude"}),
        "lon": ("lon", lon, {"units": "degrees_east", "standard_name": "longitude"})})
    made.to_zarr(store.path, zarr_format=3, consolidated=False, encoding={"tas": {"chunks": (18, 36)}})
    # xarray marks floats that are missing by NaN.
    store.raster("tas", values, None, (0, 5, 0, 90, 0, -5), dims=["lat", "lon"], nodata="NaN", units="K")
    store.save()
    store = Store("cf_parameters.zarr", versions("xarray", "zarr", "pyproj"), "v3")
    crs = CRS.from_epsg(3035)
    parameters = {key: value for key, value in crs.to_cf().items() if key != "crs_wkt"}
    transform = Affine(1000, 0, 4000000, 0, -1000, 3000000)
    y, x = centres(transform, 40, 50)
    values = hills((40, 50), "f8", 8)
    made = xr.Dataset({"height": (("y", "x"), values, {"grid_mapping": "crs"}), "crs": ((), np.int32(0), parameters)}, coords={
        "y": ("y", y, {"units": "m", "standard_name": "projection_y_coordinate"}),
        "x": ("x", x, {"units": "m", "standard_name": "projection_x_coordinate"})})
    made.to_zarr(store.path, zarr_format=3, consolidated=False, encoding={"height": {"chunks": (20, 25)}})
    store.raster("height", values, None, transform.to_gdal(), dims=["y", "x"], nodata="NaN")
    store.save()


if __name__ == "__main__":
    rioxarray_stores()
    by_odc()
    gdal_stores()
    geozarr_stores()
    by_xarray()
