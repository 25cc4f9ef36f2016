#!/usr/bin/python3
"""scripts/setup, run by a user who is not root, with stand-ins of the programs of dpkg and apt."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
NOBODY = 65534
DPKG_QUERY = """
shift 3
for package; do
  case " $MISSING " in *" $package "*) ;; *) echo "installed $package" ;; esac
done
"""
APT_CACHE = """
[ -e "$LISTS" ] && echo '  Depends: linux-image-6.1.0-1-cloud-amd64'
"""
APT_GET = """
echo "apt-get $*" >> "$LOG"
case "$*" in
  *download\\ linux-image-6.1.0-1-cloud-amd64) echo kernel > kernel.deb ;;
  *update) touch "$LISTS" ;;
  *) exit 100 ;;
esac
"""
DPKG = """
mkdir -p "$3/boot"
cp "$2" "$3/boot/vmlinuz-6.1.0-1-cloud-amd64"
"""


@unittest.skipUnless(os.uname().machine == "x86_64", "the guest is one of x86_64")
class SetupWithoutRoot(unittest.TestCase):
    def setUp(self):
        self.place = pathlib.Path(tempfile.mkdtemp(prefix="trainyard-setup-"))
        self.addCleanup(shutil.rmtree, self.place)
        (self.place / "scripts").mkdir()
        shutil.copy(ROOT / "scripts/setup", self.place / "scripts")
        (self.place / "bin").mkdir()
        for program in ("bash", "cp", "dirname", "env", "find", "mkdir", "mktemp", "mv", "rm", "sed", "touch", "tr", "uname"):
            (self.place / "bin" / program).symlink_to(shutil.which(program))
        for program, script in (("dpkg-query", DPKG_QUERY), ("apt-cache", APT_CACHE), ("apt-get", APT_GET), ("dpkg", DPKG)):
            self.write(program, script)
        self.kernel = self.place / "build/guest-kernel/vmlinuz"
        self.lists = self.place / "lists"
        self.lists.touch()

    def write(self, program, script):
        path = self.place / "bin" / program
        path.write_text(f"#!/bin/sh\n{script}")
        path.chmod(0o755)

    def setup(self, missing="", purpose="check"):
        """The exit code, what was written to standard error, and the calls of apt-get."""
        log = self.place / "log"
        log.write_text("")
        other = {}
        if os.geteuid() == 0:
            other = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
            for path in (self.place, log, self.lists):
                if path.exists():
                    os.chown(path, NOBODY, NOBODY)
        done = subprocess.run([self.place / "scripts/setup", purpose], capture_output=True, text=True, cwd=self.place, **other,
                              env={"PATH": str(self.place / "bin"), "MISSING": missing, "LOG": str(log), "LISTS": str(self.lists)})
        return done.returncode, done.stderr, log.read_text().splitlines()

    def test_fetches_the_kernel_of_the_guest(self):
        self.assertEqual(self.setup(), (0, "", ["apt-get -q download linux-image-6.1.0-1-cloud-amd64"]))
        self.assertEqual(self.kernel.read_text(), "kernel\n")
        self.assertEqual(self.setup(), (0, "", []), "it is there")

    def test_asks_for_root_where_a_package_is_missing(self):
        self.assertEqual(self.setup("zsh fish"), (1, "setup: neither root nor sudo; ask for: apt-get install zsh fish\n", []))

    def test_installs_what_only_the_slow_tests_and_the_formatter_need_for_no_other_purpose(self):
        self.write("dpkg-query", "")  # No package is there.
        build, test, ci, check = (self.setup(purpose=purpose)[1].partition("apt-get install ")[2].split() for purpose in ("build", "test", "ci", "check"))
        slow = ["zsh", "fish", "mandoc", "debootstrap", "mkdocs", "python3-pymdownx", "qemu-system-x86"]
        self.assertEqual([package for package in [*slow, "clang-format-19", "clang-19"] if package in test], [])
        self.assertEqual(test[:len(build)], build)
        self.assertLess({"strace", "python3-yaml", "openmpi-bin"}, {*test} - {*build})
        self.assertEqual({*ci} - {*test}, {"clang-format-19"})
        self.assertLessEqual({*ci, *slow}, {*check})

    def test_asks_for_root_where_the_lists_of_packages_have_no_kernel(self):
        self.lists.unlink()
        code, error, calls = self.setup()
        self.assertEqual((code, error.splitlines()[-1]), (1, "setup: neither root nor sudo; ask for: apt-get update"), calls)
        self.write("sudo", 'echo sudo >> "$LOG"\nexec "$@"\n')
        code, error, calls = self.setup()
        self.assertEqual((code, calls[1:]), (0, ["sudo", "apt-get -q -o DPkg::Lock::Timeout=300 update",
                                                 "apt-get -q download linux-image-6.1.0-1-cloud-amd64"]), error)


if __name__ == "__main__":
    unittest.main()
