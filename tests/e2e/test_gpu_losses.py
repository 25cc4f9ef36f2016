"""What becomes of tasks when a GPU does not answer, or its driver crashes."""
import sqlite3
import time

from test_gpus import GB, HERE, GpuTest, fake_gpu

# Dies with its card, and ends when it may: says when it began, by the clock that both of us have.
FALLS = f'''
import os, pathlib, sys, time
sys.path.insert(0, {str(HERE)!r})
import fake_gpu
fake_gpu.take(10**9)
pathlib.Path(os.environ["TRAINYARD_TASK_DIR"], "has." + os.environ["TRAINYARD_ATTEMPT"]).write_text(str(time.monotonic()))
while not any(pathlib.Path(name).exists() for name in sys.argv[1:]):
    with fake_gpu.changed() as shown:
        if next(card for card in shown["devices"] if card["uuid"] == fake_gpu.visible()[0])["lost"]:
            sys.exit("RuntimeError: CUDA error: unspecified launch failure")
    time.sleep(0.01)
'''


class Losses(GpuTest):
    def test_a_card_that_falls_off_the_bus_is_told_of_and_used_again_when_it_is_back(self):
        self.sweep("gpus: 2", 2, "/usr/bin/python3 task.py 0 go")
        yard = self.start("run", "job.yaml")
        self.until("the first", lambda: self.has("t0"))
        with fake_gpu.changed() as shown:
            shown["devices"][1]["lost"] = True
        self.until("the reason", lambda: any("GPU 1 does not answer" in reason for reason in self.reasons()))
        self.go()
        self.until("the end of the first", lambda: self.rows()["t0"]["word"] == "FINISHED")
        self.assertEqual(self.rows()["t1"]["word"], "WAITING")
        with fake_gpu.changed() as shown:
            shown["devices"][1]["lost"] = False
        _, errors = self.end_of(yard, expect=0)
        self.assertEqual(errors.count("GPU 1 (GPU-bbbb) does not answer: nothing more is given of it until it has answered "
                                      "for 10 seconds"), 1)

    def test_tasks_that_died_with_their_card_are_tried_again_on_another_once(self):
        self.write("falls.py", FALLS)
        self.show([self.card(f"GPU-{letter * 4}", number, lost=False) for number, letter in enumerate("abc")])
        self.sweep("gpu-memory: 3GB", 2, "/usr/bin/python3 falls.py")
        yard = self.start("run", "job.yaml", "--set", "gpu-priority.strategy=PCI")
        for card in range(2):
            self.until(f"both on card {card}", lambda: all(self.has_file(f"t{n}", f"has.{card + 1}") for n in range(2)))
            with fake_gpu.changed() as shown:
                shown["devices"][card]["lost"] = True
        _, errors = self.end_of(yard, expect=1)
        self.assertIn("try 2 of 2: GPU 0 did not answer while it ran: RuntimeError: CUDA error: unspecified launch "
                      "failure", errors)
        rows = self.rows()
        self.assertEqual({name: (row["word"], row["attempt"], row["message"]) for name, row in rows.items()},
                         dict.fromkeys(("t0", "t1"), ("LOST", 2, "its cards died twice: GPU 1 did not answer while "
                         "it ran: RuntimeError: CUDA error: unspecified launch failure")))

    def has_file(self, task, name):
        return (self.directory / "runs/job/g" / task / name).exists()

    def second_card(self, lost):
        with fake_gpu.changed() as shown:
            shown["devices"][1]["lost"] = lost

    def test_a_card_that_blinks_every_five_seconds_is_given_to_nobody_and_nothing_is_lost_for_good(self):
        self.write("falls.py", FALLS)
        self.show([self.card(f"GPU-{letter * 4}", number, lost=False) for number, letter in enumerate("ab")])
        self.sweep("gpus: 1", 3, "/usr/bin/python3 falls.py go go.t{n}")
        yard = self.start("run", "job.yaml", "--set", "gpu-priority.strategy=PCI")
        self.until("one on each", lambda: self.has_file("t0", "has.1") and self.has_file("t1", "has.1"))
        # Each time that it answers there is one who waits for a card, and whom it would kill.
        for blink in range(3):
            for lost in (True, False):
                self.second_card(lost)
                moment = time.monotonic()
                self.until("a while", lambda: time.monotonic() > moment + 2.5)
                if (blink, lost) == (0, True):
                    self.until("the reason", lambda: any("GPU 1 does not answer" in reason for reason in self.reasons()))
                if (blink, lost) == (1, True):  # The one that was lost has the other card next.
                    self.write("go.t0", "")
                    self.until("the other card", lambda: self.has_file("t1", "has.2"))
        self.until("the last, on the card that has become steady", lambda: self.has_file("t2", "has.1"))
        self.assertGreaterEqual(float(self.text("runs/job/g/t2/has.1")) - moment, 10)
        self.go()
        _, errors = self.end_of(yard, expect=0)
        self.assertIn("try 2 of 2: GPU 1 did not answer while it ran: RuntimeError: CUDA error: unspecified launch "
                      "failure", errors)
        self.assertEqual({name: (row["word"], row["attempt"], row["gpus"]) for name, row in self.rows().items()},
                         {"t0": ("FINISHED", 1, ["0"]), "t1": ("FINISHED", 2, ["0"]), "t2": ("FINISHED", 1, ["1"])})
        with sqlite3.connect(self.directory / "runs/job/journal.db") as journal:
            self.assertEqual(journal.execute("SELECT t.id, a.attempt, a.failure FROM attempts a "
                                             "JOIN tasks t ON t.number = a.task").fetchall(), [("t1", 1, 6)])

    def test_a_card_that_does_not_answer_at_the_start_is_told_of_and_used_when_it_does(self):
        self.show([self.card("GPU-aaaa", 1), self.card("GPU-bbbb", 2, lost=True)])
        self.assertIn("GPU 1: DOES NOT ANSWER, though the driver counts it\n", self.trainyard("devices", expect=0).stdout)
        self.sweep("gpus: 1", 2, "/usr/bin/python3 task.py 0 go")
        self.assertIn("GPU 1 DOES NOT ANSWER", self.trainyard("run", "job.yaml", "--dry-run", expect=0).stdout)
        yard = self.start("run", "job.yaml")
        self.until("the reason", lambda: any("GPU 1 does not answer" in reason for reason in self.reasons())
                   if self.has("t0") else False)
        with fake_gpu.changed() as shown:
            shown["devices"][1]["lost"] = False
        self.until("the second", lambda: self.has("t1"))
        self.go()
        _, errors = self.end_of(yard, expect=0)
        self.assertIn("machine: GPU 1 DOES NOT ANSWER though the driver counts it: it is used once it does", errors)
        self.assertIn("GPU 1 (GPU-bbbb) answers now: tasks may have it when it has for 10.0 s", errors)
        self.assertEqual((self.rows()["t1"]["gpus"], self.text("runs/job/g/t1/stdout.log")), (["1"], "GPU-bbbb\n"))
        with sqlite3.connect(self.directory / "runs/job/journal.db") as journal:
            self.assertEqual(journal.execute("SELECT label, uuid, memory FROM gpus ORDER BY position").fetchall(),
                             [("0", "GPU-aaaa", 8 * GB), ("1", "GPU-bbbb", 8 * GB)])

    def test_a_driver_that_crashes_takes_nothing_with_it(self):
        self.sweep("gpu-memory: 3GB", 5, "/usr/bin/python3 task.py 3 go")
        yard = self.start("run", "job.yaml")
        self.until("four tasks", lambda: sum(self.has(f"t{n}") for n in range(5)) == 4)
        with fake_gpu.changed() as shown:
            shown["devices"][0]["crash"] = True
        self.until("the reason", lambda: any("GPU 0 does not answer (or only just does again), GPU 1 does not answer" in reason
                                             for reason in self.reasons()))
        self.go()
        self.until("the end of those that ran", lambda: sum(
            row["word"] == "FINISHED" for row in self.rows().values()) == 4)
        # Another process asks it, and the last one is given its card.
        with fake_gpu.changed() as shown:
            shown["devices"][0]["crash"] = False
        self.end_of(yard, expect=0)
        self.assertEqual([row["word"] for row in self.rows().values()], 5 * ["FINISHED"])
