"""The requests, time and cost for 1,000 nodes that read an array from a bucket, computed by `model` from the measured requests of one daemon."""
import json
import math

from daemons import read_at_once
from model import Job, Place, seconds

# A bucket of S3: 150 ms to the first byte, 75 MB/s for a connection, 5,500 GET a second for a prefix. Its own link is no limit.
# Nodes with 10 Gbit/s. 1,000 GET cost 0.0004 USD; bytes cost nothing within a region.
S3 = Place(first_byte=0.150, connection=75e6 / 2**20, node_link=10e9 / 8 / 2**20, server_link=math.inf, server_rate=5500)
DOLLARS = 0.0004 / 1000
NODES, CHUNKS, DAEMONS = 1000, 4096, 8


def run(served, options):
    with served() as served:
        stores = [served.store(gib) for gib in (1 / 16, 1 / 4)]
        few, many = [(n_chunks(store), read_at_once(served, store, [[]])) for store in stores]
    per_chunk, mebibytes = [(many[1][field] - few[1][field]) / (many[0] - few[0]) for field in (1, 2)]
    start = few[1].requests - per_chunk * few[0]
    print(f"\nOne daemon sends {start:.0f} requests as it starts, and {per_chunk:.2f} for each chunk of {mebibytes:.2f} MiB.")

    def job(daemons, chunks, share=1):
        return Job(daemons, (start + per_chunk * chunks) * share, mebibytes * chunks * share)

    jobs = {
        "each node reads its thousandth": job(NODES, math.ceil(CHUNKS / NODES)),
        "each node reads all": job(NODES, CHUNKS),
        f"{DAEMONS} daemons a node, a disk cache each": job(NODES * DAEMONS, CHUNKS),
        f"{DAEMONS} daemons a node, one disk cache a node": job(NODES, CHUNKS, 1.1),
        "one disk cache for all, filled by `--warm`": job(1, CHUNKS),
        "all caches are filled": Job(NODES, 0, 0),
    }
    print(f"\n{NODES:,} nodes, an array of {CHUNKS:,} chunks, {CHUNKS * mebibytes / 1024:.1f} GiB stored:\n")
    print("| job | requests | GiB sent | s | s, 16 prefixes | USD for requests |\n|---|---|---|---|---|---|")
    for name, each in jobs.items():
        requests = each.daemons * each.requests
        times = [seconds(each, S3._replace(server_rate=prefixes * S3.server_rate)) for prefixes in (1, 16)]
        print(f"| {name} | {requests:,.0f} | {each.daemons * each.mebibytes / 1024:,.0f} | {times[0]:,.0f} | {times[1]:,.0f} | {requests * DOLLARS:.2f} |")
    print(flush=True)


def n_chunks(store):
    """The number of chunks of the array `t`."""
    document = json.loads((store / "t" / "zarr.json").read_bytes())
    chunks = document["chunk_grid"]["configuration"]["chunk_shape"]
    return math.prod(-(-length // chunk) for length, chunk in zip(document["shape"], chunks))
