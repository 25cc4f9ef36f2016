"""Python workers: what is waited for, refused or fails, and how they end."""
from python_workers import BEGIN, PYTHON, PythonWorkersTest
from yard import PATIENCE_S, json, subprocess


class WorkerEnds(PythonWorkersTest):
    def test_each_event_of_a_name_is_given_until_who_is_followed_has_ended(self):
        done = self.run_workers(3, """
if worker.node == 0:
    worker.barrier("armed")
    for number in range(100):
        worker.emit("go", number)
    worker.barrier("last")
else:
    worker.follow("learner")
    rounds = worker.each("go", timeout=60, most=8)  # The emitter waits when more have come.
    both = worker.each("g*")
    worker.barrier("armed")
    need([next(rounds) for _ in range(100)] == list(range(100)), "all, in order")
    need(next(both) == ("go", 0), "with its name")
    both.off()
    both.off()
    need(list(both) == [], "nothing more")
    try:
        next(worker.each("never", timeout=0.01))
    except TimeoutError as error:
        need(str(error) == "'never' did not come within 0.01 s", error)
    need(not worker.ending.is_set(), "it goes on")
    worker.barrier("last")
    need(list(rounds) == [] and worker.ending.is_set(), "the end of the learner")
    try:
        worker.wait_for("go")
    except trainyard.WorkerError as error:
        need("worker 0 has ended (finished)" == str(error), error)
    worker.barrier("collectors", roles=["collector"])
    worker.follow("learner")
    need(worker.ending.is_set(), "also one that has ended before")
""", roles="learner,collector,collector")
        self.assertEqual(done.stderr, "")

    def test_what_waits_for_each_is_bounded_and_the_rest_waits_where_it_is_emitted(self):
        done = self.run_workers(2, """
if worker.node == 1:
    given = worker.each("n", most=4)
    worker.barrier("armed")
    need(next(given) == 0, "the first")
    need(len(given._came) <= 4, len(given._came))
    need([next(given) for _ in range(1, 1000)] == list(range(1, 1000)), "all")
    try:
        worker.each("n", most=0)
    except ValueError as error:
        need("at least one" in str(error), error)
    else:
        need(False, "an error")
else:
    worker.barrier("armed")
    for number in range(1000):
        worker.emit("n", number)
worker.barrier("end")
""")
        self.assertEqual(done.stderr, "")

    def test_one_that_is_cut_off_hears_why_and_fails_the_run(self):
        done = self.run_workers(2, """
if worker.node == 0:
    worker.emit("score", 1)
    worker.barrier("told")
    worker.ending.wait(60)
    open("ended", "w").write("by itself")
else:
    worker.barrier("told")
    rounds = worker.each("never")
    worker.emit("score", trainyard.Bundle(None, [bytearray(3)]))
    for wait in (lambda: next(rounds), lambda: worker.barrier("b"), lambda: worker.emit("n")):
        try:
            wait()
        except trainyard.WorkerError as error:
            need("this worker is cut off: event 'score' carries json elsewhere, and bundle here" == str(error), error)
        else:
            need(False, "an error")
""", expect=1)
        self.assertIn("worker 1 failed: it was cut off: event 'score' carries json elsewhere, and bundle here", done.stderr + done.stdout)
        self.assertEqual((self.directory / "ended").read_text(), "by itself")

    def test_what_json_would_carry_as_something_else_is_refused_where_it_is_emitted(self):
        done = self.run_workers(2, """
heard = []
worker.on("n", heard.append)
if worker.node == 0:
    deep = []
    for _ in range(60):
        deep = [deep]
    for wrong, says in ((float("nan"), "JSON"), ({"loss": [float("-inf")]}, "JSON"), ({1, 2}, "type set"), (object(), "type object"),
                        ("\\ud800", "surrogates"), (deep, "nested deeper than 60")):
        try:
            worker.emit("n", wrong)
        except (ValueError, TypeError) as error:
            need(says in str(error), (wrong, error))
        else:
            need(False, wrong)
    worker.emit("n", {"letters": "\\U0001f600", "of": (1, 2), 3: deep[0][0]})
worker.barrier("sent")
need(worker.node == 0 or len(heard) == 1 and heard[0]["letters"] == "\\U0001f600" and heard[0]["of"] == [1, 2], heard)
""")
        self.assertEqual(done.stderr, "")

    def test_a_barrier_in_time_names_who_is_missing(self):
        done = self.run_workers(3, """
go = worker.expect("go")
if worker.node > 0:
    go.wait(60)
else:
    for late in (lambda: worker.barrier("epoch", timeout=0.05), lambda: worker.barrier("epoch", timeout=0.05, roles=["learner", "collector"])):
        try:
            late()
        except trainyard.WorkerError as error:
            need("worker 1 (collector)" in str(error) and error.missing == ["worker 1 (collector)", "worker 2 (collector)"], error)
        else:
            need(False, "an error")
    worker.barrier("mine", roles="learner")
    try:
        worker.wait_for("never", timeout=0.01)
    except TimeoutError as error:
        need(str(error) == "'never' did not come within 0.01 s", error)
    worker.emit("go")
""", roles="learner,collector,collector")
        self.assertEqual(done.stderr, "")

    def test_an_uncaught_error_is_the_failure_of_its_worker(self):
        done = self.run_workers(2, """
if worker.node == 1:
    worker.ready()
    def train():
        raise RuntimeError("no more data")
    train()
try:
    worker.wait_for("never")
except trainyard.WorkerError as error:
    need("worker 1 failed: RuntimeError: no more data" in str(error) and worker.ending.is_set(), error)
""", expect=1)
        self.assertIn("worker 1 failed: RuntimeError: no more data", done.stderr)
        self.assertIn("line ", done.stderr)
        self.assertIn("in train\n", done.stderr)
        self.assertNotIn("worker 0 failed", done.stderr)

    def test_what_the_end_of_a_worker_interrupts_is_not_printed_behind_its_error(self):
        done = self.run_workers(2, """
heard = threading.Event()
def emit_until_closed(_):
    heard.set()
    while True:
        worker.emit("n")
if worker.node == 1:
    worker.on("go", emit_until_closed)
worker.barrier("armed")
if worker.node == 0:
    worker.emit("go")
    worker.ending.wait(60)
else:
    need(heard.wait(60), "go")
    raise RuntimeError("no more data")
""", expect=1)
        self.assertIn("worker 1 failed: RuntimeError: no more data\n", done.stderr)
        self.assertNotIn("this worker is closed", done.stderr)

    def test_an_emit_that_waits_for_room_returns_when_the_run_ends(self):
        self.run_workers(3, """
saved = threading.Event()
if worker.node == 1:
    worker.on("x", lambda _: saved.wait())
worker.barrier("armed")
if worker.node == 0:
    while not worker.ending.is_set():
        worker.emit("x", "a" * 1000)
    open("saved", "w").close()
elif worker.node == 1:
    while not os.path.exists("saved"):
        pass
    saved.set()
else:
    while not worker.status()["workers"][0]["waits_for"]:
        pass
    raise RuntimeError("no more data")
""", expect=1)
        self.assertTrue((self.directory / "saved").exists())

    def test_all_lines_of_an_error_and_of_an_exit_are_the_failure_of_a_worker(self):
        for ends, says in (("raise RuntimeError('no data\\nfrom a\\nand b')", "RuntimeError: no data\nfrom a\nand b"),
                           ("sys.exit('no data\\nfrom c')", "no data\nfrom c")):
            done = self.run_workers(2, f"""
worker.ready()
if worker.node == 1:
    {ends}
try:
    worker.wait_for("never")
except trainyard.WorkerError as error:
    need("worker 1 failed: " + {says!r} in str(error), error)
""", expect=1)
            self.assertIn(f"worker 1 failed: {says}\n", done.stderr)
            self.assertNotIn("worker 0 failed", done.stderr)

    def test_a_worker_that_is_killed_is_named(self):
        done = self.run_workers(2, """
worker.ready()
if worker.node == 1:
    os.kill(os.getpid(), signal.SIGKILL)
worker.ending.wait(60)
""", expect=1)
        self.assertIn("worker 1 failed: was killed by signal 9", done.stderr)
        self.assertNotIn("worker 0 failed", done.stderr)

    def test_a_barrier_that_the_end_interrupts_says_what_ended_the_run(self):
        done = self.run_workers(2, """
over = threading.Event()
worker.on("trainyard.peer", lambda it: it["change"] == "failed" and over.set())
# The end and the answer at the barrier come before this, while the thread that waits there is in the handler.
signal.signal(signal.SIGUSR1, lambda *_: over.wait(2))
if worker.node == 0:
    open("pid", "w").write(str(os.getpid()))
worker.ready()
if worker.node == 1:
    while not any(barrier["arrived"] == [0] for barrier in worker.status()["barriers"]):
        pass
    os.kill(int(open("pid").read()), signal.SIGUSR1)
    os.kill(os.getpid(), signal.SIGKILL)
try:
    worker.barrier("met")
except trainyard.WorkerError as error:
    open("error", "w").write(str(error))
""", expect=1)
        self.assertIn("worker 1 failed: was killed by signal 9", done.stderr)
        self.assertEqual((self.directory / "error").read_text(), "worker 1 failed: was killed by signal 9")

    def test_a_worker_that_is_killed_begins_again_and_the_others_hear_of_it(self):
        self.run_workers(2, """
changes = []
back = worker.expect("hello")
worker.on("trainyard.peer", lambda it: changes.append((it["node"], it["change"])))
worker.barrier("first") if worker.life == 1 else None
if worker.node == 1:
    if worker.life == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    worker.emit("hello", worker.life)
else:
    need(back.wait(60) == 2, "its second life")
worker.barrier("end")
need(worker.node == 1 or changes[-2:] == [(1, "lost"), (1, "again")], changes)
""", retries=1)

    def test_what_another_emits_by_the_name_of_a_change_is_not_heard(self):
        done = self.run_workers(2, """
heard = []
for name in ("trainyard.peer", "trainyard.events-lost"):
    worker.on(name, heard.append)
worker.on("trainyard.*", lambda name, payload: heard.append(payload))
worker.barrier("armed")
if worker.node == 1:
    for name in ("trainyard.peer", "trainyard.events-lost"):
        worker.emit(name, {"node": 0, "change": "forged"}, retained=True)
worker.barrier("sent")
worker.on("trainyard.peer", heard.append)
need(not [it for it in heard if it.get("change") == "forged"], heard)
worker.barrier("end")
""")
        self.assertEqual(done.stderr, "")

    def test_it_ends_with_its_context_and_says_how(self):
        done = self.run_workers(2, """
ends = threading.Event()
ended = []
def changed(peer):
    ended.append((peer["node"], peer["change"], peer["outcome"], peer["why"]))
    if peer["change"] == "finished":
        ends.set()
worker.on("trainyard.peer", changed)
with worker:
    worker.ready()
    if worker.node == 1:
        worker.finish("stopped", "enough")
    else:
        need(ends.wait(60) and ended[-1] == (1, "finished", "stopped", "enough"), ended)
worker.close()
try:
    worker.emit("x")
except trainyard.WorkerError as error:
    pass
else:
    need(False, "an error")
""")
        self.assertEqual(done.stderr, "")

    def test_alone_all_that_is_local_works(self):
        self.write("alone.py", BEGIN + """
heard, everything = [], []
on = worker.on("n", heard.append)
worker.on("*", lambda name, payload: everything.append(name))
with worker:
    need((worker.is_alone, worker.node, worker.count, worker.index, worker.life) == (True, 0, 1, 0, 1), "one alone")
    need(worker.has_role("anything"), "every role")
    worker.ready()
    worker.barrier("b")
    later = worker.expect("n")
    worker.emit("n", 1)
    worker.emit("n", 2, reach="here")
    worker.emit("n", 3, reach="all")
    need(later.wait(0) == 2, "the next one")
    on.off()
    worker.emit("n", 4, reach="here")
    kept = []
    worker.emit("kept", 1, reach="all", retained=True)
    worker.on("kept", kept.append)
    worker.on("kept", lambda it: kept.append(10 * it))
    need(kept == [1, 10], kept)
    everything.remove("kept")
    need(heard == [2, 3] and everything == ["n"] * 3, (heard, everything))
    for wrong in (lambda: worker.emit("n", 1, reach="there"), lambda: worker.on("n", 3), lambda: worker.on("", print)):
        try:
            wrong()
        except (ValueError, TypeError):
            continue
        need(False, "an error")
    worker.finish()
    need(worker.status() == {}, "nothing")
print("done")
""")
        done = subprocess.run([PYTHON, "alone.py"], cwd=self.directory, capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "done\n", ""))

    def test_one_that_is_not_let_in_says_why(self):
        self.write("stranger.py", BEGIN)
        for place, says in (("{", "TRAINYARD_WORKER: "), ("{}", "TRAINYARD_WORKER: KeyError: 'node'"),
                            (json.dumps({"socket": "/no/such", "node": 0, "index": 0, "count": 1, "port": 0, "life": 1, "labels": [], "roles": []}),
                             "the parent of this worker is not there")):
            done = subprocess.run([PYTHON, "stranger.py"], cwd=self.directory, capture_output=True, text=True, timeout=PATIENCE_S,
                                  env={**self.environment, "TRAINYARD_WORKER": place, "TRAINYARD_WORKER_TOKEN": "t"})
            self.assertEqual(done.returncode, 1)
            self.assertIn(says, done.stderr)
