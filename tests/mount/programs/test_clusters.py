"""The files of `examples`, as far as one machine can run them: Dask with worker processes, a script of Slurm, and Kubernetes."""
import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import zarr

from support import mounting
from support.mounting import BINARY, CHECKOUT, ok, run, until

PYTHON = CHECKOUT / ".venv-clusters" / "bin" / "python"
EXAMPLES = CHECKOUT / "examples"
MANIFESTS = sorted((EXAMPLES / "kubernetes").glob("*.yaml"))


@pytest.fixture
def store(tmp_path):
    """Values that no two places share, in shards, with chunks at the edges."""
    values = np.arange(70 * 48 * 40, dtype="f8").reshape(70, 48, 40)
    group = zarr.create_group(tmp_path / "s.zarr")
    group.create_array("t", data=values, chunks=(8, 16, 16), shards=(16, 32, 32))
    return tmp_path / "s.zarr", values


@pytest.fixture
def point(tmp_path):
    yield tmp_path / "m"
    mounting.force_away(tmp_path / "m")


@pytest.fixture
def environment(tmp_path):
    """The program that is tested is on PATH, and the module of this checkout can be imported."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "zarr-mount").symlink_to(BINARY)
    (tmp_path / "tmp").mkdir()
    return {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(CHECKOUT / "python"),
            "RESULT": str(tmp_path / "result.npz"), "TMPDIR": str(tmp_path / "tmp"), "PYTHONWARNINGS": "ignore"}


@pytest.fixture
def python():
    assert PYTHON.exists(), f"{PYTHON} is missing: scripts/test makes it"
    return PYTHON


def test_dask_workers_share_a_mount(store, point, environment, python):
    path, values = store
    done = run(python, mounting.WORKERS / "dask_reader.py", path, "t", point, env=environment, cwd=environment["TMPDIR"])
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["workers"] == 4 and found["names"] == ["t.json", "t.npy"] and found["blocks"] == [5, 5]
    assert found["mounts"] == [1, 1, 0], "one mount for all workers, which the last one takes away"
    assert found["sum"] == values.sum()
    result = np.load(environment["RESULT"])
    np.testing.assert_array_equal(result["mean"], values.mean(axis=0))
    np.testing.assert_array_equal(result["columns"], np.cumsum(values, axis=0))
    np.testing.assert_array_equal(result["pillars"], values)
    np.testing.assert_array_equal(result["plane"], values[3])


TWO_WORKERS = """
import os, sys
from zarr_mount import MountError
from zarr_mount.dask import MountPlugin

store, other, point, again = sys.argv[1:]
first, second = MountPlugin(store, point, files=["npy"]), MountPlugin(store, again, files=["npy"])
first.setup(None)
second.setup(None)
try:
    MountPlugin(other, point).setup(None)
except MountError as error:
    print("refused" if "and not" in str(error) else error)
first.teardown(None)
print(os.path.ismount(point))
second.teardown(None)
print(os.path.ismount(point))
"""


@pytest.mark.parametrize("options", ["", ", o='fsname=mine'"], ids=["url", "fsname"])
def test_workers_share_a_mount_however_it_is_spelled(store, tmp_path, environment, python, options):
    """The program lists the store under another name, and the mountpoint of the second worker has one more slash."""
    path, _ = store
    point = tmp_path / "a-b"
    script = TWO_WORKERS.replace(', files=["npy"]', f', files=["npy"]{options}')
    try:
        told = ok(python, "-c", script, f"file://{path}", tmp_path / "other", point, f"{tmp_path}//a-b", env=environment, cwd=tmp_path)
    finally:
        mounting.force_away(point)
    assert told.split() == ["refused", "True", "False"]


def test_mountpoints_have_locks_of_their_own(environment, python):
    script = """
import os
from zarr_mount.dask import MountPlugin
locks = [MountPlugin("demo:", point)._open_lock("users") for point in ("/tmp/a-b", "/tmp/a/b", "/tmp//a-b/")]
print(*[os.fstat(lock).st_ino for lock in locks])
"""
    one, other, same = ok(python, "-c", script, env=environment).split()
    assert one == same != other


def test_the_example_of_dask(store, point, environment, python):
    path, values = store
    told = ok(python, EXAMPLES / "dask_cluster.py", path, "t", "--mountpoint", point, env=environment, cwd=environment["TMPDIR"])
    assert told == f"(70, 48, 40) float64 in 1 blocks: mean {values.mean():.6g}\n"
    assert not os.path.ismount(point)


# `srun` of Slurm starts its command once on each node. This one starts it twice here, and passes on SIGTERM, as srun does.
SRUN = """#!/bin/bash
for node in 0 1; do SLURM_PROCID=$node "$@" & nodes+=($!); done
trap 'kill -TERM "${nodes[@]}"; for node in "${nodes[@]}"; do wait "$node"; done; exit 143' TERM
status=0
for node in "${nodes[@]}"; do wait "$node" || status=$?; done
exit $status
"""


@pytest.fixture
def slurm(store, environment, tmp_path):
    """Runs the script in the environment of a job."""
    (tmp_path / "bin" / "srun").write_text(SRUN)
    (tmp_path / "bin" / "srun").chmod(0o755)
    job = f"{os.getpid()}-{tmp_path.name}"
    variables = {**environment, "SLURM_JOB_ID": job, "STORE": str(store[0])}
    yield lambda *program: subprocess.Popen(["bash", EXAMPLES / "slurm.sbatch", *program], env=variables, stdin=subprocess.DEVNULL,
                                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True), job
    for left in Path("/tmp").glob(f"zarr-{job}.*"):
        mounting.force_away(left)
        left.rmdir()


def test_a_job_of_slurm_mounts_on_each_node(slurm):
    start, job = slurm
    done = start("sh", "-c", 'echo $SLURM_PROCID $(ls "$1"); [ "$SLURM_PROCID" = 0 ] || exit 3', "program")
    told, problem = done.communicate(timeout=mounting.PATIENCE)
    assert sorted(line.strip() for line in told.splitlines()) == [f"{node} t.json t.npy" for node in (0, 1)], (told, problem)
    assert done.returncode == 3, "the status of the program that failed"
    assert list(Path("/tmp").glob(f"zarr-{job}.*")) == [], "each node has unmounted"


def test_a_job_of_slurm_that_is_ended_unmounts(slurm, tmp_path):
    start, job = slurm
    done = start("sh", "-c", f'touch "{tmp_path}/begun-$SLURM_PROCID"; exec sleep 600', "program")
    until(lambda: all((tmp_path / f"begun-{node}").exists() for node in (0, 1)), "both nodes have mounted")
    done.terminate()
    done.communicate(timeout=mounting.PATIENCE)
    assert done.returncode == 143 and list(Path("/tmp").glob(f"zarr-{job}.*")) == []


def test_the_script_of_slurm_is_sound():
    script = EXAMPLES / "slurm.sbatch"
    ok("bash", "-n", script)
    if shutil.which("shellcheck"):
        ok("shellcheck", script)
    directives = [line for line in script.read_text().splitlines() if line.startswith("#SBATCH ")]
    assert directives and all(line.split()[1].startswith("--") and "=" in line for line in directives)


CHECK = """
import json, sys, yaml, kubernetes_validate
documents = list(yaml.safe_load_all(open(sys.argv[1])))
for document in documents:
    kubernetes_validate.validate(document, "1.29", strict=True)
print(json.dumps(documents))
"""


def documents(python, manifest):
    """The documents of a manifest, which the schemas of Kubernetes 1.29 have checked: a member that they do not know is an error."""
    return json.loads(ok(python, "-c", CHECK, manifest))


def containers(document):
    spec = document["spec"]
    spec = spec["template"]["spec"] if "template" in spec else spec
    return spec, spec.get("initContainers", []) + spec["containers"]


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.stem)
def test_manifests_of_kubernetes(manifest, python, mount, tmp_path):
    """The form of the manifests, and the commands in them, with `demo:` and a directory of this machine."""
    n_mounts = n_readers = 0
    for document in documents(python, manifest):
        spec, all_containers = containers(document)
        volumes = {volume["name"] for volume in spec["volumes"]}
        for container in all_containers:
            [shared] = container["volumeMounts"]
            assert shared["name"] in volumes and shared["mountPath"] == "/mnt/zarr"
            if container["name"] != "zarr-mount":
                n_readers += 1
                assert shared["mountPropagation"] == "HostToContainer" and shared["readOnly"] and "securityContext" not in container
                continue
            n_mounts += 1
            assert shared["mountPropagation"] == "Bidirectional" and container["securityContext"] == {"privileged": True}
            foreground, *options, store, point = container["args"]
            assert foreground == "--foreground" and store.startswith("s3://") and point == "/mnt/zarr/data"
            commands = [container["startupProbe"]["exec"]["command"], container["livenessProbe"]["exec"]["command"],
                        container["lifecycle"]["preStop"]["exec"]["command"]]
            run_here(mount, commands, options, tmp_path / f"m{n_mounts}", point)
            memory = container["resources"]["limits"]["memory"]
            cache = options[options.index("--cache-size") + 1]
            assert memory.endswith("Mi") and cache.endswith("G") and int(memory[:-2]) >= 1024 * int(cache[:-1]) + 64 + 32
    assert n_mounts == 1 and n_readers == 1


def run_here(mount, commands, options, here, point):
    """The commands of a container: the probes fail before the mount and succeed after it, and the last command unmounts."""
    *probes, stop = [[word.replace(point, str(here)) for word in command] for command in commands]
    stop[0] = BINARY if stop[0] == "zarr-mount" else stop[0]
    here.mkdir()
    assert all(run(*probe).returncode != 0 for probe in probes)
    mounted = mount("demo:", *options, path=here)
    for probe in probes:
        ok(*probe)
    ok(*stop)
    assert not mounted.mounted()


@pytest.mark.root
def test_a_mount_is_passed_on_as_by_kubernetes(tmp_path, environment):
    """`Bidirectional` is a shared bind mount, and `HostToContainer` one that follows another: the kernel does what the manifests rely on."""
    script = f"""
        set -e
        cd {tmp_path}; mkdir host other
        mount --bind host host; mount --make-rshared host
        # The container of the program, which starts first, sees the mount that comes later.
        mkfifo go
        unshare -m --propagation unchanged sh -c 'mount --bind host other; mount --make-rslave other; read line < go; ls other/data/air | head -n 1' > seen &
        reader=$!
        mkdir host/data
        unshare -m --propagation unchanged zarr-mount -o allow_other --view arrays demo: host/data
        test -d host/data/air
        echo > go; wait $reader
        zarr-mount --unmount host/data
    """
    done = run("unshare", "-m", "--propagation", "private", "sh", "-c", script, env=environment, timeout=mounting.PATIENCE)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "seen").read_text() == "air.json\n"
