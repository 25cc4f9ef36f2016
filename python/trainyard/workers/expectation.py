"""One event that is waited for."""
import time

from .errors import check_timeout
from .listeners import is_pattern


class Expectation:
    """The next event of a name, from when this was made: it cannot be missed between that and wait()."""

    def __init__(self, worker, name):
        self._worker, self._name = worker, name
        self._came = False
        self._payload = self._from = self._listener = None
        self._listener = worker.on(name, self._take)
        if self._came:
            self.off()  # It came before there was a listener to take off.

    def _take(self, *payload):
        with self._worker.changed:
            if self._came:
                return
            self._payload = payload if is_pattern(self._name) else payload[0]
            self._from = self._worker.event_from()
            self._came = True
            self._worker.changed.notify_all()
        self.off()

    def wait(self, timeout=None):
        """What it carries, however long ago it came; of a pattern its name and that. Raises TimeoutError,
        and WorkerError where this worker is to end."""
        check_timeout(timeout)
        if self._came:
            return self._payload
        self._worker.will_wait("for '%s'" % self._name)
        since = time.monotonic()
        try:
            self._wait_until(timeout, None if timeout is None else since + timeout)
        finally:
            self._worker.waited(self._name, time.monotonic() - since, self._from)
        return self._payload

    def _wait_until(self, timeout, until):
        with self._worker.changed:
            while not self._came:
                self._worker.check_going_on()
                left = None if until is None else until - time.monotonic()
                if left is not None and left <= 0:
                    raise TimeoutError("'%s' did not come within %g s" % (self._name, timeout))
                self._worker.changed.wait(left)

    def off(self):
        """It is waited for no more."""
        if self._listener:
            self._listener.off()
