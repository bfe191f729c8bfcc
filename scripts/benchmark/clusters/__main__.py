"""Measures the requests that many readers send to one server, and the speed that they get: see `scripts/clusters`."""
import argparse
import functools
import os
import tempfile
from pathlib import Path

import dask_cluster
import daemons
import nodes
import second
from served import BINARY, Served

SECTIONS = {
    "daemons": (daemons.run, "requests and bytes of 1 and 8 daemons, without a disk cache, with one each, and with a shared one"),
    "limit": (daemons.run_limited, "throughput of 1 to 8 daemons on a server whose link is the limit, beside what `nodes` computes (needs root)"),
    "second": (second.run, "a second mount with a warm disk cache, beside the same store in a local directory"),
    "dask": (dask_cluster.run, "mean and rechunk by four worker processes, on a mount and by xarray with obstore"),
    "nodes": (nodes.run, "what 1,000 nodes would need, computed"),
}


def main():
    parser = argparse.ArgumentParser(
        prog="scripts/clusters", formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="sections:\n" + "\n".join(f"  {name:8} {what}" for name, (_, what) in SECTIONS.items()))
    parser.add_argument("--gib", type=float, default=4, help="decoded size of the store")
    parser.add_argument("--only", action="append", choices=SECTIONS, metavar="SECTION", help="this section, and no other that is not named too")
    parser.add_argument("--data", type=Path, help="a directory in which the stores stay")
    parser.add_argument("--rounds", type=int, help="rounds of `dask` [default: 3] and of `second` [default: 7]")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="zarr-mount-clusters-") as work:
        work = Path(work)
        # The plugin of Dask, and processes of workers, find the program by its name.
        os.environ["PATH"] = f"{work}:{os.environ['PATH']}"
        (work / "zarr-mount").symlink_to(BINARY)
        served = functools.partial(Served, options.data or work / "data", work)
        for name, (run, _) in SECTIONS.items():
            if name in (options.only or SECTIONS):
                run(served, options)


if __name__ == "__main__":
    main()
