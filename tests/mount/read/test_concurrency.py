"""Many readers, a store that changes under them, and each absent chunk decoded once."""
import json
import os

import numpy as np
import pytest
import zarr

from support import rewriting
from support.mounting import BINARY, run


def contents(root):
    """Every chunk file of a mount, by key."""
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file() and "/c/" in str(p)}


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("view", ["keys", "chunks"])
@pytest.mark.parametrize("passthrough, replace", [
    ("never", rewriting.replace_by_rename),
    ("never", rewriting.replace_in_place),
    pytest.param("auto", rewriting.replace_by_rename, marks=pytest.mark.long),
    pytest.param("auto", rewriting.replace_in_place, marks=pytest.mark.long),
    ("always", rewriting.replace_by_rename),
], ids=lambda p: p if isinstance(p, str) else p.__name__)
def test_every_handle_reads_one_version(mount, tmp_path, figure, view, passthrough, replace):
    def read_quietly(root):
        quiet = mount(root, "--view", view)
        found = contents(quiet.path)
        quiet.unmount()
        return found

    rewritten = rewriting.prepare(tmp_path, view, read_quietly)
    if passthrough == "always":
        skip_without_passthrough(rewritten.root, tmp_path)
    made = mount(rewritten.root, "--view", view, "--passthrough", passthrough)
    wrong, seen = rewriting.run(made, rewritten, replace)
    assert made.alive()
    assert not wrong, wrong[:10]
    assert seen > 1, "no reader saw a second version: nothing was tested"
    opens = made.stats()["opens"]
    figure(f"rewriting {replace.__name__}, passthrough {passthrough}, {view}: opens {opens}")
    made.unmount()


def skip_without_passthrough(store, folder):
    point = folder / "probe"
    point.mkdir()
    done = run(BINARY, store, point, "--passthrough", "always")
    if done.returncode != 0:
        pytest.skip(f"no passthrough here: {done.stderr.strip()}")
    run(BINARY, "--unmount", point)


def read_together(path, keys, barrier, out):
    """Reads each file at the moment when all others do."""
    wrong = 0
    for key, expected in keys:
        barrier.wait(rewriting.PATIENCE)
        wrong += (path / key).read_bytes() != expected
    out.put(wrong)


@pytest.mark.parametrize("layout", [{"chunks": (64, 64)}, {"chunks": (64, 64), "shards": (256, 256)}], ids=["plain", "sharded"])
def test_an_absent_chunk_is_decoded_once(mount, tmp_path, layout):
    data = rewriting.values(5)
    array = zarr.create_array(str(tmp_path / "s.zarr"), shape=data.shape, dtype="uint32", fill_value=9, **layout)
    array[...] = data
    keys = [(f"c/{i}/{j}", np.ascontiguousarray(data[64 * i:64 * i + 64, 64 * j:64 * j + 64]).tobytes())
            for i in range(4) for j in range(4)]
    made = mount(tmp_path / "s.zarr", "--view", "chunks")
    before = made.stats()["chunks"]["decodes"]
    out, barrier = rewriting.processes.SimpleQueue(), rewriting.processes.Barrier(8)
    readers = [rewriting.start(read_together, made.path, keys, barrier, out) for _ in range(8)]
    assert [out.get() for _ in readers] == [0] * 8
    for reader in readers:
        reader.join()
    stats = made.stats()
    assert stats["chunks"]["decodes"] - before == len(keys)
    assert stats["chunks"]["decode_errors"] == 0
    made.unmount()


def test_a_failed_decode_is_not_kept(mount, tmp_path):
    data = rewriting.values(3)
    array = zarr.create_array(str(tmp_path / "s.zarr"), shape=data.shape, chunks=data.shape, dtype="uint32", fill_value=9)
    array[...] = data
    chunk = tmp_path / "s.zarr/c/0/0"
    whole = chunk.read_bytes()
    rewriting.replace_by_rename(chunk, whole[:100])
    made = mount(tmp_path / "s.zarr", "--view", "chunks")
    with pytest.raises(OSError):
        (made.path / "c/0/0").read_bytes()
    rewriting.replace_by_rename(chunk, whole)
    assert (made.path / "c/0/0").read_bytes() == data.tobytes()
    assert made.stats()["chunks"]["decode_errors"] >= 1
    made.unmount()


def sharding(chunk_shape, codecs):
    """A shard that is compressed as a whole: no part of it can be read without all of it."""
    index = [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]
    configuration = {"chunk_shape": chunk_shape, "codecs": codecs, "index_codecs": index}
    return [{"name": "sharding_indexed", "configuration": configuration}, {"name": "gzip", "configuration": {"level": 1}}]


@pytest.mark.parametrize("nested", [False, True], ids=["plain", "nested"])
@pytest.mark.parametrize("view", ["keys", "chunks"])
def test_a_compressed_shard_larger_than_the_budget_reads(mount, tmp_path, view, nested):
    data = np.random.default_rng(0).integers(0, 256, 4 << 20, dtype="u1")
    codecs = sharding([1 << 16], [{"name": "bytes"}])
    codecs = sharding([1 << 21], codecs) if nested else codecs
    store = tmp_path / "s.zarr"
    store.mkdir()
    (store / "zarr.json").write_text(json.dumps({
        "zarr_format": 3, "node_type": "array", "shape": data.shape, "data_type": "uint8", "fill_value": 0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": data.shape}},
        "chunk_key_encoding": {"name": "default"}, "codecs": codecs}))
    zarr.open_array(str(store), mode="r+")[...] = data
    made = mount(store, "--view", view, "--cache-size", "1M")
    # Directories that were read in part hold nothing that others need.
    held = [os.scandir(made.path / "c") for _ in range(4)]
    for listing in held:
        next(listing)
    shown = b"".join((made.path / "c" / str(n)).read_bytes() for n in range(64))
    assert shown == data.tobytes()
    for listing in held:
        listing.close()
    assert "no memory" not in made.log_text()
    made.unmount()


def test_consolidated_metadata_larger_than_the_budget_loses_no_entry(mount, tmp_path):
    group = zarr.open_group(str(tmp_path / "s.zarr"), mode="w")
    for n in range(4):
        group.create_array(f"x{n}", shape=4, chunks=2, dtype="i4", attributes={"padding": "p" * 100_000})
    zarr.consolidate_metadata(str(tmp_path / "s.zarr"))
    made = mount(tmp_path / "s.zarr", "--view", "chunks", "--cache-size", "64K")
    shown = json.loads((made.path / "zarr.json").read_bytes())
    assert len(shown["consolidated_metadata"]["metadata"]) == 4
    made.unmount()
