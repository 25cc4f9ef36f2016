"""A task that may not start yet (`start-after`) waits, says so, and starts when its time has come."""
import sqlite3
import unittest
from contextlib import closing

from yard import YardTest, json, os, signal


class StartAfter(YardTest):
    def events_of(self, execution):
        """The events of an execution, as the journal has them."""
        with closing(sqlite3.connect(f"file:{self.directory}/runs/job/journal.db?mode=ro", uri=True)) as journal:
            return [json.loads(data) for data, in journal.execute(
                "SELECT data FROM events WHERE execution = ? ORDER BY seq", (execution,))]

    def assert_last_waits(self):
        """The status says why `last` waits, and nothing of it has begun."""
        shown = self.until("the reason", lambda: [(waiting["cause"], waiting["tasks"]) for waiting in self.status()["waiting"]])
        self.assertEqual(shown, [("not-yet", 1)])
        self.assertIn("starts 50m after the run began ('start-after')", self.trainyard("status", "runs/job", expect=0).stdout)
        self.assertEqual(self.words()["g/last"], "WAITING")
        self.assertNotIn("last", self.text("begun"))

    def test_holds_a_task_back_until_its_time_also_in_a_run_that_goes_on(self):
        self.job("""
name: job
groups:
  - name: g
    cpus: 0
    memory: 10MB
    start-after: 50m
    tasks:
      - {id: now, start-after: 0, command: 'echo now.$TRAINYARD_ATTEMPT >> begun; until test -e go; do sleep 0.01; done'}
      - {id: later, start-after: 300ms, command: 'echo later.$TRAINYARD_ATTEMPT >> begun'}
      - {id: last, command: 'echo last.$TRAINYARD_ATTEMPT >> begun'}
""")
        yard = self.start("run", "job.yaml")
        self.until("its time", lambda: self.life("later")[-1:] == ["EXITED"])
        self.assert_last_waits()
        os.killpg(yard.pid, signal.SIGKILL)
        self.end_of(yard)
        again = self.start("run", "--resume", "runs/job")
        self.until("the one that may", lambda: self.text("begun").count("now") == 2 and self.life("now")[-1:] == ["TRAINING"])
        self.assert_last_waits()
        self.trainyard("kill", "last", "--run-dir", "runs/job", expect=0)
        self.write("go", "")
        self.end_of(again, expect=1)
        rows = {row["id"]: row for row in self.status()["tasks"]}
        self.assertEqual({name: (row["word"], row["attempt"]) for name, row in rows.items()},
                         {"now": ("FINISHED", 2), "later": ("FINISHED", 1), "last": ("SKIPPED", 0)})
        self.assertGreaterEqual(rows["later"]["started_ms"], 300)
        self.assertEqual(sorted(self.text("begun").splitlines()), ["later.1", "now.1", "now.2"])

    def test_that_has_passed_when_a_run_goes_on_holds_nobody_back(self):
        self.job("name: job\ngroups: [{name: g, cpus: 0, memory: 10MB, tasks: ["
                 "{id: a, start-after: 100ms, command: 'test -e go || sleep 1000'}]}]")
        yard = self.start("run", "job.yaml")
        self.until("its time", lambda: self.life("a")[-1:] == ["TRAINING"])
        os.killpg(yard.pid, signal.SIGKILL)
        self.end_of(yard)
        self.write("go", "")
        self.trainyard("run", "--resume", "runs/job", expect=0)
        (row,) = self.status()["tasks"]
        self.assertEqual((row["word"], row["attempt"]), ("FINISHED", 2))
        # The event that adds it starts it.
        (added,) = [event for event in self.events_of(2) if "tasks" in event]
        self.assertEqual([command["start"] for command in added["commands"]], [0])


if __name__ == "__main__":
    unittest.main()
