"""The Python client of trainyard, for scripts that load, wait for a device and then train.

    import trainyard

    data = load()
    for attempt in trainyard.attempts():     # again after it ran out of memory
        with attempt as device:              # waits here until a device is granted
            trainyard.progress(0.4, loss=0.31)
            trainyard.result(acc=fit(data, device))

or, the same as a class:

    class Fold(trainyard.Task):
        def load(self): ...
        def train(self, device): return {"acc": ...}

    trainyard.main(Fold)

Python 3.8 and later, no dependency. This file is all that a task needs, and uses none beside it: it
may be copied alone, as trainyard.py. Run by trainyard (`two-phase: true` in the job file) the script
tells the yard how far it is in its life; in any other task progress() and result() work all the same;
run by hand it trains on what the machine has. The protocol is described in trainyard's docs/protocol.md.
"""
import atexit
import errno
import json
import os
import socket
import struct
import sys
import threading
import time
import traceback

__all__ = ["attempts", "is_out_of_memory", "main", "on_fork", "progress", "result", "send", "Refused", "Task"]

_PREFIX = struct.Struct("<4sBBHQQIIIIQ")
_HELLO, _WELCOME, _FAILURE, _REPORT, _ORDER = 1, 2, 5, 6, 7
_VERSION = 1
_FIELDS_MAX, _VALUES_MAX, _BUFFER_MAX = 1 << 20, 4000, 8 << 20
_PROGRESS_EVERY_S = 0.1
# In a task of one phase: how long saying how far it is may hold it up, and when that is tried again.
_HELP_WITHIN_S, _HELP_AGAIN_S = 5, 60

# By the name of their type, wherever they are defined: no framework has to be imported for it.
_MEMORY_TYPES = {"MemoryError", "OutOfMemoryError", "ResourceExhaustedError"}
# In small letters. The yard knows the same ones by what a plain command prints.
_MEMORY_TEXTS = (
    "cuda out of memory", "hip out of memory", "cuda error: out of memory", "cuda_error_out_of_memory",
    "hip error: out of memory", "cudnn_status_alloc_failed", "cublas_status_alloc_failed", "resource_exhausted",
    "resourceexhaustederror", "outofmemoryerror", "out of memory while trying to allocate", "arraymemoryerror",
    "ran out of memory trying to allocate", "out of memory allocating", "failed to allocate request for", "std::bad_alloc",
    "bytes for new constant", "cudamalloc failed: out of memory", "cuda failure 'out of memory'", "cannot allocate memory",
    "cuda failure 2 'out of memory'", "no space left on device: '/dev/shm", "unable to write to file </torch_", "bus error",
)


class Refused(RuntimeError):
    """The yard does not let this process speak for its task, or is gone."""


class _Yard:
    """The connection to the yard, of the process that made it and of none that was forked off. One that
    helps says how far the task is, and nothing of its life."""

    def __init__(self, path, token, helps=False):
        self._process = os.getpid()
        self._helps = helps
        self.said_last = False
        self._progress = None  # What was not told yet.
        self._progress_at = -_PROGRESS_EVERY_S
        self._sending = threading.Lock()  # A frame goes whole, whichever thread sends another.
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        if helps:
            self._socket.settimeout(_HELP_WITHIN_S)
        self._socket.connect(path)
        hello = {"role": "helper" if helps else "task", "version": _VERSION, "token": token,
                 "program": "python " + os.path.basename(sys.argv[0] or "-")}
        self.is_rank = bool(os.environ.get("TRAINYARD_RANK")) and not helps
        if self.is_rank:
            hello.update(role="rank", rank=_number(os.environ, "TRAINYARD_RANK"),
                         ranks=_number(os.environ, "WORLD_SIZE"))
        self._send(_HELLO, hello)
        welcome = self._receive(_WELCOME)
        if not welcome.get("ok"):
            self._socket.close()
            raise Refused(welcome.get("error", "the yard refused"))
        if not helps:
            self.say("loading")

    def is_here(self):
        """Whether it is of this process, and has not been lost."""
        return self._process == os.getpid() and not self.said_last

    def say(self, word, **more):
        """A word about this process's life. What is said after the last one is not sent."""
        if not self.is_here():
            return
        self.tell_progress()
        self.said_last = word in ("trained", "failed")
        self._report(dict(say=word, **more))

    def progress(self, fields):
        """How far it is. Told at most ten times a second; the last is told with the next word, or at the end."""
        if not self.is_here():
            return
        if self._progress is not None:
            values = dict(self._progress.get("values", {}), **fields.get("values", {}))
            if len(json.dumps(values)) > _VALUES_MAX:
                self.tell_progress()
            else:
                fields = dict(self._progress, **fields)
                fields.update({"values": values} if values else {})
        self._progress = fields
        if time.monotonic() - self._progress_at >= _PROGRESS_EVERY_S:
            self.tell_progress()

    def send(self, command, data, buffer):
        if self.is_here():
            self._report({"say": "message", "command": str(command), "data": data}, buffer)

    def tell_progress(self):
        """What was not told yet."""
        if self._progress is None or not self.is_here():
            return
        fields, self._progress = self._progress, None
        self._progress_at = time.monotonic()
        self._report(fields)

    def _report(self, fields, buffer=None):
        try:
            self._send(_REPORT, fields, buffer)
        except OSError:
            # The yard has gone, and ends us in a moment; or it is suspended, and what trains is not to wait for it.
            if self._helps:
                self.said_last = True
                self._socket.close()

    def wait_for_device(self):
        if os.getpid() != self._process:
            raise Refused("a forked process cannot train in the name of its task")
        if self.said_last:
            raise Refused("this process has said its last word")
        order = self._receive(_ORDER)
        if order.get("do") != "train":
            raise Refused("the yard said what this client does not know: %r" % (order,))
        _keep_to(order.get("gpu_memory_max", 0), order["device"])
        return order["device"]

    def _send(self, kind, fields, buffer=None):
        text = json.dumps(fields).encode("ascii")
        count, size = (0, 0) if buffer is None else (1, len(buffer))
        lengths = struct.pack("<Q", size) * count
        prefix = _PREFIX.pack(b"TYRD", _VERSION, kind, 0, 0, 0, 0, len(text), count, 0, size)
        with self._sending:
            try:
                self._socket.sendall(prefix + lengths + text)
                if count:
                    self._socket.sendall(buffer)
            except BaseException as error:
                if not isinstance(error, OSError):
                    self._socket.close()  # Half a frame is no beginning for another one.
                raise

    def _exactly(self, count):
        received = bytearray()
        while len(received) < count:
            piece = self._socket.recv(count - len(received))
            if not piece:
                raise Refused("the yard has closed the connection")
            received += piece
        return bytes(received)

    def _receive(self, wanted):
        magic, version, kind, _, _, _, _, length, buffers, _, _ = _PREFIX.unpack(self._exactly(_PREFIX.size))
        if magic != b"TYRD" or version != _VERSION or buffers or length > _FIELDS_MAX:
            raise Refused("this is not the protocol that this client speaks")
        fields = json.loads(self._exactly(length) or b"{}")
        if kind == _FAILURE:
            raise Refused(fields.get("error", "the yard closed the connection"))
        if kind != wanted:
            raise Refused("the yard sent a frame of kind %d" % kind)
        return fields


def is_out_of_memory(error):
    """Whether an exception, or what it came from, says that memory ran out: host or GPU."""
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        text = "".join(traceback.format_exception_only(type(error), error)).lower()
        if (any(kind.__name__ in _MEMORY_TYPES for kind in type(error).__mro__)
                or any(part in text for part in _MEMORY_TEXTS)
                or (isinstance(error, OSError) and error.errno == errno.ENOMEM)  # In whatever language.
                or ("dataloader worker" in text and "killed" in text)):
            return True
        error = error.__cause__ or error.__context__
    return False


def _line(error):
    """The line that names it: a message may go on behind it, and a place in a file may stand before it."""
    name = type(error).__qualname__
    lines = "".join(traceback.format_exception_only(type(error), error)).strip().splitlines()
    named = [line for line in lines if line.split(":", 1)[0].endswith(name)]
    return (named or lines[-1:] or [name])[0]


def _trace(error):
    return "".join(traceback.format_exception(type(error), error, error.__traceback__))


def _tell_failure(error):
    ran_out = is_out_of_memory(error)
    _yard.say("out-of-memory" if ran_out else "failed", message=_line(error), traceback=_trace(error))
    _yard.said_last = _yard.said_last or ran_out


def _torch():
    """The framework that can be told how much of a GPU it may take, and its release, where the script has
    imported it. The script trains, whatever a module of that name answers or raises."""
    try:
        torch = sys.modules["torch"]
        return (torch, str(torch.__version__)) if callable(torch.cuda.set_per_process_memory_fraction) else None
    except Exception:
        return None


def _keep_to(most, device):
    """Tells torch what it may take of its GPUs, which others share; 0: all of them again."""
    torch = _torch()
    for name in device.split(",") if torch and device.startswith("cuda") else ():
        try:
            index = int(name.rpartition(":")[2])
            total = torch[0].cuda.get_device_properties(index).total_memory
            if not 0 < total <= 10**14:
                raise ValueError("it says that GPU %d has %r bytes" % (index, total))
            # What it does not count: its context, and of several ranks what they exchange.
            uncounted = 800 * 10**6 if _yard.is_rank else 500 * 10**6
            counted = max(most - uncounted, most // 2) if most else total
            torch[0].cuda.set_per_process_memory_fraction(min(1.0, counted / total), index)
        except Exception as error:  # Whatever a driver says: it trains all the same.
            _warn("torch is not kept to %d bytes of its GPU: %s" % (most, _line(error)))


class _Attempt:
    def __init__(self):
        self.over = False

    def __enter__(self):
        return _yard.wait_for_device() if _yard else _own_device()

    def __exit__(self, kind, error, trace):
        if error is None:
            self.over = True
            if _yard:
                _yard.say("trained")
            return False
        if not _yard or not isinstance(error, Exception) or not is_out_of_memory(error):
            return False  # What is left goes through _at_uncaught.
        text = _trace(error)
        _yard.say("out-of-memory", message=_line(error), traceback=text)
        if _yard.is_rank:
            _yard.said_last = True  # The other ranks wait for this one: all of them start again.
            return False
        # Nobody else prints what the next attempt may make good.
        sys.stderr.write(text)
        sys.stderr.flush()
        # Its frames hold what did not fit; the next attempt needs that room.
        traceback.clear_frames(trace)
        return True


def attempts():
    """One attempt after the other, until one of them has trained."""
    if _refused:
        raise Refused(_refused)
    if _yard:
        torch = _torch()
        _yard.say("loaded", **({"caps": "torch " + torch[1][:100]} if torch else {}))
    while True:
        attempt = _Attempt()
        yield attempt
        if attempt.over:
            return


def progress(fraction=None, **values):
    """Says how far the training is, from 0 to 1, and what it has come to: progress(0.4, loss=0.31).
    Of several ranks the first one does."""
    fields = {"say": "progress"}
    if fraction is not None:
        fraction = _plain(fraction)
        if isinstance(fraction, (int, float)) and 0 <= fraction <= 1:
            fields["fraction"] = fraction
        else:
            _warn("progress goes from 0 to 1: %r is not told" % (fraction,))
    values = _plain(values)
    if len(json.dumps(values)) > _VALUES_MAX:
        _warn("the values of progress are too long to be told")
    elif values:
        fields["values"] = values
    yard = (_yard or _helper()) if _speaks_for_all() else None
    if yard:
        yard.progress(fields)


def _helper():
    """By what a task of one phase says how far it is; made when it first does, by each process of it. None
    where nobody hears it, now or at all."""
    global _help, _help_of, _help_after
    if not _is_of_one_phase():
        return None
    if _help and _help.is_here():
        return _help
    if _help_of != os.getpid():
        _help_of, _help_after = os.getpid(), 0.0
    if time.monotonic() < _help_after:
        return None
    _help_after = time.monotonic() + _HELP_AGAIN_S
    try:
        _help = _Yard(os.environ["TRAINYARD_SOCKET"], os.environ["TRAINYARD_TOKEN"], helps=True)
    except (Refused, OSError) as why:
        _help = None
        _warn_once("progress is not told: %s" % why)
    else:
        atexit.register(_help.tell_progress)
        processes = sys.modules.get("multiprocessing.util")
        if processes:  # Its processes end without that.
            processes.Finalize(None, _help.tell_progress, exitpriority=0)
    return _help


def _is_of_one_phase():
    """Whether the yard has started it as a task that waits for no device."""
    return (os.environ.get("TRAINYARD_PHASES") == "1" and bool(os.environ.get("TRAINYARD_SOCKET"))
            and bool(os.environ.get("TRAINYARD_TOKEN")))


def send(command, data=None, buffer=None):
    """A message to the program that runs the yard, when it is one that listens (the C++ library).
    With the bytes of a buffer, as of a numpy array: at most 8 MiB, and no copy of it is made here."""
    if buffer is not None:
        buffer = memoryview(buffer).cast("B")
        if len(buffer) > _BUFFER_MAX:
            raise ValueError("a buffer of %d bytes, at most %d can be sent" % (len(buffer), _BUFFER_MAX))
    if _yard:
        _yard.send(command, _plain(data), buffer)


class Task:
    """A task as a class: load() what it needs, then train(device), which returns its result.

    The options are for a Yard: what it asks for, by the keys of a job file, as in
    Task(id="fold-1", memory="2GB", gpus=1, time_limit="2h"). A class with an __init__ of its own need
    not call this one when it has none."""

    # What a yard fills in when it has run the task.
    result = None  # A dict: what train() has returned, and result() was told.
    status = None  # The word of `trainyard status`: "FINISHED", "EXIT 1", "OUT_OF_MEMORY", "SKIPPED".
    message = ""  # Why it failed, in a line.
    traceback = ""
    _options = {}
    _known_as = None  # (group, id), of the group that a yard was given last.
    _directory = None

    def __init__(self, **options):
        self._options = options

    @property
    def id(self):
        given = self._options.get("id")
        if given is not None:
            return str(given)
        return self._known_as[1] if self._known_as else os.environ.get("TRAINYARD_TASK_ID", "")

    @property
    def task_dir(self):
        """Where what it writes belongs; outside of a yard the current directory."""
        return self._directory or os.environ.get("TRAINYARD_TASK_DIR", os.getcwd())

    def load(self):
        """CPU, disk, memory; there is no device yet."""

    def train(self, device):
        """Returns the result, a dict. Called again, on the same object, after out of memory."""
        raise NotImplementedError("train(device)")


def main(task):
    """Runs a Task, or a class of it, through its life."""
    task = task() if isinstance(task, type) else task
    task.load()
    for attempt in attempts():
        with attempt as device:
            returned = task.train(device)
            if isinstance(returned, dict):
                result(returned)
            elif returned is not None:
                _warn("train() returned %s, and not a dict: it is not kept" % type(returned).__name__)
                if _speaks_for_all():
                    _leave(os.environ.get("TRAINYARD_RESULT"), _plain(returned))


def result(*values, **more):
    """Adds to the result of the task: result(acc=0.98) or result({"acc": 0.98}). Of several ranks the
    first one does."""
    merged = {}
    for part in (*values, more):
        merged.update(part)
    if not _speaks_for_all():
        return
    path = os.environ.get("TRAINYARD_RESULT")
    if not path:
        return print("result: " + json.dumps(_plain(merged)))
    try:
        with open(path, encoding="utf-8") as file:
            before = json.load(file)
    except (OSError, ValueError):
        before = {}
    if not isinstance(before, dict):
        before = {}
    _leave(path, {**before, **_plain(merged)})


def _leave(path, value):
    """Writes the result, whole or not at all. The yard says what is wrong with one."""
    if not path:
        return
    unfinished = "%s.%d" % (path, os.getpid())
    with open(unfinished, "w", encoding="utf-8") as file:
        json.dump(value, file)
    os.replace(unfinished, path)


def _speaks_for_all():
    """Of the ranks of a task the first one says how far it is, and what it comes to."""
    return (os.environ.get("TRAINYARD_RANK") or "0") == "0"


def _warn(text):
    print("trainyard: " + text, file=sys.stderr)


def _warn_once(text):
    if text not in _warned:
        _warned.add(text)
        _warn(text)


def _number(environment, name):
    """What a launcher has set there; None when it has not."""
    text = environment.get(name, "")
    if not text:
        return None
    if not text.isdigit() or len(text) > 7:
        raise Refused("%s='%s' is not a number of a rank" % (name, text))
    return int(text)


def _key(key):
    """As JSON has it: true, null, 1."""
    return json.dumps(key) if isinstance(key, (bool, int, float, type(None))) else str(key)


def _plain_dict(value):
    plain = {}
    for key, item in value.items():
        name = _key(key)
        if name in plain:
            _warn_once("two keys are %r in JSON: the last one is kept" % name)
        plain[name] = _plain(item)
    return plain


def _plain(value):
    """With numbers of numpy, torch and the like as numbers. NaN stays: the yard warns of it."""
    if isinstance(value, dict):
        return _plain_dict(value)
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, (str, int, float, bool, type(None))):
        return value
    _warn_once("a value of type %s is kept as its text" % type(value).__name__)
    return str(value)


def _own_device():
    """Outside the yard: the first GPU that a framework in use can see, else the CPU."""
    torch = sys.modules.get("torch")
    return "cuda:0" if torch is not None and torch.cuda.is_available() else "cpu"


def _at_uncaught(kind, error, trace):
    if _yard and isinstance(error, Exception):
        _tell_failure(error.with_traceback(trace))
    _hook_before(kind, error, trace)


def _forget_in_child():
    global _yard, _refused
    if _yard:
        _refused = "a forked process cannot train in the name of its task"
    _yard = None
_warned = set()  # What has been said once.


def _connect():
    """Speaks to the yard that has started this process, if one has and it has two phases. Called again in
    the fork of a process that had imported this beforehand."""
    global _yard, _refused
    _yard, _refused = None, ""
    if _is_of_one_phase() or not (os.environ.get("TRAINYARD_SOCKET") and os.environ.get("TRAINYARD_TOKEN")):
        return
    try:
        _yard = _Yard(os.environ["TRAINYARD_SOCKET"], os.environ["TRAINYARD_TOKEN"])
    except (Refused, OSError) as why:
        # A worker that imports its parent's script again must be able to do so.
        _refused = str(why)
    else:
        sys.excepthook = _at_uncaught
        os.register_at_fork(after_in_child=_forget_in_child)


_on_fork = []  # In the order in which they were given.


def on_fork(function):
    """Has a function called in each task that is a fork of a process that has imported this module
    for it (`preload`), before its script runs. There it seeds what the module has made, which would
    be the same in every task otherwise:

        rng = numpy.random.default_rng()

        @trainyard.on_fork
        def renew():
            global rng
            rng = numpy.random.default_rng(int(os.environ["TRAINYARD_SEED"]))

    What it raises fails the task. Returns the function."""
    if not callable(function):
        raise TypeError("on_fork() takes a function, not %r" % (function,))
    _on_fork.append(function)
    return function


def _begin_fork():
    """Called by the process that imports for tasks, in each of its forks."""
    _connect()
    for function in _on_fork:
        function()


_PACKAGE_ONLY = ("Bundle", "Context", "EventOutcome", "Shareable", "TaskGroup", "Worker", "WorkerError", "Yard", "YardError")


def __getattr__(name):
    """What is asked for and is not here: the package may have it, of which this may be a copy of one file."""
    how = ""
    if name in _PACKAGE_ONLY and "." not in __name__:
        how = (": %s is the client alone, and %s needs the whole package: 'pip install ./python' in a clone of trainyard, or its folder "
               "'python' on PYTHONPATH, and this file removed" % (__file__, name))
    raise AttributeError("module %r has no attribute %r%s" % (__name__, name, how))


_yard, _refused = None, ""
_help, _help_of, _help_after = None, 0, 0.0  # The connection of a helper, its process, and when another may be made.
_hook_before = sys.excepthook
if "TRAINYARD_RANK_TOKEN" not in os.environ:  # A rank speaks to its executor, and not to a yard.
    _connect()
