// Rules that were broken once, each found by the simulation (tests/sim/) and named here.
#include <cstdint>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/status.h"
#include "schedule/test_yard.h"

namespace trainyard::schedule {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr model::KilledBy kOutOfMemory{.signal = 9, .out_of_memory = true};

TEST(Scheduler, CountsTheMemoryOfATaskOnceWhoseEndIsHeardAfterTheNextSample) {
  Yard yard(PlanBuilder().tasks(1, gb(6)).tasks(1, gb(7)));
  static_cast<void>(yard.started(0));
  const model::TaskSample takes{.key = {.task = {0}, .attempt = 1}, .memory = gb(6)};
  static_cast<void>(yard.on(at(1), model::Sampled{.memory_available = gb(4), .tasks = {takes}}));
  // It is gone, and others have taken 4 of its 6 GB, when the next sample is made.
  static_cast<void>(yard.on(at(2), model::Sampled{.memory_available = gb(6)}));
  EXPECT_THAT(commands(yard.ended(0, at(3))), IsEmpty()) << "6 GB are there, not 12";
  EXPECT_THAT(commands(yard.on(at(4), model::Sampled{.memory_available = gb(7)})),
              ElementsAre("start 1#1 with 7 GB"));
}

TEST(Scheduler, LetsAtMostSoManyPassInOneGo) {
  const Yard yard(PlanBuilder().tasks(1, gb(6)).tasks(1, gb(9)).tasks(9, Bytes{0}, model::cpus(1)),
                  {.passes_max = 2});
  EXPECT_THAT(commands(yard.first),
              ElementsAre("start 0#1 with 6 GB", "start 2#1 with 0 B", "start 3#1 with 0 B",
                          "start 4#1 with 0 B", "start 5#1 with 0 B"))
      << "after two passes only what takes nothing from it";
  const Yard other(PlanBuilder().tasks(1, gb(6)).tasks(1, gb(10)).tasks(9, gb(1)),
                   {.passes_max = 2});
  EXPECT_THAT(commands(other.first),
              ElementsAre("start 0#1 with 6 GB", "start 2#1 with 1 GB", "start 3#1 with 1 GB"));
}

TEST(Scheduler, RemembersHowOftenATaskWasPassedThoughAnotherWasTheOldestMeanwhile) {
  Yard yard(PlanBuilder().tasks(1, gb(4)).tasks(1, gb(9)).tasks(9, gb(3)), {.passes_max = 3});
  const model::End failed = model::ExitedWith{1};
  EXPECT_THAT(commands(yard.first),
              ElementsAre("start 0#1 with 4 GB", "start 2#1 with 3 GB", "start 3#1 with 3 GB"))
      << "task 1 is passed twice";
  // Task 0 comes back, asks for 7 GB, and is passed three times.
  EXPECT_THAT(commands(yard.ended(0, at(1), kOutOfMemory, gb(7))),
              ElementsAre("start 4#1 with 3 GB"));
  EXPECT_THAT(commands(yard.ended(2, at(2), failed)), ElementsAre("start 5#1 with 3 GB"));
  EXPECT_THAT(commands(yard.ended(3, at(3), failed)), ElementsAre("start 6#1 with 3 GB"));
  EXPECT_THAT(commands(yard.ended(4, at(4), failed)), IsEmpty());
  EXPECT_THAT(commands(yard.ended(5, at(5), failed)), ElementsAre("start 0#2 with 7 GB"));
  // Now task 1 is the oldest again.
  EXPECT_THAT(commands(yard.ended(6, at(6), failed)), ElementsAre("start 7#1 with 3 GB"));
  EXPECT_THAT(commands(yard.ended(7, at(7), failed)), IsEmpty()) << "that was the third time";
}

TEST(Scheduler, PromisesARetryNoMoreThanCouldEverBeFree) {
  // Others use 1 GB, so that 9 GB can be free at most, though it took 9.5 before it was killed.
  Yard yard(PlanBuilder().tasks(1, gb(4)).tasks(1, gb(2)));
  const model::Sampled reading{.memory_available = gb(9), .tasks = {}};
  EXPECT_THAT(commands(yard.ended(0, at(1), kOutOfMemory, mb(9'500))), IsEmpty());
  EXPECT_THAT(
      changes(yard.on(at(2), reading)),
      ElementsAre(
          "shape 0: needs 9 GB of memory, 7 GB available, 2 GB reserved or used by 1 task, other "
          "processes use 1 GB"))
      << "the other still runs";
  EXPECT_THAT(commands(yard.ended(1, at(3), model::ExitedWith{0})),
              ElementsAre("start 0#2 with 9 GB"));
}

TEST(Scheduler, LetsARetryThatLacksMemoryForItsShapeWaitForOthers) {
  Yard yard(PlanBuilder().tasks(1, gb(4)));
  static_cast<void>(yard.on(at(1), model::Sampled{.memory_available = gb(3), .tasks = {}}));
  EXPECT_THAT(commands(yard.ended(0, at(2), kOutOfMemory, gb(8))), IsEmpty());
  EXPECT_THAT(commands(yard.on(at(3), model::Sampled{.memory_available = gb(5), .tasks = {}})),
              ElementsAre("start 0#2 with 5 GB"));
}

TEST(Scheduler, LooksBehindALargeGroupThatRunsAsManyAsItMay) {
  PlanBuilder plan;
  plan.group({.name = "wide", .parallel_max = 1});
  for (int i = 1; i <= 200; ++i) plan.tasks(1, mb(i));
  const Yard yard(plan.group({.name = "beside"}).tasks(1, gb(1)));
  EXPECT_THAT(commands(yard.first), ElementsAre("start 0#1 with 1 MB", "start 200#1 with 1 GB"));
}

TEST(Scheduler, SaysWhyAGroupIsSkippedThatNeedsOneWithAKilledTask) {
  Yard yard(PlanBuilder()
                .group({.name = "a"})
                .tasks(1, gb(9))
                .tasks(1, gb(8))
                .group({.name = "b", .needs = {{0}}})
                .tasks(1, gb(1)));
  static_cast<void>(yard.on(at(1), model::KillAsked{.task = {1}, .request = 1}));
  EXPECT_THAT(changes(yard.ran(0, at(2))),
              ::testing::Contains("group 1 skipped: needs group 'a', where a task was never "
                                  "started"));
}

TEST(Scheduler, GivesNoCauseForAGroupWhoseTasksWereAllKilledBeforeItIsSkipped) {
  Yard yard(PlanBuilder()
                .group({.name = "a"})
                .tasks(1, gb(1))
                .group({.name = "b", .needs = {{0}}})
                .tasks(1, gb(1)));
  static_cast<void>(yard.on(at(1), model::KillAsked{.task = {1}, .request = 1}));
  EXPECT_THAT(changes(yard.ran(0, at(2), model::ExitedWith{1})),
              ElementsAre("0#1 EXCEPTION FAILED EXIT: exited with code 1", "group 0 failed",
                          "group 1 skipped"));
}

// The skipped task keeps the cause when a retry of task 0 alone has finished.
TEST(Scheduler, CountsNoFailedTasksInTheCauseThatASkippedTaskKeeps) {
  Yard yard(PlanBuilder()
                .group({.name = "a"})
                .tasks(2, gb(1))
                .group({.name = "b", .needs = {{0}}})
                .tasks(1, gb(1)));
  static_cast<void>(yard.ran(0, at(1), model::ExitedWith{1}));
  EXPECT_THAT(changes(yard.ran(1, at(2), model::ExitedWith{1})),
              ::testing::Contains("group 1 skipped: needs group 'a', where a task failed"));
}

TEST(Scheduler, LetsNothingStartBesideAReservedTaskOnTheHopeThatAllOthersEndAtOnce) {
  // The durations of these are unknown. 7 GB are free when one more of them has ended, and then no
  // room is left.
  Yard yard(PlanBuilder().tasks(3, gb(3)).tasks(1, gb(7)).tasks(9, gb(3)), {.passes_max = 1});
  EXPECT_THAT(commands(yard.ended(0, at(1), model::ExitedWith{1})),
              ElementsAre("start 4#1 with 3 GB"));
  EXPECT_THAT(commands(yard.ended(1, at(2), model::ExitedWith{1})), IsEmpty());
  EXPECT_THAT(commands(yard.ended(2, at(3), model::ExitedWith{1})),
              ElementsAre("start 3#1 with 7 GB"));
}

TEST(Scheduler, TakesBackTheReasonOfABlockedTaskThatIsKilled) {
  Yard yard(PlanBuilder()
                .group({.name = "a"})
                .tasks(1, gb(1))
                .group({.name = "b", .needs = {{0}}})
                .tasks(2, gb(1)));
  EXPECT_THAT(changes(yard.on(at(1), model::KillAsked{.task = {1}, .request = 1})),
              ElementsAre("1#0 INIT SKIPPED: killed on request before it started"))
      << "the other still waits";
  EXPECT_THAT(changes(yard.on(at(2), model::KillAsked{.task = {2}, .request = 2})),
              ElementsAre("2#0 INIT SKIPPED: killed on request before it started", "shape 1: "));
}

TEST(Scheduler, GivesNoReasonForABlockedShapeWhoseTasksHaveAllFinishedBefore) {
  model::Plan plan = PlanBuilder()
                         .group({.name = "a"})
                         .tasks(1, gb(1))
                         .group({.name = "b", .needs = {{0}}})
                         .tasks(1, gb(1))
                         .tasks(1, gb(2))
                         .build();
  plan.tasks[1].before = model::Verdict::Finished;
  EXPECT_THAT(changes(Yard(plan).first),
              ElementsAre("group 0 running", "shape 2: waits for group 'a'", "0#1 AVAILABLE"));
}

TEST(Scheduler, FailsATaskThatIsKilledWhileItWaitsForAnotherTry) {
  Yard yard(PlanBuilder().group({.name = "g", .fail_fast = true}).tasks(2, gb(4)).tasks(1, gb(9)));
  static_cast<void>(yard.started(0));
  static_cast<void>(yard.started(1));
  EXPECT_THAT(commands(yard.ended(0, at(1), kOutOfMemory, gb(7))), IsEmpty());
  const model::Decision killed = yard.on(at(2), model::KillAsked{.task = {0}, .request = 5});
  EXPECT_THAT(
      changes(killed),
      ElementsAre("0#1 EXCEPTION FAILED KILLED: killed on request while it waited for a retry",
                  "shape 0: ", "2#0 INIT SKIPPED: another task of its group failed (fail-fast)",
                  "shape 1: "));
  EXPECT_THAT(commands(killed), ElementsAre("answer 5 done", "stop 1#1"));
}

TEST(Scheduler, StopsNoOtherTaskForOneThatIsKilledBeforeItsAttemptInAResumedRun) {
  model::Plan plan = PlanBuilder().group({.name = "g", .fail_fast = true}).tasks(2, gb(6)).build();
  for (model::PlannedTask& task : plan.tasks) task.first_attempt = 2;
  Yard yard(plan);
  static_cast<void>(yard.started(0, at(1), 2));
  const model::Decision killed = yard.on(at(2), model::KillAsked{.task = {1}, .request = 5});
  EXPECT_THAT(changes(killed),
              ElementsAre("1#0 EXCEPTION FAILED KILLED: killed on request before its next attempt",
                          "shape 0: "));
  EXPECT_THAT(commands(killed), ElementsAre("answer 5 done"));
  EXPECT_THAT(changes(yard.ended(0, at(3), model::ExitedWith{0}, {}, 2)),
              ElementsAre("0#2 FINISHED", "0#2 EXITED FINISHED", "group 0 failed"));
}

TEST(Scheduler, FailsATaskThatWaitsForAnotherTryWhenItsGroupFailsFast) {
  Yard yard(PlanBuilder().group({.name = "g", .fail_fast = true}).tasks(2, gb(4)));
  static_cast<void>(yard.started(0));
  static_cast<void>(yard.started(1));
  static_cast<void>(yard.ended(0, at(1), kOutOfMemory, gb(7)));
  EXPECT_THAT(changes(yard.ended(1, at(2), model::ExitedWith{1})),
              ElementsAre("1#1 EXCEPTION FAILED EXIT: exited with code 1",
                          "0#1 EXCEPTION FAILED KILLED: another task of its group failed "
                          "(fail-fast)",
                          "shape 0: ", "group 0 failed"));
  EXPECT_TRUE(yard.over());
}

TEST(Scheduler, GivesUpOnATaskSomeDayHoweverManyTriesItMayHave) {
  Yard yard(PlanBuilder().tasks(1, gb(10)), {.train_retries = 1'000'000});
  std::uint32_t attempt = 1;
  while (attempt < 1'000 && !yard.over()) {
    static_cast<void>(yard.ended(0, at(1), kOutOfMemory, {}, attempt++));
  }
  EXPECT_TRUE(yard.over());
  EXPECT_EQ(attempt, 256U);
}

TEST(Scheduler, SaysWhyATaskWaitsThatCameBackBehindManyOthers) {
  // When task 130 has ended 130 older ones come, and wait for what task 131 holds.
  PlanBuilder plan;
  plan.group({.name = "later", .needs = {{1}}});
  for (int i = 0; i < 130; ++i) plan.tasks(1, gb(8) + Bytes{i});
  plan.group({.name = "first", .needs = {}}).tasks(1, gb(1));
  Yard yard(plan.group({.name = "beside", .needs = {}}).tasks(1, gb(4)));
  EXPECT_THAT(commands(yard.first), ElementsAre("start 130#1 with 1 GB", "start 131#1 with 4 GB"));
  EXPECT_THAT(commands(yard.ended(130, at(1))), IsEmpty());
  const model::Decision back = yard.ended(131, at(2), kOutOfMemory);
  EXPECT_THAT(commands(back), ElementsAre("start 0#1 with 8 GB"));
  EXPECT_EQ(changes(back).back(), "shape 131: older tasks are considered first");
}

// Found by the simulation, with seed 13078.
TEST(Scheduler, DoesNotTryAgainWhatWasKilledOnRequestWhileItLingeredAfterRunningOut) {
  Yard yard(PlanBuilder().tasks(1, gb(4)).two_phase(), {.stop_grace = Duration{10'000}});
  static_cast<void>(yard.started(0, at(0)));
  static_cast<void>(yard.says(0, at(0), model::Said::Loading));
  static_cast<void>(yard.says(0, at(1), model::Said::OutOfMemory, "MemoryError"));
  EXPECT_THAT(commands(yard.on(at(11), model::TimePassed{})), ElementsAre("stop 0#1"));
  EXPECT_THAT(commands(yard.on(at(12), model::KillAsked{.task = {0}, .request = 3})), IsEmpty());
  const model::Decision ended = yard.ended(0, at(13), model::ExitedWith{1});
  EXPECT_EQ(changes(ended).front(), "0#1 EXCEPTION FAILED KILLED: killed on request");
  EXPECT_THAT(commands(ended), ElementsAre("answer 3 done"));
}

TEST(Scheduler, TakesACommandsOwnWordForHavingRunOutOfMemory) {
  Yard yard(PlanBuilder().tasks(1, gb(1)));
  static_cast<void>(yard.started(0));
  const auto ended = [](std::uint32_t attempt) {
    return model::AttemptEnded{.key = {.task = {0}, .attempt = attempt},
                               .end = model::ExitedWith{1},
                               .usage = {},
                               .result = {},
                               .warning = {},
                               .out_of_memory = "RuntimeError: CUDA out of memory"};
  };
  EXPECT_THAT(changes(yard.on(at(1), ended(1))),
              ElementsAre("0#1 INTERRUPT OUT_OF_MEMORY: RuntimeError: CUDA out of memory; retrying "
                          "with 1.2 GB",
                          "0#2 AVAILABLE"));
}

}  // namespace
}  // namespace trainyard::schedule
