"""What a task costs that goes to all ranks, beside pickled arrays over connections."""
import statistics

import rows
from ranks_core import GROUP, PYTHON, middle, ours, peers


def run(shop):
    rounds = shop.rounds(5)
    mib, times = shop.size(256, tiny=1), shop.size(7, tiny=3)
    payload, peer = [], []
    for _ in range(rounds):
        payload.append(ours(shop, "payload", PYTHON, mib, times))
        peer.append(peers(shop, "payload", 4, mib, shop.size(4, tiny=3)))
    memcpy = 1e3 * middle(payload, "memcpy")
    name = f"{mib} MiB of float32 to 4 ranks in Python"
    yield rows.at_most(GROUP, name + ", one copy", 1e3 * middle(payload, "copied"), "ms",
                       "one memcpy", memcpy, 1.5)
    yield rows.at_most(GROUP, name + ", in place", 1e3 * middle(payload, "in_place"), "ms",
                       "one memcpy", memcpy, 0.15)
    yield rows.told(GROUP, name + ", one copy", 1e3 * middle(payload, "copied"), "ms",
                    "pickled over connections", 1e3 * statistics.median(peer))
    yield rows.within(GROUP, "memory of the parent beside the payload itself",
                      middle(payload, "parent_times"), "x", 1.05)
    count = shop.size(2000, tiny=20)
    tiny = {rank: [] for rank in ("cpp", PYTHON)}
    tiny_peer = []
    for _ in range(rounds):
        for rank, measured in tiny.items():
            measured.append(ours(shop, "tiny", rank, count))
        tiny_peer.append(peers(shop, "tiny", 4, count))
    for rank, language in (("cpp", "C++"), (PYTHON, "Python")):
        yield rows.at_most(GROUP, f"an empty task, 4 replies, ranks in {language}",
                           1e3 * middle(tiny[rank]), "ms", "connections, all replies",
                           1e3 * statistics.median(tiny_peer), 1.2)
