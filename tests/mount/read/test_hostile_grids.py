"""Rectilinear grids whose lengths are wrong or too many: the array is refused by name, and the mount goes on."""
import json

import numpy as np
import pytest
import zarr

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
# The budget of the cache, the header of one file at a time that takes more than that, and the program.
BOUND = (64 + 96) << 20
LENGTHS = "chunk lengths of 1 or more"
COVER = "chunks that cover"


def document(shapes, shape, name="rectilinear"):
    member = "chunk_shapes" if name == "rectilinear" else "chunk_shape"
    configuration = {"kind": "inline", member: shapes} if name == "rectilinear" else {member: shapes}
    return {"zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "int8", "fill_value": 0, "codecs": [LITTLE],
            "chunk_grid": {"name": name, "configuration": configuration}, "chunk_key_encoding": {"name": "default"}}


# The lists of the grid, the shape, and what the refusal says.
REFUSED = {
    "a length of 0": ([[4, 0, 6]], [10], LENGTHS),
    "a negative length": ([[4, -1, 7]], [10], LENGTHS),
    "one length of 0": ([0], [10], LENGTHS),
    "one negative length": ([-5], [10], LENGTHS),
    "a run of 0": ([[[5, 0], 10]], [10], LENGTHS),
    "a negative run": ([[[5, -2], 20]], [10], LENGTHS),
    "a run of lengths of 0": ([[[0, 2**40], 10]], [10], LENGTHS),
    "2^63 twice": ([[2**63, 2**63]], [10], COVER),
    "2^64": ([[2**64]], [10], LENGTHS),
    "a sum of 2^64": ([[[2**32, 2**32]]], [10], COVER),
    "a sum of more than 2^64": ([[[2**63, 2**63], 10]], [10], COVER),
    "runs that add up to 2^64": ([[[2**62, 3], [2**61, 1], [2**61, 1]]], [10], COVER),
    "a list that is too short": ([[3, 3]], [10], COVER),
    "runs that are too short": ([[[3, 3]]], [10], COVER),
    "an empty list": ([[]], [10], COVER),
    "an empty run": ([[[]]], [10], LENGTHS),
    "half a run": ([[[10]]], [10], LENGTHS),
    "a run of three": ([[[5, 1, 2]]], [10], LENGTHS),
    "a run in a run": ([[[[5, 1], 2]]], [10], LENGTHS),
    "half an element": ([[4.5, 5.5]], [10], LENGTHS),
    "text": ([["5", "5"]], [10], LENGTHS),
    "an object": ([{}], [10], LENGTHS),
    "null": (None, [10], "a list"),
    "too many lists": ([[10], [10]], [10], "found 2 lists, expected 1"),
    "too few lists": ([], [10], "found 0 lists, expected 1"),
    "no lists for a list": ([[5, 5]], [10, 10], "found 1 lists, expected 2"),
    "above 4 MiB": ([[10**9] * (1 << 19)], [10**9 << 19], "the size of an array's document"),
    "more than the cache has room for": ([[1, 2] * (5 << 18)], [15 << 18], "the memory that the document takes"),
    "a longer one": ([[1, 2] * (3 << 19)], [9 << 19], "the size of the document"),
}


@pytest.fixture(scope="module")
def shown(tmp_path_factory, module_mount):
    store = tmp_path_factory.mktemp("grids") / "s.zarr"
    group = zarr.create_group(str(store))
    group.create_array("sound", shape=(10,), chunks=(5,), dtype="int8")[...] = 7
    arrays = {name: document(*case[:2]) for name, case in REFUSED.items()}
    arrays["rectangular"] = document([[5, [5, 1]]], [10], "rectangular")
    # Chunks of one byte, and one of two, so that the chunks are no regular grid.
    arrays["billions"] = document([[[1, 10**9], [2, 10**9]]], [2 * 10**9])
    arrays["quadrillions"] = document([[[1, 2**58], [2, 2**57]]], [2**58])
    arrays["quintillions"] = document([[[1, 2**62], [2, 2**61]]], [2**62])
    # Runs as many as a document has room for.
    arrays["many runs"] = document([[1, 2] * (1 << 19)], [3 << 19])
    for name, made in arrays.items():
        (store / name / "c").mkdir(parents=True)
        (store / name / "zarr.json").write_text(json.dumps(made, separators=(",", ":")))
        (store / name / "c/1").write_bytes(b"\5\6"[: 2 if name == "many runs" else 1])
    return module_mount(store, "--view", "chunks,arrays", "--files", "npy,raw", "--cache-size", "64M")


@pytest.mark.parametrize("name", [*REFUSED, "rectangular"])
def test_the_array_is_refused_by_name(shown, name):
    problem = REFUSED[name][2] if name in REFUSED else LENGTHS
    told = (shown.path / "chunks" / name / "ERROR.txt").read_text()
    assert problem in told and ("chunk_grid" in told or "document" in told), told
    assert problem in (shown.path / "arrays" / f"{name}.ERROR.txt").read_text()
    assert not (shown.path / "arrays" / f"{name}.npy").exists()
    with pytest.raises(OSError) as error:
        (shown.path / "chunks" / name / "c/1").read_bytes()
    assert error.value.args[0] != 2, "an absent chunk reads as zeros"
    assert np.load(shown.path / "arrays/sound.npy").tolist() == [7] * 10


def test_many_chunks_take_no_memory(shown):
    chunks = shown.path / "chunks"
    assert (chunks / "billions/c/1").read_bytes() == b"\5"
    assert (chunks / f"billions/c/{10**9}").read_bytes() == b"\0\0"
    assert not (chunks / f"billions/c/{15 * 10**8}").exists()
    assert (chunks / f"quadrillions/c/{2**58 - 1}").read_bytes() == b"\0"
    assert "the number of chunks" in (chunks / "quintillions/ERROR.txt").read_text()
    assert (chunks / "many runs/c/1").read_bytes() == b"\5\6"
    last = (1 << 20) - 1
    assert len((chunks / f"many runs/c/{last}").read_bytes()) == 2
    assert np.memmap(shown.path / "arrays/billions.raw", "i1", "r")[:3].tolist() == [0, 5, 0]
    assert np.memmap(shown.path / "arrays/many runs.raw", "i1", "r")[:4].tolist() == [0, 5, 6, 0]
    assert shown.alive() and shown.peak_bytes() <= BOUND
