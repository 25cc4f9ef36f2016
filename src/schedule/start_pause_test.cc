// The reaction of the scheduler when the machine refuses to start tasks, as it is short of disk
// space, inodes, processes or open files.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/plan.h"
#include "schedule/test_yard.h"

namespace trainyard::schedule {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

model::Decision refused(Yard& yard, std::uint32_t task, Instant when, std::uint32_t attempt = 1) {
  return yard.ended(task, when, model::NotStarted{.why = "no inodes left", .of_machine = true}, {},
                    attempt);
}

model::Decision time_passes(Yard& yard, Instant when) { return yard.on(when, model::TimePassed{}); }

model::Policy with_patience(int seconds) {
  model::Policy policy = kAnythingGoes;
  policy.machine_patience = Duration{seconds * 1000};
  return policy;
}

TEST(StartPause, UsesUpNoRetryAndHoldsAllOthersBack) {
  Yard yard(PlanBuilder().tasks(3, gb(4)));
  EXPECT_THAT(commands(yard.first), ElementsAre("start 0#1 with 4 GB", "start 1#1 with 4 GB"));
  const model::Decision first = refused(yard, 0, at(1));
  EXPECT_THAT(
      changes(first),
      ElementsAre("0#1 INTERRUPT CANNOT_START: not started (no retry is used up): no inodes left",
                  "shape 0: cannot start tasks: no inodes left"));
  EXPECT_THAT(commands(first), IsEmpty());
  EXPECT_THAT(commands(refused(yard, 1, at(1))), IsEmpty());
  EXPECT_EQ(yard.wakeup(), at(2));
}

TEST(StartPause, IsFollowedByOneTrialThatTheOthersWaitFor) {
  Yard yard(PlanBuilder().tasks(2, gb(4)));
  static_cast<void>(refused(yard, 0, at(1)));
  static_cast<void>(refused(yard, 1, at(1)));
  EXPECT_THAT(commands(time_passes(yard, at(2))), ElementsAre("start 0#2 with 4 GB"));
  EXPECT_EQ(yard.wakeup(), std::nullopt);
  EXPECT_THAT(commands(yard.started(0, at(3), 2)), ElementsAre("start 1#2 with 4 GB"));
}

TEST(StartPause, IsOverWhenTheTrialFailsForACauseOfItsOwn) {
  Yard yard(PlanBuilder().tasks(2, gb(4)));
  static_cast<void>(refused(yard, 0, at(1)));
  static_cast<void>(refused(yard, 1, at(1)));
  static_cast<void>(time_passes(yard, at(2)));
  const model::Decision ended = yard.ended(0, at(3), model::NotStarted{"no such file"}, {}, 2);
  EXPECT_THAT(changes(ended), Contains("0#2 EXCEPTION FAILED CANNOT_START: no such file"));
  EXPECT_THAT(commands(ended), ElementsAre("start 1#2 with 4 GB"));
}

TEST(StartPause, IsShortAgainOnceATaskWasStarted) {
  Yard yard(PlanBuilder().tasks(4, gb(6)));
  static_cast<void>(refused(yard, 0, at(0)));
  static_cast<void>(time_passes(yard, at(1)));
  static_cast<void>(refused(yard, 1, at(1)));
  static_cast<void>(time_passes(yard, at(3)));
  static_cast<void>(yard.ran(2, at(3)));
  for (const std::uint32_t task : {0U, 1U}) {
    static_cast<void>(yard.started(task, at(9), 2));
    static_cast<void>(yard.ended(task, at(9), model::ExitedWith{0}, {}, 2));
  }
  static_cast<void>(refused(yard, 3, at(10)));
  EXPECT_EQ(yard.wakeup(), at(11));
}

TEST(StartPause, IsFollowedByTheTrialOfATaskLeastLikeThoseThatWereRefused) {
  Yard yard(PlanBuilder().tasks(2, gb(6)).tasks(1, gb(7)));
  EXPECT_THAT(commands(yard.first), ElementsAre("start 0#1 with 6 GB"));
  static_cast<void>(refused(yard, 0, at(0)));
  EXPECT_THAT(commands(time_passes(yard, at(1))), ElementsAre("start 2#1 with 7 GB"));
  static_cast<void>(refused(yard, 2, at(1)));
  EXPECT_THAT(commands(time_passes(yard, at(3))), ElementsAre("start 1#1 with 6 GB"));
  static_cast<void>(refused(yard, 1, at(3)));
  EXPECT_THAT(commands(time_passes(yard, at(7))), ElementsAre("start 2#2 with 7 GB"));
}

TEST(StartPause, ChangesTheOrderOfTasksOnlyUntilItIsOver) {
  Yard yard(PlanBuilder().tasks(3, gb(6)));
  static_cast<void>(refused(yard, 0, at(0)));
  EXPECT_THAT(commands(time_passes(yard, at(1))), ElementsAre("start 1#1 with 6 GB"));
  static_cast<void>(yard.started(1, at(1)));
  EXPECT_THAT(commands(yard.ended(1, at(5))), ElementsAre("start 0#2 with 6 GB"));
}

TEST(RefusedTask, HoldsNobodyUpOnceAnotherTaskWasStarted) {
  Yard yard(PlanBuilder().tasks(2, gb(1)).tasks(1, gb(9)));
  static_cast<void>(refused(yard, 0, at(0)));
  EXPECT_THAT(commands(yard.started(1, at(1))), ElementsAre("start 0#2 with 1 GB"));
  const model::Decision again = refused(yard, 0, at(1), 2);
  EXPECT_THAT(changes(again), Contains("0#2 INTERRUPT CANNOT_START: not started (no retry is used "
                                       "up, next start in 1 s): no inodes left"));
  EXPECT_THAT(commands(again), ElementsAre("start 2#1 with 9 GB"));
}

TEST(RefusedTask, FailsAfterThePatienceIfOthersWereStarted) {
  Yard yard(PlanBuilder().tasks(2, gb(1)), with_patience(3));
  static_cast<void>(refused(yard, 0, at(0)));
  static_cast<void>(yard.started(1, at(1)));
  static_cast<void>(refused(yard, 0, at(1), 2));
  static_cast<void>(time_passes(yard, at(2)));
  static_cast<void>(refused(yard, 0, at(2), 3));
  static_cast<void>(time_passes(yard, at(4)));
  EXPECT_THAT(changes(refused(yard, 0, at(4), 4)),
              Contains("0#4 EXCEPTION FAILED CANNOT_START: no inodes left; other tasks were "
                       "started meanwhile"));
  EXPECT_FALSE(yard.over());
  static_cast<void>(yard.ended(1, at(5)));
  EXPECT_TRUE(yard.over());
  EXPECT_EQ(yard.scheduler().refused_by_machine(), "");
}

TEST(RefusedTask, IsExcusedAnewOnceItWasStarted) {
  Yard yard(PlanBuilder().tasks(2, gb(1)).retries({.failures = 1}), with_patience(0));
  static_cast<void>(refused(yard, 0, at(0)));
  static_cast<void>(yard.started(1, at(1)));
  static_cast<void>(yard.started(0, at(2), 2));
  static_cast<void>(yard.ended(0, at(3), model::ExitedWith{1}, {}, 2));
  EXPECT_THAT(changes(refused(yard, 0, at(4), 3)),
              Contains("0#3 INTERRUPT CANNOT_START: not started (no retry is used up): no inodes "
                       "left"));
}

TEST(StartPause, DoesNotKeepTasksFromAnotherMachine) {
  Yard yard(PlanBuilder().tasks(1, gb(1)));
  static_cast<void>(
      yard.on(kStart, model::MachineJoined{.machine = {1}, .name = "lab2", .capacity = kMachine}));
  static_cast<void>(
      yard.on(kStart, model::Sampled{.memory_available = kMachineMemory, .machine = {1}}));
  EXPECT_THAT(commands(refused(yard, 0, at(1))), ElementsAre("start 0#2 with 1 GB on 1"));
}

TEST(StartPause, EndsTheRunAfterItsPatienceAndNoTaskHasFailed) {
  Yard yard(PlanBuilder().tasks(4, gb(6)), with_patience(3));
  static_cast<void>(refused(yard, 0, at(0)));
  static_cast<void>(time_passes(yard, at(1)));
  static_cast<void>(refused(yard, 1, at(1)));
  EXPECT_EQ(yard.scheduler().refused_by_machine(), "");
  static_cast<void>(time_passes(yard, at(3)));
  const std::vector<std::string> told = changes(refused(yard, 2, at(3)));
  EXPECT_THAT(told, Contains("0#1 INTERRUPT STOPPED: cannot start tasks: no inodes left"));
  EXPECT_THAT(told, Contains("1#1 INTERRUPT STOPPED: cannot start tasks: no inodes left"));
  EXPECT_THAT(told, Contains("2#1 INTERRUPT STOPPED: cannot start tasks: no inodes left"));
  EXPECT_THAT(told, Contains("3#0 INIT STOPPED: cannot start tasks: no inodes left"));
  EXPECT_THAT(told, Contains("group 0 stopped"));
  EXPECT_TRUE(yard.over());
  EXPECT_EQ(yard.scheduler().refused_by_machine(), "cannot start tasks: no inodes left");
}

TEST(StartPause, DoesNotEndTheRunWhileATaskRuns) {
  Yard yard(PlanBuilder().tasks(2, gb(5)), with_patience(0));
  static_cast<void>(yard.started(0, at(0)));
  static_cast<void>(refused(yard, 1, at(1)));
  static_cast<void>(time_passes(yard, at(2)));
  static_cast<void>(refused(yard, 1, at(2), 2));
  EXPECT_FALSE(yard.over());
  static_cast<void>(yard.ended(0, at(3)));
  EXPECT_THAT(commands(time_passes(yard, at(4))), ElementsAre("start 1#3 with 5 GB"));
  static_cast<void>(refused(yard, 1, at(4), 3));
  EXPECT_TRUE(yard.over());
}

TEST(StartPause, LeavesATaskStoppedWhoseRunWasInterruptedMeanwhile) {
  Yard yard(PlanBuilder().tasks(1, gb(1)));
  static_cast<void>(yard.on(at(1), model::InterruptAsked{}));
  EXPECT_THAT(changes(refused(yard, 0, at(2))),
              ElementsAre("0#1 AVAILABLE STOPPED: the run was interrupted", "group 0 stopped"));
}

TEST(StartPause, LeavesATaskStoppedThatWasRefusedJustBeforeItsRunWasInterrupted) {
  Yard yard(PlanBuilder().tasks(1, gb(1)));
  static_cast<void>(yard.on(at(2), model::InterruptAsked{}));
  const model::Decision late = yard.on(
      at(3),
      model::AttemptEnded{.key = {.task = {0}, .attempt = 1},
                          .end = model::NotStarted{.why = "no inodes left", .of_machine = true},
                          .ended = at(1)});
  EXPECT_THAT(changes(late), Contains("0#1 AVAILABLE STOPPED: the run was interrupted"));
}

}  // namespace
}  // namespace trainyard::schedule
