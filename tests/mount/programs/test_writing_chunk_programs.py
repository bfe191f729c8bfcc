"""The calls of real programs on decoded chunks: the message of each, the chunk in the mount afterwards, and the chunk that zarr-python
reads from the store.

The chunk is stored or absent, and absent chunks are shown as fill values or hidden: four cases for each program."""
import io
import itertools
import os
import shutil
import sys
import time

import numpy as np
import pytest
import zarr

from support.mounting import ok, run

N, CHUNKS, FILL = 8192, 4, ord(".")
# A chunk that is lines of text, as editors expect, and a chunk of random bytes.
OLD = b"".join(b"%063d\n" % n for n in range(N // 64))
NEW = np.random.default_rng(11).integers(0, 256, N, "u1").tobytes()
EMPTY = bytes([FILL]) * N
ABSENT = "No such file or directory"


class Row:
    """A command for a source $S, which has the numbers NEW, and a target $T; and its outcomes. `shown` is the outcome if absent chunks are
    shown, `hidden_absent` the one if this chunk is absent and hidden, and `outcome` the one in all other cases. An outcome is an exit status, a part of the program's message, and the content of the chunk
    afterwards: bytes, a function of the content before (fill values, if it was absent), "kept", "erased", or "saved", a file of numpy."""

    def __init__(self, command, outcome, shown=None, hidden_absent=None, needs=None, also=None):
        self.command, self.needs, self.also = command, needs or command.split()[0], also
        self.outcomes = {("fill", "stored"): shown or outcome, ("fill", "absent"): shown or outcome,
                         ("hide", "stored"): outcome, ("hide", "absent"): hidden_absent or outcome}


def spliced(at, length=12):
    return lambda old: old[:at] + NEW[:length] + old[at + length:]


def python(script, *more):
    return f"$PYTHON -c 'import numpy as np, sys; s = np.fromfile(sys.argv[1], \"u1\"); t = sys.argv[2]; {script}' $S $T"


done = (0, "", NEW)
# The chunk is removed first, and is there still as fill value: the documented exceptions.
there = (1, "File exists", "erased")
part = (1, "Input/output error", "kept")
long = (1, "File too large", "kept")
none = (1, ABSENT, "kept")
VIM = "vim -es -b -u NONE -i NONE"
ROWS = {
    "cp": Row("cp $S $T", done),
    "cp -p": Row("cp -p $S $T", done, also="times"),
    "cp -a": Row("cp -a $S $T", done, also="times"),
    "cp --remove-destination": Row("cp --remove-destination $S $T", done, shown=there),
    "cp -n": Row("cp -n $S $T", (0, "", "kept"), hidden_absent=done),
    "cp, too long": Row("cat $S $S > $S.long; cp $S.long $T", long),
    "cp, too short": Row("head -c 100 $S > $S.short; cp $S.short $T", part),
    "cp, empty": Row("cp /dev/null $T", (0, "", "kept")),
    "cp from the mount": Row("cp $T $T.copy && cp $T.copy $S.back && rm $T.copy", (0, "", "kept"), hidden_absent=none),
    "mv": Row("cp $S $T.tmp && mv $T.tmp $T", done),
    # mv(1) has words of its own for EINVAL.
    "mv -T, a part": Row("head -c 100 $S > $T.tmp; mv -T $T.tmp $T; s=$?; rm $T.tmp; exit $s", (1, "subdirectory of itself", "kept")),
    "mv from another file system": Row("mv $S $T", done, shown=there, also="moved"),
    "install": Row("install -m 640 $S $T", done, shown=there, also="mode"),
    "dd": Row("dd if=$S of=$T bs=700 status=none", done),
    "dd, too long": Row("cat $S $S > $S.long; dd if=$S.long of=$T bs=4k status=none", long),
    "dd oflag=direct": Row("dd if=$S of=$T bs=4k oflag=direct status=none", done),
    "dd oflag=sync": Row("dd if=$S of=$T bs=8k oflag=sync status=none", done),
    "dd conv=fsync": Row("dd if=$S of=$T bs=512 conv=fsync status=none", done),
    "dd conv=notrunc": Row("dd if=$S of=$T bs=4 count=3 seek=5 conv=notrunc status=none", (0, "", spliced(20)), hidden_absent=part),
    "dd conv=notrunc, the last block": Row("dd if=$S of=$T bs=4k count=1 seek=1 conv=notrunc status=none", (0, "", spliced(4096, 4096)),
                                           hidden_absent=(0, "", bytes(4096) + NEW[:4096])),
    "dd conv=notrunc, behind the end": Row("dd if=$S of=$T bs=4k count=1 seek=2 conv=notrunc status=none", long),
    "dd seek, and the rest is cut off": Row("dd if=$S of=$T bs=4k count=1 status=none", part),
    "vim": Row(f"{VIM} -c '%s/^./x/' -c wq $T", (0, "", lambda old: b"".join(b"x" + line[1:] for line in old.splitlines(True))),
               hidden_absent=(1, "", "kept")),
    "vim, one byte more": Row(f"{VIM} -c '1s/^/x/' -c wq! $T; s=$?; rm -f $(dirname $T)/.*.sw? $(dirname $T)/*~; exit $s", (1, "", "kept")),
    "sed -i": Row("sed -i '1s/./x/' $T", (0, "", lambda old: b"x" + old[1:]), hidden_absent=(2, ABSENT, "kept")),
    "sed -i, one byte more":
        Row("sed -i '1s/^/x/' $T; s=$?; rm -f $(dirname $T)/sed*; exit $s", (4, "Invalid argument", "kept"), hidden_absent=(2, ABSENT, "kept")),
    "rsync": Row("rsync -I $S $T", done),
    "rsync -a": Row("rsync -a -I $S $T", done, also="times"),
    "rsync --inplace": Row("rsync -I --inplace $S $T", done),
    "rsync --inplace --no-whole-file": Row("rsync -I --inplace --no-whole-file $S $T", done),
    "rsync --append, whole already": Row("rsync --append $S $T", (0, "", "kept"), hidden_absent=done),
    "tar": Row("tar -C $(dirname $S) -cf $S.tar --transform s/source/$(basename $T)/ source; timeout 1 tar -C $(dirname $T) -xf $S.tar", done,
               shown=(124, "", "erased"), also="times"),
    "tar --overwrite":
        Row("tar -C $(dirname $S) -cf $S.tar --transform s/source/$(basename $T)/ source; tar -C $(dirname $T) --overwrite -xf $S.tar", done, also="times"),
    # A file of numpy has a header of 128 bytes, and a chunk has raw numbers.
    "np.save": Row(python("np.save(open(t, \"wb\"), s)"), (1, "", "kept"), needs="python"),
    "np.save, less": Row(python("f = open(t, \"wb\"); np.save(f, s[:100]); f.close()"), part, needs="python"),
    "np.save of as many bytes": Row(python("f = open(t, \"wb\"); np.save(f, s[:-128]); f.close()"), (0, "", "saved"), needs="python"),
    "np.tofile": Row(python("s.tofile(t)"), done, needs="python"),
    "np.memmap r+":
        Row(python("m = np.memmap(t, \"u1\", \"r+\"); m[20:32] = s[:12]; m.flush()"), (0, "", spliced(20)), hidden_absent=none, needs="python"),
    "np.memmap r+, not flushed":
        Row(python("m = np.memmap(t, \"u1\", \"r+\"); m[20:32] = s[:12]; del m"), (0, "", spliced(20)), hidden_absent=none, needs="python",
                                     also="soon"),
    "np.memmap w+": Row(python("m = np.memmap(t, \"u1\", \"w+\", shape=s.shape); m[:] = s; m.flush()"), done, needs="python"),
    "np.memmap w+, one element":
        Row(python("m = np.memmap(t, \"u1\", \"w+\", shape=s.shape); m[0] = 7; m.flush()"), (0, "", b"\7" + bytes(N - 1)), needs="python"),
    "Fortran, a stream": Row("$FORTRAN stream $S $T", done, needs="gfortran"),
    "Fortran, direct access":
        Row("$FORTRAN direct $S $T", (0, "", lambda old: old[:4096] + NEW[:4096]), hidden_absent=(0, "", bytes(4096) + NEW[:4096]), needs="gfortran"),
    "touch": Row("touch -d @1000000000 $T", (0, "", "kept"), also="touched"),
    "touch -c": Row("touch -c -d @1000000000 $T", (0, "", "kept"), also="touched"),
    "truncate to its length": Row(f"truncate -s {N} $T", (0, "", "kept"), hidden_absent=(0, "", bytes(N))),
    "truncate, shorter": Row("truncate -s 100 $T", part),
    "truncate, longer": Row(f"truncate -s {N + 1} $T", long),
    "truncate, empty": Row("truncate -s 0 $T", part),
    "fallocate": Row(f"fallocate -l {N} $T", (0, "", "kept"), hidden_absent=(0, "", bytes(N))),
    "fallocate, longer": Row(f"fallocate -l {N + 1} $T", long),
    # Space that is only reserved changes no byte.
    "fallocate -n": Row(f"fallocate -n -l {N + 1} $T", (1, "keep size mode is unsupported", "kept"), hidden_absent=none),
    "fallocate -p": Row("fallocate -p -o 20 -l 12 $T", (0, "", lambda old: old[:20] + bytes(12) + old[32:]), hidden_absent=none),
    "fallocate -z": Row("fallocate -z -o 20 -l 12 $T", (1, "Operation not supported", "kept"), hidden_absent=none),
    "fallocate -c": Row("fallocate -c -o 0 -l 4096 $T", (1, "Operation not supported", "kept"), hidden_absent=none),
    "rm": Row("rm $T", (0, "", "erased"), hidden_absent=none),
    "echo >>": Row("bash -c 'echo x >> $T'", (1, "File too large", "kept"), hidden_absent=(0, "", "kept")),
    "shred": Row("shred -n 0 -z $T", (0, "", bytes(N)), hidden_absent=none),
}
FORTRAN = f"""
program save
    implicit none
    character(len=10) :: way
    character(len=1000) :: source, target
    integer(1) :: numbers({N})
    call get_command_argument(1, way)
    call get_command_argument(2, source)
    call get_command_argument(3, target)
    open(10, file=trim(source), access="stream", form="unformatted", action="read")
    read(10) numbers
    close(10)
    if (way == "stream") then
        open(11, file=trim(target), access="stream", form="unformatted", action="readwrite", status="unknown")
        write(11) numbers
    else
        open(11, file=trim(target), access="direct", form="unformatted", action="readwrite", recl=4096)
        write(11, rec=2) numbers(:4096)
    end if
    close(11)
end program
"""


@pytest.fixture(scope="module")
def fortran(tmp_path_factory):
    """A program of Fortran, or None without a compiler."""
    if not shutil.which("gfortran"):
        return None
    folder = tmp_path_factory.mktemp("fortran")
    (folder / "save.f90").write_text(FORTRAN)
    ok("gfortran", "-o", folder / "save", folder / "save.f90")
    return folder / "save"


NUMBERS = itertools.count()


def make(store):
    """A new array of four chunks, the last two of which are absent: its name, which no program has looked up before."""
    name = f"a{next(NUMBERS)}"
    array = zarr.open_group(str(store)).create_array(name, shape=(N * CHUNKS,), chunks=(N,), dtype="u1", fill_value=FILL)
    array[:2 * N] = np.frombuffer(OLD * 2, "u1")
    return name


def content(path):
    """The bytes of a file, or None where there is none."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def names(path):
    """The files of a directory, which may be absent, without the program's own."""
    return sorted(os.listdir(path)) if path.exists() else []


@pytest.fixture(scope="module", params=["fill", "hide"])
def place(request, tmp_path_factory, module_mount):
    folder = tmp_path_factory.mktemp("programs")
    store = folder / "store"
    zarr.create_group(str(store), zarr_format=3)
    return request.param, folder, store, module_mount(store, "--rw", "--view", "chunks", "--missing", request.param)


@pytest.mark.parametrize("kind", ["stored", "absent"])
@pytest.mark.parametrize("name", ROWS)
def test_programs(name, kind, place, fortran):
    missing, folder, store, made = place
    row = ROWS[name]
    if row.needs == "gfortran" and fortran is None or row.needs not in ("python", "gfortran") and not shutil.which(row.needs.split()[0]):
        pytest.skip(f"{row.needs} is not installed")
    status, said, then = row.outcomes[missing, kind]
    array, index = make(store), {"stored": 1, "absent": 3}[kind]
    target, object_ = made.path / array / f"c/{index}", store / array / f"c/{index}"
    before = OLD if kind == "stored" else EMPTY
    assert content(target) == (None if missing == "hide" and kind == "absent" else before)
    source = folder / "source"
    source.write_bytes(NEW)
    os.utime(source, (1_000_000_000, 1_000_000_000))
    lost = made.stats()["writes"]["lost"]

    variables = {"S": str(source), "T": str(target), "PYTHON": sys.executable, "FORTRAN": str(fortran), "LC_ALL": "C", "HOME": str(folder)}
    told = run("bash", "-c", row.command, env={**os.environ, **variables}, timeout=60)
    assert (told.returncode, said in told.stderr) == (status, True), f"{told.returncode}: {told.stderr}"

    if then == "saved":
        out = io.BytesIO()
        np.save(out, np.frombuffer(NEW, "u1")[:-128])
        then = out.getvalue()
    wanted = {"kept": before, "erased": EMPTY}.get(then) if isinstance(then, str) else then if isinstance(then, bytes) else then(before)
    shown = None if missing == "hide" and wanted == EMPTY else wanted
    if then == "kept" or row.also == "soon":
        # Bytes that are dropped or saved at the last release of a file may be so only a moment later.
        soon = time.monotonic() + 2
        while (content(target) != shown or object_.exists() != (wanted != EMPTY)) and time.monotonic() < soon:
            time.sleep(0.01)
    assert content(target) == shown and (shown is None or target.stat().st_size == N)
    assert object_.exists() == (wanted != EMPTY)
    found = zarr.open_array(str(store / array), mode="r")[...].tobytes()
    parts = [OLD, OLD, EMPTY, EMPTY]
    parts[index] = wanted
    assert [found[n * N:n * N + N] for n in range(CHUNKS)] == parts
    # Neither the store nor the mount has anything beside the chunks.
    assert names(store / array / "c") == [str(n) for n in range(CHUNKS) if parts[n] != EMPTY]
    assert names(made.path / array / "c") == [str(n) for n in range(CHUNKS) if parts[n] != EMPTY or missing == "fill"]
    if status == 0 and then != "kept":
        assert made.stats()["writes"]["lost"] == lost

    if row.also == "times" and status == 0 or row.also == "touched" and kind == "stored":
        assert object_.stat().st_mtime == 1_000_000_000 == target.stat().st_mtime
    if row.also == "mode" and status == 0:
        assert object_.stat().st_mode & 0o777 == 0o640
    if row.also == "moved":
        assert source.exists() == (status != 0)
