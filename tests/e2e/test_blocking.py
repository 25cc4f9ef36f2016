"""Nothing that stands in the way of a yard, its keeper or a command makes them stand still."""
import os
import shutil
import signal

from yard import YardTest, alive, guard_of, keeper_of, processes_with, suspend

class Blocking(YardTest):
    def test_a_pipe_in_the_place_of_the_next_log_fails_that_task_alone(self):
        self.job("""
name: job
groups:
  - name: g
    cpus: 0
    memory: 10MB
    tasks:
      - {id: trap, command: 'mkfifo "$TRAINYARD_TASK_DIR/stdout.2.log"; echo MemoryError >&2; exit 1'}
      - {id: link, command: 'ln -s ../../../../mine "$TRAINYARD_TASK_DIR/stderr.2.log"; echo MemoryError >&2; exit 1'}
      - {id: good, command: 'true'}
""")
        self.write("mine", "untouched")
        _, errors = self.end_of(self.start("run", "job.yaml"), expect=1)
        self.assertEqual(self.words(), {"g/trap": "CANNOT_START", "g/link": "CANNOT_START", "g/good": "FINISHED"})
        messages = {row["id"]: row["message"] for row in self.status()["tasks"]}
        place = f"{self.directory.resolve()}/runs/job/g"
        for task, log in (("trap", "stdout"), ("link", "stderr")):
            self.assertEqual(messages[task], f"cannot write '{place}/{task}/{log}.2.log': a pipe, a link or a device is in "
                             "its place; remove it")
        self.assertEqual(self.text("mine"), "untouched")

    def test_a_result_that_is_a_pipe_or_a_link_is_told_and_not_read(self):
        self.write("mine.json", '{"secret": 1}')
        self.job_of_tasks("""
      - {id: pipe, command: 'mkfifo "$TRAINYARD_RESULT"'}
      - {id: link, command: 'ln -s ../../../../mine.json "$TRAINYARD_RESULT"'}
""")
        self.trainyard("run", "job.yaml", expect=0)
        for row in self.status()["tasks"]:
            self.assertEqual((row["word"], row["result"]), ("FINISHED", None))
            self.assertRegex(row["warning"], rf"is a {'pipe' if row['id'] == 'pipe' else 'symbolic link'}, not a regular file$")

    def test_a_pipe_in_the_place_of_the_lock_keeps_no_run_from_going_on(self):
        self.job("name: job\ngroups: [{name: g, tasks: [{id: a, command: ['true']}]}]")
        self.trainyard("run", "job.yaml", expect=0)
        lock = self.directory / "runs/job/lock"
        lock.unlink()
        os.mkfifo(lock)
        for words, code in ((["status", "runs/job"], 0), (["status"], 0), (["kill", "g/a"], 2), (["run", "--resume", "runs/job"], 0)):
            self.assertNotIn("is a pipe", self.trainyard(*words, expect=code).stderr)
        self.assertTrue(lock.is_file())

    def test_pipes_among_the_reports_and_as_the_journal_are_no_trap(self):
        self.job("name: job\ngroups: [{name: g, tasks: [{id: a, command: ['true']}]}]")
        reports = self.directory / "runs/job/reports"
        reports.mkdir(parents=True)
        for name in ("index.html", "index.html.new", "g.html.new", "g.json.new"):
            os.mkfifo(reports / name)
        self.trainyard("run", "job.yaml", expect=0)
        self.assertIn("<html", self.text("runs/job/reports/index.html"))
        self.assertIn("<html", self.text("runs/job/reports/g.html"))
        journal = self.directory / "runs/job/journal.db"
        journal.unlink()
        os.mkfifo(journal)
        for words in (["status", "runs/job"], ["run", "--resume", "runs/job"], ["logs", "runs/job", "a"]):
            self.assertIn("is a pipe, not a regular file", self.trainyard(*words, expect=2).stderr)

    def test_a_task_that_links_a_file_of_the_journal_to_another_file_changes_neither_it_nor_the_run(self):
        os.mkfifo(self.directory / "gate")
        precious = self.write("precious", "untouched")
        self.job_of_tasks("""
      - {id: a, memory: 10MB, command: 'rm "$TRAINYARD_RUN_DIR/journal.db-shm"; ln precious "$TRAINYARD_RUN_DIR/journal.db-shm"; cat gate'}
""")
        self.job("name: other\ngroups: [{name: g, cpus: 0, memory: 10MB, tasks: [{id: b, command: 'touch began; cat ../gate'}]}]",
                 "elsewhere/other.yaml")
        other = self.start("run", "other.yaml", prefix=["env", "-C", "elsewhere"])
        self.until_file("elsewhere/began")
        yard = self.start("run", "job.yaml")
        self.until("the link", lambda: precious.stat().st_nlink == 2)
        for words in (["status"], ["status", "runs/job"], ["logs", "runs/job", "a"]):
            refused = self.trainyard(*words, expect=2)
            self.assertIn("/journal.db-shm' has 2 names (hard links); remove it when the run is not active", refused.stderr)
            self.assertEqual("elsewhere/runs/other" in refused.stdout, words == ["status"], refused.stdout)
        for each in (yard, other):
            self.keep_opening_gate(each)
            self.end_of(each, expect=0)
        self.assertEqual(self.words(), {"g/a": "FINISHED"})
        self.assertEqual(self.text("precious"), "untouched")

    def test_a_task_that_replaces_the_journal_changes_the_outcome_of_no_run(self):
        self.job("name: other\ngroups: [{name: g, cpus: 0, tasks: [{id: a, command: 'true'}, {id: b, command: 'true'}]}]",
                 "other.yaml")
        self.trainyard("run", "other.yaml", expect=0)
        for replace in ("rm -f journal.db* && ln -s ../other/journal.db journal.db",
                        "cp ../other/journal.db new && rm -f journal.db* && mv new journal.db"):
            self.job_of_tasks(f"""
      - {{id: a, command: exit 5}}
      - {{id: b, command: 'cd "$TRAINYARD_RUN_DIR" && {replace}; exit 7'}}
""")
            done = self.trainyard("run", "job.yaml", expect=1)
            self.assertIn("runs/job/journal.db' was removed, replaced or emptied while the run was active", done.stderr)
            self.assertEqual(self.words(), {"g/a": "EXIT 5", "g/b": "EXIT 7"})
            self.assertEqual(self.words("runs/other"), {"g/a": "FINISHED", "g/b": "FINISHED"})
            shutil.rmtree(self.directory / "runs/job")

    def test_a_task_that_puts_a_link_to_another_run_in_the_place_of_its_run_changes_neither(self):
        self.job("name: other\ngroups: [{name: g, cpus: 0, tasks: [{id: a, command: 'true'}]}]\non-finish: echo other", "other.yaml")
        self.trainyard("run", "other.yaml", expect=0)
        runs = self.directory.resolve() / "runs"
        content = lambda: {str(path): path.read_bytes() for path in runs.joinpath("other").rglob("*") if path.is_file()}
        before = content()
        self.job_of_tasks("""
      - {id: a, command: 'cd "$TRAINYARD_RUN_DIR/.." && mv job job.x && ln -s other job; exit 7'}
""" + "on-finish: echo $TRAINYARD_RUN_DIR\n")
        done = self.trainyard("run", "job.yaml", expect=75)
        self.assertTrue(done.stderr.endswith(
            f"\ntrainyard: the run directory '{runs}/job' was moved or removed while the run was active, and nothing is written "
            f"to that path. It is now '{runs}/job.x': move it back, and resume the run\n"), done.stderr)
        self.assertEqual(content(), before)
        self.assertEqual(self.text("runs/job.x/trainyard.on-finish.log"), f"{runs}/job.x\n")
        (runs / "job").unlink()
        (runs / "job.x").rename(runs / "job")
        self.assertEqual(self.words(), {"g/a": "EXIT 7"})

    def test_a_task_that_replaces_lock_and_journal_hides_its_run_from_no_command(self):
        os.mkfifo(self.directory / "gate")
        self.job_of_tasks("""
      - id: a
        command: >
          (cd "$TRAINYARD_RUN_DIR" && cp journal.db new && cp journal.db-wal new-wal &&
          rm lock journal.db* && touch lock && mv new journal.db && mv new-wal journal.db-wal);
          touch replaced; cat gate
""")
        yard = self.start("run", "job.yaml")
        self.until_file("replaced")
        for words in (["run", "--resume", "runs/job"], ["run", "--resume", "runs/job", "--dry-run"], ["run", "job.yaml"]):
            self.assertIn(f"runs/job' is in use by process {yard.pid}", self.trainyard(*words, expect=2).stderr)
        self.assertEqual(self.status()["state"], "running")
        self.assertIn("is active: nothing was deleted", self.trainyard("clean", "runs/job", expect=2).stderr)
        self.keep_opening_gate(yard)
        _, errors = self.end_of(yard, expect=0)
        self.assertIn("runs/job/journal.db' was removed, replaced or emptied while the run was active", errors)
        self.assertEqual({row["id"]: (row["word"], row["attempt"]) for row in self.status()["tasks"]}, {"a": ("FINISHED", 1)})

    def test_a_task_that_removes_lock_and_journal_hides_its_run_from_no_command(self):
        os.mkfifo(self.directory / "gate")
        self.job_of_tasks("""
      - {id: a, command: '(cd "$TRAINYARD_RUN_DIR" && rm lock journal.db*); touch removed; cat gate'}
""")
        yard = self.start("run", "job.yaml")
        self.until_file("removed")
        for run in ("runs/job", "job", "1"):
            self.assertIn("is active: nothing was deleted", self.trainyard("clean", run, expect=2).stderr)
        for words in (["run", "--resume", "runs/job"], ["run", "--resume", "1", "--dry-run"], ["run", "--resume", "job.yaml"]):
            self.assertIn(f"runs/job' is in use by process {yard.pid}", self.trainyard(*words, expect=2).stderr, words)
        self.keep_opening_gate(yard)
        self.end_of(yard, expect=0)
        self.assertEqual(self.words(), {"g/a": "FINISHED"})

    def test_an_active_run_that_was_moved_behind_a_link_is_shown_once(self):
        os.mkfifo(self.directory / "gate")
        self.job_of_tasks("      - {id: a, command: 'touch began; cat gate'}\n")
        yard = self.start("run", "job.yaml")
        self.until_file("began")
        run, away = self.directory / "runs/job", self.directory / "away"
        run.rename(away)
        run.symlink_to(away)
        shown = self.trainyard("status", expect=0).stdout
        self.assertIn("job: active for ", shown)
        self.assertNotIn("your other runs", shown)
        run.unlink()
        away.rename(run)
        self.keep_opening_gate(yard)
        self.end_of(yard, expect=0)

    def test_a_run_directory_that_a_task_has_closed_is_opened_for_the_end_of_the_run(self):
        self.job_of_tasks("""
      - {id: a, command: 'cd "$TRAINYARD_RUN_DIR" && rm journal.db* && chmod 500 .; exit 7'}
""")
        # Root may write everywhere, unless it goes without that.
        prefix = ("setpriv", "--bounding-set=-dac_override") if os.geteuid() == 0 else ()
        done = self.trainyard("run", "job.yaml", expect=1, prefix=prefix)
        self.assertIn("runs/job/journal.db' was removed, replaced or emptied while the run was active", done.stderr)
        self.assertEqual(self.words(), {"g/a": "EXIT 7"})

    def test_a_resume_says_for_which_process_of_the_dead_run_it_waits(self):
        self.job_of_tasks("""
      - {id: a, command: 'test -e began || { touch began; exec sleep 1000; }'}
""")
        yard = self.start("run", "job.yaml")
        self.until_file("began")
        guard = guard_of(yard.pid)
        suspend(guard)
        yard.kill()
        yard.wait()
        resumed = self.start("run", "--resume", "runs/job")
        said = f"waiting for process {guard} (yard-guard) of the run to end\n"
        self.until("the reason", lambda: self.next_line(resumed.stderr).endswith(said))
        os.kill(guard, signal.SIGCONT)
        self.end_of(resumed, expect=0)
        self.assertEqual(self.words(), {"g/a": "FINISHED"})

    def test_a_link_in_the_place_of_the_kept_job_is_not_followed(self):
        self.trainyard("run", "--run-dir", "runs/v", "--", "false", expect=1)
        kept = self.directory / "runs/v/trainyard.job.yaml"
        self.write("evil.yaml", kept.read_text().replace("false", "touch evil"))
        for link, said in ((os.symlink, "is a symbolic link, not a regular file"), (os.link, "has 2 names (hard links)")):
            kept.unlink()
            link(self.directory / "evil.yaml", kept)
            for words in (["run", "--resume", "runs/v"], ["retry", "runs/v"]):
                self.assertIn(f"trainyard.job.yaml: {said}", self.trainyard(*words, expect=2).stderr)
        self.assertFalse((self.directory / "evil").exists())

    def test_logs_behind_a_link_in_the_place_of_a_directory_are_not_shown(self):
        self.job("name: job\ngroups: [{name: g, tasks: [{id: a, command: echo out}]}]")
        self.trainyard("run", "job.yaml", expect=0)
        (self.directory / "runs/job/g").rename(self.directory / "elsewhere")
        (self.directory / "runs/job/g").symlink_to(self.directory / "elsewhere")
        done = self.trainyard("logs", "a", expect=2)
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, "^trainyard: '.*runs/job/g' is a symbolic link, not a directory; remove it\n$")

    def stopped_keeper(self, guard_too=False):
        """A yard with one task that runs and one that waits, and a keeper that has just been suspended; where the guard is,
        too, nobody tells it to go on."""
        os.mkfifo(self.directory / "gate")
        self.job("name: job\ngroups: [{name: g, cpus: 0, memory: 10MB, tasks: [{id: a, command: [cat, gate]}, "
                 "{id: b, command: ['true']}]}]")
        yard = self.start("run", "job.yaml", "--set", "scheduler.max-process=1", "--set", "scheduler.interval=100ms",
                          "--set", "period.keeper-silence=500ms")
        self.until("the first task", lambda: "TRAINING" in self.life("a"))
        keeper = keeper_of(yard.pid)
        if guard_too:
            os.kill(guard_of(yard.pid), signal.SIGSTOP)
        os.kill(keeper, signal.SIGSTOP)
        return yard, keeper

    def test_a_keeper_that_is_suspended_is_told_to_go_on_and_nobody_is_harmed(self):
        yard, keeper = self.stopped_keeper()
        self.open_gate()
        # The yard learns of the task's end when the keeper goes on, and the next one starts.
        _, errors = self.end_of(yard, expect=0)
        silent = f"the keeper (process {keeper}, which starts the tasks) has not responded for 0.5 s: no tasks start"
        self.assertLess(errors.index(silent), errors.index("the keeper responds again"))
        self.assertEqual({row["id"]: (row["word"], row["attempt"]) for row in self.status()["tasks"]},
                         {"a": ("FINISHED", 1), "b": ("FINISHED", 1)})

    def test_a_run_whose_keeper_and_guard_are_stopped_can_be_ended(self):
        yard, keeper = self.stopped_keeper(guard_too=True)
        guard = guard_of(yard.pid)
        self.until("the reason", lambda: any(waits["cause"] == "keeper" for waits in self.status(tasks=False)["waiting"]))
        yard.send_signal(signal.SIGINT)
        self.until("the end of what waits", lambda: self.words()["g/b"] == "STOPPED")
        yard.send_signal(signal.SIGINT)
        self.end_of(yard, expect=130)
        self.assertEqual(self.words(), {"g/a": "STOPPED", "g/b": "STOPPED"})
        self.assertFalse(alive(keeper) or alive(guard))
        self.assertEqual(processes_with(f"TRAINYARD_RUN_DIR={self.directory.resolve()}/runs/job"), [])
