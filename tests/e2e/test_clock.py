"""Times are measured by a clock that cannot be set: the wall clock may jump during a run."""
import glob
import unittest

from yard import YardTest, json, os, signal, subprocess

# The clock jumps by a thousand.
A_DAY_MS = 86_400_000
SANITIZED = "TRAINYARD_SANITIZED" in os.environ


class Clock(YardTest):
    def setUp(self):
        super().setUp()
        library = glob.glob("/usr/lib/*/faketime/libfaketime.so.1")
        if not library or SANITIZED:
            self.skipTest("libfaketime is not there, or asks for the time before the sanitizer has started")
        self.wall("+0")
        self.environment.update(LD_PRELOAD=library[0], FAKETIME_TIMESTAMP_FILE=str(self.directory / "clock"),
                                FAKETIME_NO_CACHE="1", FAKETIME_DONT_FAKE_MONOTONIC="1")

    def wall(self, offset):
        """Sets the clock on the wall, of every process of the run."""
        self.write("clock.new", offset + "\n").rename(self.directory / "clock")

    def looked_again(self):
        """Waits until the yard has looked at the machine once more."""
        samples = len(self.query("SELECT 1 FROM samples"))
        self.until("another look at the machine", lambda: len(self.query("SELECT 1 FROM samples")) > samples)

    def status(self, run="runs/job", tasks=True):
        """The status that a process with the right clock reads."""
        done = self.trainyard("status", run, "--json", "--all", expect=0, env={"LD_PRELOAD": ""})
        return json.loads(done.stdout)

    def assert_sane(self):
        """Everything that was written down happened within the time of the run, one thing after another."""
        times = [at for at, in self.query("SELECT at_ms FROM events ORDER BY seq")]
        self.assertEqual(times, sorted(times))
        self.assertGreaterEqual(times[0], 0)
        self.assertLess(times[-1], A_DAY_MS)
        for row in self.status()["tasks"]:
            self.assertLessEqual(0, row["started_ms"])
            self.assertLessEqual(row["started_ms"], row["ended_ms"])
            self.assertEqual(row["duration_ms"], row["ended_ms"] - row["started_ms"])

    JOB = """
name: job
groups:
  - name: g
    cpus: 0
    memory: 10MB
    tasks:
      - {id: limited, time-limit: 1h, command: 'date +%Y >> years; echo >> begun; until test -e go; do sleep 0.01; done; date +%Y >> years'}
      - {id: over, time-limit: 1s, command: 'sleep 1000'}
      - {id: flaky, retries: 1, retry-delay: 1s, command: 'test $TRAINYARD_ATTEMPT = 2'}
      - {id: later, start-after: 1500ms, command: 'true'}
"""

    def jump_while_it_runs(self, offset):
        self.job(self.JOB)
        yard = self.start("run", "job.yaml", "--set", "scheduler.interval=100ms")
        self.until("all that begin at once", lambda: (self.directory / "begun").exists() and
                   "TRAINING" in self.life("over") and "INTERRUPT" in self.life("flaky"))
        self.wall(offset)
        self.until("the end of the others", lambda: {row["id"]: row["word"] for row in self.status()["tasks"]} == {
            "limited": "RUNNING", "over": "TIMEOUT", "flaky": "FINISHED", "later": "FINISHED"})
        self.looked_again()
        self.write("go", "")
        self.end_of(yard, expect=1)
        rows = {row["id"]: row for row in self.status()["tasks"]}
        self.assertEqual({name: (row["word"], row["attempt"]) for name, row in rows.items()},
                         {"limited": ("FINISHED", 1), "over": ("TIMEOUT", 1), "flaky": ("FINISHED", 2),
                          "later": ("FINISHED", 1)})
        self.assert_sane()
        # As without any change of the clock: no sooner, and they did end.
        self.assertGreaterEqual(rows["over"]["duration_ms"], 1000)
        ((ended,),) = self.query("SELECT a.ended_ms FROM attempts a JOIN tasks t ON t.number = a.task")
        self.assertGreaterEqual(rows["flaky"]["started_ms"], ended + 1000)
        self.assertGreaterEqual(rows["later"]["started_ms"], 1500)
        # The tasks did see the other clock.
        self.assertEqual(len(set(self.text("years").split())), 2)

    def test_that_jumps_ahead_changes_no_limit_no_delay_and_no_duration(self):
        self.jump_while_it_runs("+1000d")

    def test_that_jumps_back_changes_no_limit_no_delay_and_no_duration(self):
        self.jump_while_it_runs("-1000d")

    def test_that_jumps_between_two_executions_changes_nothing_of_what_has_passed(self):
        for offset in ("+1000d", "-1000d"):
            with self.subTest(offset):
                self.wall("+0")
                for name in ("runs", "begun", "go"):
                    subprocess.run(["rm", "-rf", self.directory / name], check=True)
                self.job("""
name: job
groups:
  - name: g
    cpus: 0
    memory: 10MB
    tasks:
      - {id: done, command: 'echo >> begun'}
      - {id: limited, time-limit: 1h, command: 'echo >> begun; until test -e go; do sleep 0.01; done'}
      - {id: later, start-after: 2s, command: 'true'}
""")
                yard = self.start("run", "job.yaml", "--set", "scheduler.interval=100ms")
                self.until("the first", lambda: self.life("done")[-1:] == ["EXITED"] and self.life("limited")[-1:] == ["TRAINING"])
                self.looked_again()
                self.looked_again()
                os.killpg(yard.pid, signal.SIGKILL)
                self.end_of(yard)
                self.wall(offset)
                self.write("go", "")
                self.trainyard("run", "--resume", "runs/job", expect=0)
                rows = {row["id"]: row for row in self.status()["tasks"]}
                self.assertEqual({name: row["word"] for name, row in rows.items()},
                                 {"done": "FINISHED", "limited": "FINISHED", "later": "FINISHED"})
                self.assertEqual((rows["done"]["attempt"], rows["limited"]["attempt"]), (1, 2))
                self.assert_sane()
                # The time that had passed counts, and the rest is waited for.
                ((_, how, _), (_, how_again, passed)) = self.query("SELECT number, how, started_ms FROM executions ORDER BY 1")
                self.assertEqual((how, how_again), ("died", "ended"))
                self.assertGreater(passed, 0)
                self.assertLess(passed, A_DAY_MS)
                self.assertGreaterEqual(rows["later"]["started_ms"], 2000)


if __name__ == "__main__":
    unittest.main()
