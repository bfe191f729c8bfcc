"""`zarr-mount STORE MOUNTPOINT`: starting, ending, refusing."""
import os
import shlex
import signal
import subprocess
import threading
import zipfile

import pytest

from support import mounting, sample
from support.mounting import BINARY, mount_entry, run, until


@pytest.fixture
def store(tmp_path):
    return sample.write(tmp_path / "s.zarr")


@pytest.mark.parametrize("options", [[], ["--rw"]], ids=["read", "rw"])
def test_unmount_by_the_command_waits_for_the_daemon(options, mount, store, tmp_path):
    for _ in range(5):
        made = mount(store, *options, path=tmp_path / "made")
        mounting.ok(BINARY, "--unmount", made.path)
        # The command has removed everything that it made.
        assert not made.path.exists() and not (store / ".zarr-mount").exists()
        assert not made.alive()
        made.wait_for_the_end()


def test_unmount_says_that_it_waits_for_a_daemon_that_does_not_answer(mount, store):
    made = mount(store)
    os.kill(made.pid, signal.SIGSTOP)
    threads = [f"/proc/{made.pid}/task/{thread}/stat" for thread in os.listdir(f"/proc/{made.pid}/task")]

    def is_stopped(thread):
        with open(thread) as file:
            return file.read().rpartition(")")[2].split()[0] == "T"

    until(lambda: all(map(is_stopped, threads)), "all threads are stopped")
    try:
        unmount = subprocess.Popen([BINARY, "--unmount", made.path], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        line = unmount.stderr.readline()
    finally:
        os.kill(made.pid, signal.SIGCONT)
    assert line.startswith(f"zarr-mount: waiting for the daemon of {made.path}, ") and f"umount -l {made.path}" in line
    assert unmount.wait(mounting.PATIENCE) == 0 and unmount.stderr.read() == ""
    unmount.stderr.close()
    made.wait_for_the_end()


@pytest.mark.parametrize("tool", [["fusermount3", "-u"], ["umount"]], ids=lambda t: t[0])
def test_unmount_by_other_tools(mount, store, tool):
    if tool == ["umount"] and os.geteuid() != 0:
        pytest.skip("umount needs root")
    made = mount(store)
    mounting.ok(*tool, made.path)
    made.wait_for_the_end()


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGQUIT", "SIGHUP"])
def test_signals_unmount(mount, store, name):
    made = mount(store)
    os.kill(made.pid, getattr(signal, name))
    made.wait_for_the_end()


def test_signals_that_mean_nothing_here_leave_the_mount(mount, store):
    made = mount(store)
    for name in ["SIGUSR1", "SIGUSR2", "SIGALRM"]:
        os.kill(made.pid, getattr(signal, name))
    assert (made.path / "zarr.json").read_bytes()
    made.unmount()


def test_busy_says_so_and_leaves_it_mounted(mount, store):
    made = mount(store)
    with open(made.path / "zarr.json"):
        done = run(BINARY, "--unmount", made.path)
        assert done.returncode != 0
        assert "busy" in done.stderr
        assert made.mounted() and made.alive()
    made.unmount()


def test_a_signal_while_busy_still_ends_the_daemon(mount, store):
    made = mount(store)
    with open(made.path / "zarr.json"):
        os.kill(made.pid, signal.SIGTERM)
        until(lambda: not made.mounted(), "the lazy unmount")
    made.wait_for_the_end()


def test_the_last_files_closed_after_a_lazy_unmount_are_no_failure(mount, store):
    """The kernel ends the session while threads of the daemon are taking the releases of these files."""
    for _ in range(40):
        made = mount(store)
        files = [open(made.path / "zarr.json") for _ in range(4)]
        mounting.ok("fusermount3", "-u", "-z", made.path)
        closing = [threading.Thread(target=file.close) for file in files]
        for thread in closing:
            thread.start()
        for thread in closing:
            thread.join()
        made.wait_for_the_end()


@pytest.mark.root
def test_an_aborted_connection_leaves_no_dead_mount(mount, store, tmp_path):
    made = mount(store)
    minor = os.minor(os.stat(made.path).st_dev)
    control = tmp_path / "connections"
    control.mkdir()
    mounting.ok("mount", "-t", "fusectl", "none", control)
    try:
        (control / str(minor) / "abort").write_text("1")
    finally:
        mounting.ok("umount", control)
    made.wait_for_the_end()


def test_a_created_mountpoint_is_removed_again(mount, store, tmp_path):
    made = mount(store, path=tmp_path / "made")
    made.unmount()
    assert not (tmp_path / "made").exists()


def test_a_mountpoint_that_was_there_stays(mount, store):
    made = mount(store)
    made.unmount()
    assert made.path.is_dir()


def test_command_substitution_returns(store, tmp_path):
    """The daemon must let go of the pipe, or the shell waits for it for ever."""
    point = tmp_path / "m"
    line = f"out=$({shlex.quote(BINARY)} {shlex.quote(str(store))} {shlex.quote(str(point))}); echo returned"
    try:
        assert mounting.ok("sh", "-c", line).endswith("returned\n")
        assert mount_entry(point)
    finally:
        run(BINARY, "--unmount", point)
        mounting.force_away(point)


def test_relative_paths(store, tmp_path):
    (tmp_path / "m").mkdir()
    try:
        mounting.ok(BINARY, "s.zarr", "m", cwd=tmp_path)
        assert (tmp_path / "m/zarr.json").read_bytes() == (store / "zarr.json").read_bytes()
        mounting.ok(BINARY, "--unmount", "m", cwd=tmp_path)
        assert not mount_entry(tmp_path / "m")
    finally:
        mounting.force_away(tmp_path / "m")


def test_foreground_logs_to_standard_error_and_ends_by_signal(store, tmp_path):
    point = tmp_path / "m"
    point.mkdir()
    daemon = subprocess.Popen([BINARY, "-f", store, point], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        until(lambda: mount_entry(point) or daemon.poll() is not None, "the mount")
        assert (point / "zarr.json").read_bytes() == (store / "zarr.json").read_bytes()
        daemon.send_signal(signal.SIGTERM)
        assert daemon.wait(mounting.PATIENCE) == 0
        assert not mount_entry(point)
    finally:
        daemon.kill()
        daemon.wait()
        daemon.stderr.close()
        mounting.force_away(point)


def test_a_stale_mount_is_repaired(mount, store):
    made = mount(store)
    made.kill()
    with pytest.raises(OSError):
        os.listdir(made.path)
    again = mount(store, path=made.path)
    assert (again.path / "zarr.json").read_bytes() == (store / "zarr.json").read_bytes()
    again.unmount()


def refused(*args, names):
    """The command fails before it mounts, with one line that names the problem."""
    done = run(BINARY, *args)
    assert done.returncode != 0
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert names in done.stderr, done.stderr
    return done.stderr


@pytest.fixture
def point(tmp_path):
    (tmp_path / "m").mkdir()
    yield tmp_path / "m"
    assert not mount_entry(tmp_path / "m")


def test_refuses_a_missing_store(tmp_path, point):
    refused(tmp_path / "nothing.zarr", point, names="nothing.zarr")


@pytest.mark.parametrize("name, content, hint", [
    (None, b"", "mounted all the same"),
    ("data.h5", b"\x89HDF\r\n\x1a\n" + bytes(8), "HDF5"),
    ("refs.json", b'{"version":1,"refs":{".zgroup":"{}"}}', "kerchunk"),
])
def test_a_folder_without_zarr_is_mounted_with_a_warning(mount, tmp_path, name, content, hint):
    folder = tmp_path / "empty"
    folder.mkdir()
    if name:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    made = mount(folder)
    assert made.said.startswith("zarr-mount: warning: STORE ") and made.said.count("\n") == 1
    assert "no Zarr node" in made.said and hint in made.said
    # It may fill later.
    (folder / "late.zarr").mkdir()
    (folder / "late.zarr" / "zarr.json").write_text('{"zarr_format":3,"node_type":"group"}')
    assert "late.zarr" in os.listdir(made.path)


def test_a_folder_of_stores_is_mounted_in_silence(mount, tmp_path):
    (tmp_path / "stores" / "a.zarr").mkdir(parents=True)
    (tmp_path / "stores" / "a.zarr" / "zarr.json").write_text('{"zarr_format":3,"node_type":"group"}')
    assert mount(tmp_path / "stores").said == ""


def test_patterns_that_select_nothing_are_named(mount):
    patterns = ["--array", "temperature", "--array", "legacy/*", "--array", "tempreature", "--array", "air"]
    made = mount("demo:", "--view", "arrays", *patterns)
    expected = [f"zarr-mount: warning: --array {p}: it selects no array of demo:" for p in ("tempreature", "air")]
    assert made.said.splitlines() == expected
    done = run(BINARY, "--info", "--files", "npy", "--array", "x/y", "demo:")
    assert done.returncode == 0 and "--array x/y: it selects no array" in done.stderr


def test_refuses_a_broken_zip_file_by_name(tmp_path, point):
    with zipfile.ZipFile(tmp_path / "s.zip", "w") as packed:
        packed.writestr("zarr.json", '{"zarr_format":3,"node_type":"group"}')
    whole = (tmp_path / "s.zip").read_bytes()
    (tmp_path / "s.zip").write_bytes(whole[:-1])
    refused(tmp_path / "s.zip", point, names="s.zip")


@pytest.mark.parametrize("url", ["ftp://host/s.zarr", "hdfs://host/s.zarr"])
def test_refuses_a_url_of_an_unknown_scheme_by_name(point, url):
    refused(url, point, names=url.partition("//")[0])


def test_refuses_a_mountpoint_that_is_a_file(store, tmp_path):
    (tmp_path / "file").write_bytes(b"x")
    refused(store, tmp_path / "file", names="file")


def test_a_non_empty_mountpoint_is_refused_unless_an_option_allows_it(mount, store, point):
    (point / "mine").write_bytes(b"x")
    assert "nonempty" in refused(store, point, names=point.name)
    made = mount(store, "-o", "nonempty", path=point)
    assert not (point / "mine").exists()
    made.unmount()
    assert (point / "mine").read_bytes() == b"x"


def test_refuses_a_mountpoint_inside_the_store(store):
    refused(store, store / "m", names="inside")


def test_refuses_a_store_inside_the_mountpoint(store, tmp_path):
    refused(store, tmp_path, "-o", "nonempty", names="inside")


@pytest.mark.parametrize("args", [["--view", "nonsense"], ["--cache-size", "many"], ["-o", "nonsense"], ["--nonsense"]])
def test_refuses_options_it_does_not_know(store, point, args):
    done = run(BINARY, store, point, *args)
    assert done.returncode != 0
    assert (args[-1].lstrip("-")) in done.stderr


def test_info_reads_without_a_mount(store):
    said = mounting.ok(BINARY, "--info", store)
    for name in ("plain", "raw", "sharded", "holes"):
        assert name in said


def test_help_has_examples():
    said = mounting.ok(BINARY, "--help")
    assert "zarr-mount" in said and "--unmount" in said and "xample" in said
