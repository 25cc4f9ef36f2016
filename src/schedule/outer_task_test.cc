// A run in a task never gets what the task itself holds.
#include "schedule/outer_task.h"

#include <gtest/gtest.h>

#include "model/ids.h"
#include "model/terms.h"

namespace trainyard::schedule {
namespace {

const model::Capacity kFourCpus{.memory = gb(20),
                                .cpus = model::cpus(4),
                                .gpus = {{.number = 0, .uuid = "GPU-0", .memory = gb(24)},
                                         {.number = 1, .uuid = "GPU-1", .memory = gb(24)}}};

std::optional<std::string> why_waiting(const model::Request& request,
                                       const std::vector<OuterTask>& outer) {
  model::Plan plan;
  plan.groups = {{.name = "g"}};
  plan.shapes = {{.group = {0}, .terms = {.request = request}}};
  return waits_for_outer_tasks(plan, {}, kFourCpus, outer);
}

TEST(OuterTask, LeavesRoomForWhatFitsBesideIt) {
  const OuterTask outer{.name = "a", .cpus = model::cpus(2), .memory = gb(5), .gpus = {"0"}};
  EXPECT_EQ(why_waiting({.memory = gb(5), .cpus = model::cpus(2), .gpus = 1}, {outer}),
            std::nullopt);
  EXPECT_EQ(why_waiting({.gpus = 1, .gpu = model::GpuIndex{1}}, {outer}), std::nullopt);
  EXPECT_EQ(why_waiting({.cpus = model::cpus(99)}, {outer}), std::nullopt)
      << "it fits nowhere anyway";
}

TEST(OuterTask, HoldsUpWhatNeedsItsCpusMemoryOrGpus) {
  const OuterTask outer{
      .name = "outer/a of run 46", .cpus = model::cpus(2), .memory = gb(15), .gpus = {"0"}};
  EXPECT_EQ(why_waiting({.cpus = model::cpus(3)}, {outer}),
            "group 'g' would wait for ever: task outer/a of run 46, in which this command was "
            "started, holds 2 CPUs, 15 GB of memory, GPU 0 until the command ends");
  EXPECT_TRUE(why_waiting({.memory = gb(10)}, {outer}));
  EXPECT_TRUE(why_waiting({.gpus = 2}, {outer}));
  EXPECT_TRUE(why_waiting({.gpus = 1, .gpu = model::GpuIndex{0}}, {outer}));
}

TEST(OuterTask, ThatSharesItsGpuLeavesTheRestOfItsMemory) {
  const OuterTask outer{.name = "a", .gpus = {"0", "1"}, .gpu_memory = gb(10)};
  EXPECT_EQ(why_waiting({.gpus = 1, .gpu_memory = gb(10)}, {outer}), std::nullopt);
  EXPECT_TRUE(why_waiting({.gpus = 1, .gpu_memory = gb(15)}, {outer}));
  EXPECT_EQ(why_waiting({.gpus = 1}, {outer}),
            "group 'g' would wait for ever: task a, in which this command was started, holds 10 GB "
            "of GPU 0, 1 until the command ends");
}

TEST(OuterTask, InTheRunOfAnotherHoldsItsPartBesideThatTask) {
  const std::vector<OuterTask> outer{
      {.name = "b", .cpus = model::cpus(1), .gpus = {"0"}, .gpu_memory = gb(10)},
      {.name = "none"},
      {.name = "a", .cpus = model::cpus(2), .gpus = {"0", "1"}, .gpu_memory = gb(8)}};
  EXPECT_EQ(why_waiting({.cpus = model::cpus(1)}, outer), std::nullopt);
  EXPECT_EQ(why_waiting({.gpus = 1, .gpu_memory = gb(12)}, outer), std::nullopt);
  const std::string both =
      "group 'g' would wait for ever: tasks b (1 CPU, 10 GB of GPU 0) and a (2 CPUs, 8 GB of GPU "
      "0, 1), in which this command was started, hold what it needs until the command ends";
  EXPECT_EQ(why_waiting({.cpus = model::cpus(2)}, outer), both);
  EXPECT_EQ(why_waiting({.gpus = 2, .gpu_memory = gb(10)}, outer), both);
  EXPECT_EQ(why_waiting({.cpus = model::cpus(3)}, outer),
            "group 'g' would wait for ever: task a, in which this command was started, holds 2 "
            "CPUs, 8 GB of GPU 0, 1 until the command ends")
      << "this one alone is in the way, though b is before it";
}

}  // namespace
}  // namespace trainyard::schedule
