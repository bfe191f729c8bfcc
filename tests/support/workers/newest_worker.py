"""Writes, reads and changes stores with the newest releases of Zarr libraries. Runs in the system of scripts/newest-root.

newest_worker.py write FOLDER       writes a group of stores, and prints the hash of each array that was given to zarr-python
newest_worker.py read FOLDER        prints the hash of what each library reads of these stores
newest_worker.py files FOLDER       prints the hash of what each library reads of the files of whole arrays
newest_worker.py change FOLDER      changes arrays of these stores, and makes some
"""
import json
import sys
import warnings
from pathlib import Path

import anndata
import dask.array
import numpy as np
import ome_zarr.io
import ome_zarr.reader
import ome_zarr.writer
import pandas
import scipy.sparse
import xarray
import zarr
from canonical import canonical, digest

warnings.simplefilter("ignore")
zarr.config.set({"array.rectilinear_chunks": True})
DICE = np.random.default_rng(34)
GRIDS = {
    "regular": {"chunks": (5, 4)},
    "default": {},
    "sharded": {"chunks": (3, 4), "shards": (6, 8)},
    "lists": {"chunks": [[5, 7, 8], [4, 5, 3]]},
    "equal_lists": {"chunks": [[5, 5, 5, 5], [12]]},
    "one_length": {"chunks": [7, [4, 8]]},
    "sharded_lists": {"chunks": (2, 3), "shards": [[4, 8, 8], [12]]},
    "blosc": {"chunks": [[5, 15], [12]], "compressors": zarr.codecs.BloscCodec(cname="lz4", shuffle="shuffle")},
    "version_2": {"chunks": (5, 4), "zarr_format": 2},
}


def write(folder):
    zarr.create_group(folder)
    expected = {}
    for group, version in (("plain", 3), ("copied", 3), ("old", 2)):
        zarr.create_group(folder / group, zarr_format=version, attributes={"title": group})
    for name, options in GRIDS.items():
        for dtype in ("f4", "i8"):
            values = DICE.normal(0, 999, (20, 12)).astype(dtype)
            for group in ("old",) if "zarr_format" in options else ("plain", "copied"):
                path = f"{group}/{name}_{dtype}"
                array = zarr.create_array(folder / path, shape=values.shape, dtype=dtype, **options)
                array[...] = values
                expected[path] = hash_of(values)
    for name, values in typed().items():
        array = zarr.create_array(folder / "plain" / name, shape=values.shape, dtype="string" if values.dtype == object else values.dtype)
        array[...] = values
        native = values.astype(values.dtype.newbyteorder("<")) if values.dtype.names else values
        expected[f"plain/{name}"] = hash_of(native)
    zarr.consolidate_metadata(folder / "copied")
    write_with_xarray(folder)
    write_with_anndata(folder)
    write_with_ome_zarr(folder)
    return expected


def typed():
    record = np.zeros(6, [("a", ">i4"), ("b", "<f8"), ("c", "S3")])
    record["a"], record["b"], record["c"] = np.arange(6), np.arange(6) / 4, b"xy"
    return {
        "record": record,
        "text": np.array(["a", "bb", "Å", ""] * 3, "<U4"),
        "strings": np.array(["a", "longer", "Å", ""] * 3, object),
        "time": np.arange(20).astype("M8[s]"),
        "bytes": np.array([b"a", b"bcd", b""]),
        "truth": np.arange(20) % 3 == 0,
        "complex": np.arange(20) * (1 + 2j),
        "half": np.arange(20).astype("f2"),
        "scalar": np.array(3.5),
    }


def weather():
    values = DICE.normal(280, 9, (6, 10, 12))
    values[0, 0, 0] = np.nan
    coordinates = {"time": pandas.date_range("2026-01-01", periods=6), "lat": np.linspace(-60, 60, 10), "lon": np.arange(12) * 30.0}
    data = {"t2m": (("time", "lat", "lon"), values, {"units": "K"}), "land": (("lat", "lon"), DICE.integers(0, 2, (10, 12)).astype(bool)),
            "station": (("lat",), np.array([f"st{i} Ω" for i in range(10)], object))}
    return xarray.Dataset(data, coordinates, {"title": "weather"})


def write_with_xarray(folder):
    data = weather()
    data.to_zarr(folder / "xarray_default")
    data.to_zarr(folder / "xarray_v2", zarr_format=2)
    data.to_zarr(folder / "xarray_plain", consolidated=False)
    packed = {"dtype": "i2", "scale_factor": 0.01, "add_offset": 273.15, "_FillValue": -32768}
    data.to_zarr(folder / "xarray_encoded", encoding={"t2m": packed | {"chunks": (1, 5, 4), "shards": (2, 10, 12)}})
    data.chunk({"time": 4, "lat": 5}).to_zarr(folder / "xarray_dask")
    dask.array.from_array(data["t2m"].values, chunks=(2, 5, 6)).to_zarr(str(folder / "dask"))


def write_with_anndata(folder):
    counts = scipy.sparse.random(40, 12, density=0.3, format="csr", rng=np.random.default_rng(2))
    observed = pandas.DataFrame({"kind": pandas.Categorical(["b", "t"] * 20), "depth": np.arange(40.0), "note": ["ä", "b"] * 20},
                                index=[f"cell{i}" for i in range(40)])
    tissue = anndata.AnnData(counts, obs=observed, obsm={"map": np.arange(80.0).reshape(40, 2)}, layers={"dense": counts.toarray()},
                             uns={"who": "x", "n": 3})
    tissue.write_zarr(folder / "tissue")


def write_with_ome_zarr(folder):
    image = DICE.integers(0, 999, (2, 3, 64, 48)).astype("u2")
    for name, kind in (("image", ome_zarr.format.FormatV05()), ("image_v2", ome_zarr.format.FormatV04())):
        ome_zarr.writer.write_image(image, str(folder / name), axes="czyx", fmt=kind)


def read(folder):
    found = {}
    for group in ("plain", "copied", "old"):
        opened = zarr.open_group(folder / group, mode="r")
        # Some arrays cannot be shown in another version.
        for name in sorted(entry.name for entry in (folder / group).iterdir() if entry.is_dir()):
            found[f"{group}/{name}"] = attempt(lambda: hash_of(opened[name][...]))
        found[f"{group} attributes"] = {name: value for name, value in opened.attrs.items() if not name.startswith("_")}
    for store in sorted(folder.glob("xarray_*")):
        found[store.name] = attempt(lambda: hashes(xarray.open_zarr(store).load()))
    found["dask"] = hash_of(dask.array.from_zarr(str(folder / "dask")).compute())
    found["tissue"] = attempt(lambda: tissue_hashes(anndata.read_zarr(folder / "tissue")))
    for name in ("image", "image_v2"):
        nodes = ome_zarr.reader.Reader(ome_zarr.io.parse_url(str(folder / name)))()
        found[name] = [[hash_of(level.compute()) for level in node.data] for node in nodes]
    return found


def files(folder):
    found = {path.relative_to(folder).with_suffix("").as_posix(): hash_of(np.load(path)) for group in ("plain", "copied", "old")
             for path in sorted((folder / group).glob("*.npy"))}
    for name in sorted(path.name for path in folder.glob("xarray_*")):
        found[name] = attempt(lambda: hashes(xarray.open_dataset(folder / name / f"{name}.nc").load()))
    found["tissue"] = attempt(lambda: tissue_hashes(anndata.read_h5ad(folder / "tissue" / "tissue.h5ad")))
    return found


def change(folder):
    told = {}
    for name in GRIDS:
        for group in ("old",) if name == "version_2" else ("plain", "copied"):
            path = f"{group}/{name}_f4"
            told[path] = attempt(lambda: change_array(folder / path))
    told["append"] = attempt(lambda: append_days(folder / "xarray_default"))
    told["region"] = attempt(lambda: replace_days(folder / "xarray_encoded"))
    return told


def change_array(path):
    array = zarr.open_array(path, mode="r+")
    array[3:9, 2:11] = -5
    # The array grows by whole chunks. By a part of a chunk, grids of shards or of lists of equal lengths would grow
    # otherwise in zarr-python than in a mount that shows them as regular grids.
    array.resize((40, 12))
    array[24:32] = 7
    array.attrs["changed"] = [1, 2.5]
    array.resize((10, 12))
    return hash_of(array[...])


def append_days(path):
    days = weather().isel(time=slice(0, 2)).assign_coords(time=pandas.date_range("2026-02-01", periods=2))
    days.to_zarr(path, append_dim="time")
    return hashes(xarray.open_zarr(path).load())


def replace_days(path):
    days = xarray.open_zarr(path).load()
    days["t2m"][2:4] = 280
    days.drop_vars(["lat", "lon", "station", "land"]).isel(time=slice(2, 4)).to_zarr(path, region={"time": slice(2, 4)}, mode="r+")
    return hashes(xarray.open_zarr(path).load())


def attempt(act):
    """The result of `act`, or the first words of its error."""
    try:
        return act()
    except Exception as error:  # of whatever class
        return f"{type(error).__name__}: {error}"[:200]


def hashes(data):
    return {str(name): hash_of(variable.values) for name, variable in data.variables.items()} | {"attributes": dict(data.attrs)}


def tissue_hashes(tissue):
    found = {"X": hash_of(tissue.X.toarray()), "dense": hash_of(tissue.layers["dense"]), "map": hash_of(tissue.obsm["map"])}
    found |= {name: hash_of(np.array(tissue.obs[name].astype(str))) for name in tissue.obs}
    return found | {"cells": list(tissue.obs_names[:3]), "who": str(tissue.uns["who"]), "n": int(tissue.uns["n"])}


def hash_of(values):
    """The kind, shape and hash of values, however their bytes are ordered and their strings are kept."""
    values = np.asarray(values)
    if values.dtype.kind in "OTU":
        # Truth values among which some are missing are objects, too.
        items = np.array([item if isinstance(item, str) else repr(item) for item in values.flat], object)
        return ["text", list(values.shape), digest(canonical(items, "vlen"))]
    if values.dtype.names:
        values = values.astype(values.dtype.newbyteorder("<"))
    return [values.dtype.kind, list(values.shape), digest(canonical(values))]


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](Path(sys.argv[2]))))
