"""Tasks on GPUs. The driver is made up (tests/fake_nvml): the program opens it as it would open NVIDIA's."""
import os
import pathlib
import pwd
import sqlite3
import subprocess
from contextlib import closing

from yard import CLIENT, YardTest, json

FAKE = pathlib.Path(os.environ["TRAINYARD_FAKE_NVML_DIR"])
HERE = pathlib.Path(__file__).resolve().parent.parent / "fake_nvml"

GB = 1_000_000_000
NOBODY = 65534
# Reports the GPU that it has, takes the given memory of it, and goes on when it may.
TASK = """
import json, os, pathlib, sys, time
sys.path.insert(0, {here!r})
import fake_gpu
taken, wait_for = float(sys.argv[1]), sys.argv[2:]
print(os.environ.get("CUDA_VISIBLE_DEVICES"), flush=True)
if taken:
    fake_gpu.take(int(taken * 1e9))
pathlib.Path(os.environ["TRAINYARD_TASK_DIR"], "has").touch()
while wait_for and not pathlib.Path(wait_for[0]).exists():
    time.sleep(0.01)
"""


class GpuTest(YardTest):
    def setUp(self):
        super().setUp()
        self.shown = self.directory / "gpus.json"
        self.environment.update(LD_LIBRARY_PATH=str(FAKE), TRAINYARD_FAKE_NVML=str(self.shown))
        os.environ["TRAINYARD_FAKE_NVML"] = str(self.shown)
        self.addCleanup(os.environ.pop, "TRAINYARD_FAKE_NVML")
        self.show([self.card("GPU-aaaa", 1), self.card("GPU-bbbb", 2)])
        self.write("task.py", TASK.format(here=str(HERE)))

    def command(self, *words):
        """Samples the GPUs more often than each second."""
        return super().command(*words) + (["--set", "scheduler.interval=100ms"] if words[0] == "run" else [])

    @staticmethod
    def card(uuid, bus, gb=8, **more):
        return {"uuid": uuid, "name": "Fake " + uuid[-1].upper(), "pci": f"00000000:{bus:02}:00.0",
                "memory": gb * GB, **more}

    def show(self, devices, **more):
        self.shown.write_text(json.dumps({"devices": devices, **more}))

    def sweep(self, wants, tasks, command="/usr/bin/python3 task.py {gb} go"):
        """A job of one group; `tasks` is how many, {gb} what each takes."""
        return self.job(f"""
name: job
config: {{scheduler.settle-time: 0}}
groups:
  - name: g
    memory: 20MB
    cpus: 0
    matrix: {{n: 0..{tasks - 1}}}
    {wants}
    tasks: [{{id: "t{{n}}", command: "{command}"}}]
""".replace("{gb}", "0"))

    def has(self, task):
        return (self.directory / "runs/job/g" / task / "has").exists()

    def other_user(self):
        """A process of another user."""
        if os.geteuid() != 0:
            self.skipTest("only root may start a process of another user")
        other = subprocess.Popen(["sleep", "1000"], user=NOBODY)
        self.addCleanup(other.wait)
        self.addCleanup(other.kill)
        return other

    def go(self):
        self.write("go", "")

    def rows(self):
        """The tasks by id; empty as long as there is no run, or its journal is being made."""
        done = self.trainyard("status", "runs/job", "--json", "--all")
        return {} if done.returncode else {row["id"]: row for row in json.loads(done.stdout)["tasks"]}

    def looks(self, run="runs/job"):
        """The number of samples of the machine that a run has taken."""
        with closing(sqlite3.connect(f"file:{self.directory}/{run}/journal.db?mode=ro", uri=True)) as journal:
            return journal.execute("SELECT count(*) FROM samples").fetchone()[0]

    def reasons(self):
        return [waiting["reason"] for waiting in self.status()["waiting"]]


class Devices(GpuTest):
    def test_are_listed_with_what_is_on_them(self):
        self.show([self.card("GPU-aaaa", 1, utilization=40, processes=[{"pid": os.getpid(), "memory": 3 * GB}]),
                   self.card("GPU-bbbb", 2, lost=False)])
        text = self.trainyard("devices", expect=0).stdout
        owner = pwd.getpwuid(os.geteuid()).pw_name
        command = " ".join(pathlib.Path("/proc/self/cmdline").read_text().split("\0")[:-1])[:200]
        self.assertEqual(text, "GPU 0: Fake A, 00000000:01:00.0, GPU-aaaa\n"
                               "  3 GB of 8 GB used, 5 GB free; busy 40 % of the time\n"
                               f"  processes:\n    {os.getpid()}: 3 GB, user {owner}: {command}\n"
                               "GPU 1: Fake B, 00000000:02:00.0, GPU-bbbb\n"
                               "  0 B of 8 GB used, 8 GB free; busy 0 % of the time\n")
        first, second = json.loads(self.trainyard("devices", "--json", expect=0).stdout)["devices"]
        self.assertEqual((first["uuid"], first["memory_free_bytes"], first["utilization"]), ("GPU-aaaa", 5 * GB, 0.4))
        self.assertEqual(first["processes"], [{
            "pid": os.getpid(), "memory_bytes": 3 * GB, "user": owner, "command": command, "other_user": None,
            "task": None, "run_dir": None}])
        self.assertEqual((second["index"], second["processes"], second["promises"]), (1, [], []))

    def test_that_are_missing_are_explained(self):
        self.show([{"crash": True}])
        self.assertEqual(self.trainyard("devices", expect=0).stdout, "no GPU: the driver crashes programs that query it\n")
        self.sweep("gpus: 1", 1)
        refused = self.trainyard("run", "job.yaml", expect=2)
        self.assertIn("needs a GPU, this machine has none (the driver crashes programs that query it)\n", refused.stderr)
        cure = "trainyard: to run on the CPUs, remove 'gpus', 'gpu-memory' and 'device' from the job file\n"
        self.assertTrue(refused.stderr.endswith(cure), refused.stderr)
        submitted = self.trainyard("submit", "job.yaml", expect=2)
        self.assertTrue(submitted.stderr.endswith(cure), submitted.stderr)
        for command in ("run", "submit"):
            typed = self.trainyard(command, "--device", "cuda", "--", "true", expect=2)
            self.assertTrue(typed.stderr.endswith(")\ntrainyard: to run on the CPUs, leave out --device\n"), typed.stderr)
        shown = self.trainyard("run", "job.yaml", "--dry-run", expect=0)
        self.assertIn("can never run here: needs a GPU, this machine has none", shown.stdout)
        self.assertTrue(shown.stderr.endswith(cure), shown.stderr)
        nowhere = self.trainyard("devices", expect=0, env={"LD_LIBRARY_PATH": "/nowhere"})
        self.assertEqual(nowhere.stdout, "no GPU: no NVIDIA driver is installed\n")

    def test_that_a_submission_could_never_have_are_named_at_once(self):
        def refused(*words):
            done = self.trainyard("submit", "--set", "utilization-limit.cpu=100%", *words, "--", "true", expect=2)
            self.assertEqual(done.stdout, "")
            return done.stderr
        more = refused("--gpus", "3")
        self.assertIn("can never run here: needs 3 GPUs", more)
        self.assertNotIn("to run on the CPUs", more)
        self.assertIn("can never run here: needs ", refused("--gpu-memory", "9GB"))
        self.assertIn("--where: task 'true' can never run here: where: no machine has a GPU called 'H100'; the only machine is ", refused("--gpus", "1", "--where", "gpu=H100"))
        for command in ("run", "submit"):
            both = self.trainyard(command, "--cpus", "9999", "--gpus", "3", "--", "true", expect=2).stderr
            self.assertIn("--cpus: task 'true' can never run here: needs 9999 CPUs", both)
            self.assertIn("--gpus: task 'true' can never run here: needs 3 GPUs", both)
        self.assertFalse((self.directory / "runs").exists())
        self.trainyard("submit", "--cpus", "0", "--memory", "20MB", "--set", "utilization-limit.cpu=100%", "--gpus", "2",
                       "--", "true", expect=0)
        self.trainyard("wait", expect=0)
        self.trainyard("down", "--now", expect=0)

    def test_may_be_slices_and_may_be_left_out(self):
        slices = [{"uuid": f"MIG-{n}", "name": "Fake MIG 1g.10gb", "memory": 10 * GB} for n in range(2)]
        self.show([self.card("GPU-aaaa", 1, 80, mig=slices), self.card("GPU-bbbb", 2)])
        listed = json.loads(self.trainyard("devices", "--json", expect=0).stdout)["devices"]
        self.assertEqual([(each["label"], each["uuid"], each["mig_slice"]) for each in listed],
                         [("0:0", "MIG-0", True), ("0:1", "MIG-1", True), ("1", "GPU-bbbb", False)])
        some = self.trainyard("devices", expect=0, env={"CUDA_VISIBLE_DEVICES": "GPU-b"}).stdout
        self.assertIn("CUDA_VISIBLE_DEVICES leaves 1 of 3 GPUs", some)
        self.sweep("gpus: 2", 1)
        self.assertIn("GPUs of that size that can be combined (a MIG instance cannot)", self.trainyard("run", "job.yaml", expect=2).stderr)

    def test_show_what_a_run_has_promised(self):
        self.sweep("gpu-memory: 3GB", 2, "/usr/bin/python3 task.py 2 go")
        yard = self.start("run", "job.yaml", "--set", "gpu-priority.strategy=BEST-FIT")
        self.until("both tasks", lambda: self.has("t0") and self.has("t1"))
        first = self.until("both seen on one card", lambda: next((each for each in json.loads(self.trainyard(
            "devices", "--json", expect=0).stdout)["devices"] if len(each["promises"]) == 2 and all(
                promise["memory_now_bytes"] == 2 * GB for promise in each["promises"])), None))
        self.assertEqual({(each["group"], each["id"], each["memory_promised_bytes"]) for each in first["promises"]},
                         {("g", "t0", 3 * GB), ("g", "t1", 3 * GB)})
        text = self.trainyard("devices", expect=0).stdout
        self.assertIn("g/t0: reserved 3 GB, uses 2 GB", text)
        self.assertIn(": /usr/bin/python3 task.py 2 go; task g/t1 of runs/job\n", text)
        self.go()
        self.end_of(yard, expect=0)


class Retry(GpuTest):
    def test_with_more_than_any_card_has_is_refused_with_the_number_of_tasks(self):
        self.show([self.card("GPU-aaaa", 1, gb=24), self.card("GPU-bbbb", 2, gb=24)])
        self.sweep("gpu-memory: 3GB", 3, "exit 3")
        self.trainyard("run", "job.yaml", expect=1)
        why = "g/t0 and 1 more task can never run here: each needs 28 GB of memory on a GPU, the largest here has "
        for words in ([], ["--dry-run"]):
            refused = self.trainyard("retry", "1", "t0", "t2", "--gpu-memory", "28GB", *words, expect=2).stderr
            self.assertIn(why, refused)
            self.assertEqual(refused.count("can never run here"), 1, refused)
        self.assertEqual({row["attempt"] for row in self.rows().values()}, {1})
        self.trainyard("retry", "1", "t0", "--gpu-memory", "20GB", expect=1)
        self.assertEqual((self.rows()["t0"]["attempt"], self.rows()["t0"]["gpu_memory_requested_bytes"]), (2, 20 * GB))


class Admission(GpuTest):
    def test_tasks_share_a_card_by_the_memory_that_they_ask_for(self):
        self.sweep("gpu-memory: 3GB", 5, "/usr/bin/python3 task.py 3 go")
        yard = self.start("run", "job.yaml")
        self.until("four tasks", lambda: all(self.has(f"t{n}") for n in range(4)))
        self.assertEqual([row["gpus"] for row in self.rows().values()], [["0"], ["1"], ["0"], ["1"], []])
        self.assertEqual([self.text(f"runs/job/g/t{n}/stdout.log") for n in range(4)],
                         ["0\n", "1\n", "0\n", "1\n"])
        self.until("the reason", lambda: self.reasons() == ["needs 3 GB on its GPU, GPU 0 has the most free memory: 1.2 GB"])
        self.until("what they have", lambda: self.rows()["t0"]["gpu_memory_now_bytes"] == 3 * GB)
        self.go()
        self.end_of(yard, expect=0)
        rows = self.rows()
        self.assertEqual({(row["word"], row["attempt"], row["gpu_memory_requested_bytes"]) for row in rows.values()},
                         {("FINISHED", 1, 3 * GB)})
        self.assertEqual(rows["t0"]["gpu_memory_peak_bytes"], 3 * GB)
        table = self.trainyard("status", "runs/job", "--all", expect=0).stdout
        self.assertRegex(table, "(TASK|n) +STATUS.*PEAK MEMORY +GPU +PEAK GPU")

    def test_two_runs_get_a_card_each_while_one_is_idle(self):
        self.sweep("gpu-memory: 3GB", 1)
        first = self.start("run", "job.yaml")
        self.until("the first task", lambda: self.has("t0"))
        second = self.start("run", "job.yaml", "--new")
        self.until_file("runs/job-2/g/t0/has")
        self.assertEqual([self.text(f"runs/{run}/g/t0/stdout.log") for run in ("job", "job-2")], ["0\n", "1\n"])
        self.go()
        self.end_of(first, expect=0)
        self.end_of(second, expect=0)

    def test_gpus_that_nobody_asks_for_are_told_of_loudly(self):
        self.job("name: job\ngroups: [{name: g, tasks: [{command: 'true'}]}]\n")
        done = self.trainyard("run", "job.yaml", expect=0)
        self.assertIn("NO TASK REQUESTS A GPU, and this machine has 2: all tasks run on the CPUs. "
                      "Set 'gpus: 1' or 'gpu-memory: 4GB' in the job file to use them\n", done.stderr)
        done = self.trainyard("run", "--", "true", expect=0)
        self.assertIn("Write '--gpus 1' or '--gpu-memory 4GB' before '--' to use them\n", done.stderr)

    def test_a_card_on_which_another_user_computes_is_left_to_them(self):
        other = self.other_user()
        ours = {"pid": os.getpid(), "memory": GB}
        draws = {"pid": other.pid, "memory": GB, "draws": True}
        tiny = {"pid": other.pid, "memory": GB // 20}
        self.show([self.card("GPU-aaaa", 1, processes=[{"pid": other.pid, "memory": 2 * GB}]),
                   self.card("GPU-bbbb", 2, processes=[ours]), self.card("GPU-cccc", 3, processes=[draws]),
                   self.card("GPU-dddd", 4, processes=[tiny])])
        self.assertIn(f"{other.pid}: 2 GB, user nobody: sleep 1000\n", self.trainyard("devices", expect=0).stdout)
        self.sweep("gpus: 1", 4, "/usr/bin/python3 task.py 1 go")
        yard = self.start("run", "job.yaml")
        self.until("three tasks", lambda: all(self.has(f"t{n}") for n in range(3)))
        # The emptiest first; of two that are alike the one where less is left beside it.
        self.assertEqual([row["gpus"] for row in self.rows().values()], [["3"], ["1"], ["2"], []])
        self.assertEqual(self.reasons(), [
            f"needs a whole GPU, 1 of 4 GPUs without tasks, user {NOBODY} is using GPU 0 (other processes use 2 GB of it)"])
        self.assertIn("to change this, stop the run and its running tasks (Ctrl-C or kill -INT) and type: trainyard run --resume runs/job --set other-users=share\n",
                      self.trainyard("status", expect=0).stdout)
        other.kill()
        other.wait()
        self.until("the fourth", lambda: self.has("t3"))
        self.go()
        self.end_of(yard, expect=0)

    def test_what_is_set_for_shared_cards_is_shown_beforehand(self):
        self.sweep("gpu-memory: 2GB", 1)
        text = self.trainyard("run", "job.yaml", "--dry-run", expect=0).stdout
        self.assertIn("GPU 0: Fake A, 8 GB of memory, 7.2 GB available to tasks", text)
        self.assertIn("requests     0 CPUs, 20 MB of memory, 2 GB on 1 GPU", text)
        self.assertIn("TF_FORCE_GPU_ALLOW_GROWTH=true", text)
        self.assertIn("XLA_PYTHON_CLIENT_PREALLOCATE=false", text)
        kept = self.trainyard("run", "job.yaml", "--dry-run", expect=0, env={"TF_FORCE_GPU_ALLOW_GROWTH": "false"})
        self.assertNotIn("TF_FORCE_GPU_ALLOW_GROWTH", kept.stdout)
        self.sweep("gpus: 1", 1)
        self.assertNotIn("XLA_", self.trainyard("run", "job.yaml", "--dry-run", expect=0).stdout)

    def test_are_dealt_to_the_ranks_of_a_task(self):
        self.show([self.card(f"GPU-{letter * 4}", number) for number, letter in enumerate("abcd")])
        self.job("""
name: job
groups:
  - name: g
    memory: 20MB
    cpus: 0
    tasks:
      - id: each
        ranks: 3
        gpu-memory: 3GB
        command: echo $TRAINYARD_DEVICE of $CUDA_VISIBLE_DEVICES >$TRAINYARD_TASK_DIR/rank.$RANK
      - id: more
        ranks: 2
        gpus: 4
        command: echo $TRAINYARD_DEVICE >$TRAINYARD_TASK_DIR/rank.$RANK
      - id: fewer
        ranks: 2
        gpus: 1
        command: echo $TRAINYARD_DEVICE >$TRAINYARD_TASK_DIR/rank.$RANK
""")
        shown = json.loads(self.trainyard("run", "job.yaml", "--dry-run", "--json", expect=0).stdout)
        self.assertEqual([(task["ranks"], task["gpus"]) for task in shown["tasks"]], [(3, 3), (2, 4), (2, 1)])
        text = self.trainyard("run", "job.yaml", "--dry-run", expect=0).stdout
        self.assertEqual([line.split(None, 1)[1] for line in text.splitlines() if line.strip().startswith("ranks")],
                         ["3 processes with 1 GPU each", "2 processes with 2 GPUs each",
                          "2 processes that share the GPUs"])
        self.trainyard("run", "job.yaml", "--set", "gpu-priority.strategy=PCI", expect=0)
        self.assertEqual([self.text(f"runs/job/g/each/rank.{rank}") for rank in range(3)],
                         [f"cuda:{rank} of 0,1,2\n" for rank in range(3)])
        self.assertEqual([self.text(f"runs/job/g/more/rank.{rank}") for rank in range(2)],
                         ["cuda:0,cuda:1\n", "cuda:2,cuda:3\n"])
        self.assertEqual([self.text(f"runs/job/g/fewer/rank.{rank}") for rank in range(2)], ["cuda:0\n"] * 2)
        self.assertEqual(self.rows()["each"]["gpus"], ["0", "1", "2"])

    def test_of_two_phase_ranks_are_dealt_when_they_train(self):
        self.write("phases.py", f"""
import os, pathlib, sys
sys.path[:0] = [{str(HERE)!r}, {str(CLIENT)!r}]
import fake_gpu, trainyard
for attempt in trainyard.attempts():
    with attempt as device:
        taken = fake_gpu.take(10**9, int(device.partition(":")[2]))
        said = [device, os.environ.get("TRAINYARD_DEVICE", "")]
        pathlib.Path(os.environ["TRAINYARD_TASK_DIR"], "rank." + os.environ["RANK"]).write_text(repr(said))
""")
        self.job("""
name: job
groups:
  - name: g
    memory: 20MB
    cpus: 0
    two-phase: true
    tasks: [{id: t, ranks: 2, gpu-memory: 2GB, command: /usr/bin/python3 phases.py}]
""")
        self.show([self.card("GPU-aaaa", 1, processes=[{"pid": os.getpid(), "memory": 7 * GB}]),
                   self.card("GPU-bbbb", 2), self.card("GPU-cccc", 3)])
        self.trainyard("run", "job.yaml", "--set", "gpu-priority.strategy=PCI", expect=0)
        self.assertEqual([self.text(f"runs/job/g/t/rank.{rank}") for rank in range(2)],
                         ["['cuda:1', '']", "['cuda:2', '']"])

    def test_a_two_phase_task_sees_all_cards_and_gets_the_place_of_its_own(self):
        self.write("phases.py", f"""
import os, sys
sys.path[:0] = [{str(HERE)!r}, {str(CLIENT)!r}]
import fake_gpu, trainyard
for attempt in trainyard.attempts():
    with attempt as device:
        fake_gpu.take(2 * 10**9, int(device.partition(":")[2]))
        trainyard.result(device=device, sees=fake_gpu.visible())
""")
        self.job("""
name: job
groups:
  - name: g
    memory: 20MB
    cpus: 0
    two-phase: true
    tasks:
      - {id: first, gpu-memory: 3GB, command: /usr/bin/python3 phases.py}
      - {id: second, device: cuda:0, gpu-memory: 3GB, command: /usr/bin/python3 phases.py}
""")
        self.show([self.card("GPU-aaaa", 1), self.card("GPU-bbbb", 2), self.card("GPU-cccc", 3)])
        self.trainyard("run", "job.yaml", "--set", "gpu-priority.strategy=PCI", expect=0,
                       env={"CUDA_VISIBLE_DEVICES": "2,0"})
        rows = self.rows()
        self.assertEqual([(rows[name]["result"], rows[name]["gpus"]) for name in ("first", "second")],
                         [({"device": "cuda:1", "sees": ["GPU-cccc", "GPU-aaaa"]}, ["0"]),
                          ({"device": "cuda:0", "sees": ["GPU-cccc", "GPU-aaaa"]}, ["2"])])


class Plan(GpuTest):
    def test_counts_what_others_have_of_the_cards_of_this_machine(self):
        self.show([self.card("GPU-aaaa", 1, processes=[{"pid": os.getpid(), "memory": 5 * GB}])])
        self.sweep("gpu-memory: 3GB, duration: 1min".replace(", ", "\n    "), 2)
        text = self.trainyard("plan", "job.yaml", expect=2).stderr
        self.assertIn("job.yaml: the run would never end: tasks wait for what they never get: needs 3 GB on its GPU, "
                      "GPU 0 has the most free memory: 2.2 GB, other processes use 5 GB of it. The processes on the GPUs now are assumed to stay: "
                      "'trainyard plan job.yaml --gpus 1x7629MiB' simulates the job on free GPUs\n", text)
        self.trainyard("plan", "job.yaml", "--gpus", "1x7629MiB", expect=0)
        self.show([self.card("GPU-aaaa", 1, processes=[{"pid": os.getpid(), "memory": 3 * GB}])])
        text = self.trainyard("plan", "job.yaml", expect=0).stdout
        self.assertIn("GPU 0: processes on it now use 3 GB and are assumed to stay", text)
        self.assertIn("this machine: 2 tasks in 2m\n", text)
        self.show([self.card("GPU-aaaa", 1)])
        self.assertIn("this machine: 2 tasks in 1m, or 2m if tasks that share a GPU slow each other down\n", self.trainyard("plan", "job.yaml", expect=0).stdout)
