"""How soon a run at work has taken another job file: from the command's start to its answer, by which
the disk has what was promised."""
import statistics
import time

import harness
import rows
import yard

SLOTS = 2
SLEEP = ["/bin/sleep", "3600"]


def submit(shop, live, count):
    """The time of one submission of so many tasks, in ms."""
    place = shop.fresh("more")
    (place / "more.yaml").write_text(yard.job(SLEEP, count))
    began = time.monotonic()
    process = shop.start([shop.trainyard, "submit", place / "more.yaml", "--run-dir", live.run_dir], "submit")
    if process.wait(60) != 0:
        raise harness.BenchmarkError(f"submit: {harness.complaint(process)}")
    return 1000 * (time.monotonic() - began)


def run(shop):
    for waiting in shop.size((0, 100_000), tiny=(0, 40)):
        with yard.Live(shop, SLEEP, SLOTS + waiting, SLOTS) as live:
            one = [submit(shop, live, 1) for _ in range(shop.rounds(15))]
            many = shop.size(10_000, tiny=20)
            large = [submit(shop, live, many) for _ in range(shop.rounds(5))]
        for count, walls, most in ((1, one, 100), (many, large, 1000)):
            harness.say(f"{waiting:,} waiting, submit of {count:,}: {[round(wall) for wall in walls]} ms")
            yield rows.within(yard.GROUP, f"submit of {count:,}, {waiting:,} waiting", statistics.median(walls),
                              "ms", most)
