"""Programs that know WebDAV, on `--serve`: cadaver, rclone, and davfs2, which mounts it."""
import os
import subprocess

import pytest

from support.mounting import BINARY, ok, run, until
from support.serving import TOKEN, serving

pytestmark = pytest.mark.heavy
OPTIONS = ["--view", "keys,arrays", "--files", "npy,nc"]


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """The served files, exported to disk."""
    path = tmp_path_factory.mktemp("exported") / "out"
    ok(BINARY, "--export", path, *OPTIONS, "demo:")
    return path


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serving("demo:", *OPTIONS, tmp_path=tmp_path_factory.mktemp("serve")) as server:
        yield server


def files(root):
    found = {}
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, root)] = file.read()
    return found


def test_cadaver(server, exported, tmp_path):
    (tmp_path / ".netrc").write_text(f"machine 127.0.0.1\nlogin any\npassword {TOKEN}\n")
    (tmp_path / ".netrc").chmod(0o600)
    words = f"ls arrays/air\ncd keys/air/temperature\nget zarr.json {tmp_path}/document\nput {tmp_path}/.netrc\nquit\n"
    done = subprocess.run(["cadaver", server.url], input=words, capture_output=True, text=True, timeout=120,
                          env={**os.environ, "HOME": str(tmp_path)})
    assert "temperature.npy" in done.stdout and "147584" in done.stdout, done.stdout
    assert (tmp_path / "document").read_bytes() == (exported / "keys" / "air" / "temperature" / "zarr.json").read_bytes()
    # Nothing can be written.
    assert "Uploading" in done.stdout and "failed" in done.stdout.split("Uploading")[1], done.stdout


def test_rclone(server, exported, tmp_path):
    remote = [":webdav:", "--webdav-url", server.url, "--webdav-vendor", "other", "--config", tmp_path / "none"]
    login = ["--webdav-user", "any", "--webdav-pass", ok("rclone", "obscure", TOKEN).strip()]
    ok("rclone", "copy", *remote, *login, tmp_path / "copy")
    assert files(tmp_path / "copy") == files(exported)
    # It compares sizes, and reads ranges.
    ok("rclone", "check", "--download", exported, *remote, *login)
    part = subprocess.run(["rclone", "cat", "--offset", "128", "--count", "64", ":webdav:arrays/air/temperature.npy", *map(str, remote[1:]),
                           "--webdav-bearer-token", TOKEN], capture_output=True, check=True, timeout=120).stdout
    assert part == (exported / "arrays" / "air" / "temperature.npy").read_bytes()[128:192]
    (tmp_path / "new").write_text("x")
    assert run("rclone", "copy", "--retries", "1", tmp_path / "new", *remote, *login).returncode != 0


@pytest.mark.root
@pytest.mark.skipif(not os.path.exists("/dev/fuse"), reason="needs /dev/fuse")
def test_davfs2(server, exported, tmp_path):
    path, settings, secrets = tmp_path / "m", tmp_path / "davfs2.conf", tmp_path / "secrets"
    path.mkdir()
    # Its cache stays where the package has made it: its own user cannot search the folders of tests.
    settings.write_text(f"secrets {secrets}\nuse_locks 0\nask_auth 0\n")
    secrets.touch(mode=0o600)
    secrets.write_text(f'{server.url} any "{TOKEN}"\n')
    # Its daemon keeps the descriptors that it gets.
    with open(tmp_path / "said", "w") as said:
        command = ["mount", "-t", "davfs", "-o", f"ro,conf={settings}", server.url, path]
        status = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, timeout=60).returncode
    assert status == 0, (tmp_path / "said").read_text()
    try:
        # By their names: version 1.6.1 lists no directory of any server with new kernels, which refuse its entries (EINVAL).
        for name, content in files(exported).items():
            assert (path / name).read_bytes() == content, name
        assert not (path / "none").exists()
    finally:
        # Its own program for this waits until the daemon is gone, which this process has adopted.
        ok("umount", "-i", path)
        until(lambda: not os.path.ismount(path), "the unmount of davfs2")
