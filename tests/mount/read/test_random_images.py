"""Random images of a stack: only the bytes that the kernel reads are decoded, in every way of reading them."""
import collections
import random
import time

import pytest

from support import random_images
from support.random_images import WAYS

COUNT = 20_000
SEED = 1
CHUNKS = [(4, 96, 96, 3), (1, 96, 96, 3), (64, 48, 48, 3)]
FEW = 8  # chunks that the smallest cache would hold


@pytest.fixture(scope="module", params=CHUNKS, ids=str)
def stack(request, tmp_path_factory):
    """(store, number of images, chunk shape)"""
    chunks = request.param
    count = COUNT // chunks[0] * chunks[0]
    return random_images.write(tmp_path_factory.mktemp("images") / "a.zarr", count, chunks), count, chunks


def drawn(count, chunks):
    """At most 300 images of distinct chunks, in random order. Chunks of many images are drawn apart from each other, so that the kernel's
    readahead for one image does not read another one."""
    dice, apart = random.Random(SEED), 3 if chunks[0] > 4 else 1
    places = range(0, count // chunks[0], apart)
    return [n * chunks[0] + dice.randrange(chunks[0]) for n in dice.sample(places, min(300, len(places)))]


def settled(made):
    """The counters when nothing is under way any more."""
    now, before = made.stats(), None
    while before is None or before["chunks"] != now["chunks"]:
        time.sleep(0.3)
        before, now = now, made.stats()
    return now


def loads(touched):
    """How often a cache that holds few chunks would load one, for READs that touch these chunks in turn."""
    held, count = collections.OrderedDict(), 0
    for chunk in touched:
        count += chunk not in held
        held[chunk] = None
        held.move_to_end(chunk)
        if len(held) > FEW:
            held.popitem(last=False)
    return count


@pytest.mark.parametrize("way", WAYS)
def test_random_images_decode_only_the_bytes_that_the_kernel_reads(stack, mount, figure, way):
    store, count, chunks = stack
    made = mount(store, "--view", "arrays", "--cache-size", "16M", "-vvv")
    path = made.path / "a.npy"
    inode, start, numbers = path.stat().st_ino, random_images.header_bytes(path), drawn(count, chunks)
    for number, found in zip(numbers, WAYS[way](path, numbers), strict=True):
        assert found == random_images.image(number).tobytes(), number
    stats = settled(made)
    reads = random_images.requests(made.log_text(), inode)
    assert len(reads) >= len(numbers), "the log of fuser tells each READ"
    touched = [chunk for read in reads for chunk in sorted(random_images.touched([read], start, count, chunks))]
    decodes, distinct = stats["chunks"]["decodes"], len(set(touched))
    figure(f"{len(numbers)} random images, chunks {chunks}, {way}: {len(reads)} READs touch {distinct} chunks, "
           f"{decodes} decodes ({decodes / distinct:.2f}), {stats['cache']['ahead_unused']} dropped unused")
    assert decodes <= 1.2 * distinct
    if "MADV_RANDOM" in way:
        assert decodes <= loads(touched), "nothing is decoded that no READ asks for"
