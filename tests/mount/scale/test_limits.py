"""With few file descriptors, or a log that is no file, the program answers or ends with one line, and never hangs."""
import errno
import itertools
import os
import socket
import threading

import numpy as np
import pytest
import zarr

from support.mounting import BINARY, force_away, mount_entry, run

LEAST_DESCRIPTORS = 16
GIVEN_UP = 60  # seconds


def limited(what, limit, *command):
    """A command line that runs under a limit."""
    return ["prlimit", f"--{what}={limit}:{limit}", *command]


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    store = tmp_path_factory.mktemp("small") / "s.zarr"
    group = zarr.open_group(str(store), mode="w")
    for name, layout in {"plain": {}, "sharded": {"shards": (2, 4)}}.items():
        array = group.create_array(name, shape=(64, 4), chunks=(1, 4), dtype="i4", **layout)
        array[...] = np.arange(1, 257).reshape(64, 4)
    return store


@pytest.fixture
def point(tmp_path):
    path = tmp_path / "point"
    path.mkdir()
    yield path
    force_away(path)


def refused(done, point, names):
    assert done.returncode == 1, done
    lines = done.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("zarr-mount: ") and names in lines[0], lines
    assert mount_entry(point) is None


@pytest.mark.parametrize("limit", range(5, LEAST_DESCRIPTORS))
def test_too_few_descriptors_are_one_line(small, point, limit):
    done = run(*limited("nofile", limit, BINARY, small, point), timeout=GIVEN_UP)
    refused(done, point, f"the limit of open files is {limit}")


@pytest.mark.parametrize("limit", [*range(LEAST_DESCRIPTORS, 26), 32, 40, 48, 64])
def test_a_mount_with_few_descriptors_lists_and_reads(small, mount, limit):
    made = mount(small, "--view", "chunks", prefix=limited("nofile", limit))
    assert "zarr.json" in run("ls", "-lR", made.path, timeout=GIVEN_UP).stdout
    expected = np.arange(1, 257, dtype="i4").reshape(64, 4)
    for array in ("plain", "sharded"):
        for row in range(64):
            data = (made.path / array / "c" / str(row) / "0").read_bytes()
            assert np.frombuffer(data, "i4").tolist() == expected[row].tolist()


@pytest.mark.parametrize("limit", [LEAST_DESCRIPTORS, 24, 64])
def test_descriptors_that_run_out_are_an_error_that_passes(small, mount, limit):
    made = mount(small, "--view", "keys", prefix=limited("nofile", limit))
    held, refusals = [], set()
    for row in range(min(limit + 4, 64)):
        try:
            held.append(os.open(made.path / "plain" / "c" / str(row) / "0", os.O_RDONLY))
        except OSError as error:
            refusals.add(error.errno)
    listed = run("ls", "-R", made.path, timeout=GIVEN_UP)
    for descriptor in held:
        os.close(descriptor)
    assert refusals == {errno.EMFILE}, "each file of this view holds a descriptor"
    assert listed.returncode == 0 or "Too many open files" in listed.stderr, listed.stderr
    for row in range(64):
        assert (made.path / "plain" / "c" / str(row) / "0").read_bytes() == (small / "plain" / "c" / str(row) / "0").read_bytes()


def test_an_open_waits_for_a_descriptor_that_is_about_to_be_free(small, mount):
    made = mount(small, "--view", "keys", prefix=limited("nofile", LEAST_DESCRIPTORS))
    names = itertools.cycle([made.path / "plain" / "c" / str(row) / "0" for row in range(64)])
    held = []

    def opens_while_another_file_is_closed():
        with pytest.raises(OSError, match="Too many open files"):
            while True:
                held.append(os.open(next(names), os.O_RDONLY))
        closer = threading.Timer(0.03, os.close, [held.pop()])
        closer.start()
        try:
            held.append(os.open(next(names), os.O_RDONLY))
            return True
        except OSError as error:
            assert error.errno == errno.EMFILE
            return False
        finally:
            closer.join()

    try:
        # On a busy machine, the descriptor may be closed too late: then the open is refused, and is tried again.
        assert any(opens_while_another_file_is_closed() for _ in range(10))
    finally:
        for descriptor in held:
            os.close(descriptor)


@pytest.mark.parametrize("reads", [False, True])
@pytest.mark.parametrize("args", [["--info"], []])
def test_a_fifo_is_no_log_file(small, point, tmp_path, args, reads):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK) if reads else None
    target = [] if args else [point]
    done = run(BINARY, *args, small, *target, "--log-file", fifo, timeout=GIVEN_UP)
    if reads:
        os.close(reader)
    refused(done, point, f"log file {fifo}: it is a FIFO")


def test_a_socket_is_no_log_file(small, point, tmp_path):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        done = run(BINARY, small, point, "--log-file", tmp_path / "socket", timeout=GIVEN_UP)
    refused(done, point, "it is a socket")


def test_dev_null_and_a_terminal_are_log_files(small, tmp_path):
    ours, terminal = os.openpty()
    for log in ("/dev/null", os.ttyname(terminal)):
        done = run(BINARY, "--info", small, "--log-file", log, timeout=GIVEN_UP)
        assert done.returncode == 0 and "(64, 4)" in done.stdout, done
    os.close(ours)
    os.close(terminal)
