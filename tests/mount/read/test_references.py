"""Sets of references: the mount holds what the references name, and nothing that they may not name."""
import base64
import errno
import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from support import mounting, remote_servers
from support.remote_fault_server import FaultServer

LAZY = Path(__file__).parents[2] / "support" / "references" / "lazy"
DATA = np.arange(24, dtype="<i4").reshape(4, 6)


def document(shape, chunks, dtype="<i4", fill_value=-1):
    return json.dumps({"zarr_format": 2, "shape": shape, "chunks": chunks, "dtype": dtype, "compressor": None, "filters": None, "order": "C",
                       "fill_value": fill_value})


def chunk(i, j):
    return np.ascontiguousarray(DATA[2 * i:2 * i + 2, 3 * j:3 * j + 3])


@pytest.fixture
def data(tmp_path):
    """A directory `set` for sets, and the chunks of an array behind 100 bytes of files in `set/data` and `other`."""
    for folder in ("set/data", "other"):
        (tmp_path / folder).mkdir(parents=True)
    for i in range(2):
        row = b"x" * 100 + b"".join(chunk(i, j).tobytes() for j in range(2))
        for folder in ("set/data", "other"):
            (tmp_path / folder / f"row{i}.bin").write_bytes(row)
    os.chmod(tmp_path, 0o755)
    return tmp_path / "set"


def references(address, **more):
    """References of the array `x`, whose rows are at `address`."""
    refs = {".zgroup": '{"zarr_format": 2}', "x/.zarray": document([4, 6], [2, 3])}
    refs |= {f"x/{i}.{j}": [address.format(i=i), 100 + 24 * j, 24] for i in range(2) for j in range(2)}
    return refs | more


def write(path, content):
    path.write_text(json.dumps(content))
    return path


def read(mounted):
    return np.load(mounted.path / "x.npy")


def fails(path, code):
    with pytest.raises(OSError) as failed:
        path.read_bytes()
    assert failed.value.errno == code, failed.value


@pytest.mark.parametrize("form", ["version 0", "version 1", "templates", "generated", "absolute", "file URL", "zstd"])
def test_arrays_have_their_values(data, mount, form):
    relative, absolute = "data/row{i}.bin", f"{data}/data/row{{i}}.bin"
    path = data / "set.json"
    match form:
        case "version 0":
            content = references(relative)
        case "templates":
            content = {"refs": references("{{{{d}}}}/row{i}.{{{{e(c='bi')}}}}"), "templates": {"d": "data", "e": "{{c}}n"}, "version": 1}
        case "generated":
            refs = {key: value for key, value in references("").items() if key.startswith((".", "x/."))}
            generator = {"key": "x/{{i}}.{{j // 2}}", "url": "{{d}}/row{{i}}.bin", "offset": "{{100 + 12 * j}}", "length": "24",
                         "dimensions": {"i": {"stop": 2}, "j": [0, 2]}}
            content = {"version": 1, "templates": {"d": "data"}, "gen": [generator], "refs": refs}
        case "absolute":
            content = {"version": 1, "refs": references(absolute)}
        case "file URL":
            content = {"version": 1, "refs": references("file://" + absolute)}
        case _:
            content = {"version": 1, "refs": references(relative)}
    write(path, content)
    if form == "zstd":
        subprocess.run(["zstd", "-q", "--rm", path], check=True)
        path = data / "set.json.zst"
    root = mount(path, "--view", "arrays,chunks,keys").path
    assert (np.load(root / "arrays" / "x.npy") == DATA).all()
    assert sorted(os.listdir(root / "keys" / "x")) == [".zarray", "0.0", "0.1", "1.0", "1.1"]
    assert (root / "keys" / "x" / "1.0").read_bytes() == chunk(1, 0).tobytes()
    assert os.stat(root / "keys" / "x" / "1.0").st_size == 24
    assert (root / "chunks" / "x" / "0.1").read_bytes() == chunk(0, 1).tobytes()


def test_bytes_of_the_set_itself_and_keys_without_references(data, mount):
    more = {"x/0.0": "base64:" + base64.b64encode(chunk(0, 0).tobytes()).decode(), "x/.zattrs": {"units": "K", "valid": float("nan")},
            "text": "as it is\n", "y/.zarray": document([2], [1], "|u1"), "y/0": ["data/row0.bin", 0, 1], "whole": ["data/row1.bin"]}
    refs = references("data/row{i}.bin", **more)
    del refs["x/1.1"]
    root = mount(write(data / "set.json", refs), "--view", "arrays,keys").path
    expected = DATA.copy()
    expected[2:, 3:] = -1
    assert (np.load(root / "arrays" / "x.npy") == expected).all()
    assert json.loads((root / "arrays" / "x.json").read_text())["attributes"]["units"] == "K"
    assert np.load(root / "arrays" / "y.npy").tolist() == [ord("x"), 255]
    assert (root / "keys" / "text").read_text() == "as it is\n"
    assert (root / "keys" / "whole").read_bytes() == (data / "data" / "row1.bin").read_bytes()
    assert not (root / "keys" / "x" / "1.1").exists()


def test_a_missing_target_is_an_error_and_a_short_one_too(data, mount):
    refs = references("data/row{i}.bin") | {"x/0.0": ["data/none.bin", 0, 24], "x/0.1": ["data/row0.bin", 140, 24], "x/1.0": [None, 1, 2],
                                            "x/1.1": ["data/row0.bin", 2 ** 62, 2 ** 62]}
    mounted = mount(write(data / "set.json", refs), "--view", "keys,chunks,arrays")
    for view in ("keys", "chunks"):
        for name in ("0.0", "0.1", "1.0", "1.1"):
            fails(mounted.path / view / "x" / name, errno.EIO)
    fails(mounted.path / "arrays" / "x.npy", errno.EIO)
    log = mounted.log_text()
    assert "data/none.bin: the target of a reference is missing" in log and "which has 148" in log, log


def test_targets_elsewhere_need_the_option(data, mount):
    other = data.parent / "other"
    os.symlink("/etc/passwd", other / "link")
    refs = references("../other/row{i}.bin") | {"link": [f"{other}/link"], "passwd": ["/etc/passwd"], "beside": [f"{other}x/a"]}
    path = write(data / "set.json", refs)
    refused = mount(path)
    fails(refused.path / "x" / "0.0", errno.EACCES)
    assert sorted(os.listdir(refused.path / "x")) == [".zarray", "0.0", "0.1", "1.0", "1.1"]
    log = refused.log_text()
    assert f"the reference is to {other}/row0.bin" in log and f"--allow-refs {other}" in log, log
    for prefix in (other, f"file://{other}/"):
        allowed = mount(path, "--allow-refs", "/nowhere", "--allow-refs", prefix)
        assert (allowed.path / "x" / "0.0").read_bytes() == chunk(0, 0).tobytes()
        for name in ("link", "passwd", "beside"):
            fails(allowed.path / name, errno.EACCES)
    info = mounting.ok(mounting.BINARY, "--info", path)
    assert "a set of references" in info and f"{other} (3)" in info and "/etc (1)" in info, info
    info = mounting.ok(mounting.BINARY, "--info", "--allow-refs", other, path)
    assert f"{other} (3)" not in info and "/etc (1)" in info, info


@pytest.mark.root
def test_other_users_read_what_they_may_reach(data, mount):
    other = data.parent / "other"
    refs = references("data/row{i}.bin") | {"a": [f"{other}/row0.bin", 0, 5], "b": ["data/row1.bin", 0, 5]}
    path = write(data / "set.json", refs)
    os.chmod(data / "data" / "row1.bin", 0o600)
    for folder in (data.parent, *data.parent.parents):
        if folder.stat().st_mode & 0o001 == 0:
            os.chmod(folder, folder.stat().st_mode | 0o011)
    os.chmod(other, 0o700)
    root = mount(path, "--allow-refs", other, "-o", "allow_other", "--view", "keys,arrays").path
    modes = {name: os.stat(root / "keys" / name).st_mode & 0o777 for name in ("a", "b", "x/0.0", "x/1.0")}
    assert modes == {"a": 0o400, "b": 0o400, "x/0.0": 0o444, "x/1.0": 0o400}
    as_nobody = lambda name: mounting.run("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "cat", root / name).returncode
    assert as_nobody("keys/x/0.0") == 0
    for name in ("keys/a", "keys/b", "keys/x/1.0", "arrays/x.npy"):
        assert as_nobody(name) != 0, name
    # Users share the pages of a whole array, so it has no chunk that some of its readers may not read.
    fails(root / "arrays" / "x.npy", errno.EACCES)


def test_a_set_that_is_replaced_is_seen(data, mount):
    path = write(data / "set.json", {".zgroup": '{"zarr_format": 2}', "a": "first"})
    root = mount(path, "--ttl", "0").path
    assert (root / "a").read_text() == "first"
    write(data / "new", {".zgroup": '{"zarr_format": 2}', "a": "second", "b": "more"})
    os.rename(data / "new", path)
    mounting.until(lambda: (root / "a").read_text() == "second", "the set that replaced it")
    assert (root / "b").read_text() == "more"


def test_sets_are_not_written_to_and_bad_ones_are_refused(data, tmp_path):
    path = write(data / "set.json", references("data/row{i}.bin"))
    done = mounting.run(mounting.BINARY, "--rw", path, tmp_path / "m")
    assert done.returncode == 2 and "only a directory can be written to" in done.stderr and done.stderr.count("\n") == 1, done.stderr
    billion = {"key": "x/{{i}}.{{j}}", "url": "u", "dimensions": {"i": {"stop": 100000}, "j": {"stop": 10000}}}
    for content, expected in [({"version": 1, "refs": {}, "gen": [billion]}, "1000000000 references"), ({"version": 3}, "version 3"), ([], "a set of"),
                              ({f"x/{n}": ["u", n, 1] for n in range(150000)}, "--cache-size")]:
        done = mounting.run(mounting.BINARY, "--cache-size", "4M", write(path, content), tmp_path / "m")
        assert done.returncode == 1 and expected in done.stderr, done.stderr
    done = mounting.run(mounting.BINARY, "--allow-refs", "data", path, tmp_path / "m")
    assert done.returncode == 2 and "expected an absolute path or a URL" in done.stderr, done.stderr


def test_parquet_as_fsspec_writes_it(data, mount):
    shutil.copytree(LAZY, data / "lazy.parq")
    (data / "data" / "a").write_bytes(bytes(range(100, 120)))
    (data / "data" / "b").write_bytes(bytes(range(4)))
    (data / "data" / "c").write_bytes(bytes(range(50, 60)))
    root = mount(data / "lazy.parq", "--view", "arrays,keys").path
    expected = np.full((4, 6), 7, "u1")
    for (i, j), values in {(0, 0): range(110, 114), (0, 1): b"abcd", (1, 0): range(4), (1, 2): range(100, 104)}.items():
        expected[2 * i:2 * i + 2, 2 * j:2 * j + 2] = np.array(list(values), "u1").reshape(2, 2)
    assert (np.load(root / "arrays" / "x.npy") == expected[:, :5]).all()
    assert np.load(root / "arrays" / "s.npy") == 53
    assert sorted(os.listdir(root / "keys")) == [".zgroup", "s", "x"]
    assert sorted(os.listdir(root / "keys" / "x")) == [".zarray", "0.0", "0.1", "1.0", "1.2"]
    info = mounting.ok(mounting.BINARY, "--info", data / "lazy.parq")
    assert "Parquet" in info and "allow-refs" not in info, info


def test_sets_and_targets_on_a_web_server(data, mount, tmp_path):
    write(data / "set.json", references("data/row{i}.bin"))
    other = tmp_path / "far.json"
    with remote_servers.nginx(data.parent, tmp_path) as server:
        write(other, references(f"{server.endpoint}/set/data/row{{i}}.bin"))
        at_server = mount(f"{server.endpoint}/set/set.json", "--view", "arrays")
        assert (read(at_server) == DATA).all()
        refused = mount(other)
        fails(refused.path / "x" / "0.0", errno.EACCES)
        for prefix in (f"{server.endpoint}/set/", f"{server.endpoint}/set/data/row0.bin"):
            allowed = mount(other, "--allow-refs", prefix)
            assert (allowed.path / "x" / "0.1").read_bytes() == chunk(0, 1).tobytes()
        fails(allowed.path / "x" / "1.1", errno.EACCES)
        # The name of the server stands for a private address, and the prefix does not name that.
        name = server.endpoint.replace("127.0.0.1", "localhost.localdomain")
        write(other, references(f"{name}/set/data/row{{i}}.bin"))
        by_name = mount(other, "--allow-refs", f"{name}/set/", "--timeout", "5")
        with pytest.raises(OSError):
            (by_name.path / "x" / "0.0").read_bytes()


def test_redirects_to_private_addresses_are_not_followed(data, mount, tmp_path):
    path = tmp_path / "far.json"
    with FaultServer(data) as server, FaultServer(data) as private:
        write(path, references(f"{server.url}/data/row{{i}}.bin"))
        mounted = mount(path, "--allow-refs", server.url)
        assert (mounted.path / "x" / "0.0").read_bytes() == chunk(0, 0).tobytes()
        server.rules({"fault": "redirect", "location": f"{private.url}/{{key}}"})
        mounted = mount(path, "--allow-refs", server.url)
        fails(mounted.path / "x" / "0.0", errno.EACCES)
        assert private.requests() == []


@pytest.mark.long
def test_a_million_references_take_little_memory(data, mount, figure):
    n = 1000
    refs = {".zgroup": '{"zarr_format": 2}', "x/.zarray": document([n, n], [1, 1], "|u1", 0)}
    refs |= {f"x/{i}.{j}": ["data/row0.bin", i * 7 % 100, 1] for i in range(n) for j in range(n)}
    mounted = mount(write(data / "set.json", {"version": 1, "refs": refs}), "--cache-size", "64M", "--view", "keys,arrays")
    assert (mounted.path / "keys" / "x" / "999.999").read_bytes() == b"x"
    figure(f"a set of 10^6 references in JSON: {mounted.peak_bytes() >> 20} MiB")
    assert mounted.peak_bytes() < (64 + 64 + 32) << 20
