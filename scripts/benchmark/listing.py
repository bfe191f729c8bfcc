"""Directories of very many virtual chunks: `ls -f`, `ls -ln`, and a stat of every one."""
from support import shards
import workbench
from workbench import MIB, program, timed


def run(bench):
    many, fewer = (100_000, 10_000) if bench.quick else (1_000_000, 100_000)
    table = bench.report.table("Listings of virtual chunks in one directory", ["what", "mount", "FUSE floor", "mount / floor", "wanted"],
                               note="Entries a second; a fresh mount each, without extended attributes. The floor answers with as many files in memory.")
    stores = {n: bench.folder / f"list{n}.zarr" for n in (many, fewer)}
    for n, store in stores.items():
        shards.write(store, (n // 100, 100), 1, ".")
    for n, command, wanted in ((many, "-f", 2_000_000), (fewer, "-ln", 100_000)):
        bench.say(f"ls {command} of {n}")

        def ours():
            with bench.mount(stores[n], "--view", "chunks") as mounted:
                return {"seconds": timed(["ls", command, mounted.path])}

        def floor():
            with bench.floor(f"many:{n}:1") as point:
                return {"seconds": timed(["ls", command, point / "many"])}
        found = bench.alternate({"mount": ours, "floor": floor})
        speed = {k: n / workbench.median(v, "seconds") for k, v in found.items()}
        table.add([f"`ls {command}` of {n:,}", *speed.values(), workbench.ratio(found["mount"], found["floor"]), f"≥ {wanted:,}"], rounds=found)
        bench.report.at_least(f"ls {command} of {n:,} virtual chunks, entries a second", speed["mount"], wanted)
    stat_storm(bench, table, stores[many], many)


def stat_storm(bench, table, store, n):
    bench.say(f"stat of {n}")
    with bench.mount(store, "--view", "chunks") as mounted:
        paths = [f"{mounted.path}/c.{i}.{j}" for i in range(n // 100) for j in range(100)]
        program("reader", "stat", lines=paths[:n // 10])
        before = workbench.resident_bytes(mounted.pid)
        ours = program("reader", "stat", lines=paths[n // 10:])
        after = workbench.resident_bytes(mounted.pid)
    with bench.floor(f"many:{n}:1") as point:
        theirs = program("reader", "stat", lines=[f"{point}/many/{i}" for i in range(n // 10, n)])
    speed = [r["count"] / r["seconds"] for r in (ours, theirs)]
    table.add([f"stat of {n:,} files, each once", *speed, speed[0] / speed[1], "–"], ours=ours, floor=theirs)
    table.add([f"memory of the daemon after {n // 10:,} of these stats, after all: MiB", f"{before / MIB:.1f}, {after / MIB:.1f}", "–", "–", "flat"],
              before=before, after=after)
    bench.report.at_most(f"stat storm of {n:,} files: growth of memory, MiB", (after - before) / MIB, 4)
