"""What goes wrong between workers."""


class WorkerError(RuntimeError):
    """It was not let in, is to end, or waited in vain: `missing` are those that were waited for."""

    def __init__(self, text, missing=()):
        super().__init__(text)
        self.missing = list(missing)
