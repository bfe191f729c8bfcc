"""No wait and no empty result without a message: the output of the command while it mounts."""
import errno
import http.server
import json
import os
import re
import socket
import threading
import zipfile

import numpy as np
import pytest
import zarr

from support import mounting
from support.mounting import BINARY, run


class Files(http.server.SimpleHTTPRequestHandler):
    """A web server as many are: no ranges, and 404 for a method that it does not know."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def list_directory(self, path):
        self.send_error(404)

    def do_PROPFIND(self):
        self.send_error(404)


@pytest.fixture
def web(tmp_path):
    """A store with an array `t`, and the URL of a server that has it."""
    group = zarr.open_group(str(tmp_path / "web" / "s.zarr"), mode="w")
    group.create_array("t", shape=(8,), chunks=(4,), dtype="i4", dimension_names=["x"])[...] = np.arange(8)
    handler = lambda *args: Files(*args, directory=str(tmp_path / "web"))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/s.zarr"
    server.shutdown()
    server.server_close()


@pytest.fixture
def point(tmp_path):
    yield tmp_path / "m"
    mounting.force_away(tmp_path / "m")


def test_a_server_that_neither_lists_nor_sends_parts(mount, web):
    made = mount(web, "--view", "chunks")
    assert re.search("warning: .*its names cannot be listed", made.said), made.said
    assert "sends whole objects" in made.said, made.said
    assert np.frombuffer((made.path / "t/c/1").read_bytes(), "<i4").tolist() == [4, 5, 6, 7]
    made.unmount()


def test_chunks_that_cannot_be_listed(mount, web, tmp_path):
    """A copy without the chunks would be read as fill values."""
    zarr.consolidate_metadata(str(tmp_path / "web" / "s.zarr"))
    made = mount(web, "--view", "keys")
    assert re.search("warning: .*its names cannot be listed.*--view chunks", made.said), made.said
    with pytest.raises(OSError) as told:
        os.listdir(made.path / "t" / "c")
    assert told.value.errno == errno.EIO
    done = run("cp", "-r", made.path, tmp_path / "copy")
    assert done.returncode != 0 and "t/c" in done.stderr, done.stderr
    assert (tmp_path / "copy" / "t" / "zarr.json").exists()
    assert np.frombuffer((made.path / "t/c/1").read_bytes()[-16:], "<i4").size == 4
    made.unmount()
    assert "--view chunks" in run(BINARY, "--info", web).stderr
    sizes = run(BINARY, "--info", "--sizes", web)
    assert "stored size is unknown" in sizes.stdout and "0 objects" not in sizes.stdout, sizes.stdout
    made = mount(web, "--view", "chunks")
    assert "cannot be listed" not in made.said, made.said
    made.unmount()


def test_a_directory_of_stores_on_a_web_server(point, tmp_path):
    """A name that is absent gives another message."""
    (tmp_path / "many").mkdir()
    handler = lambda *args: http.server.SimpleHTTPRequestHandler(*args, directory=str(tmp_path))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_address[1]}/"
        for words in [("--info", url + "many"), (url + "many", point)]:
            done = run(BINARY, *words)
            assert done.returncode == 1 and "does not list the names below it" in done.stderr, done.stderr
        for words in [("--info", url + "gone"), (url + "gone", point)]:
            done = run(BINARY, *words)
            assert done.returncode == 1 and "does not list" not in done.stderr, done.stderr
    finally:
        server.shutdown()
        server.server_close()


def test_a_wrong_port_is_reported_before_the_timeout(point):
    """The test would end by its own limit if --timeout were waited for."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        done = run(BINARY, "--timeout", "86400", f"http://127.0.0.1:{probe.getsockname()[1]}/z", point)
    assert done.returncode == 1 and "cannot connect" in done.stderr and "it is repeated for up to 2s" in done.stderr, done.stderr


def test_tls_with_a_plain_server(web, point):
    done = run(BINARY, "--timeout", "86400", web.replace("http:", "https:"), point)
    assert done.returncode == 1 and "is it http://" in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_info_of_nothing_names_the_url(web):
    done = run(BINARY, "--info", web + ".gone")
    assert done.returncode == 1 and web + ".gone" in done.stderr, done.stderr
    done = run(BINARY, "--info", web, "no/node")
    assert done.returncode == 1 and web in done.stderr and "no/node" in done.stderr, done.stderr


def test_a_dimension_that_no_array_has(mount):
    made = mount("demo:", "--files", "nc", "--unlimited", "tiem")
    assert "--unlimited tiem: no array of demo: has this dimension" in made.said, made.said
    made.unmount()
    made = mount("demo:", "--files", "nc", "--unlimited", "time")
    assert not made.said
    made.unmount()


def test_a_record_dimension_of_files_that_have_none(point):
    done = run(BINARY, "--files", "npy,h5", "--unlimited", "time", "demo:", point)
    assert done.returncode == 2 and "--unlimited is for NetCDF files" in done.stderr, done.stderr


def test_a_store_without_an_anndata_object(mount):
    made = mount("demo:", "--files", "h5ad")
    assert "--files h5ad: no group of demo: is an AnnData object" in made.said, made.said
    made.unmount()
    done = run(BINARY, "--info", "--files", "h5ad", "demo:")
    assert "not h5ad: encoding-type: it is not `anndata`" in done.stdout, done.stdout
    assert done.stderr.startswith("zarr-mount: warning: --files h5ad: no group of demo:"), done.stderr


@pytest.mark.parametrize("version,document", [(2, ".zarray"), (3, "zarr.json")])
@pytest.mark.parametrize("what", ["stores", "stores/s.zarr"])
def test_arrays_of_which_only_consolidated_metadata_tells(what, version, document, mount, tmp_path):
    group = zarr.open_group(str(tmp_path / "stores" / "s.zarr"), mode="w", zarr_format=version)
    group.create_array("a", shape=(8,), chunks=(4,), dtype="i4")[...] = 1
    zarr.consolidate_metadata(group.store, zarr_format=version)
    (tmp_path / "stores" / "s.zarr" / "a" / document).unlink()
    made = mount(tmp_path / what, "--files", "npy")
    array = "a" if what.endswith("s.zarr") else "s.zarr/a"
    assert f"1 array (such as {array}) not shown: only consolidated metadata has their documents" in made.said, made.said
    made.unmount()


def test_a_zip_file_with_backslashes(mount, tmp_path, web):
    root = tmp_path / "web" / "s.zarr"
    with zipfile.ZipFile(tmp_path / "s.zip", "w") as packed:
        for path in root.rglob("*"):
            if path.is_file():
                info = zipfile.ZipInfo("x")
                info.filename = str(path.relative_to(root)).replace("/", "\\")
                packed.writestr(info, path.read_bytes())
    done = run(BINARY, "--info", tmp_path / "s.zip")
    assert re.fullmatch("zarr-mount: warning: .*backslashes.*\n", done.stderr), done.stderr
    made = mount(tmp_path / "s.zip", "--view", "chunks")
    assert "backslashes" in made.said, made.said
    assert os.listdir(made.path / "t" / "c") == ["0", "1"]
    assert (made.path / "t/c/0").stat().st_size == 16
    made.unmount()


def test_chunks_that_an_earlier_mount_left(mount, tmp_path):
    group = zarr.open_group(str(tmp_path / "s"), mode="w")
    array = group.create_array("t", shape=(8,), chunks=(2,), shards=(8,), dtype="i4")
    # A daemon that is killed late has saved the chunk.
    for _ in range(20):
        array[...] = 1
        made = mount(tmp_path / "s", "--rw", "--view", "chunks")
        (made.path / "t/c/2").write_bytes(np.full(2, 7, "<i4").tobytes())
        made.kill()
        if list((tmp_path / "s/.zarr-mount").glob("journal/*")):
            break
    [node] = json.loads(mounting.ok(BINARY, "--info", "--json", tmp_path / "s", "t"))
    assert node["chunks_in_journal"] == 1
    assert "1 chunk waits in a journal, not shown; a mount with --rw" in mounting.ok(BINARY, "--info", tmp_path / "s")
    for words in [("--verify", tmp_path / "s"), ("--cat", tmp_path / "s", "t/zarr.json"), ("--export", tmp_path / "out", tmp_path / "s")]:
        done = run(BINARY, *words)
        assert done.returncode == 0 and f"warning: STORE {tmp_path / 's'}: 1 chunk waits in a journal, not shown" in done.stderr, done
    assert "note: .zarr-mount/journal: the journal of a mount with --rw" in mounting.ok(BINARY, "--verify", tmp_path / "s")
    for index, waits in [(3, False), (4, True), (5, True), (6, False)]:
        words = [BINARY, "--info", "--at", index, tmp_path / "s", "t"]
        assert json.loads(mounting.ok(*words, "--json"))["in_journal"] is waits, index
        assert ("\njournal " in mounting.ok(*words)) is waits, index
    again = mount(tmp_path / "s", "--rw", "--view", "chunks")
    assert "1 chunk saved that an earlier mount had left in its journal" in again.said, again.said
    assert "journal" not in mounting.ok(BINARY, "--info", tmp_path / "s")
    again.unmount()
    assert zarr.open_group(str(tmp_path / "s"), mode="r")["t"][:].tolist() == [1, 1, 1, 1, 7, 7, 1, 1]
