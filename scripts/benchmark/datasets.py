"""The data sets: float32 values that compress like weather data, in many codecs; an image stack; a climate grid; many tiny chunks."""
import json
import os
import shutil
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import zarr
from numcodecs import Blosc, Zlib

MIB = 1 << 20
CHUNK_FILES_FROM_BYTES = 64 << 10  # chunk files of at least this size are compared with libraries


@dataclass(frozen=True)
class Dataset:
    """One array: how it is stored, and how its floor is measured."""
    name: str
    label: str
    source: str  # which values: waves, corner, images or climate
    codec: str  # none, blosc, zlib, gzip, zstd: the last codec
    chunks: tuple
    shards: tuple = None
    zarr_format: int = 3
    separator: str = "/"
    compressor: object = field(default=None, compare=False)

    @property
    def family(self):
        """The kind of floor that the dataset is compared with."""
        return {"none": "uncompressed", "blosc": "blosc"}.get(self.codec, "zstd, inflate")


BLOSC = zarr.codecs.BloscCodec(cname="lz4", clevel=5, shuffle="shuffle", typesize=4)
CUBE, SHARD = (64,) * 3, (256,) * 3
ALL = [
    Dataset("raw", "uncompressed", "waves", "none", CUBE),
    Dataset("blosc", "v2 blosc-lz4", "waves", "blosc", CUBE, zarr_format=2, separator=".",
            compressor=Blosc("lz4", 5, Blosc.SHUFFLE)),
    Dataset("zstd", "v3 zstd 3", "waves", "zstd", CUBE, compressor=zarr.codecs.ZstdCodec(level=3)),
    Dataset("zlib", "v2 zlib 1", "waves", "zlib", CUBE, zarr_format=2, separator=".", compressor=Zlib(1)),
    Dataset("gzip", "v3 gzip 1", "waves", "gzip", CUBE, compressor=zarr.codecs.GzipCodec(level=1)),
    Dataset("shblosc", "v3 shards, blosc-lz4", "waves", "blosc", CUBE, SHARD, compressor=BLOSC),
    Dataset("shzstd", "v3 shards, zstd 3", "waves", "zstd", CUBE, SHARD, compressor=zarr.codecs.ZstdCodec(level=3)),
    Dataset("images", "uint16 stack, v2 blosc-zstd", "images", "blosc", (1, 512, 512), zarr_format=2,
            compressor=Blosc("zstd", 5, Blosc.SHUFFLE)),
    Dataset("climate", "climate grid, v2 blosc-lz4", "climate", "blosc", (24, 181, 360), zarr_format=2, separator=".",
            compressor=Blosc("lz4", 5, Blosc.SHUFFLE)),
    Dataset("tiny", "chunks of 16 KiB, v3 blosc-lz4", "corner", "blosc", (16,) * 3, compressor=BLOSC),
]
NAMED = {d.name: d for d in ALL}


class Data:
    """The data sets of one size in one folder, made when they are first asked for."""

    def __init__(self, folder, mebibytes, say):
        self.folder, self.mebibytes, self.say = Path(folder) / f"{mebibytes}MiB", mebibytes, say
        self.folder.mkdir(parents=True, exist_ok=True)

    def values(self, source):
        """The values of a source, mapped from a file."""
        path = self.folder / f"{source}.npy"
        if not path.exists():
            self.say(f"making {source}")
            np.save(path.with_suffix(".part.npy"), SOURCES[source](self.mebibytes))
            os.rename(path.with_suffix(".part.npy"), path)
        return np.load(path, mmap_mode="r")

    def crc(self, source):
        """CRC-32 of all bytes of a source."""
        path = self.folder / f"{source}.crc"
        if not path.exists():
            path.write_text(str(zlib.crc32(np.ascontiguousarray(self.values(source)).view("u1"))))
        return int(path.read_text())

    def store(self, dataset):
        """The path of a data set's store."""
        path = self.folder / f"{dataset.name}.zarr"
        if not path.exists():
            self.say(f"writing {dataset.label}")
            part, values = path.with_suffix(".part"), self.values(dataset.source)
            shutil.rmtree(part, ignore_errors=True)
            create(part, dataset, values.shape, values.dtype)[...] = values[...]
            os.rename(part, path)
        return path

    def spec(self, dataset):
        """The description of a store for the programs that measure the floor."""
        values = self.values(dataset.source)
        return json.dumps({
            "store": str(self.store(dataset)), "shape": values.shape, "chunks": dataset.chunks, "shards": dataset.shards,
            "item": values.dtype.itemsize, "codec": dataset.codec, "separator": dataset.separator,
            "prefix": "c/" if dataset.zarr_format == 3 else ""})

    def chunk_bytes(self, dataset):
        return int(np.prod(dataset.chunks)) * self.values(dataset.source).dtype.itemsize

    def chunk_indices(self, dataset):
        """Indices of every chunk, in C order."""
        counts = [-(-n // c) for n, c in zip(self.values(dataset.source).shape, dataset.chunks)]
        return [tuple(int(i) for i in at) for at in np.ndindex(*counts)]

    def chunk_name(self, dataset, indices):
        """The path of a chunk below the root of a mount."""
        key = dataset.separator.join(map(str, indices))
        return f"c/{key}" if dataset.zarr_format == 3 else key


def create(path, dataset, shape, dtype):
    """A new array without chunks, stored as the data set is, perhaps with another shape."""
    keys = {"name": "default" if dataset.zarr_format == 3 else "v2", "separator": dataset.separator}
    return zarr.create_array(
        str(path), shape=shape, dtype=dtype, fill_value=0, zarr_format=dataset.zarr_format, chunks=dataset.chunks,
        shards=dataset.shards, compressors=dataset.compressor and [dataset.compressor], chunk_key_encoding=keys)


def waves(mebibytes):
    """float32, a MiB each plane: waves and a little noise, rounded as instruments do."""
    depth = max(64, mebibytes)
    z, y, x = np.ogrid[:depth, :512, :512]
    out = (280 + 10 * np.sin(z / 17) * np.cos(y / 23) + 5 * np.sin(x / 31)).astype("<f4")
    rng = np.random.default_rng(1)
    for plane in out:
        plane += rng.normal(0, 0.1, plane.shape).astype("<f4")
    return np.round(out, 2, out=out)


def images(mebibytes):
    """uint16, planes of 2048 x 2048: cells on a dark ground, with the noise of a camera."""
    planes = max(2, mebibytes // 8)
    y, x = np.ogrid[:2048, :2048]
    rng = np.random.default_rng(2)
    out = np.empty((planes, 2048, 2048), "<u2")
    for z in range(planes):
        cells = np.clip(np.sin((y + 5 * z) / 40) * np.sin((x - 3 * z) / 50), 0, None)
        out[z] = 100 + 3000 * cells + rng.integers(0, 16, (2048, 2048))
    return out


def climate(mebibytes):
    """float32, a quarter of a degree: smooth fields whose last digits were rounded away."""
    steps = max(24, mebibytes * MIB // (721 * 1440 * 4))
    lat, lon = np.linspace(-np.pi / 2, np.pi / 2, 721)[:, None], np.linspace(0, 2 * np.pi, 1440, endpoint=False)[None]
    rng = np.random.default_rng(3)
    out = np.empty((steps, 721, 1440), "<f4")
    for t in range(steps):
        out[t] = 288 - 40 * np.sin(lat) ** 2 + 5 * np.cos(3 * lon + t / 8) * np.cos(lat)
        out[t] += rng.normal(0, 0.2, (721, 1440))
    return np.round(out, 1, out=out)


# Chunks of 16 KiB are many: if the size is 512 MiB, `corner` has a quarter of it, which is 8192 chunks.
SOURCES = {"waves": waves, "corner": lambda mebibytes: waves(mebibytes // 4), "images": images, "climate": climate}
