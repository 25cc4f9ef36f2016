"""Tasks that are parallel runs: `workers` in a job file."""
import signal

from yard import CLIENT, PATIENCE_S, YardTest, json, os, processes_with

BEGIN = f"""
import os, signal, sys, time
sys.path.insert(0, {str(CLIENT)!r})
import trainyard
worker = trainyard.Worker.from_environment()
attempt = os.environ["TRAINYARD_ATTEMPT"]
there = os.environ["TRAINYARD_TASK_DIR"]
"""

# Collectors send their episodes, and the learner answers with what it has learned.
TRAIN = """
if worker.has_role("learner"):
    episodes = []
    worker.on("episode", episodes.append)
    worker.barrier("collected")
    worker.emit("policy", sum(episodes))
    with open(os.environ["TRAINYARD_RESULT"], "w") as file:
        file.write('{"episodes": %d, "sum": %d}' % (len(episodes), sum(episodes)))
else:
    policy = worker.expect("policy")
    for number in range(100):
        worker.emit("episode", worker.index)
    worker.barrier("collected")
    print("policy", policy.wait(60))
worker.barrier("learned")
"""

IDLE = """
with open(there + "/pid.%d" % worker.node, "w") as file:
    file.write(str(os.getpid()))
worker.ending.wait()
"""


class WorkerTasks(YardTest):
    def sweep(self, script, wants="workers: {learner: 1, collector: 2}", more=""):
        self.write("worker.py", BEGIN + script)
        self.job(f"""
name: job
groups:
  - name: g
    memory: 200MB
    cpus: 0
    tasks:
      - id: t
        {wants}
        command: [/usr/bin/python3, worker.py]
{more}""")

    def log(self, name):
        return self.text(f"runs/job/g/t/{name}")

    def pids(self):
        there = [self.directory / f"runs/job/g/t/pid.{node}" for node in range(3)]
        self.until("all workers", lambda: all(path.exists() and path.read_text() for path in there))
        return [int(path.read_text()) for path in there]

    def test_workers_of_a_task_exchange_events_and_are_one_task(self):
        self.sweep(TRAIN)
        self.trainyard("run", "job.yaml", expect=0)
        [row] = self.status()["tasks"]
        self.assertEqual((row["word"], row["result"]), ("FINISHED", {"episodes": 200, "sum": 300}))
        self.assertEqual((self.log("worker-0.log"), self.log("worker-1.log"), self.log("worker-2.log")), ("", "policy 300\n", "policy 300\n"))
        self.assertEqual(sorted(self.log("stderr.log").splitlines()), ["[1] policy 300", "[2] policy 300"])
        self.assertIn("[1] policy 300\n", self.trainyard("logs", "t", expect=0).stdout)

    def test_the_report_draws_for_what_workers_waited(self):
        self.sweep("""
try:
    worker.wait_for("never", 0.01)
except TimeoutError:
    pass
worker.barrier("end")
""")
        self.trainyard("run", "job.yaml", expect=0)
        record = json.loads(self.log("workers.json"))
        self.assertTrue(record["ended"])
        self.assertEqual([(worker["node"], worker["roles"]) for worker in record["workers"]],
                         [(0, ["learner"]), (1, ["collector"]), (2, ["collector"])])
        for worker in record["workers"]:
            [life] = worker["lives"]
            self.assertEqual((life["number"], life["outcome"]), (1, "finished"))
            self.assertLessEqual(life["from_ms"], life["came_ms"])
            [total] = [total for total in worker["totals"] if total["name"] == "never"]
            self.assertEqual((total["for"], total["whom"], total["count"]), ("event", [], 1))
            self.assertGreaterEqual(total["waited_ms"], 10)
        page = self.text("runs/job/reports/g.html")
        self.assertIn("<h2>Workers of t</h2>", page)
        self.assertRegex(page, r"worker 1 \(collector\) waited \d+ ms for the event &#39;never&#39;")

    def test_the_record_says_whose_event_workers_waited_for(self):
        self.sweep("""
while not os.path.exists(there + "/seen"):
    if worker.node == 0:
        worker.ending.wait(0.02)
        worker.emit("go")
    else:
        try:
            worker.wait_for("go", 1)
        except TimeoutError:
            pass
worker.barrier("end")
""")
        run = self.start("run", "job.yaml")
        there = self.directory / "runs/job/g/t/workers.json"

        def heard():
            workers = json.loads(there.read_text())["workers"] if there.exists() else []
            return {worker["node"] for worker in workers for total in worker["totals"]
                    if (total["for"], total["name"], total["whom"]) == ("event", "go", [0])}
        self.until("both to have waited for the first", lambda: heard() == {1, 2})
        self.write("runs/job/g/t/seen", "")
        self.end_of(run, expect=0)

    def test_of_a_run_that_hangs_the_record_says_who_waits_for_whom(self):
        self.sweep("""
worker.ready()
if worker.node == 2:
    worker.ending.wait()
    sys.exit()
worker.barrier("epoch", timeout=None)
""")
        run = self.start("run", "job.yaml")
        there = self.directory / "runs/job/g/t/workers.json"

        def waits():
            workers = json.loads(there.read_text())["workers"] if there.exists() else []
            return [(worker["node"], total["name"], total["whom"]) for worker in workers for total in worker["totals"] if total["for"] == "barrier"]
        self.until("both wait for the third", lambda: waits() == [(0, "epoch", [2]), (1, "epoch", [2])])
        self.assertFalse(json.loads(there.read_text())["ended"])
        run.send_signal(signal.SIGINT)
        self.end_of(run, expect=130)
        self.assertTrue(json.loads(there.read_text())["ended"])

    def test_a_record_that_is_none_is_told_and_breaks_no_report(self):
        # Any task may leave a file of that name.
        self.job("""
name: job
groups:
  - name: g
    cpus: 0
    memory: 100MB
    tasks:
      - {id: nonsense, command: 'echo nonsense > {task_dir}/workers.json'}
      - {id: wrong, command: 'echo ''{{"format": 1, "workers": [7]}}'' > {task_dir}/workers.json'}
      - {id: huge, command: 'truncate -s 17M {task_dir}/workers.json'}
      - {id: pipe, command: 'mkfifo {task_dir}/workers.json'}
      - {id: deep, command: "/usr/bin/python3 -c 'print(100_000 * chr(91))' > {task_dir}/workers.json"}
""")
        self.trainyard("run", "job.yaml", expect=0)
        page = self.text("runs/job/reports/g.html")
        self.assertTrue(page.rstrip().endswith("</html>"))
        for id in ("nonsense", "wrong", "huge", "pipe", "deep"):
            self.assertRegex(page, f"<h2>Workers of {id}</h2></div>\n<p class=\"note\">What they waited for cannot be shown: ")

    def test_one_that_fails_ends_the_task_and_all_begin_again(self):
        self.sweep("""
worker.ready()
if attempt == "1" and worker.node == 2:
    raise ValueError("no such data")
if attempt == "1":
    worker.wait_for("never")
print("well", worker.node, worker.life)
""", wants="workers: {learner: 1, collector: 2}\n        retries: 1")
        self.trainyard("run", "job.yaml", expect=0)
        [row] = self.status()["tasks"]
        self.assertEqual((row["word"], row["attempt"]), ("FINISHED", 2))
        first, _ = json.loads(self.text("runs/job/reports/g.json"))["attempts"]
        self.assertEqual((first["failure"], first["exit_code"]), ("EXIT", 1))
        self.assertIn("worker 2 failed: ValueError: no such data", self.log("stderr.log"))
        # The logs of the attempt before stay beside those of the next one.
        self.assertIn("ValueError: no such data", self.log("worker-2.log"))
        self.assertEqual([self.log(f"workers.2/worker-{node}.log") for node in range(3)], [f"well {node} 1\n" for node in range(3)])

    def test_the_message_of_the_task_is_that_of_the_worker_that_failed(self):
        self.sweep("""
worker.ready()
if worker.node == 2:
    raise ValueError("no such data")
worker.wait_for("never")
""")
        self.trainyard("run", "job.yaml", expect=1)
        [row] = self.status()["tasks"]
        self.assertEqual((row["word"], row["message"]), ("EXIT 1", "worker 2 failed: ValueError: no such data"))
        self.assertIn("worker 2 failed: ValueError: no such data", self.trainyard("logs", "t", "--stderr", expect=0).stdout)

    def test_a_signal_that_kills_a_worker_is_the_failure_of_the_task(self):
        for run, sent, word, end, message in (
                ("runs/job", "SIGSEGV", "SIGSEGV", "crashed", "crashed with SIGSEGV (segmentation fault): worker 2 failed: was killed by signal 11"),
                ("runs/job-2", "SIGKILL", "KILLED", "killed", "killed by signal 9 (SIGKILL): worker 2 failed: was killed by signal 9")):
            self.sweep(f"""
worker.ready()
if worker.node == 2:
    os.kill(os.getpid(), signal.{sent})
worker.wait_for("never")
""")
            self.trainyard("run", "--new", "job.yaml", expect=1)
            [row] = self.status(run)["tasks"]
            self.assertEqual((row["word"], row["end"], row["exit_code"], row["message"]), (word, end, None, message))

    def test_ctrl_c_ends_all_workers(self):
        self.sweep(IDLE)
        run = self.start("run", "job.yaml")
        pids = self.pids()
        run.send_signal(signal.SIGINT)
        self.end_of(run, expect=130)
        self.assertEqual([pid for pid in pids if os.path.exists(f"/proc/{pid}")], [])
        self.assertEqual(processes_with(f"TRAINYARD_TASK_DIR={self.directory}/runs/job/g/t"), [])

    def test_no_worker_outlives_a_keeper_that_is_killed(self):
        self.sweep(IDLE)
        run = self.start("run", "job.yaml")
        pids = self.pids()
        run.kill()
        run.wait()
        self.until("the end of all workers", lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids))

    def test_a_signal_before_term_reaches_each_worker(self):
        self.sweep("""
signal.signal(signal.SIGUSR1, lambda *_: (print("saves", flush=True), sys.exit(0)))
worker.ready()
""" + IDLE, wants="workers: 3\n        signal: USR1@1s\n        time-limit: 600s")
        run = self.start("run", "job.yaml")
        self.pids()
        self.trainyard("kill", "t", expect=0)
        run.wait(PATIENCE_S)
        self.assertEqual([self.log(f"worker-{node}.log") for node in range(3)], ["saves\n"] * 3)

    def test_each_hears_that_it_is_to_end_before_term(self):
        self.sweep("""
signal.signal(signal.SIGTERM, lambda *_: (print("TERM", flush=True), sys.exit(1)))
worker.ready()
print("up", flush=True)
worker.ending.wait(60)
print("saved", flush=True)
""", wants="workers: 2")
        run = self.start("run", "job.yaml")
        logs = [self.directory / f"runs/job/g/t/worker-{node}.log" for node in range(2)]
        self.until("both workers", lambda: all(log.exists() and log.read_text() == "up\n" for log in logs))
        self.trainyard("kill", "t", expect=0)
        run.wait(PATIENCE_S)
        self.assertEqual([log.read_text() for log in logs], ["up\nsaved\n"] * 2)

    def test_clean_keeps_their_logs_with_the_others(self):
        self.sweep("print(worker.node); open(there + '/model', 'w'); sys.exit(attempt == '1')",
                   wants="workers: 2\n        retries: 1")
        self.trainyard("run", "job.yaml", expect=0)
        self.trainyard("clean", "runs/job", "--keep", "logs", expect=0)
        left = sorted(str(path.relative_to(self.directory / "runs/job/g/t")) for path in (self.directory / "runs/job/g/t").rglob("*.log"))
        self.assertEqual([name for name in left if "worker" in name],
                         ["worker-0.log", "worker-1.log", "workers.2/worker-0.log", "workers.2/worker-1.log"])
        self.assertFalse((self.directory / "runs/job/g/t/model").exists())
