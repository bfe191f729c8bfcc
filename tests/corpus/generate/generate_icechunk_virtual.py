#!/usr/bin/env python3
"""An Icechunk repository whose chunks are in files elsewhere, which it names by a virtual chunk container.

icechunk 2.3.0, zarr 3.4.2, numpy 2.4 on Python 3.13. usage: generate_icechunk_virtual.py FILE.tar.gz

The array `x` has 40 rows of 25 chunks of one byte. Row 7 is in the file `row 007.bin` of the container `rows`, after 7 bytes. The
locations are compressed with a dictionary. The files are not needed.
"""
import sys
import tarfile
import tempfile

import icechunk
import zarr

ROWS, COLUMNS, BEFORE = 40, 25, 7
PREFIX = "file:///nowhere/rows/"


def configuration():
    config = icechunk.RepositoryConfig.default()
    store = icechunk.local_filesystem_store(PREFIX.removeprefix("file://"))
    config.set_virtual_chunk_container(icechunk.VirtualChunkContainer(PREFIX, store, name="rows"))
    compression = icechunk.ManifestVirtualChunkLocationCompressionConfig(min_num_chunks=10)
    config.manifest = icechunk.ManifestConfig(virtual_chunk_location_compression=compression)
    return config


def main():
    with tempfile.TemporaryDirectory() as folder:
        repo = icechunk.Repository.create(icechunk.local_filesystem_storage(folder), config=configuration(), spec_version=2)
        repo.save_config()
        session = repo.writable_session("main")
        group = zarr.create_group(session.store)
        group.create_array("x", shape=(ROWS, COLUMNS), chunks=(1, 1), dtype="u1", compressors=None, filters=None)
        chunks = [icechunk.VirtualChunkSpec(index=[row, column], location=f"vcc://rows/row%20{row:03}.bin", offset=BEFORE + column, length=1)
                  for row in range(ROWS) for column in range(COLUMNS)]
        session.store.set_virtual_refs("x", chunks, validate_containers=True)
        session.commit("one")

        def fixed(member):
            member.uid = member.gid = member.mtime = 0
            member.uname = member.gname = ""
            member.mode = 0o755 if member.isdir() else 0o644
            return member

        with tarfile.open(sys.argv[1], "w:gz") as tar:
            for name in ("manifests", "repo", "snapshots"):
                tar.add(f"{folder}/{name}", name, filter=fixed)


main()
