"""`--inject`: the store that is mounted is recorded, fails, is slow, or hangs.

Only a debug build has the option.
"""
import errno
import os
import threading
import time

import pytest

from support import mounting

DEBUG_BINARY = mounting.CHECKOUT / "target" / "debug" / "zarr-mount"
CHUNK = "legacy/elevation/0.0"
CHUNK_BYTES = 20 * 40 * 4


@pytest.fixture(scope="module", autouse=True)
def debug_binary():
    if not os.access(DEBUG_BINARY, os.X_OK):
        mounting.ok("cargo", "build", cwd=mounting.CHECKOUT, timeout=1800)


@pytest.fixture
def injected(mount):
    """injected(*specs): `demo:` with its chunks decoded, and these specifications."""
    def make(*specs):
        return mount("demo:", "--view", "chunks", *(f"--inject={spec}" for spec in specs), binary=DEBUG_BINARY)
    return make


def requests_of_cat(injected, folder):
    """The requests before a chunk is read, and the requests for the chunk."""
    file = folder / "requests"
    made = injected(f"record={file}")
    before = file.read_text().splitlines()
    assert len((made.path / CHUNK).read_bytes()) == CHUNK_BYTES
    after = file.read_text().splitlines()
    made.unmount()
    assert after[:len(before)] == before
    return before, after[len(before):]


def reads(lines):
    return [line for line in lines if line.startswith(("read ", "fetch "))]


def test_the_requests_of_one_cat_are_recorded(injected, tmp_path):
    _, asked = requests_of_cat(injected, tmp_path)
    kinds = {line.split()[0] for line in asked}
    assert kinds <= {"stat", "open", "list", "next", "read", "fetch", "verify"}, asked
    chunk = [line for line in reads(asked) if f" {CHUNK} " in line]
    assert len(chunk) == 1, asked
    assert chunk[0].split()[2].startswith("0.."), asked
    # No other chunk is read. A document is opened and read by one request, also where there is no document.
    names = {line: line.split()[1].rpartition("/")[2] for line in reads(asked)}
    others = [line for line, name in names.items() if not name.startswith(".z") and name != "zarr.json"]
    assert others == chunk


def test_a_read_that_fails_is_an_error_once(injected, tmp_path):
    before, asked = requests_of_cat(injected, tmp_path)
    lines = before + asked
    at = next(i for i, line in enumerate(lines) if line in reads([line]) and f" {CHUNK} " in line)
    kind = lines[at].split()[0]
    nth = sum(line.startswith(kind + " ") for line in lines[:at + 1])
    made = injected(f"fail={kind}:{nth}:io")
    # The read bypasses the page cache: if readahead fails, the kernel reports nothing and reads once more.
    file = os.open(made.path / CHUNK, os.O_RDONLY | os.O_DIRECT)
    try:
        with pytest.raises(OSError) as refused:
            os.pread(file, CHUNK_BYTES, 0)
        assert refused.value.errno == errno.EIO
        assert len(os.pread(file, CHUNK_BYTES, 0)) == CHUNK_BYTES
    finally:
        os.close(file)
    assert len((made.path / CHUNK).read_bytes()) == CHUNK_BYTES


def test_chunks_hang_while_a_file_exists(injected, tmp_path):
    gate = tmp_path / "gate"
    made = injected(f"hang={gate}")
    cached = (made.path / "legacy/elevation/0.1").read_bytes()
    gate.touch()
    got = []
    reader = threading.Thread(target=lambda: got.append((made.path / CHUNK).read_bytes()), daemon=True)
    try:
        reader.start()
        time.sleep(0.3)
        assert reader.is_alive() and not got
        # Documents and cached chunks can be read meanwhile.
        assert (made.path / "legacy/elevation/.zarray").read_bytes()
        assert (made.path / "legacy/elevation/0.1").read_bytes() == cached
        assert reader.is_alive()
    finally:
        gate.unlink()
    reader.join(mounting.PATIENCE)
    assert [len(chunk) for chunk in got] == [CHUNK_BYTES]


def test_a_slow_store_is_slow(injected):
    made = injected("slow=50ms,jitter=5ms,in-flight=8")
    started = time.monotonic()
    assert len((made.path / CHUNK).read_bytes()) == CHUNK_BYTES
    assert time.monotonic() - started > 0.05


def test_an_invalid_specification_is_refused(tmp_path):
    done = mounting.run(DEBUG_BINARY, "demo:", tmp_path / "m", "--inject", "fail=read:0:io")
    assert done.returncode == 2 and "fail=KIND:N:HOW" in done.stderr, done.stderr
    assert "--inject" not in mounting.ok(DEBUG_BINARY, "--help")
