"""Runs in .venv-zarr2: opens nodes with zarr-python 2. Each question is a line of JSON (see `readers.Zarr2`), and each answer is a line."""
import json
import sys
import types

import zarr

from canonical import canonical, digest


# For a sharded array of a draft, zarr-python imports a class of its own tests, which needs pytest.
sys.modules["zarr.tests.test_storage_v3"] = types.SimpleNamespace(DummyStorageTransfomer=types.SimpleNamespace(extension_uri=None))


def answer(root, path, consolidated=False, boxes=(), dtype=None, zarr_version=None):
    """Attributes of the node at `path`; of an array also its shape and the hash of the values of each box."""
    node = zarr.open_consolidated(root, mode="r")[path] if consolidated else zarr.open(root, mode="r", path=path, zarr_version=zarr_version)
    found = {"attributes": node.attrs.asdict()}
    if isinstance(node, zarr.Array):
        found["shape"] = node.shape
        found["sha256"] = [digest(canonical(node[selection(box)], dtype)) for box in boxes]
    return found


def selection(box):
    return ... if box is None else tuple(slice(*side) for side in box)


for line in sys.stdin:
    try:
        said = answer(**json.loads(line))
    except Exception as error:  # zarr-python may refuse with any class
        said = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(said), flush=True)
