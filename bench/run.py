"""Runs the benchmarks of one group or of all, prints one table and writes the rows to a file.

What holds and what does not is in the table; the exit code says whether all of it could be measured.
"""
import argparse
import signal
import sys

import daily_chain
import daily_claims
import daily_submit
import daily_tables
import gpu_forecast
import gpu_late
import gpu_makespan
import gpu_sampling
import harness
import machines_agents
import night_sharing
import pipeline_async
import pipeline_events
import pipeline_steps
import ranks_life
import ranks_tasks
import rows
import tasks_library
import tasks_python
import workers_events
import workers_nats
import workers_together
import yard_before
import yard_idle
import yard_late
import yard_queue
import yard_scheduler
import yard_spawn
import yard_submit
from night import caps as night_caps
from night import estimates as night_estimates

# The figures of each group, in the order of the table. Empty: its part of the program is not there.
GROUPS = {
    "yard": {"spawn": yard_spawn, "queue": yard_queue, "scheduler": yard_scheduler,
             "idle": yard_idle, "late": yard_late, "submit": yard_submit, "before": yard_before},
    "tasks": {"library": tasks_library, "python": tasks_python},
    "gpu": {"makespan": gpu_makespan, "late": gpu_late, "sampling": gpu_sampling,
            "forecast": gpu_forecast},
    "pipeline": {"steps": pipeline_steps, "events": pipeline_events, "async": pipeline_async},
    "ranks": {"tasks": ranks_tasks, "life": ranks_life},
    "workers": {"events": workers_events, "nats": workers_nats, "together": workers_together},
    "machines": {"agents": machines_agents},
    "daily": {"claims": daily_claims, "submit": daily_submit, "tables": daily_tables, "chain": daily_chain},
    "night": {"estimates": night_estimates, "caps": night_caps, "sharing": night_sharing},
}


def options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--group", default="all", help="all, or one of: " + ", ".join(GROUPS))
    parser.add_argument("--figure", help="one figure of the group: spawn, queue, ...")
    parser.add_argument("--trainyard", required=True, help="the program to measure")
    parser.add_argument("--tools", required=True, help="where the benchmarks' own programs are")
    parser.add_argument("--results", help="the file that the rows go to, beside the table")
    parser.add_argument("--directory", help="where to make the directory for everything written")
    parser.add_argument("--tiny", action="store_true",
                        help="small sizes, once: shows that it still runs, measures nothing")
    chosen = parser.parse_args()
    if chosen.group not in ("all", *GROUPS):
        parser.error(f"no group '{chosen.group}'; there are all, {', '.join(GROUPS)}")
    figures = GROUPS.get(chosen.group, {})
    if chosen.figure and chosen.figure not in figures:
        parser.error(f"no figure '{chosen.figure}' in group '{chosen.group}'"
                     + (f"; there are {', '.join(figures)}" if figures else ""))
    return chosen


def measure(shop, group, only):
    """The rows of a group, and whether every figure could be measured."""
    measured, well = [], True
    for name, figure in GROUPS[group].items():
        if only in (None, name):
            harness.say(f"{group}: {name}")
            try:
                measured += figure.run(shop)
            except (harness.BenchmarkError, OSError) as fault:
                harness.say(f"{group}: {name}: FAILED: {fault}")
                well = False
    return measured, well


def main():
    chosen = options()
    # TERM cleans up as Ctrl-C does.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    groups = list(GROUPS) if chosen.group == "all" else [chosen.group]
    found, well = [], True
    with harness.Workshop(chosen.trainyard, chosen.tools, chosen.tiny, chosen.directory) as shop:
        for group in groups:
            if not GROUPS[group]:
                harness.say(f"group '{group}' has no benchmarks yet")
            measured, all_measured = measure(shop, group, chosen.figure)
            found += measured
            well = well and all_measured
    if found:
        print(rows.table(found))
        judged = [row for row in found if row.holds is not None]
        print(f"\n{sum(row.holds for row in judged)} of {len(judged)} goals hold"
              + (" (tiny: these are no measurements)" if chosen.tiny else ""))
    if chosen.results and well:
        rows.write(chosen.results, found, [group for group in groups if GROUPS[group]])
    return 0 if well else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
