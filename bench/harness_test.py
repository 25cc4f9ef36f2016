"""The harness itself: what it measures with must be right before what it measures can be."""
import json
import os
import pathlib
import signal
import sys
import tempfile
import time
import unittest

import harness
import rows


class HarnessTest(unittest.TestCase):
    def setUp(self):
        self.shop = harness.Workshop("/bin/true", "/bin", tiny=False)
        self.addCleanup(self.shop.__exit__)

    def test_counts_the_cpu_of_a_process_that_detached_itself(self):
        burn = f"{sys.executable} -c 'import time\nwhile time.process_time() < 0.3: pass'"
        cost = self.shop.measure(["/bin/sh", "-c", f"setsid {burn} & exit 0"], "detached")
        self.assertGreater(cost.cpu, 0.3)
        self.assertLess(cost.cpu, 3)

    def test_says_what_a_failed_command_said(self):
        with self.assertRaisesRegex(harness.BenchmarkError, "name ended with 3: out of paper"):
            self.shop.measure(["/bin/sh", "-c", "echo out of paper >&2; exit 3"], "name")

    def test_gives_up_on_a_command_that_takes_too_long(self):
        with self.assertRaisesRegex(harness.BenchmarkError, "more than 0.1 s"):
            self.shop.measure(["/bin/sleep", "600"], "sleep", seconds_max=0.1)

    def test_leaves_no_process_and_no_directory_behind(self):
        shop = harness.Workshop("/bin/true", "/bin")
        with shop:
            place = shop.fresh("place").parent
            process = shop.start(["/bin/sh", "-c", "setsid sleep 600 & sleep 600"], "sleepers")
            harness.wait_until(lambda: len(harness.descendants(process.pid)) == 2, "two sleepers")
            started = list(harness.descendants(process.pid))
        self.assertFalse(place.exists())
        self.assertFalse([pid for pid in started if pathlib.Path(f"/proc/{pid}").exists()])

    def test_begins_each_round_with_another_contestant(self):
        order = []

        def contestant(name):
            def run():
                order.append(name)
                return harness.Cost(wall=len(order), cpu=0.0)
            return run

        costs = harness.interleaved(2, {"a": contestant("a"), "absent": None, "b": contestant("b")})
        self.assertEqual(order, ["a", "b", "b", "a"])
        self.assertEqual([cost.wall for cost in costs["a"]], [1, 4])
        self.assertEqual(costs["absent"], [])
        self.assertIsNone(harness.median_wall(costs["absent"]))

    def test_never_gives_a_directory_twice(self):
        self.assertNotEqual(self.shop.fresh("x"), self.shop.fresh("x"))

    def test_ends_when_it_is_interrupted_while_a_command_runs(self):
        signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        signal.setitimer(signal.ITIMER_REAL, harness.PAUSE_SECONDS + 0.1)
        with self.assertRaises(KeyboardInterrupt):
            self.shop.measure(["/bin/sleep", "600"], "sleep")
        self.shop.__exit__()
        self.assertEqual(harness.descendants(os.getpid()), {})


class RowsTest(unittest.TestCase):
    def test_judges_by_the_ratio(self):
        self.assertTrue(rows.at_most("g", "f", 1.6, "s", "peer", 1.0, 1.6).holds)
        self.assertFalse(rows.at_most("g", "f", 1.7, "s", "peer", 1.0, 1.6).holds)
        self.assertTrue(rows.at_least("g", "f", 1.0, "s", "peer", 6.0, 6).holds)
        self.assertFalse(rows.at_least("g", "f", 1.0, "s", "peer", 5.9, 6).holds)
        self.assertTrue(rows.within("g", "f", 0.9, "ms", 0.9).holds)
        self.assertFalse(rows.within("g", "f", 0.91, "ms", 0.9).holds)

    def test_says_that_a_peer_is_not_installed_and_judges_nothing(self):
        row = rows.at_least("g", "f", 1.0, "s", "GNU parallel", None, 6)
        self.assertIsNone(row.holds)
        self.assertEqual(rows.cells(row), ["g", "f", "1.00 s", "GNU parallel (not here)", "",
                                           "at least 6 x less", "?"])

    def test_prints_one_line_a_row(self):
        text = rows.table([rows.at_most("yard", "1,000 x true", 0.5, "s", "raw", 0.25, 1.6),
                           rows.told("yard", "peak", 12.3, "MiB")])
        self.assertEqual(text.splitlines(), [
            "group  figure        ours      peer          ratio  goal           holds",
            "-" * 72,
            "yard   1,000 x true  0.500 s   0.250 s, raw  2.00   at most 1.6 x  NO",
            "yard   peak          12.3 MiB"])

    def test_keeps_the_rows_of_groups_that_were_not_measured_now(self):
        with tempfile.TemporaryDirectory() as place:
            path = pathlib.Path(place) / "results.json"
            rows.write(path, [rows.told("yard", "old", 1.0, "s"), rows.told("gpu", "a", 2.0, "s")],
                       ["yard", "gpu"])
            rows.write(path, [rows.told("yard", "new", 3.0, "s")], ["yard"])
            written = json.loads(path.read_text())
        self.assertEqual(sorted(row["figure"] for row in written["rows"]), ["a", "new"])
        self.assertEqual(sorted(written["measured"]), ["gpu", "yard"])


if __name__ == "__main__":
    unittest.main()
