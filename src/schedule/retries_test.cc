// Tasks that are retried after failures of their own: how often, after what delay, and the messages
// about it.
#include <cstdint>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/terms.h"
#include "schedule/another_try.h"
#include "schedule/ending.h"
#include "schedule/test_yard.h"

namespace trainyard::schedule {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

PlanBuilder tasks_with(const model::Retries& retries, int count = 1, Duration time_limit = {}) {
  return PlanBuilder().tasks(count, gb(1), {}, time_limit).retries(retries);
}

/// Its attempt starts and ends with this code.
model::Decision fails(Yard& yard, std::uint32_t task, Instant when, std::uint32_t attempt,
                      int code = 3) {
  static_cast<void>(yard.started(task, when, attempt));
  return yard.ended(task, when, model::ExitedWith{code}, {}, attempt);
}

/// The first task starts with a checkpoint, and fails with this code.
model::Decision fails_with_checkpoint(Yard& yard, Instant started, Instant ended,
                                      std::uint32_t attempt, int code) {
  static_cast<void>(yard.started(0, started, attempt));
  return yard.on(ended, model::AttemptEnded{.key = {.task = {0}, .attempt = attempt},
                                            .end = model::ExitedWith{code},
                                            .has_checkpoint = true});
}

TEST(Retries, StartATaskAgainAtOnceWithWhatItHadAndSayWhy) {
  Yard yard(tasks_with({.failures = 2}));
  const model::Decision again = fails(yard, 0, at(1), 1);
  EXPECT_THAT(changes(again),
              ElementsAre("0#1 INTERRUPT EXIT: retry 1 of 2: exited with code 3", "0#2 AVAILABLE"));
  EXPECT_THAT(commands(again), ElementsAre("start 0#2 with 1 GB"));
  EXPECT_THAT(changes(fails(yard, 0, at(2), 2)),
              ElementsAre("0#2 INTERRUPT EXIT: retry 2 of 2: exited with code 3", "0#3 AVAILABLE"));
  EXPECT_THAT(changes(fails(yard, 0, at(3), 3)),
              ElementsAre("0#3 EXCEPTION FAILED EXIT: exited with code 3 (retry 2 of 2)",
                          "group 0 failed"));
  EXPECT_TRUE(yard.over());
}

TEST(Retries, KeepTheExitCodeOfTheTryThatFailed) {
  Yard yard(tasks_with({.failures = 2}));
  const model::Decision again = fails(yard, 0, at(1), 1);
  ASSERT_FALSE(again.changes.empty());
  EXPECT_EQ(std::get<model::TaskChanged>(again.changes.front()).exit_code, 3);
}

TEST(Retries, AreForSignalsAndForWhatCannotStartToo) {
  Yard yard(tasks_with({.failures = 2}));
  static_cast<void>(yard.started(0, at(1)));
  EXPECT_THAT(
      changes(yard.ended(0, at(1), model::KilledBy{.signal = 11})),
      ElementsAre("0#1 INTERRUPT CRASHED: retry 1 of 2: crashed with SIGSEGV (segmentation fault)",
                  "0#2 AVAILABLE"));
  EXPECT_THAT(
      changes(yard.ended(0, at(2), model::NotStarted{.why = "no such file"}, {}, 2)),
      ElementsAre("0#2 INTERRUPT CANNOT_START: retry 2 of 2: no such file", "0#3 AVAILABLE"));
}

TEST(Retries, AreForWhatATwoPhaseTaskSaysOfItself) {
  Yard yard(PlanBuilder().tasks(1, gb(1)).two_phase().retries({.failures = 1}));
  static_cast<void>(yard.started(0, at(1)));
  static_cast<void>(yard.says(0, at(1), model::Said::Loading));
  static_cast<void>(yard.says(0, at(1), model::Said::Failed, "ValueError: no data"));
  EXPECT_THAT(
      changes(yard.ended(0, at(2), model::ExitedWith{1})),
      ElementsAre("0#1 INTERRUPT ERROR: retry 1 of 1: ValueError: no data", "0#2 AVAILABLE"));
}

TEST(Retries, WaitTheirDelayTwiceAsLongEachTimeAndAskForNothingMeanwhile) {
  Yard yard(tasks_with({.failures = 2, .delay = Duration{30'000}}));
  const Duration first = drawn_delay(Duration{30'000}, {.task = {0}, .attempt = 1});
  const model::Decision failed = fails(yard, 0, at(10), 1);
  EXPECT_THAT(changes(failed), ElementsAre("0#1 INTERRUPT EXIT: retry 1 of 2 in " +
                                           delay_text(first) + ": exited with code 3"));
  EXPECT_EQ(std::get<model::TaskChanged>(failed.changes.front()).retry_at, at(10) + first);
  EXPECT_EQ(yard.wakeup(), at(10) + first);
  EXPECT_THAT(commands(yard.on(at(39), model::TimePassed{})), IsEmpty());
  EXPECT_THAT(commands(yard.on(at(10) + first, model::TimePassed{})),
              ElementsAre("start 0#2 with 1 GB"));
  static_cast<void>(fails(yard, 0, at(60), 2));
  EXPECT_EQ(yard.wakeup(), at(60) + drawn_delay(Duration{60'000}, {.task = {0}, .attempt = 2}));
  EXPECT_FALSE(yard.over());
}

TEST(Retries, WithoutDelayOfTasksThatFailedInTheSameSecondSpreadOverOne) {
  Yard yard(tasks_with({.failures = 2}, 3));
  EXPECT_THAT(commands(fails(yard, 0, at(1), 1)), ElementsAre("start 0#2 with 1 GB"));
  const Duration second = spread_delay({.task = {1}, .attempt = 1});
  EXPECT_THAT(changes(fails(yard, 1, at(1), 1)),
              ElementsAre("1#1 INTERRUPT EXIT: retry 1 of 2 in " + delay_text(second) +
                          ": exited with code 3"));
  EXPECT_EQ(yard.wakeup(), at(1) + second);
  EXPECT_THAT(commands(yard.on(at(2), model::TimePassed{})), ElementsAre("start 1#2 with 1 GB"));
  // A second later nothing is left of what they shared, and a task does not collide with itself.
  EXPECT_THAT(commands(fails(yard, 2, at(2), 1)), ElementsAre("start 2#2 with 1 GB"));
  EXPECT_THAT(commands(fails(yard, 2, at(2), 2)), ElementsAre("start 2#3 with 1 GB"));
}

TEST(Retries, OfATaskWithACheckpointThatFailsAtOnceAsBeforeNameTheCheckpoint) {
  Yard yard(tasks_with({.failures = 3}));
  EXPECT_THAT(changes(fails(yard, 0, at(1), 1)),
              ElementsAre("0#1 INTERRUPT EXIT: retry 1 of 3: exited with code 3", "0#2 AVAILABLE"));
  EXPECT_THAT(
      changes(fails_with_checkpoint(yard, at(2), at(2), 2, 3)),
      ElementsAre("0#2 INTERRUPT EXIT: retry 2 of 3: exited with code 3; the attempt before "
                  "failed in the same way, so the checkpoint may be the cause ('trainyard "
                  "retry --fresh' starts without it)",
                  "0#3 AVAILABLE"));
  EXPECT_THAT(changes(fails_with_checkpoint(yard, at(3), at(3), 3, 4)),
              ElementsAre("0#3 INTERRUPT EXIT: retry 3 of 3: exited with code 4", "0#4 AVAILABLE"))
      << "in another way";
  EXPECT_THAT(
      changes(fails_with_checkpoint(yard, at(4), at(6), 4, 4)),
      ElementsAre("0#4 EXCEPTION FAILED EXIT: exited with code 4 (retry 3 of 3)", "group 0 failed"))
      << "it had trained for a while";
}

TEST(Retries, ThatAreAskedForNameTheCheckpointAsWell) {
  Yard yard(tasks_with({}));
  EXPECT_THAT(changes(fails_with_checkpoint(yard, at(1), at(1), 1, 3)),
              ElementsAre("0#1 EXCEPTION FAILED EXIT: exited with code 3", "group 0 failed"));
  static_cast<void>(yard.on(at(2), model::RetryAsked{.task = {0}, .request = 9}));
  EXPECT_THAT(
      changes(fails_with_checkpoint(yard, at(3), at(3), 2, 3)),
      ElementsAre("0#2 EXCEPTION FAILED EXIT: exited with code 3; the attempt before failed in the "
                  "same way, so the checkpoint may be the cause ('trainyard retry --fresh' starts "
                  "without it)",
                  "group 0 failed"));
}

TEST(Retries, OfAResumedRunNameTheCheckpointAsWell) {
  const std::string again(kSameFailure);
  for (const std::string before :
       {"exited with code 3 (retry 1 of 1)", "retry 1 of 2: exited with code 3",
        "retry 1 of 2 in 30s: exited with code 3"}) {
    model::Plan plan = tasks_with({.failures = 1}).build();
    plan.tasks[0].first_attempt = 3;
    plan.failed = {{.task = {0}, .message = before + again}};
    Yard yard(plan);
    EXPECT_THAT(changes(fails_with_checkpoint(yard, at(1), at(1), 3, 3)),
                ElementsAre("0#3 INTERRUPT EXIT: retry 1 of 1: exited with code 3" + again,
                            "0#4 AVAILABLE"))
        << before;
  }
}

TEST(Retries, OfATaskThatStartedWithoutACheckpointDoNotNameOne) {
  Yard yard(tasks_with({.failures = 1}).checkpoints());
  static_cast<void>(fails(yard, 0, at(1), 1));
  EXPECT_THAT(changes(fails(yard, 0, at(2), 2)),
              ElementsAre("0#2 EXCEPTION FAILED EXIT: exited with code 3 (retry 1 of 1)",
                          "group 0 failed"));
}

TEST(Retries, ThatWaitLetOthersRunInTheirPlace) {
  Yard yard(PlanBuilder().tasks(2, gb(8)).retries({.failures = 1, .delay = Duration{60'000}}));
  EXPECT_THAT(commands(fails(yard, 0, at(1), 1)), ElementsAre("start 1#1 with 8 GB"));
  // It waits for room like others when its time has come.
  EXPECT_THAT(changes(yard.on(at(91), model::TimePassed{})),
              Contains(::testing::HasSubstr("shape 0")));
  EXPECT_THAT(commands(yard.ran(1, at(100))), ElementsAre("start 0#2 with 8 GB"));
}

TEST(Retries, ThatWaitAreStoppedByAnInterruptAndEndedByAKill) {
  Yard stopped(tasks_with({.failures = 1, .delay = Duration{60'000}}));
  static_cast<void>(fails(stopped, 0, at(1), 1));
  EXPECT_THAT(changes(stopped.on(at(2), model::InterruptAsked{})),
              ElementsAre("0#1 INTERRUPT STOPPED: the run was interrupted", "group 0 stopped"));
  EXPECT_TRUE(stopped.over());
  EXPECT_EQ(stopped.wakeup(), std::nullopt);

  Yard killed(tasks_with({.failures = 1, .delay = Duration{60'000}}));
  static_cast<void>(fails(killed, 0, at(1), 1));
  const model::Decision kill = killed.on(at(2), model::KillAsked{.task = {0}, .request = 7});
  EXPECT_THAT(
      changes(kill),
      ElementsAre("0#1 EXCEPTION FAILED KILLED: killed on request while it waited for a retry",
                  "group 0 failed"));
  EXPECT_THAT(commands(kill), ElementsAre("answer 7 done"));
  EXPECT_EQ(killed.wakeup(), std::nullopt);
}

TEST(Retries, ThatWaitEndWithTheirGroupWhenAnotherOfItsTasksFails) {
  Yard yard(PlanBuilder()
                .group({.name = "g", .fail_fast = true})
                .tasks(1, gb(1))
                .retries({.failures = 1, .delay = Duration{60'000}})
                .tasks(1, gb(1)));
  static_cast<void>(fails(yard, 0, at(1), 1));
  EXPECT_THAT(changes(fails(yard, 1, at(2), 1)),
              ElementsAre("1#1 EXCEPTION FAILED EXIT: exited with code 3",
                          "0#1 EXCEPTION FAILED KILLED: another task of its group failed "
                          "(fail-fast)",
                          "group 0 failed"));
  EXPECT_TRUE(yard.over());
}

TEST(Retries, AreNotForWhatAPersonHasKilled) {
  Yard yard(tasks_with({.failures = 5}));
  static_cast<void>(yard.started(0, at(1)));
  static_cast<void>(yard.on(at(1), model::KillAsked{.task = {0}, .request = 1}));
  EXPECT_THAT(changes(yard.ended(0, at(2), model::KilledBy{.signal = 15})),
              ElementsAre("0#1 EXCEPTION FAILED KILLED: killed on request", "group 0 failed"));
}

TEST(Retries, AreForTheTimeLimitOnlyWhereThatIsSaid) {
  const auto late = [](bool said) {
    Yard yard(tasks_with({.failures = 1, .after_time_limit = said}, 1, Duration{5'000}));
    static_cast<void>(yard.started(0, at(0)));
    static_cast<void>(yard.on(at(5), model::TimePassed{}));
    return changes(yard.ended(0, at(6), model::KilledBy{.signal = 15}));
  };
  EXPECT_THAT(late(false), ElementsAre("0#1 EXCEPTION FAILED TIMEOUT: time limit of 5 s reached; "
                                       "not retried: 'retry-on' does not include 'time-limit'",
                                       "group 0 failed"));
  EXPECT_THAT(late(true),
              ElementsAre("0#1 INTERRUPT TIMEOUT: retry 1 of 1: time limit of 5 s reached",
                          "0#2 AVAILABLE"));
}

TEST(Retries, AreNotSpentByAnAttemptThatWasLost) {
  Yard yard(tasks_with({.failures = 1}));
  static_cast<void>(yard.started(0, at(1)));
  EXPECT_THAT(changes(yard.ended(0, at(1), model::Vanished{.why = "nobody saw it end"})),
              ElementsAre("0#1 INTERRUPT LOST: retry 1 of 5: nobody saw it end", "0#2 AVAILABLE"));
  EXPECT_THAT(changes(fails(yard, 0, at(2), 2)),
              Contains("0#2 INTERRUPT EXIT: retry 1 of 1: exited with code 3"));
}

TEST(Retries, AfterOutOfMemoryAreThoseOfTheTaskNotOfTheSettings) {
  Yard yard(tasks_with({.out_of_memory = 1}));
  static_cast<void>(yard.started(0, at(1)));
  const model::KilledBy killed{.signal = 9, .out_of_memory = true};
  EXPECT_THAT(commands(yard.ended(0, at(1), killed)), ElementsAre("start 0#2 with 1.2 GB"));
  static_cast<void>(yard.started(0, at(2), 2));
  EXPECT_THAT(changes(yard.ended(0, at(2), killed, {}, 2)),
              ElementsAre("0#2 EXCEPTION FAILED OUT_OF_MEMORY: out of memory, with 1.2 GB "
                          "reserved (retry 1 of 1)",
                          "group 0 failed"));
}

TEST(Retries, AreNotCountedWhereATaskThatRunsOutOfMemoryHasNone) {
  Yard yard(tasks_with({.out_of_memory = 0}));
  static_cast<void>(yard.started(0, at(1)));
  EXPECT_THAT(changes(yard.ended(0, at(1), model::KilledBy{.signal = 9, .out_of_memory = true})),
              ElementsAre("0#1 EXCEPTION FAILED OUT_OF_MEMORY: out of memory, with 1 GB reserved",
                          "group 0 failed"));
}

}  // namespace
}  // namespace trainyard::schedule
