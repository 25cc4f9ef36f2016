#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "job/task_environment.h"

namespace trainyard::job {
namespace {

TEST(TaskSeed, IsTheSameInEveryRun) {
  EXPECT_EQ(task_seed("train", "lr=0.1,seed=3", 1), task_seed("train", "lr=0.1,seed=3", 1));
  EXPECT_EQ(task_seed("train", "lr=0.1,seed=3", 1), 1627793828U);
}

TEST(TaskSeed, IsAnotherOneForEachTaskAndAttempt) {
  std::set<std::uint32_t> seeds;
  for (int task = 0; task < 1000; ++task) {
    for (std::uint32_t attempt = 1; attempt <= 3; ++attempt) {
      seeds.insert(task_seed("train", fmt::format("seed={}", task), attempt));
    }
  }
  EXPECT_EQ(seeds.size(), 3000U);
  EXPECT_NE(task_seed("a", "bc", 1), task_seed("ab", "c", 1));
}

TEST(TaskSeed, SpreadsOverAllItsBits) {
  int high = 0;
  int odd = 0;
  for (int task = 0; task < 1000; ++task) {
    const std::uint32_t seed = task_seed("g", fmt::format("{}", task), 1);
    high += seed >> 31U != 0 ? 1 : 0;
    odd += seed % 2 != 0 ? 1 : 0;
  }
  EXPECT_NEAR(high, 500, 80);
  EXPECT_NEAR(odd, 500, 80);
}

}  // namespace
}  // namespace trainyard::job
