"""Stores of two kinds in one directory or below one URL: documents of Zarr win, and two other kinds are refused with a message that says how to choose one."""
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import zarr

from support import icechunk_repositories, mounting, remote_samples, remote_servers
from support.mounting import BINARY, run
from support.remote_fault_server import FaultServer
from support.remote_samples import BUCKET

LAZY = Path(__file__).parents[2] / "support" / "references" / "lazy"
KINDS = {"zarr": "", "icechunk": "an Icechunk repository", "n5": "a container of N5", "references": "a set of references in Parquet"}
STEPS = {"icechunk": "|icechunk:", "n5": "|n5:", "references": "/.zmetadata"}
PAIRS = [(one, other) for at, one in enumerate(KINDS) for other in list(KINDS)[at + 1:]]


def write(kind, folder, repository):
    """Adds a store of this kind to `folder`."""
    match kind:
        case "zarr":
            zarr.open_group(str(folder), mode="a").create_array("plain", shape=(3,), dtype="u1")[...] = [1, 2, 3]
            zarr.consolidate_metadata(str(folder), zarr_format=3)
        case "icechunk":
            shutil.copytree(repository, folder, dirs_exist_ok=True)
        case "n5":
            (folder / "attributes.json").write_text('{"n5": "4.0.0"}')
            (folder / "s0" / "0").mkdir(parents=True)
            array = {"dimensions": [2], "blockSize": [2], "dataType": "uint8", "compression": {"type": "raw"}}
            (folder / "s0" / "attributes.json").write_text(json.dumps(array))
            (folder / "s0" / "0").rmdir()
            (folder / "s0" / "0").write_bytes(bytes([0, 0, 0, 1, 0, 0, 0, 2, 8, 9]))
        case _:
            shutil.copytree(LAZY, folder, dirs_exist_ok=True)


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    return icechunk_repositories.unpack(tmp_path_factory.mktemp("icechunk")) / "ice1"


@pytest.fixture(params=["local", "s3", "http"])
def place(request, tmp_path):
    """A directory, and STORE, arguments and environment that name it."""
    folder = tmp_path / "root" / BUCKET / "z"
    folder.mkdir(parents=True)
    if request.param == "local":
        yield folder, (str(folder), [], {})
    else:
        with FaultServer(tmp_path / "root", request.param) as server:
            yield folder, remote_samples.store(server)


@pytest.mark.parametrize("one, other", PAIRS, ids=["and".join(pair) for pair in PAIRS])
def test_two_kinds(one, other, place, repository):
    folder, (store, more, env) = place
    for kind in (one, other):
        write(kind, folder, repository)
    remote_samples.age(folder)
    env = remote_servers.clean_environment(**env)
    done = run(BINARY, "--info", *more, store, env=env)
    if one == "zarr":
        assert done.returncode == 0 and "plain" in done.stdout, done.stderr
        [line] = [line for line in done.stderr.splitlines() if "read as a store of Zarr" in line]
        assert f"it also has {KINDS[other]}: {store}{STEPS[other]}" in line, line
    else:
        assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr
        for kind in (one, other):
            assert KINDS[kind] in done.stderr and f"{store}{STEPS[kind]}" in done.stderr, done.stderr
    nodes = {"icechunk": "t/a", "n5": "s0", "references": "x"}
    for kind in {one, other} - {"zarr"}:
        chosen = run(BINARY, "--info", "--json", *more, f"{store}{STEPS[kind]}", nodes[kind], env=env)
        assert chosen.returncode == 0, chosen.stderr
        [node] = json.loads(chosen.stdout)
        assert node["path"] == nodes[kind] and node["node_type"] == "array", node


def test_a_mount_says_so_in_one_line(mount, tmp_path, repository):
    for kind in ("zarr", "references", "n5"):
        write(kind, tmp_path / "z", repository)
    made = mount(tmp_path / "z", "--view", "arrays")
    assert np.load(made.path / "plain.npy").tolist() == [1, 2, 3]
    lines = made.said.splitlines()
    assert [("N5" in line, "references" in line) for line in lines] == [(True, False), (False, True)], lines
