"""Random images of a stack, read out of one `.npy` file in the ways that programs have."""
import contextlib
import functools
import itertools
import mmap
import os
import re

import numpy as np
import zarr
from numcodecs import Zstd

IMAGE_SHAPE = (96, 96, 3)
IMAGE_BYTES = 27_648
PAGE = 4096


def image(number):
    """The image of this number: few values in it are not zero, and no two images are equal."""
    values = np.zeros(IMAGE_BYTES, "u1")
    values[::997] = number % 251 + 1
    values[:8] = np.frombuffer(np.uint64(number).tobytes(), "u1")
    return values.reshape(IMAGE_SHAPE)


def write(root, count, chunks):
    """A stack of `count` images. All chunks are stored, each as one frame of zstd, which can only be decoded as a whole."""
    shape = (count, *IMAGE_SHAPE)
    zarr.create_array(str(root), shape=shape, chunks=chunks, dtype="u1", fill_value=255,
                      compressors=zarr.codecs.ZstdCodec(level=1))
    # zarr-python does not write the chunks, because it takes a minute for so many.
    codec = Zstd(level=1)
    for first in range(0, count, chunks[0]):
        stack = np.stack([image(n) for n in range(first, first + chunks[0])])
        for place in itertools.product(*(range(n // c) for n, c in zip(IMAGE_SHAPE, chunks[1:]))):
            box = tuple(slice(at * c, (at + 1) * c) for at, c in zip(place, chunks[1:]))
            file = root.joinpath("c", str(first // chunks[0]), *map(str, place))
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(codec.encode(np.ascontiguousarray(stack[:, *box])))
    return root


@contextlib.contextmanager
def opened(path):
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def header_bytes(path):
    with open(path, "rb") as file:
        np.lib.format.read_magic(file)
        np.lib.format.read_array_header_1_0(file)
        return file.tell()


def by_pread(path, numbers):
    """One pread(2) for each image."""
    start = header_bytes(path)
    with opened(path) as descriptor:
        for number in numbers:
            yield os.pread(descriptor, IMAGE_BYTES, start + number * IMAGE_BYTES)


def by_short_preads(path, numbers):
    """Preads of 4 KiB, as buffered readers send them. The kernel is asked not to read ahead."""
    start = header_bytes(path)
    with opened(path) as descriptor:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
        for number in numbers:
            first = start + number * IMAGE_BYTES
            pieces = range(first, first + IMAGE_BYTES, PAGE)
            yield b"".join(os.pread(descriptor, min(PAGE, first + IMAGE_BYTES - at), at) for at in pieces)


def by_mmap(path, numbers):
    """Reads images through `np.load` with `mmap_mode`."""
    stack = np.load(path, mmap_mode="r")
    for number in numbers:
        yield stack[number].tobytes()


def by_random_mmap(path, numbers):
    """Like `by_mmap`, but the kernel is asked not to read ahead."""
    stack = np.load(path, mmap_mode="r")
    stack._mmap.madvise(mmap.MADV_RANDOM)
    for number in numbers:
        yield stack[number].tobytes()


WAYS = {"pread": by_pread, "mmap": by_mmap, "mmap, MADV_RANDOM": by_random_mmap,
        "4 KiB preads, FADV_RANDOM": by_short_preads}


def requests(log, inode):
    """(offset, size) of each READ of the kernel for a file, from the log of a mount with `-vvv`."""
    line = re.compile(rf"ino {inode:#018x} READ fh .*, offset Ok\((\d+)\), size (\d+)")
    return [(int(at), int(size)) for at, size in line.findall(log)]


def touched(reads, start, count, chunks):
    """The distinct chunks that hold the bytes of these READs of a file whose elements begin at `start`."""
    found = set()
    for at, size in reads:
        first, end = max(at, start) - start, min(at + size - start, count * IMAGE_BYTES)
        for number in range(first // IMAGE_BYTES, -(-end // IMAGE_BYTES)):
            origin = number * IMAGE_BYTES
            inside = chunks_within(max(first - origin, 0), min(end - origin, IMAGE_BYTES), chunks[1:])
            found |= {(number // chunks[0], chunk) for chunk in inside}
    return found


@functools.cache
def chunks_within(first, end, chunks):
    """The numbers of the chunks, along the axes of an image, that hold its bytes from `first` to `end`."""
    return np.unique(chunk_of_each_byte(chunks)[first:end]).tolist()


@functools.cache
def chunk_of_each_byte(chunks):
    """The number of the chunk, along the axes of an image, that holds each byte of it."""
    at = np.unravel_index(np.arange(IMAGE_BYTES), IMAGE_SHAPE)
    return np.ravel_multi_index([axis // c for axis, c in zip(at, chunks)], IMAGE_SHAPE)
