"""Frames and descriptors between a worker and its router, as docs/protocol.md has them. One thread
receives; any may send, and each frame goes whole. One thread writes the words that wait for nobody."""
import array
import collections
import json
import os
import queue
import socket
import struct
import threading

from ..client import _FAILURE, _HELLO, _ORDER, _PREFIX, _REPORT, _VERSION, _WELCOME
from ..ranks.channel import DESCRIPTORS_MAX, RELEASE, REPLY, _from_json
from .errors import WorkerError

HELLO, WELCOME, REQUEST, FAILURE, REPORT, ORDER, EVENT = _HELLO, _WELCOME, 3, _FAILURE, _REPORT, _ORDER, 9
RETAINED = 1
FIELDS_MAX, BUFFERS_MAX, BUFFERS_BYTES_MAX = 8 << 20, 64, 64 << 20
SHAPES_BYTES_MAX = 64 * (2 + 8 * 32)  # The first buffer says what the others are, and does not count.
_READ_AT_ONCE = 64 << 10
_GREETED_WITHIN_S = 30
_WORDS_MAX = 10_000
_LEVELS_MAX = 60

__all__ = ["BUFFERS_BYTES_MAX", "BUFFERS_MAX", "DESCRIPTORS_MAX", "EVENT", "FAILURE", "FIELDS_MAX", "ORDER", "RELEASE",
           "REPLY", "REPORT", "REQUEST", "RETAINED", "Connection", "Frame", "text_of"]


def _plain(value):
    """Numbers of numpy, torch and the like as numbers, and their arrays as lists; a tuple is a list already."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError("a value of type %s has no form in JSON" % type(value).__name__)


_to_json = json.JSONEncoder(default=_plain, allow_nan=False).encode
_to_letters = json.JSONEncoder(default=_plain, ensure_ascii=False).encode


def _levels(value):
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return 0
    return 1 + max(map(_levels, value), default=0)


def text_of(value):
    """JSON as a frame carries it; of nothing there is none. Raises for what would come as something else: NaN,
    infinities, halves of letters, what has no form in JSON, and what nests too deeply."""
    if value is None:
        return b""
    try:
        text = _to_json(value)
        if "\\ud" in text:
            _to_letters(value).encode("utf-8")
    except ValueError as error:  # Some versions of Python add lines that say where it is.
        raise ValueError("payload cannot be sent as JSON: %s" % error) from None
    if text.count("[") + text.count("{") > _LEVELS_MAX and _levels(value) > _LEVELS_MAX:
        raise ValueError("it is nested deeper than %d" % _LEVELS_MAX)
    text = text.encode("ascii")
    if len(text) > FIELDS_MAX:
        raise ValueError("%d bytes of JSON, at most %d can be sent" % (len(text), FIELDS_MAX))
    return text


class Frame:
    def __init__(self, kind, fields=b"", topic=0, sequence=0, flags=0, origin=0, raw=(), shared=()):
        self.kind, self.fields, self.topic, self.sequence = kind, fields, topic, sequence
        self.flags, self.origin, self.raw, self.shared = flags, origin, raw, shared

    def value(self):
        return _from_json(self.fields.decode("utf-8", "replace")) if self.fields else None

    def pieces(self):
        sizes = [len(each) for each in self.raw]
        head = _PREFIX.pack(b"TYRD", _VERSION, self.kind, self.flags, self.topic, self.sequence, self.origin,
                            len(self.fields), len(self.raw), len(self.shared), sum(sizes))
        if not self.raw and not self.shared:
            return [head + self.fields]
        head += struct.pack("<%dQ" % len(sizes), *sizes)
        head += b"".join(struct.pack("<QQQ", *each) for each in self.shared)
        return [head + self.fields] + list(self.raw)


class Connection:
    def __init__(self, place, take_descriptors):
        self.sending = threading.Lock()  # Whoever sends several frames in a row holds it.
        self._take_descriptors = take_descriptors
        self._words = collections.deque()  # Go before whatever is sent next; taken out under `sending`.
        self._wake = queue.SimpleQueue()   # A value for each word, the last one false.
        self._process = os.getpid()
        self._data = bytearray()
        self._room = socket.CMSG_SPACE(4 * DESCRIPTORS_MAX)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._greet(place)
        except BaseException:
            self._socket.close()
            raise

    def _greet(self, place):
        self._socket.settimeout(_GREETED_WITHIN_S)
        try:
            self._socket.connect(place.socket)
            self.send(Frame(HELLO, text_of({"role": "worker", "version": _VERSION, "program": "python worker",
                                            "token": place.token, "rank": place.node, "ranks": place.count})))
            welcome = self.receive()
        except OSError as why:
            raise WorkerError("the parent of this worker is not there: %s" % why) from why
        said = welcome.value() or {}
        if welcome.kind != WELCOME or not said.get("ok"):
            raise WorkerError("this worker is not let in: " + said.get("error", "no reason was given"))
        self._socket.settimeout(None)

    def is_here(self):
        """Not in a process that was forked off: two that write to it would write into each other's frames."""
        return os.getpid() == self._process

    def say(self, frame):
        """Sends a word without a wait for room. It goes before all that is sent later. Any thread, at any moment, as
        the garbage collector may be anywhere."""
        if not self.is_here():
            raise WorkerError("a forked process is no worker")
        self._words.append(frame)
        self._wake.put(True)

    def write_words(self):
        """Until end_words(), when those that were said before have gone, or nobody is there any more."""
        try:
            goes_on = True
            while goes_on:
                goes_on = self._wake.get()
                self.flush()
        except WorkerError:
            pass  # The thread that receives finds it out.

    def end_words(self):
        self._wake.put(False)

    def bound_words(self):
        """Waits for room where many words wait for it."""
        if len(self._words) > _WORDS_MAX:
            self.flush()

    def flush(self, within=-1):
        """Waits until all words have gone, where others send for at most so many seconds, if it is not negative."""
        if self.sending.acquire(timeout=within):
            try:
                self.send_locked()
            finally:
                self.sending.release()

    def send(self, *frames, descriptors=()):
        """The descriptors go with the last one."""
        with self.sending:
            self.send_locked(*frames, descriptors=descriptors)

    def send_locked(self, *frames, descriptors=()):
        if not self.is_here():
            raise WorkerError("a forked process is no worker")
        frames = (*self._take_words(), *frames)
        if not frames:
            return
        pieces = [piece for frame in frames[:-1] for piece in frame.pieces()]
        try:
            if pieces:
                self._socket.sendall(b"".join(pieces))
            first, *rest = frames[-1].pieces()
            sent = 0
            if descriptors:
                rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
                sent = self._socket.sendmsg([first], rights)
            self._socket.sendall(memoryview(first)[sent:])
            for each in rest:
                self._socket.sendall(each)
        except BaseException as error:
            if isinstance(error, OSError):
                raise WorkerError("the parent of this worker is gone: %s" % error) from error
            self.shut_down()  # Half a frame is no beginning for another one.
            raise

    def _take_words(self):
        words = []
        while self._words:
            words.append(self._words.popleft())
        return words

    def receive(self):
        self._fill(_PREFIX.size)
        magic, version, kind, flags, topic, sequence, origin, length, count, sharing, size = \
            _PREFIX.unpack_from(self._data)
        if magic != b"TYRD" or version != _VERSION:
            raise WorkerError("this is not the protocol that this worker speaks")
        if length > FIELDS_MAX or count > BUFFERS_MAX or size > BUFFERS_BYTES_MAX + SHAPES_BYTES_MAX or sharing > DESCRIPTORS_MAX:
            raise WorkerError("a frame that is larger than it may be")
        head = _PREFIX.size + 8 * count + 24 * sharing
        self._fill(head + length + size)
        with memoryview(self._data) as data:
            fields = bytes(data[head:head + length])
            raw, at = [], head + length
            for each in struct.unpack_from("<%dQ" % count, data, _PREFIX.size):
                raw.append(bytes(data[at:at + each]))
                at += each
            shared = list(struct.iter_unpack("<QQQ", data[_PREFIX.size + 8 * count:head]))
        del self._data[:head + length + size]
        return Frame(kind, fields, topic, sequence, flags, origin, raw, shared)

    def _fill(self, count):
        while len(self._data) < count:
            data, rights, _, _ = self._socket.recvmsg(_READ_AT_ONCE, self._room, socket.MSG_CMSG_CLOEXEC)
            for level, kind, came in rights:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    descriptors = array.array("i")
                    descriptors.frombytes(came[:len(came) - len(came) % descriptors.itemsize])
                    self._take_descriptors(descriptors)
            if not data:
                raise WorkerError("the parent of this worker is gone")
            self._data += data

    def shut_down(self):
        """Whoever receives is told so."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # It has ended.

    def close(self):
        self._socket.close()
