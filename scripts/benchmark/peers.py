"""Readers of a whole array beside the mount: libraries in process, and decoding by hand."""
import os
import time
import zlib

import numpy as np
import tensorstore
import zarr

import workbench


def zarr_python(store):
    return zarr.open_array(str(store), mode="r")[...]


def tensor_store(store, zarr_format):
    driver = "zarr" if zarr_format == 2 else "zarr3"
    spec = {"driver": driver, "kvstore": {"driver": "file", "path": f"{store}/"}}
    return tensorstore.open(spec, open=True, read=True).result().read().result()


class Peers:
    """The peers of one data set: `readers()` gives functions by their names, each of which reads the whole data set once."""

    def __init__(self, data, dataset):
        self.store, self.spec, self.dataset = data.store(dataset), data.spec(dataset), dataset
        self.bytes = data.values(dataset.source).nbytes
        self.crc = data.crc(dataset.source)

    def libraries(self):
        return {
            "zarr-python": lambda: self._in_process(lambda: zarr_python(self.store)),
            "tensorstore": lambda: self._in_process(lambda: tensor_store(self.store, self.dataset.zarr_format)),
            "zarrs": lambda: self._told(workbench.program("zarrs_read", self.spec)),
        }

    def floors(self):
        return {
            "floor, 1 thread": lambda: self._told(workbench.program("decode_floor", self.spec, "whole", 1)),
            "floor": lambda: self._told(workbench.program("decode_floor", self.spec, "whole", os.cpu_count())),
        }

    def _in_process(self, read):
        before, start = os.times(), time.perf_counter()
        array = read()
        seconds, after = time.perf_counter() - start, os.times()
        self._check(array.nbytes, zlib.crc32(np.ascontiguousarray(array).reshape(-1).view("u1")))
        return {"seconds": seconds, "user": after.user - before.user, "system": after.system - before.system}

    def _told(self, told):
        self._check(told["bytes"], told["crc"])
        return told

    def _check(self, n, crc):
        assert n == self.bytes and crc == self.crc, f"{self.dataset.label}: wrong values"
