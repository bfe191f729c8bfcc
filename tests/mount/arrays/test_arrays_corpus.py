"""Every array of the corpus as `.npy` and `.raw`, and what the broken stores show instead."""
import errno
import mmap
import os
from pathlib import Path

import pytest

from support import corpus, hostile
from support.array_corpus import check, check_strings, file_of, left_out, refusal_of

SOUND = [s for s in corpus.stores().values() if s.kind != "corrupt" and s.arrays]
BROKEN = corpus.of_kind("corrupt")
READ_AT_MOST = 1 << 20  # a hostile document may promise exabytes
BOUND = (16 + 64) << 20
REFUSALS = {errno.EIO, errno.EACCES, errno.ELOOP}


@pytest.mark.parametrize("store", SOUND, ids=lambda s: s.name)
def test_sound_arrays(store, mount):
    """Those that must decode do; those that may be refused are refused in words, or decode too."""
    made = mount(store.path, "--view", "arrays", "--files", "npy,raw,jsonl")
    wrong, told = [], 0
    old = store.kind not in ("v2", "v3")  # their codecs are spelled in other ways
    must = {a["path"] for a in store.arrays if a["expect"] == "ok" and (old or corpus.codecs_listed(a))}
    for array in store.arrays:
        strings = str(array.get("dtype")).startswith("vlen")
        shown = file_of(made.path, store, array, "jsonl" if strings else "raw").exists()
        if array["path"] not in must and not shown:
            told += 1
            if not refusal_of(made.path, array) and not left_out(made.path, store, array):
                wrong.append((array["path"], "absent without a word"))
            continue
        if array["expect"] in ("ok", "optional") and "dtype" in array:
            wrong.append((array["path"], (check_strings if strings else check)(made.path, store, array)))
    wrong = [w for w in wrong if w[1]]
    assert not wrong, wrong
    made.unmount()


@pytest.mark.parametrize("store", BROKEN, ids=hostile.stem)
def test_broken_stores(store, mount):
    """The array that is wrong is refused or gives an error, never other values; its neighbour reads."""
    made = mount(store.path, "--view", "arrays", "--files", "npy,raw", "--cache-size", "16M")
    beside = hostile.sibling(store)
    if beside:
        assert check(made.path, store, beside) is None
    if hostile.damaged_array(store):
        assert refusal_of(made.path, {"path": "a"}), os.listdir(made.path)
        assert not (made.path / "a.npy").exists() and not (made.path / "a.raw").exists()
    if hostile.damaged_chunk(store):
        top, bottom = (attempt(made.path / "a.raw", offset, 64) for offset in (0, 64))
        assert bottom == hostile.BOTTOM
        assert top in hostile.ALSO_FINE.get(hostile.stem(store), REFUSALS) or top in REFUSALS, top
    for path in listed(made.path):
        got = attempt(path, 0, READ_AT_MOST)
        assert isinstance(got, int) or corpus.SECRET not in got, path
    assert made.alive() and made.peak_bytes() <= BOUND
    made.unmount()


def attempt(path, offset, length):
    """The bytes of a part of a file, read past the page cache, or the errno of the read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
    except OSError as error:
        return error.errno
    try:
        buffer = mmap.mmap(-1, length)
        return buffer[: os.preadv(fd, [buffer], offset)]
    except OSError as error:
        return error.errno
    finally:
        os.close(fd)


def listed(root, limit=10_000):
    for seen, path in enumerate(Path(root).rglob("*")):
        assert seen < limit, "the walk does not end"
        if path.is_file():
            yield path
