"""Rectilinear chunk grids, whose chunks have different lengths, in each view."""

import itertools
import json
import os
import shutil
import struct
import zlib

import numpy as np
import pytest

from support.mounting import BINARY, ok

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
GZIP = {"name": "gzip", "configuration": {"level": 1}}
TURN = {"name": "transpose", "configuration": {"order": [1, 0]}}
FILL = -7
# Lengths as the grid spells them, and as they are, one list for each axis. The last ones reach past the array.
SHAPE = (30, 41)
SHAPES, ROWS, COLUMNS = [[7, [8, 2], 9, 4], [1, 20, 24]], [7, 8, 8, 9, 4], [1, 20, 24]
SHARD_SHAPES, SHARD_ROWS, SHARD_COLUMNS, INNER = [[10, [5, 2], 20], 44], [10, 5, 5, 20], [44], (5, 11)


def values():
    data = np.arange(np.prod(SHAPE), dtype="i2").reshape(SHAPE)
    data[7:15, 1:21] = FILL
    return data


def padded(data):
    """The array with filler behind its edges."""
    whole = np.full((60, 60), FILL, "i2")
    whole[: SHAPE[0], : SHAPE[1]] = data
    return whole


def boxes(rows, columns):
    """Indices and slices of the chunks of the grid that have elements of the array."""
    ends = [list(itertools.accumulate(lengths)) for lengths in (rows, columns)]
    for i, j in itertools.product(range(len(rows)), range(len(columns))):
        box = tuple(slice(end[k] - lengths[k], end[k]) for end, lengths, k in zip(ends, (rows, columns), (i, j)))
        if box[0].start < SHAPE[0] and box[1].start < SHAPE[1]:
            yield (i, j), box


def gzipped(data):
    packer = zlib.compressobj(1, wbits=31)
    return packer.compress(data) + packer.flush()


def shard(block):
    """A shard of compressed inner chunks; those of fill values are left out."""
    body, index = b"", b""
    for i, j in itertools.product(range(block.shape[0] // INNER[0]), range(block.shape[1] // INNER[1])):
        part = block[i * INNER[0] : (i + 1) * INNER[0], j * INNER[1] : (j + 1) * INNER[1]]
        if (part == FILL).all():
            index += struct.pack("<QQ", 2**64 - 1, 2**64 - 1)
            continue
        encoded = gzipped(part.tobytes())
        index += struct.pack("<QQ", len(body), len(encoded))
        body += encoded
    return body + index


def write_array(path, shapes, codecs, rows, columns, encode):
    path.mkdir(parents=True)
    grid = {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": shapes}}
    keys = {"name": "default", "configuration": {"separator": "/"}}
    document = {"zarr_format": 3, "node_type": "array", "shape": SHAPE, "data_type": "int16", "chunk_grid": grid,
                "chunk_key_encoding": keys, "fill_value": FILL, "codecs": codecs, "dimension_names": ["y", "x"]}
    (path / "zarr.json").write_text(json.dumps(document))
    data = padded(values())
    for (i, j), box in boxes(rows, columns):
        if not (data[box] == FILL).all():
            (path / "c" / str(i)).mkdir(parents=True, exist_ok=True)
            (path / "c" / str(i) / str(j)).write_bytes(encode(data[box]))


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    store = tmp_path_factory.mktemp("rectilinear") / "s.zarr"
    store.mkdir()
    (store / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
    write_array(store / "raw", SHAPES, [LITTLE], ROWS, COLUMNS, lambda box: box.tobytes())
    write_array(store / "turned", SHAPES, [TURN, LITTLE, GZIP], ROWS, COLUMNS, lambda box: gzipped(box.T.tobytes()))
    index = {"chunk_shape": INNER, "codecs": [LITTLE, GZIP], "index_codecs": [LITTLE]}
    codecs = [{"name": "sharding_indexed", "configuration": index}]
    write_array(store / "sharded", SHARD_SHAPES, codecs, SHARD_ROWS, SHARD_COLUMNS, shard)
    return store


@pytest.fixture(scope="module")
def shown(module_mount, store):
    return module_mount(store, "--view", "keys,chunks,arrays", "--files", "npy", "-o", "xattr").path


def files_below(directory):
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}


def test_whole_arrays(shown):
    for name in ["raw", "turned", "sharded"]:
        found = np.load(shown / "arrays" / f"{name}.npy", mmap_mode="r")
        assert (found[13:29, 5:40:3] == values()[13:29, 5:40:3]).all(), name
        assert found[29, 40] == values()[29, 40], name
        assert (np.array(found) == values()).all(), name
    sidecar = json.loads((shown / "arrays/raw.json").read_text())
    assert sidecar["chunk_shape"] == SHAPES
    sidecar = json.loads((shown / "arrays/sharded.json").read_text())
    assert (sidecar["chunk_shape"], sidecar["shard_shape"]) == (list(INNER), SHARD_SHAPES)


@pytest.mark.parametrize("name", ["raw", "turned"])
def test_chunk_files_have_their_own_lengths(shown, store, name):
    chunks, data = shown / "chunks" / name, padded(values())
    expected = {f"c/{i}/{j}": box for (i, j), box in boxes(ROWS, COLUMNS)}
    assert files_below(chunks) == {*expected, "zarr.json"}
    for key, box in expected.items():
        rows, columns = (side.stop - side.start for side in box)
        assert (chunks / key).stat().st_size == 2 * rows * columns, key
        found = np.fromfile(chunks / key, "i2").reshape(rows, columns)
        assert (found == data[box]).all(), key
    document = json.loads((chunks / "zarr.json").read_text())
    stored = json.loads((store / name / "zarr.json").read_text())
    assert document["chunk_grid"] == stored["chunk_grid"]
    assert document["codecs"] == [LITTLE]
    assert files_below(shown / "keys" / name) == files_below(store / name)
    assert os.getxattr(chunks, "user.zarr.chunk_shape") == b"[[7,[8,2],9,4],[1,20,24]]"
    assert os.getxattr(chunks / "c/3/2", "user.zarr.region") == b"23:30,21:41"


def test_inner_chunks_of_shards_that_differ(shown):
    data, inside = padded(values()), []
    for i, j in itertools.product(range(6), range(4)):
        box = data[i * 5 : i * 5 + 5, j * 11 : j * 11 + 11]
        assert (np.fromfile(shown / f"chunks/sharded/c/{i}/{j}", "i2").reshape(INNER) == box).all()
        if not (box == FILL).all():
            inside.append(f"c/{i}/{j}")
            encoded = (shown / f"keys/sharded/c/{i}/{j}").read_bytes()
            assert zlib.decompress(encoded, wbits=31) == box.tobytes()
    assert files_below(shown / "keys/sharded") == {*inside, "zarr.json"}
    document = json.loads((shown / "keys/sharded/zarr.json").read_text())
    assert document["chunk_grid"] == {"name": "regular", "configuration": {"chunk_shape": list(INNER)}}


def test_whole_shards(mount, store):
    at = mount(store, "--view", "chunks", "--shards", "keep").path
    data = padded(values())
    for (i, j), box in boxes(SHARD_ROWS, SHARD_COLUMNS):
        rows = box[0].stop - box[0].start
        assert (np.fromfile(at / f"sharded/c/{i}/{j}", "i2").reshape(rows, 44) == data[box]).all()


def test_info_says_the_lengths(store):
    assert "of (4 to 9, 1 to 24), up to " in ok(BINARY, "--info", store, "raw")
    sharded = ok(BINARY, "--info", store, "sharded")
    assert "of (5, 11), " in sharded and "of (5 to 20, 44)\n" in sharded
    found = ok(BINARY, "--info", "--at", "23,21", store, "raw")
    assert "c/3/2" in found and str(values()[23, 21]) in found
    refused = ok(BINARY, "--info", "--as", "v2", store, "raw")
    assert "`rectilinear` cannot be expressed in v2" in refused


def test_version_2_has_no_such_grid(mount, store):
    at = mount(store, "--view", "chunks", "--as", "v2").path
    assert "`rectilinear` cannot be expressed in v2" in (at / "raw/ERROR.txt").read_text()
    with pytest.raises(OSError):
        (at / "raw/0/0").read_bytes()
    assert json.loads((at / "sharded/.zarray").read_text())["chunks"] == list(INNER)


def test_writing(mount, store, tmp_path):
    copy = shutil.copytree(store, tmp_path / "copy.zarr")
    new = padded(values() + 1)
    mounted = mount(copy, "--rw", "--view", "chunks,arrays")
    chunks, arrays = mounted.path / "chunks", mounted.path / "arrays"
    for name in ["raw", "turned"]:
        for (i, j), box in boxes(ROWS, COLUMNS):
            (chunks / f"{name}/c/{i}/{j}").write_bytes(new[box].tobytes())
        with pytest.raises(OSError):
            # The chunk beside it has this length.
            (chunks / name / "c/0/1").write_bytes(new[7:15, 1:21].tobytes())
    for i, j in itertools.product(range(6), range(4)):
        (chunks / f"sharded/c/{i}/{j}").write_bytes(new[i * 5 : i * 5 + 5, j * 11 : j * 11 + 11].tobytes())
    mounted.sync()
    for name in ["raw", "turned", "sharded"]:
        assert (np.load(arrays / f"{name}.npy") == values() + 1).all(), name
    for (i, j), box in boxes(ROWS, COLUMNS):
        assert (copy / f"raw/c/{i}/{j}").read_bytes() == new[box].tobytes()
    for (i, j), box in boxes(SHARD_ROWS, SHARD_COLUMNS):
        # The index has a slot for each inner chunk of this shard.
        stored = (copy / f"sharded/c/{i}/{j}").read_bytes()
        slots = (box[0].stop - box[0].start) // 5 * 4
        entries = struct.unpack(f"<{2 * slots}Q", stored[-16 * slots :])
        assert sum(length for length in entries[1::2] if length < 2**64 - 1) == len(stored) - 16 * slots


def test_growing(mount, store, tmp_path):
    copy = shutil.copytree(store, tmp_path / "copy.zarr")
    mounted = mount(copy, "--rw", "--view", "chunks,arrays")
    document = mounted.path / "chunks/raw/zarr.json"
    changed = json.loads(document.read_text())
    lengths = changed["chunk_grid"]["configuration"]["chunk_shapes"]
    lengths[0][0] = 8
    with pytest.raises(OSError):
        document.write_text(json.dumps(changed))
    # Another length, behind the one that the array did not reach.
    lengths[0][0] = 7
    lengths[0].append(5)
    changed["shape"] = [40, 45]
    document.write_text(json.dumps(changed))
    (mounted.path / "chunks/raw/c/5/0").write_bytes(np.arange(5, dtype="i2").tobytes())
    found = np.load(mounted.path / "arrays/raw.npy")
    assert found.shape == (40, 45)
    assert (found[:30, :41] == values()).all() and (found[30:36] == FILL).all()
    assert (found[36:, 0] == np.arange(4)).all()


def test_a_list_of_equal_lengths_grows(mount, tmp_path):
    """The array is shown with a regular grid, so a program that makes it longer changes only its shape."""
    data = np.arange(36, dtype="i2").reshape(6, 6)
    store = tmp_path / "s.zarr"
    rows = columns = [3, 3]
    write_small(store, data, [rows, columns], rows, columns)
    mounted = mount(store, "--rw", "--view", "chunks,arrays")
    document = mounted.path / "chunks/zarr.json"
    changed = json.loads(document.read_text())
    assert changed["chunk_grid"]["name"] == "regular"
    changed["shape"] = [10, 6]
    document.write_text(json.dumps(changed))
    (mounted.path / "chunks/c/3/1").write_bytes(np.full((3, 3), 5, "i2").tobytes())
    mounted.sync()
    stored = json.loads((store / "zarr.json").read_text())
    assert stored["chunk_grid"]["configuration"]["chunk_shapes"] == [[3, 3, [3, 2]], [3, 3]]
    found = np.load(next((mounted.path / "arrays").glob("*.npy")))
    assert (found[:6] == data).all() and (found[9, 3:] == 5).all() and (found[6:9] == FILL).all()


def test_in_a_zip_file(mount, store, tmp_path):
    packed = shutil.make_archive(str(tmp_path / "s"), "zip", store)
    at = mount(packed, "--view", "arrays", "--files", "npy").path
    for name in ["raw", "turned", "sharded"]:
        assert (np.load(at / f"{name}.npy") == values()).all(), name


def write_small(path, data, shapes, rows, columns):
    """An array of raw chunks, which is the root of its store."""
    path.mkdir()
    grid = {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": shapes}}
    document = {"zarr_format": 3, "node_type": "array", "shape": data.shape, "data_type": "int16", "chunk_grid": grid,
                "chunk_key_encoding": {"name": "default"}, "fill_value": FILL, "codecs": [LITTLE]}
    (path / "zarr.json").write_text(json.dumps(document))
    top = 0
    for i, height in enumerate(rows):
        left = 0
        (path / "c" / str(i)).mkdir(parents=True)
        for j, width in enumerate(columns):
            (path / "c" / str(i) / str(j)).write_bytes(data[top : top + height, left : left + width].tobytes())
            left += width
        top += height
