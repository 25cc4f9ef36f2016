"""What sharing a card costs is measured while tasks run: no more are let onto one than gain by it."""
import json
import sqlite3
import subprocess
import unittest
from contextlib import closing

from test_gpus import GB, GpuTest

# On the large card each of four takes far more than four times as long as the one on the small card.
TASK = """
import os, time
time.sleep(2 if "GPU-bbbb" in os.environ["CUDA_VISIBLE_DEVICES"] else 0.1)
"""


# Two and more on a card do a third more than one.
SHARED = """
import os, time
card = os.environ["CUDA_VISIBLE_DEVICES"]
os.makedirs(card, exist_ok=True)
here = os.path.join(card, str(os.getpid()))
open(here, "w").close()
done, before = 0, time.monotonic()
while done < 1.2:
    time.sleep(0.02)
    now = time.monotonic()
    done += (now - before) * min(1, 1.33 / len(os.listdir(card)))
    before = now
os.remove(here)
"""


class Sharing(GpuTest):
    def job_of(self, tasks):
        self.show([self.card("GPU-aaaa", 1, gb=3), self.card("GPU-bbbb", 2, gb=12)])
        self.write("train.py", TASK)
        return self.job(f"""
name: job
config: {{scheduler.settle-time: 0, remain-limit.cuda-memory: 0B, utilization-limit.cpu: 100%}}
groups:
  - name: train
    memory: 20MB
    cpus: 0
    gpu-memory: 2.5GB
    duration: 1s
    matrix: {{n: 1..{tasks}}}
    tasks: [{{id: "{{n}}", command: /usr/bin/python3 train.py}}]
""")

    def test_is_measured_told_and_kept_to(self):
        self.job_of(60)
        errors = self.trainyard("run", "job.yaml", expect=0).stderr
        self.assertIn("tasks of 'train' share GPUs as memory allows, which is taken to cost nothing until it is "
                      "measured", errors)
        self.assertIn("train: no more than 3 to a GPU, as more gain nothing\n", errors)
        text = self.trainyard("status", expect=0).stdout
        self.assertRegex(text, r"\nforecast: expected .* if sharing a GPU is free, .* if it is not; took .*\n")
        self.assertIn("\nsharing GPUs, as measured:\n  train: no more than ", text)
        said = self.status()
        self.assertEqual(len(said["sharing"]), 1)
        self.assertGreater(said["execution"]["forecast_at_the_worst_ms"], said["execution"]["forecast_ms"])
        self.assertIn("sharing a GPU is free", self.text("runs/job/reports/train.html"))
        # By their times: never more than three began together on the large card once that was told.
        large = sorted((row["started_ms"], row["ended_ms"]) for row in said["tasks"] if row["gpus"] == ["1"])
        late = [start for start, _ in large if start > large[0][1] + 500]
        self.assertTrue(late)
        for start in late:
            self.assertLessEqual(sum(1 for began, ended in large if began <= start < ended), 3)

    def test_is_kept_and_no_part_of_how_long_tasks_take(self):
        self.show([self.card("GPU-aaaa", 1, gb=3), self.card("GPU-bbbb", 2, gb=11)])
        self.write("train.py", SHARED)
        self.job("""
name: job
config: {scheduler.settle-time: 0, remain-limit.cuda-memory: 0B, utilization-limit.cpu: 100%}
groups:
  - name: train
    memory: 20MB
    cpus: 0
    gpu-memory: 2.5GB
    matrix: {n: 1..14}
    tasks: [{id: "{n}", command: /usr/bin/python3 train.py}]
""")
        self.trainyard("run", "job.yaml", expect=0)
        learned = json.loads(self.text(".trainyard/job.yaml.learned.json"))
        self.assertEqual(learned["sharing"]["train"]["to_a_gpu"], 4)
        for row in self.status()["tasks"]:
            took = row["ended_ms"] - row["started_ms"]
            alone = learned["groups"]["train"][row["id"]]["train_ms"]
            if took > 2500:
                self.assertLess(alone, took / 2, row["id"])
        plan = self.trainyard("plan", "job.yaml", expect=0)
        self.assertNotIn("if sharing a GPU is free", plan.stdout)
        said = self.trainyard("run", "job.yaml", "--new", expect=0).stderr
        self.assertRegex(
            said, r"group 'train': 4 to a GPU: 1\.\d x one to a GPU, \d+ tasks.*, as learned from runs/job of ")
        self.assertNotIn("taken to cost nothing", said)

    def test_is_not_forbidden_by_what_nobody_measured(self):
        self.job_of(5)
        errors = self.trainyard("run", "job.yaml", expect=0).stderr
        self.assertNotIn("to a GPU", errors)
        self.assertNotIn("sharing GPUs", self.trainyard("status", expect=0).stdout)

    def test_goes_by_memory_and_written_numbers_where_no_utilization_is_told(self):
        self.show([self.card("GPU-aaaa", 1, hides_utilization=True, utilization=100),
                   self.card("GPU-bbbb", 2, mig=[{"uuid": "MIG-1", "name": "Fake MIG", "memory": 8 * GB}])])
        for wants, together in (("gpu-memory: 3GB", 2), ("gpu-memory: 1GB, gpu-utilization: 30%", 3),
                                ("gpu-memory: 1GB, max-per-gpu: 1", 1)):
            with self.subTest(wants):
                subprocess.run(["rm", "-rf", self.directory / "runs", self.directory / "go"], check=True)
                self.job(f"""
name: job
config: {{scheduler.settle-time: 0}}
groups: [{{name: g, memory: 20MB, cpus: 0, {wants}, matrix: {{n: 1..9}}, tasks: [
  {{id: "t{{n}}", command: /usr/bin/python3 task.py 0 go}}]}}]
""")
                yard = self.start("run", "job.yaml")
                self.until("as many as may share", lambda: sum(
                    row["word"] == "RUNNING" for row in self.rows().values()) == 2 * together)
                # Another look at the cards changes nothing.
                seen = self.looks()
                self.until("another look", lambda: self.looks() > seen)
                on = [tuple(row["gpus"]) for row in self.rows().values() if row["word"] == "RUNNING"]
                self.assertEqual(sorted(on), sorted(together * [("0",), ("1:0",)]))
                self.go()
                output, errors = self.end_of(yard, expect=0)
                self.assertEqual({row["word"] for row in self.rows().values()}, {"FINISHED"})
                self.assertNotRegex(output + errors, "(?i)utili[sz]ation of|at work|does not answer|error")

    def looks(self):
        with closing(sqlite3.connect(f"file:{self.directory}/runs/job/journal.db?mode=ro", uri=True)) as journal:
            return journal.execute("SELECT count(*) FROM samples").fetchone()[0]


if __name__ == "__main__":
    unittest.main()
