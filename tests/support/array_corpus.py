"""Compares the whole-array files of an array of the corpus with its entry in the manifest."""
import base64
import json

import numpy as np

from support import chunk_grids
from support.workers.canonical import canonical, digest, framed, numpy_type


def file_of(root, store, array, extension):
    """The file of an array. A root array has the name of its store, however the view spells it."""
    if array["path"]:
        return root / f"{array['path']}.{extension}"
    found = list(root.glob(f"*.{extension}"))
    return found[0] if found else root / f"none.{extension}"


def refusal_of(root, array):
    """The note in place of the files of an array that cannot be decoded, if there is one."""
    found = [root / f"{array['path']}.ERROR.txt"] if array["path"] else list(root.glob("*ERROR.txt"))
    return found[0].read_text() if found and found[0].exists() else None


def left_out(root, store, array):
    """The reasons in the JSON why formats cannot hold the array."""
    path = file_of(root, store, array, "json")
    return json.loads(path.read_text())["left_out"] if path.exists() else {}


def npy_values(path, dtype):
    values = np.load(path)
    if isinstance(dtype, list) or str(dtype).startswith("<V"):
        return values
    assert values.dtype.newbyteorder("<") == numpy_type(dtype).newbyteorder("<"), (values.dtype, dtype)
    return values


def check(root, store, array):
    """A fault of the files of an array that must decode; None if they have none."""
    raw, npy = (file_of(root, store, array, e) for e in ("raw", "npy"))
    if not raw.exists():
        return f"no {raw.name}: {refusal_of(root, array)}"
    data = raw.read_bytes()
    if len(data) != array.get("nbytes", len(data)) or len(data) != raw.stat().st_size:
        return f"{len(data)} bytes of {array.get('nbytes')}"
    if "sha256" in array and digest(data) != array["sha256"]:
        return "other values in .raw"
    dtype = numpy_type(array["dtype"])
    shape, whole = tuple(array["shape"]), np.frombuffer(data, f"V{dtype.itemsize}")
    for grid, hashes in (("chunks", "chunk_sha256"), ("inner_chunks", "inner_chunk_sha256")):
        for chunk in array.get(hashes, ()) if "sha256" not in array else ():
            starts = [side.start for side in chunk_grids.box(array[grid], chunk["index"])]
            box = tuple(slice(start, start + n) for start, n in zip(starts, chunk["shape"]))
            if digest(np.ascontiguousarray(whole.reshape(shape)[box]).tobytes()) != chunk["sha256"]:
                return f"other values in chunk {chunk['index']}"
    if npy.exists():
        values = npy_values(npy, array["dtype"])
        if tuple(values.shape) != shape or canonical(values) != data:
            return "other values in .npy"
    elif "npy" not in left_out(root, store, array):
        return "no .npy, and no word why"
    return None


def check_strings(root, store, array):
    path = file_of(root, store, array, "jsonl")
    if not path.exists():
        return f"no {path.name}"
    items = [json.loads(line) for line in path.read_text().removesuffix("\n").split("\n")] if path.stat().st_size else []
    if "vlen-bytes" in json.dumps(array) or array.get("data_type") in ("bytes", "variable_length_bytes"):
        items = [base64.b64decode(item) for item in items]
    whole = b"".join(framed(item) for item in items)
    return None if "sha256" not in array or digest(whole) == array["sha256"] else "other strings"
