"""What becomes of processes: none of a run outlives it, however it ends."""
import os
import signal
import subprocess

from yard import YardTest, alive, processes_with

# A grandchild in a session of its own, as a badly behaved data loader or server would be.
DAEMON = "[sh, -c, 'setsid sh -c \"sleep 1000 & echo \\$! > daemon.pid; wait\" & while ! test -s daemon.pid; do :; done; {then}']"


def job_of(command, more="cpus: 0"):
    return f"""
name: job
groups:
  - name: g
    {more}
    memory: 10MB
    tasks:
      - id: a
        command: {command}
"""


class Processes(YardTest):
    def environment_of_run(self):
        return f"TRAINYARD_RUN_DIR={self.directory.resolve()}/runs/job"

    def nobody_is_left(self):
        self.until("the end of every process of the run", lambda: not processes_with(self.environment_of_run()))

    def running(self, count=1):
        return self.until("running tasks", lambda: len(processes_with(self.environment_of_run())) >= count)

    def test_standard_descriptors_that_are_closed_do_no_harm(self):
        self.job("name: job\ngroups: [{name: g, tasks: [{id: a, command: [sh, -c, 'echo out; echo err >&2']}]}]")
        self.trainyard("run", "job.yaml", expect=0, prefix=["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"])
        self.assertEqual(self.words(), {"g/a": "FINISHED"})
        self.assertEqual(self.text("runs/job/g/a/stdout.log"), "out\n")
        self.assertRegex(self.text("runs/job/lock"), r"^\d+\n$")

    def test_a_grandchild_in_its_own_session_ends_with_its_task(self):
        self.job(job_of(DAEMON.replace("{then}", "exit 0")))
        self.trainyard("run", "job.yaml", expect=0)
        self.assertFalse(alive(int(self.text("daemon.pid"))))
        self.nobody_is_left()

    def test_nothing_outlives_a_yard_that_is_killed(self):
        self.job(job_of(DAEMON.replace("{then}", "sleep 1000")))
        yard = self.start("run", "job.yaml")
        self.until_file("daemon.pid")
        self.running(2)
        yard.kill()
        yard.wait()
        self.nobody_is_left()
        self.until("the daemon's end", lambda: not alive(int(self.text("daemon.pid"))))

    def test_ctrl_c_ends_running_tasks_gently_and_starts_no_more(self):
        self.job(job_of("[sh, -c, 'trap \"echo saved; exit 0\" TERM; echo ready; while :; do sleep 0.01; done']")
                 + "      - {id: b, command: ['true'], cpus: 0}\n", )
        yard = self.start("run", "job.yaml", "--set", "scheduler.max-process=1")
        self.until("the task's first line", lambda: (self.directory / "runs/job/g/a/stdout.log").exists()
                   and "ready" in self.text("runs/job/g/a/stdout.log"))
        yard.send_signal(signal.SIGINT)
        _, errors = self.end_of(yard, expect=130)
        way_on = "'trainyard run --resume runs/job' goes on\n"
        self.assertTrue(errors.endswith(f"trainyard: interrupted; {way_on}"), errors)
        self.assertIn(way_on, self.trainyard("status", "runs/job").stdout)
        self.assertEqual(self.text("runs/job/g/a/stdout.log"), "ready\nsaved\n")
        self.assertEqual(self.words(), {"g/a": "STOPPED", "g/b": "STOPPED"})
        self.nobody_is_left()

    def test_a_second_ctrl_c_ends_them_at_once(self):
        self.job(job_of("[sh, -c, 'trap \"echo asked\" TERM; echo ready; while :; do sleep 0.01; done']"))
        yard = self.start("run", "job.yaml")
        log = "runs/job/g/a/stdout.log"
        self.until("the task's first line", lambda: (self.directory / log).exists() and "ready" in self.text(log))
        yard.send_signal(signal.SIGINT)
        self.until("the first signal", lambda: "asked" in self.text(log))
        yard.send_signal(signal.SIGINT)
        self.end_of(yard, expect=130)
        self.nobody_is_left()

    def test_a_lost_terminal_does_not_end_the_run(self):
        os.mkfifo(self.directory / "gate")
        self.job(job_of("[cat, gate]"))
        yard = self.start("run", "job.yaml")
        self.running()
        yard.send_signal(signal.SIGHUP)
        yard.stderr.close()
        self.open_gate()
        self.assertEqual(yard.wait(60), 0)
        yard.stdout.close()
        self.assertEqual(self.words(), {"g/a": "FINISHED"})

    def test_the_death_of_the_keeper_ends_the_run_with_what_it_knows(self):
        self.job(job_of("[sleep, '1000']") + "      - {id: b, command: ['true']}\n")
        yard = self.start("run", "job.yaml", "--set", "scheduler.max-process=1")
        self.running()
        keeper = int(subprocess.run(["pgrep", "-P", str(yard.pid)], capture_output=True, text=True).stdout.split()[0])
        os.kill(keeper, signal.SIGKILL)
        _, errors = self.end_of(yard, expect=1)
        self.assertIn("keeper", errors)
        self.assertEqual(self.words(), {"g/a": "LOST", "g/b": "STOPPED"})
        self.nobody_is_left()

    def test_the_peak_of_a_task_is_that_of_its_whole_tree(self):
        child = "import time\\nx = bytearray(100_000_000)\\nprint(1, flush=True)\\ntime.sleep(1000)"
        self.write("tree.py", f"""
import subprocess, sys, time
children = [subprocess.Popen([sys.executable, "-c", "{child}"], stdout=subprocess.PIPE) for _ in range(4)]
for child in children: child.stdout.readline()
open("ready", "w").close()
while True: time.sleep(0.05) if not __import__("os").path.exists("seen") else sys.exit([c.kill() for c in children] and 0)
""")
        self.job(job_of("[/usr/bin/python3, tree.py]"))
        yard = self.start("run", "job.yaml")
        self.until_file("ready")
        self.until("a sample of the tree", lambda: (self.status()["running"] or [{"memory_now_bytes": 0}])[0]
                   ["memory_now_bytes"] >= 400_000_000)
        self.write("seen", "")
        self.end_of(yard, expect=0)
        self.assertGreaterEqual(self.status()["tasks"][0]["memory_peak_bytes"], 400_000_000)

    def test_thousands_of_waiting_tasks_fit_into_few_descriptors(self):
        os.mkfifo(self.directory / "gate")
        self.job("""
name: job
groups:
  - name: g
    cpus: 0
    memory: 1kB
    matrix: {i: 1..5000}
    tasks: [{command: [cat, gate]}]
""")
        limited = ["sh", "-c", 'ulimit -n 512 && exec "$@"', "sh"]
        yard = self.start("run", "job.yaml", "--set", "scheduler.max-process=0", prefix=limited)
        self.until("a few hundred running tasks", lambda: len(processes_with(self.environment_of_run())) >= 200)
        self.keep_opening_gate(yard)
        _, errors = self.end_of(yard, expect=0)
        self.assertIn("open files (ulimit -n): 512, so at most 448 tasks at once", errors)
        groups = self.status(tasks=False)["groups"]
        self.assertEqual((groups[0]["tasks"], groups[0]["finished"]), (5000, 5000))
