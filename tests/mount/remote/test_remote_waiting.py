"""Readers that wait for a server that says nothing: they wait for `--timeout` once, and can be killed."""
import errno
import os
import subprocess
import threading
from contextlib import ExitStack

import pytest

from support import mounting, remote_samples
from support.mounting import until
from support.remote_fault_server import FaultServer
from support.remote_samples import chunk, mounted

BOTH = pytest.mark.parametrize("kind", ["http", "s3"])
NOTES = 8


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("root")
    made = remote_samples.write(folder, consolidate=True)
    for n in range(NOTES):
        (made / f"note{n}.txt").write_text("note")
    remote_samples.age(folder)
    return folder


def outcome(fd):
    """The first bytes, or the number of the error."""
    try:
        return os.pread(fd, 4096, 0)
    except OSError as error:
        return error.errno


@BOTH
def test_a_reader_waits_once(kind, root, mount):
    """The kernel repeats a read that failed, and the repetition gets the error at once. The next read asks the server again."""
    reads = {"arrays/plain.raw": chunk("plain", 0), "chunks/first/c/1": chunk("first", 1)[:4096], "keys/hole/c/1": chunk("plain", 1)}
    with FaultServer(root, kind) as server, ExitStack() as closing:
        made = mounted(mount, server, "--view", "arrays,chunks,keys", "--files", "raw", "--timeout", "5", "--readahead", "0", "--ttl", "60")
        files = {name: os.open(made.path / name, os.O_RDONLY) for name in reads}
        for file in files.values():
            closing.callback(os.close, file)
        server.rules({"fault": "hold", "method": "GET", "key": "*/c/*"})
        server.clear()
        found = {}

        def read(name):
            found[name] = outcome(files[name])

        readers = [threading.Thread(target=read, args=(name,)) for name in reads]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        # Nothing was answered so far, so that each error is that of the time limit.
        assert found == dict.fromkeys(reads, errno.EIO)
        asked = [(r["key"], r["range"]) for r in server.requests(method="GET")]
        # A request whose answer is late is sent a second time on another connection.
        hedges = made.stats()["server"]["hedges"]
        assert len(asked) >= len(reads) and len(asked) - hedges <= len(set(asked)), (asked, hedges)
        server.rules()
        for name, right in reads.items():
            assert outcome(files[name]) == right, name


def waiting(server, *commands):
    """Starts the commands, and returns when a request of each of them waits for the server."""
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
    """Readers that wait for a name, an open, a listing or bytes can be killed. After that, the mount can be unmounted."""
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


def test_the_lookup_of_a_killed_reader_is_released(root, mount):
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
        # This reader is not killed, so that its lookup is the only one that stays.
        assert notes[0].read_text() == "note"
        until(lambda: interned() <= before + 1, lambda: f"{interned()} names, {before} before")
        made.unmount()


def test_a_read_ahead_without_a_waiting_program_keeps_no_error(root, mount):
    """The next read asks the server, although the read that `posix_fadvise` has begun failed a moment ago."""
    with FaultServer(root) as server:
        made = mounted(mount, server, "--view", "keys", "--timeout", "2", "--ttl", "60")
        file = os.open(made.path / "hole" / "c" / "1", os.O_RDONLY)
        try:
            server.rules({"fault": "hold", "method": "GET", "key": "*/c/*"})
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_WILLNEED)
            until(lambda: "hole/c/1" in made.log_text(), "the error of the read ahead")
            server.rules()
            assert outcome(file) == chunk("plain", 1)
        finally:
            os.close(file)
        made.unmount()
