"""Several programs, and handles, that use the same files of a mount with `--rw`; and a program that writes to the store beside it."""
import errno
import os
import subprocess
import sys
import threading
import time

import pytest

from support import writing_samples
from support.mounting import ok, other_program, until
from support.writing_samples import ARGS, store, written  # noqa: F401, two of them are fixtures

C = "a/c/0/0"  # a chunk
SECONDS = float(os.environ.get("ZARR_MOUNT_SECONDS", "2"))


def side_by_side(*functions):
    """Calls the functions in threads until the time is over; each gets a function that returns true until then."""
    until, errors = time.monotonic() + SECONDS, []

    def run(function):
        try:
            function(lambda: time.monotonic() < until)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@pytest.mark.parametrize("name", [C, "notes"])
def test_programs_that_write_parts_of_one_file(name, store, written):
    """Each program counts in a place of its own, with a new handle each time, and finds the number that it wrote before."""
    path = written.path / name
    path.write_bytes(bytes(300))
    counts = [0, 0, 0]

    def count(n, goes_on):
        # On a busy machine, ten turns may take longer than the test usually does.
        while goes_on() or counts[n] <= 10:
            fd = os.open(path, os.O_RDWR)
            assert int.from_bytes(os.pread(fd, 8, n * 100), "little") == counts[n]
            counts[n] += 1
            os.pwrite(fd, counts[n].to_bytes(8, "little"), n * 100)
            os.close(fd)

    side_by_side(*(lambda goes_on, n=n: count(n, goes_on) for n in range(3)))
    found = (store / name).read_bytes()
    assert [int.from_bytes(found[n * 100:n * 100 + 8], "little") for n in range(3)] == counts and min(counts) > 10


def test_a_chunk_that_two_programs_write_anew_is_never_half_written(store, written):
    contents = [bytes([n]) * 5000 for n in (1, 2)]
    (written.path / C).write_bytes(contents[0])

    def write(data, goes_on):
        while goes_on():
            fd = os.open(written.path / C, os.O_WRONLY | os.O_TRUNC)
            os.write(fd, data[:2000])
            os.write(fd, data[2000:])
            os.close(fd)

    def look(goes_on):
        while goes_on():
            assert len((store / C).read_bytes()) == 5000

    side_by_side(*(lambda goes_on, data=data: write(data, goes_on) for data in contents), look)


def test_a_chunk_that_another_program_replaces_too_is_always_whole(store, written):
    (store / C).write_bytes(b"o" * 1000)

    def outside(goes_on):
        n = 0
        while goes_on():
            n += 1
            (store / f"new{n % 3}").write_bytes(b"o" * 1000)
            os.replace(store / f"new{n % 3}", store / C)

    def inside(goes_on):
        while goes_on():
            try:
                (written.path / C).write_bytes(b"i" * 1000)
            except OSError as error:
                assert error.errno == errno.ESTALE

    def look(goes_on):
        while goes_on():
            assert set((store / C).read_bytes()) in ({ord("o")}, {ord("i")})
            assert (store / C).stat().st_size == 1000

    side_by_side(outside, inside, look)


def test_a_file_that_was_renamed_while_it_was_open_is_replaced_whole_from_then_on(store, written):
    fd = os.open(written.path / "a/tmp", os.O_RDWR | os.O_CREAT)
    os.write(fd, b"first")
    os.rename(written.path / "a/tmp", written.path / C)
    os.link(store / C, store / "snapshot")
    os.pwrite(fd, b"other", 0)
    assert (store / C).read_bytes() == b"first" and (written.path / C).read_bytes() == b"other"
    with open(written.path / C, "wb") as file:
        file.write(b"third")
        file.flush()
        assert (store / C).read_bytes() == b"first"
    os.close(fd)
    assert (store / C).read_bytes() == b"third" and (store / "snapshot").read_bytes() == b"first"


# A file that is neither a chunk nor a document is not waited for, however coarse its times are.
@pytest.mark.parametrize("name", [C, pytest.param("notes", marks=pytest.mark.local)])
def test_writes_in_place_by_another_program_while_a_reader_has_the_file_open(name, store, written):
    (store / name).write_bytes(b"old old old")
    fd = os.open(written.path / name, os.O_RDONLY)
    assert os.pread(fd, 20, 0) == b"old old old"
    time.sleep(0.1)
    with open(store / name, "r+b") as file:
        file.write(b"new")
    os.close(fd)
    assert (written.path / name).read_bytes() == b"new old old"
    time.sleep(1.2)
    assert (written.path / name).read_bytes() == b"new old old"


@pytest.mark.root
def test_a_draft_that_could_not_be_saved_is_not_shown(disk, mount):
    store = writing_samples.write(disk("2M") / "store")
    (store / C).write_bytes(b"o" * 900_000)
    made = mount(store, *ARGS)
    done = subprocess.run(["dd", "if=/dev/zero", f"of={made.path / C}", "bs=100k", "count=20"], capture_output=True, text=True)
    assert done.returncode == 1 and "No space left" in done.stderr
    assert (store / C).read_bytes() == b"o" * 900_000
    # The kernel sends the release a moment later.
    time.sleep(0.3)
    assert (made.path / C).read_bytes() == b"o" * 900_000
    made.unmount()


def test_a_handle_that_only_reads_truncates_too(store, written):
    for name in (C, "notes"):
        (written.path / name).write_bytes(b"some bytes")
        os.close(os.open(written.path / name, os.O_RDONLY | os.O_TRUNC))
        until(lambda: (store / name).read_bytes() == b"", "the release of the file")


def test_names_that_are_removed_and_made_again_are_new(store, written):
    m = written.path
    (m / "d").mkdir()
    held = os.open(m / "d", os.O_RDONLY)
    for _ in range(3):
        (m / "d/x").write_bytes(b"1")
        os.unlink(m / "d/x")
        (m / "d").rmdir()
        (m / "d").mkdir()
        (m / "d/y").write_bytes(b"2")
        assert os.fstat(held).st_ino != (m / "d").stat().st_ino
        os.unlink(m / "d/y")
    os.close(held)
    script = "import os, sys, shutil; os.chdir(sys.argv[1]); shutil.rmtree(sys.argv[1]); os.mkdir(sys.argv[1]); open(sys.argv[1] + '/f', 'w').close()"
    subprocess.run([sys.executable, "-c", script, m / "d"], check=True)
    assert os.listdir(m / "d") == ["f"]
    # Files too: the old one lives on with its handle.
    (m / "f").write_bytes(b"old")
    fd = os.open(m / "f", os.O_RDWR)
    (m / "g").write_bytes(b"new file")
    os.rename(m / "g", m / "f")
    os.ftruncate(fd, 1)
    assert os.fstat(fd).st_size == 1 and os.pread(fd, 10, 0) == b"o" and (m / "f").read_bytes() == b"new file"
    os.close(fd)
    (m / "e").mkdir()
    fd = os.open(m / "e/0", os.O_CREAT | os.O_WRONLY)
    with pytest.raises(OSError) as caught:
        os.rename(m / "d", m / "e")
    assert caught.value.errno == errno.ENOTEMPTY
    os.close(fd)


def test_random_handles_of_files_that_are_renamed_and_removed(store, written, tmp_path):
    """The size and the bytes of a file without a name, by each handle, as in a plain directory."""
    import random
    chosen = random.Random(5)
    plain = tmp_path / "plain"
    plain.mkdir()
    roots, names, handles = (written.path, plain), ["0.0", "x", "c"], []
    for _ in range(1500):
        name, other, size = chosen.choice(names), chosen.choice(names), chosen.choice([0, 3, 5000])
        call = chosen.choice(["open", "open", "write", "cut", "rename", "unlink", "truncate", "close", "look", "look"])
        answers = []
        how = os.O_RDWR | os.O_CREAT | chosen.choice([0, os.O_TRUNC])
        held = chosen.choice(handles) if handles else None
        pair = []
        for side, root in enumerate(roots):
            try:
                if call == "open":
                    pair.append(os.open(root / name, how))
                    answers.append("opened")
                elif call == "rename":
                    answers.append(os.rename(root / name, root / other))
                elif call == "unlink":
                    answers.append(os.unlink(root / name))
                elif call == "truncate":
                    answers.append(os.truncate(root / name, size))
                elif held and call == "write":
                    answers.append(os.pwrite(held[side], b"w" * 50, size))
                elif held and call == "cut":
                    answers.append(os.ftruncate(held[side], size))
                elif held and call == "look":
                    answers.append((os.fstat(held[side]).st_size, os.pread(held[side], 9000, 0)))
                elif held and call == "close":
                    answers.append(os.close(held[side]))
            except OSError as error:
                answers.append(error.errno)
        assert len(set(answers)) <= 1, (call, name, other, size)
        if len(pair) == 2:
            handles.append(pair)
        if held and call == "close":
            handles.remove(held)
    for pair in handles:
        for fd in pair:
            os.close(fd)


class TestSyncBesideWhoWritesAnew:
    """One handle writes the chunk anew, and goes on; another one has written, or has not."""

    @pytest.fixture
    def handles(self, store, written):
        text = (written.path / C).read_bytes()
        other = os.open(written.path / C, os.O_RDWR)
        yield store / C, text, other, lambda: os.open(written.path / C, os.O_WRONLY | os.O_TRUNC)
        os.close(other)

    def test_a_handle_that_has_written_saves_all(self, handles):
        chunk, _, other, rewriter = handles
        fd = rewriter()
        os.write(fd, b"half")
        os.pwrite(other, b"mine", 4)
        # A duplicate that is closed is not the end of it.
        os.close(os.dup(other))
        assert chunk.read_bytes() != b"halfmine"
        os.fsync(other)
        assert chunk.read_bytes() == b"halfmine"
        os.close(fd)

    def test_another_program_that_has_nothing_new_leaves_it(self, handles, written):
        chunk, text, other, rewriter = handles
        os.pwrite(other, b"mine", 0)
        os.fsync(other)
        assert chunk.read_bytes() == b"mine" + text[4:]
        with other_program() as sync:
            fd = rewriter()
            os.write(fd, b"half")
            sync(written.path / C)
            assert chunk.read_bytes() == b"mine" + text[4:]
        os.close(fd)
        assert chunk.read_bytes() == b"half"

    def test_the_program_saves_it_through_any_handle(self, handles, written):
        chunk, text, other, rewriter = handles
        fd = rewriter()
        os.write(fd, b"all")
        with open(written.path / C, "rb") as reader:
            os.fsync(reader)
        assert chunk.read_bytes() == b"all"
        os.close(fd)

    def test_writes_of_a_child_are_saved_when_it_ends(self, handles):
        chunk, _, _, rewriter = handles
        fd = rewriter()
        child = subprocess.Popen(["sh", "-c", "printf new"], stdout=fd)
        os.close(fd)
        assert child.wait() == 0
        assert chunk.read_bytes() == b"new"
