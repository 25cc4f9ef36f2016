"""The right end of each fault: its status and message, and the others finish."""
import os
import resource
import shutil
import signal
import subprocess

from yard import YardTest, alive, json, processes_with


def job_of(command, more=""):
    """A task that has the fault, between two that have none."""
    return f"""
name: job
groups:
  - name: g
    cpus: 0
    memory: 10MB
    tasks:
      - {{id: before, command: ['true']}}
      - id: bad
        command: {command}
        {more}
      - {{id: after, command: ['true']}}
"""


class Fault(YardTest):
    def faulty(self, command, more="", expect=1):
        self.job(job_of(command, more))
        self.done = self.trainyard("run", "job.yaml", expect=expect)
        rows = {row["id"]: row for row in self.status()["tasks"]}
        self.assertEqual((rows["before"]["word"], rows["after"]["word"]), ("FINISHED", "FINISHED"))
        return rows["bad"]

    def test_a_command_that_says_it_ran_out_of_memory_is_tried_again_with_more(self):
        texts = {"cuda": "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB", "bus": "Bus error (core dumped)",
                 "cpp": "terminate called after throwing an instance of 'std::bad_alloc'"}
        job = "name: job\ngroups:\n  - name: g\n    memory: 50MB\n    cpus: 0\n    tasks:\n"
        for name, text in texts.items():
            self.write(name + ".sh", f"""[ $TRAINYARD_ATTEMPT = 2 ] || {{ echo "{text}" >&2; exit 1; }}\n""")
            job += f"      - {{id: {name}, command: [sh, {name}.sh]}}\n"
        self.job(job + "      - {id: signal, command: 'test $TRAINYARD_ATTEMPT = 2 || kill -BUS $$'}\n"
                 "      - {id: other, command: 'echo no memory of this >&2; exit 1'}\n")
        self.trainyard("run", "job.yaml", expect=1)
        rows = {row["id"]: row for row in self.status()["tasks"]}
        for name in [*texts, "signal"]:
            # More memory of the host does not help a task that needs a GPU that it was not given.
            self.assertEqual((rows[name]["word"], rows[name]["attempt"], rows[name]["memory_requested_bytes"]),
                             ("FINISHED", 2, 50_000_000 if name == "cuda" else 60_000_000), name)
        self.assertEqual((rows["other"]["word"], rows["other"]["attempt"]), ("EXIT 1", 1))

    def test_a_task_killed_by_a_signal(self):
        row = self.faulty("[sh, -c, 'kill -9 $$']")
        self.assertEqual((row["word"], row["message"]), ("KILLED", "killed by signal 9 (SIGKILL)"))

    def test_a_task_that_crashes(self):
        row = self.faulty("[sh, -c, 'kill -SEGV $$']")
        self.assertEqual((row["word"], row["end"], row["exit_code"], row["message"]),
                         ("SIGSEGV", "crashed", None, "crashed with SIGSEGV (segmentation fault)"))

    def test_a_task_that_exits_non_zero(self):
        row = self.faulty("[sh, -c, 'exit 7']")
        self.assertEqual((row["word"], row["exit_code"], row["message"]), ("EXIT 7", 7, "exited with code 7"))

    def test_words_on_standard_output_count_where_standard_error_is_empty(self):
        self.write("oom.sh", "[ $TRAINYARD_ATTEMPT = 2 ] || { echo MemoryError; exit 1; }\n")
        self.job("name: job\ngroups:\n  - name: g\n    memory: 50MB\n    tasks:\n"
                 "      - {id: merged, command: [sh, -c, 'python3 -c \"import nosuch\" 2>&1']}\n"
                 "      - {id: silent, command: [sh, -c, 'echo half way; exit 3']}\n"
                 "      - {id: oom, command: [sh, oom.sh]}\n")
        done = self.trainyard("run", "job.yaml", expect=1)
        said = "ModuleNotFoundError: No module named 'nosuch'"
        self.assertRegex(done.stderr, f"g/merged: FAILED EXIT 1 after .*: {said}, see runs/job/g/merged/stdout.log")
        self.assertRegex(done.stderr, "g/silent: FAILED EXIT 3 after .*: last output: 'half way', see runs/job/g/silent/stdout.log")
        rows = {row["id"]: row for row in self.status()["tasks"]}
        self.assertEqual((rows["merged"]["message"], rows["oom"]["word"], rows["oom"]["attempt"]), (said, "FINISHED", 2))
        self.assertIn("    runs/job/g/merged/stdout.log\n", self.trainyard("status", "runs/job", expect=0).stdout)

    def test_what_a_task_said_last_is_what_it_failed_of(self):
        self.write("bad.py", "import sys\nprint('loading', file=sys.stderr)\nimport nothing_of_that_name\n")
        self.job("name: job\ngroups: [{name: g, tasks: [{id: bad, command: python3 bad.py}]}]\n")
        said = "ModuleNotFoundError: No module named 'nothing_of_that_name'"
        done = self.trainyard("run", "job.yaml", expect=1)
        self.assertRegex(done.stderr, f"g/bad: FAILED EXIT 1 after .*: {said}, see .*stderr.log")
        status = self.trainyard("status", "runs/job", expect=0)
        self.assertIn(said, status.stdout)
        self.assertRegex(self.trainyard("status", "runs/job", "--all", expect=0).stdout, f"bad .*EXIT 1.*{said}")
        self.assertEqual(self.status()["failed"][0]["message"], said)
        report = json.loads(self.text("runs/job/reports/g.json"))
        self.assertEqual(report["tasks"][0]["message"], said)
        self.assertIn(said.replace("'", "&#39;"), self.text("runs/job/reports/g.html"))

    def test_a_command_that_is_not_executable(self):
        self.write("train.py", "print('hello')\n")
        row = self.faulty("[./train.py]")
        self.assertEqual(row["word"], "CANNOT_START")
        self.assertIn("ermission denied", row["message"])
        self.assertTrue(row["message"].endswith("; try 'python3 ./train.py'"), row["message"])
        self.assertIn(f"trainyard: g/bad did not start: {row['message']}\n", self.trainyard("logs", "bad", expect=0).stderr)

    def test_a_result_that_is_no_json(self):
        row = self.faulty("'echo acc=0.9 > $TRAINYARD_RESULT'", expect=0)
        self.assertEqual((row["word"], row["result"]), ("FINISHED", None))
        self.assertTrue(row["warning"])
        self.assertIn(f'g/bad: warning: {row["warning"]}\n', self.done.stderr)
        path = f'runs/job/g/bad/{row["warning"]}'
        self.assertIn(f'1 result missing or changed:\n  bad: {path}\n', self.done.stdout)
        self.assertIn(f"bad: no result: {path}\n", self.trainyard("results", expect=0).stdout)
        warning = f'g/bad: {path}'
        self.assertIn(f'1 result missing or changed:\n  {warning}\n', self.trainyard("status", expect=0).stdout)
        self.assertIn("Results missing or changed", self.text("runs/job/reports/g.html"))

    def test_a_hundred_tasks_that_die_at_once(self):
        self.job("""
name: job
groups:
  - name: g
    cpus: 0
    memory: 1MB
    matrix: {i: 0..99}
    tasks: [{command: [sh, -c, 'cat gate > /dev/null; kill -9 $$']}]
  - {name: last, needs: [], tasks: [{id: good, command: ['true']}]}
""")
        os.mkfifo(self.directory / "gate")
        yard = self.start("run", "job.yaml")
        self.until("100 running tasks", lambda: len(processes_with(
            f"TRAINYARD_RUN_DIR={self.directory.resolve()}/runs/job")) >= 100)
        self.keep_opening_gate(yard)
        self.end_of(yard, expect=1)
        words = self.words()
        self.assertEqual(words.pop("last/good"), "FINISHED")
        self.assertEqual(set(words.values()), {"KILLED"})
        self.assertEqual(len(words), 100)


class FaultOfThePlace(YardTest):
    def test_a_job_file_that_cannot_be_read(self):
        self.assertEqual(self.trainyard("run", "missing.yaml", expect=2).stderr, "trainyard: missing.yaml: file not found\n")
        for name in ("sweep", *"abcdef"):
            self.write(f"{name}.yaml", "")
        for command in ("run", "submit", "plan", "learned"):
            for missing, cure in (("missing.yaml", "; job files there: a.yaml, b.yaml, c.yaml, d.yaml, e.yaml and 2 more"),
                                  ("sweep.yml", " (did you mean 'sweep.yaml'?)"), ("./swep.yaml", " (did you mean './sweep.yaml'?)")):
                self.assertEqual(self.trainyard(command, missing, expect=2).stderr, f"trainyard: {missing}: file not found{cure}\n")
        for command in ("run", "submit"):
            self.assertEqual(self.trainyard(command, "sweep", expect=2).stderr, "trainyard: sweep: file not found (did you mean 'sweep.yaml'?)\n")
        (self.directory / "job.yaml").mkdir()
        self.assertIn("job.yaml", self.trainyard("run", "job.yaml", expect=2).stderr)

    def test_a_run_in_the_place_of_a_job_file(self):
        self.trainyard("run", "--", "true", expect=0)
        for run in ("1", "true", "last"):
            for words in (["run", run], ["run", run, "--resume"]):
                self.assertEqual(self.trainyard(*words, expect=2).stderr,
                                 f"trainyard: {run}: file not found; 'trainyard run --resume {run}' continues that run\n")
        self.assertEqual(self.trainyard("run", "2", expect=2).stderr, "trainyard: 2: file not found; to run a command, write it after '--'\n")

    def test_a_run_directory_in_use_by_a_live_run(self):
        self.job(job_of("[cat, gate]"))
        os.mkfifo(self.directory / "gate")
        yard = self.start("run", "job.yaml")
        self.until_file("runs/job/g/bad/stdout.log")
        done = self.trainyard("run", "job.yaml", expect=2)
        self.assertIn(str(yard.pid), done.stderr)
        self.assertIn("'trainyard status runs/job --watch'", done.stderr)
        self.assertIn("--new'", done.stderr)
        self.assertIn(str(yard.pid), self.trainyard("run", "--resume", "runs/job", expect=2).stderr)
        self.open_gate()
        self.end_of(yard, expect=0)

    def test_a_task_that_takes_more_than_its_hard_limit_is_ended(self):
        self.job("""
name: job
groups:
  - name: g
    memory: 50MB
    memory-limit: hard
    tasks:
      - {id: greedy, command: [/usr/bin/python3, -c, "x = b'x' * 200000000; import signal; signal.pause()"]}
      - {id: modest, command: 'true'}
""")
        self.trainyard("run", "job.yaml", "--set", "scheduler.interval=100ms", expect=1)
        rows = {row["id"]: row for row in self.status()["tasks"]}
        self.assertEqual((rows["greedy"]["word"], rows["greedy"]["attempt"], rows["modest"]["word"]),
                         ("OUT_OF_MEMORY", 1, "FINISHED"))
        self.assertRegex(rows["greedy"]["message"], r"^used more memory than its limit of 50 MB \(memory-limit: hard\)(; it used at least [\d.]+ MB)?$")

    def test_doctor_says_what_is_in_force(self):
        text = self.trainyard("doctor", "--set", "remain-limit.memory=1GB", expect=0).stdout
        self.assertRegex(text, r"machine: .* CPUs, .* of memory, .* available to tasks \(1 GB stays free\)\n")
        self.assertRegex(text, r"memory-limit: hard is enforced by a check each second \(.*\)\n")
        self.assertRegex(text, r"GPUs?: none \(no NVIDIA driver is installed\)|GPU 0: ")

    def test_doctor_says_that_no_task_can_start(self):
        done = self.trainyard("doctor", "--set", "remain-limit.memory=999TB", expect=1)
        self.assertIn(" 0 B available to tasks ", done.stdout)
        self.assertRegex(done.stderr, r"\Atrainyard: --set remain-limit.memory=999TB: remain-limit.memory: '999TB' leaves no memory "
                                      r"for tasks; this machine has .*: no task can start\n\Z")


class FullDisk(YardTest):
    """On a small file system of our own, which only root can mount."""

    def setUp(self):
        super().setUp()
        self.disk = self.directory / "disk"
        self.disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", self.disk], capture_output=True)
        self.mounted = mounted.returncode == 0

    def tearDown(self):
        if self.mounted:
            subprocess.run(["umount", "-l", self.disk], check=False)
        super().tearDown()

    def fill(self):
        filler = os.open(self.disk / "filler", os.O_WRONLY | os.O_CREAT)
        try:
            while os.write(filler, b"x" * 4096):
                pass
        except OSError:
            pass
        finally:
            os.close(filler)

    def test_a_journal_whose_disk_is_full_starts_nothing_more_until_there_is_room(self):
        if not self.mounted:
            return self.with_a_file_size_limit()
        os.mkfifo(self.directory / "gate")
        self.job("""
name: job
run-dir: disk/run
groups:
  - {name: g, max-parallel: 1, cpus: 0, tasks: [{id: first, command: [cat, gate]}, {id: second, command: ['true']}]}
""")
        yard = self.start("run", "job.yaml")
        self.until_file("disk/run/g/first/stdout.log")
        self.fill()
        self.open_gate()
        self.until("the first task's end", lambda: not processes_with(f"TRAINYARD_TASK_DIR={self.disk.resolve()}/run/g/first"))
        self.assertFalse((self.disk / "run/g/second").exists())
        self.assertTrue(alive(yard.pid))
        # The message comes when it begins, and not only when a user ends the run.
        told = self.until("it to be said", lambda: (line := self.next_line(yard.stderr)).startswith("journal: ") and line)
        self.assertRegex(told, "full.*no new tasks start until it can be written again")
        (self.disk / "filler").unlink()
        self.assertIn("journal: it can be written again\n", self.end_of(yard, expect=0)[1])
        self.assertEqual(self.words("disk/run"), {"g/first": "FINISHED", "g/second": "FINISHED"})

    def test_a_task_that_ended_on_a_full_disk_is_not_run_again(self):
        if not self.mounted:
            self.skipTest("only root mounts a file system")
        os.mkfifo(self.directory / "gate")
        self.job("""
name: job
run-dir: disk/run
groups:
  - {name: g, max-parallel: 1, cpus: 0, tasks: [{id: first, command: 'cat gate; echo x >> count'}, {id: second, command: 'true'}]}
""")
        yard = self.start("run", "job.yaml")
        self.until_file("disk/run/g/first/stdout.log")
        self.fill()
        self.open_gate()
        self.until("it to be said", lambda: self.next_line(yard.stderr).startswith("journal: "))
        yard.send_signal(signal.SIGINT)
        self.end_of(yard, expect=130)
        (self.disk / "filler").unlink()
        self.trainyard("run", "--resume", "disk/run", expect=0)
        self.assertEqual(self.text("count"), "x\n")
        self.assertEqual(self.words("disk/run"), {"g/first": "FINISHED", "g/second": "FINISHED"})

    def allow_inodes(self, number):
        subprocess.run(["mount", "-o", f"remount,nr_inodes={number}", self.disk], check=True)

    def test_a_run_that_can_start_nothing_for_the_patience_of_the_machine_is_resumed_with_all_retries(self):
        if not self.mounted:
            self.skipTest("only root mounts a file system")
        os.mkfifo(self.directory / "gate")
        self.job("""
name: job
run-dir: disk/run
config: {scheduler.machine-patience: 1s}
groups:
  - {name: g, max-parallel: 1, cpus: 0, tasks: [{id: first, command: cat gate}, {id: second, command: 'true'}]}
""")
        yard = self.start("run", "job.yaml")
        self.until_file("disk/run/g/first/stdout.log")
        disk = os.statvfs(self.disk)
        self.allow_inodes(disk.f_files - disk.f_ffree)
        self.open_gate()
        errors = self.end_of(yard, expect=75)[1]
        self.assertRegex(errors, r"trainyard: cannot start tasks: cannot make the directory '.*/g/second.*': no inodes left on its disk; "
                                 r"resume it with 'trainyard run --resume disk/run'\n$")
        self.assertEqual(self.words("disk/run"), {"g/first": "FINISHED", "g/second": "STOPPED"})
        self.allow_inodes(1000)
        self.trainyard("run", "--resume", "disk/run", expect=0)
        self.assertEqual(self.words("disk/run"), {"g/first": "FINISHED", "g/second": "FINISHED"})

    def with_a_file_size_limit(self):
        self.job(job_of("[sh, -c, 'head -c 100000 /dev/zero']"))
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
        yard = self.start("run", "job.yaml", preexec_fn=limit)
        self.end_of(yard)
        self.assertNotEqual(yard.returncode, -signal.SIGXFSZ)

    def test_a_task_whose_log_disk_is_full(self):
        if not self.mounted or not shutil.which("dd"):
            self.skipTest("only root mounts a file system")
        self.job("""
name: job
run-dir: disk/run
groups:
  - name: g
    max-parallel: 1
    tasks:
      - {id: loud, command: [dd, if=/dev/zero, bs=1M, count=20]}
      - {id: after, command: ['true']}
""")
        yard = self.start("run", "job.yaml")
        self.until_file("disk/run/g/loud/stdout.log")
        self.until("the loud task's end", lambda: not processes_with(f"TRAINYARD_TASK_DIR={self.disk.resolve()}/run/g/loud"))
        # Its output fills the disk, for the journal too; room is made as a user would.
        (self.disk / "run/g/loud/stdout.log").unlink()
        self.end_of(yard, expect=1)
        self.assertEqual(self.words("disk/run"), {"g/loud": "EXIT 1", "g/after": "FINISHED"})
