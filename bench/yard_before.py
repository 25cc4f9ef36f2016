"""What the yard costs beside an older one: the program that TRAINYARD_BEFORE names, in the same run."""
import os
import pathlib
import statistics
import time

import harness
import rows
import yard

SLOTS = 2
SLEEP = ["/bin/sleep", "3600"]
SETTLE_SECONDS = 3
TIMES = 1.03  # The limit of each cost, as a multiple of the older program's.
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def cpu_ms(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return 1000 * (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def look(shop, program, waiting):
    """One yard with so many tasks waiting: what it took until two run and all is settled."""
    began = time.monotonic()
    with yard.Live(shop, SLEEP, SLOTS + waiting, SLOTS, program) as live:
        wall = time.monotonic() - began
        time.sleep(shop.size(SETTLE_SECONDS, tiny=0.2))
        return {"wall": 1000 * wall, "CPU": cpu_ms(live.pid),
                "RSS": harness.status_field(live.pid, "VmRSS") / 1024,
                "peak": harness.status_field(live.pid, "VmHWM") / 1024}


def waiting_rows(shop, programs, waiting):
    sights = {name: [] for name in programs}
    for number in range(shop.rounds(15)):
        names = list(programs) if number % 2 else list(programs)[::-1]
        for name in names:
            sights[name].append(look(shop, programs[name], waiting))
        harness.say(f"{waiting:,} waiting, pair {number + 1}: " + ", ".join(
            f"{name} {sights[name][-1]}" for name in programs))
    for what, unit in (("CPU", "ms"), ("RSS", "MiB"), ("peak", "MiB"), ("wall", "ms")):
        # Of a tiny yard the clock may have counted nothing.
        ours, before = (max(statistics.median(sight[what] for sight in sights[name]), 0.01) for name in programs)
        yield rows.at_most(yard.GROUP, f"{waiting:,} waiting: {what}", ours, unit, "before", before, TIMES)


def run(shop):
    before = os.environ.get("TRAINYARD_BEFORE")
    if not before:
        harness.say("yard: before: left out, as TRAINYARD_BEFORE names no older program")
        return
    programs = {"ours": shop.trainyard, "before": pathlib.Path(before).resolve()}
    count = shop.size(1_000, tiny=10)
    costs = harness.interleaved(shop.rounds(15), {
        name: lambda program=program: yard.measure(shop, ["/bin/true"], count, SLOTS, program)
        for name, program in programs.items()})
    for what, median in (("CPU", harness.median_cpu), ("wall", harness.median_wall)):
        yield rows.at_most(yard.GROUP, f"{count:,} x true: {what}", median(costs["ours"]), "s", "before",
                           median(costs["before"]), TIMES)
    yield from waiting_rows(shop, programs, shop.size(100_000, tiny=40))
