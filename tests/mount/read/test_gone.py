"""Arrays that are removed while a reader has them open: an error comes before absence, which the reader would take for fill values."""
import json
import shutil
import time

import numpy as np
import pytest

from support import remote_samples
from support.remote_fault_server import FaultServer
from support.remote_samples import attempt, mounted

VIEWS = ("chunks", "keys")
ARGUMENTS = ("--view", "chunks,keys", "--readahead", "0", "--ttl", "3600")
FILL = b"\7\0\0\0" * remote_samples.PLAIN_CHUNK


def stored(root, what):
    return root / remote_samples.BUCKET / "z" / what


def make(root, sparse=0):
    """A group with `plain`, whose chunks are stored, and `hole`, of which one is."""
    remote_samples.write(root)
    if sparse:
        document = stored(root, "hole/zarr.json")
        document.write_text(document.read_text().replace(f"{remote_samples.PLAIN}", f"{sparse * remote_samples.PLAIN_CHUNK}"))
    remote_samples.age(root / remote_samples.BUCKET)
    return root


def outcomes(mounted, name):
    return {attempt(mounted.path / view / name / "c" / str(n)) for view in VIEWS for n in (2, 3, 2)}


def read(made):
    """Opens the arrays in both views, and reads a chunk."""
    for view in VIEWS:
        assert attempt(made.path / view / "plain" / "zarr.json") and attempt(made.path / view / "hole" / "zarr.json")
        assert attempt(made.path / view / "plain" / "c" / "1") == remote_samples.chunk("plain", 1)


@pytest.mark.parametrize("what", ["", "plain", "plain/zarr.json"])
@pytest.mark.parametrize("kind", ["http", "s3"])
def test_a_chunk_of_an_array_that_is_gone_from_a_server(kind, what, mount, tmp_path):
    make(tmp_path)
    with FaultServer(tmp_path, kind) as server:
        made = mounted(mount, server, *ARGUMENTS)
        read(made)
        gone = stored(tmp_path, what)
        if gone.is_file():
            # The document first, as programs remove the files of a directory in any order.
            gone.unlink()
            gone = gone.parent / "c"
        shutil.rmtree(gone)
        assert outcomes(made, "plain") == {"ESTALE"}
        made.unmount()


def test_a_chunk_of_an_array_that_is_gone_from_a_directory(mount, tmp_path):
    make(tmp_path)
    made = mount(stored(tmp_path, ""), *ARGUMENTS)
    read(made)
    shutil.rmtree(stored(tmp_path, "plain"))
    shutil.rmtree(stored(tmp_path, "hole"))
    assert outcomes(made, "plain") == outcomes(made, "hole") == {"ESTALE"}
    assert outcomes(made, "other") == {"ENOENT"}, "no array was there"
    make(tmp_path)
    read(made)
    made.unmount()


@pytest.mark.parametrize("damage", ["cut", "removed"])
@pytest.mark.parametrize("document", ["meta", ".zarray"])
def test_stored_chunks_stay_stale_where_decoded_ones_were(document, damage, mount, tmp_path):
    """A reader that has the array open would take the stored bytes for decoded ones, whenever it reads."""
    array = tmp_path / "store" / "a"
    array.mkdir(parents=True)
    facts = {"shape": [4], "chunks": [2], "dtype": ">i4", "fill_value": 7, "order": "C"}
    facts |= {"meta": {"zarr_format": 1, "compression": "none", "compression_opts": None},
              ".zarray": {"zarr_format": 2, "compressor": None, "filters": None}}[document]
    (array / document).write_text(json.dumps(facts))
    if document == "meta":
        (array / "attrs").write_text("{}")
    (array / "0").write_bytes(np.array([1, 2], ">i4").tobytes())
    made = mount(tmp_path / "store", "--view", "chunks", "--ttl", "0.05")
    assert attempt(made.path / "a" / "0") == np.array([1, 2], "<i4").tobytes()
    text = (array / document).read_text()
    (array / document).unlink()
    if damage == "cut":
        (array / document).write_text(text[:40])
    expected = "EIO" if damage == "cut" else "ESTALE"
    # A removed array is stale for at least a second.
    for pause in (0, 1.5):
        time.sleep(pause)
        assert [attempt(made.path / "a" / name) for name in "01"] == [expected] * 2
    made.unmount()


def test_an_array_that_only_lost_its_chunks_has_fill_values(mount, tmp_path):
    make(tmp_path)
    with FaultServer(tmp_path) as server:
        made = mounted(mount, server, *ARGUMENTS)
        read(made)
        shutil.rmtree(stored(tmp_path, "plain/c"))
        assert outcomes(made, "plain") == {FILL, "ENOENT"}
        made.unmount()


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("kind", ["http", "s3"])
def test_a_document_is_looked_at_after_absent_chunks(kind, view, mount, tmp_path):
    """Once for all chunks of which the server told before."""
    count = 200
    make(tmp_path, sparse=count)
    with FaultServer(tmp_path, kind) as server:
        made = mounted(mount, server, *ARGUMENTS)
        read(made)
        absent = [made.path / view / "hole" / "c" / str(n) for n in range(2, count)]
        server.clear()
        assert {attempt(path) for path in absent} <= {FILL, "ENOENT"}
        looks = len(server.requests(key="hole/zarr.json"))
        # One for each of the first chunks, and for each page of a listing; this web server does not list.
        assert 1 <= looks <= {"s3": 6, "http": len(absent)}[kind]
        server.clear()
        assert {attempt(path) for path in absent} <= {FILL, "ENOENT"}
        assert not server.requests(), "absence is remembered"
        made.unmount()


def test_an_absent_chunk_whose_document_cannot_be_asked_for_is_an_error(mount, tmp_path):
    make(tmp_path)
    with FaultServer(tmp_path) as server:
        made = mounted(mount, server, *ARGUMENTS)
        read(made)
        server.rules({"fault": "status", "status": 403, "key": "*/hole/zarr.json"})
        assert outcomes(made, "hole") == {"EACCES"}
        server.rules()
        assert outcomes(made, "hole") == {FILL, "ENOENT"}
        made.unmount()
