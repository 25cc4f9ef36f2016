"""What it costs to look at eight GPUs and a hundred processes of a GiB once a second: the whole yard while
its tasks do nothing. The driver is made up (tests/fake_nvml), all else is real."""
import json
import os
import pathlib
import statistics
import subprocess
import time

import harness
import rows

GROUP = "gpu"
# Each has a GiB of its own, as a fork of one that had it: they share it as long as nobody writes.
TASK = """
import mmap, os, signal
size = int(os.environ["SIZE"])
memory = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
for page in range(0, size, 4096):
    memory[page] = 1
for _ in range(int(os.environ["FORKS"])):
    if os.fork() == 0:
        signal.pause()
open(os.environ["TRAINYARD_TASK_DIR"] + "/ready", "w").close()
signal.pause()
"""

# What the least would be: the same two files of the same processes, once a second. A virtual machine pays
# many times as much for the first milliseconds after a sleep, some days more than others; so does this.
LOOP = """
import sys, time
files = [f"/proc/{pid}/{name}" for pid in sys.argv[1:] for name in ("stat", "statm")]
while True:
    for file in files:
        with open(file, "rb", buffering=0) as opened:
            opened.read(1024)
    time.sleep(1)
"""


def ticks(pid):
    """User and system time of a process, in seconds."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def until(holds, what, seconds_max=120):
    deadline = time.monotonic() + seconds_max
    while not holds():
        if time.monotonic() > deadline:
            raise harness.BenchmarkError(f"waited {seconds_max} s in vain for {what}")
        time.sleep(0.05)


def measure(shop, tasks, forks, size, seconds):
    place = shop.fresh("sampling")
    fake = shop.tools.parent / "tests/fake_nvml"
    if not (fake / "libnvidia-ml.so.1").exists():
        raise harness.BenchmarkError(f"no made-up driver in {fake}")
    shown = place / "gpus.json"
    devices = [{"uuid": f"GPU-{n}", "name": "Fake", "pci": f"{n:02}", "memory": 80 * 10**9} for n in range(8)]
    shown.write_text(json.dumps({"devices": devices}))
    (place / "task.py").write_text(TASK)
    (place / "job.yaml").write_text(f"""
name: job
groups:
  - {{name: g, memory: 1GB, cpus: 0, gpu-memory: 5GB, matrix: {{n: 1..{tasks}}},
     env: {{SIZE: {size}, FORKS: {forks}}},
     tasks: [{{command: [/usr/bin/python3, {place}/task.py]}}]}}
""")
    environment = {"LD_LIBRARY_PATH": str(fake), "TRAINYARD_FAKE_NVML": str(shown)}
    yard = shop.start([shop.trainyard, "run", place / "job.yaml", "--set", "remain-limit.memory=0",
                       "--set", "utilization-limit.cpu=100%"], "sampling", environment)
    until(lambda: len(list(place.glob("runs/job/g/*/ready"))) == tasks, "all tasks")
    # Now the driver shows what each of them has.
    pids = [pid for pid in harness.descendants(yard.pid)
            if str(place / "task.py").encode() in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()]
    if len(pids) != tasks * (forks + 1):
        raise harness.BenchmarkError(f"{len(pids)} processes where {tasks * (forks + 1)} should be")
    for n, pid in enumerate(pids):
        devices[n % 8].setdefault("processes", []).append({"pid": pid, "memory": 2**30 // 4})
    (place / "new").write_text(json.dumps({"devices": devices}))
    (place / "new").replace(shown)
    watch = [pid for pid in harness.descendants(yard.pid)
             if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == "trainyard-gpus"]
    loop = subprocess.Popen(["/usr/bin/python3", "-c", LOOP, *map(str, pids)])
    time.sleep(1)
    before, loop_before = sum(map(ticks, [yard.pid, *watch])), ticks(loop.pid)
    time.sleep(seconds)
    share = (sum(map(ticks, [yard.pid, *watch])) - before) / seconds
    loop_share = (ticks(loop.pid) - loop_before) / seconds
    loop.kill()
    loop.wait()
    shop.kill(yard)
    return share, loop_share


def run(shop):
    tasks, forks = shop.size((4, 24), tiny=(2, 1))
    seconds = shop.size(10, tiny=1)
    shares, loops = [], []
    for _ in range(shop.rounds(5)):
        share, loop = measure(shop, tasks, forks, shop.size(2**30, tiny=2**20), seconds)
        shares.append(100 * share)
        loops.append(100 * loop)
        harness.say(f"{shares[-1]:.2f} % of a core, a loop in Python {loops[-1]:.2f} %")
    processes = tasks * (forks + 1)
    yield rows.within(GROUP, f"8 GPUs and {processes} processes of 1 GiB looked at", statistics.median(shares),
                      "% of a core", 2)
    yield rows.told(GROUP, "the same beside a loop that reads their files", statistics.median(shares),
                    "% of a core", "in Python", statistics.median(loops))
