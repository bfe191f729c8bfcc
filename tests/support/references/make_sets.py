#!/usr/bin/env python3
"""Writes the set of references in `lazy` with fsspec 2026 and fastparquet: make_lazy.py FOLDER"""
import json
import sys

import fsspec
from fsspec.implementations.reference import LazyReferenceMapper

mapper = LazyReferenceMapper.create(root=sys.argv[1], fs=fsspec.filesystem("file"), record_size=4)
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
