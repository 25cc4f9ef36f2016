"""Who listens to which events in a worker, and in which order they are called."""
import fnmatch
import threading


def is_pattern(name):
    return any(letter in name for letter in "*?[")


def matches(name, event):
    return name == event or (is_pattern(name) and fnmatch.fnmatchcase(event, name))


class Listener:
    """What on() returns: off() takes it off."""

    def __init__(self, name, call, taken_off):
        self.name, self.call = name, call
        self.is_on = True
        self.late = {}  # What was retained before it listened, by name: heard before what is newer, or not at all.
        self.hearing = threading.RLock()  # Guards it, and is held while one of them is heard.
        self._taken_off = taken_off

    def off(self):
        self._taken_off(self)


class Listeners:
    """Any thread. A listener may add and take off listeners."""

    def __init__(self, want, failed):
        self._want = want  # Called with a name, and whether it is wanted from now on.
        self._failed = failed  # Told an event and what a listener has raised.
        self._retained = {}  # name: (payload, whether it came of others)
        # What the router is told of a name must come in this order. It may have to wait for room, and
        # those that are called meanwhile must not wait for that.
        self._telling = threading.RLock()
        self._calling = threading.local()  # Its `is_inside`: this thread is in a listener.
        self._lock = threading.Lock()
        self._named = {}
        self._patterns = []

    def on(self, name, call):
        if not callable(call):
            raise TypeError("a listener is a function, not %r" % (call,))
        listener = Listener(name, call, self._off)
        with self._telling:
            with self._lock:
                is_new = not self._is_wanted(name)
                listener.late = {event: payload for event, (payload, _) in self._retained.items() if matches(name, event)}
                if is_pattern(name):
                    self._patterns.append(listener)
                else:
                    self._named.setdefault(name, []).append(listener)
            if is_new:
                self._want(name, True)
        self._hear_late(listener)
        return listener

    def _hear_late(self, listener):
        while listener.late:
            with listener.hearing:
                if listener.late:
                    event = next(iter(listener.late))
                    self._call(listener, event, listener.late.pop(event))

    def _off(self, listener):
        name = listener.name
        with self._telling:
            with self._lock:
                if not listener.is_on:
                    return
                listener.is_on = False
                if is_pattern(name):
                    self._patterns.remove(listener)
                else:
                    self._named[name].remove(listener)
                    if not self._named[name]:
                        del self._named[name]
                is_last = not self._is_wanted(name)
                # What comes after it is not known here any more.
                self._retained = {event: kept for event, kept in self._retained.items() if not kept[1] or self._is_heard(event)}
            if is_last:
                self._want(name, False)

    def _is_wanted(self, name):
        return name in self._named or any(each.name == name for each in self._patterns)

    def _is_heard(self, event):
        return event in self._named or any(matches(each.name, event) for each in self._patterns)

    def call(self, event, payload, with_patterns=True, retained=False, of_others=False):
        """With what it carries, and where the listener is one of a pattern with its name before that. What
        one raises is told, and the others are called all the same."""
        with self._lock:
            if retained:
                self._retained[event] = (payload, of_others)
            named = list(self._named.get(event, ()))
            patterns = [each for each in self._patterns if matches(each.name, event)] if with_patterns else []
        for each in named + patterns:
            if each.late:
                with each.hearing:
                    each.late.pop(event, None)
            self._call(each, event, payload)
        return len(named) + len(patterns)

    def _call(self, listener, event, payload):
        if not listener.is_on:
            return
        before, self._calling.is_inside = self.is_inside(), True
        try:
            if is_pattern(listener.name):
                listener.call(event, payload)
            else:
                listener.call(payload)
        except Exception as error:
            self._failed(event, error)
        finally:
            self._calling.is_inside = before

    def is_inside(self):
        """Whether this thread is in a listener: that of the worker for what came, or one that emits."""
        return getattr(self._calling, "is_inside", False)
