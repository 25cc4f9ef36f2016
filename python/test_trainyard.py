"""The client by itself, outside of any yard. With a yard: tests/e2e/test_two_phase.py."""
import json
import os
import tempfile
import unittest

import trainyard


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
                chain(MemoryError(), ValueError("cannot read")),
        ]:
            self.assertTrue(trainyard.is_out_of_memory(error), repr(error))

    def test_is_nothing_else(self):
        for error in [RuntimeError("loss is nan"), ValueError("memory"), KeyError("x"),
                      chain(ValueError("a"), KeyError("b"))]:
            self.assertFalse(trainyard.is_out_of_memory(error), repr(error))


class Result(unittest.TestCase):
    def test_is_added_to_what_is_there(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "result.json")
            os.environ["TRAINYARD_RESULT"] = path
            self.addCleanup(os.environ.pop, "TRAINYARD_RESULT")
            trainyard.result(acc=0.5, best=1)
            trainyard.result({"acc": float("nan"), "names": ("a", {1: float("inf")})}, last=True)
            with open(path, encoding="utf-8") as file:
                self.assertEqual(json.load(file),
                                 {"acc": None, "best": 1, "names": ["a", {"1": None}], "last": True})
            self.assertEqual(os.listdir(directory), ["result.json"])

    def test_takes_numbers_of_other_libraries(self):
        class Array:
            def __init__(self, value):
                self.value = value

            def tolist(self):
                return self.value

        self.assertEqual(trainyard._plain({"a": Array(0.5), "b": Array([1, float("nan")]), "c": object}),
                         {"a": 0.5, "b": [1, None], "c": str(object)})


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


if __name__ == "__main__":
    unittest.main()
