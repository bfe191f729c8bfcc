"""`--list` and `--status`: the mounts of a user, and what they are doing."""
import json
import os
import signal
import time

import numpy as np

from support import mounting
from support.mounting import BINARY, ok, run


def listed(path):
    """The entry of the mount at `path`. Other tests have mounts, too."""
    return next((mount for mount in json.loads(ok(BINARY, "--list", "--json")) if mount["mountpoint"] == str(path)), None)


def test_mounts_are_listed(mount):
    begun = int(time.time())
    mounted = mount("demo:")
    found = listed(mounted.path)
    assert {name: found[name] for name in ("store", "state")} == {"store": "demo:", "state": "running"}
    assert found["pid"] == mounted.pid and begun - 1 <= found["since"] <= time.time()
    heading, *lines = ok(BINARY, "--list").splitlines()
    assert heading.split() == ["MOUNTPOINT", "PID", "FOR", "STORE"]
    [line] = [line for line in lines if line.split()[0] == str(mounted.path)]
    assert line.split()[1] == str(found["pid"]) and line.endswith(" demo:")
    ok(BINARY, "--unmount", mounted.path)
    assert listed(mounted.path) is None


def test_mounts_without_a_daemon_are_listed(mount):
    silent, dead = mount("demo:"), mount("demo:")
    os.kill(dead.pid, signal.SIGKILL)
    os.kill(silent.pid, signal.SIGSTOP)
    try:
        mounting.until(lambda: listed(dead.path)["state"] == "dead", "the kernel notices that the daemon has ended")
        found = listed(silent.path)
        assert (found["state"], found["pid"]) == ("silent", None)
        done = run(BINARY, "--status", dead.path)
        assert done.returncode == 1 and "has ended; umount -l" in done.stderr, done
        done = run(BINARY, "--status", silent.path)
        assert done.returncode == 1 and "does not answer" in done.stderr, done
    finally:
        os.kill(silent.pid, signal.SIGCONT)
        run("umount", "-l", dead.path)
    assert listed(silent.path)["state"] == "running"


def test_the_status_of_a_mount(mount):
    mounted = mount("demo:", "--view", "arrays")
    np.load(mounted.path / "air" / "temperature.npy")
    counters = json.loads(ok(BINARY, "--status", mounted.path, "--json"))
    assert counters["pid"] == mounted.pid and counters["chunks"]["decodes"] > 0
    lines = ok(BINARY, "--status", mounted.path).splitlines()
    assert lines[0] == f"{mounted.path}  demo:  pid {counters['pid']}"
    assert [line.split()[0] for line in lines[1:5]] == ["programs", "store", "memory", "errors"] and lines[4] == "errors    none so far"


def test_what_is_no_mount_has_no_status(tmp_path):
    for path, expected in [(tmp_path, "is no mount of zarr-mount; --list"), (tmp_path / "none", "is no mount of zarr-mount"), ("/", "is no mount")]:
        done = run(BINARY, "--status", path)
        assert done.returncode == 1 and expected in done.stderr, done
    assert run(BINARY, "--list", "demo:").returncode == 2
