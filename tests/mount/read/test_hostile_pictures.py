"""Hostile descriptions of maps and images: the part that is wrong is left out, with a reason, and everything else goes on.

Each case is a group whose documents lie about coordinate systems, levels of pyramids, channels or plates. The cases of one kind are in one
store, which also has a sound array.
"""
import json
import os
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

from support import mounting

MIB = 1 << 20
BUDGET = 16 * MIB
BOUND = BUDGET + 64 * MIB
READ_AT_MOST = 128 << 10  # of one file
FORMATS = "npy,raw,envi,tif,ome.tif,geo.tif,png,nc4,h5"
SOUND = np.arange(48, dtype="u2").reshape(6, 8)
# Characters that XML does not have, and characters that it escapes.
CONTROLS = "a\u0000b\u0001c\u001f<d>&\"e'\uffff]]>\n"


def array(shape, chunks=None, data_type="uint8", names=None, attributes=None, **members):
    """A document of an array without chunks."""
    document = {"zarr_format": 3, "node_type": "array", "shape": shape, "data_type": data_type, "fill_value": 1,
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunks or shape}},
                "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
                "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}], "attributes": attributes or {}}
    return document | ({"dimension_names": names} if names else {}) | members


def group(attributes=None):
    return {"zarr_format": 3, "node_type": "group", "attributes": attributes or {}}


def write(root, nodes):
    """Documents by the paths of their nodes, and chunks by their own paths."""
    for path, content in nodes.items():
        file = root / path if isinstance(content, bytes) else root / path / "zarr.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())


def a_map(spatial_ref, grid_mapping="spatial_ref", others=None, **attributes):
    """A map, and the array that its coordinate system is in."""
    return {"": group(), "map": array([64, 48], [32, 16], names=["y", "x"], attributes={"grid_mapping": grid_mapping, **attributes}),
            "spatial_ref": array([], data_type="int64", attributes=spatial_ref)} | (others or {})


def place(text):
    return a_map({"crs_wkt": 'GEOGCS["WGS 84"]', "GeoTransform": text})


def an_image(datasets, levels=None, omero=None, axes=("c", "y", "x"), **more):
    """A pyramid, whose levels are 2 x 64 x 48 and 2 x 32 x 24 if `levels` does not say otherwise."""
    if levels is None:
        levels = {"0": array([2, 64, 48], [1, 32, 16]), "1": array([2, 32, 24], [1, 32, 16])}
    kinds = {"c": {"type": "channel"}, "t": {"type": "time"}}
    axes = [{"name": name, **kinds.get(name, {"type": "space", "unit": "micrometer"})} for name in axes]
    multiscale = {"name": "image", "axes": axes, "datasets": datasets, **more}
    ome = {"version": "0.5", "multiscales": [multiscale], **({"omero": omero} if omero is not None else {})}
    return {"": group(), "image": group({"ome": ome}), **{f"image/{path}": document for path, document in levels.items()}}


def dataset(path, scale=(1, 0.5, 0.5)):
    return {"path": path, "coordinateTransformations": [{"type": "scale", "scale": list(scale)}]}


SOUND_DATASETS = [dataset("0"), dataset("1", (1, 1, 1))]


def with_omero(omero):
    return an_image(SOUND_DATASETS, omero=omero)


def with_channels(*channels):
    return with_omero({"channels": list(channels)})


def a_plate(plate, wells=None):
    fields = {f"plate/A/1/{name}": document for name, document in an_image(SOUND_DATASETS).items() if name}
    wells = wells or {"plate/A/1": group({"ome": {"version": "0.5", "well": {"images": [{"path": "image"}]}}})}
    return {"": group(), "plate": group({"ome": {"version": "0.5", "plate": plate}}), "plate/A": group(), **wells, **fields}


MAPS = {
    "text of 100 MB": lambda: a_map({"crs_wkt": "A" * (100 * 10**6)}),
    "text of 3 MB": lambda: a_map({"crs_wkt": "A" * (3 * 10**6), "GeoTransform": "0 1 0 0 0 -1"}),
    "text of 200 kB": lambda: a_map({"crs_wkt": 'PROJCS["' + "A" * 200_000, "GeoTransform": "0 1 0 0 0 -1"}),
    "brackets within brackets": lambda: a_map({"crs_wkt": "PROJCS[" * 20_000, "spatial_ref": "]" * 20_000}),
    "control characters": lambda: a_map({"crs_wkt": f'GEOGCS["{CONTROLS}"]', "spatial_ref": CONTROLS}),
    "texts that are none": lambda: a_map({"crs_wkt": {"a": 1}, "spatial_ref": [1], "GeoTransform": 5, "grid_mapping_name": None}),
    "NaN": lambda: place("nan nan nan nan nan nan"),
    "infinity": lambda: place("1e999 -inf 0 1e308 0 1e400"),
    "pixels without a size": lambda: place("0 0 0 0 0 0"),
    "words": lambda: place("a b c d e f"),
    "a million numbers": lambda: place("1 " * 10**6),
    "numbers in a list": lambda: place([0, 1, 0, 0, 0, -1]),
    "five numbers": lambda: place("0 1 0 0 0"),
    "a map that is its own system": lambda: a_map({}, grid_mapping="map"),
    "a huge array as a system": lambda: a_map({}, "huge", {"huge": array([10**12, 10**6], [10**9, 10**6])}),
    "a system outside of the store": lambda: a_map({}, "../../../etc/passwd"),
    "a system that is a group": lambda: a_map({}, "other", {"other": group({"crs_wkt": "x"})}),
    "a system without a name": lambda: a_map({}, ""),
    "a system that is a list": lambda: a_map({}, ["spatial_ref", 1]),
    "a million systems": lambda: a_map({"crs_wkt": "x"}, "spatial_ref: x y " * 10**5),
    "_CRS of wrong types": lambda: a_map({}, _CRS={"url": [1], "wkt": 5, "projjson": "text"}),
    "_CRS that is a number": lambda: a_map({}, _CRS=5),
    "_CRS with an endless code": lambda: a_map({}, _CRS={"url": "http://www.opengis.net/def/crs/EPSG/0/" + "9" * 1000}),
    "_CRS of many levels": lambda: a_map({}, _CRS={"projjson": json.loads('{"a":' * 50 + "1" + "}" * 50)}),
    "GeoZarr of wrong types": lambda: a_map({}, **{"proj:code": "EPSG:99999999999999999999", "proj:wkt2": 7, "proj:projjson": [], "spatial:transform": "x",
                                                   "spatial:dimensions": ["y"], "spatial:shape": {}, "proj:transform": [None] * 9, "proj:epsg": -1.5}),
    "GeoZarr of NaN": lambda: a_map({}, **{"proj:code": "EPSG:4326", "spatial:transform": [1e308, 1e308, 1e308, 1e308, -1e308, float("nan")],
                                           "spatial:dimensions": ["y", "x"]}),
    "GeoZarr of a million levels": lambda: a_map({}) | {"": group({"multiscales": {"layout": [{"asset": "map"}] * 10**5, "crs_wkt": 1}})},
    "GeoZarr of levels outside": lambda: a_map({}) | {"": group({"multiscales": {"layout": [
        {"asset": "map"}, {"asset": "../.."}, {"asset": "/map"}, {"asset": 5}, {"asset": "map/.."}, {"asset": ""}, {"asset": "map"}]}})},
    "coordinates of a terabyte": lambda: {"": group(), "map": array([10**9, 10**9], [1024, 1024], names=["y", "x"]),
                                          "y": array([10**9], [10**6], "float64", ["y"]), "x": array([10**9], [10**9], "float64", ["x"])},
    "equal coordinates": lambda: a_map({}, others={"y": array([64], None, "float64", ["y"]), "x": array([48], None, "float64", ["x"])}),
    "coordinates without a codec": lambda: a_map({}, others={
        "y": array([64], None, "float64", ["y"], codecs=[{"name": "nonesuch"}]), "x": array([48], None, "int64", ["x"])}),
    "coordinates in a chunk of gigabytes": lambda: a_map({}, others={
        "y": array([64], [10**9], "float64", ["y"]), "y/c/0": bytes(100), "x": array([48], None, "float64", ["x"])}),
    "coordinates that are cut off": lambda: a_map({}, others={
        "y": array([64], None, "float64", ["y"]), "y/c/0": bytes(100), "x": array([48], None, "float64", ["x"])}),
    "coordinates of NaN": lambda: a_map({}, others={
        "y": array([64], None, "float64", ["y"]), "y/c/0": np.full(64, np.nan).tobytes(), "x": array([48], None, "float64", ["x"])}),
}
IMAGES = {
    "levels that do not shrink": lambda: an_image([dataset("0"), dataset("0"), dataset("1"), dataset("1")]),
    "a level larger than the one before": lambda: an_image([dataset("1"), dataset("0")]),
    "levels that do not exist": lambda: an_image([dataset("0"), dataset("none"), dataset("1", (1, 1, 1))]),
    "no level that exists": lambda: an_image([dataset("none"), dataset("neither")]),
    "levels of other types": lambda: an_image([dataset("0"), dataset("1")], {
        "0": array([2, 64, 48], [1, 32, 16]), "1": array([2, 32, 24], [1, 32, 16], "float64")}),
    "levels of other axes": lambda: an_image([dataset("0"), dataset("1")], {"0": array([2, 64, 48], [1, 32, 16]), "1": array([32, 24])}),
    "levels that cannot be decoded": lambda: an_image([dataset("0"), dataset("1")], {
        "0": array([2, 64, 48], [1, 32, 16]), "1": array([2, 32, 24], codecs=[{"name": "nonesuch"}])}),
    "a finest level that cannot be decoded": lambda: an_image([dataset("0"), dataset("1")], {
        "0": array([2, 64, 48], codecs=[{"name": "nonesuch"}]), "1": array([2, 32, 24])}),
    "levels that are groups": lambda: an_image([dataset("0"), dataset("1")], {"0": array([2, 64, 48], [1, 32, 16]), "1": group()}),
    "levels outside of the group": lambda: an_image([dataset("0"), dataset("../sound"), dataset("../../../etc/passwd"), dataset("/image/1")]),
    "only levels outside of the group": lambda: an_image([dataset("../sound"), dataset("..")]),
    "levels in a circle": lambda: an_image([dataset("0"), dataset("."), dataset(""), dataset("../image"), dataset("0/../0"), dataset("0/")]),
    "paths that are none": lambda: an_image([{"path": 5}, {"path": None}, {}, 7, None, dataset("0"), dataset(CONTROLS)]),
    "a million levels": lambda: an_image([{"path": "0"}] * 10**6),
    "ten thousand levels": lambda: an_image([{"path": "0"}] * 10**4),
    "levels that are no list": lambda: an_image({"0": dataset("0")}),
    "levels of no elements": lambda: an_image(SOUND_DATASETS, {"0": array([2, 0, 48]), "1": array([0, 0, 0])}),
    "levels of exabytes": lambda: an_image(SOUND_DATASETS, {
        "0": array([2, 2**30, 2**30], [1, 256, 256]), "1": array([2, 2**29, 2**29], [1, 256, 256])}),
    "chunks of no use": lambda: an_image(SOUND_DATASETS, {"0": array([2, 128, 128], [2, 4, 1]), "1": array([2, 64, 64], [1, 1, 64])}),
    "planes without end": lambda: an_image(SOUND_DATASETS, {
        "0": array([10**7, 64, 48], [1, 64, 48]), "1": array([10**7, 32, 24], [1, 32, 24])}),
    "too many axes": lambda: an_image(SOUND_DATASETS, axes="abcdefghijklmnopqrstuvwxyz"),
    "axes of wrong types": lambda: an_image(SOUND_DATASETS, axes=()) | {"image": group({"ome": {
        "version": 0.5, "multiscales": [{"axes": [5, None, {"name": []}], "datasets": SOUND_DATASETS}]}})},
    "multiscales of wrong types": lambda: an_image(SOUND_DATASETS) | {"image": group({"ome": {"multiscales": {"a": 1}}, "multiscales": "b"})},
    "multiscales of multiscales": lambda: an_image([dataset("inner")]) | {"image/inner": group({"ome": {
        "version": "0.5", "multiscales": [{"axes": [], "datasets": [dataset("../../image")]}]}})},
    "a thousand multiscales": lambda: an_image(SOUND_DATASETS) | {"image": group({"ome": {"multiscales": [{"datasets": SOUND_DATASETS}] * 1000}})},
    "scales that are none": lambda: an_image([dataset("0", (1, 0, -1)), dataset("1", (float("nan"), 1e300, 5))]),
    "scales of other lengths": lambda: an_image([dataset("0", (1,)), dataset("1", (1,) * 10**4)]),
    "twenty thousand transformations": lambda: an_image([
        {"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [1, 1, 1]}] * 20_000}, dataset("1")]),
    "sequences within sequences": lambda: an_image([
        {"path": "0", "coordinateTransformations": json.loads('[{"type":"sequence","transformations":' * 15 + "[]" + "}]" * 15)}, dataset("1")]),
    "transformations of wrong types": lambda: an_image([
        {"path": "0", "coordinateTransformations": [None, 5, {"type": 5}, {"type": "scale"}, {"type": "affine", "affine": "x"}]},
        {"path": "1", "coordinateTransformations": {"type": "scale"}}], coordinateTransformations="x"),
    "a name of control characters": lambda: an_image(SOUND_DATASETS, name=CONTROLS),
    "a name of a megabyte": lambda: an_image(SOUND_DATASETS, name="n" * 10**6),
    "a name that is none": lambda: an_image(SOUND_DATASETS, name=[{}]),
    "omero that is a number": lambda: with_omero(5),
    "channels that are no list": lambda: with_omero({"channels": {"0": {"label": "a"}}}),
    "channels of wrong types": lambda: with_channels(None, {"label": [1], "color": 7, "window": {"start": "x", "end": None}, "active": "no"}),
    "colours that are none": lambda: with_channels({"color": "GGGGGG"}, {"color": "F" * 10**5}),
    "colours of letters of several bytes": lambda: with_channels({"color": "éàü"}, {"color": "日本"}),
    "windows that are none": lambda: with_channels({"window": {"start": float("nan"), "end": float("inf")}}, {"window": {"start": 5, "end": 5}}),
    "windows upside down": lambda: with_channels({"window": {"start": 1e308, "end": -1e308}}, {"window": [1, 2]}),
    "labels of control characters": lambda: with_channels({"label": CONTROLS, "color": "FF0000"}, {"label": "\u202e\ud7ff", "color": "00FF00"}),
    "labels of a megabyte": lambda: with_channels({"label": "l" * 10**6}, {"label": "m" * 10**6}),
    "a million channels": lambda: with_channels(*[{}] * 10**6),
    "as many channels as the array has": lambda: an_image(SOUND_DATASETS, {
        "0": array([10**5, 64, 48], [1, 64, 48]), "1": array([10**5, 32, 24], [1, 32, 24])}, omero={"channels": [{"label": "x"}] * 10**5}),
    "labels in other places": lambda: an_image(SOUND_DATASETS) | {"image/labels": group({"ome": {"labels": ["../..", "", 5, ".", "none", "../0"]}})},
    "a hundred thousand labels": lambda: an_image(SOUND_DATASETS) | {"image/labels": group({"ome": {"labels": ["a"] * 10**5}})},
    "wells in other places": lambda: a_plate({"wells": [{"path": "../.."}, {"path": "A/1"}, {"path": 5}, {}, 7, {"path": CONTROLS}], "name": CONTROLS}),
    "a hundred thousand wells": lambda: a_plate({"wells": [{"path": "A/1", "rowIndex": 2**70, "columnIndex": -1}] * 10**5}),
    "rows that are none": lambda: a_plate({"wells": [{"path": "A/1", "rowIndex": "x", "columnIndex": 10**9}], "rows": 5, "columns": [None]}),
    "a plate in itself": lambda: a_plate({"wells": [{"path": "A/1"}]}, {"plate/A/1": group({"ome": {
        "plate": {"wells": [{"path": "../.."}]}, "well": {"images": [{"path": "../../A/1"}, {"path": "image"}, 5]}}})}),
}
KINDS = {"maps": MAPS, "images": IMAGES}
# Cases with chunks that cannot be decoded, so that only the map can be read.
DAMAGED = {"coordinates that are cut off"}


@pytest.fixture(scope="module", params=KINDS)
def made(request, module_mount, tmp_path_factory):
    """The mount of the cases of a kind. After the tests, the daemon must still run, and must have kept to its memory."""
    store = tmp_path_factory.mktemp("hostile") / "store"
    for number, case in enumerate(KINDS[request.param].values()):
        write(store / f"case{number}", case())
    sound = {"sound": array(list(SOUND.shape), data_type="uint16"), "sound/c/0/0": SOUND.tobytes()}
    write(store, {"": group({"kind": request.param})} | sound)
    made = module_mount(store, "--view", "arrays", "--files", FORMATS, "--cache-size", f"{BUDGET >> 20}M")
    at_first = made.peak_bytes()
    yield request.param, made
    assert made.alive()
    assert "panicked" not in made.log_text()
    grown = made.peak_bytes() - at_first
    assert grown <= BOUND, f"{grown / MIB:.0f} MiB more than at first"
    made.unmount()


def files(root):
    return sorted(Path(folder) / name for folder, _, names in os.walk(root) for name in names)


def beginning(path):
    with open(path, "rb") as file:
        return file.read(READ_AT_MOST)


def test_the_rest_goes_on(made):
    kind, made = made
    found = files(made.path)
    assert (np.load(made.path / "sound.npy") == SOUND).all()
    damaged = {f"case{number}" for number, case in enumerate(KINDS[kind]) if case in DAMAGED}
    of_all = {"store.h5", "store.nc"} if damaged else set()
    for path in found:
        if path.relative_to(made.path).parts[0] in damaged | of_all and not path.name.startswith("map."):
            continue
        content = beginning(path)
        is_whole = len(content) == path.stat().st_size
        assert is_whole or len(content) == READ_AT_MOST, path
        if is_whole and path.name.rstrip("~").endswith(".json"):
            told = json.loads(content)
            assert all(isinstance(reason, (str, dict)) and reason for reason in told["left_out"].values()), path
        if is_whole and ".ome.tif" in path.name:
            documents = re.findall(rb"<OME.*?</OME>", content, re.DOTALL)
            assert documents, path
            for document in documents:
                ElementTree.fromstring(document)
    names = {str(path.relative_to(made.path)) for path in found}
    assert {"sound.npy", "sound.json", "sound.tif", "sound.ome.tif", "sound.geo.tif", "sound.png", "store.h5"} <= names
    for number, case in enumerate(KINDS[kind]):
        own = {name.removeprefix(f"case{number}/") for name in names if name.startswith(f"case{number}/")}
        # The arrays that the description is about are still there.
        assert own & {"map.npy", "image/0.npy", "image/0.ERROR.txt", "plate/A/1/image/0.npy"}, case


# Case -> the part of the image that is left out of its file, and a word of the reason. The part is `None` if there is no file.
LEFT_OUT = {
    "a level larger than the one before": ("0", "not fewer"),
    "levels that do not shrink": ("1", "not fewer"),
    "levels that do not exist": ("none", "no array"),
    "no level that exists": (None, "no array"),
    "levels of other types": ("1", "data type"),
    "levels of other axes": ("1", "axes"),
    "levels that cannot be decoded": ("1", "decoded"),
    "levels that are groups": ("1", "no array"),
    "levels outside of the group": ("datasets[1]", "below the group"),
    "only levels outside of the group": (None, "below the group"),
    "levels in a circle": ("datasets[1]", "below the group"),
}


@pytest.mark.parametrize("made", ["images"], indirect=True)
def test_the_json_of_an_image_says_what_is_left_out(made):
    _, made = made
    for case, (part, word) in LEFT_OUT.items():
        folder = made.path / f"case{list(IMAGES).index(case)}/image"
        told = json.loads((folder / "image.json").read_bytes())
        assert (folder / "image.ome.tif").exists() == ("ome.tif" in told["files"]) == (part is not None), case
        reason = told["left_out"]["ome.tif"]
        assert word in (reason if part is None else reason[part]), case
