"""`memory-limit: hard` where control groups of version 2 are ours: a real kernel keeps it.

This machine's control groups may be of version 1, or somebody else's. So the tests are those of
guest_memory_limit.py, run in a guest that has them.
"""
import pathlib
import re
import tempfile
import unittest

import virtual_machine
import yard

HERE = pathlib.Path(__file__).parent


class MemoryLimit(unittest.TestCase):
    def test_is_kept_by_a_kernel_with_control_groups_of_version_2(self):
        self.assertTrue(virtual_machine.is_there(), "no QEMU or no kernel for it: scripts/setup test")
        archive = virtual_machine.Archive()
        archive.python()
        for program in ("/bin/sh", "/bin/bash", "/bin/chmod"):
            archive.program(program)
        archive.program(yard.TRAINYARD, "/usr/bin/trainyard")
        for name in ("environment.py", "yard.py", "guest_memory_limit.py"):
            archive.file(HERE / name, f"/tests/{name}")
        archive.file(HERE.parents[1] / "python/trainyard/client.py", "/tests/trainyard.py")
        for place in ("proc", "sys", "dev", "tmp"):
            archive.directory(place)
        archive.text("/init", "#!/usr/bin/python3\n" + (HERE / "guest_memory_limit.py").read_text())
        with tempfile.TemporaryDirectory() as place:
            printed = virtual_machine.run(archive, place)
        well = "GUEST ENDED [0, 0]" in printed
        # Tests that were not found did not run.
        if not well or re.findall(r"Ran (\d+) tests? in", printed) != ["7", "1"]:
            self.fail(printed)
