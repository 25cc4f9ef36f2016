"""Three rounds on the images of the repository: both splits learn, and the even one learns more."""
import pathlib
import re
import subprocess
import sys
import tempfile

PROGRAM, DATA = sys.argv[1:]


def accuracy(split):
    """After three rounds, in percent."""
    with tempfile.TemporaryDirectory() as directory:
        pathlib.Path(directory, "trainyard.yaml").write_text("utilization-limit:\n  cpu: 100%\n")
        done = subprocess.run([PROGRAM, "--data", DATA, "--split", split, "--rounds", "3"], cwd=directory,
                              capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        rounds = [float(found) for found in re.findall(r"test ([0-9.]+) %", done.stdout)]
        assert len(rounds) == 3, done.stdout
        assert rounds[0] < rounds[-1], rounds
        return rounds[-1]


uniform, by_label = accuracy("uniform"), accuracy("label")
print(f"uniform {uniform} %, by label {by_label} %")
assert uniform > 85, uniform
assert 60 < by_label <= uniform + 1, by_label
