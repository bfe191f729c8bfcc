"""Pages of recipes: every command prints what the page says."""
import sys
from pathlib import Path

import pytest

from support import mounting, pages


@pytest.fixture
def folder(tmp_path):
    yield tmp_path
    for name in "zab":
        mounting.force_away(tmp_path / "work" / name)


@pytest.mark.parametrize("page, n_commands", [("finding-damage", 5), ("converting", 14), ("upgrading", 5)])
def test_commands_of_a_page(folder, page, n_commands):
    assert pages.run_page(page, folder, Path(sys.executable))[0] == n_commands


def test_cells_of_a_notebook(folder):
    _, told = pages.run_page("jupyter", folder, Path(sys.executable))
    first, second, third = told.splitlines()
    assert first.startswith("(8, 48, 96) ") and second == "air/temperature float32 ['time', 'lat', 'lon']"
    assert third.startswith("<zarr_mount.Mount of 'demo:'") and third.endswith("unmounted>")
