"""Every store of the corpus from servers that others have written: the same names, bytes and errors as from the directory.

All stores lie below one prefix, which is mounted once for each server.
"""
import errno
import hashlib
import json
import os
import shutil
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support import corpus, remote_servers
from support.remote_fault_server import FaultServer

MOST_CHUNKS = 500  # of an array whose chunks are all looked at
MOST_BYTES = 8 << 20
READERS = 12
DOCUMENTS = {"zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata"}
# Errors of a broken store are the same. Requests that only a directory can answer are not sent.
VIEWS = ("--view", "arrays,chunks,keys", "--files", "npy,raw,jsonl", "--max-chunk", "64M")


def fits(store):
    """Whether a bucket can hold a store: files of names that are text, and nothing else."""
    if store.most_chunks() > MOST_CHUNKS:
        return False
    for path, folders, names in os.walk(store.path) if store.path.is_dir() else ():
        for name in (*folders, *names):
            found = os.lstat(os.path.join(path, name)).st_mode
            if not (stat.S_ISREG(found) or stat.S_ISDIR(found)) or not is_text(name):
                return False
    return True


def is_text(name):
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


# Large containers of N5, of small arrays, are in test_remote_n5.py.
N5 = ("zp2_n5fs.n5",)
FITTING = {name: store for name, store in corpus.stores().items()
           if store.entry["container"] == "dir" and fits(store) and (store.kind != "n5" or name in N5)}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A folder of a bucket of all stores, below a group, so that there is something to mount."""
    folder = tmp_path_factory.mktemp("remote-corpus")
    for name, store in FITTING.items():
        shutil.copytree(store.path, folder / "corpus" / "all" / name)
    (folder / "corpus" / "all" / ".zgroup").write_text('{"zarr_format": 2}')
    # The workers of a web server must get at the files.
    for path in (folder, *folder.parents):
        if path == Path("/tmp") or os.stat(path).st_uid != os.geteuid():
            break
        path.chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def local(root, module_mount):
    """The files of the mount of the directory, by their paths in the mount."""
    return look(module_mount(root / "corpus" / "all", *VIEWS).path, names_of)


def names_of(folder):
    try:
        return sorted(os.listdir(folder))
    except OSError as error:
        return errno.errorcode[error.errno]


def look(root, names_of):
    """By path: the names of each directory, or the hash of each file, or the name of the error that came instead. All bytes of
    `arrays` and `chunks`, the names of `keys`."""
    found, waiting = {}, ["arrays", "chunks", "keys"]
    with ThreadPoolExecutor(READERS) as pool:
        while waiting:
            answers = list(pool.map(lambda path: (path, one(root, path, names_of)), waiting))
            waiting = []
            for path, answer in answers:
                found[path] = answer
                if isinstance(answer, list):
                    waiting += [f"{path}/{name}" for name in answer]
    return found


def one(root, path, names_of):
    """A list of names, a hash, or an error."""
    try:
        what = os.stat(root / path)
        if stat.S_ISDIR(what.st_mode):
            return names_of(root / path)
        if path.startswith("keys/"):
            return "a file"
        if what.st_size > MOST_BYTES:
            return f"{what.st_size} bytes"
        return hashlib.sha256(canonical(path, (root / path).read_bytes())).hexdigest()
    except OSError as error:
        return errno.errorcode[error.errno]


def canonical(path, data):
    """A document without its spelling: from a server it may be the copy in consolidated metadata, which is the same JSON."""
    if Path(path).name not in DOCUMENTS:
        return data
    try:
        document = json.loads(data)
        if isinstance(document, dict):
            # The copy of a group has no copies of its own.
            document.pop("consolidated_metadata", None)
        return json.dumps(document, sort_keys=True).encode()
    except (ValueError, RecursionError):
        return data


def compare(local, remote, lists_names):
    """The differences, by store."""
    different = {}
    for path, expected in local.items():
        # A directory in the place of a chunk or of a document is an error. A server has no directories, so the object is absent there.
        if "/tree_dir_as_" in path:
            continue
        found = remote.get(path, "not looked at")
        if isinstance(expected, list):
            if isinstance(found, list) and (sorted(found) == expected or not lists_names):
                continue
            if isinstance(found, list):
                found = f"lacks {sorted(set(expected) - set(found))[:5]}, has {sorted(set(found) - set(expected))[:5]} more"
        elif found == expected:
            continue
        view, _, rest = path.partition("/")
        name = next((n for n in FITTING if f"{rest}/".startswith(f"{n}/") or rest.startswith(f"{n}.")), "")
        different.setdefault(name, []).append((path, expected if isinstance(expected, str) else f"{len(expected)} names", found))
    return different


def same_as_local(server, local, module_mount, lists_names):
    """Names are looked up one by one, if the server does not list them."""
    made = module_mount(server.url("corpus/all" if server.scheme not in ("http", "https") else "all"), *server.args, *VIEWS,
                        env=remote_servers.clean_environment(**server.env))
    if lists_names:
        remote = look(made.path, names_of)
    else:
        by_path = {str(made.path / path): names for path, names in local.items() if isinstance(names, list)}
        remote = look(made.path, lambda folder: by_path.get(str(folder), []))
    different = compare(local, remote, lists_names)
    shown = {name: rows[:4] for name, rows in different.items()}
    assert not different, f"{sum(map(len, different.values()))} differences in {len(different)} stores: {shown}"
    assert made.alive()
    made.unmount()


def test_the_directory_itself(local):
    """The answers of the local directory, with which those of servers are compared, have all kinds."""
    kinds = {type(answer) for answer in local.values()}
    hashes = [answer for answer in local.values() if isinstance(answer, str) and len(answer) == 64]
    assert kinds == {str, list} and len(hashes) > 1000 and len(FITTING) > 100


def test_from_a_server_of_our_own(root, local, module_mount):
    """This server is fast. test_remote_servers compares it with moto."""
    with FaultServer(root, "s3") as own:
        args = ["--endpoint", own.url, "--region", "us-east-1", "--anonymous"]
        same_as_local(remote_servers.Server(own.url, "s3", args), local, module_mount, True)


def test_some_from_moto(root, local, module_mount, tmp_path):
    """moto examines all keys of a bucket for each listing, so the bucket has few stores. With `--all`, it has all of them."""
    some = sorted(name for name in FITTING if len(FITTING[name].arrays) < 8)[::12]
    for name in some:
        shutil.copytree(root / "corpus" / "all" / name, tmp_path / "some" / "corpus" / "all" / name)
    shutil.copy(root / "corpus" / "all" / ".zgroup", tmp_path / "some" / "corpus" / "all")
    expected = look(module_mount(tmp_path / "some" / "corpus" / "all", *VIEWS).path, names_of)
    with remote_servers.moto(tmp_path / "some", tmp_path) as server:
        same_as_local(server, expected, module_mount, True)


def test_from_nginx(root, local, module_mount, tmp_path):
    with remote_servers.nginx(root / "corpus", tmp_path) as server:
        same_as_local(server, local, module_mount, False)


@pytest.mark.heavy
@pytest.mark.parametrize("name", ["moto", "hadro", "moto_as_google", "fake_gcs", "azurite"])
def test_from_other_servers_of_objects(name, root, local, module_mount, tmp_path):
    with getattr(remote_servers, name)(root, tmp_path) as server:
        same_as_local(server, local, module_mount, True)


@pytest.mark.heavy
def test_from_caddy(root, local, module_mount, tmp_path):
    with remote_servers.caddy(root / "corpus", tmp_path) as server:
        same_as_local(server, local, module_mount, False)


@pytest.mark.heavy
def test_from_a_server_that_lists_no_directories(root, local, module_mount, tmp_path):
    """Prefixes without a document are not found; all that is found has the same bytes."""
    with remote_servers.caddy(root / "corpus", tmp_path, browse=False) as server:
        made = module_mount(server.url("all"), *VIEWS, env=remote_servers.clean_environment())
        by_path = {str(made.path / path): names for path, names in local.items() if isinstance(names, list)}
        remote = look(made.path, lambda folder: by_path.get(str(folder), []))
        same = [path for path, found in remote.items() if found == local[path] and not isinstance(found, list)]
        other = {path: (local[path], found) for path, found in remote.items() if found != local[path] and not isinstance(found, list)}
        # That the directory of its chunks is not found says nothing of the chunks of an array that is not supported.
        for path, (_, found) in other.items():
            array = made.path / "chunks" / os.path.relpath(os.path.dirname(path), "keys")
            assert found == "ENOENT" or found == "ENOTSUP" and path.startswith("keys/") and (array / "ERROR.txt").exists(), (path, found)
        assert len(same) > len(local) // 4, (len(same), len(local))
        made.unmount()


@pytest.mark.heavy
def test_from_nginx_with_tls(root, local, module_mount, tmp_path):
    certificate = remote_servers.certificate(tmp_path / "tls")
    with remote_servers.nginx(root / "corpus", tmp_path, certificate) as server:
        server.args += ["--ca-file", certificate.authority]
        same_as_local(server, local, module_mount, False)
