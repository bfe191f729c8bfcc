"""Runs the command, waits for its effects, and removes everything that it made."""
import ctypes
import fcntl
import json
import os
import select
import signal
import stat
import struct
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
WORKERS = Path(__file__).resolve().parent / "workers"
BINARY = os.environ.get("ZARR_MOUNT_BINARY", str(CHECKOUT / "target" / "release" / "zarr-mount"))
TRANSPORT = []  # options that each mount gets, by the option `--transport` of pytest
PATIENCE = 60  # seconds until a wait is given up; never a measure of speed


def adopt_orphans():
    """Makes this process the parent of daemons, so that their exit status can be read."""
    pr_set_child_subreaper = 36
    ctypes.CDLL(None).prctl(pr_set_child_subreaper, 1, 0, 0, 0)


def until(condition, what):
    """Polls until `condition()` is true, and returns its value."""
    deadline, pause = time.monotonic() + PATIENCE, 0.001
    while not (value := condition()):
        assert time.monotonic() < deadline, f"gave up waiting: {what}"
        time.sleep(pause)
        # A condition may read much, and some waits take seconds.
        pause = min(pause * 1.2, 0.02)
    return value


def run(*args, **kwargs):
    """Runs a program to its end, and captures its output as text. The exit status may be any."""
    kwargs.setdefault("timeout", 300)
    return subprocess.run([str(a) if not isinstance(a, bytes) else a for a in args],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", **kwargs)


def ok(*args, **kwargs):
    done = run(*args, **kwargs)
    assert done.returncode == 0, f"{args}: {done.returncode}: {done.stderr}"
    return done.stdout


def mount_entry(path):
    """(type, option list) of the topmost mount at `path`, or None."""
    found = None
    # A path, perhaps of the mount of another test, may have characters at which text would be split as well.
    for line in Path("/proc/self/mountinfo").read_bytes().removesuffix(b"\n").split(b"\n"):
        line = line.decode("utf-8", "surrogateescape")
        fields, _, tail = line.partition(" - ")
        point = fields.split()[4].encode("utf-8", "surrogateescape").decode("unicode_escape")
        if point == str(path):
            found = (tail.split()[0], set(fields.split()[5].split(",")) | set(tail.split()[2].split(",")))
    return found


def daemons(mountpoint):
    """Process ids of daemons that serve `mountpoint`, found by their command lines."""
    # Daemons become children of this process, unless another process has started them.
    return serving(mountpoint, children()) or serving(mountpoint, (int(name) for name in os.listdir("/proc") if name.isdigit()))


def children():
    """Process ids of the children of all threads of this process."""
    for thread in os.listdir("/proc/self/task"):
        # The thread may have ended since.
        with suppress(OSError):
            yield from map(int, Path("/proc/self/task", thread, "children").read_bytes().split())


def serving(mountpoint, processes):
    wanted, found = os.fsencode(mountpoint), []
    for process in processes:
        try:
            command = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        # The second word counts too, because the binary may run under another program, such as a debugger.
        if any(b"zarr-mount" in os.path.basename(c) for c in command[:2]) and wanted in command[1:]:
            found.append(process)
    return found


@contextmanager
def linked(link):
    """Makes `link`, in a folder of the system, point to the binary; None if the name is taken. Tests that run side by side wait for each
    other here: a test must not find the link of another test, which looks like a link that a user has made."""
    folder = os.open(link.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        if os.path.lexists(link):
            yield None
            return
        link.symlink_to(BINARY)
        try:
            yield link
        finally:
            link.unlink()
    finally:
        os.close(folder)


class Mount:
    """One mount: `path` is its mountpoint, and `pid` the daemon behind it."""

    def __init__(self, store, path, *args, log, prefix=(), binary=BINARY, env=None):
        self.store, self.path, self.log = store, Path(path), Path(log)
        done = run(*prefix, binary, store, path, "--log-file", log, *([] if "--transport" in args else TRANSPORT), *args, timeout=PATIENCE, env=env)
        assert done.returncode == 0, f"{' '.join(map(str, args))}: {done.returncode}: {done.stderr}{self.log_text()}"
        self.said = done.stderr
        assert mount_entry(self.path), "the command returned, and nothing is mounted"
        pids = daemons(path)
        assert len(pids) == 1, f"one daemon was expected: {pids}"
        self.pid = pids[0]

    def stats(self):
        return json.loads((self.path / ".zarr-mount" / "stats.json").read_bytes())

    def sync(self):
        """Makes the mount, which has `--rw`, save everything and write it to its place in the store."""
        with open(self.path / ".zarr-mount" / "sync") as everything:
            os.fsync(everything)

    def alive(self):
        try:
            return b"\nState:\tZ" not in Path(f"/proc/{self.pid}/status").read_bytes()
        except FileNotFoundError:
            return False

    def open_objects(self):
        """The paths of the regular files of the store that the daemon has open, nameless ones included."""
        found, folder = [], Path(f"/proc/{self.pid}/fd")
        for number in os.listdir(folder):
            try:
                path = os.readlink(folder / number)
                if path.startswith(f"{os.path.realpath(self.store)}/") and stat.S_ISREG(os.stat(folder / number).st_mode):
                    found.append(path)
            except FileNotFoundError:  # It was closed meanwhile.
                pass
        return found

    def peak_bytes(self):
        """The most resident memory that the daemon ever had."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("the daemon is gone")

    def mounted(self):
        return mount_entry(self.path) is not None

    def log_text(self):
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def unmount(self):
        done = run(BINARY, "--unmount", self.path)
        assert done.returncode == 0, f"--unmount: {done.stderr}"
        self.wait_for_the_end()

    def wait_for_the_end(self):
        """Waits for the daemon, and asserts that it left with status 0, has unmounted, and logged no bug of its own."""
        status = until(self._ended, "the daemon's end")
        assert status == 0, f"the daemon ended with {status}\n{self.log_text()}"
        assert not self.mounted()
        # A panic fails one request only, and may go unnoticed but for the log.
        for bug in ("panicked", "internal error"):
            assert bug not in self.log_text(), self.log_text()

    def _ended(self):
        """None while the daemon runs, then its wait status; 0 if another process has reaped it."""
        try:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            return None if pid == 0 else Ended(status)
        except ChildProcessError:
            return None if self.alive() else Ended(0)

    def kill(self):
        """Kills the daemon as the out-of-memory killer does: the mount stays behind, stale."""
        os.kill(self.pid, signal.SIGKILL)
        until(self._ended, "the killed daemon's end")

    def clean_up(self):
        """For teardown: ends the mount and the daemon, by force if necessary, and raises the error of ending them."""
        try:
            if self.mounted():
                self.unmount()
        finally:
            force_away(self.path)
            if self.alive() and self.pid in daemons(self.path):
                os.kill(self.pid, signal.SIGKILL)


class Ended(int):
    """A wait status, which is true even if it is 0."""

    def __bool__(self):
        return True


@contextmanager
def other_program():
    """A function that opens a file, syncs it and closes it in another program, which has not inherited any open file."""
    code = """
import os, sys
for line in sys.stdin:
    flags, path = line.rstrip("\\n").split(" ", 1)
    fd = os.open(path, int(flags))
    os.fsync(fd)
    os.close(fd)
    print("synced", flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:

        def sync(path, flags=os.O_RDONLY):
            print(flags, path, file=program.stdin, flush=True)
            assert program.stdout.readline() == "synced\n"

        yield sync
        program.stdin.close()


def held_lock(path):
    """An open file that is locked, as tensorstore locks it."""
    held = open(path, "wb")
    fcntl.fcntl(held, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    return held


@contextmanager
def opened_by_others(path):
    """At the end of the block, waits until another program has opened the file since the block began."""
    in_open = 0x20
    libc = ctypes.CDLL(None, use_errno=True)
    events = libc.inotify_init1(0)
    assert events >= 0 and libc.inotify_add_watch(events, os.fsencode(path), in_open) >= 0, os.strerror(ctypes.get_errno())
    try:
        yield
        assert select.select([events], [], [], PATIENCE)[0], f"no program opens {path}"
    finally:
        os.close(events)


def force_away(path):
    while mount_entry(path):
        tool = ["umount", "-l"] if os.geteuid() == 0 else ["fusermount3", "-uz"]
        if run(*tool, path).returncode != 0:
            break
