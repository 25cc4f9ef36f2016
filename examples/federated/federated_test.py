"""Three rounds on the images of the repository: both splits learn, the even one learns more, and Python scripts come to
what the C++ program comes to."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PROGRAM, EXECUTORS, TRAINYARD, EXAMPLE = sys.argv[1:]
DATA = str(pathlib.Path(EXAMPLE).parent / "mnist/data")


def run(command, directory, **environment):
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=300, check=False,
                          env={**os.environ, "PATH": "/usr/bin:/bin", "MNIST_DIR": DATA, **environment})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def in_cpp(split):
    """The accuracy after each of three rounds, in percent."""
    with tempfile.TemporaryDirectory() as directory:
        pathlib.Path(directory, "trainyard.yaml").write_text("utilization-limit:\n  cpu: 100%\n")
        told = run([PROGRAM, "--data", DATA, "--split", split, "--rounds", "3"], directory)
        assert "test_acc" in pathlib.Path(directory, "runs/federated/reports/index.html").read_text()
        return [float(found) for found in re.findall(r"test ([0-9.]+) %", told)]


def in_python(split):
    with tempfile.TemporaryDirectory() as directory:
        place = pathlib.Path(directory, "run")
        run([TRAINYARD, "run", f"{EXAMPLE}/federated.yaml", "--run-dir", place, "--set", "utilization-limit.cpu=100%"],
            directory, FEDERATED_SPLIT=split)
        assert "test_acc" in (place / "reports/index.html").read_text()
        return [100 * json.loads((place / f"server.{turn}/average/result.json").read_text())["test_acc"]
                for turn in range(3)]


uniform, by_label = in_cpp("uniform"), in_cpp("label")
print("uniform", uniform, "label", by_label)
for rounds in uniform, by_label:
    assert len(rounds) == 3 and rounds[0] < rounds[-1], rounds
assert uniform[-1] > 85, uniform
assert 60 < by_label[-1] <= uniform[-1] + 1, by_label
# Both splits deal the same shuffled images, and that by label has all else of the other.
python = in_python("label")
print("Python", python)
assert all(abs(one - other) < 1 for one, other in zip(by_label, python)), (by_label, python)

# An executor for each client learns as the tasks do.
told = run([EXECUTORS, "--data", DATA, "--clients", "4", "--rounds", "3"], "/")
rounds = [float(found) for found in re.findall(r"test ([0-9.]+) %", told)]
print("executors", rounds)
assert len(rounds) == 3 and rounds[0] < rounds[-1] and rounds[-1] > 80, rounds
