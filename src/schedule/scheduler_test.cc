// The outcomes of tasks and groups, one rule a test. The order in which tasks start is in
// admission_test.cc.
#include "schedule/scheduler.h"

#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/status.h"
#include "schedule/test_yard.h"

namespace trainyard::schedule {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;

TEST(Scheduler, TriesATaskThatRanOutOfMemoryAgainWithAFifthMore) {
  Yard yard(PlanBuilder().tasks(1, gb(4)));
  static_cast<void>(yard.started(0));
  const model::Decision again =
      yard.ended(0, at(5), model::KilledBy{.signal = 9, .out_of_memory = true}, gb(2));
  EXPECT_THAT(commands(again), ElementsAre("start 0#2 with 4.8 GB"));
  EXPECT_THAT(changes(again), ElementsAre("0#1 INTERRUPT OUT_OF_MEMORY: killed by the kernel: out "
                                          "of memory; retrying with 4.8 GB",
                                          "0#2 AVAILABLE"));
}

TEST(Scheduler, GivesARetryWhatItWasSeenToUseWhenThatIsMore) {
  Yard yard(PlanBuilder().tasks(1, gb(4)));
  static_cast<void>(yard.started(0));
  EXPECT_THAT(
      commands(yard.ended(0, at(5), model::KilledBy{.signal = 9, .out_of_memory = true}, gb(7))),
      ElementsAre("start 0#2 with 7 GB"));
}

TEST(Scheduler, GivesUpAfterAsManyTriesAsTheLimitSays) {
  Yard yard(PlanBuilder().tasks(1, gb(9)), {.train_retries = 2});
  const model::KilledBy out_of_memory{.signal = 9, .out_of_memory = true};
  EXPECT_THAT(commands(yard.ran(0, at(1), out_of_memory)), ElementsAre("start 0#2 with 10 GB"));
  static_cast<void>(yard.started(0, at(2), 2));
  const model::Decision given_up = yard.ended(0, at(3), out_of_memory, {}, 2);
  EXPECT_THAT(commands(given_up), IsEmpty());
  EXPECT_THAT(changes(given_up), ElementsAre("0#2 EXCEPTION FAILED OUT_OF_MEMORY: out of "
                                             "memory, with 10 GB reserved (retry 1 of 1)",
                                             "group 0 failed"));
  EXPECT_TRUE(yard.over());
}

TEST(Scheduler, SaysWhatATaskThatFailedSaidLast) {
  Yard yard(PlanBuilder().tasks(4, gb(1)));
  const auto failed = [&](std::uint32_t task, model::End end) {
    static_cast<void>(yard.started(task, at(1)));
    return changes(yard.on(at(1), model::AttemptEnded{.key = {.task = {task}, .attempt = 1},
                                                      .end = std::move(end),
                                                      .last_words = "KeyError: 'lr'"}))
        .front();
  };
  EXPECT_EQ(failed(0, model::ExitedWith{3}), "0#1 EXCEPTION FAILED EXIT: KeyError: 'lr'");
  EXPECT_EQ(
      failed(1, model::KilledBy{.signal = 11}),
      "1#1 EXCEPTION FAILED CRASHED: crashed with SIGSEGV (segmentation fault): KeyError: 'lr'");
  EXPECT_EQ(failed(2, model::ExitedWith{0}), "2#1 FINISHED");
  // A task that was killed by a user did not fail of its reported error.
  static_cast<void>(yard.started(3, at(1)));
  yard.on(at(2), model::KillAsked{.task = {3}, .request = 1});
  EXPECT_EQ(failed(3, model::KilledBy{.signal = 15}),
            "3#1 EXCEPTION FAILED KILLED: killed on request");
}

TEST(Scheduler, SaysHowATaskFailed) {
  Yard yard(PlanBuilder().tasks(4, gb(1)));
  EXPECT_EQ(changes(yard.ran(0, at(1), model::ExitedWith{3})).back(),
            "0#1 EXCEPTION FAILED EXIT: exited with code 3");
  EXPECT_EQ(changes(yard.ran(1, at(1), model::KilledBy{.signal = 11})).back(),
            "1#1 EXCEPTION FAILED CRASHED: crashed with SIGSEGV (segmentation fault)");
  EXPECT_EQ(changes(yard.ended(2, at(1), model::NotStarted{"no such file"})).back(),
            "2#1 EXCEPTION FAILED CANNOT_START: no such file");
  EXPECT_THAT(changes(yard.ended(3, at(1), model::Vanished{"the keeper died"})),
              ElementsAre("3#1 TRAINING", "3#1 INTERRUPT LOST: retry 1 of 5: the keeper died",
                          "3#2 AVAILABLE"));
}

TEST(Scheduler, EndsATaskOverItsTimeLimitGentlyAndThenForGood) {
  Yard yard(PlanBuilder().tasks(1, gb(1), {}, Duration{60'000}));
  static_cast<void>(yard.started(0, at(2)));
  EXPECT_EQ(yard.wakeup(), at(62));
  EXPECT_THAT(commands(yard.on(at(61), model::TimePassed{})), IsEmpty());
  EXPECT_THAT(commands(yard.on(at(62), model::TimePassed{})), ElementsAre("stop 0#1"));
  EXPECT_EQ(yard.wakeup(), at(72));
  EXPECT_THAT(commands(yard.on(at(72), model::TimePassed{})), ElementsAre("kill 0#1"));
  EXPECT_EQ(yard.wakeup(), std::nullopt);
  EXPECT_THAT(changes(yard.ended(0, at(73), model::KilledBy{.signal = 9})),
              ElementsAre("0#1 EXCEPTION FAILED TIMEOUT: time limit of 1m reached; did not exit "
                          "10 s after SIGTERM, killed",
                          "group 0 failed"));
}

TEST(Scheduler, DoesNotHoldAgainstATaskWhatWasFoundWhenItHadEnded) {
  for (const bool in_time : {true, false}) {
    Yard yard(PlanBuilder().tasks(1, gb(1), {}, Duration{60'000}));
    static_cast<void>(yard.started(0, at(2)));
    // The yard was stopped for a while: the time has come before the news.
    EXPECT_THAT(commands(yard.on(at(90), model::TimePassed{})), ElementsAre("stop 0#1"));
    const model::AttemptEnded news{.key = {.task = {0}, .attempt = 1},
                                   .end = model::ExitedWith{0},
                                   .ended = at(in_time ? 89 : 90)};
    const std::vector<std::string> told = changes(yard.on(at(91), news));
    if (in_time) {
      EXPECT_THAT(told, ElementsAre("0#1 FINISHED", "0#1 EXITED FINISHED", "group 0 finished"));
    } else {
      EXPECT_THAT(told, ElementsAre("0#1 EXCEPTION FAILED TIMEOUT: time limit of 1m reached",
                                    "group 0 failed"));
    }
    EXPECT_EQ(yard.wakeup(), std::nullopt);
  }
}

TEST(Scheduler, KeepsAGroupGoingAfterAFailureAndSkipsThoseThatNeedIt) {
  Yard yard(PlanBuilder()
                .group({.name = "prepare"})
                .tasks(2, gb(1))
                .group({.name = "train", .needs = {{0}}})
                .tasks(1, gb(1))
                .group({.name = "test", .needs = {{1}}})
                .tasks(1, gb(1))
                .group({.name = "other", .needs = {}})
                .tasks(1, gb(1)));
  EXPECT_THAT(changes(yard.first),
              ElementsAre("group 0 running", "group 3 running",
                          "shape 1: waits for group 'prepare'", "shape 2: waits for group 'train'",
                          "0#1 AVAILABLE", "1#1 AVAILABLE", "4#1 AVAILABLE"));
  EXPECT_THAT(changes(yard.ran(0, at(1), model::ExitedWith{1})),
              ElementsAre("0#1 EXCEPTION FAILED EXIT: exited with code 1"));
  EXPECT_THAT(
      changes(yard.ran(1, at(2))),
      ElementsAre("1#1 FINISHED", "1#1 EXITED FINISHED", "group 0 failed",
                  "2#0 INIT SKIPPED: needs group 'prepare', where a task failed",
                  "shape 1: ", "group 1 skipped: needs group 'prepare', where a task failed",
                  "3#0 INIT SKIPPED: needs group 'train', which was skipped",
                  "shape 2: ", "group 2 skipped: needs group 'train', which was skipped"));
  EXPECT_FALSE(yard.over());
  static_cast<void>(yard.ran(4, at(3)));
  EXPECT_TRUE(yard.over());
}

TEST(Scheduler, OpensAGroupWhenAllItNeedsHasFinished) {
  Yard yard(PlanBuilder()
                .group({.name = "a"})
                .tasks(1, gb(1))
                .group({.name = "b"})
                .tasks(1, gb(1))
                .group({.name = "c", .needs = {{0}, {1}}})
                .tasks(1, gb(1)));
  EXPECT_THAT(commands(yard.ran(1, at(1))), IsEmpty());
  EXPECT_THAT(commands(yard.ran(0, at(2))), ElementsAre("start 2#1 with 1 GB"));
}

TEST(Scheduler, EndsAFailFastGroupWithItsFirstFailure) {
  Yard yard(PlanBuilder().group({.name = "g", .fail_fast = true}).tasks(4, gb(3)));
  static_cast<void>(yard.started(1));
  const model::Decision decision = yard.ran(0, at(1), model::ExitedWith{1});
  EXPECT_THAT(commands(decision), ElementsAre("stop 1#1", "stop 2#1"));
  EXPECT_THAT(
      changes(decision),
      ElementsAre("0#1 EXCEPTION FAILED EXIT: exited with code 1",
                  "3#0 INIT SKIPPED: another task of its group failed (fail-fast)", "shape 0: "));
  EXPECT_THAT(ended_with_group(decision), ElementsAre(3));
  EXPECT_EQ(
      changes(yard.ended(1, at(2), model::KilledBy{.signal = 15})).back(),
      "1#1 EXCEPTION FAILED KILLED: killed because another task of its group failed (fail-fast)");
}

TEST(Scheduler, SaysWhatEndsTheRunWhereNobodyAskedForIt) {
  Yard yard(PlanBuilder()
                .group({.name = "a"})
                .tasks(1, gb(1))
                .tasks(1, gb(60))
                .group({.name = "b", .needs = {{0}}})
                .tasks(1, gb(1)));
  static_cast<void>(yard.started(0));
  const model::Decision ends = yard.on(at(1), model::InterruptAsked{.why = "the keeper died"});
  EXPECT_THAT(changes(ends), IsSupersetOf({"2#0 INIT STOPPED: the keeper died"}));
  EXPECT_THAT(changes(ends), Not(Contains(HasSubstr("interrupted"))));
}

TEST(Scheduler, StopsGentlyWhenInterruptedOnceAndAtOnceWhenTwice) {
  Yard yard(PlanBuilder()
                .group({.name = "a"})
                .tasks(2, gb(6))
                .group({.name = "b", .needs = {{0}}})
                .tasks(1, gb(1)));
  static_cast<void>(yard.started(0));
  const model::Decision once = yard.on(at(1), model::InterruptAsked{});
  EXPECT_THAT(commands(once), ElementsAre("stop 0#1"));
  EXPECT_THAT(changes(once), ElementsAre("1#0 INIT STOPPED: the run was interrupted",
                                         "2#0 INIT STOPPED: the run was interrupted",
                                         "group 1 stopped", "shape 0: ", "shape 1: "));
  EXPECT_THAT(commands(yard.on(at(2), model::InterruptAsked{})), ElementsAre("kill 0#1"));
  EXPECT_THAT(commands(yard.on(at(3), model::InterruptAsked{})), IsEmpty());
  EXPECT_THAT(changes(yard.ended(0, at(3), model::KilledBy{.signal = 9})),
              ElementsAre("0#1 INTERRUPT STOPPED: the run was interrupted", "group 0 stopped"));
  EXPECT_TRUE(yard.over());
}

TEST(Scheduler, LeavesATaskWhoseEndNobodySawInAnInterruptedRunForAResume) {
  Yard yard(PlanBuilder().tasks(1, gb(1)));
  static_cast<void>(yard.started(0));
  EXPECT_THAT(commands(yard.on(at(1), model::InterruptAsked{})), ElementsAre("stop 0#1"));
  EXPECT_THAT(changes(yard.ended(0, at(2), model::Vanished{"the guard died"})),
              ElementsAre("0#1 INTERRUPT STOPPED: the guard died", "group 0 stopped"));
}

TEST(Scheduler, KillsATaskOnRequestAndAnswersWhenItIsGone) {
  Yard yard(PlanBuilder().tasks(1, gb(1)));
  static_cast<void>(yard.started(0));
  EXPECT_THAT(commands(yard.on(at(1), model::KillAsked{.task = {0}, .request = 7})),
              ElementsAre("stop 0#1"));
  EXPECT_THAT(commands(yard.on(at(2), model::KillAsked{.task = {0}, .request = 8})), IsEmpty())
      << "it is being stopped already";
  const model::Decision gone = yard.ended(0, at(3), model::KilledBy{.signal = 15});
  EXPECT_THAT(commands(gone), ElementsAre("answer 7 done", "answer 8 done"));
  EXPECT_THAT(changes(gone),
              ElementsAre("0#1 EXCEPTION FAILED KILLED: killed on request", "group 0 failed"));
  EXPECT_THAT(commands(yard.on(at(4), model::KillAsked{.task = {0}, .request = 9})),
              ElementsAre("answer 9 not running"));
}

TEST(Scheduler, TakesAWaitingTaskOutOnRequest) {
  Yard yard(PlanBuilder().tasks(2, gb(6)));
  const model::Decision decision = yard.on(at(1), model::KillAsked{.task = {1}, .request = 7});
  EXPECT_THAT(commands(decision), ElementsAre("answer 7 done"));
  EXPECT_THAT(changes(decision),
              ElementsAre("1#0 INIT SKIPPED: killed on request before it started", "shape 0: "));
  EXPECT_EQ(changes(yard.ran(0, at(2))).back(), "group 0 failed");
  EXPECT_TRUE(yard.over());
}

TEST(Scheduler, DropsWhatAnOlderAttemptSays) {
  Yard yard(PlanBuilder().tasks(1, gb(1)));
  static_cast<void>(yard.ran(0, at(1), model::KilledBy{.signal = 9, .out_of_memory = true}));
  const model::Decision late = yard.ended(0, at(2));
  EXPECT_THAT(changes(late), IsEmpty());
  EXPECT_THAT(commands(late), IsEmpty());
  EXPECT_FALSE(yard.over());
}

TEST(Scheduler, GoesOnWhereAnEarlierExecutionStopped) {
  model::Plan plan = PlanBuilder()
                         .group({.name = "a"})
                         .tasks(2, gb(1))
                         .group({.name = "b", .needs = {{0}}})
                         .tasks(1, gb(1))
                         .build();
  plan.tasks[0].before = model::Verdict::Finished;
  plan.tasks[1].first_attempt = 4;
  EXPECT_THAT(commands(Yard(plan).first), ElementsAre("start 1#4 with 1 GB"));
  plan.tasks[1].before = model::Verdict::Finished;
  EXPECT_THAT(changes(Yard(plan).first), ElementsAre("group 0 running", "group 0 finished",
                                                     "group 1 running", "2#1 AVAILABLE"));
}

TEST(Scheduler, SaysWhatCanNeverFit) {
  const auto why = [](const model::Request& request, Bytes remain = gb(2),
                      const MachineText& machine = {}) {
    const auto misfit = never_fits(request, {.memory_remain = remain}, kMachine, machine);
    return misfit ? misfit->why : std::string();
  };
  EXPECT_EQ(why({.memory = gb(8)}), "");
  EXPECT_EQ(why({.memory = gb(9)}),
            "needs 9 GB of memory, this machine has 8 GB available (10 GB less 2 GB kept free); "
            "request at most 8GB (if no other process uses any)");
  EXPECT_EQ(why({.memory = gb(8) + Bytes{1}}),
            "needs 8000000001 bytes of memory, this machine has 8000000000 bytes available (10 GB "
            "less 2 GB kept free); request at most 8GB (if no other process uses any)");
  EXPECT_THAT(why({.memory = gb(9)}, gb(2), {.memory_now = gb(9)}),
              HasSubstr("; request at most 8GB (7GB is free now)"))
      << "2 GB of the 9 GB stay free";
  for (const Bytes now : {gb(2), gb(11)}) {
    EXPECT_THAT(why({.memory = gb(9)}, gb(2), {.memory_now = now}),
                HasSubstr("; request at most 8GB (if no other process uses any)"))
        << now.count;
  }
  EXPECT_EQ(why({.memory = gb(9)}, gb(10)),
            "needs 9 GB of memory, this machine has 0 B available (10 GB less 10 GB kept free)")
      << "no request would help";
  EXPECT_EQ(why({.cpus = model::cpus(6)}), "needs 6 CPUs, this machine has 4; request at most 4");
}

TEST(Scheduler, CountsAnEndBeforeAnybodyToldItToEndAsItsOwn) {
  for (const model::What& told : {model::What(model::InterruptAsked{}),
                                  model::What(model::KillAsked{.task = {0}, .request = 7})}) {
    const auto end_at = [&told](int when) {
      Yard yard(PlanBuilder().tasks(1, gb(1)));
      static_cast<void>(yard.started(0, at(0)));
      static_cast<void>(yard.on(at(10), told));
      model::AttemptEnded ended{.key = {.task = {0}, .attempt = 1}, .end = model::ExitedWith{0}};
      ended.ended = at(when);
      return changes(yard.on(at(20), ended)).front();
    };
    EXPECT_EQ(end_at(9), "0#1 FINISHED") << "the news of it was on its way, or its files were";
    EXPECT_NE(end_at(11), "0#1 FINISHED");
  }
}

TEST(Scheduler, CountsAnExitThatTermDidNotReachAsItsOwn) {
  const auto end_of = [](int early_signal, bool told_to_end,
                         std::optional<Instant> ended_at = at(11)) {
    Yard yard(PlanBuilder().tasks(1, gb(1)).signal(early_signal, Duration(60'000)));
    static_cast<void>(yard.started(0, at(0)));
    static_cast<void>(yard.on(at(10), model::InterruptAsked{}));
    // The keeper sees the exit only after the yard has decided to send TERM.
    model::AttemptEnded ended{.key = {.task = {0}, .attempt = 1}, .end = model::ExitedWith{0}};
    ended.ended = ended_at;
    ended.told_to_end = told_to_end;
    return changes(yard.on(at(20), ended)).front();
  };
  EXPECT_EQ(end_of(0, false), "0#1 FINISHED");
  EXPECT_EQ(end_of(0, false, std::nullopt), "0#1 FINISHED") << "a guard has found it";
  EXPECT_NE(end_of(0, true), "0#1 FINISHED");
  EXPECT_NE(end_of(10, false), "0#1 FINISHED")
      << "the task may have exited because of its early signal";
}

}  // namespace
}  // namespace trainyard::schedule
