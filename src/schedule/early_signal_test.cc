// A signal that a task asked for comes so long before any TERM.
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/time.h"
#include "model/event.h"
#include "model/plan.h"
#include "model/terms.h"
#include "schedule/test_yard.h"

namespace trainyard::schedule {
namespace {

using Texts = std::vector<std::string>;

constexpr int kUsr1 = 10;
constexpr Duration kBefore{20'000};

TEST(EarlySignal, ComesBeforeTheTimeLimitAndDoesNotMoveIt) {
  Yard yard(PlanBuilder().tasks(1, gb(1), {}, Duration{60'000}).signal(kUsr1, kBefore));
  static_cast<void>(yard.started(0, at(2)));
  EXPECT_EQ(yard.wakeup(), at(42));
  EXPECT_EQ(commands(yard.on(at(42), model::TimePassed{})), Texts{"signal 10 0#1"});
  EXPECT_EQ(yard.wakeup(), at(62));
  EXPECT_EQ(commands(yard.on(at(62), model::TimePassed{})), Texts{"stop 0#1"});
  EXPECT_EQ(commands(yard.on(at(72), model::TimePassed{})), Texts{"kill 0#1"});
  EXPECT_EQ(changes(yard.ended(0, at(73), model::KilledBy{.signal = 9})).front(),
            "0#1 EXCEPTION FAILED TIMEOUT: time limit of 1m reached; did not exit 10 s after "
            "SIGTERM, killed");
}

TEST(EarlySignal, LeavesATaskThatEndsWellInItsTimeFinished) {
  Yard yard(PlanBuilder().tasks(1, gb(1), {}, Duration{60'000}).signal(kUsr1, kBefore));
  static_cast<void>(yard.started(0, at(2)));
  yard.on(at(42), model::TimePassed{});
  EXPECT_EQ(changes(yard.ended(0, at(50))),
            (Texts{"0#1 FINISHED", "0#1 EXITED FINISHED", "group 0 finished"}));
  EXPECT_EQ(yard.wakeup(), std::nullopt);
}

TEST(EarlySignal, ThatEndsATaskWhichDoesNotKnowItIsItsTimeLimit) {
  const model::Retries twice{.failures = 2};
  Yard yard(
      PlanBuilder().tasks(1, gb(1), {}, Duration{60'000}).signal(kUsr1, kBefore).retries(twice));
  static_cast<void>(yard.started(0, at(2)));
  yard.on(at(42), model::TimePassed{});
  EXPECT_EQ(changes(yard.ended(0, at(42), model::KilledBy{.signal = kUsr1})).front(),
            "0#1 EXCEPTION FAILED TIMEOUT: time limit of 1m reached; not retried: 'retry-on' "
            "does not include 'time-limit'");
}

TEST(EarlySignal, ThatSomebodyElseSentIsNoTimeLimit) {
  Yard yard(PlanBuilder().tasks(1, gb(1), {}, Duration{60'000}).signal(kUsr1, kBefore));
  static_cast<void>(yard.started(0, at(2)));
  EXPECT_EQ(changes(yard.ended(0, at(30), model::KilledBy{.signal = kUsr1})).front(),
            "0#1 EXCEPTION FAILED KILLED: killed by signal 10 (SIGUSR1)");
}

// Found by the simulation, with seed 853: a machine that slept past the time.
TEST(EarlySignal, ComesBeforeWhatATaskSaysCountsWhenItIsLate) {
  Yard yard(PlanBuilder().tasks(1, gb(1), {}, Duration{60'000}).signal(kUsr1, kBefore).two_phase());
  static_cast<void>(yard.started(0, at(0)));
  static_cast<void>(yard.says(0, at(0), model::Said::Loading));
  EXPECT_EQ(commands(yard.says(0, at(100), model::Said::Loaded)),
            (Texts{"signal 10 0#1", "train 0#1 with 1 GB"}));
  EXPECT_EQ(commands(yard.on(at(119), model::TimePassed{})), Texts{});
  EXPECT_EQ(commands(yard.on(at(120), model::TimePassed{})), Texts{"stop 0#1"});
}

TEST(EarlySignal, ComesBeforeTheTermOfAKillAndOfAnInterrupt) {
  Yard yard(PlanBuilder().tasks(2, gb(1)).signal(kUsr1, kBefore));
  yard.go(yard.first, at(0));
  EXPECT_EQ(commands(yard.on(at(5), model::KillAsked{.task = {0}, .request = 7})),
            Texts{"signal 10 0#1"});
  EXPECT_EQ(commands(yard.on(at(10), model::InterruptAsked{})), Texts{"signal 10 1#1"})
      << "each gets it once";
  EXPECT_EQ(commands(yard.on(at(25), model::TimePassed{})), Texts{"stop 0#1"});
  EXPECT_EQ(commands(yard.on(at(26), model::InterruptAsked{})), (Texts{"kill 0#1", "kill 1#1"}))
      << "who asks twice does not want to wait";
}

TEST(EarlySignal, IsNotRepeatedWhenAnotherCauseComesBeforeTheTerm) {
  Yard yard(PlanBuilder().tasks(1, gb(1), {}, Duration{60'000}).signal(kUsr1, kBefore));
  static_cast<void>(yard.started(0, at(0)));
  EXPECT_EQ(commands(yard.on(at(40), model::TimePassed{})), Texts{"signal 10 0#1"});
  EXPECT_EQ(commands(yard.on(at(45), model::KillAsked{.task = {0}, .request = 7})), Texts{});
  EXPECT_EQ(commands(yard.on(at(60), model::TimePassed{})), Texts{"stop 0#1"});
}

TEST(EarlySignal, ComesBeforeATaskIsInterruptedForWantOfMemory) {
  const model::Policy watches{.memory_remain = gb(1), .train_retries = 2, .watches_memory = true};
  Yard yard(PlanBuilder().tasks(1, gb(2)).signal(kUsr1, kBefore), watches);
  yard.go(yard.first, at(0));
  const model::Sampled low{.memory_available = mb(500),
                           .tasks = {{.key = {.task = {0}, .attempt = 1}, .memory = gb(2)}}};
  yard.on(at(1), low);
  EXPECT_EQ(commands(yard.on(at(2), low)), Texts{"signal 10 0#1"});
  EXPECT_EQ(commands(yard.on(at(3), low)), Texts{});
  EXPECT_EQ(changes(yard.ended(0, at(9), model::ExitedWith{0})).front(),
            "0#1 INTERRUPT OUT_OF_MEMORY: preempted: the machine ran short of memory; retrying "
            "with 2 GB");
}

}  // namespace
}  // namespace trainyard::schedule
