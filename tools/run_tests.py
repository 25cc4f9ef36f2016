#!/usr/bin/python3
"""Runs the tests of a build directory: `tools/run_tests.py build/dev`.

Unit tests are pure or own their clock, so each has one attempt. Tests that start processes, and the examples, run all at
once; those that fail then run again, one at a time, up to twice. A test that needed another attempt is listed as flaky:
it passes, and is to be examined. More than 25 failures, of unit tests or of the others, are no accident: they end the run.

The exit code is 0 when every test passed, each file and program of tests ran at least one, and no process of a test is
left. What the tests of a pass with failures have left is killed and listed, as a test that fails may leave something; that
of a test that passed fails the run. A process without the environment of its test is found only if its program is in the
build directory, which the interpreter of a script is not. Such a process is listed, but not killed, as a user may have
started it meanwhile; the same when a signal ends the run.
The last line of the output is "N passed, N failed", also after a signal. After a failure, make adds a line of its own to the
standard error of `make test` and `make ci`, which no recipe can prevent; scripts/ci and this script end with that of the tests.
"""
import argparse
import contextlib
import fcntl
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import typing
import xml.etree.ElementTree as xml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests/e2e"))
from environment import clean_environment  # noqa: E402

ATTEMPTS = 3
FAILURES_MAX = 25
COUNT_EVERY_S = 5  # Failures, while tests run: many that hang would take hours.
REPEATS_MAX_S = 1200  # All of them together: 25 tests that hang would take hours.
NAMED_MAX = 8  # The names of failed tests must be within the last ten lines.
WORDS_MAX = 200  # Of a command line that is shown.
LEFT_BEHIND_PATIENCE_S = 10
CTEST_MEMORY_MAX = 2**30  # Of ctest itself, which keeps all output of a test until its end.
# A variable that tests have, and all that they start. What an earlier run has left may still start processes: it has
# another value.
MARK = "RUN_TESTS", f"{os.getpid()}.{time.time_ns()}"
NAME = "RUN_TESTS_NAME"  # The variable in which a test may have its name.
ENDING = signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT
MISSING = "ctest is missing: install the package cmake"
# What googletest and unittest print, and pass, when they have run nothing.
RAN_NOTHING = re.compile(r"^(?:Ran 0 tests in \S+\n\nOK|\[=+\] Running 0 tests from .*)$", re.MULTILINE)
# What ctest prints as a test starts and ends.
STARTED = re.compile(r"^ +Start +(\d+): (.*)$", re.MULTILINE)
ENDED = re.compile(r"^ *\d+/\d+ Test +#(\d+): (.*?)(?:(Passed|\*\*\*Skipped|\*\*\*Not Run \(Disabled\)) +[\d.]+ sec)?$", re.MULTILINE)
RAN_AND_SKIPPED = re.compile(r"^Ran (\d+) tests? in \S+\n\nOK \(skipped=(\d+)\)$", re.MULTILINE)
# Why, as googletest prints it and as unittest -v does.
WHY_SKIPPED = re.compile(r"^\S+:\d+: Skipped\n(.*)$|^.* \.\.\. skipped ['\"](.*)['\"]$", re.MULTILINE)

# A test without a label is a unit test, so that a new one cannot drop out.
LABELS = ("process", "e2e", "examples", "slow", "bench")


class Broken(Exception):
    """The tests could not be run as they should be; not that one of them failed. Has what ctest printed until then."""

    running = ()
    outcomes = {}
    signal = 0  # The one that has ended the run.


def labels(*names):
    return f"^({'|'.join(names)})$"


def names_of_tests(build):
    """The names of the tests of the build. Raises Broken where one could not run again, alone, by its name and within a time."""
    try:
        listed = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], stdin=subprocess.DEVNULL, capture_output=True)
        tests = json.loads(listed.stdout)["tests"]
    except FileNotFoundError as error:
        raise Broken(MISSING) from error
    except (ValueError, KeyError) as error:
        raise Broken(f"ctest cannot list the tests: {' '.join(listed.stderr.decode(errors='replace').split())}") from error
    for test in tests:
        name, properties = test["name"], {each["name"]: each["value"] for each in test.get("properties", ())}
        if not name.isprintable() or "\ufffd" in name:  # The report of ctest has another name.
            raise Broken(f"the name of a test must be printable UTF-8, and {name!a} is not")
        if properties.get("TIMEOUT", 1) < 1:
            raise Broken(f"the test '{name}' has no limit: TIMEOUT must be at least 1 s")
        if properties.get("FIXTURES_REQUIRED"):
            raise Broken(f"the test '{name}' has FIXTURES_REQUIRED: its fixtures would run again, too")
    return {test["name"] for test in tests}


def run(build, known, selection, jobs, timeout_s, skips, within_s=None):
    """Runs the selected of the known tests once. Returns the outcome of each by name: "passed", "skipped", "empty" or "failed".

    Updates `skips`, which has by name why a test skipped something."""
    with tempfile.TemporaryDirectory() as directory:
        report, log = pathlib.Path(directory, "report.xml"), pathlib.Path(directory, "log")
        command = ["ctest", "--test-dir", build, "--output-on-failure", "--no-tests=error", "-j", str(jobs),
                   "--timeout", str(timeout_s), "--output-junit", report, "--output-log", log, "--test-output-truncation", "head",
                   "--test-output-size-passed", "1000000", *selection]
        try:
            code = call(command, dict([*os.environ.items(), MARK]), log, known, within_s)
            cases = list(xml.parse(report).getroot().iter("testcase"))
        except Broken as error:
            error.running, error.outcomes = read_log(log, known)
            raise
        except FileNotFoundError as error:
            raise Broken(MISSING if error.filename == "ctest" else "ctest has written no report") from error
        except xml.ParseError as error:
            raise Broken(f"the report of ctest cannot be read: {error}") from error
    if not cases:
        raise Broken("ctest ran no test of one kind")
    outcomes = {}
    for case in cases:
        name = case.get("name")
        if not name or name in outcomes:
            raise Broken(f"two tests are called '{name}'" if name else "a test has no name")
        outcomes[name] = outcome(case)
        if whys := [text for why in WHY_SKIPPED.findall(case.findtext("system-out", "")) if (text := "".join(why).strip())]:
            skips[name] = sorted(set(whys))
    if (code == 0) != (not failed_in(outcomes)):
        raise Broken(f"ctest exited with code {code}, and its report names {len(failed_in(outcomes))} failed tests")
    return outcomes


def call(command, environment, log, known, within_s):
    """The exit code of ctest. Leaves nothing of its session running when it, or this process, is told to end."""
    process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, start_new_session=True)
    until = time.monotonic() + (float("inf") if within_s is None else within_s)
    count_at = time.monotonic()
    try:
        while not (end := os.waitid(os.P_PID, process.pid, os.WEXITED | os.WSTOPPED | os.WNOHANG | os.WNOWAIT)):
            if time.monotonic() > until:
                raise Broken(f"the repeats took more than {REPEATS_MAX_S} s")
            if memory_of(process.pid) > CTEST_MEMORY_MAX:
                raise Broken(f"the output of a test fills the memory of ctest: {loudest_child_of(process.pid)}")
            if time.monotonic() > count_at:
                count_at = time.monotonic() + COUNT_EVERY_S
                refuse_too_many(read_log(log, known)[1])
            time.sleep(0.05)
        if end.si_code != os.CLD_EXITED:  # A test may kill or stop its process group or its parent.
            raise Broken(f"signal {end.si_status} ({signal.strsignal(end.si_status)}) "
                         f"{'stopped' if end.si_code == os.CLD_STOPPED else 'ended'} ctest")
        return end.si_status
    finally:
        if process.poll() is None or process.returncode < 0:  # A ctest that a signal ended leaves its tests.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def memory_of(pid):
    return int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def loudest_child_of(pid):
    """The command of the child that has written most, with what it has started."""
    with contextlib.suppress(OSError, ValueError):
        return words_of(max(children_of(pid), key=written_by))
    return "it has exited"


def written_by(pid):
    with contextlib.suppress(OSError):
        written = int(re.search(r"^wchar: (\d+)$", pathlib.Path(f"/proc/{pid}/io").read_text(), re.MULTILINE)[1])
        return written + sum(map(written_by, children_of(pid)))
    return 0  # It has exited, or belongs to another user.


def children_of(pid):
    return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def words_of(pid):
    """The beginning of the command line of a process."""
    return " ".join(pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").split())[:WORDS_MAX]


def read_log(log, known):
    """The names of the tests that were running, and the outcomes of those that had ended.

    By a log that ctest had no time to rename. A failed test may have run ctest itself, whose lines are then in the log, too:
    only the tests that are `known` count, by their numbers and names."""
    text = max((path.read_text(errors="replace") for path in log.parent.glob(f"{log.name}*")), key=len, default="")
    names = {number: name for number, name in STARTED.findall(text) if name in known}
    outcomes = {names.pop(number): {"Passed": "passed", "": "failed"}.get(what, "skipped")
                for number, line, what in ENDED.findall(text) if number in names and line.startswith(f"{names[number]} .")}
    return sorted(names.values()), outcomes


def outcome(case):
    if case.get("status") == "run":
        output = case.findtext("system-out", "")
        if RAN_NOTHING.search(output):
            return "empty"
        match = RAN_AND_SKIPPED.search(output)
        return "skipped" if match and int(match[1]) <= int(match[2]) else "passed"
    # "notrun" is also the status of a test whose program is missing.
    skipped = case.find("skipped")
    by_itself = skipped is not None and skipped.get("message", "").startswith("SKIP_")
    return "skipped" if by_itself or case.get("status") == "disabled" else "failed"


def programs_without_tests(build):
    """The programs in which gtest_discover_tests() has found no test."""
    return [path.name.partition("[")[0] for path in build.rglob("*_tests.cmake") if "add_test(" not in path.read_text()]


def failed_in(outcomes):
    return [name for name, what in outcomes.items() if what == "failed"]


def refuse_too_many(outcomes):
    if len(failed_in(outcomes)) > FAILURES_MAX:
        raise Broken(f"more than {FAILURES_MAX} tests failed: the others did not run")


def by_name(names):
    escaped = (re.sub(r"([][.*+?()|^$\\])", r"\\\1", name) for name in names)
    return ["-R", f"^({'|'.join(escaped)})$"]


def repeat(build, known, outcomes, timeout_s, before, skips, flaky, killed):
    """Runs what failed again, alone. Updates the outcomes, in `flaky` the number of attempts of those that passed then, and
    in `killed` the processes that would have disturbed them."""
    until = time.monotonic() + REPEATS_MAX_S
    for attempt in range(2, ATTEMPTS + 1):
        names = failed_in(outcomes)
        if not names:
            return
        wait_until_none_is_left(build, before)  # That of a test that passed may be about to exit.
        for pid, process in kill_marked(build, before).items():
            killed[pid] = process._replace(is_leak=process.test not in ("", *names))
        print(f"\n== attempt {attempt} of {ATTEMPTS}: {len(names)} failed", flush=True)
        again = run(build, known, by_name(names), 1, timeout_s, skips, until - time.monotonic())
        if set(again) != set(names):
            raise Broken(f"{len(names)} tests were to run again, and {len(again)} did")
        outcomes.update({name: what for name, what in again.items() if what in ("passed", "failed")})
        flaky.update({name: attempt for name in names if again[name] == "passed"})


class Process(typing.NamedTuple):
    words: str
    is_marked: bool  # A test has started it, for certain.
    test: str  # That test, where it has told its name.
    is_leak: bool = False  # That test passed.


def left_behind(build, before):
    """The processes that tests have left, by pid; not those `before`.

    By their environment, as the program may be a shell, and the working directory and the root any; and by a program of the
    build directory, as one that was started through ssh has not that environment."""
    found = {}
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            program = os.readlink(process / "exe")
            environment = dict(each.partition(b"=")[::2] for each in (process / "environ").read_bytes().split(b"\0"))
            words = words_of(process.name)
        except OSError:
            continue  # It has exited, or belongs to another user.
        marked = environment.get(MARK[0].encode()) == MARK[1].encode()
        if (marked or program.startswith(f"{build}/")) and int(process.name) not in before:
            found[int(process.name)] = Process(words or program, marked, environment.get(NAME.encode(), b"").decode(errors="replace"))
    return found


def kill_marked(build, before):
    """Kills what tests have started until none is left, as a guard starts others, and returns it by pid."""
    found, deadline = {}, time.monotonic() + LEFT_BEHIND_PATIENCE_S
    while there := {pid: process for pid, process in left_behind(build, before).items() if process.is_marked}:
        for pid in there:
            with contextlib.suppress(ProcessLookupError):  # It may have exited by now.
                os.kill(pid, signal.SIGKILL)
        found = {**there, **found}
        if time.monotonic() > deadline:
            break
        time.sleep(0.1)
    return found


@contextlib.contextmanager
def killed_with_this_process(build):
    """Kills what tests have started also where SIGKILL ends this process, which can then do nothing: a child does."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.setsid()  # What kills this process may kill its group.
            for number in ENDING:
                signal.signal(number, signal.SIG_IGN)
            os.close(writing)
            os.read(reading, 1)  # Until no process has the other end.
            kill_marked(build, ())
        finally:
            os._exit(0)
    os.close(reading)
    try:
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(writing)


def wait_until_none_is_left(build, before):
    deadline = time.monotonic() + LEFT_BEHIND_PATIENCE_S
    while (found := left_behind(build, before)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return found


def run_all(build, given, before, outcomes, skips, flaky, killed):
    """Runs the tests into the last four, which have what is known also where this raises."""
    known = names_of_tests(build)
    outcomes.update(dict.fromkeys(programs_without_tests(build), "empty"))
    print("== unit tests", flush=True)
    outcomes.update(run(build, known, ["-LE", labels(*LABELS)], given.jobs, given.timeout, skips))
    refuse_too_many(outcomes)
    print("\n== tests that start processes", flush=True)
    selection = ["-L", labels(*LABELS)] if given.all else ["-L", labels("process", "e2e", "examples"), "-LE", labels("slow", "bench")]
    others = run(build, known, selection, given.jobs, given.timeout, skips)
    if twice := outcomes.keys() & others.keys():
        raise Broken(f"two tests are called '{min(twice)}'")
    try:
        if len(failed_in(others)) <= FAILURES_MAX:
            repeat(build, known, others, given.timeout, before, skips, flaky, killed)
    finally:
        outcomes.update(others)


def refuse(why):
    print(f"run_tests: {why}\n0 passed, 0 failed", flush=True)
    return 1


def at_least_one(text):
    if int(text) < 1:
        raise ValueError(text)
    return int(text)


def main(words=None):
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("build", type=pathlib.Path, help="build directory")
    options.add_argument("--all", action="store_true", help="also the tests labelled slow and bench")
    options.add_argument("--jobs", type=at_least_one, default=len(os.sched_getaffinity(0)), help="tests at once (default: %(default)s)")
    options.add_argument("--timeout", type=at_least_one, default=120, help="seconds for a test that names no time of its own (default: %(default)s)")
    given = options.parse_args(words)
    build = given.build.resolve()
    if not sys.stdout:
        sys.exit("run_tests: standard output is closed")
    sys.stdout.reconfigure(errors="backslashreplace")
    if not build.is_dir():
        return refuse(f"there is no directory {given.build}")
    clean_environment()

    def end(received, _):
        for number in ENDING:  # A second one would leave what tests have started.
            signal.signal(number, signal.SIG_IGN)
        broken = Broken(f"signal {received} ({signal.strsignal(received)}) ended the run")
        broken.signal = received
        raise broken

    for number in ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:  # As nohup does.
            signal.signal(number, end)
    with open(build / ".run_tests.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return refuse(f"another run of the tests uses {given.build}")
        before = left_behind(build, ()).keys()
        try:
            with killed_with_this_process(build):
                return run_and_report(build, given, before)
        except (Broken, OSError):  # Tests start processes in sessions of their own, which no signal to ctest reaches.
            kill_marked(build, before)
            raise


def name_some(what, names):
    if len(names) > NAMED_MAX:
        print(f"{what}: {len(names) - NAMED_MAX} more")
    for name in names[:NAMED_MAX]:
        print(f"{what}: {name}")


def run_and_report(build, given, before):
    """Runs the tests and prints their outcome. Returns the exit code."""
    outcomes, skips, flaky, killed, broken = {}, {}, {}, {}, None
    try:
        run_all(build, given, before, outcomes, skips, flaky, killed)
        wait_until_none_is_left(build, before)
    except Broken as error:
        broken = error
        outcomes.update(error.outcomes)
        (kill_marked if broken.signal else wait_until_none_is_left)(build, before)
    failed = failed_in(outcomes)
    empty = [name for name, what in outcomes.items() if what == "empty"]
    left = left_behind(build, before)
    passed = list(outcomes.values()).count("passed")
    if not passed and not broken:
        broken = Broken("no test has passed")

    print()
    for name, attempts in sorted(flaky.items()):
        print(f"flaky: {name} ({attempts} of {ATTEMPTS})")
    for name in sorted(name for name, what in outcomes.items() if what == "skipped" or name in skips):
        print(f"skipped{'' if outcomes[name] == 'skipped' else ' in part'}: {': '.join([name, *skips.get(name, ())])}")
    leaks = [process for process in killed.values() if process.is_leak]
    name_some("killed", [f"{pid}: {process.words}" for pid, process in killed.items() if not process.is_leak])
    name_some("left by a test that passed", [f"{process.test}: {process.words}" for process in leaks])
    name_some("still running", [f"{pid}: {process.words}" for pid, process in left.items()])
    name_some("ran no test", sorted(empty))
    name_some("was running", broken.running if broken else ())
    name_some("failed", sorted(failed))
    if broken:
        print(f"run_tests: {broken}")
    print(f"{passed} passed, {len(failed) + len(empty)} failed", flush=True)
    if broken and broken.signal:
        return 128 + broken.signal
    return 1 if failed or empty or left or leaks or broken else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Broken as error:  # A signal before the first test or after the last.
        sys.exit(128 + error.signal)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # What could not be written is not written again at the end.
        sys.exit(1 if isinstance(error, BrokenPipeError) else f"run_tests: {error}")
