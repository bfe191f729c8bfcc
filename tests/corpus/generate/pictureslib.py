"""Helpers of the generators of pictures.tar.gz: values to write, and the expectations of each store.

The stores go to the folder PICTURES_OUT. For each store, _expect/NAME.json has its description by the library that wrote it; pictures.py joins these.
"""
import hashlib
import json
import os
import shutil
from importlib.metadata import version
from pathlib import Path

import numpy as np

OUT = Path(os.environ["PICTURES_OUT"])


def versions(*packages):
    return ", ".join(f"{package} {version(package)}" for package in packages)


def digest(values):
    """The hash of the values in C order, little-endian."""
    values = np.asarray(values)
    return hashlib.sha256(np.ascontiguousarray(values.astype(values.dtype.newbyteorder("<"))).tobytes()).hexdigest()


def array(values):
    values = np.asarray(values)
    return {"dtype": values.dtype.newbyteorder("<").str, "shape": list(values.shape), "sha256": digest(values)}


def hills(shape, dtype, seed=0):
    """Smooth values, which compress well and of which no two rows, columns or planes are equal."""
    dtype = np.dtype(dtype)
    grids = np.meshgrid(*[np.arange(n) for n in shape], indexing="ij", sparse=True)
    height = sum(np.sin((grid + seed) / (3 + axis)) + grid / 10 for axis, grid in enumerate(grids))
    if dtype.kind == "f":
        return (np.round(height * 16) / 4).astype(dtype)
    top = min(np.iinfo(dtype).max, 4000)
    return ((height - height.min()) / (height.max() - height.min()) * top).astype(dtype)


def halved(values, axes):
    """The next level of a pyramid: every second element of the given axes."""
    return np.ascontiguousarray(values[tuple(slice(None, None, 2) if axis in axes else slice(None) for axis in range(values.ndim))])


class Store:
    """A store, and what is expected of it."""

    def __init__(self, name, writer, kind, **extra):
        self.path = OUT / name
        self.entry = {"name": name, "writer": writer, "kind": kind, "arrays": {}, **extra}
        shutil.rmtree(self.path, ignore_errors=True)
        OUT.mkdir(parents=True, exist_ok=True)

    def arrays(self, **values):
        self.entry["arrays"].update({path.replace("__", "/"): array(v) for path, v in values.items()})

    def raster(self, path, values, crs, transform, **said):
        """An array with its coordinate system as WKT2 and as an EPSG code, and GDAL's six numbers of its transform."""
        self.entry["arrays"][path] = array(values)
        where = {"transform": [float(n) for n in transform], **said}
        if crs is not None:
            where["crs"] = {"wkt": crs.to_wkt(), "epsg": crs.to_epsg(min_confidence=100)}
        self.entry.setdefault("rasters", {})[path] = where

    def image(self, path, name, axes, levels, voxel, units, origin=None, channels=None, **said):
        """An image of OME-NGFF: `levels` maps the paths of its arrays, the finest one first, to their values."""
        for level, values in levels.items():
            self.entry["arrays"][f"{path}/{level}".lstrip("/")] = array(values)
        self.entry.setdefault("images", {})[path] = {
            "name": name, "axes": axes, "levels": list(levels), "voxel": voxel, "units": units, "origin": origin,
            "channels": channels, **said}

    def save(self):
        folder = OUT / "_expect"
        folder.mkdir(exist_ok=True)
        text = json.dumps(self.entry, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=True)
        (folder / f"{self.entry['name']}.json").write_text(text)
        size = sum(f.stat().st_size for f in self.path.rglob("*") if f.is_file())
        print(f"{self.entry['name']}: {size} bytes")
