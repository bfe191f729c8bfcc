"""A thousand clients of `--serve` for a minute, each on a connection of its own."""
import asyncio
import random
import time

import numpy as np
import pytest
import zarr

from support.serving import TOKEN, serving

N_CLIENTS, SECONDS, PIECE, PATIENCE = 1000, 60, 16 << 10, 50
BUDGET = 64 << 20


def peak_bytes(pid):
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))


async def client(port, seed, whole, until, counts):
    """Reads random pieces of the file `x.raw`, all of whose bytes are known, until the time is over."""
    chooser = random.Random(seed)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        while time.monotonic() < until:
            start = chooser.randrange(len(whole) - PIECE)
            begun = time.monotonic()
            writer.write(f"GET /x.raw HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
                         f"Range: bytes={start}-{start + PIECE - 1}\r\n\r\n".encode())
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE)
            assert head.startswith(b"HTTP/1.1 206 ") and f"ontent-length: {PIECE}\r".encode() in head, head
            assert await asyncio.wait_for(reader.readexactly(PIECE), PATIENCE) == whole[start:start + PIECE], start
            counts.append(time.monotonic() - begun)
    finally:
        writer.close()


@pytest.mark.long
@pytest.mark.alone
def test_a_thousand_clients_for_a_minute(tmp_path, figure):
    values = np.random.default_rng(48).integers(0, 50, size=(128, 256, 256)).astype("<u2")
    group = zarr.create_group(tmp_path / "s.zarr")
    group.create_array("x", shape=values.shape, chunks=(16, 64, 64), dtype="<u2")[...] = values
    whole, counts = values.tobytes(), []

    async def all_clients(port):
        until = time.monotonic() + SECONDS
        clients = (client(port, seed, whole, until, counts) for seed in range(N_CLIENTS))
        return await asyncio.gather(*clients, return_exceptions=True)

    options = ["--view", "arrays", "--files", "raw", "--cache-size", str(BUDGET)]
    with serving(tmp_path / "s.zarr", *options, tmp_path=tmp_path) as server:
        failures = [error for error in asyncio.run(all_clients(server.port)) if error]
        peak = peak_bytes(server.process.pid)
        status = server.ask("/x.raw", method="HEAD").status
    assert not failures and status == 200, failures[:3]
    # 64 KiB for each connection, and what the program itself takes.
    assert peak < BUDGET + N_CLIENTS * (64 << 10) + (128 << 20), peak
    counts.sort()
    figure(f"{N_CLIENTS} clients for {SECONDS} s: {len(counts) / SECONDS:.0f} requests/s of {PIECE >> 10} KiB, median "
           f"{1000 * counts[len(counts) // 2]:.0f} ms, 99 % {1000 * counts[len(counts) * 99 // 100]:.0f} ms, peak {peak >> 20} MiB, no error")
