"""Events between two workers: a trip and rates beside a bare relay and a raw socket, and one large buffer to many."""
import rows
from workers_core import GROUP, medians

SOCKET = "a raw Unix socket"


def run(shop):
    trip = medians(shop, "workers_core", "trip", shop.size(3_000, tiny=5))
    yield rows.at_most(GROUP, "64 B there and back", 1e6 * trip["ours"], "us", "a bare relay by hand", 1e6 * trip["bare"], 1.5)
    yield rows.told(GROUP, "64 B there and back", 1e6 * trip["ours"], "us", SOCKET, 1e6 * trip["socket"])
    small = medians(shop, "workers_core", "rate", 64, shop.size(1_000_000, tiny=50))
    yield rows.within(GROUP, "an event of 64 B one way, none lost", 1e6 / small["events"], "us", 2)
    yield rows.told(GROUP, "an event of 64 B one way, none lost", 1e6 / small["events"], "us", SOCKET, 1e6 / small["socket_events"])
    large = medians(shop, "workers_core", "rate", 65_536, shop.size(20_000, tiny=10))
    yield rows.within(GROUP, "1 GB in events of 64 KiB", 1e9 / large["bytes"], "s", 1 / 1.5)
    yield rows.told(GROUP, "1 GB in events of 64 KiB", 1e9 / large["bytes"], "s", SOCKET, 1e9 / large["socket_bytes"])
    copies = medians(shop, "workers_core", "copies", shop.size(64, tiny=1), shop.size(7, tiny=1))
    for name, receivers in (("one", "1 receiver"), ("eight", "8 receivers")):
        yield rows.at_most(GROUP, f"64 MiB to {receivers}", 1e3 * copies[name], "ms", "one memcpy", 1e3 * copies["memcpy"], 1.5)
