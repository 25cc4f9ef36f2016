"""What tasks that are C++ classes cost, beside what they are made of."""
import json
import statistics

import harness
import rows

GROUP = "tasks"


def seconds(shop, *words):
    process = shop.start([shop.tool("tasks_core"), *words], "tasks")
    if process.wait(300) != 0:
        raise harness.BenchmarkError(f"tasks_core: {harness.complaint(process)}")
    return json.loads((process.place / "out").read_text())


def run(shop):
    rounds = shop.rounds(9)
    pings, forks = shop.size(20_000, tiny=50), shop.size(200, tiny=3)
    sizes = shop.size([1, 1024], tiny=[1, 2])
    small, ping, fork = [], [], {size: [] for size in sizes}
    for _ in range(rounds):
        small.append(seconds(shop, "small", 4))
        ping.append(seconds(shop, "ping", pings))
        for size in sizes:
            fork[size].append(seconds(shop, "fork", forks, size))
    middle = lambda found, name: statistics.median(each[name] for each in found)
    yield rows.within(GROUP, "four trivial tasks, start to end", 1e3 * middle(small, "ours"), "ms", 50)
    yield rows.at_most(GROUP, "round trip of an empty message", 1e6 * middle(ping, "ours"), "us",
                       "bare Unix socket", 1e6 * middle(ping, "raw"), 2)
    for size in sizes:
        ours, raw = 1e3 * middle(fork[size], "ours"), 1e3 * middle(fork[size], "raw")
        yield rows.told(GROUP, f"a forked task with {size} MiB resident", ours, "ms",
                        "fork, exit, wait", raw)
        yield rows.within(GROUP, f"more than fork, exit, wait, with {size} MiB", ours - raw, "ms", 1)
