"""What goes wrong between workers."""
import math


def check_timeout(timeout):
    """Raises where it is neither None nor a number of seconds."""
    try:
        is_good = timeout is None or bool(0 <= timeout < math.inf)
    except (TypeError, ValueError):
        is_good = False
    if not is_good:
        raise ValueError("timeout must be a number of seconds, 0 or more, or None for no limit, not %r" % (timeout,))


class WorkerError(RuntimeError):
    """It was not let in, is to end, or waited in vain: `missing` are those that were waited for."""

    def __init__(self, text, missing=()):
        super().__init__(text)
        self.missing = list(missing)
