#!/usr/bin/env python3
"""Makes a seed corpus of the stores in tests/corpus: fuzz/corpus/TARGET/*, one file an input.

metadata_documents: every document, the hostile ones too. stored_chunks: documents of arrays with chunks of theirs.
The other targets choose by bytes, so the same chunks stand behind different choices.
"""
import hashlib
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))
from support import corpus  # noqa: E402

DOCUMENTS = {"zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata", "meta", "attrs", "attributes.json"}
LARGEST = 1 << 14
CHUNKS_PER_ARRAY = 2


def main():
    for store in corpus.stores().values():
        if store.entry["container"] != "dir":
            continue
        for path in sorted(store.path.rglob("*")):
            if not path.is_file() or path.is_symlink() or path.stat().st_size > LARGEST:
                continue
            if path.name in DOCUMENTS or path.name.endswith((".array.json", ".group.json")):
                write("metadata_documents", path.read_bytes())
            if path.name in ("zarr.json", ".zarray", "attributes.json"):
                for chunk in chunks(path.parent):
                    write("stored_chunks", path.read_bytes() + b"\0" + chunk)
                    write("codec_chains", bytes(8) + chunk)
                    write("shard_indices", bytes(8) + chunk)


def chunks(directory):
    """Encoded chunks of the array in `directory`, the first few that are small."""
    if any(any(directory.glob(f"*/{name}")) for name in ("zarr.json", ".zarray", "attributes.json")):
        return  # a group
    found = (p for p in sorted(directory.rglob("*")) if p.is_file() and p.name not in DOCUMENTS)
    small = (p for p in found if p.stat().st_size <= LARGEST)
    for _, path in zip(range(CHUNKS_PER_ARRAY), small):
        yield path.read_bytes()


def write(target, data):
    folder = HERE / "corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)


if __name__ == "__main__":
    main()
