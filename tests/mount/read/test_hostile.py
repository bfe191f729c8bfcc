"""Broken and hostile stores: an error where something is wrong, everything else right, the daemon alive."""
import errno
import os

import pytest

from support import corpus, hostile, reading

MIB = 1 << 20
BUDGET = 16 * MIB
BOUND = BUDGET + 64 * MIB
READ_AT_MOST = 4 * MIB  # of one file: a hostile document may promise exabytes
ENTRIES_AT_MOST = 10_000
CASES = [(store, view) for store in corpus.of_kind("corrupt") for view in ("keys", "chunks")]


@pytest.fixture(scope="module", params=CASES, ids=[f"{hostile.stem(s)}-{v}" for s, v in CASES])
def shown(request, module_mount):
    """(store, view, mount). After each test, the daemon must still run, and must have kept to its memory."""
    store, view = request.param
    made = module_mount(store.path, "--view", view, "--cache-size", "16M")
    yield store, view, made
    assert made.alive()
    assert made.peak_bytes() <= BOUND, f"{made.peak_bytes() / MIB:.0f} MiB resident"
    made.unmount()


def attempt(path):
    """The bytes of a file (READ_AT_MOST of them), or the errno that open or read gave."""
    try:
        with open(path, "rb", buffering=0) as f:
            out = b""
            while len(out) < READ_AT_MOST and (piece := f.read(min(MIB, READ_AT_MOST - len(out)))):
                out += piece
            return out
    except OSError as error:
        return error.errno


def walk(root):
    """(path, bytes or errno) of every file that can be listed. Ends, and follows no link."""
    todo, seen = [os.fsencode(root)], 0
    while todo:
        base = todo.pop()
        try:
            entries = list(os.scandir(base))
        except OSError as error:
            yield base, error.errno
            continue
        for entry in entries:
            seen += 1
            assert seen < ENTRIES_AT_MOST, "the walk does not end"
            if entry.is_dir(follow_symlinks=False):
                todo.append(entry.path)
            else:
                yield entry.path, attempt(entry.path)


def test_nothing_outside_the_store_is_served(shown):
    _, _, made = shown
    for path, got in walk(made.path):
        assert isinstance(got, int) or corpus.SECRET not in got, path
    assert made.alive()


@pytest.mark.about(when=lambda store, _: hostile.stem(store) == "tree_symlink_escape")
def test_links_that_leave_are_not_followed(shown):
    store, _, made = shown
    refusals = {errno.EACCES, errno.EIO, errno.ELOOP}
    # Not ENOENT for the chunk: absent would read as the fill value.
    assert attempt(made.path / "a/c/0/0") in refusals
    assert attempt(made.path / "linked_dir/secret.bin") in refusals | {errno.ENOENT, errno.ENOTDIR}


def region(made, top_row):
    """Four rows of array `a` from its decoded chunk files: bytes, or the errnos met."""
    directory = made.path / "a"
    if (directory / "zarr.json").exists():
        shown = reading.Shown.at(directory)
        rows = shown.chunks[0]
        paths = [shown.chunk_path((row // rows, 0)) for row in range(top_row, top_row + 4, rows)]
    else:
        paths = [directory / f"{top_row // 4}.0"]
    pieces = [attempt(path) for path in paths]
    errors = {piece for piece in pieces if isinstance(piece, int)}
    return errors or b"".join(pieces)


@pytest.mark.about(when=lambda store, view: view == "chunks" and hostile.damaged_chunk(store))
def test_a_damaged_chunk_is_an_error_and_the_other_reads(shown):
    store, view, made = shown
    assert region(made, 4) == hostile.BOTTOM
    got = region(made, 0)
    if isinstance(got, set):
        assert got <= {errno.EIO, errno.EACCES, errno.ELOOP}, got
    else:
        assert got in hostile.ALSO_FINE.get(hostile.stem(store), ()), got


def unsharded(store, view):
    stem = hostile.stem(store)
    sharded = stem.startswith("shard_") or stem in ("meta_shard_not_divisible", "meta_shard_zero_inner")
    return view == "keys" and hostile.array_entry(store) is not None and not stem.startswith("tree_") and not sharded


@pytest.mark.about(when=unsharded)
def test_an_unsharded_chunk_is_shown_as_stored(shown):
    store, _, made = shown
    for key in ("c/0/0", "c/1/0", "0.0", "1.0"):
        stored = store.path / "a" / key
        if stored.is_file() and stored.stat().st_size <= READ_AT_MOST:
            assert attempt(made.path / "a" / key) == stored.read_bytes(), key


@pytest.mark.about(when=lambda store, _: hostile.stem(store).startswith("shard_"))
def test_a_false_shard_index_never_looks_like_absence(shown):
    store, _, made = shown
    fine = {hostile.TOP[:32], hostile.TOP[32:], hostile.TOP[16:48]}
    lenient = hostile.array_entry(store)["expect"] == "lenient"
    for row in (0, 1):
        got = attempt(made.path / "a" / "c" / str(row) / "0")
        absent = lenient and got in (errno.ENOENT, hostile.EMPTY[:32])
        assert got == errno.EIO or got in fine or absent, (row, got)
    for row in (2, 3):
        cut = hostile.SOUND[row * 2:row * 2 + 2].tobytes()
        assert attempt(made.path / "a" / "c" / str(row) / "0") == cut


@pytest.mark.about(when=lambda store, _: hostile.stem(store).startswith("shard_"))
def test_listing_a_directory_with_a_false_shard_goes_on(shown):
    store, _, made = shown
    assert {"2", "3"} <= set(os.listdir(made.path / "a" / "c"))


@pytest.mark.about(when=lambda store, view: view == "chunks" and hostile.damaged_array(store))
def test_an_array_that_cannot_be_decoded_is_refused(shown):
    store, view, made = shown
    directory = made.path / "a"
    name = "zarr.json" if (store.path / "a" / "zarr.json").exists() else ".zarray"
    assert (directory / "ERROR.txt").read_text().strip()
    assert (directory / f"{name}.unsupported").read_bytes() == (store.path / "a" / name).read_bytes()
    assert not (directory / name).exists()


@pytest.mark.about(when=lambda store, view: view == "chunks" and hostile.stem(store) in hostile.BAD_STRINGS)
def test_chunks_of_strings_that_are_wrong_are_errors(shown):
    _, _, made = shown
    # The chunk that the manifest calls sound holds numbers, so it is no chunk of strings either.
    for name in ("0.0", "1.0"):
        assert attempt(made.path / "a" / name) == errno.EIO
    assert {"0.0", "1.0"} <= set(os.listdir(made.path / "a"))


@pytest.mark.about(when=lambda store, view: view == "chunks"
                   and (hostile.damaged_array(store) or hostile.stem(store) in hostile.NO_DOCUMENT))
@pytest.mark.parametrize("reader", ["zarr_python", "tensorstore"])
def test_readers_refuse_arrays_that_cannot_be_decoded(shown, reader):
    """Never zeros: a document beside absent chunks would read as all fill value, without an error."""
    _, _, made = shown
    for zarr_format in (2, 3):
        with pytest.raises(Exception):
            reading.READERS[reader](made.path, "a", zarr_format)


@pytest.mark.about(when=lambda store, view: view == "chunks" and hostile.damaged_chunk(store))
@pytest.mark.parametrize("reader", ["zarr_python", "tensorstore"])
def test_readers_meet_an_error_at_a_damaged_chunk(shown, reader):
    store, _, made = shown
    if not isinstance(region(made, 0), set):
        # Decoded leniently, as the manifest allows here alone.
        assert hostile.stem(store) in hostile.ALSO_FINE
        return
    zarr_format = 3 if (store.path / "a" / "zarr.json").exists() else 2
    with pytest.raises(Exception):
        reading.READERS[reader](made.path, "a", zarr_format)


@pytest.mark.about(when=lambda store, view: view == "chunks" and hostile.stem(store) in hostile.MAY_BE_SHOWN)
def test_sizes_do_not_wrap_round(shown):
    store, view, made = shown
    if not (made.path / "a" / "zarr.json").exists():
        assert (made.path / "a" / "ERROR.txt").read_text().strip()
        return
    shown_array = reading.Shown.at(made.path / "a")
    size = 4
    for n in shown_array.chunks:
        size *= n
    first = shown_array.chunk_path((0,) * len(shown_array.shape))
    assert os.stat(first).st_size == size


@pytest.mark.about(when=lambda store, _: hostile.sibling(store) is not None)
@pytest.mark.parametrize("reader", ["zarr_python", "tensorstore"])
def test_the_sibling_decodes(shown, reader):
    store, _, made = shown
    sibling = hostile.sibling(store)
    got = reading.READERS[reader](made.path, "b", sibling["zarr_format"])
    assert reading.digest(reading.canonical(got)) == sibling["sha256"]


@pytest.mark.about(when=lambda store, _: hostile.stem(store) == "tree_two_formats")
def test_two_formats_in_one_directory(shown):
    store, _, made = shown
    assert (reading.with_zarr_python(made.path, "b", 3) == hostile.SOUND).all()


@pytest.mark.about(when=lambda store, _: hostile.stem(store) == "tree_odd_names")
def test_odd_names(shown):
    store, _, made = shown
    names = set(os.listdir(os.fsencode(made.path)))
    stored = set(os.listdir(os.fsencode(store.path)))
    assert b"b" in names and "nfd-é".encode() in names
    # Shown as they are; a name may be escaped or left out, and no stored name may stand for another.
    for name in names & stored:
        here, there = (os.path.join(os.fsencode(p), name) for p in (made.path, store.path))
        assert os.path.isdir(here) == os.path.isdir(there)
