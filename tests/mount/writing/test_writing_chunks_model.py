"""Random calls on decoded chunks, beside a model: what handles read at once, and what the store has at the end of each commit.

Chunks are objects, or inner chunks of shards. An inner chunk is in the store after a listing of its directory.
"""
import errno
import os
import random
import time

import numpy as np
import pytest
import zarr

from support import mounting
from support.mounting import until

SEEDS = int(os.environ.get("ZARR_MOUNT_WRITING_SEEDS", "6"))
STEPS = 250
SIDE, CHUNK = 3, 8  # chunks along an axis, elements along an axis of a chunk
N = CHUNK * CHUNK
FILL = 7


class Chunk:
    """The model's knowledge of one chunk: the stored bytes (None if there is no object), and the writes since."""

    def __init__(self):
        self.stored, self.draft, self.handles, self.failed = None, None, {}, False
        self.refused = None  # the offset of a refused write, if the handle had written before
        self.left = False  # whether others have left their written bytes to the handles that write the chunk anew

    def shown(self):
        if self.draft is not None:
            return bytes(self.draft)
        return bytes([FILL]) * N if self.stored is None else self.stored

    def commit(self):
        """Saves the written bytes. Returns 0, or the errno that the caller gets."""
        if self.draft is None:
            return 0
        if self.refused is not None or len(self.draft) != N:
            self.failed = True
            return errno.EIO if self.refused is None else errno.EFBIG
        self.stored = None if set(self.draft) == {FILL} else bytes(self.draft)
        self.draft, self.left = None, False
        for handle in self.handles.values():
            handle["rewrites"] = False
        return 0


class Walk:
    per_shard = 1  # chunks along an axis of a shard

    def __init__(self, seed, store, mount):
        self.chosen, self.store, self.mount = random.Random(seed), store, mount
        self.made = mount(store, "--rw", "--view", "chunks")
        self.chunks = {(i, j): Chunk() for i in range(SIDE) for j in range(SIDE)}
        self.log = []

    def path(self, key):
        return self.made.path / f"a/c/{key[0]}/{key[1]}"

    def step(self):
        key = self.chosen.choice(list(self.chunks))
        ways = [self.open, self.open, self.write, self.write, self.write, self.read, self.close, self.close, self.cut, self.sync, self.replace, self.remove, self.whole,
                self.outsider, self.hole]
        way = self.chosen.choice(ways)
        self.log.append((way.__name__, key))
        way(key, self.chunks[key])
        chunk = self.chunks[key]
        assert self.path(key).read_bytes() == chunk.shown(), self.log[-8:]
        assert self.path(key).stat().st_size == len(chunk.shown()), self.log[-8:]

    def settle(self):
        """Makes the daemon write all closed chunks to the store."""

    def handle(self, chunk):
        return self.chosen.choice(list(chunk.handles)) if chunk.handles else None

    def open(self, key, chunk):
        if len(chunk.handles) < 3:
            flags = self.chosen.choice([os.O_RDWR, os.O_RDWR, os.O_WRONLY])
            if not chunk.handles and self.chosen.random() < 0.3:
                flags |= os.O_TRUNC
            fd = os.open(self.path(key), flags)
            chunk.handles[fd] = {"wrote": False, "reads": flags & os.O_RDWR, "rewrites": bool(flags & os.O_TRUNC)}
            if flags & os.O_TRUNC:
                chunk.draft, chunk.refused, chunk.left = bytearray(), None, False

    def write(self, key, chunk):
        fd = self.handle(chunk)
        if fd is None:
            return
        begin = self.chosen.randrange(N)
        data = self.chosen.randbytes(self.chosen.randrange(1, N + 8))
        if self.chosen.random() < 0.3:
            begin, data = 0, bytes([FILL]) * N if self.chosen.random() < 0.5 else self.chosen.randbytes(N)
        if begin + len(data) > N:
            with pytest.raises(OSError) as caught:
                os.pwrite(fd, data, begin)
            assert caught.value.errno == errno.EFBIG
            if chunk.handles[fd]["wrote"] and chunk.draft is not None and chunk.refused is None:
                chunk.refused = begin
            chunk.handles[fd]["wrote"] = True
            return
        assert os.pwrite(fd, data, begin) == len(data)
        draft = bytearray(chunk.shown())
        draft.extend(bytes(max(0, begin + len(data) - len(draft))))
        draft[begin:begin + len(data)] = data
        chunk.draft, chunk.failed = draft, False
        chunk.handles[fd]["wrote"] = True

    def read(self, key, chunk):
        fd = self.handle(chunk)
        if fd is not None and chunk.handles[fd]["reads"]:
            begin = self.chosen.randrange(N)
            assert os.pread(fd, N, begin) == chunk.shown()[begin:], self.log[-8:]

    def cut(self, key, chunk):
        fd = self.handle(chunk)
        if fd is None:
            return
        length = self.chosen.choice([N, N, N, self.chosen.randrange(1, N)])
        os.ftruncate(fd, length)
        before = chunk.shown()
        if len(before) != length:
            chunk.draft, chunk.failed = bytearray(before[:length] + bytes(max(0, length - len(before)))), False
        if chunk.refused is not None and length <= chunk.refused:
            chunk.refused = None
        chunk.handles[fd]["wrote"] = True

    def hole(self, key, chunk):
        fd = self.handle(chunk)
        if fd is not None and len(chunk.shown()) == N:
            os.posix_fallocate(fd, 0, N)
            # The handle has written, although no byte has changed.
            chunk.draft = bytearray(chunk.shown())
            chunk.handles[fd]["wrote"] = True

    def sync(self, key, chunk):
        fd = self.handle(chunk)
        if fd is None:
            return
        handle = chunk.handles[fd]
        error = chunk.commit()
        if not error:
            handle["wrote"] = False
            return os.fsync(fd)
        with pytest.raises(OSError) as caught:
            os.fsync(fd)
        assert caught.value.errno == error

    def close(self, key, chunk):
        fd = self.handle(chunk)
        if fd is None:
            return
        handle = chunk.handles.pop(fd)
        others_rewrite = any(other["rewrites"] for other in chunk.handles.values())
        is_concerned = handle["wrote"] or handle["rewrites"] and chunk.left
        # The bytes that a refused write has left cause an error in any case.
        is_tried = is_concerned and (not others_rewrite or chunk.refused is not None)
        if is_concerned and not is_tried and chunk.draft is not None:
            chunk.left = True
        error = chunk.commit() if is_tried else 0
        if error:
            with pytest.raises(OSError) as caught:
                os.close(fd)
            assert caught.value.errno == error
        else:
            os.close(fd)
        if handle["rewrites"] and not handle["wrote"] and not others_rewrite and chunk.handles and chunk.draft is not None and len(chunk.draft) == N and chunk.refused is None:
            # The release of this handle, which made the file empty, saves the bytes that other handles have written.
            chunk.commit()
            until(lambda: self.of_store(key) == chunk.shown(), "the release of a handle that made the file empty")
        if not chunk.handles and chunk.draft is not None:
            # The last handle is gone: a whole chunk is saved, and any other is dropped.
            if chunk.failed or chunk.commit():
                chunk.draft, chunk.failed, chunk.refused, chunk.left = None, False, None, False
        until(lambda: self.path(key).stat().st_size == len(chunk.shown()), "the release of a handle")

    def replace(self, key, chunk):
        """Replaces the chunk by renaming a new file over it, as most programs do."""
        if chunk.handles:
            return
        data = self.chosen.choice([self.chosen.randbytes(N), bytes([FILL]) * N, self.chosen.randbytes(N - 1)])
        scratch = self.path(key).with_name(f"{key[1]}.{self.chosen.randrange(100)}.partial")
        scratch.write_bytes(data)
        if len(data) == N:
            os.rename(scratch, self.path(key))
            chunk.stored = None if set(data) == {FILL} else data
        else:
            with pytest.raises(OSError) as caught:
                os.rename(scratch, self.path(key))
            assert caught.value.errno in (errno.EIO, errno.EINVAL)
            os.unlink(scratch)

    def whole(self, key, chunk):
        if chunk.handles:
            return
        data = self.chosen.randbytes(N)
        self.path(key).write_bytes(data)
        chunk.stored = data

    def remove(self, key, chunk):
        if not chunk.handles:
            os.unlink(self.path(key))
            chunk.stored = None

    def outsider(self, key, chunk):
        """A program that writes to the store while no program has the chunk open."""
        if chunk.handles:
            return
        self.settle()
        array = zarr.open_array(str(self.store / "a"), mode="r+")
        data = np.frombuffer(self.chosen.randbytes(N), "u1").reshape(CHUNK, CHUNK)
        i, j = key[0] * CHUNK, key[1] * CHUNK
        array[i:i + CHUNK, j:j + CHUNK] = data
        chunk.stored = data.tobytes()

    def of_store(self, key):
        self.settle()
        i, j = key[0] * CHUNK, key[1] * CHUNK
        return zarr.open_array(str(self.store / "a"), mode="r")[i:i + CHUNK, j:j + CHUNK].tobytes()

    def compare_store(self):
        self.settle()
        found = zarr.open_array(str(self.store / "a"), mode="r")[...]
        for (i, j), chunk in self.chunks.items():
            part = found[i * CHUNK:(i + 1) * CHUNK, j * CHUNK:(j + 1) * CHUNK]
            want = bytes([FILL]) * N if chunk.stored is None else chunk.stored
            assert part.tobytes() == want, (self.log[-20:], (i, j))
        is_stored = {(i // self.per_shard, j // self.per_shard): False for i, j in self.chunks}
        for (i, j), chunk in self.chunks.items():
            is_stored[i // self.per_shard, j // self.per_shard] |= chunk.stored is not None
        for (i, j), expected in is_stored.items():
            assert (self.store / f"a/c/{i}/{j}").exists() == expected, (self.log[-20:], (i, j))

    def end(self):
        for key, chunk in self.chunks.items():
            while chunk.handles:
                self.close(key, chunk)
        self.compare_store()
        self.made.unmount()
        self.made = None
        self.compare_store()
        assert not list(self.store.rglob("*.partial")) and not (self.store / ".zarr-mount").exists()


class ShardedWalk(Walk):
    """The chunks are inner chunks of shards of 2 x 2 chunks. Shards at the edge lie partly outside of the array."""

    per_shard = 2

    def settle(self):
        if self.made is not None:
            for i in range(SIDE):
                os.listdir(self.made.path / f"a/c/{i}")

    def step(self):
        super().step()
        if self.chosen.random() < 0.02 and not any(chunk.handles for chunk in self.chunks.values()):
            self.kill()

    def kill(self):
        """Kills the daemon. The closed chunks that it has not yet written to their shards are in the journal, for the next daemon."""
        self.log.append(("kill",))
        self.made.kill()
        mounting.force_away(self.made.path)
        self.made = self.mount(self.store, "--rw", "--view", "chunks")

    def outsider(self, key, chunk):
        """A program writes a chunk straight to the shard, while another chunk of the shard may be in the journal."""
        if chunk.handles:
            return
        self.settle()
        others = [other for other in self.chunks if other != key and self.in_one_shard(other, key) and not self.chunks[other].handles]
        if not others:
            return super().outsider(key, chunk)
        other = self.chosen.choice(others)
        begun = time.monotonic()
        self.whole(other, self.chunks[other])
        # The method of the base class would first make the daemon write all chunks of the journal to their shards.
        data = self.chosen.randbytes(N)
        i, j = key[0] * CHUNK, key[1] * CHUNK
        array = zarr.open_array(str(self.store / "a"), mode="r+")
        array[i:i + CHUNK, j:j + CHUNK] = np.frombuffer(data, "u1").reshape(CHUNK, CHUNK)
        chunk.stored = data
        if time.monotonic() - begun > 0.8:
            # The daemon may have written the shard between the outsider's read and its write.
            self.whole(other, self.chunks[other])

    def in_one_shard(self, one, other):
        return all(a // self.per_shard == b // self.per_shard for a, b in zip(one, other))


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("kind", [Walk, ShardedWalk])
def test_random_calls(kind, seed, tmp_path, mount):
    store = tmp_path / "store"
    group = zarr.create_group(str(store))
    compressors = [None, zarr.codecs.BloscCodec(), zarr.codecs.ZstdCodec(checksum=True), [zarr.codecs.GzipCodec(level=1), zarr.codecs.Crc32cCodec()]][seed % 4]
    shards = None if kind.per_shard == 1 else (kind.per_shard * CHUNK,) * 2
    group.create_array("a", shape=(SIDE * CHUNK, SIDE * CHUNK), chunks=(CHUNK, CHUNK), shards=shards, dtype="u1", fill_value=FILL, compressors=compressors)
    walk = kind(seed, store, mount)
    for n in range(STEPS):
        walk.step()
        if n % 25 == 24:
            walk.compare_store()
    walk.end()
