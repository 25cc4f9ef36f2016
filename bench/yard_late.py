"""Tasks that say truthfully what they need, and take it long after they have started: who goes by
what is in use now starts too many of them."""
import pathlib
import shutil
import threading
import time

import harness
import rows
import yard

TASKS = 6
FIT = 4  # How many of them the budget holds.
LOOK_SECONDS = 0.1
TAKING_NS = 2 * 10**9  # While a task takes or gives back, nobody can say what it holds.


class Setup:
    """Sizes and times: 1 GB after 20 s, and in the tiny one a little of it soon. The declared size
    stays large there, so that a busy machine does not hold the tasks back."""

    def __init__(self, shop):
        self.declared = min(10**9, available_memory() // 8)
        self.taken = shop.size(self.declared, tiny=8 * 2**20)
        self.before, self.held = shop.size((20, 5), tiny=(0.5, 0.3))
        self.budget = FIT * self.declared

    def command(self, shop, report):
        return [shop.tool("take_memory"), self.taken, self.before, self.held, report]


def available_memory():
    for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return 1024 * int(line.split()[1])
    raise harness.BenchmarkError("no MemAvailable in /proc/meminfo")


class Watch:
    """Notes the available memory while a contestant runs. What is to be kept free is fixed at the
    beginning; when other programs give memory back meanwhile, the budget has grown by that."""

    def __init__(self, setup):
        self.setup = setup
        self.remain = available_memory() - setup.budget
        self._seen = []
        self._over = threading.Event()

    def __enter__(self):
        self._thread = threading.Thread(target=self._look)
        self._thread.start()
        return self

    def _look(self):
        while not self._over.wait(LOOK_SECONDS):
            self._seen.append((time.monotonic_ns(), available_memory()))

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()

    def judge(self, report):
        """The most bytes that the tasks held at once, and the budget they had."""
        changes = changes_in(report)
        budget = self.setup.budget
        for moment, available in self._seen:
            if all(abs(moment - when) > TAKING_NS for when, _ in changes):
                held = sum(change for when, change in changes if when <= moment)
                budget = max(budget, available + held - self.remain)
        return peak_of(changes), budget


def changes_in(report):
    """What the tasks reported, as (when, bytes more or less), in order."""
    changes = []
    for line in report.read_text().splitlines():
        taken, gone, held = map(int, line.split())
        changes += [(taken, held), (gone, -held)]
    if len(changes) != 2 * TASKS:
        raise harness.BenchmarkError(f"{len(changes) // 2} of {TASKS} tasks took their memory")
    return sorted(changes)


def peak_of(changes):
    most = held = 0
    for _, change in changes:
        held += change
        most = max(most, held)
    return most


def ours(shop, setup):
    report = shop.fresh("report") / "report"
    text = yard.job(setup.command(shop, report), TASKS, memory=f"{setup.declared}B")
    with Watch(setup) as watch:
        settings = {"remain-limit.memory": f"{watch.remain}B"}
        shop.measure(yard.run_command(shop, text, settings)[0], "trainyard")
    return watch.judge(report)


def gnu_parallels(shop, setup):
    place = shop.fresh("parallel-state")
    (place / "numbers").write_text("".join(f"{number}\n" for number in range(TASKS)))
    words = " ".join(str(word) for word in setup.command(shop, place / "report"))
    with Watch(setup) as watch:
        command = ["parallel", "--will-cite", f"-j{TASKS}", "--memfree", watch.remain, words + " #"]
        shop.measure(command, "parallel", stdin=place / "numbers",
                     environment={"SHELL": "/bin/sh", "PARALLEL_HOME": str(place)})
    return watch.judge(place / "report")


def worst(rounds):
    """The round that came closest to its budget, or went furthest over it: a budget that holds in
    the median does not hold."""
    peak, budget = max(rounds, key=lambda it: it[0] / it[1])
    return peak / 1e9, budget / 1e9


def run(shop):
    setup = Setup(shop)
    mine, parallels = [], []
    for number in range(shop.rounds(5)):
        mine.append(ours(shop, setup))
        if shutil.which("parallel"):
            parallels.append(gnu_parallels(shop, setup))
        for name, judged in (("trainyard", mine), ("GNU parallel", parallels)):
            if judged:
                harness.say(f"late allocation, round {number + 1}: {name}: peak "
                            f"{judged[-1][0] / 1e9:.2f} GB of {judged[-1][1] / 1e9:.2f} GB")
    figure = f"{TASKS} x {setup.taken / 1e9:.3g} GB taken {setup.before:g} s late: peak"
    peak, budget = worst(mine)
    yield rows.at_most(yard.GROUP, figure, peak, "GB", "the budget", budget, 1)
    yield rows.told(yard.GROUP, figure, peak, "GB", "GNU parallel --memfree",
                    worst(parallels)[0] if parallels else None)
