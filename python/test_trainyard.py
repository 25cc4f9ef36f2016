"""The client by itself, outside of any yard. With a yard: tests/e2e/test_two_phase.py."""
import contextlib
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


class Channel(unittest.TestCase):
    """What the client sends, as docs/protocol.md has it; the other end is a few lines here."""

    PREFIX = struct.Struct("<4sBBHQQIIIIQ")

    def frames_of(self, script):
        """The frames that a script sends after its hello: kind, fields, buffers."""
        with tempfile.TemporaryDirectory() as place, socket.socket(socket.AF_UNIX) as listener:
            listener.bind(place + "/socket")
            listener.listen()
            process = subprocess.Popen([sys.executable, "-c", script], cwd=HERE, env={
                **os.environ, "TRAINYARD_SOCKET": place + "/socket", "TRAINYARD_TOKEN": "t"})
            listener.settimeout(30)
            yard, _ = listener.accept()
            text = b'{"ok":true}'
            yard.sendall(self.PREFIX.pack(b"TYRD", 1, 2, 0, 0, 0, 0, len(text), 0, 0, 0) + text)
            with yard, yard.makefile("rb") as stream:
                frames = []
                while prefix := stream.read(self.PREFIX.size):
                    _, _, kind, _, _, _, _, length, count, shared, size = self.PREFIX.unpack(prefix)
                    self.assertEqual(shared, 0)
                    sizes = struct.unpack("<%dQ" % count, stream.read(8 * count))
                    self.assertEqual(sum(sizes), size)
                    fields = json.loads(stream.read(length))
                    frames.append((kind, fields, [stream.read(each) for each in sizes]))
            self.assertEqual(process.wait(), 0)
            return frames[1:]

    def test_a_message_goes_with_its_buffer(self):
        frames = self.frames_of("import array, trainyard\n"
                                "trainyard.send('weights', {'round': 1}, array.array('H', [1, 2]))\n"
                                "trainyard.send('plain')\n")
        self.assertEqual(frames, [
            (6, {"say": "loading"}, []),
            (6, {"say": "message", "command": "weights", "data": {"round": 1}}, [b"\1\0\2\0"]),
            (6, {"say": "message", "command": "plain", "data": None}, [])])

    def test_a_buffer_that_is_too_large_is_refused_and_nothing_is_sent(self):
        frames = self.frames_of("import trainyard\n"
                                "try: trainyard.send('weights', None, bytes((8 << 20) + 1))\n"
                                "except ValueError as error: trainyard.send(str(error))\n")
        self.assertEqual([fields.get("command") for _, fields, _ in frames],
                         [None, "a buffer of 8388609 bytes, at most 8388608 can be sent"])


if __name__ == "__main__":
    unittest.main()
