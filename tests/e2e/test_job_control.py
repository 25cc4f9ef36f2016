"""Ctrl-Z and fg: a run that a shell stops at its terminal, and what becomes of its tasks meanwhile and afterwards."""
import shlex
import shutil
import unittest

from terminal import Terminal
from yard import SETTINGS, TRAINYARD, YardTest, alive, json, keeper_of, os, processes_with, signal, state_of

JOB = """
name: job
groups:
  - {name: g, cpus: 0, memory: 10MB, tasks: [{id: ends, command: 'echo up > up; cat gate; echo done > ends.done'}]}
  - name: other
    needs: []
    cpus: 0
    memory: 10MB
    tasks: [{id: stays, command: 'cat other; echo done'}, {id: late, command: 'exec sleep 1000', time-limit: 1s}]
  - {name: h, needs: g, cpus: 0, memory: 1MB, tasks: [{id: next, command: 'echo done > next.done'}]}
"""
SHELLS = {"bash": ["bash", "--norc", "--noprofile", "-i"], "zsh": ["zsh", "-f", "-i"]}


class JobControl(YardTest):
    def begin(self, name):
        for gate in ("gate", "other"):
            os.mkfifo(self.directory / gate)
        self.job(JOB)
        self.environment.update(TERM="xterm", PS1="ready> ", HISTFILE="")
        shell = Terminal(SHELLS[name], self.directory, self.environment)
        self.addCleanup(self.kill_all)
        self.addCleanup(shell.close)
        shell.until_shown("ready> ")
        self.modes_of_commands(shell, "before")
        at = len(shell.shown)
        shell.type(" ".join([shlex.quote(TRAINYARD), "run", "job.yaml", *SETTINGS]) + "\r")
        shell.until(lambda: (self.directory / "up").exists() and self.running() >= {"ends", "stays"}, "its tasks")
        shell.until_shown("running, 1 waiting", after=at)
        self.run_pid = shell.foreground()
        self.assertNotEqual(self.run_pid, shell.child)
        return shell

    def kill_all(self):
        """The run is in a process group of its own, and outlives its shell."""
        for pid in processes_with(f"XDG_RUNTIME_DIR={self.sockets}"):
            os.kill(pid, signal.SIGKILL)

    def modes_of_commands(self, shell, name):
        """The modes of the terminal as a command of the shell finds them, which are not those of its own prompt."""
        shell.type(f"stty -a > {name}.new; mv {name}.new {name}\r")
        shell.until((self.directory / name).exists, "the modes")
        return self.text(name)

    def running(self):
        if not (self.directory / "runs/job/journal.db").exists():
            return set()
        return {task["id"] for task in self.status()["tasks"] if task["word"] == "RUNNING"}

    def stop(self, shell):
        at = len(shell.shown)
        shell.type("\x1a")
        shell.until(lambda: state_of(self.run_pid) == "T", "the run to be suspended")
        shell.until_shown("ready> ", after=at)

    def goes_on(self, name):
        shell = self.begin(name)
        keeper = keeper_of(self.run_pid)
        self.stop(shell)
        self.assertEqual(json.loads(self.trainyard("status", "--json", expect=0).stdout)["state"], "suspended")
        self.assertIn("suspended: process", self.trainyard("status", expect=0).stdout)
        self.assertEqual([row["word"] for row in json.loads(self.trainyard("status", "--json", cwd="/", expect=0).stdout)["runs"]],
                         ["SUSPENDED"])
        self.assertIn(f"which is suspended, as by Ctrl-Z: 'kill -CONT {self.run_pid}' resumes it\n",
                      self.trainyard("run", "--resume", "runs/job", expect=2).stderr)
        self.assertEqual(self.modes_of_commands(shell, "suspended"), self.text("before"))
        # Running tasks go on, and end, also those at their time limit; nothing begins.
        self.open_gate()
        self.until_file("ends.done")
        self.assertFalse((self.directory / "next.done").exists())
        self.assertLessEqual({"ends", "stays"}, self.running(), "nobody has written anything down")
        self.assertEqual(keeper_of(self.run_pid), keeper)
        at = len(shell.shown)
        shell.type("fg\r")
        self.until_file("next.done")
        # The line is drawn anew, with what happened meanwhile.
        shell.until_shown("2/4 done, ", after=at)
        shell.until_shown("other/late: FAILED TIMEOUT")
        self.assertEqual(keeper_of(self.run_pid), keeper, "it was not replaced")
        with open(self.directory / "other", "w"):
            pass
        shell.until_shown("reports: runs/job", after=at)
        shell.type("echo code''=$?\r")
        shell.until_shown("code=1", after=at)
        self.assertEqual(self.words(), {"g/ends": "FINISHED", "other/stays": "FINISHED", "other/late": "TIMEOUT",
                                        "h/next": "FINISHED"})
        self.assertEqual([task["attempt"] for task in self.status()["tasks"]], [1, 1, 1, 1])
        self.assertEqual(self.modes_of_commands(shell, "after"), self.text("before"))
        shell.until(lambda: shell.foreground() == shell.child, "the shell")

    def test_bash_stops_a_run_and_lets_it_go_on(self):
        self.goes_on("bash")

    @unittest.skipUnless(shutil.which("zsh"), "zsh is installed for `make check` alone")
    def test_zsh_stops_a_run_and_lets_it_go_on(self):
        self.goes_on("zsh")

    def test_a_run_may_be_stopped_often_and_go_on_in_the_background(self):
        shell = self.begin("bash")
        for _ in range(5):
            self.stop(shell)
            shell.type("fg\r")
            shell.until(lambda: state_of(self.run_pid) != "T" and shell.foreground() == self.run_pid, "the run to go on")
        self.stop(shell)
        shell.type("bg\r")
        self.open_gate()
        self.until_file("next.done")
        with open(self.directory / "other", "w"):
            pass
        shell.until_shown("reports: runs/job")
        self.assertEqual(self.words()["g/ends"], "FINISHED")

    def test_a_stopped_run_that_is_ended_leaves_nothing(self):
        shell = self.begin("bash")
        self.stop(shell)
        keeper = keeper_of(self.run_pid)
        # The shell lets it go on to hear of it.
        shell.type("kill %1\r")
        self.until("the run to end", lambda: not alive(self.run_pid))
        self.until("the keeper to end", lambda: not alive(keeper))
        self.assertEqual(processes_with(f"TRAINYARD_RUN_DIR={self.directory}/runs/job"), [])
        self.assertEqual(set(self.words().values()) - {"STOPPED", "TIMEOUT"}, set())

    def test_a_stopped_run_whose_terminal_goes_away_goes_on(self):
        shell = self.begin("bash")
        self.stop(shell)
        # The kernel lets it go on then, and a lost terminal ends no run.
        os.kill(shell.child, signal.SIGKILL)
        self.open_gate()
        self.until_file("next.done")
        with open(self.directory / "other", "w"):
            pass
        self.until("the run to end", lambda: not alive(self.run_pid))
        self.assertEqual(self.words(), {"g/ends": "FINISHED", "other/stays": "FINISHED", "other/late": "TIMEOUT",
                                        "h/next": "FINISHED"})
