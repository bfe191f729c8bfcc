"""Random rectilinear grids, read and written in all views, beside a model in NumPy that has its own codecs."""

import itertools
import json
import shutil
import struct
import zlib

import numpy as np
import pytest

from support import chunk_grids

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
GZIP = {"name": "gzip", "configuration": {"level": 1}}
ZFP = {"name": "zfp", "configuration": {"mode": "reversible"}}
ABSENT = 2**64 - 1
TYPES = {"u1": "uint8", "i2": "int16", "i4": "int32", "f4": "float32", "f8": "float64"}
KINDS = ["raw", "turned", "gzip", "turned gzip", "sharded", "zfp"]


def gzipped(data):
    packer = zlib.compressobj(1, wbits=31)
    return packer.compress(data) + packer.flush()


class Model:
    """An array with a random grid: its document, its elements up to the end of the grid, and its encoded chunks."""

    def __init__(self, rng, kind):
        self.kind = kind
        rank = int(rng.integers(1, 4))
        self.inner = [int(rng.integers(1, 4)) for _ in range(rank)] if kind == "sharded" else [1] * rank
        self.lengths = [[int(part * n) for n in self.random_lengths(rng)] for part in self.inner]
        # The array ends within the grid, so that chunks may be cut off, or have no element.
        self.shape = [int(rng.integers(1, sum(lengths) + 1)) for lengths in self.lengths]
        types = ["i4", "f4", "f8"] if kind == "zfp" else list(TYPES)
        self.dtype = np.dtype(str(rng.choice(types)))
        self.fill = self.dtype.type(rng.integers(0, 100))
        self.spelling = [self.spelled(rng, lengths) for lengths in self.lengths]
        self.whole = np.full([sum(lengths) for lengths in self.lengths], self.fill)

    @staticmethod
    def random_lengths(rng):
        n = int(rng.integers(1, 6))
        some = rng.integers(1, 8, n)
        return [np.repeat(some, rng.integers(1, 3, n)), some, np.full(n, some[0])][int(rng.integers(3))]

    @staticmethod
    def spelled(rng, lengths):
        """The lengths of an axis as a document may spell them: one by one, in runs, or as one number."""
        if len(set(lengths)) == 1 and rng.random() < 0.5:
            return lengths[0]
        runs = [[length, len(list(same))] for length, same in itertools.groupby(lengths)]
        in_runs = [run for run in runs] if rng.random() < 0.5 else [run[0] if run[1] == 1 else run for run in runs]
        return in_runs if rng.random() < 0.5 else lengths

    def document(self):
        codecs = {"raw": [LITTLE], "gzip": [LITTLE, GZIP], "zfp": [ZFP]}.get(self.kind)
        if "turned" in self.kind:
            turn = {"name": "transpose", "configuration": {"order": list(reversed(range(len(self.shape))))}}
            codecs = [turn, LITTLE] + [GZIP] * ("gzip" in self.kind)
        if self.kind == "sharded":
            inside = {"chunk_shape": self.inner, "codecs": [LITTLE, GZIP], "index_codecs": [LITTLE]}
            codecs = [{"name": "sharding_indexed", "configuration": inside}]
        grid = {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": self.spelling}}
        return {"zarr_format": 3, "node_type": "array", "shape": self.shape, "data_type": TYPES[self.dtype.str[1:]],
                "chunk_grid": grid, "chunk_key_encoding": {"name": "default"}, "fill_value": self.fill.item(), "codecs": codecs}

    def boxes(self, grid):
        """Keys and slices of the chunks of a grid that have elements of the array."""
        counts = [chunk_grids.count(lengths, length) for lengths, length in zip(grid, self.shape)]
        for index in itertools.product(*map(range, counts)):
            yield "/".join(map(str, ("c", *index))), chunk_grids.box(grid, index)

    def shown_grid(self):
        """The grid of the files of the chunks view: inner chunks, where there are shards."""
        return self.inner if self.kind == "sharded" else self.lengths

    def choose(self, rng):
        """Random elements, some chunks of which are absent; of zfp all are, because only the mount encodes them."""
        for _, box in self.boxes(self.lengths):
            absent = self.kind == "zfp" or rng.random() < 0.2
            shape = self.whole[box].shape
            self.whole[box] = self.fill if absent else rng.integers(0, 100, shape).astype(self.dtype)

    def encoded(self, block):
        if self.kind == "sharded":
            return self.shard(block)
        data = block.T.tobytes() if "turned" in self.kind else block.tobytes()
        return gzipped(data) if "gzip" in self.kind else data

    def shard(self, block):
        body, index = b"", b""
        for start in itertools.product(*(range(0, n, part) for n, part in zip(block.shape, self.inner))):
            part = block[tuple(slice(at, at + n) for at, n in zip(start, self.inner))]
            if (part == self.fill).all():
                index += struct.pack("<QQ", ABSENT, ABSENT)
                continue
            encoded = gzipped(part.tobytes())
            index += struct.pack("<QQ", len(body), len(encoded))
            body += encoded
        return body + index

    def decoded(self, data, shape):
        if self.kind != "sharded":
            data = zlib.decompress(data, wbits=31) if "gzip" in self.kind else data
            block = np.frombuffer(data, self.dtype)
            return block.reshape(shape[::-1]).T if "turned" in self.kind else block.reshape(shape)
        block = np.full(shape, self.fill)
        starts = list(itertools.product(*(range(0, n, part) for n, part in zip(shape, self.inner))))
        index = struct.unpack(f"<{2 * len(starts)}Q", data[-16 * len(starts) :])
        for start, offset, length in zip(starts, index[::2], index[1::2]):
            if length != ABSENT:
                part = zlib.decompress(data[offset : offset + length], wbits=31)
                inside = tuple(slice(at, at + n) for at, n in zip(start, self.inner))
                block[inside] = np.frombuffer(part, self.dtype).reshape(self.inner)
        return block

    def write(self, path):
        path.mkdir()
        (path / "zarr.json").write_text(json.dumps(self.document()))
        for key, box in self.boxes(self.lengths):
            if not (self.whole[box] == self.fill).all():
                (path / key).parent.mkdir(parents=True, exist_ok=True)
                (path / key).write_bytes(self.encoded(self.whole[box]))

    def values(self):
        return self.whole[tuple(slice(0, n) for n in self.shape)]

    def box_of_file(self, box):
        """The elements of a chunk file, which are fill values outside of the grid."""
        block = np.full([side.stop - side.start for side in box], self.fill)
        inside = self.whole[box]
        block[tuple(slice(0, n) for n in inside.shape)] = inside
        return block


def make(folder, seed, count):
    rng = np.random.default_rng(seed)
    store = folder / "s.zarr"
    store.mkdir()
    (store / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
    models = {}
    for number in range(count):
        model = Model(rng, KINDS[number % len(KINDS)])
        model.choose(rng)
        models[f"a{number}"] = model
        model.write(store / f"a{number}")
    return rng, store, models


def random_part(rng, shape):
    starts = [int(rng.integers(0, n)) for n in shape]
    return tuple(slice(start, int(rng.integers(start + 1, n + 1))) for start, n in zip(starts, shape))


def check_whole(arrays, name, model, rng):
    shown = np.load(arrays / f"{name}.npy", mmap_mode="r")
    part = random_part(rng, model.shape)
    assert (shown[part] == model.values()[part]).all(), (name, part, model.document())
    assert (np.array(shown) == model.values()).all(), (name, model.document())
    spelled = ",".join(f"{side.start}:{side.stop}" for side in part)
    assert (np.load(arrays / f"{name}@{spelled}.npy") == model.values()[part]).all(), (name, spelled, model.document())


def check_chunks(chunks, name, model):
    keys = set()
    for key, box in model.boxes(model.shown_grid()):
        expected = model.box_of_file(box)
        assert (chunks / name / key).stat().st_size == expected.nbytes, (name, key, model.document())
        assert (chunks / name / key).read_bytes() == expected.tobytes(), (name, key, model.document())
        keys.add(key)
    below = {str(path.relative_to(chunks / name)) for path in (chunks / name).rglob("*") if path.is_file()}
    assert below == keys | {"zarr.json"}, (name, model.document())


SEEDS = [pytest.param(seed, marks=() if seed < 2 else pytest.mark.long) for seed in range(40)]


@pytest.mark.parametrize("seed", SEEDS)
def test_random_grids_are_read(mount, tmp_path, seed):
    rng, store, models = make(tmp_path, seed, 24)
    shown = mount(store, "--view", "keys,chunks,arrays", "--files", "npy").path
    for name, model in models.items():
        check_whole(shown / "arrays", name, model, rng)
        check_chunks(shown / "chunks", name, model)
        if model.kind != "sharded":
            for key, _ in model.boxes(model.lengths):
                stored = store / name / key
                at = shown / "keys" / name / key
                assert at.exists() == stored.exists() and (not at.exists() or at.read_bytes() == stored.read_bytes()), (name, key)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_grids_are_written(mount, tmp_path, seed):
    rng, store, models = make(tmp_path, 1000 + seed, 12)
    mounted = mount(store, "--rw", "--view", "chunks,arrays", "--files", "npy")
    for name, model in models.items():
        shape = model.whole.shape
        # All elements change, those behind the edge too, because chunk files have them.
        model.whole[...] = rng.integers(0, 100, shape).astype(model.dtype)
        for key, box in model.boxes(model.shown_grid()):
            block = model.box_of_file(box)
            (mounted.path / "chunks" / name / key).write_bytes(block.tobytes())
    mounted.sync()
    for name, model in models.items():
        check_whole(mounted.path / "arrays", name, model, rng)
        check_chunks(mounted.path / "chunks", name, model)
        if model.kind == "zfp":
            continue
        for key, box in model.boxes(model.lengths):
            block = model.whole[box]
            data = (store / name / key).read_bytes() if (store / name / key).exists() else model.encoded(np.full_like(block, model.fill))
            inside = tuple(slice(0, min(n, side.stop - side.start)) for n, side in zip([s - b.start for s, b in zip(model.shape, box)], box))
            assert (model.decoded(data, block.shape)[inside] == block[inside]).all(), (name, key, model.document())
    mounted.unmount()
    fresh = mount(shutil.copytree(store, tmp_path / "copy.zarr"), "--view", "arrays", "--files", "npy").path
    for name, model in models.items():
        assert (np.load(fresh / f"{name}.npy") == model.values()).all(), (name, model.document())
