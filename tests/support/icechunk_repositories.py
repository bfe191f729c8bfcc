"""Icechunk repositories of both specifications, and the arrays that their branches and tags have.

They are in `tests/corpus/icechunk.tar.gz`, which `tests/corpus/generate/generate_icechunk.py` has made.
"""
import tarfile

import numpy as np

from support.corpus import CHECKOUT

ARCHIVE = CHECKOUT / "tests" / "corpus" / "icechunk.tar.gz"
VIRTUAL = ARCHIVE.with_name("icechunk_virtual.tar.gz")
NAMES = ("ice1", "ice2")


def unpack(folder, archive=ARCHIVE):
    """Puts the repositories into `folder`, and returns it."""
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    return folder


def expected(folder):
    """`{(repository, reference): {path: values}}`; a reference is `branch.NAME`, `tag.NAME`, or a snapshot."""
    found = {}
    with np.load(folder / "expect.npz") as arrays:
        for key in arrays.files:
            store, path = key.replace("\\", "/").split("|", 1)
            found.setdefault(tuple(store.split("@")), {})[path] = arrays[key]
    return found
