"""Containers of N5: those of the corpus, which real writers have made, and some that are made by hand."""

import bz2
import gzip
import json
import lzma
import os
import shutil
import struct
import zlib

import numcodecs
import numpy as np
import pytest
import zarr

from support import corpus, reading
from support.mounting import BINARY, CHECKOUT, ok, run
from support.workers.canonical import canonical, digest

TYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64"]
SHAPE, CHUNK = (5, 7, 3), (3, 4, 2)
# Elements of these blocks only are stored; the others are zeros.
STORED = [(0, 0, 0), (1, 1, 1), (0, 1, 0), (1, 0, 1)]


def lz4_java(data):
    """The stream of LZ4BlockOutputStream, one block as it is and one of LZ4; the checksums are of the package xxhash."""
    half = len(data) // 2
    blocks = b""
    for part, packed in [(data[:half], False), (data[half:], True)]:
        stored = numcodecs.LZ4().encode(part)[4:] if packed else part
        token = (0x20 if packed else 0x10) | 6
        blocks += b"LZ4Block" + struct.pack("<BIII", token, len(stored), len(part), xxh32(part) & 0x0fffffff) + stored
    return blocks + b"LZ4Block" + struct.pack("<BIII", 0x16, 0, 0, 0)


def xxh32(data, seed=0x9747b28c):
    """XXH32, by its specification."""
    primes = [2654435761, 2246822519, 3266489917, 668265263, 374761393]
    rotate = lambda value, by: ((value << by) | (value >> (32 - by))) & 0xffffffff  # noqa: E731
    at, rest = 0, len(data)
    if rest >= 16:
        lanes = [(seed + primes[0] + primes[1]) & 0xffffffff, (seed + primes[1]) & 0xffffffff, seed, (seed - primes[0]) & 0xffffffff]
        while len(data) - at >= 16:
            for lane, word in enumerate(struct.unpack_from("<4I", data, at)):
                lanes[lane] = rotate((lanes[lane] + word * primes[1]) & 0xffffffff, 13) * primes[0] & 0xffffffff
            at += 16
        value = sum(rotate(lane, by) for lane, by in zip(lanes, [1, 7, 12, 18])) & 0xffffffff
    else:
        value = (seed + primes[4]) & 0xffffffff
    value = (value + len(data)) & 0xffffffff
    while len(data) - at >= 4:
        value = rotate((value + struct.unpack_from("<I", data, at)[0] * primes[2]) & 0xffffffff, 17) * primes[3] & 0xffffffff
        at += 4
    for byte in data[at:]:
        value = rotate((value + byte * primes[4]) & 0xffffffff, 11) * primes[0] & 0xffffffff
    for shift, prime in [(15, primes[1]), (13, primes[2])]:
        value = (value ^ (value >> shift)) * prime & 0xffffffff
    return value ^ (value >> 16)


COMPRESSORS = {
    "raw": ({"type": "raw"}, bytes),
    "gzip": ({"type": "gzip", "level": -1, "useZlib": False}, lambda data: gzip.compress(data[:9]) + gzip.compress(data[9:])),
    "zlib": ({"type": "gzip", "level": 1, "useZlib": True}, zlib.compress),
    "bzip2": ({"type": "bzip2", "blockSize": 9}, bz2.compress),
    "xz": ({"type": "xz", "preset": 6}, lzma.compress),
    "zstd": ({"type": "zstd", "level": 3}, numcodecs.Zstd(3).encode),
    "blosc": ({"type": "blosc", "cname": "zstd", "clevel": 5, "shuffle": 2, "blocksize": 0, "nthreads": 1}, numcodecs.Blosc("zstd", 5, 2).encode),
    "lz4": ({"type": "lz4", "blockSize": 65536}, lz4_java),
    # z5 writes no frame.
    "lz4 of z5": ({"type": "lz4", "blockSize": 6}, lambda data: numcodecs.LZ4().encode(data)[4:]),
}


def values_of(dtype):
    """The elements of the array in the order of Zarr, with zeros where no block is stored."""
    values = np.zeros(SHAPE, dtype)
    for place in STORED:
        box = tuple(slice(i * length, (i + 1) * length) for i, length in zip(place, CHUNK))
        values[box] = (np.arange(105).reshape(SHAPE) * 3 - 20).astype(dtype)[box]
    return values


def block(elements, compress, mode=0):
    """The block of `elements`, whose last axis varies fastest."""
    header = struct.pack(f">HH{elements.ndim}I", mode, elements.ndim, *reversed(elements.shape))
    if mode == 1:
        header += struct.pack(">I", elements.size)
    return header + bytes(compress(elements.astype(elements.dtype.newbyteorder(">")).tobytes()))


def dataset(path, values, compression, compress, *, is_truncated, attributes=(), mode=0):
    path.mkdir(parents=True)
    (path / "attributes.json").write_text(json.dumps({
        "dimensions": list(reversed(SHAPE)), "blockSize": list(reversed(CHUNK)), "dataType": values.dtype.name,
        "compression": compression, **dict(attributes),
    }))
    for place in STORED:
        part = values[tuple(slice(i * length, (i + 1) * length) for i, length in zip(place, CHUNK))]
        if not is_truncated:
            part = np.pad(part, [(0, whole - own) for whole, own in zip(CHUNK, part.shape)])
        key = path.joinpath(*(str(i) for i in reversed(place)))
        key.parent.mkdir(parents=True, exist_ok=True)
        key.write_bytes(block(part, compress, mode))


@pytest.fixture(scope="module")
def container(tmp_path_factory):
    """All types and compressions by hand, in groups with and without a document."""
    root = tmp_path_factory.mktemp("n5") / "all.n5"
    root.mkdir()
    (root / "attributes.json").write_text('{"n5": "4.0.0", "made by": "hand"}')
    for compressor, (compression, compress) in COMPRESSORS.items():
        for i, dtype in enumerate(TYPES):
            path = root / compressor / "deep" / dtype
            dataset(path, values_of(dtype), compression, compress, is_truncated=i % 2 == 0, attributes={"unit": "nm"})
        (root / compressor / "attributes.json").write_text(json.dumps({"of": compressor}))
    return root


def arrays():
    return [(compressor, dtype) for compressor in COMPRESSORS for dtype in TYPES]


def test_arrays_of_every_type_and_compression(container, mount):
    shown = mount(container, "--view", "arrays").path
    for compressor, dtype in arrays():
        found = np.load(shown / compressor / "deep" / f"{dtype}.npy")
        assert found.dtype == dtype and np.array_equal(found, values_of(dtype)), (compressor, dtype)
    facts = json.loads((shown / "lz4/deep/int16.json").read_text())
    assert facts["zarr_format"] == "N5" and facts["attributes"] == {"unit": "nm"}, facts


@pytest.mark.parametrize("options", [(), ("--as", "v2"), ("--as", "v3"), ("--missing", "hide"), ("--as", "v3", "--missing", "hide")],
                         ids=["own", "v2", "v3", "hide", "v3 hide"])
def test_chunks_are_a_store_of_zarr(container, mount, options):
    made = mount(container, "--view", "chunks", *options)
    is_v3 = "v3" in options
    group = zarr.open_group(str(made.path), mode="r", zarr_format=3 if is_v3 else 2, use_consolidated=False)
    assert dict(group.attrs) == {"made by": "hand"}
    assert sorted(group.group_keys()) == sorted(COMPRESSORS)
    for compressor, dtype in arrays():
        found = group[compressor]["deep"][dtype]
        assert found.dtype == dtype and np.array_equal(found[...], values_of(dtype)), (compressor, dtype)
        assert found.chunks == CHUNK and dict(found.attrs) == {"unit": "nm"}
        assert dict(group[compressor].attrs) == {"of": compressor}
    array = made.path / "raw/deep/int16"
    files = {str(path.relative_to(array)) for path in array.rglob("*") if path.is_file()}
    documents = {"zarr.json"} if is_v3 else {".zarray", ".zattrs"}
    places = STORED if "hide" in options else list(np.ndindex(2, 2, 2))
    assert files == documents | {"/".join(map(str, place)) for place in places}
    # The last block is truncated in the store.
    corner = np.frombuffer((array / "1/1/1").read_bytes(), "<i2").reshape(CHUNK)
    assert np.array_equal(corner[:2, :3, :1], values_of("int16")[3:, 4:, 2:]) and corner.sum() == corner[:2, :3, :1].sum()


def test_keys_are_as_stored(container, mount):
    shown = mount(container).path
    stored = sorted(path.relative_to(container) for path in container.rglob("*"))
    assert sorted(path.relative_to(shown) for path in shown.rglob("*")) == stored
    for path in stored:
        if (container / path).is_file():
            assert (shown / path).read_bytes() == (container / path).read_bytes()


def test_keys_as_v3_keep_the_blocks(container, mount):
    shown = mount(container, "--as", "v3").path
    array = shown / "gzip/deep/int16"
    document = json.loads((array / "zarr.json").read_text())
    assert [codec["name"] for codec in document["codecs"]] == ["transpose", "n5_default"]
    assert document["shape"] == list(SHAPE)
    files = {str(path.relative_to(array)) for path in array.rglob("*") if path.is_file()}
    assert files == {"zarr.json"} | {"/".join(map(str, place)) for place in STORED}
    for i, j, k in STORED:
        assert (array / f"{i}/{j}/{k}").read_bytes() == (container / f"gzip/deep/int16/{k}/{j}/{i}").read_bytes()
    # A mount of the mount decodes them again.
    again = mount(shown, "--view", "arrays").path
    assert np.array_equal(np.load(again / "gzip/deep/int16.npy"), values_of("int16"))
    # No version of Zarr has the frames of lz4-java.
    assert os.listdir(shown / "lz4/deep/int16") == ["ERROR.txt"] or "ERROR.txt" in os.listdir(shown / "lz4/deep/int16")


CONTAINERS = corpus.of_kind("n5")


@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("store", CONTAINERS, ids=lambda store: store.name)
def test_containers_of_each_writer_as_stores_of_zarr(store, version, mount):
    shown = mount(store.path, "--view", "chunks", "--as", f"v{version}").path
    root = zarr.open_group(str(shown), mode="r", zarr_format=int(version), use_consolidated=False)
    for array in store.arrays:
        found = root[array["path"]]
        assert digest(canonical(found[...])) == array["sha256"], array["path"]
        assert list(found.chunks) == array["chunks"], array["path"]
    for path in store.entry["groups"]:
        assert isinstance(root[path] if path else root, zarr.Group), path
    for path, attributes in store.entry["attributes"].items():
        # tensorstore writes more of them.
        found = (root[path] if path else root).attrs
        assert {name: found[name] for name in attributes} == attributes, path


@pytest.mark.parametrize("store", CONTAINERS, ids=lambda store: store.name)
def test_containers_of_each_writer_have_their_own_keys(store, mount):
    assert reading.tree(mount(store.path).path) == reading.tree(store.path)


def test_axes_of_tensorstore_are_dimensions(mount):
    shown = mount(corpus.stores()["ts_n5.n5"].path, "--view", "chunks").path
    assert json.loads((shown / "axes/.zattrs").read_text())["_ARRAY_DIMENSIONS"] == ["z", "y", "x"]


@pytest.mark.parametrize("path, member, value, problem", [
    ("raw/deep/int16", "dataType", "string", "unsupported data type of N5 `string`"),
    ("raw/deep/int16", "compression", {"type": "jpeg"}, "unsupported compression of N5 `jpeg`"),
    ("raw/deep/int16", "shardSize", [6, 8, 10], "unsupported member of N5 `shardSize`"),
    ("raw/deep/int16", "blockSize", [0, 4, 3], "blockSize"),
    ("raw/deep/int16", "dimensions", [1 << 70, 4, 3], "dimensions"),
    ("raw/deep/int16", "n5", "5.0.0", "unsupported version of N5 `5.0.0`"),
])
def test_what_is_not_read_is_refused_by_name(tmp_path, mount, path, member, value, problem):
    store = tmp_path / "refused.n5"
    dataset(store / path, values_of("int16"), {"type": "raw"}, bytes, is_truncated=True, attributes={member: value})
    shown = mount(store, "--view", "chunks,arrays").path
    assert problem in (shown / "chunks" / path / "ERROR.txt").read_text()
    assert not (shown / "chunks" / path / ".zarray").exists()
    with pytest.raises(OSError) as error:
        os.stat(shown / "chunks" / path / "0")
    assert error.value.args[0] != 2, "an absent chunk reads as zeros"
    assert not (shown / "arrays" / f"{path}.npy").exists()


@pytest.mark.parametrize("stored", [
    b"", b"\0\0\0\3\0\0\0\2", b"\0\2\0\0\0\1", b"\0\0\0\3" + b"\xff" * 12, b"\0\0\0\3\0\0\0\2\0\0\0\4\0\0\0\3" + bytes(47),
    b"\0\1\0\3\0\0\0\2\0\0\0\4\0\0\0\3\0\0\0\x17" + bytes(48), b"\0\0\0\2\0\0\0\2\0\0\0\4" + bytes(16),
], ids=["empty", "cut off", "object", "huge", "short", "count", "rank"])
def test_a_false_block_is_an_error(tmp_path, mount, stored):
    dataset(tmp_path / "a.n5/a", values_of("int16"), {"type": "raw"}, bytes, is_truncated=True)
    (tmp_path / "a.n5/a/0/0/0").write_bytes(stored)
    shown = mount(tmp_path / "a.n5", "--view", "chunks,arrays").path
    with pytest.raises(OSError):
        (shown / "chunks/a/0/0/0").read_bytes()
    with pytest.raises(OSError):
        (shown / "arrays/a.npy").read_bytes()
    assert (shown / "chunks/a/0/1/0").read_bytes()


def test_blocks_of_mode_1_have_a_count(tmp_path, mount):
    dataset(tmp_path / "a.n5/a", values_of("int16"), {"type": "raw"}, bytes, is_truncated=True, mode=1)
    shown = mount(tmp_path / "a.n5", "--view", "arrays").path
    assert np.array_equal(np.load(shown / "a.npy"), values_of("int16"))


def test_voxel_sizes_of_n5_viewer_and_cosem(tmp_path, mount):
    store = tmp_path / "v.n5"
    transform = {"axes": ["z", "y", "x"], "scale": [5.24, 4.0, 4.0], "translate": [0.0, 0.0, 8.0], "units": ["nm"] * 3}
    for name, attributes in [("s0", {}), ("s1", {"downsamplingFactors": [2, 2, 1]}), ("cosem", {"transform": transform})]:
        dataset(store / name, values_of("int16"), {"type": "raw"}, bytes, is_truncated=True, attributes=attributes)
    (store / "attributes.json").write_text(json.dumps({"n5": "2.5.0", "pixelResolution": {"dimensions": [0.1, 0.2, 0.5], "unit": "um"}}))
    shown = mount(store, "--view", "arrays", "--files", "nhdr").path

    def axes(name):
        found = json.loads((shown / f"{name}.json").read_text())["axes"]
        return [(axis["name"], axis["spacing"], axis.get("origin"), axis["unit"]) for axis in found]
    assert axes("s0") == [("z", 0.5, None, "um"), ("y", 0.2, None, "um"), ("x", 0.1, None, "um")]
    assert axes("s1") == [("z", 0.5, None, "um"), ("y", 0.4, 0.1, "um"), ("x", 0.2, 0.05, "um")]
    assert axes("cosem") == [("z", 5.24, 0, "nm"), ("y", 4, 0, "nm"), ("x", 4, 8, "nm")]
    assert "space directions: (0.1,0.0,0.0) (0.0,0.2,0.0) (0.0,0.0,0.5)" in (shown / "s0.nhdr").read_text()


def test_documents_of_zarr_decide(tmp_path, mount):
    store = tmp_path / "both"
    dataset(store, values_of("int16"), {"type": "raw"}, bytes, is_truncated=True, attributes={"n5": "4.0.0"})
    zarr.create_array(str(tmp_path / "other"), shape=(2,), dtype="int8")[...] = 5
    (store / "zarr.json").write_bytes((tmp_path / "other/zarr.json").read_bytes())
    (store / "c").mkdir()
    (store / "c/0").write_bytes((tmp_path / "other/c/0").read_bytes())
    shown = mount(store, "--view", "arrays").path
    assert np.load(shown / "both.npy").tolist() == [5, 5]


def test_the_sample_of_the_manual_is_what_is_printed(tmp_path):
    """The first block of the page, command by command."""
    store = tmp_path / "cells.n5"
    dataset(store / "s0", values_of("int16"), *COMPRESSORS["gzip"], is_truncated=True, attributes={"axes": ["x", "y", "z"]})
    (store / "attributes.json").write_text('{"n5": "4.0.0"}')
    (tmp_path / "zarr-mount").symlink_to(BINARY)
    page = (CHECKOUT / "docs/src/n5.md").read_text()
    sample = page.split("```console\n$ ")[1].split("```")[0]
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    try:
        for part in sample.split("\n$ "):
            command, _, printed = part.strip().partition("\n")
            told = ok("sh", "-c", command, cwd=tmp_path, env=environment)
            assert told.rstrip("\n") == printed, command
    finally:
        run("fusermount3", "-u", tmp_path / "m")


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    """A group with an array `a` in three formats, each with its own values, and `b` in N5 alone."""
    store = tmp_path_factory.mktemp("three") / "three"
    group = zarr.create_group(str(store), attributes={"title": "v3"})
    group.create_array("a", shape=(2,), dtype="int8")[...] = 3
    made = zarr.create_group(str(store.parent / "v2"), zarr_format=2, attributes={"title": "v2"})
    made.create_array("a", shape=(1, 2), dtype="int8", compressors=None)[...] = 2
    dataset(store / "n5/a", values_of("int16"), {"type": "raw"}, bytes, is_truncated=True)
    dataset(store / "b", values_of("int8"), {"type": "raw"}, bytes, is_truncated=True)
    for part in [store.parent / "v2", store / "n5"]:
        shutil.copytree(part, store, dirs_exist_ok=True)
    shutil.rmtree(store / "n5")
    (store / "attributes.json").write_text('{"title": "N5"}')
    return store


FORMATS = {
    "": ("v3", {"a": [3, 3], "b": values_of("int8").tolist()}),
    "|zarr3:": ("v3", {"a": [3, 3]}),
    "|zarr2:": ("v2", {"a": [[2, 2]]}),
    "|n5:": ("N5", {"a": values_of("int16").tolist(), "b": values_of("int8").tolist()}),
}


@pytest.mark.parametrize("step", FORMATS)
@pytest.mark.parametrize("shown_as", [(), ("--as", "v2"), ("--as", "v3")], ids=["own", "v2", "v3"])
def test_a_format_is_read_where_it_is_named(three, mount, step, shown_as):
    shown = mount(f"{three}{step}", "--view", "arrays,chunks", *shown_as).path
    title, arrays = FORMATS[step]
    assert {path.stem: np.load(path).tolist() for path in (shown / "arrays").glob("*.npy")} == arrays
    own_version = {"v3": 3, "v2": 2, "N5": 2}[title]
    version = {(): own_version, ("--as", "v2"): 2, ("--as", "v3"): 3}[shown_as]
    group = zarr.open_group(str(shown / "chunks"), mode="r", zarr_format=version, use_consolidated=False)
    assert group.attrs["title"] == title
    if step:
        assert {name: array[...].tolist() for name, array in group.arrays()} == arrays
        document = {2: ".zarray", 3: "zarr.json"}[version]
        others = {"zarr.json", ".zarray", "attributes.json"} - {document}
        assert not others & set(os.listdir(shown / "chunks/a"))


def test_the_documents_of_the_named_format_alone_are_keys(three, mount):
    documents = {"zarr.json", ".zgroup", ".zattrs", "attributes.json"}
    for step, own in [("|zarr3:", {"zarr.json"}), ("|zarr2:", {".zgroup", ".zattrs"}), ("|n5:", {"attributes.json"})]:
        made = mount(f"{three}{step}")
        assert set(os.listdir(made.path)) & documents == own, step
        for name in documents - own:
            assert not (made.path / name).exists(), name
        made.unmount()


def test_a_node_is_named_with_its_format(three, mount):
    """Below the root of a container, too, where a file with attributes only does not show that it is N5."""
    told = ok(BINARY, "--info", f"{three}|n5:a", "--at", "0,0,1", "--json")
    assert json.loads(told)["value"] == values_of("int16")[0, 0, 1]
    (three / "g/h").mkdir(parents=True)
    (three / "g/h/attributes.json").write_text('{"deep": true}')
    shown = mount(f"{three}|n5:g", "--view", "chunks").path
    assert json.loads((shown / "h/.zattrs").read_text()) == {"deep": True}
    assert (shown / ".zgroup").exists()
    refused = run(BINARY, f"{three}|zarr3:", shown.parent / "m", "--rw")
    assert refused.returncode == 2 and "is only read" in refused.stderr, refused


def test_nothing_is_written(tmp_path, mount):
    """A container below the root of a mount that is written is shown, and refuses changes."""
    store = tmp_path / "store"
    zarr.create_group(str(store))
    dataset(store / "n.n5/a", values_of("int16"), {"type": "raw"}, bytes, is_truncated=True)
    shown = mount(store, "--view", "chunks", "--rw").path
    before, document = [(store / "n.n5/a" / name).read_bytes() for name in ["1/1/1", "attributes.json"]]
    chunk = shown / "n.n5/a/1/1/1"
    assert len(chunk.read_bytes()) == 48
    for path, text in [(chunk, bytes(48)), (shown / "n.n5/a/.zattrs", b'{"new": 1}'), (shown / "n.n5/a/new", b"")]:
        with pytest.raises(OSError):
            path.write_bytes(text)
    for path in [chunk, shown / "n.n5/a/.zarray"]:
        with pytest.raises(OSError):
            path.unlink()
    assert (store / "n.n5/a/attributes.json").read_bytes() == document
    assert (store / "n.n5/a/1/1/1").read_bytes() == before
