#include "job/gpu_wish.h"

#include <string_view>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job/test_job.h"

namespace trainyard::job {
namespace {

model::Plan plan_wanting(int gpus) {
  model::Plan plan;
  plan.groups.push_back({.name = "train"});
  plan.shapes.push_back({.group = {0}, .terms = {.request = {.gpus = gpus}}});
  return plan;
}

TEST(GpuLimitNote, SaysWhichTasksCanStartAtNoHour) {
  EXPECT_EQ(gpu_limit_note(plan_wanting(2), {.usual = 1}),
            "group 'train': a task needs 2 GPUs, but limits.gpus allows all of your runs 1 "
            "together: the task waits until you change that");
  EXPECT_EQ(gpu_limit_note(plan_wanting(1), {.usual = 0}),
            "group 'train': a task needs 1 GPU, but limits.gpus allows all of your runs 0 "
            "together: the task waits until you change that");
}

TEST(GpuLimitNote, IsNoneWhereTheyMayStartAtSomeHour) {
  EXPECT_EQ(gpu_limit_note(plan_wanting(2), {.usual = 2}), std::nullopt);
  EXPECT_EQ(gpu_limit_note(plan_wanting(2), {.usual = 1, .hours = {{.gpus_max = 2}}}),
            std::nullopt);
  EXPECT_EQ(gpu_limit_note(plan_wanting(2), {.hours = {{.gpus_max = 1}}}), std::nullopt);
  EXPECT_EQ(gpu_limit_note(plan_wanting(0), {.usual = 0}), std::nullopt);
}

using testing::ElementsAre;
using testing::IsEmpty;

/// On a machine with two GPUs.
std::vector<std::string> mistakes_on_gpus(std::string_view text) {
  model::Capacity machine = small_machine();
  machine.gpus = {{.number = 0, .memory = gb(8)}, {.number = 1, .memory = gb(8)}};
  return mistakes_of(text, in_job_directory(), machine);
}

/// The mistakes of a group of one task, with these lines in the group.
std::vector<std::string> in_one(std::string_view lines) {
  return mistakes_on_gpus(
      fmt::format("groups:\n- name: a\n  tasks: [{{command: x}}]\n  {}\n", lines));
}

constexpr std::string_view kNone =
    "the task requests no GPU; 'gpu-memory' sets the memory it needs on one";
constexpr std::string_view kOwn =
    "whole GPUs ('gpus') are not shared; to share one, set 'gpu-memory' to the memory needed";

TEST(GpuKeys, AreAMistakeWhereNoGpuIsAskedFor) {
  EXPECT_THAT(in_one("gpu-utilization: 40%"),
              ElementsAre(fmt::format("sweep.yaml:4:20: group 'a': gpu-utilization: {}", kNone)));
  EXPECT_THAT(in_one("max-per-gpu: 2"),
              ElementsAre(fmt::format("sweep.yaml:4:16: group 'a': max-per-gpu: {}", kNone)));
  EXPECT_THAT(in_one("gpu-memory-limit: soft"),
              ElementsAre(fmt::format("sweep.yaml:4:21: group 'a': gpu-memory-limit: {}", kNone)));
  EXPECT_THAT(in_one("device: cpu\n  max-per-gpu: 2"),
              ElementsAre(fmt::format("sweep.yaml:5:16: group 'a': max-per-gpu: {}", kNone)));
  EXPECT_THAT(mistakes_on_gpus("groups:\n- name: a\n  tasks:\n"
                               "  - {command: x, gpu-memory: 1GB}\n"
                               "  - {command: y, max-per-gpu: 2}\n"),
              ElementsAre(fmt::format("sweep.yaml:5:31: group 'a': max-per-gpu: {}", kNone)));
}

TEST(GpuKeys, AreAMistakeWhereNobodySharesTheGpus) {
  EXPECT_THAT(in_one("gpus: 1\n  max-per-gpu: 3"),
              ElementsAre(fmt::format("sweep.yaml:5:16: group 'a': max-per-gpu: {}", kOwn)));
  EXPECT_THAT(in_one("gpus: 1\n  max-per-gpu: 1"), IsEmpty()) << "so it is";
  EXPECT_THAT(in_one("gpus: 1\n  gpu-memory: 2GB\n  max-per-gpu: 3"), IsEmpty());
  EXPECT_THAT(in_one("gpu-memory: auto\n  max-per-gpu: 3\n  gpu-utilization: 0.4"), IsEmpty());
}

TEST(GpuKeys, AreNoneWhereTheyMeanSomethingToOneOfThoseThatTheyAreWrittenFor) {
  for (const char* const others :
       {"command: y", "command: y, device: cpu", "command: y, gpus: 1"}) {
    EXPECT_THAT(mistakes_on_gpus(fmt::format("groups:\n- name: a\n  max-per-gpu: 2\n"
                                             "  gpu-utilization: 40%\n  gpu-memory-limit: none\n"
                                             "  tasks: [{{{}}}, {{command: x, gpu-memory: 1GB}}]\n",
                                             others)),
                IsEmpty())
        << others;
  }
  EXPECT_THAT(mistakes_on_gpus("groups:\n- name: a\n  matrix: {n: [0, 1]}\n  max-per-gpu: 2\n"
                               "  gpu-memory: '{n}GB'\n  tasks: [{command: 'x {n}'}]\n"),
              IsEmpty());
  EXPECT_THAT(mistakes_on_gpus("groups:\n"
                               "- &base {name: a, max-per-gpu: 2, gpu-memory: 1GB, "
                               "tasks: [{command: x}]}\n"
                               "- {<<: *base, name: b, gpu-memory: 0}\n"),
              IsEmpty());
}

TEST(GpuKeys, ThatShareAGpuAreNamedAsKeysAndOptionsAre) {
  EXPECT_THAT(in_one("gpus: 0.5"),
              ElementsAre("sweep.yaml:4:9: group 'a': gpus: '0.5' of a GPU cannot be reserved; to "
                          "share a GPU, set 'gpu-memory' to the memory a task needs (10GB, or "
                          "auto), and 'max-per-gpu' to 2 to limit the number of tasks on it"));
}

TEST(GpuKeys, AreNoGpuAndMemoryOfOneNotAtOnce) {
  const std::string why =
      "gpus: 0 cannot be combined with 'gpu-memory'; to train on the CPUs, write 'device: cpu'";
  EXPECT_THAT(in_one("gpus: 0\n  gpu-memory: 2GB"),
              ElementsAre("sweep.yaml:4:9: group 'a': " + why));
  EXPECT_THAT(in_one("gpus: 0\n  gpu-memory: auto"),
              ElementsAre("sweep.yaml:4:9: group 'a': " + why));
  EXPECT_THAT(mistakes_on_gpus("groups:\n- name: a\n  gpu-memory: 2GB\n"
                               "  tasks: [{command: x}, {command: y, gpus: 0}]\n"),
              ElementsAre("sweep.yaml:4:44: group 'a': " + why));
  EXPECT_THAT(in_one("gpus: 0\n  gpu-memory: 0"), IsEmpty());
  // The task's own word counts.
  EXPECT_THAT(mistakes_on_gpus("groups:\n- name: a\n  gpus: 0\n"
                               "  tasks: [{command: x, gpu-memory: 2GB}]\n"),
              IsEmpty());
}

TEST(GpuKeys, AreToldWhenTheRestIsRight) {
  EXPECT_EQ(in_one("gpu-memory: 4GB+\n  max-per-gpu: 2").size(), 1U);
  EXPECT_EQ(in_one("gpus: many\n  gpu-utilization: 40%").size(), 1U);
  EXPECT_EQ(in_one("gpu-memory-limit: hard").size(), 1U);
  EXPECT_EQ(in_one("max-per-gpu: 99").size(), 1U);
}

}  // namespace

}  // namespace trainyard::job
