"""Programs that do not know Zarr and write through a mount: each with the files that it leaves in the store."""
import os
import shutil
import stat
import subprocess
import sys

import numpy as np
import pytest

from support import writing_samples
from support.mounting import run
from support.writing_samples import ARGS, tree

NEW = os.urandom(3000)
# The program, the command for a source $S and a target $T, and what the target then has: the source, or something made of old and new.
COMMANDS = {
    "cp": ("cp $S $T", lambda old: NEW),
    "cp -p": ("cp -p $S $T", lambda old: NEW),
    "cp --remove-destination": ("cp --remove-destination $S $T", lambda old: NEW),
    "mv": ("cp $S $T.tmp && mv $T.tmp $T", lambda old: NEW),
    "install": ("install -m 640 $S $T", lambda old: NEW),
    "cat >": ("cat $S > $T", lambda old: NEW),
    "cat >>": ("cat $S >> $T", lambda old: old + NEW),
    "two programs >": ("(head -c 1000 $S; tail -c +1001 $S) > $T", lambda old: NEW),
    "dd": ("dd if=$S of=$T bs=700 status=none", lambda old: NEW),
    "dd conv=notrunc": ("dd if=$S of=$T bs=10 count=1 seek=2 conv=notrunc status=none", lambda old: old[:20] + NEW[:10] + old[30:]),
    "dd oflag=direct": ("dd if=$S of=$T bs=4096 oflag=direct status=none", lambda old: NEW),
    "tee": ("tee $T < $S > /dev/null", lambda old: NEW),
    "sed -i": ("sed -i 's/./&/' $T", lambda old: old),
    "rsync": ("rsync -c $S $T", lambda old: NEW),
    "rsync -a": ("rsync -a -I $S $T", lambda old: NEW),
    "rsync --inplace": ("rsync -c --inplace $S $T", lambda old: NEW),
    "rsync --partial": ("rsync -c --partial $S $T", lambda old: NEW),
    "tar": ("tar -C $(dirname $S) -cf - --transform s/source/$(basename $T)/ source | tar -C $(dirname $T) -xf -", lambda old: NEW),
    "truncate": ("truncate -s 17 $T", lambda old: old[:17]),
    "ln": ("cp $S $T.tmp && rm -f $T && ln $T.tmp $T && rm $T.tmp", lambda old: NEW),
    "numpy.save": ("$PYTHON -c 'import numpy, sys; numpy.save(open(sys.argv[1], \"wb\"), numpy.arange(9))' $T", lambda old: saved(np.arange(9))),
    "perl -i": ("perl -i -pe 's/a/b/' $T", lambda old: b"".join(line.replace(b"a", b"b", 1) for line in old.splitlines(keepends=True))),
}
FILES = {"a chunk": "a/c/0/0", "a document": "a/zarr.json", "another file": "notes.txt"}


def saved(array):
    import io
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


@pytest.fixture(scope="module")
def place(tmp_path_factory, module_mount):
    folder = tmp_path_factory.mktemp("programs")
    store = writing_samples.write(folder / "store")
    (folder / "source").write_bytes(NEW)
    made = module_mount(store, *ARGS)
    yield folder, store, made
    assert tree(made.path) == tree(store)


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("name", COMMANDS)
def test_programs(name, kind, place):
    folder, store, made = place
    command, expected = COMMANDS[name]
    if not shutil.which(command.split()[0]) and not command.startswith(("(", "$PYTHON")):
        pytest.skip(f"{command.split()[0]} is not installed")
    target = FILES[kind]
    old = b"a line\nand another line that is a little longer than the first\n" * 5
    for round in range(2):
        (store / target).write_bytes(old)
        (store / target).chmod(0o644)
        assert (made.path / target).read_bytes() == old
        variables = {"S": str(folder / "source"), "T": str(made.path / target), "PYTHON": sys.executable, "LC_ALL": "C"}
        done = run("bash", "-c", "set -o pipefail; " + command, env={**os.environ, **variables})
        assert done.returncode == 0, done.stderr
        wanted = expected(old)
        assert (store / target).read_bytes() == wanted == (made.path / target).read_bytes()
    if name in ("cp -p", "rsync -a"):
        assert (store / target).stat().st_mtime == (folder / "source").stat().st_mtime
    if name == "install":
        assert stat.S_IMODE((store / target).stat().st_mode) == 0o640
    assert not [n for n in tree(store) if n.endswith((".tmp", ".partial")) or "/." in n or n.startswith(".")]


def test_a_tree_is_copied_and_removed(place):
    folder, store, made = place
    (folder / "more/x").mkdir(parents=True)
    for n in range(40):
        (folder / f"more/x/0.{n}").write_bytes(os.urandom(n))
    variables = {"S": str(folder / "more"), "T": str(made.path / "copy")}
    for command in ("cp -a $S $T", "rsync -a $S/ $T/", "mkdir $T && tar -C $S -cf - . | tar -C $T -xf -"):
        subprocess.run(["bash", "-c", "set -o pipefail; " + command], check=True, env={**os.environ, **variables})
        assert tree(folder / "more") == tree(store / "copy")
        subprocess.run(["rm", "-r", made.path / "copy"], check=True)
        assert not (store / "copy").exists()
