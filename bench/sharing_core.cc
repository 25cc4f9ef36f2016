// Plays tasks that share GPUs, in no time: the real scheduler and the real loop on made-up GPUs,
// where whoever is on one with others goes as fast as they leave it (schedule/card_shares.h).
//
// Reads a file: "GPUS GPU-MEMORY CROWDING", then a line for each task: "kind train
// gpu-memory share", where share is the part of a GPU, in thousandths, that keeps it busy alone.
// What is played: everybody alone on a GPU; shared, as the scheduler decides; shared by memory
// alone, as nobody measures what sharing costs; and once more as the first, with what a run has
// taught of how long each kind takes, beside what was forecast from just that.
// Prints one JSON object with how long each took, in seconds.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "model/plan.h"
#include "model/resources.h"
#include "plan/expected_courses.h"
#include "plan/play_run.h"

namespace trainyard {
namespace {

struct Work {
  struct One {
    int kind = 0;
    Duration train{0};
    Bytes memory;
    int share = 0;
  };
  std::vector<One> tasks;
  model::Capacity capacity;
  plan::PlayOptions options{.sample_every = Duration{5'000}};
};

Duration seconds(double count) { return Duration{static_cast<std::int64_t>(count * 1000)}; }
Bytes gigabytes(double count) { return {static_cast<std::int64_t>(count * 1e9)}; }

bool read(const char* path, Work& work) {
  std::ifstream file(path);
  int gpus = 0;
  double memory = 0;
  if (!(file >> gpus >> memory >> work.options.crowding)) return false;
  work.capacity = {.memory = gb(1'000), .cpus = model::cpus(256)};
  for (int i = 0; i < gpus; ++i) {
    work.capacity.gpus.push_back(
        {.number = i, .pci = fmt::format("{:02}", i), .memory = gigabytes(memory)});
  }
  Work::One one;
  double train = 0;
  while (file >> one.kind >> train >> memory >> one.share) {
    one.train = seconds(train);
    one.memory = gigabytes(memory);
    work.tasks.push_back(one);
  }
  return !work.tasks.empty();
}

/// How the tasks of a kind are told to the scheduler.
struct Telling {
  bool alone = false;   ///< Each wants a GPU for itself.
  bool unlike = false;  ///< No two are alike, so that of none it is measured what sharing costs.
  bool shares = false;  ///< How much of a GPU they use is written.
  std::map<int, Duration> durations;  ///< By kind; empty: nobody knows.
};

model::Plan plan_of(const Work& work, const Telling& telling) {
  model::Plan plan;
  plan.groups.push_back({.name = "all"});
  std::map<std::array<std::int64_t, 3>, std::uint32_t> shapes;
  for (std::size_t i = 0; i < work.tasks.size(); ++i) {
    const Work::One& task = work.tasks[i];
    const auto own = static_cast<std::int64_t>(telling.unlike ? i : 0);
    const auto next = static_cast<std::uint32_t>(plan.shapes.size());
    const auto [shape, fresh] = shapes.try_emplace({task.kind, task.memory.count, own}, next);
    if (fresh) {
      const auto known = telling.durations.find(task.kind);
      model::Request request{.memory = mb(100), .gpus = 1, .gpu_memory = task.memory};
      if (telling.alone) request.gpu_memory = {};
      if (telling.shares) request.sharing.utilization = task.share;
      plan.shapes.push_back(
          {.group = {0},
           .terms = {
               .request = request,
               .train_expected = known == telling.durations.end() ? Duration{0} : known->second}});
    }
    plan.tasks.push_back({.shape = {shape->second}});
  }
  return plan;
}

std::vector<plan::Course> truth(const Work& work) {
  std::vector<plan::Course> courses;
  courses.reserve(work.tasks.size());
  for (const Work::One& task : work.tasks) {
    courses.push_back({.train = task.train,
                       .memory = mb(100),
                       .gpu_share = task.share,
                       .gpu_memory = task.memory});
  }
  return courses;
}

/// As `trainyard run` has it.
model::Policy usual() { return {.auto_adjust = true, .gpu_settle_max = Duration{30'000}}; }

/// Nothing, with a word of why, where not all of it could be done.
std::optional<plan::PlayedRun> play(const Work& work, const model::Plan& plan,
                                    const model::Policy& policy,
                                    const std::vector<plan::Course>& courses) {
  Result<plan::PlayedRun> run = plan::play_run(
      plan, policy, {{.name = "here", .capacity = work.capacity}}, courses, work.options);
  const bool done = run && run->out_of_memory == 0 &&
                    std::ranges::all_of(run->tasks, &plan::PlayedTask::finished);
  if (done) return std::move(*run);
  fmt::print(stderr, "sharing_core: not all tasks finished{}\n",
             run ? "" : ": " + run.error().message);
  return std::nullopt;
}

double length(const plan::PlayedRun& run) {
  return static_cast<double>((run.ended - Instant{}).count()) / 1000;
}

/// The mean of each kind, as a run has seen it: beside whoever was there.
std::map<int, Duration> taught_by(const Work& work, const plan::PlayedRun& run) {
  std::map<int, std::pair<Duration, int>> sums;
  for (std::size_t i = 0; i < work.tasks.size(); ++i) {
    auto& [sum, count] = sums[work.tasks[i].kind];
    sum += run.tasks[i].ended - run.tasks[i].trains;
    ++count;
  }
  std::map<int, Duration> means;
  for (const auto& [kind, of] : sums) means[kind] = of.first / of.second;
  return means;
}

/// What `trainyard plan` plays.
std::optional<plan::PlayedRun> forecast(const Work& work, const model::Plan& plan) {
  model::Policy policy = usual();
  policy.auto_adjust = false;
  policy.gpu_settle_max = {};
  Work quiet = work;
  quiet.options.crowding = 0;
  return play(quiet, plan, policy, plan::expected_of(plan).courses);
}

int run(const char* path) {
  Work work;
  if (!read(path, work)) {
    fmt::print(stderr, "sharing_core: cannot read '{}'\n", path);
    return 2;
  }
  const std::vector<plan::Course> courses = truth(work);
  const auto played = [&](const Telling& telling) {
    return play(work, plan_of(work, telling), usual(), courses);
  };
  const auto alone = played({.alone = true});
  const auto shared = played({});
  const auto memory = played({.unlike = true});
  const auto written = played({.shares = true});
  if (!alone || !shared || !memory || !written) return 1;
  const model::Plan again = plan_of(work, {.durations = taught_by(work, *shared)});
  const auto second = play(work, again, usual(), courses);
  const auto expected = forecast(work, again);
  if (!second || !expected) return 1;
  fmt::print(R"({{"alone": {:.3f}, "shared": {:.3f}, "memory_alone": {:.3f}, "written": {:.3f}, )"
             R"("second": {:.3f}, "forecast": {:.3f}}})"
             "\n",
             length(*alone), length(*shared), length(*memory), length(*written), length(*second),
             length(*expected));
  return 0;
}

}  // namespace
}  // namespace trainyard

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: sharing_core FILE\n", stderr);
    return 2;
  }
  return trainyard::run(argv[1]);
}
