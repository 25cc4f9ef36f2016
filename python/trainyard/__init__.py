"""The Python side of trainyard: the client of a task (client.py), a yard for a program's own tasks (yard.py),
what ranks are given, and a worker of a parallel run (worker.py).

A task imports this, so it is made to be imported quickly: what a task does not need is imported when
it is first asked for.
"""
from . import client
from .client import Refused, Task, attempts, is_out_of_memory, main, on_fork, progress, result, send

# Where names lie that a task does not need.
_LATER = {"Bundle": "worker", "Context": "ranks.context", "EventOutcome": "ranks.context", "Shareable": "ranks.shareable",
          "TaskGroup": "task_group", "Worker": "worker", "WorkerError": "worker", "Yard": "yard", "YardError": "yard"}

_begin_fork = client._begin_fork  # The process that imports for tasks asks for it here.

__all__ = ["attempts", "is_out_of_memory", "main", "on_fork", "progress", "result", "send", "Bundle", "Context",
           "EventOutcome", "Refused", "Shareable", "Task", "TaskGroup", "Worker", "WorkerError", "Yard", "YardError"]


def __getattr__(name):
    if name not in _LATER:
        raise AttributeError("module 'trainyard' has no attribute %r" % name)
    import importlib
    return getattr(importlib.import_module("." + _LATER[name], __name__), name)
