"""The events of a name, one after the other."""
import collections
import time

from .errors import check_timeout
from .listeners import is_pattern


class Each:
    """An iterator over events, from when this was made: none is missed between two of them. It ends when the worker
    is to end (`ending`) and what came before has been given. At most `most` wait here; then whoever emits waits."""

    def __init__(self, worker, name, timeout, most):
        check_timeout(timeout)
        if most < 1:
            raise ValueError("at least one event can wait, not %r" % (most,))
        self._worker, self._name, self._timeout, self._most = worker, name, timeout, most
        self._came = collections.deque()  # Guarded by worker.changed, as what follows.
        self._is_off = False
        self._listener = worker.on(name, self._take)

    def _take(self, *payload):
        worker = self._worker
        with worker.changed:
            while len(self._came) >= self._most and not self._is_off and not worker.ending.is_set():
                worker.changed.wait()
            if self._is_off:
                return
            self._came.append((payload if is_pattern(self._name) else payload[0], worker.event_from()))
            worker.changed.notify_all()

    def __iter__(self):
        return self

    def __next__(self):
        """What it carries; of a pattern its name and that. Raises TimeoutError where none comes in time, and
        WorkerError where this worker is cut off."""
        worker = self._worker
        if not self._came:
            worker.will_wait("for '%s'" % self._name)
        since = time.monotonic()
        came_from = None
        try:
            payload, came_from = self._wait(since)
        finally:
            worker.waited(self._name, time.monotonic() - since, came_from)
        return payload

    def _wait(self, since):
        worker = self._worker
        with worker.changed:
            while not self._came:
                if self._is_off or worker.is_ended_well():
                    raise StopIteration
                left = None if self._timeout is None else since + self._timeout - time.monotonic()
                if left is not None and left <= 0:
                    raise TimeoutError("'%s' did not come within %g s" % (self._name, self._timeout))
                worker.changed.wait(left)
            worker.changed.notify_all()
            return self._came.popleft()

    def off(self):
        """Nothing more comes, and what has come is dropped. Again: no effect."""
        with self._worker.changed:
            self._is_off = True
            self._came.clear()
            self._worker.changed.notify_all()
        self._listener.off()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self.off()
