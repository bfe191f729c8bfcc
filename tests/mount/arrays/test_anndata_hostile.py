"""AnnData that is damaged: its `.h5ad` is a sound HDF5 file of the readable parts, or does not exist, and the log gives the reason."""
import errno
import json
import shutil
import struct

import pytest

from support import mounting
from support.array_client import Readers
from support.readers import Refused


@pytest.fixture(scope="module")
def readers():
    with Readers(worker="program_worker.py") as found:
        yield found


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    """The stores that anndata wrote, by their Zarr version."""
    folder = tmp_path_factory.mktemp("cells")
    python = mounting.CHECKOUT / ".venv-arrays" / "bin" / "python"
    mounting.ok(python, "-W", "ignore", mounting.WORKERS / "program_stores.py", folder, "sparse-v2", "sparse-v3")
    return {2: folder / "sparse-v2", 3: folder / "sparse-v3"}


def attributes(path, change):
    """Changes the attributes of a node, of either version."""
    inline = (path / "zarr.json").exists()
    document = path / ("zarr.json" if inline else ".zattrs")
    content = json.loads(document.read_bytes())
    change(content["attributes"] if inline else content)
    document.write_text(json.dumps(content))


def said(name, value):
    return lambda path: attributes(path, lambda found: found.update({name: value}))


def said_below(node, name, value):
    return lambda path: said(name, value)(path / node)


def without(node):
    return lambda path: shutil.rmtree(path / node)


def chunk(node, data):
    def write(path):
        # The chunks of this array are compressed, so `data` cannot be decoded as one.
        found = [file for file in (path / node).rglob("*") if file.is_file() and not file.name.startswith(".z") and file.name != "zarr.json"]
        found[0].write_bytes(data)
    return write


def deep(path):
    """Groups within groups, 300 of them."""
    source = path / "uns" / "neighbors"
    node = path / "uns" / "deep"
    for _ in range(300):
        node.mkdir()
        for name in ("zarr.json", ".zgroup", ".zattrs"):
            if (source / name).exists():
                shutil.copy(source / name, node / name)
        node = node / "d"


DAMAGE = {
    "no indptr": without("X/indptr"), "no codes": without("obs/kind/codes"), "no categories": without("obs/kind/categories"), "no index": without("obs/_index"),
    "no mask": without("obs/genes/mask"), "no obs": without("obs"), "no var": without("var"), "no X": without("X"),
    "shape of text": said_below("X", "shape", ["a", "b"]), "shape that is negative": said_below("X", "shape", [-1, 1 << 62]),
    "encoding that is unknown": said_below("X", "encoding-type", "foo"), "encoding that is a number": said_below("obs", "encoding-type", 7),
    "encoding that is null": said_below("uns", "encoding-type", None), "encoding that is long": said_below("uns", "encoding-type", "x" * 100_000),
    "column that is not there": said_below("obs", "column-order", ["score", "nowhere"]), "columns that are numbers": said_below("obs", "column-order", [1, None]),
    "columns that are a million": said_below("obs", "column-order", ["score"] * 1_000_000), "ordered that is text": said_below("obs/kind", "ordered", "maybe"),
    "attribute of 100 MB": said_below("uns", "huge", "x" * (100 << 20)), "index that lies": said_below("obs", "_index", "nowhere"),
    "chunk of strings that lies": chunk("obs/barcode", struct.pack("<II", 1 << 31, 1 << 31)), "chunk of codes that is nothing": chunk("obs/kind/codes", b""),
    "chunk of categories that is nothing": chunk("obs/kind/categories", b""), "groups 300 deep": deep,
}


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_damage(mount, tmp_path, readers, cells, zarr_format):
    """All in one store, beside a sound one."""
    root = tmp_path / "study"
    root.mkdir()
    group = {"zarr_format": 3, "node_type": "group", "attributes": {}} if zarr_format == 3 else {"zarr_format": 2}
    (root / ("zarr.json" if zarr_format == 3 else ".zgroup")).write_text(json.dumps(group))
    for n, damage in enumerate([lambda path: None, *DAMAGE.values()]):
        shutil.copytree(cells[zarr_format], root / f"c{n:02}")
        # Consolidated copies would hide the changes.
        (root / f"c{n:02}" / ".zmetadata").unlink(missing_ok=True)
        damage(root / f"c{n:02}")
    made = mount(root, "--view", "arrays", "--files", "h5ad")
    assert readers.ask("anndata", made.path / "c00" / "c00.h5ad", store=str(root / "c00"))["same"]
    wrong = []
    for n, name in enumerate(DAMAGE, 1):
        path = made.path / f"c{n:02}" / f"c{n:02}.h5ad"
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            if f"c{n:02}" not in made.log_text():
                wrong.append(f"{name}: the file is not there, and the log does not say why")
            continue
        try:
            assert len(path.read_bytes()) == size
            readers.ask("h5py", path)
        except OSError as error:
            # Numbers are read when they are asked for.
            if error.errno != errno.EIO or name != "chunk of codes that is nothing":
                wrong.append(f"{name}: {error}")
        except (Refused, AssertionError) as error:
            wrong.append(f"{name}: {error}")
    assert not wrong, "\n".join(wrong)
    assert made.alive() and made.peak_bytes() < 600 << 20
    assert readers.ask("anndata", made.path / "c00" / "c00.h5ad", store=str(root / "c00"))["same"]
