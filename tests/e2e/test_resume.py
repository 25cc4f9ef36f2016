"""A run that was killed, at whatever moment, goes on with every finished task and its result."""
import os
import re
import shutil
import signal
import sqlite3
import unittest
from contextlib import closing

from yard import SETTINGS, YardTest, guard_of, json, keeper_of, processes_with

SANITIZED = "TRAINYARD_SANITIZED" in os.environ

COUNTED = """
name: job
groups:
  - name: g
    max-parallel: 2
    memory: 10MB
    matrix: {i: 1..6}
    tasks:
      - command: 'echo run >> $TRAINYARD_TASK_DIR/runs.txt; echo "{{\\"i\\": {i}}" > $TRAINYARD_RESULT'
  - {name: last, tasks: [{id: end, command: ['true']}]}
"""


class Resume(YardTest):
    def results(self, run):
        return {row["id"]: (row["word"], row["result"]) for row in self.status(run)["tasks"]}

    def all_done(self):
        return {**{f"i={i}": ("FINISHED", {"i": i}) for i in range(1, 7)}, "end": ("FINISHED", None)}

    def test_runs_failed_and_unfinished_tasks_again_and_keeps_finished_ones(self):
        os.mkfifo(self.directory / "gate")
        self.job("""
name: job
groups:
  - name: g
    cpus: 0
    memory: 10MB
    tasks:
      - {id: good, command: 'echo run >> runs.txt; echo "{{\\"n\\": 1}" > $TRAINYARD_RESULT'}
      - {id: bad, command: 'test -e cure'}
      - {id: long, command: [cat, gate]}
""")
        yard = self.start("run", "job.yaml")
        self.until_file("runs/job/g/long/stdout.log")
        self.until("two ended tasks", lambda: sorted(self.words().values()) == ["EXIT 1", "FINISHED", "RUNNING"])
        yard.kill()
        yard.wait()
        self.write("cure", "")
        again = self.start("run", "--resume", "runs/job")
        self.until_file("runs/job/g/long/stdout.2.log")
        self.open_gate()
        _, errors = self.end_of(again, expect=0)
        self.assertIn("1 of 3 tasks finished before, and will not run again", errors)
        rows = {row["id"]: row for row in self.status()["tasks"]}
        self.assertEqual({id: (row["word"], row["attempt"]) for id, row in rows.items()},
                         {"good": ("FINISHED", 1), "bad": ("FINISHED", 2), "long": ("FINISHED", 2)})
        self.assertEqual(rows["good"]["result"], {"n": 1})
        self.assertEqual(self.text("runs.txt"), "run\n")

    def test_takes_the_job_file_as_edited_and_says_what_changed(self):
        self.job("name: job\ngroups: [{name: g, tasks: [{id: a, command: ['true']}, {id: b, command: ['false']}]}]")
        self.trainyard("run", "job.yaml", expect=1)
        self.job("name: job\ngroups: [{name: g, tasks: [{id: b, command: ['true']}, {id: c, command: ['true']}]}]")
        would = self.trainyard("run", "--resume", "runs/job", "--dry-run", expect=0).stdout
        self.assertIn("resumed: all tasks of the job file run; 1 finished task is no longer in the job file\n", would)
        self.assertIn("task 'g/c' is new\n", would)
        self.assertIn("  task b\n    attempt      2\n", would)
        self.assertIn("/g/b/stdout.2.log\n", would)
        self.assertEqual(self.words(), {"g/a": "FINISHED", "g/b": "EXIT 1"})
        done = self.trainyard("run", "--resume", "runs/job", expect=0)
        self.assertIn("a", done.stderr)
        self.assertIn("c", done.stderr)
        self.assertEqual(self.words(), {"g/b": "FINISHED", "g/c": "FINISHED"})
        would = json.loads(self.trainyard("run", "--resume", "runs/job", "--dry-run", "--json", expect=0).stdout)
        self.assertEqual((would["task_count"], would["finished_before"], would["tasks"]), (2, 2, []))

    def test_ends_what_a_dead_run_left_before_it_goes_on(self):
        self.job("name: job\ngroups: [{name: g, tasks: [{id: a, command: 'echo $$ >> pids; test -e cure || sleep 1000'}]}]")
        yard = self.start("run", "job.yaml")
        marker = f"TRAINYARD_RUN_DIR={self.directory.resolve()}/runs/job"
        # The shell ends with the keeper, and its child does not.
        self.until("the shell's child", lambda: len(processes_with(marker)) == 2)
        # All three at once: none can end what the others leave.
        all_three = [guard_of(yard.pid), keeper_of(yard.pid), yard.pid]
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in all_three:
                os.kill(pid, number)
        yard.wait()
        self.assertTrue(processes_with(marker))
        self.assertEqual(len(list(self.sockets.iterdir())), 1)
        self.write("cure", "")
        self.trainyard("run", "--resume", "runs/job", expect=0)
        self.assertFalse(processes_with(marker))
        self.assertEqual(list(self.sockets.iterdir()), [])

    def test_says_so_when_there_is_nothing_to_go_on_with(self):
        (self.directory / "empty").mkdir()
        self.job("name: job\ngroups: [{name: g, tasks: [{id: a, command: ['true']}]}]")
        for words in (["--resume", "empty"], ["job.yaml", "--resume", "empty"]):
            done = self.trainyard("run", *words, expect=2)
            # As 'status' says it, with the cure.
            told = self.trainyard("status", "empty", expect=2).stderr.rstrip("\n")
            self.assertIn(f"{told}; to start one there, run a job file with '--run-dir empty'\n", done.stderr)
        self.job("groups: [{name: g, tasks: [{id: a, command: 'true'}]}]", name="a b.yaml")
        self.assertIn("start one with \"trainyard run 'a b.yaml'\"\n", self.trainyard("run", "a b.yaml", "--resume", expect=2).stderr)
        self.assertEqual(self.trainyard("run", "--resume", "missing", expect=2).stderr,
                         "trainyard: run 'missing' not found; a run is named by its number, name, directory or job file\n")
        self.assertEqual(self.trainyard("run", "empty", expect=2).stderr,
                         "trainyard: 'empty' is a directory, not a job file; it contains no .yaml file\n")
        self.assertEqual(list((self.directory / "empty").iterdir()), [])

    def test_names_the_way_out_when_the_job_file_has_moved(self):
        path = self.job("name: job\ngroups: [{name: g, tasks: [{id: a, command: ['true']}]}]")
        self.trainyard("run", "job.yaml", expect=0)
        path.rename(self.directory / "moved.yaml")
        done = self.trainyard("run", "--resume", "runs/job", expect=2)
        self.assertIn("name another after 'trainyard run --resume runs/job'", done.stderr)
        self.trainyard("run", "--resume", "runs/job", "moved.yaml", expect=0)

    def test_keeps_the_configuration_of_the_last_execution(self):
        self.job("name: job\ngroups: [{name: g, tasks: [{id: a, command: ['true']}]}]")
        self.write("other.yaml", "scheduler: {train-nretry: 7}\n")
        self.trainyard("run", "job.yaml", "--config", "other.yaml", "--set", "scheduler.max-process=3",
                       "--set", "smtp.user=me", "--set", "smtp.password=geheim", expect=0)
        again = self.trainyard("run", "--resume", "runs/job", "--set", "scheduler.max-process=5", expect=0)
        kept = f"--config {self.directory.resolve()}/other.yaml --set smtp.user=me"
        self.assertIn(f"as in the last execution: {kept}\n", again.stderr)
        once_more = self.trainyard("run", "--resume", "runs/job", expect=0)
        self.assertIn(f"{kept} --set scheduler.max-process=5\n", once_more.stderr)
        with closing(sqlite3.connect(self.directory / "runs/job/journal.db")) as journal:
            rows = [text for text, in journal.execute("SELECT configuration FROM executions")]
            settings = [json.loads(text) for text, in journal.execute("SELECT settings FROM executions")]
        self.assertEqual([re.findall(r"(?m)^scheduler\.(?:max-process|train-nretry): (\d+)", text) for text in rows],
                         [["3", "7"], ["5", "7"], ["5", "7"]])
        self.assertEqual(settings[0], ["scheduler.max-process=3", "smtp.user=me", *SETTINGS[1::2]])
        self.assertEqual(settings[2], ["smtp.user=me", "scheduler.max-process=5", *SETTINGS[1::2]])
        (self.directory / "other.yaml").unlink()
        self.assertIn("name another after 'trainyard run --resume runs/job --config'",
                      self.trainyard("run", "--resume", "runs/job", expect=2).stderr)

    def test_a_run_with_failed_tasks_ends_with_the_command_that_resumes_it(self):
        self.job("name: job\ngroups: [{name: g, tasks: [{id: a, command: 'test -e cure'}, {id: b, command: 'test -e cure'}]}]")
        line = "after a fix: 'trainyard run --resume runs/job' runs the failed tasks again\n"
        self.assertEqual(self.trainyard("run", "job.yaml", expect=1).stdout.count(line), 1)
        self.write("cure", "")
        self.assertNotIn(line, self.trainyard("run", "--resume", "runs/job", expect=0).stdout)
        self.job("name: chain\ngroups: [{name: g, tasks: [{id: a, command: 'false'}]}, {name: h, needs: g, tasks: [{id: b, command: 'true'}]}]",
                 "chain.yaml")
        self.assertIn("after a fix: 'trainyard run --resume runs/chain' runs the failed and skipped tasks again\n",
                      self.trainyard("run", "chain.yaml", expect=1).stdout)

    def test_a_command_that_failed_is_resumed_after_a_fix_of_its_program_or_files(self):
        done = self.trainyard("run", "--memory", "1MB", "--name", "a", "--", "sh", "trian.sh", expect=1)
        self.assertIn("not found", done.stderr)
        line = "after a fix of the program or its files: 'trainyard run --resume runs/a' runs the failed tasks again, with the same command\n"
        self.assertIn(line + "reports: runs/a/reports/index.html\n", done.stdout)
        self.assertIn(line, self.trainyard("status", "runs/a", expect=None).stdout)
        self.write("trian.sh", "")
        self.assertNotIn(line, self.trainyard("run", "--resume", "runs/a", expect=0).stdout)

    def test_names_the_run_that_it_resumes_where_the_job_file_has_several(self):
        self.job("name: job\ngroups: [{name: g, tasks: [{id: a, command: 'test -e cure'}]}]")
        self.trainyard("run", "job.yaml", expect=1)
        self.assertNotIn("resuming", self.trainyard("run", "job.yaml", "--resume", expect=1).stderr)
        self.trainyard("run", "job.yaml", "--new", expect=1)
        self.write("cure", "")
        resumed = self.trainyard("run", "job.yaml", "--resume", expect=0).stderr
        self.assertRegex(resumed, r"(?m)^resuming run \d+ \('runs/job-2'\), the latest of 2 runs$")

    def test_says_how_a_run_returns_to_its_job_file_after_another(self):
        for name in ("a", "b"):
            self.job(f"name: {name}\ngroups: [{{name: g, tasks: [{{id: {name}, command: ['true']}}]}}]", f"{name}.yaml")
        self.trainyard("run", "a.yaml", expect=0)
        self.assertIn("its last execution ran 'a.yaml': to return to that, type 'trainyard run --resume runs/a a.yaml'\n",
                      self.trainyard("run", "b.yaml", "--resume", "runs/a", expect=0).stderr)
        self.assertNotIn("its last execution", self.trainyard("run", "--resume", "runs/a", expect=0).stderr)
        self.assertEqual(self.trainyard("run", "a.yaml", "--resume", expect=2).stderr,
                         f"trainyard: no run of 'a.yaml' found in '{self.directory.resolve()}/runs/a', which has another run: "
                         "resume that with 'trainyard run --resume runs/a a.yaml', or start one with 'trainyard run a.yaml --new'\n")

    def test_says_why_no_finished_task_is_kept(self):
        job = "name: job\ngroups: [{name: g, matrix: {lr: [LR], seed: 0..1}, tasks: [{command: 'true {lr} {seed}'}]}]"
        self.job(job.replace("LR", "0.1"))
        self.trainyard("run", "job.yaml", expect=0)
        self.job(job.replace("LR", "0.2"))
        would = self.trainyard("run", "--resume", "runs/job", "--dry-run", expect=0).stdout
        self.assertIn("resumed: all tasks of the job file run; 2 finished tasks are no longer in the job file\n", would)
        self.job(job.replace("LR", "0.1").replace("true", "true x"))
        done = self.trainyard("run", "--resume", "runs/job", "--rerun-changed", expect=0)
        self.assertIn("resumed: all tasks of the job file run; 2 finished tasks run again\n", done.stderr)

    def test_of_a_copied_project_runs_the_code_of_the_copy(self):
        original, copy = self.directory / "original", self.directory / "copy"
        self.job("name: m\ngroups: [{name: g, memory: 10MB, matrix: {i: 0..1}, tasks: [{command: 'sh train.sh {i}'}]}]",
                 "original/m.yaml")
        self.write("original/trainyard.yaml", "scheduler: {train-nretry: 1}\n")
        self.write("original/train.sh", 'echo original >> ran; test "$1" = 0')
        self.trainyard("run", "m.yaml", expect=1, cwd=original)
        shutil.copytree(original, copy)
        lone = self.directory / "lone"
        shutil.copytree(original / "runs/m", lone)
        self.write("copy/train.sh", "echo copy >> ran")
        (copy / "ran").unlink()
        there, here = original.resolve(), copy.resolve()
        moved = f"the run was copied or moved here from '{there}/runs/m': its"
        # By the job file of the copy, which is another one than the journal names, and by the run.
        would = self.trainyard("run", "m.yaml", "--resume", "--dry-run", expect=0, cwd=copy).stdout
        self.assertIn("resumed: 1 of 2 tasks finished before, and will not run again\n", would)
        done = self.trainyard("retry", "copy/runs/m", expect=0)
        self.assertIn(f"{moved} job file is '{here}/m.yaml' now\n", done.stderr)
        self.assertIn(f"{moved} configuration file is '{here}/trainyard.yaml' now\n", done.stderr)
        self.assertEqual(self.text("copy/ran"), "copy\n")
        self.assertEqual(self.text("original/ran"), "original\noriginal\n")
        self.assertEqual(set(self.words("copy/runs/m").values()), {"FINISHED"})
        self.assertEqual(sorted(self.words("original/runs/m").values()), ["EXIT 1", "FINISHED"])
        # From now on it is a run of this place.
        again = self.trainyard("run", "--resume", "runs/m", expect=0, cwd=copy).stderr
        self.assertNotIn("copied or moved", again)
        # A run directory alone has no job file at its side.
        done = self.trainyard("retry", "lone", expect=2)
        self.assertIn(f"was copied or moved here from '{there}/runs/m', and its job file", done.stderr)
        self.assertIn(f"such as '{there}/m.yaml', after 'trainyard run --resume lone'", done.stderr)
        # Named one after the other, both are in the last command.
        named = f"trainyard run --resume lone {there}/m.yaml --config"
        done = self.trainyard("run", "--resume", "lone", there / "m.yaml", expect=2)
        self.assertIn(f"such as '{there}/trainyard.yaml', after '{named}'\n", done.stderr)
        done = self.trainyard("run", "--resume", "lone", "--config", there / "trainyard.yaml", expect=2)
        self.assertIn(f"such as '{there}/m.yaml', after 'trainyard run --resume lone --config {there}/trainyard.yaml'\n", done.stderr)

    def assert_copy_runs_in_itself(self, what, tasks):
        """Copies the project 'original' whole, and the directory of its run 'm' alone to its runs/lone; retries both.
        The tasks append to 'ran' in their directory."""
        original, copy = self.directory / "original", self.directory / "copy"
        shutil.copytree(original, copy)
        shutil.copytree(original / "runs/m", original / "runs/lone")
        self.write("copy/train.sh", "echo copy >> ran; exit 1")
        (copy / "ran").unlink()
        moved = (f"the run was copied or moved here from '{original.resolve()}/runs/m': "
                 f"{what} is '{copy.resolve()}' now\n")
        would = self.trainyard("run", "--resume", "runs/m", "--dry-run", expect=0, cwd=copy).stdout
        self.assertEqual(would.count(moved), 1, would)
        for times in (1, 2):
            done = self.trainyard("retry", "runs/m", expect=1, cwd=copy)
            self.assertEqual(done.stderr.count(moved), 1 if times == 1 else 0, done.stderr)
            self.assertEqual(self.text("copy/ran"), "copy\n" * tasks * times)
        self.assertEqual(self.text("original/ran"), "original\n" * tasks)
        # A run directory that was copied alone is still one of its project.
        self.assertNotIn("working directory", self.trainyard("retry", "runs/lone", expect=1, cwd=original).stderr)
        self.assertEqual(self.text("original/ran"), "original\n" * 2 * tasks)

    def test_of_a_command_in_a_copied_project_runs_in_the_copy(self):
        original = self.directory / "original"
        self.write("original/train.sh", "echo original >> ran; exit 1")
        self.trainyard("run", "--name", "m", "--", "sh", "train.sh", expect=1, cwd=original)
        self.assert_copy_runs_in_itself("its working directory", tasks=1)

    def test_of_a_command_submitted_to_a_copied_run_runs_in_the_copy(self):
        os.mkfifo(self.directory / "gate")
        original = self.directory / "original"
        self.job(f"name: m\ngroups: [{{name: g, tasks: [{{id: a, command: ': < {self.directory}/gate'}}]}}]",
                 "original/m.yaml")
        self.write("original/train.sh", "echo original >> ran; exit 1")
        yard = self.start("run", "original/m.yaml", "--run-dir", "original/runs/m")
        self.until("the task", lambda: self.life("a", "original/runs/m")[-1:] == ["TRAINING"])
        for name in ("t", "u"):
            self.trainyard("submit", "--run-dir", "runs/m", "--name", name, "--", "sh", "train.sh", expect=0,
                           cwd=original)
        # A file means the directory that it names, also as a command would name it.
        self.write("original/more.yaml", f'''
groups:
  - name: "w"
    working-directory: "{original}"
    tasks: [{{id: w, command: "echo more >> more; exit 1"}}]
''')
        self.trainyard("submit", "more.yaml", "runs/m", expect=0, cwd=original)
        self.open_gate()
        self.end_of(yard, expect=1)
        self.assert_copy_runs_in_itself("the working directory of commands submitted to it", tasks=2)
        # The submitted file ran in the original: once there, for two retries of the copy, and for one of runs/lone.
        self.assertEqual(self.text("copy/more"), "more\n")
        self.assertEqual(self.text("original/more"), "more\n" * 4)

    def test_a_yard_killed_at_its_writes_loses_no_finished_task(self):
        """At a few of them; JournalKilled.HasWholeTurnsWhereverAWriteIsCutOff cuts off many more."""
        strace = shutil.which("strace")
        self.assertTrue(strace, "strace is installed by scripts/setup test")
        self.job(COUNTED)
        # The leak sanitizer cannot work in a process that is traced.
        environment = {"ASAN_OPTIONS": "detect_leaks=0"} if SANITIZED else {}
        killed = 0
        write = 1
        while True:
            run = f"killed-{write}"
            done = self.trainyard("run", "job.yaml", "--run-dir", run, prefix=[
                strace, "-qq", "-o", "/dev/null", "-e", "trace=pwrite64",
                "-e", f"inject=pwrite64:signal=KILL:when={write}"], env=environment)
            if done.returncode == 0:
                break
            # strace ends as what it traced did.
            self.assertEqual(done.returncode, -signal.SIGKILL, done.stderr)
            killed += 1
            finished = self.finished_in(run)
            resumed = self.trainyard("run", "--resume", run, "job.yaml", expect=0)
            self.assertEqual(self.results(run), self.all_done(), f"write {write}: {resumed.stderr}")
            for task in finished:
                self.assertEqual(self.text(f"{run}/g/{task}/runs.txt"), "run\n", f"write {write}: {task} ran twice")
            write += 57
        self.assertGreater(killed, 2)

    def finished_in(self, run):
        done = self.trainyard("status", run, "--json", "--all")
        if done.returncode != 0:
            return []
        return [row["id"] for row in json.loads(done.stdout)["tasks"]
                if row["word"] == "FINISHED" and re.fullmatch(r"i=\d", row["id"])]

    @unittest.skipIf(SANITIZED, "libfaketime asks for the time before the sanitizer has started")
    def test_a_clock_that_is_set_back_changes_nothing(self):
        faketime = shutil.which("faketime")
        self.assertTrue(faketime, "faketime is installed by scripts/setup test")
        self.job("name: job\ngroups: [{name: g, tasks: [{id: a, command: ['true']}, {id: b, command: ['false']}]}]")
        self.trainyard("run", "job.yaml", expect=1)
        self.job("name: job\ngroups: [{name: g, tasks: [{id: a, command: ['true']}, {id: b, command: ['true']}]}]")
        self.trainyard("run", "--resume", "runs/job", expect=0, prefix=[faketime, "-f", "-30d"])
        status = self.status()
        self.assertEqual(self.words(), {"g/a": "FINISHED", "g/b": "FINISHED"})
        for row in status["tasks"]:
            self.assertGreaterEqual(row["duration_ms"], 0)
        self.assertGreaterEqual(status["elapsed_ms"], 0)
