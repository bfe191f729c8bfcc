"""`--info STORE PATH --at i,j,k` against zarr-python and against the bytes of the store."""
import itertools
import json
import os
import subprocess

import numpy as np
import pytest
import zarr

from support import corpus
from support.mounting import BINARY, ok, run

# Which zarr-python 3 opens, of types whose values Python prints as the command does.
NUMBERS = ["zp3_shards.zarr", "zp3_transpose.zarr", "zp3_layout.zarr", "zp2_dtypes.zarr", "zp2_filters.zarr", "zp3_v2.zarr"]


def at(store, path, index):
    text = ok(BINARY, "--info", "--json", "--at", ",".join(map(str, index)), store, path)
    return json.loads(text)


def corners(shape):
    """The first, the last and some elements between."""
    return itertools.product(*[sorted({0, n // 2, n - 1}) for n in shape])


@pytest.mark.parametrize("name", NUMBERS)
def test_values_are_those_that_zarr_python_reads(name):
    store = corpus.stores()[name]
    told = 0
    for entry in store.decodable():
        array = zarr.open_array(store.path / entry["path"], mode="r")
        if array.dtype.kind not in "iuf" or 0 in array.shape:
            continue
        values = array[...]
        for index in list(corners(array.shape))[:9]:
            expected = values[index]
            found = np.array(at(store.path, entry["path"], index)["value"]).astype(array.dtype)
            assert found == expected or (np.isnan(found) and np.isnan(expected)), (entry["path"], index)
            told += 1
    assert told > 9


def owner(store, key, offset):
    return json.loads(ok(BINARY, "--info", "--json", "--offset", offset, store, key))


def test_the_bytes_are_those_of_the_inner_chunk_and_it_owns_them():
    """`--at` says which bytes have an element, and `--offset` with the first and the last of them gives the same chunk."""
    store = corpus.stores()["zp3_shards.zarr"]
    compared = 0
    for entry in store.decodable():
        array = zarr.open_array(store.path / entry["path"], mode="r")
        for index in list(corners(array.shape))[:9]:
            found = at(store.path, entry["path"], index)
            region = tuple(slice(*part) for part in found["region"])
            inside = tuple(i - s.start for i, s in zip(index, region))
            assert array[region][inside].tobytes() == array[index].tobytes()
            if not found["stored"]:
                assert array[index].tobytes() == np.asarray(array.fill_value, array.dtype).tobytes()
                continue
            size = (store.path / found["key"]).stat().st_size
            if "offset" not in found:
                assert owner(store.path, found["key"], size - 1)["part"] == "shard"
                continue
            end = found["offset"] + found["nbytes"]
            assert found["offset"] < end <= size
            for offset in (found["offset"], end - 1):
                said = owner(store.path, found["key"], offset)
                assert said["part"] == "chunk" and said["size"] == size and said["bytes"] == [found["offset"], end]
                assert all(said.get(name) == found.get(name) for name in ("key", "path", "chunk", "region", "shard")), (said, found)
            compared += 1
    assert compared > 9


def test_elements_of_every_version():
    for name, path, index, value in [
        ("demo:", "air/temperature", [0, 0, 1], 251.0),
        ("demo:", "legacy/elevation", [0, 0], None),
        ("zp1_110_blosc.zarr", "", [1, 1], None),
        ("draft22_tree.zarr", "foo/baz", [1, 1], None),
        ("zp2_draft_v3_sharded.zarr", "sh/plain", [5, 3], None),
        ("zp2_store.zip", None, [0], None),
    ]:
        store = name if name == "demo:" else corpus.stores()[name].path
        if path is None:
            path = corpus.stores()[name].arrays[0]["path"]
            index = [0] * len(corpus.stores()[name].arrays[0]["shape"])
        found = at(store, path, index)
        assert found["stored"] and found["nbytes"] > 0, name
        assert value is None or found["value"] == value


def test_a_byte_that_belongs_to_no_chunk(tmp_path):
    group = zarr.create_group(str(tmp_path / "s.zarr"))
    array = group.create_array("t", shape=(8,), shards=(4,), chunks=(2,), dtype="u1", compressors=None)
    array[...] = np.arange(1, 9)
    # 4 bytes of chunks, and an index of two entries and a checksum. A writer may leave a gap between them.
    shard = tmp_path / "s.zarr/t/c/1"
    data = shard.read_bytes()
    assert len(data) == 4 + 36
    shard.write_bytes(data[:4] + b"gap" + data[4:])
    said = owner(tmp_path / "s.zarr", "t/c/1", 5)
    assert said["part"] == "none" and said["shard"] == [1] and said["region"] == [[4, 8]] and "chunk" not in said
    said = owner(tmp_path / "s.zarr", "t/c/1", 7)
    assert said["part"] == "index" and said["bytes"] == [7, 43]
    text = ok(BINARY, "--info", "--offset", 3, tmp_path / "s.zarr", "t/c/1")
    assert text.splitlines() == ["t/c/1: byte 3 of 43", "array   t", "place   chunk (3) [6:8] of shard (1)",
                                 "bytes   2..4  (2), of which this is number 1"]
    for key, offset, problem in [("t/c/1", 43, "the object has 43 bytes"), ("t/zarr.json", 0, "no chunk of an array"), ("t", 0, "no chunk of an array"),
                                 ("t/c/2", 0, "outside of the array"), ("", 0, "wants the key"), ("t/x", 0, "no chunk of an array")]:
        failed = run(BINARY, "--info", "--offset", offset, tmp_path / "s.zarr", *([key] if key else []))
        assert failed.returncode == 1 and problem in failed.stderr, failed.stderr
    shard.unlink()
    failed = run(BINARY, "--info", "--offset", 0, tmp_path / "s.zarr", "t/c/1")
    assert failed.returncode == 1 and "fill value" in failed.stderr
    shard.write_bytes(data[:20])
    failed = run(BINARY, "--info", "--offset", 0, tmp_path / "s.zarr", "t/c/1")
    assert failed.returncode == 1 and "t: shard (1) [4:8]: t/c/1: bytes 0..20" in failed.stderr and "truncated" in failed.stderr


def test_values_are_numbers_of_json_where_it_has_them(tmp_path):
    group = zarr.open_group(str(tmp_path / "s"), mode="w")
    times = np.array([3, "NaT"], "m8[s]")
    for name, values, told in [
        ("f4", np.array([0.1, np.nan, -np.inf], "f4"), [float(np.float32(0.1)), "NaN", "-inf"]),
        ("f2", np.array([0.1, -0.0], "f2"), [float(np.float16(0.1)), -0.0]),
        ("i8", np.array([-7, 2**53, 2**53 + 1, -(2**63)]), [-7, 2**53, str(2**53 + 1), str(-(2**63))]),
        ("u8", np.array([1, 2**64 - 1], "u8"), [1, str(2**64 - 1)]),
        ("bool", np.array([True, False]), [True, False]),
        ("c16", np.array([1 + 2j]), ["(1.0, 2.0)"]),
        ("time", times, ["3 s", "NaT"]),
        ("S4", np.array([b"12"], "S4"), ['b"12"']),
    ]:
        group.create_array(name, shape=values.shape, chunks=values.shape, dtype=values.dtype)[...] = values
        found = [at(tmp_path / "s", name, [i])["value"] for i in range(len(values))]
        assert repr(found) == repr(told), name


def test_indices_outside_of_the_array_are_an_error():
    for arguments, message in [
        (["--at", "3", "--at", "20,40", "demo:", "air/temperature"], "--at is given more than once"),
        (["--at", "8,0,0", "demo:", "air/temperature"], "has the shape (8, 48, 96)"),
        (["--at", "-9,0,0", "demo:", "air/temperature"], "has the shape (8, 48, 96)"),
        (["--at", "0,0", "demo:", "air/temperature"], "has the shape (8, 48, 96)"),
        (["--at", "0", "demo:", "air"], "no array"),
        (["--at", "x", "demo:", "air/temperature"], "one index for each dimension"),
    ]:
        done = run(BINARY, "--info", *arguments)
        assert done.returncode != 0 and message in done.stderr, done.stderr


def test_negative_indices_count_from_the_end():
    last = ok(BINARY, "--info", "--json", "--at", "7,47,95", "demo:", "air/temperature")
    assert ok(BINARY, "--info", "--json", "--at", "-1,-1,-1", "demo:", "air/temperature") == last
    assert ok(BINARY, "--info", "--json", "--at=-8,-48,0", "demo:", "air/temperature") == ok(
        BINARY, "--info", "--json", "--at", "0,0,0", "demo:", "air/temperature")


def test_info_says_what_a_version_cannot_express():
    told = ok(BINARY, "--info", "--as", "v2", corpus.stores()["ts_v3.zarr"].path, "transpose")
    assert "keys view" in told and "cannot be expressed in v2" in told
    assert "cannot" not in ok(BINARY, "--info", "--as", "v3", "demo:", "legacy/elevation")


def test_a_path_without_a_node_is_an_error_with_advice(tmp_path):
    (tmp_path / "hdf5").mkdir()
    (tmp_path / "hdf5" / "data.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(8))
    (tmp_path / "empty").mkdir()
    for words, advice in [(["demo:", "nix"], "without a path, --info lists all nodes"), ([tmp_path / "hdf5"], "it looks like"),
                          ([tmp_path / "empty"], "is this the directory that holds the hierarchy?")]:
        done = run(BINARY, "--info", *words)
        assert done.returncode == 1 and f"no Zarr node here or below; {advice}" in done.stderr, done.stderr


def test_an_array_whose_objects_cannot_be_listed_is_described(tmp_path):
    if os.getuid():
        pytest.skip("root reads everything, and another user is needed")
    group = zarr.create_group(tmp_path / "s.zarr")
    for name in "ab":
        group.create_array(name, data=np.ones((4, 4), "u1"), chunks=(2, 2))
    (tmp_path / "s.zarr" / "a" / "c" / "0").chmod(0)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == 0 and len(folder.parts) > 2:
            os.chmod(folder, 0o755)
    command = [BINARY, "--info", "--sizes", tmp_path / "s.zarr"]
    lines, nodes = (subprocess.run([*command, *form], capture_output=True, text=True, user=65534, group=65534, extra_groups=[]).stdout
                    for form in ([], ["--json"]))
    assert "the stored size is unknown: a/c/0: access denied" in lines and "all stored" in lines, lines
    nodes = {node["path"]: node for node in json.loads(nodes)}
    assert nodes["b"]["stored_objects"] == 4 and "access denied" in nodes["a"]["stored_error"], nodes
