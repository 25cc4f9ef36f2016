"""The common part of the tests of workers in Python: their first lines, and the way they are run."""
from yard import CLIENT, PATIENCE_S, YardTest, os, subprocess

TOOL = os.environ.get("TRAINYARD_PARALLEL_TOOL", "parallel_tool")
PYTHON = "/usr/bin/python3"
try:
    import numpy
except ImportError:
    numpy = None

BEGIN = f"""
import os, signal, sys, threading, time
sys.path.insert(0, {str(CLIENT)!r})
import trainyard
try:
    import numpy
except ImportError:
    numpy = None
worker = trainyard.Worker.from_environment()
def need(holds, what):
    if not holds:
        raise AssertionError(what)
"""


class PythonWorkersTest(YardTest):
    def run_workers(self, count, script, roles="-", retries=0, expect=0, command=None, python=(PYTHON,)):
        self.write("worker.py", BEGIN + script)
        done = subprocess.run([TOOL, "run", str(count), roles, str(retries), *(command or [*python, "worker.py"])], cwd=self.directory,
                              env=self.environment, capture_output=True, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done
