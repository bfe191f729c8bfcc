"""The contents that one user can read: of a store, by path, and of a mount.

A file is read in small pieces, so that a piece that is refused does not hide another one. The markers in these pieces are returned, not
the bytes.
"""
import errno
import json
import os
import re
import traceback
from pathlib import Path

PIECE_BYTES = 4096
MARKER = re.compile(rb"Mk[0-9]{6}")
# Numbers are searched only in texts, because among bytes of elements they would be found by chance.
NUMBER = re.compile(rb"(?<![0-9.])97[0-9]{6}(?![0-9])")
TEXTS = (".json", ".jsonl", ".zarray", ".zattrs", ".zgroup", ".zmetadata", ".nhdr", ".txt")


def as_user(user, function, *args):
    """The result of `function`, called as `user`, a pair of a number and the groups, in a process of its own."""
    number, groups = user
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            os.setgroups(groups)
            os.setgid(number)
            os.setuid(number)
            with os.fdopen(writing, "w") as pipe:
                json.dump(function(*args), pipe)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    assert status == 0, f"the process of user {number} ended with {status}"
    return json.loads(text)


def look(root, names):
    """The markers that are found in each file below `root` that can be opened, and the files that can be read to the end. Looks `names`
    up, and all names that can be listed."""
    found, whole = {}, []
    for name in sorted(set(names) | set(walk(root))):
        read = read_pieces(Path(root, name))
        if read is not None:
            found[name] = sorted(markers_of(name, read[0]))
            if read[1]:
                whole.append(name)
    return found, whole


def walk(root):
    """Paths of all files below that can be listed."""
    for folder, _, names in os.walk(root):
        for name in names:
            yield os.path.relpath(os.path.join(folder, name), root)


def read_pieces(path):
    """The bytes of a file that can be read, and whether these are all of them; None if it cannot be opened."""
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        pieces, whole = [], True
        for offset in range(0, os.fstat(fd).st_size, PIECE_BYTES):
            try:
                pieces.append(os.pread(fd, PIECE_BYTES, offset))
            except OSError:
                whole = False
                pieces.append(b" ")
        return b"".join(pieces), whole
    finally:
        os.close(fd)


def markers_of(name, data):
    found = {marker.decode() for marker in MARKER.findall(data)}
    if name.endswith(TEXTS):
        found |= {number.decode() for number in NUMBER.findall(data)}
    return found


def read_error(path):
    """The name of the error of reading a file, or None."""
    try:
        with open(path, "rb", buffering=0) as file:
            while file.read(1 << 20):
                pass
    except OSError as error:
        return errno.errorcode[error.errno]
    return None


def read_whole(path):
    """The bytes of a file as text, one character each."""
    return Path(path).read_bytes().decode("latin-1")
