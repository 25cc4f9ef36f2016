// Tasks that need others themselves, tasks that run whatever became of these, and tasks that a
// person keeps from starting or puts before the others.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/resource.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/plan.h"
#include "model/status.h"
#include "model/terms.h"
#include "schedule/another_try.h"
#include "schedule/test_yard.h"

namespace trainyard::schedule {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr model::ExitedWith kFails{3};

/// Cells of a training (0, 1) and an evaluation (2, 3) each; a task takes all the machine, unless
/// it takes less.
model::Plan cells(model::RunIf condition = model::RunIf::Success, Bytes memory = gb(10)) {
  model::Plan plan = PlanBuilder()
                         .group({.name = "train"})
                         .tasks(2, memory)
                         .group({.name = "eval", .needs_by_task = {{0}}})
                         .tasks(2, memory)
                         .build();
  plan.shapes.back().terms.run_if = condition;
  plan.task_needs = {{.task = {2}, .needed = {0}}, {.task = {3}, .needed = {1}}};
  return plan;
}

TEST(TaskNeeds, AreWaitedForTaskByTaskAndGoBeforeWhatHasNotBegun) {
  Yard yard(cells());
  EXPECT_THAT(
      changes(yard.first),
      ElementsAre(
          "group 0 running", "group 1 running",
          "shape 1: waits for the tasks of group 'train' that it needs", "0#1 AVAILABLE",
          "shape 0: needs 10 GB of memory, 0 B available, 10 GB reserved or used by 1 task"));
  EXPECT_THAT(commands(yard.ran(0, at(1))), ElementsAre("start 2#1 with 10 GB"))
      << "the cell is brought to its end before the next one";
  EXPECT_THAT(commands(yard.ran(2, at(2))), ElementsAre("start 1#1 with 10 GB"));
  EXPECT_THAT(commands(yard.ran(1, at(3))), ElementsAre("start 3#1 with 10 GB"));
  static_cast<void>(yard.ran(3, at(4)));
  EXPECT_TRUE(yard.over());
}

TEST(TaskNeeds, SkipOnlyWhatNeedsTheOneThatFailed) {
  Yard yard(cells());
  const model::Decision failed = yard.ran(0, at(1), kFails);
  EXPECT_THAT(changes(failed),
              ElementsAre("0#1 EXCEPTION FAILED EXIT: exited with code 3",
                          "2#0 INIT SKIPPED: needs a task of group 'train' that failed",
                          "1#1 AVAILABLE", "shape 0: "));
  static_cast<void>(yard.ran(1, at(2)));
  EXPECT_THAT(changes(yard.ran(3, at(3))),
              ElementsAre("3#1 FINISHED", "3#1 EXITED FINISHED", "group 1 failed"));
}

TEST(TaskNeeds, SkipAGroupOfWhichTheyLetNothingRun) {
  model::Plan plan = cells();
  plan.groups.push_back({.name = "report", .needs = {{1}}});
  plan.shapes.push_back({.group = {2}, .terms = plan.shapes.back().terms});
  plan.tasks.push_back({.shape = {2}});
  Yard yard(plan);
  static_cast<void>(yard.ran(0, at(1), kFails));
  EXPECT_THAT(changes(yard.ran(1, at(2), kFails)),
              ElementsAre("1#1 EXCEPTION FAILED EXIT: exited with code 3", "group 0 failed",
                          "3#0 INIT SKIPPED: needs a task of group 'train' that failed",
                          "shape 1: ", "group 1 skipped",
                          "4#0 INIT SKIPPED: needs group 'eval', which was skipped",
                          "shape 2: ", "group 2 skipped: needs group 'eval', which was skipped"));
  EXPECT_TRUE(yard.over());
}

TEST(TaskNeeds, OfATaskThatRunsAlwaysAreOverHoweverTheyEnd) {
  Yard yard(cells(model::RunIf::Always));
  EXPECT_THAT(commands(yard.ran(0, at(1), kFails)), ElementsAre("start 2#1 with 10 GB"));
}

TEST(TaskNeeds, OfATaskThatIsForFailuresMakeItNotNeeded) {
  Yard yard(cells(model::RunIf::Failure));
  EXPECT_THAT(changes(yard.ran(0, at(1))),
              ElementsAre("0#1 FINISHED", "0#1 EXITED FINISHED",
                          "2#0 INIT NOT_NEEDED: nothing that it needs failed (if: failure())",
                          "1#1 AVAILABLE", "shape 0: "));
  EXPECT_THAT(commands(yard.ran(1, at(2), kFails)), ElementsAre("start 3#1 with 10 GB"));
  EXPECT_THAT(changes(yard.ran(3, at(3))),
              ElementsAre("3#1 FINISHED", "3#1 EXITED FINISHED", "group 1 finished"))
      << "what was not needed is no failure";
}

/// A group of one, then one that needs it, on some condition.
model::Plan groups(model::RunIf condition) {
  model::Plan plan = PlanBuilder()
                         .group({.name = "train"})
                         .tasks(1, gb(1))
                         .group({.name = "report", .needs = {{0}}})
                         .tasks(1, gb(1))
                         .build();
  plan.shapes.back().terms.run_if = condition;
  return plan;
}

TEST(Conditions, AreOfGroupsToo) {
  Yard always(groups(model::RunIf::Always));
  EXPECT_THAT(commands(always.ran(0, at(1), kFails)), ElementsAre("start 1#1 with 1 GB"));
  Yard failure(groups(model::RunIf::Failure));
  EXPECT_THAT(commands(failure.ran(0, at(1), kFails)), ElementsAre("start 1#1 with 1 GB"));
  Yard not_needed(groups(model::RunIf::Failure));
  EXPECT_THAT(
      changes(not_needed.ran(0, at(1))),
      ElementsAre("0#1 FINISHED", "0#1 EXITED FINISHED", "group 0 finished", "group 1 running",
                  "1#0 INIT NOT_NEEDED: nothing that it needs failed (if: failure())",
                  "shape 1: ", "group 1 finished"));
  EXPECT_TRUE(not_needed.over());
}

TEST(Conditions, AreLookedAtAnewForATaskThatBeginsAnewWithWhatItNeeds) {
  Yard yard(groups(model::RunIf::Failure));
  static_cast<void>(yard.ran(0, at(1), model::ExitedWith{1}));
  static_cast<void>(yard.ran(1, at(2), model::ExitedWith{1}));
  const auto retry = [&yard](std::uint32_t task) {
    return yard.on(at(3), model::RetryAsked{.task = {task}, .request = 9});
  };
  static_cast<void>(retry(0));
  EXPECT_THAT(commands(retry(1)), ElementsAre("answer 9 done")) << "the first may fail again";
  static_cast<void>(yard.started(0, at(4), 2));
  EXPECT_THAT(changes(yard.ended(0, at(5), model::ExitedWith{0}, {}, 2)),
              Contains("1#0 INIT NOT_NEEDED: nothing that it needs failed (if: failure())"));
  EXPECT_TRUE(yard.over());
}

TEST(Conditions, EndATaskThatBeginsAnewThoughNothingThatItNeedsFailed) {
  for (const model::Verdict before :
       {model::Verdict::Stopped, model::Verdict::Failed, model::Verdict::NotNeeded}) {
    model::Plan plan = groups(model::RunIf::Failure);
    plan.tasks[0].before = model::Verdict::Finished;
    plan.tasks[1].before = before;
    Yard yard(plan);
    EXPECT_TRUE(yard.over()) << "all stays as it ended until somebody asks";
    const model::Decision asked = yard.on(at(1), model::RetryAsked{.task = {1}, .request = 9});
    EXPECT_THAT(commands(asked), ElementsAre("answer 9 done"));
    EXPECT_THAT(changes(asked),
                ElementsAre("1#0 INIT", "group 1 blocked", "group 1 running",
                            "1#0 INIT NOT_NEEDED: nothing that it needs failed (if: failure())",
                            "group 1 finished"));
    EXPECT_TRUE(yard.over());
  }
}

TEST(Conditions, EndATaskThatBeginsAnewWhileOthersOfItsGroupWait) {
  Yard yard(cells(model::RunIf::Failure, gb(1)));
  static_cast<void>(yard.started(1));
  static_cast<void>(yard.ran(0, at(1), kFails));
  static_cast<void>(yard.ran(2, at(2), kFails));
  const auto retry = [&yard](std::uint32_t task, Instant when) {
    return yard.on(when, model::RetryAsked{.task = {task}, .request = 9});
  };
  static_cast<void>(retry(0, at(3)));
  static_cast<void>(yard.started(0, at(4), 2));
  static_cast<void>(yard.ended(0, at(5), model::ExitedWith{0}, {}, 2));
  const model::Decision asked = retry(2, at(6));
  EXPECT_THAT(commands(asked), ElementsAre("answer 9 done"));
  EXPECT_THAT(
      changes(asked),
      ElementsAre("2#0 INIT", "2#0 INIT NOT_NEEDED: nothing that it needs failed (if: failure())"));
  EXPECT_THAT(commands(yard.ended(1, at(7), kFails)), ElementsAre("start 3#1 with 1 GB"));
}

TEST(Conditions, AreLookedAtAnewWithTheGroupThatIsNeeded) {
  for (const bool fails : {true, false}) {
    model::Plan plan = groups(model::RunIf::Failure);
    plan.tasks[0].before = model::Verdict::Stopped;
    plan.tasks[1].before = model::Verdict::NotNeeded;
    Yard yard(plan);
    EXPECT_TRUE(yard.over());
    const model::Decision asked = yard.on(at(1), model::RetryAsked{.task = {0}, .request = 9});
    EXPECT_THAT(commands(asked), ElementsAre("answer 9 done", "start 0#1 with 1 GB"));
    EXPECT_THAT(changes(asked), ElementsAre("0#0 INIT", "group 0 blocked", "group 0 running",
                                            "1#0 INIT", "group 1 blocked",
                                            "shape 1: waits for group 'train'", "0#1 AVAILABLE"));
    const model::Decision ended = yard.ran(0, at(2), model::ExitedWith{fails ? 3 : 0});
    if (fails) {
      EXPECT_THAT(commands(ended), ElementsAre("start 1#1 with 1 GB"));
    } else {
      EXPECT_THAT(changes(ended),
                  Contains("1#0 INIT NOT_NEEDED: nothing that it needs failed (if: failure())"));
    }
    EXPECT_EQ(yard.over(), !fails);
  }
}

TEST(Conditions, AreLookedAtAnewDownALongChainOnASmallStack) {
  constexpr std::uint32_t kGroups = 2500;
  PlanBuilder chain;
  chain.group({.name = "g0"}).tasks(1, gb(1));
  for (std::uint32_t group = 1; group < kGroups; ++group) {
    chain.group({.name = fmt::format("g{}", group), .needs = {{group - 1}}}).tasks(1, gb(1));
  }
  model::Plan plan = chain.build();
  plan.tasks.front().before = model::Verdict::Stopped;
  std::vector<std::string> expected{"0#0 INIT", "group 0 blocked", "group 0 running"};
  for (std::uint32_t group = 1; group < kGroups; ++group) {
    plan.tasks[group].before = model::Verdict::NotNeeded;
    plan.shapes[group].terms.run_if = model::RunIf::Failure;
    expected.push_back(fmt::format("{}#0 INIT", group));
    expected.push_back(fmt::format("group {} blocked", group));
    expected.push_back(fmt::format("shape {}: waits for group 'g{}'", group, group - 1));
  }
  expected.emplace_back("0#1 AVAILABLE");
  Yard yard(plan);
  EXPECT_TRUE(yard.over());
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_STACK, &old), 0);
  const rlimit small{.rlim_cur = 512 << 10, .rlim_max = old.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_STACK, &small), 0);
  const model::Decision asked = yard.on(at(1), model::RetryAsked{.task = {0}, .request = 9});
  ASSERT_EQ(::setrlimit(RLIMIT_STACK, &old), 0);
  EXPECT_THAT(commands(asked), ElementsAre("answer 9 done", "start 0#1 with 1 GB"));
  EXPECT_EQ(changes(asked), expected);
}

TEST(Conditions, AreLookedAtAnewWithTheTaskThatIsNeededAlone) {
  model::Plan plan = cells(model::RunIf::Failure, gb(1));
  plan.tasks[0].before = model::Verdict::Stopped;
  plan.tasks[1].before = model::Verdict::Finished;
  plan.tasks[2].before = model::Verdict::NotNeeded;
  plan.tasks[3].before = model::Verdict::NotNeeded;
  Yard yard(plan);
  EXPECT_THAT(
      changes(yard.on(at(1), model::RetryAsked{.task = {0}, .request = 9})),
      ElementsAre("0#0 INIT", "group 0 blocked", "group 0 running", "2#0 INIT", "group 1 blocked",
                  "group 1 running", "shape 1: waits for the tasks of group 'train' that it needs",
                  "0#1 AVAILABLE"));
  EXPECT_THAT(commands(yard.ran(0, at(2), kFails)), ElementsAre("start 2#1 with 1 GB"));
}

TEST(Conditions, AreLookedAtAnewWhereAResumedRunBeginsWithWhatIsNeeded) {
  model::Plan plan = groups(model::RunIf::Failure);
  plan.tasks[0].first_attempt = 2;
  plan.tasks[1].before = model::Verdict::NotNeeded;
  Yard yard(plan);
  EXPECT_THAT(changes(yard.first),
              ElementsAre("group 0 running", "1#0 INIT", "shape 1: waits for group 'train'",
                          "0#2 AVAILABLE"));
  static_cast<void>(yard.started(0, at(1), 2));
  EXPECT_THAT(commands(yard.ended(0, at(2), kFails, {}, 2)), ElementsAre("start 1#1 with 1 GB"));
}

TEST(Conditions, BeginNothingWhenTheRunIsInterrupted) {
  Yard yard(groups(model::RunIf::Always));
  static_cast<void>(yard.started(0));
  static_cast<void>(yard.on(at(1), model::InterruptAsked{}));
  EXPECT_THAT(commands(yard.ended(0, at(2), model::KilledBy{.signal = 15})), IsEmpty());
  EXPECT_TRUE(yard.over());
}

TEST(Scheduler, StopsNoBlockedGroupWhoseTasksHaveAllBeenSkipped) {
  Yard yard(PlanBuilder()
                .group({.name = "a"})
                .tasks(1, gb(1))
                .group({.name = "b", .needs = {{0}}})
                .tasks(1, gb(1)));
  static_cast<void>(yard.started(0));
  static_cast<void>(yard.on(at(1), model::KillAsked{.task = {1}, .request = 1}));
  EXPECT_THAT(changes(yard.on(at(2), model::InterruptAsked{})), Contains("group 1 skipped"));
}

TEST(Scheduler, StopsABlockedGroupOfWhichNoTaskIsSelected) {
  model::Plan plan = PlanBuilder()
                         .group({.name = "a"})
                         .tasks(1, gb(1))
                         .group({.name = "b", .needs = {{0}}})
                         .tasks(1, gb(1))
                         .build();
  plan.tasks[1].before = model::Verdict::NotSelected;
  Yard yard(plan);
  static_cast<void>(yard.started(0));
  EXPECT_THAT(changes(yard.on(at(1), model::InterruptAsked{})), Contains("group 1 stopped"));
}

model::HoldAsked hold(std::uint32_t task, bool on = true) {
  return {.task = {task}, .request = 5, .hold = on};
}

TEST(Hold, KeepsATaskFromStartingUntilItIsReleased) {
  Yard yard(PlanBuilder().tasks(3, gb(10)));
  const model::Decision held = yard.on(at(1), hold(1));
  EXPECT_THAT(commands(held), ElementsAre("answer 5 done"));
  EXPECT_THAT(changes(held), ElementsAre("1 on hold")) << "for a run that is resumed";
  EXPECT_THAT(commands(yard.ran(0, at(2))), ElementsAre("start 2#1 with 10 GB"));
  EXPECT_THAT(changes(yard.ran(2, at(3))), ElementsAre("2#1 FINISHED", "2#1 EXITED FINISHED"));
  EXPECT_FALSE(yard.over()) << "it waits as long as nobody releases it";
  EXPECT_THAT(commands(yard.on(at(4), hold(1, false))),
              ElementsAre("answer 5 done", "start 1#1 with 10 GB"));
}

TEST(Hold, IsRefusedOfWhatRunsHasEndedOrIsAsItShallBe) {
  Yard yard(PlanBuilder().tasks(3, gb(10)));
  EXPECT_THAT(commands(yard.on(at(1), hold(0))), ElementsAre("answer 5 not running"));
  EXPECT_THAT(commands(yard.on(at(1), hold(1, false))), ElementsAre("answer 5 not running"));
  EXPECT_THAT(commands(yard.on(at(1), hold(99))), ElementsAre("answer 5 not running"));
  static_cast<void>(yard.on(at(1), hold(1)));
  EXPECT_THAT(commands(yard.on(at(1), hold(1))), ElementsAre("answer 5 not running"));
  static_cast<void>(yard.ran(0, at(2)));
  EXPECT_THAT(commands(yard.on(at(3), hold(0))), ElementsAre("answer 5 not running"));
}

TEST(Hold, EndsWithTheTask) {
  Yard yard(PlanBuilder().tasks(2, gb(10)));
  static_cast<void>(yard.on(at(1), hold(1)));
  EXPECT_THAT(changes(yard.on(at(2), model::KillAsked{.task = {1}, .request = 6})),
              ElementsAre("1#0 INIT SKIPPED: killed on request before it started", "1 not on hold",
                          "shape 0: "));
}

TEST(Hold, OfABlockedGroupCountsWhenItOpens) {
  Yard yard(PlanBuilder()
                .group({.name = "a"})
                .tasks(1, gb(1))
                .group({.name = "b", .needs = {{0}}})
                .tasks(2, gb(1)));
  static_cast<void>(yard.on(at(1), hold(1)));
  EXPECT_THAT(commands(yard.ran(0, at(2))), ElementsAre("start 2#1 with 1 GB"));
}

TEST(Hold, IsTheReasonWhereAllThatWouldWaitForOthersAreOnHold) {
  Yard yard(cells());
  static_cast<void>(yard.on(at(1), hold(2)));
  static_cast<void>(yard.ran(0, at(2)));
  EXPECT_THAT(changes(yard.on(at(3), hold(3))),
              Contains("shape 1: on hold until 'trainyard release'"));
  EXPECT_THAT(changes(yard.on(at(4), hold(3, false))),
              Contains("shape 1: waits for the tasks of group 'train' that it needs"));
}

TEST(Hold, KeepsWhatATaskHadComeToAskFor) {
  Yard yard(PlanBuilder().tasks(1, gb(2)).retries({.failures = 3, .delay = Duration{5'000}}));
  static_cast<void>(yard.ran(0, at(1), kFails));
  const Duration delay = drawn_delay(Duration{5'000}, {.task = {0}, .attempt = 1});
  EXPECT_EQ(yard.wakeup(), at(1) + delay) << "the time of its next try";
  static_cast<void>(yard.on(at(2), hold(0)));
  EXPECT_EQ(yard.wakeup(), std::nullopt);
  EXPECT_THAT(commands(yard.on(at(10), hold(0, false))),
              ElementsAre("answer 5 done", "start 0#2 with 2 GB"));
}

TEST(Hold, KeepsTheRestOfTheDelayOfARetry) {
  Yard yard(PlanBuilder().tasks(1, gb(2)).retries({.failures = 3, .delay = Duration{5'000}}));
  static_cast<void>(yard.ran(0, at(1), kFails));
  const Instant due = at(1) + drawn_delay(Duration{5'000}, {.task = {0}, .attempt = 1});
  static_cast<void>(yard.on(at(2), hold(0)));
  EXPECT_THAT(commands(yard.on(at(3), hold(0, false))), ElementsAre("answer 5 done"));
  EXPECT_EQ(yard.wakeup(), due);
  EXPECT_THAT(commands(yard.on(due, model::TimePassed{})), ElementsAre("start 0#2 with 2 GB"));
}

TEST(Hold, OfAResumedRunStays) {
  model::Plan plan = PlanBuilder().tasks(2, gb(1)).build();
  plan.said = {{.task = {0}, .on_hold = true, .priority = {}}};
  Yard yard(std::move(plan));
  EXPECT_THAT(commands(yard.first), ElementsAre("start 1#1 with 1 GB"));
}

TEST(Priority, ThatIsSaidCountsForThoseThatWait) {
  Yard yard(PlanBuilder().tasks(4, gb(10)));
  const model::Decision said =
      yard.on(at(1), model::PriorityAsked{.task = {3}, .request = 5, .priority = 7});
  EXPECT_THAT(commands(said), ElementsAre("answer 5 done"));
  EXPECT_THAT(changes(said), ElementsAre("3 not on hold, priority 7"));
  EXPECT_THAT(commands(yard.ran(0, at(2))), ElementsAre("start 3#1 with 10 GB"));
  static_cast<void>(
      yard.on(at(2), model::PriorityAsked{.task = {1}, .request = 5, .priority = -1}));
  EXPECT_THAT(commands(yard.ran(3, at(3))), ElementsAre("start 2#1 with 10 GB"));
  EXPECT_THAT(
      commands(yard.on(at(4), model::PriorityAsked{.task = {3}, .request = 5, .priority = 1})),
      ElementsAre("answer 5 not running"))
      << "it has ended";
}

TEST(Priority, OfAResumedRunStays) {
  model::Plan plan = PlanBuilder().tasks(2, gb(10)).build();
  plan.said = {{.task = {1}, .on_hold = false, .priority = 3}};
  Yard yard(std::move(plan));
  EXPECT_THAT(commands(yard.first), ElementsAre("start 1#1 with 10 GB"));
}

}  // namespace
}  // namespace trainyard::schedule
