// Plays runs of made-up tasks through, in simulated time: the real scheduler and the real loop.
//
// usage: gpu_core FILE
// FILE is text, in GB and seconds: first "memory GPUS GPU-MEMORY KNOWN LEARNS", then a line for
// each task: "load train memory gpu-memory really after", where gpu-memory is what it asks for (0:
// to be learned), `really` what it takes, `after` how long after it began to train. Prints one JSON
// object: makespan_s, bound_s, finished, starts, out_of_memory, seconds.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/time.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "plan/play_run.h"
#include "schedule/lookahead.h"

namespace trainyard {
namespace {

Bytes gigabytes(double count) { return {static_cast<std::int64_t>(count * 1e9)}; }
Duration seconds(double count) { return Duration{static_cast<std::int64_t>(count * 1000)}; }

struct Work {
  model::Plan plan;
  model::Policy policy;
  model::Capacity capacity;
  std::vector<plan::Course> courses;
};

bool read(const char* path, Work& work) {
  std::ifstream file(path);
  double memory = 0;
  double gpu_memory = 0;
  int gpus = 0;
  bool kept = false;
  bool known = false;
  bool learns = false;
  if (!(file >> memory >> gpus >> gpu_memory >> kept >> known >> learns)) return false;
  work.capacity.memory = gigabytes(memory);
  for (int i = 0; i < gpus; ++i) {
    work.capacity.gpus.push_back(
        {.number = i, .pci = fmt::format("{:02}", i), .memory = gigabytes(gpu_memory)});
  }
  work.policy = {.memory_remain = {},
                 .gpu_strategy = model::GpuStrategy::IdleFirst,
                 .gpu_memory_remain = Bytes{},
                 .train_retries = 5,
                 .auto_adjust = learns};
  if (kept) {
    work.policy.memory_utilization_max = 0.8;
    work.policy.memory_remain = gb(4);
    work.policy.gpu_memory_utilization_max = 0.8;
    work.policy.gpu_memory_remain = gb(2);
  }
  work.plan.groups.push_back({.name = "all"});
  std::map<std::vector<double>, std::uint32_t> shapes;
  double load = 0;
  double train = 0;
  double asked = 0;
  double really = 0;
  double after = 0;
  while (file >> load >> train >> memory >> asked >> really >> after) {
    const std::vector<double> key{memory, asked, known ? load : 0, known ? train : 0};
    const auto next = static_cast<std::uint32_t>(work.plan.shapes.size());
    const auto [shape, fresh] = shapes.try_emplace(key, next);
    if (fresh) {
      work.plan.shapes.push_back(
          {.group = {0},
           .terms = {
               .request = {.memory = gigabytes(memory), .gpus = 1, .gpu_memory = gigabytes(asked)},
               .two_phase = load > 0,
               .load_expected = known ? seconds(load) : Duration{0},
               .train_expected = known ? seconds(train) : Duration{0},
               .learns_gpu_memory = asked == 0}});
    }
    work.plan.tasks.push_back({.shape = {shape->second}});
    work.courses.push_back({.load = seconds(load),
                            .train = seconds(train),
                            .memory = gigabytes(memory),
                            .gpu_memory = gigabytes(really),
                            .gpu_after = seconds(after)});
  }
  return !work.courses.empty();
}

/// The area lower bound, over what may be used.
Duration bound(const Work& work) {
  std::vector<schedule::Prospect> prospects;
  for (std::size_t i = 0; i < work.courses.size(); ++i) {
    model::Request request =
        work.plan.shape_of(model::TaskIndex{static_cast<std::uint32_t>(i)}).terms.request;
    request.gpu_memory = work.courses[i].gpu_memory;
    prospects.push_back({.load = work.courses[i].load,
                         .train = work.courses[i].train,
                         .request = request,
                         .two_phase = true});
  }
  const auto usable = [](Bytes whole, Bytes remain) {
    return std::min(Bytes{whole.count / 10 * 8}, whole - remain);
  };
  schedule::Stock stock{
      .memory = usable(work.capacity.memory, gb(4)), .cpus = model::cpus(1), .gpus = {}};
  for (const model::Gpu& gpu : work.capacity.gpus) stock.gpus.push_back(usable(gpu.memory, gb(2)));
  return schedule::shortest_possible(prospects, stock);
}

int run(const char* path) {
  Work work;
  if (!read(path, work)) {
    fmt::print(stderr, "gpu_core: cannot read '{}'\n", path);
    return 2;
  }
  const auto began = std::chrono::steady_clock::now();
  const auto played =
      plan::play_run(work.plan, work.policy, {{.name = "here", .capacity = work.capacity}},
                     work.courses, {.sample_every = Duration{1'000}});
  if (!played) {
    fmt::print(stderr, "gpu_core: {}\n", played.error().message);
    return 1;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  int finished = 0;
  int starts = 0;
  for (const plan::PlayedTask& task : played->tasks) {
    finished += task.finished ? 1 : 0;
    starts += task.attempts;
  }
  fmt::print(R"({{"makespan_s": {:.3f}, "bound_s": {:.3f}, "finished": {}, "starts": {}, )"
             R"("out_of_memory": {}, "seconds": {:.3f}}})"
             "\n",
             static_cast<double>(played->ended.since_start.count()) / 1000,
             static_cast<double>(bound(work).count()) / 1000, finished, starts,
             played->out_of_memory, took.count());
  return 0;
}

}  // namespace
}  // namespace trainyard

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: gpu_core FILE\n", stderr);
    return 2;
  }
  return trainyard::run(argv[1]);
}
