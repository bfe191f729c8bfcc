"""Any combination of options, in any order of access: every file holds the values that were written, and has the right size.

Views of one mount share the caches of chunks, of shard indices and of documents, so one view finds the data that another one has
loaded. ZARR_MOUNT_TEST_CASES=N mounts more combinations, and ZARR_MOUNT_TEST_SEED=N one of them again.
"""
import io
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import zarr

from support import option_cases, reading
from support.option_cases import same

MOUNTS_A_STORE = 4
CASES = int(os.environ.get("ZARR_MOUNT_TEST_CASES", "200"))
BATCHES = 10


def seeds(batch):
    if "ZARR_MOUNT_TEST_SEED" in os.environ:
        return [int(os.environ["ZARR_MOUNT_TEST_SEED"])] if batch == 0 else []
    return range(batch, CASES // MOUNTS_A_STORE, BATCHES)


@pytest.mark.parametrize("batch", range(BATCHES))
@pytest.mark.timeout(max(600, CASES * 2))
def test_any_options_in_any_order(mount, tmp_path, batch):
    for seed in seeds(batch):
        dice = option_cases.dice_of(seed)
        store = option_cases.random_store(dice, tmp_path / f"store{seed}.zarr")
        for _ in range(MOUNTS_A_STORE):
            options = option_cases.Options.random(dice)
            about = f"ZARR_MOUNT_TEST_SEED={seed}: {store.root} {' '.join(options.arguments())}"
            made = mount(store.root, *options.arguments())
            try:
                checks = [check for view in options.views for check in CHECKS[view](made.path, store, options)]
                is_empty = all(array.values.size == 0 for array in store.arrays)
                assert checks or is_empty, f"{about}: nothing to look at"
                dice.shuffle(checks)
                run(checks, dice.choice([1, 4]), about)
                assert "internal error" not in made.log_text(), f"{about}: {made.log_text()}"
            finally:
                made.unmount()


def run(checks, threads, about):
    with ThreadPoolExecutor(threads) as pool:
        wrong = [told for told in pool.map(lambda check: check(), checks) if told]
    assert not wrong, f"{about}: {wrong[:5]}"


def read(path, dice):
    """The bytes of a file, read twice: as a whole, and in pieces in random order. Its size agrees with both."""
    size = os.stat(path).st_size
    with open(path, "rb", buffering=0) as file:
        step = max(1, size // dice.randint(1, 7))
        starts = list(range(0, size, step))
        dice.shuffle(starts)
        pieces = {start: os.pread(file.fileno(), step, start) for start in starts}
    whole = path.read_bytes()
    assert len(whole) == size, f"{path}: stat says {size} bytes, and {len(whole)} are read"
    assert b"".join(pieces[start] for start in sorted(pieces)) == whole, f"{path}: read twice, two contents"
    return whole


def chunk_checks(root, store, options):
    """A check for each chunk file of each array."""
    for array in store.arrays:
        shape = options.chunk_shape(array)
        grid = tuple(-(-n // c) for n, c in zip(array.values.shape, shape))
        directory = options.root(root, "chunks") / array.path
        for index in np.ndindex(*grid):
            yield lambda array=array, directory=directory, index=index, shape=shape: wrong_chunk(
                array, directory, index, shape, options)


def wrong_chunk(array, directory, index, shape, options):
    shown = reading.Shown.at(directory)
    if shown.chunks != shape:
        return f"{array.path}: chunks of {shown.chunks}, not of {shape}"
    path = shown.chunk_path(index)
    expected = array.box(index, shape)
    if not path.exists():
        absent = zarr.open_array(str(directory), mode="r")[tuple(slice(i * n, (i + 1) * n) for i, n in zip(index, shape))]
        is_absent = options.missing == "hide" and same(absent, expected)
        return None if is_absent else f"{path}: no such file"
    data = read(path, option_cases.dice_of(str(path)))
    dtype = array.values.dtype.newbyteorder("<")
    if len(data) != np.prod(shape, dtype=int) * dtype.itemsize:
        return f"{path}: {len(data)} bytes, of a chunk of {shape}"
    got = np.frombuffer(data, dtype).reshape(shape)[tuple(slice(0, n) for n in expected.shape)]
    return None if same(got, expected) else f"{path}: other values"


def key_checks(root, store, options):
    """A check of the values of each array with zarr-python, and one of the size of each file."""
    top = options.root(root, "keys")
    for array in store.arrays:
        yield lambda array=array: wrong_array(array, top, store, options)
    for base, _, names in os.walk(top):
        for name in names:
            yield lambda path=top / base / name: read(path, option_cases.dice_of(str(path))) and None


def wrong_array(array, top, store, options):
    directory = top / array.path
    if option_cases.document(directory) is None:
        is_refused = options.shown_as and (directory / "ERROR.txt").stat().st_size > 0
        return None if is_refused else f"{directory}: no document"
    got = zarr.open_array(str(top), path=array.path, mode="r", zarr_format=options.zarr_format(store))[...]
    return None if same(got, array.values) else f"{directory}: other values"


def array_checks(root, store, options):
    """A check for each file of each array, and of each group."""
    top = options.root(root, "arrays")
    for array in store.arrays:
        for format in {"npy", "raw"} & set(options.files):
            yield lambda array=array, format=format: wrong_file(array, top / f"{array.path}.{format}", format)
    for base, _, names in os.walk(top):
        for name in names:
            path = top / base / name
            if path.suffix not in (".npy", ".raw"):
                yield lambda path=path: wrong_group(store, top, path)


def wrong_file(array, path, format):
    data = read(path, option_cases.dice_of(str(path)))
    little = array.values.dtype.newbyteorder("<")
    got = np.load(io.BytesIO(data)) if format == "npy" else np.frombuffer(data, little).reshape(array.values.shape)
    return None if same(got, array.values) else f"{path}: other values"


def wrong_group(store, top, path):
    """Files of groups hold the elements of an array in one run, and so can be searched for them."""
    data = read(path, option_cases.dice_of(str(path)))
    directly = {".h5": False, ".nc": True}.get(path.suffix)
    if directly is None:
        return None
    order = "<" if data.startswith(b"\x89HDF") else ">"
    group = path.parent.relative_to(top).as_posix().removeprefix(".")
    for array in store.arrays:
        parent, _, _ = array.path.rpartition("/")
        is_in = parent == group or not directly and (group == "" or f"{parent}/".startswith(f"{group}/"))
        if is_in and array.values.dtype.kind in "if" and array.values.dtype.itemsize in (2, 4):
            if array.values.astype(array.values.dtype.newbyteorder(order)).tobytes() not in data:
                return f"{path}: {array.path} is not in it"
    return None


CHECKS = {"keys": key_checks, "chunks": chunk_checks, "arrays": array_checks}


@pytest.mark.parametrize("order", [("chunks", "arrays"), ("arrays", "chunks")])
def test_a_kept_shard_and_its_first_chunk_are_two_things(mount, order):
    """The file of one and the block of the other were served in place of each other."""
    alone = mount("demo:", "--view", "arrays")
    expected = np.load(alone.path / "air" / "temperature.npy")
    both = mount("demo:", "--view", "chunks,arrays", "--shards", "keep")
    for view in order:
        if view == "arrays":
            assert same(np.load(both.path / "arrays" / "air" / "temperature.npy"), expected)
        else:
            shard = both.path / "chunks" / "air" / "temperature" / "c" / "0" / "0" / "0"
            shape = reading.Shown.at(shard.parents[3]).chunks
            got = np.frombuffer(shard.read_bytes(), expected.dtype).reshape(shape)
            assert same(got, expected[tuple(slice(0, n) for n in shape)])
