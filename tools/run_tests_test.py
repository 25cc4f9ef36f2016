#!/usr/bin/python3
"""tools/run_tests.py, with a build directory of a few made-up tests."""
import contextlib
import io
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import run_tests


class RunTests(unittest.TestCase):
    def setUp(self):
        self.build = pathlib.Path(tempfile.mkdtemp(prefix="trainyard-run-tests-")).resolve()
        self.addCleanup(shutil.rmtree, self.build)
        self.tests = ""
        self.add("unit/passes", "true")
        self.add("process/passes", "true", labels="process")

    def add(self, name, script, labels="", keys=""):
        """A test whose script finds the number of its attempt in $attempt."""
        count = f"echo >> '{name.replace('/', '+')}'; attempt=$(wc -l < '{name.replace('/', '+')}')"
        path = self.build / f"{name.replace('/', '+')}.sh"
        path.write_text(f"{count}\n{script}\n")
        self.tests += (f'add_test([=[{name}]=] "/bin/sh" [=[{path}]=])\n'
                       f'set_tests_properties([=[{name}]=] PROPERTIES LABELS "{labels}" {keys})\n')

    def attempts(self, name):
        path = self.build / name.replace("/", "+")
        return len(path.read_text()) if path.exists() else 0

    def outcome(self, *words):
        """The exit code and the lines that run_tests itself has printed after the tests."""
        (self.build / "CTestTestfile.cmake").write_text(self.tests)
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            try:
                code = run_tests.main([str(self.build), *words])
            except SystemExit as end:
                code = end.code
        return code, output.getvalue().rpartition("\n\n")[2].splitlines()

    def test_passes_where_all_tests_pass(self):
        self.assertEqual(self.outcome(), (0, ["2 passed, 0 failed"]))

    def test_gives_a_unit_test_one_attempt(self):
        self.add("unit/flaky", "[ $attempt = 2 ]")
        self.assertEqual(self.outcome(), (1, ["failed: unit/flaky", "2 passed, 1 failed"]))
        self.assertEqual(self.attempts("unit/flaky"), 1)

    def test_lists_a_test_that_needed_another_attempt_as_flaky(self):
        self.add("process/second", "[ $attempt = 2 ]", labels="process")
        self.add("e2e/third", "[ $attempt = 3 ]", labels="e2e")
        self.assertEqual(self.outcome(), (0, ["flaky: e2e/third (3 of 3)", "flaky: process/second (2 of 3)",
                                              "4 passed, 0 failed"]))
        self.assertEqual((self.attempts("process/passes"), self.attempts("process/second")), (1, 2))

    def test_fails_where_a_test_fails_three_times_and_names_it(self):
        self.add("e2e/fails", "false", labels="e2e")
        self.assertEqual(self.outcome(), (1, ["failed: e2e/fails", "2 passed, 1 failed"]))
        self.assertEqual(self.attempts("e2e/fails"), 3)

    def test_repeats_exactly_the_tests_that_failed_whatever_their_names(self):
        self.add("process/A.b+(c)[d]|e", "[ $attempt = 2 ]", labels="process")
        self.add("process/Axb", "true", labels="process")
        self.assertEqual(self.outcome()[0], 0)
        self.assertEqual((self.attempts("process/A.b+(c)[d]|e"), self.attempts("process/Axb")), (2, 1))

    def test_repeats_nothing_where_more_than_25_fail(self):
        for number in range(26):
            self.add(f"process/fails{number:02}", "false", labels="process")
        code, lines = self.outcome()
        self.assertEqual(code, 1)
        self.assertEqual(lines, ["failed: 18 more", *(f"failed: process/fails{number:02}" for number in range(8)),
                                 "2 passed, 26 failed"])
        self.assertEqual(self.attempts("process/fails00"), 1)

    def test_leaves_slow_tests_out_unless_all_are_to_run(self):
        self.add("e2e/slow", "true", labels="e2e;slow")
        self.add("bench/tiny", "true", labels="bench")
        self.assertEqual(self.outcome(), (0, ["2 passed, 0 failed"]))
        self.assertEqual(self.outcome("--all"), (0, ["4 passed, 0 failed"]))

    def test_tells_a_test_that_skips_itself_from_one_whose_program_is_missing(self):
        self.add("process/skips", "exit 77", labels="process", keys="SKIP_RETURN_CODE 77")
        self.tests += 'add_test(unit/missing "/nonexistent")\n'
        self.assertEqual(self.outcome(), (1, ["skipped: process/skips", "failed: unit/missing", "2 passed, 1 failed"]))

    def test_fails_where_a_label_selects_no_test(self):
        self.tests = self.tests.replace("process", "bench")
        self.assertEqual(self.outcome()[0], "run_tests: ctest ran no test of one kind")

    def test_fails_where_a_process_of_the_build_is_left_and_names_it(self):
        run_tests.LEFT_BEHIND_PATIENCE_S = 0
        program = self.build / "left"
        shutil.copy("/bin/sleep", program)
        left = subprocess.Popen([program, "1000"])
        self.addCleanup(left.wait)
        self.addCleanup(left.kill)
        self.assertEqual(self.outcome(), (1, [f"still running: {left.pid}: {program} 1000", "2 passed, 0 failed"]))


if __name__ == "__main__":
    unittest.main()
