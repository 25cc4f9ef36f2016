"""The cost of sharing a card is measured while tasks run: no more tasks share one than gain by it."""
import json
import subprocess
import unittest

from test_gpus import GB, GpuTest

# On the small GPU a task is alone and over in a moment. One on the large GPU ends when twelve others have ended on the
# small one since it began, or have had their turn: four together do far less than one alone, however busy the machine is.
TASK = """
until test -e go; do sleep 0.01; done
case $CUDA_VISIBLE_DEVICES in 0) echo >> alone; exit 0 ;; esac
until test -e alone; do sleep 0.01; done
last=$(($(wc -l < alone) + 12))
test $last -lt 36 || last=36
until test $(wc -l < alone) -ge $last; do sleep 0.01; done
"""


class Sharing(GpuTest):
    def test_is_measured_told_and_known_to_the_next_run(self):
        self.show([self.card("GPU-aaaa", 1, gb=3), self.card("GPU-bbbb", 2, gb=12)])
        self.write("train.sh", TASK)
        self.job("""
name: job
config: {scheduler.settle-time: 0, remain-limit.cuda-memory: 0B, utilization-limit.cpu: 100%}
groups:
  - name: train
    memory: 20MB
    cpus: 0
    gpu-memory: 2.5GB
    duration: 1s
    matrix: {n: 1..60}
    tasks: [{id: "{n}", command: sh train.sh}]
""")
        yard = self.start("run", "job.yaml")
        # Nothing is learned of a run whose tasks all take less than a second, or were never sampled.
        self.until("a second and a sample of the first five", lambda: sum(
            row["word"] == "RUNNING" and row["memory_now_bytes"] > 0 and row["duration_ms"] > 1_000
            for row in self.rows().values()) == 5)
        self.go()
        _, errors = self.end_of(yard, expect=0)
        self.assertIn("tasks of 'train' share GPUs where their memory allows it; until measured, sharing is assumed not to "
                      "slow them down", errors)
        self.assertIn("train: at most 3 per GPU, as more gain nothing\n", errors)
        text = self.trainyard("status", expect=0).stdout
        self.assertRegex(text, r"\nforecast: .* in total, or .* if tasks that share a GPU slow each other down; took .*\n")
        self.assertIn("\nsharing GPUs, as measured:\n  train: ", text)
        said = self.status()
        self.assertEqual(len(said["sharing"]), 1)
        self.assertGreater(said["execution"]["forecast_at_the_worst_ms"], said["execution"]["forecast_ms"])
        self.assertIn("if tasks that share a GPU slow each other down", self.text("runs/job/reports/train.html"))
        learned = json.loads(self.text(".trainyard/job.yaml.learned.json"))
        self.assertLess(learned["sharing"]["train"]["to_a_gpu"], 4)
        # The first four were on the large GPU for a second and more: beside each other is not how long each takes.
        large = sorted((row for row in said["tasks"] if row["gpus"] == ["1"]), key=lambda row: row["started_ms"])
        for row in large[:4]:
            self.assertLess(learned["groups"]["train"][row["id"]]["train_ms"], row["train_ms"] - 500)
        self.assertNotIn("if tasks that share a GPU slow each other down", self.trainyard("plan", "job.yaml", expect=0).stdout)
        again = self.trainyard("run", "job.yaml", "--new", "--dry-run", expect=0)
        again = again.stdout + again.stderr
        self.assertRegex(again, r"group 'train': .*at most \d per GPU.*, as learned from runs/job of ")
        self.assertNotIn("assumed not to slow them down", again)

    def test_goes_by_written_numbers_where_no_utilization_is_told(self):
        self.show([self.card("GPU-aaaa", 1, hides_utilization=True, utilization=100),
                   self.card("GPU-bbbb", 2, mig=[{"uuid": "MIG-1", "name": "Fake MIG", "memory": 8 * GB}])])
        for wants, together in (("gpu-memory: 1GB, gpu-utilization: 30%", 3), ("gpu-memory: 1GB, max-per-gpu: 1", 1)):
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
                self.assertNotRegex(output + errors, "(?i)utili[sz]ation of|at work|busy|does not answer|error")


if __name__ == "__main__":
    unittest.main()
