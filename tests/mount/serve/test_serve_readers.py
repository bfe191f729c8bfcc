"""Programs and libraries of other authors that read what `--serve` shows by HTTP, as their users run them."""
import hashlib
import json
import os
import shutil
import subprocess
from contextlib import ExitStack

import numpy as np
import pytest
import zarr

from support import corpus, mounting
from support.mounting import BINARY, ok, run
from support.serving import TOKEN, serving

WORKER = mounting.WORKERS / "serve_reader.py"
PYTHON = mounting.CHECKOUT / ".venv-serve" / "bin" / "python"
# Stores of old versions, and the version that clients see.
OLD = [("zp1_110_zlib.zarr", "v3"), ("zp1_110_blosc.zarr", "v2"), ("zp2_filters.zarr", "v3")]
BEARER = f"Authorization: Bearer {TOKEN}"


def digest(values):
    return hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()


def digests(path):
    """The digest of each array of a store on disk."""
    node = zarr.open(path, mode="r")
    if isinstance(node, zarr.Array):
        return {"": digest(node[...])}
    return {name: digest(array[...]) for name, array in node.members(max_depth=None) if isinstance(array, zarr.Array)}


@pytest.fixture(scope="module")
def weather(tmp_path_factory):
    """A store with shards, absent chunks and consolidated metadata, and the digests of its arrays."""
    path = tmp_path_factory.mktemp("weather") / "s.zarr"
    group = zarr.create_group(path, attributes={"title": "weather"})
    values = np.random.default_rng(48).normal(280, 10, size=(4, 30, 60)).astype("f4")
    shards = group.create_array("temperature", shape=(8, 30, 60), chunks=(1, 10, 10), shards=(4, 30, 30), dtype="f4",
                                dimension_names=["time", "lat", "lon"], fill_value=7)
    shards[:4] = values
    group.create_array("lat", shape=(30,), chunks=(7,), dtype="f8", dimension_names=["lat"])[...] = np.linspace(-90, 90, 30)
    group.create_array("plane", shape=(30, 60), chunks=(16, 16), dtype="f4", dimension_names=["lat", "lon"])[...] = values[2]
    zarr.consolidate_metadata(path)
    return path, {name: digest(group[name][...]) for name in ("temperature", "lat", "plane")}


@pytest.fixture(scope="module")
def keys(weather, tmp_path_factory):
    with serving(weather[0], "--view", "keys", tmp_path=tmp_path_factory.mktemp("serve")) as server:
        yield server


@pytest.fixture(scope="module")
def arrays(weather, tmp_path_factory):
    options = ["--view", "arrays", "--files", "npy,h5,tif"]
    with serving(weather[0], *options, tmp_path=tmp_path_factory.mktemp("serve")) as server:
        yield server


def curl(server, path, *options):
    """The status, and the bytes of the body."""
    command = ["curl", "-sS", "-w", "%{stderr}%{http_code}", "-H", BEARER, *options, server.url.rstrip("/") + path]
    done = subprocess.run(command, capture_output=True, check=True, timeout=60)
    return int(done.stderr), done.stdout


def cat(store, path, *options):
    return subprocess.run([BINARY, "--cat", *options, store, path], capture_output=True, check=True, timeout=60).stdout


def test_curl(arrays, weather, tmp_path):
    path = "/temperature.npy"
    whole = curl(arrays, path)[1]
    assert whole == cat(weather[0], "temperature.npy", "--view", "arrays")
    n = len(whole)
    for wanted, part in (("0-99", whole[:100]), ("100-", whole[100:]), ("-100", whole[-100:]), (f"{n - 1}-{n + 9}", whole[-1:])):
        assert curl(arrays, path, "--range", wanted) == (206, part), wanted
    assert curl(arrays, path, "--range", f"{n}-")[0] == 416
    # curl keeps the entity tag in a file, and asks with it.
    tag = tmp_path / "tag"
    assert curl(arrays, path, "--etag-save", tag) == (200, whole)
    assert curl(arrays, path, "--etag-compare", tag)[0] == 304
    own = tag.read_text().strip()
    assert curl(arrays, path, "-H", f"If-Match: {own}")[0] == 200
    assert curl(arrays, path, "-H", 'If-Match: "another"')[0] == 412
    assert curl(arrays, path, "-H", f"If-Range: {own}", "--range", "0-9") == (206, whole[:10])
    assert curl(arrays, path, "-H", 'If-Range: "another"', "--range", "0-9") == (200, whole)
    # A password is a token, too, and a transfer that broke off is taken up.
    part = tmp_path / "part.npy"
    part.write_bytes(whole[:1000])
    ok("curl", "-sS", "-C", "-", "-u", f"any:{TOKEN}", "-o", part, arrays.url + "temperature.npy")
    assert part.read_bytes() == whole
    assert run("curl", "-sSf", "-u", "any:wrong-token-of-32-characters-xxxxx", arrays.url).returncode == 22


@pytest.mark.skipif(shutil.which("gdal_translate") is None, reason="needs gdal_translate")
def test_gdal(arrays, weather, tmp_path):
    header = tmp_path / "header"
    header.write_text(BEARER + "\n")
    environment = {**os.environ, "GDAL_HTTP_HEADER_FILE": str(header)}
    address = f"/vsicurl/{arrays.url}plane.tif"
    ok("gdal_translate", "-q", "-of", "ENVI", address, tmp_path / "raster", env=environment)
    found = np.fromfile(tmp_path / "raster", dtype="<f4").reshape(30, 60)
    assert (found == zarr.open_array(weather[0] / "plane", mode="r")[...]).all()
    # Without the token there is nothing.
    assert run("gdalinfo", address, env={**os.environ, "GDAL_HTTP_MAX_RETRY": "0"}).returncode != 0


def test_libraries(keys, arrays, weather, tmp_path):
    """zarr-python and xarray, of this store and of old ones that are shown in another version."""
    jobs = [("members", keys.url, weather[1]), ("xarray", keys.url, weather[1]), ("netcdf", f"{arrays.url}{weather[0].stem}.h5", weather[1])]
    with ExitStack() as servers:
        for name, target in OLD:
            (folder := tmp_path / name).mkdir()
            store = corpus.stores()[name].path
            ok(BINARY, "--export", folder / "out", "--as", target, "--view", "chunks", store)
            server = servers.enter_context(serving(store, "--as", target, "--view", "chunks", tmp_path=folder))
            jobs.append(("paths", server.url, digests(folder / "out")))
        found = json.loads(ok(PYTHON, WORKER, TOKEN, json.dumps([(kind, url, list(expected)) for kind, url, expected in jobs])))
    for (kind, url, expected), read in zip(jobs, found, strict=True):
        assert read == expected and read, (kind, url)
