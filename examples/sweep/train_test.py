"""The script learns, its result depends on its options alone, and it writes that where trainyard wants it."""
import contextlib
import io
import json
import os
import pathlib
import tempfile
import unittest
from unittest import mock

import train


def run(*arguments, environment=None):
    """Returns what the script printed."""
    output = io.StringIO()
    with mock.patch.dict(os.environ, environment or {}), contextlib.redirect_stdout(output):
        if environment is None:
            os.environ.pop("TRAINYARD_RESULT", None)
        train.main(list(arguments))
    return output.getvalue()


class Train(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.result = pathlib.Path(folder.name) / "result.json"

    def result_of(self, *arguments):
        output = run(*arguments, environment={"TRAINYARD_RESULT": str(self.result)})
        return json.loads(self.result.read_text()), output

    def test_learns_and_prints_its_progress(self):
        result, output = self.result_of("--lr", "0.01", "--epochs", "5")
        accuracies = [float(line.split()[-1]) for line in output.splitlines()]
        self.assertEqual([line.split(":")[0] for line in output.splitlines()], [f"epoch {n}/5" for n in range(1, 6)])
        self.assertGreater(accuracies[-1], 0.85)
        self.assertEqual(list(result), ["test_acc"])
        self.assertAlmostEqual(result["test_acc"], accuracies[-1], places=3)

    def test_the_same_options_give_the_same_result_and_others_give_another(self):
        first, _ = self.result_of("--seed", "1", "--epochs", "2")
        self.assertEqual(self.result_of("--seed", "1", "--epochs", "2")[0], first)
        self.assertNotEqual(self.result_of("--seed", "2", "--epochs", "2")[0], first)
        self.assertNotEqual(self.result_of("--seed", "1", "--epochs", "2", "--lr", "0.1")[0], first)

    def test_needs_nothing_of_trainyard(self):
        self.assertEqual(run("--epochs", "1").count("\n"), 1)
        self.assertFalse(self.result.exists())


if __name__ == "__main__":
    unittest.main()
