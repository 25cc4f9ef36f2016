#include "model/stage_times.h"

#include <gtest/gtest.h>

namespace trainyard::model {
namespace {

Instant at(int seconds) { return {Duration(seconds * 1000)}; }

TEST(StageTimes, AreThoseOfTheLastTimeAndCountAll) {
  StageTimes times;
  times.enter(Status::Available, at(0));
  EXPECT_EQ(times, StageTimes{});
  times.enter(Status::Loading, at(1));
  times.enter(Status::Interrupt, at(3));
  StageTimes known{.load_numbers = 1, .load = Duration(2000), .load_began = at(1)};
  EXPECT_EQ(times, known);
  times.enter(Status::Available, at(3));
  times.enter(Status::Loading, at(4));
  times.enter(Status::Waiting, at(9));
  times.enter(Status::Training, at(20));
  known = {.load_numbers = 2,
           .train_numbers = 1,
           .load = Duration(5000),
           .now = Stage::Train,
           .load_began = at(4),
           .train_began = at(20)};
  EXPECT_EQ(times, known);
  times.enter(Status::Finished, at(27));
  times.enter(Status::Exited, at(28));
  known.train = Duration(7000);
  known.now.reset();
  EXPECT_EQ(times, known);
}

TEST(StageTimes, AreNotStretchedByHearingLateThatAStageIsOver) {
  StageTimes times;
  times.enter(Status::Loading, at(0));
  times.enter(Status::Waiting, at(2));
  times.enter(Status::Training, at(5));
  times.enter(Status::Finished, at(35));
  times.end_by(at(9));
  EXPECT_EQ(times.load, Duration(2000));
  EXPECT_EQ(times.train, Duration(4000));
  // Shorter stages stay as they were, and no stage becomes negative.
  times.end_by(at(20));
  EXPECT_EQ(times.train, Duration(4000));
  times.end_by(at(1));
  EXPECT_EQ(times.load, Duration(1000));
  EXPECT_EQ(times.train, Duration(0));
}

}  // namespace
}  // namespace trainyard::model
