"""Events between workers of two machines over a server of NATS, beside what libnats alone costs there."""
import shutil
import socket
import time

import harness
import rows
from workers_core import GROUP, medians

START_S = 30


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port, server):
    until = time.monotonic() + START_S
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError as error:
            if time.monotonic() > until or server.poll() is not None:
                raise harness.BenchmarkError(f"nats-server: {error}") from error
            time.sleep(0.02)


def run(shop):
    port = free_port()
    program = shutil.which("nats-server") or "/usr/sbin/nats-server"
    server = shop.start([program, "--addr", "127.0.0.1", "--port", str(port)], "nats-server")
    try:
        wait_for(port, server)
        url = f"nats://127.0.0.1:{port}"
        for bytes_of, size in ((64, "64 B"), (65_536, "64 KiB")):
            trip = medians(shop, "nats_core", url, "trip", bytes_of, shop.size(3_000, tiny=5))
            yield rows.at_most(GROUP, f"{size} there and back over NATS", 1e6 * trip["ours"], "us", "libnats", 1e6 * trip["bare"], 1 / 0.8)
        for bytes_of, count, tiny in ((64, 500_000, 50), (65_536, 10_000, 5)):
            rate = medians(shop, "nats_core", url, "rate", bytes_of, shop.size(count, tiny=tiny))
            yield rows.at_most(GROUP, f"an event of {bytes_of} B one way over NATS", 1e6 / rate["ours"], "us", "libnats", 1e6 / rate["bare"],
                               1 / 0.8)
    finally:
        shop.kill(server)
