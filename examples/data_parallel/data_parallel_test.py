"""Four ranks learn what one process learns with the same batches, in C++ and in Python."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PROGRAM, TRAINYARD, EXAMPLE = sys.argv[1:]
DATA = str(pathlib.Path(EXAMPLE).parent / "mnist/data")


def run(command, directory):
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=250, check=False,
                          env={**os.environ, "PATH": "/usr/bin:/bin", "MNIST_DIR": DATA, "EPOCHS": "2"})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def in_cpp(ranks):
    """The accuracy after one epoch, in percent."""
    with tempfile.TemporaryDirectory() as directory:
        told = run([PROGRAM, "--ranks", str(ranks), "--epochs", "1", "--data", DATA], directory)
    (found,) = re.findall(r"test ([0-9.]+) %", told)
    return float(found)


def in_python():
    with tempfile.TemporaryDirectory() as directory:
        place = pathlib.Path(directory, "run")
        run([TRAINYARD, "run", f"{EXAMPLE}/train.yaml", "--run-dir", place, "--set", "utilization-limit.cpu=100%"],
            directory)
        results = [json.loads(path.read_text()) for path in sorted(place.glob("train/*/result.json"))]
    return {result["ranks"]: 100 * result["test_acc"] for result in results}


one, four = in_cpp(1), in_cpp(4)
print("C++:", one, four)
assert one > 85 and abs(one - four) < 0.5, (one, four)
python = in_python()
print("Python:", python)
assert set(python) == {1, 4} and python[1] > 85, python
assert abs(python[1] - python[4]) < 0.5, python
