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

from support import mounting, remote_servers, rewriting
from support.remote_fault_server import FaultServer

LAZY, SNAPPY, BOMB = (Path(__file__).parents[2] / "support" / "references" / name for name in ("lazy", "snappy", "bomb"))
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


def test_a_directory_of_a_set_that_is_replaced_is_seen(data, mount):
    for folder in (data, data.parent / "new"):
        folder.mkdir(exist_ok=True)
        write(folder / "set.json", {".zgroup": '{"zarr_format": 2}', "a": folder.name, "b": ["target"]})
        (folder / "target").write_text(folder.name)
    root = mount(data / "set.json", "--ttl", "0").path
    for _ in range(3):
        assert [(root / name).read_text() for name in "ab"] == ["set"] * 2
    os.rename(data, data.parent / "old")
    os.rename(data.parent / "new", data)
    assert [(root / name).read_text() for name in "ab"] == ["new"] * 2


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


@pytest.mark.parametrize("key, shape", [("x/{{i}}.{{j}}", (4000, 2500)), ("x/{{j}}/{{2499 - i}}", (4000, 2500)), ("x/{{i}}", (10_000_000,))])
def test_ten_million_generated_references_take_little_memory(data, mount, key, shape):
    (data / "data" / "bytes").write_bytes(bytes(range(251)))
    array = json.loads(document(list(shape), [1] * len(shape), "|u1", 0)) | {"dimension_separator": "/" if "/{{j}}/" in key else "."}
    lengths = dict(zip("ij" if "2499" not in key else "ji", shape))
    generator = {"key": key, "url": "data/bytes", "offset": "{{(7 * i + 3 * j) % 251}}" if len(shape) > 1 else "{{i % 251}}", "length": 1,
                 "dimensions": {name: {"stop": length} for name, length in lengths.items()}}
    refs = {".zgroup": '{"zarr_format": 2}', "x/.zarray": array, "x/0.0": "listed"}
    mounted = mount(write(data / "set.json", {"version": 1, "gen": [generator], "refs": refs}), "--cache-size", "64M", "--view", "keys,arrays",
                    "--files", "raw")
    with open(mounted.path / "arrays" / "x.raw", "rb") as file:
        for rank in (0, 1, 2499, 2500, 1_234_567, 9_999_999):
            i, j = divmod(rank, 2500)
            if "2499" in key:
                i, j = 2499 - j, i
            expected = (7 * i + 3 * j) % 251 if len(shape) > 1 else rank % 251
            file.seek(rank)
            assert file.read(1) == bytes([expected]), rank
    with os.scandir(mounted.path / "keys" / "x") as entries:
        assert len({entry.name for entry, _ in zip(entries, range(3000))}) >= 3000
    assert mounted.peak_bytes() < (64 + 64 + 32) << 20


def test_hostile_sets_cost_no_more_than_others(data, mount):
    """Templates that name each other, generators that make nothing or the same, ranges of no file, and Parquet that decompresses to a gigabyte."""
    generators = [{"key": "x/{{i}}.{{i}}", "url": "data/row0.bin", "dimensions": {"i": {"stop": 50_000}}},
                  {"key": "y/{{i}}", "url": "data/{{1 // (i - 50)}}", "dimensions": {"i": {"stop": 1000}}},
                  {"key": "z/{{i}}", "url": "u", "dimensions": {"i": {"stop": 0}, "j": {"stop": 10 ** 15}}}]
    refs = references("{{{{a}}}}") | {"loop": ["{{b}}"], "call": ["{{f(c='{{a}}')}}"], "ends": ["data/row0.bin", 2 ** 63 - 1, 2 ** 63 - 1]}
    content = {"version": 1, "templates": {"a": "{{b}}", "b": "{{a}}", "f": "{{f(c='x')}}"}, "gen": generators, "refs": refs}
    mounted = mount(write(data / "set.json", content), "--cache-size", "16M")
    for name in ("x/0.1", "loop", "call", "ends", "y/50"):
        fails(mounted.path / name, errno.EIO)
    assert (mounted.path / "x" / "1.1").read_bytes() == (data / "data" / "row0.bin").read_bytes()
    assert not (mounted.path / "z").exists()
    assert mounted.alive() and mounted.peak_bytes() < (16 + 64 + 32) << 20
    shutil.copytree(BOMB, data / "bomb.parq")
    mounted = mount(data / "bomb.parq", "--cache-size", "16M")
    for name in ("0.0", "1.2"):
        fails(mounted.path / "x" / name, errno.EIO)
    assert "--cache-size" in mounted.log_text()
    assert mounted.alive() and mounted.peak_bytes() < (16 + 64 + 32) << 20


REPLACED = pytest.mark.parametrize("replace", [rewriting.replace_by_rename, rewriting.replace_in_place], ids=lambda f: f.__name__)


@REPLACED
def test_no_open_file_mixes_two_versions_of_a_target(data, mount, replace):
    old, new = (np.random.default_rng(seed).integers(0, 1 << 32, (4, 1 << 18), "<u4") for seed in (1, 2))
    target = data / "data" / "rows.bin"
    target.write_bytes(old.tobytes())
    refs = {".zgroup": '{"zarr_format": 2}', "x/.zarray": document([4, 1 << 18], [1, 1 << 18], "<u4", 0)}
    refs |= {f"x/{i}.0": ["data/rows.bin", i << 20, 1 << 20] for i in range(4)}
    root = mount(write(data / "set.json", refs), "--view", "keys,arrays", "--files", "raw", "--readahead", "0").path
    files = [os.open(root / name, os.O_RDONLY) for name in ("arrays/x.raw", "keys/x/0.0")]
    try:
        for file in files:
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)
            assert os.pread(file, 4096, 0) == old.tobytes()[:4096]
        replace(target, new.tobytes())
        for file, offset in zip(files, (3 << 20, 900_000)):
            try:
                found = os.pread(file, 4096, offset)
            except OSError as error:
                assert error.errno == errno.ESTALE
            else:
                assert found and old.tobytes()[offset:].startswith(found), "new bytes in a file that gave old ones"
    finally:
        for file in files:
            os.close(file)
    assert (root / "arrays" / "x.raw").read_bytes() == new.tobytes()
    assert (root / "keys" / "x" / "2.0").read_bytes() == new[2].tobytes()


@pytest.mark.parametrize("folder", [LAZY, SNAPPY], ids=lambda folder: folder.name)
def test_parquet_as_fsspec_writes_it(data, mount, folder):
    shutil.copytree(folder, data / "lazy.parq")
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
@pytest.mark.alone
def test_a_million_references_take_little_memory(data, mount, figure):
    n = 1000
    refs = {".zgroup": '{"zarr_format": 2}', "x/.zarray": document([n, n], [1, 1], "|u1", 0)}
    refs |= {f"x/{i}.{j}": ["data/row0.bin", i * 7 % 100, 1] for i in range(n) for j in range(n)}
    mounted = mount(write(data / "set.json", {"version": 1, "refs": refs}), "--cache-size", "64M", "--view", "keys,arrays")
    assert (mounted.path / "keys" / "x" / "999.999").read_bytes() == b"x"
    figure(f"a set of 10^6 references in JSON: {mounted.peak_bytes() >> 20} MiB")
    assert mounted.peak_bytes() < (64 + 64 + 32) << 20
