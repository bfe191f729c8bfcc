"""Computes the time that N daemons take to read from one server.

Each daemon sends k requests for b bytes, with w requests in flight:

    a daemon    rounds x first byte  +  the longer of   k / w x (first byte + b / k / speed of a connection)   and   b / link of the node
    the server  the longer of   N x k / requests a second   and   N x b / link of the server

All daemons begin at once, and all are done after the longer of the two times. A server with too many requests only delays them; it refuses none.
"""
from collections import namedtuple

# The number of daemons, and the requests and MiB of each.
Job = namedtuple("Job", "daemons requests mebibytes")
# Seconds, MiB/s, and requests a second.
Place = namedtuple("Place", "first_byte connection node_link server_link server_rate")

# Dependent requests before the first chunk, and requests in flight once the link is known to take them.
ROUNDS, WINDOW = 5, 64


def seconds(job, place):
    daemons, requests, mebibytes = job
    if not requests:
        return 0
    each = place.first_byte + mebibytes / requests / place.connection
    own = ROUNDS * place.first_byte + max(requests / WINDOW * each, mebibytes / place.node_link)
    return max(own, daemons * requests / place.server_rate, daemons * mebibytes / place.server_link)
