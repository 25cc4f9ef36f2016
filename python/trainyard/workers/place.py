"""Which worker of a parallel run a process is, by what its parent has set."""
import json
import os

from .errors import WorkerError


class Place:
    def __init__(self, socket="", token="", node=0, index=0, count=1, port=0, life=1, labels=(), roles=()):
        self.socket, self.token = socket, token
        self.node, self.index, self.count, self.port, self.life = node, index, count, port, life
        self.labels, self.roles = list(labels), list(roles)


_taken_by = None  # The process that was a worker when it asked.


def take_place():
    """From the environment, out of which it goes: what this process starts is no worker. Again in a worker's process:
    a WorkerError."""
    global _taken_by
    text = os.environ.pop("TRAINYARD_WORKER", "")
    token = os.environ.pop("TRAINYARD_WORKER_TOKEN", "")
    if not text:
        if _taken_by == os.getpid():
            raise WorkerError("Worker.from_environment() was called already in this process, which is one worker: keep what it has "
                              "returned, or use Worker() for one alone")
        return Place()
    _taken_by = os.getpid()
    try:
        said = json.loads(text)
        numbers = {name: int(said[name]) for name in ("node", "index", "count", "port", "life")}
        texts = {name: [str(each) for each in said[name]] for name in ("labels", "roles")}
        return Place(socket=str(said["socket"]), token=token, **numbers, **texts)
    except (ValueError, KeyError, TypeError) as why:
        raise WorkerError("TRAINYARD_WORKER: %s: %s" % (type(why).__name__, why)) from why
