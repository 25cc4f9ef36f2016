"""The fate of tasks when a GPU does not answer, or its driver crashes."""
import sqlite3
import sys

from test_gpus import GB, HERE, GpuTest

sys.path.insert(0, str(HERE))
import fake_gpu  # noqa: E402

# Fails when its GPU does, as CUDA does, and ends well once it may.
FALLS = f'''
import os, pathlib, sys, time
sys.path.insert(0, {str(HERE)!r})
import fake_gpu
fake_gpu.take(10**9)
pathlib.Path(os.environ["TRAINYARD_TASK_DIR"], "has." + os.environ["TRAINYARD_ATTEMPT"]).touch()
while not pathlib.Path("go").exists():
    with fake_gpu.changed() as shown:
        if next(card for card in shown["devices"] if card["uuid"] == fake_gpu.visible()[0])["lost"]:
            sys.exit("RuntimeError: CUDA error: unspecified launch failure")
    time.sleep(0.01)
'''


class Losses(GpuTest):
    def test_gpus_that_stop_answering_stop_no_task_and_are_used_again_when_they_are_back(self):
        self.sweep("gpu-memory: 3GB", 5, "/usr/bin/python3 task.py 3 go")
        yard = self.start("run", "job.yaml", "--set", "period.gpu-steady=100ms")
        self.until("four tasks", lambda: all(self.has(f"t{n}") for n in range(4)))
        with fake_gpu.changed() as shown:
            shown["devices"][1]["lost"] = True
        self.until("the reason", lambda: any("GPU 1 does not answer" in reason for reason in self.reasons()))
        with fake_gpu.changed() as shown:
            shown["devices"][0]["crash"] = True  # Kills the process that asks the driver.
        self.until("the reason", lambda: any("GPU 0 does not answer (or is avoided after it dropped out), GPU 1 does not answer" in reason
                                             for reason in self.reasons()))
        self.go()
        self.until("the end of the four that ran", lambda: [row["word"] for row in self.rows().values()] ==
                   4 * ["FINISHED"] + ["WAITING"])
        with fake_gpu.changed() as shown:
            shown["devices"][0]["crash"] = shown["devices"][1]["lost"] = False
        _, errors = self.end_of(yard, expect=0)
        self.assertEqual([(row["word"], row["attempt"]) for row in self.rows().values()], 5 * [("FINISHED", 1)])
        for card in ("GPU 0 (GPU-aaaa)", "GPU 1 (GPU-bbbb)"):
            self.assertEqual(errors.count(f"{card} does not answer: no tasks start on it until it has answered for 0.1 s"), 1, errors)

    def test_tasks_that_died_with_their_card_are_retried_on_cards_where_they_did_not(self):
        self.write("falls.py", FALLS)
        self.show([self.card(f"GPU-{letter * 4}", number, lost=False) for number, letter in enumerate("abc")])
        self.sweep("gpu-memory: 3GB", 2, "/usr/bin/python3 falls.py")
        yard = self.start("run", "job.yaml", "--set", "gpu-priority.strategy=PCI", "--set", "period.gpu-steady=1ms")
        for card in range(2):
            self.until(f"both on card {card}", lambda: all(self.has_file(f"t{n}", f"has.{card + 1}") for n in range(2)))
            with fake_gpu.changed() as shown:
                shown["devices"][0]["lost"] = card == 0  # It is back when the second one drops out.
                shown["devices"][card]["lost"] = True
        self.until("both on the third card", lambda: all(self.has_file(f"t{n}", "has.3") for n in range(2)))
        self.until("the drop-out", lambda: "  GPU 0 dropped out once" in self.trainyard("devices", expect=0).stdout)
        self.go()
        _, errors = self.end_of(yard, expect=0)
        for number, card in enumerate((0, 1), 1):
            self.assertIn(f"retry {number} of 5: GPU {card} did not answer while it ran: RuntimeError: CUDA error: "
                          "unspecified launch failure", errors)
        self.assertEqual([(row["word"], row["attempt"], row["gpus"]) for row in self.rows().values()],
                         2 * [("FINISHED", 3, ["2"])])

    def has_file(self, task, name):
        return (self.directory / "runs/job/g" / task / name).exists()

    def test_a_card_that_does_not_answer_at_the_start_is_told_of_and_used_when_it_does(self):
        self.show([self.card("GPU-aaaa", 1), self.card("GPU-bbbb", 2, lost=True)])
        self.assertIn("GPU 1: DOES NOT ANSWER, though the driver counts it\n", self.trainyard("devices", expect=0).stdout)
        self.sweep("gpus: 1", 2, "/usr/bin/python3 task.py 0 go")
        self.assertIn("GPU 1 DOES NOT ANSWER", self.trainyard("run", "job.yaml", "--dry-run", expect=0).stdout)
        yard = self.start("run", "job.yaml", "--set", "period.gpu-steady=100ms")
        self.until("the first task", lambda: self.has("t0"))
        self.until("the reason", lambda: any("GPU 1 does not answer" in reason for reason in self.reasons()))
        with fake_gpu.changed() as shown:
            shown["devices"][1]["lost"] = False
        self.until("the second", lambda: self.has("t1"))
        self.go()
        _, errors = self.end_of(yard, expect=0)
        self.assertIn("machine: GPU 1 DOES NOT ANSWER though the driver counts it: tasks use it once it answers", errors)
        self.assertIn("GPU 1 (GPU-bbbb) answers now: tasks start on it once it has answered for 0.1 s", errors)
        self.assertEqual((self.rows()["t1"]["gpus"], self.text("runs/job/g/t1/stdout.log")), (["1"], "GPU-bbbb\n"))
        with sqlite3.connect(self.directory / "runs/job/journal.db") as journal:
            self.assertEqual(journal.execute("SELECT label, uuid, memory FROM gpus ORDER BY position").fetchall(),
                             [("0", "GPU-aaaa", 8 * GB), ("1", "GPU-bbbb", 8 * GB)])
