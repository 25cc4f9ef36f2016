"""The run and the tasks that a word selects: numbers, names, values of the matrix, patterns and states."""
import json
import os
import signal
import unittest

from yard import YardTest, suspend

SWEEP = """
name: sweep
groups:
  - name: train
    cpus: 0
    memory: 10MB
    matrix: {lr: [1e-3, 0.1], seed: [0, 1]}
    tasks: [{command: 'sh task.sh {lr}'}]
  - name: eval
    needs: []
    cpus: 0
    memory: 10MB
    tasks: [{id: all, command: echo evaluated}, {id: "3", command: echo third}]
"""
# The tasks of the larger rate fail at once, or wait to be told, by the file that is there.
SCRIPT = "echo at $1; [ $1 = 1e-3 ] && exit 0; [ -p gate ] && exec cat gate; exit 3\n"


class SelectionTest(YardTest):
    def setUp(self):
        super().setUp()
        self.job(SWEEP, "sweep.yaml")
        self.write("task.sh", SCRIPT)

    def run_sweep(self, *words):
        return self.trainyard("run", "sweep.yaml", *words, expect=1).stderr

    def rows(self, *words):
        """The tasks of a table: the values of those with a matrix, the id of the others."""
        rows = json.loads(self.trainyard("results", *words, "--json", expect=0).stdout)["rows"]
        return sorted(f'{row["lr"]},{row["seed"]}' if row.get("lr") else row["task"] for row in rows)


class SharedRuns(SelectionTest):
    """Tests that only read: all tests of a class have the same runs."""

    @classmethod
    def setUpClass(cls):
        cls.first = cls()
        SelectionTest.setUp(cls.first)
        cls.addClassCleanup(SelectionTest.tearDown, cls.first)

    def setUp(self):
        self.directory, self.environment = self.first.directory, self.first.environment

    def tearDown(self):
        pass


class OneRun(SharedRuns):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.first.run_sweep()

    def test_status_shows_the_tasks_that_are_named_alone(self):
        def shown(*words):
            tasks = json.loads(self.trainyard("status", *words, "--json", expect=0).stdout)["tasks"]
            return [f'{task["group"]}/{task["id"]}' for task in tasks]
        self.assertEqual(shown("1", ":failed"), ["train/lr=0.1,seed=0", "train/lr=0.1,seed=1"])
        self.assertEqual(shown("lr=1e-3", "3"), ["train/lr=1e-3,seed=0", "train/lr=1e-3,seed=1", "eval/3"])
        text = self.trainyard("status", "sweep/seed=1", ":failed", expect=0).stdout
        self.assertRegex(text, r"\Asweep: ended .*\nrun 1: runs/sweep\n\ntrain: 4 tasks, 2 finished, 2 failed")
        self.assertIn("\n0.1     1  FAILED EXIT 3", text)
        self.assertNotIn("1e-3", text)
        self.assertNotIn("eval", text)
        self.assertNotIn("best:", text, "no selected task has finished")
        self.assertIn("and 3 more: 'trainyard status runs/sweep --all', or runs/sweep/reports/train.html", text)
        self.assertIn("no task of 'runs/sweep' is :running\n", self.trainyard("status", "1", ":running", expect=0).stdout)
        self.assertEqual(shown("1", ":running"), [])

    def test_tasks_are_values_of_the_matrix_patterns_groups_and_states(self):
        low = ["1e-3,0", "1e-3,1"]
        high = ["0.1,0", "0.1,1"]
        rest = ["3", "all"]
        for words, meant in ((["1", "lr=1e-1,seed=1"], high[1:]), (["1/lr=0.001"], low), (["runs/sweep/train/*"], high + low),
                             (["sweep/eval"], rest), (["1/"], rest + high + low), (["1", ":exit", "seed=0"], high[:1]),
                             ([":finished", "train"], low), (["all", "lr=0.1"], ["all", *high]), (["[3]"], ["3"]),
                             (["sweep.yaml/train/lr=0.1"], high)):
            with self.subTest(words=words):
                self.assertEqual(self.rows(*words), sorted(meant))
        self.assertEqual(self.rows(":oom"), [])
        self.assertEqual(self.trainyard("results", ":oom", expect=0).stdout, "no task of 'runs/sweep' is :oom\n")

    def test_logs_of_several_tasks_stand_under_their_names(self):
        self.assertEqual(self.trainyard("logs", "1", ":failed", "--stdout", expect=0).stdout,
                         "==> train/lr=0.1,seed=0 <==\nat 0.1\n\n==> train/lr=0.1,seed=1 <==\nat 0.1\n")
        self.assertIn("==> train/lr=0.1,seed=0 <==\n==> ", self.trainyard("logs", "1", "*", expect=0).stdout)
        self.assertEqual(self.trainyard("logs", "all", "--stdout", expect=0).stdout, "evaluated\n")
        self.assertEqual(self.trainyard("logs", "1", expect=2).stderr,
                         "trainyard: which of the 6 tasks of 'runs/sweep'? For all of them, type: "
                         "trainyard logs runs/sweep '*'\n")
        for words in (["1"], ["*"]):
            self.assertRegex(self.trainyard("logs", *words, "-f", expect=2).stderr,
                             r"only one task can be followed at a time; name one, as in 'trainyard logs runs/sweep train/\S+ -f'\n$")
        self.assertIn("no task of 'runs/sweep' is :oom", self.trainyard("logs", ":oom", expect=2).stderr)

    def test_what_means_nothing_is_told_with_what_comes_near(self):
        (self.directory / "runs/refused").mkdir()
        for words, told in ((["lr=0.2"], "task 'lr=0.2' not found in 'runs/sweep'; the values of lr are 1e-3, 0.1\n"),
                            (["lr=0.1,seed=7"], "task 'lr=0.1,seed=7' not found (did you mean"),
                            (["seed=7"], "task 'seed=7' not found in 'runs/sweep'; the values of seed are 0, 1\n"),
                            (["fold=7"], "task 'fold=7' not found in 'runs/sweep'; the matrix keys are lr, seed\n"),
                            (["nope"], "task 'nope' not found in 'runs/sweep', and no run has this name; existing runs: runs/sweep\n"),
                            (["failed"], "task 'failed' not found in 'runs/sweep'; a state begins with a colon: type :failed\n"),
                            (["1", "OOM"], "task 'OOM' not found in 'runs/sweep'; a state begins with a colon: type :oom\n"),
                            (["nope.yaml"], "job file 'nope.yaml' not found; a run is named by its number, name, directory or job file\n"),
                            (["runs/nosuch"], "no run directory 'runs/nosuch'; existing runs: runs/sweep\n"),
                            (["runs/refused"], "in 'runs/sweep', and no run has started in the directory 'runs/refused'\n"),
                            (["train/lr=0.1,seed=2"], "did you mean 'train/lr=0.1,seed=0'"),
                            ([":faild"], "unknown state ':faild' (did you mean ':failed'?)"),
                            (["a/b/c/d"], "no run found in 'a/b/c/d', and it is not a valid name of a task"),
                            (["77"], "trainyard: run 77 not found; the last one is run 1 ('runs/sweep')\n"),
                            (["77/lr=0.1"], "trainyard: run 77 not found; the last one is run 1 ('runs/sweep')\n"),
                            (["runs/sweep/train/lr=0.1,seed=7"], "task 'train/lr=0.1,seed=7' not found")):
            with self.subTest(words=words):
                self.assertIn(told, self.trainyard("logs", *words, expect=2).stderr)
        self.assertEqual(self.trainyard("status", "nope", expect=2).stderr,
                         "trainyard: task 'nope' not found in 'runs/sweep', and no run has this name; existing runs: runs/sweep\n")
        self.trainyard("status", "--watch", "sweep", expect=0)
        self.assertIn("unknown state ':nosuch'; use :waiting, :on-hold, ", self.trainyard("status", ":nosuch", expect=2).stderr)


class TwoRuns(SharedRuns):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.first.run_sweep()
        cls.first.run_sweep("--new")

    def test_a_run_is_its_number_its_name_its_directory_or_its_job_file(self):
        for name, number in (("1", 1), ("2", 2), ("sweep", 2), ("sweep-2", 2), ("last", 2), ("runs/sweep", 1), ("sweep.yaml", 2)):
            with self.subTest(name=name):
                self.assertIn(f"\nrun {number}: ", self.trainyard("status", name, expect=0).stdout)
        self.assertIn("task 'sweep@last' not found", self.trainyard("status", "sweep@last", expect=2).stderr)
        refused = self.trainyard("clean", "sweep", expect=2).stderr
        self.assertIn("several runs found: run 2 ('runs/sweep-2'), run 1 ('runs/sweep'); a command that changes a run needs its number or directory", refused)
        # From anywhere, as only numbers and names go.
        elsewhere = self.directory / "elsewhere"
        elsewhere.mkdir()
        self.assertIn("\nrun 2: ", self.trainyard("status", "2", expect=0, cwd=elsewhere).stdout)
        self.assertIn("\nrun 2: ", self.trainyard("status", "sweep", expect=0, cwd=elsewhere).stdout)

    def test_a_number_that_is_no_run_is_named_by_every_command(self):
        for words in (["status"], ["logs"], ["kill"], ["results"], ["retry"], ["hold"], ["wait"], ["clean"], ["run", "--resume"]):
            with self.subTest(words=words):
                refused = self.trainyard(*words, "77", expect=2).stderr
                self.assertTrue(refused.startswith("trainyard: run 77 not found; the last one is run 2 ('runs/sweep-2')"), refused)
                self.assertNotIn("several runs", refused)


class Selection(SelectionTest):
    def test_runs_have_numbers_that_are_told_when_they_start(self):
        self.assertIn("run 1: runs/sweep\n", self.run_sweep())
        self.assertIn("run 2: runs/sweep-2\n", self.run_sweep("--new"))
        self.assertIn("\nrun 2: runs/sweep-2\n", self.trainyard("status", "2", expect=0).stdout)
        told = json.loads(self.trainyard("status", "1", "--json", expect=0).stdout)
        self.assertEqual((told["run_number"], told["run_directory"]), (1, str(self.directory / "runs/sweep")))
        resumed = self.trainyard("run", "--resume", "1", expect=1).stderr
        self.assertIn("run 1: runs/sweep\n", self.trainyard("run", "sweep.yaml", "--resume", "1", expect=1).stderr)
        self.assertIn("\nrun 1: ", self.trainyard("status", expect=0).stdout, "the latest run was resumed last")
        self.assertIn("\nrun 2: ", self.trainyard("status", "last", expect=0).stdout, "the newest run was created last")
        self.assertEqual(self.trainyard("run", "sweep.yaml", "--resume", "99", expect=2).stderr,
                         "trainyard: run 99 not found; the last one is run 2 ('runs/sweep-2')\n")
        self.assertIn("task '2' not found in 'runs/sweep'; a run is named '2', but this command takes only one run",
                      self.trainyard("status", "1", "2", expect=2).stderr)
        self.assertIn("run 1: runs/sweep\n", resumed, "it goes on being that number")
        self.assertIn("run 4 not found; ", self.trainyard("status", "4", expect=2).stderr)

    def test_a_task_without_a_run_is_of_the_latest_run_and_another_run_that_has_it_is_named(self):
        self.run_sweep()
        self.job("name: other\ngroups: [{name: late, cpus: 0, memory: 10MB, tasks: [{id: mine, command: 'echo mine; exit 3'}]}]\n",
                 "other.yaml")
        self.trainyard("run", "other.yaml", expect=1)
        self.assertEqual(self.trainyard("logs", "mine", "--stdout", expect=0).stdout, "mine\n")
        for command, cure in (("logs", ": type 1/all"), ("status", ": type 1/all"), ("results", ": type 1/all"), ("retry", ": type 1/all"),
                              ("kill", ", but is not active"), ("hold", ", but is not active")):
            with self.subTest(command=command):
                self.assertEqual(self.trainyard(command, "all", expect=2).stderr,
                                 f"trainyard: task 'all' not found in 'runs/other'; run 1 ('runs/sweep') has it{cure}\n")
        self.assertEqual(self.trainyard("logs", "1/all", "--stdout", expect=0).stdout, "evaluated\n")
        self.run_sweep("--new")
        self.trainyard("run", "other.yaml", "--new", expect=1)
        self.assertIn("not found in 'runs/other-2'; run 3 ('runs/sweep-2') has it: type ",
                      self.trainyard("retry", "lr=0.1", expect=2).stderr, "the newest that has it, also by values of the matrix")

    def test_all_is_no_word_for_all_tasks(self):
        self.job("name: one\ngroups: [{name: late, cpus: 0, memory: 10MB, tasks: [{id: mine, command: exit 3}]}]\n", "one.yaml")
        self.trainyard("run", "one.yaml", expect=1)
        for command in ("logs", "kill", "retry"):
            with self.subTest(command=command):
                self.assertEqual(self.trainyard(command, "all", expect=2).stderr,
                                 "trainyard: task 'all' not found in 'runs/one'; for all tasks, type '*'\n")
        self.assertEqual(self.trainyard("logs", "*", "--stdout", expect=0).stdout, "")

    def test_a_run_that_is_gone_says_where_it_was(self):
        self.run_sweep()
        os.rename(self.directory / "runs/sweep", self.directory / "runs/moved")
        refused = self.trainyard("status", "1", expect=2).stderr
        self.assertIn("run 1 not found", refused)
        self.assertEqual(self.trainyard("run", "--resume", "1", expect=2).stderr, refused)
        self.assertIn("\nrun-dir: runs/moved\n", self.trainyard("status", "runs/moved", expect=0).stdout)
        self.assertIn("run 2: runs/sweep\n", self.run_sweep(), "another run in its place has another number")
        self.assertIn("run 1 not found; ", self.trainyard("status", "1", expect=2).stderr)

    def test_a_run_that_was_moved_here_has_its_name_in_every_command(self):
        self.run_sweep()
        elsewhere = self.directory / "elsewhere"
        elsewhere.mkdir()
        os.rename(self.directory / "runs", elsewhere / "runs")
        self.assertIn("\nrun-dir: runs/sweep\n", self.trainyard("status", "sweep", expect=0, cwd=elsewhere).stdout)
        self.trainyard("results", "sweep", expect=0, cwd=elsewhere)
        self.assertEqual(self.trainyard("logs", "sweep/eval/all", "--stdout", expect=0, cwd=elsewhere).stdout, "evaluated\n")
        for words in (["kill", "sweep"], ["hold", "sweep", "*"]):
            with self.subTest(words=words):
                self.assertIn("'runs/sweep' has ended", self.trainyard(*words, expect=2, cwd=elsewhere).stderr)

    def test_a_number_is_no_name_of_a_run(self):
        self.run_sweep()
        os.rename(self.directory / "runs/sweep", self.directory / "runs/12")
        for words in (["status"], ["logs"], ["kill"], ["wait"], ["retry"]):
            with self.subTest(words=words):
                self.assertIn("run 12 not found", self.trainyard(*words, "12", expect=2).stderr)
        self.assertIn("\nrun-dir: runs/12\n", self.trainyard("status", "runs/12", expect=0).stdout)

    def test_without_a_home_a_run_goes_on_without_a_number(self):
        env = {"XDG_STATE_HOME": "", "HOME": ""}
        told = self.trainyard("run", "sweep.yaml", expect=1, env=env).stderr
        self.assertIn("the run has no number: the directory for your state is unknown: set HOME or XDG_STATE_HOME", told)
        self.assertIn("run-dir: runs/sweep\n", told)
        file = self.write("file", "x")
        told = self.trainyard("run", "sweep.yaml", "--new", expect=1, env={"XDG_STATE_HOME": str(file)}).stderr
        self.assertRegex(told, r"the run has no number: .*/file/trainyard")

    def test_logs_of_tasks_that_did_not_start_say_how_each_of_them_ended(self):
        self.trainyard("run", "sweep.yaml", "--only", "lr=1e-3,seed=0", expect=0)
        one, other = (f"train/lr=0.1,seed={seed} did not start and is NOT_SELECTED: not selected when the run started" for seed in (0, 1))
        self.assertIn(one, self.trainyard("logs", "lr=0.1,seed=0", expect=2).stderr)
        none = self.trainyard("logs", "lr=0.1", expect=2)
        self.assertEqual((none.stdout, none.stderr), ("", f"trainyard: no selected task has such a log: {one}, {other}\n"))
        self.assertIn(f"==> {one} <==\n", self.trainyard("logs", "seed=0", expect=0).stdout)
        self.assertEqual(self.trainyard("kill", "lr=0.1,seed=0", "--dry-run", expect=1).stderr,
                         "trainyard: train/lr=0.1,seed=0 is NOT_SELECTED: only waiting and running tasks can be killed\n")

    def test_a_name_means_the_run_here_before_one_elsewhere(self):
        self.run_sweep()
        other = self.directory / "other"
        other.mkdir()
        self.write("other/sweep.yaml", self.text("sweep.yaml"))
        self.trainyard("run", "sweep.yaml", cwd=other)
        self.assertIn("run 1: runs/sweep\n", self.trainyard("status", "sweep", expect=0).stdout)
        self.assertNotIn("several runs", self.trainyard("retry", "sweep", ":oom", "--dry-run", expect=2).stderr)
        self.assertIn("would delete run 1 ('runs/sweep')", self.trainyard("clean", "sweep", "--dry-run", expect=0).stdout)

    def test_a_name_that_only_another_directory_has_is_shown_with_a_note_and_changes_nothing(self):
        self.run_sweep()
        other = self.directory / "other"
        other.mkdir()
        it = f"trainyard: 'sweep' is run 1 ('{self.directory.resolve()}/runs/sweep')"
        for words in (["status", "sweep"], ["status", "--run-dir", "sweep"], ["results", "sweep"], ["logs", "sweep/eval/all"]):
            with self.subTest(words=words):
                self.assertEqual(self.trainyard(*words, expect=0, cwd=other).stderr, f"{it}; no run of this directory has this name\n")
        self.assertIn(f"{it}; no run of this directory has this name\n", self.trainyard("wait", "sweep", expect=1, cwd=other).stderr)
        for words in (["kill", "sweep", "*"], ["kill", "--run-dir", "sweep", "all"], ["hold", "sweep/train"], ["release", "sweep"],
                      ["update", "sweep", "*", "--priority", "1"], ["retry", "sweep"], ["retry", "sweep", "--dry-run"], ["clean", "sweep"],
                      ["run", "--resume", "sweep"], ["submit", "--run-dir", "sweep", "--", "true"]):
            with self.subTest(words=words):
                self.assertEqual(self.trainyard(*words, expect=2, cwd=other).stderr,
                                 f"{it}, and no run of this directory has this name; type 1 instead of 'sweep'\n")
        self.assertIn("\n  train/lr=0.1,seed=0: EXIT 3", self.trainyard("retry", "1", "--dry-run", expect=0, cwd=other).stdout)
        (other / "sweep/runs").mkdir(parents=True)
        self.assertEqual(self.trainyard("logs", "sweep", expect=2, cwd=other).stderr, "trainyard: no run of 'sweep' found\n", "the directory is itself")

    def test_a_run_that_was_started_from_here_is_one_of_here_wherever_its_job_file_is(self):
        self.run_sweep()
        self.write("sub/later.yaml", "groups: [{name: late, memory: 10MB, tasks: [{command: echo later}]}]")
        self.trainyard("run", "sub/later.yaml", expect=0)
        self.assertEqual(self.trainyard("logs", "--stdout", expect=0).stdout, "later\n")
        self.assertIn("late/late-1 is FINISHED: only waiting and running tasks can be killed", self.trainyard("kill", "*", "--dry-run", expect=1).stderr)
        self.trainyard("wait", expect=0)
        # Its name is enough to change it, too.
        self.assertIn("no task of", self.trainyard("retry", "later", expect=2).stderr)
        self.assertEqual(self.trainyard("clean", "later", expect=0).stderr.count("sub/runs/later"), 0)
        self.assertFalse((self.directory / "sub/runs/later").exists())

    def test_a_name_of_no_run_that_is_like_a_task_may_have_been_a_run(self):
        self.trainyard("run", "--name", "r3", "--cpus", "0", "--memory", "10MB", "--", "true", expect=0)
        self.assertEqual(self.trainyard("status", "r1", expect=2).stderr,
                         "trainyard: task 'r1' not found in 'runs/r3', and no run has this name (did you mean 'r3'?)\n")

    def test_a_run_of_a_larger_number_that_cannot_be_read_is_named(self):
        for name in ("old", "new"):
            self.trainyard("run", "--name", name, "--cpus", "0", "--memory", "10MB", "--", "true", expect=0)
        self.write("runs/new/journal.db", "nonsense")
        shown = self.trainyard("status", expect=0)
        self.assertIn("\nrun 1: runs/old\n", shown.stdout)
        self.assertEqual(shown.stderr, "trainyard: the journal of run 2 ('runs/new') cannot be read; this is run 1 ('runs/old')\n")
        (self.directory / "runs/nothing").mkdir()
        (self.directory / "runs/old/journal.db").unlink()
        self.assertEqual(self.trainyard("status", "runs/nothing", expect=2).stderr,
                         "trainyard: no run found in 'runs/nothing': it has no journal\n")

    def test_where_there_is_no_run_the_newest_elsewhere_is_named(self):
        other = self.directory / "other"
        other.mkdir()
        none = "trainyard: no run found under ./runs: name a run number, a run directory or a job file"
        self.assertEqual(self.trainyard("logs", cwd=other, expect=2).stderr, none + "\n")
        (other / "runs/nothing").mkdir(parents=True)
        for command in ("status", "logs", "kill", "retry", "results"):
            self.assertEqual(self.trainyard(command, "runs/nothing", cwd=other, expect=2).stderr,
                             "trainyard: no run found in 'runs/nothing': it has no journal\n")
        self.run_sweep()
        self.assertEqual(self.trainyard("logs", cwd=other, expect=2).stderr,
                         f"{none}; your last run is run 1 ('{self.directory.resolve()}/runs/sweep')\n")
        self.assertIn("job file 'nope.yaml' not found", self.trainyard("retry", "nope.yaml", cwd=other, expect=2).stderr)

    def test_a_task_as_tables_show_it_is_of_a_group_of_the_latest_run_before_a_run_of_that_name(self):
        small = ["run", "--name", "train", "--cpus", "0", "--memory", "10MB"]
        other = self.directory / "other"
        other.mkdir()
        self.trainyard(*small, "--matrix", "seed=0,1", "--", "true", cwd=other, expect=0)
        self.run_sweep()
        self.assertEqual(self.trainyard("logs", "train/lr=0.1,seed=0", "train/lr=0.1,seed=1", "--stdout", expect=0).stdout,
                         "==> train/lr=0.1,seed=0 <==\nat 0.1\n\n==> train/lr=0.1,seed=1 <==\nat 0.1\n")
        # So is the group itself, before a run of another directory.
        self.assertEqual(len(self.rows("train")), 4)
        self.assertIn("run 2 ('runs/sweep') has ended", self.trainyard("hold", "train", expect=2).stderr)
        # All tasks can only be those of a run.
        self.assertEqual(self.trainyard("hold", "train", "*", expect=2).stderr,
                         "trainyard: 'train' is run 1 ('other/runs/train'), and no run of this directory has this name; type 1 instead of 'train'\n")
        self.assertIn("run 1 ('other/runs/train') has ended", self.trainyard("hold", "1", "*", expect=2).stderr)
        self.assertEqual(len(self.rows("--run-dir", "runs/sweep", "train")), 4)
        # A run here has the name of the group, and no such task.
        self.trainyard(*small, "--matrix", "lr=0.1,1", "--", "true", expect=0)
        self.assertEqual(self.trainyard("kill", "train/lr=0.1,seed=1", expect=2).stderr,
                         "trainyard: task 'lr=0.1,seed=1' not found in 'runs/train'; run 2 ('runs/sweep') has it, but is not active\n")
        # Beside a newer run whose group has the name of a run here, either may be meant.
        self.trainyard("run", "sweep.yaml", "--new", expect=1)
        self.assertEqual(self.trainyard("kill", "train", expect=2).stderr,
                         "trainyard: 'train' is ambiguous: run 3 ('runs/train'), and a group of run 4 ('runs/sweep-2'); write "
                         "'--run-dir runs/train' for the run, or '--run-dir runs/sweep-2 train' for the group\n")

    def test_next_to_a_run_a_group_of_it_is_the_group_and_another_word_a_further_run(self):
        for name in ("train", "other"):
            self.trainyard("run", "--name", name, "--cpus", "0", "--memory", "10MB", "--", "true", expect=0)
        self.run_sweep()
        group = ["0.1,0", "0.1,1", "1e-3,0", "1e-3,1"]
        for words in (["runs/sweep", "train"], ["sweep.yaml", "train"], ["train", "runs/sweep"], ["sweep", "lr=0.1", "train"]):
            with self.subTest(words=words):
                self.assertEqual(self.rows(*words), group)
        self.assertEqual(len(self.rows("sweep", "other")), 7)
        self.assertEqual(len(self.rows("sweep", "runs/train")), 7, "a path is a run")

    def test_nothing_is_ended_where_a_word_means_a_run_and_a_task(self):
        self.run_sweep()
        self.run_sweep("--new")
        self.run_sweep("--new")
        refused = self.trainyard("kill", "3", expect=2).stderr
        self.assertIn("'3' is ambiguous: run 3 ('runs/sweep-3'), and a task of run 3 ('runs/sweep-3')", refused)
        self.assertEqual(self.trainyard("logs", "--run-dir", "1", "3", "--stdout", expect=0).stdout, "third\n")
        self.assertEqual(self.trainyard("logs", "1", "3", "--stdout", expect=0).stdout, "third\n", "the run comes first")
        self.assertEqual(self.trainyard("logs", "3", "runs/sweep", "--stdout", expect=0).stdout, "third\n")
        self.assertEqual(self.rows("--run-dir", "3"), self.rows("1"))
        self.assertIn("only one run is allowed here", self.trainyard("logs", "runs/sweep", "sweep.yaml", expect=2).stderr)
        self.write("notes.txt", "")
        self.assertEqual(self.trainyard("logs", "notes.txt", "sweep.yaml", expect=2).stderr,
                         "trainyard: only one run is allowed here, not 'notes.txt' and 'sweep.yaml'; for all tasks, write '*' in quotes\n")
        # A directory that is called as a run is numbered.
        self.trainyard("run", "sweep.yaml", "--run-dir", "2", expect=1)
        self.assertIn("/runs/sweep-2', and the directory of the run in './2'; name the directory", self.trainyard("status", "2", expect=2).stderr)
        self.assertIn("'2' is ambiguous: ", self.trainyard("run", "--resume", "2", expect=2).stderr)
        self.assertIn("\nrun 4: 2\n", self.trainyard("status", "./2", expect=0).stdout)

    def test_a_run_may_begin_with_some_of_its_tasks_alone(self):
        self.job(SWEEP.replace("needs: []", "needs: train"), "sweep.yaml")
        shown = json.loads(self.trainyard("run", "sweep.yaml", "--only", "lr=1e-3", "--only", "3", "--dry-run", "--json",
                                          expect=0).stdout)
        self.assertEqual([task["id"] for task in shown["tasks"]], ["lr=1e-3,seed=0", "lr=1e-3,seed=1", "3"])
        done = self.trainyard("run", "sweep.yaml", "--only", "lr=1e-3", "--only", "3", expect=0)
        self.assertIn("6 tasks in 2 groups: 4 of train, 2 of eval; 3 not selected\n", done.stderr)
        self.assertRegex(done.stderr, r"3/3 done\n$")
        words = self.words("runs/sweep")
        self.assertEqual(words, {"train/lr=1e-3,seed=0": "FINISHED", "train/lr=1e-3,seed=1": "FINISHED",
                                 "train/lr=0.1,seed=0": "NOT_SELECTED", "train/lr=0.1,seed=1": "NOT_SELECTED",
                                 "eval/all": "NOT_SELECTED", "eval/3": "FINISHED"})
        self.assertEqual(self.rows("1", ":not-selected"), ["0.1,0", "0.1,1", "all"])
        self.assertEqual([group["not_selected"] for group in self.status("runs/sweep")["groups"]], [2, 1])
        # The first of them by command, and the others when the run is resumed.
        self.trainyard("retry", "1", "all", expect=0)
        self.assertEqual(self.words("runs/sweep")["eval/all"], "FINISHED")
        self.assertEqual(self.words("runs/sweep")["train/lr=0.1,seed=0"], "NOT_SELECTED")
        self.trainyard("run", "--resume", "1", expect=1)
        self.assertEqual(self.words("runs/sweep")["train/lr=0.1,seed=0"], "EXIT 3")
        for words, told in ((["--only", "lr=0.2"], "the job has no task 'lr=0.2'; the values of lr are 1e-3, 0.1\n"),
                            (["--only", "al"], "did you mean 'all'?"), (["--only", ""], "is not a valid name or pattern of tasks"),
                            (["--only", "all", "--resume"], "use 'trainyard retry sweep.yaml all'\n")):
            with self.subTest(words=words):
                self.assertIn(told, self.trainyard("run", "sweep.yaml", *words, "--dry-run", expect=2).stderr)
        refused = self.trainyard("run", "sweep.yaml", "--only", "lr=0.1", "--only", "all", expect=2).stderr
        self.assertIn("already contains a run. To run the selected tasks that have not finished, type\n"
                      "  trainyard retry runs/sweep lr=0.1 all\nTo start another run, in ", refused)
        self.assertNotIn("--resume", refused)
        refused = self.trainyard("run", "sweep.yaml", "--only", "lr=1e-3", expect=2).stderr
        self.assertIn("already contains a run. The selected tasks have finished there.\nTo start another run, in ", refused)
        self.assertRegex(refused, r" run sweep.yaml --only lr=1e-3 .* --new\n\Z")
        self.assertIn("2 tasks of 'runs/sweep':\n", self.trainyard("retry", "runs/sweep", "lr=0.1", "all", expect=1).stderr)
        killed = self.trainyard("kill", "1", expect=2).stderr
        self.assertIn("run 1 ('runs/sweep') has ended", killed)
        self.assertNotIn("'*'", killed)

    def test_an_empty_word_means_nothing(self):
        self.trainyard("run", "sweep.yaml", "--only", "lr=1e-3,seed=0", expect=0)
        for words in (["status", ""], ["results", ""], ["logs", ""], ["kill", ""], ["retry", ""], ["hold", ""]):
            self.assertIn("'' is not the name of a run or a task", self.trainyard(*words, expect=2).stderr, words)
        for words in (["clean", ""], ["submit", "sweep.yaml", ""], ["wait", ""], ["kill", "--run-dir", "", "*"]):
            self.assertIn("'' is not the name of a run", self.trainyard(*words, expect=2).stderr, words)
        self.assertTrue((self.directory / "runs/sweep").exists())

    def test_kill_ends_all_that_are_meant_and_nothing_is_asked_of_a_run_that_is_suspended(self):
        os.mkfifo(self.directory / "gate")
        yard = self.start("run", "sweep.yaml")
        self.until_file("runs/sweep/journal.db")
        self.until("the larger rate alone",
                   lambda: sorted(self.words("runs/sweep").values()) == ["FINISHED"] * 4 + ["RUNNING"] * 2)
        suspend(yard.pid)
        for words in (["kill", "lr=0.1"], ["hold", "*"], ["release", "*"], ["update", "*", "--priority", "1"], ["retry", "lr=0.1"],
                      ["submit", "sweep.yaml", "runs/sweep"]):
            self.assertIn(f"is suspended, as by Ctrl-Z, and does not respond; 'kill -CONT {yard.pid}' resumes it",
                          self.trainyard(*words, expect=2).stderr)
        os.kill(yard.pid, signal.SIGCONT)
        self.assertEqual(self.trainyard("kill", "1", expect=2).stderr,
                         "trainyard: which tasks of 'runs/sweep'? For all of them, type: trainyard kill runs/sweep '*'\n")
        self.assertEqual(self.trainyard("kill", "1", "--dry-run", expect=2).stderr,
                         "trainyard: which tasks of 'runs/sweep'? For all of them, type: "
                         "trainyard kill --dry-run runs/sweep '*'\n")
        self.assertIn("no task of 'runs/sweep' is :oom", self.trainyard("kill", "1", ":oom", expect=2).stderr)
        would = self.trainyard("kill", "1", "lr=0.1,seed=0", "lr=1e-3,seed=0", "--dry-run", expect=1)
        self.assertEqual((would.stdout, would.stderr),
                         ("train/lr=0.1,seed=0 is selected\n", "trainyard: train/lr=1e-3,seed=0 is FINISHED: only waiting and running tasks can be killed\n"))
        self.assertEqual(self.trainyard("kill", "1", "*", "--dry-run", expect=0).stdout,
                         "train/lr=0.1,seed=0 is selected\ntrain/lr=0.1,seed=1 is selected\n")
        named = self.trainyard("kill", "1", "lr=0.1,seed=0", "lr=1e-3,seed=0", expect=1)
        self.assertEqual((named.stdout, named.stderr),
                         ("train/lr=0.1,seed=0 was killed\n", "trainyard: train/lr=1e-3,seed=0 is FINISHED: only waiting and running tasks can be killed\n"))
        self.assertEqual(self.trainyard("kill", "1", "*", expect=0).stdout, "train/lr=0.1,seed=1 was killed\n")
        self.end_of(yard, expect=1)
        words = self.words("runs/sweep")
        self.assertEqual([words[f"train/lr=0.1,seed={seed}"] for seed in (0, 1)], ["KILLED", "KILLED"])
        self.assertEqual(words["train/lr=1e-3,seed=0"], "FINISHED")

    def test_a_pattern_kills_tasks_that_need_each_other_and_what_waits_for_its_retry(self):
        os.mkfifo(self.directory / "gate")
        self.job("""
name: chain
groups:
  - name: one
    cpus: 0
    memory: 10MB
    matrix: {i: [0, 1]}
    tasks: [{command: 'test {i} = 0 && exit 3; cat gate', retries: 1, retry-delay: 1h}]
  - name: dep
    cpus: 0
    memory: 10MB
    matrix: {i: [0, 1]}
    needs: [{group: one, match: matrix}]
    tasks: [{command: 'true'}]
""", "chain.yaml")
        yard = self.start("run", "chain.yaml")
        self.until_file("runs/chain/journal.db")
        self.until("one waits for its retry", lambda: self.words("runs/chain").get("one/i=0") == "RETRYING"
                   and self.words("runs/chain")["one/i=1"] == "RUNNING")
        killed = self.trainyard("kill", "1", "*", expect=0)
        self.assertEqual((killed.stdout, killed.stderr),
                         ("one/i=0 will not be retried\none/i=1 was killed\ndep/i=0 will not start\ndep/i=1 will not start\n", ""))
        self.end_of(yard, expect=1)


if __name__ == "__main__":
    unittest.main()
