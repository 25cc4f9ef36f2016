"""Progress and results that tasks report: in lines that they print, by a pattern for the lines of other programs, in Python,
and by the client. Live in `status`, drawn in the report, and the result if there is no other.
"""
import sys
import unittest

from yard import CLIENT, PATIENCE_S, TRAINYARD, YardTest, alive, json, os, signal, subprocess, suspend

# The last steps of each, before it waits for the gate and after it.
TASKS = {
    "prints": ("echo '::metric loss=0.5 step=1 fraction=0.25'", "echo '::metric loss=0.25 step=2 fraction=1'"),
    "other": ("echo 'epoch 1: loss: 0.75 of 9'", "printf '\\repoch 2: loss: 0.5\\repoch 3: loss' >&2; printf ': 0.125' >&2"),
    "client": (f"{TRAINYARD} client progress 0.4 loss=0.7 phase=warm", f"{TRAINYARD} client progress 0.9 loss=0.6"),
    "python": ("/usr/bin/python3 step.py 0.5 0.31", "/usr/bin/python3 step.py 1 0.21"),
}
STEP = """
import sys, trainyard
trainyard.progress(float(sys.argv[1]), loss=9)
trainyard.progress(float(sys.argv[1]), loss=float(sys.argv[2]))
"""
# The output of tasks is read with each look at the machine.
READS_OFTEN = ("--set", "scheduler.interval=100ms")
PATTERN = "'loss[=:] ?(?P<loss>[0-9.e+-]*[0-9])'"


class Metrics(YardTest):
    def setUp(self):
        super().setUp()
        self.environment["PYTHONPATH"] = str(CLIENT)

    def group(self, tasks, more=""):
        """A job of commands for the shell, all of which run at once: {id: command}."""
        rows = "".join(f"  - {{id: {id}, command: {json.dumps(command)}}}\n" for id, command in tasks.items())
        self.job(f"groups:\n- name: g\n  memory: 10MB\n  cpus: 0\n{more}  tasks:\n{rows}")

    def tasks(self):
        return {task["id"]: task for task in self.status()["tasks"]}

    def results(self, tasks, more="", expect=0):
        """The results of commands."""
        self.group(tasks, more)
        self.trainyard("run", "job.yaml", "--new", expect=expect)
        newest = sorted((self.directory / "runs").glob("job*"), key=lambda path: path.stat().st_mtime_ns)[-1]
        return {task["id"]: task["result"] for task in self.status(newest)["tasks"]}

    def gated(self):
        """The four ways, which say something, wait for the gate, and say the last of it."""
        os.mkfifo(self.directory / "gate")
        self.write("step.py", STEP)
        self.group({id: f"{before}; read x < gate; {after}" for id, (before, after) in TASKS.items()},
                   f"  metrics: {PATTERN}\n")
        return self.start("run", "job.yaml", *READS_OFTEN)

    def test_are_live_and_kept_and_drawn_whoever_says_them(self):
        yard = self.gated()
        first = {"prints": (0.25, {"loss": 0.5, "step": 1}), "other": (None, {"loss": 0.75}),
                 "client": (0.4, {"loss": 0.7, "phase": "warm"}), "python": (0.5, {"loss": 0.31})}
        said = lambda: {id: (task["progress"], task["progress_values"]) for id, task in self.tasks().items()}
        self.until("all to say something", lambda: (self.directory / "runs/job/journal.db").exists() and said() == first)
        text = self.trainyard("status", expect=0).stdout
        self.assertIn("PROGRESS", text)
        self.assertRegex(text, r"g/prints .* 25 % loss=0\.5 step=1\n")
        self.assertRegex(text, r"g/other .* loss=0\.75\n")
        self.keep_opening_gate(yard)
        self.end_of(yard, expect=0)
        self.assertEqual(said(), {"prints": (1, {"loss": 0.25, "step": 2}), "other": (None, {"loss": 0.125}),
                                  "client": (0.9, {"loss": 0.6}), "python": (1, {"loss": 0.21})})
        # None of them has left a result.
        self.assertEqual({id: task["result"] for id, task in self.tasks().items()},
                         {"prints": {"loss": 0.25, "step": 2}, "other": {"loss": 0.125}, "client": {"loss": 0.6, "phase": "warm"},
                          "python": {"loss": 0.21}})
        table = self.trainyard("results", "--sort", "loss", "--csv", expect=0).stdout.splitlines()
        columns = table[0].split(",")
        rows = [dict(zip(columns, line.split(","))) for line in table[1:]]
        self.assertEqual([(row["task"], row["loss"], row["step"]) for row in rows],
                         [("other", "0.125", ""), ("python", "0.21", ""), ("prints", "0.25", "2"), ("client", "0.6", "")])
        page = self.text("runs/job/reports/g.html")
        curves = page[page.index('<div class="curves">'):]
        for id in TASKS:
            self.assertIn(f"<title>{id}", curves)

    def test_are_kept_with_their_curves_over_a_resume(self):
        os.mkfifo(self.directory / "gate")
        self.group({"done": "echo '::metric loss=2'; read x < gate; echo '::metric loss=1'",
                    "held": "test $TRAINYARD_ATTEMPT = 2 || { echo '::metric loss=8'; exec sleep 1000; }"})
        yard = self.start("run", "job.yaml", *READS_OFTEN)
        there = lambda id, value: (self.directory / "runs/job/journal.db").exists() and \
            self.tasks()[id]["progress_values"] == {"loss": value}
        self.until("both to say something", lambda: there("done", 2) and there("held", 8))
        self.open_gate()
        self.until("the end of one", lambda: self.words()["g/done"] == "FINISHED")
        yard.kill()
        self.end_of(yard)
        self.trainyard("run", "job.yaml", "--resume", expect=0)
        self.assertEqual({id: task["result"] for id, task in self.tasks().items()}, {"done": {"loss": 1}, "held": None})
        self.assertEqual(self.tasks()["done"]["progress_values"], {"loss": 1})
        self.assertIn("<title>done", self.text("runs/job/reports/g.html"))

    def test_give_way_to_a_result(self):
        self.assertEqual(self.results({
            "left": "echo '::metric loss=1'; echo '{\"acc\": 0.5}' > $TRAINYARD_RESULT",
            "bad": "echo '::metric loss=1'; echo 'no JSON' > $TRAINYARD_RESULT",
            "waits": f"{TRAINYARD} client wait-device", "failed": "echo '::metric loss=1'; exit 3"}, expect=1),
            {"left": {"acc": 0.5}, "bad": {"loss": 1}, "waits": None, "failed": {"loss": 1}})

    def test_a_pattern_that_is_wrong_is_refused_with_its_place(self):
        self.group({"a": "true"}, "  metrics: 'loss=([0-9.]+'\n")
        refused = self.trainyard("run", "job.yaml", expect=2)
        self.assertEqual(refused.stderr.splitlines()[0],
                         "trainyard: job.yaml:5:12: group 'g': metrics: not a valid regular expression (RE2): missing ')': loss=([0-9.]+")
        self.assertFalse((self.directory / "runs").exists())

    def test_are_said_in_python_by_forks_ranks_and_preloaded_tasks_of_one_phase(self):
        self.write("forks.py", """
import os, trainyard
trainyard.progress(0.5, parent=1)
child = os.fork()
if child == 0:
    trainyard.progress(1, child=2)
    trainyard.client._help.tell_progress()  # A process that ends by _exit() sends no last report.
    os._exit(0)
os.waitpid(child, 0)
# There is no device to wait for.
assert [type(attempt.__enter__()) for attempt, _ in zip(trainyard.attempts(), [1])] == [str]
""")
        self.write("rank.py", "import os, trainyard\ntrainyard.progress(rank=int(os.environ['RANK']))\n"
                              "print('::metric printed=' + os.environ['RANK'])\n")
        self.write("warm.py", "import json, trainyard\ntrainyard.progress(loss=float(json.loads('3')))\n")
        self.job("groups:\n"
                 "- {name: a, memory: 50MB, cpus: 0, tasks: [{id: forks, command: /usr/bin/python3 forks.py},"
                 " {id: ranks, ranks: 2, command: /usr/bin/python3 rank.py}]}\n"
                 "- {name: b, memory: 50MB, cpus: 0, needs: [], preload: json,"
                 " tasks: [{id: warm, command: /usr/bin/python3 warm.py}]}\n")
        self.trainyard("run", "job.yaml", expect=0)
        self.assertEqual({id: task["result"] for id, task in self.tasks().items()},
                         {"forks": {"parent": 1, "child": 2}, "ranks": {"printed": 0, "rank": 0}, "warm": {"loss": 3}})

    def test_said_just_before_the_end_are_kept_where_the_end_is_heard_of_first(self):
        sys.path.insert(0, str(CLIENT))
        self.addCleanup(sys.path.remove, str(CLIENT))
        from trainyard import client
        os.mkfifo(self.directory / "gate")
        self.job("groups: [{name: g, cpus: 0, memory: 10MB, tasks: [{id: a, command: 'echo $TRAINYARD_SOCKET "
                 "$TRAINYARD_TOKEN $$ > said.new; mv said.new said; cat gate'}]}]\n")
        yard = self.start("run", "job.yaml")
        self.until_written("said")
        socket, token, task = self.text("said").split()
        self.until("the task", lambda: self.tasks()["a"]["word"] == "RUNNING")
        # In its place, so that the end can come before the word.
        helper = client._Yard(socket, token, helps=True)
        self.addCleanup(helper._socket.close)
        suspend(yard.pid)
        self.open_gate()
        self.until("its end", lambda: not alive(int(task)))
        # The keeper has told of it by the time that another command has looked: else this shows less, and passes.
        self.assertEqual(self.status()["state"], "suspended")
        helper.progress({"say": "progress", "fraction": 0.5, "values": {"loss": 7}})
        os.kill(yard.pid, signal.SIGCONT)
        self.end_of(yard, expect=0)
        (row,) = self.tasks().values()
        self.assertEqual((row["progress"], row["result"]), (0.5, {"loss": 7}))

    def test_said_one_after_the_other_are_all_kept_also_of_a_process_of_python(self):
        self.write("said.py", """
import multiprocessing, trainyard
def work():
    for i in range(300):
        trainyard.progress(loss=i)
if __name__ == "__main__":
    trainyard.progress(0.1, first=1)
    trainyard.progress(0.2, second=2)
    trainyard.progress(0.3)
    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    process.join()
""")
        self.job("name: job\ngroups: [{name: g, tasks: [{id: a, command: [python3, said.py]}]}]")
        self.trainyard("run", "job.yaml", expect=0)
        row = self.status()["tasks"][0]
        self.assertEqual(row["result"], {"first": 1, "second": 2, "loss": 299})

    def test_are_no_reason_to_wait_for_a_yard_that_is_gone(self):
        script = "import trainyard\nfor n in range(3): trainyard.progress(n / 3, loss=n)\n"
        gone = subprocess.run(["/usr/bin/python3", "-c", script], capture_output=True, text=True, timeout=PATIENCE_S, check=True,
                              env={**self.environment, "TRAINYARD_PHASES": "1", "TRAINYARD_TOKEN": "a",
                                   "TRAINYARD_SOCKET": str(self.directory / "none")})
        self.assertEqual(gone.stderr, "trainyard: progress is not told: [Errno 2] No such file or directory\n")


if __name__ == "__main__":
    unittest.main()
