"""Two suites by other authors, through mounts with `--rw`: fsx compares a file with its own writes, and pjdfstest checks errno, modes and
times. `scripts/test --all` installs and runs them."""
import fnmatch
import grp
import json
import os
import pwd
import re
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import zarr
from zarr.codecs import BloscCodec

from support import posix_cases, writing_samples
from support.mounting import CHECKOUT, run
from support.writing_samples import ARGS, tree

pytestmark = pytest.mark.heavy

PROGRAMS = CHECKOUT / "target/suites/bin"
SEEDS, OPERATIONS = range(1, 6), 20_000


def program(name):
    assert (PROGRAMS / name).exists(), f"{PROGRAMS / name} is missing: scripts/test --all installs it"
    return PROGRAMS / name


def configuration(path, tables):
    """A file of TOML, whose values are numbers, truths, texts, and lists and tables of them."""
    lines = []
    for table, members in tables.items():
        lines += [f"[{table}]"] if table else []
        lines += [f"{name} = {'{}' if value == {} else json.dumps(value)}" for name, value in members.items()]
    path.write_text("\n".join(lines) + "\n")
    return path


# fsx.

# How often fsx makes each call. It does not make those of `FREE` if the size of a file must stay.
WEIGHTS = {"read": 10, "write": 10, "mapread": 10, "mapwrite": 10, "invalidate": 1, "punch_hole": 3, "fsync": 0.2, "fdatasync": 0.2,
           "sendfile": 5, "posix_fadvise": 2, "copy_file_range": 3}
FREE = {"truncate": 5, "posix_fallocate": 2, "close_open": 1}
FIXED = dict.fromkeys(FREE, 0)


@pytest.fixture
def memory():  # before `mount` in an argument list, so that the mount ends first
    """A folder in memory. On a disk nearly all the time would go into the saves that msync(2) asks for."""
    path = Path(tempfile.mkdtemp(prefix="zarr-mount-suites-", dir="/dev/shm"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


def exercise(file, seed, folder, weights, **settings):
    """Runs fsx on a file. For every second seed, fsx does not call msync, so that mapped memory is saved with later changes."""
    settings["nomsyncafterwrite"] = seed % 2 == 0
    config = configuration(folder / "fsx.toml", {"": settings, "opsize": {"max": settings["flen"] // 4}, "weights": WEIGHTS | weights})
    done = run(program("fsx"), "-v", "-f", config, "-N", OPERATIONS, "-S", seed, "-P", folder, file)
    if done.returncode or "A-OK" not in done.stdout:
        # After the message comes a list of the last calls, which -v has printed before.
        said = done.stderr.partition("LOG DUMP")[0].splitlines()[-60:]
        pytest.fail("\n".join([f"fsx -S {seed}: status {done.returncode}", *said, config.read_text()]), pytrace=False)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ["notes.bin", "a/c/0/0"], ids=["plain", "chunk"])
def test_fsx_on_a_stored_file(name, seed, memory, mount, tmp_path):
    store = writing_samples.write(memory / "store")
    made = mount(store, *ARGS)
    exercise(made.path / name, seed, tmp_path, FREE, flen=256 << 10)
    shown = (made.path / name).read_bytes()
    assert len(shown) > 0 and shown == (store / name).read_bytes()
    assert tree(made.path) == tree(store)
    made.unmount()
    assert (store / name).read_bytes() == shown


CHUNK, COUNT, TARGET = 32 << 10, 4, 2
KINDS = {"uncompressed": {"compressors": None}, "blosc": {"compressors": BloscCodec(cname="lz4", shuffle="shuffle")},
         "shard": {"shards": (2 * CHUNK,)}}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", KINDS)
def test_fsx_on_a_decoded_chunk(kind, seed, memory, mount, tmp_path):
    wanted = np.random.default_rng(seed).integers(1 << 16, size=COUNT * CHUNK, dtype="<u2")
    zarr.create_group(str(memory / "store")).create_array("a", data=wanted, chunks=(CHUNK,), **KINDS[kind])
    made = mount(memory / "store", "--rw", "--view", "chunks")
    file = made.path / f"a/c/{TARGET}"
    old = file.read_bytes()
    exercise(file, seed, tmp_path, FIXED, flen=len(old), blockmode=True, nosizechecks=True)
    shown = file.read_bytes()
    assert len(shown) == len(old) == 2 * CHUNK and shown != old
    wanted[TARGET * CHUNK:][:CHUNK] = np.frombuffer(shown, "<u2")
    for index in range(COUNT):
        assert (made.path / f"a/c/{index}").read_bytes() == wanted[index * CHUNK:][:CHUNK].tobytes(), index
    made.unmount()
    np.testing.assert_array_equal(zarr.open_array(str(memory / "store/a"), mode="r")[...], wanted)


@pytest.mark.parametrize("seed", SEEDS[:2])
def test_fsx_on_two_chunks_of_a_shard(seed, memory, mount, tmp_path):
    zarr.create_group(str(memory / "store")).create_array("a", data=np.zeros(COUNT * CHUNK, "<u2"), chunks=(CHUNK,), **KINDS["shard"])
    made = mount(memory / "store", "--rw", "--view", "chunks")

    def exercise_one(index):
        folder = tmp_path / str(index)
        folder.mkdir()
        exercise(made.path / f"a/c/{index}", seed + index, folder, FIXED, flen=2 * CHUNK, blockmode=True, nosizechecks=True)
    with ThreadPoolExecutor() as threads:
        list(threads.map(exercise_one, range(2)))
    shown = b"".join((made.path / f"a/c/{index}").read_bytes() for index in range(COUNT))
    made.unmount()
    assert zarr.open_array(str(memory / "store/a"), mode="r")[...].tobytes() == shown


# pjdfstest.

FEATURES = ("posix_fallocate", "rename_ctime", "utime_now", "utimensat")
VERDICT = re.compile(r"^(\S+::\S+) +(ok|FAILED|skipped)$", re.MULTILINE)


@pytest.fixture
def folder():  # before `mount` in an argument list, so that the mount ends first
    """A folder that all users can enter."""
    path = Path(tempfile.mkdtemp(prefix="zarr-mount-suites-", dir=os.environ.get("ZARR_MOUNT_TEST_TMP")))
    path.chmod(0o755)
    if run("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "test", "-x", path).returncode:
        pytest.skip(f"{path} cannot be entered by another user")
    yield path
    shutil.rmtree(path, ignore_errors=True)


def users():
    """Two users that every system has, each with its own group."""
    found = [pwd.getpwnam(name) for name in ("nobody", "daemon")]
    return [[user.pw_name, grp.getgrgid(user.pw_gid).gr_name] for user in found]


def verdicts(where, other, folder):
    """The results of pjdfstest in a directory: (verdict, message) of each case. `other` is on another file system."""
    config = configuration(folder / "pjdfstest.toml", {
        "features": {name: {} for name in FEATURES}, "settings": {"naptime": 0.02}, "dummy_auth": {"entries": users()}})
    done = run(program("pjdfstest"), "-c", config, "-p", where, "-s", other, env=os.environ | {"NO_COLOR": "1", "RUST_BACKTRACE": "0"})
    parts = VERDICT.split(done.stdout.partition("\nSummary:")[0])
    found = {name: (verdict, said.strip()) for name, verdict, said in zip(parts[1::3], parts[2::3], parts[3::3])}
    total = re.search(r"(\d+) total", done.stdout)
    assert total and len(found) == int(total[1]) > 300, f"{done.returncode}\n{done.stdout[-2000:]}{done.stderr}"
    return found


def judge(found, disk):
    """The faults in the verdicts on a mount, and the cases that have failed as listed. `disk`: the verdicts on the file system below."""
    wrong = [f"{name}: is no case" for name in posix_cases.VARYING if name not in found]
    listed = {}
    for reason, word, patterns in posix_cases.FAILURES:
        for pattern in patterns:
            names = fnmatch.filter(found, pattern)
            listed |= dict.fromkeys(names, (reason, word))
            wrong += [] if names else [f"{pattern}: is no case"]
    for name, (verdict, said) in found.items():
        if name in listed:
            reason, word = listed[name]
            if verdict != "FAILED":
                wrong.append(f"{name}: is listed ({reason}), and its verdict is {verdict}")
            elif not re.search(word, said):
                wrong.append(f"{name}: is listed ({reason}), and fails for another reason than {word!r}: {said}")
        # A case that fails on the disk says nothing of the mount.
        elif verdict == "FAILED" and disk[name][0] != "FAILED" and name not in posix_cases.VARYING:
            wrong.append(f"{name}: fails: {said}")
        elif verdict == "skipped" and not any(fnmatch.fnmatch(name, pattern) for pattern in posix_cases.SKIPPED):
            wrong.append(f"{name}: is skipped: {said}")
    return wrong, listed


@pytest.mark.root
def test_pjdfstest(folder, mount, figure):
    store = writing_samples.write(folder / "store")
    for name in ("store/plain", "beside", "m"):
        (folder / name).mkdir()
    made = mount(store, *ARGS, "-o", "allow_other", path=folder / "m")
    found = verdicts(made.path / "plain", folder / "beside", folder)
    assert os.listdir(made.path / "plain") == [] == os.listdir(store / "plain")
    assert tree(made.path) == tree(store)
    wrong, listed = judge(found, verdicts(folder / "beside", made.path, folder))
    assert not wrong, f"{len(wrong)} cases:\n" + "\n".join(sorted(wrong))
    passed = [name for name, (verdict, _) in found.items() if verdict == "ok" and name not in posix_cases.VARYING]
    figure(f"pjdfstest: {len(passed)} of {len(found)} cases pass, {len(listed)} fail as they must")
