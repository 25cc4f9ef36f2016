#!/usr/bin/python3
"""scripts/check, scripts/ci and the verbs of their steps, with stand-ins of scripts/setup and of the programs of steps."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/e2e"))
from terminal import Terminal  # noqa: E402
from yard import wait_until  # noqa: E402


class Check(unittest.TestCase):
    def setUp(self):
        self.place = pathlib.Path(tempfile.mkdtemp(prefix="trainyard-check-"))
        self.addCleanup(shutil.rmtree, self.place)
        (self.place / "scripts").mkdir()
        shutil.copy(ROOT / "Makefile", self.place)
        for script in ("check", "ci", "in_group"):
            shutil.copy(ROOT / "scripts" / script, self.place / "scripts")
        self.log = self.place / "scripts/setup.log"
        self.write("scripts/setup", 'echo "$*" >> "$0.log"\nexit 1')

    def write(self, name, script):
        path = self.place / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def run_command(self, *words, **variables):
        return subprocess.run(words, cwd=self.place, env={**os.environ, **variables}, capture_output=True, text=True)

    def started(self, *words):
        """A command that runs the step sim; a signal that is ignored where this runs, as by nohup, is not ignored there."""
        def heed():
            for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
        return subprocess.Popen(words, cwd=self.place, env={**os.environ, "STEP": "sim"}, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, preexec_fn=heed)

    def test_installs_only_what_a_step_needs(self):
        for step, needs in (("layers", ""), ("format", "format"), ("test", "check"), ("asan", "check"), ("tsan", "check"),
                            ("lint", "check"), ("sim", "build"), ("chaos", "build"), ("demo", "build"), ("shipped", "build"), ("fresh", "check")):
            with self.subTest(step):
                self.log.write_text("")
                done = self.run_command("scripts/check", STEP=step)
                self.assertEqual((done.returncode, self.log.read_text().strip()), (1, needs), done)
                self.assertRegex(done.stdout, rf"\n{step} +\d+ s  FAILED\n$")

    def test_runs_the_steps_that_are_named_or_all(self):
        for words, steps in ((["make", "check", "STEP=sim demo"], 2), (["make", "check"], 11), (["scripts/check"], 11)):
            with self.subTest(words):
                done = self.run_command(*words)
                self.assertEqual(len(re.findall(r"^== ", done.stdout, re.MULTILINE)), steps, done)

    def test_goes_on_after_a_step_that_fails_and_fails_itself(self):
        self.write("scripts/setup", "")
        self.write("scripts/demo", "exit 3")
        self.write("scripts/chaos", "")
        done = self.run_command("scripts/check", STEP="demo chaos")
        self.assertEqual(done.returncode, 1, done)
        self.assertRegex(done.stdout, r"\ndemo +\d+ s  FAILED\nchaos +\d+ s  ok\n$")

    def test_gives_the_step_chaos_the_number_of_seeds_where_one_is_given(self):
        self.write("scripts/setup", "")
        self.write("scripts/chaos", 'echo "seeds: ${SEEDS-none}"')
        for words, seeds in ((["SEEDS=7"], "7"), ([], "none")):
            with self.subTest(words):
                self.assertIn(f"seeds: {seeds}\n", self.run_command("make", "check", "STEP=chaos", *words).stdout)

    def test_refuses_a_blank_or_unknown_step_and_lists_the_steps(self):
        for words, variables in ((["make", "check", "STEP= "], {}), (["make", "check"], {"STEP": " "}), (["scripts/check"], {"STEP": "\t"})):
            with self.subTest(words):
                done = self.run_command(*words, **variables)
                self.assertEqual((done.returncode, self.log.exists()), (2, False), done)
                self.assertIn("check: STEP must name a step (layers format test ", done.stderr)
        for step in ("asna", "*"):
            self.assertIn(f"check: '{step}' is not a step (layers format ", self.run_command("scripts/check", STEP=f"lint {step}").stderr)

    def test_refuses_a_step_that_is_named_twice(self):
        done = self.run_command("scripts/check", STEP="lint sim lint")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (2, "", "check: the step 'lint' is named twice\n"))

    def test_ends_the_process_group_of_its_step_when_it_is_ended(self):
        for number, words in ((signal.SIGTERM, ["make", "check"]), (signal.SIGHUP, ["scripts/check"]), (signal.SIGINT, ["scripts/check"]),
                              (signal.SIGTERM, ["scripts/ci"])):
            with self.subTest(number=number, words=words):
                self.write("scripts/setup", "")
                waits = "sleep 1000 &\necho $$ $! > pids.new\nmv pids.new pids\nwait"
                self.write("scripts/sim", waits)  # The step of scripts/check.
                (self.place / "tools").mkdir(exist_ok=True)
                (self.place / "tools/layers.py").write_text(f"import os\nos.execv('/bin/sh', ['sh', '-c', {waits!r}])\n")  # And of scripts/ci.
                check = self.started(*words)
                wait_until("the step", (self.place / "pids").exists)
                os.kill(check.pid, number)
                output = check.communicate(timeout=60)[0].decode()
                self.assertEqual(check.returncode, -number if words[0] == "make" else 128 + number, output)
                for pid in (self.place / "pids").read_text().split():
                    wait_until("the end of the step", lambda: not pathlib.Path(f"/proc/{pid}").exists())
                (self.place / "pids").unlink()

    def test_kills_what_of_its_step_does_not_end(self):
        self.write("scripts/setup", "")
        self.write("scripts/sim", "trap '' TERM\necho $$ > pid.new\nmv pid.new pid\nwhile :; do sleep 0.1; done")
        check = self.started("scripts/check")
        wait_until("the step", (self.place / "pid").exists)
        check.terminate()
        check.communicate(timeout=60)
        self.assertEqual(check.returncode, 143)
        wait_until("the end of the step", lambda: not pathlib.Path(f"/proc/{(self.place / 'pid').read_text().strip()}").exists())

    def test_formats_what_is_tracked_and_what_git_does_not_know_yet_but_not_what_is_deleted(self):
        def git(*words):
            subprocess.run(["git", *words], cwd=self.place, check=True, capture_output=True)
        self.write("scripts/setup", "")
        self.write("bin/clang-format-19", 'for word; do case $word in -*) ;; *) echo "$word" >> formatted ;; esac; done')
        git("init")
        (self.place / ".gitignore").write_text("build/\n")
        for name in ("src/tracked.h", "src/new one.cc", "src/new.h", "src/new.py", "build/made.cc"):
            (self.place / name).parent.mkdir(exist_ok=True)
            (self.place / name).touch()
        (self.place / "src/deleted.h").touch()
        git("add", "src/tracked.h", "src/deleted.h")
        (self.place / "src/deleted.h").unlink()
        for verb in ("fmt", "fmt-check"):
            with self.subTest(verb):
                done = self.run_command("make", verb, PATH=f"{self.place}/bin:{os.environ['PATH']}")
                self.assertEqual(done.returncode, 0, done)
                self.assertEqual(sorted((self.place / "formatted").read_text().splitlines()), ["src/new one.cc", "src/new.h", "src/tracked.h"])
                (self.place / "formatted").unlink()

    def test_does_not_take_an_empty_list_of_files_for_good_format(self):
        self.write("scripts/setup", "")
        self.write("bin/clang-format-19", "touch formatted")
        subprocess.run(["git", "init"], cwd=self.place, check=True, capture_output=True)
        for verb in ("fmt", "fmt-check"):
            with self.subTest(verb):
                done = self.run_command("make", verb, PATH=f"{self.place}/bin:{os.environ['PATH']}")
                self.assertNotEqual(done.returncode, 0, done)
                self.assertIn("git lists no .h or .cc file here: format a clone\n", done.stderr)
                self.assertFalse((self.place / "formatted").exists())

    def test_refuses_a_terminal_that_stops_what_writes_in_the_background(self):
        for setting, shown in (("tostop", "{}: the terminal stops background commands that write to it: run 'stty -tostop' first"),
                               ("-tostop", "== layers")):
            for script in ("check", "ci"):
                with self.subTest(setting, script=script):
                    self.write("scripts/setup", "")
                    terminal = Terminal(["sh", "-c", f"stty {setting}; STEP=layers scripts/{script} </dev/null; echo code $?"], self.place, dict(os.environ))
                    self.addCleanup(terminal.close)
                    terminal.until_shown(shown.format(script))
                    terminal.until_shown(f"code {2 if setting == 'tostop' else ''}")


if __name__ == "__main__":
    unittest.main()
