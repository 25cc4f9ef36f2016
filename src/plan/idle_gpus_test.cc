// Whole runs that share GPUs, played with the default strategy: what comes of idle GPUs first for
// two users, for a task that comes late, and for a night of small tasks.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/time.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "plan/play_run.h"

namespace trainyard::plan {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr Duration kTenMinutes{600'000};

/// Four GPUs of 24 GB.
model::NamedMachine four_gpus(std::int64_t cpus) {
  model::NamedMachine machine{.name = "here",
                              .capacity = {.memory = gb(256), .cpus = model::cpus(cpus)}};
  for (int number = 0; number < 4; ++number) {
    machine.capacity.gpus.push_back({.number = number,
                                     .uuid = "GPU-" + std::to_string(number),
                                     .pci = std::to_string(number),
                                     .memory = gb(24)});
  }
  return machine;
}

/// Tasks with so much of one GPU each; 0: a whole one.
struct Sweep {
  std::size_t tasks = 1;
  Bytes gpu_memory;
  model::Cpus cpus = model::cpus(1);
  Duration start_after{0};
};

/// Each task takes ten minutes where it has as much of its GPU as it keeps busy, which is two
/// fifths of it.
PlayedRun play(const std::vector<Sweep>& sweeps, model::GpuStrategy strategy,
               PlayOptions options = {}, std::int64_t cpus = 128) {
  model::Plan plan;
  plan.groups.push_back({.name = "g"});
  for (const Sweep& sweep : sweeps) {
    const model::ShapeIndex shape{static_cast<std::uint32_t>(plan.shapes.size())};
    plan.shapes.push_back({.group = {0},
                           .terms = {.request = {.memory = gb(1),
                                                 .cpus = sweep.cpus,
                                                 .gpus = 1,
                                                 .gpu_memory = sweep.gpu_memory},
                                     .start_after = sweep.start_after}});
    for (std::size_t i = 0; i < sweep.tasks; ++i) plan.tasks.push_back({.shape = shape});
  }
  const Course course{.train = kTenMinutes, .memory = gb(1), .gpu_share = 400};
  const std::vector<Course> courses(plan.tasks.size(), course);
  const auto run = play_run(plan, {.gpu_strategy = strategy, .gpu_memory_remain = Bytes{0}},
                            {four_gpus(cpus)}, courses, std::move(options));
  EXPECT_TRUE(run.has_value());
  return run.value_or(PlayedRun{});
}

std::vector<std::uint32_t> gpus_of(const PlayedRun& run) {
  std::vector<std::uint32_t> gpus;
  for (const PlayedTask& task : run.tasks) gpus.push_back(task.gpus.at(0).value);
  return gpus;
}

TEST(IdleGpus, LetFourTasksTrainAsFastAsAlone) {
  const PlayedRun spread = play({{.tasks = 4, .gpu_memory = gb(6)}}, model::GpuStrategy::IdleFirst);
  EXPECT_THAT(gpus_of(spread), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(spread.ended, Instant{kTenMinutes});
  const PlayedRun packed = play({{.tasks = 4, .gpu_memory = gb(6)}}, model::GpuStrategy::BestFit);
  EXPECT_THAT(gpus_of(packed), Each(0U));
  EXPECT_EQ(packed.ended, Instant{kTenMinutes * 8 / 5}) << "four times two fifths of one GPU";
}

TEST(IdleGpus, MakeANightOfSmallTasksNoLonger) {
  const std::vector<Sweep> night{{.tasks = 128, .gpu_memory = gb(6)}};
  const PlayedRun spread = play(night, model::GpuStrategy::IdleFirst);
  EXPECT_EQ(spread.ended, Instant{8 * kTenMinutes * 8 / 5}) << "four on each GPU, eight times";
  EXPECT_EQ(spread.ended, play(night, model::GpuStrategy::BestFit).ended);
}

TEST(IdleGpus, GiveATaskThatComesLateItsWholeGpu) {
  // The CPUs are enough for five small tasks at once.
  const Sweep late_one{.tasks = 1, .cpus = {}, .start_after = Duration{60'000}};
  const PlayedRun run =
      play({{.tasks = 40, .gpu_memory = gb(6)}, late_one}, model::GpuStrategy::IdleFirst, {}, 5);
  const PlayedTask& late = run.tasks.back();
  EXPECT_TRUE(late.finished);
  EXPECT_EQ(late.started, Instant{kTenMinutes}) << "with the first GPU on which nothing runs";
}

TEST(IdleGpus, AreNotTakenBeyondTheShareOfTwoUsers) {
  PlayOptions with_mona;
  with_mona.others = {{}, {}, {}, {.used = gb(20), .other_user = 1001}};
  EXPECT_THAT(
      gpus_of(play({{.tasks = 3, .gpu_memory = gb(6)}}, model::GpuStrategy::IdleFirst, with_mona)),
      ElementsAre(0, 1, 0));
  EXPECT_THAT(gpus_of(play({{.tasks = 9, .gpu_memory = gb(6)}}, model::GpuStrategy::IdleFirst,
                           std::move(with_mona))),
              ElementsAre(0, 1, 0, 0, 0, 1, 1, 1, 2))
      << "what is idle beyond it is used when the share is full";
}

}  // namespace
}  // namespace trainyard::plan
