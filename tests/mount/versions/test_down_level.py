"""`--as v2` and `--as v3`: every store as a store of the other version, read by readers that know only that one."""
import json
from pathlib import Path

import numpy as np
import pytest
import zarr

from support import chunk_grids, corpus, readers, reading

VERSIONS = ("v2", "v3")
VIEWS = ("keys", "chunks")
OLDER = ("pre-v1", "v1", "v3-draft", "v3-draft-2022")
CASES = [(store, version) for store in corpus.of_kind("v2", "v3", *OLDER) for version in VERSIONS]
DOCUMENTS = {"v2": ".zarray", "v3": "zarr.json"}


@pytest.fixture(scope="module")
def zarr2():
    with readers.Zarr2() as worker:
        yield worker


# A sharded store of today, and programs that know neither shards nor v3.

TEMPERATURE = np.arange(4 * 60 * 90, dtype="<f4").reshape(4, 60, 90) / 4 - 100
HEIGHT = np.arange(60 * 90, dtype="<i2").reshape(60, 90) - 300
MISSING = np.s_[:, :20, :30]
ATTRIBUTES = {"title": "down level", "levels": [1, 2]}
WEATHER = {"temperature": TEMPERATURE, "height": HEIGHT}
# The attribute `_FillValue` of xarray in v3. In v2, the fill value takes its place.
MISSING_VALUE = {"temperature": "AAAAAAA4j8A=", "height": -999}
DIMENSIONS = {"temperature": ["time", "lat", "lon"], "height": ["lat", "lon"]}


@pytest.fixture(scope="module")
def weather(tmp_path_factory):
    """A consolidated v3 group of sharded zstd arrays; chunks at one corner are absent, all fill value."""
    root = tmp_path_factory.mktemp("weather") / "weather.zarr"
    group = zarr.open_group(str(root), mode="w", attributes=ATTRIBUTES)
    TEMPERATURE[MISSING] = -999
    for name, values in WEATHER.items():
        outer = (1,) * (values.ndim - 2)
        array = group.create_array(
            name, shape=values.shape, dtype=values.dtype, chunks=(*outer, 20, 30), shards=(*[2 * n for n in outer], 60, 90),
            compressors=zarr.codecs.ZstdCodec(), fill_value=-999, dimension_names=DIMENSIONS[name], attributes={"units": "K", "_FillValue": MISSING_VALUE[name]})
        array[...] = values
    zarr.consolidate_metadata(str(root))
    return root


@pytest.fixture(scope="module")
def weather_v2(weather, module_mount):
    made = module_mount(weather, "--view", "chunks", "--as", "v2")
    yield made.path
    made.unmount()


PROGRAMS = {
    "gdal": readers.gdal,
    "ncdump": lambda root, name, like, _: readers.ncdump(root, name, like),
}


@pytest.mark.parametrize("name", WEATHER)
@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_that_know_v2(program, name, weather, weather_v2, tmp_path):
    read, values = PROGRAMS[program], WEATHER[name]
    assert np.array_equal(read(weather_v2, name, values, tmp_path), values)
    try:
        # A version to come may know shards.
        assert np.array_equal(read(weather, name, values, tmp_path), values)
    except readers.Refused:
        pass


def test_gdalinfo(weather_v2):
    info = readers.gdalinfo(weather_v2, "temperature", 1)
    (band,) = info["bands"]
    assert info["size"] == [90, 60]
    assert (band["type"], band["noDataValue"], band["unit"], band["block"]) == ("Float32", -999, "K", [30, 20])


@pytest.mark.parametrize("consolidated", [False, True])
def test_zarr_python_2(consolidated, weather, weather_v2, zarr2):
    with pytest.raises(readers.Refused):
        zarr2.open(weather, "height")
    assert zarr2.open(weather_v2, "/", consolidated=consolidated)["attributes"] == ATTRIBUTES
    for name, values in WEATHER.items():
        found = zarr2.open(weather_v2, name, consolidated=consolidated, boxes=[None])
        assert found["attributes"] == {"units": "K", "_ARRAY_DIMENSIONS": DIMENSIONS[name]}
        assert found["sha256"] == [reading.digest(reading.canonical(values))]


# Every store of the corpus, in either version.


@pytest.fixture(scope="module", params=CASES, ids=[f"{s.name}-as-{v}" for s, v in CASES])
def shown(request, module_mount):
    """(store, version, folder in which each view has its own)"""
    store, version = request.param
    made = module_mount(store.path, "--view", ",".join(VIEWS), "--as", version)
    yield store, version, made.path
    made.unmount()


def hashes(array):
    """(boxes, the hash of each): the whole array (None), or the chunks of it that are defined."""
    if "sha256" in array:
        return [None], [array["sha256"]]
    boxes, expected = [], []
    for grid, member in (("chunks", "chunk_sha256"), ("inner_chunks", "inner_chunk_sha256")):
        for chunk in array.get(member, ()):
            start = [side.start for side in chunk_grids.box(array[grid], chunk["index"])]
            boxes.append([[a, a + n] for a, n in zip(start, chunk["shape"])])
            expected.append(chunk["sha256"])
    return boxes, expected


def with_zarr_python_2(zarr2, root, array, boxes):
    return zarr2.open(root, array["path"], boxes=boxes, dtype=array["dtype"])["sha256"]


def with_zarr_python_3(version):
    def read(_, root, array, boxes):
        opened = zarr.open_array(str(root), path=array["path"] or None, mode="r", zarr_format=int(version[1:]))
        return [reading.digest(reading.canonical(opened[selection(box)], array["dtype"])) for box in boxes]
    return read


def with_tensorstore(_, root, array, boxes):
    values = reading.with_tensorstore(str(root), array["path"], 3)
    return [reading.digest(reading.canonical(values[selection(box)], array["dtype"])) for box in boxes]


def by_hand(_, root, array, boxes):
    """A few lines of NumPy: the files of the chunks view, as the document beside them says."""
    here = reading.Shown.at(root / array["path"])
    sides = [([a for a, _ in box], [b for _, b in box]) if box else () for box in boxes]
    if str(array["dtype"]).startswith("vlen"):
        return [reading.digest(here.strings(*side)) for side in sides]
    return [reading.digest(here.values(reading.itemsize(array), *side).tobytes()) for side in sides]


def selection(box):
    return ... if box is None else tuple(slice(*side) for side in box)


# The readers, in turn: the next one is used if one does not know a type or codec. The chunks view needs no library.
READERS = {
    "v2": {"zarr-python 2": with_zarr_python_2, "zarr-python 3": with_zarr_python_3("v2")},
    "v3": {"zarr-python 3": with_zarr_python_3("v3"), "tensorstore": with_tensorstore},
}


def wrong_read(zarr2, store, root, version, view, array, figure):
    """The fault of the array as shown; None if its values are right."""
    here, stored = documents(root / array["path"]), documents(store.path / array["path"])
    if DOCUMENTS[version] not in here or (here != {DOCUMENTS[version]} and len(stored) < 2):
        return f"documents of an array: {here}"
    boxes, expected = hashes(array)
    asked = dict(READERS[version])
    if view == "chunks":
        asked["numpy"] = by_hand
    refusals = []
    for reader, read in asked.items():
        try:
            got = read(zarr2, root, array, boxes)
        except Exception as error:  # whatever class a reader refuses with
            refusals.append(f"{reader}: {type(error).__name__}: {str(error)[:200]}")
            if must_be_known(array, version, view) and not no_library_reads(store, array):
                break
            continue
        if got != expected:
            return f"{reader}: other values"
        for refusal in refusals:
            figure(f"{view} as {version}, {store.name}/{array['path']} is read by {reader}, not by {refusal}")
        return None
    if view == "keys" and no_library_reads(store, array):
        figure(f"{view} as {version}, {store.name}/{array['path']}: no library reads it, nor the store itself: {refusals[0]}")
        return None
    return "; ".join(refusals)


def documents(directory):
    return {name for name in DOCUMENTS.values() if (directory / name).exists()}


def must_be_known(array, version, view):
    """Whether the first reader must read the array, because its version has the data type and, in the keys view, the codecs."""
    if view == "keys" and not corpus.codecs_listed(array):
        return False
    return version == "v2" or str(array["dtype"])[1] not in "SUVMm" and not has_extension_type(array)


def has_extension_type(array):
    """Whether the type is a structured type or a string. In v3, these are extensions."""
    return isinstance(array["dtype"], list) or array["dtype"].startswith("vlen")


def no_library_reads(store, array):
    """Whether the readers fail at the stored array, too, because it uses features that they lack."""
    if store.kind not in ("v2", "v3") or "sha256" not in array:
        return False
    args = str(store.path), array["path"], array["zarr_format"], array["sha256"]
    return not any(reading.reads_the_store(reader, *args) for reader in ("zarr_python", "tensorstore"))


def refusal(directory):
    """Why an array is not shown, as its directory says; None where it is shown."""
    if not (directory / "ERROR.txt").exists():
        return None
    reason = " ".join((directory / "ERROR.txt").read_text().split())
    left = documents(directory)
    assert reason and not left, (directory, reason, left)
    return reason


def can_be_expressed(array, version, view):
    """Whether the other version can surely express it. For all others, a reason is required."""
    if isinstance(array["dtype"], list) and version == "v3":
        return False  # v3 has one byte order for all fields, and no field of several items
    if version == "v2" and any(isinstance(axis, list) for axis in array["chunks"]) and "inner_chunks" not in array:
        return False  # v2 has only chunks of one length
    if has_odd_nan(array.get("fill_value")) and version == "v2" and view == "keys":
        return False  # v2 spells only one NaN; in the chunks view, no reader needs the fill value, because all chunks are files
    if view == "chunks" or array["zarr_format"] == int(version[1:]) or array["zarr_format"] == 1:
        return True
    if version == "v3":
        return str(array["zarr_format"]).endswith("draft") or not array.get("filters")
    if array["zarr_format"] != 3:
        return True  # v2 has all types and codecs of the drafts
    return set(corpus.codec_names(array.get("codecs"))) <= corpus.V3_CODECS - {"transpose"}


def has_odd_nan(fill_value):
    """Whether a fill value has a number that is spelled as a bit pattern."""
    return "0x" in json.dumps(fill_value)


def test_arrays(shown, zarr2, figure):
    store, version, folder = shown
    wrong = []
    for array in store.arrays:
        if array["expect"] != "ok" or not hashes(array)[0]:
            continue
        for view in VIEWS:
            reason = refusal(folder / view / array["path"])
            if reason is None:
                problem = wrong_read(zarr2, store, folder / view, version, view, array, figure)
            else:
                figure(f"{view} as {version}, {store.name}/{array['path']} is not shown: {reason}")
                problem = f"refused: {reason}" if can_be_expressed(array, version, view) else None
            if problem:
                wrong.append(f"{view} {array['path']}: {problem}")
    assert not wrong, "\n".join(wrong)


# Attributes.


def nodes(store):
    """Path -> attributes, of groups that the manifest lists and of arrays, from the stored documents."""
    paths = {*store.entry.get("groups", ()), *(a["path"] for a in store.arrays if a["expect"] == "ok")}
    found = {}
    for path in paths:
        for document, member in attribute_documents(store, path):
            if document.is_file():
                content = json.loads(document.read_bytes())
                found[path] = content.get(member, {}) if member else content
                break
    return found


def attribute_documents(store, path):
    """(document, member with the attributes, or None where all of it is), whichever may exist."""
    if store.kind in ("v1", "pre-v1"):
        return [(store.path / path / "attrs", None)]
    if store.kind in ("v3-draft", "v3-draft-2022"):
        root = store.path / "meta" / ("root" if store.kind == "v3-draft" else "")
        if path:
            return [(root / f"{path}.{node}.json", "attributes") for node in ("array", "group")]
        names = ["array.json", "group.json"]
        return [(Path(f"{root}.{name}") if root.name == "root" else root / name, "attributes") for name in names]
    return [(store.path / path / "zarr.json", "attributes"), (store.path / path / ".zattrs", None)]


def test_attributes(shown, zarr2):
    store, version, folder = shown
    wrong = []
    for path, attributes in nodes(store).items():
        for view in VIEWS:
            if refusal(folder / view / path):
                continue
            try:
                if version == "v2":
                    got = zarr2.open(folder / view, path)["attributes"]
                else:
                    got = dict(zarr.open(str(folder / view), path=path or None, mode="r", zarr_format=3).attrs)
            except Exception as error:  # whatever class a reader refuses with
                if opens(store, path):
                    wrong.append(f"{view} {path}: {type(error).__name__}: {error}")
                continue
            if differ(attributes, got):
                wrong.append(f"{view} {path}: {attributes} became {got}")
    assert not wrong, "\n".join(wrong)


def opens(store, path):
    """Whether zarr-python 3 opens the stored node. Nodes of older formats, which it does not know, count as opened."""
    try:
        zarr.open(str(store.path), path=path or None, mode="r")
    except Exception:
        return store.kind in OLDER
    return True


def differ(before, after):
    """Whether attributes were lost or changed. Versions spell names of dimensions and missing values in other ways, and drafts have
    filters among the attributes, so these are left out. A number that is not finite may become a string in JSON."""
    said = {"_ARRAY_DIMENSIONS", "_FillValue", "missing_value"}
    before, after = (json.loads(json.dumps(found), parse_constant=str) for found in (before, after))
    before = {name: value for name, value in before.items() if name not in {"filters", *said}}
    extra = set(after) - set(before) - said
    kept = {name: after.get(name) for name in before}
    return extra or json.dumps(before, sort_keys=True) != json.dumps(kept, sort_keys=True)
