"""Runs bench/pipeline_core.cc: what it prints, as medians over its rounds."""
import json
import statistics

import harness

GROUP = "pipeline"


def medians(shop, figure):
    """{name: nanoseconds}, of every figure that the program measures in turns."""
    scale = shop.size("1", tiny="0.001")
    process = shop.start([shop.tool("pipeline_core"), figure, scale], figure)
    if process.wait(600) != 0:
        raise harness.BenchmarkError(f"pipeline_core {figure}: {harness.complaint(process)}")
    rounds = [json.loads(line) for line in (process.place / "out").read_text().splitlines()]
    if len(rounds) < 5:
        raise harness.BenchmarkError(f"pipeline_core {figure}: {len(rounds)} rounds")
    costs = {name: statistics.median(one[name] for one in rounds) for name in rounds[0]}
    harness.say(", ".join(f"{name} {cost:.3g} ns" for name, cost in costs.items()))
    return costs
