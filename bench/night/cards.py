"""Made-up cards for a yard of a benchmark: what its driver shows, and what of their memory is whose."""
import contextlib
import json
import pathlib
import sys

import harness

FAKE_GPU = pathlib.Path(__file__).resolve().parent.parent.parent / "tests/fake_nvml"
sys.path.insert(0, str(FAKE_GPU))
import fake_gpu  # noqa: E402

GB = 1_000_000_000
PYTHON = "/usr/bin/python3"


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


class Cards:
    """Cards that are seen by what is started with `environment`."""

    def __init__(self, shop, directory, count, gigabytes):
        driver = shop.tools.parent / "tests/fake_nvml"
        if not (driver / "libnvidia-ml.so.1").exists():
            raise harness.BenchmarkError(f"no made-up driver in {driver}")
        self.shown = directory / "gpus.json"
        self.sockets = directory / "s"
        self.sockets.mkdir()
        self.environment = {"LD_LIBRARY_PATH": str(driver), "TRAINYARD_FAKE_NVML": str(self.shown),
                            "XDG_RUNTIME_DIR": str(self.sockets), "PYTHONPATH": str(FAKE_GPU)}
        self._count, self._gigabytes = count, gigabytes
        self.empty()

    def empty(self):
        """Nobody has anything of them, and all of them answer."""
        self.shown.write_text(json.dumps({"devices": [
            {"uuid": f"GPU-{number}", "name": "Fake", "pci": f"00000000:0{number + 1}:00.0",
             "memory": self._gigabytes * GB, "lost": False} for number in range(self._count)]}))

    @contextlib.contextmanager
    def changed(self, number):
        """A card, to be changed."""
        with fake_gpu.changed(self.shown) as shown:
            yield shown["devices"][number]

    def taken(self):
        """What living processes have: (pid, card, bytes)."""
        return [(one["pid"], number, one["memory"])
                for number, card in enumerate(json.loads(self.shown.read_text())["devices"])
                for one in card.get("processes", []) if alive(one["pid"])]
