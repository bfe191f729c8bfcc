"""Virtual chunks of Icechunk repositories, which are ranges of files elsewhere: what they have, and which of them are not read."""
import errno
import os
import time

import numcodecs
import numpy as np
import pytest

from support import icechunk_repositories as repositories
from support import mounting
from support.icechunk_writer import Array, Inline, Native, Repository, Virtual, bytes_of

DATA = np.arange(24, dtype="<i4").reshape(4, 6)
CHUNK = 24  # bytes


def chunk(i, j):
    return np.ascontiguousarray(DATA[2 * i:2 * i + 2, 3 * j:3 * j + 3]).tobytes()


@pytest.fixture
def folder(tmp_path):
    """The repository is `repo`. The chunks of an array are behind 100 bytes of files in `repo/data` and `other`."""
    for name in ("repo/data", "other"):
        (tmp_path / name).mkdir(parents=True)
        for i in range(2):
            (tmp_path / name / f"row {i}.bin").write_bytes(b"x" * 100 + chunk(i, 0) + chunk(i, 1))
    os.chmod(tmp_path, 0o755)
    return tmp_path


def virtual(location, j=0, **more):
    return Virtual(location, 100 + CHUNK * j, CHUNK, **more)


def whole(location):
    """The array, of which `location` has the rows."""
    return Array(DATA.shape, (2, 3), "int32", {(i, j): virtual(location.format(i=i), j) for i in range(2) for j in range(2)})


def single(**chunks):
    """Arrays of one chunk."""
    return {name: Array((6,), (6,), "int32", {(0,): chunk}) for name, chunk in chunks.items()}


def fails(path, code=errno.EACCES):
    with pytest.raises(OSError) as failed:
        path.read_bytes()
    assert failed.value.errno == code, failed.value


@pytest.mark.parametrize("spec", [1, 2])
def test_values(folder, mount, spec):
    repository = Repository(folder / "repo", spec)
    mixed = {(0, 0): Inline(chunk(0, 0)), (0, 1): Native(chunk(0, 1)), (1, 0): virtual(f"file://{folder}/repo/data/row%201.bin")}
    repository.commit({"x": whole(f"file://{folder}/repo/data/row%20{{i}}.bin"), "g/mixed": Array(DATA.shape, (2, 3), "int32", mixed)})
    root = mount(repository.folder, "--view", "arrays,chunks,keys").path
    assert (np.load(root / "arrays/x.npy") == DATA).all()
    expected = DATA.copy()
    expected[2:, 3:] = 0
    assert (np.load(root / "arrays/g/mixed.npy") == expected).all()
    for view in ("keys", "chunks"):
        for i in range(2):
            assert sorted(os.listdir(root / view / "x/c" / str(i))) == ["0", "1"]
            for j in range(2):
                path = root / view / f"x/c/{i}/{j}"
                assert path.read_bytes() == chunk(i, j) and path.stat().st_size == CHUNK
    assert mounting.ok(mounting.BINARY, "--info", repository.folder).startswith("icechunk ")


def test_files_elsewhere_need_the_option(folder, mount):
    repository, other = Repository(folder / "repo"), folder / "other"
    os.symlink("/etc/passwd", other / "link")
    repository.commit({"x": whole(f"file://{other}/row%20{{i}}.bin")} | single(
        link=Virtual(f"file://{other}/link", 0, CHUNK), passwd=Virtual("file:///etc/passwd", 0, CHUNK),
        up=virtual(f"file://{folder}/repo/../other/row%200.bin"), beside=virtual(f"file://{other}er/a")))
    refused = mount(repository.folder)
    for name in ("x/c/0/0", "passwd/c/0", "up/c/0"):
        fails(refused.path / name)
    assert sorted(os.listdir(refused.path / "x/c/0")) == ["0", "1"]
    log = refused.log_text()
    assert f"is to {other}/row 0.bin" in log and f"--allow-refs {other}" in log and "--allow-refs /etc" in log, log
    for prefix in (other, f"file://{other}/"):
        allowed = mount(repository.folder, "--allow-refs", "/nowhere", "--allow-refs", prefix)
        assert (allowed.path / "x/c/0/1").read_bytes() == chunk(0, 1)
        assert (allowed.path / "up/c/0").read_bytes() == chunk(0, 0)
        for name in ("link", "passwd", "beside"):
            fails(allowed.path / name / "c/0")
    info = mounting.ok(mounting.BINARY, "--info", repository.folder).splitlines()[0]
    assert info.startswith("virtual chunks that are not read without --allow-refs: ") and f"{other} (6)" in info and "/etc (1)" in info, info
    info = mounting.ok(mounting.BINARY, "--info", "--allow-refs", other, repository.folder).splitlines()[0]
    assert f"{other} (" not in info and "/etc (1)" in info, info


def test_locations_that_are_not_read(folder, mount):
    repository = Repository(folder / "repo")
    locations = {"relative": ("data/row 0.bin", "no URL"), "path": (f"{folder}/repo/data/row 0.bin", "no URL"), "ftp": ("ftp://h/a", "cannot be opened"),
                 "query": ("s3://b/a?versionId=hunter2", "a query"), "chain": ("zip::file:///a", "chains of URLs"), "above": ("s3://b/%2e%2e/a", "`..` segment"),
                 "user": ("https://me:hunter2@h/a", "a user or a password"), "host": ("file://h/a", "a file URL has no host"),
                 "unknown": ("vcc://x/a?sig=hunter2", "no virtual chunk container that is called x"), "root": ("file:///../../a", "above the root")}
    for name in ("ftp", "query"):  # compressed, without a dictionary
        location, told = locations.pop(name)
        locations[f"{name}_z"] = location, told
    repository.commit(single(**{
        name: virtual(location, compressed=numcodecs.Zstd().encode(location.encode()) if name.endswith("_z") else None)
        for name, (location, _) in locations.items()}))
    made = mount(repository.folder, "--allow-refs", "/", "--allow-refs", "s3://b/")
    for name in locations:
        assert (made.path / name / "c/0").stat().st_size == CHUNK
        fails(made.path / name / "c/0")
    log = made.log_text()
    for name, (_, told) in locations.items():
        (line,) = [line for line in log.splitlines() if f" {name}/c/0: " in line]
        assert told in line and "hunter2" not in line, line
    info = mounting.ok(mounting.BINARY, "--info", repository.folder)
    assert "vcc://x (1)" in info and "hunter2" not in info, info


def test_names_of_containers(folder, mount):
    arrays = {"x": whole("vcc://rows/row%20{i}.bin")} | single(up=virtual("vcc://rows/../other/row%200.bin"))
    repository = Repository(folder / "repo", containers={"rows": f"file://{folder}/repo/data/"})
    snapshot = repository.commit(arrays)
    made = mount(repository.folder, "--view", "arrays,keys", "--ttl", "0")
    assert (np.load(made.path / "arrays/x.npy") == DATA).all()
    fails(made.path / "keys/up/c/0")
    assert "leads out of its container" in made.log_text()
    # Another configuration puts the same chunks of the same snapshot elsewhere.
    changed = folder / "repo/changed"
    changed.mkdir()
    for i in range(2):
        (changed / f"row {i}.bin").write_bytes((folder / f"other/row {i}.bin").read_bytes()[:100] + bytes(CHUNK) + b"\1" * CHUNK)
    repository.containers["rows"] = f"file://{changed}"
    repository.show(snapshot)
    mounting.until(lambda: np.load(made.path / "arrays/x.npy").max() == 0x01010101, "the other files")
    assert (made.path / "keys/x/c/1/0").read_bytes() == bytes(CHUNK)
    at_snapshot = mount(f"{repository.folder}|icechunk:@{made.path.joinpath('.zarr-mount/snapshot').read_text().split()[-1]}")
    assert (at_snapshot.path / "x/c/1/0").read_bytes() == bytes(CHUNK)


def test_a_repository_of_icechunk_itself(folder, mount):
    """The locations in this repository are compressed with a dictionary, and name a container. The test replaces the configuration."""
    store = repositories.unpack(folder / "real", repositories.VIRTUAL)
    info = mounting.ok(mounting.BINARY, "--info", store)
    assert info.startswith("virtual chunks that are not read without --allow-refs: /nowhere/rows (1000)\n"), info
    made = mount(store)
    fails(made.path / "x/c/7/0")
    assert "the reference is to /nowhere/rows/row 007.bin" in made.log_text()
    rows = np.random.default_rng(8).integers(0, 255, (40, 25)).astype("u1")
    for number, row in enumerate(rows):
        (folder / "other" / f"row {number:03}.bin").write_bytes(b"x" * 7 + row.tobytes())
    repository = Repository(store, containers={"rows": f"file://{folder}/other/"})
    repository.snapshots = [bytes_of(path.name) for path in (store / "snapshots").iterdir()]
    repository.show(bytes_of(mounting.ok(mounting.BINARY, "--info", store).splitlines()[1].split()[-1]))
    made = mount(store, "--view", "arrays", "--allow-refs", folder / "other")
    assert (np.load(made.path / "x.npy") == rows).all()


# The configuration that icechunk 2.3 writes, without most of its part about the storage.
CONFIGURATION = """inline_chunk_threshold_bytes: null
storage:
  concurrency:
    max_concurrent_requests_for_object: 5
virtual_chunk_containers:
  {prefix}:
    name: rows
    url_prefix: {prefix}
    store: !local_file_system {path}
manifest: null
"""


def test_names_of_containers_in_version_1(folder, mount):
    """In version 1, the containers are in `config.yaml`, which is read once for each snapshot."""
    repository = Repository(folder / "repo", 1)
    arrays = {"x": whole("vcc://rows/row%20{i}.bin")} | single(other=virtual("vcc://others/a"))
    repository.commit(arrays)
    configuration, path = folder / "repo/config.yaml", f"{folder}/repo/data/"
    configuration.write_text(CONFIGURATION.format(prefix=f"file://{path}", path=path))
    made = mount(repository.folder, "--view", "arrays,keys", "--ttl", "0")
    assert (np.load(made.path / "arrays/x.npy") == DATA).all()
    fails(made.path / "keys/other/c/0")
    assert "no virtual chunk container that is called others" in made.log_text()
    # Another snapshot has another configuration, if that was changed.
    configuration.write_text(CONFIGURATION.format(prefix=f"file://{folder}/other/", path="/"))
    assert (made.path / "keys/x/c/0/1").read_bytes() == chunk(0, 1)
    repository.commit(arrays)
    mounting.until(lambda: readable(made.path / "keys/x/c/0/1") is None, "the next snapshot")
    assert f"--allow-refs {folder}/other" in made.log_text()
    configuration.write_text("[")
    damaged = mount(f"{repository.folder}|icechunk:@{made.path.joinpath('.zarr-mount/snapshot').read_text().split()[-1]}")
    fails(damaged.path / "x/c/0/1")
    assert "vcc://rows/row%200.bin: config.yaml: " in damaged.log_text()


def tag(path):
    """The ETag that the crate object_store gives a file."""
    found = path.stat()
    return f'"{found.st_ino:x}-{found.st_mtime_ns // 1000:x}-{found.st_size:x}"'


def test_a_file_that_was_changed_is_an_error(folder, mount):
    repository, data = Repository(folder / "repo"), folder / "repo/data"
    location = f"file://{data}/row%200.bin"
    path = data / "row 0.bin"
    old = path.read_bytes()
    os.utime(path, ns=(10 ** 18 + 1, 10 ** 18))
    checked = {"tag": {"etag": tag(path)}, "bare": {"etag": tag(path).strip('"')}, "time": {"modified": 10 ** 9}, "later": {"modified": 2 * 10 ** 9},
               "earlier": {"modified": 10 ** 9 - 1}, "other": {"etag": '"0-0-0"'}}
    repository.commit(single(**{name: virtual(location, **check) for name, check in checked.items()}))
    made = mount(repository.folder, "--ttl", "0")
    for name in ("tag", "bare", "time", "later"):
        assert (made.path / name / "c/0").read_bytes() == chunk(0, 0), name
    for name in ("earlier", "other"):
        fails(made.path / name / "c/0", errno.EIO)
    path.write_bytes(old.replace(chunk(0, 0), bytes(CHUNK)))
    for name in ("tag", "bare", "time"):
        mounting.until(lambda: not readable(made.path / name / "c/0"), "the change to be noticed")
        fails(made.path / name / "c/0", errno.EIO)
    assert (made.path / "later/c/0").read_bytes() == bytes(CHUNK)
    log = made.log_text()
    assert f"{path}: this is not the version that the reference was made for" in log, log


def readable(path):
    try:
        return path.read_bytes()
    except OSError:
        return None


def test_ranges_that_a_file_does_not_have_are_errors(folder, mount):
    repository, data = Repository(folder / "repo"), f"file://{folder}/repo/data"
    row = f"{data}/row%200.bin"
    repository.commit(single(
        missing=virtual(f"{data}/none.bin"), short=Virtual(row, 140, CHUNK), past=Virtual(row, 2 ** 62, CHUNK), long=Virtual(row, 0, 2 ** 62),
        directory=virtual(data), wraps=Virtual(row, 2 ** 64 - 1, CHUNK)))
    made = mount(repository.folder, "--view", "keys,chunks,arrays")
    for name in ("missing", "short", "past", "long", "directory", "wraps"):
        for view in ("keys", "chunks"):
            with pytest.raises(OSError) as failed:
                (made.path / view / name / "c/0").read_bytes()
            assert failed.value.errno in (errno.EIO, errno.EFBIG), (view, name)
        with pytest.raises(OSError):
            (made.path / "arrays" / f"{name}.npy").read_bytes()
    log = made.log_text()
    assert f"{folder}/repo/data/none.bin: the target of a reference is missing" in log and "which has 148" in log, log


def test_an_open_chunk_stays_with_its_file(folder, mount):
    repository, path = Repository(folder / "repo"), folder / "repo/data/row 0.bin"
    repository.commit(single(x=virtual(f"file://{folder}/repo/data/row%200.bin")))
    time.sleep(0.05)
    made = mount(repository.folder, "--ttl", "0")
    with open(made.path / "x/c/0", "rb", buffering=0) as opened:
        path.write_bytes(bytes(200))
        with pytest.raises(OSError) as failed:
            os.pread(opened.fileno(), CHUNK, 0)
        assert failed.value.errno == errno.ESTALE
    assert (made.path / "x/c/0").read_bytes() == bytes(CHUNK)


@pytest.mark.root
def test_other_users_read_what_they_may_reach(folder, mount):
    repository, other = Repository(folder / "repo"), folder / "other"
    os.chmod(folder / "repo/data/row 1.bin", 0o600)
    repository.commit({"x": whole(f"file://{folder}/repo/data/row%20{{i}}.bin")} | single(
        open=virtual(f"file://{other}/row%200.bin"), closed=virtual(f"file://{folder}/other/row%201.bin")))
    for name in (folder, *folder.parents):
        os.chmod(name, name.stat().st_mode | 0o011)
    os.chmod(other / "row 1.bin", 0o640)
    made = mount(repository.folder, "--allow-refs", other, "-o", "allow_other", "--view", "keys,arrays")
    names = ("open/c/0", "closed/c/0", "x/c/0/0", "x/c/1/0")
    modes = lambda: [os.stat(made.path / "keys" / name).st_mode & 0o777 for name in names]
    assert modes() == [0o444, 0o440, 0o444, 0o400]
    as_nobody = lambda name: mounting.run("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "cat", made.path / name).returncode
    assert as_nobody("keys/open/c/0") == 0
    for name in ("keys/closed/c/0", "keys/x/c/1/0", "arrays/x.npy"):
        assert as_nobody(name) != 0, name
    os.chmod(other, 0o700)
    again = mount(repository.folder, "--allow-refs", other, "-o", "allow_other")
    assert os.stat(again.path / "open/c/0").st_mode & 0o777 == 0o400
