"""Mounts Zarr stores for the length of a `with` block, by the program `zarr-mount` that is installed with this module.

    import numpy as np
    import zarr_mount

    with zarr_mount.mount("store.zarr", view="arrays", files=["npy"]) as path:
        temperature = np.load(path / "temperature.npy")
"""
from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Optional, Union

__all__ = ["MountError", "mount", "program"]

AnyPath = Union[str, "os.PathLike[str]"]


class MountError(OSError):
    """What the program said when it could not mount, or not unmount."""


def program() -> str:
    """The path of `zarr-mount`: the one that was installed with this module, else the one on PATH."""
    folders = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", f"{os.name}_user"), os.environ.get("PATH", os.defpath)]
    found = shutil.which("zarr-mount", path=os.pathsep.join(folders))
    if found is None:
        raise MountError("the program zarr-mount is neither beside this Python nor on PATH")
    return found


@contextmanager
def mount(store: AnyPath, mountpoint: Optional[AnyPath] = None, *, args: Sequence[str] = (), **options: object) -> Iterator[Path]:
    """Mounts `store`, which may also be a URL or `demo:`, yields the mountpoint, and unmounts when the block ends.

    Without `mountpoint`, it is a temporary directory. Every other keyword is an option of the program: `rw=True` is `--rw`,
    `cache_size="1G"` is `--cache-size 1G`, `files=["npy", "nc"]` is `--files npy,nc`, `as_="v2"` is `--as v2`, and
    `o="allow_other"` is `-o allow_other`; False and None leave an option out. `args` are further words, as typed in a shell,
    for options that are given several times.

    The block ends when all that was written is in the store. Files that are still open then, or mapped by
    `np.load(..., mmap_mode="r")`, keep the mount: that is an error, and the mount stays.

    Raises MountError, with the program's own message, where mounting or unmounting fails.
    """
    if "foreground" in options or options.get("f"):
        raise TypeError("this module needs the program in the background, so that it knows when the mount is ready")
    temporary = tempfile.mkdtemp(prefix="zarr-mount-") if mountpoint is None else None
    path = Path(temporary or os.fspath(mountpoint or "")).absolute()
    try:
        said = _run([*_words(options), *args, "--", os.fspath(store), str(path)])
        try:
            for line in said.splitlines():
                warnings.warn(line, RuntimeWarning, stacklevel=3)
            yield path
        finally:
            _run(["--unmount", str(path)])
    finally:
        # Never by force or recursively: where the unmount failed, the store is still in there.
        if temporary and not os.path.ismount(temporary):
            os.rmdir(temporary)


def _words(options: dict[str, object]) -> list[str]:
    """Options as the program reads them. It alone knows which ones exist."""
    words = []
    for key, value in options.items():
        name = key.rstrip("_").replace("_", "-")
        option = f"-{name}" if len(name) == 1 else f"--{name}"
        if value is None or value is False:
            continue
        if value is True:
            words.append(option)
            continue
        text = ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
        words += [option, text] if len(name) == 1 else [f"{option}={text}"]
    return words


def _run(words: list[str]) -> str:
    """Runs the program to its end, and returns what it said on standard error."""
    done = subprocess.run([program(), *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          encoding="utf-8", errors="replace", check=False)
    if done.returncode != 0:
        raise MountError(done.stderr.strip() or f"zarr-mount ended with status {done.returncode}")
    return done.stderr
