"""Tasks that may run in any order, and the job file that a yard gives to the program for them."""
import datetime
import hashlib
import json
import math
import os
import re
import sys

from . import fingerprint, hand_over
from .client import Task, _warn_once

_PACKAGE = os.path.dirname(os.path.abspath(__file__))
_FILE_NAME_MAX = 200
_BEFORE_FINGERPRINT = ".pickle."
# What the yard says itself.
_OF_THE_YARD = {"name", "tasks", "matrix", "command", "two_phase", "needs"}


class TaskGroup:
    """Tasks that may run in any order, and what those ask for that do not say it themselves: the keys
    of a group in a job file, with `_` for `-`, as in TaskGroup("folds", memory="2GB", max_parallel=4).

    Without a name it gets one from the yard: group-1, group-2 and so on. `fingerprint` is that of its
    tasks that have none."""

    def __init__(self, name=None, tasks=(), **defaults):
        _check(defaults, "a group")
        self.name, self.defaults, self.tasks = None if name is None else str(name), defaults, []
        for task in tasks:
            self.add(task)

    def add(self, task):
        """Adds a task, and returns it."""
        if not isinstance(task, Task):
            raise TypeError("%r is no trainyard.Task" % (task,))
        _check(task._options, "a task")
        self.tasks.append(task)
        return task

    def __iter__(self):
        return iter(self.tasks)

    def __len__(self):
        return len(self.tasks)

    def ids(self):
        """Those of its tasks, in order. A task without one has its place in the group: task-1, task-2."""
        given = [task._options.get("id") for task in self.tasks]
        return ["task-%d" % number if each is None else str(each) for number, each in enumerate(given, 1)]

    def fingerprints(self):
        """Those of its tasks, in order; None for a task with a field that cannot be walked, which is reported
        once."""
        return [self._fingerprint(task) for task in self.tasks]

    def _fingerprint(self, task):
        try:
            return fingerprint.of_task(task, self.defaults)
        except fingerprint.Unknown as why:
            _warn_once("a task of class %s is known again by its id alone: %s; give it fingerprint='...', which "
                       "changes with its parameters" % (type(task).__name__, why))
            return None

    def hand_over(self, directory, job_name="job.json", without=(), finished=(), run_dir=None):
        """Writes its tasks there, but for those with certain ids, each as a file that its process reads,
        and the job file that runs them. `finished`: the commands of those that stay as they are, by id;
        `run_dir`: the directory of a run that begins with this job. Returns the path of the job file."""
        place = os.path.join(directory, _file_name(self.name))
        os.makedirs(place, exist_ok=True)
        rows = []
        for task_id, task in zip(self.ids(), self.tasks):
            if task_id in without:
                continue
            row = _keys(task._options)
            if task_id in finished:
                command = finished[task_id]
            else:
                known_by = self._fingerprint(task)
                ending = _BEFORE_FINGERPRINT + known_by if known_by else ".pickle"
                path = os.path.join(place, _file_name(task_id) + ending)
                hand_over.write(path, task, task_id)
                words = [sys.executable, os.path.join(_PACKAGE, "task_process.py"), path]
                command = [verbatim(word) for word in words]
            row.update(id=verbatim(task_id), command=command)
            rows.append(row)
        group = {"two-phase": True, "working-directory": verbatim(os.getcwd())}
        group.update(_keys(self.defaults), name=self.name, tasks=rows)
        group["env"] = dict({"PYTHONPATH": verbatim(_search_path())}, **group.get("env", {}))
        name = os.path.basename(os.path.dirname(directory))
        # A job cannot have a name by which commands mean another run.
        if name.isdecimal() or name == "last":
            name = "yard-" + name
        job = os.path.join(place, job_name)
        keys = {"name": name, "groups": [group]}
        if run_dir is not None:
            keys["run-dir"] = run_dir
        with open(job + ".new", "w", encoding="utf-8") as file:
            json.dump(keys, file, ensure_ascii=False, indent=1)
        os.replace(job + ".new", job)
        return job


def _check(options, of_what):
    for name in options:
        if name in _OF_THE_YARD:
            raise TypeError("%r is for the yard to say, not for %s" % (name, of_what))


def commands_of(job_text):
    """The command of each task in a job file that hand_over() has written, by the id as it is there."""
    return {row["id"]: row["command"] for group in json.loads(job_text)["groups"] for row in group["tasks"]}


def fingerprint_of(command):
    """The fingerprint of the task that a command was written for; None if it had none."""
    _, found, known_by = command[-1].rpartition(_BEFORE_FINGERPRINT)
    return known_by if found and "." not in known_by else None


def _keys(options):
    """As a job file has them. What is wrong with them the program says."""
    return {name.replace("_", "-"): _value(value) for name, value in options.items()
            if value is not None and name != "fingerprint"}


def _value(value):
    if isinstance(value, datetime.timedelta):
        return "%dms" % math.ceil(value / datetime.timedelta(milliseconds=1))
    if isinstance(value, (list, tuple)):
        return [_value(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _value(item) for key, item in value.items()}
    return value if isinstance(value, (str, int, float, bool)) else str(value)


def verbatim(text):
    """What has no placeholders. `${` is none, and `{{name}}` comes out as `{name}`."""
    return re.sub(r"(?<!\$)\{([A-Za-z_][A-Za-z0-9_-]*\}\})?",
                  lambda found: "{" + found[0] + ("}" if found[1] else ""), text)


def _file_name(name):
    """One for any name, also for one that the program will refuse."""
    name = name.replace("%", "%25").replace("/", "%2F").replace("\0", "%00")
    if len(os.fsencode(name)) > _FILE_NAME_MAX:
        return "%" + hashlib.sha256(os.fsencode(name)).hexdigest()
    return "%" + name if name in ("", ".", "..", "lock", "yard.log") else name


def _search_path():
    """Where a process finds this package and what lies beside the program's script: a `preload` begins
    before the program's own path is there."""
    script = getattr(sys.modules["__main__"], "__file__", None)
    places = [os.path.dirname(_PACKAGE)] + ([os.path.dirname(os.path.abspath(script))] if script else [])
    return os.pathsep.join(places + [place for place in [os.environ.get("PYTHONPATH")] if place])
