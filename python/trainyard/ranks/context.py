"""What a component of a rank knows beside its task, and how it tells others of events."""
from ..client import _plain

PRIVATE, STICKY = 1, 2  # The flags of a property.


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
        flags = (PRIVATE if private else 0) | (STICKY if sticky else 0)
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
