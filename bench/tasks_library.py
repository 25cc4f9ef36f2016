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


# The same with what Python has for it: a pickled array over each child's pipe.
PICKLED = """
import multiprocessing, sys, time, numpy
megabytes, sends = int(sys.argv[1]), int(sys.argv[2])
def child(pipe):
    for _ in range(sends):
        data = pipe.recv()
        data[::4096].sum()
        pipe.send(None)
if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    pipes = [multiprocessing.Pipe() for _ in range(4)]
    children = [multiprocessing.Process(target=child, args=(there,)) for _, there in pipes]
    for one in children: one.start()
    data, times = numpy.ones(megabytes << 20, numpy.uint8), []
    for _ in range(sends):
        began = time.monotonic()
        for here, _ in pipes: here.send(data)
        for here, _ in pipes: here.recv()
        times.append(time.monotonic() - began)
    for one in children: one.join()
    times = sorted(times[2:])
    print(times[len(times) // 2])
"""


def pickled_seconds(shop, megabytes, sends):
    process = shop.start(["/usr/bin/python3", "-c", PICKLED, megabytes, sends], "pickled")
    if process.wait(300) != 0:
        raise harness.BenchmarkError(f"multiprocessing: {harness.complaint(process)}")
    return float((process.place / "out").read_text())


def run(shop):
    rounds = shop.rounds(9)
    pings, forks = shop.size(20_000, tiny=50), shop.size(200, tiny=3)
    sizes = shop.size([1, 1024], tiny=[1, 2])
    small, ping, fork = [], [], {size: [] for size in sizes}
    megabytes = shop.size(256, tiny=1)
    buffer, pickled = [], []
    for _ in range(rounds):
        small.append(seconds(shop, "small", 4))
        ping.append(seconds(shop, "ping", pings))
        buffer.append(seconds(shop, "buffer", megabytes, 4, shop.size(9, tiny=3)))
        pickled.append(pickled_seconds(shop, megabytes, shop.size(4, tiny=3)))
        for size in sizes:
            fork[size].append(seconds(shop, "fork", forks, size))
    middle = lambda found, name: statistics.median(each[name] for each in found)
    yield rows.within(GROUP, "four trivial tasks, start to end", 1e3 * middle(small, "ours"), "ms", 50)
    yield rows.at_most(GROUP, "round trip of an empty message", 1e6 * middle(ping, "ours"), "us",
                       "bare Unix socket", 1e6 * middle(ping, "raw"), 2)
    ours, raw = 1e3 * middle(buffer, "ours"), 1e3 * middle(buffer, "raw")
    name = f"{megabytes} MiB to 4 children"
    yield rows.at_most(GROUP, name, ours, "ms", "one memcpy", raw, 1.5)
    yield rows.told(GROUP, name, ours, "ms", "pipes of Python's multiprocessing", 1e3 * statistics.median(pickled))
    for size in sizes:
        ours, raw = 1e3 * middle(fork[size], "ours"), 1e3 * middle(fork[size], "raw")
        yield rows.told(GROUP, f"a forked task with {size} MiB resident", ours, "ms",
                        "fork, exit, wait", raw)
        yield rows.within(GROUP, f"more than fork, exit, wait, with {size} MiB", ours - raw, "ms", 1)
