"""Small stores for the tests of remote mounts, and mounts of them. Nothing is compressed, so that no codec notices wrong bytes."""
import errno
import os
import stat
import time
from pathlib import Path

import numpy as np
import zarr

from support import remote_servers

BUCKET = "bucket"
PLAIN, PLAIN_CHUNK = 4096, 1024  # elements of 4 bytes
SMALL, SMALL_SHARD = 4096, 2048  # shards of 8 KiB, two of them
BIG, BIG_SHARD, BIG_CHUNK = 1 << 20, 1 << 19, 1 << 16  # two shards of 2 MiB, of 8 inner chunks each


def values(count, version=0):
    return (np.arange(count, dtype="<u4") * np.uint32(2654435761)) ^ np.uint32(version * 0x9E3779B9 & 0xFFFFFFFF)


def write(root, path="z", version=0, consolidate=False, zarr_format=3):
    """A group: `plain`, `hole` (of which only the second chunk is stored); with v3 `small`, `big` and `first`, which are sharded,
    the last with its index at the start."""
    folder = Path(root, BUCKET, path)
    folder.mkdir(parents=True, exist_ok=True)
    group = zarr.create_group(str(folder), zarr_format=zarr_format, overwrite=True)
    made = {"plain": (PLAIN, PLAIN_CHUNK, None), "hole": (PLAIN, PLAIN_CHUNK, None)}
    if zarr_format == 3:
        made |= {"small": (SMALL, PLAIN_CHUNK, SMALL_SHARD), "big": (BIG, BIG_CHUNK, BIG_SHARD), "first": (BIG, BIG_CHUNK, BIG_SHARD)}
    for name, (count, chunk, shard) in made.items():
        more = {}
        if shard:
            more["shards"] = {"shape": (shard,), "index_location": "start"} if name == "first" else (shard,)
        array = group.create_array(name, shape=(count,), chunks=(chunk,), dtype="<u4", compressors=None, filters=None, fill_value=7, **more)
        if name == "hole":
            array[PLAIN_CHUNK:2 * PLAIN_CHUNK] = values(PLAIN, version)[PLAIN_CHUNK:2 * PLAIN_CHUNK]
        else:
            array[...] = values(count, version)
    if consolidate:
        # zarr-python says each time that consolidated metadata of v3 is not in the specification yet.
        zarr.consolidate_metadata(str(folder), zarr_format=zarr_format)
    return folder


def age(root):
    """Makes all new objects an hour old. The version of an object that is only seconds old would be requested once more."""
    now = time.time()
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            # An object that is old already keeps its time of modification, which an Icechunk repository may name.
            if os.stat(path).st_mtime > now - 1800:
                os.utime(path, (now - 3600, now - 3600))


def chunk(name, n, version=0):
    """The bytes of chunk `n`, which is an inner chunk if the array has shards."""
    count, size = {"plain": (PLAIN, PLAIN_CHUNK), "small": (SMALL, PLAIN_CHUNK)}.get(name, (BIG, BIG_CHUNK))
    return values(count, version)[n * size:(n + 1) * size].tobytes()


def key(name):
    """The key of the first chunk, or of the first shard, of an array."""
    return f"{BUCKET}/z/{name}/c/0"


def store(server, path="z"):
    """STORE, arguments and environment for a server of faults."""
    if server.kind == "s3":
        return f"s3://{BUCKET}/{path}", ["--endpoint", server.url, "--region", "us-east-1"], {
            "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
    if server.kind == "az":
        return f"az://{BUCKET}/{path}", ["--endpoint", f"{server.url}/{remote_servers.ACCOUNT}"], {
            "AZURE_STORAGE_ACCOUNT_NAME": remote_servers.ACCOUNT, "AZURE_STORAGE_ACCOUNT_KEY": remote_servers.ACCOUNT_KEY}
    return f"{server.url}/{BUCKET}/{path}", [], {}


def mounted(mount, server, *args, path="z", **kwargs):
    """A mount of a store on a server of faults."""
    url, more, env = store(server, path)
    return mount(url, *more, *args, env=remote_servers.clean_environment(**env, **kwargs.pop("env", {})), **kwargs)


def attempt(path, offset=0, length=None):
    """The bytes, or the name of the error."""
    try:
        fd = os.open(path, os.O_RDONLY)
        try:
            found = os.fstat(fd)
            if stat.S_ISDIR(found.st_mode):
                return "EISDIR"
            length = found.st_size - offset if length is None else length
            parts = []
            while length > 0 and (part := os.pread(fd, length, offset)):
                parts.append(part)
                offset, length = offset + len(part), length - len(part)
            return b"".join(parts)
        finally:
            os.close(fd)
    except OSError as error:
        return errno.errorcode[error.errno]
