"""Strings and attributes that are too many, too long or ill-formed. The file has all other parts, and names those that it lacks."""
import json
import struct

import numpy as np
import pytest
import zarr

from support import array_view, mounting
from support.array_client import Readers

# Format of `--files` -> the library that reads the file.
FORMATS = {"nc": "netcdf4", "nc4": "netcdf4", "nc5": "netcdf4", "h5": "h5py"}
GOOD = ["a", "bé", "", "日本"]
NUMBERS = [1, -2, 3]
MILLION = 10**6


@pytest.fixture(scope="module")
def readers():
    with Readers(worker="program_worker.py") as found:
        yield found


def write_sound(root, zarr_format):
    """A group with arrays that must be readable, whatever is stored beside them."""
    group = zarr.open_group(str(root), mode="w", zarr_format=zarr_format, attributes={"title": "sound"})
    group.create_array("numbers", shape=(3,), dtype="i4", attributes={"units": "m"})[...] = NUMBERS
    write_text(group, "names", GOOD)
    return group


def write_text(group, name, values, chunk=None, **kwargs):
    array = group.create_array(name, shape=(len(values),), chunks=(chunk or len(values),), dtype=str, **kwargs)
    array[...] = np.array(values, object)
    return array


def encoded(*items, count=None, lengths=None):
    """A chunk of vlen-utf8, whose header may say anything."""
    lengths = lengths or [len(item) for item in items]
    parts = [struct.pack("<I", length) + item for length, item in zip(lengths, items)]
    return struct.pack("<I", len(items) if count is None else count) + b"".join(parts)


# Name -> a chunk of four elements.
LIES = {
    "more elements than the chunk has": encoded(b"a", b"b", b"c", b"d", count=5),
    "four billion elements": encoded(b"a", b"b", b"c", b"d", count=(1 << 32) - 1),
    "fewer elements": encoded(b"a", b"b", b"c", count=3),
    "an element longer than the chunk": encoded(b"a", b"b", b"c", b"d", lengths=[1, 1, 1, 9]),
    "an element of four gigabytes": encoded(b"a", b"b", b"c", b"d", lengths=[1, (1 << 32) - 1, 1, 1]),
    "no header": b"\4",
    "nothing": b"",
    "bytes that are not UTF-8": encoded(b"a", b"\xff\xfe", b"c", b"d"),
    "half a letter": encoded(b"a", "é".encode()[:1], b"c", b"d"),
    "a surrogate": encoded(b"a", b"\xed\xa0\x80", b"c", b"d"),
}
# Text that is sound and that a file whose text ends with a NUL cannot hold.
NULS = {"a NUL within": ["a\0b", "c", "d", "e"], "a NUL at the end": ["a\0", "c", "d", "e"]}


def check(made, readers, format, name, bad):
    """The file has the sound parts. The bad parts are named in the file, in the JSON beside it if there is one, and in the log."""
    path = made.path / f"{name}.{'h5' if format == 'h5' else 'nc'}"
    size = path.stat().st_size
    told = readers.ask(FORMATS[format], path)
    assert bad not in told["variables"]
    assert told["variables"]["numbers"]["values"] == NUMBERS
    names = told["variables"]["names"]
    assert names.get("values", names.get("decoded")) == GOOD
    assert told["attributes"]["title"] == "sound"
    assert bad in told["attributes"]["zarr_omitted"]
    if (made.path / f"{bad}.json").exists():
        assert format in array_view.left_out(made.path, bad)
    assert path.stat().st_size == size < 1 << 22 and len(path.read_bytes()) == size
    assert bad in made.log_text() and made.alive()


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("format", FORMATS)
def test_strings_that_lie(mount, tmp_path, readers, format, zarr_format):
    group = write_sound(tmp_path / "s", zarr_format)
    for n, chunk in enumerate(LIES.values()):
        write_text(group, f"bad{n}", GOOD, compressors=None)
        path = tmp_path / "s" / f"bad{n}" / ("0" if zarr_format == 2 else "c/0")
        assert path.is_file()
        path.write_bytes(chunk)
    for n, values in enumerate(NULS.values(), len(LIES)):
        write_text(group, f"bad{n}", values)
    made = mount(tmp_path / "s", "--view", "arrays", "--files", format)
    wrong = []
    for n, lie in enumerate([*LIES, *NULS]):
        try:
            check(made, readers, format, "s", f"bad{n}")
        except AssertionError as error:
            wrong.append(f"{lie}: {error}")
    assert not wrong, "\n".join(wrong)


def many():
    """Pairs of a name and strings that are more than one file may hold, by their number, their bytes, or the longest of them."""
    yield "a million short ones", ["abc"] * MILLION
    yield "a million empty ones", [""] * MILLION
    # In a file that holds strings as an array of letters, each string is as wide as the longest one.
    yield "a long one among many", ["x" * 400_000, *["y"] * 300_000]
    yield "a long one", ["x" * (2 << 20)]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("values", [pytest.param(values, id=name) for name, values in many()])
def test_too_many_strings(mount, tmp_path, readers, format, values):
    group = write_sound(tmp_path / "s", 3)
    write_text(group, "bad", values, chunk=100_000)
    made = mount(tmp_path / "s", "--view", "arrays", "--files", format)
    check(made, readers, format, "s", "bad")
    assert made.peak_bytes() < 400 << 20


@pytest.mark.parametrize("format", FORMATS)
def test_many_arrays_of_strings(mount, tmp_path, readers, format):
    """Each array is small, but together they are more than a file may hold. Some are in the file, and the others are named as left out."""
    group = write_sound(tmp_path / "s", 3)
    values = [f"{n:08}" for n in range(10_000)]
    for n in range(30):
        write_text(group, f"many{n:02}", values)
    made = mount(tmp_path / "s", "--view", "arrays", "--files", format)
    told = readers.ask(FORMATS[format], array_view.file_of(made.path, "x", format))
    there = {name for name in told["variables"] if name.startswith("many")}
    named = {line.partition(":")[0] for line in told["attributes"]["zarr_omitted"].splitlines()}
    assert 1 <= len(there) < 30 and named == {f"many{n:02}" for n in range(30)} - there
    for name in there:
        assert told["variables"][name].get("values", told["variables"][name].get("decoded")) == values


def add_huge(node, zarr_format, value):
    """Adds a huge attribute to a node."""
    path = node / ("zarr.json" if zarr_format == 3 else ".zattrs")
    document = json.loads(path.read_bytes())
    (document["attributes"] if zarr_format == 3 else document)["huge"] = value
    path.write_text(json.dumps(document))


HUGE = {"text": "x" * (100 << 20), "list": ["x" * 100] * (1 << 20)}


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("value", [pytest.param(value, id=name) for name, value in HUGE.items()])
def test_an_array_with_attributes_of_100_megabytes(mount, tmp_path, readers, format, value, zarr_format):
    """The array is left out, because the meaning of its elements is unknown without its attributes."""
    group = write_sound(tmp_path / "s", zarr_format)
    group.create_array("bad", shape=(3,), dtype="i4", attributes={"units": "m"})[...] = 7
    add_huge(tmp_path / "s" / "bad", zarr_format, value)
    made = mount(tmp_path / "s", "--view", "arrays", "--files", format)
    check(made, readers, format, "s", "bad")
    assert made.peak_bytes() < 600 << 20


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("format", FORMATS)
def test_a_group_with_attributes_of_100_megabytes(mount, tmp_path, readers, format, zarr_format):
    """The arrays of the group are shown. A message says that its attributes are left out."""
    write_sound(tmp_path / "s", zarr_format)
    add_huge(tmp_path / "s", zarr_format, HUGE["text"])
    made = mount(tmp_path / "s", "--view", "arrays", "--files", format)
    path = array_view.file_of(made.path, "x", format)
    told = readers.ask(FORMATS[format], path)
    assert told["variables"]["numbers"]["values"] == NUMBERS
    assert "huge" not in told["attributes"] and path.stat().st_size < 1 << 22
    assert "attributes" in told["attributes"].get("zarr_omitted", "") and "attributes" in made.log_text()
    assert made.alive() and made.peak_bytes() < 600 << 20


@pytest.mark.parametrize("format", FORMATS)
def test_a_group_of_nothing_but_a_nul(mount, tmp_path, format):
    """The group has only an array that no file can hold. That is no error: the JSON beside it says so, until the array changes."""
    array = zarr.create_array(str(tmp_path / "s/bad"), shape=(4,), dtype="string")
    array[...] = NULS["a NUL within"]
    zarr.open_group(str(tmp_path / "s"), mode="a")
    made = mount(tmp_path / "s", "--view", "arrays", "--files", format, "--ttl", "0")
    assert all(path.read_bytes() for path in made.path.iterdir())
    assert list(array_view.left_out(made.path, "bad")) == [format]
    array[...] = ["a", "b", "c", "d"]
    assert array_view.file_of(made.path, "x", format).exists()
    assert array_view.left_out(made.path, "bad") == {}
