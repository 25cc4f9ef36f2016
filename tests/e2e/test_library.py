"""The library as a stranger meets it: installed, found by CMake, and used by a program of its own."""
import pathlib

from block_programs import QUICK_LINKER, install, with_cache_in
from yard import PATIENCE_S, YardTest, json, os, subprocess

BUILD = os.environ.get("TRAINYARD_BUILD", "")
EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "library"


class Library(YardTest):
    def test_the_example_is_built_against_the_installed_package_and_runs(self):
        prefix, build = self.directory / "prefix", self.directory / "build"
        install(BUILD, prefix)
        for words in (["-G", "Ninja", "-S", EXAMPLE, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}",
                       f"-DCMAKE_CXX_COMPILER={os.environ['CXX']}", *QUICK_LINKER],
                      ["--build", build]):
            # A compiler beside other tests may take as long as it does.
            done = subprocess.run(["cmake", *words], capture_output=True, text=True, env=with_cache_in(self.directory))
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.write("trainyard.yaml", "utilization-limit:\n  cpu: 100%\n")
        done = subprocess.run([build / "folds"], cwd=self.directory, capture_output=True, text=True, timeout=PATIENCE_S,
                              env=self.environment)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = dict(line.split(" ", 1) for line in done.stdout.splitlines())
        self.assertEqual(list(lines), [f"fold-{k}" for k in range(10)])
        self.assertEqual(json.loads(lines["fold-3"]), {"mean": 2.0, "device": "cpu"})
        # The run of the program can be looked at as any run.
        self.assertEqual(set(self.words("runs/yard").values()), {"FINISHED"})
        # It goes on by being run again, and not from the command line.
        refused = self.trainyard("run", "--resume", "runs/yard", expect=2)
        self.assertIn("belongs to a program with trainyard's library: run that program again to resume it", refused.stderr)
