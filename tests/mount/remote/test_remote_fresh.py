"""Objects that are replaced while they are read: a read is wholly old, wholly new, or ESTALE; never of two versions."""
import errno
import os
import shutil
import threading
import time

import pytest
import zarr

from support import mounting, remote_samples
from support.remote_fault_server import FaultServer
from support.remote_samples import attempt, mounted

READERS = 8
# The lengths of the array and of an inner chunk. One array has one shard of 8 inner chunks, which are requested one by one; another has one chunk.
LENGTH, INNER = 1 << 16, 1 << 13
VERSIONS = 4


@pytest.fixture(scope="module")
def versions(tmp_path_factory):
    """Objects of each version, by name."""
    folder = tmp_path_factory.mktemp("versions")
    found = {}
    for version in range(VERSIONS):
        write(folder / str(version), version)
        for name in ("shard", "chunk"):
            found[name, version] = (folder / str(version) / remote_samples.BUCKET / "z" / name / "c" / "0").read_bytes()
    return found


def write(root, version):
    group = zarr.create_group(str(root / remote_samples.BUCKET / "z"), zarr_format=3)
    for name in ("shard", "chunk"):
        more = {"chunks": (INNER,), "shards": (LENGTH,)} if name == "shard" else {"chunks": (LENGTH,)}
        array = group.create_array(name, shape=(LENGTH,), dtype="<u4", compressors=None, **more)
        array[...] = remote_samples.values(LENGTH, version)
    zarr.consolidate_metadata(str(root / remote_samples.BUCKET / "z"), zarr_format=3)


class Writer(threading.Thread):
    """Puts one version after the other in the place of the object."""

    def __init__(self, root, name, versions, count):
        super().__init__(daemon=True)
        self.path, self.name_of, self.versions, self.count = root / remote_samples.BUCKET / "z" / name / "c" / "0", name, versions, count
        self.ended = False

    def run(self):
        for number in range(1, self.count + 1):
            fresh = self.path.with_name("fresh")
            fresh.write_bytes(self.versions[self.name_of, number % VERSIONS])
            os.replace(fresh, self.path)
            time.sleep(0.01)
        self.ended = True


CASES = [("chunks/shard/c/3", "shard"), ("arrays/shard.raw", "shard"), ("chunks/chunk/c/0", "chunk"), ("arrays/chunk.raw", "chunk"),
         ("keys/chunk/c/0", "chunk")]


def part_of(path, version):
    whole = remote_samples.values(LENGTH, version)
    return (whole[3 * INNER:4 * INNER] if path.startswith("chunks/shard") else whole).tobytes()


def replaced(mount, root, kind, path, name, versions, count, rules=()):
    wrong, seen = [], []
    right = {part_of(path, version): version for version in range(VERSIONS)}
    with FaultServer(root, kind) as server:
        made = mounted(mount, server, "--view", "chunks,arrays,keys", "--files", "raw", "--ttl", "0.05", "--readahead", "0")
        server.rules(*rules)
        writer = Writer(root, name, versions, count)

        def read():
            while not writer.ended:
                found = attempt(made.path / path)
                (seen if found == "ESTALE" or found in right else wrong).append(right.get(found, found))

        readers = [threading.Thread(target=read, daemon=True) for _ in range(READERS)]
        for thread in (*readers, writer):
            thread.start()
        for thread in (writer, *readers):
            thread.join(mounting.PATIENCE)
            assert not thread.is_alive(), "a reader hangs"
        described = [w if isinstance(w, str) else f"{len(w)} bytes of {versions_in(w, path)}" for w in wrong[:5]]
        assert not wrong, f"{len(wrong)} of {len(seen) + len(wrong)}: {described}\n{made.log_text()[-2000:]}"
        assert len({s for s in seen if s != "ESTALE"}) > 1, "no version was seen to follow another"
        # A change that stays is seen.
        server.rules()
        mounting.until(lambda: attempt(made.path / path) == part_of(path, count % VERSIONS), "the last version")
        made.unmount()


def versions_in(data, path):
    """Which versions the parts of some bytes are of."""
    rights = [part_of(path, version) for version in range(VERSIONS)]
    return sorted({v for i in range(0, len(data), 4096) for v, right in enumerate(rights) if data[i:i + 4096] == right[i:i + 4096]})


@pytest.fixture
def root(tmp_path):
    write(tmp_path / "root", 0)
    return tmp_path / "root"


@pytest.mark.parametrize("path, name", CASES)
@pytest.mark.parametrize("kind", ["http", "s3"])
def test_objects_that_are_replaced_under_readers(kind, path, name, root, versions, mount):
    replaced(mount, root, kind, path, name, versions, 150)


@pytest.mark.parametrize("path, name", CASES[:2])
def test_a_server_that_ignores_conditions(path, name, root, versions, mount):
    replaced(mount, root, "s3", path, name, versions, 150, [{"fault": "unconditional"}])


def test_a_server_that_answers_with_old_versions_now_and_then(root, versions, mount):
    """Some servers are several machines, and one of them may still answer with an old version from its cache."""
    with FaultServer(root, "s3") as server:
        made = mounted(mount, server, "--view", "chunks,arrays", "--files", "raw", "--ttl", "0", "--readahead", "0")
        server.snapshot()
        path = root / remote_samples.BUCKET / "z" / "shard" / "c" / "0"
        fresh = path.with_name("fresh")
        fresh.write_bytes(versions["shard", 1])
        os.replace(fresh, path)
        server.rules({"fault": "stale", "key": "*/c/0", "probability": 0.5}, seed=5)
        allowed = {remote_samples.values(LENGTH, version).tobytes() for version in (0, 1)} | {"ESTALE"}
        for _ in range(50):
            assert attempt(made.path / "arrays" / "shard.raw") in allowed
        assert server.hits()[0] > 0
        made.unmount()


@pytest.mark.heavy
@pytest.mark.parametrize("path, name", CASES[:2])
def test_ten_thousand_versions(path, name, root, versions, mount, monkeypatch):
    monkeypatch.setattr(mounting, "PATIENCE", 600)
    replaced(mount, root, "s3", path, name, versions, 10_000)


@pytest.mark.parametrize("kind", ["http", "s3"])
def test_a_store_that_never_changes_is_asked_once(kind, root, mount):
    with FaultServer(root, kind) as server:
        made = mounted(mount, server, "--view", "chunks,arrays,keys", "--files", "raw", "--immutable")
        paths = ["chunks/shard/c/3", "chunks/zarr.json", "chunks/none", "keys/chunk/c/0", "keys/chunk/zarr.json", "arrays/shard.raw"]
        os.listdir(made.path / "chunks")
        first = [attempt(made.path / path) for path in paths]
        time.sleep(1.5)
        server.clear()
        os.listdir(made.path / "chunks")
        assert [attempt(made.path / path) for path in paths] == first
        found = [(r["method"], r["key"]) for r in server.requests()]
        # The bytes of a key are in no cache but the kernel's.
        assert not [r for r in found if r != ("GET", "bucket/z/chunk/c/0")], found
        made.unmount()


def test_documents_that_are_replaced(root, mount, tmp_path):
    """A new shape is seen after the time to live, when the array is opened anew."""
    with FaultServer(root, "s3") as server:
        made = mounted(mount, server, "--view", "arrays", "--files", "raw", "--ttl", "1")
        assert os.stat(made.path / "chunk.raw").st_size == 4 * LENGTH
        group = zarr.open_group(str(root / remote_samples.BUCKET / "z"), mode="a", use_consolidated=False)
        group["chunk"].resize((LENGTH // 2,))
        zarr.consolidate_metadata(str(root / remote_samples.BUCKET / "z"), zarr_format=3)
        mounting.until(lambda: os.stat(made.path / "chunk.raw").st_size == 2 * LENGTH, "the new shape")
        made.unmount()


@pytest.mark.parametrize("seconds", [0, -600, 600])
def test_later_chunks_are_distinguished_whatever_the_clock_of_the_server_shows(mount, tmp_path, seconds):
    count = 16
    folder = tmp_path / remote_samples.BUCKET / "z"
    array = zarr.create_array(str(folder), shape=(count * LENGTH,), chunks=(LENGTH,), dtype="<u4", compressors=None)
    old, new = (remote_samples.values(count * LENGTH, version) for version in range(2))
    array[...] = old
    hour_ago = time.time() - 3600
    for n in range(count):
        os.utime(folder / "c" / str(n), (hour_ago, hour_ago))
    with FaultServer(tmp_path) as server:
        server.rules({"fault": "clock", "seconds": seconds})
        made = mounted(mount, server, "--view", "arrays", "--files", "raw", "--readahead", "0")
        fd = os.open(made.path / "z.raw", os.O_RDONLY)
        try:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
            assert os.pread(fd, 4096, 0) == old[:1024].tobytes()
            time.sleep(1.5)
            for n in range(count):
                fresh = tmp_path / "fresh"
                fresh.write_bytes(new[n * LENGTH:(n + 1) * LENGTH].tobytes())
                os.replace(fresh, folder / "c" / str(n))
            # The first chunk was read before, so the last one would be of another version.
            with pytest.raises(OSError) as error:
                os.pread(fd, 4096, (count - 1) * LENGTH * 4)
            assert error.value.errno == errno.ESTALE
        finally:
            os.close(fd)
        assert attempt(made.path / "z.raw") == new.tobytes()


CHUNKS, CHUNK = 64, 256  # elements of 4 bytes


def published(root, version, seconds):
    """An array of many chunks, published as by `rsync -a`, which keeps the times of the files: they were changed `seconds` ago."""
    array = zarr.create_array(str(root / remote_samples.BUCKET / "z"), shape=(CHUNKS * CHUNK,), chunks=(CHUNK,), dtype="<u4",
                              compressors=None, overwrite=True)
    array[...] = remote_samples.values(CHUNKS * CHUNK, version) | 1
    times = time.time() - seconds
    for path, _, names in os.walk(root):
        for file in names:
            os.utime(os.path.join(path, file), (times, times))
    return (remote_samples.values(CHUNKS * CHUNK, version) | 1).tobytes()


def in_parts(path, size=4096):
    """The bytes of a file, by one handle and in short reads, or the name of the error."""
    try:
        with open(path, "rb", buffering=0) as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
            return b"".join(os.pread(file.fileno(), size, offset) for offset in range(0, os.fstat(file.fileno()).st_size, size))
    except OSError as error:
        return errno.errorcode[error.errno]


WAYS = {"all": (), "tags": ({"fault": "no_last_modified"},), "dates": ({"fault": "no_etag"},)}


@pytest.mark.parametrize("way", WAYS)
def test_a_store_that_is_replaced_between_two_requests_of_a_reader(way, mount, tmp_path):
    """The later files have earlier times than the first ones. They are distinguished by whatever attribute shows the versions of this server."""
    seen = set()
    for after, ttl in ((3, "60"), (20, "1"), (50, "60")):
        root = tmp_path / str(after)
        old = published(root, 0, 3600)
        with FaultServer(root) as server:
            made = mounted(mount, server, "--view", "arrays", "--files", "raw", "--ttl", ttl, "--readahead", "0", "--threads", "2")
            os.stat(made.path / "z.raw")
            server.snapshot()
            new = published(root, 1, 7200)
            server.rules({"fault": "stale", "count": after}, *WAYS[way])
            found = in_parts(made.path / "z.raw")
            assert found in (old, new, "ESTALE"), (after, len(found))
            seen.add(found if found == "ESTALE" else found == old)
            # A version that stays is read.
            mounting.until(lambda made=made: in_parts(made.path / "z.raw") == new, "the new store")
            made.unmount()
    assert "ESTALE" in seen


@pytest.mark.parametrize("ttl, what", [("1", ""), ("60", "c")])
def test_objects_that_are_removed_from_under_an_open_file_are_no_fill_value(ttl, what, mount, tmp_path):
    old = published(tmp_path, 0, 3600)
    with FaultServer(tmp_path) as server:
        made = mounted(mount, server, "--view", "arrays", "--files", "raw", "--ttl", ttl, "--readahead", "0")
        with open(made.path / "z.raw", "rb", buffering=0) as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
            assert os.pread(file.fileno(), 4096, 0) == old[:4096]
            shutil.rmtree(tmp_path / remote_samples.BUCKET / "z" / what)
            with pytest.raises(OSError) as error:
                os.pread(file.fileno(), 4096, len(old) // 2)
            assert error.value.errno == errno.ESTALE
        made.unmount()


def test_a_server_that_sends_no_versions(mount, tmp_path):
    """One object can be read. For several objects, nothing proves that they are of one moment; the log says so. With --immutable they can be read."""
    old = published(tmp_path, 0, 3600)
    rules = [{"fault": "no_etag", "key": "*/c/*"}, {"fault": "no_last_modified", "key": "*/c/*"}]
    args = ("--view", "arrays", "--files", "raw", "--readahead", "0")
    with FaultServer(tmp_path) as server:
        server.rules(*rules)
        made = mounted(mount, server, *args)
        assert attempt(made.path / "z.raw", 0, 64) in (old[:64], "ESTALE")
        assert in_parts(made.path / "z.raw") == "ESTALE"
        mounting.until(lambda: "neither an ETag nor a time" in made.log_text(), "the line in the log")
        made.unmount()
        made = mounted(mount, server, *args, "--immutable")
        assert in_parts(made.path / "z.raw") == old
        made.unmount()


@pytest.mark.parametrize("kind", ["http", "s3"])
def test_an_empty_object_of_which_the_server_invents_a_range(kind, tmp_path, mount):
    """fake-gcs-server answers `bytes 0--1/0`, although the right answer is 416."""
    write(tmp_path, 0)
    (tmp_path / remote_samples.BUCKET / "z" / "nothing").write_bytes(b"")
    with FaultServer(tmp_path, kind) as server:
        made = mounted(mount, server, "--view", "keys", "--ttl", "0", "--timeout", "5")
        server.rules({"fault": "content_range", "key": "*nothing", "value": "bytes 0--1/0"})
        assert (made.path / "nothing").read_bytes() == b""


@pytest.mark.parametrize("kind", ["http", "s3"])
def test_the_same_bytes_put_once_more_are_no_error(kind, root, mount):
    """If the tag depends only on the bytes, only the time of the object changes. A reader may get ESTALE once."""
    chunk = root / remote_samples.BUCKET / "z" / "chunk" / "c" / "0"
    with FaultServer(root, kind) as server:
        made = mounted(mount, server, "--view", "keys", "--readahead", "0")
        path, right = made.path / "chunk" / "c" / "0", chunk.read_bytes()
        for number in range(1, 4):
            later = path.stat().st_mtime + 100 * number
            os.utime(chunk, (later, later))
            found = attempt(path)
            assert found in (right, "ESTALE"), found if isinstance(found, str) else len(found)
            assert found == right or attempt(path) == right


@pytest.mark.long
def test_a_new_document_is_opened_after_lookups_that_last(root, mount):
    """The kernel drops the old names of chunks after the lookups in their directory. A program that opens the document waits for them."""
    with FaultServer(root, "s3") as server:
        made = mounted(mount, server, "--view", "keys", "--ttl", "0.05")
        array = made.path / "chunk"
        old = (array / "zarr.json").read_bytes()
        new = old.replace(b'"attributes": {}', b'"attributes": {"version": 2}')
        assert new != old
        (root / remote_samples.BUCKET / "z" / "chunk" / "zarr.json").write_bytes(new)
        server.clear()
        server.rules({"fault": "hold", "key": "*/chunk/slow*"})
        found = {}
        lookup = threading.Thread(target=lambda: found.update(lookup=attempt(array / "slow")))
        lookup.start()
        mounting.until(lambda: any("/chunk/slow" in request["key"] for request in server.requests()), "the lookup")
        # The old version is read for `--ttl`.
        mounting.until(lambda: os.stat(array / "zarr.json").st_size == len(new), "the new document")
        document = threading.Thread(target=lambda: found.update(document=attempt(array / "zarr.json")))
        document.start()
        document.join(12)
        early = dict(found)
        server.rules()
        document.join()
        lookup.join()
        assert not early
        assert found == {"document": new, "lookup": "ENOENT"}
        made.unmount()
