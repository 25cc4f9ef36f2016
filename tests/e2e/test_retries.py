"""Tasks that are retried after what they did themselves."""
from yard import YardTest, os, signal

# Fails until it has been tried as often as its argument says.
FLAKY = """#!/bin/sh
[ "$TRAINYARD_ATTEMPT" -ge "$1" ] && exit 0
echo "attempt $TRAINYARD_ATTEMPT: the server did not answer" >&2
exit 3
"""


class Retries(YardTest):
    def setUp(self):
        super().setUp()
        self.write("flaky.sh", FLAKY, mode=0o755)

    def test_try_a_task_again_until_it_succeeds_and_keep_what_each_try_said(self):
        self.job("""
name: job
groups:
  - name: g
    tasks:
      - {id: flaky, command: ./flaky.sh 3, retries: 2, retry-delay: 100ms}
      - {id: hopeless, command: ./flaky.sh 9, retries: 1, retry-delay: 100ms}
      - {id: once, command: ./flaky.sh 9}
""")
        done = self.trainyard("run", "job.yaml", expect=1)
        self.assertIn("retry 1 of 2 in 0.1 s: attempt 1: the server did not answer", done.stdout + done.stderr)
        self.assertEqual(self.words(), {"g/flaky": "FINISHED", "g/hopeless": "EXIT 3", "g/once": "EXIT 3"})
        rows = {row["id"]: row for row in self.status()["tasks"]}
        self.assertEqual(rows["flaky"]["attempt"], 3)
        self.assertEqual(rows["hopeless"]["message"], "attempt 2: the server did not answer (retry 1 of 1)")
        self.assertEqual(rows["once"]["message"], "attempt 1: the server did not answer")
        self.assertEqual(self.life("flaky"), ["AVAILABLE", "TRAINING", "INTERRUPT"] * 2
                         + ["AVAILABLE", "TRAINING", "FINISHED", "EXITED"])
        task = "runs/job/g/flaky"
        self.assertEqual(self.text(f"{task}/stderr.log"), "attempt 1: the server did not answer\n")
        self.assertEqual(self.text(f"{task}/stderr.2.log"), "attempt 2: the server did not answer\n")
        self.assertEqual(self.text(f"{task}/stderr.3.log"), "")

    def test_have_a_result_each_and_the_last_one_is_that_of_the_task(self):
        self.job("""
groups:
  - {name: g, tasks: [{id: t, retries: 2, command: 'echo "{{\\"acc\\": $TRAINYARD_ATTEMPT}" > $TRAINYARD_RESULT; test $TRAINYARD_ATTEMPT = 2'}]}
  - {name: h, tasks: [{id: t, retries: 2, retry-delay: 100ms, command: 'test $TRAINYARD_ATTEMPT = 2 || {{ echo "{{}" > $TRAINYARD_RESULT; false; }'}]}
""")
        self.trainyard("run", "job.yaml", expect=0)
        self.assertEqual(self.text("runs/job/g/t/result.json"), '{"acc": 2}\n')
        self.assertEqual(self.text("runs/job/g/t/result.1.json"), '{"acc": 1}\n')
        self.assertEqual(self.text("runs/job/g/t/result.2.json"), '{"acc": 2}\n')
        self.assertEqual(sorted(name for name in os.listdir(self.directory / "runs/job/h/t") if "result" in name), ["result.1.json"],
                         "the last attempt left none")

    def test_wait_their_delay_are_told_and_outlive_the_yard(self):
        self.job("""
name: job
groups:
  - name: g
    tasks: [{id: flaky, command: ./flaky.sh 2, retries: 2, retry-delay: 50m}]
""")
        yard = self.start("run", "job.yaml")
        self.until("the delay", lambda: self.life("flaky")[-1:] == ["INTERRUPT"])
        (row,) = self.status()["tasks"]
        self.assertEqual((row["word"], row["exit_code"]), ("RETRYING", 3))
        told = row["message"]
        # From one delay to one and a half of it.
        self.assertRegex(told, r"^retry 1 of 2 in (5[0-9]m([0-9]+s)?|1h(1?[0-9]m)?): attempt 1: the server did not answer$")
        left = r"retry 1 of 2 in (49m|5[0-9]m|1h)[0-9ms]*: attempt 1: the server did not answer\n"
        self.assertRegex(self.trainyard("status", "runs/job", "--all", expect=0).stdout, left)
        self.assertRegex(self.trainyard("status", expect=0).stdout, r"retrying:\n  g/flaky: " + left)
        os.killpg(yard.pid, signal.SIGKILL)
        self.end_of(yard)
        # A run that goes on does not wait.
        self.trainyard("run", "--resume", "job.yaml", expect=0)
        (row,) = self.status()["tasks"]
        self.assertEqual((row["word"], row["attempt"]), ("FINISHED", 2))
