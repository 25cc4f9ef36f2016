"""Job files that are added to a run at work."""
import shutil
import unittest

from yard import PATIENCE_S, TRAINYARD, YardTest, guard_of, json, keeper_of, os, signal, subprocess

SOMEBODY_ELSE = ("setpriv", "--reuid=65534", "--clear-groups")

# Waits until a writer opens the fifo `gate`.
HOLDS = """
name: job
groups:
  - name: train
    tasks: [{id: a, command: ": < gate"}]
"""
MORE = """
groups:
  - name: train
    tasks: [{id: a, command: 'echo "more $WHO" > "$TRAINYARD_TASK_DIR/said"'}]
"""


class Submit(YardTest):
    def setUp(self):
        super().setUp()
        os.mkfifo(self.directory / "gate")

    def holding(self, *words):
        """A run whose one task waits for the gate."""
        self.job(HOLDS)
        yard = self.start("run", "job.yaml", *words)
        self.until("the task", lambda: self.life("a")[-1:] == ["TRAINING"])
        return yard

    def test_adds_tasks_that_run_beside_the_others_in_directories_of_their_own(self):
        yard = self.holding()
        self.write("more.yaml", MORE)
        done = self.trainyard("submit", "more.yaml", "runs/job", expect=0, env={"WHO": "than one", "TOKEN": "very-secret"})
        self.assertEqual(done.stdout, "submission 2: 1 task in 1 group: 1 of 'train (2)'\n")
        said = self.directory / "runs/job/submissions/2/train/a/said"
        self.until("the submitted task", lambda: said.exists() and said.read_text())
        self.assertEqual(said.read_text(), "more than one\n", "it finds who submitted it in its environment")
        self.open_gate()
        shown, told = self.end_of(yard, expect=0)
        self.assertIn("submission 2: 1 task in 1 group: 1 of 'train (2)'", told)
        self.assertEqual(self.words(), {"train/a": "FINISHED", "train (2)/a": "FINISHED"})
        self.assertRegex(shown, r"train \(2\)")
        self.assertTrue((self.directory / "runs/job/reports/train (2).html").exists())
        logs = self.trainyard("logs", "train (2)/a", expect=0)
        self.assertEqual(logs.stdout, "")
        directories = {row["group"]: row["stderr"] for row in self.status()["tasks"]}
        self.assertEqual(directories, {"train": "train/a/stderr.log", "train (2)": "submissions/2/train/a/stderr.log"})
        # The environment of the submitter is in the journal and nowhere else.
        self.assertEqual((self.directory / "runs/job/journal.db").stat().st_mode & 0o777, 0o600)
        self.assertNotIn("very-secret", self.trainyard("status", "runs/job", "--json", "--all", expect=0).stdout)
        for page in (self.directory / "runs/job/reports").iterdir():
            self.assertNotIn("very-secret", page.read_text(), page.name)
        ((environment,),) = self.query("SELECT environment FROM batches WHERE number = 2")
        self.assertIn("very-secret", environment)

    def test_a_mistake_of_a_command_names_its_option(self):
        yard = self.holding()
        refused = self.trainyard("submit", "--run-dir", "runs/job", "--cpus", "9000", "--", "true", expect=2).stderr
        self.assertIn("trainyard: --cpus: task 'true' can never run here: needs 9000 CPUs", refused)
        self.open_gate()
        self.end_of(yard, expect=0)

    def test_ends_a_submitted_task_that_has_the_name_of_another(self):
        yard = self.holding()
        self.write("more.yaml", HOLDS)
        self.trainyard("submit", "more.yaml", "runs/job", expect=0)
        self.until("the submitted task", lambda: self.words().get("train (2)/a") == "RUNNING")
        several = self.trainyard("kill", "a", expect=2)
        self.assertEqual(several.stderr, "trainyard: several tasks have the name 'a': type train/a or 'train (2)/a'\n")
        self.trainyard("kill", "train (2)/a", expect=0)
        self.assertEqual(self.words(), {"train/a": "RUNNING", "train (2)/a": "KILLED"})
        self.trainyard("kill", "train/a", expect=0)
        self.end_of(yard, expect=1)
        self.assertEqual(self.words(), {"train/a": "KILLED", "train (2)/a": "KILLED"})

    def test_names_the_group_of_a_submission_as_people_see_it(self):
        yard = self.holding()
        self.write("more.yaml", HOLDS)
        self.trainyard("submit", "more.yaml", "runs/job", expect=0)
        literal = "groups: [{name: train (3), tasks: [{id: a, command: 'true'}]}]\n"
        self.write("literal.yaml", literal)
        self.assertEqual(self.trainyard("submit", "literal.yaml", "runs/job", expect=0).stdout,
                         "submission 3: 1 task in 1 group: 1 of 'train (3)'\n")
        self.assertEqual(self.trainyard("submit", "more.yaml", "runs/job", expect=0).stdout,
                         "submission 4: 1 task in 1 group: 1 of 'train (4)'\n")
        self.assertEqual(self.trainyard("submit", "literal.yaml", "runs/job", expect=0).stdout,
                         "submission 5: 1 task in 1 group: 1 of 'train (3) (5)'\n")
        self.write("eval.yaml", "groups:\n"
                                "  - {name: latest, needs: train, tasks: [{id: e, command: 'true'}]}\n"
                                "  - {name: second, needs: train (2), tasks: [{id: e, command: 'true'}]}\n")
        self.assertEqual(self.trainyard("submit", "eval.yaml", "runs/job", expect=0).stdout,
                         "submission 6: 2 tasks in 2 groups: 1 of latest, 1 of second; "
                         "'latest' needs 'train (4)', which was there before; "
                         "'second' needs 'train (2)', which was there before\n")
        status = self.trainyard("status", expect=0).stdout
        self.assertRegex(status, r"latest, 1 task: waits for group 'train \(4\)'")
        self.assertRegex(status, r"second, 1 task: waits for group 'train \(2\)'")
        self.trainyard("kill", "train (2)/a", expect=0)
        self.until("the one that cannot run", lambda: self.words()["second/e"] == "SKIPPED")
        (row,) = [row for row in self.status()["tasks"] if row["group"] == "second"]
        self.assertEqual(row["message"], "needs group 'train (2)', where a task failed")
        yard.terminate()
        self.end_of(yard, expect=143)

    @unittest.skipUnless(os.geteuid() == 0 and subprocess.run([*SOMEBODY_ELSE, TRAINYARD, "--version"],
                                                              capture_output=True).returncode == 0,
                         "it takes root to be somebody else, and a program that they can run")
    def test_says_whose_run_it_is_that_others_may_not_touch(self):
        yard = self.holding()
        self.write("more.yaml", MORE)
        self.directory.chmod(0o755)
        for words in (("submit", "more.yaml", "--run-dir", "runs/job"), ("status", "runs/job"),
                      ("kill", "a", "--run-dir", "runs/job"), ("run", "--resume", "runs/job", "--dry-run"),
                      ("run", "--resume", "runs/job"), ("run", "job.yaml")):
            done = self.trainyard(*words, expect=2, prefix=SOMEBODY_ELSE)
            self.assertEqual(done.stdout, "")
            self.assertIn("belongs to another user (uid 0), and only they can look into it or change it", done.stderr)
            self.assertEqual("--run-dir DIR" in done.stderr, words == ("run", "job.yaml"), done.stderr)
        self.assertEqual(self.words(), {"train/a": "RUNNING"})
        self.open_gate()
        self.end_of(yard, expect=0)

    def test_says_what_is_wrong_with_a_file_and_changes_nothing(self):
        yard = self.holding()
        self.write("more.yaml", """
config: {scheduler: {max-process: 3}}
groups:
  - name: eval
    needs: trian
    tasks: [{id: e, comand: "true"}]
""")
        done = self.trainyard("submit", "more.yaml", "runs/job", expect=2)
        self.assertEqual(done.stdout, "")
        path = self.directory / "more.yaml"
        self.assertIn(f"{path}:5:12: group 'eval': needs: group 'trian' not found (did you mean 'train'?)", done.stderr)
        self.assertIn("'comand' (did you mean 'command'?)", done.stderr)
        self.assertIn(f"{path}:2:35: scheduler.max-process: cannot be changed by a submission, only by the run",
                      done.stderr)
        self.write("none.yaml", "groups: [\n")
        self.assertIn("none.yaml", self.trainyard("submit", "none.yaml", "runs/job", expect=2).stderr)
        self.assertIn("gone.yaml: file not found", self.trainyard("submit", "gone.yaml", "runs/job", expect=2).stderr)
        self.write("large.yaml", "groups: [{name: g, matrix: {i: 1..100001}, tasks: [{command: 'true'}]}]\n")
        self.assertIn("has 100001 tasks, but a submission may have at most 100000",
                      self.trainyard("submit", "large.yaml", "runs/job", expect=2).stderr)
        self.assertEqual(self.query("SELECT number, complete FROM batches"), [(1, 1)])
        self.open_gate()
        self.end_of(yard, expect=0)
        self.assertEqual(self.words(), {"train/a": "FINISHED"})

    def test_finds_no_run_that_is_over_or_dead(self):
        self.write("more.yaml", MORE)
        self.assertIn("no run", self.trainyard("submit", "more.yaml", "runs/job", expect=2).stderr)
        yard = self.holding()
        os.killpg(yard.pid, signal.SIGKILL)
        self.end_of(yard)
        told = self.trainyard("submit", "more.yaml", "--run-dir", "runs/job", expect=2).stderr
        self.assertIn("run 1 ('runs/job') is not running: 'trainyard status runs/job' shows how to resume it", told)
        self.assertIn("without a run, 'trainyard submit' adds to your queue", told)

    def test_goes_on_with_all_that_was_submitted_each_by_its_own_text(self):
        yard = self.holding()
        self.write("more.yaml", """
groups:
  - name: train
    tasks:
      - {id: a, command: 'echo "as submitted by $WHO" > "$TRAINYARD_TASK_DIR/said"'}
      - {id: b, command: ": < gate"}
""")
        self.trainyard("submit", "more.yaml", "runs/job", expect=0, env={"WHO": "me"})
        said = self.directory / "runs/job/submissions/2/train/a/said"
        self.until("the submitted task", lambda: self.words().get("train (2)/a") == "FINISHED")
        os.killpg(yard.pid, signal.SIGKILL)
        self.end_of(yard)
        said.unlink()
        (self.directory / "more.yaml").unlink()
        self.job(HOLDS.replace(": < gate", "true"))
        again = self.start("run", "--resume", "runs/job")
        self.until("the gate's reader", lambda: self.words().get("train (2)/b") == "RUNNING")
        self.open_gate()
        _, told = self.end_of(again, expect=0)
        self.assertIn("resumed: 1 of 3 tasks finished before, and will not run again", told)
        self.assertEqual(self.words(), {"train/a": "FINISHED", "train (2)/a": "FINISHED", "train (2)/b": "FINISHED"})
        self.assertFalse(said.exists(), "what has finished is kept")

    def test_is_named_when_the_job_file_has_lost_what_it_needs(self):
        yard = self.holding()
        self.write("more.yaml", "groups: [{name: eval, needs: train, tasks: [{id: e, command: 'true'}]}]\n")
        self.trainyard("submit", "more.yaml", "runs/job", expect=0)
        os.killpg(yard.pid, signal.SIGKILL)
        self.end_of(yard)
        self.job(HOLDS.replace("name: train", "name: trained"))
        refused = self.trainyard("run", "--resume", "runs/job", expect=2).stderr
        self.assertIn("(submission 2 of this run: restore what it needs in the job file)", refused)
        self.job(HOLDS.replace(": < gate", "true"))
        self.trainyard("run", "--resume", "runs/job", expect=0)
        self.assertEqual(self.words(), {"train/a": "FINISHED", "eval/e": "FINISHED"})

    def test_takes_eight_at_once_each_with_its_number(self):
        yard = self.holding()
        for number in range(8):
            self.write(f"more-{number}.yaml", f"groups: [{{name: g{number}, tasks: [{{id: t, command: 'true'}}]}}]\n")
        shells = [self.start("submit", f"more-{number}.yaml", "runs/job", "--json") for number in range(8)]
        answers = [json.loads(self.end_of(shell, expect=0)[0]) for shell in shells]
        self.assertEqual(sorted(answer["submission"] for answer in answers), list(range(2, 10)))
        self.open_gate()
        self.end_of(yard, expect=0)
        words = self.words()
        self.assertEqual(len(words), 9)
        self.assertEqual(set(words.values()), {"FINISHED"})

    def test_loses_nothing_that_was_answered_whenever_the_yard_is_killed(self):
        # It is killed when so many of four have been answered, each of which has so many tasks.
        for turn, (answers, size) in enumerate(((0, 7000), (1, 7000), (2, 30), (3, 1))):
            run = f"runs/turn-{turn}"
            self.job(HOLDS)
            yard = self.start("run", "job.yaml", "--run-dir", run)
            self.until("the task", lambda: self.life("a", run)[-1:] == ["TRAINING"])
            self.write("more.yaml", "groups: [{name: more, matrix: {i: [%s]}, tasks: [{command: 'true'}]}]\n"
                       % ", ".join(map(str, range(size))))
            shells = [self.start("submit", "more.yaml", "--run-dir", run, "--json") for _ in range(4)]
            self.until("a submission", lambda: len(self.query("SELECT number FROM batches", run)) > 1)
            self.until("answers", lambda: sum(shell.poll() is not None for shell in shells) >= answers)
            os.kill(yard.pid, signal.SIGKILL)
            self.end_of(yard)
            answered = set()
            for shell in shells:
                output, _ = self.end_of(shell)
                if shell.returncode == 0:
                    answered.add(json.loads(output)["submission"])
            kept = {number for (number,) in self.query("SELECT number FROM batches WHERE complete", run)}
            self.assertGreaterEqual(len(answered), answers)
            self.assertLessEqual(answered, kept, f"turn {turn}: {size} tasks")
            preview = self.trainyard("run", "--resume", run, "--dry-run", expect=0).stdout
            self.assertRegex(preview, f"resumed: (no task had finished|[0-9]+ of {1 + size * (len(kept) - 1)} tasks? finished before)"
                                      "|nothing to run: (the only task has|(both|all [0-9]+) tasks have) finished")


class UntilStdinCloses(YardTest):
    """A run that a program holds by the other end of its standard input."""

    def held(self, command):
        self.job(f"name: job\ngroups: [{{name: train, tasks: [{{id: a, command: {command}}}]}}]\n")
        return self.start("run", "job.yaml", "--until-stdin-closes", stdin=subprocess.PIPE)

    def ended(self, name, status="EXITED"):
        self.until(f"the end of {name}", lambda: self.life(name)[-1:] == [status])

    def test_stays_for_what_is_submitted_when_all_has_ended(self):
        yard = self.held("'true'")
        self.ended("a")
        for number in (1, 2):
            self.write("more.yaml", f"groups: [{{name: g{number}, tasks: [{{id: b{number}, command: 'true'}}]}}]\n")
            self.trainyard("submit", "more.yaml", "runs/job", expect=0)
            self.ended(f"b{number}")
        yard.stdin.write("what is written here is not read\n" * 10_000)
        yard.stdin.flush()
        self.assertIsNone(yard.poll())
        self.end_of(yard, expect=0)  # This closes its input.
        self.assertEqual(self.words(), {"train/a": "FINISHED", "g1/b1": "FINISHED", "g2/b2": "FINISHED"})
        self.assertEqual(self.status()["execution"]["how"], "ended")

    def test_kills_what_still_runs_then_at_once(self):
        os.mkfifo(self.directory / "gate")
        yard = self.held("': < gate'")
        self.until("the task", lambda: self.life("a")[-1:] == ["TRAINING"])
        self.end_of(yard, expect=130)
        self.assertEqual(self.query("SELECT data LIKE '%\"kill\":true%' FROM events WHERE kind = 'interrupt' ORDER BY seq"),
                         [(0,), (1,)])
        self.assertEqual(self.words(), {"train/a": "STOPPED"})
        self.assertEqual(self.status()["execution"]["how"], "interrupted")

    def test_ends_by_a_signal_while_it_has_nothing_to_do(self):
        yard = self.held("'true'")
        self.ended("a")
        yard.send_signal(signal.SIGTERM)
        self.assertEqual(yard.wait(timeout=PATIENCE_S), 143)
        self.assertIn("nothing to run", self.trainyard("run", "--resume", "runs/job", expect=0).stderr)

    def test_goes_on_with_another_keeper_while_it_has_nothing_to_do(self):
        yard = self.held("'true'")
        self.ended("a")
        before = keeper_of(yard.pid)
        os.kill(before, signal.SIGKILL)
        self.until("another keeper", lambda: keeper_of(yard.pid) not in (None, before))
        self.job("name: more\ngroups: [{name: more, needs: [], tasks: [{id: b, command: 'true'}]}]", "more.yaml")
        self.trainyard("submit", "more.yaml", "runs/job", expect=0)
        self.until("the other task", lambda: self.life("b")[-1:] == ["EXITED"])
        self.end_of(yard, expect=0)

    def test_ends_with_its_guard_while_it_has_nothing_to_do(self):
        yard = self.held("'true'")
        self.ended("a")
        os.kill(guard_of(yard.pid), signal.SIGKILL)
        self.assertEqual(yard.wait(timeout=PATIENCE_S), 75)

    def test_is_refused_where_standard_input_has_no_other_end(self):
        self.job(HOLDS)
        done = self.trainyard("run", "job.yaml", "--until-stdin-closes", expect=2)
        self.assertIn("--until-stdin-closes needs a pipe or a socket as standard input", done.stderr)
        self.assertFalse((self.directory / "runs").exists())


class SubmitOnAFullDisk(YardTest):
    def setUp(self):
        super().setUp()
        os.mkfifo(self.directory / "gate")
        self.disk = self.directory / "disk"
        self.disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", self.disk], capture_output=True)
        if mounted.returncode != 0:
            self.skipTest("only root may mount a small disk")
        self.addCleanup(subprocess.run, ["umount", "-l", self.disk])

    def test_refuses_what_has_no_room_and_goes_on_with_a_disk_that_is_no_fuller(self):
        run = "disk/run"
        self.job(HOLDS)
        yard = self.start("run", "job.yaml", "--run-dir", run)
        self.until("the task", lambda: self.life("a", run)[-1:] == ["TRAINING"])
        self.write("more.yaml", "groups: [{name: more, matrix: {i: [%s]}, tasks: [{command: 'true'}]}]\n"
                   % ", ".join(map(str, range(90_000))))
        with open(self.disk / "filler", "wb") as filler:
            filler.write(b"\0" * (13 << 20))
        done = self.trainyard("submit", "more.yaml", "--run-dir", run, expect=2)
        self.assertRegex(done.stderr, r"the journal cannot be written: its disk has [23]\.?\d* MB left, and 90000 tasks "
                                      r"take up to 92\.2 MB of it")
        self.assertGreater(shutil.disk_usage(self.disk).free, 1 << 20)
        (self.disk / "filler").unlink()
        self.write("small.yaml", MORE)
        self.trainyard("submit", "small.yaml", "--run-dir", run, expect=0)
        self.open_gate()
        self.end_of(yard, expect=0)
        self.assertEqual(self.words(run), {"train/a": "FINISHED", "train (2)/a": "FINISHED"})
