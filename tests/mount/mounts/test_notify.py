"""The messages of the program to systemd, as a service of Type=notify, over the socket that NOTIFY_SOCKET names."""
import os
import signal
import socket
import subprocess

import pytest

from support import mounting, sample
from support.mounting import BINARY, mount_entry


@pytest.fixture
def service(tmp_path):
    """service(words) starts the program in the foreground; its messages arrive at service.socket."""
    path = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(path))
        listener.settimeout(mounting.PATIENCE)
        started = []

        def start(*words):
            started.append(subprocess.Popen([BINARY, "-f", *map(str, words)], env=os.environ | {"NOTIFY_SOCKET": str(path)},
                                            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))
            return started[-1]

        start.socket = listener
        yield start
        for program in started:
            program.kill()
            program.communicate()
    mounting.force_away(tmp_path / "m")


def lines(service):
    return service.socket.recv(4096).decode().split()


@pytest.mark.parametrize("ending", ["SIGTERM", "--unmount"])
def test_ready_when_the_mount_answers(service, tmp_path, ending):
    store, point = sample.write(tmp_path / "s.zarr"), tmp_path / "m"
    program = service(store, point)
    assert "READY=1" in lines(service)
    # With no wait.
    assert mount_entry(point) and (point / "notes.txt").read_bytes() == (store / "notes.txt").read_bytes()
    if ending == "SIGTERM":
        program.send_signal(signal.SIGTERM)
        assert "STOPPING=1" in lines(service)
    else:
        mounting.ok(BINARY, "--unmount", point)
    assert program.wait(mounting.PATIENCE) == 0 and not mount_entry(point)


def test_never_ready_without_a_mount(service, tmp_path):
    program = service(tmp_path / "none.zarr", tmp_path / "m")
    assert program.wait(mounting.PATIENCE) == 1
    service.socket.setblocking(False)
    with pytest.raises(BlockingIOError):
        service.socket.recv(4096)
