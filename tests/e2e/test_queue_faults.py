"""Waits for runs of a queue, its end, and what becomes of it when something goes wrong."""
import shlex
import shutil
import unittest

from test_queue import LIGHT, QueueTest, WITH_A_RUN
from yard import SETTINGS, TRAINYARD, alive, os, own_mounts, processes_with, signal, subprocess, suspend

SOMEBODY_ELSE = ("setpriv", "--reuid=65534", "--clear-groups")


class Waiting(QueueTest):
    def test_wait_alone_means_the_newest_here_and_the_others_here_that_go_on(self):
        for code in (11, 12):
            self.command_of(f"exit {code}", "--name", "r")
            self.trainyard("wait", expect=code)
        held = self.holds()
        bad = self.command_of("exit 9", "--needs", held, "--name", "bad")
        waiting = self.start("wait")
        self.open_gate()
        _, told = self.end_of(waiting, expect=9)
        self.assertEqual(told, f"trainyard: run {bad} ('runs/bad') ended: 1 of 1 task failed\n")
        # The newest here may have its place elsewhere, where its job file is.
        (self.directory / "jobs").mkdir()
        self.job("groups: [{name: g, cpus: 0, memory: 1MB, tasks: [{id: a, command: exit 7}]}]", "jobs/sweep.yaml")
        self.submit("jobs/sweep.yaml", *SETTINGS)
        self.trainyard("wait", expect=7)
        self.assertTrue((self.directory / "jobs/runs/sweep").exists())

    def test_wait_alone_counts_what_has_failed_since_the_newest_here_was_created(self):
        fails = self.command_of(": < gate; exit 3", "--name", "fails")
        self.wait(self.command_of("true", "--name", "newest"))
        self.open_gate()
        self.wait(fails, 3)
        self.assertEqual(self.trainyard("wait", expect=1).stderr, f"trainyard: run {fails} ('runs/fails') ended: 1 of 1 task failed\n")

    def test_says_once_that_the_run_is_suspended(self):
        self.job("name: job\ngroups: [{name: g, cpus: 0, memory: 1MB, tasks: [{id: a, command: ': < gate'}]}]")
        yard = self.start("run", "job.yaml")
        self.until("the task", lambda: self.words_of(1) == {"g/a": "RUNNING"})
        suspend(yard.pid)
        waits = self.start("wait", "1")
        self.assertEqual(self.next_line(waits.stderr), "trainyard: run 1 ('runs/job') is suspended, as by Ctrl-Z: "
                         f"'kill -CONT {yard.pid}', or 'fg' in its terminal, resumes it\n")
        os.kill(yard.pid, signal.SIGCONT)
        self.open_gate()
        self.assertEqual(self.end_of(waits, expect=0), ("", ""))
        self.end_of(yard, expect=0)

    def test_a_name_is_the_newest_run_of_it_also_one_that_has_not_begun(self):
        first = self.command_of("exit 4", "--name", "eval")
        self.trainyard("wait", "eval", expect=4)
        # The first one of another name, which is no run of this one.
        self.command_of("exit 8", "--name", "eval-9")
        self.trainyard("wait", "eval-9", expect=8)
        self.trainyard("wait", "eval", expect=4)
        held = self.holds()
        second = self.command_of("exit 5", "--name", "eval", "--needs", held)
        self.assertIn(f"run {second} is in your queue", self.trainyard("status", "eval", expect=0).stdout)
        for words in (["retry", "eval"], ["hold", "eval"], ["clean", "eval"], ["run", "--resume", "eval"]):
            with self.subTest(words=words):
                self.assertIn("is in your queue", self.trainyard(*words, expect=2).stderr)
        self.assertEqual(self.trainyard("submit", "--run-dir", second, "--", "true", expect=2).stderr,
                         f"trainyard: run {second} is in your queue: waits for run {held}; tasks can be added only to an active run\n")
        third = self.command_of("exit 6", "--name", "eval", "--needs", held)
        for words in (["kill", "eval"], ["kill", "eval", "*"], ["clean", "eval"]):
            with self.subTest(words=words):
                self.assertRegex(self.trainyard(*words, expect=2).stderr,
                                 rf"several runs of 'eval' are active or in your queue: run {third} \('runs/.*'\) and "
                                 rf"run {second} \('runs/.*'\); type {third} or {second} instead of 'eval'\n$")
        last = self.command_of("true", "--needs", "eval", "--if", "failure()", "--name", "last-one")
        self.assertIn(f"trainyard: 'eval' is run {third} ('runs/eval-3'), the one created last of 3 runs\n", self.told)
        self.assertIn(f"run {last} is in your queue: waits for run {third}", self.trainyard("status", "last", expect=0).stdout)
        waits = [self.start("wait", word) for word in ("eval", second, "last")]
        self.open_gate()
        for waiting, code in zip(waits, (6, 5, 0)):
            self.end_of(waiting, expect=code)
        for word, code in (("eval", 6), ("runs/eval", 4), (first, 4), (second, 5), ("last", 0)):
            with self.subTest(word=word):
                self.trainyard("wait", word, expect=code)

    def test_what_a_name_shows_says_which_run_it_is_where_a_newer_one_waits(self):
        active = self.command_of("echo begun; : < gate", "--name", "eval")
        self.until_written("runs/eval/eval/eval/stdout.log")
        newer = self.command_of("echo done", "--name", "eval", "--needs", active)
        said = (f"trainyard: 'eval' is run {active} ('runs/eval'), which is active; run {newer} ('runs/eval-2') "
                "is in your queue\n")
        for command in ("status", "results", "logs"):
            with self.subTest(command=command):
                self.assertEqual(self.trainyard(command, "eval", expect=0).stderr, said)
                for word in (active, "runs/eval"):
                    self.assertEqual(self.trainyard(command, word, expect=0).stderr, "")
        self.open_gate()
        self.wait(newer)
        self.assertEqual(self.trainyard("logs", "eval", expect=0).stderr,
                         f"trainyard: 'eval' is run {newer} ('runs/eval-2'), the latest of 2 runs\n")

    def test_a_name_means_a_run_here_before_a_newer_one_elsewhere(self):
        other = self.directory / "other"
        other.mkdir()
        self.command_of("exit 4", "--name", "eval")
        self.trainyard("wait", "eval", cwd=other, expect=4)
        there = self.trainyard("submit", *LIGHT, "--name", "eval", "--", "exit 5", cwd=other, expect=0).stdout.strip()
        self.trainyard("wait", "eval", cwd=other, expect=5)
        self.trainyard("wait", "eval", expect=4)
        self.trainyard("wait", "last", expect=4)
        self.trainyard("wait", there, expect=5)

    def test_the_exit_code_of_several_says_whether_a_task_failed(self):
        self.assertEqual(self.trainyard("wait", "--all", expect=0).stdout, "you have no active runs on this machine\n")
        well, bad = self.command_of("true"), self.command_of("exit 9", "--name", "bad")
        crashed, killed = self.command_of("kill -SEGV $$", "--name", "crashed"), self.command_of("kill -KILL $$", "--name", "killed")
        for words, code in ((["bad"], 9), ([crashed], 139), ([killed], 1), ([well, bad], 1), ([well, "true"], 0), ([bad, "bad"], 9)):
            with self.subTest(words=words):
                self.trainyard("wait", *words, expect=code)
        self.assertIn(f"'{well}' cannot be combined with --all\n", self.trainyard("wait", "--all", well, expect=2).stderr)
        held = self.holds()
        waiting = self.start("wait", "--all")
        self.open_gate()
        self.end_of(waiting, expect=0)
        self.holds("again")
        self.assertIn("no more runs start", self.trainyard("down", "--drain", expect=0).stdout)
        later = self.command_of("true", "--name", "later")
        self.open_gate()
        self.until("the end of the queue", lambda: not self.server())
        self.trainyard("wait", held, later, expect=75)
        self.trainyard("wait", "--all", expect=75)

    def test_a_task_does_not_wait_for_its_own_run(self):
        self.submit(*WITH_A_RUN, "--name", "inner", "--",
                    f"{TRAINYARD} wait && {TRAINYARD} wait --all")
        self.trainyard("wait", "inner", expect=0)

    def test_a_wait_for_a_run_that_the_wait_is_part_of_is_refused_by_name(self):
        inner = shlex.join([str(TRAINYARD), "run", *WITH_A_RUN, "--name", "inner", "--", f"{TRAINYARD} wait --all; {TRAINYARD} wait outer"])
        self.trainyard("run", *WITH_A_RUN, "--name", "outer", "--", "sh", "-c", f"{TRAINYARD} wait outer; {inner}", expect=1)
        why = "the wait would never end: a task of run 1 ('runs/outer') has started this command, and the run ends after it"
        for name in ("outer", "inner"):
            self.assertIn(why, self.text(f"runs/{name}/{name}/{name}/stderr.log"))

    def test_a_wait_for_what_starts_after_the_run_of_the_wait_is_refused(self):
        submit = shlex.join([str(TRAINYARD), "submit", *LIGHT])
        self.submit(*WITH_A_RUN, "--name", "outer", "--",
                    f"{submit} --needs 1 --name second -- true; {submit} --needs 2 --name third -- true; "
                    f"{TRAINYARD} wait second; {TRAINYARD} wait 3; {TRAINYARD} wait && {TRAINYARD} wait --all")
        self.trainyard("wait", "outer", expect=0)
        self.assertEqual(self.text("runs/outer/outer/outer/stderr.log"), "".join(
            f"trainyard: the wait would never end: {run} starts after run 1 ('runs/outer'), one of whose tasks has started this command\n"
            for run in ("run 2 ('runs/second')", "run 3 ('runs/third')")))
        self.trainyard("wait", "third", expect=0)


class Ending(QueueTest):
    def test_down_with_tasks_at_work_ends_nothing_and_says_the_ways(self):
        self.assertEqual(self.trainyard("down", expect=0).stdout, "your queue is not up\n")
        held = self.holds()
        done = self.trainyard("down", expect=2)
        self.assertEqual(done.stdout, "")
        self.assertIn("1 run is active, so your queue stays up", done.stderr)
        self.assertIn("'trainyard down --drain'", done.stderr)
        self.assertIn("'trainyard down --now'", done.stderr)
        self.assertEqual(self.words_of(held), {"holds/holds": "RUNNING"})
        self.assertTrue(self.server())
        self.open_gate()
        self.wait(held)
        self.until("an idle queue", lambda: self.trainyard("down").returncode == 0)
        self.assertIsNone(self.server())

    def test_drain_begins_nothing_more_and_lets_what_runs_end(self):
        held = self.holds()
        self.assertIn("no more runs start", self.trainyard("down", "--drain", expect=0).stdout)
        later = self.command_of("echo later", "--name", "later")
        drains = "your queue starts no more runs and goes down when its active runs have ended: 'trainyard up' keeps it up"
        self.assertEqual(self.told, f"trainyard: the submission waits: {drains}\n")
        self.assertEqual(self.living()[int(later)]["reason"], drains)
        self.open_gate()
        self.until("the end of the queue", lambda: not self.server())
        self.wait(held)
        self.assertIn("'trainyard up' starts it", self.wait(later, 75).stderr)
        self.assertEqual(self.trainyard("up", expect=0).stdout, "your queue is up\n")
        self.wait(later)
        self.assertEqual(self.trainyard("up", expect=0).stdout, "your queue is already up\n")

    def test_up_says_that_the_queue_stays_where_it_was_made(self):
        self.trainyard("up", expect=0)
        other = self.directory / "other"
        other.mkdir()
        told = self.trainyard("up", "--set", f"yard.state={other}", expect=0)
        self.assertEqual(told.stdout, "your queue is already up\n")
        self.assertRegex(told.stderr, r"^trainyard: yard\.state=.*/other has no effect: your queue was made in '.*/queue' and stays there\n$")

    def test_up_refuses_settings_of_runs_and_says_where_they_go(self):
        for is_up in (False, True):
            refused = self.trainyard("up", "--set", f"yard.state={self.directory}", "--set", "scheduler.max-process=1", expect=2)
            self.assertEqual((refused.stdout, refused.stderr), ("",
                             "trainyard: --set scheduler.max-process: this is a setting of runs, not of the queue: set it "
                             "for each submission, as in 'trainyard submit --set scheduler.max-process=... JOB-FILE'\n"))
            self.assertEqual(bool(self.server()), is_up)
            self.assertIn("did you mean", self.trainyard("up", "--set", "yard.stat=/tmp", expect=2).stderr)
            self.trainyard("up", expect=0)

    def test_up_ends_a_drain(self):
        held = self.holds()
        self.trainyard("down", "--drain", expect=0)
        later = self.command_of("true", "--name", "later")
        self.assertEqual(self.trainyard("up", expect=0).stdout, "your queue stays up, and starts runs again\n")
        self.wait(later)
        self.open_gate()
        self.wait(held)
        self.assertTrue(self.server())

    def test_now_ends_what_runs_and_up_goes_on_with_it(self):
        held = self.holds()
        self.assertIn("its 1 run continues with the next 'trainyard up' or 'submit'", self.trainyard("down", "--now", expect=0).stdout)
        self.assertIsNone(self.server())
        self.assertEqual(self.words_of(held), {"holds/holds": "STOPPED"})
        self.assertRegex(self.trainyard("status", held, expect=0).stdout, "^holds: interrupted.* after .*; 'trainyard up' resumes it\n")
        self.assertIn("'trainyard up' resumes it", self.trainyard("hold", held, "*", expect=2).stderr)
        self.assertIn("1 task is STOPPED: 'trainyard up' runs it", self.trainyard("retry", held, expect=2).stderr)
        # The files with which it goes on are not deleted.
        self.assertIn(f"is in your queue: nothing was deleted; 'trainyard kill {held}' removes it",
                      self.trainyard("clean", held, expect=2).stderr)
        self.assertIn("no run here has ended", self.trainyard("clean", "--older", "0s", expect=0).stdout)
        self.trainyard("up", expect=0)
        self.until("the task again", lambda: self.words_of(held) == {"holds/holds": "RUNNING"})
        self.open_gate()
        self.wait(held)

    def test_what_it_was_to_go_on_with_can_be_taken_out_and_cleaned(self):
        for way in ("{}", "{}/*"):
            with self.subTest(way=way):
                held = self.holds()
                self.trainyard("down", "--now", expect=0)
                told = self.trainyard("kill", way.format(held), expect=0).stdout
                self.assertEqual(told, f"run {held} was removed from your queue\n")
                self.wait(held, 130)
                cure = f"'trainyard run --resume runs/holds' resumes run {held}, then 'trainyard retry "
                behind = self.command_of("true", "--name", "behind", "--needs", held)
                self.assertIn(f": {cure}{behind}' puts run {behind} back into your queue; a submission with '--if failure' ", self.told)
                self.wait(behind, 1)
                self.assertIn(f": {cure}{behind}' puts run {behind} back into your queue\n",
                              self.trainyard("retry", behind, expect=2).stderr)
                self.trainyard("clean", behind, expect=0)
                self.trainyard("down", expect=0)
                self.assertEqual(self.words_of(held), {"holds/holds": "STOPPED"})
                self.trainyard("clean", held, expect=0)
                self.assertFalse((self.directory / "runs/holds").exists())


class Faults(QueueTest):
    def test_a_queue_that_is_killed_leaves_its_runs_at_work_and_the_next_one_takes_them_up(self):
        number = self.submit(*LIGHT, "--name", "both", "--each-line", str(self.write("lines.txt", "echo once >> first\n: < gate; echo on >> second\n")))
        self.until("the second task", lambda: self.words_of(number) == {"both/1": "FINISHED", "both/2": "RUNNING"})
        later = self.command_of("true", "--needs", number, "--name", "later")
        os.kill(self.server(), signal.SIGKILL)
        self.until("its end", lambda: not self.server())
        self.assertEqual(self.words_of(number)["both/2"], "RUNNING")
        self.command_of("true", "--name", "another")
        self.assertIn("has started", self.told)
        self.open_gate()
        self.wait(number)
        self.wait(later)
        self.assertEqual((self.text("first"), self.text("second")), ("once\n", "on\n"))

    def test_a_run_whose_yard_is_killed_goes_on_and_what_had_finished_is_not_run_twice(self):
        number = self.submit(*LIGHT, "--name", "both", "--each-line", str(self.write("lines.txt", "echo once >> first\n: < gate; echo on >> second\n")))
        self.until_written("first")
        self.until("its end", lambda: self.words_of(number).get("both/1") == "FINISHED")
        os.kill(int((self.directory / "runs/both/lock").read_text()), signal.SIGKILL)
        os.kill(self.server(), signal.SIGKILL)
        self.until("its end", lambda: not self.server())
        self.trainyard("up", expect=0)
        self.until("the second again", lambda: self.words_of(number) == {"both/1": "FINISHED", "both/2": "RUNNING"})
        self.open_gate()
        self.wait(number)
        self.assertEqual((self.text("first"), self.text("second")), ("once\n", "on\n"))

    def test_a_yard_that_is_killed_under_the_queue_goes_on_by_itself(self):
        held = self.holds()
        first = int((self.directory / "runs/holds/lock").read_text())
        os.kill(first, signal.SIGKILL)
        self.until("another yard", lambda: self.words_of(held) == {"holds/holds": "RUNNING"}
                   and self.text("runs/holds/lock").strip() not in ("", str(first)))  # Empty while it is written.
        self.open_gate()
        self.wait(held)

    def test_pipes_that_a_task_puts_in_the_place_of_lock_and_log_keep_no_run_from_going_on(self):
        number = self.command_of('test -e piped && exit; cd "$TRAINYARD_RUN_DIR"; rm lock trainyard.run.log; '
                                 'mkfifo lock trainyard.run.log; touch "$OLDPWD/piped"; exec sleep 1000', "--name", "job")
        self.until_file("piped")
        self.kill_yard(number)
        self.wait(number)
        self.assertEqual(self.words_of(number), {"job/job": "FINISHED"})
        self.assertTrue((self.directory / "runs/job/trainyard.run.log").is_file())

    def test_a_run_that_cannot_be_resumed_is_shown_with_the_reason_until_it_is(self):
        number = self.command_of('test -e linked && exit; cd "$TRAINYARD_RUN_DIR"; mv trainyard.job.yaml kept; '
                                 'ln -s kept trainyard.job.yaml; touch "$OLDPWD/linked"; exec sleep 1000', "--name", "job")
        self.until_file("linked")
        self.kill_yard(number)
        self.wait(number, 75)
        row = self.until("its row", lambda: self.living().get(int(number)))
        self.assertEqual(row["word"], "INCOMPLETE")
        self.assertRegex(row["reason"], r"/trainyard\.job\.yaml: is a symbolic link, .*: 'trainyard run --resume \S+/runs/job' resumes it\Z")
        (self.directory / "runs/job/kept").replace(self.directory / "runs/job/trainyard.job.yaml")
        self.assertRegex(self.trainyard("status", number, expect=0).stdout,
                         r"; your queue has given it up \(.*/trainyard\.job\.yaml: is a symbolic link, .*\); "
                         r"'trainyard run --resume runs/job' resumes it\n")
        self.trainyard("run", "--resume", "runs/job", expect=0)
        self.assertNotIn(int(number), self.living())

    def test_a_run_that_dies_again_and_again_stays_in_the_queue_which_resumes_it_later(self):
        held = self.holds()
        lock = self.directory / "runs/holds/lock"
        last = ""
        for _ in range(4):
            self.until("another yard", lambda before=last: self.words_of(held) == {"holds/holds": "RUNNING"}
                       and lock.read_text().strip() not in ("", before))
            last = lock.read_text().strip()
            os.kill(int(last), signal.SIGKILL)
        self.until("it is set aside", lambda: "killed" in str(self.living().get(int(held), {}).get("reason")))
        row = self.living()[int(held)]
        self.assertEqual(row["word"], "QUEUED")
        self.assertRegex(row["reason"], r"\Aresumes in [^:]+: it was killed 4 times\Z")
        self.assertRegex(self.trainyard("status", held, expect=0).stdout, r"\Aholds: died .*; your queue resumes it in .* \(it was killed 4 times\)\n")
        self.wait(self.command_of("true", "--name", "later"))
        self.assertIn("was removed from your queue", self.trainyard("kill", held, expect=0).stdout)
        self.assertNotIn(int(held), self.living())

    def test_a_submission_that_the_machine_cannot_start_stays_and_no_other_starts_before(self):
        disk = self.directory / "disk"
        disk.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", disk], capture_output=True).returncode:
            self.skipTest("only root mounts a file system")
        self.addCleanup(subprocess.run, ["umount", "-l", disk], check=False)
        held = self.holds()
        first = self.command_of("true", "--set", f"workdir={disk}", "--needs", held)
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        self.open_gate()
        self.wait(held)
        reason = lambda number: str(self.living().get(int(number), {}).get("reason"))
        self.until("it is set aside", lambda: reason(first).startswith("starts in "))
        self.assertRegex(reason(first), r"\Astarts in [^:]+: cannot write '.*': read-only file system\Z")
        later = self.command_of("true", "--name", "later")
        self.until("the reason", lambda: reason(later) == f"waits until run {first} can start")
        subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
        self.assertIn("was removed from your queue", self.trainyard("kill", first, expect=0).stdout)
        self.wait(later)

    def test_a_state_directory_that_cannot_be_written_is_said(self):
        self.write("full", "a file stands where the directory should be")
        done = self.trainyard("submit", "--", "true", expect=2, env={"XDG_STATE_HOME": str(self.directory / "full")})
        self.assertEqual(done.stdout, "")
        self.assertIn("your queue", done.stderr)
        self.assertIn("full", done.stderr)
        self.assertFalse((self.directory / "runs").exists())
        place = self.directory / "readonly"
        place.mkdir()
        mounted = own_mounts("sh", "-c", 'mount -t tmpfs -o ro,size=1m tmpfs "$0" && exec "$@"', place)
        done = self.trainyard("submit", "--", "true", expect=2, env={"XDG_STATE_HOME": str(place)}, prefix=mounted)
        self.assertIn("ead-only file system", done.stderr)
        self.assertFalse((self.directory / "runs").exists())

    def test_a_full_disk_leaves_nothing_of_a_submission_or_a_command(self):
        small = self.directory / "small"
        # The filler takes all room of the disk, where empty directories and links still have some.
        mounted = own_mounts("sh", "-c", 'mkdir -p "$0"; mount -t tmpfs -o size=16k none "$0" || exit 77; '
                             'head -c 100000 /dev/zero > "$0/filler" 2> /dev/null; "$@"; code=$?; '
                             'cd "$0"; find . -mindepth 1 ! -type d; ls -d runs 2> /dev/null; exit $code', small)
        for words in (["submit"], ["run"]):
            with self.subTest(words=words):
                done = self.trainyard(*words, "--set", f"workdir={small}", "--", "true", prefix=mounted)
                self.assertIn("no space left on device", done.stderr)
                self.assertEqual(done.stdout, "./filler\n")
        done = self.trainyard("submit", "--", "true", expect=2, env={"XDG_STATE_HOME": str(small)}, prefix=mounted)
        self.assertIn("no space left on device", done.stderr)
        self.assertEqual(done.stdout, "./filler\n", "no number is left")
        self.assertFalse((self.directory / "runs").exists())

    def test_a_frozen_disk_of_a_run_loses_nothing_of_it_and_the_queue_goes_on_when_it_has_thawed(self):
        disk = self.directory / "disk"
        disk.mkdir()
        script = 'truncate -s 16M "$0.image" && mkfs.ext4 -q "$0.image" && mount -o loop "$0.image" "$0"'
        if subprocess.run(["sh", "-c", script, disk], capture_output=True).returncode != 0:
            self.skipTest("only root may mount a disk that can be frozen")
        self.addCleanup(subprocess.run, ["umount", "-l", disk])
        number = self.command_of(f"cat {self.directory}/gate; echo x >> {self.directory}/count", "--name", "cold", "--set", f"workdir={disk}")
        self.until("the task", lambda: self.words_of(number) == {"cold/cold": "RUNNING"})
        after = self.command_of("true", "--needs", number, "--name", "after")
        task = f"TRAINYARD_TASK_DIR={disk.resolve()}/runs/cold/cold/cold"
        self.assertTrue(processes_with(task))
        # A process that waits for a frozen disk cannot be killed, so a process of its own thaws it when this one has gone away, also by SIGKILL.
        thaws = subprocess.Popen(["setsid", "--fork", "sh", "-c", 'cat; fsfreeze -u "$0"', disk], env={"PATH": os.environ["PATH"]},
                                 stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(thaws.communicate)
        subprocess.run(["fsfreeze", "-f", disk], check=True)
        try:
            self.open_gate()
            self.until("the end of the task", lambda: not processes_with(task))
            # The queue does not know its end: nothing of it can be written.
            self.assertTrue((self.queue / "begun" / number).exists())
        finally:
            subprocess.run(["fsfreeze", "-u", disk], check=True)
        self.wait(after)
        self.assertEqual(self.words_of(number), {"cold/cold": "FINISHED"})
        self.assertEqual(self.text("count"), "x\n")

    def start_queue_that_looks_each_second(self):
        """It does so while it waits for a run that it did not begin; otherwise it looks every five seconds."""
        os.mkfifo(self.directory / "never")
        self.job("name: alone\ngroups: [{name: g, cpus: 0, memory: 1MB, tasks: [{id: a, command: ': < never'}]}]")
        self.start("run", "job.yaml")
        self.until("the run", lambda: 1 in self.living())
        self.command_of("true", "--needs", "1")

    def test_an_end_that_cannot_be_written_is_written_once_it_can_be(self):
        self.start_queue_that_looks_each_second()
        number = self.holds()
        ended = self.queue / "ended"
        ended.rename(self.queue / "ended.away")
        ended.write_text("somebody else's file")
        (self.directory / "gate").write_text("")
        self.until("it is noted", lambda: "the queue will retry" in (self.queue / "queue.log").read_text())
        ended.unlink()
        (self.queue / "ended.away").rename(ended)
        self.wait(number)
        self.assertEqual((self.queue / "queue.log").read_text().count("the queue will retry"), 1)

    def test_the_queue_of_another_user_is_not_touched(self):
        if os.geteuid():
            self.skipTest("only root can be somebody else")
        self.holds()
        self.directory.chmod(0o755)
        before = sorted(path.relative_to(self.queue) for path in self.queue.rglob("*"))
        # Root's state, as another user sees it.
        done = self.trainyard("submit", "--", "true", env={"HOME": "/"}, prefix=SOMEBODY_ELSE)
        self.assertEqual(done.returncode, 2)
        self.assertNotEqual(done.stderr, "")
        os.chown(self.queue, 65534, 65534)
        done = self.trainyard("submit", "--", "true", expect=2)
        os.chown(self.queue, 0, 0)
        self.assertIn("is another user's", done.stderr)
        self.assertEqual(sorted(path.relative_to(self.queue) for path in self.queue.rglob("*")), before)

    def test_a_submission_whose_directory_is_gone_is_refused_and_what_needs_it_is_decided(self):
        there = self.directory / "there"
        there.mkdir()
        held = self.holds()
        self.command_of("exit 4", "--name", "deleted")
        self.wait("deleted", 4)
        moved = self.command_of("true", "--needs", held, "--name", "moved", prefix=("sh", "-c", 'cd there; exec "$@"', "sh"))
        deleted = self.command_of("true", "--needs", held, "--name", "deleted")
        skipped = self.command_of("true", "--needs", moved, "--name", "skipped")
        after = self.command_of("echo so", "--needs", deleted, "--if", "always()", "--name", "after")
        behind = self.command_of("true", "--needs", skipped, "--name", "behind")
        there.rename(self.directory / "elsewhere")
        shutil.rmtree(self.directory / "runs/deleted-2")
        # Neither its name nor its directory means the older run, or another.
        waits = f"run {deleted} is in your queue: waits for run {held}\n"
        for word in (deleted, "deleted", "deleted-2", "runs/deleted-2"):
            with self.subTest(word=word):
                self.assertEqual(self.trainyard("status", word, expect=0).stdout, waits)
                self.assertEqual(self.trainyard("logs", word, expect=2).stderr, f"trainyard: {waits}")
                self.assertEqual(self.trainyard("retry", word, expect=2).stderr, f"trainyard: {waits}")
                self.assertEqual(self.trainyard("kill", word, "--dry-run", expect=0).stdout,
                                 f"run {deleted} ('runs/deleted-2') would be removed from your queue\n")
        waiting = self.start("wait", "deleted")
        self.open_gate()
        gone = "its directory was deleted or moved: submit it again"
        self.assertEqual(self.end_of(waiting, expect=2), ("", f"trainyard: 'deleted' is run {deleted} ('runs/deleted-2'), the one created last of 2 runs\n"
                                                              f"trainyard: run {deleted}: {gone}\n"))
        self.assertEqual(self.wait(skipped, 1).stderr, f"trainyard: run {skipped}: needs run {moved}, which did not succeed\n")
        self.wait(behind, 1)
        self.wait(after)
        self.assertEqual(self.text("runs/after/after/after/stdout.log"), "so\n")
        self.assertEqual({number: (row["word"], row["reason"]) for number, row in self.living().items()},
                         {int(moved): ("REFUSED", gone), int(deleted): ("REFUSED", gone),
                          int(skipped): ("SKIPPED", f"needs run {moved}, which did not succeed"),
                          int(behind): ("SKIPPED", f"needs run {skipped}, which did not succeed")})
        # Only of one that has a directory is there something to delete.
        self.assertTrue(self.trainyard("status", expect=0, cwd="/").stdout.endswith(
            f"\nruns that did not start are listed for a day: 'trainyard clean {skipped}' removes run {skipped}\n"))
        cure = f"{gone}, and runs {skipped}, {behind}, which were skipped because of it"
        self.assertEqual(self.trainyard("status", moved, expect=0).stdout, f"run {moved} will not start: {cure}\n")
        self.assertEqual(self.trainyard("retry", moved, "--cascade", expect=2).stderr, f"trainyard: run {moved} will not start: {cure}\n")
        self.assertEqual(self.trainyard("status", deleted, expect=0).stdout, f"run {deleted} will not start: {gone}\n")
        for number, needs, again in ((skipped, moved, "both"), (behind, skipped, f"runs {moved}, {skipped}, {behind}")):
            self.assertEqual(self.trainyard("retry", number, expect=2).stderr,
                             f"trainyard: run {number} needs run {needs}, which did not succeed, and the directory of run {moved} is gone: submit {again} again\n")
        self.assertEqual(self.wait(held).stderr, "")

    def test_a_run_whose_task_moves_its_directory_ends_and_holds_up_no_other(self):
        moved = self.command_of('mv "$TRAINYARD_RUN_DIR" "$TRAINYARD_RUN_DIR.x"', "--name", "moved")
        self.until("its end", lambda: (self.queue / "ended" / moved).exists())
        self.assertIn(b"its directory was deleted or moved", (self.queue / "ended" / moved).read_bytes())
        self.wait(self.command_of("true"))

    def test_a_damaged_submission_and_a_pipe_end_alone(self):
        held = self.holds()
        (self.queue / "waiting/77").write_bytes(b"nonsense")
        os.mkfifo(self.queue / "waiting/9999")
        self.wait(self.command_of("true"))
        self.assertIn(b"it is not a submission", (self.queue / "ended/77").read_bytes())
        self.assertIn(b"is a pipe, not a regular file", (self.queue / "ended/9999").read_bytes())
        self.open_gate()
        self.wait(held)

    def test_a_queue_that_is_suspended_is_not_waited_for(self):
        self.wait(self.command_of("true"))
        suspend(self.server())
        done = self.trainyard("down", expect=1)
        suspended = f"your queue is suspended: 'kill -CONT {self.server()}' resumes it"
        self.assertIn(suspended, done.stderr)
        number = self.command_of("true")
        self.assertEqual(self.told, f"trainyard: the submission waits: {suspended}\n")
        self.assertEqual(self.living()[int(number)]["reason"], suspended)
        waiting = self.start("wait", number)
        self.assertEqual(self.next_line(waiting.stderr), f"trainyard: {suspended}\n")
        os.kill(self.server(), signal.SIGCONT)
        self.end_of(waiting, expect=0)
        self.until("it is down", lambda: self.trainyard("down", expect=0).stdout == "your queue is not up\n")

    def test_a_queue_whose_place_is_deleted_ends(self):
        self.start_queue_that_looks_each_second()
        server = self.server()
        subprocess.run(["rm", "-rf", self.directory / ".state"], check=True)
        self.until("its end", lambda: not alive(server))


if __name__ == "__main__":
    unittest.main()
