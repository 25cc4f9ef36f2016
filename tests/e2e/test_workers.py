"""Python workers of a parallel run: with each other, with a learner in C++, and alone."""
import os
import unittest

from python_workers import BEGIN, PYTHON, TOOL, PythonWorkersTest, numpy
from yard import PATIENCE_S, subprocess

COLLECTOR = """
got, configs, weights, answers = [], [], [], []
worker.on("weights", weights.append)
answer = worker.expect("answer")
worker.on("log.*", lambda name, payload: got.append((name, payload)))
for number in range(5000):
    worker.emit("episode", {"node": worker.node, "number": number})
worker.emit("frames", numpy.full((3, 4), worker.node, "float32"))
worker.emit("frames", numpy.full((100, 1000), worker.node, "float32"))
worker.emit("log.%d" % worker.node, {"text": "node " + str(worker.node)})
worker.barrier("sent")
need(len(weights) == 2, weights)
small, large = weights
need(small.dtype == "float32" and small.tolist() == [[1, 2, 3], [4, 5, 6]], small)
need(large.dtype == "float64" and large.shape == (100000,) and (large == 0.5).all(), large)
need(not large.flags.writeable and not small.flags.writeable, "arrays that cannot be written to")
other = 3 - worker.node
need(got == [("log.%d" % other, {"text": "node %d" % other})], got)
# A late listener gets the retained event, and only the last one.
worker.on("config", configs.append)
worker.ready()
need(configs == [{"version": 2, "names": ["\\u00e9", '" ::']}], configs)
heard = answer.wait(60)
need(heard["ordered"] and heard["episodes"] == {"1": 5000, "2": 5000}, heard)
need(sorted(heard["frames"]) == [[[3, 4], 12.0], [[3, 4], 24.0], [[100, 1000], 100000.0], [[100, 1000], 200000.0]], heard)
need(heard["logs"] == {"log.1": {"text": "node 1"}, "log.2": {"text": "node 2"}}, heard)
worker.barrier("answered")
"""

LEARNER_IN_CPP = ["sh", "-c", f"""case "$TRAINYARD_WORKER" in *learner*) exec '{TOOL}' learner;; *) exec {PYTHON} worker.py;; esac"""]


class Workers(PythonWorkersTest):
    @unittest.skipUnless(numpy, "there is no NumPy")
    def test_a_learner_in_cpp_has_collectors_in_python(self):
        done = self.run_workers(3, COLLECTOR, roles="learner,collector,collector", command=LEARNER_IN_CPP)
        self.assertEqual(done.stderr, "")

    @unittest.skipUnless(numpy, "there is no NumPy")
    def test_an_event_that_comes_again_is_dropped_in_cpp_and_in_python(self):
        done = self.run_workers(3, """
from trainyard.workers.connection import EVENT
send_once = worker._connection.send_locked
def send_twice(*frames, descriptors=()):
    send_once(*frames, descriptors=descriptors)
    for frame in frames:
        if frame.kind == EVENT and not frame.shared:
            send_once(frame)
worker._connection.send_locked = send_twice
""" + COLLECTOR, roles="learner,collector,collector", command=LEARNER_IN_CPP)
        self.assertEqual(done.stderr, "")

    @unittest.skipUnless(numpy, "there is no NumPy")
    def test_an_array_in_shared_memory_is_not_copied(self):
        self.run_workers(2, """
tensors = []
worker.on("tensor", tensors.append)
worker.ready()
if worker.node == 0:
    tensor = worker.alloc((100000,))
    tensor[:] = 1
    worker.emit("tensor", tensor)
worker.barrier("sent")
if worker.node == 0:
    tensor[0] = 7  # After the other worker has received it.
worker.barrier("written")
if worker.node == 1:
    need([(it.shape, it[0], it[1]) for it in tensors] == [((100000,), 7, 1)], tensors)
worker.barrier("end")
""")

    def test_each_knows_its_place_and_what_it_starts_is_no_worker(self):
        done = self.run_workers(2, """
need("TRAINYARD_WORKER" not in os.environ and "TRAINYARD_WORKER_TOKEN" not in os.environ, os.environ)
need((worker.node, worker.count, worker.life, worker.labels, worker.is_alone) == (worker.index, 2, 1, [], False), worker.node)
need(worker.port == 50515 + worker.index, worker.port)
need(worker.has_role("learner") == (worker.index == 0) and worker.has_role("collector") == (worker.index == 1), worker.roles)
try:
    trainyard.Worker.from_environment()
except trainyard.WorkerError as error:
    need("was called already in this process" in str(error), error)
else:
    need(False, "an error")
child = os.fork()
if child == 0:
    try:
        worker.emit("x", 1)
    except trainyard.WorkerError as error:
        os._exit("a forked process is no worker" in str(error))
    os._exit(0)
need(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1, "a fork that must not write")
worker.barrier("end")
need([each["node"] for each in worker.status()["workers"]] == [0, 1], worker.status())
worker.barrier("asked")
""", roles="learner,collector")
        self.assertEqual(done.stderr, "")

    def test_one_that_asks_for_the_status_may_add_listeners(self):
        self.run_workers(2, """
def presence():
    return worker.status()["workers"][worker.node]["presence"]
need((presence(), presence()) == ("joined", "joined"), "one that does not listen yet")
worker.ready()
need(presence() == "settled", "one that listens")
worker.barrier("end")
""")

    def test_nothing_is_lost_and_the_order_of_each_who_sends_is_kept(self):
        done = self.run_workers(3, """
next_of, wrong = {}, []
def take(event):
    node, number = event
    if next_of.get(node, 0) != number:
        wrong.append(event)
    next_of[node] = number + 1
worker.on("n", take)
for number in range(10000):
    worker.emit("n", [worker.node, number])
worker.barrier("sent")
need(not wrong, wrong[:3])
need(next_of == {node: 10000 for node in range(3) if node != worker.node}, next_of)
worker.barrier("end")
""")
        self.assertEqual(done.stderr, "")

    @unittest.skipUnless(numpy, "there is no NumPy")
    def test_a_deadline_holds_where_two_listeners_wait_for_each_other(self):
        for node in range(2):
            os.mkfifo(f"{self.directory}/stuck.{node}")
        # The answer to ready() may come behind the first event, whose listener never returns.
        self.run_workers(3, """
if worker.node == 2:
    worker.barrier("all listen")
    def waits(node, whom):
        return worker.status()["workers"][node].get("waits_for") == [whom]
    while not (waits(0, 1) and waits(1, 0)):
        pass
    for node in range(2):
        open("stuck.%d" % node, "w").close()
else:
    def fills(ball):
        while True:
            worker.emit("ball", ball)
    worker.on("ball", fills)
    worker.barrier("all listen")
    worker.emit("ball", "b" * 100000)
    open("stuck.%d" % worker.node).close()
    trainyard.worker._ANSWER_PATIENCE_S = 0.1  # No answer comes, however long it is waited for.
    try:
        worker.barrier("end", timeout=0.01)
        need(False, "an error")
    except trainyard.WorkerError as error:
        need(str(error) == "no answer came within 0.01 s at the barrier 'end': a listener of this worker has not returned, "
             "or events that came before the answer are still being handled", error)
    try:
        worker.wait_for("never", timeout=0.01)
        need(False, "an error")
    except TimeoutError:
        pass
""")

    def test_arrays_of_all_types_come_as_they_went(self):
        done = self.run_workers(2, """
types = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64"]
sent = [(numpy.arange(count) % 100).astype(kind) for kind in types for count in (7, 70000)]
sent += [numpy.array(3.5), numpy.zeros((0, 3), "int16"), numpy.arange(24).reshape(2, 3, 4).transpose(2, 0, 1),
         numpy.arange(100000, dtype=">f8"), numpy.frombuffer(b"bytes", "uint8"), worker.alloc((3, 50000), "int64")]
sent[-1][:] = 8
got = []
worker.on("array", got.append)
if worker.node == 0:
    for each in sent:
        worker.emit("array", each)
    for wrong in (numpy.array(["a"]), numpy.array([1j])):
        try:
            worker.emit("array", wrong)
        except TypeError as error:
            need("cannot be sent" in str(error), error)
        else:
            need(False, "an error")
    try:
        worker.emit("array", {"a": 1})
    except TypeError as error:
        need(str(error) == "event 'array' has carried buffer, and cannot carry json: give one of them another name", error)
    else:
        need(False, "an error")
worker.barrier("sent")
if worker.node == 1:
    need(len(got) == len(sent), len(got))
    for came, went in zip(got[:-1], sent):
        need(came.dtype == went.dtype.newbyteorder("=") and came.shape == went.shape and (came == went).all(), (came, went))
    need((got[-1] == 8).all() and got[-1].shape == (3, 50000), got[-1])
worker.barrier("end")
""")
        self.assertEqual(done.stderr, "")

    @unittest.skipUnless(numpy, "there is no NumPy")
    def test_a_retained_array_outlives_the_worker_that_emitted_it(self):
        done = self.run_workers(2, """
ended = threading.Event()
worker.on("trainyard.peer", lambda it: it["change"] == "finished" and ended.set())
worker.ready()
if worker.node == 0:
    worker.emit("weights", numpy.full(100000, 7.0), retained=True)
else:
    need(ended.wait(60), "the end of the other one")
    weights = worker.wait_for("weights", 60)
    need(weights.shape == (100000,) and (weights == 7).all(), weights)
""")
        self.assertEqual(done.stderr, "")

    @unittest.skipUnless(numpy, "there is no NumPy")
    def test_memory_is_used_again_when_the_last_view_of_it_is_gone(self):
        done = self.run_workers(2, """
got, sums = [], []
def take(array):
    sums.append(float(array.sum()))
    if len(got) < 10:
        got.append(array[1:3])  # A view of it keeps all of it.
worker.on("array", take)
if worker.node == 0:
    for number in range(400):
        worker.emit("array", numpy.full(50000, number, "float64"))
    need(len(worker._arenas._arenas) <= 16, "arenas that are used again")
worker.barrier("sent")
if worker.node == 1:
    need(sums == [number * 50000.0 for number in range(400)], sums)
    need([view.tolist() for view in got] == [[number, number] for number in range(10)], got)
    need(len(worker._mapped._maps) <= 16, "maps that are used again")
worker.barrier("end")
""")
        self.assertEqual(done.stderr, "")

    @unittest.skipUnless(numpy, "there is no NumPy")
    def test_emit_waits_for_shared_memory_that_a_receiver_still_has(self):
        done = self.run_workers(2, """
kept, large = [], []
worker.on("small", kept.append)
worker.on("go", lambda it: kept.clear())
worker.on("large", large.append)
if worker.node == 0:
    for _ in range(16):
        worker.emit("small", numpy.zeros(100000, "uint8"))
    worker.emit("go")
    worker.emit("large", numpy.zeros(65 << 20, "uint8"))
worker.barrier("sent")
need([each.nbytes for each in large] == ([65 << 20] if worker.node == 1 else []), large)
""")
        self.assertEqual(done.stderr, "")

    @unittest.skipUnless(numpy, "there is no NumPy")
    def test_emit_is_refused_where_all_shared_memory_is_retained(self):
        done = self.run_workers(2, """
if worker.node == 0:
    for i in range(16):
        worker.emit("kept.%d" % i, numpy.zeros(100000, "uint8"), retained=True)
    try:
        worker.emit("large", numpy.zeros(65 << 20, "uint8"))
    except trainyard.WorkerError as error:
        need(str(error).startswith("event 'large' has an array of more than 64 MiB, which goes through shared memory alone, and 16 buffers "
                                   "are in use: emit parts of it, retain fewer arrays, "), error)
    else:
        need(False, "an error")
worker.barrier("end")
""")
        self.assertEqual(done.stderr, "")

    def test_without_numpy_arrays_are_plain_memory(self):
        done = self.run_workers(2, """
import array
sys.modules["numpy"] = None  # As where it is not installed.
got = []
worker.on("array", got.append)
if worker.node == 0:
    worker.emit("array", array.array("d", [1, 2.5]))
    worker.emit("array", b"x" * 100000)
    worker.emit("array", memoryview(array.array("i", range(6))).cast("B").cast("i", (2, 3)))
    worker.emit("array", b"")
worker.barrier("sent")
if worker.node == 1:
    need(all(each.readonly for each in got), got)
    need([each.tolist() for each in got] == [[1, 2.5], [120] * 100000, [[0, 1, 2], [3, 4, 5]], []], got)
worker.barrier("end")
""")
        self.assertEqual(done.stderr, "")

    def test_listeners_of_patterns_and_of_a_value_that_was_retained(self):
        done = self.run_workers(2, """
names, late = [], []
by_pattern = worker.on("metrics.*", lambda name, payload: names.append((name, payload)))
if worker.node == 0:
    for name in ("metrics.loss", "metric", "metrics.:: \\"*\\u00e9", "m" * 256):
        worker.emit(name, name)
    worker.emit("version", 1, retained=True)
    worker.emit("version", 2, retained=True)
worker.barrier("sent")
if worker.node == 1:
    need(names == [(name, name) for name in ("metrics.loss", "metrics.:: \\"*\\u00e9")], names)
    for _ in range(2):
        listener = worker.on("version", late.append)
        worker.ready()
        listener.off()
        listener.off()
    need(late == [2, 2], late)
    # Each listener after the first one gets it, too, once.
    first, second, third = worker.on("version", late.append), [], []
    worker.ready()
    also = [worker.on("version", second.append), worker.on("vers*", lambda *it: third.append(it))]
    need((late, second, third) == ([2, 2, 2], [2], [("version", 2)]), (late, second, third))
    expected = worker.expect("version")
    need(expected.wait(0) == 2, "what is expected later")
    for each in [first, *also]:
        each.off()
by_pattern.off()
worker.barrier("taken off")
worker.emit("metrics.more", 1)
worker.barrier("not heard")
need(len(names) == (2 if worker.node == 1 else 0), names)
for name in ("", "m" * 257, "\\u00e9" * 129):
    try:
        worker.emit(name)
    except ValueError as error:
        need("1 to 256 bytes" in str(error), error)
    else:
        need(False, "an error")
""")
        self.assertEqual(done.stderr, "")

    def test_an_exception_in_a_listener_is_told_and_stops_nobody(self):
        done = self.run_workers(2, """
heard = []
def fails(payload):
    raise ValueError("listener %d" % payload)
worker.on("n", fails)
worker.on("n", heard.append)
if worker.node == 0:
    worker.emit("n", 1)
    worker.emit("n", 2)
worker.barrier("sent")
need(heard == ([1, 2] if worker.node == 1 else []), heard)
""")
        self.assertIn("trainyard: event 'n': Traceback", done.stderr)
        self.assertIn("ValueError: listener 1\n", done.stderr)
        self.assertIn("ValueError: listener 2\n", done.stderr)

    def test_on_error_is_told_instead(self):
        self.write("told.py", BEGIN + """
told = []
worker = trainyard.Worker.from_environment(on_error=lambda event, error: told.append((event, str(error))))
def fails(payload):
    raise ValueError("no")
worker.on("n", fails)
worker.emit("n", 1, reach="all")
need(told == [("n", "no")], told)
""")
        done = subprocess.run([PYTHON, "told.py"], cwd=self.directory, capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_listener_that_waits_is_told_that_it_cannot(self):
        done = self.run_workers(2, """
heard = worker.expect("heard")
why = []
def waits(payload):
    for wait in (worker.ready, worker.status, lambda: worker.barrier("b", 1), lambda: worker.wait_for("x", 1)):
        try:
            wait()
        except RuntimeError as error:
            why.append(str(error))
    worker.emit("heard")
worker.on("n", waits)
if worker.node == 0:
    worker.emit("n", reach="all")  # Here it is called in emit().
    need(heard.wait(60) is None and heard.wait(60) is None, "nothing that it carries")
worker.barrier("end")
need(len(why) == 4 and all(each.startswith("a listener cannot wait ") for each in why), why)
""")
        self.assertEqual(done.stderr, "")
