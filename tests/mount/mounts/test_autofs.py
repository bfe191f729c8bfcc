"""Mounted by an automounter: the first look at the directory mounts, and time without use unmounts.

A process of the automounter's group may look behind the trap. A daemon that left the group before the mount
answered would trigger the trap again and wait for itself, and every process that looks there would hang.
"""
import os
import re
import shutil
import signal
import subprocess

import pytest

from support import mounting, sample
from support.mounting import BINARY, run, until
from test_mount_helper import helper  # noqa: F401 (a fixture)
from test_system import folder, on_path  # noqa: F401 (fixtures)

pytestmark = [pytest.mark.root, pytest.mark.alone]


@pytest.fixture
def store(folder):  # noqa: F811
    return sample.write(folder / "s.zarr")


class Automounter:
    """The program automount(8) with maps of its own, in the foreground. `point` is where it mounts."""

    def __init__(self, folder, point, master, entry):
        self.point = point
        (folder / "map").write_text(entry + "\n")
        (folder / "master").write_text(f"{master} {folder}/map --timeout=2\n")
        self.log = open(folder / "automount.log", "w+")
        self.program = subprocess.Popen(
            ["automount", "-f", "-v", "-p", folder / "automount.pid", folder / "master"],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT)

    def say(self):
        self.log.seek(0)
        return self.log.read()

    def end(self):
        self.program.send_signal(signal.SIGTERM)
        try:
            self.program.wait(30)
        except subprocess.TimeoutExpired:
            self.program.kill()
            self.program.wait()
        self.log.close()


MAPS = {"indirect": ("{folder}/auto", "z", "auto/z"), "direct": ("/-", "{folder}/auto", "auto")}


@pytest.mark.heavy
@pytest.mark.parametrize("type_", ["zarr-mount", "fuse.zarr-mount"])
@pytest.mark.parametrize("kind", MAPS)
def test_autofs_mounts_and_expires(folder, store, on_path, kind, type_):  # noqa: F811
    if not shutil.which("automount") or not os.path.exists("/dev/autofs"):
        pytest.skip("needs autofs, the package and the kernel's")
    master, key, point = MAPS[kind]
    point = folder / point
    options = f"-fstype={type_},allow_other,view=chunks"
    auto = Automounter(folder, point, master.format(folder=folder),
                       f"{key.format(folder=folder)} {options} :{store}")
    try:
        until(lambda: "autofs" in trap_types(folder) or auto.program.poll() is not None, "the trap")
        for _ in range(2):
            # `timeout` because what hangs here hangs for ever, and beyond the reach of SIGTERM.
            said = run("timeout", "-s", "KILL", "20", "cat", point / "sharded/c/0/0")
            assert said.returncode == 0, said.stderr + auto.say()
            assert "fuse.zarr-mount" in trap_types(folder)
            assert os.listdir(point)
            until(lambda: "fuse.zarr-mount" not in trap_types(folder), "the mount's expiry")
            until(lambda: not mounting.daemons(point), "the daemon's end")
    finally:
        auto.end()
        for path in (point, folder / "auto"):
            mounting.force_away(path)


def trap_types(folder):
    """The types of the mounts below `folder`."""
    lines = open("/proc/self/mountinfo").read().splitlines()
    return {line.partition(" - ")[2].split()[0] for line in lines if f" {folder}" in line.partition(" - ")[0]}


def test_the_daemon_stays_in_the_group_until_the_mount_answers(folder, store):  # noqa: F811
    """By the system calls: setsid(2) comes after the last one that walks the path of the mountpoint."""
    if not shutil.which("strace"):
        pytest.skip("needs strace")
    point, trace = folder / "m", folder / "trace"
    point.mkdir()
    tracer = subprocess.Popen(
        ["strace", "-f", "-o", trace, "-s", "4096", "-e", "trace=setsid,setpgid,mount,exit_group,%file",
         BINARY, store, point], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        calls = until(lambda: calls_to_ready(trace), "the end of the command")
        left = [n for n, call in enumerate(calls) if re.search(r" set(sid|pgid)\(", call)]
        walked = [n for n, call in enumerate(calls) if f'"{point}"' in call and " execve(" not in call]
        mounted = [n for n, call in enumerate(calls) if " mount(" in call]
        assert len(left) == 1 and mounted, calls
        assert any("statfs(" in calls[n] for n in walked), "the mount's first answer"
        assert max(walked + mounted) < left[0], calls[left[0]:]
    finally:
        run(BINARY, "--unmount", point)
        mounting.force_away(point)
        tracer.wait(60)


def calls_to_ready(trace):
    """The system calls until the command that was typed has ended, as it does when the mount is ready. None if it has not ended yet."""
    calls = trace.read_text(errors="replace").splitlines() if trace.exists() else []
    # strace cuts a call in two lines when another process makes one meanwhile: "exit_group(0 <unfinished ...>".
    ends = [n for n, call in enumerate(calls) if re.search(r" exit_group\(0\b", call)]
    return calls[:ends[0]] if ends else None
