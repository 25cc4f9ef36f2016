// Each rank is started with what is its own, and all of them with what is the attempt's.
#include "process/keeper_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"

namespace trainyard::process {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsSupersetOf;

model::Launch two_ranks(int gpus) {
  return {.arguments = {"train"},
          .environment = {"RANK=7", "A=1"},
          .working_directory = "/work",
          .task_directory = "/run/t",
          .stdout_path = "/run/t/stdout.log",
          .stderr_path = "/run/t/stderr.log",
          .ranks = 2,
          .own_ranks = model::OwnRanks{.gpus = gpus, .log_paths = {"/run/t/rank-1.log"}},
          .memory_group = "/sys/fs/cgroup/job/t",
          .memory_max = mib(300),
          .result_path = "/run/t/result.1.json",
          .result_copy_path = "/run/t/result.json"};
}

TEST(RankLaunches, AreTheLaunchItselfWhereItIsOneProcess) {
  model::Launch launch = two_ranks(0);
  launch.own_ranks.reset();
  const std::vector<model::Launch> launches = launches_of(launch, 20'000);
  ASSERT_EQ(launches.size(), 1U);
  EXPECT_THAT(launches[0].environment, ElementsAre("RANK=7", "A=1"));
  EXPECT_EQ(launches[0].result_path, launch.result_path);
}

TEST(RankLaunches, SayWhichRankEachIsOverWhatElseSaysSo) {
  const std::vector<model::Launch> launches = launches_of(two_ranks(4), 20'000);
  ASSERT_EQ(launches.size(), 2U);
  for (const model::Launch& launch : launches) {
    EXPECT_EQ(launch.own_ranks, std::nullopt);
    EXPECT_THAT(launch.arguments, ElementsAre("train"));
    EXPECT_THAT(launch.environment,
                IsSupersetOf({"A=1", "WORLD_SIZE=2", "LOCAL_WORLD_SIZE=2", "MASTER_PORT=20000"}));
  }
  const std::vector<std::string>& last = launches[1].environment;
  EXPECT_THAT(std::vector(last.end() - 5, last.end()),
              ElementsAre("TRAINYARD_RANK=1", "RANK=1", "LOCAL_RANK=1", "WORLD_SIZE=2",
                          "TRAINYARD_DEVICE=cuda:2,cuda:3"));
  EXPECT_THAT(launches[0].environment, Contains("TRAINYARD_DEVICE=cuda:0,cuda:1"));
}

TEST(RankLaunches, NameNoDeviceWhereThereAreNoGpus) {
  EXPECT_THAT(launches_of(two_ranks(0), 0)[1].environment, Contains("TRAINYARD_DEVICE"));
}

TEST(RankLaunches, PrintEachToItsOwnLogAndShareWhatTheAttemptHasOnce) {
  const std::vector<model::Launch> launches = launches_of(two_ranks(0), 0);
  ASSERT_EQ(launches.size(), 2U);
  EXPECT_EQ(launches[0].stdout_path, "/run/t/stdout.log");
  EXPECT_EQ(launches[0].stderr_path, "/run/t/stderr.log");
  EXPECT_EQ(launches[0].memory_group, "/sys/fs/cgroup/job/t");
  EXPECT_EQ(launches[0].result_path, "/run/t/result.1.json");
  EXPECT_EQ(launches[0].result_copy_path, "/run/t/result.json");
  EXPECT_EQ(launches[1].stdout_path, "/run/t/rank-1.log");
  EXPECT_EQ(launches[1].stderr_path, "/run/t/rank-1.log");
  EXPECT_EQ(launches[1].memory_group, "");
  EXPECT_EQ(launches[1].result_path, "");
}

}  // namespace
}  // namespace trainyard::process
