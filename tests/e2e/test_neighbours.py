"""Runs of one machine, of one user and of two: what one has reserved is not given by another."""
import json
import os
import pathlib
import shutil
import signal
import time
import unittest

from test_gpus import GpuTest
from yard import YardTest, alive

# Says when it begins, takes its memory late, and says when it ends.
LATE = """
import os, pathlib, sys, time
sys.path.insert(0, os.environ["FAKE_GPU"])
import fake_gpu
name, memory = sys.argv[1], int(sys.argv[2])
with open("story", "a") as story:
    print("begins", name, file=story, flush=True)
    time.sleep(0.5)
    fake_gpu.take(memory)
    time.sleep(0.5)
    print("ends", name, file=story, flush=True)
"""


def waits(test, run, words):
    """Until a task of the run waits for this reason."""
    def reason():
        rows = [row for row in test.status(run, tasks=False)["waiting"] if words in (row["reason"] or "")]
        return rows and rows[0]["reason"]
    return test.until(words, lambda: (test.directory / run / "journal.db").exists() and reason())


class OneUser(YardTest):
    def hold_all_cpus(self, name, command):
        cpus = len(os.sched_getaffinity(0))
        return self.job(f"""
name: {name}
groups:
  - name: g
    memory: 20MB
    cpus: {cpus}
    tasks: [{{id: t, command: "{command}"}}]
""", name=f"{name}.yaml")

    def test_cpus_that_one_run_has_reserved_are_not_given_by_another(self):
        os.mkfifo(self.directory / "gate")
        self.hold_all_cpus("first", "echo 1 >> story; cat gate; echo 2 >> story")
        self.hold_all_cpus("second", "echo 3 >> story")
        first = self.start("run", "first.yaml")
        self.until_written("story")
        second = self.start("run", "second.yaml")
        reason = waits(self, "runs/second", "has reserved")
        self.assertRegex(reason, r"your run 1 \(first\) has reserved \d+ CPUs since \d\d:\d\d$")
        self.open_gate()
        self.end_of(first, expect=0)
        self.end_of(second, expect=0)
        self.assertEqual(self.text("story"), "1\n2\n3\n")
        self.assertEqual(os.listdir(self.directory / ".promises"), [], "who has ended promises nothing")

    def test_what_a_container_has_reserved_counts_until_its_last_process_is_gone(self):
        # Process numbers of the one mean nothing to the other.
        world = ["unshare", "--pid", "--mount-proc", "--fork", "--kill-child"] + (["-Ur"] if os.getuid() else [])
        self.hold_all_cpus("first", "echo 1 >> story; exec sleep 1000")
        self.hold_all_cpus("second", "echo 2 >> story")
        first = self.start("run", "first.yaml", prefix=world)
        self.until_written("story")
        second = self.start("run", "second.yaml")
        self.assertRegex(waits(self, "runs/second", "has reserved"), r"\(first\) has reserved \d+ CPUs since \d\d:\d\d$")
        first.kill()
        first.wait()
        self.end_of(second, expect=0)
        self.assertEqual(self.text("story"), "1\n2\n")

    def test_who_is_stopped_keeps_what_it_has_reserved(self):
        os.mkfifo(self.directory / "gate")
        self.hold_all_cpus("first", "echo 1 >> story; cat gate; echo 2 >> story")
        self.hold_all_cpus("second", "echo 3 >> story")
        first = self.start("run", "first.yaml")
        self.until_written("story")
        os.kill(first.pid, signal.SIGSTOP)
        second = self.start("run", "second.yaml")
        waits(self, "runs/second", "your run 1 (first) has reserved")
        self.open_gate()
        # Its task has ended; nobody but itself could say so.
        self.until("the end of the task", lambda: self.text("story") == "1\n2\n")
        waits(self, "runs/second", "your run 1 (first) has reserved")
        os.kill(first.pid, signal.SIGCONT)
        self.end_of(first, expect=0)
        self.end_of(second, expect=0)
        self.assertEqual(self.text("story"), "1\n2\n3\n")

    def test_a_killed_runs_tasks_are_gone_before_another_is_given_their_room(self):
        self.write("stays.py", "import os, signal, time\n"
                               "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
                               "open('pid', 'w').write(str(os.getpid()))\ntime.sleep(600)\n")
        self.hold_all_cpus("first", "exec /usr/bin/python3 stays.py")
        self.hold_all_cpus("second", "test ! -e /proc/$(cat pid) && echo gone > story")
        first = self.start("run", "first.yaml")
        self.until_written("pid")
        second = self.start("run", "second.yaml")
        waits(self, "runs/second", "your run 1 (first) has reserved")
        first.kill()
        first.wait()
        self.assertTrue(alive(int(self.text("pid"))), "its keeper gives it the time that it has")
        self.end_of(second, expect=0)
        self.assertEqual(self.text("story"), "gone\n")

    def test_files_that_are_broken_are_said_and_do_no_harm(self):
        board = self.directory / ".promises"
        board.mkdir()
        for name, text in (("0001-a", "nonsense"), ("0001-b", "x" * 200_000)):
            (board / name).write_text(text)
        os.symlink("/etc/passwd", board / "0001-c")
        os.mkfifo(board / "0001-d")
        # Somebody holds a lock on them all, as a run does that lives.
        holder = self.hold([board / "0001-a", board / "0001-b"])
        self.job("name: job\ngroups: [{name: g, memory: 20MB, tasks: [{id: t, command: 'true'}]}]")
        done = self.trainyard("run", "job.yaml", expect=0)
        self.assertIn("0001-a' cannot be read: it is not whole", done.stderr)
        self.assertIn("0001-b' cannot be read: it has 200000 bytes", done.stderr)
        self.assertNotIn("0001-c", done.stderr)
        holder.kill()

    def hold(self, paths):
        import fcntl
        import struct
        import subprocess
        import sys
        code = ("import fcntl, struct, sys, time\n"
                "files = [open(path, 'r+') for path in sys.argv[1:]]\n"
                "for file in files:\n"
                "    fcntl.fcntl(file, 37, struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, 0, 0, 0))\n"
                "print('held', flush=True)\n"
                "time.sleep(600)\n")
        del fcntl, struct
        process = subprocess.Popen([sys.executable, "-c", code, *map(str, paths)], stdout=subprocess.PIPE, text=True)
        self.started.append(process)
        process.stderr = None
        self.assertEqual(process.stdout.readline(), "held\n")
        return process

    def test_a_board_that_cannot_be_made_is_said_and_the_run_goes_on_alone(self):
        self.job("name: job\ngroups: [{name: g, memory: 20MB, tasks: [{id: t, command: 'true'}]}]")
        (self.directory / "file").write_text("")
        done = self.trainyard("run", "job.yaml", expect=0, env={"TRAINYARD_PROMISES": str(self.directory / "file")})
        self.assertIn("this run and others here do not see what each has reserved: cannot make", done.stderr)


class Drained(GpuTest):
    def drain(self, *words, expect=0):
        return self.trainyard("drain", *words, expect=expect)

    def where(self):
        return {row["id"]: row["gpus"] for row in self.status()["tasks"] if row["word"] == "RUNNING"}

    def test_nothing_new_is_given_of_a_drained_gpu_until_it_is_given_again(self):
        self.assertEqual(self.drain("gpu:0").stdout, "GPU 0: nothing new is given of it\n")
        self.sweep("gpus: 1", 2)
        yard = self.start("run", "job.yaml")
        self.until("a task on the other card", lambda: self.has("t0"))
        reason = waits(self, "runs/job", "is drained")
        self.assertIn("GPU 0 is drained ('trainyard drain')", reason)
        self.assertEqual(self.where(), {"t0": ["1"]})
        self.assertEqual(self.drain("gpu:0", "--end").stdout, "no GPU is drained\n")
        self.until("the other task", lambda: self.has("t1"))
        self.assertEqual(self.where(), {"t0": ["1"], "t1": ["0"]})
        self.go()
        self.end_of(yard, expect=0)

    def test_what_runs_on_a_gpu_that_is_wanted_back_now_is_tried_again_elsewhere(self):
        self.sweep("gpus: 1", 1)
        yard = self.start("run", "job.yaml")
        self.until("the task", lambda: self.has("t0"))
        (before,) = self.where()["t0"]
        self.drain(f"gpu:{before}", "--now", "--until", "2h")
        self.until("the task elsewhere", lambda: self.where().get("t0") not in (None, [before]))
        self.go()
        self.end_of(yard, expect=0)
        row = self.status()["tasks"][0]
        self.assertEqual((row["word"], row["attempt"]), ("FINISHED", 2))

    def test_what_is_no_gpu_and_no_time_is_said(self):
        self.assertIn("there is no GPU 'gpu:7' here; there are gpu:0, gpu:1", self.drain("gpu:7", expect=2).stderr)
        self.assertIn("--until noon: wants a time of the day or a length of time, as in 18:00 or 2h",
                      self.drain("gpu:0", "--until", "noon", expect=2).stderr)
        for words in (["--end"], ["--now"], ["--until", "18:00"]):
            self.assertIn("which GPU? 'trainyard drain gpu:0'", self.drain(*words, expect=2).stderr)
        for no_time in ("25:00", "18:00:00", "7:60"):
            self.assertIn(f"--until {no_time}: wants a time", self.drain("gpu:0", "--until", no_time, expect=2).stderr)
        self.assertEqual(self.drain().stdout, "no GPU is drained\n")
        self.assertRegex(self.drain("gpu:0", "--until", "24:00").stdout, "until 00:00 tomorrow\n$")
        self.assertRegex(self.drain("gpu:0", "--until", "1w").stdout, r"until \d\d:\d\d in 7 days\n$")
        self.assertIn("nothing new is given of it until", self.trainyard("devices", expect=0).stdout)
        cards = json.loads(self.trainyard("devices", "--json", expect=0).stdout)["devices"]
        self.assertEqual([card["drained"] for card in cards], [True, False])
        self.assertIn("this would be told to nobody: TRAINYARD_PROMISES is off",
                      self.trainyard("drain", "gpu:0", expect=2, env={"TRAINYARD_PROMISES": "off"}).stderr)
        self.assertRegex(self.drain("gpu:0", "--until", "18:00").stdout,
                         r"^GPU 0: nothing new is given of it until 18:00( tomorrow)?\n$")

    def test_two_runs_of_a_user_keep_to_their_limit_together(self):
        self.write("trainyard.yaml", "limits: {gpus: 1}\n")
        self.sweep("gpus: 1", 1)
        first = self.start("run", "job.yaml")
        self.until("a task", lambda: self.has("t0"))
        second = self.start("run", "job.yaml", "--new")
        self.assertEqual(waits(self, "runs/job-2", "limits.gpus"), "'limits.gpus' lets your runs have 1 GPU together")
        self.go()
        self.end_of(first, expect=0)
        self.end_of(second, expect=0)


@unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "only root becomes another user")
class TwoUsers(GpuTest):
    OTHER = 65533

    def setUp(self):
        super().setUp()
        os.chmod(self.directory, 0o777)
        self.other = self.directory / "other"
        self.other.mkdir()
        os.chown(self.other, self.OTHER, self.OTHER)
        self.fake = str(pathlib.Path(__file__).resolve().parent.parent / "fake_nvml")

    def job_in(self, directory, tasks, memory):
        text = f"""
name: job
config: {{scheduler.settle-time: 0, remain-limit.cuda-memory: 0B, utilization-limit.cpu: 100%, other-users: share}}
groups:
  - name: train
    memory: 20MB
    cpus: 0
    gpu-memory: 6GB
    env: {{FAKE_GPU: "{self.fake}"}}
    matrix: {{n: 1..{tasks}}}
    tasks: [{{id: "{{n}}", command: "/usr/bin/python3 {self.directory}/late.py {directory}-{{n}} {memory}"}}]
"""
        (self.directory / directory).mkdir(exist_ok=True)
        return self.write(f"{directory}/job.yaml", text)

    def test_late_allocations_of_two_users_stay_within_the_card(self):
        self.show([self.card("GPU-aaaa", 1, gb=10)])
        for path in self.directory.rglob("*"):
            if path.is_file():
                os.chmod(path, 0o666)
        self.write("late.py", LATE.replace('"story"', repr(str(self.directory / "story"))))
        self.write("story", "", mode=0o666)
        self.job_in("ours", 7, 6 * 10**9)
        self.job_in("other", 2, 6 * 10**9)
        os.chown(self.other / "job.yaml", self.OTHER, self.OTHER)
        lock = pathlib.Path(self.environment["TRAINYARD_FAKE_NVML"]).with_suffix(".lock")
        lock.write_text("")
        os.chmod(lock, 0o666)
        ours = self.start("run", "ours/job.yaml")
        self.until_written("story")
        theirs = {**self.environment, "XDG_RUNTIME_DIR": str(self.other), "XDG_STATE_HOME": str(self.other),
                  "HOME": str(self.other)}
        other = self.start("run", "other/job.yaml", env=theirs,
                           prefix=["setpriv", f"--reuid={self.OTHER}", f"--regid={self.OTHER}", "--clear-groups"])
        seen = set()

        def both_over():
            done = self.trainyard("devices", "ours/runs/job", "--json", expect=0)
            for run in json.loads(done.stdout)["devices"][0]["other_runs"]:
                seen.add((run["user"], run["own"], run["memory_promised_bytes"]))
            return ours.poll() is not None and other.poll() is not None
        self.until("the end of both runs", both_over)
        self.end_of(ours, expect=0)
        self.end_of(other, expect=0)
        lines = self.text("story").split("\n")[:-1]
        self.assertEqual(len(lines), 18)
        for begins, ends in zip(lines[::2], lines[1::2]):
            self.assertEqual((begins, ends), ("begins " + begins.split()[1], "ends " + begins.split()[1]))
        owners = [line.split()[1].split("-")[0] for line in lines[::2]]
        # Who has had the card waits for who has not, once that one has waited for a moment.
        self.assertNotEqual(owners[2:], ["ours"] * 5 + ["other"] * 2)
        self.assertEqual(owners[-1], "ours")
        self.assertIn((self.OTHER, False, 6 * 10**9), seen)


if __name__ == "__main__":
    unittest.main()
