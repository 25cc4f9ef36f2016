"""Another user makes, removes and locks files wherever both users may write, while a run goes on, is killed and is resumed: every task finishes, each once."""
import os
import shutil
import signal
import subprocess
import sys

from scenario import Scenario, pause
from yard import TRAINYARD, directory_in_memory

ONE, OTHER = 23001, 23002
PLACES = ("/tmp", "/tmp/trainyard-ports", "/tmp/nvidia-mps", "/tmp/reservations")
# Makes entries of every kind under names that a run may take, removes and locks what it can.
STRANGER = """
import fcntl, os, random, socket, struct, sys
chance, host, kept = random.Random(sys.argv[1]), socket.gethostname(), []
def lock(file):
    for kind in (fcntl.F_RDLCK, fcntl.F_WRLCK):
        fcntl.fcntl(file, 37, struct.pack("hhllhh", kind, 0, 0, 0, 0, 0))  # F_OFD_SETLK
def some_name():
    return chance.choice((str(chance.randrange(20000, 20100)), "nvidia-cuda-mps-control.pid", "trainyard-drain.0.x", f"trainyard-queue-{host}-23001",
                          "trainyard-%06x" % chance.randrange(1 << 24), "%016d-%012x" % (chance.randrange(10**15), chance.randrange(1 << 40))))
def act(place):
    path, there = os.path.join(place, some_name()), [os.path.join(place, name) for name in os.listdir(place)] + [sys.argv[2] + "/run/lock"]
    def opened():
        kept.append(os.open(chance.choice(there), os.O_RDONLY | os.O_NONBLOCK))
        return kept[-1]
    def make(data):
        kept.append(os.open(path, os.O_CREAT | os.O_RDWR, 0o644))
        os.write(kept[-1], data)
        lock(kept[-1])
    chance.choice((lambda: os.mkfifo(path, 0o666), lambda: os.mkdir(path, 0o777), lambda: socket.socket(socket.AF_UNIX).bind(path),
                   lambda: os.symlink(chance.choice(("/dev/zero", "/etc/passwd", "/nowhere", place)), path), lambda: os.unlink(chance.choice(there)),
                   lambda: lock(opened()), lambda: make(chance.randbytes(300)), lambda: make(os.read(opened(), 9999))))()
while True:
    try: act(chance.choice(sys.argv[3:]))
    except OSError: pass
    while len(kept) > 200: os.close(kept.pop(0))
"""


class Users(Scenario):
    seeds = 24

    def play(self):
        if os.geteuid() != 0 or not shutil.which("setpriv"):
            self.skipTest("needs root and setpriv, to be two users")
        one, other = (["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] for user in (ONE, OTHER))
        if directory_in_memory() is None or subprocess.run([*one, TRAINYARD, "--version"], capture_output=True).returncode != 0:
            self.skipTest("needs room in /dev/shm and a program that every user can execute")
        ranks = [{"id": f"r{number}", "ranks": 2, "command": "sleep 0.2"} for number in range(4)]
        self.task_job(30, longest=0.5, more={"ranks": ranks})
        self.environment |= {"TRAINYARD_PROMISES": PLACES[3], "TMPDIR": "/tmp", "HOME": str(self.directory)}
        del self.environment["XDG_RUNTIME_DIR"]
        self.directory.chmod(0o755)
        for path in (self.directory, *self.directory.iterdir()):
            os.chown(path, ONE, ONE)
        world = self.own_world("mount -t tmpfs -o mode=1777 none /tmp" + "".join(f" && mkdir -m 1777 {place}" for place in PLACES[1:]))
        self.prefix = [*world, *one]
        self.started.append(stranger := subprocess.Popen([*world, *other, sys.executable, "-c", STRANGER, str(self.seed), str(self.directory), *PLACES]))
        yard = self.execute("job.yaml", "--run-dir", self.run_dir)
        for _ in range(2):
            pause(self.chance.uniform(0.2, 2))
            self.remember_exited()
            yard.send_signal(signal.SIGKILL)
            self.judge(yard.wait(120), self.text("output"), killed=True)
            self.count_left()
            yard = self.execute(*self.resumed_words())
        pause(self.chance.uniform(0, 2))
        self.assertIsNone(stranger.poll(), "the other user has ended")
        stranger.kill()
        self.judge(yard.wait(120), self.text("output"))
        self.resume_to_the_end()
