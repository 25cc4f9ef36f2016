"""Runs groups of tasks from a program in Python: each task in a process of its own, as memory, CPUs and GPUs
allow, tried again with more when memory runs out.

    class Fold(trainyard.Task):
        def __init__(self, k, **options):
            super().__init__(id="fold-%d" % k, **options)
            self.k = k

        def train(self, device):
            return {"acc": ...}

    if __name__ == "__main__":
        with trainyard.Yard() as yard:
            folds = yard.run(trainyard.TaskGroup("folds", [Fold(k) for k in range(10)], memory="1GB"))
            print([fold.result["acc"] for fold in folds if fold.status == "FINISHED"])
"""
import atexit
import contextlib
import fcntl
import itertools
import json
import os
import signal
import subprocess
import threading
import time
import warnings
import weakref

from . import hand_over, journal
from .client import Task, _warn
from .task_group import TaskGroup, fingerprint_of

_BEGINS_WITHIN_S = 300
_SUBMITTED_WITHIN_S = 330  # The program itself waits for 300.
_KILLED_WITHIN_S = 60
_LOOKS_FIRST_S, _LOOKS_LAST_S = 0.005, 0.25
_TOLD_MAX = 16000
_SAID_OF_ONE_THAT_ENDS = (b"ended before it answered", b"is not running")
_OPEN = ("WAITING", "RUNNING", "RETRYING")
_NAMED_MAX = 5  # Of the tasks of a group.
_NOT_DONE = 75  # The exit code of a run that `--resume` would go on with.


class YardError(RuntimeError):
    """What was asked for could not be done: in the words of the program, where it said any."""


class Yard:
    """One run of the program, for all groups that run() is given: one directory, one journal, one
    `trainyard status`. It ends with close(), with the `with` block, and with the program that uses it,
    however that ends.

    `directory`: where a run is already, it goes on: groups and tasks are known again by their names and
    ids, and what has finished is not run again, unless its task has other parameters now. What was begun
    and has not finished goes on as it was given then, until its group is run; the first group is given
    anew. By default it is runs/<name>, or runs/<name>-2 and so on when that is there.
    `settings`: those of `trainyard config show`, as {"scheduler.max-process": 4}.
    `program`: where the program is, if not on PATH.

    A task is pickled. Where it is of the program's own script, its process imports that again under the
    name `__mp_main__`, as with multiprocessing's spawn: what must not run again stands under
    `if __name__ == "__main__":`. load() and train() work in the task's directory. Only the result comes
    back: a dict of what JSON can say, at most 1 MiB. What is larger goes into files in `task_dir`. What
    a task send()s is not heard here.

    run() may be called from several threads, each with its own group, and cancel() from any."""

    def __init__(self, directory=None, name="yard", settings=None, program="trainyard"):
        self.directory = os.path.abspath(directory) if directory is not None else None
        self._name, self._settings, self._program = name, settings or {}, program
        self._process = self._lock = None
        self._log_begins = 0
        self._closed = False
        self._groups = {}  # Those that were begun in this execution, by name.
        self._beginning = threading.Lock()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def run(self, work):
        """Runs a group, or a single task, until all of it has ended, whatever becomes of its tasks; fills
        in their `result`, `status`, `message`, `traceback` and `task_dir`; returns what it was given.
        A group may be run again when it has grown: then only what is new is begun, and what has other
        parameters now.

        YardError: it could not be run, and none of it was; or the run was ended meanwhile, by somebody
        or for want of a disk. Ctrl-C ends the run with all that is in it."""
        if hand_over.is_importing_main:
            raise RuntimeError('the process of a task imports this script again: what runs a yard stands '
                               'under if __name__ == "__main__":')
        if not isinstance(work, (Task, TaskGroup)):
            raise TypeError("%r is neither a trainyard.TaskGroup nor a trainyard.Task" % (work,))
        group = TaskGroup(tasks=[work]) if isinstance(work, Task) else work
        try:
            with self._beginning:
                if group is not work:
                    group.name = self._free_name("default", "default-%d")
                elif group.name is None:
                    group.name = self._free_name("group-1", "group-%d")
                if group.tasks:
                    self._begin(group)
            if group.tasks:
                self._wait_for(group)
        except (KeyboardInterrupt, SystemExit):
            self.close()
            raise
        return work

    def cancel(self, task):
        """Ends a task of a group that runs, or keeps it from being started; the others go on. For another
        thread than the one in run(). False: it had ended already."""
        if not isinstance(task, Task):
            raise TypeError("%r is no trainyard.Task" % (task,))
        group, task_id = task._known_as or (None, task.id)
        if group not in self._groups:
            raise YardError("task %r is in no group that was run" % task_id)
        done = self._ask("kill", self._rows(group)[task_id]["called"], "--run-dir", self.directory)
        if done.returncode == 0:
            return True
        if self._rows(group)[task_id]["status"] in _OPEN:
            raise YardError(_words(done.stderr))
        return False

    def close(self):
        """Ends the run. What still runs in it gets TERM, and KILL ten seconds later, which is waited for;
        Ctrl-C meanwhile kills all at once. Closed twice is closed once."""
        self._closed = True
        with self._beginning:
            pass  # A group that another thread was submitting is in the journal now, and no other one follows.
        try:
            if self._process is not None and self._process.poll() is None:
                if journal.has_open_groups(self.directory):
                    self._process.send_signal(signal.SIGINT)
                else:
                    self._process.stdin.close()
                # As long as its tasks ask for by `signal`: no bound of ours would be right.
                self._process.wait()
        except KeyboardInterrupt:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_KILLED_WITHIN_S)
            raise
        finally:
            self._leave()

    def _begin(self, group):
        """Has it run; it is accepted when this returns."""
        if self._closed:
            raise YardError("the yard is closed")
        if self._groups.get(group.name, group) is not group:
            raise ValueError("the yard has run a group %r already, and knows tasks by group and id"
                             % group.name)
        if self._process is None:
            self._start(group)
        elif self._process.poll() is not None:
            raise self._ended_early()
        else:
            self._submit(group)
        self._groups[group.name] = group
        for task_id, task in zip(group.ids(), group.tasks):
            task._known_as = group.name, task_id

    def _start(self, group):
        """Starts the program with its first group, or where a run is already so that it goes on."""
        place = self._take_directory()
        before = journal.executions_of(self.directory)
        words = ["run", "--until-stdin-closes"]
        if before:
            words += ["--resume", self.directory, *self._first_again(group, place)]
        else:
            # By its key: the option refuses a directory that has other files, as those handed over.
            words.append(group.hand_over(place, run_dir=self.directory))
        for name, value in _flat(self._settings):
            words += ["--set", "%s=%s" % (name, value)]
        self._launch(words, before)
        if before:
            self._submit(group)

    def _first_again(self, group, place):
        """The job file of the run, where it begins with this group: of that it is read anew, but what has
        finished stays as it was given. What was submitted goes on by itself, as it was submitted."""
        with journal.Journal(self.directory) as written:
            rows = written.given(group.name) if group.name == written.first_group() else []
        last = {row.id: row for row in rows}
        submitted = {row.id for row in last.values() if row.batch > 1}
        if not rows or submitted.issuperset(group.ids()):
            return []
        finished = {row.id: row.command for row in last.values() if row.state == "FINISHED"}
        return [group.hand_over(place, without=submitted, finished=finished)]

    def _launch(self, words, before):
        with open(self._log_path(), "ab") as log:
            self._log_begins = log.tell()
            try:
                # In a session of its own: Ctrl-C is for this program, which ends the run by close(). When
                # this program dies, the kernel closes the pipe, by which the run kills its tasks.
                process = subprocess.Popen([self._program] + words, stdin=subprocess.PIPE, stderr=log,
                                           stdout=subprocess.DEVNULL, start_new_session=True)
            except OSError as error:
                raise YardError("cannot start '%s': %s" % (self._program, error)) from error
        try:
            begun = self._look_until(process, lambda: journal.executions_of(self.directory) > before,
                                     _BEGINS_WITHIN_S)
        except BaseException:
            process.stdin.close()
            raise
        if not begun:
            process.stdin.close()
            process.wait()
            raise YardError(self._told() or "the program has ended at once")
        self._process = process
        _open_yards.add(self)

    def _submit(self, group):
        """Has the tasks run that the run does not have yet, or has with other parameters."""
        with journal.Journal(self.directory) as written:
            rows = written.given(group.name)
        last = {row.id: row for row in rows}
        changed = {task_id for task_id, now in zip(group.ids(), group.fingerprints() if rows else [])
                   if task_id in last and now and fingerprint_of(last[task_id].command) not in (None, now)}
        known = set(last) - changed
        if not known.issuperset(group.ids()):
            self._submit_all_but(known, group)
        if changed:
            _warn("group %r: %d of %d tasks have other parameters than before and run again: %s" %
                  (group.name, len(changed), len(group), _some_of(sorted(changed))))
        for row in rows:
            if row.state in _OPEN and (row.id in changed or row is not last[row.id]):
                self._ask("kill", row.called, "--run-dir", self.directory)

    def _submit_all_but(self, known, group):
        # The job file of the first group is read again when the run goes on: this is another.
        job = group.hand_over(os.path.join(self.directory, journal.UNDER), "more.json", known)
        done = self._ask("submit", job, "--run-dir", self.directory)
        if done.returncode != 0:
            if self._is_at_its_end(done.stderr):
                raise self._ended_early()
            raise YardError(_words(done.stderr))

    def _wait_for(self, group):
        with journal.Journal(self.directory) as written:
            if not self._look_until(self._process, lambda: written.has_ended(group.name)):
                raise self._ended_early()
            rows = written.tasks(group.name)
            unfinished = [row for row in rows.values() if row["status"] in ("LOST", "STOPPED")]
            told_to_end = bool(unfinished) and written.was_told_to_end()
        for task_id, task in zip(group.ids(), group.tasks):
            row = rows[task_id]
            task._directory = os.path.join(self.directory, row["directory"])
            for name in ("result", "status", "message", "traceback"):
                setattr(task, name, row[name])
            if row["warning"]:
                warnings.warn("task %r: %s" % (task_id, row["warning"]), RuntimeWarning, stacklevel=3)
        if told_to_end:
            self._raise_if_ended(group, unfinished)

    def _raise_if_ended(self, group, unfinished):
        """The run ends, which may be why these rows of the group have not finished."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_KILLED_WITHIN_S)
        if self._process.poll() == _NOT_DONE:
            raise self._ended_early(unfinished[0]["message"])
        if any(row["status"] == "STOPPED" for row in unfinished):
            raise YardError("the run was ended before group %r had ended" % group.name)

    @staticmethod
    def _look_until(process, holds, within=None):
        """False: the program has ended, and it does not hold, nor will it."""
        pause, deadline = _LOOKS_FIRST_S, None if within is None else time.monotonic() + within
        while not holds():
            if process.poll() is not None:
                return holds()  # What it has written last.
            if deadline is not None and time.monotonic() > deadline:
                raise YardError("the program has not begun within %d s" % within)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(pause)
            pause = min(pause * 1.5, _LOOKS_LAST_S)
        return True

    def _ask(self, *words):
        try:
            return subprocess.run([self._program, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, timeout=_SUBMITTED_WITHIN_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise YardError("'%s %s': %s" % (self._program, words[0], error)) from error

    def _rows(self, group):
        with journal.Journal(self.directory) as written:
            return written.tasks(group)

    def _take_directory(self):
        """Makes it, and keeps other programs out. Returns the place for what this one hands over."""
        if self.directory is None:
            self.directory = _make_free(os.path.abspath(os.path.join("runs", self._name)))
        place = os.path.join(self.directory, journal.UNDER)
        if not os.path.isdir(place) and journal.executions_of(self.directory):
            raise YardError("'%s' contains the run of a job file" % self.directory)
        os.makedirs(place, exist_ok=True)
        if self._lock is None:
            lock = open(os.path.join(place, "lock"), "w", encoding="utf-8")
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                lock.close()
                raise YardError("another program runs its tasks in '%s'" % self.directory) from error
            self._lock = lock
        return place

    def _free_name(self, first, pattern):
        names = itertools.chain([first], (pattern % number for number in itertools.count(2)))
        return next(name for name in names if name not in self._groups)

    def _log_path(self):
        return os.path.join(self.directory, journal.UNDER, "yard.log")

    def _told(self):
        """What the program has said in this execution, the last of it."""
        with open(self._log_path(), "rb") as log:
            log.seek(max(self._log_begins, os.fstat(log.fileno()).st_size - _TOLD_MAX))
            return _words(log.read())

    def _is_at_its_end(self, told):
        """Whether the program that did not answer has ended, or does now; what it says last is why."""
        if any(words in told for words in _SAID_OF_ONE_THAT_ENDS):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_KILLED_WITHIN_S)
        return self._process.poll() is not None

    def _ended_early(self, cause=None):
        code = self._process.wait()
        if code < 0:
            why = "its program was killed by signal %d" % -code
        else:
            why = _without_name((self._told().splitlines() or ["without a word"])[-1])
        if cause and cause not in why:
            why = "%s; %s" % (cause, why)
        if code == _NOT_DONE:
            why += "; a yard in %r again goes on with it" % self.directory
        return YardError("the run has ended: " + why)

    def _leave(self):
        _open_yards.discard(self)
        if self._process is not None:
            self._process.stdin.close()
        if self._lock is not None:
            self._lock.close()
            self._lock = None


_open_yards = weakref.WeakSet()


@atexit.register
def _close_all():
    for yard in list(_open_yards):
        yard.close()


def _leave_in_child():
    """A fork must not hold the run: it ends with the program that began it."""
    for yard in list(_open_yards):
        yard._leave()
        yard._process, yard._closed = None, True


os.register_at_fork(after_in_child=_leave_in_child)


def _make_free(first):
    for number in itertools.count(1):
        path = first if number == 1 else "%s-%d" % (first, number)
        try:
            os.makedirs(path)
            return path
        except FileExistsError:
            pass


def _flat(settings, before=""):
    """As (key, text): {"scheduler": {"max-process": 4}} is the same as {"scheduler.max-process": 4}."""
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from _flat(value, before + name + ".")
        else:
            yield before + name, value if isinstance(value, str) else json.dumps(value)


def _some_of(names):
    return ", ".join(names[:_NAMED_MAX]) + (", ..." if len(names) > _NAMED_MAX else "")


def _words(told):
    return _without_name(told.decode("utf-8", "replace").strip())


def _without_name(text):
    return text[len("trainyard: "):] if text.startswith("trainyard: ") else text
