"""Icechunk repositories: each branch, tag and snapshot, in all views, and a branch that moves while it is read."""
import errno
import json
import os
import shutil
import threading

import numpy as np
import pytest
import zarr

from support import icechunk_repositories as repositories
from support.icechunk_writer import SNAPSHOT, Number, Numbers, Repeated, Repository, Structure, Table, spelled
from support.mounting import BINARY, ok, run, until

VIEWS = ("--view", "arrays,chunks,keys")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return repositories.unpack(tmp_path_factory.mktemp("icechunk"))


@pytest.fixture(scope="module")
def expected(folder):
    return repositories.expected(folder)


def nodes(root):
    """The arrays below a directory of the keys or chunks view."""
    found = set()
    for base, _, names in os.walk(root):
        if "zarr.json" in names and '"array"' in open(os.path.join(base, "zarr.json"), encoding="utf-8").read():
            found.add(os.path.relpath(base, root))
    return found


def check(path, arrays):
    """Checks that a mount of all views shows these arrays with their values, and no others."""
    for view in ("keys", "chunks"):
        assert nodes(path / view) == set(arrays)
    for name, values in arrays.items():
        shown = np.load(path / "arrays" / f"{name}.npy")
        assert shown.dtype == values.dtype and np.array_equal(shown, values), name
        for view in ("keys", "chunks"):
            read = zarr.open_array(path / view / name, mode="r")[...]
            assert np.array_equal(read, values), (view, name)


@pytest.mark.parametrize("reference", ["branch.main", "branch.dev", "tag.T1"])
@pytest.mark.parametrize("name", repositories.NAMES)
def test_every_branch_and_tag(mount, folder, expected, name, reference):
    made = mount(f"{folder}/{name}|icechunk:@{reference}", *VIEWS)
    assert made.said == ""
    check(made.path, expected[name, reference])
    spec = name[-1]
    kind, title = reference.split(".")
    said = (made.path / ".zarr-mount" / "snapshot").read_text()
    assert said.startswith(f"icechunk (specification {spec}), {kind} {title}, snapshot ")
    assert ok(BINARY, "--info", made.store).splitlines()[0] == said.strip()
    first, *others = json.loads(ok(BINARY, "--info", "--json", made.store))
    assert first["snapshot"] == said.strip() and not any("snapshot" in other for other in others)


@pytest.mark.parametrize("name", repositories.NAMES)
def test_a_repository_is_its_main_branch(mount, folder, expected, name):
    made = mount(folder / name, *VIEWS)
    check(made.path, expected[name, "branch.main"])
    # Absent chunks are not listed. The chunks of an array with several manifests are all listed.
    assert sorted(os.listdir(made.path / "keys/sparse/c")) == ["1"]
    rows = sorted(os.listdir(made.path / "keys/split/c"), key=int)
    assert rows == [str(row) for row in range(12)]
    assert sorted(os.listdir(made.path / "keys/split/c/11")) == list("01234")
    assert sorted(os.listdir(made.path / "keys/scalar")) == ["c", "zarr.json"]
    for absent in ("small", "small/zarr.json", "split/c/12", "split/c/00", "split/c/0/0/0", "sparse/c/0", "c", "zarr.json/c"):
        assert not os.path.lexists(made.path / "keys" / absent), absent


@pytest.mark.parametrize("name", repositories.NAMES)
def test_a_snapshot_and_a_node_of_it(mount, folder, expected, name):
    (snapshot,) = [reference for store, reference in expected if store == name and "." not in reference]
    made = mount(f"{folder}/{name}|icechunk:@{snapshot.lower()}/a", *VIEWS)
    assert np.array_equal(np.load(made.path / "arrays/b.npy"), expected[name, "tag.T1"]["a/b"])
    assert snapshot in (made.path / ".zarr-mount/snapshot").read_text()


@pytest.mark.parametrize("name", repositories.NAMES)
def test_names_that_a_repository_does_not_have(folder, tmp_path, name):
    for text, told in (
        ("@branch.mian", "has no branch mian; its branches are dev, main; its tags are T1"),
        ("@tag.gone", "has no tag gone; its branches are dev, main; its tags are T1"),
        ("@ZZZZZZZZZZZZZZZZZZZ0", "has no snapshot ZZZZZZZZZZZZZZZZZZZ0"),
        ("@main", "@main names no snapshot; write @branch.NAME"),
        ("@branch.main/nothing", "the branch main has no node nothing"),
    ):
        done = run(BINARY, f"{folder}/{name}|icechunk:{text}", tmp_path)
        assert done.returncode == 1 and told in done.stderr, done.stderr
    done = run(BINARY, f"{tmp_path}|icechunk:", tmp_path)
    assert done.returncode == 1 and "no Icechunk repository" in done.stderr


def test_a_repository_is_not_written(folder, tmp_path):
    for store in (folder / "ice2", f"{folder}/ice2|icechunk:"):
        done = run(BINARY, "--rw", store, tmp_path)
        assert done.returncode in (1, 2) and len(done.stderr.splitlines()) <= 3, done.stderr
        assert "Icechunk repository is only read" in done.stderr or "only a directory can be written to" in done.stderr


def test_files_that_are_missing_or_damaged_are_errors(mount, folder, tmp_path):
    for name in repositories.NAMES:
        store = tmp_path / name
        shutil.copytree(folder / name, store)
        made = mount(store, "--view", "keys", "--ttl", "0")
        for path in (store / "chunks").iterdir():
            path.rename(path.with_suffix(".away"))
        with pytest.raises(OSError) as caught:
            (made.path / "sharded/c/0/0").read_bytes()
        assert caught.value.errno == errno.EIO
        assert "its file chunks/" in made.log_text() and "is missing" in made.log_text()
        made.unmount()
        for path in sorted((store / "snapshots").iterdir()):
            path.write_bytes(path.read_bytes()[:-9])
        done = run(BINARY, "--info", store)
        assert done.returncode == 1 and "snapshots/" in done.stderr and "zstd: " in done.stderr, done.stderr


def test_parts_that_are_one_are_not_counted_many_times(tmp_path):
    repository = Repository(tmp_path)
    snapshot = repository.commit({})
    node = Table({0: Structure(b"01234567"), 1: "/", 2: b"{}", 3: Number("B", 2), 4: Table({})})
    nodes = Table({0: Structure(snapshot), 2: Repeated(node, 100_000), 3: Number("Q", 1), 4: "", 5: [], 6: Numbers("12sIQI", [])})
    repository.replace(f"snapshots/{spelled(snapshot)}", repository.framed(SNAPSHOT, nodes))
    done = run(BINARY, "--info", tmp_path)
    assert done.returncode == 1 and "100000 nodes in 400" in done.stderr, done.stderr


def states(store):
    """The name of the file that says which snapshot `main` is, and its content in each state of the repository."""
    if store.name == "ice1":
        name = "refs/branch.main/ref.json"
        return name, [(store / name).read_bytes(), (store / "refs/tag.T1/ref.json").read_bytes()]
    earlier = sorted((store / "overwritten").iterdir())
    return "repo", [(store / "repo").read_bytes(), earlier[0].read_bytes(), earlier[2].read_bytes(), earlier[-1].read_bytes()]


@pytest.mark.parametrize("name", repositories.NAMES)
def test_a_branch_that_moves_while_it_is_read(mount, folder, expected, tmp_path, name):
    store = tmp_path / name
    shutil.copytree(folder / name, store)
    file, contents = states(store)
    made = mount(store, *VIEWS, "--ttl", "0")
    whole = [expected[name, reference]["t/a"] for reference in ("branch.main", "tag.T1")]
    seen, wrong, ended = [], [], threading.Event()

    def read():
        while not ended.is_set():
            try:
                values = np.load(made.path / "arrays/t/a.npy")
            except OSError as error:
                # A snapshot before the first commit has no such array.
                if error.errno not in (errno.ESTALE, errno.ENOENT):
                    wrong.append(error)
                continue
            kind = [np.array_equal(values, state) for state in whole]
            if any(kind):
                seen.append(kind.index(True))
            else:
                wrong.append("a mixture")

    def move(content):
        (store / "new").write_bytes(content)
        os.replace(store / "new", store / file)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    try:
        # A state that has the array is read one to four times at least before the next move.
        for number in range(40):
            content = contents[number % len(contents)]
            n_seen = len(seen)
            move(content)
            if content != contents[-1] or name == "ice1":
                until(lambda: len(seen) > n_seen + number % 4, "an array to be read")
    finally:
        ended.set()
        for reader in readers:
            reader.join()
    assert set(seen) == {0, 1}
    assert not wrong, wrong[:3]
    move(contents[0])
    check(made.path, expected[name, "branch.main"])
