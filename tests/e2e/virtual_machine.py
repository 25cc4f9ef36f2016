"""A Debian kernel in QEMU, for what this machine's own kernel is not set up for.

The guest's files are an archive in memory, made anew for each start: programs of this machine with
the libraries that they need, Python, and one script that runs as process 1. What the guest prints
on its console is all that comes back.
"""
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys

# scripts/setup puts it there.
KERNEL = pathlib.Path(__file__).parents[2] / "build/guest-kernel/vmlinuz"
SECONDS_MAX = 600


def is_there():
    return shutil.which("qemu-system-x86_64") is not None and KERNEL.exists()


class Archive:
    """The files of the guest, in the "newc" format of cpio that the kernel unpacks."""

    def __init__(self):
        self.data = bytearray()
        self.names = set()

    def _add(self, name, mode, content=b""):
        if name in self.names:
            return
        self.names.add(name)
        encoded = name.encode() + b"\0"
        fields = [len(self.names), mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(encoded), 0]
        self.data += b"070701" + b"".join(b"%08X" % field for field in fields) + encoded
        self.data += b"\0" * (-len(self.data) % 4) + content
        self.data += b"\0" * (-len(self.data) % 4)

    def directory(self, name):
        name = name.strip("/")
        if not name:
            return
        self.directory(os.path.dirname(name))
        self._add(name, stat.S_IFDIR | 0o755)

    def text(self, name, content, mode=0o755):
        self.directory(os.path.dirname(name))
        self._add(name.strip("/"), stat.S_IFREG | mode, content.encode())

    def file(self, path, name=None):
        name = (name or str(path)).strip("/")
        self.directory(os.path.dirname(name))
        mode = 0o755 if os.access(path, os.X_OK) else 0o644
        self._add(name, stat.S_IFREG | mode, pathlib.Path(path).read_bytes())

    def program(self, path, name=None):
        """A program, and the shared libraries that it names."""
        self.file(path, name)
        told = subprocess.run(["ldd", str(path)], capture_output=True, text=True).stdout
        for library in re.findall(r"(/\S+) \(0x", told):
            self.file(library)

    def python(self):
        """Python with what its library needs to run, but the tests and tools that come with it."""
        self.program("/usr/bin/python3")
        home = pathlib.Path(f"/usr/lib/python{sys.version_info.major}.{sys.version_info.minor}")
        left_out = {"test", "idlelib", "tkinter", "ensurepip", "lib2to3", "pydoc_data",
                    "dist-packages", "turtledemo"}
        for path in sorted(home.rglob("*")):
            parts = path.relative_to(home).parts
            if path.is_file() and not left_out & set(parts) and not parts[0].startswith("config-"):
                if path.suffix == ".so":
                    self.program(path)
                else:
                    self.file(path)

    def bytes(self):
        end = Archive()
        end._add("TRAILER!!!", 0)
        return bytes(self.data + end.data)


def run(archive, place):
    """Starts the guest, whose /init must power it off, and returns what it printed."""
    image = pathlib.Path(place) / "guest.cpio"
    image.write_bytes(archive.bytes())
    command = ["qemu-system-x86_64", "-accel", "tcg", "-cpu", "max", "-m", "1024", "-smp", "1",
               "-nodefaults", "-nographic", "-no-reboot", "-serial", "stdio",
               "-kernel", str(KERNEL), "-initrd", str(image),
               "-append", "console=ttyS0 panic=-1 quiet random.trust_cpu=on"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          errors="replace", timeout=SECONDS_MAX)
    return done.stdout + done.stderr
