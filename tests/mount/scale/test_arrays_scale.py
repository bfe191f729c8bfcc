"""An array of 200 GiB, nearly all of it missing chunks: any part of its files at once, memory flat. Times are printed, never judged."""
import json
import mmap
import os

import numpy as np
import pytest
import zarr

from support.mounting import ok
from test_scale import Clock

MIB, GIB = 1 << 20, 1 << 30
SHAPE, CHUNKS = (3200, 4096, 4096), (16, 256, 256)  # 200 GiB of f4 in 51,200 chunks of 4 MiB
FILL = -1.5


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Chunks stored at the beginning, in the middle and at the end; no other."""
    root = tmp_path_factory.mktemp("huge") / "huge"
    group = zarr.open_group(str(root), mode="w")
    array = group.create_array("huge", shape=SHAPE, chunks=CHUNKS, dtype="<f4", fill_value=FILL, dimension_names=["z", "y", "x"])
    for plane in (0, 1600, 3199):
        array[plane, -1] = row(plane)
    return root


def row(plane):
    return (np.arange(SHAPE[2]) + plane).astype("<f4")


@pytest.mark.timeout(900)
def test_200_gib(store, mount, figure):
    made = mount(store, "--view", "arrays", "--files", "npy,raw,nii,nc,h5,tif,ome.tif,fits,vti,mrc", "--cache-size", "96M")
    clock, elements = Clock(), int(np.prod(SHAPE))
    sizes = {os.path.basename(line.split()[-1]): int(line.split()[4]) for line in ok("ls", "-l", made.path).splitlines()[1:]}
    clock.lap("ls -l")
    assert elements * 4 == 200 * GIB
    assert sizes["huge.raw"] == 200 * GIB and sizes["huge.npy"] == 200 * GIB + 128
    assert len(sizes) > 9 and all(size >= 200 * GIB for name, size in sizes.items() if not name.endswith(".json")), sizes
    assert made.stats()["chunks"]["decodes"] == 0
    ok("bash", "-c", f"tail -c 100 '{made.path}/huge.npy' > '{made.log}.tail'")
    clock.lap("tail -c 100")
    with open(f"{made.log}.tail", "rb") as file:
        assert file.read() == row(3199).tobytes()[-100:]
    with open(made.path / "huge.raw", "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        middle = (1600 * SHAPE[1] + SHAPE[1] - 1) * SHAPE[2] * 4
        assert mapped[middle : middle + 4 * SHAPE[2]] == row(1600).tobytes()
    clock.lap("mmap of the middle")
    mapped = np.load(made.path / "huge.npy", mmap_mode="r")
    assert mapped.shape == SHAPE and (mapped[1600, -1] == row(1600)).all() and mapped[2000, 1000, 1000] == FILL
    clock.lap("np.load(mmap)[k]")
    del mapped  # its file keeps the mount busy
    for name in ("huge.nii", "huge.nc", "huge.h5", "huge.tif", "huge.ome.tif", "huge.vti", "huge.mrc"):
        path = made.path / name
        fd = os.open(path, os.O_RDONLY)
        end = os.pread(fd, 4096, sizes[name] - 4096)
        assert any(row(3199).astype(order).tobytes()[-1000:] in end for order in ("<f4", ">f4")), name
        os.close(fd)
    clock.lap("the ends of 7 formats")
    ok("ncdump", "-h", made.path / "huge.nc")
    clock.lap("ncdump -h")
    figure(f"200 GiB in one file: {clock}, peak {made.peak_bytes() / MIB:.0f} MiB")
    assert made.peak_bytes() <= (96 + 64) * MIB
    made.unmount()


@pytest.mark.timeout(900)
def test_a_missing_plane_is_read_at_memory_speed(store, mount, figure):
    """1 GiB of fill values: nothing is fetched, and nothing decoded."""
    made = mount(store, "--view", "arrays", "--files", "raw", "--cache-size", "96M")
    clock, piece = Clock(), 8 * MIB
    expected = np.full(piece // 4, FILL, "<f4").tobytes()
    with open(made.path / "huge.raw", "rb", buffering=0) as file:
        file.seek(64 * GIB)
        for _ in range(GIB // piece):
            assert file.read(piece) == expected
    clock.lap("1 GiB of missing chunks")
    figure(f"{clock}, peak {made.peak_bytes() / MIB:.0f} MiB")
    assert made.stats()["chunks"]["decodes"] == 0 and made.peak_bytes() <= (96 + 64) * MIB
    made.unmount()


def test_a_million_planes(tmp_path, mount):
    """BigTIFF has a directory for each plane: they are computed, never kept."""
    zarr.create_array(str(tmp_path / "deep"), shape=(1_000_000, 2, 2), chunks=(100_000, 2, 2), dtype="u1", fill_value=5)[-1] = 9
    made = mount(tmp_path / "deep", "--view", "arrays", "--files", "ome.tif", "--cache-size", "16M")
    path = made.path / "deep.ome.tif"
    assert path.stat().st_size > 236_000_000
    with open(path, "rb") as file:
        header = file.read(16)
        assert header[:4] == b"II\x2b\0"
        first = int.from_bytes(header[8:], "little")
        file.seek(-4, os.SEEK_END)
        assert file.read() == bytes([9] * 4)
        for _ in range(3):  # along the chain of directories, which ends with the last plane
            file.seek(first)
            tags = int.from_bytes(file.read(8), "little")
            file.seek(first + 8 + 20 * tags)
            first = int.from_bytes(file.read(8), "little")
            assert 0 < first < path.stat().st_size and tags > 8
    assert json.loads((made.path / "deep.json").read_bytes())["shape"] == [1_000_000, 2, 2]
    assert made.peak_bytes() <= (16 + 64) << 20
    made.unmount()
