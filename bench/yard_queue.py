"""What many waiting tasks cost: memory of the yard, `trainyard status`, and time for each task."""
import shutil
import statistics
import time

import harness
import rows
import yard

SLOTS = 2
SLEEP = ["/bin/sleep", "3600"]
SETTLE_SECONDS = 3  # Three samples of the machine: what starting took has been given back.


class Sight:
    """What one look at a live yard saw. Memory in MiB, time in ms."""

    def __init__(self, live, shop):
        time.sleep(shop.size(SETTLE_SECONDS, tiny=0.2))
        self.steady = harness.status_field(live.pid, "VmRSS") / 1024
        self.peak = harness.status_field(live.pid, "VmHWM") / 1024
        # The keeper and the process behind it.
        self.keeper = sum(harness.status_field(pid, "VmRSS") for pid in (live.keeper, live.guard)) / 1024
        walls = []
        for _ in range(shop.rounds(11)):
            began = time.monotonic()
            process = shop.start([shop.trainyard, "status", live.run_dir], "status")
            if process.wait(60) != 0:
                raise harness.BenchmarkError(f"status: {harness.complaint(process)}")
            walls.append(time.monotonic() - began)
        self.status = 1000 * statistics.median(walls)


def look(shop, waiting):
    """Medians over several yards with so many tasks waiting, beside the two that run."""
    sights = []
    for number in range(shop.rounds(5)):
        with yard.Live(shop, SLEEP, SLOTS + waiting, SLOTS) as live:
            sights.append(Sight(live, shop))
        harness.say(f"{waiting:,} waiting, yard {number + 1}: {sights[-1].steady:.1f} MiB, peak "
                    f"{sights[-1].peak:.1f}, keeper {sights[-1].keeper:.1f}, "
                    f"status {sights[-1].status:.1f} ms")
    names = ("steady", "peak", "keeper", "status")
    return {name: statistics.median(getattr(sight, name) for sight in sights) for name in names}


def gnu_parallel_memory(shop, waiting):
    """Its memory in all with so many jobs waiting, in MiB; None where it is not installed."""
    if not shutil.which("parallel"):
        return None
    place = shop.fresh("parallel-state")
    (place / "numbers").write_text("".join(f"{number}\n" for number in range(SLOTS + waiting)))
    process = shop.start(["parallel", "--will-cite", f"-j{SLOTS}", "sleep 3600 #"], "parallel",
                         environment={"SHELL": "/bin/sh", "PARALLEL_HOME": str(place)},
                         stdin=place / "numbers")
    harness.wait_until(lambda: len(harness.descendants(process.pid)) >= SLOTS, "for its jobs")
    time.sleep(shop.size(SETTLE_SECONDS, tiny=0.2))
    memory = harness.status_field(process.pid, "VmRSS") / 1024
    shop.kill(process)
    return memory


def memory_rows(shop, some, many):
    empty, queued, crowded = (look(shop, waiting) for waiting in (0, some, many))
    group = yard.GROUP
    over_some, over_many = (max(sight["steady"] - empty["steady"], 0.01) for sight in
                            (queued, crowded))
    yield rows.within(group, f"{some:,} waiting: RSS over an empty yard", over_some, "MiB", 20)
    yield rows.at_most(group, f"{many:,} waiting: RSS over an empty yard", over_many, "MiB",
                       f"{some:,} waiting", over_some, 10)
    for waiting, sight in ((0, empty), (some, queued), (many, crowded)):
        yield rows.told(group, f"{waiting:,} waiting: RSS of the yard", sight["steady"], "MiB")
        yield rows.told(group, f"{waiting:,} waiting: its peak", sight["peak"], "MiB")
        yield rows.told(group, f"{waiting:,} waiting: RSS of keeper and guard", sight["keeper"], "MiB")
    yield rows.told(group, f"{some:,} waiting: yard + keeper + guard", queued["steady"] + queued["keeper"],
                    "MiB", "GNU parallel in all", gnu_parallel_memory(shop, some))
    for waiting, sight in ((some, queued), (many, crowded)):
        yield rows.within(group, f"{waiting:,} waiting: status", sight["status"], "ms", 50)


def cost_rows(shop, few, some, many):
    """Time for each task of a run of few, some and many; the many only once, it takes a minute."""
    def run_of(count):
        return lambda: yard.measure(shop, ["/bin/true"], count, SLOTS)

    costs = harness.interleaved(shop.rounds(5), {"few": run_of(few), "some": run_of(some)})
    costs |= harness.interleaved(1, {"many": run_of(many)})
    # The machine may have changed meanwhile: the few are measured on both sides of the many.
    costs["few"] += harness.interleaved(shop.rounds(4), {"few": run_of(few)})["few"]
    for name, count in (("some", some), ("many", many)):
        yield rows.at_most(yard.GROUP, f"{count:,} x true: time a task",
                           1000 * harness.median_wall(costs[name]) / count, "ms",
                           f"{few:,} x true", 1000 * harness.median_wall(costs["few"]) / few, 1.5)
        yield rows.told(yard.GROUP, f"{count:,} x true: CPU a task",
                        1000 * harness.median_cpu(costs[name]) / count, "ms",
                        f"{few:,} x true", 1000 * harness.median_cpu(costs["few"]) / few)


def run(shop):
    few, some, many = shop.size((1_000, 10_000, 100_000), tiny=(10, 20, 40))
    yield from memory_rows(shop, some, many)
    yield from cost_rows(shop, few, some, many)
