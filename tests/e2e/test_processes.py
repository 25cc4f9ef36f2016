"""The fate of processes: none of a run outlives it, however it ends."""
import fcntl
import os
import pty
import signal
import subprocess
import termios

from yard import PATIENCE_S, TRAINYARD, YardTest, alive, guard_of, keeper_of, own_mounts, processes_with

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

    def test_the_socket_that_is_left_where_keeper_and_guard_are_killed_too_goes_with_the_next_yard(self):
        self.job(job_of("[sleep, 1000]"))
        yard = self.start("run", "job.yaml")
        self.running(1)
        all_three = (yard.pid, keeper_of(yard.pid), guard_of(yard.pid))
        # None of them comes to see that another has died.
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in all_three:
                os.kill(pid, number)
        yard.wait()
        # The task ends with the keeper.
        self.nobody_is_left()
        self.assertEqual([directory.name[:10] for directory in self.sockets.iterdir()], ["trainyard-"])
        self.job(job_of("'true'"), "next.yaml")
        self.trainyard("run", "next.yaml", "--run-dir", "next", expect=0)
        self.assertEqual(list(self.sockets.iterdir()), [])

    def test_nothing_outlives_a_yard_that_is_killed(self):
        self.job(job_of(DAEMON.replace("{then}", "sleep 1000")))
        yard = self.start("run", "job.yaml")
        self.until_written("daemon.pid")
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
        way_on = "resume it with 'trainyard run --resume runs/job'\n"
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
        self.assertEqual(yard.wait(PATIENCE_S), 0)
        yard.stdout.close()
        self.assertEqual(self.words(), {"g/a": "FINISHED"})

    def run_away(self):
        """A run with a task that ends on TERM, and a daemon of it that hides whose it is."""
        self.job(job_of(DAEMON.replace("setsid sh", "env -i PATH=/bin:/usr/bin setsid sh")
                        .replace("{then}", "sleep 1000")))

    def the_daemon_is_gone(self):
        self.until("the daemon's end", lambda: not alive(int(self.text("daemon.pid"))))

    def test_nothing_outlives_a_kill_by_name(self):
        # In a world of its own, where no other processes have that name, and the first process
        # cannot be killed.
        world = own_mounts("--pid", "--mount-proc", "--fork", "--kill-child", "--propagation", "unchanged")
        self.run_away()
        self.write("kill.sh", """
"$1" run job.yaml --run-dir "$2" --set utilization-limit.cpu=100% 2>/dev/null &
until test -s daemon.pid && ps -e -o comm= > before && grep -q -x sleep before; do :; done
/usr/bin/pkill -9 $3 trainyard
wait
for try in $(seq 3000); do
  ps -e -o comm= | grep -v -x -E 'sh|ps|grep' > left || break
  sleep 0.01
done
""")
        for option in ("", "-f"):
            subprocess.run([*world, "sh", "kill.sh", TRAINYARD, "runs/by-name" + option, option], cwd=self.directory,
                           env=self.environment, timeout=PATIENCE_S, check=True)
            for name in ("trainyard", "trainyard-keep", "yard-guard", "sleep"):
                self.assertIn(name, self.text("before").split())
            self.assertEqual(self.text("left"), "", option)
            (self.directory / "daemon.pid").unlink()

    def test_nothing_outlives_a_kill_of_its_terminal(self):
        self.run_away()
        terminal, its_end = pty.openpty()
        yard = subprocess.Popen([TRAINYARD, "run", "job.yaml", "--set", "utilization-limit.cpu=100%"], cwd=self.directory,
                                env=self.environment, stdin=its_end, stdout=its_end, stderr=its_end,
                                preexec_fn=lambda: (os.setsid(), fcntl.ioctl(0, termios.TIOCSCTTY, 0)))
        self.started.append(yard)
        self.until_written("daemon.pid")
        # Killing a terminal kills the processes that belong to it.
        subprocess.run(["pkill", "-9", "-t", os.ttyname(its_end).removeprefix("/dev/")], check=True)
        yard.wait(PATIENCE_S)
        for end in (terminal, its_end):
            os.close(end)
        self.the_daemon_is_gone()
        self.nobody_is_left()

    def test_a_limit_of_the_size_of_files_is_named_and_ends_tasks_alone(self):
        def limited(blocks):
            return ["sh", "-c", f'ulimit -f {blocks} && exec "$@"', "sh"]
        self.job(job_of("[dd, if=/dev/zero, of=large, bs=1M, count=4]"))
        self.assertIn("'ulimit -f'", self.trainyard("run", "job.yaml", prefix=limited(80), expect=2).stderr)
        self.trainyard("run", "job.yaml", "--run-dir", "runs/more", prefix=limited(4000), expect=1)
        task, = self.status("runs/more")["tasks"]
        self.assertEqual((task["word"], task["message"]), ("KILLED", "killed by signal 25 (SIGXFSZ)"))

    def test_a_limit_of_open_files_that_is_too_low_is_named_and_ends_no_command_by_a_signal(self):
        def limited(files):
            return ["sh", "-c", f'ulimit -n {files} && exec "$@"', "sh"]
        self.job(job_of("['true']"))
        for files in (8, 12, 20, 31):
            refused = self.trainyard("run", "job.yaml", prefix=limited(files), expect=2)
            self.assertIn(f"32 open files are needed, but {files} are allowed (ulimit -Hn); start it from a shell with a higher limit", refused.stderr)
        self.trainyard("run", "job.yaml", expect=0)
        self.assertIn("too many open files, see 'ulimit -n'", self.trainyard("status", prefix=limited(5), expect=75).stderr)

    def test_a_task_that_cuts_a_file_of_the_journal_ends_the_run_with_a_sentence_and_it_is_resumed(self):
        self.job(job_of("'if ! test -e cut; then touch cut; : > $TRAINYARD_RUN_DIR/journal.db-shm; fi'"))
        died = self.trainyard("run", "job.yaml", expect=75)
        self.assertEqual(died.stderr.count("was cut short while trainyard used it"), 1, died.stderr)
        self.trainyard("run", "job.yaml", "--resume", expect=0)
        self.assertEqual(self.status(tasks=False)["groups"][0]["finished"], 1)

    def test_more_tasks_than_descriptors_wait_and_run(self):
        os.mkfifo(self.directory / "gate")
        self.job("""
name: job
groups:
  - name: g
    cpus: 0
    memory: 1kB
    matrix: {i: 1..100}
    tasks: [{command: [cat, gate]}]
""")
        limited = ["sh", "-c", 'ulimit -n 128 && exec "$@"', "sh"]
        yard = self.start("run", "job.yaml", "--set", "scheduler.max-process=0", prefix=limited)
        self.until("a few dozen running tasks", lambda: len(processes_with(self.environment_of_run())) >= 40)
        self.keep_opening_gate(yard)
        _, errors = self.end_of(yard, expect=0)
        self.assertIn("open files (ulimit -n): 128, so at most 64 tasks at once", errors)
        groups = self.status(tasks=False)["groups"]
        self.assertEqual((groups[0]["tasks"], groups[0]["finished"]), (100, 100))
