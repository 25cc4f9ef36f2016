"""A task for which memory runs out is retried, with more of it reserved.

The kernel's out-of-memory killer is real here: the yard and its tasks are in a memory cgroup that is
too small for them.
"""
import os
import pathlib

from yard import YardTest, json

CGROUPS = pathlib.Path("/sys/fs/cgroup/memory")
# The first attempts take 600 MB where 300 MB may be had.
GREEDY = """
name: job
groups:
  - name: g
    memory: 20MB
    tasks:
      - id: greedy
        command: |
          echo attempt $TRAINYARD_ATTEMPT
          test -e gate && read word < gate
          test $TRAINYARD_ATTEMPT -gt {tries} && exit 0
          exec /usr/bin/python3 -c 'x = b"x" * 600000000'
      - {{id: modest, command: ['true']}}
"""


def limited_group(test, limit):
    """What a command begins with to be in a memory cgroup with this limit, which is there until the end of the test."""
    old = CGROUPS.is_dir()
    group = (CGROUPS if old else CGROUPS.parent) / f"trainyard-e2e-{os.getpid()}"
    try:
        group.mkdir()
        test.addCleanup(group.rmdir)
        (group / ("memory.limit_in_bytes" if old else "memory.max")).write_text(str(limit))
        (group / ("memory.swappiness" if old else "memory.swap.max")).write_text("0")
    except OSError as error:
        test.skipTest(f"may not make a memory cgroup here: {error}")
    return ["sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh"]


class Memory(YardTest):
    def setUp(self):
        super().setUp()
        if not CGROUPS.is_dir():
            self.skipTest("this machine has no memory cgroups of version 1")
        self.prefix = limited_group(self, 300_000_000)

    def greedy(self, tries):
        self.job(GREEDY.format(tries=tries))
        return "run", "job.yaml", "--set", "remain-limit.memory=0B"

    def test_a_task_is_tried_again_with_more(self):
        done = self.trainyard(*self.greedy(tries=1), prefix=self.prefix, expect=0)
        self.assertRegex(done.stderr, "g/greedy: RETRYING after .*: killed by the kernel: out of memory; retrying with")
        rows = {row["id"]: row for row in self.status()["tasks"]}
        greedy = rows["greedy"]
        self.assertEqual((greedy["word"], rows["modest"]["word"]), ("FINISHED", "FINISHED"))
        report = json.loads(self.text("runs/job/reports/g.json"))
        self.assertEqual([(row["attempt"], row["failure"]) for row in report["attempts"] if row["id"] == "greedy"],
                         [(1, "OUT_OF_MEMORY"), (2, None)])
        self.assertEqual(greedy["attempt"], 2)
        self.assertGreater(greedy["memory_requested_bytes"], 20_000_000)
        self.assertEqual(self.text("runs/job/g/greedy/stdout.log"), "attempt 1\n")
        self.assertEqual(self.text("runs/job/g/greedy/stdout.2.log"), "attempt 2\n")

    def test_a_task_that_never_fits_fails_and_the_others_finish(self):
        self.trainyard(*self.greedy(tries=99), prefix=self.prefix, expect=1)
        rows = {row["id"]: row for row in self.status()["tasks"]}
        self.assertEqual((rows["greedy"]["word"], rows["modest"]["word"]), ("OUT_OF_MEMORY", "FINISHED"))
        self.assertEqual(rows["greedy"]["attempt"], 3)

    def test_who_follows_a_log_sees_the_next_attempt(self):
        os.mkfifo(self.directory / "gate")
        yard = self.start(*self.greedy(tries=1), prefix=self.prefix)
        self.until_file("runs/job/g/greedy/stdout.log")
        follower = self.start("logs", "greedy", "-f", "--stdout")
        self.assertEqual(self.next_line(follower.stdout), "attempt 1\n")
        self.write("gate", "go\n")
        self.until_file("runs/job/g/greedy/stdout.2.log")
        self.write("gate", "go\n")
        self.end_of(yard, expect=0)
        output = self.end_of(follower, expect=0)[0]
        self.assertRegex(output, r"^\n?==> .*/stdout\.2\.log <==\nattempt 2\n$")


class Shortage(YardTest):
    def test_who_is_most_over_its_promise_is_interrupted_before_the_kernel_chooses(self):
        # To the yard, which is in it, the group is the machine. Tasks may have half of it.
        prefix = limited_group(self, 2_000_000_000)
        self.write("over.py", """
import os, pathlib, signal, sys, time
if os.environ["TRAINYARD_ATTEMPT"] == "1":
    def leave(*_):
        pathlib.Path("interrupted").touch()
        sys.exit(1)
    signal.signal(signal.SIGTERM, leave)
    taken = b"x" * 1_200_000_000
    while True:
        time.sleep(0.01)
""")
        self.job_of_tasks("""
      - {id: over, memory: 50MB, command: [/usr/bin/python3, over.py]}
      - {id: modest, memory: 50MB, command: "until test -e interrupted; do sleep 0.01; done"}
""")
        done = self.trainyard("run", "job.yaml", "--set", "remain-limit.memory=1GB", "--set", "scheduler.interval=100ms",
                              prefix=prefix, expect=0)
        rows = {row["id"]: row for row in self.status()["tasks"]}
        self.assertEqual([(rows[name]["word"], rows[name]["attempt"]) for name in ("over", "modest")],
                         [("FINISHED", 2), ("FINISHED", 1)])
        self.assertIn("preempted: the machine ran short of memory; retrying with", done.stderr)
