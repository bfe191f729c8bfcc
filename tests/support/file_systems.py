"""File systems that can do less than those of local disks."""
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.mounting import force_away, ok, run


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


@contextmanager
def sshfs(folder):
    """A directory as SFTP shows it: no exchange of names, no links, and times of whole seconds. No server of SSH is in between."""
    below, path, command = folder / "below", folder / "sshfs", folder / "ssh"
    below.mkdir()
    path.mkdir()
    command.write_text("#!/bin/sh\nexec /usr/lib/openssh/sftp-server\n")
    command.chmod(0o755)
    ok(shutil.which("sshfs"), "-o", f"ssh_command={command}", f"host:{below}", path)
    try:
        yield path
    finally:
        force_away(path)


@contextmanager
def coarse(folder):
    """A disk of ext4 with inodes that have no room for fractions of seconds, nor for the time of creation."""
    image, path = folder / "image", folder / "coarse"
    with open(image, "wb") as file:
        file.truncate(512 << 20)
    path.mkdir()
    ok("/usr/sbin/mkfs.ext4", "-q", "-I", "128", "-O", "^has_journal", image)
    mounted = run("mount", "-o", "loop", image, path)
    if mounted.returncode != 0:
        pytest.skip(f"no disk can be made of a file here: {mounted.stderr.strip()}")
    try:
        yield path
    finally:
        force_away(path)


KINDS = {"bindfs": bindfs, "sshfs": sshfs, "coarse": coarse}


@contextmanager
def place(where, folder):
    """A directory on a file system of this kind, or a new one in the directory `where`."""
    if where in KINDS:
        with KINDS[where](folder) as path:
            yield path
        return
    with tempfile.TemporaryDirectory(dir=where, prefix="stores-", ignore_cleanup_errors=True) as path:
        yield Path(path)
