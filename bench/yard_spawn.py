"""What it costs to run a thousand programs that do nothing: the yard beside the peers."""
import shutil

import harness
import rows
import yard

SLOTS = 2
# One client call a task, as its users write it; then wait for the last and end the server.
TASK_SPOOLER = """
i=0
while [ $i -lt {count} ]; do tsp /bin/true >/dev/null; i=$((i + 1)); done
tsp -w
while tsp | grep -Eq ' (queued|running) '; do sleep 0.01; done
tsp -K
"""


def raw(shop, count):
    command = [shop.tool("raw_spawn"), count, SLOTS, "/bin/true"]
    return lambda: shop.measure(command, "raw")


def raw_with_logs(shop, count):
    return lambda: shop.measure([shop.tool("raw_spawn"), count, SLOTS, "--logs",
                                 shop.fresh("logs"), "/bin/true"], "raw-logs")


def gnu_parallel(shop, count):
    if not shutil.which("parallel"):
        return None
    numbers = number_list(shop, count)

    def run():
        place = shop.fresh("parallel-state")
        command = ["parallel", "--will-cite", f"-j{SLOTS}", "--joblog", place / "joblog",
                   "--results", place / "results", "/bin/true"]
        return shop.measure(command, "parallel", stdin=numbers,
                            environment={"SHELL": "/bin/sh", "PARALLEL_HOME": str(place)})
    return run


def task_spooler(shop, count):
    program = shutil.which("tsp")
    if not program:
        return None

    def run():
        place = shop.fresh("tsp-state")
        return shop.measure(["/bin/sh", "-c", TASK_SPOOLER.format(count=count)], "task-spooler",
                            environment={"TS_SOCKET": str(place / "socket"), "TMPDIR": str(place),
                                         "TS_SLOTS": str(SLOTS), "TS_MAXFINISHED": str(count)})
    return run


def xargs_with_wrapper(shop, count):
    numbers = number_list(shop, count)
    return lambda: shop.measure(
        ["xargs", f"-P{SLOTS}", "-n1", shop.tool("log_wrapper"), shop.fresh("logs"), "/bin/true"],
        "xargs", stdin=numbers)


def number_list(shop, count):
    path = shop.fresh("numbers") / "numbers"
    path.write_text("".join(f"{number}\n" for number in range(count)))
    return path


def run(shop):
    count = shop.size(1000, tiny=20)
    costs = harness.interleaved(shop.rounds(9), {
        "posix_spawn": raw(shop, count),
        "posix_spawn + logs": raw_with_logs(shop, count),
        "trainyard": lambda: yard.measure(shop, ["/bin/true"], count, SLOTS),
        "xargs + wrapper": xargs_with_wrapper(shop, count),
        "task-spooler": task_spooler(shop, count),
        "GNU parallel": gnu_parallel(shop, count),
    })
    walls = {name: harness.median_wall(all_costs) for name, all_costs in costs.items()}
    ours = walls["trainyard"]
    figure = f"{count:,} x true at {SLOTS} slots"

    def peer(rule, name, times, shown=None):
        return rule(yard.GROUP, figure, ours, "s", shown or name, walls[name], times)

    yield peer(rows.at_most, "posix_spawn", 1.6, "posix_spawn + waitpid")
    yield peer(rows.at_most, "posix_spawn + logs", 1.25, "the same + directory, 2 logs")
    yield peer(rows.at_most, "xargs + wrapper", 1, "xargs -P2 + C wrapper")
    yield peer(rows.at_least, "task-spooler", 2.5)
    yield peer(rows.at_least, "GNU parallel", 6, "GNU parallel --joblog --results")

    cpu = {name: harness.median_cpu(all_costs) for name, all_costs in costs.items()}
    milliseconds = {name: 1000 * value / count for name, value in cpu.items() if value}
    yield rows.within(yard.GROUP, "CPU a task", milliseconds["trainyard"], "ms", 0.9)
    yield rows.told(yard.GROUP, "CPU a task", milliseconds["trainyard"], "ms",
                    "posix_spawn + waitpid", milliseconds["posix_spawn"])
