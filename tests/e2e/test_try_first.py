"""One task of a group is tried before the others start."""
import unittest

from yard import YardTest, json


class TryFirst(YardTest):
    JOB = """
name: job
groups:
  - name: g
    cpus: 0
    matrix: {m: [10, 30, 20]}
    memory: "{m}MB"
    try-first: 1
    tasks:
      - id: "t{m}"
        command: "COMMAND"
  - {name: after, tasks: [{id: a, command: "true", memory: 10MB}]}
"""

    def job_with(self, command):
        self.job(self.JOB.replace("COMMAND", command))

    def seen(self):
        done = self.trainyard("status", "runs/job", "--json", "--all")
        return {"tasks": [], "waiting": []} if done.returncode else json.loads(done.stdout)

    def reasons(self):
        return [row["reason"] for row in self.seen()["waiting"] if row["group"] == "g"]

    def words(self):
        return {task["id"]: task["word"] for task in self.seen()["tasks"]}

    def test_a_typo_costs_one_task(self):
        self.job_with("./trian {m}")
        done = self.trainyard("run", "job.yaml", expect=1)
        self.assertEqual(self.words(), {"t10": "SKIPPED", "t30": "EXIT 127", "t20": "SKIPPED", "a": "SKIPPED"})
        rows = {row["id"]: row for row in self.status()["tasks"]}
        self.assertRegex(rows["t20"]["message"], "^the task that 'try-first' ran first failed: .*trian")
        self.assertIn("trian", done.stdout + done.stderr)
        self.job_with("true")
        self.assertIn("group g: runs t30 first\n", self.trainyard("run", "job.yaml", "--resume", "--dry-run",
                                                                  expect=0).stdout)
        self.trainyard("run", "job.yaml", "--resume", expect=0)
        self.assertEqual(set(self.words().values()), {"FINISHED"})
        rows = {row["id"]: row for row in self.status()["tasks"]}
        for name in ("t10", "t20"):
            self.assertGreaterEqual(rows[name]["started_ms"], rows["t30"]["ended_ms"])

    def test_a_retry_with_cascade_takes_along_what_was_skipped(self):
        self.job_with("./trian {m}")
        self.trainyard("run", "job.yaml", expect=1)
        self.write("trian", "#!/bin/sh\n", mode=0o755)
        shown = self.trainyard("retry", "--cascade", "--dry-run", expect=0).stdout
        self.assertIn("4 tasks of 'runs/job':\n  g/t10: SKIPPED after 0 attempts\n  g/t30: EXIT 127 after 1 attempt\n", shown)
        self.trainyard("retry", "--cascade", expect=0)
        self.assertEqual(set(self.words().values()), {"FINISHED"})

    def test_the_others_start_when_it_has_lived_long_enough(self):
        self.job_with("until test -e go; do sleep 0.01; done")
        yard = self.start("run", "job.yaml", "--set", "scheduler.try-first-time=600")
        self.until("the others to say whom they wait for", lambda: any(
            reason.startswith("waits for t30, which runs first ('try-first'): ") and reason.endswith(" of 10m")
            for reason in self.reasons()))
        self.assertEqual(self.words(), {"t10": "WAITING", "t30": "RUNNING", "t20": "WAITING", "a": "WAITING"})
        yard.kill()
        yard.wait()
        again = self.start("run", "job.yaml", "--resume", "--set", "scheduler.try-first-time=100ms")
        self.until("all three at once",
                   lambda: list(self.words().values()) == ["RUNNING"] * 3 + ["WAITING"])
        self.write("go", "")
        self.end_of(again, expect=0)


if __name__ == "__main__":
    unittest.main()
