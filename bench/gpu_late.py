"""Two GPUs of 8 GiB, eight tasks that need 3 GiB each and take it 20 s after they began: simulated.

fedflow, run for real on the same, finished 6 of 8 with 16 starts and 10 times out of memory."""
import gpu_makespan
import harness
import rows

GROUP = "gpu"
GIB = 1.073741824
TASKS = 8


def play(shop, asked, learns):
    tasks = [(0, 30, 1, asked, 3 * GIB, 20)] * TASKS
    said = gpu_makespan.play(shop, f"64 2 {8 * GIB:.6f} 0 0 {int(learns)}", tasks)
    harness.say(f"asked {asked:.2f} GB: {said}")
    return said


def run(shop):
    truthful = play(shop, 3 * GIB, False)
    yield rows.within(GROUP, "late memory: tasks lost", TASKS - truthful["finished"], "tasks", 0)
    yield rows.within(GROUP, "late memory: starts for 8 tasks", truthful["starts"], "starts", 8)
    yield rows.within(GROUP, "late memory: out of memory", truthful["out_of_memory"], "times", 0)
    low = play(shop, 0.7 * 3 * GIB, True)
    yield rows.within(GROUP, "30 % too low: tasks lost", TASKS - low["finished"], "tasks", 0)
    yield rows.within(GROUP, "30 % too low: out of memory", low["out_of_memory"], "times", 3)
    learned = play(shop, 0, True)
    yield rows.within(GROUP, "no estimate: tasks lost", TASKS - learned["finished"], "tasks", 0)
    yield rows.told(GROUP, "no estimate: out of memory", learned["out_of_memory"], "times")
    yield rows.told(GROUP, "no estimate: makespan", learned["makespan_s"], "s", "truthful",
                    truthful["makespan_s"])
