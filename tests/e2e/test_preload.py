"""`preload`: Python tasks that are forks of a process that has imported for them."""
from yard import CLIENT, YardTest, alive, json, os, signal

JOB = """
name: job
groups:
  - name: g
    two-phase: true
    preload: [{modules}]
    memory: 50MB
    cpus: 1
    matrix: {{n: {n}}}
    tasks:
      - {{command: "/usr/bin/python3 train.py {{n}}"}}
"""
# Notes each import of it, and holds more memory than its tasks are promised.
MYDATA = """
import os
with open("imported", "a") as file:
    file.write("%d\\n" % os.getpid())
data = bytearray(os.urandom(1 << 20)) * 150
"""
TRAIN = """
import sys, trainyard
was_there = "mydata" in sys.modules
import mydata
for attempt in trainyard.attempts():
    with attempt as device:
        trainyard.progress(0.5, loss=1)
        trainyard.result(was_there=was_there, n=int(sys.argv[1]), sum=mydata.data[7] - mydata.data[7 + (1 << 20)])
"""


class Preload(YardTest):
    def prepare(self, train=TRAIN, modules="mydata", n="0..7"):
        (self.directory / "trainyard.py").write_bytes((CLIENT / "trainyard/client.py").read_bytes())
        self.write("mydata.py", MYDATA)
        self.write("train.py", train)
        self.job(JOB.format(modules=modules, n=n))

    def importers(self):
        return [int(line) for line in self.text("imported").split()]

    def seen(self):
        """The words of all tasks, once there is a run."""
        return list(self.words().values()) if (self.directory / "runs/job/journal.db").exists() else []

    def result(self, n):
        return json.loads(self.text(f"runs/job/g/n={n}/result.json"))

    def test_the_tasks_of_a_group_share_what_was_imported_once(self):
        self.prepare(modules="trainyard, mydata")
        self.trainyard("run", "job.yaml", expect=0)
        self.assertEqual(len(self.importers()), 1)
        self.assertEqual([self.result(n) for n in range(8)], [{"was_there": True, "n": n, "sum": 0} for n in range(8)])
        rows = self.status()["tasks"]
        self.assertEqual({row["word"] for row in rows}, {"FINISHED"})
        self.assertTrue(all(row["progress"] == 0.5 for row in rows), rows)
        self.assertFalse(alive(self.importers()[0]))

    def test_out_of_memory_is_dealt_with_as_ever(self):
        self.prepare(n="[1]", modules="trainyard, mydata", train="""
import mydata, os, trainyard
seen = []
if os.environ["TRAINYARD_ATTEMPT"] == "1": raise MemoryError()
for attempt in trainyard.attempts():
    with attempt as device:
        seen.append(os.getpid())
        if len(seen) == 1: raise MemoryError("no room")
        trainyard.result(tries=len(seen), processes=len(set(seen)))
""")
        self.trainyard("run", "job.yaml", expect=0)
        self.assertEqual(json.loads(self.text("runs/job/g/n=1/result.2.json")), {"tries": 2, "processes": 1})
        self.assertEqual(len(self.importers()), 1)

    def test_the_importing_process_dies_and_no_task_is_harmed(self):
        os.mkfifo(self.directory / "gate")
        self.prepare(train=TRAIN.replace("for attempt", "open('gate').read()\nfor attempt", 1))
        yard = self.start("run", "job.yaml")
        self.until_file("imported")
        self.until("a task that has started", lambda: "RUNNING" in self.seen())
        os.kill(self.importers()[0], signal.SIGKILL)
        self.keep_opening_gate(yard)
        self.end_of(yard, expect=0)
        self.assertEqual(set(self.words().values()), {"FINISHED"})
        self.assertTrue(all(self.result(n)["was_there"] for n in range(8)))

    def test_what_cannot_be_imported_is_said_with_the_reason(self):
        self.prepare(modules="mydata, torhc", n="0..1")
        self.trainyard("run", "job.yaml", expect=1)
        rows = self.status()["tasks"]
        self.assertEqual({row["word"] for row in rows}, {"CANNOT_START"})
        self.assertEqual(rows[0]["message"], "cannot import mydata, torhc beforehand: ModuleNotFoundError: No module "
                         f"named 'torhc' (see '{self.directory}/runs/job/trainyard.preload.log')")
        self.assertIn("Traceback", self.text("runs/job/trainyard.preload.log"))

    def test_memory_that_is_shared_is_charged_to_no_task(self):
        os.mkfifo(self.directory / "gate")
        self.prepare(train=TRAIN.replace("for attempt", "open('gate').read()\nfor attempt", 1), n="[1]")
        yard = self.start("run", "job.yaml", "--set", "scheduler.interval=100ms")
        self.until_file("imported")
        self.until("a task that has started", lambda: "RUNNING" in self.seen())
        peak = self.until("a look at its memory", lambda: self.status()["tasks"][0]["memory_peak_bytes"])
        self.assertLess(peak, 50e6)
        self.keep_opening_gate(yard)
        self.end_of(yard, expect=0)
