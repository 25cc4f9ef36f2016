"""Tasks that need tasks of their own cell, tasks that run whatever became of others, and tasks that a person keeps from
starting or puts before the others."""
import json
import os
import unittest

from yard import YardTest

CHAIN = """
name: job
groups:
  - name: train
    cpus: 0
    memory: 10MB
    matrix: {lr: [1, 2], seed: [0, 1]}
    tasks: [{command: 'sh train.sh {lr} {seed}'}]
  - name: eval
    cpus: 0
    memory: 10MB
    needs: [{group: train, match: matrix}]
    tasks: [{command: 'cat {needs.train.dir}/model > {task_dir}/seen; echo "{{\\"double\\": {needs.train.result.acc}}" > $TRAINYARD_RESULT'}]
  - name: mean
    cpus: 0
    memory: 10MB
    needs: [{group: eval, match: lr}]
    tasks: [{command: 'for d in {needs.eval.dirs}; do cat $d/seen; done'}]
  - name: report
    cpus: 0
    memory: 10MB
    if: always()
    tasks: [{id: all, command: echo reported}]
  - name: alarm
    cpus: 0
    memory: 10MB
    needs: [train]
    if: failure()
    tasks: [{id: ring, command: echo rings}]
"""
TRAIN = """
[ $1 = 2 ] && [ $2 = 1 ] && [ ! -f mended ] && exit 3
echo "model of $1 $2" > $TRAINYARD_TASK_DIR/model
echo "{\\"acc\\": 0.$1$2}" > $TRAINYARD_RESULT
"""


class Cells(YardTest):
    def setUp(self):
        super().setUp()
        self.job(CHAIN)
        self.write("train.sh", TRAIN)

    def words_of(self):
        return {f'{task["group"]}/{task["id"]}': task["word"] for task in self.status("runs/job")["tasks"]}

    def test_are_evaluated_each_by_itself_and_retried_with_what_stands_behind(self):
        done = self.trainyard("run", "job.yaml", expect=1)
        words = self.words_of()
        self.assertEqual({name for name, word in words.items() if word == "FINISHED"},
                         {"train/lr=1,seed=0", "train/lr=1,seed=1", "train/lr=2,seed=0", "eval/lr=1,seed=0", "eval/lr=1,seed=1",
                          "eval/lr=2,seed=0", "mean/lr=1", "report/all", "alarm/ring"})
        self.assertEqual(words["train/lr=2,seed=1"], "EXIT 3")
        self.assertEqual({words["eval/lr=2,seed=1"], words["mean/lr=2"]}, {"SKIPPED"})
        self.assertIn("needs a task of group 'train' that failed", done.stdout)
        self.assertEqual(self.text("runs/job/mean/lr=1/stdout.log"), "model of 1 0\nmodel of 1 1\n")
        self.assertEqual(json.loads(self.text("runs/job/eval/lr=1,seed=1/result.json")), {"double": 0.11})
        self.write("mended", "")
        again = self.trainyard("retry", "train/lr=2", "--cascade", expect=0)
        self.assertIn("train/lr=2,seed=1: EXIT 3 after 1 attempt\n  eval/lr=2,seed=1: SKIPPED after 0 attempts\n"
                      "  mean/lr=2: SKIPPED after 0 attempts\n", again.stderr)
        # Nothing failed this time.
        self.assertEqual({name for name, word in self.words_of().items() if word != "FINISHED"}, {"alarm/ring"})
        self.assertEqual(self.words_of()["alarm/ring"], "NOT_NEEDED")

    def test_whose_value_is_not_there_cannot_start(self):
        self.write("train.sh", "echo model > $TRAINYARD_TASK_DIR/model")
        self.trainyard("run", "job.yaml", "--only", "eval/lr=1,seed=0", expect=1)
        self.assertEqual(self.words_of()["eval/lr=1,seed=0"], "CANNOT_START")
        self.assertIn("'{needs.train.result.acc}' has no value: train/lr=1,seed=0 left no 'acc' in its result",
                      self.trainyard("status").stdout)

    def test_of_a_run_that_was_killed_go_on(self):
        os.mkfifo(self.directory / "gate")
        self.write("train.sh", "[ $1$2 = 20 ] && cat gate\n" + TRAIN)
        self.write("mended", "")
        yard = self.start("run", "job.yaml")
        self.until("the run", lambda: self.trainyard("status", "runs/job").returncode == 0)
        self.until("a whole cell", lambda: self.words().get("mean/lr=1") == "FINISHED")
        yard.kill()
        yard.wait()
        self.write("train.sh", TRAIN)
        self.trainyard("run", "--resume", "runs/job", expect=0)
        words = self.words_of()
        self.assertEqual(words.pop("alarm/ring"), "NOT_NEEDED")
        self.assertEqual(set(words.values()), {"FINISHED"})
        self.assertEqual(self.text("runs/job/mean/lr=2/stdout.log"), "model of 2 0\nmodel of 2 1\n")


class Held(YardTest):
    JOB = """
name: job
groups:
  - name: train
    cpus: 0
    memory: 10MB
    max-parallel: 1
    tasks: [{id: first, command: cat gate}, {id: a, command: echo a >> order}, {id: b, command: echo b >> order},
            {id: c, command: echo c >> order}]
"""

    def setUp(self):
        super().setUp()
        os.mkfifo(self.directory / "gate")
        self.job(self.JOB)

    def begin(self):
        yard = self.start("run", "job.yaml")
        self.until("the run", lambda: self.trainyard("status", "runs/job").returncode == 0)
        self.until("the first task runs", lambda: self.words().get("train/first") == "RUNNING")
        return yard

    def test_does_not_start_before_it_is_released_and_the_larger_priority_goes_first(self):
        yard = self.begin()
        self.assertEqual(self.trainyard("hold", "1", "a").stdout, "train/a on hold\n")
        self.assertEqual(self.trainyard("update", "1/c", "--priority", "5").stdout, "train/c has priority 5\n")
        self.assertEqual(self.trainyard("update", "1/first", "--priority", "5").stdout,
                         "train/first has priority 5, which counts when it is retried\n")
        self.assertEqual(self.words()["train/a"], "ON_HOLD")
        self.assertIn("train, 1 task: on hold until 'trainyard release'", self.trainyard("status").stdout)
        self.assertIn("train/a is on hold already", self.trainyard("hold", "a", expect=2).stderr)
        self.assertIn("train/first is RUNNING: only waiting tasks can be put on hold", self.trainyard("hold", "first", expect=2).stderr)
        both = self.trainyard("hold", "first", "a", "b", "--dry-run", expect=0)
        self.assertEqual((both.stdout, both.stderr), ("train/b is selected\n", "trainyard: not changed: "
                                                      "train/first is RUNNING, train/a is ON_HOLD\n"))
        named = self.trainyard("hold", "first", "b", expect=1)
        self.assertEqual((named.stdout, named.stderr), ("train/b on hold\n", "trainyard: not changed: train/first is RUNNING\n"))
        self.assertIn("all of these tasks of 'runs/job' are on hold already", self.trainyard("hold", "a", "b", expect=2).stderr)
        self.assertIn("no selected task of 'runs/job' is waiting; not changed: train/first is RUNNING, train/a is ON_HOLD",
                      self.trainyard("hold", "first", "a", expect=2).stderr)
        self.assertEqual(self.trainyard("release", "b", expect=0).stdout, "train/b may start\n")
        others = self.trainyard("hold", "*", "--dry-run", expect=0).stderr
        self.assertIn("not changed: train/first is RUNNING", others)
        self.assertIn("train/b is WAITING: only tasks on hold can be released", self.trainyard("release", "b", expect=2).stderr)
        self.assertEqual(self.trainyard("release", "--dry-run").stdout, "train/a is selected\n")
        self.open_gate()
        self.until("all others have ended", lambda: self.words().get("train/b") == "FINISHED")
        self.assertIn("on hold until 'trainyard release'", self.trainyard("status").stdout)
        self.assertIsNone(yard.poll())
        self.assertIn("no task of 'runs/job' is :waiting; 1 is :held\n", self.trainyard("status", ":waiting").stdout)
        waits = self.start("wait", "1")
        self.assertEqual(self.next_line(waits.stderr),
                         "trainyard: run 1 ('runs/job'): only held tasks are left (1): 'trainyard release 1' starts them\n")
        self.assertEqual(self.trainyard("release").stdout, "train/a may start\n")
        self.assertEqual(self.end_of(waits, expect=0), ("", ""))
        self.end_of(yard, expect=0)
        self.assertEqual(self.text("order"), "c\nb\na\n")
        self.assertEqual(self.trainyard("hold", "b", expect=2).stderr, "trainyard: run 1 ('runs/job') has ended\n")

    def test_stays_on_hold_in_a_run_that_is_resumed(self):
        yard = self.begin()
        self.trainyard("hold", "a", "b")
        self.trainyard("update", "c", "--priority", "-3")
        yard.kill()
        yard.wait()
        yard = self.start("run", "--resume", "runs/job")
        # Until the resumed run has written its first turn the status is that of the attempt that was killed, whose program
        # may still hold the gate.
        self.until("the first task runs again", lambda: [
            (task["word"], task["attempt"]) for task in self.status()["tasks"] if task["id"] == "first"] == [("RUNNING", 2)])
        self.open_gate()
        self.until("the last has ended", lambda: self.words().get("train/c") == "FINISHED")
        self.assertEqual({self.words()["train/a"], self.words()["train/b"]}, {"ON_HOLD"})
        self.assertEqual(self.trainyard("update", "c", "--priority", "1", expect=2).stderr,
                         "trainyard: train/c is FINISHED: only waiting and running tasks have a priority\n")
        self.assertEqual(self.trainyard("release", ":on-hold").stdout, "train/a may start\ntrain/b may start\n")
        self.assertIn("\n2 tasks stay on hold until 'trainyard release runs/job'\n", self.end_of(yard, expect=0)[1])

    def test_a_named_run_of_a_single_task_is_that_task(self):
        self.job("name: only\ngroups: [{name: only, cpus: 0, memory: 10MB, tasks: [{id: only, command: cat gate}]}]", "only.yaml")
        yard = self.start("run", "only.yaml")
        self.until_file("runs/only/journal.db")
        self.until("its task runs", lambda: self.words("runs/only") == {"only/only": "RUNNING"})
        self.assertEqual(self.trainyard("hold", "only", expect=2).stderr,
                         "trainyard: only/only is RUNNING: only waiting tasks can be put on hold\n")
        self.assertIn("only/only has priority 2", self.trainyard("update", "only", "--priority", "2", expect=0).stdout)
        self.assertIn("which tasks of 'runs/only'?", self.trainyard("hold", expect=2).stderr)
        self.open_gate()
        self.end_of(yard, expect=0)

    def test_says_which_tasks_where_nobody_names_any(self):
        yard = self.begin()
        for words in (["hold"], ["update", "--priority", "-5"], ["hold", "--dry-run"]):
            self.assertEqual(self.trainyard(*words, expect=2).stderr,
                             "trainyard: which tasks of 'runs/job'? For all of them, type: "
                             f"trainyard {' '.join(words)} runs/job '*'\n")
        self.assertIn("--priority is required", self.trainyard("update", "a", expect=2).stderr)
        for words in (["update", "a", "--priority=1001"], ["run", "--dry-run", "--priority=-1001", "--", "true"],
                      ["submit", "--priority=1.5", "--", "true"]):
            self.assertIn("is not a whole number from -1000 to 1000", self.trainyard(*words, expect=2).stderr)
        self.assertEqual(self.trainyard("set", "a", "--priority", "1", expect=2).stderr,
                         "trainyard: unknown command 'set' (did you mean 'update'?)\n")
        self.assertEqual(self.trainyard("release", expect=2).stderr, "trainyard: no task of 'runs/job' is on hold\n")
        self.open_gate()
        self.end_of(yard, expect=0)
        for words in (["hold"], ["hold", "job"], ["hold", "*"], ["update", "--priority=1"], ["release"]):
            self.assertEqual(self.trainyard(*words, expect=2).stderr, "trainyard: run 1 ('runs/job') has ended\n", words)


if __name__ == "__main__":
    unittest.main()
