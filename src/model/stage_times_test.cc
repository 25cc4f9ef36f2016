#include "model/stage_times.h"

#include <gtest/gtest.h>

#include "base/time.h"
#include "model/status.h"

namespace trainyard::model {
namespace {

Instant at(int seconds) { return {Duration(seconds * 1000)}; }

TEST(StageTimes, AreThoseOfTheLastTimeAndCountAll) {
  StageTimes times;
  times.enter(Status::Available, at(0));
  EXPECT_EQ(times, StageTimes{});
  times.enter(Status::Loading, at(1));
  times.enter(Status::Interrupt, at(3));
  EXPECT_EQ(times, (StageTimes{.load_numbers = 1, .load = Duration(2000)}));
  times.enter(Status::Available, at(3));
  times.enter(Status::Loading, at(4));
  times.enter(Status::Waiting, at(9));
  times.enter(Status::Training, at(20));
  EXPECT_EQ(
      times,
      (StageTimes{
          .load_numbers = 2, .train_numbers = 1, .load = Duration(5000), .training = at(20)}));
  times.enter(Status::Finished, at(27));
  times.enter(Status::Exited, at(28));
  EXPECT_EQ(
      times,
      (StageTimes{
          .load_numbers = 2, .train_numbers = 1, .load = Duration(5000), .train = Duration(7000)}));
}

}  // namespace
}  // namespace trainyard::model
