"""How long the workloads of the specification take, simulated, against what no order can beat; and what
fedflow's published policy makes of the same tasks."""
import json
import random
import statistics

import harness
import rows

GROUP = "gpu"
# Tasks, memory of the host, GPUs, memory of each; goals with durations known, and unknown at first.
WORKLOADS = {"small": (40, 64, 1, 24, 1.15, 1.25), "lab": (200, 64, 4, 24, 1.15, 1.35),
             "node": (1000, 256, 8, 80, 1.02, 1.25)}


def workload(count, seed):
    """Load and train in seconds, memory of the host and of the GPU in GB."""
    dice = random.Random(seed)
    return [(dice.uniform(5, 60), min(3600, dice.lognormvariate(5.5, 0.8)), dice.uniform(1, 6),
             dice.choice([2, 4, 6, 8, 12, 16]) * dice.uniform(0.7, 1)) for _ in range(count)]


def play(shop, header, tasks):
    """Runs the simulation once; `tasks` are (load, train, memory, asked, really, after)."""
    lines = [header] + [" ".join(f"{number:.6f}" for number in task) for task in tasks]
    path = shop.fresh("gpu") / "tasks"
    path.write_text("\n".join(lines) + "\n")
    process = shop.start([shop.tool("gpu_core"), path], "gpu")
    if process.wait(600) != 0:
        raise harness.BenchmarkError(f"gpu_core: {harness.complaint(process)}")
    return json.loads((process.place / "out").read_text())


def fedflow(tasks, memory, gpus, gpu_memory, interval=60):
    """fedflow 0.2.0 by its source: one round each `interval` starts at most one process (3 s), one load and
    one training, by what is free at that moment alone. Memory is in use from the first moment."""
    dice = random.Random(1)
    init, ready, loading, waiting, training = list(range(len(tasks))), [], {}, [], {}
    used, on_gpu, clock, last, done = 0.0, [0.0] * gpus, 0.0, 0.0, 0
    while done < len(tasks):
        for task, end in list(loading.items()):
            if end <= clock:
                del loading[task]
                waiting.append(task)
        for task, (end, gpu) in list(training.items()):
            if end <= clock:
                del training[task]
                used, on_gpu[gpu], done = used - tasks[task][2], on_gpu[gpu] - tasks[task][3], done + 1
        idle = len(ready) + len(loading) + len(waiting)
        if idle + len(training) < 20:
            if idle < 10 and init:
                ready.append(init.pop(dice.randrange(len(init))))
                clock += 3
            if idle < 10 and ready:
                task = dice.choice(ready)
                left = memory - used - tasks[task][2]
                if left >= 4 and left >= 0.2 * memory:
                    ready.remove(task)
                    loading[task], used = clock + tasks[task][0], used + tasks[task][2]
            if waiting:
                task = dice.choice(waiting)
                for gpu in range(gpus):
                    left = gpu_memory - on_gpu[gpu] - tasks[task][3]
                    if left >= 2 and left >= 0.2 * gpu_memory:
                        waiting.remove(task)
                        training[task] = (clock + tasks[task][1], gpu)
                        on_gpu[gpu] += tasks[task][3]
                        last = max(last, clock + tasks[task][1])
                        break
        clock += interval
    return last


def run(shop):
    for name, (count, memory, gpus, gpu_memory, known_goal, unknown_goal) in WORKLOADS.items():
        count = shop.size(count, tiny=10)
        ratios = {True: [], False: []}
        theirs = []
        for seed in range(shop.rounds(5)):
            tasks = workload(count, seed)
            for known in (True, False):
                said = play(shop, f"{memory} {gpus} {gpu_memory} 1 {int(known)} 0",
                            [(load, train, mem, gpu, gpu, 0) for load, train, mem, gpu in tasks])
                if said["finished"] != count or said["out_of_memory"]:
                    raise harness.BenchmarkError(f"not all tasks of '{name}' finished: {said}")
                ratios[known].append(said["makespan_s"] / said["bound_s"])
            theirs.append(fedflow(tasks, memory, gpus, gpu_memory) / said["bound_s"])
            harness.say(f"{name} {seed}: {ratios[True][-1]:.3f} known, {ratios[False][-1]:.3f} not, "
                        f"fedflow {theirs[-1]:.2f}")
        known, unknown, peer = (statistics.median(each) for each in (ratios[True], ratios[False], theirs))
        yield rows.within(GROUP, f"{name}: makespan, durations known", known, "x bound", known_goal)
        yield rows.within(GROUP, f"{name}: makespan, durations unknown", unknown, "x bound", unknown_goal)
        yield rows.at_least(GROUP, f"{name}: beside fedflow", unknown, "x bound", "fedflow's policy", peer, 1)
