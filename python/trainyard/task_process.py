"""The process of a task that a program in Python has given to a yard: `python3 task_process.py <file>`."""
import os
import sys


def run(path):
    import trainyard  # First of all: it tells the yard that the task loads, and what it fails of.
    from trainyard import hand_over
    task = hand_over.read(path)
    os.chdir(os.environ["TRAINYARD_TASK_DIR"])
    task._directory = None  # That of an earlier group.
    trainyard.main(task)


if __name__ == "__main__":
    # Not the directory of this file, whose modules are none of their own.
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    run(sys.argv[1])
