"""The hits that a cache of a given size would have on a recorded trace: with plain LRU, and with Belady's optimum."""
import heapq
from collections import OrderedDict


def lru_hits(trace, budget):
    """Hits of a least-recently-used cache of `budget` bytes. The trace is [(key, bytes)].

    >>> lru_hits([(key, 1) for key in "abcabcabc"], 2), belady_hits([(key, 1) for key in "abcabcabc"], 2)
    (0, 4)
    """
    held, used, hits = OrderedDict(), 0, 0
    for key, size in trace:
        if key in held:
            held.move_to_end(key)
            hits += 1
            continue
        if size > budget:
            continue
        held[key] = size
        used += size
        while used > budget:
            used -= held.popitem(last=False)[1]
    return hits


def belady_hits(trace, budget):
    """Hits of a cache that knows the future: the entry whose next use is the latest is evicted first, or not kept at all."""
    following, last = [None] * len(trace), {}
    for at in range(len(trace) - 1, -1, -1):
        key = trace[at][0]
        following[at] = last.get(key)
        last[key] = at
    held, used, hits, leaving = {}, 0, 0, []
    for at, (key, size) in enumerate(trace):
        if key in held:
            hits += 1
        elif following[at] is None or size > budget:
            continue
        else:
            used += size
        # An entry whose use is over is dropped at once.
        if following[at] is None:
            used -= held.pop(key)[1]
            continue
        held[key] = (following[at], size)
        heapq.heappush(leaving, (-following[at], key))
        while used > budget:
            use, victim = heapq.heappop(leaving)
            if victim in held and held[victim][0] == -use:
                used -= held.pop(victim)[1]
    return hits


def read_trace(log):
    """Accesses in the log of a daemon: `... zarr_mount::trace] KEY BYTES`."""
    found = []
    with open(log, errors="replace") as lines:
        for line in lines:
            words = line.partition("zarr_mount::trace] ")[2].split()
            if len(words) >= 2 and words[-1].isdigit():
                found.append((words[-2], int(words[-1])))
    return found
