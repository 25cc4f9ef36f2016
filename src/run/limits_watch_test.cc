#include "run/limits_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/ids.h"
#include "process/drain_file.h"
#include "sys/test_directory.h"

namespace trainyard::run {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::vector<model::Gpu> kTwo{{.uuid = "GPU-0"}, {.uuid = "GPU-1"}};

TEST(LimitsWatch, ADrainHoldsUntilItsTime) {
  const std::vector<model::Drain> drains{{.uuid = "GPU-1", .until_unix_s = 100, .now = true},
                                         {.uuid = "GPU-elsewhere"}};
  const model::LimitsChanged before = limits_now({}, drains, kTwo, 99);
  EXPECT_THAT(before.drained, ElementsAre(model::GpuIndex{1}));
  EXPECT_THAT(before.cleared, ElementsAre(model::GpuIndex{1}));
  EXPECT_EQ(limits_now({}, drains, kTwo, 100), model::LimitsChanged{});
}

TEST(LimitsWatch, OneWithoutATimeHoldsForEverAndEndsNothing) {
  const model::LimitsChanged now =
      limits_now({.gpus_max = 2, .until = "19:00"}, std::vector<model::Drain>{{.uuid = "GPU-0"}},
                 kTwo, 1'000'000);
  EXPECT_THAT(now.drained, ElementsAre(model::GpuIndex{0}));
  EXPECT_THAT(now.cleared, IsEmpty());
  EXPECT_EQ(now.gpus_max, 2);
  EXPECT_EQ(now.until, "19:00");
}

TEST(LimitsWatch, TellsWhatHasChangedOnce) {
  const sys::TemporaryDirectory directory;
  const std::vector<std::string> here{directory / "board"};
  LimitsWatch watch({}, here);
  EXPECT_FALSE(watch.look(kTwo).has_value()) << "no limit is as it was";
  ASSERT_TRUE(process::write_own_drains(here, {{.uuid = "GPU-0"}}).has_value());
  EXPECT_THAT(watch.look(kTwo)->drained, ElementsAre(model::GpuIndex{0}));
  EXPECT_FALSE(watch.look(kTwo).has_value());
  ASSERT_TRUE(process::write_own_drains(here, {}).has_value());
  EXPECT_THAT(watch.look(kTwo)->drained, IsEmpty());
}

}  // namespace
}  // namespace trainyard::run
