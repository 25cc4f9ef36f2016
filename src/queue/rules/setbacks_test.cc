#include "queue/rules/setbacks.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::queue {
namespace {

using testing::ElementsAre;

SetAside no_machine() { return {.why = "no machine is left"}; }

SetAside no_start() { return {.began = false, .why = "too many processes"}; }

/// Notes this number of ends of run 7 at time 0; the outcome of the last one.
std::variant<IncompleteRun, EndedSubmission> note_ends(Setbacks& setbacks, int count,
                                                       const SetAside& step, int finished = 0) {
  for (int end = 1; end < count; ++end) {
    EXPECT_TRUE(std::holds_alternative<IncompleteRun>(setbacks.note_end(7, step, finished, 0)));
  }
  return setbacks.note_end(7, step, finished, 0);
}

TEST(Setbacks, PauseARunThatEndedIncomplete) {
  Setbacks setbacks;
  EXPECT_FALSE(setbacks.is_incomplete(7));
  EXPECT_EQ(std::get<IncompleteRun>(setbacks.note_end(7, no_machine(), 3, 1'000)),
            (IncompleteRun{
                .ends = 1, .finished = 3, .resumes_unix_ms = 61'000, .why = "no machine is left"}));
  EXPECT_TRUE(setbacks.is_incomplete(7));
  EXPECT_FALSE(setbacks.is_incomplete(8));
  EXPECT_EQ(setbacks.pause_left(7, 1'000), Duration{60'000});
  EXPECT_EQ(setbacks.pause_left(7, 31'000), Duration{30'000});
  EXPECT_EQ(setbacks.pause_left(7, 61'000), Duration{0});
  EXPECT_EQ(setbacks.pause_left(7, 90'000), Duration{0});
}

TEST(Setbacks, DoubleThePausesUpToHalfAnHour) {
  Setbacks setbacks;
  std::vector<std::int64_t> minutes;
  for (int end = 0; end < 7; ++end) {
    EXPECT_TRUE(std::holds_alternative<IncompleteRun>(setbacks.note_end(7, no_start(), 0, 1'000)));
    minutes.push_back(setbacks.pause_left(7, 1'000).count() / 60'000);
  }
  EXPECT_THAT(minutes, ElementsAre(1, 2, 4, 8, 16, 30, 30));
}

TEST(Setbacks, EndARunAfterSixEndsInARowWithoutATaskThatFinished) {
  Setbacks setbacks;
  note_ends(setbacks, kIncompleteEndsMax - 1, no_machine(), 3);
  EXPECT_EQ(std::get<IncompleteRun>(setbacks.note_end(7, no_machine(), 4, 0)).ends, 1);
  EXPECT_EQ(std::get<EndedSubmission>(note_ends(setbacks, kIncompleteEndsMax - 1, no_machine(), 4)),
            (EndedSubmission{.exit_code = 75,
                             .why = "ended incomplete 6 times in a row (no machine is left)"}));
}

TEST(Setbacks, NeverEndARunThatCouldNotStart) {
  Setbacks setbacks;
  EXPECT_EQ(std::get<IncompleteRun>(note_ends(setbacks, 100, no_start())).ends, 100);
}

TEST(Setbacks, ContinueWithThoseThatAnEarlierServerCounted) {
  Setbacks setbacks;
  setbacks.take_up(7, {.ends = 2, .finished = 3, .resumes_unix_ms = 5'000});
  EXPECT_EQ(setbacks.pause_left(7, 2'000), Duration{3'000});
  EXPECT_EQ(std::get<IncompleteRun>(setbacks.note_end(7, no_machine(), 3, 5'000)).ends, 3);
}

TEST(Setbacks, ShowThatTheMachineIsShortUntilTheRunThatCouldNotStartHasStarted) {
  Setbacks setbacks;
  setbacks.note_start(7);
  EXPECT_FALSE(setbacks.is_machine_short());
  setbacks.take_up(7, {.ends = 5});
  EXPECT_FALSE(setbacks.is_machine_short());
  setbacks.take_up(8, {.ends = 1, .began = false});
  EXPECT_TRUE(setbacks.is_machine_short());
  setbacks.note_start(7);
  EXPECT_TRUE(setbacks.is_machine_short());
  setbacks.note_start(8);
  EXPECT_FALSE(setbacks.is_machine_short());
  EXPECT_TRUE(setbacks.is_incomplete(8)) << "its ends still count";
}

TEST(Setbacks, CountTheDeathsOfARunInARow) {
  Setbacks setbacks;
  EXPECT_EQ(setbacks.deaths_of(7), 0);
  setbacks.note_death(7);
  setbacks.note_death(7);
  EXPECT_EQ(setbacks.deaths_of(7), 2);
  EXPECT_EQ(setbacks.deaths_of(8), 0);
  EXPECT_FALSE(setbacks.is_incomplete(7)) << "it is resumed at once";
  note_ends(setbacks, 1, no_machine());
  EXPECT_EQ(setbacks.deaths_of(7), 0);
}

TEST(Setbacks, AreForgottenWhenTheSubmissionHasEnded) {
  Setbacks setbacks;
  note_ends(setbacks, 3, no_start());
  setbacks.note_death(7);
  setbacks.forget(7);
  EXPECT_FALSE(setbacks.is_incomplete(7));
  EXPECT_FALSE(setbacks.is_machine_short());
  EXPECT_EQ(setbacks.deaths_of(7), 0);
  EXPECT_EQ(std::get<IncompleteRun>(note_ends(setbacks, 1, no_machine())).ends, 1);
}

TEST(Setbacks, OfIncompleteRunsAreForgottenWhenTheyAreTakenOutOfTheQueue) {
  Setbacks setbacks;
  setbacks.take_up(7, {.ends = 1, .began = false});
  setbacks.take_up(8, {.ends = 1});
  setbacks.forget_if([](std::uint32_t number) { return number == 7; });
  EXPECT_FALSE(setbacks.is_incomplete(7));
  EXPECT_FALSE(setbacks.is_machine_short());
  EXPECT_TRUE(setbacks.is_incomplete(8));
}

}  // namespace
}  // namespace trainyard::queue
