"""A writer of Icechunk repositories, which may refer to anything: for commits at chosen moments, virtual chunks and hostile files.

    repository = Repository(folder)
    commit = repository.prepare({"a": Array((4,), (2,), "int32", {(0,): Native(data), (1,): Virtual("file:///x", 8, 8)})})
    repository.show(commit)

Files are flatbuffers that are not compressed. A table is written before what is in it, so that all offsets lead forward.
"""
import hashlib
import json
import os
import struct
from dataclasses import dataclass, field
from pathlib import Path

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
SNAPSHOT, MANIFEST, REPOSITORY = 1, 2, 6


# Flatbuffers

@dataclass
class Table:
    """Values by slot: bytes and texts, lists of tables, other tables, and the types below."""

    slots: dict


@dataclass
class Number:
    code: str  # of the module struct
    value: int


@dataclass
class Structure:
    """Bytes that are in the table itself."""

    data: bytes


@dataclass
class Numbers:
    """A vector of structures of numbers."""

    code: str
    values: list


@dataclass
class Repeated:
    """A vector whose elements all refer to one table."""

    table: Table
    count: int


def flatbuffer(root):
    out = bytearray(4)
    struct.pack_into("<I", out, 0, _put(out, root))
    return bytes(out)


def _put(out, value):
    """Appends `value`, and returns where it is."""
    match value:
        case Table():
            return _put_table(out, value.slots)
        case str():
            return _put_vector(out, value.encode(), len(value.encode()), 1, end=b"\0")
        case bytes():
            return _put_vector(out, value, len(value), 1)
        case Numbers():
            data = b"".join(struct.pack(f"<{value.code}", *numbers) for numbers in value.values)
            return _put_vector(out, data, len(value.values), 8)
        case Repeated():
            place = _put_vector(out, bytes(4 * value.count), value.count, 4)
            slots = range(place + 4, len(out), 4)
            target = _put(out, value.table)
            for slot in slots:
                struct.pack_into("<I", out, slot, target - slot)
            return place
        case list():
            place = _put_vector(out, bytes(4 * len(value)), len(value), 4)
            for at, element in enumerate(value):
                _point(out, place + 4 + 4 * at, element)
            return place


def _put_vector(out, data, length, alignment, end=b""):
    out += bytes(-(len(out) + 4) % max(alignment, 4))
    place = len(out)
    out += struct.pack("<I", length) + data + end
    return place


def _point(out, slot, value):
    struct.pack_into("<I", out, slot, _put(out, value) - slot)


def _size(value):
    match value:
        case Number():
            return struct.calcsize(value.code)
        case Structure():
            return len(value.data)
    return 4


def _put_table(out, slots):
    # The largest come first, so that all are aligned; bytes need no alignment.
    order = sorted(slots, key=lambda slot: (isinstance(slots[slot], Structure), -_size(slots[slot])))
    offsets, end = {}, 4
    for slot in order:
        offsets[slot], end = end, end + _size(slots[slot])
    count = max(slots, default=-1) + 1
    places = struct.pack(f"<{count + 2}H", 4 + 2 * count, end, *(offsets.get(slot, 0) for slot in range(count)))
    out += bytes(-(len(out) + len(places) + 4) % 8)
    table = len(out) + len(places)
    out += places + struct.pack("<i", len(places)) + bytes(end - 4)
    for slot, value in slots.items():
        at = table + offsets[slot]
        match value:
            case Number():
                struct.pack_into(f"<{value.code}", out, at, value.value)
            case Structure():
                out[at:at + len(value.data)] = value.data
            case _:
                _point(out, at, value)
    return table


# FlexBuffers

def flexbuffer(value):
    """A map of maps, texts and `None`."""
    out = bytearray()
    slot, packed = _put_flex(out, value)
    return bytes(out + _back(out, slot) + bytes([packed, 4]))


def _back(out, place, more=0):
    return struct.pack("<I", 0 if place is None else len(out) + more - place)


def _put_flex(out, value):
    """Appends `value`; returns where it is, and its type."""
    if value is None:
        return None, 2
    if isinstance(value, str):
        out += struct.pack("<I", len(value.encode()))
        place = len(out)
        out += value.encode() + b"\0"
        return place, 5 << 2 | 2
    names, found = [], []
    for name in sorted(value):
        names.append(len(out))
        out += name.encode() + b"\0"
    for name in sorted(value):
        found.append(_put_flex(out, value[name]))
    out += struct.pack("<I", len(names))
    keys = len(out)
    for name in names:
        out += _back(out, name)
    out += _back(out, keys) + struct.pack("<II", 4, len(names))
    place = len(out)
    for target, _ in found:
        out += _back(out, target)
    out += bytes(packed for _, packed in found)
    return place, 9 << 2 | 2


# Repositories

def spelled(identity):
    bits = int.from_bytes(identity, "big") << 4
    return "".join(ALPHABET[bits >> 5 * at & 31] for at in reversed(range(20)))


def bytes_of(text):
    bits = 0
    for character in text:
        bits = bits << 5 | ALPHABET.index(character)
    return (bits >> 4).to_bytes(12, "big")


def identity(*parts, length=12):
    return hashlib.sha256(repr(parts).encode()).digest()[:length]


@dataclass
class Native:
    data: bytes


@dataclass
class Inline:
    data: bytes


@dataclass
class Virtual:
    location: str
    offset: int = 0
    length: int = 0
    etag: str = None
    modified: int = 0
    compressed: bytes = None  # in place of the location


@dataclass
class Array:
    shape: tuple
    chunk_shape: tuple
    dtype: str  # as zarr.json spells it
    chunks: dict
    more: dict = field(default_factory=dict)  # members of zarr.json

    def document(self):
        return {"zarr_format": 3, "node_type": "array", "shape": self.shape, "data_type": self.dtype, "fill_value": 0,
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": self.chunk_shape}},
                "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
                "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}], "attributes": {}, **self.more}


class Repository:
    def __init__(self, folder, spec=2, containers=None):
        """`containers` are prefixes of URLs by name."""
        self.folder, self.spec, self.containers, self.snapshots = Path(folder), spec, containers or {}, []
        for name in ("snapshots", "manifests", "chunks"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)

    def framed(self, kind, table):
        return b"ICE\xf0\x9f\xa7\x8aCHUNK" + b"a test".ljust(24) + bytes([self.spec, kind, 0]) + flatbuffer(table)

    def replace(self, path, data):
        """Writes a file, at once and whole."""
        path = self.folder / path
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_name(path.name + ".new")
        new.write_bytes(data)
        os.replace(new, path)

    def prepare(self, arrays):
        """Writes the files of a snapshot with these arrays by their paths, and returns its identity. No branch has it yet."""
        number = len(self.snapshots)
        snapshot, manifest = identity(number, "snapshot"), identity(number, "manifest")
        entries = []
        for path, array in arrays.items():
            references = [self.reference(index, chunk) for index, chunk in sorted(array.chunks.items())]
            entries.append((self.node(path), references))
        tables = [Table({0: Structure(node), 1: references}) for node, references in sorted(entries, key=lambda entry: entry[0])]
        self.replace(f"manifests/{spelled(manifest)}", self.framed(MANIFEST, Table({0: Structure(manifest), 1: tables})))
        groups = {""} | {"/".join(path.split("/")[:depth]) for path in arrays for depth in range(path.count("/") + 1)}
        nodes = [self.node_table(path, arrays.get(path), manifest) for path in sorted(groups | set(arrays))]
        table = Table({0: Structure(snapshot), 2: nodes, 3: Number("Q", 1_700_000_000_000_000 + number), 4: f"commit {number}", 5: [],
                       6: Numbers("12sIQI", [])})
        self.replace(f"snapshots/{spelled(snapshot)}", self.framed(SNAPSHOT, table))
        self.snapshots.append(snapshot)
        return snapshot

    @staticmethod
    def node(path):
        return identity(path, length=8)

    def node_table(self, path, array, manifest):
        group = {"zarr_format": 3, "node_type": "group", "attributes": {}}
        kind, data = 2, Table({})
        if array is not None:
            counts = [-(-length // chunk) for length, chunk in zip(array.shape, array.chunk_shape)]
            part = Table({0: Structure(manifest), 1: Numbers("II", [(0, count) for count in counts])})
            kind, data = 1, Table({0: Numbers("QQ", []), 2: [part] if array.chunks else []})
            if self.spec == 1:
                data.slots[0] = Numbers("QQ", list(zip(array.shape, array.chunk_shape)))
            else:
                data.slots[3] = [Table({0: Number("Q", length), 1: Number("I", count)}) for length, count in zip(array.shape, counts)]
        document = json.dumps(array.document() if array else group).encode()
        return Table({0: Structure(self.node(path)), 1: f"/{path}", 2: document, 3: Number("B", kind), 4: data})

    def reference(self, index, chunk):
        slots = {0: Numbers("I", [(number,) for number in index])}
        match chunk:
            case Inline():
                slots[1] = chunk.data
            case Native():
                file = identity(chunk.data)
                path = self.folder / "chunks" / spelled(file)
                if not path.exists():
                    path.write_bytes(chunk.data)
                slots |= {3: Number("Q", len(chunk.data)), 4: Structure(file)}
            case Virtual():
                slots |= {2: Number("Q", chunk.offset), 3: Number("Q", chunk.length), 7: Number("I", chunk.modified)}
                slots |= {8: chunk.compressed} if chunk.compressed else {5: chunk.location}
                slots |= {6: chunk.etag} if chunk.etag else {}
        return Table(slots)

    def show(self, snapshot):
        """Makes `main` the branch of this snapshot."""
        self.replace(*self.branch(snapshot))

    def branch(self, snapshot):
        """The path of the file that says which snapshot `main` is, and its content."""
        if self.spec == 1:
            return "refs/branch.main/ref.json", json.dumps({"snapshot": spelled(snapshot)}).encode()
        known = sorted(self.snapshots)
        infos = [Table({0: Structure(each), 1: Number("i", -1), 2: Number("Q", 0), 3: ""}) for each in known]
        main = Table({0: "main", 1: Number("I", known.index(snapshot))})
        containers = {prefix: {"name": name, "url_prefix": prefix} for name, prefix in self.containers.items()}
        config = flexbuffer({"caching": None, "virtual_chunk_containers": containers})
        table = Table({0: Number("B", 2), 1: [], 2: [main], 3: [], 4: infos, 5: Table({0: Number("B", 0)}), 7: [], 9: config})
        return "repo", self.framed(REPOSITORY, table)

    def commit(self, arrays):
        snapshot = self.prepare(arrays)
        self.show(snapshot)
        return snapshot
