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

One file, Python 3.8 and later, no dependency. Run by trainyard (`two-phase: true` in the job file)
the script tells the yard how far it is in its life; run by hand it trains on what the machine has.
The protocol is described in trainyard's docs/protocol.md.
"""
import errno
import json
import math
import os
import socket
import struct
import sys
import threading
import time
import traceback

__all__ = ["attempts", "is_out_of_memory", "main", "on_fork", "progress", "result", "send", "Context",
           "EventOutcome", "Refused", "Shareable", "Task"]

_PREFIX = struct.Struct("<4sBBHQQIIIIQ")
_HELLO, _WELCOME, _FAILURE, _REPORT, _ORDER = 1, 2, 5, 6, 7
_VERSION = 1
_FIELDS_MAX = 1 << 20
_VALUES_MAX = 4000
_BUFFER_MAX = 8 << 20
_PROGRESS_EVERY_S = 0.1

# By the name of their type, wherever they are defined: no framework has to be imported for it.
_MEMORY_TYPES = {"MemoryError", "OutOfMemoryError", "ResourceExhaustedError"}
# In small letters. The yard knows the same ones by what a plain command prints.
_MEMORY_TEXTS = (
    "cuda out of memory", "hip out of memory", "cuda error: out of memory", "cuda_error_out_of_memory",
    "hip error: out of memory", "cudnn_status_alloc_failed", "cublas_status_alloc_failed", "resource_exhausted",
    "resourceexhaustederror", "outofmemoryerror", "out of memory while trying to allocate", "arraymemoryerror",
    "std::bad_alloc", "cannot allocate memory", "no space left on device: '/dev/shm", "unable to write to file </torch_",
    "bus error",
)


class Refused(RuntimeError):
    """The yard does not let this process speak for its task, or is gone."""


class _Yard:
    """The connection to the yard, of the process that made it and of none that was forked off."""

    def __init__(self, path, token):
        self._process = os.getpid()
        self.said_last = False
        self._progress = None  # What was not told yet.
        self._progress_at = -_PROGRESS_EVERY_S
        self._sending = threading.Lock()  # A frame goes whole, whichever thread sends another.
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.connect(path)
        hello = {"role": "task", "version": _VERSION, "token": token,
                 "program": "python " + os.path.basename(sys.argv[0] or "-")}
        self.is_rank = bool(os.environ.get("TRAINYARD_RANK"))
        if self.is_rank:
            rank, _, ranks = _rank_number(os.environ)
            hello.update(role="rank", rank=rank, ranks=ranks)
        self._send(_HELLO, hello)
        welcome = self._receive(_WELCOME)
        if not welcome.get("ok"):
            self._socket.close()
            raise Refused(welcome.get("error", "the yard refused"))
        self.say("loading")

    def say(self, word, **more):
        """A word about this process's life. What is said after the last one is not sent."""
        if self.said_last or os.getpid() != self._process:
            return
        self._tell_progress()
        self.said_last = word in ("trained", "failed")
        self._report(dict(say=word, **more))

    def progress(self, fields):
        """How far it is. Told at most ten times a second; the last is told with the next word."""
        if self.said_last or os.getpid() != self._process:
            return
        self._progress = fields
        if time.monotonic() - self._progress_at >= _PROGRESS_EVERY_S:
            self._tell_progress()

    def send(self, command, data, buffer):
        if not self.said_last and os.getpid() == self._process:
            self._report({"say": "message", "command": str(command), "data": data}, buffer)

    def _tell_progress(self):
        if self._progress is None:
            return
        fields, self._progress = self._progress, None
        self._progress_at = time.monotonic()
        self._report(fields)

    def _report(self, fields, buffer=None):
        try:
            self._send(_REPORT, fields, buffer)
        except OSError:
            pass  # The yard has gone, and ends us in a moment.

    def wait_for_device(self):
        if os.getpid() != self._process:
            raise Refused("a forked process cannot train in the name of its task")
        if self.said_last:
            raise Refused("this process has said its last word")
        order = self._receive(_ORDER)
        if order.get("do") != "train":
            raise Refused("the yard said what this client does not know: %r" % (order,))
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
            except OSError:
                raise
            except BaseException:
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
        magic, version, kind, _, _, _, _, length, buffers, _, _ = _PREFIX.unpack(
            self._exactly(_PREFIX.size))
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
        if any(kind.__name__ in _MEMORY_TYPES for kind in type(error).__mro__):
            return True
        text = str(error).lower()
        if any(part in text for part in _MEMORY_TEXTS):
            return True
        if isinstance(error, OSError) and error.errno == errno.ENOMEM:  # In whatever language it says so.
            return True
        if "dataloader worker" in text and "killed" in text:
            return True
        error = error.__cause__ or error.__context__
    return False


def _line(error):
    text = "".join(traceback.format_exception_only(type(error), error)).strip()
    return text.splitlines()[-1] if text else type(error).__name__


def _tell_failure(error):
    if is_out_of_memory(error):
        _yard.say("out-of-memory", message=_line(error))
        _yard.said_last = True
    else:
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        _yard.say("failed", message=_line(error), traceback=text)


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
        _yard.say("out-of-memory", message=_line(error))
        if _yard.is_rank:
            _yard.said_last = True  # The other ranks wait for this one: all of them start again.
            return False
        # Its frames hold what did not fit; the next attempt needs that room.
        traceback.clear_frames(trace)
        return True


def attempts():
    """One attempt after the other, until one of them has trained."""
    if _refused:
        raise Refused(_refused)
    if _yard:
        _yard.say("loaded")
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
    if _yard and _speaks_for_all():
        _yard.progress(fields)


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
    """A task as a class: load() what it needs, then train(device), which returns its result."""

    @property
    def id(self):
        return os.environ.get("TRAINYARD_TASK_ID", "")

    @property
    def task_dir(self):
        """Where what it writes belongs; outside of a yard the current directory."""
        return os.environ.get("TRAINYARD_TASK_DIR", os.getcwd())

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
    for part in values:
        merged.update(part)
    merged.update(more)
    if not _speaks_for_all():
        return
    path = os.environ.get("TRAINYARD_RESULT")
    if not path:
        print("result: " + json.dumps(_plain(merged)))
        return
    try:
        with open(path, encoding="utf-8") as file:
            before = json.load(file)
    except (OSError, ValueError):
        before = {}
    if not isinstance(before, dict):
        before = {}
    before.update(_plain(merged))
    _leave(path, before)


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


def _plain(value):
    """With numbers of numpy, torch and the like as numbers, and what is no number as null."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


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


def _connect():
    """Speaks to the yard that has started this process, if one has. Called again in the fork of a
    process that had imported this beforehand."""
    global _yard, _refused
    _yard, _refused = None, ""
    if not (os.environ.get("TRAINYARD_SOCKET") and os.environ.get("TRAINYARD_TOKEN")):
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


# --- ranks: what a RankExecutor of the C++ library starts (docs/ranks.md) ---

_REPLY, _RELEASE = 4, 8
_PRIVATE, _STICKY = 1, 2
_IN_FRAME_MAX = 32 << 10
_BUFFERS_IN_FRAME_MAX = 64 << 20
_DESCRIPTORS_MAX = 16
_DEPTH_MAX = 20
_ORPHAN_GRACE_S = 5
_SEALS = 0x2 | 0x4 | 0x10 | 0x1  # SHRINK, GROW, FUTURE_WRITE, SEAL
_F_ADD_SEALS = 1033


# Made once: json.dumps() would make it anew for each message.
_to_json = json.JSONEncoder(default=lambda value: _plain(value)).encode
_from_json = json.JSONDecoder().decode
_OK = b'{"code": "ok"}'  # The reply of most.


class _NoArena(RuntimeError):
    """All of them are in use."""


class Shareable:
    """What a rank gets and returns: `values`, a dict of JSON, and `buffers`, a dict of arrays.

    The arrays that come are NumPy's if there is NumPy, else memoryviews. They lie in memory that all
    ranks share: they cannot be written, and mean something until execute() returns."""

    def __init__(self, values=None, buffers=None, code="ok", message="", headers=None):
        self.values = dict(values or {})
        self.buffers = dict(buffers or {})
        self.headers = dict(headers or {})
        self.cookies = {}
        self.code = code
        self.message = message

    def torch(self, name):
        """A buffer that came as a tensor that shares its memory. It must not be written to. Of the
        unsigned numbers torch has uint8 alone."""
        import warnings

        import torch
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # That it is not writable.
            buffer, dtype, shape = self._raw[name]
            dtype, shape = getattr(torch, dtype), tuple(shape)
            if not len(buffer):
                return torch.empty(shape, dtype=dtype)
            return torch.frombuffer(buffer, dtype=dtype).reshape(shape)


class EventOutcome:
    """How an event was heard: `code`, `message`, and `errors` of those who heard it."""

    def __init__(self, code="ok", message="", errors=()):
        self.code, self.message, self.errors = code, message, list(errors)


class Context:
    """What a component knows beside its task: properties, and which rank it is in."""

    def __init__(self, rank, base, from_rank=None, depth=0):
        self._rank, self._own, self._changed = rank, dict(base), set()
        self.from_rank, self._depth = from_rank, depth
        self.rank, self.local_rank, self.ranks = rank.rank, rank.local_rank, rank.ranks

    def get(self, name, otherwise=None):
        found = self._own.get(name) or self._rank.sticky.get(name)
        return found[0] if found else otherwise

    def set(self, name, value, private=True, sticky=False):
        """The flags belong to the name for good: ValueError when it had others."""
        if not name or name.startswith("__"):
            raise ValueError("the name %r is reserved" % (name,))
        flags = (_PRIVATE if private else 0) | (_STICKY if sticky else 0)
        if self._rank.known.setdefault(name, flags) != flags:
            raise ValueError("the property %r has other flags" % (name,))
        (self._rank.sticky if sticky else self._own)[name] = [_plain(value), flags]
        self._changed.add(name)

    def remove(self, name):
        self._own.pop(name, None)
        self._rank.sticky.pop(name, None)
        self._changed.add(name)

    def fire(self, name, data=None, group=False):
        """Tells the other components here, the parent and, with `group`, the other ranks."""
        return self._rank.fire(self, name, data, group)

    def alloc(self, shape, dtype="float32"):
        """A NumPy array in memory that goes to the parent without a copy."""
        return self._rank.arenas.alloc(shape, dtype)

    def _changes(self):
        changes = {}
        for name in self._changed:
            found = self._own.get(name) or self._rank.sticky.get(name)
            if found:
                changes.setdefault("set", {})[name] = found
            else:
                changes.setdefault("remove", []).append(name)
        return changes

    def _merge(self, changes):
        self._rank.merge(self._own, changes)


class _Frame:
    def __init__(self, kind, topic, sequence, fields, raw, shared):
        self.kind, self.topic, self.sequence = kind, topic, sequence
        self.fields, self.raw, self.shared = fields, raw, shared


class _Channel:
    """Frames and descriptors over a socket."""

    def __init__(self, connection):
        self.socket = connection
        self.descriptors = []
        self._data = bytearray()
        self._sending = threading.Lock()
        self._room = socket.CMSG_SPACE(4 * _DESCRIPTORS_MAX)

    @staticmethod
    def encode(fields):
        text = _to_json(fields).encode("ascii")
        if len(text) > _FIELDS_MAX:
            raise ValueError("%d bytes of values, at most %d can be sent" % (len(text), _FIELDS_MAX))
        return text

    def send(self, kind, sequence=0, fields=b"", raw=(), shared=(), descriptors=(), topic=0):
        text = fields if isinstance(fields, bytes) else self.encode(fields)
        prefix = _PREFIX.pack(b"TYRD", _VERSION, kind, 0, topic, sequence, 0, len(text), len(raw),
                              len(shared), sum(map(len, raw)))
        if not raw and not shared:
            with self._sending:
                return self.socket.sendall(prefix + text)
        parts = [prefix]
        parts += [struct.pack("<Q", len(each)) for each in raw]
        parts += [struct.pack("<QQQ", *each) for each in shared]
        frame = b"".join(parts + [text] + list(raw))
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
        with self._sending:
            sent = self.socket.sendmsg([frame], rights) if descriptors else 0
            self.socket.sendall(memoryview(frame)[sent:])

    def receive(self):
        self._fill(_PREFIX.size)
        magic, version, kind, _, topic, sequence, _, length, count, sharing, size = \
            _PREFIX.unpack_from(self._data)
        if magic != b"TYRD" or version != _VERSION:
            raise Refused("this is not the protocol that this client speaks")
        head = _PREFIX.size + 8 * count + 24 * sharing
        self._fill(head + length + size)
        fields = _from_json(self._data[head:head + length].decode()) if length else {}
        raw, shared, at = [], (), head + length
        if sharing:
            shared = list(struct.iter_unpack("<QQQ", self._data[_PREFIX.size + 8 * count:head]))
        if count:
            for each in struct.unpack_from("<%dQ" % count, self._data, _PREFIX.size):
                raw.append(bytes(self._data[at:at + each]))
                at += each
        del self._data[:at]
        return _Frame(kind, topic, sequence, fields, raw, shared)

    def _fill(self, count):
        while len(self._data) < count:
            data, rights, _, _ = self.socket.recvmsg(65536, self._room, socket.MSG_CMSG_CLOEXEC)
            for level, kind, bytes_ in rights:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    got = array.array("i")
                    got.frombytes(bytes_[:len(bytes_) - len(bytes_) % got.itemsize])
                    self.descriptors += got
            if not data:
                raise Refused("the parent is gone")
            self._data += data


class _Block:
    """A piece of an arena, as NumPy sees memory. It lives as long as an array over it."""


class _Arenas:
    """Memory of ours that the parent maps: used again when nobody has it any more."""

    _SMALLEST = 64 << 10
    _MAX = 16

    def __init__(self):
        self._arenas = {}  # number: [map, address, size, holders, descriptor]
        self._last = 0
        self._sent = set()
        # Of all threads; the garbage collector may call release() at any moment.
        self._lock = threading.RLock()

    def alloc(self, shape, dtype):
        import numpy
        dtype = numpy.dtype(dtype)
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        size = dtype.itemsize
        for each in shape:
            size *= each
        number, address = self._lend(size)
        block = _Block()
        block.__array_interface__ = {"data": (address, False), "shape": shape,
                                     "typestr": dtype.str, "version": 3}
        weakref.finalize(block, self.release, number)
        return numpy.asarray(block)

    def place_of(self, address, size):
        """(arena, offset, size) of memory that is in one."""
        with self._lock:
            for number, (_, start, length, _, _) in self._arenas.items():
                if start <= address and address + size <= start + length:
                    return number, address - start, size
        return None

    def copy_in(self, arrays):
        """Copies them into one arena, which is the parent's then: their places."""
        total = sum(_aligned(each.nbytes) for each in arrays)
        number, _ = self._lend(total)
        places, at = [], 0
        try:
            with memoryview(self._arenas[number][0]) as memory:
                for each in arrays:
                    if each.nbytes:
                        memory[at:at + each.nbytes] = memoryview(each).cast("B")
                    places.append((number, at, each.nbytes))
                    at += _aligned(each.nbytes)
        except BaseException:  # Not every array has bytes to be read: one of dates has not.
            self.release(number)
            raise
        return number, places

    def send(self, places):
        """They are about to be sent: the descriptors that go with them."""
        descriptors = []
        with self._lock:
            for number, _, _ in places:
                self._arenas[number][3] += 1
                if number not in self._sent:
                    self._sent.add(number)
                    descriptors.append(self._arenas[number][4])
        return descriptors

    def release(self, number):
        with self._lock:
            self._arenas[number][3] -= 1

    def _lend(self, size):
        with self._lock:
            free = [(arena[2], number) for number, arena in self._arenas.items() if arena[3] == 0]
            fit = [one for one in free if one[0] >= size]
            if fit:
                number = min(fit)[1]
            else:
                if len(self._arenas) == self._MAX:
                    if not free:
                        raise _NoArena("%d buffers are in use" % self._MAX)
                    self._drop(min(free)[1])
                number = self._make(max(1 << (max(size, 1) - 1).bit_length(), self._SMALLEST))
            self._arenas[number][3] += 1
            return number, self._arenas[number][1]

    def _drop(self, number):
        """Its number is not used again, so that the parent cannot take another one for it."""
        mapped, _, _, _, descriptor = self._arenas.pop(number)
        mapped.close()
        os.close(descriptor)

    def _make(self, size):
        descriptor = os.memfd_create("trainyard-arena", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(descriptor, size)
        mapped = mmap.mmap(descriptor, size)
        fcntl.fcntl(descriptor, _F_ADD_SEALS, _SEALS)
        # Without a hold on the map, which could not be closed then.
        address = ctypes.addressof(ctypes.c_char.from_buffer(mapped))
        self._last += 1
        self._arenas[self._last] = [mapped, address, size, 0, descriptor]
        return self._last


def _aligned(size):
    return (size + 63) // 64 * 64


class _Stop:
    """As a threading.Event is, which takes longer to make than all else that an empty task needs."""
    __slots__ = ("_changed", "_is_set")

    def __init__(self, changed):
        self._changed, self._is_set = changed, False

    def is_set(self):
        return self._is_set

    def set(self):
        with self._changed:
            self._is_set = True
            self._changed.notify_all()

    def wait(self, timeout=None):
        with self._changed:
            return self._changed.wait_for(self.is_set, timeout)


class _Rank:
    """A rank: executes on the main thread, hears words of the parent on one, tells events on another."""

    def __init__(self, channel, local_rank):
        self.requests, self.words = channel, None
        self.arenas = _Arenas()
        self.rank, self.local_rank, self.ranks = 0, local_rank, 1
        self.sticky, self.known = {}, {}
        self._request_base, self._word_base = {}, {}
        self._mapped = {}
        self._components = []  # (object, what it listens to)
        self._executor = None
        self._changed = threading.Condition()
        self._stop, self._request, self._stop_up_to = _Stop(self._changed), 0, -1
        self._asked, self._last_event, self._told = {}, 0, []
        self._teller = None

    def run(self):
        while True:
            frame = self.requests.receive()
            if frame.kind == _RELEASE:
                self.arenas.release(frame.topic)
            elif frame.kind == _FAILURE:
                raise Refused(frame.fields.get("error", "the parent closed the connection"))
            elif frame.fields.get("do") == "initialise":
                self._initialise(frame)
            elif frame.fields.get("do") == "execute":
                self._execute(frame)
            else:
                return

    # --- requests ---

    def _begin(self, sequence):
        with self._changed:
            self._request, self._stop = sequence, _Stop(self._changed)
            if self._stop_up_to >= sequence:
                self._stop.set()
            return self._stop

    def _initialise(self, frame):
        fields = frame.fields
        self.words = _Channel(socket.socket(fileno=self.requests.descriptors.pop(0)))
        self.rank, self.ranks = fields.get("rank", 0), fields.get("ranks", 1)
        self._wanted = fields.get("result", False)
        self._event_s = fields.get("event_ms", 30000) / 1000
        self.merge(self._request_base, fields.get("context", {}))
        self._begin(0)
        threading.Thread(target=self._read_words, daemon=True).start()
        reply = {"code": "ok"}
        try:
            for each in fields["components"]:
                made = _make_component(each["args"])
                if each["id"] == fields["executor"]:
                    self._executor = made
                self._components.append((made, list(getattr(made, "listens", ()))))
            heard = sorted({name for _, names in self._components for name in names})
            if heard:
                reply["listens"] = heard
                threading.Thread(target=self._tell_events, daemon=True).start()
        except BaseException as error:
            if isinstance(error, SystemExit):
                raise
            reply = {"code": "init-failed", "message": "rank %d: %s" % (self.rank, _line(error)),
                     "traceback": traceback.format_exc()}
        self.requests.send(_REPLY, frame.sequence, reply)

    def _execute(self, frame):
        stop = self._begin(frame.sequence)
        fields = frame.fields
        if "context" in fields:
            self.merge(self._request_base, fields["context"])
        reply, raw, places, kept = {"code": "ok"}, [], [], None
        context = Context(self, self._request_base)
        try:
            returned = self._executor.execute(fields["task"], self._open(frame), context, stop)
            result = _as_shareable(returned)
            if result.code != "ok":
                reply = {"code": result.code, "message": result.message}
            if self._wanted:
                if result.buffers:
                    reply["buffers"], raw, places, kept = self._pack(result.buffers)
                if result.values:
                    reply["values"] = _plain(result.values)
                if result.headers:
                    reply["headers"] = result.headers
                if "cookies" in fields:
                    reply["cookies"] = fields["cookies"]
        except Exception as error:
            code = "out-of-memory" if is_out_of_memory(error) else "execution-exception"
            reply = {"code": code, "message": _line(error), "traceback": traceback.format_exc()[-64000:]}
            traceback.clear_frames(error.__traceback__)
            raw, places = [], []
        if reply["code"] != "ok" and reply.get("message"):
            reply["message"] = "rank %d: %s" % (self.rank, reply["message"])
        if self.rank == 0 and context._changed:
            reply["context"] = context._changes()
        try:
            text = _OK if reply == {"code": "ok"} else self.requests.encode(reply)
        except (TypeError, ValueError) as error:
            text, raw, places = self.requests.encode(
                {"code": "execution-result-error",
                 "message": "rank %d: %s" % (self.rank, _line(error))}), [], []
        descriptors = self.arenas.send(places) if places else ()
        self.requests.send(_REPLY, frame.sequence, text, raw, places, descriptors)
        if kept is not None:
            self.arenas.release(kept)

    def _open(self, frame):
        for number, _, _ in frame.shared:
            self._map(number)
        data = Shareable(frame.fields.get("values"), headers=frame.fields.get("headers"))
        data.cookies = frame.fields.get("cookies", {})
        data._raw = {}
        raw, shared = iter(frame.raw), iter(frame.shared)
        for each in frame.fields.get("buffers", ()):
            if each.get("shared"):
                number, offset, size = next(shared)
                memory = memoryview(self._map(number))[offset:offset + size]
            else:
                memory = memoryview(next(raw))
            data._raw[each["name"]] = (memory, each["dtype"], each["shape"])
            data.buffers[each["name"]] = _array_over(memory, each["dtype"], each["shape"])
        return data

    def _map(self, number):
        if number not in self._mapped:
            descriptor = self.requests.descriptors.pop(0)
            try:
                self._mapped[number] = mmap.mmap(descriptor, os.fstat(descriptor).st_size,
                                                 mmap.MAP_SHARED, mmap.PROT_READ)
            except OSError as why:  # What comes later would be taken for it.
                raise SystemExit("trainyard: cannot map an arena: %s" % why)
            os.close(descriptor)
        return self._mapped[number]

    def _pack(self, buffers):
        """Those in an arena of ours as they are, small ones in the frame, all others copied once."""
        in_place, others = [], []
        for name, array_ in buffers.items():
            array_, dtype = _contiguous(array_)
            place = self.arenas.place_of(_address_of(array_), array_.nbytes)
            about = {"name": name, "dtype": dtype, "shape": list(array_.shape)}
            if place and len(in_place) < _DESCRIPTORS_MAX - 1:
                in_place.append((dict(about, shared=True), place))
            else:
                others.append((about, array_))
        size = sum(each.nbytes for _, each in others)
        in_frame, kept, copied = size <= _IN_FRAME_MAX, None, []
        if not in_frame:
            try:
                kept, copied = self.arenas.copy_in([each for _, each in others])
            except _NoArena:  # As the parent keeps what it got; the frame carries what it may.
                if size > _BUFFERS_IN_FRAME_MAX:
                    raise
                in_frame = True
        abouts = [about if in_frame else dict(about, shared=True) for about, _ in others]
        return ([about for about, _ in in_place] + abouts,
                [each.tobytes() for _, each in others] if in_frame else [],
                [place for _, place in in_place] + copied, kept)

    # --- words ---

    def merge(self, base, changes):
        for name, (value, flags) in changes.get("set", {}).items():
            if self.known.setdefault(name, flags) == flags:
                (self.sticky if flags & _STICKY else base)[name] = [value, flags]
        for name in changes.get("remove", ()):
            base.pop(name, None)
            self.sticky.pop(name, None)

    def _read_words(self):
        try:
            while True:
                frame = self.words.receive()
                with self._changed:
                    self._take_word(frame)
                    self._changed.notify_all()
        except (OSError, Refused):
            pass
        # The main thread finds its own connection closed, or gets the time to save what it must.
        self._stop.set()
        time.sleep(_ORPHAN_GRACE_S)
        os._exit(1)

    def _take_word(self, frame):
        say = frame.fields.get("say")
        if say == "event":
            self._told.append(frame)
        elif say == "event-done" and frame.sequence in self._asked:
            self._asked[frame.sequence] = frame.fields
        elif say == "stop":
            self._stop_up_to = frame.sequence
            if self._request <= frame.sequence:
                self._stop.set()
                for sequence in self._asked:
                    self._asked[sequence] = {"stopped": True}

    def _tell_events(self):
        self._teller = threading.current_thread()
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._told)
                frame = self._told.pop(0)
            try:
                self._tell_event(frame)
            except OSError:
                return  # Nobody is there any more.

    def _tell_event(self, frame):
        fields, errors = frame.fields, []
        self.merge(self._word_base, fields.get("context", {}))
        context = Context(self, self._word_base, fields.get("from_rank"), fields.get("depth", 0))
        self._tell(fields["name"], fields.get("data"), context, errors)
        done = {"say": "event-done"}
        if errors:
            done["errors"] = errors
        if self.rank == 0 and context._changed:
            done["context"] = context._changes()
        try:
            text = self.words.encode(done)
        except (TypeError, ValueError) as error:
            text = self.words.encode({"say": "event-done", "errors": [_line(error)[:1000]]})
        self.words.send(_REPORT, frame.sequence, text)

    def _tell(self, name, data, context, errors):
        for component, names in self._components:
            if name in names or "*" in names:
                try:
                    component.handle_event(name, data, context)
                except BaseException as error:  # SystemExit, too: a thread is no process.
                    errors.append(_line(error))

    def fire(self, context, name, data, group):
        if context._depth >= _DEPTH_MAX:
            return EventOutcome("execution-exception", "event '%s': a cycle of events" % name)
        outcome = EventOutcome()
        before = context.from_rank
        context._depth += 1
        context.from_rank = self.rank
        self._tell(name, data, context, outcome.errors)
        context._depth -= 1
        context.from_rank = before
        with self._changed:
            self._last_event += 1
            sequence = self._last_event
            self._asked[sequence] = None
        word = {"say": "event", "name": name, "depth": context._depth + 1}
        if data is not None:
            word["data"] = _plain(data)
        if context._changed:
            word["context"] = context._changes()
        if group:
            word["to_group"] = True
        try:
            self.words.send(_REPORT, sequence, word)
        except (OSError, ValueError, TypeError) as error:
            self._asked.pop(sequence)
            return EventOutcome("communication-error", _line(error))
        done = self._wait_for_answer(sequence)
        if done is None:
            return EventOutcome("timeout", "event '%s' was not heard within %g s (limit 'event')"
                                % (name, self._event_s), outcome.errors)
        if done.get("stopped"):
            return EventOutcome("task-aborted", "what runs was told to stop", outcome.errors)
        outcome.errors += done.get("errors", [])
        context._merge(done.get("context", {}))
        return outcome


    def _wait_for_answer(self, sequence):
        """The thread that tells events tells others meanwhile: one of them may have to be heard
        before this one is answered."""
        deadline = time.monotonic() + self._event_s
        tells = threading.current_thread() is self._teller
        while True:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._asked[sequence] is not None or (tells and self._told),
                    max(deadline - time.monotonic(), 0))
                if self._asked[sequence] is not None or time.monotonic() >= deadline:
                    return self._asked.pop(sequence)
                frame = self._told.pop(0) if tells and self._told else None
            if frame is not None:
                self._tell_event(frame)


def _array_over(memory, dtype, shape):
    try:
        import numpy
    except ImportError:
        return memory
    # NumPy has no bfloat16: its bits.
    return numpy.frombuffer(memory, "uint16" if dtype == "bfloat16" else dtype).reshape(shape)


def _contiguous(value):
    """As an array that lies in one piece, and its dtype."""
    if hasattr(value, "detach"):  # A tensor.
        tensor = value.detach().cpu().contiguous()
        if str(tensor.dtype) == "torch.bfloat16":
            import torch
            return tensor.view(torch.int16).numpy().view("uint16"), "bfloat16"
        value = tensor.numpy()
    import numpy
    value = numpy.asarray(value)
    shape = value.shape
    value = numpy.ascontiguousarray(value, value.dtype.newbyteorder("="))
    return value.reshape(shape), value.dtype.name


def _address_of(value):
    return value.__array_interface__["data"][0]


def _as_shareable(returned):
    if isinstance(returned, Shareable):
        return returned
    if returned is None:
        return Shareable()
    if not isinstance(returned, dict):
        return Shareable(code="execution-result-error",
                         message="execute() returned %s, and no dict" % type(returned).__name__)
    arrays = {name: value for name, value in returned.items()
              if getattr(value, "shape", ()) != () and hasattr(value, "dtype")}
    return Shareable({name: value for name, value in returned.items() if name not in arrays}, arrays)


class _Function:
    """A function in the place of an executor."""

    def __init__(self, call, args):
        self._call, self._args = call, args

    def execute(self, task, data, context, stop):
        return self._call(task, data, context, stop, **self._args)


def _make_component(args):
    path = os.path.abspath(args["script"])
    name = os.path.splitext(os.path.basename(path))[0]
    if name not in sys.modules or getattr(sys.modules[name], "__file__", None) != path:
        directory = os.path.dirname(path)
        if directory not in sys.path:
            sys.path.insert(0, directory)
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None:
            raise ImportError("'%s' is no Python script" % args["script"])
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    entry = sys.modules[name]
    for part in args["entry"].split("."):
        entry = getattr(entry, part)
    given = args.get("args") or {}
    return entry(**given) if isinstance(entry, type) else _Function(entry, given)


_SOURCES = (("TRAINYARD_RANK", "WORLD_SIZE", "LOCAL_RANK"), ("RANK", "WORLD_SIZE", "LOCAL_RANK"),
            ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
            ("PMIX_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
            ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),
            ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"))


def _rank_number(environment):
    """(rank, local rank, ranks or None) by what the launcher has set."""
    several = ""
    for rank, ranks, local in _SOURCES:
        found = [_number(environment, name) for name in (rank, ranks, local)]
        if found[1] is not None and found[1] > 1 and not several:
            several = "%s is %d" % (ranks, found[1])
        if found[0] is None or (rank == "SLURM_PROCID" and (found[1] or 1) <= 1):
            continue
        return found[0], found[0] if found[2] is None else found[2], found[1]
    if several:
        raise Refused("%s, and nothing says which rank this is (RANK, OMPI_COMM_WORLD_RANK, "
                      "PMIX_RANK, PMI_RANK, SLURM_PROCID)" % several)
    return 0, 0, None


def _number(environment, name):
    text = environment.get(name, "")
    if not text:
        return None
    if not text.isdigit() or len(text) > 7:
        raise Refused("%s='%s' is no number of a rank" % (name, text))
    return int(text)


def _import_for_ranks():
    """What tasks that are no ranks need not wait for."""
    global array, atexit, ctypes, fcntl, importlib, mmap, weakref
    import array
    import atexit
    import ctypes
    import fcntl
    import importlib.util
    import mmap
    import weakref


def _run_as_rank():
    _import_for_ranks()
    path, token = os.environ.pop("TRAINYARD_RANK_SOCKET"), os.environ.pop("TRAINYARD_RANK_TOKEN")
    logs, unknown = os.environ.pop("TRAINYARD_RANK_LOGS", ""), ""
    try:
        rank, local_rank, ranks = _rank_number(os.environ)
    except Refused as why:
        rank, unknown = None, str(why)
    if logs and rank is not None:
        log = os.open(os.path.join(logs, "rank-%d.log" % rank),
                      os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(path)
    channel = _Channel(connection)
    hello = {"role": "rank", "version": _VERSION, "token": token, "program": unknown or "python"}
    if rank is not None:
        hello["rank"] = rank
        if ranks is not None:
            hello["ranks"] = ranks
    channel.send(_HELLO, 0, hello)
    welcome = channel.receive()
    if welcome.kind != _WELCOME or not welcome.fields.get("ok"):
        sys.exit("trainyard: refused: " + welcome.fields.get("error", "no reason was given"))
    if rank is None:
        sys.exit("trainyard: " + unknown)
    os.environ.update(TRAINYARD_RANK=str(rank), RANK=str(rank), LOCAL_RANK=str(local_rank), WORLD_SIZE=str(ranks or 1))
    try:
        _Rank(channel, local_rank).run()
    except (OSError, Refused) as why:
        print("trainyard: %s" % why, file=sys.stderr)
        sys.stderr.flush()
        os._exit(1)
    sys.stdout.flush()
    os._exit(_run_exit_hooks())


def _run_exit_hooks():
    """Threads of events may be anywhere: the interpreter is not taken down around them."""
    try:
        atexit._run_exitfuncs()
        return 0
    except BaseException:
        traceback.print_exc()
        return 1


_yard = None
_refused = ""
_hook_before = sys.excepthook
if "TRAINYARD_RANK_TOKEN" not in os.environ:  # A rank speaks to its executor, and not to a yard.
    _connect()
