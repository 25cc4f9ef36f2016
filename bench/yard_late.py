"""Tasks that say truthfully what they need, and take it long after they have started: who goes by
what is in use now starts too many of them."""
import pathlib
import shutil

import harness
import rows
import yard

TASKS = 6
FIT = 4  # How many of them the budget holds.


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


def peak(report):
    """The most bytes that were held at once, by the intervals that the tasks reported."""
    changes = []
    for line in report.read_text().splitlines():
        taken, gone, held = map(int, line.split())
        changes += [(taken, held), (gone, -held)]
    if len(changes) != 2 * TASKS:
        raise harness.BenchmarkError(f"{len(changes) // 2} of {TASKS} tasks took their memory")
    most = held = 0
    for _, change in sorted(changes):
        held += change
        most = max(most, held)
    return most


def ours(shop, setup):
    report = shop.fresh("report") / "report"
    text = yard.job(setup.command(shop, report), TASKS, memory=f"{setup.declared}B")
    settings = {"remain-limit.memory": f"{available_memory() - setup.budget}B"}
    shop.measure(yard.run_command(shop, text, settings)[0], "trainyard")
    return peak(report)


def gnu_parallels(shop, setup):
    place = shop.fresh("parallel-state")
    (place / "numbers").write_text("".join(f"{number}\n" for number in range(TASKS)))
    words = " ".join(str(word) for word in setup.command(shop, place / "report"))
    command = ["parallel", "--will-cite", f"-j{TASKS}",
               "--memfree", available_memory() - setup.budget, words + " #"]
    shop.measure(command, "parallel", stdin=place / "numbers",
                 environment={"SHELL": "/bin/sh", "PARALLEL_HOME": str(place)})
    return peak(place / "report")


def run(shop):
    setup = Setup(shop)
    gigabytes = setup.taken / 1e9
    peaks, parallels = [], []
    for number in range(shop.rounds(5)):
        peaks.append(ours(shop, setup))
        if shutil.which("parallel"):
            parallels.append(gnu_parallels(shop, setup))
        harness.say(f"late allocation, round {number + 1}: {peaks[-1] / 1e9:.2f} GB"
                    + (f", GNU parallel {parallels[-1] / 1e9:.2f} GB" if parallels else ""))
    figure = f"{TASKS} x {gigabytes:.3g} GB taken {setup.before:g} s late: peak"
    # The worst round counts: a budget that holds in the median does not hold.
    yield rows.within(yard.GROUP, figure, round(max(peaks) / 1e9, 3), "GB",
                      round(FIT * setup.taken / 1e9 * 1.01, 3))
    yield rows.told(yard.GROUP, figure, max(peaks) / 1e9, "GB", "GNU parallel --memfree",
                    max(parallels) / 1e9 if parallels else None)
