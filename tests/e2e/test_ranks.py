"""Tasks of several processes, and `trainyard ranks` by hand."""
import shutil

from yard import CLIENT, PATIENCE_S, TRAINYARD, YardTest, alive, json, keeper_of, os, processes_with, signal, subprocess

TWO_PHASES = f"""
import os, pathlib, sys, time
sys.path.insert(0, {str(CLIENT)!r})
rank, attempt_number = int(os.environ["RANK"]), int(os.environ["TRAINYARD_ATTEMPT"])
there = pathlib.Path(os.environ["TRAINYARD_TASK_DIR"])
def meet(what):
    (there / f"{{what}}.{{rank}}").touch()
    while len(list(there.glob(what + ".*"))) < 3:
        time.sleep(0.01)
"""


class Ranks(YardTest):
    def two_phases(self, script, wants="ranks: 3"):
        self.write("rank.py", TWO_PHASES + script)
        self.job(f"""
name: job
groups:
  - name: g
    memory: 60MB
    cpus: 0
    two-phase: true
    tasks:
      - id: t
        {wants}
        command: [/usr/bin/python3, rank.py]
""")

    def sweep(self, command, wants="ranks: 3"):
        self.job(f"""
name: job
groups:
  - name: g
    memory: 60MB
    cpus: 0
    tasks:
      - id: t
        {wants}
        command: |
          {command}
""")

    def report(self):
        return json.loads(self.text("runs/job/reports/g.json"))

    def test_a_task_is_as_many_processes_as_it_says(self):
        self.sweep('echo rank $RANK of $WORLD_SIZE local $LOCAL_RANK $MASTER_ADDR; '
                   'test -n "$MASTER_PORT"')
        self.trainyard("run", "job.yaml", expect=0)
        self.assertEqual(self.text("runs/job/g/t/stdout.log"), "rank 0 of 3 local 0 127.0.0.1\n")
        for rank in (1, 2):
            self.assertEqual(self.text(f"runs/job/g/t/rank-{rank}.log"),
                             f"rank {rank} of 3 local {rank} 127.0.0.1\n")

    def test_it_fails_as_its_first_rank_that_fails_and_says_why(self):
        self.sweep('if [ $RANK = 2 ]; then echo no such data; exit 7; fi; exec sleep 1000')
        self.trainyard("run", "job.yaml", expect=1)
        row = self.status()["tasks"][0]
        self.assertEqual((row["word"], row["message"]), ("EXIT 7", "rank 2: no such data"))
        self.assertEqual(self.text("runs/job/g/t/stderr.log"),
                         "trainyard ranks: rank 2 exited with code 7; the other ranks are killed\n"
                         "trainyard ranks: the end of rank-2.log:\nno such data\n")
        self.assertIn("rank 2: no such data", self.trainyard("status").stdout)

    def test_the_one_that_took_most_is_named_at_a_hard_limit(self):
        self.write("eat.py", """
import os, time
# For a moment it has it twice.
kept = bytearray(b"x" * 300_000_000) if os.environ["RANK"] == "1" else None
time.sleep(1000)
""")
        self.sweep("exec /usr/bin/python3 eat.py", wants="ranks: 2\n        memory-limit: hard")
        self.trainyard("run", "job.yaml", "--set", "scheduler.interval=100ms", expect=1)
        row = self.status()["tasks"][0]
        self.assertEqual(row["word"], "OUT_OF_MEMORY")
        self.assertRegex(row["message"], r"limit of 60 MB \(memory-limit: hard\)(; it used at least [\d.]+ MB)?; rank 1 had the most memory, [\d.]+ MB")

    def test_each_attempt_has_logs_of_its_own_and_logs_shows_them(self):
        self.sweep('echo rank $RANK try $TRAINYARD_ATTEMPT; [ $TRAINYARD_ATTEMPT = 1 ] || exit 0; '
                   'if [ $RANK = 0 ]; then echo > $TRAINYARD_TASK_DIR/told; exit 0; fi; '
                   'until [ -e $TRAINYARD_TASK_DIR/told ]; do sleep 0.01; done; exit 1',
                   wants="ranks: 2\n        retries: 1")
        self.trainyard("run", "job.yaml", expect=0)
        directory = self.directory / "runs/job/g/t"
        for attempt, ending in ((1, ".log"), (2, ".2.log")):
            self.assertEqual((directory / f"rank-1{ending}").read_text(), f"rank 1 try {attempt}\n")
            self.assertEqual((directory / f"stdout{ending}").read_text(), f"rank 0 try {attempt}\n")
        self.assertEqual(self.trainyard("logs", "t", "--rank", "1", "--attempt", "1", expect=0).stdout, "rank 1 try 1\n")
        self.assertEqual(self.trainyard("logs", "t", expect=0).stdout.splitlines(),
                         [f"==> {directory}/stdout.2.log <==", "rank 0 try 2", "",
                          f"==> {directory}/rank-1.2.log <==", "rank 1 try 2"])
        self.assertEqual(self.trainyard("logs", "t", "--rank", "0", expect=0).stdout.splitlines()[-1], "rank 0 try 2")
        self.assertIn("g/t has no log of rank 5", self.trainyard("logs", "t", "--rank", "5", expect=2).stderr)

    def test_its_processes_are_the_keepers_and_no_program_stands_between(self):
        self.sweep('echo $$ $PPID > $TRAINYARD_TASK_DIR/pid.$RANK; exec sleep 1000')
        run = self.start("run", "job.yaml")
        there = [self.directory / f"runs/job/g/t/pid.{rank}" for rank in range(3)]
        self.until("all ranks", lambda: all(path.exists() and path.read_text() for path in there))
        self.assertEqual({path.read_text().split()[1] for path in there}, {str(keeper_of(run.pid))})
        self.trainyard("kill", "t", expect=0)
        self.assertEqual(run.wait(PATIENCE_S), 1)

    def test_no_rank_outlives_the_keeper_not_even_one_that_is_suspended(self):
        self.sweep('echo $$ > $TRAINYARD_TASK_DIR/pid.$RANK; exec sleep 1000')
        run = self.start("run", "job.yaml")
        there = [self.directory / f"runs/job/g/t/pid.{rank}" for rank in range(3)]
        self.until("all ranks", lambda: all(path.exists() and path.read_text() for path in there))
        pids = [int(path.read_text()) for path in there]
        os.kill(pids[1], signal.SIGSTOP)
        os.kill(keeper_of(run.pid), signal.SIGKILL)
        self.until("the end of all ranks", lambda: not any(map(alive, pids)))
        self.until("the next attempt", lambda: "INTERRUPT" in self.life("t") and self.life("t")[-1] == "TRAINING")
        self.trainyard("kill", "t", expect=0)
        self.end_of(run, expect=1)

    def test_out_of_memory_in_one_rank_tries_the_task_again(self):
        self.sweep('if [ $RANK = 1 ] && [ $TRAINYARD_ATTEMPT = 1 ]; then '
                   'echo "torch.cuda.OutOfMemoryError: CUDA out of memory."; exit 1; fi')
        done = self.trainyard("run", "job.yaml", expect=0)
        self.assertIn("RETRYING", done.stderr)
        self.assertEqual([(row["attempt"], row["failure"]) for row in self.report()["attempts"]],
                         [(1, "OUT_OF_MEMORY"), (2, None)])

    def test_a_kill_ends_all_ranks_and_what_they_have_started(self):
        self.sweep('setsid sleep 1000 & echo $$ > $TRAINYARD_TASK_DIR/pid.$RANK; wait')
        run = self.start("run", "job.yaml")
        there = [self.directory / f"runs/job/g/t/pid.{rank}" for rank in range(3)]
        self.until("all ranks", lambda: all(path.exists() and path.read_text() for path in there))
        theirs = f"TRAINYARD_TASK_DIR={self.directory}/runs/job/g/t"
        self.until("what they have started", lambda: len(processes_with(theirs)) >= 6)
        self.trainyard("kill", "t", expect=0)
        self.assertEqual(run.wait(PATIENCE_S), 1)
        # Not even a process that was not reaped.
        self.assertEqual([path.name for path in there if os.path.exists(f"/proc/{path.read_text().strip()}")], [])
        self.assertEqual(processes_with(theirs), [])

    def test_others_may_start_them(self):
        self.sweep("echo rank $RANK of $WORLD_SIZE", wants="ranks: 2\n        launcher: mpirun")
        self.trainyard("run", "job.yaml", expect=0)
        self.assertEqual(self.text("runs/job/g/t/stdout.log"), "rank 0 of 2\n")
        self.assertEqual(self.text("runs/job/g/t/rank-1.log"), "rank 1 of 2\n")

    def test_others_may_start_them_though_the_file_of_the_program_is_gone(self):
        program = shutil.copy(TRAINYARD, self.directory / "trainyard")
        self.write("launch.sh", 'for rank in 0 1; do RANK=$rank "$@" & done; wait\n')
        self.job("""
groups:
  - {name: update, cpus: 0, memory: 10MB, tasks: [{id: a, command: rm trainyard}]}
  - name: g
    needs: update
    cpus: 0
    memory: 60MB
    tasks: [{id: t, ranks: 2, launcher: [sh, launch.sh, "{command}"], command: echo rank $RANK of $WORLD_SIZE}]
""")
        done = subprocess.run([program, *self.command("run", "job.yaml")[1:]], cwd=self.directory, env=self.environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(self.text("runs/job/g/t/stdout.log"), "rank 0 of 2\n")
        self.assertEqual(self.text("runs/job/g/t/rank-1.log"), "rank 1 of 2\n")

    def test_mistakes_name_their_place(self):
        self.job("""
name: job
groups:
  - name: g
    tasks:
      - {id: a, ranks: 0, command: "true"}
      - {id: b, ranks: 2, launcher: mpirum, command: "true"}
      - {id: c, ranks: 2, launcher: [mpirun, -n, "2"], command: "true"}
  - name: p
    preload: [json]
    tasks: [{id: d, ranks: 2, command: [/usr/bin/python3, x.py]}]
""")
        said = self.trainyard("run", "job.yaml", "--dry-run", expect=2).stderr
        self.assertIn("job.yaml:6:24: group 'g': task 'a': ranks: '0' is not a whole number from 1 to 4096", said)
        self.assertIn("launcher: unknown launcher 'mpirum' (did you mean 'mpirun'?)", said)
        self.assertIn("launcher: a launcher must have {command} as one of its arguments", said)
        self.assertIn("job.yaml:11:28: group 'p': ranks: a task with 'preload' is one process", said)

    def test_two_phases_are_those_of_all_ranks(self):
        self.two_phases("""
import trainyard
for attempt in trainyard.attempts():
    with attempt as device:
        meet("training")
        trainyard.progress((rank + 1) / 10)
        trainyard.result(device=device, rank=rank)
""")
        self.trainyard("run", "job.yaml", expect=0)
        self.assertEqual(self.life("t"), ["AVAILABLE", "LOADING", "WAITING", "TRAINING", "FINISHED", "EXITED"])
        row = self.status()["tasks"][0]
        self.assertEqual((row["result"], row["progress"]), ({"device": "cpu", "rank": 0}, 0.1))

    def test_two_phases_start_over_when_one_rank_runs_out_of_memory(self):
        self.two_phases("""
import trainyard
for attempt in trainyard.attempts():
    with attempt as device:
        meet("training")
        if attempt_number == 1 and rank == 2:
            raise MemoryError("no room for 3 GB")
        if attempt_number == 1:
            time.sleep(1000)
""")
        done = self.trainyard("run", "job.yaml", expect=0)
        self.assertIn("rank 2: MemoryError: no room for 3 GB", done.stderr)
        self.assertEqual(self.life("t"), ["AVAILABLE", "LOADING", "WAITING", "TRAINING", "INTERRUPT",
                                          "AVAILABLE", "LOADING", "WAITING", "TRAINING", "FINISHED", "EXITED"])

    def test_two_phases_fail_with_the_first_rank_and_name_it(self):
        self.two_phases("""
import trainyard
if rank == 1:
    raise ValueError("no such data")
for attempt in trainyard.attempts():
    with attempt as device:
        pass
""")
        self.trainyard("run", "job.yaml", expect=1)
        row = self.status()["tasks"][0]
        self.assertEqual((row["word"], row["message"]), ("ERROR", "rank 1: ValueError: no such data"))

    def test_two_phases_in_a_shell_and_with_another_launcher(self):
        self.job("""
name: job
groups:
  - name: g
    memory: 60MB
    cpus: 0
    two-phase: true
    tasks:
      - id: t
        ranks: 2
        launcher: mpirun
        command: |
          device=$($TRAINYARD client wait-device) || exit
          $TRAINYARD client result device=$device rank=$RANK
""")
        self.trainyard("run", "job.yaml", expect=0)
        self.assertEqual(self.life("t"), ["AVAILABLE", "LOADING", "WAITING", "TRAINING", "FINISHED", "EXITED"])
        self.assertEqual(self.status()["tasks"][0]["result"], {"device": "cpu", "rank": 0})

    def test_by_hand_a_separator_of_the_command_is_its_own(self):
        command = ["sh", "-c", 'echo "$@"', "-", "a", "--", "b"]
        for words in (["-n", "1"], ["--ranks=1", "--grace", "5s"], ["-n1", "--"], ["-n", "1", "--logs", ".", "--"]):
            self.assertEqual(self.trainyard("ranks", *words, *command, expect=0).stdout, "a -- b\n")

    def test_the_command_for_launchers_is_none_for_users(self):
        self.assertEqual(self.trainyard("rank", "-n", "4", "--", "true", expect=2).stderr,
                         "trainyard: unknown command 'rank' (did you mean 'ranks'?)\n")
        told = self.trainyard("rank", "--help", expect=0).stdout
        self.assertTrue(told.startswith("Become a rank, for a launcher of 'trainyard ranks'.\n"), told)
        self.assertNotIn("Start with", told, "the notes on the whole program")

    def test_by_hand_ctrl_c_ends_all(self):
        there = [self.directory / f"pid.{rank}" for rank in range(2)]
        # They end by TERM, before the end of the grace.
        process = self.start("ranks", "-n", "2", "--grace", "1000s", "--", "sh", "-c",
                             "echo $$ > pid.$RANK; exec sleep 1000")
        self.until("both ranks", lambda: all(path.exists() and path.read_text() for path in there))
        process.send_signal(signal.SIGINT)
        self.end_of(process, expect=130)
        self.assertEqual([path.name for path in there if alive(path.read_text().strip())], [])

    def test_by_hand_a_reader_of_its_output_that_goes_away_does_not_end_it(self):
        process = subprocess.Popen([TRAINYARD, "ranks", "-n", "2", "--", "sh", "-c",
                                    "[ $RANK = 1 ] || { trap 'echo > saved; exit' TERM; sleep 1000 & echo first >&2; wait; }; "
                                    "until [ -e gone ]; do sleep 0.01; done; exit 3"],
                                   cwd=self.directory, env=self.environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.assertEqual(process.stderr.readline(), b"first\n")
        process.stderr.close()
        (self.directory / "gone").touch()
        # It reports the rank that has failed, and there is no reader.
        self.assertEqual((process.wait(PATIENCE_S), (self.directory / "saved").exists()), (3, True))

    def test_by_hand_nothing_is_left_when_it_is_killed(self):
        for launcher in ("built-in", "mpirun"):
            there = [self.directory / f"{launcher}.{what}.{rank}" for rank in range(2) for what in ("rank", "daemon")]
            # Neither the ranks nor what they have started in a session of its own.
            process = self.start("ranks", "-n", "2", "--grace", "1s", "--launcher", launcher, "--", "sh", "-c",
                                 f"setsid sh -c 'echo $$ > {launcher}.daemon.$RANK; exec sleep 1000' & "
                                 f"echo $$ > {launcher}.rank.$RANK; exec sleep 1000")
            self.until("both ranks", lambda: all(path.exists() and path.read_text() for path in there))
            process.kill()
            process.wait()
            for path in there:
                self.until("the end of a rank", lambda: not alive(path.read_text().strip()))

    def test_by_hand_rank_0_reads_and_writes_where_the_program_does(self):
        done = subprocess.run([TRAINYARD, "ranks", "-n", "2", "--", "sh", "-c",
                               '[ $RANK = 0 ] || exit 0; read line; echo got $line; echo oops >&2'],
                              cwd=self.directory, input="data\n", capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "got data\n", "oops\n"))
        self.assertEqual(self.text("rank-1.log"), "")

    def test_by_hand_a_single_word_runs_in_bash(self):
        done = self.trainyard("ranks", "-n", "2", "--", "echo rank $RANK |& tr a-z A-Z", expect=0)
        self.assertEqual((done.stdout, self.text("rank-1.log")), ("RANK 0\n", "RANK 1\n"))

    def test_by_hand_what_cannot_be_run_says_so_once(self):
        done = self.trainyard("ranks", "-n", "3", "--", "no-such-program", expect=2)
        self.assertEqual(done.stderr.strip().splitlines(),
                         ["trainyard: cannot run 'no-such-program': program not found on PATH; install it, or write its full path"])

    def test_by_hand_nothing_runs_where_a_log_cannot_be_written(self):
        (self.directory / "rank-2.log").mkdir()
        self.write("rank-1.log", "of an earlier program\n")
        for launcher in ("built-in", "mpirun"):
            done = self.trainyard("ranks", "-n", "3", "--launcher", launcher, "--", "sh", "-c", "echo ran | tee ran", expect=2)
            self.assertEqual((done.stdout, (self.directory / "ran").exists()), ("", False))
            self.assertIn("/rank-2.log' is a directory, not a regular file; remove it", done.stderr)
            self.assertEqual(self.text("rank-1.log"), "of an earlier program\n")
            self.assertIn("; '--logs DIRECTORY' sets another place for logs\n", done.stderr)
        self.trainyard("ranks", "-n", "3", "--logs", "logs", "--", "true", expect=0)

    def test_by_hand_gpus_are_dealt_by_what_is_visible(self):
        done = self.trainyard("ranks", "-n", "2", "--", "sh", "-c", "echo $TRAINYARD_DEVICE",
                              env={"CUDA_VISIBLE_DEVICES": "4,7"}, expect=0)
        self.assertEqual((done.stdout, self.text("rank-1.log")), ("cuda:0\n", "cuda:1\n"))

    def test_by_hand_a_launcher_must_start_each_rank_once(self):
        for line, why in (('RANK=0 WORLD_SIZE=3 exec "$@"', "rank 0 was started as one of 3, and there must be 2"),
                          ('RANK=0 "$@"; RANK=0 exec "$@"', "two processes are rank 0")):
            with self.subTest(why):
                launcher = json.dumps(["sh", "-c", line, "-", "{command}"])
                done = self.trainyard("ranks", "-n", "2", "--launcher", launcher, "--", "true")
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(why, done.stderr)

    def test_by_hand_a_rank_that_does_not_stop_is_killed(self):
        said = self.trainyard("ranks", "-n", "2", "--grace", "0.2s", "--", "sh", "-c",
                              'trap "" TERM; [ $RANK = 1 ] || { echo $$ > deaf; while :; do sleep 1; done; }; '
                              'until [ -s deaf ]; do sleep 0.01; done; exit 5', expect=5)
        self.assertIn("rank 1 exited with code 5; the other ranks are killed", said.stderr)
        self.assertFalse(alive(self.text("deaf").strip()))
