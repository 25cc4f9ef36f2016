"""A user's queue on a host: what is submitted to it, and what becomes of that."""
import re
import resource
import shlex
import shutil
import stat
import threading
import unittest

from terminal import Terminal, without_codes
from yard import PATIENCE_S, SETTINGS, TRAINYARD, YardTest, alive, json, os, pathlib, signal, subprocess

# Beside other tests.
LIGHT = ("--cpus", "0", "--memory", "1MB", *SETTINGS)
WITH_A_RUN = ("--cpus", "0", "--memory", "300MB", *SETTINGS)  # A task that starts trainyard.


class QueueTest(YardTest):
    def setUp(self):
        super().setUp()
        os.mkfifo(self.directory / "gate")

    def tearDown(self):
        if server := self.server():
            try:
                os.kill(server, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for place, _, _ in os.walk(self.directory):
            run = pathlib.Path(place)
            if run.parent.name == "runs" and (run / "lock").is_file() and (pid := int((run / "lock").read_text() or 0)) and alive(pid):
                os.kill(pid, signal.SIGKILL)
        super().tearDown()

    @property
    def queue(self):
        return next(iter((self.directory / ".state/trainyard").glob("*/queue")), self.directory / "none")

    def server(self):
        try:
            pid = int((self.queue / "lock").read_text())
        except (OSError, ValueError):
            return None
        return pid if alive(pid) else None

    def submit(self, *words, env=None, prefix=()):
        """The number that is printed alone."""
        done = self.trainyard("submit", *words, expect=0, env=env, prefix=prefix)
        self.assertRegex(done.stdout, r"\A[1-9][0-9]*\n\Z")
        self.told = done.stderr
        return done.stdout.strip()

    def command_of(self, command, *flags, **options):
        return self.submit(*LIGHT, *flags, "--", command, **options)

    def wait(self, number, code=0):
        return self.trainyard("wait", number, expect=code)

    def holds(self, name="holds"):
        """A run of the queue that waits for the gate."""
        number = self.command_of(": < gate", "--name", name)
        self.until("the task", lambda: self.words_of(number) == {f"{name}/{name}": "RUNNING"})
        return number

    def refused_when_it_begins(self):
        """The number of a submission whose run is refused when it begins, and has been."""
        held = self.holds("before")
        number = self.command_of("true", "--name", "refused", "--needs", held)
        settings = self.write("trainyard.yaml", "nonsense: 1\n")
        self.open_gate()
        self.assertIn("nonsense", self.wait(number, 2).stderr)
        settings.unlink()
        return number

    def words_of(self, number):
        done = self.trainyard("status", number, "--json", "--all")
        return {f'{task["group"]}/{task["id"]}': task["word"] for task in json.loads(done.stdout).get("tasks", [])} \
            if done.returncode == 0 else {}

    def kill_yard(self, number):
        shown = json.loads(self.trainyard("status", number, "--json", expect=0).stdout)
        os.kill(shown["execution"]["yard_pid"], signal.SIGKILL)

    def living(self, directory=None):
        done = subprocess.run([TRAINYARD, "status", "--json"], cwd=directory or "/", env=self.environment, capture_output=True,
                              text=True, timeout=PATIENCE_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {row["run_number"]: row for row in json.loads(done.stdout)["runs"]}


class Submitting(QueueTest):
    def test_a_command_runs_where_and_as_whom_it_was_submitted(self):
        there = self.directory / "there"
        there.mkdir()
        command = ("sh", "-c", 'umask 027; cd there; exec "$@"', "sh")
        number = self.submit(*LIGHT, "--name", "vit", "--env", "SEED=7", "--", "sh", "-c",
                             'pwd; echo "$WHO $SEED $CUDA_VISIBLE_DEVICES"; umask; echo \'{lr} {"a": {b}} {{x}} ${HOME:+set}\'', "--b", "{b}",
                             env={"WHO": "me", "CUDA_VISIBLE_DEVICES": "1", "HOME": "/"}, prefix=command)
        self.assertEqual(number, "1")
        self.assertIn("your queue on", self.told)
        self.assertIn("warning: '{b}' stays as typed: there is no '--matrix b=...'\n", self.told)
        self.wait(number)
        printed = f'{there}\nme 7 1\n0027\n{{lr}} {{"a": {{b}}}} {{{{x}}}} ${{HOME:+set}}\n'
        self.assertEqual((there / "runs/vit/vit/vit/stdout.log").read_text(), printed)
        # The run and its only task have one name, which means both.
        self.assertEqual(self.trainyard("logs", "vit", "--stdout", expect=0).stdout, printed)
        mode = (there / "runs/vit/vit/vit/stdout.log").stat().st_mode
        self.assertEqual(stat.S_IMODE(mode) & 0o027, 0)
        # Started once, and not said again.
        self.assertEqual(self.command_of("true"), "2")
        self.assertEqual(self.told, "")

    def test_each_run_has_the_limits_of_the_shell_that_submitted_it_and_not_of_the_first(self):
        def limits(number):
            self.wait(number)
            return (self.directory / f"runs/n{number}/n{number}/n{number}/stdout.log").read_text()
        shown = "grep Cpus_allowed_list /proc/self/status; ulimit -S -n"
        cpu = min(os.sched_getaffinity(0))
        few = ("sh", "-c", f'ulimit -S -n 200; exec taskset -c {cpu} "$@"', "sh")
        self.assertEqual(limits(self.command_of(shown, "--name", "n1", prefix=few)), f"Cpus_allowed_list:\t{cpu}\n200\n")
        here = subprocess.run(["sh", "-c", shown], capture_output=True, text=True, check=True).stdout
        self.assertEqual(limits(self.command_of(shown, "--name", "n2")), here)

    def test_limits_that_the_queue_cannot_give_are_named_by_up_submit_and_status(self):
        # The superuser may raise its limits.
        user = ("setpriv", "--bounding-set", "-sys_resource,-sys_nice") if os.geteuid() == 0 else ()
        nice, files = os.nice(0), resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        lower = min(nice + 3, 19)
        started = self.trainyard("up", expect=0, prefix=(*user, "sh", "-c", 'ulimit -n 200; exec nice -n 3 "$@"', "sh"))
        self.assertEqual(started.stdout, "your queue is up\n")
        self.assertNotIn("cannot give", started.stderr)
        said = ("your queue was started with stricter limits than this shell has "
                f"({f'nice is {lower}, not {nice}; ' if lower > nice else ''}nofile is at most 200, not {files}): "
                "to run submissions with the limits of this shell, type 'trainyard down' and then 'trainyard up' here\n")
        again = self.trainyard("up", expect=0, prefix=user)
        self.assertEqual((again.stdout, again.stderr), ("your queue is already up\n", f"trainyard: {said}"))
        self.assertTrue(self.trainyard("status", expect=0, prefix=user).stdout.endswith(f"\n\n{said}"))
        number = self.command_of("true", prefix=user)
        self.assertIn(f"trainyard: {said}", self.told)
        self.wait(number)
        self.trainyard("down", expect=0)
        self.trainyard("up", expect=0, prefix=user)
        self.assertEqual(self.trainyard("up", expect=0, prefix=user).stderr, "")

    def test_a_program_that_is_missing_is_told_to_who_submits_it(self):
        number = self.submit(*LIGHT, "--name", "g", "--", "trainyard-none")
        self.assertIn(f"trainyard: warning: task g/g in '{self.directory.resolve()}': cannot run 'trainyard-none': "
                      "program not found on PATH; install it, or write its full path\n", self.told)
        self.wait(number, code=127)

    def test_a_job_file_and_the_files_of_its_matrix_run_as_they_were_submitted(self):
        self.write("seeds.txt", "1\n2\n")
        self.job("groups: [{name: g, cpus: 0, memory: 1MB, matrix: {seed: {file: seeds.txt}}, "
                 "tasks: [{command: 'echo first {seed}'}]}]", "sweep.yaml")
        held = self.holds()
        number = self.submit("sweep.yaml", "--needs", held, *SETTINGS)
        self.write("seeds.txt", "7\n")
        self.job("groups: [{name: g, tasks: [{id: a, command: 'echo second'}]}]", "sweep.yaml")
        self.open_gate()
        self.wait(number)
        self.assertEqual(sorted(self.words_of(number)), ["g/seed=1", "g/seed=2"])
        for seed in (1, 2):
            self.assertEqual((self.directory / f"runs/sweep/g/seed={seed}/stdout.log").read_text(), f"first {seed}\n")
        self.assertEqual(stat.S_IMODE((self.directory / "runs/sweep/trainyard.files.json").stat().st_mode), 0o600)

    def test_a_submission_with_a_link_in_the_place_of_its_kept_job_is_refused(self):
        says = lambda word: f"groups: [{{name: g, cpus: 0, memory: 1MB, tasks: [{{id: a, command: 'echo {word}'}}]}}]"
        self.job(says("right"), "sweep.yaml")
        self.job(says("wrong"), "evil.yaml")
        held = self.holds()
        refusals = {}
        for link, said in ((os.symlink, "is a symbolic link, not a regular file"), (os.link, "has 2 names (hard links)")):
            number = self.submit("sweep.yaml", "--needs", held, *SETTINGS)
            kept = pathlib.Path(self.living()[int(number)]["run_directory"]) / "trainyard.job.yaml"
            kept.unlink()
            link(self.directory / "evil.yaml", kept)
            refusals[number] = f"trainyard.job.yaml' {said}"
        self.open_gate()
        for number, said in refusals.items():
            self.assertIn(said, self.wait(number, 2).stderr)
            self.assertEqual(self.words_of(number), {})

    def test_what_can_never_fit_is_refused_or_says_why_it_has_not_begun(self):
        for words, said in ((["--memory", "900TB"], "can never run here: needs 900 TB of memory"),
                            (["--cpus", "9999"], "can never run here: needs 9999 CPUs"),
                            (["--gpus", "99"], "can never run here: needs "),
                            (["--gpu-memory", "999TB"], "can never run here: needs ")):
            with self.subTest(words=words):
                self.assertIn(said, self.trainyard("submit", *SETTINGS, *words, "--", "true", expect=2).stderr)
        self.job("groups: [{name: g, tasks: [{id: a, command: 'true'}, {id: b, command: 'true', gpus: 99}]}]", "gpus.yaml")
        self.assertRegex(self.trainyard("submit", "gpus.yaml", expect=2).stderr,
                         r"gpus\.yaml:1:\d+: group 'g': task 'b' can never run here: needs ")
        self.job("groups: [{name: g, tasks: [{id: a, command: 'true', gpus: 99, cpus: 9999}]}]", "both.yaml")
        both = self.trainyard("submit", "both.yaml", expect=2).stderr
        self.assertRegex(both, r"task 'a' can never run here: needs 9999 CPUs, ")
        self.assertRegex(both, r"task 'a' can never run here: needs (99 GPUs|a GPU), ")
        self.assertFalse((self.directory / "runs").exists())
        self.assertIsNone(self.server())
        # The configuration of the machine is read again when the run begins.
        number = self.refused_when_it_begins()
        said = rf"run {number} will not start: .*unknown key 'nonsense'.*, see runs/refused/trainyard.run.log\n$"
        self.assertRegex(self.trainyard("status", number, expect=0).stdout, said)
        self.assertRegex(self.trainyard("results", number, expect=2).stderr, said)
        failed = self.submit(*LIGHT, "--", "false")
        needs = self.submit(*LIGHT, "--needs", failed, "--", "true")
        self.wait(needs, 1)
        self.assertEqual(self.trainyard("results", needs, expect=2).stderr,
                         f"trainyard: run {needs} will not start: needs run {failed}, which did not succeed\n")

    def test_each_submission_has_a_directory_and_a_number_of_its_own(self):
        numbers = []
        def one():
            numbers.append(subprocess.run([TRAINYARD, "submit", *LIGHT, "--name", "same", "--", "true"], cwd=self.directory,
                                          env=self.environment, capture_output=True, text=True, stdin=subprocess.DEVNULL))
        threads = [threading.Thread(target=one) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([done.returncode for done in numbers], [0] * 8, [done.stderr for done in numbers])
        self.assertEqual(sorted(int(done.stdout) for done in numbers), list(range(1, 9)))
        # One queue was started, by one of them.
        self.assertEqual(sum("has started" in done.stderr for done in numbers), 1)
        for number in range(1, 9):
            self.wait(str(number))
        self.assertEqual(sorted(path.name for path in (self.directory / "runs").glob("same*")),
                         ["same", *(f"same-{number}" for number in range(2, 9))])

    def test_what_is_wrong_is_said_at_once_and_leaves_nothing(self):
        self.write("fit.py", "x = 1\n")
        for words, said in ((["--gpu-memory", "10GBB", "--", "true"], "gpu-memory"),
                            (["--matrix", "lr", "--", "true"], "--matrix lr: must be a key and its values"),
                            (["--matrix", "lr=1", "--matrix", "lr=2", "--", "true"],
                             "--matrix lr: is set twice; write all its values in one, as in lr=1e-3,3e-4"),
                            (["--env", "X", "--", "true"], "--env X: must be a name and a value"),
                            (["--env", "X=1", "--env", "X=2", "--", "true"], "--env X: is set twice"),
                            (["--cpus", "1", "--cpus", "2", "--", "true"], "--cpus can be given only once\n"),
                            (["--needs", "77", "--", "true"], "run 77 not found"),
                            (["--each-line", "nowhere.txt"], "--each-line nowhere.txt"),
                            (["nowhere.yaml"], "nowhere.yaml: file not found\n"),
                            (["python3"], "python3: file not found; to run a command, write it after '--'"),
                            (["fit.py"], "fit.py: is a program, not a job file; write it after '--': trainyard submit -- python3 fit.py\n"),
                            (["python3", "train.py"], "trainyard: unexpected argument 'train.py'; "
                             "a command goes after '--': trainyard submit -- python3 train.py\n"),
                            (["--env", "A=1", "B=2", "--", "true"], "the job file 'B=2' and a command cannot be combined; "
                             "leave out one of them, or put a value with blanks in quotes\n"),
                            (["--cpus", "2", "job.yaml"], "--cpus needs a command after '--', as in 'trainyard submit --cpus ... "),
                            (["--device", "cuda", "fit.py"], "--device needs a command after '--', as in 'trainyard submit --device ... -- python3 fit.py'\n"),
                            ([], "no job file or command given")):
            with self.subTest(words=words):
                done = self.trainyard("submit", *words, expect=2)
                self.assertEqual(done.stdout, "")
                self.assertIn(said, done.stderr)
        self.assertFalse((self.directory / "runs").exists())
        self.assertIsNone(self.server())

    def test_is_refused_inside_an_allocation_of_slurm(self):
        done = self.trainyard("submit", "--", "true", expect=2, env={"SLURM_JOB_ID": "12"})
        self.assertIn("inside Slurm allocation 12", done.stderr)
        self.assertFalse((self.directory / "runs").exists())

    def test_a_run_in_a_task_finds_nothing_that_was_set_for_the_task(self):
        inner = (TRAINYARD, "run", *LIGHT, "--name", "inner", "--", "sh", "-c", 'echo "$TRAINYARD_TASK_ID $WHO ${RANK:-none}"')
        self.trainyard("run", *WITH_A_RUN, "--ranks", "1", "--env", "WHO=me", "--name", "outer", "--", *inner, expect=0)
        self.assertEqual(self.text("runs/inner/inner/inner/stdout.log"), "inner me none\n")

    def test_a_run_that_waits_for_what_its_own_task_holds_is_refused_by_name(self):
        cpus = len(os.sched_getaffinity(0))
        self.trainyard("run", "--cpus", str(cpus), "--memory", "300MB", *SETTINGS, "--name", "outer", "--",
                       TRAINYARD, "run", "--cpus", "1", "--memory", "1MB", *SETTINGS, "--name", "inner", "--", "true", expect=1)
        self.assertIn("would wait for ever: task outer/outer of run 1 ('runs/outer'), in which this command was started, holds "
                      f"{cpus} CPU{'' if cpus == 1 else 's'}, 300 MB of memory until the command ends", self.text("runs/outer/outer/outer/stderr.log"))
        self.assertFalse((self.directory / "runs/inner").exists())

    def test_a_run_in_a_run_that_waits_for_what_the_task_around_both_holds_is_refused_by_name(self):
        cpus = len(os.sched_getaffinity(0))
        inner = (str(TRAINYARD), "run", "--cpus", "1", "--memory", "1MB", *SETTINGS, "--name", "inner", "--", "true")
        self.trainyard("run", "--cpus", str(cpus), "--memory", "300MB", *SETTINGS, "--name", "outer", "--",
                       TRAINYARD, "run", "--cpus", "0", "--memory", "200MB", *SETTINGS, "--name", "mid", "--", *inner, expect=1)
        self.assertEqual(self.text("runs/mid/mid/mid/stderr.log").splitlines()[-1],
                         "trainyard: group 'inner' would wait for ever: task outer/outer of run 1 ('runs/outer'), in which this command was "
                         f"started, holds {cpus} CPU{'' if cpus == 1 else 's'}, 300 MB of memory until the command ends")
        self.assertFalse((self.directory / "runs/inner").exists())

    def test_a_wait_for_a_submission_that_waits_for_what_the_waiting_task_holds_is_refused_by_name(self):
        cpus = len(os.sched_getaffinity(0))
        self.trainyard("up", expect=0)
        submits = shlex.join([str(TRAINYARD), "submit", "--cpus", "1", "--memory", "1MB", *SETTINGS, "--name", "inner", "--", "true"])
        self.trainyard("run", "--cpus", str(cpus), "--memory", "300MB", *SETTINGS, "--name", "outer", "--",
                       "sh", "-c", f"{submits} && {TRAINYARD} wait inner", expect=1)
        self.assertEqual(self.text("runs/outer/outer/outer/stderr.log").splitlines()[-1],
                         "trainyard: run 2 ('runs/inner'): group 'inner' would wait for ever: task outer/outer of run 1 ('runs/outer'), in which "
                         f"this command was started, holds {cpus} CPU{'' if cpus == 1 else 's'}, 300 MB of memory until the command ends")
        self.wait("inner")

    def test_a_task_starts_nothing_that_would_end_with_it(self):
        for words, said in ((("submit", *LIGHT, "--", "true"), "type 'trainyard up' outside of tasks first"),
                            (("up",), "type 'trainyard up' outside of tasks first"),
                            (("run", "-d", *LIGHT, "--", "true"), "-d has no effect in a task")):
            with self.subTest(words=words):
                name = f"outer-{words[0]}"
                self.trainyard("run", *WITH_A_RUN, "--name", name, "--", "sh", "-c", shlex.join([str(TRAINYARD), *words]), expect=1)
                self.assertIn(said, self.text(f"runs/{name}/{name}/{name}/stderr.log"))
                self.assertIsNone(self.server())

    def test_a_matrix_and_lines_of_a_file_are_tasks_of_one_run(self):
        number = self.submit(*LIGHT, "--matrix", "lr=1e-3,3e-4", "--matrix", "seed=0..1", "--", "echo", "{lr}", "{seed}")
        self.wait(number)
        self.assertEqual(sorted(self.words_of(number)), [f"echo/lr={lr},seed={seed}" for lr in ("1e-3", "3e-4") for seed in (0, 1)])
        self.write("commands.txt", "# what is run\necho one {x}\n\nexit 3\n")
        number = self.submit(*LIGHT, "--each-line", "commands.txt")
        self.assertEqual(self.wait(number, 1).stderr, f"trainyard: run {number} ('runs/commands') ended: 1 of 2 tasks failed\n")
        self.assertEqual(self.words_of(number), {"commands/1": "FINISHED", "commands/2": "EXIT 3"})
        self.assertEqual((self.directory / "runs/commands/commands/1/stdout.log").read_text(), "one {x}\n")

    def test_what_a_command_can_never_have_here_is_a_note_where_it_is_only_shown(self):
        def run(*words):
            return subprocess.run([TRAINYARD, "run", *words, "--", "true"], cwd=self.directory, env=self.environment,
                                  capture_output=True, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL)
        for option, value, why in (("--memory", "900TB", "needs 900 TB of memory, this machine has"),
                                   ("--cpus", "900", "needs 900 CPUs, this machine has")):
            shown = run(option, value, "--dry-run")
            self.assertEqual(shown.returncode, 0, shown.stderr)
            self.assertIn(f"\n{option}: task 'true' can never run here: {why}", shown.stdout)
            refused = run(option, value)
            self.assertEqual((refused.returncode, refused.stdout), (2, ""))
            self.assertIn(f"task 'true' can never run here: {why}", refused.stderr)
            for said in (shown.stdout, refused.stderr):
                self.assertRegex(said, rf"{why} .*; request at most [0-9.]+.*; 'run --on HOST' uses another machine\n")
        self.assertFalse((self.directory / "runs").exists())

    def test_run_takes_the_same_words(self):
        def run(*words):
            return subprocess.run([TRAINYARD, "run", *LIGHT, *words], cwd=self.directory, env=self.environment,
                                  capture_output=True, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL)
        done = run("--", "echo", "--at", "{here}", "it's")
        self.assertEqual(done.returncode, 0)
        self.assertEqual(done.stderr.count("trainyard: warning: '{here}' stays as typed: there is no '--matrix here=...'\n"), 1)
        self.assertEqual((self.directory / "runs/echo/echo/echo/stdout.log").read_text(), "--at {here} it's\n")
        shown = run("--matrix", "x=1,2", "--two-phase", "--dry-run", "--json", "--", "echo", "{x}")
        self.assertEqual([task["command"] for task in json.loads(shown.stdout)["tasks"]], [["echo", "1"], ["echo", "2"]])
        self.assertIsNone(json.loads(shown.stdout)["job_file"])
        self.assertIn("\ncommand: echo '{x}' 'a b'\n", run("--matrix", "x=1,2", "--dry-run", "--", "echo", "{x}", "a b").stdout)
        self.write("two.txt", "true\nfalse\n")
        self.assertIn("\ncommand: each line of two.txt\n", run("--dry-run", "--each-line", "two.txt").stdout)
        self.assertFalse((self.directory / "runs/echo-2").exists())
        bad = run("--name", "bad", "--", "exit 3")
        self.assertEqual(bad.returncode, 1, bad.stderr)
        self.assertIn("EXIT 3", bad.stdout)
        self.assertEqual(run("--name", "a/b", "--", "true").stderr,
                         "trainyard: --name: the name 'a/b' has a '/'; it must be a valid directory name\n")
        wrong = run("--gpu-memory", "10GBB", "--", "true")
        self.assertEqual((wrong.returncode, wrong.stdout), (2, ""))
        self.assertTrue(wrong.stderr.startswith("trainyard: --gpu-memory: '10GBB': unknown unit 'GBB'"), wrong.stderr)
        before = sorted((self.directory / "runs").iterdir())
        never = run("--name", "never", "--device", "cuda:99", "--", "true")
        self.assertEqual((never.returncode, never.stdout), (2, ""))
        self.assertTrue(never.stderr.startswith("trainyard: --device: task 'never' can never run here"), never.stderr)
        self.assertEqual(sorted((self.directory / "runs").iterdir()), before)
        self.trainyard("run", "--resume", "runs/bad", expect=1)


class Following(QueueTest):
    def test_needs_and_conditions_decide_what_begins(self):
        held = self.holds()
        well = self.command_of("true", "--needs", held)
        bad = self.command_of("exit 3", "--needs", well)
        skipped = self.command_of("true", "--needs", bad)
        failed = self.command_of("echo so", "--needs", bad, "--if", "failure()", "--name", "failed", "--priority", "5")
        self.assertIn(f"run {well} is in your queue: waits for run {held}", self.trainyard("status", well, expect=0).stdout)
        queued = [number for number, row in self.living().items() if row["word"] == "QUEUED"]
        self.assertEqual(queued, [int(number) for number in (failed, well, bad, skipped)], "the largest priority first")
        self.assertIn("is in your queue", self.trainyard("logs", well, expect=2).stderr)
        idle = self.command_of("true", "--needs", well, "--if", "failure()")
        behind = self.command_of("true", "--needs", idle)
        self.open_gate()
        self.wait(bad, 3)
        self.wait(failed)
        self.assertIn("the runs that it needs succeeded, and it starts only after a failure", self.wait(idle).stderr)
        self.wait(behind)
        self.assertIn(f"needs run {bad}, which did not succeed", self.wait(skipped, 1).stderr)
        self.assertIn("did not succeed", self.trainyard("status", skipped, expect=0).stdout)
        self.assertIn(f"needs run {skipped}, which did not succeed: 'trainyard retry {bad} --cascade' runs them again; ",
                      self.trainyard("submit", "--needs", skipped, "--", "true", expect=0).stderr)

    def test_a_job_file_runs_after_a_failed_run_where_if_says_so(self):
        self.write("report.yaml", "groups: [{cpus: 0, memory: 1MB, tasks: [{command: 'true'}]}]\n")
        bad = self.command_of("exit 3")
        for condition, why in (("always()", ""), ("failure()", ""), ("success()", f"needs run {bad}, which did not succeed")):
            with self.subTest(condition=condition):
                done = self.trainyard("submit", "--needs", bad, "--if", condition, "report.yaml", expect=0)
                number = done.stdout.strip()
                self.assertEqual(done.stderr, f"trainyard: skipped: run {number} {why}: 'trainyard retry {bad} --cascade' runs both again; "
                                 "a submission with '--if failure' runs after a failure\n" if why else "")
                self.assertIn(why, self.wait(number, 1 if why else 0).stderr)
        self.assertIn("--if: ", self.trainyard("submit", "--needs", bad, "--if", "maybe", "report.yaml", expect=2).stderr)
        self.assertIn("--if needs a command after '--'", self.trainyard("submit", "--if", "always()", "report.yaml", expect=2).stderr)
        for condition in ("success", "failure", "always()"):
            self.assertEqual(self.trainyard("submit", "--if", condition, "--", "true", expect=2).stderr,
                             "trainyard: --if has no effect without --needs RUN\n")

    def test_what_waits_is_taken_out_by_kill(self):
        held = self.holds()
        number = self.command_of("true", "--needs", "runs/holds", env={"SECRET": "geheim"})
        entry = self.queue / "waiting" / number
        self.assertEqual(stat.S_IMODE(entry.stat().st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(self.queue.stat().st_mode), 0o700)
        self.assertIn(b"geheim", entry.read_bytes())
        self.assertNotIn("geheim", self.trainyard("status", number, expect=0).stdout)
        row, = json.loads(self.trainyard("status", number, "--json", expect=0).stdout)["runs"]
        self.assertEqual((row["run_number"], row["word"], row["reason"]), (int(number), "QUEUED", f"waits for run {held}"))
        self.assertIn("is in your queue and has no tasks yet", self.trainyard("kill", f"{number}/true", expect=2).stderr)
        self.assertRegex(self.trainyard("hold", number, expect=2).stderr, r"has no tasks before it starts: 'trainyard kill \S+' removes it")
        self.assertEqual(self.trainyard("kill", number, expect=0).stdout, f"run {number} was removed from your queue\n")
        self.assertNotIn(b"geheim", (self.queue / "ended" / number).read_bytes())
        self.assertIn("removed from the queue", self.wait(number, 1).stderr)
        # The only task of a run is killed by the number of the run.
        self.assertEqual(self.trainyard("kill", held, expect=0).stdout, "holds/holds was killed\n")
        self.wait(held, 1)

    def test_kill_does_not_guess_which_of_several_submissions_is_meant(self):
        elsewhere = self.directory / "elsewhere"
        elsewhere.mkdir()
        held = self.holds()
        here = ("submit", *LIGHT, "--needs", held)
        first = self.trainyard(*here, "--", "true", cwd=elsewhere, expect=0).stdout.strip()
        self.assertEqual(self.trainyard("kill", cwd=elsewhere, expect=2).stderr,
                         f"trainyard: run {first} ('runs/true') is in your queue and has no tasks yet: 'trainyard kill runs/true' removes the whole run\n")
        numbers = [self.trainyard(*here, "--", "true", cwd=elsewhere, expect=0).stdout.strip() for _ in range(6)]
        for words in (["kill", "*"], ["kill", "true"]):
            with self.subTest(words=words):
                refused = self.trainyard(*words, cwd=elsewhere, expect=2).stderr
                self.assertIn(" are active or in your queue: run ", refused)
                how = "type" if words[1] == "true" else "name one of them:"
                self.assertIn(f" and 2 more; {how} {', '.join(reversed(numbers[1:]))} or the number of another one", refused)
        for number in numbers:
            self.trainyard("kill", number, expect=0)
        self.assertEqual(self.trainyard("kill", "*", cwd=elsewhere, expect=0).stdout, f"run {first} was removed from your queue\n")

    def test_what_needs_a_submission_that_is_killed_is_decided_at_once(self):
        held = self.holds()
        killed = self.command_of("true", "--needs", held, "--name", "killed")
        skipped = self.command_of("true", "--needs", killed, "--name", "skipped")
        last = self.command_of("echo so", "--needs", skipped, "--if", "always()", "--name", "after")
        self.trainyard("kill", killed, expect=0)
        self.assertIn(f"needs run {killed}, which did not succeed", self.wait(skipped, 1).stderr)
        self.wait(last)
        self.assertEqual(self.text("runs/after/after/after/stdout.log"), "so\n")
        self.assertEqual(self.words_of(held), {"holds/holds": "RUNNING"}, "nothing else has told the queue")
        self.open_gate()
        self.wait(held)

    def test_status_lists_what_is_mine_and_alive_from_any_directory(self):
        self.assertEqual(self.living(), {})
        held = self.holds()
        next = self.command_of("true", "--needs", held)
        text = subprocess.run([TRAINYARD, "status"], cwd="/", env=self.environment, capture_output=True, text=True).stdout
        lines = [line.split() for line in text.splitlines()]
        self.assertEqual(lines[0], ["RUN", "STATE", "TASKS", "DIRECTORY"])
        self.assertEqual(lines[1], f"{held} RUNNING 0 of 1 finished, 1 running {self.directory}/runs/holds".split())
        self.assertEqual(lines[2], f"{next} QUEUED waits for run {held} {self.directory}/runs/true".split())
        watch = self.start("status", next, "--watch")
        self.until("its first line", lambda: "is in your queue" in self.next_line(watch.stdout))
        self.open_gate()
        self.assertIn("FINISHED", self.end_of(watch, expect=0)[0])

    def test_runs_that_look_for_room_hold_up_those_of_their_priority_that_request_as_much(self):
        cpus = str(len(os.sched_getaffinity(0)))
        held = self.submit("--cpus", "0.5", "--memory", "1MB", *SETTINGS, "--name", "holds", "--", ": < gate")
        self.until("the task", lambda: self.words_of(held) == {"holds/holds": "RUNNING"})
        large = [self.submit("--cpus", cpus, "--memory", "1MB", *SETTINGS, "--name", f"large{i}", "--", "true") for i in range(8)]
        next = self.submit("--cpus", cpus, "--memory", "1MB", *SETTINGS, "--name", "next", "--", "true")
        said = f"8 runs before it wait for room: {large[0]} to {large[-1]} (CPUs)"
        self.until("eight that look for room", lambda: self.living()[int(next)]["reason"] == said)
        self.wait(self.command_of("true", "--name", "small"))
        self.assertEqual(self.living()[int(next)]["reason"], said)
        urgent = self.submit("--cpus", cpus, "--memory", "1MB", "--priority", "1", *SETTINGS, "--name", "urgent", "--", "true")
        self.until("the urgent one that looks, too", lambda: self.living()[int(urgent)]["word"] == "WAITING")
        self.open_gate()
        self.wait(urgent)
        self.wait(next)

    def test_a_thousand_that_wait_cost_a_file_each(self):
        held = self.holds()
        first = self.command_of("true", "--needs", held, "--name", "first")
        entry = (self.queue / "waiting" / first).read_bytes()
        for number in range(2000, 2999):
            whole = self.queue / "whole"  # The queue must not see half of one.
            whole.write_bytes(entry.replace(f"number={first}".encode(), f"number={number}".encode()))
            whole.rename(self.queue / f"waiting/{number}")
        self.assertEqual(len(self.living()), 1001)
        with open(f"/proc/{self.server()}/status") as status:
            self.trainyard("submit", *LIGHT, "--needs", held, "--", "true", expect=0)
            size = next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
        self.assertLess(size, 400_000 if "TRAINYARD_SANITIZED" in os.environ else 100_000, "kB")
        for number in range(2000, 2999):
            (self.queue / f"waiting/{number}").unlink()
        self.open_gate()
        self.wait(first)

    def test_what_did_not_begin_is_in_status_for_a_day(self):
        refused = self.refused_when_it_begins()
        failed = self.command_of("exit 3", "--name", "failed")
        skipped = self.command_of("true", "--needs", failed, "--name", "skipped")
        idle = self.command_of("true", "--needs", failed, "--name", "idle")
        self.wait(skipped, 1)
        self.wait(idle, 1)
        unneeded = self.command_of("true", "--needs", refused, "--needs", failed, "--if", "failure()", "--name", "unneeded")
        self.wait(unneeded)
        well = self.command_of("true", "--name", "well")
        self.wait(well)
        unneeded = self.command_of("true", "--needs", well, "--if", "failure()", "--name", "not-needed")
        self.wait(unneeded)
        rows = self.living()
        self.assertEqual({number: row["word"] for number, row in rows.items()},
                         {int(refused): "REFUSED", int(skipped): "SKIPPED", int(idle): "SKIPPED", int(unneeded): "NOT_NEEDED"})
        self.assertIn("unknown key 'nonsense'", rows[int(refused)]["reason"])
        whole = rows[int(refused)]["reason"]
        self.assertFalse(whole.startswith("trainyard: "), whole)
        self.assertEqual(rows[int(skipped)]["reason"], f"needs run {failed}, which did not succeed")
        text = subprocess.run([TRAINYARD, "status", "--watch"], cwd="/", env=self.environment, capture_output=True, text=True,
                              timeout=PATIENCE_S).stdout
        self.assertRegex(text, rf"(?m)^ *{skipped}  +SKIPPED  needs run {failed}, which did not succeed  ")
        (shown,) = re.findall(rf"(?m)^ *{refused}  +REFUSED  (.*?)  ", text)
        self.assertEqual(shown, whole)
        self.assertIn(f"\nruns that did not start are listed for a day: 'trainyard clean {refused}' removes run {refused}\n", text)
        # Below the run that is shown, and of one that is removed or cleaned nothing.
        terminal = Terminal(["sh", "-c", f"stty cols 60; exec {TRAINYARD} status"], self.directory,
                            self.environment, columns=60)
        self.addCleanup(terminal.close)
        terminal.until_shown("runs that did not start")
        (rows,) = re.findall(r"(?s)your other runs:(.*)runs that did not start", without_codes(terminal.shown))
        self.assertRegex(rows, rf" {refused}  +REFUSED  ")
        self.assertLessEqual(max(map(len, rows.splitlines())), 60, rows)
        self.trainyard("clean", idle, expect=0)
        entry = self.queue / "ended" / skipped
        old = entry.read_bytes()
        ended = int(old.split(b"\0ended=")[1].split(b"\0")[0])
        entry.write_bytes(old.replace(b"ended=%d" % ended, b"ended=%d" % (ended - 86_400_000)))
        self.assertEqual(sorted(self.living()), [int(refused), int(unneeded)])
        self.assertEqual(self.trainyard("wait", "--all", expect=0).stdout, "you have no active runs on this machine\n")

    def test_what_never_began_can_be_cleaned(self):
        refused = self.refused_when_it_begins()
        done = self.trainyard("clean", refused, expect=0)
        self.assertRegex(done.stdout, rf"^deleted run {refused} \('runs/refused'\), ended .* ago: .* B\n1 run, ")
        self.assertFalse((self.directory / "runs/refused").exists())
        held = self.holds()
        skipped = self.command_of("true", "--needs", held, "--if", "failure()", "--name", "skipped")
        removed = self.command_of("true", "--needs", held, "--name", "removed")
        waits = self.command_of("true", "--needs", skipped, "--name", "waits")
        self.trainyard("kill", removed, expect=0)
        self.write("runs/removed/notes.txt", "mine")
        # A run that still waits is left alone.
        self.assertIn(f"deleted run {removed} ('runs/removed')", self.trainyard("clean", "--older", "0s", expect=0).stdout)
        self.assertEqual(sorted(path.name for path in (self.directory / "runs").iterdir()), ["holds", "removed", "skipped", "waits"])
        self.assertEqual(self.text("runs/removed/notes.txt"), "mine")
        self.open_gate()
        self.wait(waits)
        done = self.trainyard("clean", "--older", "0s", expect=0)
        self.assertEqual(done.stderr, "")
        for number, name in ((held, "holds"), (skipped, "skipped"), (waits, "waits")):
            self.assertIn(f"deleted run {number} ('runs/{name}')", done.stdout)
        self.assertEqual([path.name for path in (self.directory / "runs").iterdir()], ["removed"])

    def test_what_a_killed_submit_left_can_be_cleaned_a_day_later(self):
        held = self.holds()
        number = self.command_of("true", "--name", "cut", "--needs", held)
        (self.queue / "waiting" / number).unlink()  # A submit writes this last, before which it may be killed.
        self.assertIn("'runs/cut' is not deleted", self.trainyard("clean", "--older", "0s", expect=1).stderr)
        mark = self.directory / "runs/cut/trainyard.submission"
        mark.write_text(re.sub("submitted=[0-9]+", "submitted=1000", mark.read_text()))
        before_its_number = self.directory / "runs/early"
        before_its_number.mkdir()
        shutil.copy(mark, before_its_number)
        done = self.trainyard("clean", "--older", "1d", expect=0)
        self.assertEqual(done.stderr, "")
        self.assertIn(f"deleted run {number} ('runs/cut')", done.stdout)
        self.assertEqual([path.name for path in (self.directory / "runs").iterdir()], ["holds"])
        self.open_gate()
        self.wait(held)

    def test_what_was_cleaned_is_not_listed_when_a_later_submission_has_its_directory(self):
        refused = self.refused_when_it_begins()
        self.trainyard("clean", refused, expect=0)
        held = self.holds()
        later = self.command_of("true", "--name", "refused", "--needs", held)
        self.assertEqual({number: row["word"] for number, row in self.living().items()}, {int(held): "RUNNING", int(later): "QUEUED"})
        self.assertEqual(self.living()[int(later)]["run_directory"], str(self.directory.resolve() / "runs/refused"))
        self.open_gate()
        self.wait(later)


class Returning(QueueTest):
    def fails_while_bad(self, name="first"):
        self.write("bad", "")
        return self.command_of("test ! -e bad", "--name", name)

    def test_what_was_skipped_goes_back_with_the_run_that_it_needs(self):
        first = self.fails_while_bad()
        second = self.command_of('echo "$WHO"; umask', "--name", "second", "--needs", first, env={"WHO": "then"})
        third = self.command_of("true", "--name", "third", "--needs", second)
        self.wait(third, 1)
        self.assertNotIn(b"then", (self.queue / "ended" / second).read_bytes())
        self.assertEqual(self.trainyard("retry", second, expect=2).stderr,
                         f"trainyard: run {second} needs run {first}, which did not succeed: "
                         f"'trainyard retry {first} --cascade' runs both again\n")
        self.assertEqual(self.trainyard("retry", third, expect=2).stderr,
                         f"trainyard: run {third} needs run {second}, which did not succeed: "
                         f"'trainyard retry {first} --cascade' runs them again\n")
        self.assertIn(f"needs run {first}, which did not succeed", self.wait(second, 1).stderr)
        (self.directory / "bad").unlink()
        shown = self.trainyard("retry", first, "--cascade", "--dry-run", expect=0).stdout
        self.assertIn("first/first: EXIT 1 after 1 attempt\n", shown)
        self.assertTrue(shown.endswith(f"run {second} ('runs/second') would go back into your queue\n"
                                       f"run {third} ('runs/third') would go back into your queue\n"), shown)
        self.wait(second, 1)
        done = self.trainyard("retry", first, "--cascade", expect=0, env={"WHO": "now"}, prefix=("sh", "-c", 'umask 027; exec "$@"', "sh"))
        self.assertIn(f"run {second} is back in your queue\nrun {third} is back in your queue\n", done.stdout)
        self.wait(third)
        self.assertEqual(self.text("runs/second/second/second/stdout.log"), "now\n0027\n")

    def test_what_was_skipped_goes_back_when_the_run_has_been_retried_before(self):
        first = self.fails_while_bad()
        second, third = (self.command_of("true", "--name", name, "--needs", first) for name in ("second", "third"))
        self.wait(third, 1)
        (self.directory / "bad").unlink()
        self.assertIn(f"trainyard: runs {second} to {third} were skipped because of run {first}: 'trainyard retry {first} --cascade' puts them back "
                      "into your queue\n", self.trainyard("retry", first, expect=0).stderr)
        self.trainyard("retry", second, expect=0)
        self.wait(second)
        self.assertEqual(self.trainyard("retry", first, "--cascade", expect=0).stdout, f"run {third} is back in your queue\n")
        self.wait(third)
        self.assertIn("no task of run", self.trainyard("retry", first, "--cascade", expect=2).stderr)

    def test_a_cascade_refuses_what_needs_another_run_that_did_not_succeed(self):
        first = self.fails_while_bad()
        held = self.holds()
        gone = self.command_of("true", "--name", "gone", "--needs", held)
        both = self.command_of("true", "--name", "both", "--needs", first, "--needs", gone)
        behind = self.command_of("true", "--name", "behind", "--needs", both)
        plain = self.command_of("true", "--name", "plain", "--needs", first)
        shutil.rmtree(self.directory / "runs/gone")
        self.open_gate()
        self.wait(gone, 2)
        self.wait(behind, 1)
        self.wait(plain, 1)
        (self.directory / "bad").unlink()
        why = [f"run {number} needs run {needs}, which did not succeed, and the directory of run {gone} is gone: submit {again} again\n"
               for number, needs, again in ((both, gone, "both"), (behind, both, f"runs {gone} to {behind}"))]
        shown = self.trainyard("retry", first, "--cascade", "--dry-run", expect=0)
        self.assertTrue(shown.stdout.endswith(f"run {plain} ('runs/plain') would go back into your queue\n" + "".join(why)), shown.stdout)
        done = self.trainyard("retry", first, "--cascade", expect=1)
        self.assertIn("".join(f"trainyard: {line}" for line in why), done.stderr)
        self.assertEqual([line for line in done.stdout.splitlines() if "your queue" in line], [f"run {plain} is back in your queue"])
        self.wait(plain)
        self.assertEqual(self.trainyard("retry", first, "--cascade", expect=1).stderr, "".join(f"trainyard: {line}" for line in why))

    def test_a_skip_is_told_as_it_is_once_the_run_that_it_needs_is_back(self):
        held = self.holds()
        killed = self.command_of("true", "--name", "killed", "--needs", held)
        second = self.command_of("true", "--name", "second", "--needs", killed)
        third = self.command_of("true", "--name", "third", "--needs", second)
        self.trainyard("kill", killed, expect=0)
        self.wait(third, 1)
        self.assertEqual(self.wait(second, 1).stderr, f"trainyard: run {second}: needs run {killed}, which did not succeed\n")
        done = self.trainyard("retry", killed, expect=0)
        self.assertEqual((done.stdout, done.stderr),
                         (f"run {killed} is back in your queue\n", f"trainyard: runs {second} to {third} were skipped because of run {killed}: "
                          f"'trainyard retry {killed} --cascade' puts them back into your queue\n"))
        now = f"needs run {killed}, which did not succeed at first: 'trainyard retry {second}' puts it back into your queue"
        self.assertEqual(self.wait(second, 1).stderr, f"trainyard: run {second}: {now}\n")
        self.assertEqual(self.trainyard("status", second, expect=0).stdout, f"run {second} will not start: {now}\n")
        rows = self.living()
        self.assertEqual((rows[int(second)]["reason"], rows[int(third)]["reason"]), (now, f"needs run {second}, which did not succeed"))
        self.assertEqual(self.trainyard("retry", killed, "--cascade", expect=0).stdout,
                         f"run {second} is back in your queue\nrun {third} is back in your queue\n")
        self.assertIn("no submission was skipped because of it", self.trainyard("retry", killed, "--cascade", expect=2).stderr)
        self.open_gate()
        self.wait(third)

    def test_a_cure_names_what_a_cascade_leaves_out(self):
        held = self.holds()
        removed = self.command_of("true", "--name", "removed", "--needs", held)
        third = self.command_of("true", "--name", "third", "--needs", removed)
        self.trainyard("kill", removed, expect=0)
        self.trainyard("kill", held, expect=0)
        self.wait(held, 1)
        self.wait(third, 1)
        self.assertEqual(self.trainyard("retry", third, expect=2).stderr,
                         f"trainyard: run {third} needs run {removed}, which did not succeed: 'trainyard retry {held}' retries run {held}, "
                         f"then 'trainyard retry {removed} --cascade' puts runs {removed} to {third} back into your queue\n")
        later = self.command_of("true", "--name", "later", "--start-after", "1h")
        behind = self.command_of("true", "--name", "behind", "--needs", later)
        self.until("the run", lambda: self.words_of(later) == {"later/later": "WAITING"})
        self.trainyard("kill", later, expect=0)
        self.wait(behind, 1)
        self.assertEqual(self.trainyard("retry", behind, expect=2).stderr,
                         f"trainyard: run {behind} needs run {later}, which did not succeed: 'trainyard run --resume runs/later' resumes run {later}, "
                         f"then 'trainyard retry {behind}' puts run {behind} back into your queue\n")

    def test_status_shows_the_active_run_of_another_place_and_not_a_submission_that_was_removed(self):
        held = self.holds()
        elsewhere = self.directory / "elsewhere"
        elsewhere.mkdir()
        removed = self.trainyard("submit", *LIGHT, "--needs", held, "--", "true", expect=0, cwd=elsewhere).stdout.strip()
        self.trainyard("kill", removed, expect=0, cwd=elsewhere)
        self.assertRegex(self.trainyard("status", expect=0, cwd=elsewhere).stdout, rf"\A *RUN .*\n *{held}  RUNNING  ")
        self.assertEqual(list(self.living(elsewhere)), [int(held)])
        self.open_gate()
        self.wait(held)
        self.assertEqual(self.trainyard("status", expect=0, cwd=elsewhere).stdout, f"run {removed} will not start: removed from the queue\n")

    def test_what_ran_before_a_retry_of_the_run_that_it_needs_is_out_of_date(self):
        first = self.fails_while_bad()
        after = self.command_of("true", "--name", "after", "--needs", first, "--if", "always()")
        alarm = self.command_of("true", "--name", "alarm", "--needs", first, "--if", "failure()")
        for number in (after, alarm):
            self.wait(number)
        # The queue knows what a run needs also when it was resumed outside of it.
        self.trainyard("run", "--resume", "runs/after", expect=0)
        (self.directory / "bad").unlink()
        self.assertNotIn("out of date", self.trainyard("status", after, expect=0).stdout)
        out = f"trainyard: run {after} needs run {first} and started before this retry: it is out of date once tasks run again; " \
              f"'trainyard retry {first} --cascade' runs it again\n"
        self.assertIn(out, self.trainyard("retry", first, "--dry-run", expect=0).stderr)
        self.assertIn(out, self.trainyard("retry", first, expect=0).stderr)
        cure = f"started before run {first}, which it needs, ran again: 'trainyard retry {after} --cascade' runs it again\n"
        self.assertIn(f"\nout of date: this run {cure}", self.trainyard("status", after, expect=0).stdout)
        shown = self.trainyard("results", after, expect=0).stdout
        self.assertRegex(shown, r"(?m)^after  FINISHED, out of date  ")
        self.assertIn(f"\nout of date: run {after} ('runs/after') {cure}", shown)
        self.assertIs(json.loads(self.trainyard("results", after, "--json", expect=0).stdout)["rows"][0]["out_of_date"], True)
        self.assertEqual(self.trainyard("retry", after, expect=2).stderr,
                         f"trainyard: nothing to retry: no task of run {after} ('runs/after') failed; this run {cure}")
        self.assertEqual(json.loads(self.trainyard("status", after, "--json", expect=0).stdout)["needs_run_again"], [int(first)])
        # A submission that starts after the retry is not out of date, nor is the run itself, nor what told of its failure.
        again = self.command_of("true", "--name", "again", "--needs", first, "--if", "always()")
        self.wait(again)
        for number in (again, first, alarm):
            self.assertNotIn("out of date", self.trainyard("status", number, expect=0).stdout)
            self.assertNotIn("out of date", self.trainyard("results", number, expect=0).stdout)
        self.assertIn("after/after: FINISHED after 1 attempt, and out of date\n", self.trainyard("retry", after, "--cascade", expect=0).stderr)
        self.assertNotIn("out of date", self.trainyard("status", after, expect=0).stdout)
        self.assertIn("no task of run", self.trainyard("retry", after, "--cascade", expect=2).stderr)

    def test_a_task_that_is_retried_after_the_run_that_it_needs_is_not_out_of_date(self):
        first = self.fails_while_bad()
        self.write("after.yaml", 'groups: [{name: after, cpus: 0, memory: 1MB, tasks: [{id: a, command: "test ! -e bad"}, '
                                 '{id: b, command: "true", start-after: 1h}]}]')
        after = self.submit("after.yaml", *SETTINGS, "--needs", first, "--if", "always()")
        self.until("a has failed, and b waits", lambda: self.words_of(after).get("after/a") == "EXIT 1")
        (self.directory / "bad").unlink()
        self.trainyard("retry", first, expect=0)
        self.assertIn("out of date", self.trainyard("status", after, expect=0).stdout)
        self.trainyard("retry", f"{after}/a", expect=0)
        self.until("a has finished", lambda: self.words_of(after).get("after/a", "").startswith("FINISHED"))
        self.assertNotIn("out of date", self.trainyard("status", after, expect=0).stdout)
        self.trainyard("kill", after, "*", expect=0)

    def test_a_cascade_runs_again_what_ran_before_and_is_out_of_date(self):
        first = self.fails_while_bad()
        group = 'groups: [{name: after, cpus: 0, memory: 1MB, tasks: [{id: a, command: "if test -e bad; then echo bad; else echo good; fi >> seen"}]}]'
        self.write("after.yaml", group)
        after = self.submit("after.yaml", *SETTINGS, "--needs", first, "--if", "always()")
        behind = self.command_of("echo behind >> seen", "--name", "behind", "--needs", after)
        alarm = self.command_of("echo alarm >> rung", "--name", "alarm", "--needs", first, "--if", "failure()")
        self.wait(behind)
        self.wait(alarm)
        # It runs as it was submitted.
        self.write("after.yaml", group.replace("good", "edited"))
        (self.directory / "bad").unlink()
        shown = self.trainyard("retry", first, "--cascade", "--dry-run", expect=0)
        self.assertTrue(shown.stdout.endswith("".join(f"run {number} ('runs/{name}') would go back into your queue, and all of its tasks run again\n"
                                                      for number, name in ((after, "after"), (behind, "behind")))), shown.stdout)
        done = self.trainyard("retry", first, "--cascade", expect=0)
        self.assertNotIn("out of date", shown.stderr + done.stderr)
        self.assertIn(f"run {after} is back in your queue\nrun {behind} is back in your queue\n", done.stdout)
        self.wait(behind)
        self.assertEqual(self.text("seen"), "bad\nbehind\ngood\nbehind\n")
        self.assertEqual(self.text("rung"), "alarm\n")
        for number, name in ((after, "after"), (behind, "behind")):
            self.assertNotIn("out of date", self.trainyard("status", number, expect=0).stdout)
            self.assertNotIn("out of date", self.trainyard("results", number, expect=0).stdout)
        self.assertIn("no task of run", self.trainyard("retry", first, "--cascade", expect=2).stderr)

    def waits_to_run_again(self):
        """A run that is retried and waits for the gate, one that is to run again behind it, and the retry."""
        self.write("bad", "")
        first = self.command_of("test ! -e bad && : < gate", "--name", "first")
        after = self.command_of("echo ran >> seen", "--name", "after", "--needs", first, "--if", "always()")
        self.wait(after)
        (self.directory / "bad").unlink()
        retry = self.start("retry", first, "--cascade")
        self.until("the task", lambda: self.words_of(first) == {"first/first": "RUNNING"})
        self.until("it is back", lambda: int(after) in self.living())
        return first, after, retry

    def test_a_run_that_waits_to_run_again_says_so_and_is_taken_out_by_kill(self):
        first, after, retry = self.waits_to_run_again()
        row = self.living()[int(after)]
        self.assertEqual((row["word"], row["reason"]), ("QUEUED", f"waits for run {first}"))
        out = f"\nout of date: this run started before run {first}, which it needs, ran again: "
        self.assertIn(f"{out}your queue runs it again\n", self.trainyard("status", after, expect=0).stdout)
        for command, words, why in (("kill", (f"{after}/after",), "none of its tasks is running: 'trainyard kill "),
                                    ("hold", (after,), "its tasks cannot be changed before it starts again: "),
                                    ("retry", (f"{after}/after", "--cascade"), "so no options about tasks apply to it: type 'trainyard retry ")):
            with self.subTest(command=command):
                self.assertIn(why, self.trainyard(command, *words, expect=2).stderr)
        self.assertEqual(self.trainyard("kill", after, expect=0).stdout, f"run {after} was removed from your queue\n")
        self.assertIn(f"{out}'trainyard retry {after} --cascade' runs it again\n", self.trainyard("status", after, expect=0).stdout)
        self.open_gate()
        self.end_of(retry, 0)
        self.assertEqual(self.text("seen"), "ran\n")
        # It has succeeded, and is out of date as before.
        self.wait(self.command_of("true", "--name", "behind", "--needs", after))
        self.assertIn(f"run {after} ('runs/after') would go back into your queue, and all of its tasks run again\n",
                      self.trainyard("retry", first, "--cascade", "--dry-run", expect=0).stdout)

    def test_a_run_that_cannot_run_again_says_why(self):
        _, after, retry = self.waits_to_run_again()
        settings = self.write("trainyard.yaml", "absurd: 1\n")
        self.open_gate()
        self.end_of(retry, 0)
        self.assertIn("absurd", self.wait(after, 2).stderr)
        self.assertEqual(self.living()[int(after)]["word"], "REFUSED")
        settings.unlink()
        self.assertIn(f": 'trainyard retry {after} --cascade' runs it again\n", self.trainyard("status", after, expect=0).stdout)
        self.trainyard("retry", after, "--cascade", expect=0)
        self.assertEqual(self.text("seen"), "ran\nran\n")
        self.assertNotIn("out of date", self.trainyard("status", after, expect=0).stdout)

    def test_a_run_that_finds_the_machine_short_when_it_is_to_run_again_waits(self):
        _, after, retry = self.waits_to_run_again()
        entry = self.queue / "waiting" / after
        lines = entry.read_bytes().split(b"\0")
        lines[[at for at, line in enumerate(lines) if line.startswith(b"limit=")][resource.RLIMIT_NOFILE]] = b"limit=6 6"
        fewer = self.directory / "fewer"
        fewer.write_bytes(b"\0".join(lines))
        fewer.rename(entry)
        self.open_gate()
        self.end_of(retry, 0)
        self.until("it has tried", lambda: "oo many open files" in self.living().get(int(after), {}).get("reason", ""))
        row = self.living()[int(after)]
        self.assertEqual(row["word"], "QUEUED", row)
        self.trainyard("kill", after, expect=0)

    def test_what_was_refused_or_removed_goes_back(self):
        refused = self.refused_when_it_begins()
        self.write("trainyard.yaml", "absurd: 1\n")
        self.assertIn("absurd", self.trainyard("retry", refused, expect=2).stderr)
        self.trainyard("retry", refused, expect=0, cwd=self.directory / "runs")
        said = self.wait(refused, 2).stderr
        self.assertIn("absurd", said)
        self.assertNotIn("nonsense", said, "it is what the run says now")
        (self.directory / "trainyard.yaml").unlink()
        self.trainyard("retry", refused, expect=0)
        self.wait(refused)
        held = self.holds()
        removed = self.command_of("true", "--needs", held, "--name", "removed")
        self.trainyard("kill", removed, expect=0)
        self.trainyard("retry", "removed", expect=0)
        self.assertEqual(self.trainyard("retry", removed, expect=2).stderr,
                         f"trainyard: run {removed} is in your queue: waits for run {held}\n")
        self.open_gate()
        self.wait(removed)

    def test_what_cannot_go_back_says_why(self):
        failed = self.command_of("exit 3", "--name", "failed")
        skipped = self.command_of("true", "--name", "skipped", "--needs", failed)
        self.wait(skipped, 1)
        self.assertEqual(self.trainyard("retry", f"{skipped}/skipped", expect=2).stderr,
                         f"trainyard: run {skipped} ('runs/skipped') has not started and has no tasks yet: "
                         "'trainyard retry runs/skipped' puts it back into your queue\n")
        # The queue keeps no more than this of a submission whose file was damaged.
        entry = self.queue / "ended" / skipped
        lines = entry.read_bytes().split(b"\0")
        kept = [line for line in lines if not line.startswith((b"job=", b"needs="))]
        self.assertLess(len(kept), len(lines))
        entry.write_bytes(b"\0".join(kept))
        self.assertEqual(self.trainyard("retry", skipped, expect=2).stderr,
                         f"trainyard: your queue no longer has what was submitted as run {skipped} ('runs/skipped'): submit it again\n")
        self.assertEqual(sorted(path.name for path in (self.queue / "waiting").iterdir()), [])


if __name__ == "__main__":
    unittest.main()
