"""Mounts Zarr stores from Python, by the program `zarr-mount` that is installed with this module.

    import numpy as np
    import zarr_mount

    with zarr_mount.mount("store.zarr", files=["npy"]) as path:
        temperature = np.load(path / "temperature.npy")

In a notebook, a mount lives from one cell to another:

    store = zarr_mount.mount("store.zarr", files=["npy"])
    np.load(store.path / "temperature.npy", mmap_mode="r")
    store.unmount()

`zarr_mount.dask` mounts a store on each machine of a Dask cluster.
"""
from __future__ import annotations

import atexit
import errno
import json
import os
import shutil
import subprocess
import sysconfig
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Optional, Union

__all__ = ["Mount", "MountError", "info", "mount", "program"]

AnyPath = Union[str, "os.PathLike[str]"]

# The program takes one list, with commas, for these options. Other options are given once for each value.
_LISTS = ("files", "view", "o", "at")


class MountError(OSError):
    """The message of the program when it could not mount, unmount or describe a store."""


def program() -> str:
    """The path of `zarr-mount`: the one that was installed with this module, else the one on PATH."""
    folders = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", f"{os.name}_user"), os.environ.get("PATH", os.defpath)]
    found = shutil.which("zarr-mount", path=os.pathsep.join(folders))
    if found is None:
        raise MountError("the program zarr-mount is neither beside this Python nor on PATH")
    return found


def mount(store: AnyPath, mountpoint: Optional[AnyPath] = None, *, args: Sequence[str] = (), **options: object) -> Mount:
    """Mounts `store`, which may also be a URL or `demo:`, and returns the `Mount`.

    Without `mountpoint`, a temporary directory is made for it. Every other keyword is an option of the program: `rw=True` is
    `--rw`, `cache_size="1G"` is `--cache-size 1G`, `files=["npy", "nc"]` is `--files npy,nc`, `array=["air/*", "lat"]` is
    `--array 'air/*' --array lat`, `as_="v2"` is `--as v2`, and `o="allow_other"` is `-o allow_other`; False and None leave an
    option out. `args` are further words, as typed in a shell.

    Raises MountError, with the program's own message, where mounting fails.
    """
    return Mount(store, mountpoint, args=args, **options)


def info(store: AnyPath, path: Optional[str] = None, **options: object) -> list[dict[str, Any]]:
    """Describes the nodes of `store`, or the node at `path` in it, without mounting: what `zarr-mount --info --json` prints.

    Keywords are options of the program, as for `mount`. `at=(3, 20, 40)` is `--at 3,20,40`, and gives one description: the place of this
    element, and its value. Raises MountError if the store cannot be read.
    """
    words = [*_words(options), "--info", "--json", "--", os.fspath(store), *([path] if path else [])]
    described = json.loads(_run(words).stdout)
    return described if isinstance(described, list) else [described]


class Mount:
    """A mounted store, from its construction to `unmount()`, the end of its `with` block, or the end of Python.

    `path` is the mountpoint, and the target of `with ... as`. Arguments are those of `mount`.
    """

    def __init__(self, store: AnyPath, mountpoint: Optional[AnyPath] = None, *, args: Sequence[str] = (), **options: object) -> None:
        if "foreground" in options or options.get("f"):
            raise TypeError("this module needs the program in the background, so that it knows when the mount is ready")
        self.store = os.fspath(store)
        self._temporary = tempfile.mkdtemp(prefix="zarr-mount-") if mountpoint is None else None
        self.path = Path(self._temporary or os.fspath(mountpoint or "")).absolute()
        self._is_mounted = False
        try:
            said = _run([*_words(options), *args, "--", self.store, str(self.path)]).stderr
        except BaseException:
            self._remove_temporary()
            raise
        self._is_mounted = True
        atexit.register(self.unmount)
        for line in said.splitlines():
            warnings.warn(line, RuntimeWarning, stacklevel=3)

    def unmount(self) -> None:
        """Unmounts, and returns when all that was written is in the store. Does nothing when it is unmounted already.

        If files are still open, or mapped by `np.load(..., mmap_mode="r")`, the mount is detached: its mountpoint is free at once,
        those files stay readable, and the program ends when the last of them is closed. A RuntimeWarning says so. If the program
        was killed, open files are no longer readable, and a RuntimeWarning says that, too.

        Raises MountError, with the program's own message, if unmounting fails.
        """
        self._unmount()

    def leave(self) -> None:
        """Lets the mount outlive Python. Another process, or the command `zarr-mount --unmount`, unmounts it."""
        atexit.unregister(self.unmount)

    def info(self, path: Optional[str] = None, **options: object) -> list[dict[str, Any]]:
        """Describes the nodes of the store, or the node at `path` in it, as `zarr_mount.info` does."""
        return info(self.store, path, **options)

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self._unmount()

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        state = f"at {str(self.path)!r}" if self._is_mounted else "unmounted"
        return f"<zarr_mount.Mount of {self.store!r}, {state}>"

    def _unmount(self) -> None:
        """Does the work of `unmount`. Public methods call this one, so that a warning names the line of their caller."""
        if not self._is_mounted:
            return
        is_busy, was_killed = False, False
        try:
            _run(["--unmount", str(self.path)])
        except MountError as error:
            was_killed = " is busy; " in str(error) and self._was_killed()
            is_busy = " is busy; " in str(error) and self._detach()
            # A shell may have unmounted it meanwhile.
            if not is_busy and "nothing is mounted at" not in str(error):
                raise
        self._ended()
        if is_busy:
            what = "zarr-mount serves these files, and ends when the last of them is closed."
            if was_killed:
                what = "zarr-mount was killed: these files cannot be read any more, and reading a mapped array ends Python (SIGBUS)."
            warnings.warn(f"{self.path}: files are still open or mapped. The mount has left its place; {what}", RuntimeWarning,
                          stacklevel=3)

    def _was_killed(self) -> bool:
        """Whether the program of this mount has ended without unmounting it."""
        try:
            os.stat(self.path)
        except OSError as error:
            return error.errno == errno.ENOTCONN
        return False

    def _detach(self) -> bool:
        """Detaches the mount from its mountpoint, though it is in use, and returns whether that was possible."""
        for words in (["fusermount3", "-u", "-z", "--"], ["umount", "--lazy", "--"]):
            try:
                done = subprocess.run([*words, str(self.path)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL, check=False)
            except FileNotFoundError:
                continue
            if done.returncode == 0:
                return True
        return False

    def _ended(self) -> None:
        self._is_mounted = False
        atexit.unregister(self.unmount)
        self._remove_temporary()

    def _remove_temporary(self) -> None:
        # The directory is not removed recursively, which would delete the store in a mount that is still there.
        if self._temporary and not os.path.ismount(self._temporary):
            os.rmdir(self._temporary)


def _words(options: dict[str, object]) -> list[str]:
    """Options in the form of the command line. Only the program knows which options exist."""
    words = []
    for key, value in options.items():
        name = key.rstrip("_").replace("_", "-")
        option = f"-{name}" if len(name) == 1 else f"--{name}"
        if value is None or value is False:
            continue
        if value is True:
            words.append(option)
            continue
        values = list(map(str, value)) if isinstance(value, (list, tuple)) else [str(value)]
        for text in [",".join(values)] if name in _LISTS else values:
            words += [option, text] if len(name) == 1 else [f"{option}={text}"]
    return words


def _run(words: list[str]) -> subprocess.CompletedProcess[str]:
    """Runs the program to its end, and returns it with all that it printed."""
    # The daemon keeps no pipe of this process open: it closes its standard streams when the mount is ready.
    done = subprocess.run([program(), *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          encoding="utf-8", errors="replace", check=False)
    if done.returncode != 0:
        raise MountError(done.stderr.strip() or f"zarr-mount ended with status {done.returncode}")
    return done
