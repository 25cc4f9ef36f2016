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

    def tasks(self, settle_time=0, **tasks):
        """Each is what stands in its place of the job file, and what it takes."""
        lines = "\n".join(f'      - {{id: {name}, {keys}, command: "/usr/bin/python3 task.py {takes}"}}'
                          for name, (keys, takes) in tasks.items())
        return self.job(f"""
name: job
config: {{scheduler.settle-time: {settle_time}}}
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

    def test_is_not_risked_by_two_that_begin_at_once_on_a_tight_card(self):
        self.tasks(settle_time=600, **{f"t{n}": ("gpu-memory: 3GB", f"quiet 3:begin{n} 0:go") for n in range(2)})
        yard = self.start("run", "job.yaml")
        self.until("the first", lambda: (self.directory / "runs/job/g/t0").exists())
        self.until("the reason", lambda: self.reasons() == [
            "a task that has just begun on GPU 0 takes its memory first, as there is little room beside it"])
        self.assertEqual({name: row["word"] for name, row in self.rows().items()}, {"t0": "RUNNING", "t1": "WAITING"})
        self.write("begin0", "")
        self.until("the other", lambda: self.rows()["t1"]["word"] == "RUNNING")
        self.write("begin1", "")
        self.go()
        self.end_of(yard, expect=0)

    def test_is_not_counted_where_a_neighbour_has_more_than_was_reserved(self):
        self.tasks(greedy=("gpu-memory: 3GB, preempt: false", "quiet 6.5: 0:go"),
                   good=("gpu-memory: 3GB, oom-retries: 0", "quiet 1: 2:now"))
        yard = self.start("run", "job.yaml")
        self.until("both", lambda: (self.memory_of("greedy"), self.memory_of("good")) == (6.5 * GB, GB))
        self.write("now", "")
        self.until("the second try waits", lambda: self.rows()["good"]["status"] == "INTERRUPT")
        self.go()
        _, errors = self.end_of(yard, expect=0)
        self.assertIn("g/good: RETRYING after", errors)
        self.assertIn("CUDA error: out of memory; other tasks had 3.5 GB of GPU 0 beyond what was reserved for "
                      "them; retried with 3 GB on its GPU", errors)
        rows = self.rows()
        self.assertEqual({name: (row["word"], row["attempt"]) for name, row in rows.items()},
                         {"greedy": ("FINISHED", 1), "good": ("FINISHED", 2)})

    def two_phases(self, takes, quiet=False):
        """The keys of a shell script that trains with these pieces, and again when memory has run out."""
        away = " 2> /dev/null" if quiet else ""
        self.write("phases.sh", f"""
device=$({TRAINYARD} client wait-device) || exit 9
while ! /usr/bin/python3 task.py {takes}{away}; do
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
      - {{id: greedy, gpu-memory: 3GB, preempt: false, command: "/usr/bin/python3 task.py quiet {neighbour}"}}
      - {{id: good, {keys}, two-phase: true, command: sh phases.sh}}
""")

    def test_is_not_counted_of_a_shell_script_of_two_phases_either(self):
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
        self.assertIn("CUDA error: out of memory; other tasks had 3.5 GB of GPU 0 beyond what was reserved for "
                      "them; retried with 3 GB on its GPU", errors)
        self.assertEqual(self.rows()["good"]["word"], "FINISHED")

    def test_of_a_process_that_is_kept_or_not_gets_what_it_printed(self):
        self.two_phases("numbers 1: 4.5:now")
        self.two_phase_job("gpu-memory: 2GB", "3: 0:go")
        yard = self.start("run", "job.yaml")
        self.until("both", lambda: (self.memory_of("greedy"), self.memory_of("good")) == (3 * GB, GB))
        self.write("now", "")
        self.until("the first try", lambda: "INTERRUPT" in self.life("good"))
        self.go()
        self.end_of(yard, expect=0)
        self.assertAlmostEqual(self.rows()["good"]["gpu_memory_requested_bytes"], 5.5 * GB, delta=0.01 * GB)

    def test_of_a_script_that_says_nothing_was_that_of_its_gpu(self):
        self.two_phases("quiet 1: 4.5:now", quiet=True)
        self.two_phase_job("gpu-memory: 4GB", "3: 0:go")
        yard = self.start("run", "job.yaml")
        self.until("both", lambda: (self.memory_of("greedy"), self.memory_of("good")) == (3 * GB, GB))
        self.write("now", "")
        self.until("the first try", lambda: "INTERRUPT" in self.life("good"))
        self.go()
        _, errors = self.end_of(yard, expect=0)
        self.assertIn("out of memory; retried with 6 GB on its GPU", errors)

    def test_of_a_rank_is_read_in_its_own_log(self):
        self.show([self.card("GPU-aaaa", 1), self.card("GPU-bbbb", 2)])
        self.write("phases.sh", f"""
[ $TRAINYARD_RANK = 1 ] || echo "CUDA out of memory, which it has survived" >&2
device=$({TRAINYARD} client wait-device) || exit 9
[ $TRAINYARD_ATTEMPT = 1 ] || exit 0
[ $TRAINYARD_RANK = 1 ] || exec sleep 1000
echo MemoryError >&2
{TRAINYARD} client wait-device --after-out-of-memory
exit 7
""")
        self.job("""
name: job
groups:
  - name: g
    memory: 20MB
    cpus: 0
    tasks: [{id: a, ranks: 2, gpu-memory: 3GB, two-phase: true, command: sh phases.sh}]
""")
        _, errors = self.end_of(self.start("run", "job.yaml"), expect=0)
        # 24 MB, or more where more than the 20 MB that were asked for was measured: but memory of the machine. Who had
        # the most of it is told where the ranks lived long enough to be measured.
        self.assertRegex(errors, r"rank 1: MemoryError; (rank \d had the most memory, [^;]*; )?retried with [\d.]+ MB\n")

    def test_ends_who_took_more_than_was_reserved_before_its_neighbour_lacks_its_own(self):
        self.tasks(greedy=("gpu-memory: 3GB, oom-retries: 0", "quiet 6.5: 0:go"),
                   good=("gpu-memory: 3GB, oom-retries: 0", "quiet 1: 2:now"))
        yard = self.start("run", "job.yaml")
        self.until("the interrupted one", lambda: self.rows().get("greedy", {}).get("status") == "INTERRUPT")
        self.write("now", "")
        self.go()
        _, errors = self.end_of(yard, expect=0)
        self.assertIn("interrupted, as it took more of its GPU than was reserved and others there needed theirs; "
                      "retried with 6.5 GB on its GPU", errors)
        rows = self.rows()
        self.assertEqual({name: (row["word"], row["attempt"]) for name, row in rows.items()},
                         {"greedy": ("FINISHED", 2), "good": ("FINISHED", 1)})
        self.assertEqual(rows["greedy"]["gpu_memory_requested_bytes"], 6.5 * GB)

    def test_gives_the_last_try_a_card_of_its_own(self):
        self.tasks(neighbour=("gpu-memory: 3GB", "quiet 3: 0:go"), small=("gpu-memory: 2GB", "quiet 6:has"))
        yard = self.start("run", "job.yaml")
        self.until("the neighbour", lambda: self.memory_of("neighbour") == 3 * GB)
        self.write("has", "")
        self.until("two tries", lambda: self.rows()["small"]["attempt"] == 2
                   and self.rows()["small"]["status"] == "INTERRUPT")
        self.assertIn("try 3 of 3, alone on the largest GPU", self.rows()["small"]["message"])
        self.go()
        _, errors = self.end_of(yard, expect=0)
        self.assertIn("CUDA error: out of memory; retried with 3 GB on its GPU", errors)
        self.assertIn("CUDA error: out of memory; try 3 of 3, alone on the largest GPU", errors)
        small = self.rows()["small"]
        self.assertEqual((small["word"], small["attempt"], small["gpu_memory_requested_bytes"]), ("FINISHED", 3, 0))

    def test_asks_for_what_the_framework_printed(self):
        self.tasks(neighbour=("gpu-memory: 3GB", "quiet 3: 0:go"), small=("gpu-memory: 2GB", "numbers 6:has"))
        yard = self.start("run", "job.yaml")
        self.until("the neighbour", lambda: self.memory_of("neighbour") == 3 * GB)
        self.write("has", "")
        self.until("the first try", lambda: self.rows()["small"]["status"] == "INTERRUPT")
        self.go()
        self.end_of(yard, expect=0)
        small = self.rows()["small"]
        self.assertEqual((small["word"], small["attempt"]), ("FINISHED", 2))
        self.assertAlmostEqual(small["gpu_memory_requested_bytes"], 6 * GB, delta=0.01 * GB)

    def test_loses_nobody_whose_estimate_was_a_third_of_the_truth(self):
        self.show([self.card("GPU-aaaa", 1), self.card("GPU-bbbb", 2)])
        self.tasks(**{f"t{n}": ("gpu-memory: 2.1GB", "quiet 7:") for n in range(8)})
        self.trainyard("run", "job.yaml", expect=0)
        self.assertEqual({row["word"] for row in self.rows().values()}, {"FINISHED"})
