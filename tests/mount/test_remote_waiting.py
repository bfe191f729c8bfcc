"""Readers that wait for a server that says nothing can be killed."""
import os
import subprocess

import pytest

import mounting
import remote_samples
from mounting import until
from remote_fault_server import FaultServer
from remote_samples import mounted

NOTES = 8


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("root")
    made = remote_samples.write(folder, consolidate=True)
    for n in range(NOTES):
        (made / f"note{n}.txt").write_text("note")
    remote_samples.age(folder)
    return folder


def waiting(server, *commands):
    """The commands, once requests of all of them wait for the server."""
    started = [subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for command in commands]
    until(lambda: all(server.hits()), "the requests of all commands")
    assert [command.poll() for command in started] == [None] * len(started)
    return started


def kill(commands):
    """Kills them, and waits for their end."""
    for command in commands:
        command.kill()
    for command in commands:
        command.wait(mounting.PATIENCE)


def test_killed_readers_end_before_the_server_answers(root, mount):
    """Whatever they wait for: a name, an open, a listing, bytes. Then nothing keeps the mount from being unmounted."""
    with FaultServer(root, "s3") as server:
        made = mounted(mount, server, "--view", "arrays,chunks,keys", "--files", "raw", "--timeout", "600", "--readahead", "0", "--ttl", "60")
        os.stat(made.path / "chunks" / "first" / "c" / "0")
        commands = {"*/plain/c/1": ["stat", made.path / "chunks" / "plain" / "c" / "1"],
                    "*/note0.txt": ["stat", made.path / "keys" / "note0.txt"],
                    "*/first/c/0": ["cat", made.path / "chunks" / "first" / "c" / "0"],
                    "*/small/c/0": ["dd", f"if={made.path / 'arrays' / 'small.raw'}", "iflag=direct", "bs=4096", "count=1"]}
        rules = [{"fault": "hold", "key": key} for key in commands]
        server.rules(*rules, {"fault": "hold", "method": "LIST"})
        kill(waiting(server, *commands.values(), ["ls", made.path / "keys" / "hole" / "c"]))
        assert server.load()["in_flight"] > 0
        made.unmount()


def test_what_a_killed_reader_looked_up_is_given_back(root, mount):
    """The kernel does not know of names that are found after their reader was killed, and so it never forgets them."""
    with FaultServer(root) as server:
        made = mounted(mount, server, "--view", "keys", "--timeout", "600", "--ttl", "60")

        def interned():
            return made.stats()["vnodes"]["interned"]

        before = interned()
        notes = [made.path / f"note{n}.txt" for n in range(NOTES)]
        server.rules(*({"fault": "hold", "key": f"*/{note.name}"} for note in notes))
        kill(waiting(server, *(["stat", note] for note in notes)))
        server.rules()
        until(lambda: made.stats()["server"]["in_flight"] == 0, "the answers")
        # It was not looked up before, as nobody else was killed.
        assert notes[0].read_text() == "note"
        until(lambda: interned() <= before + 1, lambda: f"{interned()} names, {before} before")
        made.unmount()
