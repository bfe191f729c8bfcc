"""The everyday programs agree with the store and with numpy."""
import hashlib
import os
import shutil

import pytest
import zarr

from support import mounting, sample

ok = mounting.ok


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return sample.write(tmp_path_factory.mktemp("sample") / "s.zarr")


@pytest.fixture(scope="module")
def by_numpy(tmp_path_factory):
    """The same arrays as uncompressed, unsharded Zarr, every chunk written: what `chunks` must look like."""
    root = tmp_path_factory.mktemp("plain") / "s.zarr"
    group = zarr.open_group(str(root), mode="w")
    config = {"write_empty_chunks": True}
    for name, chunk in {"plain": 32, "raw": 32, "sharded": 16, "holes": 32}.items():
        array = group.create_array(name, shape=sample.SHAPE, chunks=(chunk, chunk), dtype="int32", fill_value=5,
                                   compressors=None, config=config)
        if name == "holes":
            array[...] = 5
            array[:32, :32] = sample.values()[:32, :32]
        else:
            array[...] = sample.values()
    return root


@pytest.fixture(scope="module", params=["kept", "expanded", "chunks"])
def pair(request, store, by_numpy, module_mount):
    """(mount, folder with the files that it must show). With expanded shards, the store is no such folder; a first copy of the mount takes its place."""
    args = {"kept": ["--shards", "keep"], "expanded": [], "chunks": ["--view", "chunks"]}[request.param]
    made = module_mount(store, *args)
    yield made.path, {"kept": store, "expanded": made.path, "chunks": by_numpy}[request.param]
    made.unmount()


def arrays_only(folder, target):
    """Copies the chunk folders: documents of the two writers are spelled differently."""
    for name in ("plain", "raw", "sharded", "holes"):
        shutil.copytree(folder / name / "c", target / name / "c")
    return target


def test_diff_with_the_store(pair):
    here, there = pair
    if (there / "notes.txt").exists():
        ok("diff", "-r", here, there)
    else:
        for name in ("plain", "raw", "sharded", "holes"):
            ok("diff", "-r", here / name / "c", there / name / "c")


def test_cp(pair, tmp_path):
    here, there = pair
    for sparse in ("auto", "always"):
        ok("cp", "-r", f"--sparse={sparse}", here, tmp_path / sparse)
        ok("diff", "-r", here, tmp_path / sparse)
    ok("cp", "-a", here, tmp_path / "times")
    assert times(here) == times(tmp_path / "times")


def times(root):
    return {p.relative_to(root): os.stat(p).st_mtime_ns for p in root.rglob("*") if p.is_file()}


def test_rsync(pair, tmp_path):
    if not shutil.which("rsync"):
        pytest.skip("rsync is not installed")
    here, _ = pair
    ok("rsync", "-a", f"{here}/", tmp_path / "copy")
    ok("diff", "-r", here, tmp_path / "copy")
    # By content: nothing is left to send.
    assert ok("rsync", "-rnc", "--itemize-changes", f"{here}/", tmp_path / "copy") == ""


def test_tar_with_sparse_detection(pair, tmp_path):
    here, _ = pair
    ok("tar", "-S", "-cf", tmp_path / "t.tar", "-C", here, ".")
    (tmp_path / "copy").mkdir()
    ok("tar", "-xf", tmp_path / "t.tar", "-C", tmp_path / "copy")
    ok("diff", "-r", here, tmp_path / "copy")


def test_find(pair):
    here, _ = pair
    printed = ok("find", here, "-type", "f", "-printf", "%s %P\n").splitlines()
    expected = [f"{os.stat(p).st_size} {p.relative_to(here)}" for p in here.rglob("*") if p.is_file()]
    assert sorted(printed) == sorted(expected)


def test_md5sum(pair, tmp_path):
    here, there = pair
    folder = arrays_only(there, tmp_path)
    for path in (p for p in folder.rglob("*") if p.is_file()):
        key = path.relative_to(folder)
        assert ok("md5sum", here / key).split()[0] == hashlib.md5(path.read_bytes()).hexdigest(), key


def total(root, *du):
    """The report of `du` on all files. Directories are left out, because each file system has its own size for them."""
    files = b"\0".join(os.fsencode(p) for p in sorted(root.rglob("*")) if p.is_file())
    (root.parent / "names").write_bytes(files)
    return int(ok("du", *du, "-c", f"--files0-from={root.parent / 'names'}").splitlines()[-1].split()[0])


def test_du(pair, tmp_path):
    here, _ = pair
    ok("cp", "-r", here, tmp_path / "copy")
    assert total(here, "-b") == total(tmp_path / "copy", "-b")
    assert total(here, "--block-size=1") >= total(here, "-b"), "no blocks: `du` and `tar -S` would see empty files"


def test_a_plain_program_reads_a_chunk(pair):
    here, there = pair
    key = "raw/c/1/1"
    assert ok("od", "-An", "-v", "-t", "d4", here / key) == ok("od", "-An", "-v", "-t", "d4", there / key)
