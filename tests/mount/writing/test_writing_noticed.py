"""Files that show other bytes after a commit than those that were written: handles that were open before read the shown bytes, too."""
import json
import os

import numcodecs
import numpy as np
import pytest
import zarr

from support.mounting import until

N = 1 << 14


@pytest.fixture
def store(tmp_path):
    filters = [numcodecs.FixedScaleOffset(offset=0, scale=10, dtype="<f8", astype="<i2")]
    two = zarr.create_array(str(tmp_path / "store/two"), shape=(2 * N,), chunks=(N,), dtype="<f8", zarr_format=2, filters=filters, fill_value=0)
    two[...] = 1.5
    zarr.create_array(str(tmp_path / "store/three"), shape=(4,), chunks=(2,), dtype="u1", attributes={"unit": "m"})
    return tmp_path / "store"


def shown(fd):
    return os.pread(fd, 1 << 20, 0)


@pytest.mark.parametrize("end", [os.close, os.fsync])
def test_values_that_a_codec_has_rounded(end, store, mount):
    made = mount(store, "--rw", "--view", "chunks", "--lossy")
    written = np.linspace(0, 99, N)
    rounded = np.round(written * 10) / 10
    reader = os.open(made.path / "two/0", os.O_RDONLY)
    assert (np.frombuffer(shown(reader)) == 1.5).all()
    writer = os.open(made.path / "two/0", os.O_RDWR)
    os.pwrite(writer, written.tobytes(), 0)
    assert shown(reader) == written.tobytes() != rounded.tobytes()
    end(writer)
    until(lambda: np.allclose(np.frombuffer(shown(reader)), rounded, rtol=0, atol=1e-12), "the rounded numbers to be read")
    np.testing.assert_array_equal(np.frombuffer(shown(reader)), zarr.open_array(str(store / "two"))[:N])
    if end is os.fsync:
        assert shown(writer) == shown(reader)
        # A later write is not lost with the pages.
        os.pwrite(writer, written[::-1].tobytes(), 0)
        assert shown(reader) == written[::-1].tobytes()
        os.close(writer)
    os.close(reader)


def test_a_document_that_is_spelled_anew(store, mount):
    made = mount(store, "--rw", "--view", "chunks")
    path = made.path / "three/zarr.json"
    before = path.read_bytes()
    reader = os.open(path, os.O_RDONLY)
    assert shown(reader) == before
    new = json.dumps(json.loads(before) | {"attributes": {"unit": "km"}}, indent=7).encode()
    writer = os.open(path, os.O_WRONLY | os.O_TRUNC)
    os.write(writer, new)
    assert shown(reader) == new
    os.close(writer)
    now = path.read_bytes()
    assert now != new and json.loads(now) == json.loads(new)
    until(lambda: shown(reader) == now, "the document to be read as it is shown")
    os.close(reader)
