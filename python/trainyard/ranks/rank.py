"""A rank at work: it executes what the parent asks for, and hears and tells events meanwhile."""
import mmap
import os
import socket
import threading
import time
import traceback

from ..client import _FAILURE, _REPORT, Refused, _line, _plain, is_out_of_memory
from .arenas import Arenas, NoArena
from .channel import DESCRIPTORS_MAX, RELEASE, REPLY, Channel
from .component import make_component
from .context import STICKY, Context, EventOutcome
from .shareable import Shareable, address_of, array_over, as_shareable, contiguous

_IN_FRAME_MAX = 32 << 10
_BUFFERS_IN_FRAME_MAX = 64 << 20
_DEPTH_MAX = 20
_ORPHAN_GRACE_S = 5
_OK = b'{"code": "ok"}'  # The reply of most.


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


class Rank:
    """A rank: executes on the main thread, hears words of the parent on one, tells events on another."""

    def __init__(self, channel, local_rank):
        self.requests, self.words = channel, None
        self.arenas = Arenas()
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
            if frame.kind == RELEASE:
                self.arenas.released(frame.topic)
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
        self.words = Channel(socket.socket(fileno=self.requests.descriptors.pop(0)))
        self.rank, self.ranks = fields.get("rank", 0), fields.get("ranks", 1)
        self._buffers_wanted = fields.get("buffers", False)
        self._event_s = fields.get("event_ms", 30000) / 1000
        self.merge(self._request_base, fields.get("context", {}))
        self._begin(0)
        threading.Thread(target=self._read_words, daemon=True).start()
        reply = {"code": "ok"}
        try:
            for each in fields["components"]:
                made = make_component(each["args"])
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
        self.requests.send(REPLY, frame.sequence, reply)

    def _execute(self, frame):
        stop = self._begin(frame.sequence)
        fields = frame.fields
        if "context" in fields:
            self.merge(self._request_base, fields["context"])
        reply, raw, places, kept = {"code": "ok"}, [], [], None
        context = Context(self, self._request_base)
        try:
            returned = self._executor.execute(fields["task"], self._open(frame), context, stop)
            result = as_shareable(returned)
            if result.code != "ok":
                reply = {"code": result.code, "message": result.message}
            if result.buffers and self._buffers_wanted:
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
        self.requests.send(REPLY, frame.sequence, text, raw, places, descriptors)
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
            data.buffers[each["name"]] = array_over(memory, each["dtype"], each["shape"])
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
            array_, dtype = contiguous(array_)
            place = self.arenas.place_of(address_of(array_), array_.nbytes)
            about = {"name": name, "dtype": dtype, "shape": list(array_.shape)}
            if place and len(in_place) < DESCRIPTORS_MAX - 1:
                in_place.append((dict(about, shared=True), place))
            else:
                others.append((about, array_))
        size = sum(each.nbytes for _, each in others)
        in_frame, kept, copied = size <= _IN_FRAME_MAX, None, []
        if not in_frame:
            try:
                kept, copied = self.arenas.copy_in([each for _, each in others])
            except NoArena:  # As the parent keeps what it got; the frame carries what it may.
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
                (self.sticky if flags & STICKY else base)[name] = [value, flags]
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
