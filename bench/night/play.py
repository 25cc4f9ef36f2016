"""Plays nights: the yard, its tasks and what goes wrong, all of them real processes on made-up cards."""
import contextlib
import json
import os
import pathlib
import signal
import sqlite3
import sys
import time

import harness
from night import plan as planned

TASK = pathlib.Path(__file__).resolve().parent / "task.py"
FAKE_GPU = TASK.parent.parent.parent / "tests/fake_nvml"
sys.path.insert(0, str(FAKE_GPU))
import fake_gpu  # noqa: E402

GO_ON = 75  # Exit code: not all is done, nobody's fault.
RESUMES_MAX = 10
LEFT_SECONDS_MAX = 15  # What a killed yard leaves ends within its keeper's patience.
PYTHON = "/usr/bin/python3"


def children(pid):
    with contextlib.suppress(OSError):
        return [int(word) for word in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def child_called(pid, name):
    """The living child of that name, if there is one."""
    for child in children(pid):
        with contextlib.suppress(OSError):
            if pathlib.Path(f"/proc/{child}/comm").read_text().strip() == name and alive(child):
                return child
    return None


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def processes_of(run_dir):
    """Those living that know of the run by their environment."""
    sign = f"TRAINYARD_RUN_DIR={run_dir}".encode()
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if sign in path.read_bytes().split(b"\0") and alive(path.parent.name):
                found.append(int(path.parent.name))
    return found


class Place:
    """Where a job file has its runs: cards of its own, and what one run teaches the next."""

    def __init__(self, shop, plan, name, estimates):
        self.directory = shop.fresh(f"night-{plan.seed}").resolve()
        self.name, self.plan, self.estimates = name, plan, estimates
        self.shown = self.directory / "gpus.json"
        self.sockets = self.directory / "s"
        self.sockets.mkdir()
        self.job = self.directory / "night.yaml"
        self.job.write_text(planned.job(plan, estimates, [PYTHON, "-B", TASK]))
        driver = shop.tools.parent / "tests/fake_nvml"
        if not (driver / "libnvidia-ml.so.1").exists():
            raise harness.BenchmarkError(f"no made-up driver in {driver}")
        self.environment = {"LD_LIBRARY_PATH": str(driver), "TRAINYARD_FAKE_NVML": str(self.shown),
                            "XDG_RUNTIME_DIR": str(self.sockets), "PYTHONPATH": str(FAKE_GPU)}

    def show_empty_cards(self):
        self.shown.write_text(json.dumps({"devices": [
            {"uuid": f"GPU-{number}", "name": "Fake", "pci": f"00000000:0{number + 1}:00.0",
             "memory": planned.CARD_GB * planned.GB, "lost": False} for number in range(planned.CARDS)]}))

    def card(self, number):
        """A card, to be changed."""
        return _Card(self.shown, number)


class _Card(contextlib.ExitStack):
    def __init__(self, shown, number):
        super().__init__()
        self._shown, self._number = shown, number

    def __enter__(self):
        super().__enter__()
        return self.enter_context(fake_gpu.changed(self._shown))["devices"][self._number]


class Night:
    """One night. It goes on with each step() until that returns false; then what came of it is there."""

    def __init__(self, shop, place, number=1):
        self.place, self.plan = place, place.plan
        self.name = f"seed {self.plan.seed}, {place.name}" + ("" if number == 1 else ", second night")
        self.run_dir = place.directory / f"run{number}"
        self._shop, self._began, self._resumes = shop, time.monotonic(), 0
        self._stranger, self._had, self._ended = None, 0, None
        self.seconds, self.code, self.left = None, None, []
        place.show_empty_cards()
        self._faults = sorted([
            (self.plan.yard_dies, self._kill_yard), (self.plan.keeper_dies, self._kill_keeper),
            (self.plan.blinks_from, lambda: self._set_lost(True)), (self.plan.blinks_to, lambda: self._set_lost(False)),
            (self.plan.stranger.begins, self._begin_stranger), (self.plan.stranger.ends, self._end_stranger)],
            key=lambda fault: fault[0])
        self._yard = self._start("--run-dir", self.run_dir, place.job)

    def _start(self, *words):
        return self._shop.start([self._shop.trainyard, "run", *words], "yard", self.place.environment)

    def elapsed(self):
        return time.monotonic() - self._began

    # What goes wrong. False: it could not be done yet, and is tried again.
    def _kill_yard(self):
        # Not in the moment in which it begins anew: its journal is to be there.
        if self._yard.poll() is not None or self._keeper() is None:
            return False
        os.kill(self._yard.pid, signal.SIGKILL)
        return True

    def _keeper(self):
        guard = child_called(self._yard.pid, "yard-guard")
        return child_called(guard, "trainyard-keep") if guard else None

    def _kill_keeper(self):
        keeper = self._keeper()
        if keeper is None or not (self.run_dir / "journal.db").exists():
            return False
        os.kill(keeper, signal.SIGKILL)
        return True

    def _set_lost(self, is_lost):
        with self.place.card(self.plan.blinks) as card:
            card["lost"] = is_lost
        return True

    def _begin_stranger(self):
        self._stranger = self._shop.start(["sleep", "1000"], "stranger")
        return True

    def _end_stranger(self):
        self._shop.kill(self._stranger)
        with self.place.card(self.plan.stranger.card) as card:
            card["processes"] = [one for one in card.get("processes", []) if one["pid"] != self._stranger.pid]
        self._stranger = None
        return True

    def _grow_stranger(self):
        """It takes what it wants, or what is there."""
        its = self.plan.stranger
        part = min(1.0, (self.elapsed() - its.begins) / its.grows_for)
        wants = int(4 * its.gigabytes * part) * planned.GB // 4
        if wants <= self._had:
            return
        with self.place.card(its.card) as card:
            others = [one for one in card.get("processes", []) if one["pid"] != self._stranger.pid and alive(one["pid"])]
            free = card["memory"] - sum(one["memory"] for one in others)
            self._had = min(wants, max(self._had, free))
            card["processes"] = others + [{"pid": self._stranger.pid, "memory": self._had}]

    def step(self):
        while self._faults and self._faults[0][0] <= self.elapsed() and self._faults[0][1]():
            self._faults.pop(0)
        if self._stranger:
            self._grow_stranger()
        if self._ended is None:
            self._follow_yard()
        if self._ended is None:
            return True
        if self._stranger:
            self._end_stranger()
        self.left = self._left()
        return bool(self.left) and time.monotonic() - self._ended < LEFT_SECONDS_MAX

    def _follow_yard(self):
        code = self._yard.poll()
        if code is None:
            if self.elapsed() > 20 * self.plan.bound + 120:
                self._shop.kill(self._yard)
                code = 1
            else:
                return
        if code in (GO_ON, -signal.SIGKILL) and self._resumes < RESUMES_MAX:
            self._resumes += 1
            self._yard = self._start("--resume", self.run_dir)
            return
        self.code, self.seconds, self._ended = code, self.elapsed(), time.monotonic()

    # What came of it.
    def _left(self):
        shown = json.loads(self.place.shown.read_text())
        return ([f"process {pid}" for pid in processes_of(self.run_dir)] +
                [str(path) for path in self.place.sockets.iterdir()] +
                [f"{one['memory'] / planned.GB:.1f} GB of card {number}" for number, card in enumerate(shown["devices"])
                 for one in card.get("processes", []) if alive(one["pid"])])

    def query(self, sql):
        with contextlib.closing(sqlite3.connect(f"file:{self.run_dir}/journal.db?mode=ro", uri=True)) as journal:
            return journal.execute(sql).fetchall()

    def unfinished(self):
        """{task: its state and message} of those that did not come back."""
        states = {name: (state, message) for name, state, message in
                  self.query("SELECT id, state, message FROM task_list")}
        return {task.name: states.get(task.name) for task in self.plan.tasks
                if states.get(task.name, ("",))[0] != "FINISHED"}

    def ran_again(self):
        """Those that were begun after they had done all."""
        return sorted(path.parent.name for path in self.run_dir.glob("sweep/*/again"))

    def unplayed(self):
        """How many faults it was over before."""
        return len(self._faults)

    def summary(self):
        tries = self.query("SELECT sum(attempt) FROM task_list")[0][0]
        return (f"{self.name}: {self.seconds:.1f} s, {len(self.plan.tasks) - len(self.unfinished())} of "
                f"{len(self.plan.tasks)} came back, {tries} tries, resumed {self._resumes} times, exit code {self.code}" +
                (f"; over before {self.unplayed()} faults" if self.unplayed() else ""))

    def is_well(self):
        return not self.unfinished() and not self.ran_again() and not self.left and self.code == 0


def play(nights):
    """Plays them all side by side, so that what else the machine does hits all alike."""
    going = list(nights)
    while going:
        going = [night for night in going if night.step()]
        time.sleep(0.02)
