#!/usr/bin/env python3
"""Pack the generated stores into corpus.tar.gz. usage: pack.py CORPUS_DIR

Everything but the `fx_*` fixtures, which were copied from public repositories and keep to their own
licences. The archive depends on the content alone: sorted names, fixed times, owners and modes.
"""
import gzip
import io
import json
import os
import sys
import tarfile

HERE = os.path.dirname(os.path.abspath(__file__))
# Checkouts without symbolic links hold each as a small file with the target as text, and drop
# empty directories. The links are what the two stores are about, so they are put back by name.
LINKS = {
    "corrupt/tree_symlink_cycle.zarr/b/up": "..",
    "corrupt/tree_symlink_cycle.zarr/dangling": "dangling-target",
    "corrupt/tree_symlink_cycle.zarr/self": ".",
    "corrupt/tree_symlink_escape.zarr/a/c/0/0": "../../../../_outside/secret.bin",
    "corrupt/tree_symlink_escape.zarr/linked_dir": "../_outside",
}
LEFT_OUT = ("fx_", "_", "licences", "generate", "README.md", "manifest.json")


def keys(root):
    """Every key below `root`, directories included, sorted. A link is not followed."""
    found = []
    for base, dirs, files in os.walk(root):
        rel = os.path.relpath(base, root)
        if rel == ".":
            dirs[:] = [d for d in dirs if not d.startswith(LEFT_OUT)]
            files = [f for f in files if not f.startswith(LEFT_OUT)]
        found += [os.path.normpath(os.path.join(rel, name)) for name in dirs + files]
    return sorted(found, key=os.fsencode)


def manifest(root):
    with open(os.path.join(root, "manifest.json"), encoding="utf-8") as f:
        doc = json.load(f)
    doc["stores"] = [s for s in doc["stores"] if not s["path"].startswith("fx_")]
    return (json.dumps(doc, indent=1, sort_keys=True, allow_nan=False) + "\n").encode()


def add(tar, key, root):
    info = tarfile.TarInfo(key)
    path = os.path.join(root, key)
    data = b""
    if key in LINKS:
        info.type, info.linkname = tarfile.SYMTYPE, LINKS[key]
    elif os.path.isdir(path):
        info.type, info.mode = tarfile.DIRTYPE, 0o755
    else:
        with open(path, "rb") as f:
            data = f.read()
    add_bytes(tar, info, data)


def add_bytes(tar, info, data):
    info.size, info.mtime = len(data), 1577836800  # 2020-01-01
    tar.addfile(info, io.BytesIO(data))


def main():
    root = sys.argv[1]
    missing = [key for key in LINKS if not os.path.lexists(os.path.join(root, key))]
    assert not missing, missing
    out = os.path.join(HERE, "corpus.tar.gz")
    with open(out, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, 0) as packed:
        # GNU format: names are plain bytes, and some of these are no UTF-8.
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT, errors="surrogateescape") as tar:
            add_bytes(tar, tarfile.TarInfo("manifest.json"), manifest(root))
            for key in keys(root):
                add(tar, key, root)
    print(out, os.path.getsize(out), "bytes")


if __name__ == "__main__":
    main()
