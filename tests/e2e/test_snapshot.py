"""`--snapshot`: a user edits, deletes and commits while a submission waits, and its tasks run the code of the submission.
"""
import shutil

from test_queue import LIGHT, QueueTest
from yard import PATIENCE_S, SETTINGS, TRAINYARD, json, os, own_mounts, pathlib, signal, subprocess

JOB = """
name: job
groups:
  - name: g
    cpus: 0
    memory: 1MB
    matrix: {n: [1, 2]}
    tasks: [{command: [sh, train.sh, "{n}"]}]
"""
TRAIN = """
cat helper.txt data/numbers loose.txt
ls gone.txt
git rev-parse HEAD
git diff HEAD
[ ! -e "$TRAINYARD_RUN_DIR/fails" ]
"""


class Snapshot(QueueTest):
    def setUp(self):
        super().setUp()
        self.tree = self.directory / "tree"
        for name, text in {"sub/train.sh": TRAIN, "sub/helper.txt": "old helper\n", "sub/gone.txt": "", "sub/job.yaml": JOB,
                           ".gitignore": "data\nruns\n", "sub/data/numbers": "1 2 3\n"}.items():
            self.write(f"tree/{name}", text)
        self.git("init", "-q")
        self.git("add", "-A")
        self.git("commit", "-qm", "one")
        self.write("tree/sub/helper.txt", "changed helper\n")
        self.write("tree/sub/loose.txt", "never added\n")
        (self.tree / "sub/gone.txt").unlink()
        self.head = self.git("rev-parse", "HEAD").stdout
        self.diff = self.git("diff", "HEAD").stdout

    def git(self, *words):
        return subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=self.tree, check=True,
                              capture_output=True, text=True)

    def edit(self):
        """Edits that would break it, and edits that it must not see."""
        self.write("tree/sub/train.sh", "echo edited\n")
        (self.tree / "sub/helper.txt").unlink()
        (self.tree / "sub/loose.txt").unlink()
        self.write("tree/sub/gone.txt", "back\n")
        self.git("commit", "-qam", "two")

    def there(self, *words, expect=0, **options):
        # Behind the two dashes all is the task's.
        words = [TRAINYARD, *words] if "--" in words else self.command(*words)
        done = subprocess.run(words, cwd=self.tree / "sub", env={**self.environment, **options}, capture_output=True,
                              text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done

    def ran_what_was_submitted(self, log):
        self.assertEqual((self.tree / "sub/runs" / log).read_text(),
                         f"changed helper\n1 2 3\nnever added\n{self.head}{self.diff}")

    def codes(self, run="job"):
        shown = json.loads(self.there("status", f"runs/{run}", "--json", "--all").stdout)
        return {task["id"]: (task["word"], task["code"], task["newer_code"]) for task in shown["tasks"]}

    def test_what_waits_runs_the_code_of_when_it_was_submitted(self):
        held = self.holds()
        number = self.there("submit", "--snapshot", "job.yaml", "--needs", held, *SETTINGS).stdout.strip()
        self.assertEqual(self.git("worktree", "list").stdout.count("\n"), 1)
        run = self.tree / "sub/runs/job"
        self.write("tree/sub/runs/job/fails", "")
        self.edit()
        self.open_gate()
        self.wait(number, 1)
        for n in (1, 2):
            self.ran_what_was_submitted(f"job/g/n={n}/stdout.log")
            self.assertIn("gone.txt", (run / f"g/n={n}/stderr.log").read_text())
        self.assertFalse((self.tree / "runs").exists())

        shown = json.loads(self.there("run", "--resume", "runs/job", "--dry-run", "--json").stdout)
        self.assertEqual({task["working_directory"] for task in shown["tasks"]}, {f"{run}/trainyard.code/sub"})

        # Another try, by command or in a run that goes on, is in the copy as well; and so nothing is another code.
        (run / "fails").unlink()
        self.there("retry", number, "n=1")
        self.there("run", "--resume", "runs/job")
        for n in (1, 2):
            self.ran_what_was_submitted(f"job/g/n={n}/stdout.2.log")
        codes = self.codes()
        self.assertEqual([word for word, _, _ in codes.values()], ["FINISHED"] * 2)
        self.assertEqual({(code.startswith(self.head[:7] + "+"), newer) for _, code, newer in codes.values()}, {(True, None)})
        self.assertNotIn("other code", self.there("status", "runs/job", "--all").stdout)

        # And it goes with its run.
        self.there("clean", "runs/job", "--keep", "results")
        self.there("run", "--resume", "runs/job")
        (run / "trainyard.code").rename(run / "elsewhere")
        gone = self.there("run", "--resume", "runs/job", expect=2).stderr
        self.assertIn("the copy of the code that this run works in", gone)
        (run / "elsewhere").rename(run / "trainyard.code")
        self.assertIn(" kB", self.there("clean", "runs/job", "--dry-run").stdout)
        self.assertTrue((run / "trainyard.code/sub/train.sh").exists())
        self.there("clean", "runs/job")
        self.assertFalse(run.exists())
        self.assertEqual((self.tree / "sub/data/numbers").read_text(), "1 2 3\n")

    def test_what_never_begins_keeps_its_copy_for_retry_until_it_is_cleaned(self):
        self.write("bad", "")
        bad = self.command_of("test ! -e bad", "--name", "bad")
        skipped = self.there("submit", "--snapshot", "job.yaml", "--needs", bad, *SETTINGS).stdout.strip()
        self.wait(skipped, 1)
        self.edit()
        (self.directory / "bad").unlink()
        self.trainyard("retry", bad, expect=0)
        self.there("retry", skipped)
        self.wait(skipped)
        for n in (1, 2):
            self.ran_what_was_submitted(f"job/g/n={n}/stdout.log")
        held = self.holds()
        removed = self.there("submit", "--snapshot", "--needs", held, *LIGHT, "--name", "removed", "--", "true").stdout.strip()
        copy = self.tree / "sub/runs/removed/trainyard.code"
        self.there("kill", removed)
        self.assertTrue(copy.exists())
        self.there("clean", removed)
        self.assertFalse(copy.exists())
        self.open_gate()
        self.wait(held)

    def test_a_run_of_its_own_copies_when_it_begins(self):
        def run(*words):
            return self.there("run", "--snapshot", *words)
        os.mkfifo(self.tree / "sub/wait")
        text = JOB.replace("[sh, train.sh, \"{n}\"]", "': < wait; sh train.sh'").replace("[1, 2]", "[1]")
        self.write("tree/sub/job.yaml", text.replace("< wait", f"< {self.tree}/sub/wait"))
        self.diff = self.git("diff", "HEAD").stdout
        number = run("-d", "job.yaml").stdout.strip()
        self.edit()
        with open(self.tree / "sub/wait", "w"):
            pass
        self.wait(number)
        self.ran_what_was_submitted("job/g/n=1/stdout.log")
        # A module that Python finds beside a script, an absolute path, and the words of a command.
        self.write("tree/sub/beside.py", "value = 7\n")
        self.write("tree/sub/main.py", "import beside, os, sys\nprint(beside.__file__, os.getcwd())\n")
        run(*LIGHT, "--name", "py", "--", "python3", "main.py")
        copy = self.tree / "sub/runs/py/trainyard.code/sub"
        self.assertEqual((self.tree / "sub/runs/py/py/py/stdout.log").read_text(), f"{copy}/beside.py {copy}\n")
        self.assertFalse((self.tree / "sub/__pycache__").exists())
        run(*LIGHT, "--name", "far", "--", "python3", f"{self.tree}/sub/main.py")
        self.assertIn(f"{self.tree}/sub/beside.py", (self.tree / "sub/runs/far/far/far/stdout.log").read_text())

    def test_what_is_added_to_a_run_uses_the_work_tree_and_is_told_so(self):
        self.write("tree/sub/job.yaml", JOB.replace("[sh, train.sh, \"{n}\"]", f"': < {self.directory}/gate'").replace("[1, 2]", "[1]"))
        number = self.there("run", "-d", "--snapshot", "job.yaml").stdout.strip()
        self.until("the task", lambda: self.words_of(number) == {"g/n=1": "RUNNING"})
        self.edit()
        added = self.there("submit", "--run-dir", number, "--cpus", "0", "--memory", "1MB", "--name", "more", "--", "sh", "train.sh").stdout
        self.assertEqual(added, "submission 2: 1 task in 1 group: 1 of more; its tasks use the work tree, not the run's copy of the code\n")
        self.open_gate()
        self.wait(number)
        self.assertEqual((self.tree / "sub/runs/job/submissions/2/more/more/stdout.log").read_text(), "edited\n")

    def test_without_it_a_run_works_in_the_work_tree_whatever_an_earlier_one_has_left(self):
        copy = self.tree / "sub/runs/job/trainyard.code"
        copy.mkdir(parents=True)
        self.there("run", "job.yaml", "--only", "n=1")
        self.assertFalse(copy.exists())
        code = self.codes()["n=1"][1]
        # The code is the same as that of a copy.
        self.there("run", "job.yaml", "--snapshot", "--new")
        self.assertEqual({each for _, each, _ in self.codes("job-2").values()}, {code})

    def test_is_not_in_the_command_that_resumes_the_run_which_is_there(self):
        self.there("run", "--snapshot", "job.yaml", "--only", "n=1")
        for words in (["--snapshot", "job.yaml"], ["job.yaml", "--snapshot"]):
            refused = self.there("run", *words, expect=2).stderr
            self.assertRegex(refused, r" To resume it, type\n  \S+ run job\.yaml (?!.*--snapshot).*--resume\n")

    def test_what_cannot_be_copied_is_said_and_nothing_is_left(self):
        bare = self.directory / "bare"
        bare.mkdir()
        fresh = self.directory / "fresh"
        subprocess.run(["git", "init", "-q", fresh], check=True)
        bin_without_git = self.directory / "bin"
        bin_without_git.mkdir()
        for name in ("sh", "true"):
            (bin_without_git / name).symlink_to(f"/bin/{name}")
        (bare / "job.yaml").write_text(JOB)
        (fresh / "job.yaml").write_text(JOB)
        for directory, path, said in ((bare, None, f"'{bare}' is not in a work tree of git: fatal: not a git repository"),
                                      (fresh, None, f"the git repository in '{fresh}' has no commit yet"),
                                      (self.tree / "sub", bin_without_git, "cannot run 'git': no such file")):
            for words in (["submit", "--snapshot", "job.yaml"], ["run", "-d", "--snapshot", "job.yaml"],
                          ["run", "--dry-run", "--snapshot", *LIGHT, "--", "true"]):
                with self.subTest(directory=directory, words=words):
                    environment = {**self.environment, **({"PATH": str(path)} if path else {})}
                    done = subprocess.run([TRAINYARD, *words], cwd=directory, env=environment, capture_output=True, text=True,
                                          timeout=PATIENCE_S, stdin=subprocess.DEVNULL)
                    self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
                    self.assertIn(f"--snapshot: {said}" if path is None else said, done.stderr)
                    self.assertFalse((directory / "runs").exists())

    def test_on_a_full_disk_nothing_is_left(self):
        self.write("tree/large.bin", "x" * 3_000_000)
        small = self.directory / "small"
        mounted = own_mounts("sh", "-c", 'mkdir -p "$0"; mount -t tmpfs -o size=1m none "$0" || exit 77; cd "$1"; shift; '
                             '"$@"; code=$?; find "$SMALL" -mindepth 1; exit $code', small, self.tree / "sub")
        done = self.trainyard("run", "--snapshot", "job.yaml", "--run-dir", small / "run", prefix=mounted,
                              env={"SMALL": str(small)})
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertRegex(done.stderr, "--snapshot: cannot write '.*large.bin': no space left on device")

    def test_ctrl_c_takes_the_half_copy_away(self):
        os.mkfifo(self.directory / "listed")
        self.write("bin/git", f"#!/bin/sh\ncase \"$*\" in *ls-files*--stage*) : > {self.directory}/listed; : < {self.directory}/gate;; esac\n"
                              'exec /usr/bin/git "$@"\n', 0o755)
        path = f"{self.directory}/bin:{os.environ['PATH']}"
        for words in (["submit"], ["run"], ["run", "-d"]):
            with self.subTest(words=words):
                # The parent of the tests may ignore the signal.
                process = subprocess.Popen(
                    ["env", "--default-signal=INT", *self.command(*words, "--snapshot", "job.yaml")], cwd=self.tree / "sub",
                    env={**self.environment, "PATH": path}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                    stdin=subprocess.DEVNULL, start_new_session=True)
                self.started.append(process)
                with open(self.directory / "listed"):
                    pass
                run = self.tree / "sub/runs/job"
                self.assertTrue((run / "trainyard.code").exists())
                os.killpg(process.pid, signal.SIGINT)
                if "-d" in words:
                    # The detached process notices that its parent does not wait any more.
                    process.wait(timeout=PATIENCE_S)
                self.open_gate()
                _, errors = self.end_of(process)
                self.assertEqual(process.returncode, -signal.SIGINT if "-d" in words else 130, errors)
                self.until("the end of the copy", lambda: not run.parent.exists())

    def test_paths_may_have_any_letters(self):
        odd = self.directory / "o d\nd ' {x}"
        shutil.copytree(self.tree, odd, symlinks=True)
        (odd / "two\nlines {y}.txt").write_text("odd\n")
        self.tree = odd
        done = self.there("run", "--snapshot", *LIGHT, "--name", "odd", "--", "cat ../two*; pwd")
        self.assertEqual(done.stderr.count("trainyard:"), 0, done.stderr)
        self.assertEqual((odd / "sub/runs/odd/odd/odd/stdout.log").read_text(),
                         f"odd\n{odd}/sub/runs/odd/trainyard.code/sub\n")
        self.assertEqual(pathlib.Path(odd / "sub/runs/odd/trainyard.code/sub/data").resolve(), odd / "sub/data")
