#include "run/attempt_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"

namespace trainyard::run {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::vector<model::Gpu> kCard{{.pci = "0000:03:00.0", .maker = model::GpuMaker::Amd}};

LimitKeeping keeping() {
  return {.group = "/group/a", .regions = {"drm/0000:03:00.0/vram0", "drm/0000:41:00.0/vram0"}};
}

model::Launch limited(const model::StartAttempt& start, model::Launch launch = {}) {
  add_limits(start, kCard, keeping(), launch);
  return launch;
}

TEST(AttemptLimits, AreNoneWhereNothingIsLimited) {
  const model::Launch launch = limited({.key = {{0}, 1}, .promise = {}});
  EXPECT_EQ(launch.memory_group, "");
  EXPECT_THAT(launch.region_limits, IsEmpty());
  EXPECT_EQ(launch.capped_by, "");
}

TEST(AttemptLimits, AreOfMemoryWhereThatIsHard) {
  const model::Launch launch = limited({.key = {{0}, 1}, .promise = {}, .memory_max = gb(3)});
  EXPECT_EQ(launch.memory_group, "/group/a");
  EXPECT_EQ(launch.memory_max, gb(3));
  EXPECT_THAT(launch.region_limits, IsEmpty());
}

TEST(AttemptLimits, AreOfTheMemoryOfItsGpusWhereTheKernelKnowsThat) {
  const model::StartAttempt start{.key = {{0}, 1}, .promise = {}, .gpu_memory_max = gb(9)};
  model::Launch launch = limited(start);
  EXPECT_EQ(launch.memory_group, "/group/a");
  EXPECT_EQ(launch.memory_max, Bytes{}) << "any amount";
  EXPECT_THAT(launch.region_limits,
              ElementsAre(model::RegionLimit{.region = "drm/0000:03:00.0/vram0", .most = gb(9)}));
  EXPECT_EQ(launch.capped_by, "the kernel");
  EXPECT_EQ(limited(start, {.capped_by = "torch 2.10"}).capped_by, "torch 2.10, the kernel");

  launch = {};
  add_limits(start, kCard, {.group = "/group/a", .regions = {}}, launch);
  EXPECT_EQ(launch.memory_group, "") << "as on NVIDIA's";
}

TEST(AttemptLimits, AreOfNoGpuMemoryWhereMoreThanOneProcessIsStarted) {
  const model::StartAttempt start{.key = {{0}, 1}, .promise = {}, .gpu_memory_max = gb(9)};
  EXPECT_THAT(limited(start, {.own_ranks = model::OwnRanks{}}).region_limits, IsEmpty());
  EXPECT_THAT(limited(start, {.forked = true}).region_limits, IsEmpty());
}

}  // namespace
}  // namespace trainyard::run
