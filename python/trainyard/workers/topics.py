"""The names of events, by their numbers."""
import functools

_NAME_BYTES_MAX = 256


def topic_of(name):
    """The number of a name, as everybody calculates it (FNV-1a of 64 bits)."""
    if not isinstance(name, str):
        raise TypeError("name must be a string, not %r" % (name,))
    return _topic_of(name)


@functools.lru_cache(maxsize=4096)
def _topic_of(name):
    text = name.encode("utf-8")
    if not 0 < len(text) <= _NAME_BYTES_MAX:
        raise ValueError("the name of an event has 1 to %d bytes, not %d" % (_NAME_BYTES_MAX, len(text)))
    number = 0xcbf29ce484222325
    for byte in text:
        number = (number ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return number


class Topics:
    """What a connection knows of names: their types, and how often each was sent and heard. Dictionaries
    alone, each operation on which is whole: any thread."""

    def __init__(self):
        self.known = {}  # number: (name, type)
        self.told = set()  # Of those numbers, the ones that we have told the router.
        self.sent = {}  # number: how many
        self._heard = {}  # (number, origin): the sequence of the last one

    def check(self, number, name, kind):
        known, carried = self.known.setdefault(number, (name, kind))
        if known != name:
            raise ValueError("events '%s' and '%s' have the same number: rename one of them" % (known, name))
        if carried != kind:
            raise TypeError("event '%s' has carried %s, and cannot carry %s: give one of them another name" % (name, carried, kind))

    def is_new(self, frame):
        """Whether this event has not come before."""
        key = (frame.topic, frame.origin)
        if frame.sequence <= self._heard.get(key, 0):
            return False
        self._heard[key] = frame.sequence
        return True

    def forget(self, matches):
        """What is wanted again later may come again: the value that was retained."""
        for key in list(self._heard):
            if matches(self.known[key[0]][0]):
                self._heard.pop(key, None)
