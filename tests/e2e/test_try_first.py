"""One task of a group is tried before the others start."""
import unittest

from yard import YardTest, json, os


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
        begun = (self.directory / "runs/job/journal.db").exists()
        return self.status() if begun else {"tasks": [], "waiting": []}

    def reasons(self):
        return [row["reason"] for row in self.seen()["waiting"] if row["group"] == "g"]

    def words(self):
        return {task["id"]: task["word"] for task in self.seen()["tasks"]}

    def test_a_typo_costs_one_task(self):
        self.job_with("./trian {m}")
        done = self.trainyard("run", "job.yaml", expect=1)
        self.assertEqual(self.words(), {"t10": "SKIPPED", "t30": "EXIT 127", "t20": "SKIPPED", "a": "SKIPPED"})
        rows = {row["id"]: row for row in self.status()["tasks"]}
        self.assertRegex(rows["t20"]["message"], "^the task of its group that was tried first failed: .*trian")
        self.assertIn("trian", done.stdout + done.stderr)
        self.job_with("date +%s%N > started{m}; sleep 0.1")
        self.assertIn("group g: tries t30 first\n", self.trainyard("run", "job.yaml", "--resume", "--dry-run",
                                                                  expect=0).stdout)
        self.trainyard("run", "job.yaml", "--resume", expect=0)
        self.assertEqual(set(self.words().values()), {"FINISHED"})
        started = {name: int(self.text(f"started{name}")) for name in (10, 20, 30)}
        self.assertTrue(min(started[10], started[20]) - started[30] >= 100_000_000, started)

    def test_the_others_start_when_it_has_lived_long_enough(self):
        self.job_with("until test -e go; do sleep 0.01; done")
        yard = self.start("run", "job.yaml", "--set", "scheduler.try-first-time=600")
        self.until("the others to say whom they wait for", lambda: any(
            reason.startswith("waits for t30, which is tried first: ") and reason.endswith(" of 10:00")
            for reason in self.reasons()))
        self.assertEqual(self.words(), {"t10": "WAITING", "t30": "RUNNING", "t20": "WAITING", "a": "WAITING"})
        yard.kill()
        yard.wait()
        again = self.start("run", "job.yaml", "--resume", "--set", "scheduler.try-first-time=0.5")
        self.until("all three at once",
                   lambda: list(self.words().values()) == ["RUNNING"] * 3 + ["WAITING"])
        self.write("go", "")
        self.end_of(again, expect=0)

    def test_the_others_start_when_it_says_how_far_it_is(self):
        self.job_with("$TRAINYARD_BINARY client wait-device || exit; until test -e say; do sleep 0.01; done; "
                      "$TRAINYARD_BINARY client progress 0.1; until test -e go; do sleep 0.01; done")
        self.write("job.yaml", self.text("job.yaml").replace("try-first: 1", "try-first: 1\n    two-phase: true"))
        self.environment["TRAINYARD_BINARY"] = os.environ["TRAINYARD"]
        yard = self.start("run", "job.yaml")
        self.until("it to train", lambda: self.words().get("t30") == "RUNNING")
        self.write("say", "")
        self.until("all three at once", lambda: list(self.words().values())[:3] == ["RUNNING"] * 3)
        self.write("go", "")
        self.end_of(yard, expect=0)

    def test_the_next_one_is_tried_when_somebody_ends_it(self):
        self.job_with("until test -e go; do sleep 0.01; done")
        yard = self.start("run", "job.yaml")
        self.until("it to run", lambda: self.words().get("t30") == "RUNNING")
        self.assertIn("\n  g, 2 tasks: waits for t30, which is tried first", self.trainyard("status", expect=0).stdout)
        self.trainyard("kill", "t30", "runs/job", expect=0)
        self.until("the next one", lambda: self.words() == {
            "t10": "WAITING", "t30": "KILLED", "t20": "RUNNING", "a": "WAITING"})
        self.write("go", "")
        self.end_of(yard, expect=1)
        self.assertEqual(self.words(), {"t10": "FINISHED", "t30": "KILLED", "t20": "FINISHED", "a": "SKIPPED"})

    def test_a_dry_run_says_it_to_programs(self):
        self.job_with("true")
        groups = json.loads(self.trainyard("run", "job.yaml", "--dry-run", "--json", expect=0).stdout)["groups"]
        self.assertEqual([group["try_first"] for group in groups], ["t30", None])


if __name__ == "__main__":
    unittest.main()
