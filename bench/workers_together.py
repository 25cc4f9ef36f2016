"""How soon workers are ready, meet at a barrier, and how fast the calls of a pool are answered."""
import statistics

import rows
from workers_core import GROUP, measured, medians


def run(shop):
    ready = medians(shop, "workers_core", "ready", 4)
    yield rows.within(GROUP, "4 workers are ready", 1e3 * ready["ready"], "ms", 100)
    for workers in (2, 4, 16):
        met = medians(shop, "workers_core", "barrier", workers, shop.size(300, tiny=3))
        yield rows.within(GROUP, f"a barrier of {workers}", 1e3 * met["barrier"], "ms", 1)
    calls = shop.size(1_000, tiny=3)
    for what, name in (("pipelined", "1,000 calls over 3 children of a pool"), ("alone", "1,000 calls, each when the one before is answered")):
        took = statistics.median(measured(shop, "pool_core", what, calls, 3) for _ in range(shop.rounds(5)))
        yield rows.within(GROUP, name, took / 1e3, "ms", 100)
