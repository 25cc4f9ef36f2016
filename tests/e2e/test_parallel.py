"""`trainyard parallel` as a user types it: programs as workers, what they print, how it ends, and a look at those at work."""
import signal

from python_workers import BEGIN, PYTHON
from yard import PATIENCE_S, TRAINYARD, YardTest, json, os, subprocess, suspend


class Parallel(YardTest):
    def parallel(self, *words, expect=0, **options):
        done = subprocess.run([TRAINYARD, "parallel", *words], cwd=self.directory, env=self.environment, capture_output=True,
                              text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL, **options)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done

    def start(self, *words):
        process = subprocess.Popen([TRAINYARD, "parallel", *words], cwd=self.directory, env=self.environment, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        return process

    def looks(self, process):
        """Others may be at work, too."""
        return [look for look in json.loads(self.parallel("--status", "--json").stdout) if look["process"] == process.pid]

    def test_what_workers_print_is_shown_behind_their_numbers_and_kept(self):
        done = self.parallel("-n", "2", "--logs", "logs", "--", "sh", "-c", "echo hello; echo last >&2; printf unended")
        self.assertEqual(done.stdout, "")
        self.assertEqual(sorted(done.stderr.splitlines()), sorted(f"[{n}] {line}" for n in (0, 1) for line in ("hello", "last", "unended")))
        for n in (0, 1):
            self.assertEqual((self.directory / f"logs/worker-{n}.log").read_text(), "hello\nlast\nunended")

    def test_a_single_word_runs_in_bash(self):
        done = self.parallel("-n", "1", "--", "echo hello |& tr a-z A-Z; exit 3", expect=1)
        self.assertIn("[0] HELLO\n", done.stderr)
        self.assertIn("worker 0 failed: exited with code 3", done.stderr)

    def test_each_worker_knows_its_place(self):
        self.parallel("-n", "2", "--roles", "learner,collector+evaluator", "--label", "gpu", "--node-ids", "7", "--ports", "6000",
                      "--", "sh", "-c", 'echo "$TRAINYARD_WORKER"')
        places = [json.loads((self.directory / f"worker-{n}.log").read_text()) for n in (7, 8)]
        for place in places:
            self.assertTrue(place.pop("socket"))
        self.assertEqual(places, [
            {"node": 7, "index": 0, "count": 2, "port": 6000, "life": 1, "labels": ["gpu"], "roles": ["learner"]},
            {"node": 8, "index": 1, "count": 2, "port": 6001, "life": 1, "labels": ["gpu"], "roles": ["collector", "evaluator"]}])

    def test_one_that_fails_ends_all(self):
        done = self.parallel("-n", "3", "--grace", "1s", "--", "sh", "-c",
                             """case "$TRAINYARD_WORKER" in *'"node":1'*) exit 3;; esac; exec sleep 1000""", expect=1)
        self.assertIn("trainyard parallel: worker 1 failed: exited with code 3", done.stderr)

    def test_one_that_fails_without_a_word_to_the_run_is_named_with_what_it_printed_last(self):
        done = self.parallel("-n", "1", "--", "sh", "-c", "echo reading; echo 'no such file: data.bin' >&2; exit 3", expect=1)
        self.assertEqual(done.stderr.splitlines(), ["[0] reading", "[0] no such file: data.bin",
                         "trainyard parallel: worker 0 failed: exited with code 3, last output: 'no such file: data.bin'"])

    def test_what_one_fails_with_is_said_without_control_characters(self):
        self.write("worker.py", BEGIN + 'raise ValueError("\\x1b[31mred\\a\\nnext")')
        done = self.parallel("-n", "1", "--retries", "1", "--retry-delay", "0.01s", "--", PYTHON, "worker.py", expect=1)
        said = [line for line in done.stderr.splitlines() if not line.startswith("[0] ")]
        self.assertEqual(said, ["trainyard parallel: worker 0 failed, and restarts in 10 ms: ValueError: red", "next",
                                "trainyard parallel: worker 0 failed: ValueError: red", "next"])

    def test_one_that_fails_begins_again_so_often(self):
        done = self.parallel("-n", "1", "--retries", "2", "--retry-delay", "0.01s", "--", "sh", "-c",
                             """case "$TRAINYARD_WORKER" in *'"life":3'*) echo third; exit 0;; esac; exit 4""")
        self.assertEqual(done.stderr.count("restarts in"), 2)
        self.assertIn("[0] third", done.stderr)
        self.assertIn("exited with code 4", self.parallel("-n", "1", "--retries", "1", "--retry-delay", "0.01s", "--", "sh", "-c",
                                                          "exit 4", expect=1).stderr)

    def test_dropped_events_are_counted_before_what_comes_after_them(self):
        self.write("worker.py", BEGIN + """
COUNT, next_one, counted, wrong = 20000, 0, 0, []
sent, over = threading.Event(), threading.Event()
def take(number):
    global next_one
    if number == 0:
        sent.wait(60)
    if number != next_one:
        wrong.append((number, next_one))
    next_one = number + 1
    if number == COUNT - 1:
        over.set()
def lost(it):
    global next_one, counted
    need((it["event"], it["node"]) == ("n", 1), it)
    next_one += it["count"]
    counted += it["count"]
if worker.node == 1:
    worker.on("n", take)
    worker.on("trainyard.events-lost", lost)
worker.ready()
worker.barrier("both are ready")  # The answer to ready() may come behind the first event, where a listener waits for us.
if worker.node == 0:
    for number in range(COUNT):
        worker.emit("n", number)
    worker.status()  # The router has taken them.
    open("sent", "w").close()
    while not os.path.exists("over"):
        time.sleep(0.01)
else:
    while not os.path.exists("sent"):
        time.sleep(0.01)
    sent.set()
    need(over.wait(60), "the last one, which is never dropped")
    need(counted > 0 and not wrong, (counted, wrong[:3]))
    open("over", "w").close()
worker.barrier("end")
""")
        self.parallel("-n", "2", "--queue", "4000", "--when-full", "drop-oldest", "--", PYTHON, "worker.py")

    def test_ctrl_c_ends_all_and_leaves_nothing(self):
        process = self.start("-n", "2", "--", "sh", "-c", "echo $$; exec sleep 1000")
        logs = [self.directory / f"worker-{n}.log" for n in (0, 1)]
        self.until("all workers", lambda: all(log.exists() and log.read_text().endswith("\n") for log in logs))
        pids = [int(log.read_text()) for log in logs]
        self.until("their processes to be shown", lambda: [
            [worker.get("process") for worker in look["parallel"]["workers"]] for look in self.looks(process)] == [pids])
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(PATIENCE_S), 130)
        for pid in pids:
            self.assertFalse(os.path.exists(f"/proc/{pid}"))

    def test_a_terminal_that_is_closed_and_a_reader_that_goes_away_do_not_end_it(self):
        # The worker ends with what it has printed, so that it is shown before the run has ended.
        process = self.start("-n", "1", "--", "sh", "-c", "echo first; while [ ! -e gone ]; do sleep 0.01; done; echo second")
        self.assertEqual(process.stderr.readline(), "[0] first\n")
        process.send_signal(signal.SIGHUP)
        process.stderr.close()
        (self.directory / "gone").touch()
        self.assertEqual((process.wait(PATIENCE_S), (self.directory / "worker-0.log").read_text()), (0, "first\nsecond\n"))

    def test_workers_save_after_ctrl_c_when_the_reader_of_the_output_has_gone(self):
        process = self.start("-n", "1", "--", "sh", "-c", "trap 'echo saving; until [ -e heard ]; do sleep 0.01; done; echo > saved; exit' TERM; "
                                                          "echo first; while :; do sleep 0.01; done")
        self.assertEqual(process.stderr.readline(), "[0] first\n")
        process.stderr.close()
        process.send_signal(signal.SIGINT)
        log = self.directory / "worker-0.log"
        self.until("the worker to save", lambda: "saving" in log.read_text())
        (self.directory / "heard").touch()
        self.assertEqual((process.wait(PATIENCE_S), (self.directory / "saved").exists()), (130, True))

    def test_sigpipe_kills_a_worker_as_it_does_by_default(self):
        self.assertIn("worker 0 failed: was killed by signal 13", self.parallel("-n", "1", "--", "sh", "-c", "kill -PIPE $$; exit 0", expect=1).stderr)

    def test_a_parent_that_is_killed_leaves_nothing(self):
        process = self.start("-n", "2", "--grace", "0.2s", "--", "sh", "-c", "echo $$; trap '' TERM; while :; do sleep 0.05; done")
        logs = [self.directory / f"worker-{n}.log" for n in (0, 1)]
        self.until("all workers", lambda: all(log.exists() and log.read_text().endswith("\n") for log in logs))
        process.kill()
        process.wait()
        self.until("all workers to end", lambda: not any(os.path.exists(f"/proc/{log.read_text().strip()}") for log in logs))

        def next_one_runs():
            done = subprocess.run([TRAINYARD, "parallel", "-n", "1", "--", "echo", "next"], cwd=self.directory, env=self.environment,
                                  capture_output=True, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL)
            # The process that ended them may live for a moment longer, and has the directory as long.
            is_held = f"is in use by the children of process {process.pid}, which has ended" in done.stderr
            self.assertIn((done.returncode, is_held), ((0, False), (2, True)), done.stderr)
            return done.returncode == 0
        # Its logs are known as those of a run, however soon that was.
        self.until("the next run", next_one_runs)
        self.assertEqual([(path.name, path.read_text()) for path in self.directory.glob("worker-*.log")], [("worker-0.log", "next\n")])

    def test_those_at_work_can_be_looked_at(self):
        process = self.start("-n", "2", "--topology", "star", "--roles", "learner,collector", "--logs", "logs", "--", "sh", "-c", "sleep 1000")
        look, = self.until("it to be there", lambda: self.looks(process))
        directory = str(self.directory.resolve())
        self.assertEqual((look["process"], look["command"], look["directory"], look["retries"]),
                         (process.pid, ["sh", "-c", "sleep 1000"], directory, 0))
        self.assertEqual((look["parallel"]["topology"], look["parallel"]["open"], look["parallel"]["barriers"]), ("star", False, []))
        self.assertEqual([(worker["node"], worker["roles"], worker["presence"]) for worker in look["parallel"]["workers"]],
                         [(0, ["learner"], "awaited"), (1, ["collector"], "awaited")])
        shown = self.parallel("--status").stdout
        self.assertIn(f"process {process.pid}: star, not all are ready yet\ncommand: sh -c 'sleep 1000'\ndirectory: {directory}\n", shown)
        self.assertRegex(shown, r"(?m)^ +1  collector +awaited$")
        process.terminate()
        self.assertEqual(process.wait(PATIENCE_S), 143)
        self.assertEqual(self.looks(process), [])

    def test_those_at_work_can_be_looked_at_with_another_runtime_directory(self):
        process = self.start("-n", "1", "--", "sleep 1000")
        self.until("it to be there", lambda: self.looks(process))
        del self.environment["XDG_RUNTIME_DIR"]
        self.assertEqual([look["process"] for look in self.looks(process)], [process.pid])

    def test_one_that_is_to_begin_again_is_not_ready_and_what_waits_for_it_is_named_without_control_characters(self):
        self.write("worker.py", BEGIN + """
worker.ready()
if worker.node == 1:
    sys.exit(3)
worker.barrier("epoch \\x1b[31m 1", timeout=None)
""")
        process = self.start("-n", "2", "--retries", "1", "--retry-delay", "30s", "--", PYTHON, "worker.py")

        def barriers():
            return [barrier for look in self.looks(process) if look["parallel"]["open"] and look["retries"] == 1
                    for barrier in look["parallel"]["barriers"]]
        barrier, = self.until("the barrier", barriers)
        self.assertEqual((barrier["name"], barrier["missing"]), ("epoch \x1b[31m 1", [1]))
        shown = self.parallel("--status").stdout
        self.assertIn(f"process {process.pid}: mesh, not all are ready yet\n", shown)
        self.assertIn("barrier 'epoch [31m 1': 0 wait for 1\n", shown)
        process.terminate()
        self.assertEqual(process.wait(PATIENCE_S), 143)

    def test_one_that_is_suspended_is_shown_as_that(self):
        process = self.start("-n", "1", "--", "sh", "-c", "echo up; exec sleep 1000")
        self.assertIn("up", self.next_line(process.stderr))
        suspend(process.pid)
        look, shown = (self.parallel("--status", *words).stdout for words in (["--json"], []))
        directory = str(self.directory.resolve())
        self.assertIn({"process": process.pid, "suspended": True, "directory": directory}, json.loads(look))
        self.assertIn(f"process {process.pid}: suspended, does not respond; 'kill -CONT {process.pid}' resumes it\ndirectory: {directory}\n",
                      shown)
        process.send_signal(signal.SIGCONT)
        process.terminate()
        self.assertEqual(process.wait(PATIENCE_S), 143)

    def test_a_directory_has_the_logs_of_one_run_at_a_time(self):
        inner = self.parallel("-n", "1", "--", TRAINYARD, "parallel", "-n", "2", "--", "echo", "in vain", expect=1).stderr
        self.assertRegex(inner, r"is in use by process \d+: each parallel run needs a directory of its own for its logs")
        self.assertNotIn("in vain", inner)
        self.parallel("-n", "1", "--", TRAINYARD, "parallel", "-n", "2", "--logs", "inner", "--", "echo", "well")
        self.assertEqual((self.directory / "inner/worker-1.log").read_text(), "well\n")
        self.parallel("-n", "3", "--", "echo", "three")
        self.parallel("-n", "1", "--", "echo", "one")
        self.assertEqual([path.name for path in self.directory.glob("worker-*.log")], ["worker-0.log"])

    def test_what_cannot_be_is_said_and_nothing_is_run(self):
        for words, says in ((("-n", "2", "--topology", "stra", "--", "true"), "unknown value 'stra'; use mesh, star, alone (did you mean 'star'?)"),
                            (("-n", "2", "--when-full", "drop", "--", "true"), "use block, drop-oldest, fail"),
                            (("-n", "2"), "no command given"),
                            (("--", "true"), "no number of workers given"),
                            (("-n", "3", "--roles", "a,,b", "--", "true"), "a role without a name"),
                            (("-n", "3", "--roles", "learner", "--", "true"), "--roles: must have 3 entries, one for each worker, not 1 (as in learner,collector,collector)"),
                            (("-n", "1", "--roles", "a b", "--", "true"), "--roles: 'a b' is not a valid name"),
                            (("-n", "1", "--roles", "a+a", "--", "true"), "roles of worker 0: duplicate role 'a'"),
                            (("-n", "1", "--label", "standalone", "--", "true"), "--label: 'standalone' is reserved: "),
                            (("-n", "2", "--ports", "1,x", "--", "true"), "--ports: 'x' is not a number"),
                            (("-n", "2", "--rolez", "a,b", "--", "true"), "unknown option '--rolez' (did you mean '--roles'?)"),
                            (("-n", "2", "-x", "true"), "unknown option '-x'"),
                            (("--status", "--", "true"), "--status shows active runs and runs nothing: leave out the command 'true'"),
                            (("--status", "-n", "3"), "leave out '-n,--workers', or --status"),
                            (("--status", "--join", "--grace", "5s", "--json", "--", "true"),
                             "leave out '--grace', '--join' and the command 'true', or --status"),
                            (("--json",), "--json needs --status"),
                            (("--status", "--jsn"), "unknown option '--jsn' (did you mean '--json'?)"),
                            (("-n", "1", "--lost-after", "5s", "--", "true"), "--lost-after need a server: use '--attach nats://host:4222'"),
                            (("-n", "1", "--roles", "", "--", "true"), "--roles: the value is empty"),
                            (("-n", "1", "--logs", "", "--", "true"), "--logs: the value is empty"),
                            (("-n", "0", "--", "true"), "'0' is not a whole number from 1 to "),
                            (("-n", "2", "--grace", "x", "--", "true"), "--grace: 'x' is not a valid time; write it as in '90s', '2h30m' or '1:30:00'"),
                            (("-n", "2", "--grace", "10", "--", "true"), "--grace: '10' has no unit (did you mean '10s' or '10m'?)"),
                            (("-n", "2", "--retry-delay", "2d", "--", "true"), "--retry-delay: '2d' is not a time from 0 s to 1d"),
                            (("-n", "2", "--lost-after", "0s", "--", "true"), "--lost-after: '0s' is not a time from 0.001 s to 1d")):
            with self.subTest(words=words):
                self.assertIn(says, self.parallel(*words, expect=2).stderr)
        self.assertEqual(list(self.directory.glob("worker-*.log")), [])

    def test_a_program_that_is_not_there_is_named(self):
        self.assertIn("worker 0 failed: cannot run '/no/such/program': no such file or directory", self.parallel("-n", "1", "--", "/no/such/program", expect=2).stderr)
