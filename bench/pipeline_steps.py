"""What a step costs in a pipeline of sixteen: each kind, the renewal of the context included."""
import json
import pathlib
import statistics

import harness
import pipeline_core
import rows
from pipeline_core import GROUP

IN_PYTHON = pathlib.Path(__file__).parent / "pipeline_loop.py"


def python_costs(shop):
    found = []
    for _ in range(shop.rounds(5)):
        process = shop.start(["/usr/bin/python3", IN_PYTHON, shop.size(5_000, tiny=5)], "python")
        if process.wait(60) != 0:
            raise harness.BenchmarkError(f"pipeline_loop.py: {harness.complaint(process)}")
        found.append(json.loads((process.place / "out").read_text()))
    return {name: statistics.median(one[name] for one in found) for name in found[0]}


def run(shop):
    costs = pipeline_core.medians(shop, "steps")
    python = python_costs(shop)
    hand = "std::function there and back by hand"
    for figure, name in (("a plain step", "plain"), ("a step that returns its backward half", "returning"),
                         ("a step that is an object", "object")):
        yield rows.within(GROUP, figure, costs[name], "ns", 5)
        yield rows.at_most(GROUP, figure, costs[name], "ns", hand, costs["by_hand"], 1.5)
    yield rows.within(GROUP, "a step that is a coroutine", costs["coroutine"], "ns", 10)
    yield rows.told(GROUP, "a step that is a coroutine", costs["coroutine"], "ns", hand, costs["by_hand"])
    for figure, name in (("a plain step beside one with a lock", "beside_lock"),
                         ("a plain step beside one that calls a nested one", "beside_nested")):
        yield rows.within(GROUP, figure, costs[name], "ns", 5)
        yield rows.told(GROUP, figure, costs[name], "ns", "a plain step beside plain ones", costs["plain"])
    for figure, name in (("a loop of one step with a lock", "lock"), ("a loop of one step that calls a nested one", "nested")):
        yield rows.told(GROUP, figure, costs[name], "ns", "a plain step", costs["plain"])
    yield rows.told(GROUP, "a plain step", costs["plain"], "ns", "std::function by hand, one way",
                    costs["by_hand_plain"])
    for figure, name, peer in (("a plain step", "plain", "plain"),
                               ("a step that is a coroutine", "coroutine", "two_way")):
        yield rows.told(GROUP, figure, costs[name], "ns", "a bare loop in Python", python[peer])
