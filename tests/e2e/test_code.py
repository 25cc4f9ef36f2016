"""The code that attempts ran: a user edits and commits while a sweep runs, and every table shows that later
attempts ran other code.
"""
import os
import sqlite3
from contextlib import closing, suppress

from yard import YardTest, json, pathlib, signal, subprocess

SWEEP = """
name: job
groups:
  - name: g
    max-parallel: 1
    matrix: {n: [1, 2, 3]}
    working-directory: repository
    tasks: [{command: [sh, train.sh, "{n}"]}]
"""
TRAIN = """
while [ ! -e go-$1 ]; do sleep 0.01; done
echo '{"acc": 0.9}' > "$TRAINYARD_RESULT"
exit
"""


class Code(YardTest):
    def git(self, *words):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=self.directory / "repository",
                       check=True)

    def repository(self):
        """Beside the job file: of a run that begins in no work tree nothing is known before its first start."""
        self.write("repository/train.sh", TRAIN)
        self.git("init", "-q")
        self.git("add", "train.sh")
        self.git("commit", "-qm", "one")

    def code_of(self, task, known):
        """Waits until what it runs has been found, and is none of these."""
        def found():
            if not (self.directory / "runs/job/journal.db").exists():
                return None
            for row in self.status(tasks=False)["running"]:
                if row["id"] == task and row["code"] not in (None, *known):
                    return row["code"]
            return None
        return self.until(f"the code of {task}", found)

    def edit(self, text):
        # As editors do: what runs goes on reading the file that it has.
        new = self.write("repository/train.sh.new", TRAIN + text)
        new.replace(self.directory / "repository/train.sh")

    def test_what_started_after_an_edit_is_known_and_marked_in_every_table(self):
        self.repository()
        self.job(SWEEP)
        yard = self.start("run", "job.yaml")
        first = self.code_of("n=1", [])
        self.assertRegex(first, "^[0-9a-f]{7}$")
        self.edit("# edited\n")
        self.write("repository/go-1", "")
        second = self.code_of("n=2", [first])
        self.assertRegex(second, rf"^{first}\+[0-9a-f]{{6}}$")
        shown = self.trainyard("status", "runs/job", "--all", expect=0).stdout
        self.assertRegex(shown, "FINISHED, other code")
        self.assertIn(f"1 task ran other code ({first}) than the tasks that started last ({second}): "
                      "'trainyard retry runs/job --other-code' runs it again\n", shown)
        self.assertIn("the run in 'runs/job' is active: --other-code works only after a run has ended",
                      self.trainyard("retry", "runs/job", "--other-code", expect=2).stderr)
        self.git("commit", "-qam", "two")
        self.write("repository/go-2", "")
        third = self.code_of("n=3", [first, second])
        self.assertRegex(third, "^[0-9a-f]{7}$")
        self.write("repository/go-3", "")
        output, _ = self.end_of(yard, expect=0)

        line = f"2 tasks ran other code ({first}, {second}) than the tasks that started last ({third})"
        if second < first:
            line = line.replace(f"{first}, {second}", f"{second}, {first}")
        self.assertEqual(output.count("FINISHED, other code"), 2)
        cured = line + ": 'trainyard retry runs/job --other-code' runs them again"
        self.assertIn(cured + "\n", output)
        self.assertTrue(self.trainyard("status", "runs/job", expect=0).stdout.endswith("\n\n" + cured + "\n"))
        self.assertEqual(self.trainyard("status", "runs/job", "--all", expect=0).stdout.count(cured), 1)
        tasks = {task["id"]: task for task in self.status()["tasks"]}
        self.assertEqual({name: (task["code"], task["newer_code"]) for name, task in tasks.items()},
                         {"n=1": (first, third), "n=2": (second, third), "n=3": (third, None)})
        report = json.loads(self.text("runs/job/reports/g.json"))
        self.assertEqual([task["code"] for task in report["tasks"]], [first, second, third])
        self.assertEqual([attempt["code"] for attempt in report["attempts"]], [first, second, third])
        page = self.text("runs/job/reports/g.html")
        self.assertEqual(page.count(">other code</span>"), 2)
        self.assertIn(line + ".", page)

        results = self.trainyard("results", "runs/job", expect=0).stdout.splitlines()
        self.assertEqual(results[0].split(), ["n", "status", "time", "code", "acc"])
        self.assertEqual(results[-1], cured)
        table = json.loads(self.trainyard("results", "runs/job", "--json", expect=0).stdout)
        self.assertEqual([row["code"] for row in table["rows"]], [first, second, third])
        self.assertEqual(table["notes"], [cured])

        with closing(sqlite3.connect(self.directory / "runs/job/journal.db")) as journal:
            rows = journal.execute("SELECT changes, git_diff FROM codes ORDER BY number").fetchall()
        self.assertEqual([bool(changes) for changes, _ in rows], [False, True, False])
        self.assertIn("\n+# edited\n", rows[1][1])

        self.assertIn("--changed cannot be combined with --other-code",
                      self.trainyard("retry", "--other-code", "--changed", expect=2).stderr)
        again = self.trainyard("retry", "runs/job", "--other-code", expect=0).stderr
        self.assertIn("2 tasks of 'runs/job':\n  g/n=1: FINISHED after 1 attempt, and ran other code\n"
                      "  g/n=2: FINISHED after 1 attempt, and ran other code\n", again)
        # They end at once now, before git is asked.
        self.assertEqual([(task["id"], task["attempt"], task["newer_code"]) for task in self.status()["tasks"]],
                         [("n=1", 2, None), ("n=2", 2, None), ("n=3", 1, None)])
        self.assertIn("none of the selected tasks of 'runs/job' ran other code than the tasks that started last; ",
                      self.trainyard("retry", "runs/job", "--other-code", expect=2).stderr)

    def test_where_nobody_edits_nothing_is_said_of_code(self):
        self.repository()
        self.job("name: job\ngroups: [{name: g, matrix: {n: [1, 2]}, tasks: [{command: 'true {n}'}]}]", "repository/job.yaml")
        output = self.trainyard("run", "job.yaml", expect=0, cwd=self.directory / "repository").stdout
        self.assertNotIn("code", output)
        codes = {task["code"] for task in self.status("repository/runs/job")["tasks"]}
        self.assertEqual(len(codes), 1)
        self.assertRegex(codes.pop(), "^[0-9a-f]{7}$")
        self.assertNotIn("code", self.trainyard("results", "repository/runs/job", expect=0).stdout)

    def test_a_resumed_run_with_nothing_to_run_says_how_to_run_all_again_and_that_the_code_has_changed(self):
        self.repository()
        self.job("name: job\ngroups: [{name: g, matrix: {n: [1, 2]}, tasks: [{command: 'true {n}'}]}]", "repository/job.yaml")
        here = self.directory / "repository"
        self.trainyard("run", "job.yaml", expect=0, cwd=here)

        def resumed(*words):
            return self.trainyard("run", "job.yaml", "--resume", *words, expect=0, cwd=here)
        nothing = "nothing to run: both tasks have finished\n"
        again = "'trainyard run job.yaml --new' runs all tasks with the code as it is now, in another run\n"
        note = "the code has changed since they ran (files that git tracks); " + again
        self.assertIn(nothing + again, resumed().stderr)
        self.edit("# edited\n")
        self.assertIn(nothing + note, resumed().stderr)
        self.assertIn(nothing + note, resumed("--dry-run").stdout)
        self.git("commit", "-qam", "two")
        self.assertIn(nothing + note, resumed().stderr)
        self.edit("")
        self.assertIn(nothing + again, resumed().stderr, "it is what they ran, in another commit")

    def test_without_git_a_run_goes_as_ever_and_nobody_knows_its_code(self):
        self.job("name: job\ngroups: [{name: g, matrix: {n: [1, 2]}, tasks: [{command: 'true {n}'}]}]")
        # No git lies there.
        (self.directory / "bin").mkdir()
        for name in ("sh", "true"):
            (self.directory / "bin" / name).symlink_to(f"/bin/{name}")
        self.trainyard("run", "job.yaml", expect=0, env={"PATH": str(self.directory / "bin")})
        self.assertEqual([(task["word"], task["code"]) for task in self.status()["tasks"]], [("FINISHED", None)] * 2)

    def test_a_git_that_hangs_holds_up_neither_tasks_nor_the_end(self):
        self.repository()
        here = self.directory
        self.write("bin/git", f'#!/bin/sh\n[ -e {here}/hangs ] || exec /usr/bin/git "$@"\n'
                              f'echo $$ > {here}/asked\nexec sleep 1000\n', 0o755)
        self.job("name: job\ngroups: [{name: g, max-parallel: 1, matrix: {n: [1, 2]}, tasks: [{id: '{n}', "
                 f"command: 'touch {here}/hangs; while [ {{n}} = 2 ] && [ ! -s {here}/asked ]; do sleep 0.01; done'}}]}}]")
        self.trainyard("run", "job.yaml", expect=0, env={"PATH": f"{self.directory}/bin:{os.environ['PATH']}"})
        self.assertEqual(set(self.words().values()), {"FINISHED"})
        # The process that asks git ends with the git that it asked last, which it would kill after five seconds.
        with suppress(ProcessLookupError):
            os.kill(int(self.text("asked")), signal.SIGKILL)
        self.until("the end of the process that asks git",
                   lambda: not any(map(self.is_ours, pathlib.Path("/proc").glob("[0-9]*/comm"))))

    def is_ours(self, path):
        """Whether it is a process that asks git for a run of this test."""
        try:
            environment = (path.parent / "environ").read_bytes()
            return path.read_text().strip() == "trainyard-code" and str(self.directory).encode() in environment
        except OSError:
            return False
