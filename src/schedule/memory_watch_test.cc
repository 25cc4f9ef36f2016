// The actions when tasks take more memory than their reservations, and when the machine's runs
// short.
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "model/command.h"
#include "model/event.h"
#include "model/plan.h"
#include "schedule/test_yard.h"

namespace trainyard::schedule {
namespace {

using Texts = std::vector<std::string>;

const model::Policy kWatches{.memory_remain = gb(1), .train_retries = 2, .watches_memory = true};

model::Sampled takes(Bytes available, std::vector<Bytes> tasks) {
  model::Sampled sampled{.memory_available = available, .tasks = {}};
  for (std::uint32_t task = 0; task < tasks.size(); ++task) {
    sampled.tasks.push_back({.key = {{task}, 1}, .memory = tasks[task]});
  }
  return sampled;
}

TEST(MemoryLimit, EndsATaskThatTakesMoreAndDoesNotTryItAgain) {
  Yard yard(PlanBuilder().tasks(1, gb(2)).memory_hard());
  yard.go(yard.first, at(0));
  EXPECT_EQ(commands(yard.on(at(1), takes(gb(8), {gb(2)}))), Texts{});
  EXPECT_EQ(commands(yard.on(at(2), takes(gb(7), {gb(3)}))), Texts{"stop 0#1"});
  EXPECT_EQ(
      changes(yard.ended(0, at(3), model::KilledBy{.signal = 15})).front(),
      "0#1 EXCEPTION FAILED OUT_OF_MEMORY: used more memory than its limit of 2 GB (memory-limit: "
      "hard); it used at least 3 GB");
}

TEST(MemoryLimit, IsKeptByTheKernelWhereThatIsSo) {
  Yard yard(PlanBuilder().tasks(1, gb(2)).memory_hard().tasks(1, gb(3)),
            model::Policy{.kernel_keeps_limits = true});
  std::vector<Bytes> limits;
  for (const model::Command& command : yard.first.commands) {
    limits.push_back(std::get<model::StartAttempt>(command).memory_max);
  }
  EXPECT_EQ(limits, (std::vector{gb(2), Bytes{}}));
  yard.go(yard.first, at(0));
  EXPECT_EQ(commands(yard.on(at(2), takes(gb(7), {gb(3), gb(3)}))), Texts{}) << "nobody looks";
  EXPECT_EQ(
      changes(yard.ended(0, at(3),
                         model::KilledBy{.signal = 9, .out_of_memory = true, .over_limit = true}))
          .front(),
      "0#1 EXCEPTION FAILED OUT_OF_MEMORY: used more memory than its limit of 2 GB (memory-limit: "
      "hard); it used at least 3 GB");
  // The machine as a whole may run out of memory, too.
  EXPECT_EQ(
      changes(yard.ended(1, at(4), model::KilledBy{.signal = 9, .out_of_memory = true})).front(),
      "1#1 INTERRUPT OUT_OF_MEMORY: killed by the kernel: out of memory; retrying with "
      "3.6 GB");
}

TEST(MemoryLimit, IsNamedAloneWhereThePeakReadsLikeIt) {
  Yard yard(PlanBuilder().tasks(1, gb(2)).memory_hard());
  yard.go(yard.first, at(0));
  EXPECT_EQ(commands(yard.on(at(2), takes(gb(7), {gb(2) + Bytes{1}}))), Texts{"stop 0#1"});
  EXPECT_EQ(
      changes(yard.ended(0, at(3), model::KilledBy{.signal = 15})).front(),
      "0#1 EXCEPTION FAILED OUT_OF_MEMORY: used more memory than its limit of 2 GB (memory-limit: "
      "hard)");
}

TEST(MemoryLimit, IsNamedAloneWhereNoSampleShowsThatItWasExceeded) {
  Yard yard(PlanBuilder().tasks(1, gb(2)).memory_hard(),
            model::Policy{.kernel_keeps_limits = true});
  yard.go(yard.first, at(0));
  static_cast<void>(yard.on(at(2), takes(gb(7), {gb(1)})));
  EXPECT_EQ(
      changes(yard.ended(0, at(3),
                         model::KilledBy{.signal = 9, .out_of_memory = true, .over_limit = true}))
          .front(),
      "0#1 EXCEPTION FAILED OUT_OF_MEMORY: used more memory than its limit of 2 GB (memory-limit: "
      "hard)");
}

TEST(MemoryLimit, IsNotHeldAgainstAnAttemptForWhatTheOneBeforeHad) {
  Yard yard(PlanBuilder().tasks(1, gb(2)).memory_hard().retries({.failures = 1}));
  yard.go(yard.first, at(0));
  EXPECT_EQ(commands(yard.ended(0, at(1), model::ExitedWith{3})), Texts{"start 0#2 with 2 GB"});
  const auto had = [](std::uint32_t attempt) {
    return model::Sampled{.memory_available = gb(7),
                          .tasks = {{.key = {{0}, attempt}, .memory = gb(5)}}};
  };
  EXPECT_EQ(commands(yard.on(at(2), had(1))), Texts{}) << "the reading comes late";
  EXPECT_EQ(commands(yard.on(at(3), had(2))), Texts{"stop 0#2"});
}

TEST(MemoryLimit, IsNoneWhereNobodySaysSo) {
  Yard yard(PlanBuilder().tasks(1, gb(2)));
  yard.go(yard.first, at(0));
  EXPECT_EQ(commands(yard.on(at(2), takes(gb(7), {gb(3)}))), Texts{});
}

TEST(MemoryWatch, InterruptsWhoIsMostOverItsPromise) {
  Yard yard(PlanBuilder().tasks(3, gb(2)), kWatches);
  yard.go(yard.first, at(0));
  const model::Sampled low = takes(mb(500), {gb(2), gb(4), gb(3)});
  EXPECT_EQ(commands(yard.on(at(1), low)), Texts{}) << "it may be a moment";
  EXPECT_EQ(commands(yard.on(at(2), low)), Texts{"stop 1#1"});
  EXPECT_EQ(commands(yard.on(at(3), low)), Texts{}) << "one at a time";
  const model::Decision ended = yard.ended(1, at(4), model::KilledBy{.signal = 15});
  EXPECT_EQ(changes(ended).front(),
            "1#1 INTERRUPT OUT_OF_MEMORY: preempted: the machine ran short of memory; retrying "
            "with 4 GB");
  EXPECT_EQ(commands(ended), Texts{}) << "there is no room yet";
  EXPECT_EQ(commands(yard.ended(0, at(5))), Texts{"start 1#2 with 4 GB"});
}

TEST(MemoryWatch, InterruptsTheYoungestWhereNobodyIsOver) {
  Yard yard(PlanBuilder().tasks(2, gb(2)), kWatches);
  static_cast<void>(yard.started(0, at(1)));
  static_cast<void>(yard.started(1, at(2)));
  const model::Sampled low = takes(mb(500), {gb(2), gb(1)});
  yard.on(at(3), low);
  EXPECT_EQ(commands(yard.on(at(4), low)), Texts{"stop 1#1"});
}

TEST(MemoryWatch, LeavesThoseAloneThatMayNotBeInterrupted) {
  Yard yard(PlanBuilder().tasks(2, gb(2)).keeps_running(), kWatches);
  yard.go(yard.first, at(0));
  const model::Sampled low = takes(mb(500), {gb(2), gb(6)});
  yard.on(at(3), low);
  EXPECT_EQ(commands(yard.on(at(4), low)), Texts{});
}

TEST(MemoryWatch, DoesNotCountTheTry) {
  Yard yard(PlanBuilder().tasks(1, gb(2)), kWatches);
  yard.go(yard.first, at(0));
  for (std::uint32_t attempt = 1; attempt <= 5; ++attempt) {
    const model::Sampled low{.memory_available = mb(500),
                             .tasks = {{.key = {{0}, attempt}, .memory = gb(2)}}};
    yard.on(at(10), low);
    EXPECT_EQ(commands(yard.on(at(11), low)).size(), 1U) << attempt;
    static_cast<void>(yard.ended(0, at(12), model::KilledBy{.signal = 15}, {}, attempt));
    EXPECT_EQ(commands(yard.on(at(13), takes(gb(9), {}))).size(), 1U) << attempt;
    static_cast<void>(yard.started(0, at(14), attempt + 1));
  }
  // A task that was interrupted so often is left alone.
  const model::Sampled low{.memory_available = mb(500),
                           .tasks = {{.key = {{0}, 6}, .memory = gb(2)}}};
  yard.on(at(20), low);
  EXPECT_EQ(commands(yard.on(at(21), low)), Texts{});
}

TEST(MemoryWatch, SleepsWhereItIsSwitchedOff) {
  model::Policy off = kWatches;
  off.watches_memory = false;
  Yard yard(PlanBuilder().tasks(2, gb(2)), off);
  yard.go(yard.first, at(0));
  const model::Sampled low = takes(mb(500), {gb(2), gb(6)});
  yard.on(at(3), low);
  EXPECT_EQ(commands(yard.on(at(4), low)), Texts{});
}

}  // namespace
}  // namespace trainyard::schedule
