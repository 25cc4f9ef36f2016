"""Out of memory on a card that tasks share: what the next try gets, and which rank is named."""
from test_gpus import GB, HERE, GpuTest
from yard import TRAINYARD

# Takes memory piece by piece: "1:", then, when the file exists, "2:now". Runs out of it as its words say.
TASK = """
import pathlib, sys, time
sys.path.insert(0, "HERE")
import fake_gpu
words, pieces = sys.argv[1], sys.argv[2:]
for piece in pieces:
    gigabytes, after = piece.split(":")
    while after and not pathlib.Path(after).exists():
        time.sleep(0.01)
    try:
        if float(gigabytes):
            fake_gpu.take(int(float(gigabytes) * 1e9))
    except RuntimeError as error:
        sys.exit(str(error) if words == "numbers" else "CUDA error: out of memory")
"""


class OutOfMemory(GpuTest):
    def setUp(self):
        super().setUp()
        self.show([self.card("GPU-aaaa", 1)])
        self.write("task.py", TASK.replace("HERE", str(HERE)))

    def memory_of(self, task):
        return self.rows().get(task, {}).get("gpu_memory_now_bytes")

    def test_in_training_gets_what_the_framework_printed(self):
        # It trains again when memory has run out.
        self.write("phases.sh", f"""
device=$({TRAINYARD} client wait-device) || exit 9
while ! /usr/bin/python3 task.py numbers 1: 4.5:now; do
  device=$({TRAINYARD} client wait-device --after-out-of-memory) || exit 7
done
""")
        self.job("""
name: job
config: {scheduler.settle-time: 0}
groups:
  - name: g
    memory: 20MB
    cpus: 0
    tasks:
      - {id: greedy, gpu-memory: 3GB, preemptible: false, command: "/usr/bin/python3 task.py quiet 3: 0:go"}
      - {id: good, gpu-memory: 2GB, two-phase: true, command: sh phases.sh}
""")
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
        self.assertRegex(errors, r"rank 1: MemoryError; rank 1 had the most memory, \d{3}(\.\d)? MB; retrying with [\d.]+ MB\n")
