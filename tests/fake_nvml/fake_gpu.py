"""Memory of the GPUs that tests/fake_nvml makes up, for tests and for the tasks that they run.

The file that TRAINYARD_FAKE_NVML names is what the made-up driver shows. A task takes memory by
writing its process there, under a lock, and runs out of it as CUDA does.
"""
import contextlib
import fcntl
import json
import os
import pathlib


def _file():
    return pathlib.Path(os.environ["TRAINYARD_FAKE_NVML"])


@contextlib.contextmanager
def changed(path=None):
    """The data that the driver shows, to be changed: that of this process, or of the file."""
    path = path or _file()
    with open(path.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shown = json.loads(path.read_text())
        yield shown
        new = path.with_suffix(".new")
        new.write_text(json.dumps(shown))
        new.replace(path)


def _alive(pid):
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def visible():
    """The UUIDs of the GPUs that this process may use, as CUDA reads them."""
    words = [word for word in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if word not in ("", "-1")]
    if not any(word.isdecimal() for word in words):
        return words
    if os.environ.get("CUDA_DEVICE_ORDER") != "PCI_BUS_ID":
        raise RuntimeError("CUDA counts the fastest GPU first: a number may be another GPU than is meant")
    devices = json.loads(_file().read_text())["devices"]
    return [devices[int(word)]["uuid"] if word.isdecimal() else word for word in words]


def take(memory, index=0):
    """Takes so much of a GPU among those that are visible, until this process ends."""
    uuid = visible()[index]
    with changed() as shown:
        device = next(each for each in shown["devices"] if each["uuid"] == uuid)
        device["processes"] = [p for p in device.get("processes", []) if _alive(p["pid"])]
        used = device.get("reserved", 0) + sum(p["memory"] for p in device["processes"])
        if used + memory > device["memory"]:
            raise RuntimeError("CUDA out of memory. Tried to allocate %.2f GiB" % (memory / 2**30))
        mine = next((p for p in device["processes"] if p["pid"] == os.getpid()), None)
        if mine is None:
            device["processes"].append({"pid": os.getpid(), "memory": memory})
        else:
            mine["memory"] += memory
