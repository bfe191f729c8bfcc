"""How many requests a server gets, and how many one after the other: what a reader waits for is round trips.

Each answer is late, so that requests that are sent at once overlap, and those that wait for others do not.
"""
import os
import threading
import time
import zipfile

import numpy as np
import pytest
import zarr

from support import mounting, remote_samples, remote_servers
from support.remote_fault_server import FaultServer
from support.remote_samples import attempt, chunk, mounted

BOTH = pytest.mark.parametrize("kind", ["http", "s3"])
LATE = {"fault": "latency", "seconds": 0.1}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("root")
    remote_samples.write(folder, "z", consolidate=True)
    remote_samples.write(folder, "bare")
    remote_samples.write(folder, "v2", consolidate=True, zarr_format=2)
    remote_samples.write(folder, "bare2", zarr_format=2)
    group = zarr.create_group(str(folder / remote_samples.BUCKET / "many"), zarr_format=3)
    array = group.create_array("a", shape=(2500 * 16,), chunks=(16,), dtype="<u4", compressors=None)
    array[...] = remote_samples.values(2500 * 16)
    group.create_array("sparse", shape=(1000,), chunks=(1,), dtype="<u4", compressors=None, fill_value=7)
    zarr.consolidate_metadata(str(folder / remote_samples.BUCKET / "many"), zarr_format=3)
    with zipfile.ZipFile(folder / remote_samples.BUCKET / "z.zip", "w") as packed:
        # The large array is the last one, so that no other chunk comes with the directory, which is at the end of the file.
        for path, _, names in sorted(os.walk(folder / remote_samples.BUCKET / "z"), reverse=True):
            for name in sorted(names):
                file = os.path.join(path, name)
                packed.write(file, os.path.relpath(file, folder / remote_samples.BUCKET / "z"))
    remote_samples.age(folder)
    return folder


def rounds(requests):
    """The longest chain of requests of which each began when the one before had been answered."""
    count, end = 0, float("-inf")
    for request in sorted((r for r in requests if r["ended"]), key=lambda r: r["ended"]):
        if request["begun"] >= end:
            count, end = count + 1, request["ended"]
    return count


def told(requests):
    return [(r["method"], r["key"], r["range"], r["status"]) for r in requests]


class Asked:
    """The requests that a block of code causes: `with Asked(server) as asked`."""

    def __init__(self, server):
        self.server = server

    def __enter__(self):
        self.server.clear()
        return self

    def __exit__(self, kind, *_):
        self.requests = self.server.requests()
        self.told = told(self.requests)

    def __len__(self):
        return len(self.requests)

    @property
    def rounds(self):
        return rounds(self.requests)


@BOTH
def test_a_chunk_is_one_request_where_not_all_readers_could_hold_one(kind, mount, tmp_path):
    folder = tmp_path / remote_samples.BUCKET / "z"
    values = remote_samples.values(2 << 20)
    zarr.create_array(str(folder), shape=values.shape, chunks=(1 << 20,), dtype="<u4", compressors=None)[...] = values
    remote_samples.age(tmp_path)
    with FaultServer(tmp_path, kind) as server:
        made = mounted(mount, server, "--view", "chunks", "--immutable", "--cache-size", "64MiB")
        with Asked(server) as asked:
            assert (made.path / "c" / "1").read_bytes() == values[1 << 20:].tobytes()
        assert [r[0] for r in asked.told] == ["GET"], asked.told
        made.unmount()


@BOTH
def test_a_chunk_is_one_request_where_a_whole_array_does_not_fit_in_memory(kind, mount, tmp_path):
    """The whole array is read ahead, and no further than chunks have memory to be received in."""
    folder, count = tmp_path / remote_samples.BUCKET / "z", 48
    values = remote_samples.values(count << 18)
    zarr.create_array(str(folder), shape=values.shape, chunks=(1 << 18,), dtype="<u4", compressors=None)[...] = values
    remote_samples.age(tmp_path)
    with FaultServer(tmp_path, kind) as server:
        made = mounted(mount, server, "--view", "arrays", "--files", "raw", "--immutable", "--cache-size", "32MiB")
        server.rules(LATE)
        with Asked(server) as asked:
            assert (made.path / "z.raw").read_bytes() == values.tobytes()
        assert sorted(r[1] for r in asked.told if "/c/" in r[1]) == sorted(f"bucket/z/c/{n}" for n in range(count)), asked.told
        assert server.load()["most_in_flight"] > 4
        made.unmount()


@BOTH
@pytest.mark.parametrize("path", ["z", "bare", "v2", "bare2"])
def test_a_mount_is_one_round_trip(kind, path, root, mount):
    with FaultServer(root, kind) as server:
        server.rules(LATE)
        made = mounted(mount, server, "--view", "keys", path=path)
        found = server.requests()
        lists = [r for r in found if r["method"] in ("LIST", "PROPFIND")]
        # Not all web servers list names. The names of chunks cannot be found in another way, so the mount finds out at once whether this server lists them, and says so.
        expected = 1 if kind == "http" else 0
        assert len(lists) == expected and rounds(found) == 1 + expected, told(found)
        asked = [r["key"] for r in found if r not in lists]
        assert len(set(asked)) == len(asked), told(found)
        made.unmount()


@pytest.mark.parametrize("view", ["arrays", "chunks"])
@pytest.mark.parametrize("path", ["z", "v2"])
@BOTH
def test_the_first_listing_with_consolidated_metadata(kind, path, view, root, mount):
    with FaultServer(root, kind) as server:
        made = mounted(mount, server, "--view", view, path=path)
        with Asked(server) as asked:
            names = os.listdir(made.path)
        assert {"arrays": "plain.npy", "chunks": "plain"}[view] in names
        assert not asked.told
        made.unmount()


@pytest.mark.parametrize("path", ["z", "v2"])
def test_the_first_listing_of_keys_with_consolidated_metadata(path, root, mount):
    """Documents do not have all keys."""
    with FaultServer(root, "s3") as server:
        made = mounted(mount, server, "--view", "keys", path=path)
        with Asked(server) as asked:
            os.listdir(made.path)
        assert [r[0] for r in asked.told] == ["LIST"], asked.told
        made.unmount()


@pytest.mark.parametrize("path", ["bare", "bare2"])
@pytest.mark.parametrize("view", ["arrays", "chunks"])
def test_the_first_listing_without_it(path, view, root, mount):
    """The names, then all documents at once."""
    with FaultServer(root, "s3") as server:
        server.rules(LATE)
        made = mounted(mount, server, "--view", view, path=path)
        with Asked(server) as asked:
            os.listdir(made.path)
        # Only the files of the `arrays` view are made from documents.
        assert asked.rounds == {"arrays": 2, "chunks": 1}[view], asked.told
        assert [r[0] for r in asked.told].count("LIST") == 1 and asked.told[0][0] == "LIST", asked.told
        documents = asked.told[1:]
        assert len(documents) == len(set(documents)), documents
        made.unmount()


VIEWS = ("--view", "chunks,keys,arrays", "--files", "npy,raw")


def warm(made):
    """The documents of all arrays are known, and nothing of their chunks is."""
    for view in ("chunks", "arrays"):
        os.listdir(made.path / view)
    for name in ("plain", "hole", "small", "big", "first"):
        os.stat(made.path / "chunks" / name / "zarr.json")
        os.stat(made.path / "keys" / name / "zarr.json")


@pytest.fixture(params=["http", "s3"])
def warmed(request, root, mount):
    """(server, mount): a warm one."""
    with FaultServer(root, request.param) as server:
        made = mounted(mount, server, *VIEWS, "--readahead", "0")
        warm(made)
        yield server, made
        made.unmount()


def test_a_chunk_is_one_request(warmed):
    server, made = warmed
    with Asked(server) as asked:
        assert attempt(made.path / "chunks" / "plain" / "c" / "2") == chunk("plain", 2)
    assert but_for_looks(asked, server) == [("GET", "bucket/z/plain/c/2", None, 200)]
    with Asked(server) as asked:
        assert attempt(made.path / "chunks" / "plain" / "c" / "2") == chunk("plain", 2)
    assert not asked.told


def but_for_looks(asked, server, expected=1):
    """The requests, but for those for the document after a chunk of a web server came: here it is that of the group."""
    found = [r for r in asked.told if r[1] != "bucket/z/zarr.json"]
    assert len(asked.told) - len(found) == (expected if server.kind == "http" else 0), asked.told
    return found


def test_an_absent_chunk_is_one_request_and_a_look_at_the_document(warmed):
    """Here it is copied into the document of the group."""
    server, made = warmed
    for expected in ["bucket/z/hole/c/0", "bucket/z/zarr.json"], []:
        with Asked(server) as asked:
            assert attempt(made.path / "chunks" / "hole" / "c" / "0") == b"\7\0\0\0" * remote_samples.PLAIN_CHUNK
        assert [r[1] for r in asked.told] == expected, asked.told


def test_a_key_is_two_requests(warmed):
    """The first request gets the size of the object, and the second one its bytes."""
    server, made = warmed
    with Asked(server) as asked:
        assert attempt(made.path / "keys" / "plain" / "c" / "2") == chunk("plain", 2)
    assert [r[:2] for r in but_for_looks(asked, server)] == [("HEAD", "bucket/z/plain/c/2"), ("GET", "bucket/z/plain/c/2")]


def test_a_key_that_was_listed_is_one_request(root, mount):
    with FaultServer(root, "s3") as server:
        made = mounted(mount, server, *VIEWS, "--readahead", "0")
        warm(made)
        with Asked(server) as asked:
            assert len([os.stat(entry) for entry in os.scandir(made.path / "keys" / "plain" / "c")]) == 4
        assert [r[0] for r in asked.told] == ["LIST"], asked.told
        with Asked(server) as asked:
            assert attempt(made.path / "keys" / "plain" / "c" / "2") == chunk("plain", 2)
        assert [r[:2] for r in asked.told] == [("GET", "bucket/z/plain/c/2")], asked.told
        made.unmount()


def test_an_inner_chunk_is_two_requests_and_each_further_one_one(warmed):
    server, made = warmed
    with Asked(server) as asked:
        assert attempt(made.path / "chunks" / "big" / "c" / "2") == chunk("big", 2)
    assert [r[0] for r in but_for_looks(asked, server)] == ["GET", "GET"], asked.told
    index, data = [r for r in asked.requests if r["key"] != "bucket/z/zarr.json"]
    assert index["range"].startswith("bytes=-") and int(index["range"].removeprefix("bytes=-")) >= 8 * 16 + 4
    assert data["headers"]["if-match"] and data["bytes"] == len(chunk("big", 2))
    with Asked(server) as asked:
        assert attempt(made.path / "chunks" / "big" / "c" / "5") == chunk("big", 5)
    assert [(r["method"], r["bytes"], "if-match" in r["headers"]) for r in asked.requests] == [("GET", len(chunk("big", 5)), True)]


def test_an_index_at_the_start_is_two_requests(warmed):
    server, made = warmed
    with Asked(server) as asked:
        assert attempt(made.path / "chunks" / "first" / "c" / "2") == chunk("first", 2)
    assert [r[0] for r in but_for_looks(asked, server)] == ["GET", "GET"], asked.told
    assert asked.told[0][2].startswith("bytes=0-")


def test_a_small_shard_is_one_request(warmed):
    server, made = warmed
    with Asked(server) as asked:
        assert attempt(made.path / "chunks" / "small" / "c" / "1") == chunk("small", 1)
    assert [r[0] for r in but_for_looks(asked, server)] == ["GET"], asked.told
    with Asked(server) as asked:
        assert attempt(made.path / "chunks" / "small" / "c" / "0") == chunk("small", 0)
    assert not asked.told, asked.told


def looks(asked, server):
    """The requests by which the mount proves that several objects were in the store at one moment. On a web server, whose dates prove
    nothing, it requests each object once more, and the document that describes it."""
    found = [r for r in asked.requests if r["method"] == "HEAD" or r["status"] == 304]
    assert not found or server.kind == "http", asked.told
    return found


@pytest.mark.parametrize("name, expected", [("plain", 1), ("big", 2), ("first", 2), ("small", 1)])
def test_the_header_of_an_array_is_no_request_and_its_first_data_as_of_a_chunk(name, expected, warmed):
    server, made = warmed
    with Asked(server) as asked:
        file = os.open(made.path / "arrays" / f"{name}.npy", os.O_RDONLY)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)
        os.fstat(file)
    assert not asked.told
    try:
        with Asked(server) as asked:
            assert os.pread(file, 10, 128) == chunk(name, 0)[:10]
        assert len(asked) == expected + len(looks(asked, server)), asked.told
    finally:
        os.close(file)


def test_the_header_alone(root, mount):
    """A header that is longer than a page does not count as the store's: it comes with the first data."""
    with FaultServer(root, "s3") as server:
        made = mounted(mount, server, "--view", "arrays", "--files", "npy")
        with Asked(server) as asked:
            assert os.stat(made.path / "plain.npy").st_size == 128 + 4 * remote_samples.PLAIN
        assert not asked.told
        made.unmount()


@pytest.mark.parametrize("name", ["plain", "small", "big", "first"])
def test_a_whole_array_is_read_once(name, warmed):
    server, made = warmed
    count = {"plain": remote_samples.PLAIN, "small": remote_samples.SMALL}.get(name, remote_samples.BIG)
    with Asked(server) as asked:
        assert attempt(made.path / "arrays" / f"{name}.raw") == remote_samples.values(count).tobytes()
    proofs = looks(asked, server)
    objects = {r["key"] for r in asked.requests} - {"bucket/z/zarr.json"}
    assert {r["method"] for r in asked.requests if r not in proofs} == {"GET"}, asked.told
    # Each object and the document once, and those that are looked at ahead of their bytes once more.
    assert len(proofs) <= 2 * len(objects) + 2, asked.told
    # The indices, and the bytes that are read with them, are added.
    assert sum(r["bytes"] for r in asked.requests if r not in proofs) <= 1.1 * 4 * count + 2 * 32768, asked.told
    if name == "plain":
        assert sorted(r["key"] for r in asked.requests if r not in proofs) == [f"bucket/z/plain/c/{n}" for n in range(4)]


@pytest.mark.parametrize("count", [64, 640])
def test_a_web_server_is_asked_for_each_object_a_few_times(count, root, mount):
    """The number of requests grows in proportion to the objects that are read, also where each read has to prove that they are of one
    moment, and each is of other objects."""
    with FaultServer(root) as server:
        made = mounted(mount, server, "--view", "arrays", "--files", "raw", "--readahead", "0", path="many")
        os.stat(made.path / "a.raw")
        with Asked(server) as asked, open(made.path / "a.raw", "rb", buffering=0) as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
            step = 64 * 64
            found = [os.pread(file.fileno(), min(step, 64 * count - offset), offset) for offset in range(0, 64 * count, step)]
        assert b"".join(found) == remote_samples.values(2500 * 16).tobytes()[:64 * count]
        objects = [r for r in asked.requests if "/c/" in r["key"]]
        gets = [r for r in objects if r["method"] == "GET"]
        assert len(gets) == len({r["key"] for r in gets}) and count <= len(gets) <= count + 64, len(gets)
        # Once to prove it or ahead, and again in each of the checks that follow, before each of which much more is looked at ahead.
        assert len(objects) <= 5 * len(gets), (len(objects), len(gets))
        made.unmount()


def test_names_are_listed_by_pages_of_a_thousand(root, mount):
    with FaultServer(root, "s3") as server:
        made = mounted(mount, server, "--view", "keys", path="many")
        os.stat(made.path / "a" / "zarr.json")
        with Asked(server) as asked:
            sizes = {entry.name: entry.stat().st_size for entry in os.scandir(made.path / "a" / "c")}
        assert sizes == {str(n): 64 for n in range(2500)}
        assert [r[0] for r in asked.told] == ["LIST"] * 3, asked.told
        with Asked(server) as asked:
            assert all(os.stat(made.path / "a" / "c" / str(n)).st_size == 64 for n in range(0, 2500, 100))
        assert not asked.told, asked.told
        made.unmount()


def test_names_of_chunks_are_listed_by_pages_too(root, mount):
    """The names are computed, and the pages say which of them are stored, how long they are, and when they were written."""
    with FaultServer(root, "s3") as server:
        made = mounted(mount, server, "--view", "chunks", path="many")
        os.stat(made.path / "a" / "zarr.json")
        with Asked(server) as asked:
            assert len(os.listdir(made.path / "a" / "c")) == 2500
            assert os.stat(made.path / "a" / "c" / "1234").st_size == 64
        assert [r[0] for r in asked.told] == ["LIST"] * 3, asked.told
        made.unmount()


def test_many_absent_chunks_are_not_asked_for_one_by_one(root, mount):
    """After three absent chunks, the names are listed. They are listed a second time to prove that all chunks were absent at one moment."""
    with FaultServer(root, "s3") as server:
        made = mounted(mount, server, "--view", "arrays", "--files", "raw", "--readahead", "0", path="many")
        os.stat(made.path / "sparse.raw")
        with Asked(server) as asked:
            with open(made.path / "sparse.raw", "rb", buffering=0) as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
                for n in range(1000):
                    assert os.pread(file.fileno(), 4, 4 * n) == b"\7\0\0\0"
        # A page of the kernel holds all that is read together.
        assert [r["method"] for r in asked.requests].count("LIST") <= 2 and len(asked) <= 2 + 4096 // 4
        with Asked(server) as asked:
            made_again = [attempt(made.path / "sparse.raw")]
        assert made_again == [b"\7\0\0\0" * 1000] and not asked.told
        made.unmount()


def test_absent_chunks_one_after_the_other(root, mount):
    with FaultServer(root, "s3") as server:
        made = mounted(mount, server, "--view", "chunks", path="many")
        os.stat(made.path / "sparse" / "zarr.json")
        with Asked(server) as asked:
            for n in range(100):
                assert attempt(made.path / "sparse" / "c" / str(n)) == b"\7\0\0\0"
        chunks = [r for r in asked.told if r[1] != "bucket/many/zarr.json"]
        assert len(chunks) <= 4 and [r[0] for r in chunks].count("LIST") == 1, asked.told
        # One check for each chunk that was requested alone, and one for all chunks in the listing.
        assert len(asked.told) - len(chunks) <= 4, asked.told
        made.unmount()


def read_together(paths):
    found = {}
    threads = [threading.Thread(target=lambda i=i, p=p: found.update({i: attempt(p)}), daemon=True) for i, p in enumerate(paths)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(mounting.PATIENCE)
    return [found.get(i) for i in range(len(paths))]


def test_readers_of_the_same_chunk_share_one_request(warmed):
    server, made = warmed
    server.rules(LATE)
    with Asked(server) as asked:
        found = read_together([made.path / "chunks" / "plain" / "c" / "3"] * 16)
    assert found == [chunk("plain", 3)] * 16
    assert [r[:2] for r in but_for_looks(asked, server)] == [("GET", "bucket/z/plain/c/3")], asked.told


def test_sixty_four_readers_wait_for_one_round_trip(root, mount):
    rounds = []
    for _ in range(4):
        with FaultServer(root, "s3") as server:
            # The mount learns from its first requests how many this link carries.
            server.rules({"fault": "latency", "seconds": 0.5})
            made = mounted(mount, server, "--view", "chunks", path="many")
            os.stat(made.path / "a" / "zarr.json")
            with Asked(server) as asked:
                found = read_together([made.path / "a" / "c" / str(37 * n % 2500) for n in range(64)])
            made.unmount()
        assert all(isinstance(part, bytes) and len(part) == 64 for part in found)
        assert len(asked) >= 64, asked.told
        rounds.append((asked.rounds, len(asked)))
        if rounds[-1] == (1, 64):
            return
        # On a busy machine, a reader may begin after the first one has its answer, or an answer may be late.
    pytest.fail(f"rounds and requests: {rounds}")


def test_no_more_are_in_flight_than_allowed(root, mount):
    with FaultServer(root, "s3") as server:
        made = mounted(mount, server, "--view", "arrays", "--files", "raw", "--requests", "4", path="many")
        os.stat(made.path / "a.raw")
        server.rules({"fault": "latency", "seconds": 0.02})
        server.clear()
        assert attempt(made.path / "a.raw", 0, 64 * 200) == remote_samples.values(2500 * 16).tobytes()[:64 * 200]
        assert 2 <= server.load()["most_in_flight"] <= 4
        made.unmount()


def test_nothing_is_asked_within_the_time_to_live(warmed):
    server, made = warmed
    paths = [made.path / "chunks" / "plain" / "c" / "1", made.path / "keys" / "plain" / "zarr.json", made.path / "arrays" / "plain.raw"]
    first = [attempt(path) for path in paths]
    with Asked(server) as asked:
        assert [attempt(path) for path in paths] == first
        for view in ("chunks", "arrays"):
            os.listdir(made.path / view)
        assert attempt(made.path / "chunks" / "none") in ("ENOENT",)
        assert attempt(made.path / "chunks" / "none") == "ENOENT"
    # Once the daemon has to know whether the server lists names at all.
    others = [r for r in asked.requests if "none" not in r["key"] and "none" not in r["query"].get("prefix", "")]
    assert [r["method"] for r in others] in (["LIST"], ["PROPFIND"], []), asked.told
    with Asked(server) as asked:
        assert attempt(made.path / "chunks" / "none") == "ENOENT"
    assert not asked.told, "absence is not remembered"


@BOTH
def test_after_it_a_document_is_asked_for_by_its_version(kind, root, mount):
    with FaultServer(root, kind) as server:
        made = mounted(mount, server, "--view", "chunks", "--ttl", "1")
        assert attempt(made.path / "zarr.json")
        time.sleep(1.2)
        with Asked(server) as asked:
            assert attempt(made.path / "zarr.json")
        found = [r for r in asked.requests if r["key"].endswith("z/zarr.json")]
        assert [(r["method"], r["status"]) for r in found] == [("GET", 304)], asked.told
        made.unmount()


def test_a_zip_is_two_requests_and_one_for_each_entry(root, mount):
    for kind in ("http", "s3"):
        with FaultServer(root, kind) as server:
            made = mounted(mount, server, "--view", "chunks", path="z.zip")
            os.listdir(made.path)
            os.stat(made.path / "plain" / "zarr.json")
            of_directory = [r for r in server.requests() if r["key"].endswith("z.zip") and r["range"] and r["bytes"] > 1000]
            assert 1 <= len(of_directory) <= 2, told(of_directory)
            with Asked(server) as asked:
                assert attempt(made.path / "plain" / "c" / "2") == chunk("plain", 2)
            assert [(r["method"], r["key"]) for r in asked.requests] == [("GET", "bucket/z.zip")], asked.told
            assert asked.requests[0]["bytes"] <= len(chunk("plain", 2)) + 512
            made.unmount()


def test_the_statistics_are_those_of_the_server(warmed):
    server, made = warmed
    before = made.stats()["server"]
    with Asked(server) as asked:
        for n in range(4):
            attempt(made.path / "chunks" / "plain" / "c" / str(n))
            attempt(made.path / "keys" / "hole" / "c" / str(n))
    after = made.stats()["server"]
    counts = {name: after[name] - before[name] for name in ("gets", "heads", "lists")}
    methods = [r[0] for r in asked.told]
    assert counts == {"gets": methods.count("GET"), "heads": methods.count("HEAD"), "lists": methods.count("LIST") + methods.count("PROPFIND")}
    assert after["received_bytes"] - before["received_bytes"] >= 4 * len(chunk("plain", 0))
    assert after["in_flight"] == 0 and after["first_byte_p50_us"] > 0


def test_values(root):
    """The samples are what the tests say that they are."""
    stored = zarr.open_array(str(root / remote_samples.BUCKET / "z" / "first"), mode="r")
    assert np.array_equal(stored[...], remote_samples.values(remote_samples.BIG))


@pytest.mark.parametrize("arguments", [("--view", "arrays"), ("--view", "chunks", "--as", "v2"), ("--view", "keys,chunks")], ids=" ".join)
@BOTH
def test_the_files_of_the_daemon_ask_for_nothing(kind, arguments, root, mount):
    """The files show whether a server answers, and zarr-mount --unmount reads them."""
    with FaultServer(root, kind) as server:
        made = mounted(mount, server, *arguments, "--ttl", "0")
        os.listdir(made.path)
        with Asked(server) as asked:
            for _ in range(2):
                assert made.path.is_dir() and (made.path / ".zarr-mount" / "stats.json").read_bytes()
        assert not asked.told
        made.unmount()
