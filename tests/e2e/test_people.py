"""The commands for a run from another shell: status, logs, kill, reports."""
import os
import fcntl
import pty
import struct
import re
import select
import signal
import sqlite3
import subprocess
from contextlib import closing

from yard import PATIENCE_S, SETTINGS, TRAINYARD, YardTest, json


class Beside(YardTest):
    def setUp(self):
        super().setUp()
        os.mkfifo(self.directory / "gate")
        self.job("""
name: job
groups:
  - name: g
    memory: 10MB
    tasks:
      - {id: a, cpus: 0, command: [sh, -c, 'printf "10%%\\r50%%\\r100%%\\nready\\n"; echo oops >&2; cat gate; echo end']}
      - {id: b, cpus: 0, command: [sh, -c, 'trap "exit 1" TERM; echo up; while :; do sleep 0.01; done']}
  - {name: h, tasks: [{id: c, command: ['true']}]}
""")
        self.yard = self.start("run", "job.yaml")
        self.until("both tasks' first lines", lambda: "ready" in self.log("a") and "up" in self.log("b"))
        self.until("both tasks", lambda: [row["id"] for row in self.status()["running"]] == ["a", "b"])

    def log(self, task):
        path = self.directory / f"runs/job/g/{task}/stdout.log"
        return path.read_text() if path.exists() else ""

    def finish(self, expect):
        self.open_gate()
        return self.end_of(self.yard, expect=expect)

    def test_status_says_what_runs_and_why_the_others_wait_and_kill_ends_one_task(self):
        text = self.trainyard("status", expect=0).stdout
        for word in ("job", "RUNNING", "waits for group 'g'"):
            self.assertIn(word, text)
        self.assertEqual(self.status()["state"], "running")
        self.assertIn("did you mean", self.trainyard("kill", "g/bb", expect=2).stderr)
        self.assertIn("g/b was killed", self.trainyard("kill", "b", expect=0).stdout)
        self.assertIn("g/b is KILLED: only waiting and running tasks can be killed", self.trainyard("kill", "b", expect=1).stderr)
        self.assertIn("h/c will not start", self.trainyard("kill", "c", expect=0).stdout)
        self.finish(expect=1)
        self.assertEqual(self.words(), {"g/a": "FINISHED", "g/b": "KILLED", "h/c": "SKIPPED"})
        for words in (["kill", "b"], ["hold", "b"], ["release"], ["update", "--priority=1", "b"]):
            self.assertEqual(self.trainyard(*words, expect=2).stderr, "trainyard: run 1 ('runs/job') has ended\n", words)

    def test_kill_ends_several_tasks_that_are_named_in_one_command(self):
        done = self.trainyard("kill", "g/b", "c", expect=0)
        self.assertEqual((sorted(done.stdout.splitlines()), done.stderr), (["g/b was killed", "h/c will not start"], ""))
        again = self.trainyard("kill", "b", "a", expect=1)
        self.assertEqual(again.stdout, "g/a was killed\n")
        self.assertIn("g/b is KILLED", again.stderr)
        self.end_of(self.yard, expect=1)
        self.assertEqual(self.words(), {"g/a": "KILLED", "g/b": "KILLED", "h/c": "SKIPPED"})

    def test_cancel_is_another_name_of_kill_wherever_a_command_is_named(self):
        self.assertEqual(self.trainyard("help", "cancel", expect=0).stdout, self.trainyard("kill", "--help", expect=0).stdout)
        self.assertIn("did you mean 'cancel'?", self.trainyard("cancle", "b", expect=2).stderr)
        self.assertIn("did you mean '--run-dir'?", self.trainyard("cancel", "--run-dri", "b", expect=2).stderr)
        self.assertIn("g/b was killed", self.trainyard("cancel", "b", expect=0).stdout)
        self.finish(expect=1)
        self.assertEqual(self.words()["g/b"], "KILLED")

    def test_kill_says_when_a_run_has_no_control_socket(self):
        with closing(sqlite3.connect(self.directory / "runs/job/journal.db")) as journal, journal:
            journal.execute("UPDATE executions SET socket_path = ''")
        self.assertIn("has no control socket", self.trainyard("kill", "a", expect=2).stderr)
        self.trainyard("status", expect=0)
        self.yard.send_signal(signal.SIGINT)
        self.end_of(self.yard, expect=130)

    def test_logs_fold_progress_bars_and_two_that_follow_see_all_until_the_end(self):
        done = self.trainyard("logs", "a", "--stdout", expect=0)
        self.assertEqual(done.stdout, "100%\nready\n")
        self.assertEqual(self.trainyard("logs", "g/a", "--stderr", expect=0).stdout, "oops\n")
        both = self.trainyard("logs", "a", expect=0).stdout
        self.assertEqual(re.sub(r"==> .*/", "==> ", both),
                         "==> stdout.log <==\n100%\nready\n\n==> stderr.log <==\noops\n")
        self.assertEqual(self.trainyard("logs", "a", "--stdout", "--stderr", expect=0).stdout, both)
        self.assertIn("g/a has had 1 attempt\n", self.trainyard("logs", "a", "--attempt", "2", expect=2).stderr)
        self.assertIn("'0' is not an attempt number (1, 2, 3, ...)\n",
                      self.trainyard("logs", "a", "--attempt=0", expect=2).stderr)
        followers = [self.start("logs", "a", "-f", "--stdout") for _ in range(2)]
        watchers = [self.start("status", "--watch") for _ in range(2)]
        for watcher in watchers:
            self.assertIn("job: ", self.next_line(watcher.stdout))
        self.trainyard("kill", "b", expect=0)
        self.finish(expect=1)
        for follower in followers:
            self.assertEqual(self.end_of(follower, expect=0)[0], "100%\nready\nend\n")
        for watcher in watchers:
            self.assertRegex(self.end_of(watcher, expect=0)[0], r"job: ended after .*\n(.*\n)*.*KILLED")

    def test_logs_that_are_followed_say_that_the_run_has_died(self):
        follower = self.start("logs", "a", "-f", "--stdout")
        self.assertEqual(self.next_line(follower.stdout), "100%\n")
        os.killpg(self.yard.pid, signal.SIGKILL)
        self.end_of(self.yard)
        self.assertEqual(self.end_of(follower, expect=0)[1],
                         "trainyard: g/a is LOST; run 1 ('runs/job') is not running: 'trainyard status runs/job' shows how to resume it\n")


class Silence(YardTest):
    def test_logs_say_that_a_task_has_printed_nothing(self):
        os.mkfifo(self.directory / "gate")
        self.job("name: job\ngroups: [{name: g, cpus: 0, memory: 10MB, tasks: [{id: a, command: [cat, gate]}, {id: b, command: echo out}]}]")
        yard = self.start("run", "job.yaml")
        self.until_file("runs/job/journal.db")
        self.until("the task", lambda: self.words().get("g/a") == "RUNNING")
        done = self.trainyard("logs", "a", expect=0)
        self.assertEqual((done.stdout, done.stderr), ("", "trainyard: g/a: no output yet\n"))
        self.open_gate()
        self.end_of(yard, expect=0)
        self.assertEqual(self.trainyard("logs", "a", expect=0).stderr, "trainyard: g/a: no output\n")
        (self.directory / "runs/job/g/a/stdout.log").unlink()
        gone = "trainyard: g/a: its log was deleted, as by 'trainyard clean', or is on another machine\n"
        self.assertEqual(self.trainyard("logs", "a", expect=2).stderr, gone)
        both = self.trainyard("logs", "g", "--stdout", expect=2)
        self.assertEqual((both.stdout, both.stderr), ("==> g/a <==\n\n==> g/b <==\nout\n", gone))

    def test_logs_that_are_followed_say_why_a_task_waits(self):
        os.mkfifo(self.directory / "gate")
        self.job("name: job\ngroups: [{name: g, max-parallel: 1, cpus: 0, memory: 10MB, tasks: "
                 "[{id: a, command: [cat, gate]}, {id: b, command: echo started}, {id: c, command: echo started}]}]")
        yard = self.start("run", "job.yaml")
        self.until_file("runs/job/journal.db")
        self.until("the task", lambda: self.words().get("g/a") == "RUNNING")
        self.trainyard("hold", "c", expect=0)
        self.until("the reason", lambda: "max-parallel" in self.trainyard("status", expect=0).stdout)
        follower = self.start("logs", "b", "-f")
        self.assertRegex(self.next_line(follower.stderr), "^trainyard: g/b has not started: .*max-parallel allows 1 task of its "
                                                          "group at once.*; its output follows when it starts\n")
        held = self.start("logs", "c", "-f")
        self.assertEqual(self.next_line(held.stderr), "trainyard: g/c has not started: on hold until 'trainyard release'; its "
                                                      "output follows when it starts\n")
        held.send_signal(signal.SIGINT)
        self.assertEqual(self.end_of(held, expect=0), ("", "trainyard: g/c: has not started\n"))
        self.open_gate()
        self.assertIn("started\n", self.end_of(follower, expect=0)[0])
        self.trainyard("kill", "c", expect=0)
        self.end_of(yard, expect=1)
        self.assertEqual(self.trainyard("logs", "c", "-f", expect=2).stderr,
                         "trainyard: g/c did not start and is SKIPPED: killed on request before it started\n")


class Reports(YardTest):
    def test_reports_that_could_not_be_written_are_not_announced(self):
        self.job("name: job\ngroups: [{name: g, tasks: [{id: a, command: ['true']}]}]")
        self.write("runs/job/reports", "a file stands where the directory should be")
        done = self.trainyard("run", "job.yaml", expect=0)
        self.assertIn("runs/job/reports", done.stderr)
        self.assertNotIn("reports:", done.stdout)


class SeveralRuns(YardTest):
    def run_named(self, name):
        job = f"name: {name}\ngroups: [{{name: g, tasks: [{{id: a, cpus: 0, memory: 1MB, command: [cat, gate]}}]}}]"
        self.job(job, f"{name}.yaml")
        yard = self.start("run", f"{name}.yaml")
        self.until_file(f"runs/{name}/g/a/stdout.log")
        self.until(name, lambda: self.words(f"runs/{name}") == {"g/a": "RUNNING"})
        return yard

    def latest(self):
        return json.loads(self.trainyard("status", "--json", expect=0).stdout)["job"]

    def test_several_active_runs_are_listed(self):
        os.mkfifo(self.directory / "gate")
        yards = {name: self.run_named(name) for name in ("first", "second", "third")}
        refused = self.trainyard("kill", "a", expect=2).stderr
        self.assertRegex(refused, r"^trainyard: several runs are active: run (\d+) \('runs/third'\), run (\d+) \('runs/second'\) "
                                  r"and run (\d+) \('runs/first'\); name one of them: \1, \2 or \3, as in: trainyard kill runs/third a\n$")
        for name, yard in yards.items():
            self.trainyard("kill", "a", f"runs/{name}", expect=0)
            self.end_of(yard, expect=1)

    def test_the_latest_run_is_the_one_that_was_started_last_and_one_at_work_comes_first(self):
        os.mkfifo(self.directory / "gate")
        first = self.run_named("first")
        second = self.run_named("second")
        self.assertEqual(self.latest(), "second")
        # A look at the other run, or a refused start in its place, does not make it the latest.
        self.trainyard("status", "runs/first", expect=0)
        self.trainyard("run", "first.yaml", expect=2)
        os.utime(self.directory / "runs/first/journal.db")
        self.assertEqual(self.latest(), "second")
        refused = self.trainyard("kill", "a", expect=2).stderr
        self.assertRegex(refused, r"^trainyard: several runs are active: run (\d+) \('runs/second'\) and run (\d+) "
                                  r"\('runs/first'\); name one of them: \1 or \2, as in: trainyard kill runs/second a\n$")
        self.assertEqual(self.trainyard("learned", "forget", expect=2).stderr, refused.split(", as in")[0] + "\n")
        self.trainyard("kill", "a", "runs/second", expect=0)
        self.end_of(second, expect=1)
        self.assertEqual(self.latest(), "first")
        self.trainyard("kill", "a", expect=0)
        self.end_of(first, expect=1)
        self.assertEqual(self.latest(), "second")


class NamingARun(YardTest):
    def test_is_the_same_in_every_command(self):
        self.job("groups: [{name: g, tasks: [{id: a, command: echo hello}]}]", "exp/job.yaml")
        self.trainyard("run", "job.yaml", cwd=self.directory / "exp", expect=0)
        for name in ("exp/runs/job", self.directory / "exp/runs/job", "exp", "exp/job.yaml"):
            with self.subTest(name=name):
                self.assertIn(": exp/runs/job\n", self.trainyard("status", name, expect=0).stdout)
        for words in (["exp/job.yaml"], ["--run-dir", "exp"]):
            with self.subTest(words=words):
                self.assertIn(": exp/runs/job\n", self.trainyard("status", *words, expect=0).stdout)
                self.assertIn("hello\n", self.trainyard("logs", "a", *words, expect=0).stdout)
                self.assertIn("has ended", self.trainyard("kill", "a", *words, expect=2).stderr)
                self.trainyard("devices", *words, expect=0)
        for words in (["--resume", "exp/runs/job"], ["--resume", "exp/job.yaml"], ["exp/job.yaml", "--resume"],
                      ["--resume", "--run-dir", "exp/runs/job"]):
            self.assertIn("nothing to run: the only task has finished", self.trainyard("run", *words, expect=0).stderr)
        self.assertIn("name a run number, a run directory or a job file", self.trainyard("logs", "a", expect=2).stderr)
        self.assertIn("you have no active runs on this machine", self.trainyard("status", expect=0).stdout)
        self.assertIn("run 'nowhere' not found; a run is named by its number", self.trainyard("status", "nowhere", expect=2).stderr)
        self.job("groups: [{name: g, tasks: [{id: a, command: 'true'}]}]", "exp/other.yaml")
        self.assertIn("no run of 'exp/other.yaml' found", self.trainyard("status", "exp/other.yaml", expect=2).stderr)
        # Runs in the configured directory are found without a name.
        self.write("trainyard.yaml", "workdir: exp\n")
        self.assertIn(": exp/runs/job\n", self.trainyard("status", expect=0).stdout)

    def test_waits_for_one_that_is_just_beginning(self):
        self.job("name: job\ngroups: [{name: g, tasks: [{id: a, command: 'true'}]}]")
        self.trainyard("run", "job.yaml", expect=0)
        begun = (self.directory / "runs/job/journal.db").read_bytes()
        for there in (None, b""):
            run = self.directory / f"runs/just{'-empty' if there is not None else ''}"
            run.mkdir()
            if there is not None:
                (run / "journal.db").write_bytes(there)
            with open(run / "lock", "w") as lock:
                # As the yard does: a lock of the open file.
                fcntl.fcntl(lock, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
                status = self.start("status", run)
                self.assertEqual(self.next_line(status.stderr), f"trainyard: waiting for the run in '{run}', which is starting\n")
                (run / "new").write_bytes(begun)
                (run / "new").rename(run / "journal.db")
                out, _ = self.end_of(status, expect=0)
                self.assertRegex(out, "g +FINISHED +1 +1 ")

    def test_of_one_that_was_ended_before_it_had_begun_says_so(self):
        self.write("runs/job/journal.db", "")
        self.assertIn("it was killed before it started", self.trainyard("status", "runs/job", expect=2).stderr)

    def test_with_results_and_no_journal_says_so_and_none_begins_over_them(self):
        self.job("name: job\ngroups: [{name: g, cpus: 0, memory: 1MB, tasks: [{id: a, command: 'echo x >> ran'}]}]")
        self.trainyard("run", "job.yaml", expect=0)
        journal = self.directory / "runs/job/journal.db"
        for why, damage in (("is empty or damaged", lambda: journal.write_bytes(b"")),
                            ("is gone", journal.unlink), ("is gone", lambda: journal.symlink_to("nowhere"))):
            damage()
            for words in (["run", "job.yaml"], ["run", "--resume", "job.yaml", "--dry-run"], ["status", "runs/job"]):
                said = self.trainyard(*words, expect=2)
                self.assertEqual(said.stdout, "")
                self.assertIn(f"/runs/job/journal.db' {why}. The run cannot be resumed", said.stderr, words)
                self.assertIn("with --new for a job file, or move the directory away", said.stderr)
        self.assertEqual(self.text("ran"), "x\n")
        self.assertIn(": runs/job-2\n", self.trainyard("run", "job.yaml", "--new", expect=0).stderr)

    def test_is_told_how_where_its_directory_stands_in_the_place_of_a_job_file(self):
        self.job("groups: [{name: g, tasks: [{id: a, command: 'true', memory: 10MB}]}]")
        self.trainyard("run", "job.yaml", expect=0)
        for words in (["runs/job"], ["runs/job", "--resume"]):
            self.assertIn("'runs/job' is a directory, not a job file; 'trainyard run --resume runs/job' continues",
                          self.trainyard("run", *words, expect=2).stderr)
        for words, directory, cure in ((["run", "."], ".", " (did you mean 'job.yaml'?)"), (["submit", "."], ".", " (did you mean 'job.yaml'?)"),
                                       (["run", "runs/"], "runs/", "; 'trainyard run --resume runs/NAME' continues a run in it")):
            self.assertEqual(self.trainyard(*words, expect=2).stderr, f"trainyard: '{directory}' is a directory, not a job file{cure}\n")
        self.trainyard("run", "job.yaml", "--new", expect=0)
        self.assertEqual(self.trainyard("run", "--resume", "runs", expect=2).stderr,
                         "trainyard: no run found in 'runs': it has no journal; 'trainyard run --resume runs/NAME' continues a run in it\n")
        (self.directory / "runs").rename(self.directory / "a b")
        self.assertIn("; \"trainyard run --resume 'a b/NAME'\" continues", self.trainyard("run", "a b", expect=2).stderr)


class FullDisk(YardTest):
    def test_is_told_once_where_standard_output_lies_on_it_and_a_run_ends_as_it_did(self):
        self.job("name: job\ngroups: [{name: g, cpus: 0, memory: 1MB, tasks: [{id: a, command: 'echo x'}]}]")
        why = "trainyard: cannot write standard output: No space left on device\n"
        for words, code in ((["run", "job.yaml"], 0), (["run", "job.yaml", "--new", "--json"], 1), (["status"], 1),
                            (["status", "--json", "--all"], 1), (["logs", "a"], 1), (["devices"], 1), (["doctor"], 1),
                            (["plan", "job.yaml"], 1), (["config", "show"], 1), (["help"], 1),
                            (["run", "--help"], 1), (["--version"], 1), (["client", "wait-device"], 1),
                            (["config", "init"], 1)):
            with open("/dev/full", "w") as full:
                done = subprocess.run([TRAINYARD, *words], cwd=self.directory, stdout=full, stderr=subprocess.PIPE,
                                      stdin=subprocess.DEVNULL, text=True, env=self.environment, timeout=PATIENCE_S)
            self.assertEqual((done.returncode, done.stderr.count(why)), (code, 1), f"{words}: {done.stderr}")

    def test_and_a_standard_output_that_is_closed_are_told_alike(self):
        for words in (["--version"], ["status"], ["doctor"], ["help"]):
            done = self.trainyard(*words, expect=1, prefix=("sh", "-c", 'exec "$@" >&-', "sh"))
            self.assertEqual(done.stderr, "trainyard: cannot write standard output: Bad file descriptor\n", words)


class DeadRun(YardTest):
    def test_has_tasks_that_are_lost_and_none_that_run(self):
        os.mkfifo(self.directory / "gate")
        self.job("name: job\ngroups: [{name: g, matrix: {i: 1..2}, cpus: 0, memory: 1MB, tasks: [{command: [cat, gate]}]}]")
        yard = self.start("run", "job.yaml")
        self.until_file("runs/job/g/i=2/stdout.log")
        self.until("both", lambda: self.status()["groups"][0]["running"] == 2)
        yard.kill()
        yard.wait()
        shown = self.trainyard("status", "--all", expect=0).stdout
        self.assertIn("died", shown)
        self.assertNotIn("RUNNING", shown)
        self.assertRegex(shown, "LOST +WAITING")
        self.assertRegex(shown, "1 +LOST")
        told = self.status()
        self.assertEqual((told["state"], told["groups"][0]["phase"], told["groups"][0]["running"], told["groups"][0]["lost"]),
                         ("died", "DIED", 0, 2))
        self.assertEqual({row["word"] for row in told["tasks"]}, {"LOST"})
        rows = json.loads(self.trainyard("results", "--json", expect=0).stdout)["rows"]
        self.assertNotIn(None, [row["time"] for row in rows])


class Terminal(YardTest):
    def seen_on_a_terminal(self, *words, **environment):
        ours, theirs = pty.openpty()
        program = subprocess.Popen([TRAINYARD, *words], cwd=self.directory, stdin=theirs, stdout=theirs, stderr=theirs,
                                   env={**self.environment, "TERM": "xterm", **environment})
        os.close(theirs)
        seen = b""
        while select.select([ours], [], [], PATIENCE_S)[0]:
            try:
                piece = os.read(ours, 65536)
            except OSError:
                break
            if not piece:
                break
            seen += piece
        os.close(ours)
        program.wait(timeout=PATIENCE_S)
        return seen.decode()

    def test_is_neither_coloured_nor_drawn_again_where_that_is_not_wanted(self):
        self.job("name: job\ngroups: [{name: g, cpus: 0, tasks: [{id: a, command: 'false'}]}]")
        coloured, redrawn = "\x1b[31m", "\x1b[K"
        run = ["run", "job.yaml", "--new", *SETTINGS]
        usual = self.seen_on_a_terminal(*run)
        self.assertTrue(coloured in usual and redrawn in usual)
        plain = self.seen_on_a_terminal(*run, NO_COLOR="1")
        self.assertTrue(coloured not in plain and redrawn in plain)
        self.assertIn(coloured, self.seen_on_a_terminal(*run, NO_COLOR=""), "empty is not set")
        self.assertNotIn("\x1b", self.seen_on_a_terminal(*run, TERM="dumb"))
        self.assertIn(coloured, self.seen_on_a_terminal("status", "--all"))
        self.assertNotIn("\x1b", self.seen_on_a_terminal("status", "--all", NO_COLOR="1"))
        self.assertNotIn("\x1b", self.seen_on_a_terminal("status", "--watch", TERM="dumb"))

    def test_gets_no_escape_sequence_from_a_path(self):
        name = "d\x1b[2J"
        below = self.directory / name
        below.mkdir()
        job = below / "job.yaml"
        job.write_text("name: job\ngroups: [{name: g, cpus: 0, tasks: [{id: a, command: echo hi}, {id: b, command: 'true'}]}]")
        self.trainyard("run", "job.yaml", *SETTINGS, cwd=below, expect=0)
        run = f"{name}/runs/job"
        for words in (["run", f"{name}/job.yaml"], ["run", "--dry-run", job], ["run", "--resume", run], ["logs", run, "a"],
                      ["logs", run, "*"], ["kill", run], ["kill", run, "a"], ["results", run], ["status", run], ["status", name],
                      ["status", run, "--json"], ["wait", name], ["retry", run], ["submit", "--needs", f"{name}x", job],
                      ["clean", "--dry-run", run], ["clean", name], ["plan", f"{name}.yaml"], ["status", run]):
            done = self.trainyard(*words)
            self.assertNotRegex(done.stdout + done.stderr, "[\x00-\x08\x0b-\x1f]", words)

    def test_shows_what_follows_a_run_that_is_left_in_the_background(self):
        self.job("name: job\ngroups: [{name: g, cpus: 0, tasks: [{id: a, command: 'true'}]}]")
        self.assertEqual(self.seen_on_a_terminal("run", "-d", "job.yaml", *SETTINGS).splitlines(),
                         ["1", "run 1 started in the background: runs/job ('trainyard status 1', 'trainyard wait 1')"])
        self.trainyard("wait", "1", expect=0)

    def test_shows_what_follows_a_submission(self):
        try:
            self.trainyard("up", expect=0)
            self.assertEqual(self.seen_on_a_terminal("submit", "--cpus", "0", "--memory", "1MB", "--name", "a", "--", "true").splitlines(),
                             ["1", "run 1 submitted: runs/a ('trainyard status 1', 'trainyard wait 1')"])
            self.trainyard("wait", "1", expect=0)
        finally:
            self.trainyard("down", "--now")
