#!/usr/bin/python3
"""tools/run_tests.py, with a build directory of a few made-up tests."""
import contextlib
import fcntl
import io
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock

import run_tests

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests/e2e"))
from yard import wait_until  # noqa: E402


class RunTests(unittest.TestCase):
    def setUp(self):
        self.build = pathlib.Path(tempfile.mkdtemp(prefix="trainyard-run-tests-")).resolve()
        self.addCleanup(shutil.rmtree, self.build)
        for name in ("LEFT_BEHIND_PATIENCE_S", "COUNT_EVERY_S"):
            self.addCleanup(setattr, run_tests, name, getattr(run_tests, name))
        run_tests.COUNT_EVERY_S = 1000
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
        (self.build / "CTestTestfile.cmake").write_text(self.tests, errors="surrogateescape")
        output = io.TextIOWrapper(io.BytesIO(), write_through=True)
        with contextlib.redirect_stdout(output):
            try:
                code = run_tests.main([str(self.build), *words])
            except SystemExit as end:
                code = end.code
        return code, output.buffer.getvalue().decode().rpartition("\n\n")[2].splitlines()

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

    def test_ends_as_soon_as_more_than_25_have_failed_and_names_them_within_the_last_ten_lines(self):
        run_tests.COUNT_EVERY_S = 0
        for number in range(26):
            self.add(f"process/fails{number:02}", "false", labels="process")
        self.add("process/waits", "exec sleep 1000", labels="process")
        code, lines = self.outcome("--jobs", "2")
        self.assertEqual((code, lines), (1, ["was running: process/waits", "failed: 18 more",
                                             *(f"failed: process/fails{number:02}" for number in range(8)),
                                             "run_tests: more than 25 tests failed: the others did not run", "2 passed, 26 failed"]))

    def test_runs_no_other_test_where_more_than_25_unit_tests_fail(self):
        for number in range(26):
            self.add(f"unit/fails{number:02}", "false")
        code, lines = self.outcome()
        self.assertEqual((code, lines[-2:]), (1, ["run_tests: more than 25 tests failed: the others did not run", "1 passed, 26 failed"]))
        self.assertEqual(self.attempts("process/passes"), 0)

    def test_leaves_slow_tests_out_unless_all_are_to_run(self):
        self.add("e2e/slow", "true", labels="e2e;slow")
        self.add("bench/tiny", "true", labels="bench")
        self.assertEqual(self.outcome(), (0, ["2 passed, 0 failed"]))
        self.assertEqual(self.outcome("--all"), (0, ["4 passed, 0 failed"]))

    def test_tells_a_test_that_skips_itself_from_one_whose_program_is_missing(self):
        self.add("process/skips", "exit 77", labels="process", keys="SKIP_RETURN_CODE 77")
        self.tests += 'add_test(unit/missing "/nonexistent")\n'
        self.assertEqual(self.outcome(), (1, ["skipped: process/skips", "failed: unit/missing", "2 passed, 1 failed"]))

    def test_fails_where_a_file_or_a_program_runs_no_test_and_names_it(self):
        (self.build / "test_none.py").write_text("import unittest\nprint('x' * 5000)\nclass A(unittest.TestCase): pass\n")
        self.add("e2e/none", f"cd {self.build} && python3 -m unittest -v test_none", labels="e2e")
        self.add("unit/none", "echo '[==========] Running 0 tests from 0 test suites.'")
        (self.build / "a_test[1]_tests.cmake").write_text("set(a_test_TESTS)\n")
        (self.build / "b_test[1]_tests.cmake").write_text("add_test(unit/b b_test)\n")
        self.assertEqual(self.outcome(), (1, ["ran no test: a_test", "ran no test: e2e/none", "ran no test: unit/none",
                                              "2 passed, 3 failed"]))
        self.assertEqual(self.attempts("e2e/none"), 1)

    def test_lists_a_file_that_has_skipped_all_its_tests_as_skipped(self):
        for name, skipped in (("one", 1), ("all", 2), ("module", 2)):
            function = "def setUpModule(): raise unittest.SkipTest('why')" if name == "module" else ""
            (self.build / f"test_{name}.py").write_text(f"""
import unittest
{function}
class A(unittest.TestCase):
    def test_a(self): self.skipTest("why")
    def test_b(self): {skipped} == 1 or self.skipTest("why")
""")
            self.add(f"e2e/{name}", f"cd {self.build} && python3 -m unittest -v test_{name}", labels="e2e")
        self.assertEqual(self.outcome(), (0, ["skipped: e2e/all: why", "skipped: e2e/module: why", "skipped in part: e2e/one: why",
                                              "3 passed, 0 failed"]))

    def test_fails_where_a_label_selects_no_test(self):
        self.tests = self.tests.replace("process", "bench")
        self.assertEqual(self.outcome(), (1, ["run_tests: ctest ran no test of one kind", "1 passed, 0 failed"]))

    def test_fails_where_two_tests_have_one_name(self):
        other = self.build / "other"
        other.mkdir()
        self.tests += "subdirs(other)\n"
        for second in ("unit/passes", "process/passes"):
            with self.subTest(second):
                (other / "CTestTestfile.cmake").write_text(
                    f'add_test({second} "/bin/true")\n'
                    f'set_tests_properties({second} PROPERTIES LABELS "{second.split("/")[0].replace("unit", "")}")\n')
                code, lines = self.outcome()
                self.assertEqual((code, lines[-2]), (1, f"run_tests: two tests are called '{second}'"))

    def test_refuses_a_test_that_could_not_run_again_by_its_name_and_within_a_time(self):
        there, odd = self.tests, "the name of a test must be printable UTF-8, and '{}' is not"
        for name, keys, why in (("a\tb", "", odd.format(r"a\tb")), ("a\nb", "", odd.format(r"a\nb")), ("a\x1b[2Jb", "", odd.format(r"a\x1b[2Jb")),
                                ("a\udcffb", "", odd.format(r"a\ufffdb")), ("a\u202eb", "", odd.format(r"a\u202eb")),
                                ("a", "TIMEOUT 0", "the test 'a' has no limit: TIMEOUT must be at least 1 s"),
                                ("a", "TIMEOUT -1", "the test 'a' has no limit: TIMEOUT must be at least 1 s"),
                                ("a", "FIXTURES_REQUIRED b", "the test 'a' has FIXTURES_REQUIRED: its fixtures would run again, too")):
            with self.subTest(name=name, keys=keys):
                self.tests = (f'{there}add_test([=[{name}]=] "/bin/true")\n'
                              f'set_tests_properties([=[{name}]=] PROPERTIES LABELS slow {keys})\n')
                code, lines = self.outcome()
                self.assertEqual((code, lines[-2:]), (1, [f"run_tests: {why}", "0 passed, 0 failed"]))
        self.tests = "add_test(\n"
        code, lines = self.outcome()
        self.assertEqual((code, lines[-1]), (1, "0 passed, 0 failed"))
        self.assertRegex(lines[-2], "^run_tests: ctest cannot list the tests: .*Parse error")
        self.assertEqual(self.attempts("unit/passes"), 0)

    def test_takes_a_name_of_any_printable_characters_and_a_limit_of_its_own(self):
        self.add("process/\u00e4\u4f60 \"$x\" \\ ; #{1}", "[ $attempt = 2 ]", labels="process", keys="TIMEOUT 60")
        self.assertEqual(self.outcome()[1][-1], "3 passed, 0 failed")

    def test_does_not_take_a_skip_after_a_failure_for_a_pass(self):
        self.add("process/skips", "[ $attempt = 1 ] && exit 1; exit 77", labels="process", keys="SKIP_RETURN_CODE 77")
        self.assertEqual(self.outcome()[1][-2:], ["failed: process/skips", "2 passed, 1 failed"])

    def leaves(self, program, wrapper="setsid"):
        """A test's command, which ends when it has become that program in the background."""
        return (f"{wrapper} {program} 2000 > /dev/null 2>&1 & until [ $(readlink /proc/$!/exe) = {program} ]; do :; done; "
                f"echo $! > {self.build}/pid.new; mv {self.build}/pid.new {self.build}/pid")

    def test_kills_what_a_test_that_hung_has_left_before_it_is_repeated(self):
        run_tests.LEFT_BEHIND_PATIENCE_S = 0
        program = self.build / "left"
        shutil.copy("/bin/sleep", program)
        self.add("process/hangs", f"[ $attempt = 2 ] && exit 0; (setsid {program} 1000 > /dev/null 2>&1 &); exec sleep 1000", labels="process",
                 keys="TIMEOUT 1")
        code, lines = self.outcome()
        self.assertEqual((code, lines[0], lines[-1]), (0, "flaky: process/hangs (2 of 3)", "3 passed, 0 failed"))
        self.assertRegex(lines[1], rf"^killed: \d+: {program} 1000$")

    def test_names_and_kills_what_was_left_where_a_test_failed(self):
        run_tests.LEFT_BEHIND_PATIENCE_S = 0
        program = self.build / "left"
        shutil.copy("/bin/sleep", program)
        self.add("process/flaky", "[ $attempt = 2 ]", labels="process")
        self.add("process/leaves", self.leaves(program), labels="process")
        code, lines = self.outcome()
        left = (self.build / "pid").read_text().strip()
        self.assertEqual((code, lines), (0, ["flaky: process/flaky (2 of 3)", f"killed: {left}: {program} 2000", "4 passed, 0 failed"]))
        wait_until("its end", lambda: not pathlib.Path(f"/proc/{left}").exists())

    def test_fails_where_a_test_that_passed_has_left_a_process_and_another_was_flaky(self):
        run_tests.LEFT_BEHIND_PATIENCE_S = 0
        program = self.build / "left"
        shutil.copy("/bin/sleep", program)
        self.add("e2e/flaky", "[ $attempt = 2 ]", labels="e2e")
        self.add("e2e/leaves", self.leaves(program), labels="e2e", keys="ENVIRONMENT RUN_TESTS_NAME=e2e/leaves")
        self.assertEqual(self.outcome(), (1, ["flaky: e2e/flaky (2 of 3)", f"left by a test that passed: e2e/leaves: {program} 2000",
                                              "4 passed, 0 failed"]))

    def test_kills_what_a_flaky_test_has_left(self):
        run_tests.LEFT_BEHIND_PATIENCE_S = 0
        program = self.build / "left"
        shutil.copy("/bin/sleep", program)
        self.add("e2e/leaves", f"[ $attempt = 2 ] && exit; {self.leaves(program)}; false", labels="e2e", keys="ENVIRONMENT RUN_TESTS_NAME=e2e/leaves")
        code, lines = self.outcome()
        left = (self.build / "pid").read_text().strip()
        self.assertEqual((code, lines), (0, ["flaky: e2e/leaves (2 of 3)", f"killed: {left}: {program} 2000", "3 passed, 0 failed"]))

    def test_kills_no_program_of_the_build_that_somebody_else_has_started(self):
        run_tests.LEFT_BEHIND_PATIENCE_S = 0
        program = self.build / "program"
        shutil.copy("/bin/sleep", program)
        others = []
        self.add("process/flaky", f"until test -e {self.build}/go; do sleep 0.01; done; [ $attempt = 2 ]", labels="process")

        def start():
            wait_until("the test", lambda: self.attempts("process/flaky"))
            others.append(subprocess.Popen([program, "1000"], env={**os.environ, run_tests.MARK[0]: "1.1"}))
            (self.build / "go").touch()
        thread = threading.Thread(target=start)
        thread.start()
        code, lines = self.outcome()
        thread.join()
        self.addCleanup(others[0].wait)
        self.addCleanup(others[0].kill)
        self.assertEqual((code, lines), (1, ["flaky: process/flaky (2 of 3)", f"still running: {others[0].pid}: {program} 1000",
                                             "3 passed, 0 failed"]))
        self.assertIsNone(others[0].poll())

    def test_says_why_a_test_was_skipped_in_whole_or_in_part(self):
        self.add("process/skips", "echo '/a/b_test.cc:7: Skipped\nno mounts\n'; exit 77", labels="process", keys="SKIP_RETURN_CODE 77")
        self.add("e2e/part", "echo \"test_a (m.C.test_a) ... skipped 'no namespace'\ntest_b (m.C.test_b) ... ok\"", labels="e2e")
        self.assertEqual(self.outcome(), (0, ["skipped in part: e2e/part: no namespace", "skipped: process/skips: no mounts",
                                              "3 passed, 0 failed"]))

    def test_says_why_a_test_that_can_have_no_mount_namespace_was_skipped(self):
        (self.build / "unshare").write_text("#!/bin/sh\necho 'unshare: not permitted' >&2\nexit 1\n")
        (self.build / "unshare").chmod(0o755)
        (self.build / "test_mounts.py").write_text("""
import os, unittest
from yard import own_mounts
os.environ["PATH"] = os.getcwd()
class A(unittest.TestCase):
    def test_a(self): own_mounts()
""")
        self.add("e2e/mounts", f"cd {self.build} && PYTHONPATH={sys.path[0]} python3 -m unittest -v test_mounts", labels="e2e")
        self.assertEqual(self.outcome(), (0, ["skipped: e2e/mounts: no mount namespace can be made here: unshare: not permitted",
                                              "2 passed, 0 failed"]))

    def test_fails_where_every_test_skips_itself(self):
        self.tests = ""
        self.add("unit/skips", "exit 77", keys="SKIP_RETURN_CODE 77")
        self.add("process/skips", "exit 77", labels="process", keys="SKIP_RETURN_CODE 77")
        self.assertEqual(self.outcome(), (1, ["skipped: process/skips", "skipped: unit/skips", "run_tests: no test has passed",
                                              "0 passed, 0 failed"]))

    def test_gives_tests_no_settings_of_the_developer(self):
        self.add("unit/environment", 'env > there; umask > mask; git config --list --show-origin > git')
        home = self.build / "home"
        home.mkdir()
        (home / ".gitconfig").write_text("[commit]\ngpgsign = true\n")
        own = dict.fromkeys(("OMP_NUM_THREADS", "SLURM_JOB_ID", "TRAINYARD_RESULT", "http_proxy", "NO_COLOR", "CLICOLOR_FORCE", "RANK",
                             "CUDA_VISIBLE_DEVICES", "GIT_DIR", "GTEST_FILTER", "LC_ALL", "PYTHONPATH"), "none")
        mask = os.umask(0o077)
        self.addCleanup(os.umask, mask)
        with unittest.mock.patch.dict(os.environ, own, HOME=str(home), TMPDIR=str(self.build / "not there"), CCACHE_DIR="/cache"):
            self.assertEqual(self.outcome(), (0, ["3 passed, 0 failed"]))
        there = dict(line.split("=", 1) for line in (self.build / "there").read_text().splitlines())
        self.assertEqual([name for name in [*own, "TMPDIR"] if name in there], [])
        self.assertEqual([there.get(name) for name in ("HOME", "CCACHE_DIR")], [str(home), "/cache"])
        # The python3 of tests is the one that runs them.
        self.assertEqual(there["PATH"].split(":")[0], os.path.dirname(sys.executable))
        self.assertEqual(set(there["PATH"].split(":")), {os.path.dirname(sys.executable), *filter(None, os.environ["PATH"].split(":"))})
        self.assertEqual((self.build / "mask").read_text(), "0022\n")
        self.assertEqual((self.build / "git").read_text(), "")

    def test_names_the_tests_that_failed_or_were_running_where_one_of_them_ends_or_stops_ctest(self):
        for kill, why in (("kill -9 $PPID", "9 (Killed) ended"), ("kill 0", "15 (Terminated) ended"),
                          ("kill -STOP $PPID", "19 (Stopped (signal)) stopped")):
            with self.subTest(kill):
                for file in ("there", "process+passes", "process+fails"):
                    (self.build / file).unlink(missing_ok=True)
                self.tests = ""
                self.add("unit/passes", "true")
                self.add("process/passes", "true", labels="process")
                self.add("process/fails", "exit 3", labels="process", keys="COST 3")
                self.add("process/skips", "exit 77", labels="process", keys="SKIP_RETURN_CODE 77 COST 2")
                self.add("process/waits", f"touch {self.build}/there; exec sleep 1000", labels="process")
                # It starts when all but the one before it have ended, as there are two at once.
                self.add("process/kills", f"until test -e {self.build}/there; do sleep 0.01; done; {kill}; exec sleep 1000", labels="process")
                code, lines = self.outcome("--jobs", "2")
                self.assertEqual((code, lines), (1, ["skipped: process/skips", "was running: process/kills", "was running: process/waits",
                                                     "failed: process/fails", f"run_tests: signal {why} ctest", "2 passed, 1 failed"]))

    def test_counts_no_test_that_another_test_has_run(self):
        inner = "\n".join(f"      Start {n}: inner{n}\n 1/26 Test #{n}: inner{n} ..........***Failed    0.01 sec" for n in range(26))
        # The first two have the numbers of tests that are running, the third is printed while no other test has its number.
        self.add("process/prints", f"echo '{inner}'; exit 3", labels="process", keys="COST 2")
        self.add("process/kills", "kill -9 $PPID; exec sleep 1000", labels="process")
        self.assertEqual(self.outcome("--jobs", "1"), (1, ["was running: process/kills", "failed: process/prints",
                                                           "run_tests: signal 9 (Killed) ended ctest", "2 passed, 1 failed"]))

    def test_names_the_test_whose_output_has_no_end(self):
        self.addCleanup(setattr, run_tests, "CTEST_MEMORY_MAX", run_tests.CTEST_MEMORY_MAX)
        run_tests.CTEST_MEMORY_MAX = 2**26
        self.add("unit/endless", "yes $(printf %010000d 0); true")
        self.assertEqual(self.outcome("--jobs", "1"), (1, [
            "was running: unit/endless", f"run_tests: the output of a test fills the memory of ctest: /bin/sh {self.build}/unit+endless.sh",
            "1 passed, 0 failed"]))

    def test_is_alone_in_its_directory(self):
        with open(self.build / ".run_tests.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.assertEqual(self.outcome(), (1, [f"run_tests: another run of the tests uses {self.build}", "0 passed, 0 failed"]))

    def test_says_as_the_last_line_that_none_has_passed_where_there_is_no_build(self):
        output = io.TextIOWrapper(io.BytesIO(), write_through=True)
        with contextlib.redirect_stdout(output):
            self.assertEqual(run_tests.main([f"{self.build}/none"]), 1)
        self.assertEqual(output.buffer.getvalue().decode(), f"run_tests: there is no directory {self.build}/none\n0 passed, 0 failed\n")

    def test_leaves_no_test_running_when_a_signal_ends_it_or_kills_it(self):
        pid = self.build / "pid"
        self.add("unit/waits", f"setsid sleep 1000 > /dev/null 2>&1 & echo $$ $! > {pid}.new; mv {pid}.new {pid}; exec sleep 1000")
        (self.build / "CTestTestfile.cmake").write_text(self.tests)
        for number, code in ((signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)):
            with self.subTest(number):
                run = subprocess.Popen([run_tests.__file__, self.build], stdout=subprocess.DEVNULL)
                wait_until("the test", pid.exists)
                ctest = pathlib.Path(f"/proc/{pid.read_text().split()[0]}/stat").read_text().rpartition(")")[2].split()[1]
                run.send_signal(number)
                self.assertEqual(run.wait(60), code)
                for each in (*pid.read_text().split(), ctest):
                    wait_until("its end", lambda: not pathlib.Path(f"/proc/{each}").exists())
                # The next run can begin as soon as nothing is left.
                with open(self.build / ".run_tests.lock") as lock:
                    fcntl.flock(lock, fcntl.LOCK_EX)
                pid.unlink()

    def test_names_what_it_knows_and_what_it_leaves_running_when_a_signal_ends_it(self):
        program, pid = self.build / "left", self.build / "pid"
        shutil.copy("/bin/sleep", program)
        self.add("process/fails", "exit 3", labels="process", keys="COST 2")
        self.add("process/waits", f"{self.leaves(program, 'env -i setsid')}; exec sleep 1000", labels="process")
        (self.build / "CTestTestfile.cmake").write_text(self.tests)
        run = subprocess.Popen([run_tests.__file__, self.build, "--jobs", "1"], stdout=subprocess.PIPE, text=True)
        wait_until("the test", pid.exists)
        left = pid.read_text().strip()
        self.addCleanup(os.kill, int(left), signal.SIGKILL)
        run.terminate()
        output = run.communicate(timeout=60)[0]
        self.assertEqual((run.returncode, output.rpartition("\n\n")[2].splitlines()),
                         (143, [f"still running: {left}: {program} 2000", "was running: process/waits", "failed: process/fails",
                                "run_tests: signal 15 (Terminated) ended the run", "2 passed, 1 failed"]))

    def test_ends_without_a_word_and_leaves_nothing_where_nobody_reads_its_output(self):
        pid, go = self.build / "pid", self.build / "go"
        self.add("unit/waits", f"setsid sleep 1000 > /dev/null 2>&1 & echo $! > {pid}.new; mv {pid}.new {pid}; "
                 f"until test -e {go}; do sleep 0.01; done")
        (self.build / "CTestTestfile.cmake").write_text(self.tests)
        for end in (subprocess.Popen.terminate, lambda run: go.touch()):
            run = subprocess.Popen([run_tests.__file__, self.build], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            wait_until("the test", pid.exists)
            run.stdout.close()
            end(run)
            self.assertEqual((run.stderr.read(), run.wait(60)), (b"", 1))
            run.stderr.close()
            wait_until("its end", lambda: not pathlib.Path(f"/proc/{pid.read_text().strip()}").exists())
            pid.unlink()

    def test_refuses_a_standard_output_that_is_closed(self):
        done = subprocess.run(f"{run_tests.__file__} {self.build} >&-", shell=True, stderr=subprocess.PIPE)
        self.assertEqual((done.returncode, done.stderr), (1, b"run_tests: standard output is closed\n"))

    def test_fails_where_a_process_of_the_build_is_left_and_names_it(self):
        run_tests.LEFT_BEHIND_PATIENCE_S = 0
        program = self.build / "left"
        shutil.copy("/bin/sleep", program)
        there = subprocess.Popen([program, "1000"])
        self.addCleanup(there.wait)
        self.addCleanup(there.kill)
        self.assertEqual(self.outcome(), (0, ["2 passed, 0 failed"]), "what ran before is no test's")
        self.add("process/leaves", self.leaves(program), labels="process")
        code, lines = self.outcome()
        left = (self.build / "pid").read_text().strip()
        self.addCleanup(lambda: os.kill(int(left), signal.SIGKILL))
        self.assertEqual((code, lines), (1, [f"still running: {left}: {program} 2000", "3 passed, 0 failed"]))

    def left_by(self, script):
        """What is said of a process that a test leaves, which has written its pid, and where it was called so."""
        run_tests.LEFT_BEHIND_PATIENCE_S = 0
        pid = self.build / "pid"
        self.add("process/leaves", f"{script.replace('PID', f'{pid}.new')} > /dev/null 2>&1 & "
                 f"until test -s {pid}.new; do sleep 0.01; done; mv {pid}.new {pid}", labels="process")
        code, lines = self.outcome()
        left = pid.read_text().strip()
        self.addCleanup(lambda: os.kill(int(left), signal.SIGKILL))
        self.assertEqual((code, lines[1:]), (1, ["3 passed, 0 failed"]))
        return lines[0].replace(left, "PID", 1)

    def test_finds_a_script_that_is_left(self):
        os.mkfifo(self.build / "never")
        script = self.build / "left.sh"
        script.write_text(f"echo $$ > $1\nread line < {self.build}/never\n")
        self.assertRegex(self.left_by(f"cd / && setsid sh {script} PID"), rf"^still running: PID: sh {script} ")

    @unittest.skipUnless(os.geteuid() == 0, "only root changes its root")
    def test_finds_a_process_that_is_left_in_a_chroot(self):
        root = pathlib.Path(tempfile.mkdtemp(prefix="trainyard-run-tests-root-"))
        self.addCleanup(shutil.rmtree, root)
        libraries = subprocess.run(["ldd", "/bin/sleep"], capture_output=True, text=True, check=True).stdout
        for file in ["/bin/sleep", *re.findall(r"/\S+", libraries)]:
            (root / file[1:]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, root / file[1:])
        self.assertEqual(self.left_by(f"setsid sh -c 'echo $$ > PID; exec chroot {root} /bin/sleep 1000'"),
                         "still running: PID: /bin/sleep 1000")

    def test_takes_nobody_else_for_left_by_a_test(self):
        run_tests.LEFT_BEHIND_PATIENCE_S = 0
        program = self.build / "other.sh"
        program.write_text("echo there\nread line\n")
        # It is started while the tests run, in the build directory, by somebody who looks there or by what an earlier run left.
        self.add("process/waits", f"until test -e {self.build}/go; do sleep 0.01; done", labels="process")
        others = []

        def start():
            wait_until("the test", lambda: self.attempts("process/waits"))
            others.append(subprocess.Popen(["sh", program], cwd=self.build, env={**os.environ, run_tests.MARK[0]: "1.1"},
                                           stdin=subprocess.PIPE, stdout=subprocess.PIPE))
            others[0].stdout.readline()
            (self.build / "go").touch()
        thread = threading.Thread(target=start)
        thread.start()
        outcome = self.outcome()
        thread.join()
        others[0].communicate(b"\n")
        self.assertEqual(outcome, (0, ["3 passed, 0 failed"]))


if __name__ == "__main__":
    unittest.main()
