"""A task that may not start yet (`start-after`) waits, says so, and starts when its time has come."""
import sqlite3
import unittest
from contextlib import closing

from yard import YardTest, os, signal

WHY = "starts 10.0 s after the run began ('start-after')"


class StartAfter(YardTest):
    def query(self, sql):
        with closing(sqlite3.connect(f"file:{self.directory}/runs/job/journal.db?mode=ro", uri=True)) as journal:
            return journal.execute(sql).fetchall()

    def begin(self):
        self.job("""
name: job
groups:
  - name: g
    cpus: 0
    memory: 10MB
    start-after: 10s
    tasks:
      - {id: now, start-after: 0, command: 'echo now.$TRAINYARD_ATTEMPT >> begun; until test -e go; do sleep 0.01; done'}
      - {id: later, command: 'echo later.$TRAINYARD_ATTEMPT >> begun'}
""")
        yard = self.start("run", "job.yaml")
        self.until("the one that may", lambda: self.life("now")[-1:] == ["TRAINING"])
        self.assert_waits()
        return yard

    def assert_waits(self):
        """That the status says why, and that nothing of it has begun."""
        shown = self.until("the reason", lambda: [(waiting["reason"], waiting["tasks"]) for waiting in self.status()["waiting"]])
        self.assertEqual(shown, [(WHY, 1)])
        self.assertIn(WHY, self.trainyard("status", "runs/job", expect=0).stdout)
        self.assertEqual(self.words()["g/later"], "WAITING")
        self.assertNotIn("later", self.text("begun"))

    def test_holds_a_task_back_until_its_time_and_no_longer(self):
        yard = self.begin()
        self.until("its time", lambda: self.words()["g/later"] == "FINISHED")
        self.assertEqual(self.status()["waiting"], [])
        self.write("go", "")
        self.end_of(yard, expect=0)
        rows = {row["id"]: row for row in self.status()["tasks"]}
        self.assertLess(rows["now"]["started_ms"], 10_000)
        self.assertGreaterEqual(rows["later"]["started_ms"], 10_000)
        self.assertEqual(self.text("begun"), "now.1\nlater.1\n")

    def test_goes_on_after_a_kill_with_what_is_left_of_it(self):
        yard = self.begin()
        self.until("half of its time", lambda: self.query("SELECT max(at_ms) FROM samples")[0][0] > 5_000)
        os.killpg(yard.pid, signal.SIGKILL)
        self.end_of(yard)
        again = self.start("run", "--resume", "runs/job")
        self.until("the one that may", lambda: self.text("begun").count("now") == 2 and self.life("now")[-1:] == ["TRAINING"])
        ((passed,),) = self.query("SELECT started_ms FROM executions WHERE number = 2")
        self.assertGreater(passed, 5_000)
        self.assert_waits()
        self.until("its time", lambda: self.words()["g/later"] == "FINISHED")
        self.write("go", "")
        self.end_of(again, expect=0)
        rows = {row["id"]: row for row in self.status()["tasks"]}
        self.assertEqual({name: (row["word"], row["attempt"]) for name, row in rows.items()},
                         {"now": ("FINISHED", 2), "later": ("FINISHED", 1)})
        self.assertGreaterEqual(rows["later"]["started_ms"], 10_000)
        self.assertLess(rows["later"]["started_ms"], passed + 10_000)
        self.assertEqual(self.text("begun"), "now.1\nnow.2\nlater.1\n")

    def test_that_has_passed_when_a_run_goes_on_holds_nobody_back(self):
        self.job("name: job\ngroups: [{name: g, cpus: 0, memory: 10MB, tasks: ["
                 "{id: a, start-after: 2s, command: 'test -e go || sleep 1000'}]}]")
        yard = self.start("run", "job.yaml")
        self.until("its time", lambda: self.life("a")[-1:] == ["TRAINING"])
        os.killpg(yard.pid, signal.SIGKILL)
        self.end_of(yard)
        self.write("go", "")
        self.trainyard("run", "--resume", "runs/job", expect=0)
        (row,) = self.status()["tasks"]
        self.assertEqual((row["word"], row["attempt"]), ("FINISHED", 2))
        ((passed,),) = self.query("SELECT started_ms FROM executions WHERE number = 2")
        self.assertLess(row["started_ms"], passed + 2_000)
        # It waits for nothing, and nothing says that it does.
        self.assertNotIn("start-after", "".join(data for data, in self.query("SELECT data FROM events WHERE execution = 2")))


if __name__ == "__main__":
    unittest.main()
