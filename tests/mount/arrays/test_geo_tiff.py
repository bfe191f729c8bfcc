"""GeoTIFF in tiles: values in any chunks, what a read decodes, and what GDAL is told."""
import mmap
import os
import struct

import numpy as np
import pytest
import zarr

from support import array_view
from support.mounting import ok

GEO_TIF = ["--view", "arrays", "--files", "geo.tif,raw"]


def write(path, values, chunks, **more):
    """An array without fill values in it, so that each chunk is stored."""
    array = zarr.create_array(path, shape=values.shape, chunks=chunks, dtype=values.dtype, **more)
    array[...] = values
    return array


def counting(shape, dtype="<u2"):
    return (np.arange(np.prod(shape)) % 60_000 + 1).astype(dtype).reshape(shape)


WIDTHS = {1: "B", 2: "B", 3: "H", 4: "I", 12: "d", 16: "Q", 18: "Q"}
WIDTH, LENGTH, PLANAR, TILE_WIDTH, TILE_LENGTH, OFFSETS, COUNTS = 256, 257, 284, 322, 323, 324, 325


def directories(path):
    """Tag -> values of each directory of a BigTIFF."""
    all_directories = []
    with open(path, "rb") as file:
        def take(at, form):
            file.seek(at)
            return struct.unpack("<" + form, file.read(struct.calcsize("<" + form)))

        (at,) = take(8, "Q")
        while at:
            values, (n,) = {}, take(at, "Q")
            for entry in range(at + 8, at + 8 + 20 * n, 20):
                tag, kind, count = take(entry, "HHQ")
                size = struct.calcsize(WIDTHS[kind]) * count
                place = entry + 12 if size <= 8 else take(entry + 12, "Q")[0]
                values[tag] = take(place, f"{count}{WIDTHS[kind]}")
            all_directories.append(values)
            (at,) = take(at + 8 + 20 * n, "Q")
    return all_directories


def image(path, dtype, fields=None):
    """(bands, y, x, samples) of the first directory or of `fields`, put together from the tiles; the height and the width of a tile."""
    fields, file = fields or directories(path)[0], np.memmap(path, "u1", "r")
    (width,), (length,), (across,), (down,) = (fields[tag] for tag in (WIDTH, LENGTH, TILE_WIDTH, TILE_LENGTH))
    columns, rows = -(-width // across), -(-length // down)
    samples = fields[277][0] if fields.get(PLANAR) == (1,) else 1
    tiles = [file[at : at + n].view(dtype) for at, n in zip(fields[OFFSETS], fields[COUNTS])]
    tiles = np.stack(tiles).reshape(-1, rows, columns, down, across, samples).transpose(0, 1, 3, 2, 4, 5)
    whole = tiles.reshape(-1, rows * down, columns * across, samples)
    outside = whole.copy()
    outside[:, :length, :width] = 0
    assert not outside.any()
    return whole[:, :length, :width], (down, across)


@pytest.mark.parametrize(("shape", "chunks", "tile"), [
    ((300, 700), (128, 256), (128, 256)),        # tiles are chunks, cut at the edge
    ((3, 300, 700), (2, 100, 100), (256, 256)),  # tiles cut chunks
    ((2, 3, 70, 33), (1, 2, 64, 64), (64, 64)),  # two axes of bands
    ((5, 7), (5, 7), (256, 256)),                # one tile, mostly empty
    ((70, 90, 3), (64, 64, 3), (64, 64)),        # colours
])
def test_values(tmp_path, mount, shape, chunks, tile):
    values = counting(shape)
    names = ["y", "x", "band"] if shape[-1] == 3 else None
    write(tmp_path / "s" / "t", values, chunks, dimension_names=names)
    made = mount(tmp_path / "s", *GEO_TIF)
    found, shape_of_tile = image(made.path / "t.geo.tif", "<u2")
    assert shape_of_tile == tile
    assert np.array_equal(found.reshape(shape), values)
    if len(shape) == 3 and names is None:
        part, _ = image(made.path / "t@-1,20:,:65.geo.tif", "<u2")
        assert np.array_equal(part[0, ..., 0], values[-1, 20:, :65])


def direct_read(path, length, offset):
    """Past the page cache, whose readahead would ask for more."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
    try:
        buffer = mmap.mmap(-1, length)
        assert os.preadv(fd, [buffer], offset) == length
        return bytes(buffer)
    finally:
        os.close(fd)


def test_a_tile_decodes_its_own_chunks(tmp_path, mount):
    values = counting((4, 1024, 1024))
    write(tmp_path / "s" / "t", values, (1, 256, 256))
    made = mount(tmp_path / "s", *GEO_TIF)
    path = made.path / "t.geo.tif"
    offsets = directories(path)[0][OFFSETS]
    before = array_view.decodes(made)  # of what the kernel read behind the header
    found = direct_read(path, 1 << 17, offsets[2 * 16 + 4 + 3])
    assert array_view.decodes(made) == before + 1
    assert np.array_equal(np.frombuffer(found, "<u2").reshape(256, 256), values[2, 256:512, 768:])


@pytest.mark.parametrize("chunks", [
    (1, 256, 256),  # each tile is a chunk
    (1, 16, 400),   # wide and low tiles
    (1, 300, 300),  # chunks in several tiles, in the next row of tiles too
    (3, 512, 512),  # chunks in several planes
    (1, 50, 50),    # many chunks in a tile, and no more young ones than a snapshot remembers
])
def test_a_read_in_order_decodes_each_chunk_once(tmp_path, mount, chunks):
    values = counting((3, 1200, 1200))  # less than the memory of blocks that are marked "evict first"
    array = write(tmp_path / "s" / "t", values, chunks)
    made = mount(tmp_path / "s", *GEO_TIF)
    ok("cat", made.path / "t.geo.tif")
    stats = made.stats()
    assert (stats["chunks"]["decodes"], stats["chunks"]["partial_decodes"]) == (array.nchunks, 0)
    assert stats["cache"]["ahead_unused"] == 0


def test_the_header_of_a_million_tiles_takes_no_memory(tmp_path, mount):
    zarr.create_array(tmp_path / "s" / "t", shape=(100, 25_600, 25_600), chunks=(1, 256, 256), dtype="u1")
    made = mount(tmp_path / "s", *GEO_TIF, "--cache-size", "16M")
    path = made.path / "t.geo.tif"
    size = path.stat().st_size
    assert size > 100 * 25_600**2
    (fields,) = directories(path)
    offsets, counts = fields[OFFSETS], fields[COUNTS]
    assert len(offsets) == 10**6 and set(np.diff(offsets)) == {65_536} == set(counts)
    assert offsets[-1] + 65_536 == size
    assert made.stats()["cache"]["peak_bytes"] < 8 << 20


def test_coarser_levels_are_overviews(tmp_path, mount):
    root = zarr.create_group(tmp_path / "s")
    layout = [{"asset": name} for name in ("0", "1", "../x", "2", "3", "absent", "4")]
    root.attrs["multiscales"] = {"layout": layout}
    shapes = {"0": (2, 300, 400), "1": (2, 150, 200), "2": (2, 150, 200), "3": (1, 75, 100), "4": (2, 38, 50)}
    levels = {name: counting(shape) + int(name) for name, shape in shapes.items()}
    for name, values in levels.items():
        write(tmp_path / "s" / name / "height", values, (1, 64, 128))
    made = mount(tmp_path / "s", *GEO_TIF)

    def shown(name):
        path = made.path / name
        return [image(path, "<u2", fields)[0][..., 0] for fields in directories(path)]

    first = shown("0/height.geo.tif")
    assert [found.shape for found in first] == [shapes[name] for name in ("0", "1", "4")]
    for found, name in zip(first, ("0", "1", "4")):
        assert np.array_equal(found, levels[name])
    assert [found.shape for found in shown("1/height.geo.tif")] == [shapes["1"], shapes["4"]]
    band = shown("0/height@1.geo.tif")
    assert [found.shape for found in band] == [(1, *shapes[name][1:]) for name in ("0", "1", "4")]
    assert np.array_equal(band[2][0], levels["4"][1])
    assert len(shown("0/height@:,10:.geo.tif")) == 1
    # A level that comes later is an overview when the file is next opened.
    write(tmp_path / "s" / "absent" / "height", counting((2, 75, 100)), (1, 64, 64))
    assert [found.shape[1] for found in shown("0/height.geo.tif")] == [300, 150, 75, 38]


def test_the_place_on_the_earth(tmp_path, mount):
    array = write(tmp_path / "s" / "t", counting((2, 70, 80)), (1, 64, 64), dimension_names=["time", "y", "x"])
    place = {"spatial:transform": [10.0, 0.0, 600_000.0, 0.0, -20.0, 5_000_000.0], "spatial:dimensions": ["y", "x"]}
    array.attrs.update({**place, "proj:code": "EPSG:32633"})
    own = write(tmp_path / "s" / "own", counting((70, 80)), (64, 64), dimension_names=["y", "x"])
    place["spatial:transform"] = [10.0, 0.0, 600_000.0, 0.0, 20.0, 5_000_000.0]
    wkt = 'ENGCRS["here & there",EDATUM["d"],CS[Cartesian,2],AXIS["x",east],AXIS["y",north],LENGTHUNIT["metre",1]]'
    own.attrs.update({**place, "proj:wkt2": wkt})
    made = mount(tmp_path / "s", *GEO_TIF, "--sidecar", "no")
    assert sorted(path.name for path in made.path.iterdir() if path.suffix != ".raw") == ["own.geo.tif", "own.geo.tif.aux.xml", "t.geo.tif"]
    (fields,) = directories(made.path / "t.geo.tif")
    assert fields[33550] == (10.0, 20.0, 0.0) and fields[33922] == (0, 0, 0, 600_000.0, 5_000_000.0, 0)
    assert fields[34735][-1] == 32633
    (part,) = directories(made.path / "t@1,3:,5:.geo.tif")
    assert part[33922][3:5] == (600_050.0, 4_999_940.0)
    # Rows that go north are not turned over.
    (fields,) = directories(made.path / "own.geo.tif")
    assert fields[34264] == (10, 0, 0, 600_000, 0, 20, 0, 5_000_000, 0, 0, 0, 0, 0, 0, 0, 1)
    assert 34735 not in fields
    beside = (made.path / "own.geo.tif.aux.xml").read_text()
    assert "here &amp; there" in beside
    assert (made.path / "own@2:.geo.tif.aux.xml").read_text() == beside
    for name in ("t.geo.tif.aux.xml", "own@1.geo.tif.aux.xml", "none.geo.tif.aux.xml"):
        assert not (made.path / name).exists(), name
