"""Agents on other machines, for tests: what leads to them in the place of ssh, real sshd's on loopback, and the processes that an agent is."""
import os
import pathlib
import shutil
import socket
import subprocess

from yard import PATIENCE_S, TRAINYARD, wait_until

# A stand-in for ssh: it takes the host after its options, and the command for its shell. A file of its name may change both.
STAND_IN = """#!/bin/sh
while :; do
  case $1 in
    -o | -F | -l | -p) shift 2 ;;
    -*) shift ;;
    *) break ;;
  esac
done
export MACHINE=$1
shift
told=$*
[ -e "$0.$MACHINE" ] && . "$0.$MACHINE"
exec /bin/sh -c "$told"
"""


def processes():
    """The number, parent and command line of all visible processes."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")[:-1]
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z":
            found[int(entry.name)] = (int(fields[1]), [word.decode(errors="replace") for word in words])
    return found


def environment_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def agents(directory):
    """(relay, agent) of each that runs for the yard of a test: the relay is what ssh started, 0 where that has gone."""
    everybody = processes()
    mine = [pid for pid, (_, words) in everybody.items() if words[:1] == ["trainyard-agent"]
            and f"XDG_RUNTIME_DIR={directory}".encode() in environment_of(pid)]
    relay = {pid: everybody.get(everybody[pid][0], (0, []))[1][1:3] == ["agent", "--stdio"] for pid in mine}
    return [(everybody[pid][0] if relay[pid] else 0, pid) for pid in sorted(mine)]


class SshServer:
    """A real sshd of the test's own, and how its client finds it."""

    def __init__(self, directory, name, address="127.0.0.1", on=()):
        self.directory = pathlib.Path(directory) / f"sshd-{name}"
        self.directory.mkdir()
        self.directory.chmod(0o700)
        self.name, self.address, self.on = name, address, list(on)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        for key in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.directory / key], check=True, timeout=PATIENCE_S)
        (self.directory / "authorized").write_text((self.directory / "user.pub").read_text())
        host = " ".join((self.directory / "host.pub").read_text().split()[:2])
        (self.directory / "known").write_text(f"[{address}]:{self.port} {host}\n")
        (self.directory / "home").mkdir()
        # A home of its own: shells of sessions read no settings of the user who runs the tests.
        (self.directory / "server.conf").write_text(
            f"Port {self.port}\nListenAddress {address}\nHostKey {self.directory}/host\nPidFile none\n"
            f"AuthorizedKeysFile {self.directory}/authorized\nStrictModes no\nUsePAM no\nPasswordAuthentication yes\n"
            f"PermitRootLogin yes\nSetEnv XDG_RUNTIME_DIR={directory}/.sockets MACHINE={name} HOME={self.directory}/home\n")
        self.process = None
        self.start()

    def client_lines(self):
        return (f"Host {self.name}\n  HostName {self.address}\n  Port {self.port}\n  IdentityFile {self.directory}/user\n"
                f"  IdentitiesOnly yes\n  UserKnownHostsFile {self.directory}/known\n  StrictHostKeyChecking yes\n")

    def start(self):
        if os.geteuid() == 0:
            pathlib.Path("/run/sshd").mkdir(exist_ok=True)
        program = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin")
        log = open(self.directory / "log", "ab")
        self.process = subprocess.Popen([*self.on, program, "-D", "-e", "-f", self.directory / "server.conf"], stdout=log, stderr=log)
        log.close()
        wait_until("sshd", self.listens)

    def listens(self):
        log = (self.directory / "log").read_text()
        assert self.process.poll() is None, log
        return "Server listening" in log

    def end(self):
        self.process.kill()
        self.process.wait()


def settings(directory, ssh, lease="60s", program=TRAINYARD):
    return ["--set", f"agent.ssh={ssh}", "--set", f"agent.program={program}", "--set", f"agent.lease={lease}",
            # A machine joins a run that is resumed, or one at work, with its first sample.
            "--set", "scheduler.interval=100ms"]
