"""Three rounds on the images of the repository, as a C++ program and as Python scripts: both splits learn, the even
one learns more, and the two programs agree."""
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


def last_of(split):
    rounds, in_other = in_cpp(split), in_python(split)
    print(split, rounds, in_other)
    assert len(rounds) == 3 and rounds[0] < rounds[-1], rounds
    assert all(abs(one - other) < 1 for one, other in zip(rounds, in_other)), (rounds, in_other)
    return rounds[-1]


uniform, by_label = last_of("uniform"), last_of("label")
assert uniform > 85, uniform
assert 60 < by_label <= uniform + 1, by_label

# An executor for each client learns as the tasks do.
told = run([EXECUTORS, "--data", DATA, "--clients", "4", "--rounds", "3"], "/")
rounds = [float(found) for found in re.findall(r"test ([0-9.]+) %", told)]
print("executors", rounds)
assert len(rounds) == 3 and rounds[0] < rounds[-1] and rounds[-1] > 80, rounds
