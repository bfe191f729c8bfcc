"""Readers of other versions and other languages, each in a process of its own."""
import json
import os
import re
import select
import subprocess

import numpy as np

from support import mounting

ZARR2 = mounting.CHECKOUT / ".venv-zarr2" / "bin" / "python"


class Refused(Exception):
    """The reader does not read it, for this reason in its own words."""


class Zarr2:
    """zarr-python 2. Starting it costs more than most reads: one process answers all questions."""

    def __init__(self):
        self.start()

    def start(self):
        worker = mounting.WORKERS / "zarr2_worker.py"
        env = os.environ | {"ZARR_V3_EXPERIMENTAL_API": "1", "ZARR_V3_SHARDING": "1"}
        self.process = subprocess.Popen([ZARR2, "-W", "ignore", worker], text=True, env=env,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def open(self, root, path, **kwargs):
        """The answer of `zarr2_worker.answer` about a node; raises `Refused`."""
        self.process.stdin.write(json.dumps({"root": str(root), "path": path, **kwargs}) + "\n")
        self.process.stdin.flush()
        ready, _, _ = select.select([self.process.stdout], [], [], 5 * mounting.PATIENCE)
        if not ready:
            # A late answer would be taken for that to the next question.
            self.__exit__()
            self.start()
            raise AssertionError(f"zarr-python 2 gives no answer: {root}/{path}")
        found = json.loads(self.process.stdout.readline())
        if "error" in found:
            raise Refused(found["error"])
        return found


def run(*args):
    done = mounting.run(*args, timeout=mounting.PATIENCE)
    if done.returncode != 0:
        raise Refused(f"{args[0]}: {done.stderr.strip()}")
    return done.stdout


def gdal_name(root, name, *indices):
    """GDAL's name of an array, or of its plane at `indices` of the leading dimensions."""
    return ":".join([f'ZARR:"{root}"', f"/{name}", *map(str, indices)])


def gdalinfo(root, name, *indices):
    return json.loads(run("gdalinfo", "-json", gdal_name(root, name, *indices)))


def gdal(root, name, like, folder):
    """The values of an array of two dimensions or more, with GDAL, plane by plane; `like` gives shape and type."""
    values = np.empty_like(like)
    target = folder / "plane"
    for indices in np.ndindex(like.shape[:-2]):
        run("gdal_translate", "-q", "-of", "ENVI", gdal_name(root, name, *indices), target)
        values[indices] = np.fromfile(target, like.dtype).reshape(like.shape[-2:])
    return values


def ncdump(root, name, like):
    """The values of an array, with NetCDF-C; `_` is its fill value."""
    text = run("ncdump", "-p", "9,17", "-v", name, f"file://{root}#mode=zarr,file")
    data = re.search(rf"^data:.*^ {name} =(.*?);", text, re.DOTALL | re.MULTILINE)
    if data is None:
        raise Refused(f"ncdump shows no values: {text}")
    return np.array([item.strip() for item in data[1].split(",")]).astype(like.dtype).reshape(like.shape)
