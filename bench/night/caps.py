"""One task that takes three times what is reserved for it beside seven that keep to theirs, on one made-up card, with
a torch that can be told how much it may take: how many of the seven die of it. The same without caps beside it."""
import contextlib
import pathlib
import random
import shutil
import sqlite3
import sys

import harness
import rows
from night import cards

GROUP = "night"
HERE = pathlib.Path(__file__).resolve().parent
PROMISE_GB = 2.6
TAKES_GB = 2.2  # And its context, 0.3 GB. Eight promises fill the card.
SEVEN = 7


def install(directory):
    """A virtual environment with the made-up torch, of the first release that takes a cap."""
    packages = directory / "venv/lib" / f"python3.{sys.version_info[1]}" / "site-packages/torch"
    packages.mkdir(parents=True)
    (directory / "venv/bin").mkdir()
    (directory / "venv/bin/python").symlink_to(cards.PYTHON)
    (directory / "venv/pyvenv.cfg").write_text("home = /usr/bin\n")
    shutil.copy(HERE / "caps_torch.py", packages / "__init__.py")
    (packages / "version.py").write_text("__version__ = '2.10.0'\n")


def job(directory, limit, seed):
    """Who is the greedy one, and when each begins to take its memory, is the seed's to say. It has all
    of it before anybody has looked twice."""
    dice = random.Random(seed)
    names = [f"t{number}" for number in range(SEVEN)] + ["greedy"]
    dice.shuffle(names)
    lines = []
    for name in names:
        numbers = [3 * PROMISE_GB - 0.3, 0, 0.1, 3] if name == "greedy" else [TAKES_GB, 0, 0.5, 4]
        numbers[1] = dice.uniform(0, 1)
        words = [directory / "venv/bin/python", HERE / "caps_task.py", *(f"{number:.2f}" for number in numbers)]
        command = ", ".join(f'"{word}"' for word in words)
        lines.append(f"      - {{id: {name}, command: [{command}]}}")
    return f"""name: caps
config: {{scheduler.settle-time: 0, utilization-limit.cpu: 100%, remain-limit.memory: 0B}}
groups:
  - name: g
    cpus: 0
    memory: 20MB
    gpu-memory: {PROMISE_GB}GB
    gpu-memory-limit: {limit}
    tasks:
""" + "\n".join(lines) + "\n"


def played(shop, limit, seed):
    """How many of the seven lost a try, and whether all eight came back."""
    directory = shop.fresh(f"caps-{limit}").resolve()
    install(directory)
    (directory / "job.yaml").write_text(job(directory, limit, seed))
    card = cards.Cards(shop, directory, 1, 24)
    yard = shop.start([shop.trainyard, "run", directory / "job.yaml", "--run-dir", directory / "run"], "caps",
                      card.environment)
    code = yard.wait(300)
    with contextlib.closing(sqlite3.connect(f"file:{directory}/run/journal.db?mode=ro", uri=True)) as journal:
        tries = {name: (state, tries) for name, state, tries in
                 journal.execute("SELECT id, state, attempt FROM task_list")}
    if tries["greedy"] == ("FINISHED", 1) and limit == "soft":
        raise harness.BenchmarkError("the greedy one was not kept to its part: nothing was measured")
    died = sum(tries[f"t{number}"] != ("FINISHED", 1) for number in range(SEVEN))
    harness.say(f"seed {seed}, gpu-memory-limit: {limit}: {died} of {SEVEN} lost a try; "
                f"the greedy one {tries['greedy']}, exit code {code}")
    return died, all(state == "FINISHED" for state, _ in tries.values())


def run(shop):
    rounds = shop.rounds(7)
    found = {limit: [played(shop, limit, seed) for seed in range(1, rounds + 1)] for limit in ("soft", "none")}
    died = {limit: sum(each for each, _ in of) for limit, of in found.items()}
    of = rounds * SEVEN
    yield rows.within(GROUP, f"beside one that takes three times its promise: died of {of}", died["soft"], "tasks", 0)
    yield rows.told(GROUP, f"the same without caps: lost a try of {of}", died["none"], "tasks")
    unwell = sum(not well for of_limit in found.values() for _, well in of_limit)
    yield rows.within(GROUP, "of these runs not all eight came back", unwell, "runs", 0)
