"""What tasks cost that agents start, beside tasks of the machine itself and in a real Slurm; and what an agent costs that has nothing to do."""
import os
import pathlib
import shlex
import signal
import sqlite3
import statistics
import sys
import time

import harness
import rows
import yard

GROUP = "machines"
SLURM = [sys.executable, "-B", str(pathlib.Path(__file__).resolve().parent.parent / "tests/slurm.py")]
# In the place of ssh: what costs is ours, and not how it is encrypted.
STAND_IN = "#!/bin/sh\nfor last; do :; done\nexec /bin/sh -c \"$last\"\n"


def makespan(run_dir, count):
    """From the first start to the last end, in seconds: without what it takes to reach the machines."""
    journal = sqlite3.connect(f"file:{run_dir}/journal.db?mode=ro", uri=True)
    try:
        began, ended, finished = journal.execute("SELECT min(started_ms), max(ended_ms), count(*) FROM ended WHERE verdict = 1").fetchone()
    finally:
        journal.close()
    if finished != count:
        raise harness.BenchmarkError(f"{finished} of {count} tasks have finished")
    return (ended - began) / 1000


def measured(shop, count, settings, prefix=()):
    line, run_dir = yard.run_command(shop, yard.job(["/bin/true"], count), settings)
    shop.measure([*prefix, *line], "trainyard")
    return makespan(run_dir, count)


def agents_of(shop):
    """The agents that have begun under this workshop's program: by the name that `ps` shows."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "comm").read_text() == "trainyard-agent\n":
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def idle_share(shop, settings):
    """How much of a CPU an agent takes whose one task sleeps."""
    seconds = shop.size(10, tiny=1)
    line, run_dir = yard.run_command(shop, yard.job(["/bin/sleep", "3600"], 1), settings)
    before = set(agents_of(shop))
    process = shop.start(line, "live")
    harness.wait_until(lambda: set(agents_of(shop)) - before and (run_dir / "all/i=0/stdout.log").exists(), "for an agent to begin")
    agent, = set(agents_of(shop)) - before
    time.sleep(shop.size(2, tiny=0.1))
    began = cpu_seconds(agent)
    time.sleep(seconds)
    share = (cpu_seconds(agent) - began) / seconds
    process.send_signal(signal.SIGINT)
    process.wait()
    return 100 * share


def run(shop):
    count = shop.size(500, tiny=10)
    place = shop.fresh("ssh")
    stand_in = place / "ssh"
    stand_in.write_text(STAND_IN)
    stand_in.chmod(0o755)
    ways = {"agent.ssh": str(stand_in), "agent.program": shlex.quote(str(shop.trainyard)), "scheduler.max-process": 4}
    here, there, slurm = [], [], []
    for _ in range(shop.rounds(5)):
        here.append(measured(shop, count, {"scheduler.max-process": 4}))
        there.append(measured(shop, count, {"machines": "lab1,lab2", **ways}))
        slurm.append(measured(shop, count, {"machines": "slurm", **ways}, [*SLURM, "salloc", "-Q", "-N2", "--ntasks-per-node=2"]))
    yield rows.at_most(GROUP, f"{count} tasks that do nothing, through two agents", statistics.median(there), "s", "without agents",
                       statistics.median(here), 1.5)
    yield rows.within(GROUP, f"{count} tasks that do nothing, on two nodes of Slurm", statistics.median(slurm), "s", 0.5)
    idle = [idle_share(shop, {"machines": "lab1", **ways}) for _ in range(shop.rounds(5))]
    yield rows.within(GROUP, "CPU of an agent whose task sleeps", statistics.median(idle), "%", 0.5)
