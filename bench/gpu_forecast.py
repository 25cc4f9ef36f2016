"""Whether `trainyard plan` says how long the MNIST sweep takes: one run teaches it, it forecasts, and the run
that follows is measured. Real processes on real images, the subset that is in the repository."""
import json
import os
import pathlib
import statistics
import time

import harness
import rows

GROUP = "gpu"
SETTINGS = ["--set", "utilization-limit.cpu=100%"]
SOURCES = pathlib.Path(__file__).resolve().parent.parent / "examples/mnist"


def sweep(shop):
    """The example's job file in a directory of its own."""
    text = (SOURCES / "sweep.yaml").read_text()
    text = text.replace("--epochs 12", shop.size("--epochs 12", tiny="--epochs 1"))
    place = shop.fresh("forecast")
    (place / "sweep.yaml").write_text(text)
    return place


def call(shop, *words):
    program = shop.tools.parent / "examples/mnist/mnist_train"
    if not program.exists():
        raise harness.BenchmarkError(f"no {program}: build it first")
    environment = {"MNIST_TRAIN": str(program),
                   "MNIST_DIR": os.environ.get("MNIST_DIR", str(SOURCES / "data")),
                   "MNIST_FRACTION": shop.size("1", tiny="0.02")}
    began = time.monotonic()
    process = shop.start([shop.trainyard, *words, *SETTINGS], "forecast", environment)
    if process.wait(1200) != 0:
        raise harness.BenchmarkError(f"trainyard {words[0]}: {harness.complaint(process)}")
    return time.monotonic() - began, (process.place / "out").read_text()


def run(shop):
    off = []
    for number in range(shop.rounds(5)):
        place = sweep(shop)
        job = place / "sweep.yaml"
        call(shop, "run", job, "--run-dir", place / "first")
        forecast = json.loads(call(shop, "plan", job, "--json")[1])["runs"][0]["makespan_ms"] / 1000
        measured, _ = call(shop, "run", job, "--run-dir", place / "second")
        off.append(100 * abs(forecast - measured) / measured)
        harness.say(f"round {number + 1}: forecast {forecast:.2f} s, measured {measured:.2f} s: {off[-1]:.1f} % off")
    yield rows.within(GROUP, "MNIST sweep: forecast off by", statistics.median(off), "%", shop.size(15, tiny=1e9))
