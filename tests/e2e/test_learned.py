"""The learned estimates of a run are kept: by a resumed run, and by the next one."""
import unittest

from test_gpus import GB, HERE, GpuTest
from test_gpu_fairness import TASK
from yard import YardTest, json


class Resumed(GpuTest):
    def setUp(self):
        super().setUp()
        self.show([self.card("GPU-aaaa", 1)])
        self.write("task.py", TASK.replace("HERE", str(HERE)))

    def requested(self):
        return {name: (row["memory_requested_bytes"], row["gpu_memory_requested_bytes"], row["attempt"])
                for name, row in self.rows().items()}

    def test_goes_on_with_the_memory_that_tasks_had_reached(self):
        self.job("""
name: job
groups:
  - name: g
    memory: 20MB
    cpus: 0
    tasks:
      - id: card
        gpu-memory: 2GB
        command: "/usr/bin/python3 task.py quiet 1: $((TRAINYARD_ATTEMPT < 2 ? 9 : 0)):go$TRAINYARD_ATTEMPT"
      - id: host
        command: |
          until test -e go$TRAINYARD_ATTEMPT; do sleep 0.01; done
          test $TRAINYARD_ATTEMPT -gt 1 || { echo MemoryError >&2; exit 1; }
""")
        yard = self.start("run", "job.yaml")
        self.write("go1", "")
        grown = {"card": (20_000_000, 3 * GB, 2), "host": (24_000_000, 0, 2)}
        self.until("their second tries", lambda: self.requested() == grown)
        yard.kill()
        yard.wait()
        would = json.loads(self.trainyard("run", "--resume", "runs/job", "--dry-run", "--json", expect=0).stdout)
        self.assertEqual([(task["id"], task["attempt"]) for task in would["tasks"]], [("card", 3), ("host", 3)])
        again = self.start("run", "--resume", "runs/job")
        self.until("their third tries", lambda: {name: row[2] for name, row in self.requested().items()} == {
            "card": 3, "host": 3})
        self.assertEqual(self.requested(), {name: (*asked[:2], 3) for name, asked in grown.items()})
        self.write("go3", "")
        self.end_of(again, expect=0)

    def test_keeps_what_automatic_numbers_have_learned(self):
        self.job("""
name: job
groups:
  - name: g
    memory: 20MB
    cpus: 0
    gpu-memory: auto
    matrix: {n: 1..4}
    tasks:
      - {id: "t{n}", command: "/usr/bin/python3 task.py quiet 1: 0:go{n}"}
""")
        yard = self.start("run", "job.yaml")
        self.until("the first to be seen", lambda: self.rows().get("t1", {}).get("gpu_memory_now_bytes") == GB)
        self.write("go1", "")
        self.until("others beside each other", lambda: sorted(
            row["gpu_memory_requested_bytes"] for row in self.rows().values() if row["word"] == "RUNNING") ==
            [1.2 * GB] * 3)
        yard.kill()
        yard.wait()
        again = self.start("run", "--resume", "runs/job")
        self.until("all three at once", lambda: [
            (row["word"], row["gpu_memory_requested_bytes"]) for row in self.rows().values()] ==
            [("FINISHED", 0)] + [("RUNNING", 1.2 * GB)] * 3)
        for name in ("go2", "go3", "go4"):
            self.write(name, "")
        _, errors = self.end_of(again, expect=0)
        self.assertIn("g: reserving 1.2 GB of GPU memory from now on, learned in this run from 1 task that succeeded", errors)


class Peak(GpuTest):
    def test_of_a_task_that_is_over_in_a_moment_is_what_it_took(self):
        self.job("""
groups:
  - name: g
    tasks:
      - {id: brief, command: [/usr/bin/python3, -c, "x = bytearray(b'x' * 100_000_000)"]}
""")
        done = self.trainyard("run", "job.yaml", expect=0)
        row = self.rows()["brief"]
        self.assertTrue(150_000_000 < row["memory_peak_bytes"] < 210_000_000, row["memory_peak_bytes"])
        # A look may have come just when it had all of it; else the kernel's number is of one process.
        said = "at least " if row["memory_peak_at_least"] else ""
        self.assertRegex(done.stdout, rf"brief +FINISHED .*  {said}\d{{3}}(\.\d)? MB")


class Learned(YardTest):
    JOB = """# A sweep of mine.
name: job
groups:
  - name: big   # takes 100 MB
    memory:  3GB   # a guess
    duration: 2h
    tasks:
      - {id: a, cpus: 0, command: "/usr/bin/python3 large.py"}
  - name: cells
    matrix: {m: [40, 50]}
    memory: "{m}MB"
    tasks:
      - {cpus: 0, command: sh small.sh}
  - {name: unsaid, tasks: [{id: u, cpus: 0, command: sh small.sh}]}
"""

    def setUp(self):
        super().setUp()
        self.job(self.JOB)
        self.write("small.sh", "until test -e go.$TRAINYARD_GROUP; do sleep 0.01; done\n")
        self.write("large.py", "import subprocess\nx = bytearray(100_000_000)\nsubprocess.run(['sh', 'small.sh'])\n")

    def run_once(self):
        """Holds the tasks of each group until all have been sampled: else nothing is learned."""
        groups = {"big": 1, "cells": 2, "unsaid": 1}
        yard = self.start("run", "job.yaml", "--set", "scheduler.interval=100ms", "--set", "period.trained-least=1ms")
        self.until("the run", lambda: self.trainyard("status", "runs/job").returncode == 0)
        for group, tasks in groups.items():
            self.until(f"a sample of each of {group}", lambda: self.sampled(group) == tasks)
            self.write(f"go.{group}", "")
        self.end_of(yard, expect=0)

    def sampled(self, group):
        memory = 100_000_000 if group == "big" else 0
        return sum(row["group"] == group and row["memory_now_bytes"] > memory for row in self.status()["running"])

    def learned(self, *words, expect=0):
        return self.trainyard("learned", *words, expect=expect)

    def test_shows_what_is_written_and_taken_and_from_which_run(self):
        self.assertEqual(self.learned("job.yaml").stdout,
                         "learned estimates of job.yaml: none yet; a run in which a task took 1 s or longer saves them when it ends\n")
        self.run_once()
        shown = self.learned().stdout
        self.assertEqual(shown, self.learned("show", "runs/../job.yaml").stdout.replace("runs/../job.yaml", "job.yaml"))
        self.assertTrue(shown.startswith(
            "learned estimates of job.yaml, kept in .trainyard/job.yaml.learned.json\n\nbig: 1 task\n"), shown)
        self.assertRegex(shown, r"\n  memory    3GB +1\d\d(\.\d)? MB +3 GB +1\d\dMB +runs/job of \d{4}-\d\d-\d\d\n")
        told = json.loads(self.learned("job.yaml", "--json").stdout)
        self.assertEqual([group["group"] for group in told["groups"]], ["big", "cells", "unsaid"])
        (memory,) = told["groups"][0]["numbers"]["memory_bytes"]
        self.assertEqual(memory["written"], {"text": "3GB", "line": 5, "column": 14, "of_matrix": False})
        self.assertEqual((memory["next_at_most"], memory["from"]["run"], memory["from"]["gpu"]),
                         (3 * GB, "runs/job", None))
        self.assertEqual([number["suggested"] for number in told["groups"][1]["numbers"]["memory_bytes"]], [None])
        self.assertEqual([cell["memory_bytes"]["next"] for cell in told["groups"][1]["cells"]],
                         [40_000_000, 50_000_000])

    def test_of_another_version_are_set_aside(self):
        kept = self.directory / ".trainyard"
        kept.mkdir()
        other = '{"version": 99, "groups": {}}'
        (kept / "job.yaml.learned.json").write_text(other)
        self.assertIn("is not used: it is damaged, or from another version of trainyard\n", self.learned("job.yaml").stdout)
        self.run_once()
        self.assertEqual((kept / "job.yaml.learned.json.unreadable").read_text(), other)
        self.assertNotIn("not used", self.learned("job.yaml").stdout)

    def test_an_edited_command_reserves_no_less_than_one_that_was_never_measured(self):
        def would():
            done = self.trainyard("run", "job.yaml", "--new", "--dry-run", "--json", expect=0)
            said = json.loads(done.stdout)
            return said["tasks"][-1]["memory_bytes"], "\n".join(said["notes"])

        # Without CPUs a task reserves no memory by default.
        job = self.JOB.replace("{id: u, cpus: 0,", "{id: u, cpus: 0.1,")
        self.job(job)
        default, _ = would()
        self.run_once()
        measured, notes = would()
        self.assertLess(measured, default)
        self.assertNotIn("another command", notes)
        self.job(job.replace("0.1, command: sh small.sh", "0.1, command: sh small.sh real"))
        edited, notes = would()
        self.assertEqual(edited, default)
        self.assertRegex(notes, r"group 'unsaid': runs/job of .* used .* of memory, but with another command: reserving ")
        self.assertRegex(self.learned("job.yaml").stdout, r"runs/job of \d{4}-\d\d-\d\d, another command\n")

    def test_forgets_all_or_a_group_or_a_task(self):
        self.run_once()

        def known():
            told = json.loads(self.learned("job.yaml", "--json").stdout)
            return {group["group"]: [cell["id"] for cell in group["cells"]] for group in told["groups"]}

        everything = {"big": ["a"], "cells": ["m=40", "m=50"], "unsaid": ["u"]}
        self.assertEqual(known(), everything)
        self.assertIn("no learned estimates of 'cells/m=60' in job.yaml, nothing was deleted; "
                      "groups with estimates: 'big', 'cells', 'unsaid'",
                      self.learned("forget", "job.yaml", "cells/m=40", "cells/m=60", expect=1).stderr)
        self.assertEqual(known(), everything)
        self.assertEqual(self.learned("forget", "job.yaml", "cells/m=40", "big").stdout,
                         "removed the learned estimates of 2 tasks of job.yaml\n")
        self.assertEqual(known(), {"cells": ["m=50"], "unsaid": ["u"]})
        self.assertEqual(json.loads(self.learned("forget", "--json").stdout), {"job_file": "job.yaml", "forgotten": 2})
        self.assertEqual(known(), {})
        self.learned("forget", "job.yaml", expect=1)
        self.assertIn("name the job file first", self.learned("forget", "big", expect=2).stderr)

    def test_says_what_of_a_file_cannot_be_read_and_forgets_it(self):
        kept = self.directory / ".trainyard"
        kept.mkdir()
        (kept / "job.yaml.learned.json").write_text("{")
        self.assertIn("learned estimates of job.yaml: none; '", self.learned("job.yaml").stdout)
        self.learned("forget", "job.yaml", "big", expect=1)
        self.assertEqual(self.learned("forget", "job.yaml").stdout, "removed the unreadable estimates of job.yaml\n")
        self.assertIn("none yet", self.learned("job.yaml").stdout)

    def test_tells_who_mistypes_what_was_meant(self):
        for words, told in ((["froget", "job.yaml"], "unknown command 'froget' (did you mean 'forget'?)"),
                            (["frget"], "unknown command 'frget' (did you mean 'forget'?)"),
                            (["job.yaml", "--jsn"], "unknown option '--jsn' (did you mean '--json'?)"),
                            (["nowhere.yaml"], "nowhere.yaml: file not found"),
                            ([], "no run found under ./runs: name a job file\n")):
            self.assertIn(told, self.learned(*words, expect=2).stderr)

    def test_leads_from_a_run_to_its_job_file(self):
        self.job("name: job\ngroups: [{name: g, cpus: 0, memory: 1MB, tasks: [{id: a, command: 'true'}]}]")
        self.trainyard("run", "job.yaml", expect=0)
        for run in ("1", "job", "runs/job"):
            self.assertEqual(self.learned(run, expect=2).stderr, f"trainyard: '{run}' is a run: name its job file, 'job.yaml'\n")


if __name__ == "__main__":
    unittest.main()
