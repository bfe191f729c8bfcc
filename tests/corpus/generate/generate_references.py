"""Sets of references by kerchunk 0.2.10, tifffile 2026.11.8 and VirtualiZarr 2.8.0 (fsspec 2026.9.0, fastparquet 2026.9.0, zarr 3.4.2, h5py 3.16.0,
scipy 1.18.1, eccodes 2.50.0 with cfgrib 0.9.15.1, numpy 2.5.5, Python 3.13), and the files that they name. All sets lie in one folder, and name
their targets by paths from there."""
import json
import os
import shutil
import warnings

import eccodes
import h5py
import kerchunk.df
import kerchunk.grib2
import kerchunk.hdf
import kerchunk.netCDF3
import kerchunk.tiff
import kerchunk.zarr
import numpy as np
import scipy.io
import tifffile
import virtualizarr
import virtualizarr.parsers
import virtualizarr.writers.kerchunk
import xarray
import zarr
from kerchunk.combine import MultiZarrToZarr
from obspec_utils.registry import ObjectStoreRegistry
from obstore.store import LocalStore

from corpuslib import OUT, Store, sample

warnings.simplefilter("ignore")
KERCHUNK = {"name": "kerchunk", "version": "0.2.10"}
VIRTUALIZARR = {"name": "VirtualiZarr", "version": virtualizarr.__version__}
FOLDER = os.path.join(OUT, "references")
shutil.rmtree(FOLDER, ignore_errors=True)
os.makedirs(os.path.join(FOLDER, "data"))
os.chdir(FOLDER)  # so that the libraries write relative paths


def entry(name, writer, file, notes=""):
    return Store("references_" + name, writer, "references", notes=notes, container="references", path="references/" + file)


def write(file, refs):
    with open(file, "w") as f:
        json.dump(refs, f)


def text_of(ref):
    return ref if isinstance(ref, str) else ref.decode() if isinstance(ref, bytes) else json.dumps(ref)


def record(s, refs, values, **how):
    """Records the arrays of a set. Their documents are those of the references; their values are those that were written, and are not read back."""
    refs = refs.get("refs", refs)
    for path, want in values.items():
        v3 = path + "/zarr.json"
        meta = (3, json.loads(text_of(refs[v3]))) if v3 in refs else (2, json.loads(text_of(refs[path + "/.zarray"])))
        s.array(path, want, meta=meta, **how.get(path, {}))
    arrays = {key.rsplit("/", 1)[0] for key in refs if key.endswith("/.zarray")}
    assert arrays <= set(values), arrays - set(values)
    s.save()


# --- HDF5: groups, filters, byte orders, a chunk that was never written
hdf5 = {"contiguous": sample("<f4", (6, 10), 1), "chunked": sample("<i4", (7, 10), 2), "shuffled": sample(">f8", (9, 8), 3), "g/h/deep": sample("<u2", (5, 4), 4),
        "scalar": np.array(2.5), "small": sample("i1", (3,), 5), "holes": np.full((8, 6), -7, "<i2"), "flags": sample("u1", (40, 3), 6)}
hdf5["holes"][0:4, 0:3] = sample("<i2", (4, 3), 7)
with h5py.File("data/one.h5", "w") as f:
    f.attrs["title"] = "one"
    f["contiguous"] = hdf5["contiguous"]
    f["contiguous"].attrs["units"] = "K"
    f.create_dataset("chunked", data=hdf5["chunked"], chunks=(3, 4), compression="gzip")
    f.create_dataset("shuffled", data=hdf5["shuffled"], chunks=(4, 8), compression="gzip", shuffle=True)
    f.create_dataset("g/h/deep", data=hdf5["g/h/deep"], chunks=(2, 4))
    f["scalar"] = hdf5["scalar"]
    f["small"] = hdf5["small"]
    holes = f.create_dataset("holes", (8, 6), "<i2", chunks=(4, 3), fillvalue=-7)
    holes[0:4, 0:3] = hdf5["holes"][0:4, 0:3]
    f.create_dataset("flags", data=hdf5["flags"], chunks=(1, 3))
for name, threshold in (("hdf5", 0), ("hdf5_inline", 60)):
    refs = kerchunk.hdf.SingleHdf5ToZarr("data/one.h5", inline_threshold=threshold).translate()
    write(f"{name}.json", refs)
    record(entry(name, KERCHUNK, f"{name}.json", "kerchunk.hdf.SingleHdf5ToZarr; short chunks are in the set itself" if threshold else ""), refs, hdf5)
flat = {path: a for path, a in hdf5.items() if "/" not in path}
refs = {key: ref for key, ref in refs["refs"].items() if not key.startswith("g/")}
kerchunk.df.refs_to_dataframe({"version": 1, "refs": dict(refs)}, os.path.join(FOLDER, "hdf5.parq"), record_size=7, categorical_threshold=3)
record(entry("hdf5_parquet", KERCHUNK, "hdf5.parq", "kerchunk.df.refs_to_dataframe; files of 7 references"), refs, flat)

# --- NetCDF-4 files of an xarray data set, joined along time
whole = {"t2m": sample("<f4", (12, 6, 8), 10, nice=True), "n": sample("<i8", (12,), 11, nice=True), "time": np.arange(12.0), "lat": np.linspace(-60, 60, 6),
         "lon": np.arange(8) * 45.0}
files = []
for i in range(3):
    part = slice(4 * i, 4 * i + 4)
    d = xarray.Dataset({"t2m": (("time", "lat", "lon"), whole["t2m"][part], {"units": "K"}), "n": (("time",), whole["n"][part])},
                       {"time": whole["time"][part], "lat": whole["lat"], "lon": whole["lon"]})
    files.append(f"data/part{i}.nc")
    d.to_netcdf(files[-1], engine="h5netcdf", encoding={"t2m": {"zlib": True, "chunksizes": (2, 3, 4), "shuffle": True}})
parts = [kerchunk.hdf.SingleHdf5ToZarr(f, inline_threshold=0).translate() for f in files]
refs = MultiZarrToZarr(parts, concat_dims=["time"], identical_dims=["lat", "lon"]).translate()
write("joined.json", refs)
record(entry("joined", KERCHUNK, "joined.json", "kerchunk.combine.MultiZarrToZarr"), refs, whole)
kerchunk.df.refs_to_dataframe(json.load(open("joined.json")), os.path.join(FOLDER, "joined.parq"), record_size=10)
record(entry("joined_parquet", KERCHUNK, "joined.parq", "kerchunk.df.refs_to_dataframe; files of 10 references"), refs, whole)

# --- NetCDF-3: big endian, with records
netcdf3 = {"fixed": sample(">f4", (5, 6), 20), "records": sample(">i2", (4, 6), 21), "more": sample(">f8", (4,), 22)}
with scipy.io.netcdf_file("data/three.nc", "w", version=2) as f:
    for name, length in (("time", None), ("y", 5), ("x", 6)):
        f.createDimension(name, length)
    f.createVariable("fixed", "f4", ("y", "x"))[:] = netcdf3["fixed"]
    records, more = f.createVariable("records", "i2", ("time", "x")), f.createVariable("more", "f8", ("time",))
    for i in range(4):
        records[i], more[i] = netcdf3["records"][i], netcdf3["more"][i]
refs = kerchunk.netCDF3.NetCDF3ToZarr("data/three.nc", inline_threshold=0).translate()
write("netcdf3.json", refs)
record(entry("netcdf3", KERCHUNK, "netcdf3.json", "kerchunk.netCDF3.NetCDF3ToZarr"), refs, netcdf3)

# --- GRIB2: a codec that is Python code of kerchunk's, beside coordinates that need none
message = eccodes.codes_grib_new_from_samples("regular_ll_pl_grib2")
for key, value in {"Ni": 16, "Nj": 8, "latitudeOfFirstGridPointInDegrees": 70, "latitudeOfLastGridPointInDegrees": -70, "longitudeOfFirstGridPointInDegrees": 0,
                   "longitudeOfLastGridPointInDegrees": 337.5, "iDirectionIncrementInDegrees": 22.5, "jDirectionIncrementInDegrees": 20, "level": 850,
                   "shortName": "t", "dataDate": 20261129, "dataTime": 0}.items():
    eccodes.codes_set(message, key, value)
eccodes.codes_set_values(message, sample("f8", (128,), 30, nice=True))
with open("data/one.grib2", "wb") as f:
    eccodes.codes_write(message, f)
refs = kerchunk.grib2.scan_grib("data/one.grib2")[0]
write("grib2.json", refs)
seconds = np.datetime64("2026-11-29", "s").astype("i8")
values = {"t": None, "latitude": np.arange(70.0, -71, -20), "longitude": np.arange(16) * 22.5, "isobaricInhPa": np.array(850.0), "time": seconds,
          "valid_time": seconds, "step": np.array(0)}
for path in set(values) - {"t"}:
    values[path] = np.asarray(values[path]).astype(json.loads(refs["refs"][path + "/.zarray"])["dtype"])
record(entry("grib2", KERCHUNK, "grib2.json", "kerchunk.grib2.scan_grib: version 1 with a template"), refs, values, t={"expect": "unsupported"})

# --- TIFF: strips and tiles
tiff = {"strips": sample("<u2", (20, 30), 40), "tiles": sample("<f4", (32, 48), 41, nice=True)}
tifffile.imwrite("data/strips.tif", tiff["strips"], rowsperstrip=5)
tifffile.imwrite("data/tiles.tif", tiff["tiles"], tile=(16, 16), compression="zlib")
for name, want in tiff.items():
    with tifffile.TiffFile(f"data/{name}.tif") as tif, tif.series[0].aszarr() as store:
        store.write_fsspec(f"{name}.json", url="data", groupname="image", version=1, templatename="folder")
    refs = json.load(open(f"{name}.json"))
    record(entry("tiff_" + name, {"name": "tifffile", "version": tifffile.__version__}, f"{name}.json", "write_fsspec of version 1 with a template"), refs, {"image": want})

# --- Zarr: each reference is to a whole object
values = {"a": sample("<i4", (5, 7), 50), "b": sample("<f8", (4,), 51)}
group = zarr.create_group("data/v2.zarr", zarr_format=2)
for name, a in values.items():
    group.create_array(name, shape=a.shape, dtype=a.dtype, chunks=tuple(n // 2 for n in a.shape))[...] = a
refs = kerchunk.zarr.single_zarr("data/v2.zarr", inline_threshold=0)
refs = {key: [os.path.relpath(ref[0].removeprefix("file://"), FOLDER)] if isinstance(ref, list) else ref for key, ref in refs["refs"].items()}
write("objects.json", refs)
record(entry("zarr", KERCHUNK, "objects.json", "kerchunk.zarr.single_zarr as version 0: whole objects"), refs, values)

# --- VirtualiZarr: JSON of both versions of Zarr, and Parquet
virtualizarr.writers.kerchunk.remove_file_uri_prefix = lambda url: os.path.relpath(url.removeprefix("file://"), FOLDER)
registry = ObjectStoreRegistry({"file://": LocalStore()})
joined = virtualizarr.open_virtual_mfdataset([f"file://{FOLDER}/{f}" for f in files], registry=registry, parser=virtualizarr.parsers.HDFParser(), combine="nested",
                                             concat_dim="time", coords="minimal", compat="override", loadable_variables=["time", "lat", "lon"])
for name, version in (("virtual_v2", 2), ("virtual_v3", 3)):
    joined.vz.to_kerchunk(f"{name}.json", format="json", zarr_format=version)
    refs = json.load(open(f"{name}.json"))
    record(entry(name, VIRTUALIZARR, f"{name}.json", "to_kerchunk, zarr_format=%d" % version), refs, whole)
    if version == 2:
        two = refs
joined.vz.to_kerchunk(os.path.join(FOLDER, "virtual.parquet"), format="parquet", record_size=16)
record(entry("virtual_parquet", VIRTUALIZARR, "virtual.parquet", "to_kerchunk, files of 16 references"), two, whole)
three = virtualizarr.open_virtual_dataset(f"file://{FOLDER}/data/three.nc", registry=registry, parser=virtualizarr.parsers.NetCDF3Parser(), loadable_variables=[])
three.vz.to_kerchunk("virtual_netcdf3.json", format="json")
record(entry("virtual_netcdf3", VIRTUALIZARR, "virtual_netcdf3.json", "NetCDF3Parser"), json.load(open("virtual_netcdf3.json")), netcdf3)
