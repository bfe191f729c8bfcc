"""The Python module zarr_mount: a mount for a block, and one that lives from one notebook cell to the next."""
import errno
import importlib.util
import os
import signal
import warnings
from pathlib import Path

import numpy as np
import pytest

from support import mounting
from support.mounting import BINARY, until

MODULE = Path(__file__).parents[3] / "python" / "zarr_mount" / "__init__.py"


@pytest.fixture
def module(tmp_path, monkeypatch):
    """The module of this checkout, which finds the program that is tested on PATH."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "zarr-mount").symlink_to(BINARY)
    spec = importlib.util.spec_from_file_location("zarr_mount", MODULE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module.sysconfig, "get_path", lambda *_: str(tmp_path / "bin"))
    return module


def refused(look, *args):
    try:
        look(*args)
    except OSError as error:
        return error.errno
    return None


@pytest.fixture
def point(tmp_path):
    yield tmp_path / "m"
    mounting.force_away(tmp_path / "m")


def test_a_block(module):
    with module.mount("demo:", files=["npy", "nc"], array=["air/temp*", "air/lat"], sidecar="no") as path:
        assert isinstance(path, Path)
        assert sorted(os.listdir(path / "air")) == ["air.nc", "lat.npy", "temperature.npy"]
    assert not path.exists(), "the temporary directory is left"


def test_an_object(module, point):
    made = module.mount("demo:", point, files=("npy",))
    assert made.path == point and np.load(made.path / "air/lat.npy").shape == (48,)
    assert "demo:" in repr(made) and str(point) in repr(made) and os.fspath(made) == str(point)
    assert made.info("air/lat")[0]["shape"] == [48] == module.info("demo:", "air/lat")[0]["shape"]
    assert len(made.info()) > 3
    made.unmount()
    assert not os.path.ismount(point) and "unmounted" in repr(made)
    made.unmount()


@pytest.mark.parametrize("index", [(3, 20, -56), [3, 20, 40], "3,20,40"])
def test_an_element(module, index):
    [found] = module.info("demo:", "air/temperature", at=index)
    assert found["indices"] == [3, 20, 40] and found["value"] == 277.625


def test_a_mount_that_a_shell_has_unmounted_is_unmounted(module):
    made = module.mount("demo:", files="npy")
    mounting.ok(BINARY, "--unmount", made.path)
    made.unmount()
    assert "unmounted" in repr(made) and not made.path.exists(), "the temporary directory is left"


def test_a_memmap_that_is_alive_is_reported_and_stays_readable(module, point):
    made = module.mount("demo:", point, files="npy")
    array = np.load(made.path / "air/temperature.npy", mmap_mode="r")
    expected = np.load(made.path / "air/temperature.npy")
    with pytest.warns(RuntimeWarning, match="still open or mapped") as told:
        made.unmount()
    assert told[0].filename == __file__
    assert not os.path.ismount(point)
    np.testing.assert_array_equal(array, expected)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made.unmount()


def test_a_memmap_of_a_program_that_was_killed_is_reported(module, point):
    made = module.mount("demo:", point, files="npy")
    mapped = np.load(made.path / "air/lat.npy", mmap_mode="r")
    (daemon,) = mounting.daemons(point)
    os.kill(daemon, signal.SIGKILL)
    until(lambda: refused(os.stat, point) == errno.ENOTCONN, "the end of the program")
    with pytest.warns(RuntimeWarning, match="zarr-mount was killed") as told:
        made.unmount()
    assert len(told) == 1 and "zarr-mount serves" not in str(told[0].message)
    assert not os.path.ismount(point) and mapped.shape == (48,)


def test_errors_are_those_of_the_program(module, point):
    with pytest.raises(module.MountError, match="/no/such.zarr"):
        module.mount("/no/such.zarr", point)
    with pytest.raises(module.MountError, match="--no-such-option"):
        module.mount("demo:", point, no_such_option=1)
    with pytest.raises(module.MountError, match="no/such"):
        module.info("demo:", "no/such")
    assert not os.path.ismount(point)
    with pytest.raises(KeyError, match="mine"), module.mount("demo:", point):
        raise KeyError("mine")
    until(lambda: not os.path.ismount(point), "the unmount")
