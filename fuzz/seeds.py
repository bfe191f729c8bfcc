#!/usr/bin/env python3
"""Makes a seed corpus of the stores in tests/corpus: fuzz/corpus/TARGET/*, one file an input.

metadata_documents: every document, the hostile ones too. stored_chunks: documents of arrays with chunks of theirs.
n5_blocks: such chunks of N5 behind the choices that make their array. n5_attributes: pairs of documents of N5.
The other targets choose by bytes, so the same chunks stand behind different choices. reference_json, reference_parquet: sets,
and files of sets. icechunk_files: the files of a small repository, which the target itself has, too: src/icechunk_files.
"""
import hashlib
import json
import sys
import tarfile
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))
from support import corpus  # noqa: E402
from support.icechunk_writer import Array, Inline, Native, Repository, Virtual  # noqa: E402

DOCUMENTS = {"zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata", "meta", "attrs", "attributes.json"}
LARGEST = 1 << 14
CHUNKS_PER_ARRAY = 2
# As in src/n5_blocks.rs.
N5_TYPES = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float32", "float64"]
N5_COMPRESSIONS = ["raw", "gzip", "zlib", "bzip2", "xz", "zstd", "blosc", "lz4"]
N5_LONGEST = 9


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
            if path.name == "attributes.json" and store.kind == "n5":
                above = path.parent.parent / path.name
                write("n5_attributes", (above.read_bytes() if above.is_file() else b"{}") + b"\0" + path.read_bytes())
                dataset = json.loads(path.read_bytes())
                for chunk in chunks(path.parent) if "blockSize" in dataset else ():
                    write_block(dataset, chunk)


def write_block(dataset, chunk):
    """The choices that make such a dataset, and its block."""
    compression, lengths = dataset["compression"], dataset["blockSize"]
    name = "zlib" if compression.get("useZlib") else compression["type"]
    if max(lengths) > N5_LONGEST:
        return
    choices = [N5_TYPES.index(dataset["dataType"]), N5_COMPRESSIONS.index(name), len(lengths) - 1, *(n - 1 for n in lengths), 0]
    write("n5_blocks", bytes(choices) + chunk)


def icechunk():
    """The files of a repository whose virtual chunks are in its file `target`, as the target of the fuzzer names it."""
    target = "file:///proc/self/fd/-1/target"
    chunks = [Native(bytes(8)), Inline(bytes(range(8))), Virtual(target, 8, 8), Virtual(target, 0, 8, etag='"a"'), Virtual("vcc://x/target", 0, 8),
              Virtual("s3://b/a%20b", 0, 8, modified=9)]
    arrays = {"x": Array((6, 2), (1, 2), "int32", {(at, 0): chunk for at, chunk in enumerate(chunks)}), "g/s": Array((), (), "uint8", {(): Inline(b"s")}),
              "g/sparse": Array((9,), (2,), "uint8", {(1,): Inline(b"ab"), (4,): Inline(b"cd")})}
    with tempfile.TemporaryDirectory() as folder:
        repository = Repository(folder, containers={"x": "file:///proc/self/fd/-1"})
        repository.commit(arrays)
        found = {"repo": "repo"} | {path.parent.name[:-1]: path for name in ("snapshots", "manifests") for path in (repository.folder / name).iterdir()}
        for number, (name, path) in enumerate(found.items()):
            data = (repository.folder / path).read_bytes()
            file = HERE / "src" / "icechunk_files" / name
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(data)
            write("icechunk_files", bytes([number]) + data[39:])
            write("icechunk_files", bytes([3 + number]) + data)
    with tarfile.open(HERE.parent / "tests/corpus/icechunk.tar.gz") as tar:
        write("icechunk_files", b"\3" + tar.extractfile("ice2/repo").read())


def references():
    """Sets of kerchunk and VirtualiZarr, and sets whose references are in the file `target`, as the targets of the fuzzer name it."""
    sets = [store.path for store in corpus.stores().values() if store.kind == "references"] + [HERE.parent / "tests/support/references"]
    for path in sets:
        for file in [path, *sorted(path.rglob("*.parq"))]:
            if file.is_file() and file.stat().st_size <= LARGEST:
                write("reference_parquet" if file.suffix == ".parq" else "reference_json", file.read_bytes())
    array = json.dumps({"zarr_format": 2, "shape": [40, 50], "chunks": [1, 10], "dtype": "<u2", "fill_value": 0, "compressor": None, "filters": None,
                        "order": "C"})
    refs = {".zgroup": {"zarr_format": 2}, "x/.zarray": array, "x/.zattrs": "{}"} | {f"x/{i}.{i % 5}": ["target", 20 * i, 20] for i in range(40)}
    write("reference_json", json.dumps(refs).encode())
    for key, offset, dimensions in [("x/{{i}}.{{j}}", "{{(i * 5 + j) * 2}}", {"i": {"stop": 40}, "j": {"start": 0, "stop": 10, "step": 2}}),
                                    ("x/{{i // 5}}.{{i % 5}}", "{{i * 4}}", {"i": list(range(0, 200, 3))}), ("{{n}}/c/{{i}}", "{{-i + 9}}", {"n": [1, 2], "i": {"stop": 3}})]:
        generator = {"key": key, "url": "{{u}}{{f(c='get')}}", "offset": offset, "length": "{{10 + 2}}", "dimensions": dimensions}
        write("reference_json", json.dumps({"version": 1, "templates": {"u": "", "f": "tar{{c}}"}, "gen": [generator], "refs": refs}).encode())


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
    references()
    icechunk()
