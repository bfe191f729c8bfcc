"""Clean installations of Debian in folders, in which programs run as on a machine of their own. They are removed without a trace."""
import os
import shutil
import subprocess
from pathlib import Path

from support.mounting import ok, run, until

MIRROR = "http://deb.debian.org/debian"


def bootstrap(suite, folder):
    """A tar file of the smallest installation of a suite, made once for all callers with the same folder."""
    made = folder / f"{suite}.tar"
    if not made.exists():
        root = folder / suite
        ok("debootstrap", "--variant=minbase", suite, root, MIRROR, timeout=1200)
        ok("tar", "-cf", made, "-C", root, ".")
        shutil.rmtree(root)
    return made


class Root:
    """An installation in `folder`. Programs that run in it have mounts and processes of their own, which end with the `with` block."""

    def __init__(self, base, folder):
        self.folder = Path(folder)
        self.folder.mkdir()
        ok("tar", "-xf", base, "-C", self.folder)
        shutil.copy("/etc/resolv.conf", self.folder / "etc/resolv.conf")
        (self.folder / "dev/fuse").touch()
        # systemd and container engines make /etc/mtab such a link. fusermount3 reads it.
        mtab = self.folder / "etc/mtab"
        if not mtab.is_symlink():
            mtab.symlink_to("../proc/self/mounts")

    def __enter__(self):
        script = 'mount -t proc proc "$0/proc" && mount --bind /dev/fuse "$0/dev/fuse" && exec sleep infinity'
        self.holder = subprocess.Popen(["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child",
                                        "sh", "-c", script, self.folder], stdin=subprocess.DEVNULL)
        try:
            first = until(self._first_process, "the first process of the clean root")
        except BaseException:
            self.__exit__()
            raise
        self.inside = ["nsenter", "-t", first, "--mount", "--pid", "chroot", self.folder]
        return self

    def _first_process(self):
        assert self.holder.poll() is None, "no clean root could be made"
        children = Path(f"/proc/{self.holder.pid}/task/{self.holder.pid}/children").read_text().split()
        return next((pid for pid in children if Path(f"/proc/{pid}/comm").read_text() == "sleep\n"), None)

    def __exit__(self, *_):
        self.holder.kill()
        self.holder.wait()
        # The kernel ends the other processes of the namespace, and unmounts when the last one is gone.
        until(lambda: run("rm", "-rf", "--one-file-system", self.folder).returncode == 0, "the end of the clean root")

    def run(self, *args, **kwargs):
        environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root",
                       "DEBIAN_FRONTEND": "noninteractive", "LANG": "C.UTF-8"}
        environment |= {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
        return run(*self.inside, *args, env=environment, **{"timeout": 900, **kwargs})

    def ok(self, *args, **kwargs):
        done = self.run(*args, **kwargs)
        assert done.returncode == 0, f"{args}: {done.returncode}: {done.stdout[-2000:]}{done.stderr[-4000:]}"
        return done.stdout

    def install(self, *packages):
        self.ok("apt-get", "update", "-q")
        self.ok("apt-get", "install", "-y", "-q", "--no-install-recommends", *packages)

    def files(self):
        """The paths that packages install, and the files that they write into the system's settings."""
        return set(self.ok("find", "/usr", "/etc", "/opt", "/bin/", "/sbin/", "/lib/").splitlines())
