"""Stores in which every string has control sequences of terminals, and the conditions that text made from them must meet."""
import json
import re
import shutil

from support import corpus

# An escape sequence, the same in C1, a line of the log, a line of its own, marks that reorder text, ends of lines.
POISON = ("\x1b]0;t\x07\x7f\u009b2J\r\n[2026-01-01T00:00:00.000Z ERROR forged::line] forged"
          "\nforged \u0085\u202eoloc\u2066\u2028\u2029\t\\")
# `\x1b`, as every text for people spells it.
SPELLED = r"\u{1b}"
# A line of the log, or a warning of a command, which has no time.
RECORD = re.compile(r"zarr-mount: warning: |\[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z "
                    r"(ERROR|WARN |INFO |DEBUG|TRACE) (zarr_mount|fuser)[\w:]*\] ")
# Controls but the line feed, and characters that have no width or reorder their neighbours. The joiners U+200C and
# U+200D are not among them: words of some scripts are spelled with them.
HARMFUL = re.compile("[\0-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
DOCUMENTS = {".zarray", ".zgroup", ".zattrs", "zarr.json", "meta", "attrs", "__zmeta__"}
# One folder for each node, of every version that has such folders.
NODES = [
    "zp04_layout.zarr", "prev1_script_i4.zarr", "zp1_110_struct.zarr", "zp1_110_bz2.zarr", "zp2_filters.zarr",
    "zp2_struct.zarr", "zp2_objects.zarr", "nczarr_49_pure.zarr", "xarray_v2.zarr", "ome_04.zarr", "zp3_shards.zarr",
    "zp3_codecs.zarr", "zp3_ext_types.zarr", "zp3_transpose.zarr", "zarrs_ext.zarr", "xarray_v3.zarr", "ome_05.zarr",
]
# Stores that have all documents below one `meta`.
TREES = ["draft22_tree.zarr", "draft22_sharded.zarr", "zp2_draft_v3.zarr", "gdal_v3draft_gzip.zarr"]


def assert_harmless(text, what):
    """No byte of `text` is a control character except the ends of its lines, and no line is forged."""
    found = HARMFUL.search(text := text.decode())
    assert not found, f"{what}: {found[0]!r} in {text[max(0, found.start() - 200):found.end() + 40]!r}"
    assert not re.search("^forged", text, re.MULTILINE), f"{what}: a forged line"
    return text


def assert_log(text, what):
    for line in assert_harmless(text, what).splitlines():
        assert RECORD.match(line), f"{what}: {line!r}"


def mutations(value, path=()):
    """(where, document) for each string or number of a JSON value: the value with poison there. A string is also poisoned as the name of a
    member, and each object gets one member more."""
    if isinstance(value, dict):
        yield (*path, "+"), {**value, POISON: POISON}
        yield (*path, "+{}"), {**value, POISON: {"name": POISON, "must_understand": True}}
        for name, member in value.items():
            others = {n: v for n, v in value.items() if n != name}
            yield (*path, name, "name"), {**others, name + POISON: member}
            for where, changed in mutations(member, (*path, name)):
                yield where, {**value, name: changed}
    elif isinstance(value, list):
        for i, item in enumerate(value):
            for where, changed in mutations(item, (*path, "[]")):
                yield where, [*value[:i], changed, *value[i + 1:]]
    else:
        if isinstance(value, str):
            yield (*path, value[:40]), value + POISON
        yield (*path, type(value).__name__), POISON


def written(document):
    """The document as bytes. Characters that JSON allows in strings are not escaped."""
    return json.dumps(document, ensure_ascii=False, allow_nan=True).encode()


def parsed(path):
    try:
        return json.loads(path.read_bytes())
    except ValueError:
        return None


def nodes(root):
    """Makes a folder of nodes, copies of those of the corpus, each with one change of its own. Returns their number."""
    root.mkdir()
    seen, count = set(), 0
    for name in NODES:
        store = corpus.stores()[name].path
        for path in sorted(p for p in store.rglob("*") if p.name in DOCUMENTS and p.is_file()):
            for where, document in mutations(parsed(path)):
                if (path.name, where) in seen:
                    continue
                seen.add((path.name, where))
                folder = root / f"n{count}-{POISON}"
                folder.mkdir()
                count += 1
                for file in path.parent.iterdir():
                    if file.is_file() and file.stat().st_size < 1 << 16:
                        shutil.copyfile(file, folder / file.name)
                (folder / path.name).write_bytes(written(document))
    return count


def trees(root):
    """Like `nodes`, for hierarchies that have all their documents below `meta`. There is one store for each of `TREES`."""
    root.mkdir()
    seen, count = set(), 0
    for name in TREES:
        store = corpus.stores()[name].path
        copy = root / name
        shutil.copytree(store, copy)
        for path in sorted(p for p in store.rglob("*.array.json")):
            node, _, kind = path.name.partition(".")
            for where, document in mutations(parsed(path)):
                if where in seen:
                    continue
                seen.add(where)
                folder = path.parent.relative_to(store / "meta")
                name = f"{node}-{count}-{POISON}"
                (copy / "meta" / folder / f"{name}.{kind}").write_bytes(written(document))
                # The directory in which ERROR.txt is shown.
                (copy / "data" / folder / name).mkdir(parents=True)
                count += 1
    return count
