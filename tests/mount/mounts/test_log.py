"""The log of a mount in the background: to the system's log, and its last lines in `.zarr-mount/log`."""
import os
import re
import socket
import stat
from pathlib import Path

import pytest

from support import mounting, sample
from support.mounting import BINARY, ok, run, until
from test_system import AS_NOBODY, NOBODY, command, folder, open_path  # noqa: F401 (fixtures)

SYSTEM_LOG = Path("/dev/log")
LINE = re.compile(r"\[\d{4}-\d\d-\d\dT[\d:.]+Z (ERROR|WARN |INFO |DEBUG|TRACE) [\w:]+\] \S.*")


@pytest.fixture
def store(tmp_path):
    path = sample.write(tmp_path / "s.zarr")
    (path / "plain/c/0/0").write_bytes(b"no zstd")
    return path


@pytest.fixture
def mounted(tmp_path):
    """mounted(store, *args): mounts without --log-file, which `mount` of conftest gives, and ends it afterwards."""
    points = []

    def mounted(store, *args, prefix=(), binary=BINARY, point=None):
        point = point or tmp_path / f"m{len(points)}"
        point.mkdir(exist_ok=True)
        points.append(point)
        ok(*prefix, binary, store, point, *args)
        return point

    yield mounted
    for point in points:
        run(BINARY, "--unmount", point)
        mounting.force_away(point)
        until(lambda: not mounting.daemons(point), "the daemon's end")


@pytest.fixture
def system_log():
    """A log daemon's socket, where there is none."""
    if os.path.lexists(SYSTEM_LOG):
        pytest.skip(f"a log daemon listens at {SYSTEM_LOG}")
    if not os.access(SYSTEM_LOG.parent, os.W_OK):
        pytest.skip("needs root")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(SYSTEM_LOG))
        listener.settimeout(mounting.PATIENCE)
        try:
            yield listener
        finally:
            SYSTEM_LOG.unlink()


def fail_to_read(point):
    with pytest.raises(OSError):
        (point / "plain/c/0/0").read_bytes()


def lines(point):
    return (point / ".zarr-mount/log").read_text().splitlines()


def test_a_mount_in_the_background_logs_to_the_system(store, mounted, system_log):
    point = mounted(store, "--view", "chunks", "-v")
    pid, = mounting.daemons(point)
    fail_to_read(point)
    received = []
    while not any("plain/c/0/0" in record for record in received):
        received.append(system_log.recv(4096).decode())
    assert all(re.fullmatch(rf"<(27|28|30)>zarr-mount\[{pid}\]: [^\n]+", record) for record in received), received
    assert any(record.startswith("<30>") and f"mounted at {point}" in record for record in received)
    assert received[-1].startswith("<28>")
    # The same text, in the same order.
    assert [line.split("] ", 1)[1] for line in lines(point)] == [record.split(": ", 1)[1] for record in received]


def test_a_log_file_takes_its_place(store, mounted, system_log, tmp_path):
    point = mounted(store, "--view", "chunks", "-v", "--log-file", tmp_path / "log")
    fail_to_read(point)
    assert "plain/c/0/0" in (tmp_path / "log").read_text()
    assert (tmp_path / "log").read_text().splitlines() == lines(point)
    system_log.setblocking(False)
    with pytest.raises(BlockingIOError):
        system_log.recv(4096)


def test_a_log_daemon_that_hangs_or_ends_holds_nothing_up(store, mounted, system_log):
    point = mounted(store, "--view", "keys", "-vvv")
    for _ in range(200):  # more than the socket takes
        os.stat(point / "plain")
        (point / "notes.txt").read_bytes()
        with pytest.raises(FileNotFoundError):
            os.stat(point / "absent")
    system_log.close()
    assert (point / "notes.txt").read_bytes() == (store / "notes.txt").read_bytes()


def test_without_a_log_daemon_the_last_lines_are_there(store, mounted):
    point = mounted(store, "--view", "chunks")
    log = point / ".zarr-mount/log"
    assert log.read_bytes() == b"" and log.stat().st_size == 0
    fail_to_read(point)
    line, = lines(point)
    assert LINE.fullmatch(line) and "WARN" in line and "plain/c/0/0" in line
    assert log.stat().st_size == len(line) + 1
    assert ok("tail", "-n", "1", log) == line + "\n"
    assert sorted(os.listdir(point / ".zarr-mount")) == ["log", "metrics", "stats.json"]
    with pytest.raises(OSError):
        open(log, "a")


def test_the_size_is_that_of_now_where_nothing_else_changes(store, mounted):
    point = mounted(store, "--view", "chunks", "--immutable")
    log = point / ".zarr-mount/log"
    assert log.stat().st_size == 0
    fail_to_read(point)
    assert log.stat().st_size == len(log.read_bytes()) > 0


def test_the_last_thousand_lines(store, mounted):
    point = mounted(store, "--log-level", "trace")
    for n in range(1500):
        with pytest.raises(FileNotFoundError):
            os.stat(point / f"absent{n}")
    kept = lines(point)
    assert len(kept) == 1000
    assert all(LINE.fullmatch(line) and len(line.encode()) <= 1024 for line in kept)


def test_lines_of_a_hostile_store_are_escaped(mounted, tmp_path):
    store = sample.write(tmp_path / "s.zarr")
    (store / "plain/c/0/0").write_bytes(b"no zstd")
    (store / "plain").rename(store / "p\x1b[31m\nWARN forged")
    point = mounted(store, "--view", "chunks")
    with pytest.raises(OSError):
        (point / "p\x1b[31m\nWARN forged/c/0/0").read_bytes()
    line, = lines(point)
    assert LINE.fullmatch(line) and "\x1b" not in line


@pytest.mark.root
@pytest.mark.parametrize("args", [[], ["--uid", str(NOBODY), "--gid", str(NOBODY)], ["--umask", "0"]], ids=str)
def test_no_other_user_reads_it(open_path, mounted, args):  # noqa: F811
    store = sample.write(open_path / "s.zarr")
    point = mounted(store, "-o", "allow_other", *args, point=open_path / "m")
    log = point / ".zarr-mount/log"
    status = os.stat(log)
    assert (stat.S_IMODE(status.st_mode), status.st_uid) == (0o400, 0)
    assert run(*AS_NOBODY, "cat", log).returncode != 0
    assert run(*AS_NOBODY, "cat", point / ".zarr-mount/stats.json").returncode == 0


@pytest.mark.root
def test_it_belongs_to_the_user_of_the_daemon(open_path, mounted, command):  # noqa: F811
    store = sample.write(open_path / "s.zarr")
    point = open_path / "m"
    point.mkdir()
    os.chown(point, NOBODY, NOBODY)
    mounted(store, prefix=AS_NOBODY, binary=command, point=point)
    assert ok(*AS_NOBODY, "stat", "-c", "%a %u", point / ".zarr-mount/log").split() == ["400", str(NOBODY)]
    assert run(*AS_NOBODY, "cat", point / ".zarr-mount/log").returncode == 0
    ok(*AS_NOBODY, command, "--unmount", point)
