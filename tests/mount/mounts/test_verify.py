"""`--verify`: sound stores pass, and each kind of damage is named."""
import json
import os
import random
import shutil
import subprocess
import zipfile
from collections import Counter

import google_crc32c
import numpy as np
import pytest
import zarr
from zarr.codecs import BloscCodec, Crc32cCodec, GzipCodec

from support import corpus
from support.mounting import BINARY, run

STORES = corpus.stores()
# Damage that only a part of a document shows, or that no reader must refuse: the verification says nothing of it.
SILENT = {"corrupt/meta_deep_json.zarr"}
# A version that does not exist is damage.
REFUSED = {"corrupt/meta_format_4.zarr"}


def verify(store, *options):
    """The exit status, the findings without notes, and the summary."""
    done = run(BINARY, "--verify", "--json", "--quiet", *options, store)
    *findings, summary = json.loads(done.stdout)
    assert summary["severity"] == "summary"
    counts = Counter(finding["severity"] for finding in findings)
    assert {kind: summary[kind] for kind in ("damaged", "not_examined")} == {kind: counts[kind] for kind in ("damaged", "not_examined")}
    return done.returncode, [finding for finding in findings if finding["severity"] != "note"], summary


def verdicts(entry):
    return {array.get("expect") for array in entry.get("arrays", [])} | {entry.get("expect")}


@pytest.mark.parametrize("name", sorted(STORES))
def test_stores_of_the_corpus(name):
    store = STORES[name]
    expected = verdicts(store.entry)
    status, findings, summary = verify(store.path)
    if "corrupt" in expected:
        assert name in SILENT or status == 1, findings
    elif "unsupported" in expected:
        assert status in (0, 2) or name in REFUSED, findings
    elif not expected & {"lenient", "hostile"}:
        assert status == 0, findings
        assert summary["arrays"] >= len(store.entry["arrays"])


@pytest.fixture
def store(tmp_path):
    """Arrays with checksums (gzip; CRC-32C in shards) and without one (blosc)."""
    values = np.random.default_rng(3).integers(0, 100, (64, 48), dtype="<i4")
    group = zarr.create_group(tmp_path / "s.zarr")
    group.create_array("gzip", shape=values.shape, chunks=(16, 16), dtype="<i4", compressors=GzipCodec())[...] = values
    group.create_array("shards", shape=values.shape, chunks=(8, 8), shards=(32, 24), dtype="<i4", compressors=Crc32cCodec())[...] = values
    group.create_array("blosc", shape=values.shape, chunks=(16, 16), dtype="<i4", compressors=BloscCodec())[...] = values
    return tmp_path / "s.zarr"


def test_a_sound_store_passes(store):
    done = run(BINARY, "--verify", store)
    chunks = 4 * 3 * 2 + 8 * 6
    assert done.returncode == 0 and f"4 nodes, 3 arrays, {chunks} chunks decoded to 36.00 KiB: 0 damaged" in done.stdout, done.stdout
    assert "blosc/zarr.json: chunks have no checksum" in done.stdout and "gzip/zarr.json" not in done.stdout


def test_many_arrays_without_checksums_are_counted(tmp_path):
    group = zarr.create_group(tmp_path / "many.zarr")
    for number in range(23):
        group.create_array(f"a{number}", shape=(2,), chunks=(2,), dtype="u1", compressors=None)
    done = run(BINARY, "--verify", tmp_path / "many.zarr")
    assert done.returncode == 0 and done.stdout.count("chunks have no checksum (bytes)") == 20, done.stdout
    assert "note: 3 more arrays whose chunks have no checksum\n" in done.stdout and "21 notes" in done.stdout, done.stdout


def test_a_damaged_chunk_is_named_by_its_place(store):
    chunk = store / "gzip" / "c" / "2" / "1"
    chunk.write_bytes(chunk.read_bytes()[:-3])
    status, [found], _ = verify(store)
    assert status == 1 and found["path"] == "gzip" and found["chunk"] == [2, 1] and found["region"] == [[32, 48], [16, 32]]
    assert found["key"] == "gzip/c/2/1" and found["bytes"] == [0, chunk.stat().st_size]
    text = run(BINARY, "--verify", store).stdout
    assert "damaged: gzip: chunk (2, 1) [32:48, 16:32]: gzip/c/2/1: bytes 0.." in text


def test_damage_within_a_shard_names_the_inner_chunk(store):
    shard = store / "shards" / "c" / "1" / "0"
    data = bytearray(shard.read_bytes())
    index = np.frombuffer(bytes(data[-4 - 16 * 12:-4]), "<u8").reshape(4, 3, 2)
    offset, length = map(int, index[2, 1])
    data[offset + 5] ^= 1
    shard.write_bytes(data)
    status, [found], _ = verify(store, "--cache-size", "16M")
    assert status == 1 and found["chunk"] == [6, 1] and found["shard"] == [1, 0] and found["region"] == [[48, 56], [8, 16]]
    assert found["bytes"] == [offset, offset + length] and "crc32c" in found["problem"]


@pytest.mark.parametrize("damage, word", [("cut", "truncated"), ("shorter", "truncated"), ("index", "the checksum of the index is wrong"), ("empty", "truncated")])
def test_a_shard_whose_index_is_damaged_is_one_finding(store, damage, word):
    shard = store / "shards" / "c" / "0" / "1"
    data = bytearray(shard.read_bytes())
    match damage:
        case "cut":
            data = data[:100]
        case "shorter":
            data = data[:-50]
        case "index":
            data[-20] ^= 4
        case "empty":
            data = b""
    shard.write_bytes(data)
    status, [found], _ = verify(store)
    assert status == 1 and found["path"] == "shards" and "shards/c/0/1" in found["problem"] and word in found["problem"], found
    assert found["shard"] == [0, 1] and "chunk" not in found


def test_chunks_that_share_bytes_of_a_shard_are_reported(store):
    """Readers do not notice it: the chunk (6, 1) is that of (5, 0)."""
    shard = store / "shards" / "c" / "1" / "0"
    data = bytearray(shard.read_bytes())
    assert "has bytes that another" not in run(BINARY, "--verify", store).stdout
    index = np.frombuffer(bytes(data[-4 - 16 * 12:-4]), "<u8").reshape(4, 3, 2).copy()
    index[2, 1] = index[1, 0]
    data[-4 - 16 * 12:] = index.tobytes() + google_crc32c.value(index.tobytes()).to_bytes(4, "little")
    shard.write_bytes(data)
    done = run(BINARY, "--verify", store)
    start, end = int(index[1, 0, 0]), int(index[1, 0].sum())
    assert done.returncode == 0 and f"note: shards/c/1/0: an entry of the index has bytes that another entry" in done.stdout, done.stdout
    assert f"such as {start}..{end} and {start}..{end};" in done.stdout
    index[2, 1] = [len(data) - 20, 16]
    data[-4 - 16 * 12:] = index.tobytes() + google_crc32c.value(index.tobytes()).to_bytes(4, "little")
    shard.write_bytes(data)
    done = run(BINARY, "--verify", store)
    assert done.returncode == 1 and f"and {len(data) - 20}..{len(data) - 4};" in done.stdout, done.stdout


def test_a_second_document_of_a_node_is_reported(store):
    array = {"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "|u1", "compressor": None, "filters": None, "order": "C", "fill_value": 0}
    (store / "gzip" / ".zarray").write_text(json.dumps(array))
    (store / ".zgroup").write_text('{"zarr_format": 2}')
    (store / ".zattrs").write_text("{}")
    done = run(BINARY, "--verify", store)
    told = [line for line in done.stdout.splitlines() if "a second document of this node" in line]
    assert done.returncode == 0 and len(told) == 2, done.stdout
    assert told[0].startswith("note: .zgroup: a second document of this node, which was read from zarr.json")
    assert told[1].startswith("note: gzip/.zarray: a second document of this node, which was read from gzip/zarr.json")


@pytest.mark.parametrize("version", [2, 3])
def test_an_array_without_dimensions_whose_document_is_missing_is_damage(tmp_path, version):
    group = zarr.create_group(tmp_path / "s", zarr_format=version)
    group.create_array("a", shape=(), dtype="<i4")[...] = 7
    assert run(BINARY, "--verify", tmp_path / "s").returncode == 0
    for document in (".zarray", ".zattrs") if version == 2 else ("zarr.json",):
        (tmp_path / "s" / "a" / document).unlink()
    done = run(BINARY, "--verify", tmp_path / "s")
    key = "a/0" if version == 2 else "a/c"
    assert done.returncode == 1 and f"damaged: a: it has chunks, such as {key}, and no document of an array" in done.stdout, done.stdout


def test_objects_beside_chunks_are_reported(store):
    (store / "gzip" / "c" / "9").mkdir()
    (store / "gzip" / "c" / "9" / "9").write_bytes(b"x")
    (store / "gzip" / "notes.txt").write_text("x")
    (store / "gzip" / "c" / "0" / "00").write_text("x")
    done = run(BINARY, "--verify", store)
    assert done.returncode == 0
    assert "note: gzip/c/9/9: a chunk outside of the array" in done.stdout
    assert "note: gzip/notes.txt: no chunk of the array" in done.stdout and "note: gzip/c/0/00: no chunk" in done.stdout


@pytest.mark.parametrize("version", [2, 3])
def test_consolidated_metadata_that_disagrees_is_damage(tmp_path, version):
    group = zarr.create_group(tmp_path / "s", zarr_format=version)
    for name in "ab":
        group.create_array(name, shape=(4,), chunks=(2,), dtype="<i4")[...] = 7
    zarr.consolidate_metadata(str(tmp_path / "s"), zarr_format=version)
    assert verify(tmp_path / "s")[0] == 0
    document = tmp_path / "s" / "a" / (".zarray" if version == 2 else "zarr.json")
    document.write_text(document.read_text().replace('"fill_value": 0', '"fill_value": 1'))
    shutil.rmtree(tmp_path / "s" / "b")
    status, findings, _ = verify(tmp_path / "s")
    problems = " ".join(finding["problem"] for finding in findings)
    assert status == 1 and "says something else than a/" in problems and "is of a document that is not there: b/" in problems, problems


def test_references_that_lead_nowhere_are_damage(tmp_path):
    array = {"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "|u1", "compressor": None, "filters": None, "order": "C", "fill_value": 0}
    (tmp_path / "data").write_bytes(b"abcd")
    refs = {".zgroup": '{"zarr_format": 2}', "x/.zarray": json.dumps(array), "x/0": ["data", 0, 2], "x/1": ["gone", 0, 2]}
    (tmp_path / "set.json").write_text(json.dumps({"version": 1, "refs": refs}))
    status, [found], _ = verify(tmp_path / "set.json")
    assert status == 1 and found["chunk"] == [1] and "gone" in found["problem"], found


def test_what_cannot_be_read_is_not_called_sound(store, tmp_path):
    if os.getuid():
        pytest.skip("root reads everything, and another user is needed")
    chunk = store / "gzip" / "c" / "0" / "0"
    os.chmod(chunk, 0)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == 0 and len(folder.parts) > 2:
            os.chmod(folder, 0o755)
    done = subprocess.run([BINARY, "--verify", "--quiet", store], capture_output=True, text=True, user=65534, group=65534, extra_groups=[])
    assert done.returncode == 2 and "not examined: gzip: chunk (0, 0)" in done.stdout, done


def test_links_that_lead_nowhere_are_damage(store):
    for name, target in (("0", "gone"), ("1", "1")):
        chunk = store / "gzip" / "c" / "0" / name
        chunk.unlink()
        chunk.symlink_to(target)
    status, found, _ = verify(store)
    damaged = {tuple(one["chunk"]): one["problem"] for one in found if one["severity"] == "damaged"}
    assert status == 1 and set(damaged) == {(0, 0), (0, 1)}, found
    assert "leads nowhere" in damaged[0, 0] and "form a loop" in damaged[0, 1], damaged


def test_a_store_that_cannot_be_opened_is_one_finding(tmp_path):
    (tmp_path / "cut.zip").write_bytes(b"PK\3\4")
    done = run(BINARY, "--verify", "--json", tmp_path / "cut.zip")
    found, summary = json.loads(done.stdout)
    assert done.returncode == 1 and found["severity"] == "damaged" and found["path"] == "/", done
    assert found["problem"] in done.stderr and summary["severity"] == "summary" and summary["damaged"] == 1, done


def test_paths_and_mistakes(store):
    assert verify(store)[2]["nodes"] == 4
    done = run(BINARY, "--verify", "--json", store, "gzip")
    assert json.loads(done.stdout)[-1]["chunks"] == 12
    for words, status, expected in [([store, "no/such"], 2, "no Zarr node is here"), ([], 2, "STORE missing"), (["/no/such"], 2, "No such file"),
                                    (["/etc/passwd"], 2, "/etc/passwd"), (["--timeout", "1", "http://127.0.0.1:1/x.zarr"], 2, "127.0.0.1:1"),
                                    (["--array", "nope*", store], 2, "--array nope*: it selects no array"),
                                    (["--array", "gzip", "--array", "nope", store], 2, "--array nope: it selects no array"),
                                    (["--array", "gzip", store, "shards"], 2, "--array gzip: it selects no array at or below shards"),
                                    (["--info", store], 2, "cannot be used with"), (["--rw", store], 2, "cannot be used with")]:
        done = run(BINARY, "--verify", *words)
        assert (done.returncode, expected in done.stderr) == (status, True), (words, done)


def test_an_array_may_be_selected(store):
    (store / "blosc" / "c" / "0" / "0").write_bytes(b"x")
    assert [verify(store, "--array", name)[0] for name in ("gzip", "b*")] == [0, 1]


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_report_that_is_lost_says_nothing_of_the_store(store, options):
    with open("/dev/full", "w") as full:
        assert subprocess.run([BINARY, "--verify", *options, store], stdout=full, stderr=subprocess.PIPE).returncode == 2


def test_an_array_whose_document_is_missing_is_damage(store):
    (store / "gzip" / "zarr.json").unlink()
    status, findings, summary = verify(store)
    [problem] = [finding["problem"] for finding in findings]
    assert status == 1 and summary["arrays"] == 2 and problem.startswith("gzip: it has chunks, such as gzip/c/"), problem
    assert "no document of an array" in problem and verify(store, "--array", "blosc")[0] == 0
    (store / "zarr.json").unlink()
    assert [finding["path"] for finding in verify(store)[1]] == ["gzip"]


def test_a_root_array_whose_document_is_missing_is_damage(store):
    (store / "gzip" / "zarr.json").unlink()
    done = run(BINARY, "--verify", store / "gzip")
    assert done.returncode == 1 and "damaged: /: it has chunks, such as c/" in done.stdout, done


@pytest.fixture
def n5(tmp_path):
    """A container with an array `a/b`; `a` has no document, as in N5 it need not."""
    root = tmp_path / "s.n5"
    (root / "a" / "b" / "0").mkdir(parents=True)
    (root / "attributes.json").write_text('{"n5": "4.0.0"}')
    array = {"dimensions": [2, 2], "blockSize": [2, 2], "dataType": "uint8", "compression": {"type": "raw"}}
    (root / "a" / "b" / "attributes.json").write_text(json.dumps(array))
    (root / "a" / "b" / "0" / "0").write_bytes(bytes([0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 2, 1, 2, 3, 4]))
    return root


def test_documents_of_n5(n5):
    done = run(BINARY, "--verify", n5)
    assert done.returncode == 0 and "attributes.json: no chunk" not in done.stdout and "1 note" in done.stdout, done.stdout
    (n5 / "a" / "b" / "attributes.json").unlink()
    done = run(BINARY, "--verify", n5)
    assert done.returncode == 1 and "damaged: a/b: it has chunks, such as a/b/0/0, and no document of an array" in done.stdout, done.stdout


def test_objects_of_no_node_are_reported(store):
    (store / "notes" / "deep").mkdir(parents=True)
    (store / "notes" / "deep" / "f").write_text("x")
    for number in range(30):
        (store / f"README{number}.txt").write_text("x")
    done = run(BINARY, "--verify", store)
    assert done.returncode == 0 and done.stdout.count("txt: no chunk, and no document; readers ignore it") == 20, done.stdout
    assert "note: 10 more keys: no chunk" in done.stdout
    assert "note: notes/deep: keys, such as notes/deep/f, and no document" in done.stdout and "note: notes: " not in done.stdout


@pytest.mark.parametrize("text", ["{", "[1]", '{"a": 1'])
def test_damaged_attributes_of_v2_are_reported(tmp_path, text):
    """In v2, attributes have their own documents, which no chunk needs."""
    group = zarr.create_group(tmp_path / "s", zarr_format=2, attributes={"title": "t"})
    group.create_array("g/a", shape=(4,), chunks=(2,), dtype="<i4", attributes={"units": "K"})[...] = 7
    assert run(BINARY, "--verify", tmp_path / "s").returncode == 0
    for key in (".zattrs", "g/a/.zattrs"):
        (tmp_path / "s" / key).write_text(text)
    done = run(BINARY, "--verify", tmp_path / "s")
    damaged = [line for line in done.stdout.splitlines() if line.startswith("damaged: ")]
    assert done.returncode == 1 and len(damaged) == 2 and ".zattrs" in damaged[0] and "g/a/.zattrs" in damaged[1], done.stdout


def test_the_wrong_kind_of_file_is_damage(store):
    chunk, row = store / "gzip" / "c" / "2" / "1", store / "gzip" / "c" / "3"
    chunk.unlink()
    chunk.mkdir()
    shutil.rmtree(row)
    row.write_bytes(b"x")
    status, findings, _ = verify(store)
    problems = sorted(finding["problem"] for finding in findings)
    assert status == 1 and problems == ["gzip/c/2/1: a directory in the place of a chunk", "gzip/c/3: a file in the place of a directory of chunks"]


@pytest.mark.parametrize("version", [2, 3])
def test_a_node_that_consolidated_metadata_lacks_is_reported(tmp_path, version):
    group = zarr.create_group(tmp_path / "s", zarr_format=version)
    group.create_array("g/a", shape=(4,), chunks=(2,), dtype="<i4")[...] = 7
    zarr.consolidate_metadata(str(tmp_path / "s"), zarr_format=version)
    told = "no copy of it is in consolidated metadata"
    assert told not in run(BINARY, "--verify", tmp_path / "s").stdout
    zarr.create_array(tmp_path / "s" / "g" / "later", shape=(4,), chunks=(2,), dtype="<i4", zarr_format=version)
    done = run(BINARY, "--verify", tmp_path / "s")
    own, holder = ("g/later/.zarray", ".zmetadata") if version == 2 else ("g/later/zarr.json", "zarr.json")
    assert done.returncode == 0 and f"note: {own}: {told} ({holder})" in done.stdout and done.stdout.count(told) == 1, done.stdout


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_wrong_bytes_in_a_zip_file_are_damage(tmp_path, method):
    group = zarr.create_group(tmp_path / "s", zarr_format=2)
    for name in ("a", "b"):
        group.create_array(name, shape=(64,), chunks=(64,), dtype="<i4", compressors=None)[...] = np.arange(64)
    zarr.consolidate_metadata(str(tmp_path / "s"), zarr_format=2)
    packed, expected = tmp_path / "s.zip", ("a/0", "b/.zarray")
    with zipfile.ZipFile(packed, "w", method) as file:
        for path in sorted((tmp_path / "s").rglob("*")):
            if path.is_file():
                file.write(path, path.relative_to(tmp_path / "s"))
    assert verify(packed)[0] == 0
    data = bytearray(packed.read_bytes())
    with zipfile.ZipFile(packed) as file:
        for name in expected:
            info = file.getinfo(name)
            data[info.header_offset + 30 + len(name) + info.compress_size // 2] ^= 0x55
    packed.write_bytes(data)
    status, findings, _ = verify(packed)
    assert status == 1 and {finding["severity"] for finding in findings} == {"damaged"}, findings
    assert sorted(finding["problem"].partition(":")[0] for finding in findings) == sorted(expected), findings


@pytest.mark.parametrize("n", [60, pytest.param(10_000, marks=pytest.mark.long)])
def test_flipped_bits_under_a_checksum_are_found(store, n, figure):
    values = {name: zarr.open_array(store / name, mode="r")[...] for name in ("gzip", "shards", "blosc")}
    files = [path for name in values for path in (store / name / "c").rglob("*") if path.is_file()]
    draw, unseen = random.Random(n), Counter()
    for _ in range(n):
        file = draw.choice(files)
        name, sound = file.relative_to(store).parts[0], file.read_bytes()
        damaged = bytearray(sound)
        damaged[draw.randrange(len(sound))] ^= 1 << draw.randrange(8)
        file.write_bytes(damaged)
        status, findings, _ = verify(store / name)
        if status == 0:
            # Bits of gzip's header say nothing of the chunk. Blosc has no checksum.
            unseen[name] += 1
            assert name != "shards", file
            if name == "gzip":
                np.testing.assert_array_equal(zarr.open_array(store / name, mode="r")[...], values[name])
        else:
            assert status == 1 and {finding["path"] for finding in findings} == {"/"}, findings
        file.write_bytes(sound)
    figure(f"{n} flipped bits, of which not found: {dict(unseen)}")
