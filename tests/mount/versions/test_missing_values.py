"""Missing values through `--as`: xarray and GDAL read the same ones from the mount as from the store."""
import json
import os
import shutil
import subprocess

import numpy as np
import pytest
import zarr

from support import corpus, mounting

PYTHON = mounting.CHECKOUT / ".venv-arrays/bin/python"
WORKER = mounting.WORKERS / "missing_values_worker.py"
VERSIONS = ["v2", "v3"]
VIEWS = ["keys", "chunks"]
# The stores that are made here, and those of the corpus that xarray wrote.
MADE = ["types_v2.zarr", "types_v3.zarr", "zarr_v2.zarr", "zarr_v3.zarr", "tree_v3.zarr"]
OF_XARRAY = ["xarray_v2.zarr", "xarray_v3.zarr", "xarray_v3_plain.zarr"]


def worker(*args, **kwargs):
    done = subprocess.run([str(PYTHON), str(WORKER), *map(str, args)], capture_output=True, text=True, timeout=300, **kwargs)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of stores: those that xarray made in the corpus, and here."""
    root = tmp_path_factory.mktemp("stores")
    worker("make", root, *MADE)
    for name in OF_XARRAY:
        shutil.copytree(corpus.stores()[name].path, root / name)
    return root


@pytest.fixture(scope="module")
def shown(folder, module_mount):
    """Version -> the folder as a mount shows it, which has a folder for each view."""
    return {version: module_mount(folder, "--view", ",".join(VIEWS), "--as", version).path for version in VERSIONS}


def exceptions(folder, version, view):
    """The paths of arrays of which `--info` says that missing values are not those of the store."""
    told = json.loads(mounting.ok(mounting.BINARY, "--info", "--json", "--as", version, folder))
    return {array["path"] for array in told if view in array.get("missing_values", {})}


def test_xarray_reads_the_same(folder, shown, figure):
    stores = sorted(path.name for path in folder.iterdir())
    places = [(view, version, store) for view in VIEWS for version in VERSIONS for store in stores]
    pairs = [[str(folder / store), str(shown[version] / view / store)] for view, version, store in places]
    answers = dict(zip(places, json.loads(worker("compare", input=json.dumps(pairs)))))
    for view, version in [(view, version) for view in VIEWS for version in VERSIONS]:
        of_stores = {store: answers[view, version, store] for store in stores}
        told = {f"{store}/{path}": what for store, answer in of_stores.items() for path, what in answer["told"].items()}
        excepted = exceptions(folder, version, view)
        same = sum(answer["same"] for answer in of_stores.values())
        figure(f"xarray, {view} as {version}: {same} variables of {len(stores)} stores are the same, {len(told)} are not; --info names {len(excepted)}")
        # xarray does not open a group at all if it cannot decode a coordinate that is an index.
        unlike = [f"{path}: {what}" for path, what in told.items() if path not in excepted and not any(e.startswith(path + "/") for e in excepted)]
        assert not unlike, "\n".join(unlike)
        # The only exceptions are masks that `keys` cannot express in v2, and types for which v3 has no missing values.
        assert bool(excepted) == ((view, version) != ("chunks", "v2"))
        assert version == "v2" or excepted == {f"zarr_v2.zarr/{name}" for name in ("day", "day zero", "word")}


# The arrays that `--info` names for the view `chunks`: those with missing values that no document of the version can express,
# and, in the version of the store, those with missing values that are spelled as text.
OF_V2 = ["nan count", "more nan count", "infinite count", "count of both", "nan listed", "minus", "minus declared", "minus marked", "minus nan", "minus same",
         "minus listed", "nan packed", "both infinite", "range"]
TOLD = {("v2", "v3"): ["both infinite", "word overridden", "range"], ("v3", "v2"): ["minus marked", "range"],
        ("v2", "v2"): OF_V2, ("v3", "v3"): ["minus", "minus nan", "minus same", "minus marked", "nan packed", "count nan", "range"]}


def test_xarray_reads_odd_masks_the_same(tmp_path, mount):
    """Some masks must be spelled differently in strict JSON, such as an infinity that another writer wrote as a bare word."""
    folder = tmp_path / "folder"
    folder.mkdir()
    worker("make", folder, *(f"odd_{stored}.zarr" for stored in VERSIONS))
    roots = {version: mount(folder, "--view", ",".join(VIEWS), "--as", version).path for version in VERSIONS}
    places = [(view, version, stored) for view in VIEWS for version in VERSIONS for stored in VERSIONS]
    pairs = [[f"{folder}/odd_{stored}.zarr", f"{roots[version]}/{view}/odd_{stored}.zarr"] for view, version, stored in places]
    answers = dict(zip(places, json.loads(worker("compare", input=json.dumps(pairs)))))
    for view, version in [(view, version) for view in VIEWS for version in VERSIONS]:
        excepted = exceptions(folder, version, view)
        for stored in VERSIONS:
            answer = answers[view, version, stored]
            told = {os.path.basename(path) for path in excepted if os.path.dirname(path) == f"odd_{stored}.zarr"}
            unlike = {name: what for name, what in answer["told"].items() if name not in told}
            assert answer["same"] and not unlike, (view, version, stored, unlike)
            assert view == "keys" or told == set(TOLD[stored, version])
    # Every document is one that strict readers take.
    for document in [file for root in roots.values() for file in [*root.rglob("zarr.json"), *root.rglob(".z[ag]*")]]:
        json.loads(document.read_text(), parse_constant=pytest.fail)


@pytest.mark.long
@pytest.mark.parametrize("version", VERSIONS)
def test_xarray_reads_the_same_of_the_whole_corpus(version, mount, figure):
    stores = corpus.of_kind("v2", "v3")
    made = {store.name: mount(store.path, "--view", "chunks", "--as", version) for store in stores}
    answers = json.loads(worker("compare", input=json.dumps([[str(store.path), str(made[store.name].path)] for store in stores])))
    opened = {store.name: answer for store, answer in zip(stores, answers) if answer["same"] or answer["told"]}
    figure(f"xarray, chunks as {version}: {len(opened)} of {len(stores)} stores of the corpus have variables, {sum(a['same'] for a in opened.values())}")
    assert not {name: answer["told"] for name, answer in opened.items() if answer["told"]}


# GDAL.

PLANE = np.arange(12 * 10, dtype="i2").reshape(12, 10) % 50
NAMES = ["y", "x"]


def plane(group, name, dtype="i2", fill=0, names=NAMES, **attributes):
    options = {"dimension_names": names} if group.metadata.zarr_format == 3 else {}
    if group.metadata.zarr_format == 2 and names:
        attributes["_ARRAY_DIMENSIONS"] = names
    array = group.create_array(name, shape=PLANE.shape, chunks=(6, 5), dtype=dtype, fill_value=fill, attributes=attributes, **options)
    array[:6] = PLANE[:6].astype(dtype)
    array[6:, :5] = PLANE[6:, :5].astype(dtype)
    return array[...]


def gdal_says(root, name):
    """(NoData, and the least, the greatest and the mean of the other values), as GDAL says."""
    done = mounting.ok("gdalinfo", "-json", "-stats", f'ZARR:"{root}":/{name}', env={**os.environ, "GDAL_PAM_ENABLED": "NO"})
    (band,) = json.loads(done)["bands"]
    return band.get("noDataValue"), band["minimum"], band["maximum"], round(band["mean"], 2)


def statistics(values, nodata):
    values = values[~np.isnan(values)] if values.dtype.kind == "f" else values
    values = values[values != nodata] if nodata is not None else values
    return nodata, *(round(float(n), 2) for n in (values.min(), values.max(), values.mean()))


@pytest.mark.skipif(shutil.which("gdalinfo") is None, reason="needs GDAL")
def test_gdal_reads_the_same(tmp_path, mount):
    """This GDAL opens only v2, so that it reads a store of v3 as far as v2 can express it."""
    cases = {
        # name: (options, NoData through chunks, through keys)
        "declared": ({"fill": 0, "_FillValue": 7}, 7, 0), "same": ({"fill": 7, "_FillValue": 7}, 7, 7),
        "float": ({"dtype": "f4", "fill": 0.0, "_FillValue": "AAAAAAAAHEA="}, 7, 0), "data": ({"fill": 0}, None, 0),
        "unnamed": ({"fill": 7, "names": None}, 7, 7), "unnamed declared": ({"fill": 0, "names": None, "_FillValue": 7}, 7, 0),
    }
    group = zarr.create_group(str(tmp_path / "three"), zarr_format=3)
    values = {name: plane(group, name, **options) for name, (options, _, _) in cases.items()}
    nan = plane(group, "nan", dtype="f4", fill=np.nan)
    for view, at in (("chunks", 1), ("keys", 2)):
        root = mount(tmp_path / "three", "--view", view, "--as", "v2").path
        for name, case in cases.items():
            assert gdal_says(root, name) == statistics(values[name], case[at]), (view, name)
        found = gdal_says(root, "nan")
        assert found[0] == "NaN" and found[1:] == statistics(nan, None)[1:], (view, found)
    # GDAL reads the same from a store of v2 as from a mount in its own version.
    group = zarr.create_group(str(tmp_path / "two"), zarr_format=2)
    values = {name: plane(group, name, **options) for name, options in {"marked": {"fill": 7}, "none": {"fill": None}}.items()}
    for view in VIEWS:
        root = mount(tmp_path / "two", "--view", view, "--as", "v2").path
        for name in values:
            assert gdal_says(root, name) == gdal_says(tmp_path / "two", name) == statistics(values[name], 7 if name == "marked" else None)
    # The fill value stays in v3, where GDAL takes it for NoData, too.
    root = mount(tmp_path / "two", "--as", "v3").path
    assert json.loads((root / "marked/zarr.json").read_text())["fill_value"] == 7


# Writing.


@pytest.mark.parametrize("name,view,version", [("types_v3.zarr", "chunks", "v2"), *[pytest.param(*case, marks=pytest.mark.long) for case in
                                                                                     [("types_v2.zarr", "keys", "v3"), ("shards_v3.zarr", "chunks", "v2"), ("types_v2.zarr", "chunks", "v3")]]])
def test_xarray_appends_missing_values(name, view, version, tmp_path, mount):
    """A program leaves out a chunk that is full of the fill value in the document, which is not the store's."""
    store = tmp_path / name
    worker("make", tmp_path, name)
    made = mount(store, "--rw", "--view", view, "--as", version)
    worker("append", store, made.path, env={**os.environ, "MOUNT": str(made.path)})
    assert (made.path / ".zarr-mount/refused").read_text() == ""


@pytest.fixture
def marked(tmp_path, mount):
    """A store of v3 whose missing value is not the fill value, and a mount of its chunks as v2."""
    group = zarr.create_group(str(tmp_path / "store"), zarr_format=3)
    array = group.create_array("a", shape=(4, 4), chunks=(2, 2), dtype="i2", fill_value=0, dimension_names=NAMES, attributes={"_FillValue": -9, "n": 1})
    array[...] = 5
    return tmp_path / "store", mount(tmp_path / "store", "--rw", "--view", "chunks", "--as", "v2")


def stored(store, path="a"):
    return zarr.open_array(str(store / path), mode="r")


def test_a_chunk_that_is_removed_is_missing(marked):
    store, made = marked
    chunk = made.path / "a/1/0"
    before = chunk.read_bytes()
    with open(chunk, "rb") as reader:
        chunk.unlink()
        assert np.frombuffer(chunk.read_bytes(), "<i2").tolist() == [-9] * 4
        assert reader.read() in (before, chunk.read_bytes())
    assert stored(store)[2:, :2].tolist() == [[-9, -9]] * 2
    # A chunk that the store lacks becomes missing when it is removed, too.
    (store / "a/c/0/1").unlink()
    mounting.until(lambda: np.frombuffer((made.path / "a/0/1").read_bytes(), "<i2").tolist() == [0] * 4, "the chunk that is absent")
    (made.path / "a/0/1").unlink()
    assert stored(store)[:2, 2:].tolist() == [[-9, -9]] * 2
    shown = zarr.open_array(str(made.path / "a"), mode="r+", zarr_format=2)
    shown[:, 2:] = -9
    shown[:2, :2] = 0
    assert stored(store)[...].tolist() == [[0, 0, -9, -9]] * 2 + [[-9] * 4] * 2
    assert stored(store).attrs.asdict() == {"_FillValue": -9, "n": 1} and stored(store).fill_value == 0


@pytest.mark.parametrize("how", ["rm", "rmtree", "zarr"])
def test_an_array_is_removed(how, marked):
    store, made = marked
    if how == "rm":
        subprocess.run(["rm", "-r", made.path / "a"], check=True)
    elif how == "rmtree":
        shutil.rmtree(made.path / "a")
    else:
        del zarr.open_group(str(made.path), zarr_format=2, mode="r+")["a"]
    assert not (store / "a").exists() and not (made.path / "a").exists()


def test_attributes_beside_the_missing_value_change(marked, tmp_path, mount):
    store, made = marked
    shown = made.path / "a/.zattrs"
    names = {"_ARRAY_DIMENSIONS": NAMES}
    assert json.loads(shown.read_text()) == names | {"n": 1}
    for written, attributes in [(names | {"n": 2}, {"_FillValue": -9, "n": 2}), (names, {"_FillValue": -9}),
                                (names | {"_FillValue": -9, "n": 3}, {"_FillValue": -9, "n": 3}), (names | {"_FillValue": -8}, {"_FillValue": -8})]:
        document = json.loads((made.path / "a/.zarray").read_text())
        shown.write_text(json.dumps(written))
        assert stored(store).attrs.asdict() == attributes and stored(store).fill_value == 0
        assert json.loads(shown.read_text()) == {name: value for name, value in written.items() if name != "_FillValue"}
        assert json.loads((made.path / "a/.zarray").read_text()) == document | {"fill_value": attributes["_FillValue"]}
    # In v2 the fill value is the missing value, which v3 has as an attribute.
    group = zarr.create_group(str(tmp_path / "two"), zarr_format=2)
    group.create_array("a", shape=(4,), chunks=(2,), dtype="f4", fill_value=-9, attributes={"_ARRAY_DIMENSIONS": ["x"], "n": 1})
    group.create_array("none", shape=(4,), chunks=(2,), dtype="f4", fill_value=None, attributes={"_ARRAY_DIMENSIONS": ["x"]})
    made = mount(tmp_path / "two", "--rw", "--as", "v3")

    def change(path, **attributes):
        document = json.loads((made.path / path / "zarr.json").read_text())
        document["attributes"] = {name: value for name, value in (document["attributes"] | attributes).items() if value is not None}
        (made.path / path / "zarr.json").write_text(json.dumps(document))
        return json.loads((tmp_path / "two" / path / ".zattrs").read_text()), json.loads((tmp_path / "two" / path / ".zarray").read_text())["fill_value"]

    missing = json.loads((made.path / "a/zarr.json").read_text())["attributes"]["_FillValue"]
    assert missing == "AAAAAAAAIsA="
    one = {"_ARRAY_DIMENSIONS": ["x"]}
    assert change("a", n=2) == (one | {"n": 2}, -9.0)
    assert change("a", n=3, _FillValue=None) == (one | {"n": 3}, -9.0)
    with pytest.raises(OSError):
        change("a", _FillValue="AAAAAAAAAAA=")
    assert change("none", _FillValue=missing) == (one | {"_FillValue": -9.0}, None)
    assert change("none", _FillValue=missing, n=1) == (one | {"_FillValue": -9.0, "n": 1}, None)
    assert change("none", _FillValue=None) == (one | {"n": 1}, None)


def test_names_for_dimensions_keep_the_fill_value_of_v2(tmp_path, mount):
    """zarr-python writes the document of an array first, and xarray the names of its dimensions then."""
    store = tmp_path / "store"
    zarr.create_group(str(store), zarr_format=3)
    made = mount(store, "--rw", "--view", "chunks", "--as", "v2")
    group = zarr.open_group(str(made.path), zarr_format=2, mode="r+")
    array = group.create_array("a", shape=(4,), chunks=(2,), dtype="i2", fill_value=-9, compressors=None)
    array.attrs.update({"_ARRAY_DIMENSIONS": ["x"], "n": 1})
    document = json.loads((store / "a/zarr.json").read_text())
    assert (document["fill_value"], document["attributes"], document["dimension_names"]) == (-9, {"n": 1, "_FillValue": -9}, ["x"])
    assert json.loads((made.path / "a/.zarray").read_text())["fill_value"] == -9


def test_xarray_makes_a_variable_in_a_store_of_v2(tmp_path, mount):
    """A document of v3 without a missing value is one of v2 without a fill value."""
    store = tmp_path / "store"
    zarr.create_group(str(store), zarr_format=2)
    made = mount(store, "--rw", "--as", "v3")
    group = zarr.open_group(str(made.path), zarr_format=3, mode="r+")
    keys = {"name": "v2", "separator": "."}
    for name, dtype, fill, attributes, expected in [
        ("count", "i4", 0, {}, (None, {})), ("marked", "i4", -9, {"_FillValue": -9}, (-9, {})),
        ("float", "f4", np.nan, {"_FillValue": "AAAAAAAA+H8="}, ("NaN", {})),
    ]:
        group.create_array(name, shape=(4,), chunks=(2,), dtype=dtype, fill_value=fill, attributes=attributes, dimension_names=["x"], chunk_key_encoding=keys)
        document = json.loads((store / name / ".zarray").read_text())
        assert (document["fill_value"], json.loads((store / name / ".zattrs").read_text())) == (expected[0], expected[1] | {"_ARRAY_DIMENSIONS": ["x"]})
    for fill, attributes in [(7, {}), (0, {"_FillValue": -9})]:
        with pytest.raises(OSError):
            group.create_array("other", shape=(4,), chunks=(2,), dtype="i4", fill_value=fill, attributes=attributes, dimension_names=["x"], chunk_key_encoding=keys)


READ_NETCDF = "import sys, xarray; print(xarray.open_dataset(sys.argv[1])['a'].values.tolist())"


@pytest.mark.parametrize("format", ["nc", "nc5", "nc4"])
def test_xarray_reads_truth_values_of_netcdf(format, tmp_path, mount):
    """xarray takes a missing truth value for true, so none is marked as missing, whatever the fill value of the array is."""
    group = zarr.create_group(str(tmp_path / "store"), zarr_format=2)
    array = group.create_array("a", shape=(4,), chunks=(2,), dtype="bool", fill_value=False, attributes={"_ARRAY_DIMENSIONS": ["x"]})
    array[...] = [False, True, False, True]
    made = mount(tmp_path / "store", "--view", "arrays", "--files", format)
    done = subprocess.run([str(PYTHON), "-c", READ_NETCDF, str(made.path / "store.nc")], capture_output=True, text=True, timeout=120)
    assert done.stdout == "[False, True, False, True]\n", done
