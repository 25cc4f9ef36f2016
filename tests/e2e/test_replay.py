"""A run that is recorded is played again: `trainyard replay`."""
import json
import re
import sqlite3
import unittest

from yard import PATIENCE_S, TRAINYARD, YardTest, replay_records, subprocess

JOB = """
name: job
groups:
  - name: g
    cpus: 0
    memory: 10MB
    retries: 1
    retry-delay: 1ms
    matrix: {seed: [0, 1, 2]}
    tasks: [{command: 'exit {seed}'}]
"""


class Replay(YardTest):
    def setUp(self):
        super().setUp()
        self.job(JOB)

    def replay(self, *words, expect=0):
        return self.trainyard("replay", *words, expect=expect)

    def test_plays_a_run_again_and_decides_the_same(self):
        self.trainyard("run", "job.yaml", "--set", "journal.record=full", expect=1)
        self.assertRegex(self.replay().stdout,
                         r"^execution 1 of runs/job: \d+ events until \d+\.\d s, 5 starts: the same decisions\n$")
        found = json.loads(self.replay("job", "--json").stdout)
        self.assertEqual({name: found[name] for name in ["run", "execution", "starts", "same", "difference"]},
                         {"run": "runs/job", "execution": 1, "starts": 5, "same": True, "difference": None})
        lines = self.replay("--events").stdout.splitlines()[:-1]
        self.assertEqual(len(lines), 2 * found["events"])
        heard = [json.loads(line) for line in lines[::2]]
        # Default values are left out, such as the end with exit code 0.
        ends = [it["attempt_ended"].get("end", {}).get("exited", {}).get("code", 0)
                for it in heard if "attempt_ended" in it]
        self.assertEqual(sorted(ends), [0, 1, 1, 2, 2])
        decided = [command for line in lines[1::2] for command in json.loads(line).get("commands", [])]
        self.assertEqual(sum("start_attempt" in command for command in decided), 5)

    def test_plays_each_execution_of_a_run_that_goes_on(self):
        self.trainyard("run", "job.yaml", "--set", "journal.record=full", expect=1)
        self.trainyard("run", "--resume", "runs/job", expect=1)
        self.assertRegex(self.replay("--execution", "1").stdout, r"^execution 1 .* 5 starts: the same decisions\n$")
        self.assertRegex(self.replay().stdout, r"^execution 2 .* 4 starts: the same decisions\n$")

    def test_says_how_a_run_is_recorded_that_was_not(self):
        done = subprocess.run([TRAINYARD, "run", "job.yaml"], cwd=self.directory, env=self.environment,
                              capture_output=True, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertEqual(self.replay(expect=2).stderr,
                         "trainyard: runs/job: execution 1 was not recorded; start a run with --set journal.record=full, "
                         "or 'journal: {record: full}' in trainyard.yaml\n")
        self.assertEqual(self.replay("--execution", "9", expect=2).stderr,
                         "trainyard: runs/job: the run has no execution 9\n")
        self.assertIn("--execution", self.replay("--execution", "0", expect=2).stderr)

    def test_shows_the_first_decision_that_is_another(self):
        self.trainyard("run", "job.yaml", expect=1)
        with sqlite3.connect(self.directory / "runs/job/journal.db") as journal:
            journal.execute("UPDATE recorded SET decision = '{}' WHERE event LIKE '%batch_added%'")
        journal.close()
        shown = self.replay(expect=1).stdout.splitlines()
        self.assertRegex(shown[0], r"^execution 1 of runs/job: at event \d+, \d+\.\d s after the run began, the "
                                   r"scheduler decides otherwise than it did$")
        self.assertRegex(shown[1], r'^  heard         \{.*"batch_added":')
        self.assertEqual(shown[2], "  decided then  {}")
        self.assertRegex(shown[3], r'^  decides now   \{"changes":.*"start_attempt":')
        found = json.loads(self.replay("--json", expect=1).stdout)
        self.assertEqual((found["same"], found["difference"]["decided_then"]), (False, "{}"))
        # The end of a file of tests shows the same, and names the test.
        self.keep_records()
        with self.assertRaisesRegex(AssertionError, rf"{re.escape(self.id())}\S*: at event \d+, "):
            replay_records()

    def test_plays_several_runs_and_exits_with_the_highest_code(self):
        for name in ("a", "b"):
            self.trainyard("run", "job.yaml", "--run-dir", name, expect=1)
        self.assertRegex(self.replay("./a", "./b").stdout,
                         r"^execution 1 of a: .* the same decisions\nexecution 1 of b: .* the same decisions\n$")
        done = self.replay("./nowhere", "./b", expect=2)
        self.assertIn("nowhere", done.stderr)
        self.assertRegex(done.stdout, r"^execution 1 of b: .* the same decisions\n$")


if __name__ == "__main__":
    unittest.main()
