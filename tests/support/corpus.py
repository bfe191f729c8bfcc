"""The stores that the tests mount, and the contents that each must give.

`tests/corpus/corpus.tar.gz` always exists and is unpacked once, below `target/`. A folder `../shared/corpus` beside the checkout, or
the one that ZARR_MOUNT_CORPUS names, adds its stores.
"""
import hashlib
import json
import os
import tarfile
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from support import chunk_grids

CHECKOUT = Path(__file__).resolve().parents[2]
ARCHIVE = CHECKOUT / "tests" / "corpus" / "corpus.tar.gz"
SECRET = b"SECRET-OUTSIDE-THE-STORE"

# Codecs that must decode. Other codecs may be refused by name.
NUMCODECS = {
    "blosc", "zlib", "gzip", "zstd", "lz4", "bz2", "lzma", "delta", "fixedscaleoffset", "quantize", "bitround",
    "astype", "packbits", "shuffle", "crc32", "crc32c", "adler32", "fletcher32", "jenkins_lookup3", "base64",
    "vlen-utf8", "vlen-bytes",
}
V3_CODECS = {
    "bytes", "transpose", "gzip", "zstd", "blosc", "crc32c", "sharding_indexed", "vlen-utf8", "vlen-bytes",
    "packbits", "bitround", "reshape",
} | {f"numcodecs.{id}" for id in NUMCODECS - {"base64", "vlen-utf8", "vlen-bytes"}}


@dataclass(frozen=True)
class Store:
    """One store of the manifest, and its path."""

    path: Path
    entry: dict

    @property
    def name(self):
        return self.entry["name"]

    @property
    def kind(self):
        return self.entry["kind"]

    @property
    def arrays(self):
        return self.entry["arrays"]

    def decodable(self):
        """The arrays that must decode: `ok`, with listed codecs."""
        return [a for a in self.arrays if a["expect"] == "ok" and codecs_listed(a)]

    def most_chunks(self):
        """The largest chunk grid of the store: walks of every virtual chunk have a limit."""
        return max((grid_size(a) for a in self.arrays), default=0)


def grid_size(array):
    chunks = array.get("inner_chunks") or array.get("chunks") or []
    shape = array.get("shape") or []
    total = 1
    for n, c in zip(shape, chunks):
        total *= chunk_grids.count(c, n) if isinstance(n, int) and (isinstance(c, list) or isinstance(c, int) and c > 0) else 1
    return total


def codecs_listed(array):
    if array["zarr_format"] == 3:
        return set(codec_names(array.get("codecs"))) <= V3_CODECS
    used = [*(array.get("filters") or []), array.get("compressor")]
    return {codec["id"] for codec in used if codec} <= NUMCODECS


def codec_names(codecs):
    """Names of all codecs, those within shards included. A codec may be a bare string."""
    for codec in codecs or []:
        yield codec if isinstance(codec, str) else codec["name"]
        if not isinstance(codec, str):
            inner = codec.get("configuration") or {}
            yield from codec_names(inner.get("codecs"))
            yield from codec_names(inner.get("index_codecs"))


@cache
def stores():
    """Every store, by name. Stores of the archive take precedence, because a checkout may have lost links that the archive has kept."""
    found = {}
    for root in (beside_checkout(), unpacked()):
        if root is None:
            continue
        for entry in json.loads((root / "manifest.json").read_text())["stores"]:
            found[entry["name"]] = Store(root / entry["path"], entry)
    return found


def of_kind(*kinds):
    return [s for s in stores().values() if s.kind in kinds and s.entry["container"] == "dir"]


def beside_checkout():
    root = Path(os.environ.get("ZARR_MOUNT_CORPUS", CHECKOUT.parent / "shared" / "corpus"))
    return root if (root / "manifest.json").is_file() else None


@cache
def unpacked():
    digest = hashlib.sha256(ARCHIVE.read_bytes()).hexdigest()[:16]
    root = CHECKOUT / "target" / f"corpus-{digest}"
    if root.is_dir():
        return root
    root.parent.mkdir(exist_ok=True)
    # The archive is unpacked into a fresh folder, which is then renamed, so that no other run sees half of it.
    fresh = tempfile.mkdtemp(dir=root.parent, prefix="corpus-unpacking-")
    with tarfile.open(ARCHIVE, errors="surrogateescape") as tar:
        tar.extractall(fresh, filter="tar")
    os.chmod(fresh, 0o755)
    try:
        os.rename(fresh, root)
    except OSError:
        if not root.is_dir():
            raise
    return root
