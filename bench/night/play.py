"""Plays nights: the yard, its tasks and what goes wrong, all of them real processes on made-up cards."""
import contextlib
import os
import pathlib
import signal
import sqlite3
import time

import harness
from night import cards
from night import plan as planned
from night.cards import GB

TASK = pathlib.Path(__file__).resolve().parent / "task.py"
GO_ON = 75  # Exit code: not all is done, nobody's fault.
RESUMES_MAX = 10
LEFT_SECONDS_MAX = 15  # What a killed yard leaves ends within its keeper's patience.


def children(pid):
    with contextlib.suppress(OSError):
        return [int(word) for word in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def child_called(pid, name):
    """The living child of that name, if there is one."""
    for child in children(pid):
        with contextlib.suppress(OSError):
            if pathlib.Path(f"/proc/{child}/comm").read_text().strip() == name and cards.alive(child):
                return child
    return None


def processes_of(run_dir):
    """Those living that know of the run by their environment."""
    sign = f"TRAINYARD_RUN_DIR={run_dir}".encode()
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if sign in path.read_bytes().split(b"\0") and cards.alive(path.parent.name):
                found.append(int(path.parent.name))
    return found


class Place:
    """Where a job file has its runs: cards of its own, and what one run teaches the next."""

    def __init__(self, shop, plan, name, estimates):
        self.directory = shop.fresh(f"night-{plan.seed}").resolve()
        self.name, self.plan = name, plan
        self.job = self.directory / "night.yaml"
        self.job.write_text(planned.job(plan, estimates, [cards.PYTHON, "-B", TASK]))
        self.cards = cards.Cards(shop, self.directory, planned.CARDS, planned.CARD_GB)


class Night:
    """One night. It goes on with each step() until that returns false; then what came of it is there."""

    def __init__(self, shop, place, number=1):
        self.place, self.plan = place, place.plan
        self.name = f"seed {self.plan.seed}, {place.name}" + ("" if number == 1 else ", second night")
        self.run_dir = place.directory / f"run{number}"
        self._shop, self._began, self._resumes = shop, time.monotonic(), 0
        self._stranger, self._had, self._ended = None, 0, None
        self.seconds, self.code, self.left = None, None, []
        place.cards.empty()
        self._faults = sorted([
            (self.plan.yard_dies, self._kill_yard), (self.plan.keeper_dies, self._kill_keeper),
            (self.plan.blinks_from, lambda: self._set_lost(True)), (self.plan.blinks_to, lambda: self._set_lost(False)),
            (self.plan.stranger.begins, self._begin_stranger), (self.plan.stranger.ends, self._end_stranger)],
            key=lambda fault: fault[0])
        self._yard = self._start("--run-dir", self.run_dir, place.job)

    def _start(self, *words):
        return self._shop.start([self._shop.trainyard, "run", *words], "yard", self.place.cards.environment)

    def elapsed(self):
        return time.monotonic() - self._began

    # What goes wrong. False: it could not be done yet, and is tried again.
    def _kill_yard(self):
        # Not in the moment in which it begins anew.
        if self._yard.poll() is not None or self._keeper() is None or not self._has_begun():
            return False
        os.kill(self._yard.pid, signal.SIGKILL)
        return True

    def _has_begun(self):
        """Whether there is something that a run can go on with: a journal in which tasks stand."""
        try:
            return self.query("SELECT count(*) FROM task_list")[0][0] > 0
        except sqlite3.OperationalError:  # There is no file yet, no table, or it is being written.
            return False

    def _keeper(self):
        guard = child_called(self._yard.pid, "yard-guard")
        return child_called(guard, "trainyard-keep") if guard else None

    def _kill_keeper(self):
        keeper = self._keeper()
        if keeper is None or not self._has_begun():
            return False
        os.kill(keeper, signal.SIGKILL)
        return True

    def _set_lost(self, is_lost):
        with self.place.cards.changed(self.plan.blinks) as card:
            card["lost"] = is_lost
        return True

    def _begin_stranger(self):
        self._stranger = self._shop.start(["sleep", "1000"], "stranger")
        return True

    def _end_stranger(self):
        self._shop.kill(self._stranger)
        with self.place.cards.changed(self.plan.stranger.card) as card:
            card["processes"] = [one for one in card.get("processes", []) if one["pid"] != self._stranger.pid]
        self._stranger = None
        return True

    def _grow_stranger(self):
        """It takes what it wants, or what is there."""
        its = self.plan.stranger
        part = min(1.0, (self.elapsed() - its.begins) / its.grows_for)
        wants = int(4 * its.gigabytes * part) * GB // 4
        if wants <= self._had:
            return
        with self.place.cards.changed(its.card) as card:
            others = [one for one in card.get("processes", []) if one["pid"] != self._stranger.pid and cards.alive(one["pid"])]
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
        return ([f"process {pid}" for pid in processes_of(self.run_dir)] +
                [str(path) for path in self.place.cards.sockets.iterdir()] +
                [f"{memory / GB:.1f} GB of card {card} (process {pid})" for pid, card, memory in self.place.cards.taken()])

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
