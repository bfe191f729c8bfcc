"""The notes of the manifest on the corrupt stores, as code."""
import json

import numpy as np

from support import corpus

# Each sound chunk of a corrupt store is a cut of this array.
SOUND = np.arange(32, dtype="<i4").reshape(8, 4)
TOP = SOUND[:4].tobytes()
BOTTOM = SOUND[4:].tobytes()
EMPTY = bytes(64)

# Other values of the upper chunk that a reader may return. The manifest calls such readers `lenient`.
ALSO_FINE = {
    "chunk_too_long": {TOP},
    "shard_overlap": {TOP[:32] + TOP[16:48]},
    "shard_half_empty_entry": {TOP[:32] + EMPTY[:32]},
    "tree_dir_as_chunk": {EMPTY},
    "v2_shuffle_zero": {TOP},
}
# The daemon may show these arrays or refuse them. If it shows one, no number may have overflowed.
MAY_BE_SHOWN = {"meta_chunk_1e12", "meta_shape_2_63", "meta_shape_overflow"}
# Documents that nest deeper than Python's own parser goes. The daemon may show them or refuse them.
TOO_DEEP_TO_PARSE = {"meta_deep_attributes"}
# Arrays of strings in which only some chunks are wrong. The manifest has no hashes of the other chunks.
BAD_STRINGS = {"v2_vlen_count", "v2_vlen_item_past_end"}
# No document of `a` in this store is a file, so no file can be renamed to `….unsupported`.
NO_DOCUMENT = {"tree_dir_as_metadata"}


def stem(store):
    return store.name.removeprefix("corrupt/").removesuffix(".zarr")


def array_entry(store):
    """The manifest entry of the damaged array `a`, or None if another part of the store is damaged."""
    return next((a for a in store.arrays if a["path"] == "a"), None)


def sibling(store):
    """The manifest entry of the sound array `b` beside the damaged one, if there is one."""
    return next((a for a in store.arrays if a["path"] == "b" and a["expect"] == "ok"), None)


def damaged_chunk(store):
    """Whether only the upper chunk of `a` is damaged: its document is sound, and its codecs must decode."""
    entry = array_entry(store)
    return entry is not None and "chunk_sha256" in entry and listed(store)


def damaged_array(store):
    """Whether `a` as a whole must be refused in the chunks view."""
    entry = array_entry(store)
    if entry is None or stem(store) in MAY_BE_SHOWN | NO_DOCUMENT | TOO_DEEP_TO_PARSE | BAD_STRINGS:
        return False
    return "chunk_sha256" not in entry or not listed(store)


def listed(store):
    """Whether all codecs of `a` in its stored document must decode (the lists `NUMCODECS` and `V3_CODECS` of `corpus`)."""
    for name in ("zarr.json", ".zarray"):
        path = store.path / "a" / name
        if path.is_file():
            doc = json.loads(path.read_bytes())
            return corpus.codecs_listed(doc)
    return False
