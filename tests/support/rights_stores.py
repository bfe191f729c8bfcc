"""Random stores for tests of rights: every object holds markers that no other object has."""
import itertools
import json
import os
import struct

from support.rights_users import MARKER, NUMBER

URI = "https://purl.org/zarr/spec/protocol/core/3.0"
STRANGER, MEMBER, GROUP = 12345, 12346, 12400
"""A user in no group that the store's files have, a user in GROUP, and the number of that group."""
OWNERS = [(0, 0), (STRANGER, STRANGER), (0, GROUP), (MEMBER, GROUP), (STRANGER, GROUP)]
FILE_MODES = [0o600, 0o640, 0o604, 0o400, 0o000, 0o644, 0o444, 0o044]
DIRECTORY_MODES = [0o700, 0o750, 0o711, 0o705, 0o744, 0o755, 0o710, 0o055]
# Access control lists: (tag, bits, number) each.
ITS_OWNER, A_USER, ITS_GROUP, MASK, OTHERS, NONE = 0x01, 0x02, 0x04, 0x10, 0x20, 0xFFFFFFFF
GRANTS_ONE = [(ITS_OWNER, 6, NONE), (A_USER, 4, STRANGER), (ITS_GROUP, 0, NONE), (MASK, 4, NONE), (OTHERS, 0, NONE)]
DENIES_ONE = [(ITS_OWNER, 6, NONE), (A_USER, 0, STRANGER), (ITS_GROUP, 4, NONE), (MASK, 4, NONE), (OTHERS, 4, NONE)]
SEARCHED_BUT_BY_ONE = [(ITS_OWNER, 7, NONE), (A_USER, 0, STRANGER), (ITS_GROUP, 5, NONE), (MASK, 5, NONE), (OTHERS, 5, NONE)]


class Store:
    """A store that is being written; `holders` has the objects that hold a marker."""

    def __init__(self, root, dice):
        self.root, self.dice, self.holders = root, dice, {}
        self.numbers = itertools.count(1)
        root.mkdir()

    def marker(self):
        return f"Mk{next(self.numbers):06}"

    def number(self):
        return 97000000 + next(self.numbers)

    def write(self, key, content, markers=()):
        path = self.root / key
        path.parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, bytes) else json.dumps(content, indent=1).encode()
        path.write_bytes(text)
        for marker in markers:
            self.holders.setdefault(str(marker), set()).add(key)

    def objects(self):
        return sorted(str(p.relative_to(self.root)) for p in self.root.rglob("*") if p.is_file())

    def allowed(self, readable):
        """The markers of these objects."""
        readable = set(readable)
        return {marker for marker, holders in self.holders.items() if holders & readable}

    def close_some(self, share):
        """Gives some objects and directories other owners and modes."""
        for path in [self.root, *(path for path in sorted(self.root.rglob("*")) if not path.is_symlink())]:
            # STORE itself is closed seldom, because nothing else could be read then.
            if self.dice.random() < share * (0.2 if path == self.root else 1):
                if self.dice.random() < 0.5:
                    os.chown(path, *self.dice.choice(OWNERS))
                if self.dice.random() < 0.3:
                    give_list(path, self.dice.choice([GRANTS_ONE, DENIES_ONE]))
                else:
                    os.chmod(path, self.dice.choice(DIRECTORY_MODES if path.is_dir() else FILE_MODES))

    def link_some(self):
        """Moves some arrays elsewhere, and makes links to them at their old paths."""
        arrays = sorted({path.parent for path in self.root.rglob("*") if path.parent.name in ("x", "s", "t", "words", "shards")
                         and path.name in ("zarr.json", ".zarray")})
        for number, path in enumerate(self.dice.sample(arrays, 2)):
            target = self.root / "elsewhere" / str(number)
            target.mkdir(parents=True)
            moved, new = str(path.relative_to(self.root)) + "/", f"elsewhere/{number}/{path.name}/"
            path.rename(target / path.name)
            path.symlink_to(os.path.relpath(target / path.name, path.parent))
            self.holders = {marker: {new + key.removeprefix(moved) if key.startswith(moved) else key for key in keys}
                            for marker, keys in self.holders.items()}


def give_list(path, entries):
    """Gives a file or a directory an access control list. An entry that grants reading a directory also grants searching it."""
    more = 1 if path.is_dir() else 0
    packed = [struct.pack("<HHI", tag, bits | more if bits else 0, number) for tag, bits, number in entries]
    os.setxattr(path, "system.posix_acl_access", struct.pack("<I", 2) + b"".join(packed))


def write(root, dice):
    store = Store(root, dice)
    version = dice.choice([2, 2, 3])
    members = [group(store, "", version), group(store, "g/", version), group(store, "g/h/", dice.choice([version, None]))]
    if dice.random() < 0.7:
        draft(store, "d/")
    if dice.random() < 0.7:
        consolidate(store, version, {key: document for found in members for key, document in found.items()})
    return store


def group(store, path, version):
    """A group of arrays, without a document if there is no version. Returns its documents by key."""
    documents = {}
    attributes = {"title": store.marker(), "multiscales": [multiscales(store)]}
    if version == 3:
        put(store, documents, path + "zarr.json", {"zarr_format": 3, "node_type": "group", "attributes": attributes})
    elif version == 2:
        put(store, documents, path + ".zgroup", {"zarr_format": 2})
        put(store, documents, path + ".zattrs", attributes)
    make = {2: array_v2, 3: array_v3}
    kind = version or store.dice.choice([2, 3])
    for name in ("y", "x"):
        make[kind](store, documents, path + name, [name])
    for name in ("s", "t"):
        make[kind](store, documents, path + name, ["y", "x"])
    if kind == 2:
        strings(store, documents, path + "words")
    else:
        sharded(store, documents, path + "shards")
    return documents


def multiscales(store):
    axes = [{"name": "y", "type": "space", "unit": store.marker()}, {"name": "x", "type": "space", "unit": "micrometer"}]
    scale = [{"type": "scale", "scale": [store.number(), 2]}]
    return {"version": "0.4", "axes": axes, "datasets": [{"path": "t", "coordinateTransformations": scale}]}


def put(store, documents, key, document):
    documents[key] = document
    store.write(key, document, words_of(json.dumps(document)))


def words_of(text):
    text = text.encode()
    return {found.decode() for found in MARKER.findall(text) + NUMBER.findall(text)}


def chunks(store, path, spell, counts):
    """Chunks of eight bytes, each a marker; some are missing."""
    for indices in itertools.product(*map(range, counts)):
        if store.dice.random() < 0.9:
            marker = store.marker()
            store.write(f"{path}/{spell(indices)}", marker.encode(), [marker])


def about(store, dimensions):
    return {"units": store.dice.choice(["m", "days since 2000-01-01"]), "long_name": store.marker(),
            "_ARRAY_DIMENSIONS": dimensions}


def shape_of(dimensions):
    """The shape and the chunk shape: eight rows of two chunks, or as many coordinates as there are rows or columns."""
    shapes = {"y": ([8], [8]), "x": ([16], [8])}
    return shapes[dimensions[0]] if len(dimensions) == 1 else ([8, 16], [1, 8])


def array_v3(store, documents, path, dimensions):
    shape, chunk_shape = shape_of(dimensions)
    put(store, documents, path + "/zarr.json", {
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "uint8", "fill_value": 0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk_shape}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": store.dice.choice("/.")}},
        "codecs": [{"name": "bytes"}], "attributes": about(store, dimensions), "dimension_names": dimensions})
    separator = documents[path + "/zarr.json"]["chunk_key_encoding"]["configuration"]["separator"]
    chunks(store, path, lambda indices: separator.join(["c", *map(str, indices)]), counts(shape, chunk_shape))


def array_v2(store, documents, path, dimensions):
    shape, chunk_shape = shape_of(dimensions)
    separator = store.dice.choice("/.")
    put(store, documents, path + "/.zarray", {
        "zarr_format": 2, "shape": shape, "chunks": chunk_shape, "dtype": "|u1", "compressor": None, "filters": None,
        "order": "C", "fill_value": 0, "dimension_separator": separator})
    put(store, documents, path + "/.zattrs", about(store, dimensions))
    chunks(store, path, lambda indices: separator.join(map(str, indices)), counts(shape, chunk_shape))


def strings(store, documents, path):
    put(store, documents, path + "/.zarray", {
        "zarr_format": 2, "shape": [6], "chunks": [1], "dtype": "|O", "compressor": None,
        "filters": [{"id": "vlen-utf8"}], "order": "C", "fill_value": "", "dimension_separator": "."})
    for index in range(6):
        marker = store.marker()
        store.write(f"{path}/{index}", struct.pack("<II", 1, len(marker)) + marker.encode(), [marker])


def sharded(store, documents, path):
    put(store, documents, path + "/zarr.json", {
        "zarr_format": 3, "node_type": "array", "shape": [8, 16], "data_type": "uint8", "fill_value": 0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 16]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "codecs": [{"name": "sharding_indexed", "configuration": {
            "chunk_shape": [1, 8], "codecs": [{"name": "bytes"}], "index_location": "end",
            "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]}}],
        "attributes": about(store, ["y", "x"]), "dimension_names": ["y", "x"]})
    for row in range(4):
        inner = [store.marker() for _ in range(4)]
        index = b"".join(struct.pack("<QQ", 8 * n, 8) for n in range(4))
        store.write(f"{path}/c/{row}/0", "".join(inner).encode() + index, inner)


def draft(store, path):
    """A hierarchy of the draft of 2022, whose chunks lie apart from its documents."""
    store.write(path + "zarr.json", {"zarr_format": URI, "metadata_encoding": URI, "metadata_key_suffix": ".json",
                                     "extensions": []})
    documents = {}
    put(store, documents, path + "meta/root.group.json", {"attributes": {"title": store.marker()}})
    put(store, documents, path + "meta/root/k.group.json", {"attributes": {"title": store.marker()}})
    for name in ("a", "k/b"):
        put(store, documents, f"{path}meta/root/{name}.array.json", {
            "shape": [8, 16], "data_type": "u1", "fill_value": 0, "chunk_memory_layout": "C",
            "chunk_grid": {"type": "regular", "chunk_shape": [1, 8], "separator": "/"}, "extensions": [],
            "attributes": about(store, ["y", "x"])})
        chunks(store, f"{path}data/root/{name}", lambda indices: "c" + "/".join(map(str, indices)), [8, 2])


def counts(shape, chunk_shape):
    return [-(-length // chunk) for length, chunk in zip(shape, chunk_shape)]


def consolidate(store, version, documents):
    """Copies of all documents. Copies of some arrays are outdated: they have other chunks, and other markers."""
    copies = {key: outdated(store, key, document) for key, document in documents.items()}
    if version == 2:
        keys = {key: copy for key, copy in copies.items() if not key.endswith("zarr.json")}
        put(store, {}, ".zmetadata", {"zarr_consolidated_format": 1, "metadata": keys})
    else:
        nodes = {key.removesuffix("/zarr.json"): copy for key, copy in copies.items() if key.endswith("/zarr.json")}
        inline = {"kind": "inline", "must_understand": False, "metadata": nodes}
        put(store, {}, "zarr.json", {**documents["zarr.json"], "consolidated_metadata": inline})


def outdated(store, key, document):
    if store.dice.random() < 0.5:
        return document
    text = json.dumps(document)
    for word in sorted(words_of(text)):
        text = text.replace(word, store.marker() if word.startswith("Mk") else str(store.number()))
    copy = json.loads(text)
    if "chunks" in copy:
        copy["chunks"] = [2 * length for length in copy["chunks"]]
    elif "chunk_grid" in copy:
        copy["chunk_grid"]["configuration"]["chunk_shape"] = [2, 16][:len(copy["shape"])]
    return copy
