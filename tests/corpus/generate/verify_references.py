"""Re-read the arrays of the sets of references with zarr-python 3.4.2 and fsspec 2026.9.0's ReferenceFileSystem, and compare with the manifest's sha256.

Writes _verify_fsspec.json: for each "store::path" one of ok, MISMATCH, or the error.
"""
import glob
import json
import os

import fsspec
import zarr

from corpuslib import OUT, sha

os.chdir(os.path.join(OUT, "references"))  # where the paths of targets begin
seen = {}
for entry in sorted(glob.glob(os.path.join(OUT, "_entries", "references_*.json"))):
    entry = json.load(open(entry))
    file = os.path.join(OUT, entry["path"])
    files = fsspec.filesystem("reference", fo=file, remote_protocol="file", asynchronous=True)
    for array in entry["arrays"]:
        try:
            store = zarr.storage.FsspecStore(files, read_only=True, path="")
            values = zarr.open_array(store, path=array["path"], mode="r", zarr_format=array["zarr_format"])[...]
            said = "ok" if sha(values) == array["sha256"] else "MISMATCH"
        except Exception as error:
            said = "%s: %s" % (type(error).__name__, error)
        seen["%s::%s" % (entry["name"], array["path"])] = said
        print(entry["name"], array["path"], said)
with open(os.path.join(OUT, "_verify_fsspec.json"), "w") as f:
    json.dump(seen, f, indent=1)
