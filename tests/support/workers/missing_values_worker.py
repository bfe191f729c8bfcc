"""Runs in .venv-arrays: xarray makes stores, compares them with what a mount shows, and appends to them. usage:

missing_values_worker.py make FOLDER NAME...
missing_values_worker.py compare, with [[STORE, SHOWN], ...] as JSON on standard input; prints the result of `compare` for each pair
missing_values_worker.py append STORE SHOWN
"""
import json
import os
import sys
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import xarray
import zarr

warnings.filterwarnings("ignore")
DAY = np.timedelta64(1, "D")
START = np.datetime64("2000-01-01", "ns")


def fields(first=0, count=4):
    """Elements of each type: zeros, the extreme values, and values that are missing."""
    n = first + np.arange(count)
    holes = np.where(n % 4 == 1, np.nan, n)
    times = np.where(n % 4 == 1, np.datetime64("NaT", "ns"), START + n * DAY)
    return {
        "count": n.astype("i4"), "flag": n % 2 == 0, "byte": (n * 85 % 256).astype("u1"), "letter": np.array(["", "a", "é", "bb"])[n % 4],
        "text": np.array(["", "a", "é", "bb"], object)[n % 4], "bytes": np.array([b"", b"a", b"bb", b"c"])[n % 4],
        "float": holes.astype("f4"), "double": holes, "marked": holes.astype("f4"), "complex": n.astype("c8"),
        "packed": holes, "unpacked": n.astype("f4"), "stamp": times, "lapse": n * DAY.astype("m8[ns]"),
        "marked count": holes, "marked by zero": holes + 1, "zeros": np.zeros(count, "i2"),
    }


ENCODING = {
    "packed": {"dtype": "i2", "scale_factor": 0.1, "add_offset": 5.0, "_FillValue": -32767},
    "unpacked": {"dtype": "f4", "scale_factor": 0.5, "_FillValue": None},
    "marked": {"_FillValue": np.float32(-9999)}, "marked count": {"dtype": "i4", "_FillValue": -1},
    "marked by zero": {"dtype": "u1", "_FillValue": 0}, "stamp": {"units": "days since 2000-01-01", "dtype": "i4", "_FillValue": -1},
    "time": {"units": "days since 2000-01-01", "dtype": "i8"},
}


def dataset(first=0, count=4, **more):
    values = {name: ("time", values) for name, values in fields(first, count).items()} | more
    made = xarray.Dataset(values, {"time": START + (first + np.arange(count)) * DAY}, {"title": "missing values"})
    if first == 0:
        made["scalar"] = (), np.int32(0)
    return made


def written(path, zarr_format):
    data = dataset()
    encoding = {name: {"chunks": (2,) * data[name].ndim} | ENCODING.get(name, {}) for name in data.variables if data[name].ndim}
    data.to_zarr(path, mode="w", zarr_format=zarr_format, encoding=encoding)


def noleap():
    times = xarray.date_range("2000-02-27", periods=4, calendar="noleap", use_cftime=True)
    return xarray.Dataset({"n": ("time", np.arange(4))}, {"time": times})


def with_zarr(path, zarr_format):
    """Features that xarray does not write: absent chunks, fill values of every type, odd attributes."""
    group = zarr.create_group(str(path), zarr_format=zarr_format)
    for name, dtype, fill, attributes in [
        ("zero", "i4", 0, {}), ("least", "i2", -32768, {}), ("no", "?", False, {}), ("yes", "?", True, {}), ("real", "f4", -9999.0, {}),
        ("third", "f4", 1 / 3, {}), ("nan", "f8", np.nan, {}), ("infinite", "f8", np.inf, {}), ("half", "f2", 1.5, {}), ("complex", "c16", 0, {}),
        ("packed nan", "f4", np.nan, {"scale_factor": 0.25}), ("big", ">i4", 7, {}), ("packed", "i2", 9, {"scale_factor": 0.5, "add_offset": 1.0}),
        ("unsigned", "i1", -1, {"_Unsigned": "true"}), ("other", "i4", 0, {"missing_value": 3}), ("declared", "i4", 0, {"_FillValue": 2}),
        ("none", "i4", None, {}), ("no float", "f4", None, {} if zarr_format == 3 else {"_FillValue": 2.0}), ("none declared", "i4", None, {"_FillValue": 2}),
        ("day", "M8[D]", np.datetime64("NaT"), {}), ("day zero", "M8[D]", np.datetime64(0, "D"), {}), ("word", "S2", b"a", {}), ("letters", "U2", "", {}),
    ]:
        more = {"dimension_names": ["x"]} if zarr_format == 3 else {"attributes": {"_ARRAY_DIMENSIONS": ["x"]} | attributes}
        array = group.create_array(name, shape=(6,), chunks=(2,), dtype=dtype, fill_value=fill, **({"attributes": attributes} | more))
        array[:4] = np.arange(4).astype(dtype)


INF = float("inf")
# Type, fill value and attributes in v2 by which other writers mask elements. Each array has the elements 0, 1, 2 and
# 3, or -inf instead of 3 if they are real floats.
ODD_V2 = {
    "one": ("f4", None, {"_FillValue": [2.0]}), "two": ("f4", None, {"_FillValue": [1.0, 2.0]}), "whole": ("f8", None, {"_FillValue": 2}),
    "text": ("f4", None, {"_FillValue": "NaN"}), "number as text": ("f4", None, {"_FillValue": "2"}), "base64": ("f4", None, {"_FillValue": "AAAAAAAAAEA="}),
    "null": ("f4", None, {"_FillValue": None}), "true": ("f8", None, {"_FillValue": True}), "complex": ("c8", None, {"_FillValue": 2.0}),
    "count list": ("i4", None, {"_FillValue": [2]}), "counts": ("i4", None, {"_FillValue": [1, 2]}), "count text": ("u1", None, {"_FillValue": "2"}),
    "count float": ("u1", None, {"_FillValue": 2.0}), "between": ("u1", None, {"_FillValue": 2.5}), "wide": ("u1", None, {"_FillValue": 258}),
    "nan count": ("i2", None, {"_FillValue": np.nan}), "more nan count": ("i2", None, {"missing_value": np.nan}),
    "infinite count": ("i2", None, {"missing_value": -INF}), "count of both": ("i2", None, {"missing_value": [np.nan, -INF, 2]}),
    "flag": ("?", None, {"_FillValue": 1}), "flag text": ("?", None, {"_FillValue": "true"}), "flag two": ("?", None, {"_FillValue": 2}),
    "nan": ("f4", None, {"missing_value": np.nan}), "nans": ("f4", np.nan, {"missing_value": np.nan}), "nan listed": ("f4", None, {"missing_value": [np.nan, 2.0]}),
    "nan packed": ("f4", None, {"missing_value": np.nan, "scale_factor": 0.5}), "minus": ("f4", None, {"missing_value": -INF}),
    "minus declared": ("f4", None, {"_FillValue": -INF}), "minus marked": ("f4", 2.0, {"missing_value": -INF}), "minus nan": ("f8", np.nan, {"missing_value": -INF}),
    "minus same": ("f8", -INF, {"missing_value": -INF}), "minus listed": ("f4", None, {"missing_value": [-INF, 2.0]}),
    "declared twice": ("f4", None, {"_FillValue": [1.0, 2.0], "missing_value": 0.0}), "declared and text": ("f4", None, {"_FillValue": "2", "missing_value": 0.0}),
    "letters": ("U2", "2", {}), "letters declared": ("U2", None, {"_FillValue": "2"}), "letters overridden": ("U2", "1", {"_FillValue": "2"}),
    # Masks that no document of v3 can have.
    "both infinite": ("f4", None, {"missing_value": [-INF, INF]}), "word overridden": ("S2", b"2", {"_FillValue": "1"}), "range": ("f4", None, {"valid_max": INF}),
}
# The same for v3.
ODD_V3 = {
    "nan": ("f4", 0.0, {"missing_value": np.nan}), "nan packed": ("f4", 0.0, {"missing_value": np.nan, "scale_factor": 0.5}), "minus": ("f4", 0.0, {"missing_value": -INF}),
    "minus nan": ("f4", 0.0, {"_FillValue": "AAAAAAAA+H8=", "missing_value": [-INF, 2.0]}), "minus same": ("f4", 0.0, {"_FillValue": "AAAAAAAA8P8=", "missing_value": -INF}),
    "count nan": ("i4", 0, {"missing_value": np.nan}), "count float": ("u1", 0, {"_FillValue": 2.5}), "count true": ("u1", 0, {"_FillValue": True}),
    "wide": ("u1", 0, {"_FillValue": 258}), "flag text": ("?", False, {"_FillValue": "false"}), "flag null": ("?", False, {"_FillValue": None}),
    # Masks that no document of v2 can have.
    "minus marked": ("f4", 0.0, {"_FillValue": "AAAAAAAAAEA=", "missing_value": -INF}), "range": ("f4", 0.0, {"valid_max": INF}),
}


def odd(path, zarr_format):
    group = zarr.create_group(str(path), zarr_format=zarr_format)
    for name, (dtype, fill, attributes) in (ODD_V2 if zarr_format == 2 else ODD_V3).items():
        more = {"dimension_names": ["x"]} if zarr_format == 3 else {}
        attributes = attributes if zarr_format == 3 else {"_ARRAY_DIMENSIONS": ["x"]} | attributes
        array = group.create_array(name, shape=(4,), chunks=(4,), dtype=dtype, fill_value=fill, attributes=attributes, **more)
        array[...] = np.array([0, 1, 2, -INF if dtype in ("f4", "f8") else 3]).astype(dtype if dtype not in ("U2", "S2") else "i1").astype(dtype)
    # The attribute `_ARRAY_DIMENSIONS` is left from a version in which it named the dimensions.
    if zarr_format == 3:
        group.create_array("renamed", shape=(2, 2), dtype="i4", dimension_names=["t", "z"], attributes={"_ARRAY_DIMENSIONS": ["a", "b"]})[...] = 5
        group.create_array("scalar", shape=(), dtype="i4", attributes={"_ARRAY_DIMENSIONS": 5})[...] = 5


def as_tree(path, zarr_format):
    tree = xarray.DataTree.from_dict({"/": xarray.Dataset(attrs={"title": "a tree"}), "/a/b": dataset(), "/c": noleap()})
    tree.to_zarr(path, mode="w", zarr_format=zarr_format)


def with_shards(path, zarr_format):
    data = dataset(0, 8)
    encoding = {name: {"chunks": (2,), "shards": (4,)} | ENCODING.get(name, {}) for name in data.variables if data[name].ndim and name != "text"}
    data.to_zarr(path, mode="w", zarr_format=zarr_format, encoding=encoding)


MAKERS = {"odd": odd, "types": written, "zarr": with_zarr, "tree": as_tree, "shards": with_shards}


def make(folder, *names):
    """FOLDER/NAME for each name, such as types_v3.zarr."""
    for name in names:
        maker, version = name.removesuffix(".zarr").split("_v")
        MAKERS[maker](folder / name, int(version))


@cache
def groups(path):
    """Group -> xarray's data set of it, or the reason why there is none."""
    found = {}
    try:
        root = zarr.open_group(str(path), mode="r", use_consolidated=False)
        names = ["", *(name for name, node in root.members(max_depth=None) if isinstance(node, zarr.Group))]
    except Exception:
        return found
    for name in names:
        try:
            found[name] = read(path, name)
        except Exception as error:
            found[name] = f"{type(error).__name__}: {error}"
    return found


def read(path, group, consolidated=False):
    opened = xarray.open_zarr(path, group=group or None, consolidated=consolidated).load()
    # The comparison leaves out the attributes of NCZarr itself, and `_ARRAY_DIMENSIONS`, which names nothing in v3,
    # and which xarray hides only in v2.
    for variable in opened.variables.values():
        for attribute in [name for name in variable.attrs if name.lower().startswith(("_nc", "_array_dimensions"))]:
            del variable.attrs[attribute]
    return opened


def compare(store, shown):
    """The number of variables that are the same, and {path of a variable or group: what differs}."""
    told, same = {}, 0
    for group, wanted in groups(store).items():
        if isinstance(wanted, str) or not wanted.variables:
            continue
        try:
            found = read(shown, group)
            consolidated = read(shown, group, consolidated=None)
        except Exception as error:
            told[group or "/"] = f"{type(error).__name__}: {error}"
            continue
        differ = {name: one[name] for one in (consolidated, found) for name in wanted.variables if not alike(wanted[name].variable, one[name].variable)}
        same += len(wanted.variables) - len(differ)
        told |= {os.path.join(group, str(name)): f"{said(wanted[name])} became {said(other)}" for name, other in differ.items()}
        if not differ:
            xarray.testing.assert_identical(wanted, found)
            xarray.testing.assert_identical(wanted, consolidated)
    return {"same": same, "told": told}


def alike(one, other):
    return one.dtype == other.dtype and one.identical(other)


def said(variable):
    return f"{variable.dtype} {variable.values.ravel()[:6]} {variable.attrs}"


def append(store, shown):
    """Appends through a mount: a chunk of which all is missing, and one with some values."""
    version = 3 if (store / "zarr.json").exists() else 2
    before = xarray.open_zarr(store, consolidated=False).load()
    more = dataset(before.sizes["time"], 4)
    for name in ("packed", "marked", "marked count", "float", "stamp"):
        more[name][2:4] = np.datetime64("NaT", "ns") if name == "stamp" else np.nan
    documents = {path: told(path) for path in store.glob("*/" + ("zarr.json" if version == 3 else ".zarray"))}
    more.to_zarr(shown, append_dim="time", consolidated=False)
    with open(Path(os.environ["MOUNT"], ".zarr-mount/sync")) as everything:
        os.fsync(everything)
    wanted = xarray.concat([before.drop_vars("scalar"), more], "time")
    for path in (store, shown):
        found = xarray.open_zarr(path, consolidated=False).load()
        for name in wanted.variables:
            xarray.testing.assert_identical(wanted[name], found[name])
    for path, document in documents.items():
        assert told(path) == document, path


def told(path):
    """The members of a document and of the attributes beside it, without the shape."""
    beside = path.with_name(".zattrs")
    return [json.loads(file.read_text()) | {"shape": None} for file in (path, beside) if file.exists()]


if __name__ == "__main__":
    way, *paths = sys.argv[1:]
    if way == "compare":
        print(json.dumps([compare(*map(Path, pair)) for pair in json.load(sys.stdin)]))
    elif way == "append":
        append(*map(Path, paths))
    else:
        make(Path(paths[0]), *paths[1:])
