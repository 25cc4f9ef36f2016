#include "schedule/ending.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedule/test_yard.h"

namespace trainyard::schedule {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> decided(const UnwatchedAttempt& known, const model::AttemptEnded& ended) {
  const model::Decision decision = decide_unwatched_end(known, ended);
  EXPECT_TRUE(decision.commands.empty());
  return changes(decision);
}

TEST(UnwatchedEnd, OfOneThatLeftItsResultIsThatItHasFinished) {
  const model::AttemptEnded ended{.end = model::ExitedWith{0}, .result = R"({"x":1})"};
  EXPECT_THAT(decided({.status = Status::Training, .told_to_end = true}, ended),
              ElementsAre("0#1 FINISHED", "0#1 EXITED FINISHED"));
  EXPECT_THAT(decided({.status = Status::Available, .attempt = 3}, ended),
              ElementsAre("0#3 TRAINING", "0#3 FINISHED", "0#3 EXITED FINISHED"));
}

TEST(UnwatchedEnd, OfOneThatWasToldToEndIsThatOfAnInterruptedTask) {
  EXPECT_THAT(
      decided({.status = Status::Training, .told_to_end = true}, {.end = model::ExitedWith{0}}),
      ElementsAre("0#1 INTERRUPT STOPPED: trainyard died while the task ran; the task was then "
                  "killed: exit code 0"));
}

TEST(UnwatchedEnd, OfOneThatFailedByItselfSaysWhat) {
  model::AttemptEnded ended{.end = model::ExitedWith{3}};
  ended.last_words = "ValueError: no";
  EXPECT_THAT(decided({.status = Status::Training}, ended),
              ElementsAre("0#1 EXCEPTION FAILED EXIT: ValueError: no"));
  ended.out_of_memory = "MemoryError";
  EXPECT_THAT(decided({.status = Status::Training}, ended),
              ElementsAre("0#1 EXCEPTION FAILED OUT_OF_MEMORY: MemoryError"));
}

TEST(UnwatchedEnd, OfOneThatTheMachineCouldNotStartIsThatOfAnInterruptedTask) {
  EXPECT_THAT(decided({.status = Status::Available},
                      {.end = model::NotStarted{.why = "disk full", .of_machine = true}}),
              ElementsAre("0#1 INTERRUPT STOPPED: disk full"));
}

TEST(UnwatchedEnd, OfOneThatHadTrainedIsThatItHasFinishedHoweverItEnded) {
  EXPECT_THAT(decided({.status = Status::Finished, .two_phase = true, .told_to_end = true},
                      {.end = model::KilledBy{.signal = 15}}),
              ElementsAre("0#1 EXITED FINISHED"));
}

}  // namespace
}  // namespace trainyard::schedule
