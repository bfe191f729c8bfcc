"""Every array of the corpus as `.npy` and `.raw`, and what the broken stores show instead."""
import base64
import errno
import json
import mmap
import os
from pathlib import Path

import numpy as np
import pytest

import corpus
import hostile
from canonical import canonical, digest, framed, numpy_type

SOUND = [s for s in corpus.stores().values() if s.kind != "corrupt" and s.arrays]
BROKEN = corpus.of_kind("corrupt")
READ_AT_MOST = 1 << 20  # a hostile document may promise exabytes
BOUND = (16 + 64) << 20
REFUSALS = {errno.EIO, errno.EACCES, errno.ELOOP}


def file_of(root, store, array, extension):
    """A root array takes the name of its store, whatever the view makes of that."""
    if array["path"]:
        return root / f"{array['path']}.{extension}"
    found = list(root.glob(f"*.{extension}"))
    return found[0] if found else root / f"none.{extension}"


def refusal_of(root, array):
    """The note in place of the files of an array that cannot be decoded, if there is one."""
    found = [root / f"{array['path']}.ERROR.txt"] if array["path"] else list(root.glob("*ERROR.txt"))
    return found[0].read_text() if found and found[0].exists() else None


def left_out(root, store, array):
    """What the JSON says of formats that cannot hold it."""
    path = file_of(root, store, array, "json")
    return json.loads(path.read_text())["left_out"] if path.exists() else {}


def npy_values(path, dtype):
    values = np.load(path)
    if isinstance(dtype, list) or str(dtype).startswith("<V"):
        return values
    assert values.dtype.newbyteorder("<") == numpy_type(dtype).newbyteorder("<"), (values.dtype, dtype)
    return values


def check(root, store, array):
    """What is wrong with the files of an array that must decode; None when nothing is."""
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
            box = tuple(slice(i * c, i * c + n) for i, c, n in zip(chunk["index"], array[grid], chunk["shape"]))
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


@pytest.mark.parametrize("store", SOUND, ids=lambda s: s.name)
def test_sound_arrays(store, mount):
    """Those that must decode do; those that may be refused are refused in words, or decode too."""
    made = mount(store.path, "--view", "arrays", "--files", "npy,raw,jsonl")
    wrong, told = [], 0
    old = store.kind not in ("v2", "v3")  # their codecs are spelled in other ways
    must = {a["path"] for a in store.arrays if a["expect"] == "ok" and (old or corpus.codecs_listed(a))}
    for array in store.arrays:
        strings = str(array.get("dtype")).startswith("vlen")
        shown = file_of(made.path, store, array, "jsonl" if strings else "raw").exists()
        if array["path"] not in must and not shown:
            told += 1
            if not refusal_of(made.path, array) and not left_out(made.path, store, array):
                wrong.append((array["path"], "absent without a word"))
            continue
        if array["expect"] in ("ok", "optional") and "dtype" in array:
            wrong.append((array["path"], (check_strings if strings else check)(made.path, store, array)))
    wrong = [w for w in wrong if w[1]]
    assert not wrong, wrong
    made.unmount()


@pytest.mark.parametrize("store", BROKEN, ids=hostile.stem)
def test_broken_stores(store, mount):
    """The array that is wrong is refused or gives an error, never other values; its neighbour reads."""
    made = mount(store.path, "--view", "arrays", "--files", "npy,raw", "--cache-size", "16M")
    beside = hostile.sibling(store)
    if beside:
        assert check(made.path, store, beside) is None
    if hostile.damaged_array(store):
        assert refusal_of(made.path, {"path": "a"}), os.listdir(made.path)
        assert not (made.path / "a.npy").exists() and not (made.path / "a.raw").exists()
    if hostile.damaged_chunk(store):
        top, bottom = (attempt(made.path / "a.raw", offset, 64) for offset in (0, 64))
        assert bottom == hostile.BOTTOM
        assert top in hostile.ALSO_FINE.get(hostile.stem(store), REFUSALS) or top in REFUSALS, top
    for path in listed(made.path):
        got = attempt(path, 0, READ_AT_MOST)
        assert isinstance(got, int) or corpus.SECRET not in got, path
    assert made.alive() and made.peak_bytes() <= BOUND
    made.unmount()


def attempt(path, offset, length):
    """The bytes of a part of a file, asked for past the page cache, or the errno that came instead."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
    except OSError as error:
        return error.errno
    try:
        buffer = mmap.mmap(-1, length)
        return buffer[: os.preadv(fd, [buffer], offset)]
    except OSError as error:
        return error.errno
    finally:
        os.close(fd)


def listed(root, limit=10_000):
    for seen, path in enumerate(Path(root).rglob("*")):
        assert seen < limit, "the walk does not end"
        if path.is_file():
            yield path
