"""`mount -t zarr-mount`: the binary as mount(8)'s helper, with what mount(8), fstab and systemd pass."""
import os
import subprocess
from pathlib import Path

import pytest

from support import mounting, sample
from support.mounting import mount_entry, ok, run, until
from test_system import folder  # noqa: F401 (a fixture)

HELPER = Path("/sbin/mount.zarr-mount")

pytestmark = pytest.mark.root


@pytest.fixture(autouse=True)
def helper():
    """The link that mount(8) looks for in /sbin, and not in PATH."""
    with mounting.linked(HELPER) as link:
        if not link:
            pytest.skip(f"{HELPER} exists, and is not ours to replace")
        yield link


@pytest.fixture
def store(folder):  # noqa: F811
    return sample.write(folder / "s, t.zarr")


@pytest.fixture
def point(folder):  # noqa: F811
    path = folder / "m"
    path.mkdir()
    yield path
    mounting.force_away(path)
    until(lambda: not mounting.daemons(path), "the daemon's end")


def test_by_type(store, point):
    ok("mount", "-t", "zarr-mount", store, point, "-o", "ro,allow_other,view=chunks")
    kind, options = mount_entry(point)
    assert kind == "fuse.zarr-mount" and "allow_other" in options
    assert len((point / "sharded/c/0/0").read_bytes()) == 16 * 16 * 4
    ok("umount", point)
    assert not mount_entry(point)


@pytest.mark.parametrize("views", ["keys\\,chunks", '"keys,chunks"'])
def test_commas_within_a_value(store, point, views):
    ok("mount", "-t", "zarr-mount", store, point, "-o", f"view={views},ttl=5,fsname=a\\,b")
    assert sorted(os.listdir(point)) == ["chunks", "keys"]
    assert ok("findmnt", "-n", "-o", "SOURCE", point).strip() == "a,b"


def test_options_of_fstab_and_systemd(folder, store, point):  # noqa: F811
    table = folder / "fstab"
    options = ("ro,noauto,_netdev,x-systemd.automount,x-systemd.idle-timeout=60,nofail,user,noatime,nosymfollow,"
               "uid=12,gid=34,allow_other,X-mount.mkdir=0755,comment=mine,view=keys\\,chunks,cache-size=64M")
    table.write_text(f"{str(store).replace(' ', chr(92) + '040')} {point} zarr-mount {options} 0 0\n")
    ok("mount", "--fstab", table, point)
    status = os.stat(point / "keys/notes.txt")
    assert (status.st_uid, status.st_gid) == (12, 34)
    assert (point / "keys/notes.txt").read_bytes() == (store / "notes.txt").read_bytes()
    ok("umount", point)
    table.write_text(table.read_text().replace("noauto,", ""))
    ok("mount", "-a", "--fstab", table)
    assert mount_entry(point)


def test_fake_checks_everything_and_mounts_nothing(folder, store, point):  # noqa: F811
    ok("mount", "-f", "-t", "zarr-mount", store, point)
    ok("mount", "-f", "-v", "-n", "-t", "zarr-mount", store, point)
    ok("mount", "-f", "-t", "zarr-mount", store, folder / "created", "-o", "ro")
    assert not mount_entry(point) and not mounting.daemons(point) and not (folder / "created").exists()
    (folder / "empty").mkdir()
    (point / "file").write_bytes(b"")
    for what, where, names in [(folder / "none.zarr", point, "none.zarr"), (folder / "empty", point, "empty"),
                               (store, point, "not empty"), (store, point / "file", "not a directory"),
                               (store, store / "plain", "inside")]:
        done = run("mount", "-f", "-t", "zarr-mount", what, where)
        assert done.returncode == 32 and names in done.stderr, done


def test_fake_leaves_a_dead_mount(store, point):
    ok("mount", "-t", "zarr-mount", store, point)
    assert "already mounted" in run(HELPER, store, point, "-f").stderr
    pid, = mounting.daemons(point)
    os.kill(pid, 9)
    until(lambda: run("ls", point).returncode, "the dead mount")
    ok(HELPER, store, point, "-f")
    assert mount_entry(point)
    ok("mount", "-t", "zarr-mount", store, point)
    assert (point / "notes.txt").exists()


def test_sloppy_ignores_unknown_options_only(store, point):
    done = run("mount", "-t", "zarr-mount", store, point, "-o", "nonsense=1")
    assert done.returncode == 1 and "nonsense" in done.stderr
    assert run("mount", "-s", "-t", "zarr-mount", store, point, "-o", "nonsense=1,ttl=never").returncode == 1
    assert not mount_entry(point)
    ok("mount", "-s", "-t", "zarr-mount", store, point, "-o", "nonsense=1,ttl=2")
    assert mount_entry(point)


def test_by_the_type_of_a_subtype(store, point, helper):
    """`mount -t fuse.zarr-mount` runs the helper for `fuse`, with the whole type as an option, if there is no helper for the whole type."""
    ok(helper, store, point, "-o", "rw,view=chunks", "-t", "fuse.zarr-mount")
    assert mount_entry(point)


def test_in_another_mount_namespace(store, point):
    """mount(8) enters the namespace only for its own system calls, and names it to the helper by -N."""
    other = subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sleep", "infinity"])
    try:
        namespace = Path(f"/proc/{other.pid}/ns/mnt")
        until(lambda: os.readlink(namespace) != os.readlink("/proc/self/ns/mnt"), "the namespace")
        ok("mount", "-N", str(other.pid), "-t", "zarr-mount", store, point)
        assert not mount_entry(point)
        inside = ["nsenter", "-t", str(other.pid), "--mount"]
        assert ok(*inside, "cat", point / "notes.txt") == (store / "notes.txt").read_text()
        ok(*inside, "umount", point)
    finally:
        other.kill()
        other.wait()


def test_mistakes_of_its_own_grammar(store, point, helper):
    for words, status in [(["-x"], 1), (["-o"], 1), (["-N", "/no/such"], 32), (["--help"], 0)]:
        done = run(helper, store, point, *words)
        assert done.returncode == status and not mount_entry(point), done
