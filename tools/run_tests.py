#!/usr/bin/python3
"""Runs the tests of a build directory: `tools/run_tests.py build/dev`.

Unit tests are pure or own their clock, so each has one attempt. Tests that start processes, and the examples, run all at
once; those that fail then run again, one at a time, up to twice. A test that needed another attempt is listed as flaky:
it passes, and is to be examined. More than 25 failures are no accident and are not repeated.

The exit code is 0 when every test passed and no process still runs a program of the build directory. The last line of the
output is "N passed, N failed".
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml

ATTEMPTS = 3
FAILURES_MAX = 25
NAMED_MAX = 8  # The names of failed tests must be within the last ten lines.
LEFT_BEHIND_PATIENCE_S = 10

# A test without a label is a unit test, so that a new one cannot drop out.
LABELS = ("process", "e2e", "examples", "slow", "bench")


def labels(*names):
    return f"^({'|'.join(names)})$"


def run(build, selection, jobs, timeout_s):
    """Runs the selected tests once. Returns the outcome of each by name: "passed", "skipped" or "failed"."""
    with tempfile.TemporaryDirectory() as directory:
        report = pathlib.Path(directory, "report.xml")
        command = ["ctest", "--test-dir", build, "--output-on-failure", "--no-tests=error", "-j", str(jobs),
                   "--timeout", str(timeout_s), "--output-junit", report, *selection]
        subprocess.run(command, check=False, stdin=subprocess.DEVNULL)
        if not report.exists():
            return {}
        return {case.get("name"): outcome(case) for case in xml.parse(report).getroot().iter("testcase")}


def outcome(case):
    skipped = case.find("skipped")
    if case.get("status") == "run":
        return "passed"
    # "notrun" is also the status of a test whose program is missing.
    return "skipped" if skipped is not None and skipped.get("message", "").startswith("SKIP_") else "failed"


def failed_in(outcomes):
    return [name for name, what in outcomes.items() if what == "failed"]


def by_name(names):
    escaped = (re.sub(r"([][.*+?()|^$\\])", r"\\\1", name) for name in names)
    return ["-R", f"^({'|'.join(escaped)})$"]


def repeat(build, outcomes, timeout_s):
    """Runs what failed again, alone. Updates the outcomes; returns the number of attempts of those that passed then."""
    attempts = {}
    for attempt in range(2, ATTEMPTS + 1):
        names = failed_in(outcomes)
        if not names:
            break
        print(f"\n== attempt {attempt} of {ATTEMPTS}: {len(names)} failed", flush=True)
        again = run(build, by_name(names), 1, timeout_s)
        if set(again) != set(names):
            sys.exit(f"run_tests: {len(names)} tests were to run again, and {len(again)} did")
        outcomes.update(again)
        attempts.update({name: attempt for name in names if again[name] != "failed"})
    return attempts


def left_behind(build):
    """The processes that run a program of the build directory, as "pid: command line"."""
    found = {}
    for link in pathlib.Path("/proc").glob("[0-9]*/exe"):
        try:
            program = os.readlink(link)
            words = link.with_name("cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            continue  # It has exited, or belongs to another user.
        if program.startswith(str(build) + "/"):
            found[link.parent.name] = words or program
    return [f"{pid}: {words}" for pid, words in found.items()]


def wait_for_nobody(build):
    deadline = time.monotonic() + LEFT_BEHIND_PATIENCE_S
    while (found := left_behind(build)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return found


def main(words=None):
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("build", type=pathlib.Path, help="build directory")
    options.add_argument("--all", action="store_true", help="also the tests labelled slow and bench")
    options.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="tests at once (default: %(default)s)")
    options.add_argument("--timeout", type=int, default=120, help="seconds for a test that names no time of its own (default: %(default)s)")
    given = options.parse_args(words)
    build = given.build.resolve()

    print("== unit tests", flush=True)
    unit = run(build, ["-LE", labels(*LABELS)], given.jobs, given.timeout)
    print("\n== tests that start processes", flush=True)
    selection = ["-L", labels(*LABELS)] if given.all else ["-L", labels("process", "e2e", "examples"), "-LE", labels("slow", "bench")]
    others = run(build, selection, given.jobs, given.timeout)
    if not unit or not others:
        sys.exit("run_tests: ctest ran no test of one kind")

    flaky = {}
    if len(failed_in(others)) <= FAILURES_MAX:
        flaky = repeat(build, others, given.timeout)
    outcomes = unit | others
    failed = failed_in(outcomes)
    left = wait_for_nobody(build)

    print()
    for name, attempts in sorted(flaky.items()):
        print(f"flaky: {name} ({attempts} of {ATTEMPTS})")
    for name in sorted(name for name, what in outcomes.items() if what == "skipped"):
        print(f"skipped: {name}")
    for process in left[:NAMED_MAX]:
        print(f"still running: {process}")
    if len(failed) > NAMED_MAX:
        print(f"failed: {len(failed) - NAMED_MAX} more")
    for name in sorted(failed)[:NAMED_MAX]:
        print(f"failed: {name}")
    print(f"{list(outcomes.values()).count('passed')} passed, {len(failed)} failed")
    return 1 if failed or left else 0


if __name__ == "__main__":
    sys.exit(main())
