"""A task that shares a card is kept to its part of it, in the words that its framework understands."""
import json
import shutil
import sqlite3
import subprocess
import sys

from test_gpus import HERE, GpuTest

# A torch as far as it matters: a task that asks its allocator for more than the fraction runs out of memory.
TORCH = """
import os, sys
sys.path.insert(0, "HERE")
import fake_gpu

__version__ = "RELEASE"
CONTEXT = 300_000_000  # Not counted by the cap.
TOTAL = 8_000_000_000
fraction = 1.0
for option in os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "").split(","):
    name, _, value = option.partition(":")
    if name == "per_process_memory_fraction":
        fraction = float(value)
allocated = 0


def take(memory):
    global allocated
    if allocated + memory > fraction * TOTAL:
        raise RuntimeError("CUDA out of memory. Tried to allocate %.2f GiB. GPU 0 has a total capacity of 7.45 GiB "
                           "of which 1.00 GiB is free. %.2f GiB allowed" % (memory / 2**30, fraction * TOTAL / 2**30))
    fake_gpu.take(memory + (0 if allocated else CONTEXT))
    allocated += memory
"""
# Takes 100 MB this number of times, one after the other.
TASK = """
import os, pathlib, time, sys
import torch
for piece in range(int(sys.argv[1])):
    torch.take(100_000_000)
pathlib.Path(os.environ["TRAINYARD_TASK_DIR"], "has").touch()
print(torch.fraction)
while not pathlib.Path("go").exists():
    time.sleep(0.01)
"""


class Caps(GpuTest):
    def setUp(self):
        super().setUp()
        self.show([self.card("GPU-aaaa", 1)])
        self.write("task.py", TASK)

    def install(self, release):
        """A virtual environment with the made-up torch."""
        packages = self.directory / "venv/lib" / f"python3.{sys.version_info[1]}" / "site-packages/torch"
        packages.mkdir(parents=True)
        (self.directory / "venv/bin").mkdir()
        (self.directory / "venv/bin/python").symlink_to("/usr/bin/python3")
        self.write("venv/pyvenv.cfg", "home = /usr/bin\n")
        (packages / "__init__.py").write_text(TORCH.replace("HERE", str(HERE)).replace("RELEASE", release))
        (packages / "version.py").write_text(f"__version__ = '{release}'\n")

    def tasks(self, keys="", **takes):
        lines = "\n".join(f'      - {{id: {name}, command: "venv/bin/python task.py {pieces}"}}'
                          for name, pieces in takes.items())
        return self.job(f"""
name: job
config: {{scheduler.settle-time: 0}}
groups:
  - name: g
    memory: 20MB
    cpus: 0
    {keys or "gpu-memory: 800MB"}
    tasks:
{lines}
""")

    def fraction(self, task, attempt=1):
        name = "stdout.log" if attempt == 1 else f"stdout.{attempt}.log"
        return (self.directory / "runs/job/g" / task / name).read_text()

    def test_lose_none_of_seven_beside_one_that_takes_three_times_its_promise(self):
        self.install("2.10.0")
        self.tasks(greedy=21, **{f"t{n}": 3 for n in range(7)})
        yard = self.start("run", "job.yaml")
        self.until("the seven", lambda: all(self.has(f"t{n}") for n in range(7)))
        self.until("the end of its first try", lambda: "INTERRUPT" in self.life("greedy"))
        self.go()
        _, errors = self.end_of(yard, expect=0)
        rows = self.rows()
        self.assertEqual({name: (row["word"], row["attempt"]) for name, row in rows.items() if name != "greedy"},
                         {f"t{n}": ("FINISHED", 1) for n in range(7)})
        self.assertEqual(rows["greedy"]["word"], "FINISHED")
        self.assertGreater(rows["greedy"]["attempt"], 1)
        # Tasks that began beside others have a cap, and its enforcer and its size are shown.
        kept = [row for row in rows.values() if row["gpu_memory_max_bytes"] > 0]
        self.assertGreaterEqual(len(kept), 6)
        self.assertEqual({row["gpu_capped_by"] for row in kept}, {"torch 2.10.0"})
        self.assertTrue(all(row["gpu_memory_max_bytes"] >= row["gpu_memory_requested_bytes"] for row in kept))

    def test_are_not_learned_as_what_a_task_needs(self):
        self.install("2.10.0")
        # With what it has beside its allocator: 2.8 of 3 GB, and 0.5.
        self.tasks("gpu-memory: 3GB\n    gpu-memory-limit: hard", full=25, little=2)
        yard = self.start("run", "job.yaml", "--set", "period.trained-least=1ms")
        self.until("both", lambda: self.has("full") and self.has("little"))
        self.until("a sample of them", lambda: {name: row["gpu_memory_peak_bytes"] for name, row in self.rows().items()} == {
            "full": 2_800_000_000, "little": 500_000_000})
        # Nothing is learned of a task whose memory was never sampled.
        self.until("a sample of the host", lambda: all(row["memory_now_bytes"] > 0 for row in self.rows().values()))
        self.go()
        self.end_of(yard, expect=0)
        journal = sqlite3.connect(self.directory / "runs/job/journal.db")
        self.addCleanup(journal.close)
        self.assertEqual(dict(journal.execute("SELECT t.id, e.gpu_capped FROM ended e JOIN tasks t ON t.number = e.task")),
                         {"full": 1, "little": 0})
        numbers = json.loads(self.trainyard("learned", "job.yaml", "--json", expect=0).stdout)
        taken = {cell["id"]: cell["gpu_memory_bytes"]["taken"] for cell in numbers["groups"][0]["cells"]}
        self.assertEqual(taken, {"full": None, "little": 500_000_000})

    def daemon(self):
        """A stand-in for NVIDIA's daemon: a program of that name, and its file."""
        program = shutil.copy("/bin/sleep", self.directory / "nvidia-cuda-mps-control")
        process = subprocess.Popen([program, "1000"])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.write("nvidia-cuda-mps-control.pid", f"{process.pid}\n")
        return process

    def test_are_told_to_mps_as_long_as_its_daemon_lives(self):
        self.environment["CUDA_MPS_PIPE_DIRECTORY"] = str(self.directory)
        daemon = self.daemon()
        # The first time it dies with the daemon, and says so as CUDA does, or says what may be anything.
        self.write("task.sh", """
echo "limit=$CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"
[ $TRAINYARD_ATTEMPT = 1 ] || exit 0
touch $TRAINYARD_TASK_DIR/has
while ! [ -e go ]; do sleep 0.01; done
case $TRAINYARD_TASK_ID in
  a) echo "RuntimeError: CUDA error: MPS client failed to connect to the MPS control daemon or the MPS server" >&2 ;;
  b) echo "RuntimeError: CUDA error: unspecified launch failure" >&2 ;;
esac
exit 1
""")
        self.job("""
name: job
config: {scheduler.settle-time: 0}
groups:
  - name: g
    memory: 20MB
    cpus: 0
    gpu-memory: 3GB
    matrix: {n: [a, b]}
    tasks: [{id: "{n}", command: "sh task.sh"}]
""")
        yard = self.start("run", "job.yaml")
        self.until("both", lambda: self.has("a") and self.has("b"))
        daemon.kill()
        daemon.wait()
        self.go()
        _, errors = self.end_of(yard, expect=0)
        self.assertIn("g/a: LOST", errors)
        self.assertIn("g/b: LOST", errors)
        self.assertIn("the MPS service of its GPU has exited", errors)
        self.assertEqual({name: (row["word"], row["attempt"]) for name, row in self.rows().items()},
                         {"a": ("FINISHED", 2), "b": ("FINISHED", 2)})
        self.assertRegex(self.fraction("a"), r"^limit=0=\d+M\n$")
        self.assertEqual(self.fraction("a", 2), "limit=\n")
