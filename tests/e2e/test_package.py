"""The components of the installed package, where the libraries are not that a component does not need.

What is hidden lies in an overlay of /usr, in a mount namespace that ends with the command.
"""
import json
import mmap
import pathlib
import re
import shutil
import tempfile
import unittest

from block_programs import QUICK_LINKER, install, with_cache_in
from yard import PATIENCE_S, os, own_mounts, subprocess

BUILD = os.environ.get("TRAINYARD_BUILD", "")
PRESETS = pathlib.Path(__file__).resolve().parents[2] / "CMakePresets.json"
CMAKE = """cmake_minimum_required(VERSION 3.25)
project(program LANGUAGES CXX)
{find}
add_executable(program main.cc)
target_link_libraries(program PRIVATE {target})
"""
PIPELINE = """
#include <cstdio>
#include "trainyard/event_bus.h"
#include "trainyard/pipeline.h"
struct Loop : trainyard::Context {
  int step = 0;
  static constexpr auto kept = trainyard::keep<&Loop::step>;
};
int main() {
  trainyard::Pipeline<Loop> loop;
  int sum = 0;
  loop.use("count", [](Loop& context) { ++context.step; });
  loop.use("sum", [&](Loop& context) { sum += context.step; });
  if (!loop.run({.max_steps = 4})) return 1;
  std::printf("%d\\n", sum);
}
"""
RANKS = """
#include <cstdio>
#include <nlohmann/json.hpp>
#include "trainyard/rank_executor.h"
#include "trainyard/rank_program.h"
struct Adder : trainyard::Executor {
  explicit Adder(const trainyard::Arguments& given) : by(given.get<double>("by")) {}
  trainyard::Shareable execute(std::string_view, const trainyard::Shareable&, trainyard::RankContext& context,
                               std::stop_token) override {
    trainyard::Shareable reply;
    reply.set("sum", by + context.rank().value());
    return reply;
  }
  double by;
};
int main() {
  trainyard::ComponentRegistry registry;
  registry.add<Adder>("adder", {trainyard::argument("by", 1.0)});
  if (const auto code = trainyard::run_as_rank(registry)) return *code;
  trainyard::RankExecutor adder({.ranks = 2, .executor = "adder",
                                 .components = "[{id: adder, type: adder, args: {by: 40.0}}]",
                                 .result = trainyard::RankResult::All}, registry);
  trainyard::RankContext context;
  for (const trainyard::Shareable& reply : adder.execute_all("add", {}, context)) {
    std::printf("%s %s\\n", reply.message().c_str(), reply.values().dump().c_str());
  }
}
"""
# Only returns JSON: return types are no part of a function's name for the linker.
TASK = """
#include <nlohmann/json.hpp>
#include "trainyard/trainyard.h"
struct Fold : trainyard::Task {
  trainyard::Json train(const trainyard::Device&) override { return {{"accuracy", 0.5}}; }
};
int main() {
  trainyard::TaskGroup folds("folds");
  folds.add<Fold>();
  trainyard::Yard yard;
  return yard.run(folds) ? 0 : 1;
}
"""
# Takes away what is named first, then does the rest.
WITHOUT = """set -e
mount -t tmpfs none "$1"
mkdir "$1/changed" "$1/work"
mount -t overlay overlay -o "lowerdir=/usr,upperdir=$1/changed,workdir=$1/work" /usr
for name in $2; do
  rm -rf /usr/include/$name* /usr/lib/*/lib$name* /usr/lib/*/cmake/$name* /usr/share/cmake/$name*
done
shift 2
exec "$@"
"""


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = pathlib.Path(tempfile.mkdtemp(prefix="trainyard-program-"))
        cls.addClassCleanup(shutil.rmtree, cls.place)
        cls.prefix = cls.place / "prefix"
        install(BUILD, cls.prefix)

    def setUp(self):
        self.directory = self.place / "test"
        self.addCleanup(shutil.rmtree, self.directory)
        (self.directory / "overlay").mkdir(parents=True)

    def without(self, libraries, *words):
        return subprocess.run([*own_mounts(), "sh", "-c", WITHOUT, "sh", self.directory / "overlay", " ".join(libraries), *words],
                              capture_output=True, text=True, stdin=subprocess.DEVNULL, env=with_cache_in(self.place))

    def configure(self, libraries, find, target="trainyard::trainyard", program=""):
        # CMake does not search again for libraries that it has found.
        shutil.rmtree(self.directory / "build", ignore_errors=True)
        (self.directory / "main.cc").write_text(program)
        (self.directory / "CMakeLists.txt").write_text(CMAKE.format(find=find, target=target))
        return self.without(libraries, "cmake", "-G", "Ninja", "-S", self.directory, "-B", self.directory / "build",
                            f"-DCMAKE_PREFIX_PATH={self.prefix}", f"-DCMAKE_CXX_COMPILER={os.environ['CXX']}", *QUICK_LINKER)

    def output_of(self, libraries, find, target, program):
        """The output of the program, built and run without the libraries."""
        configured = self.configure(libraries, find, target, program)
        self.assertEqual(configured.returncode, 0, configured.stdout + configured.stderr)
        built = self.without(libraries, "cmake", "--build", self.directory / "build")
        self.assertEqual(built.returncode, 0, built.stdout + built.stderr)
        ran = self.without(libraries, self.directory / "build/program")
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        return ran.stdout

    def libraries_of_the_program(self):
        shown = subprocess.run(["readelf", "-d", self.directory / "build/program"], capture_output=True, text=True,
                               check=True).stdout
        return {name.split(".so")[0] for name in re.findall(r"\(NEEDED\).*\[(.*)\]", shown)}

    def test_make_build_makes_every_file_that_is_installed(self):
        presets = json.loads(PRESETS.read_text())["buildPresets"]
        targets = next(preset["targets"] for preset in presets if preset["name"] == "release")
        commands = subprocess.run(["ninja", "-C", BUILD, "-t", "commands", *targets], capture_output=True, text=True, check=True).stdout
        scripts = "".join(each.read_text() for each in pathlib.Path(BUILD).rglob("cmake_install.cmake"))
        made = re.findall(rf'"{re.escape(BUILD)}/([^"$]+)"', scripts)
        installed = {pathlib.Path(path) for path in made if not path.endswith(".cmake")}
        self.assertIn(pathlib.Path("libtrainyard.a"), installed)
        # A command names what it makes as seen from the build, or from its own directory.
        missing = {path for path in installed
                   if not re.search(rf"(?<![\w/])({re.escape(str(path))}|{re.escape(path.name)})(?![\w.])", commands)}
        self.assertEqual(missing, set())

    def test_the_manual_page_and_completions_are_where_man_and_shells_look_for_them(self):
        share = self.prefix / "share"
        self.assertIn(".SH SYNOPSIS\n", (share / "man/man1/trainyard.1").read_text())
        for path, shell in (("bash-completion/completions/trainyard", "bash"), ("zsh/site-functions/_trainyard", "zsh"),
                            ("fish/vendor_completions.d/trainyard.fish", "fish")):
            printed = subprocess.run([self.prefix / "bin/trainyard", "completion", shell], capture_output=True, text=True,
                                     check=True).stdout
            self.assertEqual((share / path).read_text(), printed)
        shown = subprocess.run(["man", "-M", share / "man", "trainyard"], capture_output=True, text=True, timeout=PATIENCE_S,
                               env={**os.environ, "MANPAGER": "cat", "MANWIDTH": "100"})
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))
        self.assertIn("run many training tasks", shown.stdout)

    def test_a_pipeline_is_built_and_runs_where_neither_sqlite_nor_yaml_cpp_nor_fmt_nor_re2_is(self):
        output = self.output_of(["sqlite3", "yaml-cpp", "fmt", "re2"], "find_package(trainyard REQUIRED COMPONENTS pipeline)",
                                "trainyard::pipeline", PIPELINE)
        self.assertEqual(output, "10\n")
        self.assertLessEqual(self.libraries_of_the_program(), {"libstdc++", "libm", "libgcc_s", "libc"})

    def test_ranks_are_built_and_run_where_neither_sqlite_nor_fmt_nor_re2_is(self):
        output = self.output_of(["sqlite3", "fmt", "re2"], "find_package(trainyard REQUIRED COMPONENTS ranks)",
                                "trainyard::ranks", RANKS)
        self.assertEqual(output, ' {"sum":40.0}\n {"sum":41.0}\n')
        self.assertLessEqual(self.libraries_of_the_program(),
                             {"libyaml-cpp", "libstdc++", "libm", "libgcc_s", "libc"})

    def test_a_program_whose_json_is_of_another_type_is_not_linked(self):
        for target, program in (("trainyard::pipeline", PIPELINE), ("trainyard::trainyard", TASK)):
            for macro in ("", "#define JSON_DIAGNOSTICS 1"):
                with self.subTest(target, macro=macro):
                    done = self.configure([], "find_package(trainyard REQUIRED)", target, macro + program)
                    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                    built = self.without([], "cmake", "--build", self.directory / "build")
                    self.assertEqual(built.returncode != 0, macro != "", built.stdout + built.stderr)
                    self.assertEqual("nlohmann_json_is_that_of_the_archives(nlohmann::json_abi_diag" in built.stdout, macro != "")

    def test_the_library_which_is_the_default_is_not_found_where_sqlite_or_re2_is_not(self):
        for find, missing, named in (("find_package(trainyard REQUIRED)", "sqlite3", "SQLite3"),
                                     ("find_package(trainyard REQUIRED COMPONENTS library)", "re2", "libre2-dev in Debian")):
            done = self.configure([missing], find)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertIn(named, " ".join(done.stderr.split()))

    def test_ranks_are_not_found_where_yaml_cpp_is_not(self):
        done = self.configure(["yaml-cpp"], "find_package(trainyard REQUIRED COMPONENTS pipeline ranks)")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("yaml-cpp", done.stderr)

    def test_a_component_that_is_not_there_is_named_with_those_that_are(self):
        done = self.configure([], "find_package(trainyard REQUIRED COMPONENTS pipelines)")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("there is no component 'pipelines' of trainyard, there are: pipeline, ranks, workers, library",
                      " ".join(done.stderr.split()))

    def test_one_that_is_only_wished_for_is_left_out(self):
        done = self.configure([], "find_package(trainyard REQUIRED COMPONENTS pipeline OPTIONAL_COMPONENTS pipelines)\n"
                                  'message(NOTICE "found: ${trainyard_pipeline_FOUND}, ${trainyard_pipelines_FOUND}.")',
                              "trainyard::pipeline")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("found: TRUE, FALSE.", done.stderr)

    def test_neither_the_program_nor_an_archive_names_the_directory_in_which_it_was_built(self):
        source = os.fsencode(pathlib.Path(__file__).resolve().parents[2])
        archives = list((self.prefix / "lib").glob("*.a"))
        self.assertTrue(archives)
        for path in (self.prefix / "bin/trainyard", *archives):
            with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as content:
                at = content.find(source)
                self.assertEqual(at, -1, f"{path}: {content[at:at + 200]}")


if __name__ == "__main__":
    unittest.main()
