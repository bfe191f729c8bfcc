"""Runs in .venv-arrays: xarray and anndata write stores, and say what is in them. usage: program_stores.py FOLDER [NAME...]

Makes FOLDER/NAME for each NAME, or for each of `STORES`, and FOLDER/NAME.json for the stores of xarray: see `told`.
"""
import json
import sys
import warnings
from pathlib import Path

import anndata
import cftime
import numpy as np
import pandas
import scipy.sparse
import xarray

TIMES, LATITUDES, LONGITUDES, STATIONS = 14, 6, 9, 5
NAMES = ["Oslo", "Ås", "", "a name that is longer than the others, with a \u20ac", "日本"]
PACKING = {"dtype": "int16", "scale_factor": 0.01, "add_offset": 280.0, "_FillValue": np.int16(-32767)}


def grid(calendar):
    """Fields on a grid: packed, of short floats, of truth values."""
    dice = np.random.default_rng(5)
    times = xarray.date_range("2000-01-01", periods=TIMES, freq="MS", calendar=calendar)
    temperature = 280 + 15 * dice.standard_normal((TIMES, LATITUDES, LONGITUDES))
    temperature[dice.random(temperature.shape) < 0.1] = np.nan
    height = (dice.standard_normal((LATITUDES, LONGITUDES)) * 1000).astype("f4")
    height[0, 0] = np.nan
    cover = dice.integers(0, 4, (LATITUDES, LONGITUDES), "i1")
    return xarray.Dataset(
        {"t2m": (("time", "lat", "lon"), temperature, {"units": "K", "long_name": "2 metre temperature", "valid_range": [-30000, 30000]}),
         "height": (("lat", "lon"), height, {"units": "m", "measured": True, "source": {"kind": "survey", "years": [1999, 2001]}}),
         "land": (("lat", "lon"), height > 0, {"long_name": "land, not sea"}),
         "cover": (("lat", "lon"), cover, {"flag_values": [0, 1, 2, 3], "flag_meanings": "none grass trees houses"}),
         "crs": ((), np.int32(7), {"grid_mapping_name": "latitude_longitude", "semi_major_axis": 6378137.0})},
        {"time": ("time", times, {"standard_name": "time", "axis": "T"}),
         "lat": ("lat", np.linspace(-62.5, 62.5, LATITUDES), {"units": "degrees_north", "standard_name": "latitude"}),
         "lon": ("lon", np.arange(LONGITUDES, dtype="f4") * 40, {"units": "degrees_east", "standard_name": "longitude"})},
        {"Conventions": "CF-1.8", "title": "températures", "runs": 3, "ratio": 0.25, "levels": [1000, 850], "steps": [0.5, 0.25],
         "members": ["a", "b c"], "nothing": ""})


def stations():
    """Unsigned numbers, and text of fixed and of any length."""
    dice = np.random.default_rng(6)
    return xarray.Dataset(
        {"word": ("station", dice.integers(1 << 15, 1 << 16, STATIONS, "u2")),
         "byte": ("station", dice.integers(1 << 7, 1 << 8, STATIONS, "u1")),
         "wind": (("time", "station"), dice.standard_normal((TIMES, STATIONS)), {"units": "m s-1"}),
         "open": ("station", np.array([True, False, True, True, False])),
         "letters": ("station", np.array(["Å", "bc", "", "日本語", "d"]), {"long_name": "fixed text"}),
         "code": ("station", np.array([b"ABC", b"D", b"", b"EF", b"GHI"]), {"long_name": "fixed bytes"}),
         "remark": (("time", "station"), np.array([[f"{n} {name}" for name in NAMES] for n in range(TIMES)], object))},
        {"station": ("station", np.array(NAMES, object), {"long_name": "name of the station"})})


def counts():
    """Types that CDF-2 does not have."""
    dice = np.random.default_rng(8)
    return xarray.Dataset(
        {"count": ("station", dice.integers(-(1 << 62), 1 << 62, STATIONS), {"units": "1"}),
         "total": ("station", dice.integers(1 << 63, 1 << 64, STATIONS, "u8")),
         "lag": ("time", np.arange(TIMES).astype("m8[h]").astype("m8[ns]"), {"long_name": "lag"})})


SHARDS = {"t2m": {"chunks": (2, 3, 5), "shards": (8, 6, 10)}, "height": {"chunks": (2, 3), "shards": (4, 9)},
          "remark": {"chunks": (2, 2), "shards": (8, 4)}, "time": {"chunks": (3,), "shards": (6,)}}


def write_plain(path, zarr_format):
    """A data set as most people have it: no text, and 64-bit integers only for times."""
    grid("standard").to_zarr(path, mode="w", zarr_format=zarr_format, encoding={"t2m": PACKING})


def write_narrow(path, zarr_format, calendar):
    """A data set that fits into CDF-2: times, which xarray makes int64 by itself, have 32 bits."""
    encoding = {"t2m": {**PACKING, "chunks": (5, 4, 6)}, "time": {"units": "hours since 1990-01-01", "dtype": "int32"}}
    grid(calendar).merge(stations()).to_zarr(path, mode="w", zarr_format=zarr_format, encoding=encoding)


def write_wide(path, zarr_format, calendar, shards=False):
    """A data set with the types that xarray chooses."""
    encoding = {"t2m": {**PACKING, "chunks": (5, 4, 6)}}
    if shards:
        for name, layout in SHARDS.items():
            encoding[name] = encoding.get(name, {}) | layout
    # Consolidated in v3, too, as many stores are, although no specification has it.
    xarray.merge([grid(calendar), stations(), counts()], combine_attrs="override").to_zarr(
        path, mode="w", zarr_format=zarr_format, encoding=encoding, consolidated=True)


def write_tree(path, zarr_format):
    """Groups within groups. The groups below use a dimension of the root."""
    parent = grid("standard")[["height", "t2m"]]
    deep = xarray.Dataset({"salt": (("lat", "lon"), np.arange(54.0).reshape(6, 9)), "name": ("lat", np.array(NAMES + ["x"], object))},
                          attrs={"depth": 4000})
    tree = xarray.DataTree.from_dict({"/": parent, "/ocean": deep[["salt"]] + 1, "/ocean/deep": deep, "/empty": xarray.Dataset()})
    tree.to_zarr(path, mode="w", zarr_format=zarr_format, encoding={"/": {"t2m": PACKING}}, consolidated=True)


def cells(sparse=None):
    """Cells and genes, with whatever AnnData has a place for."""
    dice = np.random.default_rng(7)
    observations, variables = 11, 6
    counts = dice.poisson(0.8, (observations, variables)).astype("f4")
    frame = pandas.DataFrame({
        "kind": pandas.Categorical(["B", "T", None, "NK", "T", "B", "B", "T", "NK", None, "Ω"]),
        "stage": pandas.Categorical(["late", "early"] * 5 + ["mid"], ["early", "mid", "late"], ordered=True),
        "genes": pandas.array([1, None, *range(9)], "Int64"),
        "dead": pandas.array([True, None, False] * 3 + [True, False], "boolean"),
        "fine": np.arange(observations) % 3 == 0, "score": dice.standard_normal(observations), "batch": dice.integers(0, 3, observations, "i2"),
        "barcode": [f"{'ACGT' * (n % 3)}é{n}" for n in range(observations)],
    }, index=[f"cell{'·' * n}{n}" for n in range(observations)])
    genes = pandas.DataFrame({"mean": counts.mean(0)}, index=pandas.Index([f"gene_{n}" for n in range(variables)], name="symbol"))
    graph = scipy.sparse.random(observations, observations, 0.3, "csr", "f8", random_state=3)
    return anndata.AnnData(
        counts if sparse is None else sparse(counts), frame, genes,
        layers={"counts": scipy.sparse.csr_matrix(counts.astype("i4")), "log": np.log1p(counts.astype("f8")), "by_gene": scipy.sparse.csc_matrix(counts)},
        obsm={"X_pca": dice.standard_normal((observations, 3)), "frame": frame[["score", "kind"]]}, varm={"PCs": dice.standard_normal((variables, 3))},
        obsp={"connectivities": graph, "distances": graph.toarray()}, varp={"together": np.eye(variables, dtype="f4")},
        uns={"neighbors": {"params": {"n_neighbors": 15, "method": "umap", "metric": "euclidean", "random_state": np.int64(0)}},
             "kind_colors": np.array(["#aa0000", "#00bb00", "#0000cc", "#ffffff"], object), "words": ["two", "", "wörter"],
             "flag": True, "off": np.bool_(False), "ratio": 0.125, "none": None, "long": "é" * 3000, "empty": {}, "no_numbers": np.zeros(0, "i4"),
             "numbers": np.arange(6, dtype="u1").reshape(2, 3), "truths": np.array([True, False]), "frame": genes.reset_index(),
             "names": pandas.Categorical(["a", "b", "a"]), "matrix": scipy.sparse.csc_matrix(counts), "records": np.array([(1, 2.5)], "i4,f8"),
             "complex": np.array([1 + 2j]), "whole": 1 << 40})


def write_cells(path, zarr_format, sparse=None):
    anndata.settings.zarr_write_format = zarr_format
    data = cells(sparse)
    data.raw = cells(scipy.sparse.csr_matrix)
    data.write_zarr(path)


def write_study(path, zarr_format):
    """AnnData in groups of a larger hierarchy, as MuData and SpatialData have it."""
    import zarr

    anndata.settings.zarr_write_format = zarr_format
    zarr.open_group(path, mode="w", zarr_format=zarr_format, attributes={"title": "a study"}).create_group("mod")
    cells().write_zarr(f"{path}/mod/rna")
    cells(scipy.sparse.csr_matrix).write_zarr(f"{path}/table")


# Name -> (function, arguments).
STORES = {
    "plain-v3": (write_plain, 3),
    "narrow-v2": (write_narrow, 2, "standard"), "narrow-v3": (write_narrow, 3, "360_day"),
    "wide-v2": (write_wide, 2, "standard"), "wide-v3": (write_wide, 3, "noleap"), "wide-sharded": (write_wide, 3, "standard", True),
    "tree-v2": (write_tree, 2), "tree-v3": (write_tree, 3),
    "cells-v2": (write_cells, 2), "cells-v3": (write_cells, 3),
    "sparse-v2": (write_cells, 2, scipy.sparse.csr_matrix), "sparse-v3": (write_cells, 3, scipy.sparse.csc_matrix),
    "study-v3": (write_study, 3),
}


def told(path, **how):
    """{"attributes": of the root, "variables": path -> xarray's report of it, undecoded and decoded}."""
    with opened(path, decode_cf=False, **how) as raw, opened(path, **how) as decoded:
        variables = {}
        for node in raw.subtree:
            for name, variable in node.to_dataset(inherit=False).variables.items():
                shown = decoded[node.path][name]
                variables[f"{node.path}/{name}".lstrip("/")] = {
                    "dimensions": shown.dims, "attributes": plain(variable.attrs), "values": flat(variable.values), "decoded": flat(shown.values),
                    "dtype": str(variable.dtype), "kind": kind(shown.values), "calendar": shown.encoding.get("calendar")}
        return {"attributes": plain(raw.attrs), "variables": variables}


def opened(path, engine, **how):
    if engine == "scipy":  # which knows no groups
        return xarray.DataTree(xarray.open_dataset(path, engine=engine, **how))
    return xarray.open_datatree(path, engine=engine, **how)


def kind(values):
    """The type. For text, it has no width."""
    is_text = values.dtype.kind in "TUS" or values.dtype.kind == "O" and values.size and isinstance(values.flat[0], (str, bytes))
    return "text" if is_text else str(values.dtype)


def flat(values):
    """Elements in C order: dates as text, missing ones as None."""
    values = np.asarray(values)
    if values.dtype.kind == "M":
        return [None if np.isnat(value) else str(value.astype("M8[s]")) for value in values.ravel()]
    if values.dtype.kind == "m":
        return [None if np.isnat(value) else float(value / np.timedelta64(1, "s")) for value in values.ravel()]
    if values.dtype.kind == "O" and values.size and isinstance(values.ravel()[0], cftime.datetime):
        return [value.isoformat() for value in values.ravel()]
    return [plain(value) for value in values.ravel().tolist()]


def plain(value):
    """The value as JSON can have it. NaN becomes None."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        return value.rstrip(b"\0").decode(errors="replace")
    return None if isinstance(value, float) and value != value else value


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for name in sys.argv[2:] or STORES:
        write, *arguments = STORES[name]
        target = Path(sys.argv[1]) / name
        write(str(target), *arguments)
        if not name.startswith(("cells", "sparse", "study")):
            Path(f"{target}.json").write_text(json.dumps(told(target, engine="zarr")))
