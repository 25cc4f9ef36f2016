"""What two-phase Python tasks cost that are forks of a process which has imported numpy."""
import pathlib
import statistics

import harness
import rows

GROUP = "tasks"
CLIENT = pathlib.Path(__file__).resolve().parent.parent / "python" / "trainyard" / "client.py"
JOB = """
name: many
groups:
  - name: g
    two-phase: {two_phase}
    {preload}
    memory: 1MB
    cpus: 1
    matrix: {{n: 1..{count}}}
    tasks: [{{command: [/usr/bin/python3, task.py, "{{n}}"]}}]
"""
TWO_PHASE = """
import numpy
import trainyard
for attempt in trainyard.attempts():
    with attempt as device:
        numpy.ones(3).sum()
"""
# The same without a yard: with the two imports that a client cannot do without.
PLAIN = """
import numpy
import json, socket
numpy.ones(3).sum()
"""


def job(shop, script, count, two_phase, preload):
    place = shop.fresh("job")
    (place / "trainyard.py").write_bytes(CLIENT.read_bytes())
    (place / "task.py").write_text(script)
    (place / "job.yaml").write_text(JOB.format(
        count=count, two_phase=str(two_phase).lower(), preload="preload: [numpy]" if preload else ""))
    return place


def in_yard(shop, script, count, two_phase=True, preload=True):
    place = job(shop, script, count, two_phase, preload)
    return lambda: shop.measure([shop.trainyard, "run", place / "job.yaml", "--run-dir", shop.fresh("run") / "run",
                                 "--set", "utilization-limit.cpu=100%"], "many")


def one_by_one(shop, count):
    place = job(shop, TWO_PHASE, count, False, False)
    loop = f"i=0; while [ $i -lt {count} ]; do /usr/bin/python3 {place}/task.py $i; i=$((i + 1)); done"
    return lambda: shop.measure(["/bin/sh", "-c", loop], "one-by-one")


def run(shop):
    count, few = shop.size(1000, tiny=8), shop.size(50, tiny=2)
    costs = harness.interleaved(shop.rounds(5), {
        "preload": in_yard(shop, TWO_PHASE, count),
        "plain, preload": in_yard(shop, PLAIN, count, two_phase=False),
        "yard alone": in_yard(shop, TWO_PHASE, few, preload=False),
        "one by one": one_by_one(shop, few),
    })
    wall = lambda name, tasks: 1e3 * harness.median_wall(costs[name]) / tasks
    ours = wall("preload", count)
    cpu = 1e3 * statistics.median(one.cpu - other.cpu for one, other in
                                  zip(costs["preload"], costs["plain, preload"])) / count
    yield rows.at_least(GROUP, "a two-phase Python task with preload", ours, "ms", "started one by one",
                        wall("one by one", few), 10)
    yield rows.told(GROUP, "the same", ours, "ms", "two at a time without preload", wall("yard alone", few))
    yield rows.within(GROUP, "its CPU beyond a script with json and socket", cpu, "ms", 1)
