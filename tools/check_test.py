#!/usr/bin/python3
"""scripts/check, with a stand-in of scripts/setup that installs nothing, so that no step begins."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Check(unittest.TestCase):
    def setUp(self):
        self.place = pathlib.Path(tempfile.mkdtemp(prefix="trainyard-check-"))
        self.addCleanup(shutil.rmtree, self.place)
        (self.place / "scripts").mkdir()
        shutil.copy(ROOT / "Makefile", self.place)
        shutil.copy(ROOT / "scripts/check", self.place / "scripts")
        self.log = self.place / "scripts/setup.log"
        self.write("scripts/setup", 'echo "$*" >> "$0.log"\nexit 1')

    def write(self, name, script):
        path = self.place / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def run_command(self, *words, **variables):
        environment = {name: value for name, value in os.environ.items() if name not in ("STEP", "MAKEFLAGS", "MAKEOVERRIDES", "MAKELEVEL")}
        return subprocess.run(words, cwd=self.place, env={**environment, **variables}, capture_output=True, text=True)

    def test_installs_only_what_a_step_needs(self):
        for step, needs in (("layers", ""), ("format", "format"), ("test", "check"), ("asan", "check"), ("tsan", "check"),
                            ("lint", "check"), ("sim", "build"), ("demo", "build"), ("shipped", "build"), ("fresh", "check")):
            with self.subTest(step):
                self.log.write_text("")
                done = self.run_command("scripts/check", STEP=step)
                self.assertEqual((done.returncode, self.log.read_text().strip()), (1, needs), done)
                self.assertRegex(done.stdout, rf"\n{step} +\d+ s  FAILED\n$")

    def test_runs_the_steps_that_are_named_or_all(self):
        for words, steps in ((["make", "check", "STEP=sim demo"], 2), (["make", "check"], 10), (["scripts/check"], 10)):
            with self.subTest(words):
                done = self.run_command(*words)
                self.assertEqual(len(re.findall(r"^== ", done.stdout, re.MULTILINE)), steps, done)

    def test_refuses_a_blank_or_unknown_step_and_lists_the_steps(self):
        for words, variables in ((["make", "check", "STEP= "], {}), (["make", "check"], {"STEP": " "}), (["scripts/check"], {"STEP": "\t"})):
            with self.subTest(words):
                done = self.run_command(*words, **variables)
                self.assertEqual((done.returncode, self.log.exists()), (2, False), done)
                self.assertIn("check: STEP must name a step (layers format test ", done.stderr)
        self.assertIn("check: 'asna' is not a step (layers format ", self.run_command("scripts/check", STEP="lint asna").stderr)


if __name__ == "__main__":
    unittest.main()
