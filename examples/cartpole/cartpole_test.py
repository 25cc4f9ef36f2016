"""The program as a user runs it: by itself, and with two seeds as tasks of a yard, whose report draws
what they came to.

usage: cartpole_test.py CARTPOLE TRAINYARD
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

TRAINYARD = pathlib.Path(sys.argv.pop()).resolve()
CARTPOLE = pathlib.Path(sys.argv.pop()).resolve()


class CartPole(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="trainyard-cartpole-")
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        (self.directory / "cartpole").symlink_to(CARTPOLE)  # As the pages run it: in its directory.

    def cartpole(self, *words, expect=0):
        done = subprocess.run(["./cartpole", *words], cwd=self.directory, capture_output=True, text=True,
                              timeout=240)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done.stdout

    def test_shows_returns_and_the_time_of_its_steps(self):
        text = self.cartpole("--seed", "7", "--async")
        self.assertIn("finished: it keeps the pole up", text)
        self.assertRegex(text, r"step +\d+  return +\d+\.\d  loss ")
        self.assertRegex(text, r"learn +\d+ ")
        self.assertTrue((self.directory / "cartpole-run/best.json").exists())

    def test_says_that_it_did_not_reach_what_was_asked(self):
        self.assertIn("env_step is", self.cartpole("--steps", "2000", expect=1))

    def test_runs_as_tasks_of_a_yard_that_draws_them(self):
        text = self.cartpole("--yard", "2", "--steps", "200000", "--enough", "501", "--directory", "runs")
        results = [json.loads(line.split(" ", 1)[1]) for line in text.splitlines() if line.startswith("seed-")]
        self.assertEqual(len(results), 2, text)
        self.assertGreater(max(result["mean_return"] for result in results), 20)
        page = (self.directory / "runs/reports/cartpole.html").read_text()
        drawn = re.findall(r'<text class="key"[^>]*>([^<]*)', page)
        self.assertEqual({"return", "loss", "collect ms", "learn ms"} - set(drawn), set(), drawn)
        self.assertTrue((self.directory / "runs/cartpole/seed-0/checkpoints/final.json").exists())

    def test_learns_the_same_as_four_workers_that_hear_each_other(self):
        text = self.cartpole("--together", "--seed", "7")
        self.assertIn("finished: it keeps the pole up", text)
        self.assertRegex(text, r"exchange +\d+ ")
        self.assertRegex(text, r"(?m)^\d+ steps of the environment in .* s: \d+ a second$")
        self.assertRegex(text, r"(?m)^single process: \d+ steps of the environment in .* s: \d+ a second; "
                               r"the workers take \d+\.\d\d times as many a second$")
        saved = json.loads((self.directory / "cartpole-run/best.json").read_text())
        self.assertGreaterEqual(saved["kept"]["mean_return"], 475)

    def test_has_collectors_in_python_too(self):
        here = pathlib.Path(__file__).resolve().parent
        workers = (f'case "$TRAINYARD_WORKER" in *\'"collector"\'*) exec /usr/bin/python3 {here}/collector.py;; '
                   f'*) exec ./cartpole --worker --seed 7;; esac')
        done = subprocess.run([TRAINYARD, "parallel", "-n", "4", "--roles", "learner,collector,collector,evaluator", "--", "sh", "-c",
                               workers], cwd=self.directory, capture_output=True, text=True, timeout=240,
                              env={**os.environ, "PYTHONPATH": str(here.parent.parent / "python")})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("[0] finished: it keeps the pole up", done.stderr)


if __name__ == "__main__":
    unittest.main()
