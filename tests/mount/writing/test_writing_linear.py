"""Several programs that write and read whole chunks at the same time: one order of all writes explains all values that each of them saw,
and when. The contents of the store follow that order."""
import itertools
import json
import os
import random
import subprocess
import sys
import time

import numpy as np
import pytest
import zarr
from zarr.codecs import BloscCodec, GzipCodec, ZstdCodec

from support import mounting
from support.linear_histories import Call, wrong

SEEDS = int(os.environ.get("ZARR_MOUNT_WRITING_SEEDS", "1"))
SECONDS = float(os.environ.get("ZARR_MOUNT_LINEAR_SECONDS", "1"))
CHUNKS = 4
# The codec, the same for numcodecs, the bytes of a chunk, and chunks in a shard.
LAYOUTS = {
    "compressed": (GzipCodec(level=1), {"id": "gzip"}, 4096, None),
    "large": (BloscCodec(cname="lz4", clevel=5, shuffle="shuffle"), {"id": "blosc"}, 200_000, None),
    "shards": (ZstdCodec(level=1), {"id": "zstd"}, 4096, 2),
    "large shards": (GzipCodec(level=1), {"id": "gzip"}, 72_000, 4),
}
# The errors of a view for a file that another view changes all the time.
STALE = "[Errno 116]"


def make(path, layout):
    codec, _, size, slots = LAYOUTS[layout]
    n = size // 8
    array = zarr.create_group(str(path), zarr_format=3).create_array(
        "a", shape=(n * CHUNKS,), chunks=(n,), shards=(n * slots,) if slots else None, dtype="<i8", compressors=codec, fill_value=-1)
    array[...] = 0
    return path


def together(jobs, size, seed):
    """Runs a program for each job, all at the same time, and gives the calls that each made."""
    programs = {}
    for n, (name, job) in enumerate(jobs.items(), 1):
        # Every writer's stamps begin with its own number.
        task = json.dumps({"size": size, "seconds": SECONDS, "seed": seed * 100 + n} | job)
        programs[name] = subprocess.Popen([sys.executable, mounting.WORKERS / "linear_worker.py", task], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for program in programs.values():
        assert program.stdout.readline() == "ready\n"
    begins = str(time.monotonic_ns() + 20_000_000)
    for program in programs.values():
        program.stdin.write(begins + "\n")
        program.stdin.flush()
    said = {name: program.communicate()[0] for name, program in programs.items()}
    assert {name: program.returncode for name, program in programs.items()} == dict.fromkeys(jobs, 0)
    return {name: json.loads(text) for name, text in said.items()}


class Run:
    """Programs beside a mount, and the values that they saw in each chunk."""

    def __init__(self, layout, store, made, folder, mode, seed, others=None):
        _, codec, self.size, slots = LAYOUTS[layout]
        self.store, self.folder, self.slots = store, folder, slots
        direct = mode == "direct"
        # Through the kernel's pages a read is no more whole than that of a local file, but each of its elements is.
        self.places = [0, self.size // 16 * 8, self.size - 8] if not direct else None
        paths = [f"{folder}/a/c/{k}" for k in range(CHUNKS)]
        chunk = {"paths": paths, "direct": direct}
        look = {"role": "look", "codec": codec, "slots": slots or 0, "paths": [f"{store}/a/c/{k // (slots or 1)}" for k in range(CHUNKS)],
                "offsets": [k % (slots or 1) for k in range(CHUNKS)]}
        jobs = {f"writer {n}": chunk | {"role": "write"} for n in range(2)} | {
            "opened": chunk | {"role": "read", "places": self.places}, "held": chunk | {"role": "read", "held": True, "places": self.places},
            "store": look} | (others or {})
        self.logs = together(jobs, self.size, seed)
        self.wrong = []
        self.last(made, paths)
        for name, calls in self.logs.items():
            # A view without writers may get the error that the file that it opens has changed.
            errors = [call for call in calls if isinstance(call[2], str) and not (name in (others or {}) and call[2].startswith(STALE))]
            self.wrong += [f"{name}: chunk {call[1]}: {call[2]}" for call in errors[:3]]
            if not errors:
                assert sum(call[0] != "error" for call in calls) >= (1 if name in (others or {}) else 10), f"{name} did nothing: {calls[:3]}"

    def last(self, made, paths):
        """The final values, when all programs have ended, through the mount and by zarr-python."""
        made.sync()
        began = time.monotonic_ns()
        stored = zarr.open_array(f"{self.store}/a", mode="r")[...].reshape(CHUNKS, -1)
        ended = time.monotonic_ns()
        for k, path in enumerate(paths):
            shown = np.fromfile(path, "<i8")
            np.testing.assert_array_equal(shown, stored[k])
            assert (shown == shown[0]).all()
            self.logs["opened"].append(["read", k, int(shown[0]), began, time.monotonic_ns()])
            self.logs["store"].append(["read", k, int(stored[k][0]), began, ended])

    def calls(self, names, kinds, chunk, kind, place=0):
        found = (call for name in names for call in self.logs[name] if call[0] in kinds and call[1] == chunk and not isinstance(call[2], str))
        return [Call(kind, value[place] if isinstance(value, list) else value, began, ended) for _, _, value, began, ended in found]

    def check(self, readers, seen=None, saves=("fsync", "close")):
        """Whether one order explains the values that these readers of chunks saw, and the saved values that were `seen`."""
        writers = ["writer 0", "writer 1"]
        for chunk, place in itertools.product(range(CHUNKS), range(3 if self.places else 1)):
            history = self.calls(writers, ["write"], chunk, "write") + self.calls(readers, ["read"], chunk, "read", place)
            if seen:
                history += self.calls(writers, saves, chunk, "saved") + self.calls([seen], ["read"], chunk, "look", place)
            if why := wrong(history, first=0):
                self.wrong.append(f"{readers}, {seen}: chunk {chunk}, element {place}: {why}")
                break
        return self

    def check_chunks(self):
        self.check(["opened"]).check(["held"]).check(["opened", "held"])
        # Closed chunks of a shard are in the journal first.
        return self.check(["opened"], "store", ["fsync"] if self.slots else ["fsync", "close"])


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("mode", ["direct", "cached"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_programs_that_write_and_read_whole_chunks(layout, mode, seed, tmp_path, mount):
    store = make(tmp_path / "store", layout)
    made = mount(store, "--rw", "--view", "chunks")
    run = Run(layout, store, made, made.path, mode, seed).check_chunks()
    assert not run.wrong, "\n".join(run.wrong)


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("mode", ["direct", "cached"])
@pytest.mark.parametrize("layout", ["compressed", "shards"])
def test_other_views_follow(layout, mode, seed, tmp_path, mount):
    """The encoded chunks of `keys`, and the whole array of `arrays`: both show closed chunks to programs that open them."""
    store = make(tmp_path / "store", layout)
    made = mount(store, "--rw", "--view", "keys,chunks,arrays", "--files", "raw")
    _, codec, size, _ = LAYOUTS[layout]
    whole = {"role": "read", "paths": [f"{made.path}/arrays/a.raw"] * CHUNKS, "offsets": [k * size for k in range(CHUNKS)], "from_open": True}
    others = {"keys": {"role": "look", "codec": codec, "paths": [f"{made.path}/keys/a/c/{k}" for k in range(CHUNKS)]},
              "arrays": whole | ({"direct": True} if mode == "direct" else {"places": [0, size // 16 * 8, size - 8]})}
    run = Run(layout, store, made, made.path / "chunks", mode, seed, others).check_chunks()
    run.check(["opened"], "keys").check(["opened"], "arrays")
    assert not run.wrong, "\n".join(run.wrong)


class TestTheCheckItself:
    W1, W2 = Call("write", 1, 10, 20), Call("write", 2, 30, 40)

    @pytest.mark.parametrize("more", [
        [], [Call("read", 0, 5, 6)], [Call("read", 0, 1, 100)], [Call("read", 0, 12, 13), Call("read", 1, 12, 14)],
        [Call("read", 1, 11, 12), Call("read", 2, 32, 33), Call("read", 2, 50, 60)],
        [Call("look", 0, 50, 60)], [Call("saved", 1, 21, 22), Call("look", 2, 33, 34)], [Call("look", 1, 35, 45), Call("saved", 2, 41, 50)],
        # Both are read while both are written: what one program sees first may be last.
        [Call("write", 3, 28, 45), Call("read", 3, 33, 34), Call("read", 2, 46, 47)],
    ])
    def test_these_are_linearizable(self, more):
        assert wrong([self.W1, self.W2, *more], first=0) is None

    @pytest.mark.parametrize("more, said", [
        ([Call("read", 0, 21, 22)], "0 was there"),  # an old value
        ([Call("read", 1, 41, 42)], "1 was there"),
        ([Call("read", 1, 5, 9)], "before it was written"),
        ([Call("read", 7, 5, 9)], "7 was written 0 times"),
        ([Call("write", 1, 50, 60)], "1 was written 2 times"),
        ([Call("read", 1, 12, 13), Call("read", 0, 14, 15)], "0 was there"),  # back again, while it is written
        # Of two that are written side by side, one came first for all readers.
        ([Call("write", 3, 30, 40), Call("read", 2, 50, 51), Call("read", 3, 52, 53)], "3 was there"),
        ([Call("write", 3, 30, 40), Call("read", 3, 31, 32), Call("read", 2, 33, 34), Call("read", 3, 35, 36)], "2 was there"),
        ([Call("saved", 1, 21, 22), Call("look", 0, 23, 24)], "1 was saved"),
        ([Call("saved", 2, 41, 45), Call("look", 1, 46, 47)], "2 was saved"),
        ([Call("look", 1, 5, 9)], "before it was written"),
        ([Call("look", 1, 22, 23), Call("look", 0, 24, 25)], "1 was saved"),  # what is in the store does not go back
        # A value may be in the store before any reader has seen it. After a look has found it there, every reader must see it.
        ([Call("look", 2, 31, 32), Call("read", 1, 33, 34)], "1 was there"),
        # A read shows which of two values is older, and the store has the older one after the newer one was saved.
        ([Call("write", 3, 30, 40), Call("read", 2, 41, 42), Call("saved", 2, 43, 44), Call("look", 3, 45, 46)], "2 was saved"),
    ])
    def test_these_are_not(self, more, said):
        assert said in wrong([self.W1, self.W2, *more], first=0)

    def test_a_circle_of_three(self):
        """1 was read before 2, 2 was in the store before 3, and 3 was read before 1 was read again. No two of these calls contradict each other; only the three together do."""
        history = [Call("write", n, 0, 100) for n in (1, 2, 3)] + [
            Call("read", 1, 3, 5), Call("read", 2, 10, 100), Call("look", 2, 60, 70), Call("look", 3, 80, 90), Call("read", 3, 2, 30), Call("read", 1, 50, 60)]
        assert wrong(history, first=0) == "there is a circle among [1, 2, 3]" and not searched(history)
        for n in range(3, len(history)):
            some = history[:n] + history[n + 1:]
            assert wrong(some, first=0) is None and searched(some)

    def test_it_agrees_with_a_search_of_all_orders(self):
        """Compares the verdicts on random histories of a few calls, most of which are wrong. The search is that of J. M. Wing and C. Gong (1993), without their pruning."""
        chosen, verdicts = random.Random(3), [0, 0]
        for _ in range(4000):
            history = [Call("write", n, began := chosen.randrange(12), began + chosen.randrange(6)) for n in range(1, chosen.randrange(2, 5))]
            for _ in range(chosen.randrange(1, 4)):
                began = chosen.randrange(14)
                history.append(Call(chosen.choice(["read", "read", "saved", "look"]), chosen.randrange(len(history) + 1), began, began + chosen.randrange(5)))
            history = [call for call in history if call.kind != "saved" or call.value and call.began >= history[call.value - 1].ended]
            history = [call for call in history if call.value <= sum(c.kind == "write" for c in history)]
            found = wrong(history, first=0) is None
            assert found == searched(history), history
            verdicts[found] += 1
        assert min(verdicts) > 400, verdicts


def searched(history):
    """Whether some order of all writes, whole, explains a history: every call is tried as the next one."""
    calls = [call for call in history if call.kind != "saved"]

    def step(left, value, floor, order):
        # `order` has the values that were written so far. A look must give one that is at least as new as `floor`.
        if not left:
            return True
        first = min(calls[n].ended for n in left)
        for n in left:
            call = calls[n]
            if call.began > first:
                continue
            rest = left - {n}
            if call.kind == "write" and step(rest, call.value, floor, order + [call.value]):
                return True
            if call.kind == "read" and call.value == value and step(rest, value, floor, order):
                return True
            if call.kind == "look" and call.value in order:
                need = [c.value for c in history if c.kind in ("saved", "look") and c.ended < call.began]
                if all(v in order and order.index(v) <= order.index(call.value) for v in need) and step(rest, value, floor, order):
                    return True
        return False

    return step(frozenset(range(len(calls))), 0, None, [0])
