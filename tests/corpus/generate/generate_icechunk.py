#!/usr/bin/env python3
"""Icechunk repositories of both specifications, and the arrays that each branch and tag has.

icechunk 2.3.0, zarr 3.4.2, numpy 2.4 on Python 3.13. usage: generate_icechunk.py FILE.tar.gz

The archive has `ice1` and `ice2`, which have the same content, and `expect.npz`: each array under the key
`ice1@branch.main|group\\array`. Two runs give the same arrays, and other identities.
"""
import os
import sys
import tarfile
import tempfile

import icechunk
import numpy as np
import zarr

r = np.random.default_rng(20261129)
expect = {}


def fields():
    """The arrays of the first commit: their values, and how they are stored."""
    yield "t/a", r.normal(size=(40, 50)).astype("f4"), {"chunks": (10, 20)}
    yield "sharded", r.integers(0, 9999, (64, 64)).astype("u2"), {"chunks": (8, 8), "shards": (32, 32)}
    yield "small", np.arange(5, dtype="i4"), {"chunks": (2,)}
    yield "scalar", np.array(3.5), {}
    yield "a-b", np.arange(7, dtype="i2"), {"chunks": (3,)}
    yield "a/b", np.arange(9, dtype="u1"), {"chunks": (4,)}
    yield "\u00e9t\u00e9/x", np.arange(3, dtype="f8"), {"chunks": (3,)}
    yield "split", r.integers(0, 255, (12, 10)).astype("u1"), {"chunks": (1, 2)}


def configuration():
    """Manifests of at most three rows of chunks, so that `split` has several. Chunks of up to 64 bytes are inline."""
    rows = {icechunk.ManifestSplitDimCondition.Axis(0): 3}
    split = icechunk.ManifestSplittingConfig.from_dict({icechunk.ManifestSplitCondition.name_matches("split"): rows})
    config = icechunk.RepositoryConfig.default()
    config.manifest = icechunk.ManifestConfig(splitting=split)
    config.inline_chunk_threshold_bytes = 64
    return config


def write(root, spec, arrays):
    storage = icechunk.local_filesystem_storage(root)
    repo = icechunk.Repository.create(storage, config=configuration(), spec_version=spec)
    name = os.path.basename(root)

    def keep(reference, values):
        for path, value in values.items():
            expect[f"{name}@{reference}|{path}".replace("/", "\\")] = value

    session = repo.writable_session("main")
    group = zarr.create_group(session.store, attributes={"title": "one"})
    values = {}
    for path, value, how in arrays:
        array = group.create_array(path, shape=value.shape, dtype=value.dtype, **how)
        array[...] = value
        values[path] = value
    empty = group.create_array("sparse", shape=(30,), chunks=(10,), dtype="i4", fill_value=-1)
    empty[10:20] = 5
    values["sparse"] = np.array([-1] * 10 + [5] * 10 + [-1] * 10, "i4")
    first = session.commit("one")
    repo.create_tag("T1", snapshot_id=first)
    repo.create_tag("gone", snapshot_id=first)
    repo.delete_tag("gone")
    repo.create_branch("dev", snapshot_id=first)
    keep("tag.T1", values)
    keep(first, {"small": values["small"]})

    session = repo.writable_session("main")
    group = zarr.open_group(session.store)
    group["t/a"][0:10] = 9
    del group["small"]
    group["split"][0] = 1
    session.commit("two")
    changed = {path: value.copy() for path, value in values.items() if path != "small"}
    changed["t/a"][0:10] = 9
    changed["split"][0] = 1
    keep("branch.main", changed)

    session = repo.writable_session("dev")
    group = zarr.open_group(session.store)
    group["small"][...] = np.arange(5) * 3
    session.commit("dev one")
    keep("branch.dev", values | {"small": np.arange(5, dtype="i4") * 3})


def main():
    arrays = list(fields())
    with tempfile.TemporaryDirectory() as folder:
        for spec in (1, 2):
            write(f"{folder}/ice{spec}", spec, arrays)
        np.savez_compressed(f"{folder}/expect.npz", **expect)

        def fixed(member):
            member.uid = member.gid = member.mtime = 0
            member.uname = member.gname = ""
            member.mode = 0o755 if member.isdir() else 0o644
            return member

        with tarfile.open(sys.argv[1], "w:gz") as tar:
            for name in sorted(os.listdir(folder)):
                tar.add(f"{folder}/{name}", name, filter=fixed)
    print(sys.argv[1], os.path.getsize(sys.argv[1]), "bytes")


main()
