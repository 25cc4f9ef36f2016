"""Runs of one machine, of one user and of two: what one has reserved is not given by another."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

from test_gpus import FAKE, HERE, GpuTest
from yard import PATIENCE_S, TRAINYARD, YardTest, own_mounts

# Says when it begins, takes its memory when it may, and says when it ends.
LATE = """
import os, pathlib, sys, time
sys.path.insert(0, os.environ["FAKE_GPU"])
import fake_gpu
name, memory = sys.argv[1], int(sys.argv[2])
with open("story", "a") as story:
    print("begins", name, file=story, flush=True)
    while not pathlib.Path("DIRECTORY", "go." + name).exists():
        time.sleep(0.01)
    fake_gpu.take(memory)
    print("ends", name, file=story, flush=True)
"""

# Takes its memory at once, says so, and has it until it may end.
HOLDS = """
import os, pathlib, sys, time
sys.path.insert(0, os.environ["FAKE_GPU"])
import fake_gpu
name, memory = sys.argv[1], int(sys.argv[2])
fake_gpu.take(memory)
with open("story", "a") as story:
    print("begins", name, file=story, flush=True)
while not pathlib.Path("DIRECTORY", "go." + name).exists():
    time.sleep(0.01)
"""


def waits(test, run, words):
    """Waits until a task of the run waits for this reason."""
    def reason():
        done = test.trainyard("status", run, "--json")
        if done.returncode != 0:
            return None  # The run is being made.
        rows = [row for row in json.loads(done.stdout)["waiting"] if words in (row["reason"] or "")]
        return rows and rows[0]["reason"]
    return test.until(words, reason)


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
        reason = waits(self, "runs/second", "(first)")
        self.assertRegex(reason, r" reserved, \d+ by your run 1 \(first\) since \d\d:\d\d$")
        self.open_gate()
        self.end_of(first, expect=0)
        self.end_of(second, expect=0)
        self.assertEqual(self.text("story"), "1\n2\n3\n")
        self.assertEqual(os.listdir(self.directory / ".promises"), [], "who has ended promises nothing")

    def test_what_a_container_has_reserved_counts_until_its_last_process_is_gone(self):
        # Process numbers of the one mean nothing to the other.
        world = own_mounts("--pid", "--mount-proc", "--fork", "--kill-child")
        self.hold_all_cpus("first", "echo 1 >> story; exec sleep 1000")
        self.hold_all_cpus("second", "echo 2 >> story")
        first = self.start("run", "first.yaml", prefix=world)
        self.until_written("story")
        second = self.start("run", "second.yaml")
        self.assertRegex(waits(self, "runs/second", "(first)"), r" reserved, \d+ by your run.* \(first\) since \d\d:\d\d$")
        first.kill()
        first.wait()
        self.end_of(second, expect=0)
        self.assertEqual(self.text("story"), "1\n2\n")

    def test_a_killed_runs_tasks_are_gone_before_another_is_given_their_room(self):
        self.write("stays.py", "import os, pathlib, signal, time\n"
                               "signal.signal(signal.SIGTERM, lambda *_: pathlib.Path('told').touch())\n"
                               "open('pid', 'w').write(str(os.getpid()))\n"
                               "while not os.path.exists('go'): time.sleep(0.01)\n")
        self.hold_all_cpus("first", "exec /usr/bin/python3 stays.py")
        self.hold_all_cpus("second", "test ! -e /proc/$(cat pid) && echo gone > story")
        first = self.start("run", "first.yaml")
        self.until_written("pid")
        second = self.start("run", "second.yaml")
        waits(self, "runs/second", "your run 1 (first)")
        first.kill()
        first.wait()
        # Its keeper gives the task the time that it has.
        self.until_file("told")
        self.write("go", "")
        self.end_of(second, expect=0)
        self.assertEqual(self.text("story"), "gone\n")

    def test_a_board_that_cannot_be_made_is_said_and_the_run_goes_on_alone(self):
        self.job("name: job\ngroups: [{name: g, memory: 20MB, tasks: [{id: t, command: 'true'}]}]")
        (self.directory / "file").write_text("")
        done = self.trainyard("run", "job.yaml", expect=0, env={"TRAINYARD_PROMISES": str(self.directory / "file")})
        self.assertIn("this run and other runs here do not see each other's reservations: cannot write", done.stderr)


class Drained(GpuTest):
    def drain(self, *words, expect=0):
        return self.trainyard("drain", *words, expect=expect)

    def where(self):
        return {row["id"]: row["gpus"] for row in self.status()["tasks"] if row["word"] == "RUNNING"}

    def test_nothing_new_is_given_of_a_drained_gpu_until_it_is_given_again(self):
        self.assertEqual(self.drain("gpu:0").stdout, "GPU 0: no new tasks start on it\n")
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
        self.assertIn("GPU 'gpu:7' not found; this machine has gpu:0, gpu:1", self.drain("gpu:7", expect=2).stderr)
        self.assertIn("--until noon: must be a time of day or a duration, as in 18:00 or 2h",
                      self.drain("gpu:0", "--until", "noon", expect=2).stderr)
        for words in (["--end"], ["--now"], ["--until", "18:00"], ["--until", "18:00", "--now"]):
            self.assertIn(f"no GPU given: use 'trainyard drain gpu:0 {' '.join(words)}'; ", self.drain(*words, expect=2).stderr)
        for no_time in ("25:00", "18:00:00", "7:60", "12-24"):
            self.assertIn(f"--until {no_time}: must be a time", self.drain("gpu:0", "--until", no_time, expect=2).stderr)
        self.assertEqual(self.drain().stdout, "no GPU is drained\n")
        self.assertRegex(self.drain("gpu:0", "--until", "24:00").stdout, "until 00:00 tomorrow\n$")
        self.assertRegex(self.drain("gpu:0", "--until", "1w").stdout, r"until \d\d:\d\d in 7 days\n$")
        self.assertIn("no new tasks start on it until", self.trainyard("devices", expect=0).stdout)
        cards = json.loads(self.trainyard("devices", "--json", expect=0).stdout)["devices"]
        self.assertEqual([card["drained"] for card in cards], [True, False])
        self.assertIn("this has no effect while TRAINYARD_PROMISES is off",
                      self.trainyard("drain", "gpu:0", expect=2, env={"TRAINYARD_PROMISES": "off"}).stderr)
        self.assertRegex(self.drain("gpu:0", "--until", "18:00").stdout,
                         r"^GPU 0: no new tasks start on it until 18:00( tomorrow)?\n$")

    def test_two_runs_of_a_user_keep_to_their_limit_together(self):
        self.write("trainyard.yaml", "limits: {gpus: 1}\n")
        self.sweep("gpus: 1", 1)
        first = self.start("run", "job.yaml")
        self.until("a task", lambda: self.has("t0"))
        second = self.start("run", "job.yaml", "--new")
        self.assertEqual(waits(self, "runs/job-2", "limits.gpus"), "'limits.gpus' allows your runs 1 GPU in total")
        self.go()
        self.end_of(first, expect=0)
        self.end_of(second, expect=0)


@unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "only root becomes another user")
class TwoUsers(GpuTest):
    OTHER = 65533
    AS_OTHER = ("setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups")

    def setUp(self):
        super().setUp()
        for path in (TRAINYARD, *FAKE.iterdir(), HERE / "fake_gpu.py"):
            readable = subprocess.run([*self.AS_OTHER, "test", "-r", path], timeout=PATIENCE_S).returncode == 0
            if os.path.sep in str(path) and not readable:
                self.skipTest(f"another user may not read {path}")
        os.chmod(self.directory, 0o777)
        self.other = self.directory / "other"
        self.other.mkdir()
        os.chown(self.other, self.OTHER, self.OTHER)

    def job_in(self, directory, tasks, memory, other_users="share"):
        text = f"""
name: job
config: {{scheduler.settle-time: 0, remain-limit.cuda-memory: 0B, utilization-limit.cpu: 100%, other-users: {other_users}}}
groups:
  - name: train
    memory: 20MB
    cpus: 0
    gpu-memory: 6GB
    env: {{FAKE_GPU: "{HERE}"}}
    matrix: {{n: 1..{tasks}}}
    tasks: [{{id: "{{n}}", command: "/usr/bin/python3 {self.directory}/late.py {directory}-{{n}} {memory}"}}]
"""
        (self.directory / directory).mkdir(exist_ok=True)
        return self.write(f"{directory}/job.yaml", text)

    def prepare(self, script):
        """Writes the program that both users run; both may read and write it. Their jobs have been written."""
        for path in self.directory.rglob("*"):
            if path.is_file():
                os.chmod(path, 0o666)
        self.write("late.py", script.replace('"story"', repr(str(self.directory / "story")))
                   .replace("DIRECTORY", str(self.directory)))
        self.write("story", "", mode=0o666)
        os.chown(self.other / "job.yaml", self.OTHER, self.OTHER)
        lock = pathlib.Path(self.environment["TRAINYARD_FAKE_NVML"]).with_suffix(".lock")
        lock.write_text("")
        os.chmod(lock, 0o666)

    def start_other(self):
        theirs = {**self.environment, "XDG_RUNTIME_DIR": str(self.other), "XDG_STATE_HOME": str(self.other),
                  "HOME": str(self.other)}
        return self.start("run", "other/job.yaml", env=theirs, prefix=self.AS_OTHER)

    def test_a_card_is_shared_with_the_tasks_of_another_users_run(self):
        self.show([self.card("GPU-aaaa", 1, gb=20)])
        self.job_in("ours", 1, 6 * 10**9, other_users="avoid")
        self.job_in("other", 1, 6 * 10**9, other_users="avoid")
        self.prepare(HOLDS)
        other = self.start_other()
        self.until("their task", lambda: self.begun() or other.poll() is not None)
        ours = self.start("run", "ours/job.yaml")
        self.until("both tasks", lambda: self.begun()[1:] or ours.poll() is not None)
        self.assertEqual(self.begun(), ["other-1", "ours-1"])
        for name in self.begun():
            self.write(f"go.{name}", "")
        self.end_of(ours, expect=0)
        self.end_of(other, expect=0)

    def test_late_allocations_of_two_users_stay_within_the_card(self):
        self.show([self.card("GPU-aaaa", 1, gb=10)])
        self.job_in("ours", 3, 6 * 10**9)
        self.job_in("other", 1, 6 * 10**9)
        self.prepare(LATE)
        ours = self.start("run", "ours/job.yaml")
        self.until("the first task", lambda: self.text("story") or ours.poll() is not None)
        self.assertEqual(self.text("story"), "begins ours-1\n")
        other = self.start_other()
        waits(self, "other/runs/job", "has reserved")
        since = self.status("other/runs/job")["elapsed_ms"]
        self.until("a second of waiting", lambda: self.status("other/runs/job")["elapsed_ms"] > since + 1_000)
        self.write("go.ours-1", "")
        # Ours has waited for longer, and may go first again; the other may be the first to see the card free. After that
        # ours has had it twice, and waits.
        second = self.until("the next task", lambda: self.begun()[1:])[0]
        if second != "other-1":
            seen = self.looks("ours/runs/job")
            self.until("two looks at each other", lambda: self.looks("ours/runs/job") > seen + 1)
            self.write(f"go.{second}", "")
            self.until("the next task", lambda: self.begun()[2:])
        self.assertEqual(self.begun()[-1], "other-1")
        done = self.trainyard("devices", "ours/runs/job", "--json", expect=0)
        (run,) = json.loads(done.stdout)["devices"][0]["other_runs"]
        self.assertEqual((run["user"], run["own"], run["memory_promised_bytes"]), (self.OTHER, False, 6 * 10**9))
        for name in ("other-1", "ours-2", "ours-3"):
            self.write(f"go.{name}", "")
        self.end_of(ours, expect=0)
        self.end_of(other, expect=0)
        self.assertEqual(len(self.begun()), 4)
        self.assertEqual(self.text("story"), "".join(f"begins {name}\nends {name}\n" for name in self.begun()))

    def begun(self):
        """The tasks in the order of their beginnings."""
        return [line.split()[1] for line in self.text("story").split("\n")[:-1] if line.startswith("begins")]


if __name__ == "__main__":
    unittest.main()
