"""`--info` for people, on terminals and in pipes; and the output of `--json` for the same nodes, compared with zarr-python."""
import base64
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import termios
import unicodedata

import numpy as np
import pytest
import zarr

from support import corpus
from support.mounting import BINARY, ok
from support.poison import POISON

STORES = ["zp2_dtypes.zarr", "zp3_shards.zarr", "zp3_ext_types.zarr", "xarray_v2.zarr", "xarray_v3.zarr", "ome_05.zarr",
          "zp2_consolidated.zarr", "zp3_consolidated.zarr", "draft22_tree.zarr", "zp1_110_struct.zarr", "ts_v3.zarr"]


def on_terminal(columns, *arguments, **environment):
    """The output of the command on a terminal of this width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    known = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TERM")}
    child = subprocess.Popen([BINARY, *map(os.fspath, arguments)], stdin=subprocess.DEVNULL, stdout=theirs,
                             stderr=subprocess.DEVNULL, env={**known, "TERM": "xterm", **environment})
    os.close(theirs)
    text = b""
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:  # All writers have closed it.
            break
        if not part:
            break
        text += part
    os.close(ours)
    assert child.wait() == 0
    return text.decode().replace("\r\n", "\n")


def plain(text):
    """The text without the escape sequences of colours. It must have no others."""
    return re.sub("\x1b\\[[0-9;]*m", "", text)


def columns_of(line):
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in line)
    return len(line) + wide - sum(unicodedata.combining(c) != 0 for c in line)


def described(store, *arguments):
    return {node["path"]: node for node in json.loads(ok(BINARY, "--info", "--json", *arguments, store))}


@pytest.mark.parametrize("columns", [40, 80, 200])
@pytest.mark.parametrize("name", STORES)
def test_lines_fit_the_terminal(name, columns):
    store = corpus.stores()[name].path
    for arguments in [(), ("--sizes", "--files", "npy,tif,nc"), ("--as", "v2")]:
        text = plain(on_terminal(columns, "--info", *arguments, store))
        assert "\x1b" not in text and text.count("\n") > 0
        for line in text.splitlines():
            assert columns_of(line) <= columns, (arguments, line)


def test_a_wide_terminal_shows_the_same_as_a_pipe():
    for arguments in [("demo:",), ("--sizes", "demo:", "air/temperature"), (corpus.stores()["xarray_v3.zarr"].path,)]:
        assert plain(on_terminal(400, "--info", *arguments)) == ok(BINARY, "--info", *arguments), arguments


def test_colours_are_for_terminals_alone():
    coloured = on_terminal(80, "--info", "demo:")
    assert "\x1b[1;34m/\x1b[0m" in coloured and "\x1b[36mfloat64\x1b[0m" in coloured
    for environment in [{"NO_COLOR": "1"}, {"TERM": "dumb"}]:
        assert on_terminal(80, "--info", "demo:", **environment) == plain(coloured), environment
    assert "\x1b[" in on_terminal(80, "--info", "demo:", NO_COLOR="")
    assert "\x1b" not in on_terminal(80, "--info", "--json", "demo:")
    assert "\x1b" not in ok(BINARY, "--info", "demo:")


def test_hostile_names_and_values_stay_on_their_lines(tmp_path):
    group = zarr.open_group(str(tmp_path / "s"), mode="w", attributes={"title": POISON, POISON: [POISON]})
    array = group.create_array("a", shape=(4,), chunks=(2,), dtype="i4", dimension_names=[POISON],
                               attributes={"units": POISON, "long_name": "\u6f22" * 100, "m" * 300: 1})
    array[...] = 1
    (tmp_path / "s" / "a").rename(tmp_path / "s" / POISON)
    for arguments in [(tmp_path / "s",), (tmp_path / "s", POISON)]:
        for columns in (30, 80):
            text = plain(on_terminal(columns, "--info", "--sizes", *arguments))
            assert not re.search("[\0-\x09\x0b-\x1f\x7f-\x9f\u202e]", text) and r"\u{1b}" in text
            for line in text.splitlines():
                assert not line.startswith("forged") and columns_of(line) <= columns, line
    nodes = described(tmp_path / "s")
    assert nodes["/"]["attributes"] == {"title": POISON, POISON: [POISON]}
    assert nodes[POISON]["attributes"] == {"units": POISON, "long_name": "\u6f22" * 100, "m" * 300: 1}


def test_a_tree_has_each_node_at_its_depth(tmp_path):
    """A directory without a document has a line where nodes are below it."""
    root = zarr.open_group(str(tmp_path / "s"), mode="w", zarr_format=2, attributes={"title": "all"})
    root.create_array("g/t", shape=(4,), chunks=(3,), dtype="<f4", fill_value=-1, attributes={
        "units": "K", "standard_name": "air_temperature", "cell_methods": "time: mean"})
    (tmp_path / "s" / "g" / ".zgroup").unlink()
    (tmp_path / "s" / "empty").mkdir()
    text = ok(BINARY, "--info", tmp_path / "s")
    codec = root["g/t"].metadata.compressor.codec_id
    assert text == f"""\
/      v2  group
    title: "all"
  g        directory
    t      float32    (4)  16 B  2 chunks (3)  {codec}
        standard_name: "air_temperature"  units: "K"  fill value: -1.0
"""
    lines = ok(BINARY, "--info", tmp_path / "s", "g/t").splitlines()
    assert lines[0] == "g/t  v2 array" and '    cell_methods   "time: mean"' in lines


def test_missing_values_are_shown_as_numbers():
    """xarray spells them in base64 in Zarr v3, which is what the JSON has."""
    store = corpus.stores()["xarray_v3.zarr"].path
    assert "_FillValue: NaN" in ok(BINARY, "--info", store)
    assert "    _FillValue  NaN\n" in ok(BINARY, "--info", store, "lat")
    spelled = described(store)["lat"]["attributes"]["_FillValue"]
    assert np.isnan(np.frombuffer(base64.b64decode(spelled))).all()


def test_stored_and_absent_chunks_are_counted(tmp_path):
    """An array that was made smaller by hand keeps a chunk outside of its grid."""
    group = zarr.open_group(str(tmp_path / "s"), mode="w")
    array = group.create_array("t", shape=(10, 16), chunks=(3, 4), dtype="i4", compressors=None)
    array[:3] = 1
    array[9, 15] = 1
    text = ok(BINARY, "--info", "--sizes", tmp_path / "s")
    # The chunk at the corner has one row of the array, and three beyond it.
    assert "240 B (0.9x) stored" in text, text
    assert "16 chunks (3, 4): 5 stored, 11 absent" in text, text
    text = ok(BINARY, "--info", "--sizes", tmp_path / "s", "t")
    assert "stored      240 B (0.9x) in 5 of 16 chunks, 11 absent" in text, text
    document = tmp_path / "s" / "t" / "zarr.json"
    document.write_text(document.read_text().replace("10,", "9,", 1))
    assert zarr.open_array(str(tmp_path / "s" / "t")).shape == (9, 16)
    assert "in 4 of 12 chunks, 8 absent; 1 chunk outside of the array" in ok(
        BINARY, "--info", "--sizes", tmp_path / "s", "t")
    node = described(tmp_path / "s", "--sizes")["t"]
    assert (node["stored_objects"], node["objects"], node["absent_objects"], node["objects_outside"]) == (5, 12, 8, 1)


def test_an_array_says_which_formats_it_fits():
    text = ok(BINARY, "--info", "--files", "npy,nc,tif", "demo:", "air/lat")
    assert "files       fits npy, nc; not tif: data type: `float64` cannot be expressed\n" in text
    assert "fits npy, nc, tif\n" in ok(BINARY, "--info", "--files", "npy,nc,tif", "demo:", "legacy/elevation")


@pytest.mark.parametrize("name", ["zp2_dtypes.zarr", "zp3_dtypes.zarr", "zp3_shards.zarr", "xarray_v2.zarr", "xarray_v3.zarr", "ome_05.zarr",
                                  "zp2_filters.zarr"])
def test_json_is_what_zarr_python_reads(name):
    store = corpus.stores()[name].path
    nodes = described(store, "--sizes")
    group = zarr.open_group(store, mode="r")
    arrays = 0
    for path, node in nodes.items():
        found = group if path == "/" else group[path]
        attributes = {k: v for k, v in node["attributes"].items() if k != "_ARRAY_DIMENSIONS"}
        expected = {k: v for k, v in found.attrs.asdict().items() if k != "_ARRAY_DIMENSIONS"}
        assert attributes == json.loads(json.dumps(expected)), path
        if node["node_type"] == "group":
            continue
        arrays += 1
        if found.dtype.kind not in "OTV":
            assert node["short_data_type"] == str(found.dtype), path
        if "shard_shape" not in node:
            assert (node["objects"], node["stored_objects"]) == (found.nchunks, found.nchunks_initialized), path
        assert node["absent_objects"] == node["objects"] - node["stored_objects"], path
        if found.dtype.kind in "iufb" and found.fill_value is not None:
            fill = np.array(node["fill_value"]).astype(found.dtype)
            assert fill == found.fill_value or np.isnan(fill) and np.isnan(found.fill_value), path
    assert arrays > 0


def test_attributes_are_bounded(tmp_path):
    """If the attributes are very long together, only the short ones are printed."""
    zarr.open_group(str(tmp_path / "s"), mode="w", attributes={"long": "x" * (2 << 20), "title": "short"})
    node = described(tmp_path / "s")["/"]
    assert node["attributes"] == {"title": "short"} and "only short ones" in node["attributes_left_out"]
    text = ok(BINARY, "--info", tmp_path / "s")
    assert 'title: "short"' in text and "attributes left out: they take" in text


def test_broken_nodes_are_reported_where_they_are(tmp_path):
    group = zarr.open_group(str(tmp_path / "s"), mode="w")
    group.create_array("a", shape=(4,), dtype="i4")
    group.create_array("b", shape=(4,), dtype="i4")
    (tmp_path / "s" / "a" / "zarr.json").write_text("{")
    text = ok(BINARY, "--info", tmp_path / "s")
    assert re.search(r"\n  a +unknown\n +a/zarr.json cannot be used: line 1 column 1: .*\n  b +int32", text), text
