"""Runs as process 1 of a guest (virtual_machine.py): hard limits kept by its kernel.

Sets the machine up, gives a control group to a user, as systemd does, and has the tests below run
in it by that user.
"""
import ctypes
import os
import pathlib
import subprocess
import sys
import unittest

GROUPS = pathlib.Path("/sys/fs/cgroup")
OURS = GROUPS / "user"  # Delegated to the user.
USER = 1000
LIMITED = "- name: g\n  memory: 100MB\n  memory-limit: hard\n"
libc = ctypes.CDLL(None, use_errno=True)

if os.getpid() != 1:
    from yard import YardTest
else:
    YardTest = unittest.TestCase


class MemoryLimit(YardTest):
    def setUp(self):
        super().setUp()
        self.write("hog.py", "x = b'x' * 300_000_000\nprint(len(x))\n")
        self.write("small.py", "x = b'x' * 20_000_000\nprint(len(x))\n")

    def run_groups(self, text, expect=1):
        self.trainyard("run", self.job("groups:\n" + text), expect=expect)
        return {task["id"]: task for task in self.status()["tasks"]}

    def groups_left(self):
        return [path.name for path in OURS.iterdir() if path.name.startswith("trainyard-")]

    def test_is_kept_by_the_kernel_where_a_group_is_ours(self):
        text = self.trainyard("doctor", expect=0).stdout
        self.assertIn(f"memory-limit: hard is enforced by the kernel (control group '{OURS}'", text)

    def test_ends_a_task_that_takes_more_with_all_its_processes_and_no_other(self):
        tasks = self.run_groups(
            LIMITED + "  tasks:\n"
            "  - {id: hog, command: [python3, hog.py]}\n"
            "  - {id: of-a-shell, command: 'python3 hog.py; echo survived'}\n"
            "  - {id: small, command: [python3, small.py]}\n"
            "  - {id: no-limit, command: [python3, hog.py], memory: 400MB, memory-limit: none}\n")
        for name in ("hog", "of-a-shell"):
            self.assertEqual(tasks[name]["end"], "out-of-memory", tasks[name])
            self.assertRegex(tasks[name]["message"],
                             r"^used more memory than its limit of 100 MB \(memory-limit: hard\)(; it used at least [\d.]+ MB)?$")
            self.assertEqual(tasks[name]["attempt"], 1)
        self.assertEqual(self.text("runs/job/g/of-a-shell/stdout.log"), "")
        for name in ("small", "no-limit"):
            self.assertEqual(tasks[name]["end"], "finished", tasks[name])
        self.assertTrue(20_000_000 <= tasks["small"]["memory_peak_bytes"] <= 100_000_000, tasks["small"])
        self.assertFalse(tasks["small"]["memory_peak_at_least"], "its group had so much")
        self.assertEqual(self.groups_left(), [])

    def test_holds_for_one_that_is_forked_from_what_has_imported(self):
        tasks = self.run_groups(
            LIMITED + "  preload: [json]\n  tasks:\n"
            "  - {id: hog, command: [python3, hog.py]}\n"
            "  - {id: small, command: [python3, small.py]}\n")
        self.assertEqual(tasks["hog"]["end"], "out-of-memory", tasks["hog"])
        self.assertEqual(tasks["small"]["end"], "finished", tasks["small"])
        self.assertGreaterEqual(tasks["small"]["memory_peak_bytes"], 20_000_000, "of a fork, too")
        self.assertEqual(self.groups_left(), [])

    def test_ends_what_a_task_leaves_behind_even_if_it_hides(self):
        self.write("leaves.py", "import os\n"
                   "if os.fork() == 0:\n"
                   "    os.setsid()\n"
                   "    os.execve('/bin/sh', ['sh', '-c', 'echo $$ > hidden; while :; do :; done'], {})\n"
                   "while not os.path.exists('hidden') or not open('hidden').read(): pass\n")
        tasks = self.run_groups(LIMITED + "  tasks:\n"
                                "  - {id: leaves, command: [python3, leaves.py]}\n", expect=0)
        self.assertEqual(tasks["leaves"]["end"], "finished", tasks["leaves"])
        pid = int((self.directory / "hidden").read_text())
        self.assertFalse(pathlib.Path(f"/proc/{pid}").exists())
        self.assertEqual(self.groups_left(), [])

    def test_rises_with_the_promise_when_a_task_trains_again(self):
        self.write("grows.py", "import sys; sys.path.insert(0, '/tests'); import trainyard\n"
                   "x = b'x' * 78_000_000\n"
                   "for number, attempt in enumerate(trainyard.attempts()):\n"
                   "    with attempt:\n"
                   "        if number == 0: raise MemoryError()\n"
                   "        y = b'y' * 22_000_000\n"
                   "        trainyard.result(tries=number + 1)\n")
        tasks = self.run_groups(LIMITED + "  two-phase: true\n"
                                "  tasks:\n  - {id: grows, command: [python3, grows.py]}\n", expect=0)
        self.assertEqual(tasks["grows"]["end"], "finished", tasks["grows"])
        self.assertEqual(tasks["grows"]["attempt"], 1)
        self.assertEqual(tasks["grows"]["result"], {"tries": 2})
        self.assertEqual(self.groups_left(), [])

    def test_says_what_is_wrong_with_a_program_as_ever(self):
        self.write("train.sh", "true\n")
        tasks = self.run_groups(LIMITED + "  tasks:\n"
                                "  - {id: a, command: [./train.sh]}\n"
                                "  - {id: b, command: [./none]}\n")
        self.assertEqual(tasks["a"]["message"], "cannot run './train.sh': permission denied; is it "
                         "executable? try 'chmod +x ./train.sh' or 'sh ./train.sh'")
        self.assertEqual(tasks["b"]["message"], "cannot run './none': no such file or directory")
        self.assertEqual(self.groups_left(), [])

    def test_moves_whoever_is_in_the_group_into_a_leaf_of_it_once(self):
        self.run_groups(LIMITED + "  tasks:\n  - {id: a, command: [python3, small.py]}\n", expect=0)
        # This test, too.
        self.assertEqual(pathlib.Path("/proc/self/cgroup").read_text(), "0::/user/trainyard\n")
        self.assertFalse((OURS / "trainyard" / "trainyard").exists())


class NotOurs(YardTest):
    def test_is_kept_by_looking(self):
        text = self.trainyard("doctor", expect=0).stdout
        self.assertIn("memory-limit: hard is enforced by a check each second (the control group "
                      "'/sys/fs/cgroup/other' is not ours to change; start it with", text)


def tests_in(group, names):
    def become_user():
        (group / "cgroup.procs").write_text(str(os.getpid()))
        os.setgid(USER)
        os.setuid(USER)
    return subprocess.run([sys.executable, "-m", "unittest", "-v", *names], cwd="/tests",
                          preexec_fn=become_user, stderr=subprocess.STDOUT,
                          env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "HOME": "/tmp",
                               "TRAINYARD": "/usr/bin/trainyard", "PATH": "/usr/bin:/bin"}).returncode


def main():
    for kind, where in (("proc", "/proc"), ("sysfs", "/sys"), ("cgroup2", "/sys/fs/cgroup"),
                        ("devtmpfs", "/dev"), ("tmpfs", "/tmp")):
        if libc.mount(kind.encode(), where.encode(), kind.encode(), 0, None) != 0:
            print(f"cannot mount {where}: {os.strerror(ctypes.get_errno())}")
    os.makedirs("/dev/shm", exist_ok=True)
    libc.mount(b"tmpfs", b"/dev/shm", b"tmpfs", 0, None)
    os.chmod("/tmp", 0o1777)
    (GROUPS / "cgroup.subtree_control").write_text("+memory")
    OURS.mkdir()
    (GROUPS / "other").mkdir()
    for path in (OURS, OURS / "cgroup.procs", OURS / "cgroup.subtree_control"):
        os.chown(path, USER, USER)
    codes = [tests_in(OURS, ["guest_memory_limit.MemoryLimit"]),
             tests_in(GROUPS / "other", ["guest_memory_limit.NotOurs"])]
    print(f"GUEST ENDED {codes}", flush=True)
    os.sync()
    libc.reboot(0x4321FEDC)  # Power off.


if __name__ == "__main__":
    main()
