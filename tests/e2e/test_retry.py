"""`trainyard retry`: tasks that have ended without having finished are tried again, by command."""
import os
import re
import signal
import sqlite3
import subprocess
import unittest
from contextlib import closing

from yard import PATIENCE_S, TRAINYARD, YardTest

JOB = """
name: job
groups:
  - name: train
    cpus: 0
    memory: 10MB
    matrix: {lr: [1, 2, 3]}
    tasks: [{command: 'sh task.sh {lr}'}]
  - name: eval
    needs: train
    cpus: 0
    memory: 10MB
    tasks: [{id: all, command: echo evaluated}]
  - name: last
    needs: eval
    cpus: 0
    memory: 10MB
    tasks: [{id: report, command: 'true'}]
"""
ALARM = """
name: job
groups:
  - name: train
    cpus: 0
    memory: 10MB
    tasks: [{id: all, command: 'test ! -e broken'}]
  - name: alarm
    needs: train
    if: failure()
    cpus: 0
    memory: 10MB
    tasks: [{id: ring, command: echo alarm}]
"""
# The first fails until it is mended, the second until it has more, the third once it has run.
SCRIPT = """
echo "$1: attempt $TRAINYARD_ATTEMPT of $TRAINYARD_MEMORY_LIMIT" >> tries
[ $1 = 1 ] && [ ! -f mended ] && exit 3
[ $1 = 2 ] && [ ! -f mended ] && exit 4
exit 0
"""


class Retry(YardTest):
    def setUp(self):
        super().setUp()
        self.job(JOB)
        self.write("task.sh", SCRIPT)

    def retry(self, *words, expect=0):
        return self.trainyard("retry", *words, expect=expect)

    def attempts(self, run="runs/job"):
        return {f'{task["group"]}/{task["id"]}': (task["word"], task["attempt"]) for task in self.status(run)["tasks"]}

    def test_with_what_nobody_can_have_is_refused(self):
        self.trainyard("run", "job.yaml", expect=1)
        refused = self.retry("1", "lr=1", "lr=2", "--memory", "900TB", expect=2)
        lines = (refused.stdout + refused.stderr).splitlines()
        self.assertRegex(lines[0], r"^trainyard: train/lr=1 and 1 more task can never run here: "
                                   r"each needs 900 TB of memory, this machine has .* available")
        self.assertEqual(len(lines), 1)
        self.assertEqual((self.attempts()["train/lr=1"], self.attempts()["train/lr=2"]), (("EXIT 3", 1), ("EXIT 4", 1)))

    def test_of_an_ended_run_tries_those_that_failed_and_leaves_the_others(self):
        self.trainyard("run", "job.yaml", expect=1)
        self.write("mended", "")
        done = self.retry("1", "lr=1", expect=0)
        self.assertIn("1 task of 'runs/job':\n  train/lr=1: EXIT 3 after 1 attempt\nrun 1: runs/job\n", done.stderr)
        self.assertEqual(self.attempts(), {"train/lr=1": ("FINISHED", 2), "train/lr=2": ("EXIT 4", 1),
                                           "train/lr=3": ("FINISHED", 1), "eval/all": ("SKIPPED", 0),
                                           "last/report": ("SKIPPED", 0)})
        self.assertEqual(self.text("tries").count("\n"), 4)
        # The rest of those that failed, and what was skipped because of them.
        done = self.retry("--cascade", expect=0)
        self.assertIn("3 tasks of 'runs/job':\n  train/lr=2: EXIT 4 after 1 attempt\n  eval/all: SKIPPED after 0 attempts\n",
                      done.stderr)
        self.assertEqual({word for word, _ in self.attempts().values()}, {"FINISHED"})
        self.assertEqual(self.attempts()["train/lr=2"], ("FINISHED", 2))
        self.assertEqual(self.attempts()["eval/all"], ("FINISHED", 1))
        self.assertEqual(self.retry(expect=2).stderr, "trainyard: nothing to retry: no task of run 1 ('runs/job') failed; "
                         "'trainyard run job.yaml --new' runs all tasks with the code as it is now, in another run\n")

    def test_of_several_named_tasks_runs_each_of_them_again(self):
        self.trainyard("run", "job.yaml", expect=1)
        self.write("mended", "")
        self.retry("1", "lr=1", "train/lr=2", expect=0)
        self.assertEqual(self.attempts(), {"train/lr=1": ("FINISHED", 2), "train/lr=2": ("FINISHED", 2),
                                           "train/lr=3": ("FINISHED", 1), "eval/all": ("SKIPPED", 0),
                                           "last/report": ("SKIPPED", 0)})

    def test_of_a_run_at_work_is_taken_in(self):
        os.mkfifo(self.directory / "gate")
        self.job(JOB.replace("matrix: {lr: [1, 2, 3]}", "matrix: {lr: [1, 3]}").replace("  - name: eval", """  - name: other
    needs: []
    cpus: 0
    memory: 10MB
    tasks: [{id: waits, command: cat gate}]
  - name: eval"""))
        yard = self.start("run", "job.yaml")
        self.until_file("runs/job/journal.db")
        self.until("the failure", lambda: {"eval/all": "SKIPPED", "other/waits": "RUNNING"}.items() <= self.words().items())
        self.assertIn("eval/all needs group 'train', which has not succeeded; ", self.retry("eval/all", expect=2).stderr)
        self.assertIn("to run tasks of a run that has started, use 'trainyard retry job.yaml lr=3 eval'\n",
                      self.trainyard("run", "job.yaml", "--resume", "--only", "lr=3", "--only", "eval", expect=2).stderr)
        shown = self.retry("--cascade", "--dry-run").stdout
        self.assertEqual(shown, "3 tasks of 'runs/job':\n  train/lr=1: EXIT 3 after 1 attempt\n"
                                "  eval/all: SKIPPED after 0 attempts\n  last/report: SKIPPED after 0 attempts\n")
        self.assertEqual(self.words()["train/lr=1"], "EXIT 3", "nothing has been done")
        refused = self.retry("--cascade", "--memory", "900TB", expect=1).stderr
        self.assertIn("trainyard: train/lr=1 and 2 more tasks can never run here: each needs 900 TB of memory, this machine has ", refused)
        self.assertEqual(refused.count("can never run here"), 1, refused)
        state = self.directory / "runs/job/train/lr=1/checkpoints/state"
        state.parent.mkdir(exist_ok=True)
        state.write_text("1")
        self.retry("lr=1", "--memory", "900TB", "--fresh", expect=1)
        self.assertTrue(state.exists(), "a task that is refused keeps its checkpoints")
        self.write("mended", "")
        some = self.retry("--cascade", "lr=1", "other/waits", "train/lr=3", expect=1)
        self.assertEqual(some.stdout, "3 tasks start over with all their retries in the active run\n")
        self.assertIn("trainyard: not retried: train/lr=3 is FINISHED, other/waits is RUNNING\n", some.stderr)
        self.until("the last", lambda: self.words()["last/report"] == "FINISHED")
        self.open_gate()
        _, errors = self.end_of(yard, expect=0)
        self.assertRegex(errors, r"5/5 done\n$")
        self.assertEqual(self.attempts()["train/lr=1"], ("FINISHED", 2))
        with sqlite3.connect(f"file:{self.directory}/runs/job/journal.db?mode=ro", uri=True) as journal:
            kinds = [row[0] for row in journal.execute("SELECT kind FROM events WHERE kind IN ('retry', 'kill')")]
        self.assertEqual(kinds, ["retry"] * 3, "the one that would only be skipped was not asked for")

    def test_of_an_active_run_names_the_command_for_skipped_tasks(self):
        os.mkfifo(self.directory / "gate")
        self.job("""
name: job
groups:
  - name: g
    max-parallel: 1
    cpus: 0
    memory: 10MB
    tasks: [{id: waits, command: cat gate}, {id: second, command: 'true'}]
""")
        yard = self.start("run", "job.yaml")
        self.until_file("runs/job/journal.db")
        self.until("the first", lambda: self.words().get("g/waits") == "RUNNING")
        self.trainyard("kill", "second", expect=0)
        self.assertEqual(self.retry(expect=2).stderr, "trainyard: nothing to retry: no task of run 1 ('runs/job') failed; 1 task is "
                         "SKIPPED: 'trainyard retry runs/job :skipped' runs it\n")
        self.assertEqual(self.retry("runs/job", ":skipped", "--memory", "20MB").stdout,
                         "1 task starts over with all its retries in the active run\n")
        self.open_gate()
        self.end_of(yard, expect=0)
        self.assertEqual(self.attempts(), {"g/waits": ("FINISHED", 1), "g/second": ("FINISHED", 1)})

    def test_asks_for_more_memory_and_another_time_limit(self):
        self.job("""
name: job
groups:
  - {name: g, cpus: 0, tasks: [{id: a, memory: 20MB, time-limit: 100ms, command: 'exec sleep 1000'}]}
""")
        self.trainyard("run", "job.yaml", expect=1)
        self.assertEqual(self.attempts(), {"g/a": ("TIMEOUT", 1)})
        done = self.retry(":timeout", "--memory", "50MB", "--time-limit", "0.2s", expect=1)
        self.assertIn("1 task of 'runs/job' with at least 50 MB of memory, a time limit of 0.2 s:\n", done.stderr)
        again = re.search(r"'trainyard retry runs/job (:timeout --memory 50MB --time-limit [0-9.]+s)' allows more time\n", done.stdout)
        self.assertIn("with at least 50 MB of memory, a time limit of", self.retry(*again[1].split(), "--dry-run").stdout)
        (task,) = self.status()["tasks"]
        self.assertEqual((task["word"], task["attempt"], task["memory_requested_bytes"]), ("TIMEOUT", 2, 50_000_000))
        self.assertIn("0.2 s", task["message"])
        self.assertEqual(self.retry("--memory", "0", "--time-limit", "0s", expect=2).stderr,
                         "trainyard: --memory: '0' must be more than 0\ntrainyard: --time-limit: '0s' must be more than 0\n")

    def test_fresh_begins_without_the_checkpoints_which_are_renamed(self):
        self.job("""
name: job
groups:
  - {name: g, cpus: 0, memory: 10MB, tasks: [{id: a, command: sh task.sh}]}
""")
        self.write("task.sh", """
cd "$TRAINYARD_CHECKPOINT_DIR" || exit
echo "attempt $TRAINYARD_ATTEMPT found: $(ls)" >> ../../../../../seen
echo $TRAINYARD_ATTEMPT > state
exit 3
""")
        self.trainyard("run", "job.yaml", expect=1)
        self.assertNotIn("is now", self.retry(expect=1).stderr)
        self.assertIn("g/a: EXIT 3 after 2 attempts", self.retry("--fresh", "--dry-run", expect=0).stdout)
        self.assertIn("'runs/job/g/a/checkpoints' is now 'runs/job/g/a/checkpoints.1'\n", self.retry("--fresh", expect=1).stderr)
        self.assertEqual(self.text("seen").splitlines(), ["attempt 1 found: ", "attempt 2 found: state", "attempt 3 found: "])
        self.assertEqual([self.text(f"runs/job/g/a/checkpoints{suffix}/state") for suffix in (".1", "")], ["2\n", "3\n"])

    def test_of_the_task_that_ended_its_group_takes_along_what_was_skipped_for_it(self):
        self.job("""
name: job
groups:
  - {name: g, cpus: 0, memory: 10MB, fail-fast: true,
     tasks: [{id: a, priority: 1, command: 'test -f ok'}, {id: b, command: 'true'}, {id: c, command: 'true'}]}
  - {name: h, needs: g, cpus: 0, memory: 10MB, tasks: [{id: d, command: 'true'}]}
""")
        self.trainyard("run", "job.yaml", "--set", "scheduler.max-process=1", expect=1)
        self.assertEqual(self.words(), {"g/a": "EXIT 1", "g/b": "SKIPPED", "g/c": "SKIPPED", "h/d": "SKIPPED"})
        self.assertEqual(self.retry("--cascade", "--dry-run").stdout,
                         "4 tasks of 'runs/job':\n  g/a: EXIT 1 after 1 attempt\n  g/b: SKIPPED after 0 attempts\n"
                         "  g/c: SKIPPED after 0 attempts\n  h/d: SKIPPED after 0 attempts\n")
        self.retry("--cascade", expect=1)
        self.assertEqual(self.words(), {"g/a": "EXIT 1", "g/b": "SKIPPED", "g/c": "SKIPPED", "h/d": "SKIPPED"})
        self.write("ok", "")
        left = self.retry(expect=0).stderr
        self.assertIn("trainyard: 3 tasks are still SKIPPED: 'trainyard run --resume runs/job' runs all tasks that "
                      "have not finished\n", left)
        self.assertEqual(self.words(), {"g/a": "FINISHED", "g/b": "SKIPPED", "g/c": "SKIPPED", "h/d": "SKIPPED"})
        self.trainyard("run", "--resume", "runs/job", expect=0)
        self.assertEqual(set(self.words().values()), {"FINISHED"})

    def test_takes_the_latest_of_several_runs_and_names_it(self):
        self.trainyard("run", "job.yaml", expect=1)
        self.trainyard("run", "job.yaml", "--new", expect=1)
        for words in ([], ["job.yaml"], ["job"], ["lr=1"], [":failed", "train"]):
            with self.subTest(words=words):
                shown = self.retry(*words, "--dry-run")
                self.assertEqual(shown.stderr, "trainyard: retrying in run 2 ('runs/job-2'), the latest of 2 runs\n")
                self.assertIn(" of 'runs/job-2':\n  train/lr=1: EXIT 3 after 1 attempt\n", shown.stdout)
        for words in (["1"], ["runs/job"], ["--run-dir", "1", "lr=1"]):
            with self.subTest(words=words):
                self.assertEqual(self.retry(*words, "--dry-run").stderr, "", "the run is named")
        self.assertEqual(self.retry("nope", expect=2).stderr,
                         "trainyard: task 'nope' not found in 'runs/job-2', and no run has this name; "
                         "existing runs: runs/job-2, runs/job\n")
        self.write("mended", "")
        self.assertIn("retrying in run 2 ", self.retry("--cascade", expect=0).stderr)
        self.assertEqual(self.attempts("runs/job-2")["train/lr=1"], ("FINISHED", 2))
        self.assertEqual(self.attempts("runs/job")["train/lr=1"], ("EXIT 3", 1))
        self.retry("1", "lr=1", expect=0)
        self.assertIn("retrying in run 1 ('runs/job'), the latest of 2 runs\n", self.retry("--dry-run").stderr, "it was resumed last")

    def test_after_an_interrupt_says_how_the_run_is_resumed(self):
        os.mkfifo(self.directory / "gate")
        self.job(JOB.replace("sh task.sh {lr}", "cat gate"))
        yard = self.start("run", "job.yaml")
        self.until_file("runs/job/journal.db")
        self.until("the tasks", lambda: "RUNNING" in self.words().values())
        os.kill(yard.pid, signal.SIGINT)
        self.end_of(yard, expect=130)
        refused = self.retry(expect=2).stderr
        self.assertEqual(refused, "trainyard: nothing to retry: no task of run 1 ('runs/job') failed; 5 tasks are STOPPED: "
                                  "'trainyard run --resume runs/job' runs them\n")
        self.assertTrue(self.retry("runs/job", ":stopped", "--memory", "20MB", "--time-limit", "2h", "--dry-run").stdout
                        .startswith("5 tasks of 'runs/job' with at least 20 MB of memory, a time limit of 2h:\n"))
        self.assertEqual(self.retry("runs/job", "train", "report", expect=2).stderr,
                         "trainyard: last/report needs group 'eval', which has not succeeded; to run all, type: "
                         "trainyard retry runs/job train eval last/report\n")
        self.assertEqual(self.retry("runs/job", "train", "eval", "report", "--dry-run").stdout.count("STOPPED"), 5)
        for words, code, told in ((["wait", "1"], 130, "ended: "), (["kill", "*"], 2, "has ended: "),
                                  (["hold", "*"], 2, "has ended: "), (["release"], 2, "has ended: "),
                                  (["update", "--priority=1", "*"], 2, "has ended: ")):
            self.assertEqual(self.trainyard(*words, expect=code).stderr,
                             f"trainyard: run 1 ('runs/job') {told}interrupted; 'trainyard run --resume runs/job' resumes it\n", words)

    def test_of_a_run_that_is_stopping_says_so_as_an_update_does(self):
        os.mkfifo(self.directory / "gate")
        self.job_of_tasks("""
      - id: short
        command: 'cat gate'
      - id: long
        signal: USR1@60
        command: 'trap "until test -e go; do sleep 0.01; done; exit 0" USR1; echo ready; while :; do sleep 0.01; done'
""")
        yard = self.start("run", "job.yaml")
        self.until_written("runs/job/g/long/stdout.log")
        self.until("both", lambda: set(self.words().values()) == {"RUNNING"})
        os.kill(yard.pid, signal.SIGINT)
        self.until("the end of the short one", lambda: self.words() == {"g/short": "STOPPED", "g/long": "RUNNING"})
        stopping = "trainyard: the run is stopping: type the command again when it has "
        self.assertEqual(self.retry("short", expect=1).stderr,
                         f"1 task of 'runs/job':\n  g/short: STOPPED after 1 attempt\n{stopping}ended\n")
        self.assertEqual(self.trainyard("update", "long", "--priority", "1", expect=1).stderr, f"{stopping}been resumed\n")
        self.write("go", "")
        self.end_of(yard, expect=130)

    def test_of_a_run_that_died_goes_on_with_it_as_a_whole_first(self):
        os.mkfifo(self.directory / "gate")
        self.job(JOB.replace("sh task.sh {lr}", "sh task.sh {lr} && [ {lr} != 3 ] || cat gate"))
        yard = self.start("run", "job.yaml")
        self.until_file("runs/job/journal.db")
        self.until("all", lambda: list(self.words().values()).count("RUNNING") == 3)
        yard.kill()
        yard.wait()
        self.assertIn("died: 'trainyard run --resume runs/job' resumes it", self.retry("1", expect=2).stderr)

    def test_of_a_task_that_is_not_in_the_job_file_any_more_says_so(self):
        self.trainyard("run", "job.yaml", expect=1)
        self.job(JOB.replace("[1, 2, 3]", "[2, 3]"))
        self.assertIn("the job file no longer has a task train/lr=1", self.retry("lr=1", expect=2).stderr)
        self.assertEqual(self.status()["state"], "ended", "nothing has been done")
        self.assertEqual(self.status()["execution"]["number"], 1)

    def test_reads_the_configuration_of_the_run_wherever_it_is_asked_for(self):
        self.write("trainyard.yaml", "scheduler: {train-nretry: 7}\n")
        self.trainyard("run", "job.yaml", expect=1)
        elsewhere = self.directory / "elsewhere"
        elsewhere.mkdir()
        done = self.trainyard("retry", str(self.directory / "runs/job"), "lr=1", cwd=elsewhere, expect=1)
        self.assertIn(f"as in the last execution: --config {self.directory.resolve()}/trainyard.yaml", done.stderr)
        done = self.retry("lr=1", expect=1)
        self.assertNotIn("--config", done.stderr)
        with closing(sqlite3.connect(self.directory / "runs/job/journal.db")) as journal:
            rows = [text for text, in journal.execute("SELECT configuration FROM executions")]
        self.assertEqual([re.findall(r"scheduler\.train-nretry: (\d+)", text) for text in rows], [["7"]] * 3)

    def test_of_what_was_changed_since_is_also_one_of_what_has_finished(self):
        self.trainyard("run", "job.yaml", expect=1)
        self.assertIn("none of the selected tasks of 'runs/job' has changed in the job file; ", self.retry("--changed", expect=2).stderr)
        self.job(JOB.replace("tasks: [{command: 'sh task.sh {lr}'}]",
                             "tasks: [{command: 'sh task.sh {lr}; echo once more >> more'}]"))
        self.write("mended", "")
        refused = self.retry("--changed", "--memory", "20MB", expect=2).stderr
        self.assertIn("--changed cannot be combined with --memory", refused)
        shown = ("2 tasks of 'runs/job':\n  train/lr=1: EXIT 3 after 1 attempt, and changed since\n"
                 "  train/lr=3: FINISHED after 1 attempt, and changed since\n")
        self.assertEqual(self.retry("--changed", "--dry-run", "lr=1", "lr=3", expect=0).stdout, shown)
        self.assertIn(shown, self.retry("--changed", "lr=1", "lr=3", expect=0).stderr)
        tasks = self.attempts()
        self.assertEqual([tasks[f"train/lr={i}"] for i in (1, 2, 3)],
                         [("FINISHED", 2), ("EXIT 4", 1), ("FINISHED", 2)])
        self.assertEqual(tasks["eval/all"], ("SKIPPED", 0), "it was not named")
        self.assertEqual(self.text("more"), 2 * "once more\n")

    def test_of_a_finished_command_names_the_command_that_runs_it_again(self):
        self.trainyard("run", "--cpus", "0", "--memory", "10MB", "--name", "echo", "--", "echo", "a b", expect=0)
        self.assertRegex(self.retry("runs/echo", ":finished", expect=2).stderr,
                         r"only tasks that have not finished are retried; to run its command again, in another run, "
                         r"type\n  \S+ run .*--name echo -- echo 'a b' .*\n$")
        other = self.directory / "other"
        other.mkdir()
        again = f"cd {self.directory.resolve()} && "
        done = self.trainyard("retry", "../runs/echo", ":finished", cwd=other, expect=2)
        self.assertIn(f"in another run, type\n  {again}", done.stderr)
        done = self.trainyard("run", "--resume", "../runs/echo", cwd=other, expect=0)
        self.assertIn(f"in another run, type: {again}", done.stderr)

    def report_of_a_failure(self):
        self.job(JOB[:JOB.index("  - name: eval")] + """
  - name: report
    if: always()
    cpus: 0
    memory: 10MB
    tasks: [{id: all, command: 'wc -l < tries >> counts'}]
""")
        self.trainyard("run", "job.yaml", expect=1)
        self.assertEqual(self.text("counts"), "3\n")

    def test_names_the_report_that_was_made_before_what_it_retries(self):
        self.report_of_a_failure()
        self.assertEqual([task["out_of_date"] for task in self.status()["tasks"]], [False] * 4)
        self.write("mended", "")
        self.assertIn("group 'report': 1 task had finished before a task that it needs was run again; kept as it is "
                      "(--resume --rerun-changed runs such again)\n", self.retry(expect=0).stderr)
        self.assertEqual(self.attempts()["report/all"], ("FINISHED", 1))
        note = "1 task finished before what it needs ran again"
        self.assertIn(f"\nreport: {note}: 'trainyard retry runs/job --cascade' runs it again\n",
                      self.trainyard("status", "runs/job", expect=0).stdout)
        self.assertEqual([task["out_of_date"] for task in self.status()["tasks"]], [False] * 3 + [True])
        self.assertIn(f"{note}: report/all\n", self.trainyard("results", expect=0).stdout)
        self.assertEqual(self.retry("--cascade", "--dry-run").stdout,
                         "1 task of 'runs/job':\n  report/all: FINISHED after 1 attempt, and out of date\n")
        self.retry("--cascade", expect=0)
        self.assertEqual(self.text("counts"), "3\n5\n")
        self.assertEqual(self.attempts()["report/all"], ("FINISHED", 2))
        self.assertEqual([task["out_of_date"] for task in self.status()["tasks"]], [False] * 4)

    def test_cascade_takes_along_the_report_and_makes_it_last(self):
        self.report_of_a_failure()
        self.write("mended", "")
        shown = ("3 tasks of 'runs/job':\n  train/lr=1: EXIT 3 after 1 attempt\n  train/lr=2: EXIT 4 after 1 attempt\n"
                 "  report/all: FINISHED after 1 attempt, and needs one of these\n")
        self.assertEqual(self.retry("--cascade", "--dry-run").stdout, shown)
        self.assertIn(shown, self.retry("--cascade", expect=0).stderr)
        self.assertEqual(self.text("counts"), "3\n5\n", "not before what it needs")
        self.assertEqual(self.attempts()["report/all"], ("FINISHED", 2))
        self.assertNotIn("OUT OF DATE", self.trainyard("status", "runs/job", expect=0).stdout)

    def test_an_alarm_that_is_out_of_date_is_not_needed_where_nothing_fails_any_more(self):
        self.job(ALARM)
        self.write("broken", "")
        self.trainyard("run", "job.yaml", expect=1)
        (self.directory / "broken").unlink()
        self.retry(expect=0)
        self.assertEqual([task["out_of_date"] for task in self.status()["tasks"]], [False, True])
        self.assertNotIn("is not retried", self.retry("--cascade", expect=0).stderr)
        self.assertEqual([task["word"] for task in self.status()["tasks"]], ["FINISHED", "NOT_NEEDED"])
        self.trainyard("wait", "runs/job", expect=0)
        self.retry("--cascade", expect=2)

    def test_what_is_behind_an_alarm_that_is_not_needed_any_more_runs_once(self):
        self.job(ALARM + "  - {name: after, needs: alarm, tasks: [{command: 'echo x >> ran'}]}\n")
        self.write("broken", "")
        self.trainyard("run", "job.yaml", expect=1)
        (self.directory / "broken").unlink()
        self.retry("--cascade", expect=0)
        self.assertEqual([task["word"] for task in self.status()["tasks"]], ["FINISHED", "NOT_NEEDED", "FINISHED"])
        self.assertEqual(self.text("ran"), "x\nx\n")
        self.retry("--cascade", expect=2)
        self.trainyard("run", "job.yaml", "--resume", "--rerun-changed", expect=0)
        self.assertEqual([task["out_of_date"] for task in self.status()["tasks"]], [False] * 3)
        self.assertEqual(self.text("ran"), "x\nx\n")

    def test_an_alarm_that_was_not_needed_runs_when_what_it_needs_fails_in_a_retry(self):
        self.job(ALARM)
        self.trainyard("run", "job.yaml", expect=0)
        self.assertEqual([task["word"] for task in self.status()["tasks"]], ["FINISHED", "NOT_NEEDED"])
        self.job(ALARM.replace("test ! -e broken", "exit 3"))
        self.retry("--changed", expect=1)
        self.assertEqual([task["word"] for task in self.status()["tasks"]], ["EXIT 3", "FINISHED"])
        self.assertEqual(self.text("runs/job/alarm/ring/stdout.log"), "alarm\n")

    def test_a_run_of_the_job_file_kept_for_a_command_is_next_to_its_run(self):
        self.trainyard("run", "--memory", "1MB", "--name", "big", "--matrix", "n=1,2", "--", "true", "{n}", expect=0)
        self.trainyard("run", "runs/big/trainyard.job.yaml", "--new", "--only", "big/n=1", expect=0)
        self.assertEqual(self.attempts("runs/big-2"), {"big/n=1": ("FINISHED", 1), "big/n=2": ("NOT_SELECTED", 0)})

    def test_goes_on_when_nobody_reads_what_it_prints(self):
        self.trainyard("run", "job.yaml", expect=1)
        self.write("mended", "")
        # The shell's own "read" takes the first line and goes.
        subprocess.run(["bash", "-c", f"{TRAINYARD} retry lr=1 2>&1 | read line"], cwd=self.directory, check=False,
                       env=self.environment, timeout=PATIENCE_S)
        self.until("it has ended", lambda: self.status()["state"] == "ended")
        self.assertEqual((self.status()["state"], self.attempts()["train/lr=1"]), ("ended", ("FINISHED", 2)))


if __name__ == "__main__":
    unittest.main()
