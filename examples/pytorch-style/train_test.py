"""The script learns, and a second attempt goes on where the first one stopped."""
import contextlib
import io
import json
import os
import pathlib
import tempfile
import unittest
from unittest import mock

import train


def run(directory, *arguments):
    result = pathlib.Path(directory) / "result.json"
    environment = {"TRAINYARD_TASK_DIR": str(directory), "TRAINYARD_RESULT": str(result)}
    output = io.StringIO()
    with mock.patch.dict(os.environ, environment), contextlib.redirect_stdout(output):
        train.main(list(arguments))
    return json.loads(result.read_text()), output.getvalue()


class Train(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def directory(self, name):
        path = self.folder / name
        path.mkdir(exist_ok=True)
        return path

    def test_learns(self):
        result, output = run(self.directory("a"), "--lr", "0.1", "--epochs", "3")
        self.assertGreater(result["test_acc"], 0.93)
        self.assertLess(result["loss"], 0.2)
        self.assertEqual(result["epochs"], 3)
        self.assertEqual(output.count("epoch "), 3)

    def test_goes_on_from_its_checkpoint_as_if_nothing_had_happened(self):
        whole, _ = run(self.directory("whole"), "--epochs", "4")
        run(self.directory("halves"), "--epochs", "2")
        halves, output = run(self.directory("halves"), "--epochs", "4")
        self.assertIn("going on after epoch 2", output)
        self.assertEqual(halves, whole)


if __name__ == "__main__":
    unittest.main()
