"""Runs the yard for the benchmarks: job files, the command line, and a live yard to look at."""
import contextlib
import os
import signal
import subprocess

import harness

GROUP = "yard"


def job(command, count, memory="8MiB"):
    """A job file: `count` tasks by a matrix, all the same, which only the slots hold back."""
    words = ", ".join(f'"{word}"' for word in command)
    return (f"name: bench\n"
            f"groups:\n"
            f"  - name: all\n"
            f"    matrix: {{i: 0..{count - 1}}}\n"
            f"    cpus: 0\n"
            f"    memory: {memory}\n"
            f"    tasks:\n"
            f"      - command: [{words}]\n")


def run_command(shop, text, settings, program=None):
    """The command line of a run of the job file `text` into a fresh run-dir, and that run-dir; by
    another program than the one that is measured, too. What else runs on the machine must not hold
    our tasks back: the peers do not look at it."""
    place = shop.fresh("job")
    (place / "job.yaml").write_text(text)
    all_settings = {"utilization-limit.cpu": "1", **settings}
    options = [word for key, value in all_settings.items() for word in ("--set", f"{key}={value}")]
    run_dir = place / "run"
    return [program or shop.trainyard, "run", place / "job.yaml", "--run-dir", run_dir, *options], run_dir


def measure(shop, command, count, slots, program=None):
    """The cost of `count` tasks at `slots` at once. Looks that they were really run."""
    text = job(command, count)
    line, run_dir = run_command(shop, text, {"scheduler.max-process": slots}, program)
    cost = shop.measure(line, "trainyard")
    logs = sum(1 for entry in os.scandir(run_dir / "all") if
               os.path.exists(os.path.join(entry.path, "stdout.log")))
    if logs != count:
        raise harness.BenchmarkError(f"{logs} of {count} tasks have a log")
    return cost


class Live:
    """A yard whose tasks run on, to be looked at from outside; ended when the block ends."""

    def __init__(self, shop, command, count, slots, program=None):
        self._command, self.run_dir = run_command(
            shop, job(command, count), {"scheduler.max-process": slots}, program)
        self._shop = shop
        self._slots = min(slots, count)
        self._program = command[0]

    def __enter__(self):
        self._process = self._shop.start(self._command, "live")
        self.pid = self._process.pid
        harness.wait_until(self._all_run, "for the tasks to run", seconds_max=300)
        return self

    # The guard starts the keeper; what else the yard starts, as who asks git, has no such child.
    @property
    def guard(self):
        return harness.descendants(self.pid)[self.keeper]

    @property
    def keeper(self):
        named = [pid for pid in harness.descendants(self.pid) if self._name_of(pid) == "trainyard-keep"]
        if len(named) != 1:
            raise harness.BenchmarkError(f"the yard has {len(named)} keepers")
        return named[0]

    @staticmethod
    def _name_of(pid):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/comm") as name:
            return name.read().strip()
        return ""

    def _all_run(self):
        if self._process.poll() is not None:
            raise harness.BenchmarkError(f"the yard ended: {harness.complaint(self._process)}")
        running = 0
        for pid in harness.descendants(self.pid):
            with contextlib.suppress(OSError):
                running += os.path.samefile(f"/proc/{pid}/exe", self._program)
        return running == self._slots

    def __exit__(self, *_):
        # Twice: at once, without the grace that tasks get.
        for _ in range(2):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGINT)
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            raise harness.BenchmarkError("the yard did not end within 60 s of Ctrl-C") from None
