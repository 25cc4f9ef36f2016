"""How soon a command is with the queue, and a run has gone on without its terminal: from the
command's start to its end, by which its number is printed. Beside task-spooler's submission, in
turns."""
import contextlib
import os
import shutil
import statistics
import time

import harness
import rows

GROUP = "daily"
LIGHT = ["--cpus", "0", "--memory", "1MB", "--", "/bin/true"]
JOB = "groups: [{name: g, cpus: 0, memory: 1MB, tasks: [{command: [/bin/true]}]}]\n"


class Queue:
    """A queue of its own, which has to be down in the end."""

    def __init__(self, shop):
        self.shop = shop
        self.environment = {"XDG_STATE_HOME": str(shop.fresh("state"))}

    def __enter__(self):
        self.took(["up"])
        return self

    def __exit__(self, *_):
        self.took(["down", "--now"])

    def took(self, words):
        return took(self.shop, [self.shop.trainyard, *words], self.environment)


def took(shop, command, environment):
    """In ms."""
    began = time.monotonic()
    process = shop.start(command, "command", environment)
    if process.wait(60) != 0:
        raise harness.BenchmarkError(f"{command}: {harness.complaint(process)}")
    return 1000 * (time.monotonic() - began)


@contextlib.contextmanager
def task_spooler(shop):
    """How long one submission takes, where it is installed."""
    program = shutil.which("tsp")
    if program is None:
        yield lambda: None
        return
    place = shop.fresh("tsp")
    environment = {"TS_SOCKET": str(place / "socket"), "TMPDIR": str(place)}
    took(shop, [program, "/bin/true"], environment)
    try:
        yield lambda: took(shop, [program, "/bin/true"], environment)
    finally:
        took(shop, [program, "-K"], environment)


def run(shop):
    job = shop.fresh("job") / "job.yaml"
    job.write_text(JOB)
    ours, theirs, away = [], [], []
    with Queue(shop) as queue, task_spooler(shop) as submit_to_peer:
        for turn in range(shop.rounds(15)):
            ours.append(queue.took(["submit", *LIGHT]))
            theirs.append(submit_to_peer())
            # What has been begun is not to be measured with the next one.
            time.sleep(shop.size(harness.PAUSE_SECONDS, tiny=0))
            away.append(queue.took(["run", "-d", job, "--run-dir", os.path.join(job.parent, f"run-{turn}")]))
            time.sleep(shop.size(harness.PAUSE_SECONDS, tiny=0))
    harness.say(f"submit: {[round(wall) for wall in ours]} ms; run -d: {[round(wall) for wall in away]} ms")
    peers = None if None in theirs else statistics.median(theirs)
    yield rows.within(GROUP, "submit of a command to the queue", statistics.median(ours), "ms", 100)
    yield rows.told(GROUP, "the same beside task-spooler", statistics.median(ours), "ms", "task-spooler", peers)
    yield rows.within(GROUP, "run -d", statistics.median(away), "ms", 100)
