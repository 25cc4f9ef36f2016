"""What every benchmark is made of: fresh directories, measured commands, interleaved rounds.

A command is measured with all its descendants, those included that detached themselves: this
process is the reaper of every orphan below it, so their CPU time arrives here when they are gone.
"""
import contextlib
import ctypes
import dataclasses
import os
import pathlib
import resource
import select
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

PR_SET_CHILD_SUBREAPER = 36
# Before each measured command, so that what the last one left to do is not charged to the next.
PAUSE_SECONDS = 0.5
ORPHAN_SECONDS_MAX = 30  # How long a measured command's leftovers may live on after it.


class BenchmarkError(Exception):
    """Something did not run as it should have; what it measured would be worth nothing."""


@dataclasses.dataclass(frozen=True)
class Cost:
    """What one command took: seconds of wall time, and of CPU in all its processes."""
    wall: float
    cpu: float


def say(text):
    """Progress, for whoever waits."""
    print(f"bench: {text}", file=sys.stderr, flush=True)


def descendants(pid):
    """All processes below `pid`, as {pid: parent}. What ends meanwhile is left out."""
    parents = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                # The name in brackets may hold anything; the fields after it are numbers.
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                parents[int(entry.name)] = int(fields[1])
    below, grew = {pid}, True
    while grew:
        more = {child for child, parent in parents.items() if parent in below} - below
        below |= more
        grew = bool(more)
    return {child: parents[child] for child in below if child != pid}


def status_field(pid, name):
    """A number out of /proc/PID/status: kB for memory, a count for the others."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1])
    raise BenchmarkError(f"/proc/{pid}/status has no {name}")


class Workshop:
    """Where benchmarks run: the programs, a directory for everything they write, and the rule that
    nothing they started outlives it. Use it with `with`."""

    def __init__(self, trainyard, tools, tiny=False, directory=None):
        self.trainyard = pathlib.Path(trainyard).resolve()
        self.tools = pathlib.Path(tools).resolve()
        self.tiny = tiny
        self._root = pathlib.Path(tempfile.mkdtemp(prefix="trainyard-bench-", dir=directory))
        self._directories = 0
        self._started = []
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._end_all()
        # Only now: deleting log directories between rounds makes ext4 several times slower.
        shutil.rmtree(self._root, ignore_errors=True)

    def rounds(self, usual):
        """How often to measure: once when it only has to be shown that it still works."""
        return 1 if self.tiny else usual

    def size(self, usual, tiny):
        return tiny if self.tiny else usual

    def fresh(self, name):
        """A new empty directory, never used before."""
        self._directories += 1
        path = self._root / f"{self._directories:04}-{name}"
        path.mkdir()
        return path

    def keep(self, path):
        """Takes a directory out of what is removed at the end. Returns where it is from then on."""
        kept = pathlib.Path(tempfile.mkdtemp(prefix=f"trainyard-{path.name}-", dir=self._root.parent))
        return shutil.move(path, kept)

    def tool(self, name):
        path = self.tools / name
        if not path.exists():
            raise BenchmarkError(f"no {path}: build it first (cmake --build ... --target {name})")
        return str(path)

    def start(self, command, name, environment=None, stdin=None):
        """Starts a command in a directory and session of its own; `process.place` is where its
        output is."""
        place = self.fresh(name)
        with contextlib.ExitStack() as files:
            out = files.enter_context(open(place / "out", "wb"))
            err = files.enter_context(open(place / "err", "wb"))
            source = files.enter_context(open(stdin or os.devnull, "rb"))
            process = subprocess.Popen(
                [str(word) for word in command], cwd=place, stdin=source, stdout=out, stderr=err,
                env={**os.environ, **(environment or {})}, start_new_session=True)
        process.place = place
        self._started = [other for other in self._started if other.returncode is None] + [process]
        return process

    def kill(self, process):
        """Ends a started process with all its descendants, at once."""
        for pid in [process.pid, *descendants(process.pid)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()

    def measure(self, command, name, environment=None, stdin=None, seconds_max=600):
        """Runs a command to its end, and that of all its descendants. Returns its Cost."""
        time.sleep(self.size(PAUSE_SECONDS, tiny=0))
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        began = time.monotonic()
        process = self.start(command, name, environment, stdin)
        # Popen.wait() with a limit looks every 50 ms, which is what some of these take in all.
        ending = os.pidfd_open(process.pid)
        try:
            ended, _, _ = select.select([ending], [], [], seconds_max)
        finally:
            os.close(ending)
        wall = time.monotonic() - began
        if not ended:
            raise BenchmarkError(f"{name} took more than {seconds_max} s")
        code = process.wait()
        self._reap_orphans(name)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if code != 0:
            raise BenchmarkError(f"{name} ended with {code}: {complaint(process)}")
        return Cost(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)

    def _reap_orphans(self, name):
        deadline = time.monotonic() + ORPHAN_SECONDS_MAX
        while time.monotonic() < deadline:
            try:
                if os.waitpid(-1, os.WNOHANG)[0] == 0:
                    time.sleep(0.005)
            except ChildProcessError:
                return
        raise BenchmarkError(f"{name} left processes behind: {sorted(descendants(os.getpid()))}")

    def _end_all(self):
        for _ in range(100):
            for pid in descendants(os.getpid()):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            try:
                while os.waitpid(-1, os.WNOHANG)[0] != 0:
                    pass
            except ChildProcessError:
                break
            time.sleep(0.01)
        for process in self._started:
            process.poll()


def complaint(process):
    """The last words of a process that was started with Workshop.start()."""
    text = (process.place / "err").read_text(errors="replace").strip()
    return text[-600:] or "it said nothing"


def interleaved(rounds, contestants):
    """Measures each of {name: function} `rounds` times, one after the other and each round from
    another one on, so that what else the machine does hits all alike. Returns {name: [Cost]}.
    A function that is None is a peer that is not installed: it has no costs."""
    costs = {name: [] for name in contestants}
    names = [name for name, function in contestants.items() if function]
    for number in range(rounds):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            costs[name].append(contestants[name]())
            say(f"round {number + 1} of {rounds}: {name}: {costs[name][-1].wall:.3f} s, "
                f"CPU {costs[name][-1].cpu:.3f} s")
    return costs


def median_wall(costs):
    return statistics.median(cost.wall for cost in costs) if costs else None


def median_cpu(costs):
    return statistics.median(cost.cpu for cost in costs) if costs else None


def wait_until(condition, what, seconds_max=60, every=0.02):
    """Waits until `condition()` is true, and returns what it returned."""
    deadline = time.monotonic() + seconds_max
    while time.monotonic() < deadline:
        if result := condition():
            return result
        time.sleep(every)
    raise BenchmarkError(f"waited {seconds_max} s in vain: {what}")
