"""The common part of all scenarios: a job whose tasks note their starts and ends, and the counts made of these notes."""
import collections
import contextlib
import json
import os
import pathlib
import random
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
from yard import YardTest, alive, own_mounts, processes_with, replay_records, wait_until  # noqa: E402

# The counts of a scenario; all but the number of tasks must be 0.
COLUMNS = TASKS, RAN_AGAIN, LOST, LEFT, LIES = "tasks", "finished and ran again", "lost", "left running", "exit codes that lie"
# A task notes its start and its end with its process: a task that has noted its end and is gone has exited with 0.
TASK = """
note() { echo "$1 $TRAINYARD_TASK_ID $TRAINYARD_ATTEMPT $$" >> %s; }
note S
sleep $1
[ "$2" ] || echo "{\\"id\\": \\"$TRAINYARD_TASK_ID\\"}" > "$TRAINYARD_RESULT"
note E
"""


def pause(seconds):
    """Faults come at random moments, of which no process knows."""
    time.sleep(seconds)


class Scenario(YardTest):
    """The seed decides which faults are played, and when. A class has the number of seeds that `make check` plays."""

    def __init__(self, seed):
        super().__init__("play")
        self.seed = seed
        self.chance = random.Random(f"{type(self).__name__} {seed}")
        self.counts = collections.Counter()
        self.told = []
        self.finished, self.again, self.run_dir = {}, set(), "run"
        self.prefix = []  # Words before each command: where, or as whom, it runs.

    def keep_records(self):
        """Replays them at once: a failure names the seed."""
        super().keep_records()
        replay_records()

    def count(self, what, why, number=1):
        if number:
            self.counts[what] += number
            self.told.append(f"{what}: {why}")

    def task_job(self, tasks, longest=0.3, without_result=False, more=None):
        """Writes a job of so many tasks, which take up to `longest` seconds each, and of groups of `more` tasks, which note nothing."""
        script = self.write("task.sh", TASK % (self.directory / "events"))
        self.write("events", "")
        ids = [f"t{number}" for number in range(tasks)]
        commands = [["bash", str(script), f"{self.chance.uniform(0, longest):.3f}", *(["none"] if without_result else [])] for _ in ids]
        groups = {"g": [{"id": id, "command": command} for id, command in zip(ids, commands)], **(more or {})}
        self.job(json.dumps({"name": "job", "groups": [{"name": name, "cpus": 0.1, "memory": "5MB", "needs": [], "tasks": tasks}
                                                       for name, tasks in groups.items()]}))
        self.results = {**{task["id"]: None for group in groups.values() for task in group}, **({} if without_result else {id: {"id": id} for id in ids})}
        self.counts[TASKS] += len(self.results)

    def gate(self):
        """More tasks for a job: one that runs until open_gate()."""
        return {"gate": [{"id": "gate", "command": f"until test -e {self.directory}/go; do sleep 0.05; done"}]}

    def open_gate(self):
        self.write("go", "")

    def notes(self):
        return [(kind, task, int(attempt), int(pid)) for kind, task, attempt, pid in map(str.split, self.text("events").splitlines())]

    def until_ended(self, yard, more):
        """Waits until so many more tasks have ended, or the run has."""
        def ended():
            return sum(kind == "E" for kind, *_ in self.notes())
        after = ended() + more
        wait_until("tasks to end", lambda: ended() >= after or yard.poll() is not None)

    def remember_exited(self):
        """Tasks that have started and exited with 0 in this execution, as the kernel says, must not run again. To be called before
        a kill: what has noted its end may be killed in its last instant."""
        notes = self.notes()[self.before:]
        started = {pid for kind, _, _, pid in notes if kind == "S"}
        for kind, task, attempt, pid in notes:
            if kind == "E" and pid in started and not alive(pid):
                self.finished.setdefault(task, attempt)

    def remember_finished(self):
        """Tasks that the journal says have finished."""
        self.finished = {**{id: row["attempt"] for id, row in (self.rows() or {}).items() if row["word"] == "FINISHED"}, **self.finished}

    def count_again(self, why):
        again = {task for kind, task, attempt, _ in self.notes() if kind == "S" and attempt > self.finished.get(task, attempt)} - self.again
        self.count(RAN_AGAIN, f"{why}: {sorted(again)}", len(again))
        self.again |= again

    def rows(self):
        """The tasks by their ids; None where the run is none yet."""
        done = self.trainyard("status", self.run_dir, "--json", "--all")
        if done.returncode not in (0, 2):
            self.count(LIES, f"status: {done.returncode} {done.stderr}")
        return {row["id"]: row for row in json.loads(done.stdout)["tasks"]} if done.returncode == 0 else None

    def judge(self, code, said, killed=False, may_fail=()):
        """Whether the exit code of a run is what its status shows. Tasks of `may_fail` were killed on purpose."""
        if killed and code == -9:
            return
        rows = self.rows() or {}
        failed = {id for id, row in rows.items() if row["word"] not in ("FINISHED", "STOPPED", "LOST")}
        all_finished = set(rows) == set(self.results) and all(row["word"] == "FINISHED" for row in rows.values())
        true = {0: all_finished, 1: bool(failed), 75: bool(rows) and not all_finished}
        if not true.get(code, False) or failed - set(may_fail):
            words = {id: row["word"] for id, row in rows.items() if row["word"] != "FINISHED"}
            self.count(LIES, f"exit code {code}, not finished: {words}\n{said[-600:]}")

    def count_lost(self):
        """All tasks have finished, with the results that they wrote."""
        rows = self.rows() or {}
        there = {id: (rows[id]["word"], rows[id]["result"]) if id in rows else None for id in self.results}
        lost = {id: there[id] for id, result in self.results.items() if there[id] != ("FINISHED", result)}
        self.count(LOST, str(lost), len(lost))

    def count_left(self):
        marker = f"TRAINYARD_RUN_DIR={(self.directory / self.run_dir).resolve()}"
        with contextlib.suppress(AssertionError):
            wait_until("the end of all processes", lambda: not processes_with(marker))
        self.count(LEFT, marker, len(processes_with(marker)))

    def trainyard(self, *words, **options):
        return super().trainyard(*words, prefix=self.prefix, **options)

    def execute(self, *words):
        """Starts the run, or the next execution of it. Its output goes to a file, so that it needs no reader."""
        self.output = self.directory / "output"
        self.before = len(self.notes())
        with open(self.output, "ab") as output:
            process = subprocess.Popen([*self.prefix, *self.command("run", *words)], cwd=self.directory, stdin=subprocess.DEVNULL,
                                       stdout=output, stderr=subprocess.STDOUT, start_new_session=True, env=self.environment)
        self.started.append(process)
        return process

    def resumed_words(self):
        return ["--resume", self.run_dir] if self.rows() is not None else ["job.yaml", "--run-dir", self.run_dir]

    def resume_to_the_end(self):
        """No more faults come: all must finish now."""
        again = self.execute(*self.resumed_words())
        if again.wait(120) != 0:
            self.count(LIES, f"the last resume: exit code {again.returncode}\n{self.text('output')[-600:]}")
        self.judge(again.returncode, self.text("output"))
        self.count_left()
        self.count_again("after the last resume")
        self.count_lost()

    def own_world(self, mounts):
        """The words that run a command where `mounts`, a text for sh, has mounted what only such commands see. This test sees it in self.world."""
        holder = subprocess.Popen([*own_mounts(), "sh", "-c", f"{mounts} && echo ok && exec cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.started.append(holder)
        if holder.stdout.readline() != "ok\n":
            self.skipTest("nothing can be mounted here")
        self.world = f"/proc/{holder.pid}/root"
        users = [] if os.geteuid() == 0 else ["--user", "--preserve-credentials"]
        return ["nsenter", f"--target={holder.pid}", *users, "--mount", "sh", "-c", f'cd {self.directory} && exec "$@"', "sh"]
