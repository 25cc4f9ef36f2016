"""The code around the C++ of the pages that makes it a program: tests/e2e/test_blocks.py."""
import os
import shutil
import subprocess

from pages import DOCS

# A library for development has debug information, most of what would be written.
QUICK_LINKER = ["-DCMAKE_EXE_LINKER_FLAGS=-Wl,--strip-debug" + (" -fuse-ld=mold" if shutil.which("mold") else "")]


def install(build, prefix):
    """Installs the package of a build as links to its files: copies of a build for development are 700 MB."""
    done = subprocess.run(["cmake", "--install", build, "--prefix", prefix], capture_output=True, text=True,
                          env={**os.environ, "CMAKE_INSTALL_MODE": "ABS_SYMLINK"})
    assert done.returncode == 0, done.stdout + done.stderr


def with_cache_in(directory):
    """The environment in which ccache knows what it compiled in another such directory."""
    return {**os.environ, "CCACHE_BASEDIR": str(directory)}


LIBRARY, PIPELINE, RANKS, WORKERS = (DOCS / f"{name}.md" for name in ("library", "pipeline", "ranks", "workers"))
# The reader's own code, which the pages leave out: it comes after the headers that a block names.
MINE = {
    (LIBRARY, 0): """#include <vector>
using Data = std::vector<double>;
Data read_fold(int k) { return {0.5 + k}; }
double fit(const Data& data, const trainyard::Device&) { return data[0]; }
""",
    (PIPELINE, 0): """struct Trajectory {};
struct Learner {
  float learn(const std::vector<Trajectory>& from) { return 1.0F / static_cast<float>(from.size()); }
};
auto collect = [](auto& context) { context.trajectories.resize(2); context.env_step += 1'000; };
""",
    (PIPELINE, 1): """#include <vector>
struct Train : trainyard::Context {
  int step = 0;
  std::vector<int> trajectories;
  float loss = 0;
  static constexpr auto kept = trainyard::keep<&Train::step>;
};
auto collect = [](Train&) {}; auto learn = collect; auto store = collect; auto publish = collect;
""",
    (PIPELINE, 2): "",
    (PIPELINE, 3): """struct Train : trainyard::Context {
  float loss = 0;
  static constexpr auto kept = trainyard::keep<&Train::loss>;
};
void add_steps(trainyard::Pipeline<Train>&);
""",
    (RANKS, 0): "",
    (RANKS, 1): "",
    (WORKERS, 0): "",
    (WORKERS, 2): "",
    (WORKERS, 3): "",
    (WORKERS, 1): """#include <cstdint>
#include <string>
#include <vector>
namespace role = trainyard::role;
struct Train : trainyard::Context {
  std::int64_t env_step = 0;
  std::int64_t train_iter = 0;
  std::vector<std::string> trajectories;
  trainyard::Buffer weights;
  static constexpr auto kept = trainyard::keep<&Train::env_step, &Train::train_iter, &Train::weights>;
};
""",
}
# Makes the components of a file in two ranks and has them execute one task.
COMPONENTS = """
#include <iostream>
#include <nlohmann/json.hpp>
#include "trainyard/rank_executor.h"
#include "trainyard/rank_program.h"
using namespace trainyard;
struct Huber : Component {};
struct Watcher : Component {};
struct Trainer : Executor {
  explicit Trainer(const Arguments& given)
      : rate(given.get<double>("rate")), huber(given.component<Huber>("loss")),
        watcher(given.component<Watcher>("watcher")) {}
  Shareable execute(std::string_view, const Shareable&, RankContext&, std::stop_token) override {
    Shareable reply;
    reply.set("made", rate == 0.1 && huber != nullptr && watcher != nullptr);
    return reply;
  }
  double rate;
  std::shared_ptr<Huber> huber;
  std::shared_ptr<Watcher> watcher;
};
int main(int, char** words) {
  ComponentRegistry registry;
  registry.add<Huber>("huber", {argument("delta", 2.0)});
  registry.add<Watcher>("watcher");
  registry.add<Trainer>("trainer", {argument<double>("rate"), component("loss"), component("watcher")});
  if (const auto code = run_as_rank(registry)) return *code;
  RankExecutor executor({.ranks = 2, .executor = "trainer", .components_file = words[1]}, registry);
  RankContext context;
  Shareable task;
  task.set_buffer("weights", executor.alloc(DType::Float32, {8}).value());
  const Shareable reply = executor.execute("train", task, context);
  std::cout << to_text(reply.code()) << ' ' << reply.message() << reply.values() << '\\n';
  if (const Buffer* made = reply.buffer("gradients")) std::cout << made->as<float>()[7] << '\\n';
}
"""
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(pages LANGUAGES CXX)
add_compile_options(-Wall -Werror)
add_executable(folds folds.cc)
{library}
add_executable(cartpole cartpole.cc)
{pipeline}
add_executable(trainer trainer.cc)
add_executable(components components.cc)
add_executable(together together.cc)
add_executable(pool pool.cc)
find_package(trainyard REQUIRED COMPONENTS ranks)
target_link_libraries(trainer PRIVATE trainyard::ranks)
target_link_libraries(components PRIVATE trainyard::ranks)
find_package(trainyard REQUIRED COMPONENTS workers)
target_link_libraries(together PRIVATE trainyard::workers)
target_link_libraries(pool PRIVATE trainyard::workers)
add_library(others OBJECT {others})
target_link_libraries(others PRIVATE trainyard::trainyard)
"""
