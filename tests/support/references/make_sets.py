#!/usr/bin/env python3
"""Writes sets of references below FOLDER with fsspec 2026 and fastparquet: make_sets.py FOLDER

`lazy` is as fsspec writes it. `snappy` has the same references, with the compression that pandas uses by default. The files of `bomb`
decompress to a gigabyte.
"""
import json
import shutil
import sys
from pathlib import Path

import fsspec
import pandas
from fsspec.implementations.reference import LazyReferenceMapper

folder = Path(sys.argv[1])
mapper = LazyReferenceMapper.create(root=str(folder / "lazy"), fs=fsspec.filesystem("file"), record_size=4)
document = {"zarr_format": 2, "dtype": "|u1", "compressor": None, "order": "C", "filters": None}
mapper[".zgroup"] = json.dumps({"zarr_format": 2}).encode()
mapper["x/.zarray"] = json.dumps(document | {"shape": [4, 5], "chunks": [2, 2], "fill_value": 7}).encode()
mapper["x/0.0"] = ["data/a", 10, 4]
mapper["x/0.1"] = b"abcd"
mapper["x/1.0"] = ["data/b"]
mapper["x/1.2"] = ["data/a", 0, 4]
mapper["s/.zarray"] = json.dumps(document | {"shape": [], "chunks": [], "fill_value": 0}).encode()
mapper["s/0"] = ["data/c", 3, 1]
mapper.flush()

shutil.copytree(folder / "lazy", folder / "snappy")
for file in (folder / "snappy").glob("*/*.parq"):
    pandas.read_parquet(file).to_parquet(file, compression="snappy", index=False, object_encoding={"raw": "bytes", "path": "utf8"}, has_nulls=["path", "raw"])
shutil.copytree(folder / "lazy", folder / "bomb")
for file, compression, length in [("refs.0.parq", "zstd", 1 << 28), ("refs.1.parq", "gzip", 1 << 22)]:
    frame = pandas.DataFrame({"raw": [bytes(length)] * 4})
    frame.to_parquet(folder / "bomb" / "x" / file, compression=compression, index=False, object_encoding={"raw": "bytes"}, has_nulls=["raw"], stats=False)
