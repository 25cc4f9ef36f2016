"""`run -d`: a run that goes on when its terminal is gone."""
import unittest

from yard import PATIENCE_S, TRAINYARD, YardTest, os, processes_with, signal, subprocess

HOLDS = """
name: job
groups:
  - name: train
    tasks: [{id: a, command: ": < gate; echo done"}]
"""


class Detach(YardTest):
    def setUp(self):
        super().setUp()
        os.mkfifo(self.directory / "gate")
        self.yards = []

    def tearDown(self):
        for pid in self.yards:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        super().tearDown()

    def detached(self, *words, run="runs/job", **options):
        """Starts it; returns what was printed, when the run has begun."""
        done = self.trainyard("run", "-d", *words, **options)
        if done.returncode == 0:
            self.yards.append(self.yard_of(run))
        return done

    def yard_of(self, run="runs/job"):
        return int((self.directory / run / "lock").read_text())

    def log(self, run="runs/job"):
        return (self.directory / run / "trainyard.run.log").read_text()

    def until_over(self, run="runs/job"):
        self.until("the end of the run", lambda: self.status(run)["state"] == "ended")

    def test_prints_the_number_alone_and_goes_on_by_itself(self):
        self.job(HOLDS)
        done = self.detached("job.yaml", expect=0)
        self.assertEqual((done.stdout, done.stderr), ("1\n", ""))
        pid = self.yard_of()
        self.assertNotEqual(os.getsid(pid), os.getsid(0), "it is in a session of its own")
        for descriptor in ("0", "1", "2"):
            to = os.readlink(f"/proc/{pid}/fd/{descriptor}")
            self.assertEqual(to, "/dev/null" if descriptor == "0" else str(self.directory / "runs/job/trainyard.run.log"))
        self.until("the task", lambda: self.words("1") == {"train/a": "RUNNING"})
        self.open_gate()
        self.until_over()
        self.assertEqual(self.words(), {"train/a": "FINISHED"})
        self.assertEqual(self.trainyard("logs", "1/a", "--stdout", expect=0).stdout.splitlines()[-1], "done")
        self.until("its last word", lambda: self.log().endswith("reports: runs/job/reports/index.html\n"))
        self.assertIn("1/1 done", self.log())

    def test_keeps_no_output_open_of_whoever_started_it(self):
        self.job(HOLDS)
        process = subprocess.Popen([TRAINYARD, "run", "-d", "job.yaml"], cwd=self.directory, env=self.environment,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        # As ssh does, which waits until no process has its end open.
        output, _ = process.communicate(timeout=PATIENCE_S)
        self.yards.append(self.yard_of())
        self.assertEqual((process.returncode, output), (0, "1\n"))
        self.assertEqual(self.status()["state"], "running")

    def test_what_is_wrong_comes_to_the_terminal_and_nothing_is_left(self):
        self.job(HOLDS.replace("command", "comand"))
        done = self.detached("job.yaml", expect=2)
        self.assertEqual(done.stdout, "")
        self.assertIn("job.yaml:5:", done.stderr)
        self.assertIn("did you mean 'command'?", done.stderr)
        self.assertFalse((self.directory / "runs").exists())
        self.job(HOLDS)
        self.detached("job.yaml", expect=0)
        again = self.detached("job.yaml", expect=2)
        self.assertEqual(again.stdout, "")
        self.assertIn("is in use by process", again.stderr)
        self.assertIn("standard input", self.detached("job.yaml", "--until-stdin-closes", expect=2).stderr)

    def test_is_killed_and_resumed_as_any_other(self):
        self.job(HOLDS)
        self.detached("job.yaml", expect=0)
        self.until("the task", lambda: self.words() == {"train/a": "RUNNING"})
        self.trainyard("kill", "1/train/a", expect=0)
        self.until_over()
        self.assertEqual(self.words(), {"train/a": "KILLED"})
        self.assertEqual(self.detached("--resume", "1", expect=0).stdout, "1\n")
        os.kill(self.yard_of(), signal.SIGINT)
        self.until_over()
        self.until("its last word", lambda: "resume it with 'trainyard run --resume runs/job'" in self.log())

    def test_outlives_the_session_that_started_it(self):
        self.job(HOLDS)
        # A terminal that closes: all of its session get HUP.
        shell = subprocess.Popen(["sh", "-c", '"$@"; echo $?; exec sleep 1000', "sh", TRAINYARD, "run", "-d", "job.yaml"],
                                 cwd=self.directory, env=self.environment, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, text=True, start_new_session=True)
        self.started.append(shell)
        self.assertEqual((shell.stdout.readline(), shell.stdout.readline()), ("1\n", "0\n"))
        self.yards.append(self.yard_of())
        os.killpg(shell.pid, signal.SIGHUP)
        shell.wait(timeout=PATIENCE_S)
        self.open_gate()
        self.until_over()
        self.assertEqual(self.words(), {"train/a": "FINISHED"})

    def test_a_disk_that_is_full_is_said_at_once_or_in_the_log_of_a_run_that_has_begun(self):
        disk = self.directory / "disk"
        disk.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", disk], capture_output=True).returncode:
            self.skipTest("only root can mount a file system of its own")
        self.addCleanup(subprocess.run, ["umount", "-l", disk], check=False)
        self.job(HOLDS.replace("name: job\n", "name: job\nrun-dir: disk/run\n", 1)
                 .replace(": < gate; echo done", f": < {self.directory}/gate"))
        filler = disk / "filler"

        def fill():
            with open(filler, "wb", buffering=0) as file:
                try:
                    while file.write(b"x" * 4096):
                        pass
                except OSError:
                    pass
        fill()
        full = self.detached("job.yaml", run="disk/run")
        self.assertEqual((full.returncode, full.stdout), (75, ""))
        self.assertIn("o space left", full.stderr)
        filler.unlink()
        subprocess.run(["rm", "-rf", disk / "run"], check=True)
        self.assertEqual(self.detached("job.yaml", run="disk/run", expect=0).stdout, "1\n")
        self.until("the task", lambda: self.words("disk/run") == {"train/a": "RUNNING"})
        self.until("its process", lambda: self.task_of(disk))
        fill()
        self.open_gate()
        # Its end cannot be written down: the run waits for room, and says so where it can.
        self.until("a journal that cannot be written", lambda: self.is_blocked(disk))
        filler.unlink()
        self.until_over("disk/run")
        self.assertEqual(self.words("disk/run"), {"train/a": "FINISHED"})

    def task_of(self, disk):
        return processes_with(f"TRAINYARD_TASK_DIR={disk.resolve()}/run/train/a")

    def is_blocked(self, disk):
        """Whether the task has ended while its run still has it running."""
        return not self.task_of(disk) and self.words("disk/run") == {"train/a": "RUNNING"}


if __name__ == "__main__":
    unittest.main()
