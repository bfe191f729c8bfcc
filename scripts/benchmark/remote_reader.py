"""One reading of an array of a web server by a Python library, in a process of its own, which prints what that cost.

usage: remote_reader.py LIBRARY URL REQUESTS HOW

LIBRARY is tensorstore or zarr-python (with obstore); REQUESTS are in flight at once, 0 for the library's default. HOW:
all (the whole array), first (the first element; a byte goes to standard output as soon as it is there), some (the chunks whose
indices are the lines of standard input, by 64 threads).
"""
import json
import os
import sys
import time
import zlib
from concurrent.futures import ThreadPoolExecutor

READERS = 64


def with_tensorstore(url, requests):
    import tensorstore

    def opened():
        context = {"http_request_concurrency": {"limit": requests}} if requests else {}
        return tensorstore.open({"driver": "zarr3", "kvstore": f"{url}/"}, context=tensorstore.Context(context), open=True, read=True).result()
    return opened, lambda array, part: array[part].read().result()


def with_zarr_python(url, requests):
    import zarr
    from obstore.store import HTTPStore
    from zarr.storage import ObjectStore
    if requests:
        zarr.config.set({"async.concurrency": requests})

    def opened():
        store = HTTPStore.from_url(url, client_options={"allow_http": True})
        return zarr.open_array(ObjectStore(store, read_only=True), mode="r")
    return opened, lambda array, part: array[part]


def main():
    library, url, requests, how = sys.argv[1:]
    import numpy as np
    opened, read = {"tensorstore": with_tensorstore, "zarr-python": with_zarr_python}[library](url, int(requests))
    boxes = [tuple(map(int, line.split())) for line in sys.stdin] if how == "some" else []
    before, start = os.times(), time.perf_counter()
    array = opened()
    told = {}
    if how == "all":
        values = read(array, ...)
    elif how == "first":
        read(array, (0,) * len(array.shape))
        os.write(1, b"\n")
    else:
        chunks = array.chunks if library == "zarr-python" else array.chunk_layout.read_chunk.shape

        def one(indices):
            return read(array, tuple(slice(i * c, (i + 1) * c) for i, c in zip(indices, chunks))).nbytes
        with ThreadPoolExecutor(READERS) as threads:
            told["bytes"] = sum(threads.map(one, boxes))
    seconds, after = time.perf_counter() - start, os.times()
    if how == "all":
        told = {"bytes": values.nbytes, "crc": zlib.crc32(np.ascontiguousarray(values).reshape(-1).view("u1"))}
    print(json.dumps({**told, "seconds": seconds, "cpu": after.user + after.system - before.user - before.system}))


main()
