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


def directory(path):
    """Tag -> values of the first directory of a BigTIFF."""
    values = {}
    with open(path, "rb") as file:
        def take(at, form):
            file.seek(at)
            return struct.unpack("<" + form, file.read(struct.calcsize("<" + form)))

        (at,) = take(8, "Q")
        for n in range(*take(at, "Q")):
            entry = at + 8 + 20 * n
            tag, kind, count = take(entry, "HHQ")
            size = struct.calcsize(WIDTHS[kind]) * count
            place = entry + 12 if size <= 8 else take(entry + 12, "Q")[0]
            values[tag] = take(place, f"{count}{WIDTHS[kind]}")
    return values


def image(path, dtype):
    """(bands, y, x) or (y, x, samples), put together from the tiles; the height and the width of a tile."""
    fields, file = directory(path), np.memmap(path, "u1", "r")
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
    offsets = directory(path)[OFFSETS]
    before = array_view.decodes(made)  # of what the kernel read behind the header
    found = direct_read(path, 1 << 17, offsets[2 * 16 + 4 + 3])
    assert array_view.decodes(made) == before + 1
    assert np.array_equal(np.frombuffer(found, "<u2").reshape(256, 256), values[2, 256:512, 768:])


@pytest.mark.parametrize("chunks", [
    (1, 256, 256),  # each tile is a chunk
    (1, 300, 300),  # chunks in several tiles, in the next row of tiles too
    (3, 512, 512),  # chunks in several planes
    (1, 32, 32),    # many chunks in a tile
])
def test_a_read_in_order_decodes_each_chunk_once(tmp_path, mount, chunks):
    values = counting((3, 1200, 1200), "<u4")
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
    fields = directory(path)
    offsets, counts = fields[OFFSETS], fields[COUNTS]
    assert len(offsets) == 10**6 and set(np.diff(offsets)) == {65_536} == set(counts)
    assert offsets[-1] + 65_536 == size
    assert made.stats()["cache"]["peak_bytes"] < 8 << 20
