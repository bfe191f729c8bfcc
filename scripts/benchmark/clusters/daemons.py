"""The whole array, read by several daemons at once: what the server sends, and how long it takes."""
import contextlib
import math
import os
import shutil
import subprocess
import time
from collections import namedtuple

from model import Job, Place, seconds as computed_seconds
from served import BINARY, MIB

GIB = 1 / 4
Seen = namedtuple("Seen", "seconds requests mebibytes")


def run(served, options):
    with served() as served:
        store = served.store(GIB)
        print(f"\nDaemons at once, `--immutable`, {GIB:g} GiB in chunks of 4 MiB:\n")
        print("| daemons | disk cache | s | requests | MiB sent |\n|---|---|---|---|---|")
        shared = served.work / "shared"
        requests = {}
        for count, kind in [(1, "none"), (8, "none"), (8, "one each"), (8, "one, shared, empty"), (8, "the same, filled")]:
            caches = {"none": [], "one each": [served.work / f"cache{number}" for number in range(count)]}.get(kind, [shared] * count)
            seen = read_at_once(served, store, [["--disk-cache", cache] for cache in caches] or [[]] * count)
            requests[count, kind] = seen.requests
            print(f"| {count} | {kind} | {seen.seconds:.1f} | {seen.requests} | {seen.mebibytes:.0f} |", flush=True)
            if kind == "one each":
                for cache in caches:
                    shutil.rmtree(cache)
        shutil.rmtree(shared)
        one, eight = requests[1, "none"], requests[8, "one, shared, empty"]
        print(f"\n8 daemons with a shared cache, which is empty, send {eight / one:.2f} of the requests of one (at most 1.10 is wanted).\n", flush=True)


def read_at_once(served, store, options):
    """Mounts as many times as there are `options`, and then reads the whole array through all mounts at once."""
    served.sent()
    with contextlib.ExitStack() as stack:
        points = [stack.enter_context(served.mounted(served.url(store), "--immutable", "--cache-size", "256M", *each)) for each in options]
        seconds = seconds_of([["cat", point / "t.npy"] for point in points])
    return Seen(seconds, *served.sent())


def seconds_of(commands):
    """How long these commands take together, which run at once."""
    begun = time.perf_counter()
    running = [subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) for command in commands]
    status = [each.wait() for each in running]
    assert not any(status), status
    return time.perf_counter() - begun


# The server's own link, and that of each node, in MiB/s. A node is a network namespace, and a link a queue of the kernel.
SERVER_LINK, NODE_LINK = 80, 20
ADDRESS, PORT = "10.77.0.1", 8080


def run_limited(served, options):
    if not os.environ.get("CLUSTERS_OWN_NETWORK"):
        print("\n`limit` is left out: only root can make nodes with links of their own.\n")
        return
    with network(8) as enter, served(more=f"server {{ listen {ADDRESS}:{PORT}; root {{root}}; }}") as served:
        store = served.store(GIB)
        url = f"http://{ADDRESS}:{PORT}/{store.name}"
        print(f"\nNodes with links of {NODE_LINK} MiB/s, and a server with one of {SERVER_LINK} MiB/s:\n")
        print("| daemons | disk cache | s | computed, s | MiB/s | of the server's link | requests |\n|---|---|---|---|---|---|---|")
        shared = served.work / "shared-limited"
        for count, caching in [(1, []), (2, []), (4, []), (8, []), (8, ["--disk-cache", shared])]:
            served.sent()
            with contextlib.ExitStack() as stack:
                points = [stack.enter_context(mounted_inside(served, number, enter[number], url, caching)) for number in range(count)]
                seconds = seconds_of([["cat", point / "t.npy"] for point in points])
            requests, mebibytes = served.sent()
            # Daemons that share a cache share the requests, and have the links of all their nodes.
            n_jobs, links = (1, count) if caching else (count, 1)
            place = Place(first_byte=0, connection=math.inf, node_link=NODE_LINK * links, server_link=SERVER_LINK, server_rate=math.inf)
            computed = computed_seconds(Job(n_jobs, requests / n_jobs, mebibytes / n_jobs), place)
            print(f"| {count} | {'one, shared, empty' if caching else 'none'} | {seconds:.1f} | {computed:.1f} | {mebibytes / seconds:.0f} "
                  f"| {mebibytes / seconds / SERVER_LINK:.2f} | {requests} |", flush=True)
        shutil.rmtree(shared)


@contextlib.contextmanager
def mounted_inside(served, number, enter, url, options):
    """A mount whose daemon is on a node. The mountpoint is seen by all."""
    point = served.work / f"n{number}"
    point.mkdir()
    command = [BINARY, "--view", "arrays", "--files", "npy", "--immutable", "--cache-size", "256M", *options, url, point]
    subprocess.run([*enter, *map(str, command)], check=True)
    try:
        yield point
    finally:
        subprocess.run([BINARY, "--unmount", point], check=True)
        point.rmdir()


@contextlib.contextmanager
def network(count):
    """A bridge at which the server is, and `count` nodes. Gives the command by which a program is run on each node."""
    def ip(*words):
        subprocess.run(["ip", *words], check=True)

    def limit(link, rate):
        bits = f"{rate * MIB * 8}bit"
        subprocess.run(["tc", "qdisc", "add", "dev", link, "root", "tbf", "rate", bits, "burst", "256kb", "latency", "200ms"], check=True)

    holders = []
    ip("link", "add", "cluster", "type", "bridge")
    try:
        ip("address", "add", f"{ADDRESS}/24", "dev", "cluster")
        ip("link", "set", "dev", "cluster", "up")
        limit("cluster", SERVER_LINK)
        enter = []
        for number in range(count):
            holder = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo; exec sleep infinity"], stdout=subprocess.PIPE)
            holders.append(holder)
            holder.stdout.readline()
            inside = ["nsenter", "--target", str(holder.pid), "--net"]
            ip("link", "add", f"node{number}", "type", "veth", "peer", "name", "eth0", "netns", str(holder.pid))
            ip("link", "set", "dev", f"node{number}", "master", "cluster", "up")
            limit(f"node{number}", NODE_LINK)
            subprocess.run([*inside, "ip", "address", "add", f"10.77.0.{number + 2}/24", "dev", "eth0"], check=True)
            subprocess.run([*inside, "ip", "link", "set", "dev", "eth0", "up"], check=True)
            enter.append(inside)
        yield enter
    finally:
        for holder in holders:
            holder.kill()
            holder.wait()
        ip("link", "delete", "cluster")
