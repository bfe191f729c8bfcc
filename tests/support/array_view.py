"""The files of a node in a mount of the arrays view, by name."""
import json
from pathlib import Path

from support import mounting
from support.array_table import EXTENSION, GROUPS, PER_ARRAY


def file_of(root, name, format):
    """The path of the array `name` in this format: its own file, or that of its group."""
    directory = (Path(root) / name).parent
    if format not in GROUPS:
        return Path(root) / f"{name}.{EXTENSION[format]}"
    found = list(directory.glob(f"*.{EXTENSION[format]}"))
    return found[0] if len(found) == 1 else directory / f"none.{EXTENSION[format]}"


def told(root, name):
    """The JSON beside an array."""
    return json.loads((Path(root) / f"{name}.json").read_bytes())


def left_out(root, name):
    """Format -> the reason why the array is not in it."""
    return told(root, name)["left_out"]


def everything(*group_formats):
    """Arguments of a mount that shows every format. The formats of groups are chosen by the caller, because two of them share an
    extension."""
    return ["--view", "arrays", "--files", ",".join([*PER_ARRAY, *group_formats])]


def decodes(mount):
    return mount.stats()["chunks"]["decodes"]


def info(store, *path, files="npy"):
    return mounting.ok(mounting.BINARY, "--info", "--files", files, store, *path)
