"""What many nodes need to read an array from a bucket, computed from what one daemon sends. `daemons` compares it with what it measures.

Of one daemon with the window W (requests in flight), which sends k requests for b bytes:

    on a node   rounds x first byte  +  the longer of   k / W x (first byte + b / k / speed of a connection)   and   b / link of the node
    the server  the longer of   N x k / requests a second   and   N x b / link of the server

The job takes the longer of both: all nodes begin at once, and a server that is asked for more than it answers only delays.
"""
import json
from collections import namedtuple

# A job: the number of daemons that request, and the requests and MiB of each.
Job = namedtuple("Job", "daemons requests mebibytes")
# Seconds, and MiB/s; `server_rate` in requests a second.
Place = namedtuple("Place", "first_byte connection node_link server_link server_rate")

# Dependent requests before the first chunk, and requests in flight (the default of `--requests`).
ROUNDS, WINDOW = 5, 64
# Requests of a daemon as it starts, and for each chunk: 32 KiB, which tell its length, and the rest.
START, PER_CHUNK = 12, 2

# A bucket of S3: 5,500 GET a second for a prefix, 150 ms to the first byte, 75 MB/s for a connection. Its own link is not a limit.
# Nodes with 10 Gbit/s. 1,000 GET cost 0.0004 USD, and bytes cost nothing within a region.
S3 = Place(first_byte=0.150, connection=75e6 / 2**20, node_link=10e9 / 8 / 2**20, server_link=float("inf"), server_rate=5500)
DOLLARS = 0.0004 / 1000


def seconds(job, place):
    _, requests, mebibytes = job
    if not requests:
        return 0
    each = place.first_byte + mebibytes / requests / place.connection
    on_node = ROUNDS * place.first_byte + max(requests / WINDOW * each, mebibytes / place.node_link)
    return max(on_node, job.daemons * requests / place.server_rate, job.daemons * mebibytes / place.server_link)


def n_chunks(store):
    """The number of chunks of the array `t`."""
    document = json.loads((store / "t" / "zarr.json").read_bytes())
    chunks = document["chunk_grid"]["configuration"]["chunk_shape"]
    count = 1
    for length, chunk in zip(document["shape"], chunks):
        count *= -(-length // chunk)
    return count


def run(served, options):
    n_nodes, chunks, mebibytes = 1000, 4096, 6000  # 16 GiB in chunks of 4 MiB, which compress to 6,000 MiB
    whole = Job(n_nodes, START + PER_CHUNK * chunks, mebibytes)
    own = Job(n_nodes, START + PER_CHUNK * -(-chunks // n_nodes), mebibytes / n_nodes)
    jobs = [
        ("each node reads a thousandth; one daemon a node", own),
        ("each reads all; one daemon a node", whole),
        ("each reads all; 8 daemons a node, a cache each", whole._replace(daemons=8 * n_nodes, mebibytes=mebibytes)),
        ("each reads all; 8 daemons a node, one cache a node", whole._replace(requests=int(whole.requests * 1.1))),
        ("each reads all; one cache of all nodes, filled by `--warm` on one", whole._replace(daemons=1)),
        ("the caches are filled, `--immutable`", Job(n_nodes, 0, 0)),
    ]
    print(f"\n{n_nodes:,} nodes, {chunks:,} chunks, {mebibytes:,} MiB stored:\n")
    print("| job | requests | GiB sent | s, bucket | s, with 16 prefixes | USD for requests |\n|---|---|---|---|---|---|")
    for name, job in jobs:
        total = job.daemons * job.requests
        times = [seconds(job, S3._replace(server_rate=S3.server_rate * prefixes)) for prefixes in (1, 16)]
        print(f"| {name} | {total:,} | {job.daemons * job.mebibytes / 1024:,.0f} | {times[0]:,.0f} | {times[1]:,.0f} | {total * DOLLARS:.2f} |")
    print(flush=True)
