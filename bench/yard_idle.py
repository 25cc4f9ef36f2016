"""What the yard does while its tasks train and nothing happens: look once a second, and sleep."""
import pathlib
import statistics
import time

import harness
import rows
import yard

SAMPLE_SECONDS = 1


def wakeups(pid):
    """How often the process slept and woke so far, in all its threads."""
    return sum(harness.status_field(f"{pid}/task/{thread.name}", "voluntary_ctxt_switches")
               for thread in pathlib.Path(f"/proc/{pid}/task").iterdir())


def run(shop):
    seconds = shop.size(10, tiny=1)
    counts = {"yard": [], "keeper": []}
    for _ in range(shop.rounds(5)):
        with yard.Live(shop, ["/bin/sleep", "3600"], count=2, slots=2) as live:
            time.sleep(shop.size(2, tiny=0.2))
            before = wakeups(live.pid), wakeups(live.keeper)
            time.sleep(seconds)
            counts["yard"].append(wakeups(live.pid) - before[0])
            counts["keeper"].append(wakeups(live.keeper) - before[1])
        harness.say(f"idle for {seconds} s: yard woke {counts['yard'][-1]} times, "
                    f"keeper {counts['keeper'][-1]}")
    samples = seconds // SAMPLE_SECONDS
    figure = f"2 tasks run, {seconds} s: wake-ups of the"
    yield rows.within(yard.GROUP, f"{figure} yard", statistics.median(counts["yard"]), "times",
                      samples + 2)
    yield rows.within(yard.GROUP, f"{figure} keeper", statistics.median(counts["keeper"]), "times",
                      2)
