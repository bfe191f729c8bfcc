"""The newest releases of Zarr libraries, in the system that scripts/newest-root makes. Folders of the tests are shown in it while a program runs."""
import json

from support.mounting import CHECKOUT, WORKERS, ok

# The mounts, and the copies of those below the folder, end with the program.
INSIDE = """
mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && mount --rbind "$1" "$0/stores" && mount --bind "$2" "$0/workers" || exit 125
root=$0; shift 2
exec chroot "$root" env PYTHONDONTWRITEBYTECODE=1 HOME=/root /venv/bin/python "$@"
"""


def make():
    """The folder of the system, made where it is missing."""
    return ok(CHECKOUT / "scripts/newest-root", timeout=3000).splitlines()[-1]


def told(root, folder, command, path):
    """The result that newest_worker.py prints for a path below `folder`."""
    said = ok("unshare", "--mount", "--propagation", "private", "sh", "-c", INSIDE, root, folder, WORKERS,
              "/workers/newest_worker.py", command, f"/stores/{path}", timeout=600)
    return json.loads(said.splitlines()[-1])
