"""One program of several that write and read chunks at the same time. Its argument is JSON. It reports when it is ready, waits for the
signal to begin, and prints every call that it made, as JSON: the kind of call, the chunk, the value, and the times of begin and end in
nanoseconds of CLOCK_MONOTONIC."""
import json
import mmap
import os
import random
import struct
import sys
import time

now = time.monotonic_ns
# Each program makes at least this many calls, however busy the machine is; it gives up after so many seconds.
LEAST_CALLS, PATIENCE = 10, 60


class Worker:
    def __init__(self, role, paths, size, seconds, seed, direct=False, held=False, codec=None, slots=0, places=None, offsets=None, from_open=False):
        self.paths, self.size, self.seed, self.random = paths, size, seed, random.Random(seed)
        self.seconds = seconds
        self.flags, self.held, self.places, self.offsets = os.O_DIRECT if direct else 0, held, places, offsets or [0] * len(paths)
        self.from_open, self.slots, self.decode = from_open, slots, decoder(codec)
        self.role, self.calls, self.handles, self.count = getattr(self, role), [], {}, 0
        # Memory of whole pages, which O_DIRECT needs on many file systems.
        self.buffer = mmap.mmap(-1, size)

    def run(self, begins):
        time.sleep(max(0, begins - now()) / 1e9)
        while now() < begins + self.seconds * 1e9 or len(self.calls) < LEAST_CALLS and now() < begins + PATIENCE * 1e9:
            chunk, began = self.random.randrange(len(self.paths)), now()
            try:
                self.role(chunk)
            except OSError as error:
                self.log("error", chunk, f"{error}", began, now())
                if chunk in self.handles:
                    os.close(self.handles.pop(chunk))
        for fd in self.handles.values():
            os.close(fd)
        return self.calls

    def log(self, kind, chunk, value, began, ended):
        self.calls.append((kind, chunk, value, began, ended))

    def write(self, chunk):
        """One pwrite of the whole chunk, and the call that saves it."""
        self.count += 1
        stamp = self.seed << 32 | self.count
        self.buffer[:] = struct.pack("<q", stamp) * (self.size // 8)
        fd = os.open(self.paths[chunk], os.O_WRONLY | self.flags)
        began = now()
        assert os.pwritev(fd, [self.buffer], 0) == self.size
        self.log("write", chunk, stamp, began, now())
        if self.random.random() < 0.5:
            began = now()
            os.fsync(fd)
            self.log("fsync", chunk, stamp, began, now())
        began = now()
        os.close(fd)
        self.log("close", chunk, stamp, began, now())

    def handle(self, chunk):
        fd = self.handles.get(chunk)
        if fd is None:
            fd = os.open(self.paths[chunk], os.O_RDONLY | self.flags)
            if self.held:
                self.handles[chunk] = fd
        return fd

    def read(self, chunk):
        """One pread of the whole chunk."""
        time.sleep(self.random.random() * 0.0005)
        opened, fd = now(), self.handle(chunk)
        # A file that shows changes of another view only when it is opened, as a whole array does.
        began = opened if self.from_open else now()
        got = os.preadv(fd, [self.buffer], self.offsets[chunk])
        ended = now()
        if not self.held:
            os.close(fd)
        if self.places is None or got != self.size:
            return self.log("read", chunk, value(self.buffer[:got], self.size), began, ended)
        self.log("read", chunk, [struct.unpack_from("<q", self.buffer, place)[0] for place in self.places], began, ended)

    def look(self, chunk):
        """The saved value: the object is read whole, and decoded."""
        time.sleep(self.random.random() * 0.0005)
        began = now()
        with open(self.paths[chunk], "rb", buffering=0) as file:
            data = file.readall()
        ended = now()
        try:
            data = self.inner(data, self.offsets[chunk]) if self.slots else data
            self.log("read", chunk, value(self.decode(data), self.size), began, ended)
        except Exception as error:
            self.log("read", chunk, f"damaged: {error!r}", began, ended)

    def inner(self, shard, slot):
        """The encoded inner chunk of a shard whose index, with a checksum, is at its end."""
        from numcodecs.checksum32 import CRC32C
        index = bytes(CRC32C(location="end").decode(shard[-(16 * self.slots + 4):]))
        offset, length = struct.unpack_from("<QQ", index, 16 * slot)
        assert offset + length <= len(shard), (offset, length, len(shard))
        return shard[offset:offset + length]


def value(data, size):
    """The one stamp that all elements have, or else the fault."""
    data = bytes(data)
    if len(data) != size:
        return f"{len(data)} bytes of {size}"
    if data[8:] != data[:-8]:
        stamps = struct.unpack(f"<{size // 8}q", data)
        changes = [n for n in range(1, len(stamps)) if stamps[n] != stamps[n - 1]]
        return f"torn at {[n * 8 for n in changes[:5]]}: {[stamps[0], *(stamps[n] for n in changes[:5])]}"
    return struct.unpack_from("<q", data)[0]


def decoder(codec):
    if codec is None:
        return bytes
    import numcodecs
    return numcodecs.get_codec(codec).decode


if __name__ == "__main__":
    worker = Worker(**json.loads(sys.argv[1]))
    print("ready", flush=True)
    json.dump(worker.run(int(sys.stdin.readline())), sys.stdout)
