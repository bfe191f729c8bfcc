"""No document, attribute or layout exceeds the memory bound, and no reader waits for memory that no other one will free.

The bound is the contract's: the cache budget plus 64 MiB. First the cases that once broke it, then random stores.
"""
import base64
import errno
import json
import os
import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import zarr

from support import mounting

MIB = 1 << 20
BEYOND = 64 * MIB
READERS = 8


def settle(root):
    """Makes all files look old, so that no version is too young to be trusted."""
    for folder, _, names in os.walk(root):
        for name in names:
            os.utime(os.path.join(folder, name), (1e9, 1e9))
    return root


def write(path, document):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document if isinstance(document, str) else json.dumps(document, separators=(",", ":")))


def v3_group(folder, attributes="{}"):
    write(folder / "zarr.json", f'{{"zarr_format":3,"node_type":"group","attributes":{attributes}}}')


def v3_array(folder, attributes="{}", **members):
    document = {"zarr_format": 3, "node_type": "array", "shape": [500], "data_type": "int32",
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [100]}},
                "chunk_key_encoding": {"name": "default"}, "fill_value": 7,
                "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}], **members}
    write(folder / "zarr.json", json.dumps(document, separators=(",", ":"))[:-1] + f',"attributes":{attributes}}}')


def v2_array(folder, attributes=None):
    write(folder / ".zarray", {"zarr_format": 2, "shape": [500], "chunks": [100], "dtype": "<i4", "fill_value": 7, "order": "C",
                               "filters": None, "compressor": None})
    if attributes is not None:
        write(folder / ".zattrs", attributes)


def wide(size):
    """Attributes of so many bytes: one list, whose tree would take many times its text."""
    return '{"x":[' + ",".join(["1"] * (size // 2)) + "]}"


def files_of(root):
    found = []
    for folder, _, names in os.walk(root, onerror=lambda error: found.append(error)):
        found.extend(os.path.join(folder, name) for name in sorted(names))
    return found


def size_or_error(path):
    """Reads a file to its end; its size, or the error."""
    if isinstance(path, OSError):
        return path
    try:
        with open(path, "rb", buffering=0) as file:
            return sum(len(piece) for piece in iter(lambda: file.read(MIB), b""))
    except OSError as error:
        return error


def read_all(root):
    """Everything below `root` by many readers at once, as {path: size or error}."""
    files = files_of(root)
    with ThreadPoolExecutor(READERS) as pool:
        return dict(zip(map(str, files), pool.map(size_or_error, files)))


def errors_in(read):
    return {path: error for path, error in read.items() if isinstance(error, OSError)}


def check(made, cache, what, figure):
    """The daemon lives, within its bound, and waited for no memory that was merely kept."""
    assert made.alive(), f"{what}: {made.log_text()}"
    peak, waits = made.peak_bytes(), made.stats()["cache"]["waits"]
    figure(f"{what}: peak {peak / MIB:.0f} MiB with a cache of {cache / MIB:.0f}, {waits} waits")
    assert peak <= cache + BEYOND, f"{what}: {peak / MIB:.0f} MiB"


@pytest.mark.parametrize("count", [8, pytest.param(16, marks=pytest.mark.long)])
def test_attributes_of_megabytes(mount, tmp_path, figure, count):
    v3_group(tmp_path / "s")
    for n in range(count):
        v3_array(tmp_path / "s" / f"t{n}", wide(int(3.8 * MIB)))
    made = mount(settle(tmp_path / "s"), "--view", "arrays", "--files", "npy,h5", "--cache-size", "16M")
    read = read_all(made.path)
    assert not errors_in(read)
    assert {os.path.basename(path) for path in read} >= {f"t{n}.{kind}" for n in range(count) for kind in ("json", "npy")}
    attributes = json.loads((made.path / "t3.json").read_bytes())["attributes"]
    assert attributes == {"x": [1] * (int(3.8 * MIB) // 2)}
    assert np.load(made.path / "t3.npy").tolist() == [7] * 500
    check(made, 16 * MIB, f"{count} arrays with attributes of 3.8 MiB", figure)


def lots_of_members(size):
    members = ",".join(f'"{n}":1' for n in range(size // 9))
    return f'{{"zarr_format":3,"node_type":"array",{members}}}'


DOCUMENTS = {
    "attributes": lambda: json.dumps({"zarr_format": 3, "node_type": "array"})[:-1] + ',"attributes":' + wide(5 * MIB) + "}",
    "members": lambda: lots_of_members(5 * MIB),
    "members, just not too many": lambda: lots_of_members(MIB),
    "codecs": lambda: '{"zarr_format":3,"node_type":"array","shape":[],"codecs":[' + '"a",' * MIB + '"b"]}',
}


@pytest.mark.parametrize("view", ["arrays", "keys", "chunks"])
@pytest.mark.parametrize("kind", DOCUMENTS)
def test_one_long_document(mount, tmp_path, figure, kind, view):
    """A document that is too long cannot be used, and an error says so. In the keys view, it is shown as it is stored."""
    v3_group(tmp_path / "s")
    write(tmp_path / "s" / "t" / "zarr.json", DOCUMENTS[kind]())
    made = mount(settle(tmp_path / "s"), "--view", view, "--cache-size", "16M")
    read = read_all(made.path)
    assert not errors_in(read)
    names = {os.path.relpath(path, made.path) for path in read}
    if view == "keys":
        assert (made.path / "t" / "zarr.json").read_bytes() == (tmp_path / "s" / "t" / "zarr.json").read_bytes()
    else:
        assert any("ERROR" in name for name in names), names
    check(made, 16 * MIB, f"zarr.json of megabytes ({kind}), {view}", figure)


@pytest.mark.parametrize("view", ["arrays", "keys", "chunks"])
def test_attributes_of_the_root_of_120_mb(mount, tmp_path, figure, view):
    """The arrays below can be read as if the attributes were not there."""
    v3_group(tmp_path / "s", wide(120_000_000))
    v3_array(tmp_path / "s" / "t")
    made = mount(settle(tmp_path / "s"), "--view", view, "--cache-size", "16M")
    read = read_all(made.path)
    assert not errors_in(read)
    if view == "arrays":
        assert np.load(made.path / "t.npy").tolist() == [7] * 500
    else:
        assert read[str(made.path / "zarr.json")] == os.path.getsize(tmp_path / "s" / "zarr.json")
    check(made, 16 * MIB, f"root attributes of 120 MB, {view}", figure)


@pytest.mark.parametrize("of", ["array", "group"])
@pytest.mark.parametrize("view", ["keys", "chunks"])
def test_attributes_of_90_mb_in_another_version(mount, tmp_path, figure, view, of):
    """Parts that do not fit into the memory are refused by name, and the others are in the file."""
    write(tmp_path / "s" / ".zgroup", {"zarr_format": 2})
    v2_array(tmp_path / "s" / "small")
    if of == "group":
        write(tmp_path / "s" / ".zattrs", wide(90_000_000))
    else:
        v2_array(tmp_path / "s" / "t", wide(90_000_000))
    made = mount(settle(tmp_path / "s"), "--view", view, "--as", "v3", "--cache-size", "16M")
    read = read_all(made.path)
    assert json.loads((made.path / "small" / "zarr.json").read_bytes())["node_type"] == "array"
    assert set(errors_in(read)) <= {str(made.path / "zarr.json")}
    assert "--cache-size" in made.log_text()
    check(made, 16 * MIB, f".zattrs of 90 MB of one {of} as v3, {view}", figure)


def records(fields):
    return {"data_type": {"name": "structured", "configuration": {"fields": [[f"f{n}", "int8"] for n in range(fields)]}},
            "fill_value": base64.b64encode(bytes(fields)).decode(), "shape": [20],
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [10]}}}


MOST_FIELDS = 8192


@pytest.mark.parametrize("view", ["arrays", "keys", "chunks"])
@pytest.mark.parametrize("fields", [MOST_FIELDS, 50_000])
def test_records_of_very_many_fields(mount, tmp_path, figure, fields, view):
    """Records of at most MOST_FIELDS fields are read within the memory. Records of more fields are refused by name, and are shown as they are stored in the keys view."""
    v3_group(tmp_path / "s")
    for n in range(12):
        v3_array(tmp_path / "s" / f"r{n}", **records(fields))
    made = mount(settle(tmp_path / "s"), "--view", view, "--cache-size", "16M")
    read = read_all(made.path)
    assert not errors_in(read)
    if view == "keys":
        assert len(read) == 13
    elif fields == MOST_FIELDS:
        assert len(read) == {"arrays": 24, "chunks": 37}[view]
    else:
        assert sum("ERROR" in path for path in read) == 12
        assert "fields of a record" in made.log_text()
    check(made, 16 * MIB, f"12 records of {fields:,} fields, {view}", figure)


def test_the_kept_header_of_a_file_delays_no_other_reader(mount, tmp_path):
    """Chunks that need nearly the whole budget are read at once after the header of a group's file was."""
    group = zarr.open_group(str(tmp_path / "s"), mode="w")
    below = group.create_group("G")
    for n in range(40):
        below.create_array(f"a{n}", shape=(4,), dtype="i4", chunks=(2,)).attrs["text"] = "x" * 8000
    large = group.create_array("large", shape=(20, 1000, 1000), chunks=(1, 1000, 1000), dtype="i4")
    large[...] = np.arange(20).reshape(20, 1, 1)
    settle(tmp_path / "s")

    def waits(with_header):
        made = mount(tmp_path / "s", "--view", "arrays,chunks", "--files", "npy,h5", "--cache-size", "4500k", "--readahead", "0")
        header = made.path / "arrays" / "G" / "G.h5"
        chunks = [made.path / "chunks" / "large" / "c" / str(n) / "0" / "0" for n in range(20)]

        def read(numbers):
            for n in numbers:
                assert chunks[n].read_bytes() == np.full(1_000_000, n, "<i4").tobytes()

        if with_header:
            assert len(header.open("rb", buffering=0).read(4096)) == 4096
            read(range(10))
            # Beside an open one, which cannot leave.
            with open(header, "rb", buffering=0) as held:
                held.read(4096)
                read(range(10, 20))
        else:
            read(range(20))
        assert made.peak_bytes() <= 5 * MIB + BEYOND
        return made.stats()["cache"]["waits"]

    # Nothing is loaded ahead, which a chunk may wait for. A wait for the header would be one for each of ten chunks, every time.
    # On a busy machine, some chunks wait until the one before is given back, with the header and without.
    assert any(waits(True) < waits(False) + 10 for _ in range(3))


def test_a_small_array_with_attributes_beside_it_in_a_small_cache(mount, tmp_path):
    """An array's two documents are held at the same time, which once waited for each other, and then failed."""
    write(tmp_path / "s" / ".zgroup", {"zarr_format": 2})
    v2_array(tmp_path / "s" / "t", json.dumps({"text": "x" * 700_000}))
    array = tmp_path / "s" / "t" / ".zarray"
    array.write_text(array.read_text() + " " * 600_000)
    made = mount(settle(tmp_path / "s"), "--view", "arrays", "--cache-size", "1M")
    assert not errors_in(read_all(made.path))
    assert np.load(made.path / "t.npy").tolist() == [7] * 500
    assert made.stats()["cache"]["waits"] <= READERS


def deep(chance, size):
    depth = chance.choice([3, 60, 200])
    return '{"a":' + '{"b":[' * (depth // 2) + '"' + "x" * size + '"' + "]}" * (depth // 2) + "}"


def many(chance, size):
    return "{" + ",".join(f'"{n}":{chance.choice(["1", "[]", "NaN", "null"])}' for n in range(size // 10)) + "}"


def lists(chance, size):
    item = chance.choice(["1", "[]", "{}", '""', "1e3", "NaN", '"\\u00e9"'])
    return '{"a":[' + ",".join([item] * (size // (len(item) + 1))) + '],"units":"m"}'


def text(chance, size):
    return json.dumps({"a": chance.choice(["x", "\\", "é", "\n"]) * (size // 3)})


def spaces(chance, size):
    return '{"a"' + " " * size + ":1}"


def shuffled_array(chance, folder):
    """An array with something large about it; whether it is sound."""
    attributes = chance.choice([deep, many, lists, text, spaces])(chance, int(10 ** chance.uniform(2, 6.6)))
    kind = chance.choice(["plain", "plain", "v2", "record", "names", "fill"])
    if kind == "v2":
        return v2_array(folder, attributes)
    if kind == "record":
        return v3_array(folder, attributes, **records(int(10 ** chance.uniform(0, 4.3))))
    if kind == "names":
        name = "n" * int(10 ** chance.uniform(0, 5))
        return v3_array(folder, attributes, dimension_names=[name])
    if kind == "fill":
        size = int(10 ** chance.uniform(0, 5.5))
        data_type = {"name": "raw_bytes", "configuration": {"length_bytes": size}}
        fill = base64.b64encode(bytes(size)).decode()
        return v3_array(folder, attributes, data_type=data_type, fill_value=fill, shape=[3],
                        chunk_grid={"name": "regular", "configuration": {"chunk_shape": [2]}}, codecs=[{"name": "bytes"}])
    return v3_array(folder, attributes)


def shuffled_store(chance, root):
    v3_group(root, chance.choice([lists, many, text])(chance, int(10 ** chance.uniform(2, 7))))
    for n in range(chance.randrange(4, 16)):
        folder = root
        for level in range(chance.randrange(3)):
            folder = folder / f"g{level}"
            if not folder.exists():
                v3_group(folder, chance.choice([lists, many, deep])(chance, int(10 ** chance.uniform(2, 6))))
        shuffled_array(chance, folder / f"a{n}")
    if chance.random() < 0.5:
        copies = {f"no/such/{n}": {"zarr_format": 3, "node_type": "group", "attributes": {}} for n in range(10_000)}
        document = json.loads((root / "zarr.json").read_text())
        document["attributes"] = {}
        document["consolidated_metadata"] = {"kind": "inline", "must_understand": False, "metadata": copies}
        write(root / "zarr.json", document)
    return settle(root)


def shuffled_arguments(chance):
    view = chance.choice(["arrays", "arrays", "keys", "chunks", "keys,chunks,arrays"])
    arguments = ["--view", view]
    if "arrays" in view:
        arguments += ["--files", chance.choice(["npy", "npy,raw,h5,nc", "nhdr,nc,h5", "npy,tif,nii,fits,envi,mhd"])]
    if view != "arrays" and chance.random() < 0.6:
        arguments += ["--as", chance.choice(["v2", "v3"])]
    return arguments


def by_chance(mount, tmp_path, figure, seed):
    chance = random.Random(seed)
    store = shuffled_store(chance, tmp_path / "s")
    cache = chance.choice([1, 2, 4, 8, 16, 32]) * MIB
    arguments = shuffled_arguments(chance)
    made = mount(store, *arguments, "--cache-size", cache)
    read = {}
    for _ in range(2):
        read = read_all(made.path)
        # No wait is worth an error, and those that are there name a document, not the time.
        for path, error in errors_in(read).items():
            assert error.errno in (errno.EIO, errno.EOPNOTSUPP), f"{path}: {error}"
        check(made, cache, f"seed {seed}, {' '.join(arguments)}", figure)
    assert "no memory within the budget" not in made.log_text()
    for path, size in read.items():
        if path.endswith((".npy", ".raw", ".json")) and "arrays" in arguments[1]:
            assert not isinstance(size, OSError), f"{path}: {size}"


@pytest.mark.parametrize("seed", range(6))
def test_stores_made_by_chance(mount, tmp_path, figure, seed):
    by_chance(mount, tmp_path, figure, seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 160))
def test_many_stores_made_by_chance(mount, tmp_path, figure, seed):
    by_chance(mount, tmp_path, figure, seed)
