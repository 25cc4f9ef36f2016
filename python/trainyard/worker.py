"""One of the processes of a parallel run (docs/workers.md): who it is, and what it does together with the others.

    worker = trainyard.Worker.from_environment()
    worker.on("weights", policy.load)                   # called for each, on a thread of the worker
    worker.ready()
    while not worker.ending.is_set():
        worker.emit("episodes", play(policy))           # an array of NumPy, or anything that JSON has

Started by parallel() of the C++ library or `trainyard parallel`; where nobody has started it so it is alone, and
all works. What is emitted before all workers listen waits for them: a worker listens from its first ready(),
barrier(), wait for an event, or when it emits itself. So register listeners first.

Listeners of what others emit are called by one thread, one event at a time, in the order in which a worker emitted
them. One that does not return holds up the others. Any thread may call anything. Python 3.8 and later; NumPy is
used where there is NumPy, and else arrays are memoryviews.
"""
import atexit
import json
import sys
import threading
import time
import traceback

from .client import _line
from .ranks.arenas import Arenas, NoArena
from .workers import connection as wire
from .workers.buffers import Bundle, dtype_of
from .workers.connection import Connection, Frame, text_of
from .workers.each import Each
from .workers.errors import WorkerError, check_timeout
from .workers.expectation import Expectation
from .workers.listeners import Listeners, matches
from .workers.mapped import Mapped
from .workers.parcel import Parcel, payload_of
from .workers.place import Place, take_place
from .workers.topics import Topics, topic_of

__all__ = ["Bundle", "Worker", "WorkerError"]

PEER, LOST = "trainyard.peer", "trainyard.events-lost"
_REACHES = ("others", "here", "all")
_WITHIN_MS_MAX = 1000 * 3600 * 24 * 365
_WHY_MAX = 4000
_WAITED_LEAST_S = 0.001  # A shorter wait is not worth a word.
_ANSWER_PATIENCE_S = 2   # An answer that names who is missing comes behind the deadline.
_STATUS_WITHIN_S = 60
_CLOSED = "this worker is closed"


class Worker:
    """A worker. `node` is its number, `index` its place among `count`, `life` how often it has begun.
    `ending` is set when the run is to end: another worker has failed, the parent is gone, or who is followed has
    ended. Half of the grace is left then before SIGTERM.

    The others' changes come as events of this process alone: "trainyard.peer" with node, change ("ready", "again",
    "finished", "lost", "failed"), outcome, why and roles, and "trainyard.events-lost" with event, node and count."""

    @classmethod
    def from_environment(cls, on_error=None):
        """The worker that this process was started as, or one alone. Once a process: takes its variables out of
        the environment, and is a WorkerError when a worker calls it again. An exception that ends the program, or
        sys.exit() with a text, is the failure of this worker, with that text."""
        worker = cls(take_place(), on_error)
        if not worker.is_alone:
            atexit.register(worker.close)
            before, leave = sys.excepthook, sys.exit

            def at_uncaught(kind, error, trace):
                worker._fail(error)
                before(kind, error, trace)

            def at_sys_exit(status=None):
                # Python shows it to no hook. In another thread it ends that thread alone.
                if threading.current_thread() is threading.main_thread():
                    worker._exit_status = status
                leave(status)
            sys.excepthook, sys.exit = at_uncaught, at_sys_exit
        return worker

    def __init__(self, place=None, on_error=None):
        """`on_error(event, error)` is told what a listener raises, and what did not reach others. Without one
        it goes to standard error, but for what close() interrupts."""
        self._place = place or Place()
        for name in ("node", "index", "count", "port", "life", "labels", "roles"):
            setattr(self, name, getattr(self._place, name))
        self._on_error = on_error
        self.ending = threading.Event()
        self.changed = threading.Condition()  # Guards what follows.
        self._asked, self._last_asked = {}, 0
        self._why, self._cut_off = "", ""
        self._followed, self._over = None, []  # Roles whose end is ours; the others that have ended well.
        self._settled, self._closed, self._run_ends = False, False, False
        self._exit_status = None
        self._takes = False  # The thread that reads is in what came last: in listeners.
        self._releases = 0  # How often others have released an arena.

        self._origin = self.life << 16 | self.node
        self._telling = threading.local()
        self._topics = Topics()
        self._arenas = Arenas()
        self._retained = {}  # By topic: the arenas of the last retained event, which others hold until the next one.
        self._listeners = Listeners(self._want, self._tell)
        self._mapped = Mapped(self._release)
        self._connection = self._reader = self._writer = None
        if self._place.socket:
            self._connection = Connection(self._place, self._mapped.take)
            self._reader = threading.Thread(target=self._read, name="trainyard-worker", daemon=True)
            self._writer = threading.Thread(target=self._connection.write_words, name="trainyard-words", daemon=True)
            self._reader.start()
            self._writer.start()

    @property
    def is_alone(self):
        return self._connection is None

    def has_role(self, role):
        """One without roles has every role."""
        return not self.roles or role in self.roles

    # --- events ---

    def on(self, name, listener):
        """Calls listener(payload) for each event of that name; of a pattern (*, ?, [abc]) listener(name, payload).
        Arrays that come cannot be written to, and keep the memory of who sent them for as long as they are used.
        Returns what takes it off: off()."""
        topic_of(name)
        return self._listeners.on(name, listener)

    def emit(self, name, payload=None, reach="others", retained=False):
        """To the others, to the listeners here, or to all. An array of NumPy or torch, and plain memory, goes as a
        buffer, all else as JSON. The last one that is retained is also heard by those who listen later. Waits
        where others do not read as fast."""
        if reach not in _REACHES:
            raise ValueError("reach must be one of %s, not %r" % (", ".join(_REACHES), reach))
        number = topic_of(name)
        if reach != "here" and not self.is_alone:
            self._settle()
            try:
                parcel = self._pack(payload)
            except NoArena as error:
                raise WorkerError("event '%s' has an array of more than %d MiB, which goes through shared memory alone, and %s: emit parts of "
                                  "it, retain fewer arrays, or emit it outside of a listener, where it waits until one is released"
                                  % (name, wire.BUFFERS_BYTES_MAX >> 20, error)) from error
            try:
                self._send(number, name, parcel, wire.RETAINED if retained else 0)
            except WorkerError as error:
                self.ending.wait(1)  # The thread that reads hears why.
                raise WorkerError(self._why or str(error)) from error
            finally:
                parcel.let_go()
        if reach != "others":
            self._listeners.call(name, payload, retained=retained)

    def alloc(self, shape, dtype="float32"):
        """An array of NumPy in memory that others can map: filled in place and emitted it is not copied. What it
        holds must not change while others read it."""
        dtype = dtype_of(dtype)
        if self.is_alone:
            import numpy
            return numpy.empty(shape, dtype)
        return self._arenas.alloc(shape, dtype)

    def expect(self, name):
        """Arms now what is waited for later: expect(name).wait(timeout)."""
        return Expectation(self, name)

    def each(self, name, timeout=None, most=8192):
        """An iterator over the events of a name from now on, none of which it misses; of a pattern with their names.
        It ends with the run, or who is followed; where none comes in time it raises TimeoutError. At most `most`
        wait here, then whoever emits does."""
        return Each(self, name, timeout, most)

    def follow(self, role=None):
        """When another worker has ended well, the first with that role (None: of all), `ending` is set, also where it
        had ended before: each() ends, and what waits for an event raises WorkerError. Barriers go on. Of those that
        this one hears: in a star only the first hears all."""
        with self.changed:
            self._followed = (self._followed or ()) + (role,)
            for peer in self._over:
                self._look_at_end(peer)

    def wait_for(self, name, timeout=None):
        """The next one. Raises TimeoutError, and WorkerError where this worker is to end."""
        expected = self.expect(name)
        try:
            return expected.wait(timeout)
        finally:
            expected.off()

    # --- meetings ---

    def ready(self, n=0, timeout=60):
        """Waits until so many workers listen, all when it is 0. An error names those that do not."""
        self._ask("until others are ready", {"word": "ready", "workers": n}, timeout)

    def barrier(self, name, timeout=60, roles=()):
        """Waits until all that have one of the roles (none: all workers) have come to the barrier of this name,
        but for those that have ended. What they sent before has come then. An error names who is missing. A listener
        that does not return, or events of this worker that wait for others, hold it up by at most two seconds."""
        topic_of(name)
        roles = [roles] if isinstance(roles, str) else list(roles)
        self._ask("at the barrier '%s'" % name, {"word": "barrier", "name": name, "roles": roles}, timeout)

    def status(self):
        """What the router knows: workers, queues, counts, who waits at which barrier."""
        reply = self._ask("for the status", {"word": "status"}, _STATUS_WITHIN_S, listens=False)
        return json.loads(reply.get("status") or "{}")

    def finish(self, outcome="finished", why=""):
        """What this worker does has ended; the others hear of it when its process has. "failed", and an exit code
        that is not 0, is a failure with that text."""
        self._say_finish(outcome, why)
        self._flush()

    def close(self):
        """Nothing comes or goes any more. Again: no effect."""
        with self.changed:
            closed, self._closed = self._closed, True
        if closed or self.is_alone or not self._connection.is_here():
            return
        self._say_exit()
        self._end(_CLOSED)
        self._connection.end_words()
        _join(self._writer)
        self._connection.shut_down()
        _join(self._reader)
        if not self._reader.is_alive():
            self._connection.close()
            self._mapped.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if isinstance(error, Exception):
            self._fail(error)
        self.close()

    # --- of its parts ---

    def will_wait(self, how):
        """Whoever is to emit what is waited for may wait for this one to listen."""
        self._check_thread(how)
        self._settle()

    def _check_thread(self, how):
        # In the worker that emits a listener could wait, but those of its event elsewhere cannot come.
        if not self.is_alone and (threading.current_thread() is self._reader or self._listeners.is_inside()):
            raise RuntimeError("a listener cannot wait %s: wait outside of listeners" % how)

    def waited(self, name, took_s, came_from):
        """Told for the picture of the run, who waited for whom, where it was not short."""
        if took_s < _WAITED_LEAST_S:
            return
        word = {"word": "waited", "name": name, "ms": min(_WITHIN_MS_MAX, int(took_s * 1000))}
        if came_from is not None:
            word["from"] = came_from
        self._report(word)

    def event_from(self):
        """The node of whose event this thread tells listeners now; None when it is one of this process."""
        return getattr(self._telling, "node", None)

    def check_going_on(self):
        if self.ending.is_set():
            raise WorkerError(self._why or "this worker is to end")

    def is_ended_well(self):
        """It is to end, and was not cut off: that is a WorkerError."""
        if self._cut_off:
            raise WorkerError(self._cut_off)
        return self.ending.is_set()

    def _settle(self):
        if not self._settled and not self.is_alone:
            self._settled = True
            self._report({"word": "settled"})

    def _report(self, word):
        if self.is_alone:
            return
        try:
            self._connection.say(Frame(wire.REPORT, text_of(word)))
            self._connection.bound_words()
        except WorkerError:
            pass  # Where nobody is there any more, the thread that reads finds it out.

    def _say_finish(self, outcome, why):
        why = str(why).encode("utf-8", "replace").decode("utf-8")
        self._report({"word": "finish", "outcome": str(outcome), "why": why[:_WHY_MAX]})

    def _flush(self, within=-1):
        try:
            if not self.is_alone:
                self._connection.flush(within)
        except WorkerError:
            pass

    def _want(self, name, wanted):
        if not wanted:
            self._topics.forget(lambda event: matches(name, event))
        if name not in (PEER, LOST):
            self._report({"word": "want" if wanted else "want-not", "name": name})

    def _pack(self, payload):
        while True:
            seen = self._releases
            try:
                return Parcel(payload, self._arenas)
            except NoArena as error:
                self._wait_for_release(seen, error)

    def _wait_for_release(self, seen, error):
        """Until others have released an arena. Raises the error where there is nothing to wait for: the thread that
        reads would wait for itself, and what is retained stays."""
        if threading.current_thread() is self._reader:
            raise error
        with self._connection.sending:
            is_held = self._arenas.is_held_beyond(sum(self._retained.values(), []))
        with self.changed:
            if self._releases == seen and not is_held:
                raise error
            self.changed.wait_for(lambda: self._releases != seen or self._run_ends)
            if self._run_ends:
                raise WorkerError(self._why or str(error)) from error

    def _send(self, number, name, parcel, flags):
        topics, frame = self._topics, parcel.frame
        with self._connection.sending:
            topics.check(number, name, parcel.type)
            before = []
            if number not in topics.told:
                before = [Frame(wire.REPORT, text_of({"word": "topic", "name": name, "type": parcel.type}))]
            sequence = topics.sent.get(number, 0) + 1
            frame.topic, frame.flags, frame.origin, frame.sequence = number, flags, self._origin, sequence
            descriptors = self._arenas.send(frame.shared) if frame.shared else ()
            if flags & wire.RETAINED:
                self._retained[number] = [place[0] for place in frame.shared]
            self._connection.send_locked(*before, frame, descriptors=descriptors)
            topics.told.add(number)
            topics.sent[number] = sequence

    def _ask(self, how, word, timeout, listens=True):
        since, within_ms = time.monotonic(), _milliseconds(timeout)
        if self.is_alone:
            return {}
        if self._closed:
            raise WorkerError(_CLOSED)
        self._check_thread(how)
        if listens:
            self._settle()
        with self.changed:
            self._last_asked += 1
            number = self._last_asked
            self._asked[number] = None
        try:
            word.update(within_ms=within_ms, asked_ms=int(since * 1000))
            self._connection.say(Frame(wire.REQUEST, text_of(word), sequence=number))
            until = since + within_ms / 1000 + _ANSWER_PATIENCE_S
            with self.changed:
                while self._asked[number] is None:
                    if self._run_ends:
                        self.check_going_on()
                    left = until - time.monotonic()
                    if left <= 0:
                        raise WorkerError(self._no_answer(how, timeout))
                    self.changed.wait(left)
                reply = self._asked[number]
        finally:
            with self.changed:
                answered = self._asked.pop(number) is not None
            if not answered and not self._run_ends:
                self._connection.say(Frame(wire.REQUEST, text_of({"word": "withdraw"}), sequence=number))
        if reply.get("error"):
            if self._run_ends:
                self.check_going_on()  # The answer may name only who will not come: the end says why.
            raise WorkerError(reply["error"], reply.get("missing", ()))
        return reply

    def _no_answer(self, how, timeout):
        why = ("events wait for workers that read more slowly: those that this worker emitted before it asked or, with several "
               "machines, those that come to its machine before the answer")
        if self._takes:
            why = "a listener of this worker has not returned, or events that came before the answer are still being handled"
        return "no answer came within %g s %s: %s" % (timeout, how, why)

    def _say_exit(self):
        """As Python has it: all but None and an integer is printed, and the exit code is 1 then."""
        if self._exit_status is not None and not isinstance(self._exit_status, int):
            self._say_finish("failed", self._exit_status)

    def _fail(self, error):
        if not self._closed and isinstance(error, Exception):
            self._say_finish("failed", _text_of(error))
            self._flush(within=1)  # A listener that waits in emit() must not keep a failed worker.

    def _tell(self, event, error):
        try:
            if self._on_error:
                return self._on_error(event, error)
        except Exception:
            traceback.print_exc()
        if self._closed and isinstance(error, WorkerError) and threading.current_thread() is self._reader:
            return  # close() interrupted the listener. Printed, it would stand in the log behind the error that led to it.
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        sys.stderr.write("trainyard: event '%s': %s" % (event, text))
        sys.stderr.flush()

    # --- what comes ---

    def _read(self):
        try:
            while True:
                self._take_next()
        except Exception as why:  # Whatever it is, nothing comes any more.
            self._end(str(why))

    def _take_next(self):
        frame = self._connection.receive()
        self._takes = True
        self._take(frame)
        self._takes = False

    def _take(self, frame):
        if frame.kind == wire.EVENT:
            self._take_event(frame)
        elif frame.kind == wire.ORDER:
            self._take_order(frame.value() or {})
        elif frame.kind == wire.RELEASE:
            self._arenas.released(frame.topic)
            with self.changed:
                self._releases += 1
                self.changed.notify_all()
        elif frame.kind == wire.REPLY:
            with self.changed:
                if frame.sequence in self._asked:
                    self._asked[frame.sequence] = frame.value() or {}
                    self.changed.notify_all()
        elif frame.kind == wire.FAILURE:
            self._cut_off = "this worker is cut off: " + (frame.value() or {}).get("error", "no reason was given")
            raise WorkerError(self._cut_off)

    def _take_event(self, frame):
        name, kind = self._topics.known[frame.topic]
        try:
            payload = payload_of(frame, kind, self._mapped)
        except (ValueError, OSError) as error:
            return self._tell(name, error)
        if self._topics.is_new(frame) and name not in (PEER, LOST):  # Those are of this process alone.
            self._telling.node = frame.origin & 0xFFFF
            try:
                self._listeners.call(name, payload, retained=bool(frame.flags & wire.RETAINED), of_others=True)
            finally:
                self._telling.node = None

    def _take_order(self, said):
        word = said.get("word")
        if word == "topic":
            self._topics.known[topic_of(said["name"])] = (said["name"], said["type"])
        elif word == "peer":
            change = {"settled": "ready"}.get(said.get("change"), said.get("change"))
            if change == "finished":
                with self.changed:
                    self._over.append(said)
                    self._look_at_end(said)
            self._listeners.call(PEER, {"node": said["node"], "change": change, "outcome": said.get("outcome", ""),
                                        "why": said.get("why", ""), "roles": said.get("roles", [])}, with_patterns=False)
        elif word == "lost" and said.get("refused"):
            self._tell(said["name"], WorkerError("did not reach worker %d %d times: %s" % (
                said["node"], said["count"], said.get("why") or "its queue was full")))
        elif word == "lost":
            self._listeners.call(LOST, {"event": said["name"], "node": said["node"], "count": said["count"]}, with_patterns=False)
        elif word == "end":
            self._end(said.get("why", "the run ends"))

    def _look_at_end(self, peer):
        """With the lock."""
        roles = peer.get("roles", [])
        if self._followed and any(role is None or role in roles for role in self._followed):
            self._why = self._why or "worker %d has ended (%s)" % (peer["node"], peer.get("outcome", ""))
            self.ending.set()
            self.changed.notify_all()

    def _end(self, why):
        with self.changed:
            if not self._run_ends:
                self._run_ends, self._why = True, why
            self.ending.set()
            self.changed.notify_all()

    def _release(self, number):
        """An arena that is not read any more, in a fork of this process neither."""
        if self._connection.is_here():
            self._connection.say(Frame(wire.RELEASE, topic=number))


def _text_of(error):
    """The line that names it, and those behind that."""
    text = "".join(traceback.format_exception_only(type(error), error)).strip()
    return text[max(0, text.find(_line(error))):]


def _join(thread):
    """For a moment: a listener may not return, and goes with the process."""
    if thread is not threading.current_thread():
        thread.join(1)


def _milliseconds(timeout):
    check_timeout(timeout)
    return _WITHIN_MS_MAX if timeout is None else int(min(_WITHIN_MS_MAX, timeout * 1000))
