"""The client by itself, outside of any yard. With a yard: tests/e2e/test_two_phase.py."""
import contextlib
import importlib.util
import io
import json
import os
import pathlib
import re
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

import trainyard

HERE = pathlib.Path(__file__).resolve().parent


def caught(raise_it):
    try:
        raise_it()
    except Exception as error:  # pylint: disable=broad-except
        return error
    raise AssertionError("nothing was raised")


def chain(inner, outer):
    def raise_it():
        try:
            raise inner
        except Exception as error:
            raise outer from error
    return caught(raise_it)


class OutOfMemory(unittest.TestCase):
    def test_is_seen_in_every_framework_by_type_or_text(self):
        class OutOfMemoryError(RuntimeError):
            """As torch and its ancestors have it."""

        class Newer(OutOfMemoryError):
            pass

        for error in [
                MemoryError(), OutOfMemoryError("x"), Newer(),
                RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 7.79 GiB total capacity)"),
                RuntimeError("HIP out of memory. Tried to allocate"),
                RuntimeError("CUDA error: out of memory"),
                RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
                RuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8589934592 bytes."),
                RuntimeError("DataLoader worker (pid 4242) is killed by signal: Killed."),
                RuntimeError("DataLoader worker (pid(s) 7) exited unexpectedly with a Bus error"),
                RuntimeError("HIP error: out of memory"),
                RuntimeError("Resource exhausted: Out of memory allocating 3221225472 bytes."),
                RuntimeError("INTERNAL: Failed to allocate 3221225472 bytes for new constant"),
                RuntimeError("ncclUnhandledCudaError: Call to CUDA function failed.\nCuda failure 2 'out of memory'"),
                RuntimeError("std::bad_alloc"),
                RuntimeError("unable to write to file </torch_123_456>"),
                OSError(12, "Cannot allocate memory"), OSError(12, "Nicht genug Speicher"),
                OSError(28, "No space left on device", "/dev/shm/x"),
                chain(MemoryError(), ValueError("cannot read")),
        ]:
            self.assertTrue(trainyard.is_out_of_memory(error), repr(error))

    def test_is_nothing_else(self):
        for error in [RuntimeError("loss is nan"), ValueError("memory"), KeyError("x"),
                      OSError(28, "No space left on device", "/data/x"), OSError(2, "no such file"),
                      chain(ValueError("a"), KeyError("b"))]:
            self.assertFalse(trainyard.is_out_of_memory(error), repr(error))

    def test_is_what_the_yard_knows_by_the_words_of_a_plain_command(self):
        source = pathlib.Path(__file__).parent.parent / "src/wire/memory_text.cc"
        texts = re.search(r"kTexts\{(.*?)\};", source.read_text(), re.DOTALL)[1]
        self.assertEqual(set(re.findall(r'"([^"]+)"', texts)), set(trainyard.client._MEMORY_TEXTS))


class Failure(unittest.TestCase):
    def test_is_told_by_the_line_that_names_it(self):
        from trainyard import client
        error = RuntimeError("CUDA error: device-side assert triggered\nCompile with `TORCH_USE_CUDA_DSA`.\n")
        self.assertEqual(client._line(error), "RuntimeError: CUDA error: device-side assert triggered")
        self.assertEqual(client._line(KeyError()), "KeyError")
        try:
            compile("1 +", "task.py", "exec")
        except SyntaxError as error:
            self.assertEqual(client._line(error), "SyntaxError: invalid syntax")

    def test_of_a_kind_without_words_has_its_name(self):
        from trainyard import client

        class Odd(Exception):
            def __str__(self):
                return "\n"
        self.assertTrue(client._line(Odd()).split(":")[0].endswith("Odd"))


class Result(unittest.TestCase):
    def test_is_added_to_what_is_there(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "result.json")
            os.environ["TRAINYARD_RESULT"] = path
            self.addCleanup(os.environ.pop, "TRAINYARD_RESULT")
            trainyard.result(acc=0.5, best=1)
            trainyard.result({"acc": float("nan"), "names": ("a", {1: float("inf")})}, last=True)
            with open(path, encoding="utf-8") as file:
                # The yard keeps null for these, and warns.
                self.assertEqual(json.load(file, parse_constant=str),
                                 {"acc": "NaN", "best": 1, "names": ["a", {"1": "Infinity"}], "last": True})
            self.assertEqual(os.listdir(directory), ["result.json"])

    def test_takes_numbers_of_other_libraries(self):
        class Array:
            def __init__(self, value):
                self.value = value

            def tolist(self):
                return self.value

        plain = trainyard.client._plain({"a": Array(0.5), "b": Array([1, float("inf")]), "c": 1})
        self.assertEqual(plain, {"a": 0.5, "b": [1, float("inf")], "c": 1})

    def test_says_what_it_changes_once(self):
        told = io.StringIO()
        self.addCleanup(trainyard.client._warned.clear)
        with contextlib.redirect_stderr(told):
            for _ in range(2):
                plain = trainyard.client._plain({1: "a", "1": "b", None: {2}, False: {3}, (4,): 5})
        self.assertEqual(plain, {"1": "b", "null": "{2}", "false": "{3}", "(4,)": 5})
        self.assertEqual(told.getvalue(), "trainyard: two keys are '1' in JSON: the last one is kept\n"
                                          "trainyard: a value of type set is kept as its text\n")


class ByHand(unittest.TestCase):
    def test_there_is_one_attempt_on_what_the_machine_has(self):
        devices = []
        for attempt in trainyard.attempts():
            with attempt as device:
                devices.append(device)
        self.assertEqual(devices, ["cpu"])

    def test_a_class_loads_and_trains(self):
        seen = []

        class Fold(trainyard.Task):
            def load(self):
                seen.append("load")

            def train(self, device):
                seen.append(device)
                trainyard.progress(0.5, loss=1)
                return {"acc": 1}

        with tempfile.TemporaryDirectory() as directory:
            os.environ["TRAINYARD_RESULT"] = os.path.join(directory, "result.json")
            self.addCleanup(os.environ.pop, "TRAINYARD_RESULT", None)
            trainyard.main(Fold)
            with open(os.environ["TRAINYARD_RESULT"], encoding="utf-8") as file:
                self.assertEqual(json.load(file), {"acc": 1})
        self.assertEqual(seen, ["load", "cpu"])

    def test_an_exception_goes_through(self):
        with self.assertRaises(MemoryError):
            for attempt in trainyard.attempts():
                with attempt:
                    raise MemoryError


class Import(unittest.TestCase):
    def modules_after(self, script):
        done = subprocess.run([sys.executable, "-c", script + "; import sys; print(*sys.modules)"], cwd=HERE, check=True,
                              capture_output=True, text=True)
        return set(done.stdout.split())

    def test_is_of_nothing_that_a_task_does_not_need(self):
        ours = {name for name in self.modules_after("import trainyard") if name.startswith("trainyard")}
        self.assertEqual(ours, {"trainyard", "trainyard.client"})
        self.assertIn("trainyard.ranks.shareable", self.modules_after("from trainyard import Shareable"))

    def test_gives_every_public_name(self):
        self.assertEqual([name for name in trainyard.__all__ if not hasattr(trainyard, name)], [])
        with self.assertRaises(AttributeError):
            trainyard.nonsense  # pylint: disable=pointless-statement

    def test_works_of_the_client_alone_as_one_file(self):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory, "trainyard.py")
            path.write_bytes((HERE / "trainyard/client.py").read_bytes())
            done = subprocess.run([sys.executable, "-c", "import trainyard; print(trainyard.__file__, trainyard.Task().id)"],
                                  cwd=directory, check=True, capture_output=True, text=True)
            self.assertEqual(done.stdout, f"{path} \n")

    def test_says_of_the_client_alone_that_the_rest_needs_the_package(self):
        self.assertEqual(sorted(trainyard.client._PACKAGE_ONLY), sorted(set(trainyard.__all__) - set(trainyard.client.__all__)))
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory, "trainyard.py")
            path.write_bytes((HERE / "trainyard/client.py").read_bytes())
            errors = [subprocess.run([sys.executable, "-c", f"import trainyard; trainyard.{name}"], cwd=directory, check=False,
                                     capture_output=True, text=True).stderr.splitlines()[-1] for name in ("Worker", "nonsense")]
        self.assertIn(f"AttributeError: module 'trainyard' has no attribute 'Worker': {path} is the client alone, and Worker needs "
                      "the whole package: 'pip install ./python' in a clone", errors[0])
        self.assertEqual(errors[1], "AttributeError: module 'trainyard' has no attribute 'nonsense'")


# Fields of which a pickle differs between two interpreters, or between two objects that are equal.
FIELDS = """
import argparse, array, dataclasses, datetime, enum, pathlib, trainyard
from trainyard import fingerprint
class Kind(enum.Enum):
    ADAM = object()
    SGD = 2
@dataclasses.dataclass
class Setup:
    kinds: set
    rate: float = 0.1
class Trial(trainyard.Task):
    def __init__(self, **fields):
        super().__init__(id="t")
        vars(self).update(fields)
fields = dict(text="a", number=10 ** 5000, none=None, tags={"a", "b", "c", 1, None}, more=[(1, 2.5), {"x": b"y", "w": frozenset("abc")}],
              kind=Kind.ADAM, setup=Setup({Kind.ADAM, Kind.SGD}), path=pathlib.Path("/data"), numbers=array.array("d", [1, 2]),
              words=argparse.Namespace(lr=0.1), when=datetime.timedelta(hours=1))
try:
    import numpy
    fields.update(weights=numpy.arange(6.0).reshape(2, 3), scalar=numpy.float32(0.5))
except ImportError:
    pass
print(fingerprint.of_task(Trial(**fields), {}))
"""


class Fingerprint(unittest.TestCase):
    class Trial(trainyard.Task):
        def __init__(self, field=None, **options):
            super().__init__(**options)
            self.field = field

    def of(self, field, group=(), **options):
        from trainyard import fingerprint
        return fingerprint.of_task(self.Trial(field, **options), dict(group))

    def test_is_the_same_in_every_interpreter(self):
        found = {subprocess.run([sys.executable, "-c", FIELDS], cwd=HERE, check=True, capture_output=True, text=True,
                                env={**os.environ, "PYTHONHASHSEED": str(seed)}).stdout for seed in range(4)}
        self.assertEqual(len(found), 1, found)
        self.assertRegex(found.pop(), "^[0-9a-f]{32}\n$")

    def test_is_another_one_for_another_value(self):
        values = [None, 1, 2, 1.0, True, "1", b"1", [1], (1,), [[1]], [1, 2], [12], {1}, frozenset([1]), {1: 2}, {"1": 2}, {1: [2]},
                  ["a", "b"], ["ab"], pathlib.PurePath("1"), float("inf"), -0.0, 0.0]
        self.assertEqual(len({self.of(value) for value in values}), len(values))

    @unittest.skipUnless(importlib.util.find_spec("numpy"), "there is no NumPy")
    def test_of_an_array_has_its_type_its_shape_and_its_numbers(self):
        import numpy
        array = numpy.arange(6, dtype="int32")
        values = [array, array.astype("int64"), array.reshape(2, 3), array + 1, numpy.int32(1), list(array)]
        self.assertEqual(len({self.of(value) for value in values}), len(values))
        self.assertEqual(self.of(numpy.zeros((2, 3))), self.of(numpy.zeros((2, 3), order="F")))

    def test_of_an_enum_has_its_name_and_its_value(self):
        import enum
        values = [enum.Enum("Rate", names).LOW for names in ({"LOW": 0.1}, {"LOW": 0.5}, {"LOW": object()})]
        values.append(enum.Enum("Rate", {"SLOW": 0.1}).SLOW)
        self.assertEqual(len({self.of(value) for value in values}), len(values))

    def test_has_the_fields_in_slots_and_those_added_to_a_dataclass(self):
        import dataclasses
        from trainyard import fingerprint

        class Slotted(trainyard.Task):
            __slots__ = ("rate", "__depth")

            def __init__(self, rate, depth=1):
                super().__init__()
                self.rate = rate
                self.__depth = depth

        @dataclasses.dataclass
        class Setup:
            rate: float = 0.1

        found = {fingerprint.of_task(task, {}) for task in (Slotted(1), Slotted(2), Slotted(2, 3))}
        self.assertEqual(len(found), 3)
        plain, more = Setup(), Setup()
        more.depth = 3
        self.assertNotEqual(self.of(plain), self.of(more))
        self.assertEqual(self.of(plain), self.of(Setup()))

    def test_says_nothing_of_the_order_of_keys_nor_of_what_a_yard_fills_in(self):
        from trainyard import fingerprint
        task = self.Trial({"a": 1, "b": 2}, id="x", memory="1GB")
        task.status, task.result, task._known_as = "FINISHED", {"acc": 1}, ("g", "x")
        self.assertEqual(fingerprint.of_task(task, {}), self.of({"b": 2, "a": 1}, id="y"))

    def test_counts_the_variables_of_the_task_and_of_its_group(self):
        self.assertNotEqual(self.of(1, env={"LR": 1}), self.of(1, env={"LR": 2}))
        self.assertEqual(self.of(1, env={"LR": 1}), self.of(1, group={"env": {"LR": 1}}))

    def test_that_is_given_stands_for_the_fields(self):
        self.assertEqual(self.of(1, fingerprint="v1"), self.of(object(), group={"fingerprint": "v1"}))
        self.assertEqual(self.of(1, fingerprint="v1"), self.of(1, group={"fingerprint": "v2"}, fingerprint="v1"))
        self.assertNotEqual(self.of(1, fingerprint="v1"), self.of(1, fingerprint="v2"))

    def test_is_none_of_what_cannot_be_walked_which_is_reported_once(self):
        endless = []
        endless.append(endless)
        told = io.StringIO()
        self.addCleanup(trainyard.client._warned.clear)
        group = trainyard.TaskGroup("g", [self.Trial([object()]), self.Trial([object()]), self.Trial(endless), self.Trial(1)])
        with contextlib.redirect_stderr(told):
            found = [group.fingerprints() for _ in range(2)]
        self.assertEqual([each is None for each in found[0]], [True, True, True, False])
        self.assertEqual(found[0], found[1])
        lines = told.getvalue().splitlines()
        self.assertEqual(lines[0], "trainyard: a task of class Trial is known again by its id alone: its field 'field' is or holds a "
                                   "builtins.object; give it fingerprint='...', which changes with its parameters")
        self.assertIn("what contains itself", lines[1])
        self.assertEqual(len(lines), 2)

    def test_is_found_again_in_the_job_file_of_a_group_and_is_no_key_of_it(self):
        from trainyard import task_group
        ids = ["{lr}", "a.pickle.0", "b"]
        group = trainyard.TaskGroup("g", [trainyard.Task(id=each, fingerprint="v1") for each in ids] + [trainyard.Task(id="plain")])
        group._fingerprint = lambda task: None if task.id == "a.pickle.0" else "0f"
        with tempfile.TemporaryDirectory() as directory:
            path = group.hand_over(directory, without=["b"], finished={"plain": ["kept"]})
            text = pathlib.Path(path).read_text()
        commands = task_group.commands_of(text)
        self.assertEqual({each: task_group.fingerprint_of(command) for each, command in commands.items()},
                         {task_group.verbatim("{lr}"): "0f", "a.pickle.0": None, "plain": None})
        self.assertEqual(commands["plain"], ["kept"])
        self.assertNotIn("fingerprint", text)


class WorkerPlace(unittest.TestCase):
    def test_is_taken_once_a_process(self):
        script = """
import os
import trainyard
from trainyard.workers.place import take_place
take_place(), take_place()
os.environ["TRAINYARD_WORKER"] = '{"socket":"s","node":1,"index":1,"count":2,"port":5,"life":1,"labels":[],"roles":[]}'
assert take_place().node == 1
child = os.fork()
if child == 0:
    os._exit(take_place().node)  # A fork is no worker.
assert os.waitpid(child, 0)[1] == 0
trainyard.Worker.from_environment()
"""
        done = subprocess.run([sys.executable, "-c", script], cwd=HERE, check=False, capture_output=True, text=True)
        self.assertEqual(done.stderr.splitlines()[-1], "trainyard.workers.errors.WorkerError: Worker.from_environment() was called already "
                         "in this process, which is one worker: keep what it has returned, or use Worker() for one alone")


class WorkerArguments(unittest.TestCase):
    """Of a worker that is alone: they are checked before anything is sent."""
    def setUp(self):
        self.worker = trainyard.Worker()

    def error_of(self, call, *arguments, **options):
        error = caught(lambda: call(*arguments, **options))
        return "%s: %s" % (type(error).__name__, error)

    def test_a_name_is_a_string(self):
        says = "TypeError: name must be a string, not 5"
        for call in (lambda: self.worker.emit(5, 5), lambda: self.worker.on(5, print), lambda: self.worker.expect(5),
                     lambda: self.worker.barrier(5), lambda: self.worker.each(5)):
            self.assertEqual(self.error_of(call), says)
        self.assertEqual(self.error_of(self.worker.emit, []), "TypeError: name must be a string, not []")

    def test_a_timeout_is_a_number_of_seconds(self):
        for wrong in (float("inf"), float("nan"), -1, "3"):
            says = f"ValueError: timeout must be a number of seconds, 0 or more, or None for no limit, not {wrong!r}"
            for call, *first in ((self.worker.ready,), (self.worker.barrier, "b"), (self.worker.each, "n"), (self.worker.wait_for, "n")):
                self.assertEqual(self.error_of(call, *first, timeout=wrong), says)
        self.assertIsInstance(caught(lambda: self.worker.wait_for("n", timeout=0)), TimeoutError)

    def test_a_reach_is_one_of_three(self):
        self.assertEqual(self.error_of(self.worker.emit, "n", reach="every"), "ValueError: reach must be one of others, here, all, not 'every'")

    @unittest.skipUnless(importlib.util.find_spec("numpy"), "there is no NumPy")
    def test_memory_is_of_a_type_that_buffers_have(self):
        says = "TypeError: dtype must be one of bool, uint8, int8, uint16, int16, uint32, int32, uint64, int64, float16, float32, float64, not "
        for wrong in ("complex64", "U3", "datetime64[s]", "nonsense"):
            self.assertEqual(self.error_of(self.worker.alloc, 3, wrong), says + wrong)
        self.assertEqual(self.worker.alloc(3, float).dtype.name, "float64")

    def test_the_error_of_a_payload_has_one_line(self):
        from trainyard.workers.connection import text_of
        for wrong in (float("nan"), {"loss": [float("inf")]}, "\ud800"):
            says = self.error_of(text_of, wrong)
            self.assertRegex(says, "^ValueError: payload cannot be sent as JSON: ")
            self.assertNotIn("\n", says)
            self.assertFalse(hasattr(caught(lambda value=wrong: text_of(value)), "__notes__"))


class WorkerConnection(unittest.TestCase):
    @contextlib.contextmanager
    def connected(self):
        """A connection, and the socket at its other end."""
        from trainyard.workers.connection import WELCOME, Connection, Frame, text_of
        from trainyard.workers.place import Place
        parents = []

        def welcome():
            parents.append(listening.accept()[0])
            parents[0].sendall(b"".join(Frame(WELCOME, text_of({"ok": True})).pieces()))

        with tempfile.TemporaryDirectory() as directory, socket.socket(socket.AF_UNIX) as listening:
            listening.bind(directory + "/socket")
            listening.listen()
            welcomes = threading.Thread(target=welcome, daemon=True)
            welcomes.start()
            connection = Connection(Place(socket=directory + "/socket"), lambda descriptors: None)
            welcomes.join(60)
            with parents[0] as parent:
                try:
                    yield connection, parent
                finally:
                    connection.close()

    def test_a_frame_has_64_mib_of_arrays_beside_what_says_their_shapes(self):
        from trainyard.workers.connection import BUFFERS_BYTES_MAX, EVENT, Frame
        with self.connected() as (connection, parent):
            def send():
                for piece in Frame(EVENT, raw=[b"shape", bytes(BUFFERS_BYTES_MAX)]).pieces():
                    parent.sendall(piece)

            sends = threading.Thread(target=send, daemon=True)
            sends.start()
            self.assertEqual([len(each) for each in connection.receive().raw], [5, 64 << 20])
            sends.join(60)

    def test_a_word_waits_for_nobody_and_goes_before_all_that_is_sent_later(self):
        from trainyard.workers.connection import EVENT, HELLO, REPORT, Frame
        with self.connected() as (connection, parent), parent.makefile("rb") as stream:
            def kind_of(prefix):
                _, _, kind, _, _, _, _, length, count, _, size = PREFIX.unpack(prefix)
                stream.read(8 * count + length + size)
                return kind

            def next_kind():
                return kind_of(stream.read(PREFIX.size))

            self.assertEqual(next_kind(), HELLO)
            sends = threading.Thread(target=connection.send, args=(Frame(EVENT, raw=[bytes(8 << 20)]),), daemon=True)
            sends.start()
            prefix = stream.read(PREFIX.size)  # The rest of it waits for room.
            connection.say(Frame(REPORT, b"{}"))
            connection.end_words()
            writes = threading.Thread(target=connection.write_words, daemon=True)
            writes.start()
            self.assertEqual((kind_of(prefix), next_kind()), (EVENT, REPORT))
            sends.join(60)
            writes.join(60)
            connection.say(Frame(REPORT, b"{}"))
            connection.send(Frame(EVENT))
            self.assertEqual((next_kind(), next_kind()), (REPORT, EVENT))


PREFIX = struct.Struct("<4sBBHQQIIIIQ")


def frame(kind, fields):
    text = json.dumps(fields).encode()
    return PREFIX.pack(b"TYRD", 1, kind, 0, 0, 0, 0, len(text), 0, 0, 0) + text


class YardOfALine(unittest.TestCase):
    """The other end of a script's connection, as docs/protocol.md has it."""

    def frames_of(self, script, order=None, errors=None, path=HERE, phases=2):
        """The frames that a script sends after its hello: kind, fields, buffers. `order` is what it hears once it
        has loaded, and what it warns of goes to the list `errors`."""
        with tempfile.TemporaryDirectory() as place, socket.socket(socket.AF_UNIX) as listener:
            listener.bind(place + "/socket")
            listener.listen()
            process = subprocess.Popen([sys.executable, "-c", script], cwd=HERE, stderr=subprocess.PIPE, env={
                **os.environ, "PYTHONPATH": str(path), "TRAINYARD_SOCKET": place + "/socket", "TRAINYARD_TOKEN": "t",
                "TRAINYARD_PHASES": str(phases)})
            listener.settimeout(30)
            yard, _ = listener.accept()
            yard.sendall(frame(2, {"ok": True}))
            with yard, yard.makefile("rb") as stream:
                frames = []
                while prefix := stream.read(PREFIX.size):
                    _, _, kind, _, _, _, _, length, count, shared, size = PREFIX.unpack(prefix)
                    self.assertEqual(shared, 0)
                    sizes = struct.unpack("<%dQ" % count, stream.read(8 * count))
                    self.assertEqual(sum(sizes), size)
                    fields = json.loads(stream.read(length))
                    frames.append((kind, fields, [stream.read(each) for each in sizes]))
                    if order and fields.get("say") == "loaded":
                        yard.sendall(frame(7, order))
            said = process.communicate(timeout=30)[1].decode()
            self.assertEqual(process.returncode, 0, said)
            (errors if errors is not None else []).extend(said.splitlines())
            return frames[1:]


class Channel(YardOfALine):

    def test_a_message_goes_with_its_buffer(self):
        frames = self.frames_of("import array, trainyard\n"
                                "trainyard.send('weights', {'round': 1}, array.array('H', [1, 2]))\n"
                                "trainyard.send('plain')\n")
        self.assertEqual(frames, [
            (6, {"say": "loading"}, []),
            (6, {"say": "message", "command": "weights", "data": {"round": 1}}, [b"\1\0\2\0"]),
            (6, {"say": "message", "command": "plain", "data": None}, [])])

    def test_a_task_of_one_phase_says_how_far_it_is_when_it_first_does_and_nothing_else(self):
        frames = self.frames_of("import trainyard\n"
                                "trainyard.send('weights')\n"
                                "trainyard.progress(0.25, loss=1)\n"
                                "trainyard.progress(0.5, loss=2)\n"
                                "trainyard.progress(0.75, loss=3)\n"
                                "raise SystemExit(0)\n", phases=1)
        # What came too soon after the first gives way to the last, which is told at the end.
        self.assertEqual([(kind, fields["say"], fields["values"]) for kind, fields, _ in (frames[0], frames[-1])],
                         [(6, "progress", {"loss": 1}), (6, "progress", {"loss": 3})])

    def test_a_buffer_that_is_too_large_is_refused_and_nothing_is_sent(self):
        frames = self.frames_of("import trainyard\n"
                                "try: trainyard.send('weights', None, bytes((8 << 20) + 1))\n"
                                "except ValueError as error: trainyard.send(str(error))\n")
        self.assertEqual([fields.get("command") for _, fields, _ in frames],
                         [None, "a buffer of 8388609 bytes, at most 8388608 can be sent"])


# Notes what it is told; LIE is what a test has it do instead of what torch does.
TORCH = """
import json, sys, types
__version__ = "2.9.1"
told = []
properties = types.SimpleNamespace(total_memory=10 * 10**9)


def set_per_process_memory_fraction(fraction, device):
    told.append([device, fraction])


cuda = types.SimpleNamespace(get_device_properties=lambda index: properties,
                             set_per_process_memory_fraction=set_per_process_memory_fraction)


def raises(error):
    def it(*words, **more):
        raise error
    return it


LIE
"""
SCRIPT = """
import torch, trainyard
for attempt in trainyard.attempts():
    with attempt as device:
        trainyard.progress(0.5)
        print(device, file=torch.sys.stderr)
        print("told", torch.json.dumps(torch.told), file=torch.sys.stderr)
"""


class Torch(YardOfALine):
    """What a made-up torch is told of the part of a GPU that its task may take, and what that may break: nothing."""

    def trained_with(self, lie, most=4 * 10**9, device="cuda:0", script=SCRIPT):
        """What it was told, [device, fraction]; what the yard was told that it is; what was warned of."""
        errors = []
        with tempfile.TemporaryDirectory() as directory:
            pathlib.Path(directory, "torch.py").write_text(TORCH.replace("LIE", lie))
            frames = self.frames_of(script, {"do": "train", "device": device, "gpu_memory_max": most}, errors,
                                    f"{directory}{os.pathsep}{HERE}")
        said = {fields["say"]: fields for _, fields, _ in frames}
        self.assertEqual(list(said), ["loading", "loaded", "progress", "trained"], lie)
        self.assertEqual(errors[-2], device, lie)
        told = json.loads(errors[-1].removeprefix("told "))
        for _, fraction in told:
            self.assertTrue(0 < fraction <= 1, (lie, fraction))
        return told, said["loaded"].get("caps"), errors[:-2]

    def test_is_told_its_part_less_what_it_does_not_count(self):
        self.assertEqual(self.trained_with(""), ([[0, 0.35]], "torch 2.9.1", []))
        self.assertEqual(self.trained_with("", device="cuda:1,cuda:0")[0], [[1, 0.35], [0, 0.35]])
        self.assertEqual(self.trained_with("", most=0)[0], [[0, 1.0]])
        self.assertEqual(self.trained_with("", most=600 * 10**6)[0], [[0, 0.03]])
        self.assertEqual(self.trained_with("", most=11 * 10**9)[0], [[0, 1.0]])
        self.assertEqual(self.trained_with("", device="cpu"), ([], "torch 2.9.1", []))

    def test_is_told_nothing_where_its_card_has_no_size_that_cards_have(self):
        for lie in ("0", "-1", "float('nan')", "float('inf')", "10**15", "'10 GB'", "None", "[10**9]"):
            for most in (4 * 10**9, 0):
                told, _, warned = self.trained_with(f"properties.total_memory = {lie}", most)
                self.assertEqual((told, len(warned)), ([], 1), (lie, warned))
                self.assertIn(f"trainyard: torch is not kept to {most} bytes of its GPU: ", warned[0])

    def test_is_told_of_all_of_a_card_that_it_says_is_smaller_than_its_part(self):
        self.assertEqual(self.trained_with("properties.total_memory = 10**9"), ([[0, 1.0]], "torch 2.9.1", []))

    def test_breaks_no_task_by_what_it_raises(self):
        for error in ("RuntimeError('no driver')", "type('Odd', (Exception,), {'__str__': lambda self: 1 / 0})()"):
            for name in ("get_device_properties", "set_per_process_memory_fraction"):
                told, caps, warned = self.trained_with(f"cuda.{name} = raises({error})")
                self.assertEqual((told, caps, len(warned)), ([], "torch 2.9.1", 1), warned)

    def test_of_which_one_card_does_not_answer_is_told_of_the_other(self):
        told, _, warned = self.trained_with(
            "cuda.get_device_properties = lambda index: properties if index else 1 / 0", device="cuda:0,cuda:1")
        self.assertEqual(told, [[1, 0.35]])
        self.assertEqual(warned, ["trainyard: torch is not kept to 4000000000 bytes of its GPU: ZeroDivisionError: "
                                  "division by zero"])

    def test_breaks_no_task_by_what_it_returns(self):
        for lie in ("cuda.set_per_process_memory_fraction = lambda *words: told.append(list(words)[::-1]) or NotImplemented",
                    "properties.total_memory = type('Size', (int,), {'__repr__': lambda self: 1 / 0})(10**10)"):
            self.assertEqual(self.trained_with(lie), ([[0, 0.35]], "torch 2.9.1", []))

    def test_of_a_strange_version_is_one_all_the_same(self):
        for lie, caps in (("__version__ = (2, 9)", "torch (2, 9)"), ("__version__ = 'x' * 10**7", "torch " + "x" * 100),
                          ("__version__ = b'2.9'", "torch b'2.9'")):
            self.assertEqual(self.trained_with(lie), ([[0, 0.35]], caps, []))

    def test_that_is_none_is_told_nothing(self):
        for lie in ("cuda = None", "del cuda", "cuda = types.SimpleNamespace()", "del __version__",
                    "cuda.set_per_process_memory_fraction = 1",
                    "cuda = type('Lazy', (), {'__getattr__': raises(RuntimeError('not built with CUDA'))})()",
                    "__version__ = type('Odd', (), {'__str__': raises(ValueError('no'))})()"):
            self.assertEqual(self.trained_with(lie), ([], None, []), lie)

    def test_whose_error_cannot_be_told_fails_as_what_it_is(self):
        script = """
import trainyard, torch
for attempt in trainyard.attempts():
    try:
        with attempt as device:
            trainyard.progress(0.5)
            raise type("Odd", (RuntimeError,), {"__str__": torch.raises(ValueError("no"))})()
    except RuntimeError as error:
        print(device, file=torch.sys.stderr)
        print("told []", file=torch.sys.stderr)
        trainyard.client._yard.say("trained")
        break
"""
        self.assertEqual(self.trained_with("", script=script)[2], [])


if __name__ == "__main__":
    unittest.main()
