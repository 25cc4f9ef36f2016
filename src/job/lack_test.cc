// A retry with more memory than the machine can ever give.
#include "job/lack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job/job.h"
#include "job/jobs.h"
#include "job/test_job.h"

namespace trainyard::job {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

model::Capacity two_gpus() {
  model::Capacity machine = small_machine();
  machine.gpus = {{.number = 0, .name = "A", .memory = gb(24)},
                  {.number = 1, .name = "A", .memory = gb(24)}};
  return machine;
}

/// The message for the only task of a group with these keys.
std::string why_never(const std::string& keys, const RetryAmounts& amounts) {
  const Jobs jobs(job_of("groups: [{name: g, tasks: [{id: a, command: x, " + keys + "}]}]",
                         in_job_directory(), two_gpus()));
  return jobs.why_never_with({0}, amounts);
}

TEST(LackOfRetry, IsThatOfARunThatRequestsSoMuch) {
  EXPECT_THAT(why_never("gpu-memory: 3GB", {.memory = {}, .gpu_memory = gb(28)}),
              StartsWith("needs 28 GB of memory on a GPU, the largest here has "));
  EXPECT_THAT(why_never("memory: 1GB", {.memory = gb(900'000), .gpu_memory = {}}),
              StartsWith("needs 900 TB of memory, this machine has 18 GB available"));
  // A whole GPU has no more than the largest.
  EXPECT_THAT(why_never("gpus: 1", {.memory = {}, .gpu_memory = gb(28)}),
              HasSubstr("needs 28 GB of memory on a GPU"));
}

TEST(LackOfRetry, IsNoneOfWhatFitsOrIsNoMoreThanBefore) {
  EXPECT_EQ(why_never("gpu-memory: 3GB", {.memory = gb(2), .gpu_memory = gb(20)}), "");
  EXPECT_EQ(why_never("gpus: 1", {.memory = {}, .gpu_memory = gb(20)}), "");
  EXPECT_EQ(why_never("memory: 1GB", {.memory = {}, .gpu_memory = gb(28)}), "")
      << "it uses no GPU, and is retried without one";
  EXPECT_EQ(why_never("memory: 1GB", {}), "");
  // A job that this machine cannot hold runs elsewhere, or has waited for a larger one.
  const model::Policy policy;
  const std::vector<model::NamedMachine> none;
  const model::Capacity small{.memory = gb(1), .cpus = model::cpus(4)};
  const LackBasis basis{.policy = policy, .capacity = small, .machines = none};
  const model::Terms large{.request = {.memory = gb(8)}};
  EXPECT_FALSE(find_lack_of_retry(large, {.memory = gb(4), .gpu_memory = {}}, basis));
  const std::optional<Lack> lack =
      find_lack_of_retry(large, {.memory = gb(9), .gpu_memory = {}}, basis);
  EXPECT_EQ(lack ? lack->key : TaskKey::Disk, TaskKey::Memory);
}

TEST(LackOfRetry, IsOfTheMachinesOfTheRun) {
  LoadOptions options = in_job_directory();
  model::Capacity large = two_gpus();
  large.gpus.front().memory = gb(80);
  options.machines = {{.name = "here", .capacity = two_gpus()},
                      {.name = "big1", .capacity = large}};
  const Jobs jobs(
      job_of("groups: [{name: g, tasks: [{id: a, gpu-memory: 3GB, command: x}]}]", options, large));
  EXPECT_EQ(jobs.why_never_with({0}, {.memory = {}, .gpu_memory = gb(60)}), "");
  EXPECT_THAT(jobs.why_never_with({0}, {.memory = {}, .gpu_memory = gb(100)}),
              StartsWith("fits on none of here, big1: needs 100 GB of memory on a GPU"));
}

}  // namespace
}  // namespace trainyard::job
