#!/usr/bin/python3
"""scripts/check, with a stand-in of scripts/setup that installs nothing, so that no step begins."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Check(unittest.TestCase):
    def test_installs_only_what_a_step_needs(self):
        place = pathlib.Path(tempfile.mkdtemp(prefix="trainyard-check-"))
        self.addCleanup(shutil.rmtree, place)
        (place / "scripts").mkdir()
        shutil.copy(ROOT / "Makefile", place)
        shutil.copy(ROOT / "scripts/check", place / "scripts")
        setup = place / "scripts/setup"
        setup.write_text('#!/bin/sh\necho "$*" >> "$0.log"\nexit 1\n')
        setup.chmod(0o755)
        log = place / "scripts/setup.log"
        for step, needs in (("layers", ""), ("format", "format"), ("test", "check"), ("asan", "check"), ("tsan", "check"),
                            ("lint", "check"), ("sim", "build"), ("demo", "build"), ("shipped", "build"), ("fresh", "check")):
            with self.subTest(step):
                log.write_text("")
                done = subprocess.run([place / "scripts/check"], env={**os.environ, "STEP": step}, capture_output=True, text=True)
                self.assertEqual((done.returncode, log.read_text().strip()), (1, needs), done)
                self.assertRegex(done.stdout, rf"\n{step} +\d+ s  FAILED\n$")


if __name__ == "__main__":
    unittest.main()
