#include "model/gpu_presence.h"

#include <gtest/gtest.h>

namespace trainyard::model {
namespace {

Instant seconds_in(int seconds) { return {Duration{seconds * 1000}}; }

class GpuPresenceTest : public testing::Test {
 protected:
  /// The GPU does not answer at `from`, and answers again from `to` on.
  void drop_out(int from, int to) {
    gpu_.see(false, seconds_in(from));
    gpu_.see(true, seconds_in(to));
  }

  GpuPresence gpu_{Duration{10'000}};
};

TEST_F(GpuPresenceTest, AvoidsNoGpuThatHasAlwaysAnswered) {
  gpu_.see(true, seconds_in(1));
  EXPECT_FALSE(gpu_.is_avoided());
  EXPECT_EQ(gpu_.drop_outs(), 0);
  EXPECT_EQ(gpu_.gone_since(), std::nullopt);
  EXPECT_EQ(gpu_.avoided_until(), std::nullopt);
}

TEST_F(GpuPresenceTest, AvoidsAGpuUntilItHasAnsweredForTheQuietTime) {
  gpu_.see(false, seconds_in(5));
  gpu_.see(false, seconds_in(6));
  EXPECT_TRUE(gpu_.is_avoided());
  EXPECT_EQ(gpu_.gone_since(), seconds_in(5));
  EXPECT_EQ(gpu_.avoided_until(), std::nullopt) << "nobody knows when it answers again";
  gpu_.see(true, seconds_in(7));
  gpu_.see(true, seconds_in(16));
  EXPECT_TRUE(gpu_.is_avoided());
  EXPECT_EQ(gpu_.gone_since(), std::nullopt);
  EXPECT_EQ(gpu_.avoided_until(), seconds_in(17));
  gpu_.see(true, seconds_in(17));
  EXPECT_FALSE(gpu_.is_avoided());
  EXPECT_EQ(gpu_.avoided_until(), std::nullopt);
  EXPECT_EQ(gpu_.drop_outs(), 1);
}

TEST_F(GpuPresenceTest, DoublesTheQuietTimeWithEachDropOutUpToAnHour) {
  int now = 0;
  for (const int quiet : {10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600}) {
    drop_out(now + 1, now + 4);
    EXPECT_EQ(gpu_.avoided_until(), seconds_in(now + 4 + quiet));
    now += 4 + quiet;
    gpu_.see(true, seconds_in(now));
    EXPECT_FALSE(gpu_.is_avoided());
  }
  EXPECT_EQ(gpu_.drop_outs(), 11);
}

TEST_F(GpuPresenceTest, DoublesTheQuietTimeWhenTheGpuDropsOutBeforeItsEnd) {
  drop_out(1, 4);
  drop_out(10, 13);
  EXPECT_EQ(gpu_.drop_outs(), 2);
  EXPECT_EQ(gpu_.avoided_until(), seconds_in(33));
}

TEST_F(GpuPresenceTest, IsALastResortFromTheFirstQuietTimeToTheEndOfALongerOne) {
  const auto answers_until = [this](int to) {
    gpu_.see(true, seconds_in(to));
    return gpu_.is_last_resort();
  };
  drop_out(1, 4);
  EXPECT_FALSE(answers_until(13));
  EXPECT_FALSE(answers_until(14)) << "it is not avoided any more";
  drop_out(18, 21);
  EXPECT_FALSE(answers_until(30));
  EXPECT_TRUE(answers_until(31));
  EXPECT_TRUE(gpu_.is_avoided());
  EXPECT_TRUE(answers_until(40));
  EXPECT_FALSE(answers_until(41));
  drop_out(42, 45);
  EXPECT_TRUE(answers_until(55));
  gpu_.see(false, seconds_in(56));
  EXPECT_FALSE(gpu_.is_last_resort());
}

TEST_F(GpuPresenceTest, KeepsAQuietTimeAboveAnHour) {
  GpuPresence gpu(2 * GpuPresence::kQuietTimeMax);
  for (const int from : {1, 10}) {
    gpu.see(false, seconds_in(from));
    gpu.see(true, seconds_in(from + 1));
  }
  EXPECT_EQ(gpu.avoided_until(), seconds_in(11 + 7200));
}

TEST_F(GpuPresenceTest, CountsShortAnswersAsPartOfAnAbsence) {
  drop_out(1, 4);
  gpu_.see(false, seconds_in(13));
  EXPECT_EQ(gpu_.gone_since(), seconds_in(1));
  gpu_.see(true, seconds_in(14));
  gpu_.see(false, seconds_in(24));
  EXPECT_EQ(gpu_.gone_since(), seconds_in(24));
}

}  // namespace
}  // namespace trainyard::model
