"""A task of a night: takes memory of its card in steps as frameworks do, saves how far it is and goes on from there
when it is begun again. Runs out of memory in torch's words, and dies with its card as CUDA does.

task.py GIGABYTES SECONDS: what it takes in all, and how long it works.
"""
import json
import os
import pathlib
import sys
import time

import fake_gpu

# Which part of its memory it has from which second on: its context, its model and what goes with that, then
# what the first steps of the training need.
STEPS = [(0.0, 0.15), (0.1, 0.3), (0.25, 0.45), (0.4, 0.6), (0.6, 0.75), (0.9, 0.9), (1.2, 1.0)]
SAVES = 8  # So often in its life.
LOOK_SECONDS = 0.1


def lost():
    """Whether the card that it has does not answer."""
    shown = json.loads(pathlib.Path(os.environ["TRAINYARD_FAKE_NVML"]).read_text())
    mine = fake_gpu.visible()[0]
    return next(card for card in shown["devices"] if card["uuid"] == mine).get("lost", False)


def take(more, had):
    """So many bytes more than it had; or its end."""
    try:
        fake_gpu.take(more)
    except RuntimeError:
        sys.exit("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate %.2f GiB. GPU 0 has a total capacity of "
                 "22.35 GiB. Including non-PyTorch memory, this process has %.2f GiB memory in use." %
                 (more / 2**30, had / 2**30))


def main():
    memory, seconds = float(sys.argv[1]) * 1e9, float(sys.argv[2])
    place = pathlib.Path(os.environ["TRAINYARD_TASK_DIR"])
    saved, done = place / "saved", place / "done"
    if done.exists():
        (place / "again").touch()
    before = float(saved.read_text()) if saved.exists() else 0.0
    began, had, steps, next_save = time.monotonic(), 0, list(STEPS), before + seconds / SAVES
    while True:
        elapsed = time.monotonic() - began
        if lost():
            sys.exit("RuntimeError: CUDA error: unspecified launch failure")
        if steps and elapsed >= steps[0][0]:
            more = int(steps.pop(0)[1] * memory) - had
            take(more, had)
            had += more
        if before + elapsed >= next_save:
            (place / "saving").write_text(str(before + elapsed))
            (place / "saving").replace(saved)
            next_save += seconds / SAVES
        if not steps and before + elapsed >= seconds:
            break
        time.sleep(LOOK_SECONDS)
    pathlib.Path(os.environ["TRAINYARD_RESULT"]).write_text(json.dumps({"seconds": seconds}))
    # Its very last act: who is killed while an interpreter cleans up has not ended well yet.
    done.touch()
    os._exit(0)


if __name__ == "__main__":
    main()
