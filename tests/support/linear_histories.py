"""Decides whether the history of a file, which is only written and read as a whole, is that of an atomic register.

Every value is written once, so all calls with one value form a cluster. Clusters are ordered by time: a cluster comes before another
one if one of its calls ended before a call of the other began. The history is linearizable exactly if this order has no cycle, and no
call of a cluster ended before its write began. If so, a legal sequence is made of the clusters one after the other, in any order that
agrees, each with its write first. (P. B. Gibbons and E. Korach, Testing Shared Memories, SIAM J. Comput. 26, 1997; the order is that of J.
Misra, Axioms for Memory Access in Asynchronous Hardware Systems, ACM TOPLAS 8, 1986.)

The values in the store make a second register, which follows the first one. A *look* is a read of the second register. It gives a value that
was written, and that is not older than any value that was saved, or seen by another look, before this look began. This adds to the order: a
value that was saved before a look began comes before the value of the look, or is the same. So one order has to explain both registers.
"""
import heapq
from collections import namedtuple

# `kind` is "write", "read", "saved" (an fsync or a close that returned 0 after a write of the value), or "look" (a read of what is saved).
Call = namedtuple("Call", "kind value began ended")
BEFORE, NEVER = float("-inf"), float("inf")


class Cluster:
    """All calls with one value."""

    def __init__(self, value):
        self.value, self.writes = value, []
        # The first end and the last beginning of a call, and those of the calls that save the value or look at it.
        self.ended, self.began, self.saved, self.looked = NEVER, BEFORE, NEVER, BEFORE

    def add(self, call):
        if call.kind == "write":
            self.writes.append(call)
        if call.kind in ("write", "read"):
            self.ended, self.began = min(self.ended, call.ended), max(self.began, call.began)
        if call.kind in ("saved", "look"):
            self.saved = min(self.saved, call.ended)
        if call.kind == "look":
            # A program that sees a value in the store knows that it has been written.
            self.ended, self.looked = min(self.ended, call.ended), max(self.looked, call.began)


def wrong(history, first=None):
    """None if the history is linearizable, else the reason why not. `first` is the value that the register had before the history began."""
    clusters = {first: Cluster(first)} if first is not None else {}
    if first is not None:
        clusters[first].add(Call("write", first, BEFORE, BEFORE))
        clusters[first].add(Call("saved", first, BEFORE, BEFORE))
    for call in history:
        assert call.began <= call.ended, call
        clusters.setdefault(call.value, Cluster(call.value)).add(call)
    for cluster in clusters.values():
        if len(cluster.writes) != 1:
            return f"{cluster.value} was written {len(cluster.writes)} times"
        if min(cluster.ended, cluster.saved) < cluster.writes[0].began:
            return f"{cluster.value} was seen before it was written"
    return circle(list(clusters.values()))


def circle(clusters):
    """Removes, again and again, a cluster that no other one comes before. The clusters that remain form cycles, of which one pair is
    described."""
    left = set(range(len(clusters)))
    by_end = sorted(left, key=lambda n: clusters[n].ended, reverse=True)
    by_save = sorted(left, key=lambda n: clusters[n].saved, reverse=True)
    waiting = [(clusters[n].began, n) for n in left]
    heapq.heapify(waiting)
    looked = []

    def two_first(order):
        """The remaining clusters that come first in an order."""
        while order and order[-1] not in left:
            order.pop()
        found, n = [], len(order) - 1
        while n >= 0 and len(found) < 2:
            if order[n] in left:
                found.append(order[n])
            n -= 1
        return found

    while left:
        ends, saves = two_first(by_end), two_first(by_save)

        def limit(found, n, what):
            others = [m for m in found if m != n]
            return getattr(clusters[others[0]], what) if others else NEVER

        def free(n):
            return clusters[n].began <= limit(ends, n, "ended") and clusters[n].looked <= limit(saves, n, "saved")

        end, save = clusters[ends[0]].ended, clusters[saves[0]].saved
        # These limits only grow, so that a cluster that has passed one of them waits only for the other.
        while waiting and waiting[0][0] <= end:
            _, n = heapq.heappop(waiting)
            heapq.heappush(looked, (clusters[n].looked, n))
        while looked and looked[0][1] not in left:
            heapq.heappop(looked)
        chosen = next((n for n in [ends[0], saves[0], *(n for _, n in looked[:1])] if n in left and free(n)), None)
        if chosen is None:
            return pair([clusters[n] for n in left])
        left.discard(chosen)
    return None


def before(one, other):
    """The reason why a cluster comes before another, or None."""
    if one.ended < other.began:
        return f"{one.value} was there at {one.ended}, and {other.value} was still to come, or there, at {other.began}"
    if one.saved < other.looked:
        return f"{one.value} was saved at {one.saved}, and a look from {other.looked} on gave {other.value}"
    return None


def pair(clusters):
    """Two clusters, each of which comes before the other. A longer cycle is only reported."""
    for n, one in enumerate(clusters[:2000]):
        for other in clusters[n + 1:2000]:
            there, back = before(one, other), before(other, one)
            if there and back:
                return f"{there}; but {back}"
    return f"there is a circle among {sorted(cluster.value for cluster in clusters)[:20]}"
