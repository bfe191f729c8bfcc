"""File systems that can do less than those of local disks."""
import os
import shutil
from contextlib import contextmanager

from mounting import force_away, ok


@contextmanager
def bindfs(folder):
    """A directory as FUSE shows it: no exchange of names, and no files without names."""
    below, path = folder / "below", folder / "bindfs"
    below.mkdir()
    path.mkdir()
    ok(shutil.which("bindfs"), "--no-allow-other", below, path)
    try:
        yield path
    finally:
        force_away(path)


KINDS = {"bindfs": bindfs}
