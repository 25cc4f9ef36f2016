"""The program is one file that needs nothing but the C library."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from yard import PATIENCE_S, TRAINYARD, own_mounts

# The glibc of Debian 12; a program that needs a later one does not run there.
GLIBC = (2, 36)
SHIPPED = "TRAINYARD_SHIPPED" in os.environ
JOB = """
name: bare
groups:
  - name: g
    memory: 10MB
    matrix: {i: 1..3}
    tasks: [{command: 'echo "{{\\"given\\": {i}}" > $TRAINYARD_RESULT'}]
"""
# A world of its own for all files that the yard reads; no process of it outlives it.
INSIDE = """
mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && mount -t tmpfs tmpfs "$0/tmp" &&
exec chroot "$0" /usr/bin/env -i PATH=/usr/local/bin:/usr/bin:/bin HOME=/root TRAINYARD_PROMISES=off /bin/sh -c "cd /root && $1"
"""


def output_of(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, errors="replace", check=True)
    return done.stdout


def essential_packages():
    """The packages that every Debian has, with their dependencies."""
    needs, essential = {}, []
    shown = "${db:Status-Status}\t${Package}\t${Essential}\t${Pre-Depends}, ${Depends}\n"
    for line in output_of("dpkg-query", "-W", "-f", shown).splitlines():
        status, package, is_essential, depends = line.split("\t")
        if status != "installed":
            continue
        needs[package] = re.findall(r"(?:^|[,|])\s*([a-z0-9][a-z0-9+.-]*)", depends)
        if is_essential == "yes":
            essential.append(package)
    found = set()
    while essential:
        package = essential.pop()
        if package in needs and package not in found:
            found.add(package)
            essential += needs[package]
    return sorted(found)


def copy_packages(packages, root):
    """Their files as they are on this machine, without what only people read."""
    files = [path for path in output_of("dpkg-query", "-L", *packages).splitlines()
             if path.startswith("/") and path != "/." and not re.match(r"/usr/share/(doc|man|locale|info)/", path)
             and os.path.lexists(path)]
    for place in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        if os.path.islink(f"/{place}"):
            (root / "usr" / place).mkdir(parents=True)
            (root / place).symlink_to(f"usr/{place}")
    names = "\0".join(path.lstrip("/") for path in files)
    packed = subprocess.Popen(["tar", "-C", "/", "--no-recursion", "--null", "-T", "-", "-cf", "-"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    unpacked = subprocess.Popen(["tar", "-C", root, "-xf", "-"], stdin=packed.stdout)
    packed.stdout.close()
    packed.stdin.write(names.encode())
    packed.stdin.close()
    assert packed.wait() == 0 and unpacked.wait() == 0


class BareDebian(unittest.TestCase):
    def setUp(self):
        release = pathlib.Path("/etc/os-release").read_text()
        if "VERSION_CODENAME=bookworm" not in release:
            self.skipTest("this is not Debian 12, of whose files the bare one is made")
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="trainyard-bare."))
        self.addCleanup(shutil.rmtree, self.root)
        copy_packages(essential_packages(), self.root)
        for place in ("proc", "dev", "tmp", "root", "usr/local/bin"):
            (self.root / place).mkdir(parents=True, exist_ok=True)
        shutil.copy(TRAINYARD, self.root / "usr/local/bin/trainyard")
        (self.root / "root/bare.yaml").write_text(JOB)

    def inside(self, command):
        return subprocess.run([*own_mounts("--pid", "--fork", "--kill-child"), "sh", "-c", INSIDE, self.root, command], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S)

    def test_runs_a_job_where_no_package_is_that_not_every_debian_has(self):
        libraries = {path.name.split(".so")[0] for path in self.root.glob("usr/lib/**/*.so*")}
        self.assertIn("libc", libraries)
        self.assertFalse(libraries & {"libstdc++", "libfmt", "libyaml-cpp", "libsqlite3", "libre2"})
        run = self.inside("trainyard run bare.yaml")
        self.assertEqual(run.returncode, 0, run)
        status = self.inside("trainyard status --json --all")
        self.assertEqual(status.returncode, 0, status)
        rows = {row["id"]: (row["word"], row["result"]) for row in json.loads(status.stdout)["tasks"]}
        self.assertEqual(rows, {f"i={i}": ("FINISHED", {"given": i}) for i in (1, 2, 3)})
        self.assertTrue((self.root / "root/runs/bare/reports/index.html").is_file())
        # The notifier looks for libcurl, which is not there.
        self.assertFalse(libraries & {"libcurl", "libcurl-gnutls"})
        (self.root / "root/told.yaml").write_text("notify: https://hooks.example.com/secret\n" + JOB)
        run = self.inside("trainyard run told.yaml --run-dir runs/told")
        self.assertEqual(run.returncode, 0, run)
        self.assertIn("no notifications of this run are sent: libcurl 7.85 or later was not found; 'apt install libcurl4' installs it",
                      run.stderr)


class OneFile(unittest.TestCase):
    def test_asks_for_the_c_library_alone_and_for_no_newer_one_than_debian_12s(self):
        needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", output_of("readelf", "-d", TRAINYARD)))
        self.assertIn("libc.so.6", needed)
        others = {name for name in needed if not re.match(r"(libc|libm|ld-linux.*)\.so\.", name)}
        self.assertEqual(others, set())
        versions = re.findall(r"GLIBC_(\d+)\.(\d+)", output_of("objdump", "-T", TRAINYARD))
        self.assertLessEqual(max((int(major), int(minor)) for major, minor in versions), GLIBC)

    @unittest.skipUnless(SHIPPED, "a build for development keeps its debug information, and is not optimised")
    def test_is_at_most_11_MB_with_its_debug_information_beside_it(self):
        self.assertLessEqual(os.stat(TRAINYARD).st_size, 11_000_000)
        sections = output_of("objdump", "--section-headers", "--wide", TRAINYARD)
        self.assertNotIn(".debug_info", sections)
        self.assertIn(".gnu_debuglink", sections)
        beside = output_of("objdump", "--section-headers", "--wide", TRAINYARD + ".debug")
        self.assertIn(".debug_info", beside)
        self.assertIn(os.path.basename(TRAINYARD) + ".debug",
                      output_of("readelf", "--string-dump=.gnu_debuglink", TRAINYARD))

