"""Two machines of a test, as far as one can be two: each with a network, a name and an address of its own, joined by
one cable, and no way out. Made of namespaces, which users may make where the kernel lets them.
"""
import contextlib
import os
import shutil
import socket
import subprocess

from yard import PATIENCE_S, wait_until

FIRST, SECOND = "10.77.0.1", "10.77.0.2"


class Machine:
    def __init__(self, name, inside=()):
        """`inside`: the words by which a command is run on another machine, whose users this one has, too."""
        self.holder = subprocess.Popen(
            [*inside, "unshare", "-n", "-u", *([] if inside else ["-r"]), "sh", "-c",
             f"hostname {name} && ip link set lo up && echo ready && exec sleep infinity"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if self.holder.stdout.readline() != "ready\n":
            self.holder.kill()
            raise OSError("no namespaces here: " + self.holder.communicate()[1])
        self.on = ["nsenter", "-t", str(self.holder.pid), "-U", "-n", "-u", "--preserve-credentials", "--"]

    def run(self, *words):
        subprocess.run([*self.on, *words], check=True, timeout=PATIENCE_S)

    def end(self):
        self.holder.kill()
        self.holder.communicate()


@contextlib.contextmanager
def two():
    """The first and the second; OSError: this place does not allow it."""
    with contextlib.ExitStack() as stack:
        first = Machine("machine-a")
        stack.callback(first.end)
        second = Machine("machine-b", first.on)
        stack.callback(second.end)
        first.run("ip", "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", str(second.holder.pid))
        for machine, address in ((first, FIRST), (second, SECOND)):
            machine.run("ip", "addr", "add", f"{address}/24", "dev", "cable")
            machine.run("ip", "link", "set", "cable", "up")
        yield first, second


class NatsServer:
    """A real one. `on`: the words by which a command is run on its machine."""

    def __init__(self, directory, address="127.0.0.1", port=4222, login=("--auth", "s3cret"), on=()):
        program = shutil.which("nats-server", path=os.environ["PATH"] + ":/usr/sbin")
        self.address, self.port, self.on = address, port, list(on)
        self.command = [*on, program, "--addr", address, "--port", str(port), *login, "--log", str(directory / "nats.log")]
        self.process = None
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command)
        wait_until("the server of NATS", lambda: self.process.poll() is not None or self.answers())
        assert self.process.poll() is None, "the server of NATS has exited"

    def answers(self):
        if self.on:
            probe = f"import socket; socket.create_connection(('{self.address}', {self.port}), 5)"
            return subprocess.run([*self.on, "/usr/bin/python3", "-c", probe], stderr=subprocess.DEVNULL, check=False).returncode == 0
        with contextlib.suppress(OSError), socket.create_connection((self.address, self.port), 5):
            return True
        return False

    def kill(self):
        self.process.kill()
        self.process.wait()
