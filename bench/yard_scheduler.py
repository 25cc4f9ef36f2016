"""What the yard itself takes for a great many tasks, simulated from the first to the last."""
import json
import statistics

import harness
import rows
import yard

SHAPES = 100


def simulate(shop, tasks, shapes, journal=None):
    """Runs the simulation once; returns what it says about itself."""
    command = [shop.tool("scheduler_core"), tasks, shapes] + ([1, journal] if journal else [])
    process = shop.start(command, "scheduler")
    if process.wait(600) != 0:
        raise harness.BenchmarkError(f"scheduler_core: {harness.complaint(process)}")
    said = json.loads((process.place / "out").read_text())
    # A task has a row when it is begun and one when it has ended, at the least.
    if said["rows"] < 2 * tasks or said["reasons"] == 0:
        raise harness.BenchmarkError(f"rows or reasons are missing: {said}")
    harness.say(f"{tasks:,} tasks{' with a journal' if journal else ''}: {said['seconds']:.3f} s")
    return said


def run(shop):
    counts = shop.size([1_000, 10_000, 100_000, 1_000_000], tiny=[200, 400])
    shapes = shop.size(SHAPES, tiny=5)
    seconds = {count: [] for count in counts}
    for _ in range(shop.rounds(5)):
        for count in counts:
            seconds[count].append(simulate(shop, count, shapes)["seconds"])
    wall = {count: statistics.median(several) for count, several in seconds.items()}
    few, most = counts[0], counts[-1]
    yield rows.within(yard.GROUP, f"{most:,} tasks in {shapes} shapes simulated", wall[most], "s",
                      12)
    for count in counts[1:]:
        yield rows.at_most(yard.GROUP, f"{count:,} tasks simulated: time a task",
                           1e6 * wall[count] / count, "us", f"{few:,} tasks",
                           1e6 * wall[few] / few, 1.5)
    written = simulate(shop, most, shapes, journal=shop.fresh("journal") / "journal.sqlite")
    yield rows.told(yard.GROUP, f"{most:,} tasks simulated, written to a journal",
                    written["seconds"], "s")
