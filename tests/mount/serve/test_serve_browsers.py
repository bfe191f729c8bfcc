"""`--serve` in a headless Chromium: zarrita in a page of another origin, and the pages themselves, which axe checks."""
import functools
import http.server
import json
import os
import shutil
import threading
from contextlib import contextmanager

import numpy as np
import pytest
import zarr

from support import corpus, mounting
from support.mounting import ok
from support.serving import TOKEN, serving

pytestmark = pytest.mark.heavy
MODULES = mounting.CHECKOUT / ".npm-serve" / "node_modules"
WORKER = mounting.WORKERS / "serve_browser.cjs"
# zarrita's modules import each other by these names.
IMPORTS = {
    "zarrita": "zarrita/dist/src/index.js", "@zarrita/storage": "@zarrita/storage/dist/src/index.js",
    "@zarrita/storage/fetch": "@zarrita/storage/dist/src/fetch.js", "numcodecs/": "numcodecs/dist/",
    "numcodecs/blosc": "numcodecs/dist/blosc.js", "numcodecs/lz4": "numcodecs/dist/lz4.js", "numcodecs/zstd": "numcodecs/dist/zstd.js",
    "reference-spec-reader": "reference-spec-reader/src/index.js", "unzipit": "unzipit/dist/unzipit.module.js",
}


def browser(*args):
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    return json.loads(ok("node", WORKER, MODULES, *args, env={**os.environ, "CHROMIUM": chromium or "chromium"}))


class Viewer(http.server.SimpleHTTPRequestHandler):
    """A site with one page, in which zarrita can be imported."""

    def do_GET(self):
        if self.path != "/":
            return super().do_GET()
        imports = json.dumps({"imports": {name: f"/{path}" for name, path in IMPORTS.items()}})
        page = f'<!doctype html><title>viewer</title><script type="importmap">{imports}</script>'.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *args):
        pass


@contextmanager
def viewer():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Viewer, directory=str(MODULES)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def test_zarrita_reads_a_store_of_v1_as_v3(tmp_path):
    store = corpus.stores()["zp1_110_zlib.zarr"].path
    ok(mounting.BINARY, "--export", tmp_path / "out", "--as", "v3", "--view", "chunks", store)
    expected = zarr.open_array(tmp_path / "out", mode="r")
    with viewer() as origin, serving(store, "--as", "v3", "--cors", origin, tmp_path=tmp_path) as server:
        found = browser("zarrita", f"{origin}/", server.url.rstrip("/"), TOKEN, "/")["/"]
        assert tuple(found["shape"]) == expected.shape
        assert found["data"] == expected[...].astype("f8").ravel().tolist()
    # A site that was not named gets nothing.
    with viewer() as origin, serving(store, "--as", "v3", "--cors", "https://another.example", tmp_path=tmp_path) as server:
        refused = mounting.run("node", WORKER, MODULES, "zarrita", f"{origin}/", server.url.rstrip("/"), TOKEN, "/",
                               env={**os.environ, "CHROMIUM": shutil.which("chromium") or "chromium"})
        assert refused.returncode == 1 and "Failed to fetch" in refused.stderr


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A store with pictures, shards, a large grid, a damaged shard, and names and attributes that would be markup."""
    path = tmp_path_factory.mktemp("pages") / "s.zarr"
    group = zarr.create_group(path, attributes={"title": "<script>alert(1)</script>"})
    air = group.create_group("air")
    values = np.add.outer(np.arange(30), np.arange(60)).astype("f4")
    shards = air.create_array("temperature", shape=(2, 30, 60), chunks=(1, 10, 10), shards=(1, 30, 30), dtype="f4",
                              dimension_names=["time", "lat", "lon"], attributes={"units": "K"})
    shards[...] = np.stack([values, values])
    (path / "air" / "temperature" / "c" / "0" / "0" / "0").write_bytes(b"damaged")
    group.create_array("large", shape=(10**7, 10**4), chunks=(100, 10), dtype="u1")[:300, :40] = 1
    group.create_group("<img src=x onerror=alert(2)>\u202e\"'&", attributes={"<b>": "</pre><script>alert(3)</script>\x1b[31m"})
    return path


def test_pages_are_accessible_and_run_nothing(hostile, tmp_path, figure):
    options = ["--view", "keys,chunks,arrays", "--files", "npy,png"]
    with serving(hostile, *options, tmp_path=tmp_path) as server:
        root = server.url.rstrip("/")
        odd = "%3Cimg%20src%3Dx%20onerror%3Dalert(2)%3E%E2%80%AE%22'%26"
        pages = [f"{root}{path}" for path in (
            "/", "/keys/", "/keys/air/temperature/", "/chunks/large/?i0=2&i1=990", f"/keys/{odd}/", "/arrays/air/",
            "/arrays/air/?about=temperature.npy")]
        seen = browser("look", tmp_path, server.link, *pages)
    assert len(seen) == 4 * len(pages)
    for page in seen:
        assert page["status"] == 200 and not page["violations"] and not page["strange"] and not page["foreign"], page
        assert page["overflow"] <= 0 and page["focus"] == "Skip to the contents" and page["passes"] > 30, page
        assert all(width > 0 for width in page["images"]), page
    shown = {page["url"] for page in seen if page["images"]}
    assert shown == {pages[2], pages[5], pages[6]}
    assert len({page["back"] for page in seen}) == 2, "a light and a dark scheme"
    figure(f"pages of --serve: {len(seen)} looked at, {min(page['passes'] for page in seen)} rules of axe or more passed on each")
