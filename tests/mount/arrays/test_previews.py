"""Previews (`t.png`): the pixels that Pillow sees are those of a model in NumPy, and sizes are known before anything is decoded."""
import errno
import json
import shutil

import numpy as np
import pytest
import zarr

from support import mounting
from support.array_client import Readers
from support.workers.canonical import canonical, digest

MOST = 1024


@pytest.fixture(scope="module")
def readers():
    with Readers() as readers:
        yield readers


def sampled(plane):
    """Every n-th element of a plane of (y, x)."""
    step = -(-max(plane.shape) // MOST)
    return plane[::step, ::step]


def scaled(values, missing, most, window=None):
    """The level of each value from 0 to `most`, and the range."""
    shown = np.sort(values[~missing & np.isfinite(values)].astype("f8"))
    if window is None and len(shown):
        at = (len(shown) - 1) // 50
        window = shown[at], shown[-1 - at]
        window = window if window[0] < window[1] else (shown[0], shown[-1])
    low, high = window or (0, 1)
    if low >= high:
        part = np.full(values.shape, 0.5)
    else:
        with np.errstate(invalid="ignore"):
            part = (values / 2 - low / 2) / (high / 2 - low / 2)
        part = np.clip(np.where(np.isinf(values), values > 0, part), 0, 1)
    return np.floor(np.where(missing, 0, part) * most + 0.5).astype("u1"), (low, high)


def numbers(plane, missing=None, window=None):
    """The numbers in the palette of a picture of one channel."""
    values = sampled(plane)
    absent = np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, bool)
    if missing is not None:
        absent |= values == missing
    level, window = scaled(values.astype("f8"), absent, 254, window)
    return np.where(absent, 0, level + 1).astype("u1"), window


def added(planes, colours, windows):
    """A picture of several channels, as RGBA."""
    total = np.zeros((*planes[0].shape, 4), "i8")
    for plane, colour, window in zip(planes, colours, windows):
        level, _ = scaled(plane.astype("f8"), np.zeros(plane.shape, bool), 255, window)
        total[..., :3] += (level[..., np.newaxis].astype("i8") * colour + 127) // 255
    total[..., 3] = 255
    return np.minimum(total, 255).astype("u1")


def arrays():
    """Name -> values, chunks, attributes, dimension names."""
    random = np.random.default_rng(1)
    y, x = np.mgrid[:300, :400]
    waves = np.sin(x / 40) * np.cos(y / 30) * 100
    holes = np.stack([waves, waves + random.normal(size=waves.shape), -waves]).astype("f4")
    holes[1, :50] = np.nan
    holes[1, 60:70] = 1e20
    holes[1, 80, :2] = np.inf, -np.inf
    labels = np.zeros((2500, 1500), "u2")
    labels[1000:1400, 300:900] = random.integers(1, 9, (400, 600))
    return {
        "holes": (holes, (1, 100, 400), {"_FillValue": 1e20}, ("time", "lat", "lon")),
        "labels": (labels, (256, 256), {}, None),
        "wide": (random.integers(-(1 << 62), 1 << 62, (5, 40, 30)), (2, 7, 30), {}, None),
        "truth": (waves > 0, (300, 400), {}, None),
        "half": (waves.astype("f2"), (64, 64), {}, ("x", "y")),
        "even": (np.full((20, 30), 7, "i1"), (20, 30), {}, None),
    }


@pytest.fixture(scope="module")
def previews(module_mount, tmp_path_factory):
    group = zarr.open_group(str(tmp_path_factory.mktemp("previews") / "p.zarr"), mode="w")
    for name, (values, chunks, attributes, names) in arrays().items():
        made = group.create_array(name, shape=values.shape, chunks=chunks, dtype=values.dtype, dimension_names=names, attributes=attributes)
        made[...] = values
    rgb = np.random.default_rng(2).integers(0, 256, (70, 90, 3), "u1")
    group.create_array("rgb", shape=rgb.shape, chunks=(32, 32, 3), dtype="u1", dimension_names=("y", "x", "c"))[...] = rgb
    group.create_array("line", shape=(9,), chunks=(9,), dtype="f4")
    group.create_array("complex", shape=(9, 9), chunks=(9, 9), dtype="c8")
    group.create_array("fine", shape=(1030, 1030), chunks=(64, 64), dtype="u1")
    group.create_array("heavy", shape=(10, 4096, 4096), chunks=(10, 4096, 4096), dtype="u1")
    return module_mount(str(group.store.root), "--files", "png"), rgb


def test_sizes_need_no_elements(mount, previews):
    """All names and sizes are known before a chunk is decoded, and hold for what is read then."""
    made = mount(previews[0].store, "--files", "png")
    sizes = {path.name: path.stat().st_size for path in made.path.glob("*.png")}
    assert sizes.keys() == {f"{name}.png" for name in [*arrays(), "rgb"]}
    assert made.stats()["chunks"]["decodes"] == 0
    for name, size in sizes.items():
        assert len((made.path / name).read_bytes()) == size, name
    assert made.stats()["chunks"]["decodes"] > 0


@pytest.mark.parametrize("name", arrays())
def test_one_channel(previews, readers, name):
    values, _, attributes, names = arrays()[name]
    middle = values[values.shape[0] // 2] if values.ndim == 3 else values
    upright = middle.T if names == ("x", "y") else middle
    truths = (0, 1) if values.dtype == bool else None
    expected, (low, high) = numbers(upright, np.float32(1e20) if attributes else None, truths)
    found = readers.ask("pillow", previews[0].path / f"{name}.png", with_values=True)
    assert found["said"]["mode"] == "P" and found["said"]["clear"] == 0
    assert np.array_equal(np.array(found["values"])[0], expected)
    assert found["said"]["palette"][3:6] == [68, 2, 86] and found["said"]["palette"][-3:] == [253, 231, 37]
    text = found["said"]["text"]
    assert [float(word) for word in text["Range"].split(" to ")] == [low, high]
    assert text["Title"] == name
    if name == "holes":
        assert text["Description"] == "time=1, lat=0:300, lon=0:400"
        assert (expected[:50] == 0).all() and (expected[60:70] == 0).all() and tuple(expected[80, :2]) == (255, 1)


def test_colours_stay(previews, readers):
    made, rgb = previews
    found = readers.ask("pillow", made.path / "rgb.png")
    expected = np.concatenate([rgb, np.full((70, 90, 1), 255, "u1")], axis=2)
    assert found["said"]["mode"] == "RGBA" and found["sha256"] == digest(canonical(expected[np.newaxis]))


def test_a_part_has_a_preview(previews, readers):
    values = arrays()["holes"][0]
    for part, plane in (("holes@0", values[0]), ("holes@time=2,lat=10:90", values[2, 10:90])):
        found = readers.ask("pillow", previews[0].path / f"{part}.png")
        assert found["sha256"] == digest(canonical(numbers(plane, np.float32(1e20))[0][np.newaxis]))
    assert found["said"]["text"]["Description"] == "time=2, lat=10:90, lon=0:400"
    assert not (previews[0].path / "holes@0,0.png").exists()


@pytest.mark.parametrize("name, reason", [
    ("line", "1 dimensions"), ("complex", "complex64"), ("fine", "the number of chunks to decode for a preview is 289, more than the limit of 256"),
    ("heavy", "the size of the chunks to decode for a preview in bytes is 167772160")])
def test_what_has_no_preview_is_named(previews, name, reason):
    made = previews[0]
    assert not (made.path / f"{name}.png").exists()
    assert reason in json.loads((made.path / f"{name}.json").read_text())["left_out"]["png"]
    assert reason in mounting.ok(mounting.BINARY, "--info", "--files", "png", made.store, name)


def test_channels_are_blended(mount, tmp_path, readers):
    """Colours and windows are those of `omero`, where it has them."""
    random = np.random.default_rng(3)
    values = random.integers(0, 4000, (2, 3, 4, 50, 60), "u2")
    channels = [{"color": "0000FF", "window": {"start": 100, "end": 2000, "min": 0, "max": 65535}}, {"color": "ff8000"}, {}]
    axes = [{"name": "t", "type": "time"}, {"name": "c", "type": "channel"}, *({"name": name, "type": "space"} for name in "zyx")]
    scale = [{"type": "scale", "scale": [1.0] * 5}]
    multiscale = {"name": "cells", "axes": axes, "datasets": [{"path": "0", "coordinateTransformations": scale}]}
    group = zarr.open_group(str(tmp_path / "i.zarr"), mode="w", attributes={
        "ome": {"version": "0.5", "multiscales": [multiscale], "omero": {"channels": channels}}})
    group.create_array("0", shape=values.shape, chunks=(1, 1, 2, 32, 32), dtype="u2")[...] = values
    made = mount(tmp_path / "i.zarr", "--files", "png")
    found = readers.ask("pillow", made.path / "0.png")
    expected = added(values[1, :, 2], [(0, 0, 255), (255, 128, 0), (0, 0, 255)], [(100, 2000), None, None])
    assert found["sha256"] == digest(canonical(expected[np.newaxis]))
    assert found["said"]["text"]["Title"] == "cells" and found["said"]["text"]["Range"].startswith("100 to 2000; ")
    # Of one channel, the colour and the window stay.
    one = readers.ask("pillow", made.path / "0@:,0:1.png")
    assert one["said"]["palette"][-3:] == [0, 0, 255]
    assert one["sha256"] == digest(canonical(numbers(values[1, 0, 2], window=(100, 2000))[0][np.newaxis]))


@pytest.mark.parametrize("convention", ["ome", "multiscales"])
def test_a_coarser_level_is_shown(mount, tmp_path, readers, convention):
    """A picture of a large level is that of a level which fits; what is not readable there is not needed."""
    random = np.random.default_rng(4)
    shapes = {"0": (3, 4200, 2100), "1": (3, 2100, 1050), "a/2": (3, 1050, 525), "a/3": (3, 525, 262)}
    scales = [{"path": path, "coordinateTransformations": [{"type": "scale", "scale": [1.0, 4200 / y, 4200 / y]}]} for path, (_, y, _) in shapes.items()]
    axes = [{"name": "t", "type": "time"}, *({"name": name, "type": "space"} for name in "yx")]
    described = {"ome": {"version": "0.5", "multiscales": [{"name": "big", "axes": axes, "datasets": scales}]},
                 "multiscales": {"layout": [{"asset": path} for path in shapes]}}
    group = zarr.open_group(str(tmp_path / "i.zarr"), mode="w", attributes={convention: described[convention]})
    values = {}
    for path, shape in shapes.items():
        values[path] = random.integers(0, 250, shape, "u1")
        group.create_array(path, shape=shape, chunks=(1, *(min(128 if path == "0" else 512, n) for n in shape[1:])), dtype="u1",
                           dimension_names=["t", "y", "x"])[...] = values[path]
    made = mount(tmp_path / "i.zarr", "--files", "png", "--ttl", "0")

    def shown(name):
        found = readers.ask("pillow", made.path / f"{name}.png")
        return found["sha256"], found["said"]["text"]["Description"]

    def expected(level, index, *part):
        return digest(canonical(numbers(values[level][(index, *part)])[0][np.newaxis]))

    assert shown("0") == (expected("a/3", 1), "level 3: t=1, y=0:525, x=0:262")
    assert shown("1@-1") == (expected("a/3", 2), "level 3: t=2, y=0:525, x=0:262")
    assert shown("a/2")[0] == expected("a/3", 1)
    assert shown("a/3") == (expected("a/3", 1), "t=1, y=0:525, x=0:262")
    assert shown("1@:,:2000") == (expected("1", 1, slice(2000)), "t=1, y=0:2000:2, x=0:1050:2")
    # The finest level has too many chunks for a preview of its own, and a damaged level does not matter.
    (tmp_path / "i.zarr/a/3/zarr.json").write_text("{")
    assert shown("0") == (expected("a/2", 1), "level 2: t=1, y=0:1050:2, x=0:525:2")
    shutil.rmtree(tmp_path / "i.zarr/a")
    assert shown("1") == (expected("1", 1), "t=1, y=0:2100:3, x=0:1050:3")


def test_labels_have_their_colours(mount, tmp_path, readers):
    values = np.random.default_rng(5).integers(0, 600, (40, 50), "u4")
    multiscale = {"axes": [{"name": name, "type": "space"} for name in "yx"],
                  "datasets": [{"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [1.0, 1.0]}]}]}
    group = zarr.open_group(str(tmp_path / "l.zarr"), mode="w", attributes={"ome": {
        "version": "0.5", "multiscales": [multiscale], "image-label": {"colors": [{"label-value": 7, "rgba": [10, 20, 30, 255]}]}}})
    group.create_array("0", shape=values.shape, chunks=(16, 16), dtype="u4")[...] = values
    found = readers.ask("pillow", mount(tmp_path / "l.zarr", "--files", "png").path / "0.png")
    assert found["sha256"] == digest(canonical(np.where(values == 0, 0, (values.astype("i8") - 1) % 255 + 1).astype("u1")[np.newaxis]))
    palette = np.reshape(found["said"]["palette"], (-1, 3))
    assert tuple(palette[7]) == (10, 20, 30) and len({*map(tuple, palette[1:])}) == 255 and found["said"]["clear"] == 0


def test_shards_that_are_compressed_as_a_whole_count(mount, tmp_path):
    """To read any chunk of such a shard, all of the shard is decompressed."""
    shards = zarr.codecs.ShardingCodec(chunk_shape=(8, 64, 64), codecs=[zarr.codecs.BytesCodec()])
    group = zarr.open_group(str(tmp_path / "s.zarr"), mode="w")
    for name, depth in (("thin", 8), ("thick", 4096)):
        array = group.create_array(name, shape=(depth, 128, 128), chunks=(depth, 128, 128), dtype="u2",
                                   serializer=shards, compressors=zarr.codecs.GzipCodec(), filters=None)
        array[:8] = 3
    made = mount(tmp_path / "s.zarr", "--files", "png")
    assert (made.path / "thin.png").read_bytes()
    assert "the size of the chunks to decode for a preview in bytes is" in json.loads((made.path / "thick.json").read_text())["left_out"]["png"]


def test_a_damaged_chunk_is_an_error(mount, previews, tmp_path):
    """No picture is made of a part of the plane; chunks that it does not show do not matter."""
    shutil.copytree(previews[0].store, tmp_path / "d.zarr")
    for chunk in ("holes/c/1/2/0", "wide/c/0/0/0"):
        (tmp_path / "d.zarr" / chunk).write_bytes(b"damaged")
    made = mount(tmp_path / "d.zarr", "--files", "png")
    assert (made.path / "holes.png").stat().st_size > 0
    with pytest.raises(OSError) as error:
        (made.path / "holes.png").read_bytes()
    assert error.value.errno == errno.EIO
    assert (made.path / "wide.png").read_bytes() == (previews[0].path / "wide.png").read_bytes()
    assert "holes/c/1/2/0" in made.log_text()


def test_a_new_open_sees_the_new_elements(mount, readers, tmp_path):
    array = zarr.create_array(str(tmp_path / "s"), shape=(64, 64), chunks=(32, 32), dtype="u2")
    array[...] = first = np.arange(64 * 64, dtype="u2").reshape(64, 64)
    made = mount(tmp_path / "s", "--files", "png")
    path = made.path / "s.png"
    before = path.read_bytes()
    with path.open("rb") as held:
        start = held.read(100)
        array[:32] = 9000
        second = first.copy()
        second[:32] = 9000
        found = readers.ask("pillow", path)
        assert found["sha256"] == digest(canonical(numbers(second)[0][np.newaxis]))
        try:
            assert start + held.read() == before
        except OSError as error:
            assert error.errno == errno.ESTALE


def test_a_small_cache_suffices(mount, previews):
    made = mount(previews[0].store, "--files", "png", "--cache-size", "16M")
    for name in [*arrays(), "rgb"]:
        assert (made.path / f"{name}.png").read_bytes() == (previews[0].path / f"{name}.png").read_bytes()
