"""Out of memory on a card that tasks share: whose fault it is, who has to go, and what the last try gets."""
from test_gpus import GB, HERE, GpuTest
from yard import TRAINYARD

# Takes memory piece by piece: "1:", then, when the file exists, "2:now". Runs out of it as its words say.
TASK = """
import os, pathlib, sys, time
sys.path.insert(0, "HERE")
import fake_gpu
words, pieces = sys.argv[1], sys.argv[2:]
for number, piece in enumerate(pieces):
    gigabytes, after = piece.split(":")
    while after and not pathlib.Path(after).exists():
        time.sleep(0.01)
    try:
        if float(gigabytes):
            fake_gpu.take(int(float(gigabytes) * 1e9))
    except RuntimeError as error:
        sys.exit(str(error) if words == "numbers" else "CUDA error: out of memory")
    pathlib.Path(os.environ["TRAINYARD_TASK_DIR"], f"has{number}").touch()
"""


class OutOfMemory(GpuTest):
    def setUp(self):
        super().setUp()
        self.show([self.card("GPU-aaaa", 1)])
        self.write("task.py", TASK.replace("HERE", str(HERE)))

    def tasks(self, **tasks):
        """Each is what stands in its place of the job file, and what it takes."""
        lines = "\n".join(f'      - {{id: {name}, {keys}, command: "/usr/bin/python3 task.py {takes}"}}'
                          for name, (keys, takes) in tasks.items())
        return self.job(f"""
name: job
config: {{scheduler.settle-time: 0}}
groups:
  - name: g
    memory: 20MB
    cpus: 0
    tasks:
{lines}
""")

    def has(self, task, piece=0):
        return (self.directory / "runs/job/g" / task / f"has{piece}").exists()

    def memory_of(self, task):
        return self.rows().get(task, {}).get("gpu_memory_now_bytes")

    def two_phases(self, takes):
        """A shell script that trains with these pieces, and again when memory has run out."""
        self.write("phases.sh", f"""
device=$({TRAINYARD} client wait-device) || exit 9
while ! /usr/bin/python3 task.py {takes}; do
  device=$({TRAINYARD} client wait-device --after-out-of-memory) || exit 7
done
""")

    def two_phase_job(self, keys, neighbour):
        self.job(f"""
name: job
config: {{scheduler.settle-time: 0}}
groups:
  - name: g
    memory: 20MB
    cpus: 0
    tasks:
      - {{id: greedy, gpu-memory: 3GB, preemptible: false, command: "/usr/bin/python3 task.py quiet {neighbour}"}}
      - {{id: good, {keys}, two-phase: true, command: sh phases.sh}}
""")

    def test_is_not_counted_where_a_neighbour_has_more_than_was_reserved(self):
        self.two_phases("quiet 1: 2:now")
        self.two_phase_job("gpu-memory: 3GB, oom-retries: 0", "1: 5.5:more 0:go")
        yard = self.start("run", "job.yaml")
        self.until("both", lambda: (self.memory_of("greedy"), self.memory_of("good")) == (GB, GB))
        self.write("more", "")
        self.until("what it took", lambda: self.memory_of("greedy") == 6.5 * GB)
        self.write("now", "")
        self.until("the first try", lambda: "INTERRUPT" in self.life("good"))
        self.go()
        _, errors = self.end_of(yard, expect=0)
        self.assertIn("out of memory; other tasks used 3.5 GB of GPU 0 more than was reserved for them; retried with 3 GB on its GPU", errors)
        self.assertEqual(self.rows()["good"]["word"], "FINISHED")

    def test_in_training_gets_what_the_framework_printed(self):
        self.two_phases("numbers 1: 4.5:now")
        self.two_phase_job("gpu-memory: 2GB", "3: 0:go")
        yard = self.start("run", "job.yaml")
        self.until("both", lambda: (self.memory_of("greedy"), self.memory_of("good")) == (3 * GB, GB))
        self.write("now", "")
        self.until("the first try", lambda: "INTERRUPT" in self.life("good"))
        self.go()
        self.end_of(yard, expect=0)
        self.assertAlmostEqual(self.rows()["good"]["gpu_memory_requested_bytes"], 5.5 * GB, delta=0.01 * GB)

    def test_of_a_rank_is_read_in_its_own_log(self):
        self.show([self.card("GPU-aaaa", 1), self.card("GPU-bbbb", 2)])
        self.write("phases.sh", f"""
[ $TRAINYARD_RANK = 1 ] || echo "CUDA out of memory, which it has survived" >&2
device=$({TRAINYARD} client wait-device) || exit 9
[ $TRAINYARD_ATTEMPT = 1 ] || exit 0
[ $TRAINYARD_RANK = 1 ] || exec sleep 1000
/usr/bin/python3 large.py
echo MemoryError >&2
{TRAINYARD} client wait-device --after-out-of-memory
exit 7
""")
        self.write("large.py", "import os, time\nx = bytearray(300_000_000)\n"
                   "while not os.path.exists('go'): time.sleep(0.01)\n")
        self.job("""
name: job
groups:
  - name: g
    memory: 20MB
    cpus: 0
    tasks: [{id: a, ranks: 2, gpu-memory: 3GB, two-phase: true, command: sh phases.sh}]
""")
        yard = self.start("run", "job.yaml")
        # No rank is known to be the largest before a sample of both. It has more than the client
        # of the other rank, also where that is built with a sanitizer.
        self.until("a sample of the large one", lambda: self.rows().get("a", {}).get("memory_now_bytes", 0) > 300_000_000)
        self.go()
        _, errors = self.end_of(yard, expect=0)
        # Memory of the machine: with more than was measured.
        self.assertRegex(errors, r"rank 1: MemoryError; rank 1 had the most memory, \d{3}(\.\d)? MB; retried with [\d.]+ MB\n")

    def test_gives_the_last_try_a_card_of_its_own(self):
        self.tasks(neighbour=("gpu-memory: 3GB", "quiet 3: 0:go"), small=("gpu-memory: 2GB", "quiet 6:has"))
        yard = self.start("run", "job.yaml")
        self.until("the neighbour", lambda: self.memory_of("neighbour") == 3 * GB)
        self.write("has", "")
        self.until("two tries", lambda: self.rows()["small"]["attempt"] == 2
                   and self.rows()["small"]["status"] == "INTERRUPT")
        self.assertIn("retry 2 of 2, alone on the largest GPU", self.rows()["small"]["message"])
        self.go()
        _, errors = self.end_of(yard, expect=0)
        self.assertIn("CUDA error: out of memory; retried with 3 GB on its GPU", errors)
        self.assertIn("CUDA error: out of memory; retry 2 of 2, alone on the largest GPU", errors)
        small = self.rows()["small"]
        self.assertEqual((small["word"], small["attempt"], small["gpu_memory_requested_bytes"]), ("FINISHED", 3, 0))
