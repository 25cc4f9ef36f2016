#!/usr/bin/python3
"""Plays scenarios of faults at random moments against the built program ($TRAINYARD), and prints a table of what gave way."""
import argparse
import collections
import sys
import unittest

from disks import Disks
from frames import Frames
from journals import Journals
from kills import Kills
from scenario import COLUMNS
from shells import Shells
from users import Users

SCENARIOS = {kind.__name__.lower(): kind for kind in (Kills, Journals, Frames, Disks, Users, Shells)}


def play(name, seeds):
    """One row of the table, and whether all that must be 0 was."""
    counts, failed, skipped = collections.Counter(), 0, ""
    for seed in seeds:
        scenario, result = SCENARIOS[name](seed), unittest.TestResult()
        scenario.run(result)
        if result.skipped:
            skipped = result.skipped[0][1]
            break
        counts += scenario.counts
        for text in [*scenario.told, *(text for _, text in result.errors + result.failures)]:
            print(f"SEED={seed} scripts/chaos {name}: {text}", flush=True)
        failed += bool(scenario.told or not result.wasSuccessful())
    row = f"{len(seeds):>5}  " + "  ".join(f"{counts[column]:>{len(column)}}" for column in COLUMNS)
    return f"{name:<9} " + (f"skipped: {skipped}" if skipped else f"{row}  {f'FAILED: {failed} seeds' if failed else 'ok'}"), not failed


def main():
    options = argparse.ArgumentParser(description="Plays scenarios of faults.")
    options.add_argument("--seeds", type=int, help="number of seeds of each scenario, from 1 on (default: those of make check)")
    options.add_argument("--seed", type=int, help="play this seed alone")
    options.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=", ".join(SCENARIOS))
    given = options.parse_args()
    if unknown := [name for name in given.scenarios if name not in SCENARIOS]:
        options.error(f"unknown scenario '{unknown[0]}' ({', '.join(SCENARIOS)})")
    rows, all_held = [], True
    for name in given.scenarios or SCENARIOS:
        print(f"-- {name}", flush=True)
        seeds = range(1, (given.seeds or SCENARIOS[name].seeds) + 1) if given.seed is None else [given.seed]
        row, held = play(name, seeds)
        rows.append(row)
        all_held &= held
    print(f"\n{'scenario':<9} {'seeds':>5}  " + "  ".join(COLUMNS))
    print("\n".join(rows))
    return 0 if all_held else 1


if __name__ == "__main__":
    sys.exit(main())
