"""Arrays that are removed while a reader has them open: an error comes before absence, which the reader would take for fill values."""
import shutil

import pytest

import remote_samples
from remote_fault_server import FaultServer
from remote_samples import attempt, mounted

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
