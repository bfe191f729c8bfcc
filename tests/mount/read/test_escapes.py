"""Text for people holds no control character of a store: `--info`, the log, `ERROR.txt`, standard error."""
import json
import os
import shutil
import subprocess

import numpy as np
import pytest
import zarr

from support import mounting
from support.mounting import BINARY
from support.poison import POISON, SPELLED, TREES, assert_harmless, assert_log, nodes, trees, written
from test_hostile import walk

FORMATS = "npy,raw,nhdr,mhd,envi,nc,h5,tif,ome.tif,nii,vti,mrc,fits,jsonl"
INFO = [(), ("--json",), ("--sizes",), ("--as", "v2"), ("--as", "v3"), ("--files", FORMATS),
        ("--json", "--as", "v2", "--files", FORMATS)]
VIEWS = [("keys",), ("keys", "--as", "v2"), ("keys", "--as", "v3"), ("chunks",), ("chunks", "--as", "v2"),
         ("chunks", "--as", "v3"), ("arrays", "--files", FORMATS)]


def said(*arguments):
    """(status, standard output, standard error), both as bytes."""
    done = subprocess.run([BINARY, *map(os.fspath, arguments)], stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=300)
    return done.returncode, done.stdout, done.stderr


def info(store, *arguments):
    """The output of `--info`, after its log on standard error was checked. The reason of a failure may stand at the end."""
    status, out, err = said("--info", "-vv", "--quiet", *arguments, store)
    assert status in (0, 1), err
    lines = err.splitlines(keepends=True)
    if status:
        assert_harmless(lines.pop(), "the last line")
    assert_log(b"".join(lines), "the log of --info")
    return assert_harmless(out, "standard output")


def read(mount, store, view):
    """Reads all of a mount. (what ERROR.txt said, the log)."""
    made = mount(store, "--view", *view, "-vv")
    notes = b"".join(
        content for path, content in walk(made.path) if b"ERROR.txt" in path and isinstance(content, bytes))
    log = made.log.read_bytes()
    assert_log(log, "the log")
    return assert_harmless(notes, "ERROR.txt"), log.decode()


@pytest.fixture(scope="module", params=[nodes, trees], ids=lambda make: make.__name__)
def poisoned(request, tmp_path_factory):
    """(stores, how many documents were changed)."""
    root = tmp_path_factory.mktemp("poisoned") / "stores"
    count = request.param(root)
    assert count > 100
    yield [root] if request.param is nodes else [root / name for name in TREES], count
    shutil.rmtree(root)


@pytest.mark.parametrize("arguments", INFO, ids=" ".join)
def test_info_of_every_document_with_poison(poisoned, arguments):
    stores, count = poisoned
    told = [info(store, *arguments) for store in stores]
    if "--json" in arguments:
        described = sum(len(json.loads(text)) for text in told)
    else:
        described = sum(len(text.splitlines()) for text in told)
        assert sum(text.count(SPELLED) for text in told) > count
    # A document that is no longer taken for one is not told of.
    assert described > count * 9 // 10


@pytest.mark.parametrize("view", VIEWS, ids=" ".join)
def test_a_mount_of_every_document_with_poison(mount, poisoned, view):
    stores, _ = poisoned
    told = [read(mount, store, view) for store in stores]
    if view != ("keys",):
        assert any(SPELLED in notes for notes, _ in told)
    assert any(SPELLED in log for _, log in told)


def test_json_keeps_names(tmp_path):
    """JSON has its own escapes, so a program that parses it gets the names that the store has."""
    document = {"zarr_format": 3, "node_type": "array", "shape": [1], "fill_value": 0, "data_type": "int8" + POISON,
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1]}},
                "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "bytes" + POISON}],
                "dimension_names": [POISON]}
    store = tmp_path / "s"
    (store / POISON).mkdir(parents=True)
    (store / POISON / "zarr.json").write_bytes(written(document))
    (facts,) = json.loads(info(store, "--json"))
    assert facts["path"] == POISON
    assert facts["data_type"] == "int8" + POISON
    assert facts["codecs"] == ["bytes" + POISON]
    assert facts["dimension_names"] == [POISON]


def group_of(tmp_path):
    group = zarr.open_group(str(tmp_path / "s"), mode="w")
    group.create_array("a", shape=(4,), chunks=(2,), dtype="i4")[...] = np.arange(4)
    return tmp_path / "s"


def a_fifo(store):
    os.mkfifo(store / POISON)


def a_link_that_leaves(store):
    (store / POISON).symlink_to("/etc/" + POISON)


def a_link_to_itself(store):
    (store / POISON).symlink_to(POISON)


def a_link_to_nothing(store):
    (store / "a").rename(store / ("a" + POISON))
    shutil.rmtree(store / ("a" + POISON) / "c")
    (store / ("a" + POISON) / "c").symlink_to("../" + POISON)


def a_damaged_chunk(store):
    (store / "a").rename(store / POISON)
    for chunk in (store / POISON / "c").iterdir():
        chunk.write_bytes(b"\x1b[2J\nforged")


def no_json(store):
    (store / "a" / "zarr.json").write_bytes(b'{"node_type": "' + POISON.encode())


def a_document_that_is_none(store):
    (store / "a" / "zarr.json").write_bytes(written(POISON))


def a_number_with_poison(store):
    text = (store / "a" / "zarr.json").read_text()
    (store / "a" / "zarr.json").write_text(text.replace('"zarr_format": 3', '"zarr_format": 3' + POISON))


def a_copy_of_a_node_that_is_not_there(store):
    document = json.loads((store / "zarr.json").read_bytes())
    copy = {"metadata": {POISON: {"node_type": POISON}, "a": POISON}, "kind": POISON, "must_understand": POISON}
    (store / "zarr.json").write_bytes(written({**document, "consolidated_metadata": copy}))


def the_daemons_own_name(store):
    (store / ".zarr-mount").mkdir()
    (store / ".zarr-mount" / POISON).write_bytes(b"")


HOSTILE = [a_fifo, a_link_that_leaves, a_link_to_itself, a_link_to_nothing, a_damaged_chunk, no_json,
           a_document_that_is_none, a_number_with_poison, a_copy_of_a_node_that_is_not_there, the_daemons_own_name]


@pytest.mark.parametrize("view", ["keys", "chunks", "arrays"])
@pytest.mark.parametrize("make", HOSTILE, ids=lambda make: make.__name__)
def test_hostile_files(mount, tmp_path, make, view):
    store = group_of(tmp_path)
    make(store)
    for arguments in ((), ("--json",), ("--sizes",), ("--files", FORMATS), ("--at", "1")):
        info(store, *arguments)
    read(mount, store, (view,))


def test_a_zip_file(mount, tmp_path):
    store = group_of(tmp_path)
    shutil.copytree(store / "a", store / "b")
    a_damaged_chunk(store)
    archive = shutil.make_archive(str(tmp_path / "archive"), "zip", store)
    assert SPELLED in info(archive, "--sizes")
    for view in ("keys", "chunks", "arrays"):
        read(mount, archive, (view,))
    # A record of the directory that says something else than the file does: the name is in the message.
    data = bytearray((tmp_path / "archive.zip").read_bytes())
    first = data.index(POISON.encode())
    data[first:first + 1] = b"X"
    (tmp_path / "archive.zip").write_bytes(data)
    info(archive)
    read(mount, archive, ("keys",))


def test_a_value_with_poison(tmp_path):
    array = zarr.create_array(str(tmp_path / "s"), shape=(2,), dtype=f"U{len(POISON)}")
    array[...] = [POISON, "plain"]
    text = info(tmp_path / "s", "--at", "0")
    assert SPELLED in text and len(text.splitlines()) == 4
    assert json.loads(info(tmp_path / "s", "--at", "0", "--json"))["value"]


def test_failures_are_one_line(tmp_path):
    """Arguments are escaped in messages, too, because a script may have them from elsewhere."""
    store = group_of(tmp_path)
    empty = tmp_path / POISON
    empty.mkdir()
    file = tmp_path / f"file {POISON}"
    file.write_text("no store")
    (tmp_path / "m").mkdir()
    for arguments in [
        ("--info", store, POISON),
        ("--info", store, "a/../" + POISON),
        ("--info", "--at", "9", store, POISON),
        (file, tmp_path / "m"),
        (empty / POISON, tmp_path / "m"),
        (store, empty / POISON / POISON),
        ("--unmount", empty),
        ("--unmount", POISON),
        ("--view", POISON, store, tmp_path / "m"),
        ("-o", POISON, store, tmp_path / "m"),
        ("--log-file", tmp_path / "none" / POISON, store, tmp_path / "m"),
        (f"http://{POISON}", tmp_path / "m"),
    ]:
        status, out, err = said(*arguments)
        text = assert_harmless(err, arguments)
        assert status != 0 and out == b"" and len(text.splitlines()) == 1, (arguments, text)
        assert text.startswith("zarr-mount: ") and r"\u{202e}" in text, (arguments, text)


def test_a_warning_is_one_line(tmp_path):
    """The warning is about an empty directory, which is nevertheless mounted."""
    empty = tmp_path / POISON
    empty.mkdir()
    try:
        status, out, err = said(empty, tmp_path / "m")
        text = assert_harmless(err, empty)
        assert status == 0 and out == b"" and len(text.splitlines()) == 1, text
        assert text.startswith("zarr-mount: warning: ") and r"\u{202e}" in text, text
    finally:
        mounting.run("umount", "-l", tmp_path / "m")
