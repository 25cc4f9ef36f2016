"""How soon the tables of a run with many tasks are there: `status` and `results`."""
import json
import statistics
import time

import harness
import rows

GROUP = "daily"
JOB = """
name: sweep
groups:
- name: train
  cpus: 0
  memory: 10MB
  matrix: {{lr: {rates}, seed: {seeds}}}
  tasks: [{{command: ['{program}', '{{lr}}', '{{seed}}']}}]
"""
# Writes what a training run leaves as its result.
PROGRAM = """#!/bin/sh
printf '{"acc": 0.%s, "loss": 1.%s}' "$2" "$1" > "$TRAINYARD_RESULT"
"""


def took(shop, words):
    began = time.monotonic()
    process = shop.start([shop.trainyard, *words], words[0])
    if process.wait(60) != 0:
        raise harness.BenchmarkError(f"{words}: {harness.complaint(process)}")
    return 1000 * (time.monotonic() - began)


def run(shop):
    rates, seeds = shop.size((100, 100), tiny=(3, 2))
    place = shop.fresh("sweep")
    program = place / "train.sh"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    (place / "sweep.yaml").write_text(JOB.format(
        rates=json.dumps(list(range(rates))), seeds=json.dumps(list(range(seeds))), program=program))
    run_dir = place / "run"
    harness.say(f"a run of {rates * seeds:,} tasks first")
    shop.measure([shop.trainyard, "run", place / "sweep.yaml", "--run-dir", run_dir], "sweep")
    figures = {"status": ["status", run_dir], "results": ["results", run_dir],
               "results --over seed": ["results", "--over", "seed", run_dir]}
    for name, words in figures.items():
        walls = [took(shop, words) for _ in range(shop.rounds(11))]
        yield rows.within(GROUP, f"{name} of {rates * seeds:,} tasks", statistics.median(walls), "ms", 50)
