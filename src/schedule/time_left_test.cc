// The outcomes of tasks on a machine that is taken away at a known time.
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/resources.h"
#include "schedule/test_yard.h"

namespace trainyard::schedule {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr model::MachineIndex kNode{1};
constexpr int kSignal = 12;

/// A yard whose first machine has gone, and one that is there from now until then.
class TimeLeft : public ::testing::Test {
 protected:
  static model::Decision node_joins(Yard& yard, Instant when, Instant until) {
    const model::Decision gone = yard.on(when, model::MachineGone{.machine = {}, .why = "away"});
    EXPECT_THAT(commands(gone), IsEmpty());
    return node_joins_again(yard, when, until);
  }
  static model::Decision node_joins_again(Yard& yard, Instant when, Instant until) {
    yard.on(when, model::MachineJoined{
                      .machine = kNode, .name = "node1", .capacity = kMachine, .until = until});
    return yard.on(when, model::Sampled{.memory_available = kMachine.memory, .machine = kNode});
  }
  static bool is_of_use(const Yard& yard, Instant when) {
    return yard.scheduler().is_of_use(kNode, when);
  }
  static std::vector<std::string> on_time(Yard& yard, Instant when) {
    return commands(yard.on(when, model::TimePassed{}));
  }
};

PlanBuilder one_at_a_time(int tasks) { return PlanBuilder().tasks(tasks, gb(6)); }

/// The yard of a plan whose first machine is too small for all of it.
Yard without_room(const PlanBuilder& plan) {
  return Yard(plan, kAnythingGoes, {.memory = gb(1), .cpus = model::cpus(1)});
}

TEST_F(TimeLeft, IsOverAGraceBeforeTheMachineIs) {
  Yard yard = without_room(one_at_a_time(1));
  EXPECT_THAT(commands(node_joins(yard, at(0), at(100))), ElementsAre("start 0#1 with 6 GB on 1"));
  yard.started(0, at(1));
  EXPECT_EQ(yard.wakeup(), at(85));
  EXPECT_THAT(on_time(yard, at(84)), IsEmpty());
  EXPECT_THAT(on_time(yard, at(85)), ElementsAre("stop 0#1"));
  EXPECT_THAT(on_time(yard, at(95)), ElementsAre("kill 0#1"));
  EXPECT_THAT(
      changes(yard.ended(0, at(96), model::KilledBy{.signal = 9})),
      Contains("0#1 INTERRUPT LOST: retry 1 of 5: preempted: the time of its machine was over"));
}

TEST_F(TimeLeft, IsOverEarlierForWhoWantsASignal) {
  Yard yard = without_room(one_at_a_time(1).signal(kSignal, Duration{20'000}));
  node_joins(yard, at(0), at(100));
  yard.started(0, at(1));
  EXPECT_EQ(yard.wakeup(), at(65));
  EXPECT_THAT(on_time(yard, at(65)), ElementsAre("signal 12 0#1"));
  EXPECT_THAT(on_time(yard, at(85)), ElementsAre("stop 0#1"));
  EXPECT_EQ(yard.wakeup(), at(95));
}

TEST_F(TimeLeft, EndsNothingThatHadItsSignalLaterThanTheRest) {
  // Its time limit would be at 110, and TERM then.
  Yard yard = without_room(
      PlanBuilder().tasks(1, gb(6), {}, Duration{109'000}).signal(kSignal, Duration{30'000}));
  node_joins(yard, at(0), at(120));
  yard.started(0, at(1));
  EXPECT_THAT(on_time(yard, at(75)), ElementsAre("signal 12 0#1"));
  EXPECT_THAT(on_time(yard, at(105)), ElementsAre("stop 0#1"));
}

TEST_F(TimeLeft, WasEnoughForWhoEndsBetweenItsSignalAndTermWithAResult) {
  for (const bool has_result : {true, false}) {
    Yard yard = without_room(one_at_a_time(1).signal(kSignal, Duration{20'000}));
    node_joins(yard, at(0), at(100));
    yard.started(0, at(1));
    on_time(yard, at(65));
    const model::Decision ended =
        yard.on(at(80), model::AttemptEnded{.key = {.task = {0}, .attempt = 1},
                                            .end = model::ExitedWith{0},
                                            .result = has_result ? "{}" : ""});
    EXPECT_EQ(yard.over(), has_result) << "without one it may have saved what it had";
  }
}

TEST_F(TimeLeft, CostsNoTryWhoGoesOnWhereItWas) {
  Yard yard = without_room(one_at_a_time(1).checkpoints());
  node_joins(yard, at(0), at(100));
  Instant now = at(0);
  for (std::uint32_t attempt = 1; attempt <= 20; ++attempt) {
    yard.started(0, now, attempt);
    EXPECT_THAT(on_time(yard, now + Duration{85'000}), ElementsAre(HasSubstr("stop 0#")));
    EXPECT_THAT(changes(yard.ended(0, now + Duration{86'000}, model::ExitedWith{0}, {}, attempt)),
                Contains(HasSubstr("preempted: the time of its machine was over")))
        << "that it ended well when it was told to says nothing";
    EXPECT_FALSE(yard.over()) << attempt;
    yard.on(now + Duration{100'000}, model::MachineGone{.machine = kNode, .why = "over"});
    now = now + Duration{110'000};
    EXPECT_THAT(commands(node_joins_again(yard, now, now + Duration{100'000})),
                ElementsAre(fmt::format("start 0#{} with 6 GB on 1", attempt + 1)));
  }
}

TEST_F(TimeLeft, IsNotBegunWithByWhoWouldNotBeDone) {
  Yard yard = without_room(one_at_a_time(3));
  node_joins(yard, at(0), at(100));
  yard.started(0, at(0));
  EXPECT_THAT(commands(yard.ended(0, at(40))), ElementsAre("start 1#1 with 6 GB on 1"));
  yard.started(1, at(40));
  const model::Decision second = yard.ended(1, at(70));
  EXPECT_THAT(commands(second), IsEmpty()) << "one has taken 40 s, and there are 15 left";
  EXPECT_THAT(changes(second), Contains("shape 0: the time left in the allocation is too short"));
  EXPECT_THAT(on_time(yard, at(85)), IsEmpty()) << "nothing runs there any more";
  yard.on(at(100), model::MachineGone{.machine = kNode, .why = "over"});
  EXPECT_THAT(commands(node_joins_again(yard, at(110), at(210))),
              ElementsAre("start 2#1 with 6 GB on 1"));
}

TEST_F(TimeLeft, IsBegunWithByWhoGoesOnWhereItWas) {
  Yard yard = without_room(one_at_a_time(3).checkpoints());
  node_joins(yard, at(0), at(100));
  yard.started(0, at(0));
  yard.ended(0, at(40));
  yard.started(1, at(40));
  EXPECT_THAT(commands(yard.ended(1, at(80))), ElementsAre("start 2#1 with 6 GB on 1"));
}

TEST_F(TimeLeft, IsJudgedByTheTimeLimitWhereNothingIsKnown) {
  Yard yard = without_room(PlanBuilder().tasks(2, gb(6), {}, Duration{50'000}));
  node_joins(yard, at(0), at(100));
  yard.started(0, at(0));
  EXPECT_THAT(commands(yard.ended(0, at(36), model::ExitedWith{1})), IsEmpty());
}

TEST_F(TimeLeft, IsOverForThoseThatHaveLoadedAndWait) {
  Yard yard = without_room(PlanBuilder().tasks(2, gb(2), model::cpus(4)).two_phase());
  node_joins(yard, at(0), at(100));
  EXPECT_THAT(commands(yard.loaded(0, at(1))), Contains("train 0#1 with 2 GB on 1"));
  yard.loaded(1, at(2));
  EXPECT_THAT(on_time(yard, at(85)), ElementsAre("stop 0#1", "stop 1#1"));
  EXPECT_THAT(changes(yard.ended(1, at(86), model::KilledBy{.signal = 15})),
              Contains(HasSubstr("preempted: the time of its machine was over")));
}

TEST_F(TimeLeft, EndsAtOnceWhatIsKilledWhileItIsInterrupted) {
  Yard yard = without_room(one_at_a_time(1).checkpoints());
  node_joins(yard, at(0), at(100));
  yard.started(0, at(1));
  on_time(yard, at(85));
  yard.on(at(86), model::KillAsked{.task = {0}, .request = 3});
  EXPECT_THAT(changes(yard.ended(0, at(87), model::KilledBy{.signal = 15})),
              Contains("0#1 EXCEPTION FAILED KILLED: killed on request"));
  EXPECT_TRUE(yard.over());
}

TEST_F(TimeLeft, KeepsNoRoomWhereThereIsNone) {
  // The oldest lacks time there; younger ones that have it go by.
  Yard yard = without_room(
      PlanBuilder().tasks(1, gb(6), {}, Duration{80'000}).tasks(2, gb(6), {}, Duration{10'000}));
  node_joins(yard, at(0), at(100));
  yard.started(0, at(0));
  EXPECT_THAT(commands(yard.ended(0, at(30), model::Vanished{"gone"})),
              ElementsAre("start 1#1 with 6 GB on 1"));
  yard.started(1, at(30));
  EXPECT_THAT(commands(yard.ended(1, at(39), model::ExitedWith{1})),
              ElementsAre("start 2#1 with 6 GB on 1"));
}

TEST_F(TimeLeft, IsOfUseAsLongAsSomethingRunsOrMayBegin) {
  Yard yard = without_room(one_at_a_time(3));
  EXPECT_TRUE(is_of_use(yard, at(0))) << "it has not joined yet";
  node_joins(yard, at(0), at(100));
  yard.started(0, at(0));
  EXPECT_TRUE(is_of_use(yard, at(1)));
  yard.ended(0, at(40));
  yard.started(1, at(40));
  EXPECT_TRUE(is_of_use(yard, at(84))) << "one runs there";
  yard.ended(1, at(70));
  EXPECT_FALSE(is_of_use(yard, at(70))) << "the last one would take too long";
  EXPECT_EQ(yard.scheduler().count_waiting(), 1U);
}

TEST_F(TimeLeft, IsOfNoUseWhenNobodyWaits) {
  Yard yard = without_room(one_at_a_time(1));
  node_joins(yard, at(0), at(100));
  EXPECT_EQ(yard.scheduler().count_waiting(), 0U) << "the only one runs";
  yard.on(at(1), model::MachineJoined{.machine = {2}, .name = "node2", .capacity = kMachine});
  yard.on(at(1), model::Sampled{.memory_available = kMachine.memory, .machine = {2}});
  EXPECT_TRUE(is_of_use(yard, at(1)));
  EXPECT_FALSE(yard.scheduler().is_of_use({2}, at(1)));
}

TEST_F(TimeLeft, IsOfNoUseToThoseThatFitNowhereThere) {
  Yard yard = without_room(PlanBuilder().tasks(1, gb(1)).where({.machine = "big*"}));
  node_joins(yard, at(0), at(100));
  EXPECT_FALSE(is_of_use(yard, at(1)));
  Yard larger = without_room(PlanBuilder().tasks(1, gb(500)));
  node_joins(larger, at(0), at(100));
  EXPECT_FALSE(is_of_use(larger, at(1)));
}

TEST_F(TimeLeft, MayBeOfUseToThoseThatWaitForAnotherTry) {
  Yard yard = without_room(one_at_a_time(1).retries({.failures = 2, .delay = Duration{30'000}}));
  node_joins(yard, at(0), at(100));
  yard.started(0, at(0));
  yard.ended(0, at(1), model::ExitedWith{1});
  EXPECT_TRUE(is_of_use(yard, at(2)));
  EXPECT_FALSE(is_of_use(yard, at(85))) << "whoever it is would be interrupted at once";
}

}  // namespace
}  // namespace trainyard::schedule
