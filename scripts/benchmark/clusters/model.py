"""How long daemons take that read from one server, computed from the requests that each of them sends.

For a daemon with w requests in flight, which sends k requests for b bytes, and N of them:

    a daemon    rounds x first byte  +  the longer of   k / w x (first byte + b / k / speed of a connection)   and   b / link of the node
    the server  the longer of   N x k / requests a second   and   N x b / link of the server

All begin at once, and all are done after the longer of both: a server that is asked for more than it can answer delays, and no more.
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
