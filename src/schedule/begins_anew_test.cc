// A task that has ended starts over when a user asks for it, and only then.
#include <cstdint>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/plan.h"
#include "model/status.h"
#include "schedule/test_yard.h"

namespace trainyard::schedule {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr model::ExitedWith kFailed{3};

model::RetryAsked retry(std::uint32_t task, std::uint64_t request = 9) {
  return {.task = {task}, .request = request};
}

/// Two groups, of which the second needs the first: one task each.
PlanBuilder chain() {
  return PlanBuilder()
      .group({.name = "train"})
      .tasks(1, gb(1))
      .group({.name = "eval", .needs = {{0}}})
      .tasks(1, gb(1));
}

TEST(BeginsAnew, GetsItsNextAttemptWhileOthersRun) {
  Yard yard(PlanBuilder().tasks(2, gb(1)));
  static_cast<void>(yard.ran(0, at(1), kFailed));
  const model::Decision asked = yard.on(at(2), retry(0));
  EXPECT_THAT(changes(asked), ElementsAre("0#0 INIT", "0#2 AVAILABLE"));
  EXPECT_THAT(commands(asked), ElementsAre("answer 9 done", "start 0#2 with 1 GB"));
}

TEST(BeginsAnew, OpensItsGroupAgain) {
  Yard yard(
      PlanBuilder().group({.name = "a"}).tasks(1, gb(1)).group({.name = "b"}).tasks(1, gb(1)));
  static_cast<void>(yard.ran(0, at(1), kFailed));
  EXPECT_THAT(changes(yard.on(at(2), retry(0))),
              ElementsAre("0#0 INIT", "group 0 blocked", "group 0 running", "0#2 AVAILABLE"));
  static_cast<void>(yard.started(0, at(3), 2));
  EXPECT_THAT(changes(yard.ended(0, at(4), model::ExitedWith{0}, {}, 2)),
              ElementsAre("0#2 FINISHED", "0#2 EXITED FINISHED", "group 0 finished"));
}

TEST(BeginsAnew, HasAllItsTriesAgain) {
  Yard yard(PlanBuilder().tasks(2, gb(1)).retries({.failures = 1}));
  static_cast<void>(yard.ran(0, at(1), kFailed));
  static_cast<void>(yard.started(0, at(2), 2));
  static_cast<void>(yard.ended(0, at(3), kFailed, {}, 2));
  static_cast<void>(yard.on(at(4), retry(0)));
  static_cast<void>(yard.started(0, at(5), 3));
  EXPECT_THAT(commands(yard.ended(0, at(6), kFailed, {}, 3)), ElementsAre("start 0#4 with 1 GB"));
}

TEST(BeginsAnew, AsksForWhatSomebodyWants) {
  Yard yard(PlanBuilder().tasks(2, gb(1)));
  static_cast<void>(yard.ran(0, at(1), model::KilledBy{.signal = 9}));
  model::RetryAsked more = retry(0);
  more.memory = gb(3);
  more.time_limit = Duration{5'000};
  const model::Decision asked = yard.on(at(2), more);
  EXPECT_THAT(commands(asked), ElementsAre("answer 9 done", "start 0#2 with 3 GB"));
  EXPECT_THAT(reached(asked), ElementsAre(HasSubstr("3 GB"))) << "for a run that is resumed";
  static_cast<void>(yard.started(0, at(2), 2));
  EXPECT_EQ(yard.wakeup(), at(7)) << "its time limit";
}

TEST(BeginsAnew, WaitsForWhatItsGroupNeedsThatBeganAnewToo) {
  Yard yard(chain().group({.name = "other"}).tasks(1, gb(1)));
  EXPECT_THAT(changes(yard.ran(0, at(1), kFailed)), Contains(HasSubstr("group 1 skipped")));
  static_cast<void>(yard.on(at(2), retry(0)));
  const model::Decision asked = yard.on(at(2), retry(1));
  EXPECT_THAT(commands(asked), ElementsAre("answer 9 done"));
  EXPECT_THAT(changes(asked),
              ElementsAre("1#0 INIT", "group 1 blocked", "shape 1: waits for group 'train'"));
  static_cast<void>(yard.started(0, at(3), 2));
  EXPECT_THAT(commands(yard.ended(0, at(4), model::ExitedWith{0}, {}, 2)),
              ElementsAre("start 1#1 with 1 GB"));
}

TEST(BeginsAnew, DoesNotWhereWhatItsGroupNeedsHasFailed) {
  Yard yard(chain().group({.name = "other"}).tasks(1, gb(1)));
  static_cast<void>(yard.ran(0, at(1), kFailed));
  const model::Decision asked = yard.on(at(2), retry(1));
  EXPECT_THAT(commands(asked), ElementsAre("answer 9 not running"));
  EXPECT_THAT(changes(asked), IsEmpty());
}

TEST(BeginsAnew, DoesNotWhileItRunsWaitsOrWhenItHasFinished) {
  Yard yard(PlanBuilder().tasks(3, gb(6)));
  for (const std::uint32_t task : {0U, 1U, 7U}) {
    const model::Decision asked = yard.on(at(1), retry(task));
    EXPECT_THAT(commands(asked), ElementsAre("answer 9 not running")) << task;
    EXPECT_THAT(changes(asked), IsEmpty()) << task;
  }
  static_cast<void>(yard.ran(0, at(2)));
  EXPECT_THAT(commands(yard.on(at(3), retry(0))), ElementsAre("answer 9 not running"));
}

TEST(BeginsAnew, DoesNotWhenTheRunIsToEndOrItsGroupFailsFast) {
  Yard interrupted(PlanBuilder().tasks(2, gb(1)));
  static_cast<void>(interrupted.ran(0, at(1), kFailed));
  static_cast<void>(interrupted.started(1, at(1)));
  static_cast<void>(interrupted.on(at(2), model::InterruptAsked{}));
  EXPECT_THAT(commands(interrupted.on(at(3), retry(0))), ElementsAre("answer 9 not running"));
  Yard fast(PlanBuilder().group({.name = "g", .fail_fast = true}).tasks(2, gb(1)));
  static_cast<void>(fast.started(1, at(1)));
  static_cast<void>(fast.ran(0, at(1), kFailed));
  EXPECT_THAT(commands(fast.on(at(2), retry(0))), ElementsAre("answer 9 not running"));
  static_cast<void>(fast.ended(1, at(3), model::KilledBy{.signal = 15}));
  EXPECT_TRUE(fast.over());
  EXPECT_THAT(commands(fast.on(at(4), retry(0))),
              ElementsAre("answer 9 done", "start 0#2 with 1 GB"));
}

TEST(BeginsAnew, IsEachOfAGroupThatFailedFast) {
  Yard yard(PlanBuilder().group({.name = "g", .fail_fast = true}).tasks(2, gb(1)));
  static_cast<void>(yard.started(1, at(1)));
  static_cast<void>(yard.ran(0, at(1), kFailed));
  static_cast<void>(yard.ended(1, at(2), model::KilledBy{.signal = 15}));
  EXPECT_THAT(commands(yard.on(at(3), retry(0))),
              ElementsAre("answer 9 done", "start 0#2 with 1 GB"));
  EXPECT_THAT(commands(yard.on(at(3), retry(1))),
              ElementsAre("answer 9 done", "start 1#2 with 1 GB"));
}

TEST(BeginsAnew, IsOneThatWasSkippedBeforeItStarted) {
  Yard yard(PlanBuilder().tasks(2, gb(6)));
  static_cast<void>(yard.on(at(1), model::KillAsked{.task = {1}, .request = 1}));
  EXPECT_THAT(changes(yard.on(at(2), retry(1))), Contains("1#0 INIT"));
  static_cast<void>(yard.started(0, at(3)));
  EXPECT_THAT(commands(yard.ended(0, at(4))), ElementsAre("start 1#1 with 6 GB"));
}

TEST(BeginsAnew, FailsIfItIsKilledBeforeItsNextAttempt) {
  Yard yard(PlanBuilder().tasks(2, gb(6)));
  static_cast<void>(yard.ran(0, at(1), kFailed));
  static_cast<void>(yard.started(1, at(2)));
  static_cast<void>(yard.on(at(3), retry(0)));
  const model::Decision killed = yard.on(at(4), model::KillAsked{.task = {0}, .request = 7});
  EXPECT_THAT(changes(killed),
              Contains("0#0 EXCEPTION FAILED KILLED: killed on request before its next attempt"))
      << "it has run, and is not skipped";
  EXPECT_THAT(commands(killed), ElementsAre("answer 7 done"));
  EXPECT_EQ(changes(yard.ended(1, at(5))).back(), "group 0 failed");
  EXPECT_TRUE(yard.over());
}

TEST(BeginsAnew, StopsNoOtherTaskIfItIsKilledBeforeItsGroupRuns) {
  model::Plan plan = PlanBuilder()
                         .group({.name = "train"})
                         .tasks(1, gb(1))
                         .group({.name = "eval", .needs = {{0}}, .fail_fast = true})
                         .tasks(2, gb(1))
                         .build();
  plan.tasks[0] = {.shape = {0}, .first_attempt = 2, .before = model::Verdict::Failed};
  plan.tasks[1] = {.shape = {1}, .first_attempt = 2, .before = model::Verdict::Failed};
  plan.tasks[2] = {.shape = {1}, .before = model::Verdict::Skipped};
  Yard yard(plan);
  for (const std::uint32_t task : {0U, 1U, 2U}) static_cast<void>(yard.on(at(1), retry(task)));
  EXPECT_THAT(changes(yard.on(at(2), model::KillAsked{.task = {1}, .request = 7})),
              Contains(HasSubstr("1#0 EXCEPTION FAILED KILLED")));
  EXPECT_THAT(commands(yard.on(at(3), retry(1))), ElementsAre("answer 9 done"));
  static_cast<void>(yard.on(at(4), model::KillAsked{.task = {1}, .request = 8}));
  static_cast<void>(yard.started(0, at(5), 2));
  EXPECT_THAT(commands(yard.ended(0, at(6), model::ExitedWith{0}, {}, 2)),
              ElementsAre("start 2#1 with 1 GB"));
}

TEST(BeginsAnew, LeavesAGroupWithAStoppedTaskStopped) {
  model::Plan plan = PlanBuilder().group({.name = "train"}).tasks(1, gb(1)).build();
  plan.groups.push_back({.name = "eval", .needs = {{0}}});
  plan.shapes.push_back({.group = {1}, .terms = {.request = {.memory = gb(1)}}});
  plan.tasks[0].before = model::Verdict::Failed;
  plan.tasks.push_back({.shape = {1}, .before = model::Verdict::Stopped});
  plan.tasks.push_back({.shape = {1}, .before = model::Verdict::Skipped});
  EXPECT_THAT(changes(Yard(plan).first),
              ElementsAre("group 0 running", "group 0 failed", "group 1 stopped"));
}

TEST(BeginsAnew, IsOneOfAResumedRunInWhichAllElseStays) {
  model::Plan plan = PlanBuilder().group({.name = "train"}).tasks(3, gb(1)).build();
  plan.groups.push_back({.name = "eval", .needs = {{0}}});
  plan.shapes.push_back({.group = {1}, .terms = {.request = {.memory = gb(1)}}});
  plan.tasks.push_back({.shape = {1}, .before = model::Verdict::Skipped});
  plan.tasks[0].before = model::Verdict::Finished;
  plan.tasks[1] = {.shape = {0}, .first_attempt = 3, .before = model::Verdict::Failed};
  plan.tasks[2] = {.shape = {0}, .first_attempt = 2, .before = model::Verdict::Failed};
  Yard yard(plan);
  EXPECT_TRUE(yard.over());
  EXPECT_THAT(changes(yard.first),
              ElementsAre("group 0 running", "group 0 failed", HasSubstr("group 1 skipped")));
  const model::Decision asked = yard.on(at(1), retry(1));
  EXPECT_THAT(commands(asked), ElementsAre("answer 9 done", "start 1#3 with 1 GB"));
  EXPECT_FALSE(yard.over());
  static_cast<void>(yard.started(1, at(2), 3));
  EXPECT_THAT(changes(yard.ended(1, at(3), model::ExitedWith{0}, {}, 3)),
              Contains("group 0 failed"))
      << "the other one of it has";
  EXPECT_TRUE(yard.over());
}

TEST(BeginsAnew, WaitsWithTheOthersForTheOneThatIsTriedFirst) {
  Yard yard(PlanBuilder().group({.name = "g", .try_first = true}).tasks(1, gb(2)).tasks(1, gb(1)));
  static_cast<void>(yard.started(0, at(0)));
  // With the only one that waited for it the trial is over.
  static_cast<void>(yard.on(at(1), model::KillAsked{.task = {1}, .request = 1}));
  EXPECT_THAT(commands(yard.on(at(2), retry(1))),
              ElementsAre("answer 9 done", "start 1#1 with 1 GB"));
  Yard several(
      PlanBuilder().group({.name = "g", .try_first = true}).tasks(2, gb(2)).tasks(1, gb(1)));
  static_cast<void>(several.started(0, at(0)));
  EXPECT_THAT(changes(several.on(at(1), model::KillAsked{.task = {2}, .request = 1})),
              Contains("shape 1: "));
  const model::Decision asked = several.on(at(2), retry(2));
  EXPECT_THAT(commands(asked), ElementsAre("answer 9 done"));
  EXPECT_THAT(changes(asked), Contains(HasSubstr("shape 1: ")));
}

}  // namespace
}  // namespace trainyard::schedule
