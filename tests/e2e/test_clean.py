"""The files that `trainyard clean` deletes, and those that it never deletes."""
import contextlib
import re
import unittest

import sqlite3

from yard import YardTest, alive, guard_of, json, keeper_of, os, pathlib, processes_with, signal

JOB = """
name: job
groups:
  - name: g
    cpus: 0
    memory: 1MB
    tasks:
      - {id: a, command: 'sh task.sh'}
      - {id: with space, command: 'sh task.sh'}
  - {name: h, cpus: 0, memory: 1MB, tasks: [{id: b, command: 'sh task.sh'}]}
"""
SCRIPT = """echo trained
mkdir -p "$TRAINYARD_TASK_DIR/deep/er" && head -c 100000 /dev/zero > "$TRAINYARD_TASK_DIR/deep/er/checkpoint"
echo '{"acc": 0.9}' > "$TRAINYARD_RESULT"
"""


class Clean(YardTest):
    def setUp(self):
        super().setUp()
        self.job(JOB)
        self.write("task.sh", SCRIPT)

    def run_job(self, *words, days_ago=0, name="job"):
        self.trainyard("run", "job.yaml", *words, expect=0)
        if days_ago:
            with sqlite3.connect(self.directory / f"runs/{name}/journal.db") as journal:
                journal.execute("UPDATE executions SET started_unix_ms = started_unix_ms - ?", (days_ago * 86_400_000,))
            journal.close()

    def files(self, below="runs"):
        root = self.directory / below
        return sorted(str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir() or path.is_symlink())

    def clean(self, *words, expect=0):
        return self.trainyard("clean", *words, expect=expect)

    def test_deletes_old_runs_and_says_first_what_it_would(self):
        self.run_job(days_ago=40)
        self.run_job("--new", days_ago=10, name="job-2")
        before = self.files()
        would = self.clean("--older", "30d", "--dry-run").stdout
        self.assertRegex(would, r"^would delete run 1 \('runs/job'\), ended 40d ago: \d+ kB\n1 run, \d+ kB\n$")
        self.assertEqual(self.files(), before)
        done = self.clean("--older", "30d")
        self.assertEqual(re.sub("ended .* ago", "", done.stdout), re.sub("ended .* ago", "", would.replace("would delete", "deleted")))
        self.assertEqual(os.listdir(self.directory / "runs"), ["job-2"])
        self.assertEqual(self.clean("--older", "30d").stdout, "no run ended that long ago\n")
        self.assertIn("run 1 not found", self.trainyard("status", "1", expect=2).stderr)
        self.assertEqual(self.words("runs/job-2"), {"g/a": "FINISHED", "g/with space": "FINISHED", "h/b": "FINISHED"})

    def test_leads_from_a_star_to_how_all_runs_are_deleted(self):
        for names, leads in ((["*"], True), (["job.yaml", "task.sh"], True), (["task.sh"], False), (["46", "47"], False)):
            told = self.clean(*names, expect=2).stderr
            self.assertEqual("; 'trainyard clean --older 0s --dry-run' shows what would be deleted of all runs here\n" in told, leads, told)

    def test_keeps_results_or_logs_with_the_journal_and_the_reports(self):
        self.run_job(days_ago=40)
        reports = [name for name in self.files("runs/job") if name.startswith("reports/")]
        self.clean("--older", "30d", "--keep", "results,logs")
        tasks = ("g/a", "g/with space", "h/b")
        kept = lambda *names: sorted([*reports, "lock", *(f"{task}/{name}" for task in tasks for name in names)])
        there = lambda: [name for name in self.files("runs/job") if not name.startswith("journal.db")]
        self.assertEqual(there(), kept("result.1.json", "result.json", "stderr.log", "stdout.log"))
        self.assertEqual(self.trainyard("logs", "a", "--stdout", expect=0).stdout, "trained\n")
        done = json.loads(self.clean("--older", "30d", "--keep", "results", "--json").stdout)
        self.assertEqual(there(), kept("result.1.json", "result.json"))
        self.assertEqual([row["is_gone"] for row in done["runs"]], [False])
        self.assertRegex(self.clean("--older", "30d", "--keep", "results").stdout,
                         r"^nothing to delete in run 1 \('runs/job'\), ended 40d ago\n1 run, 0 B, not counting the kept files\n$")
        rows = json.loads(self.trainyard("results", "runs/job", "--json", expect=0).stdout)["rows"]
        self.assertEqual([row["acc"] for row in rows], [0.9] * 3)
        # The rest is a run as before, and can be resumed.
        self.trainyard("run", "--resume", "runs/job", expect=0)

    def test_refuses_without_an_age_or_names_and_what_it_does_not_understand(self):
        self.run_job(days_ago=40)
        before = self.files()
        for words, told in (([], "no run named: type 'trainyard clean 46', or 'trainyard clean --older 30d --dry-run'\n"),
                            (["--keep", "results"], "no run named"),
                            (["--older", "30"], "--older: '30' has no unit (did you mean '30d' or '30h'?)"), (["--older", "soon"], "--older: "),
                            (["--older", "1d", "--keep", "logz"], "--keep: must be results or logs, not 'logz'"),
                            (["77"], "run 77 not found"), (["77,78"], "; name each run by itself: 77 78\n"),
                            (["runs/nowhere"], "no such directory"), (["1", "77"], "run 77 not found")):
            with self.subTest(words=words):
                self.assertIn(told, self.clean(*words, expect=2).stderr)
        self.assertEqual(self.files(), before)

    def test_named_runs_are_deleted_however_young_and_older_counts_with_names_too(self):
        self.run_job()
        self.run_job("--new", days_ago=40, name="job-2")
        self.run_job("--new", name="job-3")
        self.clean("1", "2", "--older", "1d")
        self.assertEqual(sorted(os.listdir(self.directory / "runs")), ["job", "job-3"])
        self.assertIn("several runs found: ", self.clean("job.yaml", expect=2).stderr)
        done = json.loads(self.clean("1", "runs/job-3", "--json").stdout)
        rows = done.pop("runs")
        self.assertEqual({**done, "bytes": 0}, {"dry_run": False, "keeps": [], "bytes": 0})
        self.assertEqual(done["bytes"], sum(row["bytes"] for row in rows))
        for row, (number, name) in zip(rows, ((1, "job"), (3, "job-3")), strict=True):
            self.assertEqual((row["run_directory"], row["run_number"], row["is_gone"], row["failed"]),
                             (str(self.directory / "runs" / name), number, True, []))
            self.assertGreater(row["bytes"], 300_000)
        self.assertEqual(os.listdir(self.directory / "runs"), [])

    def test_ended_runs_are_listed_by_number(self):
        for name in ("r2", "r10"):
            self.trainyard("run", "job.yaml", "--run-dir", f"runs/{name}", expect=0)
        listed = self.clean("--older", "0s", "--dry-run").stdout
        self.assertEqual(re.findall(r"run (\d+) \('runs/(r\d+)'\)", listed), [("1", "r2"), ("2", "r10")])

    def test_learned_estimates_of_commands_of_one_name_go_with_the_last_of_their_runs(self):
        for _ in range(2):
            self.trainyard("run", "--name", "command", "--set", "period.trained-least=0s", "--", "true", expect=0)
        self.clean("runs/command")
        self.assertEqual(sorted(os.listdir(self.directory / "runs")), [".trainyard", "command-2"])
        self.assertEqual(os.listdir(self.directory / "runs/.trainyard"), ["command.learned.json"])
        self.assertNotIn("other files", self.clean("runs/command-2").stdout)
        self.assertEqual(os.listdir(self.directory / "runs"), [])

    def test_never_touches_a_run_at_work(self):
        os.mkfifo(self.directory / "gate")
        self.write("task.sh", "cat gate")
        yard = self.start("run", "job.yaml")
        self.until("a task", lambda: (self.directory / "runs/job/g/a/stdout.log").exists())
        self.assertIn("is active: nothing was deleted", self.clean("1", expect=2).stderr)
        self.assertEqual(self.clean("--older", "0").stdout, "no run here has ended\n")
        self.keep_opening_gate(yard)
        self.end_of(yard, expect=0)
        self.clean("1")
        self.assertEqual(os.listdir(self.directory / "runs"), [])

    def test_never_deletes_a_run_whose_processes_are_still_running(self):
        self.write("task.sh", "sleep 1000 & echo $$ $! > pids; wait")
        self.job("name: job\ngroups: [{name: g, cpus: 0, memory: 1MB, tasks: [{id: a, command: 'sh task.sh'}]}]")
        yard = self.start("run", "job.yaml")
        shell, pid = map(int, self.until_written("pids").split())
        all_three = [guard_of(yard.pid), keeper_of(yard.pid), yard.pid]
        # All three at once: none can end what the others leave.
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for each in all_three:
                os.kill(each, number)
        yard.wait()
        with contextlib.suppress(ProcessLookupError):  # It may have ended with its keeper.
            os.kill(shell, signal.SIGKILL)
        marker = f"TRAINYARD_RUN_DIR={self.directory.resolve()}/runs/job"
        self.until("the shell's end", lambda: processes_with(marker) == [pid])
        left = f"its tasks left 1 running process ({pid})"
        self.assertIn(f"\n{left}, which 'run --resume' kills first\n", self.trainyard("status", expect=0).stdout)
        self.assertEqual(self.status()["processes_left"], [pid])
        refused = f"run 1 ('runs/job') died, and {left}: nothing was deleted; end them with 'kill {pid}', or resume the run\n"
        for words in (["1"], ["1", "--dry-run"]):
            self.assertEqual(self.clean(*words, expect=2).stderr, f"trainyard: {refused}")
        for words in (["--older", "0s"], ["--older", "0s", "--dry-run"]):
            done = self.clean(*words)
            self.assertEqual((done.stdout, done.stderr),
                             ("no run here has ended\n", f"trainyard: 'runs/job' is not deleted: {refused}"))
        self.assertTrue((self.directory / "runs/job/g/a/stdout.log").exists())
        os.kill(pid, signal.SIGKILL)
        self.until("its end", lambda: not alive(pid))
        self.assertEqual(self.status()["processes_left"], [])
        self.clean("1")
        self.assertEqual(os.listdir(self.directory / "runs"), [])

    def test_deletes_nothing_that_is_not_of_the_run(self):
        """The worst place: a run in the directory of the project."""
        self.write("trainyard.yaml", "utilization-limit: {cpu: 100%}\n")
        self.write("reports/mine.html", "mine")
        self.write("journal.md", "mine")
        self.write("g/mine.py", "mine")
        outside = self.write("outside/precious", "mine")
        self.job(JOB + "run-dir: .\n")
        self.trainyard("run", "job.yaml", expect=0)
        (self.directory / "g/a/link").symlink_to(outside.parent)
        self.assertIn("other files there stay", self.clean(".").stdout)
        self.assertEqual([name for name in self.files(".") if not name.startswith(".")],
                         sorted(["g/mine.py", "job.yaml", "journal.md", "outside/precious", "reports/mine.html", "task.sh",
                                 "trainyard.yaml"]))

    def test_a_journal_that_leads_elsewhere_is_not_followed(self):
        self.run_job()
        precious = self.write("precious/file", "mine")
        with sqlite3.connect(self.directory / "runs/job/journal.db") as journal:
            journal.execute("UPDATE groups SET directory = '../..' WHERE name = 'g'")
            journal.execute("UPDATE tasks SET id = 'precious' WHERE id = 'a'")
        journal.close()
        self.clean("1")
        self.assertTrue(precious.exists())

    def test_what_cannot_be_read_or_deleted_stays_and_is_told(self):
        self.run_job(days_ago=40)
        self.write("runs/broken/journal.db", "nonsense")
        done = self.clean("--older", "30d", "--dry-run", expect=1)
        self.assertIn("would delete run 1", done.stdout)
        self.assertIn("'runs/broken' is not deleted: ", done.stderr)
        self.assertIn("Without the journal, trainyard cannot tell which files in 'runs/broken' belong to the run: nothing was deleted; "
                      "to delete the directory with all its files, type: rm -r runs/broken\n",
                      self.clean("runs/broken", expect=2).stderr)
        if os.geteuid() == 0:
            self.directory.chmod(0o755)
            other = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
            done = self.trainyard("clean", "runs/job", prefix=other)
            # Another user may not be able to run the program.
            if done.returncode == 2:
                self.assertRegex(done.stderr, r"(cannot look into|only they can).*\n$")
                self.assertNotIn("rm -r", done.stderr)
        self.write("mine/journal.db", "nonsense")
        self.assertTrue(self.clean("./mine", expect=2).stderr.endswith(": nothing was deleted\n"), "the user's files may be there")
        os.chmod(self.directory / "runs/job/g/a", 0o500)
        # Root may delete anything, unless it goes without that.
        prefix = ("setpriv", "--bounding-set=-dac_override") if os.geteuid() == 0 else ()
        done = self.trainyard("clean", "1", expect=1, prefix=prefix)
        self.assertIn("not deleted: ", done.stderr)
        self.assertIn("deleted part of run 1 ", done.stdout)
        self.assertTrue(pathlib.Path(self.directory / "runs/job/journal.db").exists(), "it says what is left")

    def test_an_empty_journal_of_a_run_that_ended_is_not_that_of_one_that_never_started(self):
        self.run_job()
        os.truncate(self.directory / "runs/job/journal.db", 0)
        told = self.clean("runs/job", expect=2).stderr
        self.assertIn("/runs/job/journal.db' is empty or damaged. ", told)
        self.assertTrue(told.endswith(": nothing was deleted; to delete the directory with all its files, type: rm -r runs/job\n"), told)

    def test_an_active_run_whose_lock_a_task_has_removed_is_left_alone(self):
        self.job("name: job\ngroups: [{name: g, tasks: [{id: a, command: 'rm $TRAINYARD_RUN_DIR/lock; touch removed'}, "
                 "{id: b, start-after: 1h, command: 'true'}]}]")
        self.start("run", "job.yaml")
        self.until_file("removed")
        self.until("its end", lambda: self.words().get("g/a") == "FINISHED")
        self.assertIn("is active: nothing was deleted", self.clean("runs/job", expect=2).stderr)
        self.assertTrue((self.directory / "runs/job/journal.db").exists())

    def test_no_run_is_deleted_by_a_link_to_it(self):
        self.run_job()
        self.run_job("--new")
        runs = self.directory / "runs"
        (runs / "job").rename(runs / "job.x")
        (runs / "job").symlink_to("job-2")
        before = self.files()
        for word in ("runs/job", "runs/job/", "1"):
            self.assertEqual(self.clean(word, expect=2).stderr,
                             "trainyard: 'runs/job' is a symbolic link to 'job-2'; name the run itself\n")
        self.assertEqual(self.files(), before)

    def test_links_among_the_runs_lead_to_no_run_of_another_directory(self):
        self.run_job()
        (self.directory / "elsewhere").mkdir()
        (self.directory / "runs").rename(self.directory / "elsewhere/runs")
        before = self.files("elsewhere")
        self.run_job()
        (self.directory / "runs/away").symlink_to("../elsewhere/runs/job")
        (self.directory / "runs/near").symlink_to("job")
        os.symlink("job/", self.directory / "runs/nearer")
        done = self.clean("--older", "0s")
        self.assertRegex(done.stdout, r"^deleted run \d+ \('runs/job'\), .*\n1 run, .*\n$")
        self.assertCountEqual(done.stderr.splitlines(), [
            "trainyard: 'runs/away' is not deleted: 'runs/away' is a symbolic link to '../elsewhere/runs/job'; name the run itself",
            "trainyard: 'runs/near' stays: a symbolic link to the deleted run 'job'",
            "trainyard: 'runs/nearer' stays: a symbolic link to the deleted run 'job/'"])
        self.assertEqual(sorted(os.listdir(self.directory / "runs")), ["away", "near", "nearer"])
        self.assertEqual(self.files("elsewhere"), before)

    def test_a_run_whose_lock_is_a_link_is_left_alone(self):
        self.job("name: job\ngroups: [{name: g, tasks: [{id: a, command: 'true'}]}]")
        self.trainyard("run", "job.yaml", expect=0)
        lock = self.directory / "runs/job/lock"
        lock.unlink()
        lock.symlink_to("nowhere")
        self.assertIn("runs/job/lock' is a symbolic link, not a regular file", self.clean("runs/job", expect=2).stderr)
        self.assertTrue((self.directory / "runs/job/journal.db").exists())


if __name__ == "__main__":
    unittest.main()
