"""Each package that scripts/package builds, installed and used on a clean system, and removed again."""
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from support import mounting
from support.clean_roots import Root, bootstrap
from support.mounting import BINARY, CHECKOUT, ok, run, until

pytestmark = [pytest.mark.root, pytest.mark.long, pytest.mark.alone, pytest.mark.timeout(3600)]

ARRAY = "air/temperature.npy"
AS_NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


@pytest.fixture(scope="module")
def dist(figure):
    """The folder with all packages: just built, or the one that ZARR_MOUNT_DIST names."""
    if ready := os.environ.get("ZARR_MOUNT_DIST"):
        return Path(ready).absolute()
    start = time.monotonic()
    said = ok(CHECKOUT / "scripts/package", "all", timeout=3000)
    figure(f"packages: built in {time.monotonic() - start:.0f} s")
    figure("\n".join(f"packages: {line}" for line in said.partition("built in dist/\n")[2].splitlines()))
    return CHECKOUT / "dist"


@pytest.fixture(scope="module")
def bases(tmp_path_factory):
    """bases(suite): a clean system of Debian, as a tar file. ZARR_MOUNT_ROOTS names a folder that keeps them for the next run."""
    if not shutil.which("debootstrap"):
        pytest.skip("needs debootstrap")
    if kept := os.environ.get("ZARR_MOUNT_ROOTS"):
        yield lambda suite: bootstrap(suite, Path(kept))
        return
    folder = tmp_path_factory.mktemp("bases")
    yield lambda suite: bootstrap(suite, folder)
    shutil.rmtree(folder)


@pytest.fixture
def timed(request, figure):
    start = time.monotonic()
    yield
    figure(f"packages: {request.node.name} in {time.monotonic() - start:.0f} s")


@pytest.fixture
def expected(mount):
    """The bytes of an array of the built-in store, by the binary of the checkout."""
    made = mount("demo:", "--view", "arrays")
    return (made.path / ARRAY).read_bytes()


def only(folder, pattern):
    found, = folder.glob(pattern)
    return found


def read_in(root, path):
    """The bytes of a file, as a program in the clean root reads them."""
    copy = root.folder / "copy"
    root.ok("cp", path, "/copy")
    data = copy.read_bytes()
    copy.unlink()
    return data


def test_the_debian_package(dist, bases, tmp_path, expected, timed):
    with Root(bases("bookworm"), tmp_path / "root") as root:
        # The packages that zarr-mount depends on, and man-db, are installed first, so that the comparison below finds only the files of zarr-mount.
        root.install("fuse3", "man-db")
        before = root.files()
        shutil.copy(only(dist, "zarr-mount_*.deb"), root.folder)
        root.install("/" + only(dist, "zarr-mount_*.deb").name)

        root.ok("zarr-mount", "--view", "arrays", "demo:", "/mnt/z")
        assert read_in(root, f"/mnt/z/{ARRAY}") == expected
        root.ok("zarr-mount", "--unmount", "/mnt/z")
        root.ok("mount", "-t", "zarr-mount", "demo:", "/srv", "-o", "view=arrays")
        assert read_in(root, f"/srv/{ARRAY}") == expected
        root.ok("umount", "/srv")
        # A plain user mounts by the fusermount3 of the package fuse3.
        root.ok("install", "-d", "-o", "nobody", "/tmp/n")
        root.ok(*AS_NOBODY, "zarr-mount", "--view", "arrays", "demo:", "/tmp/n")
        root.ok(*AS_NOBODY, "cp", f"/tmp/n/{ARRAY}", "/tmp/copy")
        assert (root.folder / "tmp/copy").read_bytes() == expected
        root.ok(*AS_NOBODY, "zarr-mount", "--unmount", "/tmp/n")

        page = root.ok("sh", "-c", "MANPAGER=cat man zarr-mount")
        assert re.search(r"NAME\n\s+zarr-mount\s+-\s", page) and "--view" in page, page[:500]
        assert completions(root, "/usr/share/bash-completion/completions/zarr-mount") == ["arrays"]
        for path in ("usr/share/zsh/vendor-completions/_zarr-mount", "usr/share/fish/vendor_completions.d/zarr-mount.fish",
                     "usr/lib/systemd/system/zarr-mount@.service"):
            assert "zarr-mount" in (root.folder / path).read_text()
        documents = root.ok("sh", "-c", "zcat -f /usr/share/doc/zarr-mount/THIRD-PARTY-LICENSES* /usr/share/doc/zarr-mount/copyright")
        assert_licences(documents)

        root.ok("apt-get", "remove", "-y", "-q", "zarr-mount")
        assert root.files() - before == set()
        assert "zarr-mount" not in root.ok("dpkg", "-l")


def completions(root, script):
    """The completions of a real bash for `zarr-mount --view arr`."""
    return root.ok("bash", "-c", textwrap.dedent(f"""
        source {script}
        COMP_WORDS=(zarr-mount --view arr) COMP_CWORD=2 COMP_LINE='zarr-mount --view arr' COMP_POINT=21
        function=$(complete -p zarr-mount | sed 's/.* -F \\([^ ]*\\) .*/\\1/')
        "$function" zarr-mount arr --view
        printf '%s\\n' "${{COMPREPLY[@]}}" """)).split()


def assert_licences(text):
    """Libraries of C that the binary contains are named, with their licences, and so is Rust's own."""
    for words in ["C-Blosc", "LZ4 Library", "Zstandard", "Snappy|snappy", "0BSD", "libdeflate", "BoringSSL", "Rust standard library",
                  "libc\\+\\+", "jean-loup gailly|Jean-loup Gailly", "serde "]:
        assert re.search(words, text), words


def test_the_tar_file_on_an_old_system(dist, bases, tmp_path, expected, timed):
    """Debian 11, without the library of C++; installed and uninstalled by the commands of its INSTALL."""
    with Root(bases("bullseye"), tmp_path / "root") as root:
        root.ok("dpkg", "--purge", "--force-depends", "--force-remove-essential", "libstdc++6")
        assert "stdc++" not in root.ok("find", "/usr/lib", "-name", "lib*")
        before = root.files()
        ok("tar", "-xf", only(dist, "zarr-mount-*-linux.tar.gz"), "-C", root.folder / "srv")
        unpacked = only(root.folder / "srv", "zarr-mount-*")
        here = f"/srv/{unpacked.name}"
        install, link, uninstall = re.findall(r"^    sudo ((?:.*\\\n)*.*)$", (unpacked / "INSTALL").read_text(), re.M)

        root.ok("sh", "-c", f"cd {here} && bin/zarr-mount demo: /tmp/demo && ls -R /tmp/demo && bin/zarr-mount --unmount /tmp/demo")
        for command in (install, link):
            root.ok("sh", "-c", f"cd {here} && {command}")
        root.ok("mount", "-t", "zarr-mount", "demo:", "/mnt", "-o", "view=arrays")
        assert read_in(root, f"/mnt/{ARRAY}") == expected
        root.ok("zarr-mount", "--unmount", "/mnt")
        assert completions(root, "/usr/local/share/bash-completion/completions/zarr-mount") == ["arrays"]
        assert b"/.cargo/" not in (unpacked / "bin/zarr-mount").read_bytes(), "a path of the machine that built it"
        assert ".TH zarr-mount 1" in (unpacked / "share/man/man1/zarr-mount.1").read_text()
        assert_licences((unpacked / "share/doc/zarr-mount/THIRD-PARTY-LICENSES").read_text())
        root.ok("sh", "-c", uninstall)
        left = [path for path in root.files() - before if not (root.folder / path[1:]).is_dir()]
        assert left == []


def test_the_container(dist, bases, tmp_path, expected, timed):
    """Runs the steps of the Containerfile one by one, in place of a container engine."""
    steps = re.findall(r"^([A-Z]+) ((?:.*\\\n)*.*)$", (dist / "Containerfile").read_text(), re.M)
    assert [step for step, _ in steps] == ["FROM", "COPY", "RUN", "ENTRYPOINT", "CMD"]
    words = dict(steps)
    suite = re.fullmatch(r"docker.io/library/debian:(\w+)-slim", words["FROM"])[1]
    with Root(bases(suite), tmp_path / "root") as root:
        pattern, folder = words["COPY"].split()
        shutil.copy(only(dist, pattern), root.folder / folder.strip("/"))
        root.ok("sh", "-c", words["RUN"])
        assert not list((root.folder / "tmp").iterdir())
        entry, arguments = (eval(words[name]) for name in ("ENTRYPOINT", "CMD"))
        assert "Usage:" in root.ok(*entry, *arguments)
        program = subprocess.Popen([*root.inside, *entry, "-f", "--view", "arrays", "demo:", "/mnt/in"], stdin=subprocess.DEVNULL)
        until(lambda: root.run("mountpoint", "-q", "/mnt/in").returncode == 0, "the mount in the container")
        assert read_in(root, f"/mnt/in/{ARRAY}") == expected
        # As an engine stops a container. `program` is nsenter, which waits for the program inside.
        root.ok("sh", "-c", "kill -TERM $(pidof zarr-mount)")
        assert program.wait(60) == 0
        assert root.run("mountpoint", "-q", "/mnt/in").returncode != 0


@pytest.fixture(scope="module")
def python(dist, tmp_path_factory):
    """An environment of Python with the wheel, NumPy, and mypy, and nothing of the checkout."""
    folder = tmp_path_factory.mktemp("wheel") / "venv"
    ok(sys.executable, "-m", "venv", folder)
    ok(folder / "bin/pip", "install", "--quiet", only(dist, "*.whl"), "numpy==2.3.5", "mypy==2.4.1")
    yield folder / "bin/python"
    shutil.rmtree(folder)


def in_python(python, code, *args):
    environment = {name: value for name, value in os.environ.items() if name not in ("PATH", "PYTHONPATH")}
    return run(python, "-W", "error", "-c", textwrap.dedent(code), *args, env=environment | {"PATH": "/usr/bin:/bin"}, cwd="/")


def test_the_wheel(python, tmp_path, expected, timed):
    done = in_python(python, """
        import sys
        from pathlib import Path
        import numpy as np
        import zarr_mount
        with zarr_mount.mount("demo:", view="arrays", files=["npy", "nc"], cache_size="64M", sidecar="no", rw=False) as path:
            array = np.load(path / "air/temperature.npy")
            assert isinstance(path, Path) and (path / "air/air.nc").exists()
        assert not path.exists(), "the temporary directory is left"
        array.tofile(sys.argv[1])
    """, tmp_path / "copy")
    assert done.returncode == 0, done.stderr
    header = 128
    assert (tmp_path / "copy").read_bytes() == expected[header:]
    assert ok(python.parent / "zarr-mount", "--version").startswith("zarr-mount ")
    licences = only(python.parent.parent, "lib/python3*/site-packages/zarr_mount/THIRD-PARTY-LICENSES")
    assert_licences(licences.read_text())


def test_the_module_of_the_wheel_reports_errors(python, tmp_path, timed):
    point = tmp_path / "m"
    done = in_python(python, """
        import os, sys
        import zarr_mount
        def fails(**options):
            try:
                with zarr_mount.mount(options.pop("store", "demo:"), **options):
                    raise AssertionError("mounted")
            except zarr_mount.MountError as error:
                return str(error)
        assert "/no/such.zarr" in fails(store="/no/such.zarr")
        assert "--no-such-option" in fails(no_such_option=1)
        assert "chnks" in fails(view="chnks")
        # An exception in the block unmounts, and goes on.
        try:
            with zarr_mount.mount("demo:", sys.argv[1], args=["--array", "air/*", "--array", "legacy/*"], view="arrays") as path:
                assert os.path.ismount(path) and str(path) == sys.argv[1]
                raise KeyError("mine")
        except KeyError as error:
            assert error.args == ("mine",)
        assert not os.path.ismount(sys.argv[1])
        # A mount that is still in use is detached from its path, with a warning.
        try:
            with zarr_mount.mount("demo:", sys.argv[1], view="arrays") as path:
                held = open(path / "air/temperature.npy", "rb")
        except RuntimeWarning as error:
            assert sys.argv[1] in str(error), error
        else:
            raise AssertionError("the mount was in use, and there was no warning")
        assert not os.path.ismount(sys.argv[1])
        held.close()
    """, point)
    try:
        assert done.returncode == 0, done.stderr
    finally:
        mounting.force_away(point)


def test_the_module_of_the_wheel_writes(python, mount, tmp_path, timed):
    made = mount("demo:", "--shards", "keep")
    shutil.copytree(made.path, tmp_path / "s.zarr", ignore=shutil.ignore_patterns(".zarr-mount"))
    done = in_python(python, """
        import sys
        import numpy as np
        import zarr_mount
        with zarr_mount.mount(sys.argv[1], rw=True, view="chunks") as path:
            chunk = next(p for p in sorted((path / "air/temperature").rglob("*")) if p.is_file() and "/c/" in str(p))
            data = bytes(chunk.stat().st_size)
            chunk.write_bytes(data)
        with zarr_mount.mount(sys.argv[1], view="chunks") as again:
            assert (again / chunk.relative_to(path)).read_bytes() == data
    """, tmp_path / "s.zarr")
    assert done.returncode == 0, done.stderr


def test_the_module_of_the_wheel_has_types(python, tmp_path, timed):
    program = tmp_path / "program.py"
    program.write_text("import zarr_mount\nwith zarr_mount.mount('demo:', view='arrays') as path:\n    print(path.name + 1)\n")
    # Dask is not in this environment, so that its classes have any type.
    ok(python, "-m", "mypy", "--strict", "--ignore-missing-imports", "--allow-subclassing-any", CHECKOUT / "python/zarr_mount", cwd=tmp_path)
    done = run(python, "-m", "mypy", "--strict", program, cwd=tmp_path)
    assert done.returncode == 1 and "program.py:3" in done.stdout and "Found 1 error" in done.stdout, done


class Booted:
    """A clean root in which systemd is the first process."""

    def __init__(self, root):
        self.root = root
        self.log = open(root.folder.parent / "boot.log", "w+")
        self.program = subprocess.Popen(
            ["systemd-nspawn", "-q", "-D", root.folder, "--register=no", "--keep-unit", "--boot", "--console=read-only", "--resolv-conf=off",
             "--bind=/dev/fuse", "--bind=/dev/autofs"], stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT)

    def __enter__(self):
        try:
            first = until(self._first_process, "the first process of systemd")
            self.inside = ["nsenter", "-t", first, "--mount", "--pid", "--uts", "--ipc", "--cgroup"]
            until(lambda: self.run("systemctl", "is-system-running").stdout.strip() in ("running", "degraded"), "the boot")
        except BaseException:
            self.__exit__()
            raise
        return self

    def _first_process(self):
        assert self.program.poll() is None, Path(self.log.name).read_text()
        children = Path(f"/proc/{self.program.pid}/task/{self.program.pid}/children").read_text().split()
        return next((pid for pid in children if Path(f"/proc/{pid}/comm").read_text() == "systemd\n"), None)

    def __exit__(self, *_):
        self.program.send_signal(signal.SIGTERM)
        try:
            self.program.wait(60)
        except subprocess.TimeoutExpired:
            self.program.kill()
            self.program.wait()
        self.log.close()

    def run(self, *args):
        return run(*self.inside, *args)

    def ok(self, *args):
        done = self.run(*args)
        if done.returncode != 0:
            journal = self.run("journalctl", "--no-pager", "-n", "40").stdout
            raise AssertionError(f"{args}: {done.stdout}{done.stderr}\n{journal}")
        return done.stdout

    def bytes_of(self, path):
        self.ok("cp", path, "/copy")
        return (self.root.folder / "copy").read_bytes()


def test_units_of_systemd(dist, bases, tmp_path, expected, timed):
    """The service and the pair of examples, with systemd as the first process of a clean root."""
    if not shutil.which("systemd-nspawn") or not os.path.exists("/dev/autofs"):
        pytest.skip("needs systemd-nspawn and /dev/autofs")
    with Root(bases("bookworm"), tmp_path / "root") as root:
        package = only(dist, "zarr-mount_*.deb")
        shutil.copy(package, root.folder)
        root.install(f"/{package.name}", "man-db", "systemd-sysv", "dbus")
        examples = root.folder / "usr/share/doc/zarr-mount/examples"
        root.ok("install", "-D", "-m", "600", "/usr/share/doc/zarr-mount/examples/demo.conf", "/etc/zarr-mount/demo.conf")
        for name in ("mnt-z.mount", "mnt-z.automount"):
            text = (examples / name).read_text().replace("/data/a.zarr", "demo:").replace("view=chunks", "view=arrays")
            (root.folder / "etc/systemd/system" / name).write_text(text)
        said = root.run("systemd-analyze", "verify", "zarr-mount@demo.service", "mnt-z.mount", "mnt-z.automount")
        assert said.returncode == 0 and "zarr-mount" not in said.stderr and "mnt-z" not in said.stderr, said.stderr

        with Booted(root) as system:
            service = "zarr-mount@demo.service"
            # It returns when the program has said that the mount answers.
            system.ok("systemctl", "enable", "--now", service)
            assert system.bytes_of(f"/mnt/demo/{ARRAY}") == expected
            # A killed service is started again.
            main = system.ok("systemctl", "show", "-P", "MainPID", service).strip()
            system.ok("systemctl", "kill", "-s", "KILL", service)
            until(lambda: system.ok("systemctl", "show", "-P", "MainPID", service).strip() not in ("0", main), "the restart")
            until(lambda: system.run("systemctl", "is-active", "--quiet", service).returncode == 0, "the mount after the restart")
            assert system.bytes_of(f"/mnt/demo/{ARRAY}") == expected
            system.ok("systemctl", "stop", service)
            assert system.run("mountpoint", "-q", "/mnt/demo").returncode != 0
            assert system.ok("systemctl", "show", "-P", "Result", service) == "success\n"
            # The changes are in the store when the service has stopped.
            document = '{"zarr_format": 3, "node_type": "group", "attributes": {"%s": 1}}'
            store = root.folder / "srv/w.zarr"
            store.mkdir()
            (store / "zarr.json").write_text(document % "old")
            (root.folder / "new.json").write_text(document % "new")
            (root.folder / "etc/zarr-mount/w.conf").write_text("STORE=/srv/w.zarr\nMOUNTPOINT=/mnt/w\nOPTIONS=--rw\n")
            system.ok("systemctl", "start", "zarr-mount@w")
            system.ok("cp", "/new.json", "/mnt/w/zarr.json")
            system.ok("systemctl", "stop", "zarr-mount@w")
            assert "new" in (store / "zarr.json").read_text()
            # A store that does not exist is a failure at once, by name.
            (root.folder / "etc/zarr-mount/none.conf").write_text("STORE=/no/such.zarr\nMOUNTPOINT=/mnt/none\n")
            assert system.run("systemctl", "start", "zarr-mount@none").returncode != 0
            assert "/no/such.zarr" in system.ok("journalctl", "--no-pager", "-u", "zarr-mount@none")
            system.ok("systemctl", "stop", "zarr-mount@none")

            system.ok("systemctl", "enable", "--now", "mnt-z.automount")
            assert system.run("systemctl", "is-active", "--quiet", "mnt-z.mount").returncode != 0
            assert system.bytes_of(f"/mnt/z/{ARRAY}") == expected
            system.ok("systemctl", "is-active", "--quiet", "mnt-z.mount")
            system.ok("systemctl", "stop", "mnt-z.automount", "mnt-z.mount")

            # The removal of the package ends its services.
            system.ok("systemctl", "start", service)
            system.ok("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "remove", "-y", "-q", "zarr-mount")
            assert system.run("mountpoint", "-q", "/mnt/demo").returncode != 0
            assert system.run("pidof", "zarr-mount").returncode != 0
