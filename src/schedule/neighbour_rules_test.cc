// The scheduler's treatment of the reservations of other yards on the machine, one rule a test.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/promises.h"
#include "model/resources.h"
#include "schedule/test_yard.h"

namespace trainyard::schedule {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr model::AttemptKey kFirstAttempt{.task = {0}, .attempt = 1};

model::Capacity two_gpus() {
  model::Capacity machine = kTwoGpus;
  machine.gpus[0].uuid = "GPU-a";
  machine.gpus[1].uuid = "GPU-b";
  return machine;
}

model::Neighbour neighbour(model::HeldPromise held) {
  return {.user = 1001, .user_name = "mona", .its = {.ticket = "1", .held = std::move(held)}};
}

model::NeighboursSeen these_hold(model::HeldPromise held) {
  return {.neighbours = {neighbour(std::move(held))}};
}

model::HeldPromise of_card(std::string uuid, Bytes memory) {
  return {.tasks = 1,
          .cards = {{.uuid = std::move(uuid), .memory = memory, .unused = memory, .tasks = 1}}};
}

model::GpusSampled idle_gpus() { return {.gpus = {{}, {}}}; }

TEST(Neighbours, WhatTheyHaveReservedAndNotTakenIsNotPromisedAgain) {
  Yard yard(PlanBuilder().tasks(2, gb(6)));
  EXPECT_THAT(commands(yard.first), ElementsAre("start 0#1 with 6 GB"));
  static_cast<void>(yard.on(at(1), these_hold({.memory = gb(5), .unused = gb(5), .tasks = 1})));
  EXPECT_THAT(commands(yard.ran(0, at(2))), IsEmpty()) << "5 GB of 10 are a neighbour's";
  EXPECT_THAT(commands(yard.on(at(3), model::NeighboursSeen{})),
              ElementsAre("start 1#1 with 6 GB"));
}

TEST(Neighbours, WhatTheyHaveTakenIsNotCountedTwice) {
  Yard yard(PlanBuilder().tasks(2, gb(6)));
  // They hold 4 GB and have all of it: 6 GB are available, and 6 GB are free.
  static_cast<void>(yard.on(at(1), these_hold({.memory = gb(4), .tasks = 1})));
  static_cast<void>(yard.on(at(1), model::Sampled{.memory_available = gb(6)}));
  EXPECT_THAT(commands(yard.ran(0, at(2))), ElementsAre("start 1#1 with 6 GB"));
}

TEST(Neighbours, TheirCpusAreNotGivenAgain) {
  Yard yard(PlanBuilder().tasks(2, gb(1), model::cpus(2)));
  EXPECT_THAT(commands(yard.first), ElementsAre("start 0#1 with 1 GB", "start 1#1 with 1 GB"));
  Yard other(PlanBuilder().tasks(1, gb(1), model::cpus(4)));
  static_cast<void>(other.on(at(1), these_hold({.cpus = model::cpus(1), .tasks = 1})));
  static_cast<void>(other.ran(0, at(2)));
  EXPECT_THAT(commands(other.add(PlanBuilder().tasks(1, gb(1), model::cpus(4)).build(), at(3))),
              IsEmpty());
}

TEST(Neighbours, AWholeGpuIsNotOneThatANeighbourHasSomethingOf) {
  PlanBuilder plan;
  plan.tasks(2, gb(1)).on_gpus(1);
  Yard yard(PlanBuilder().tasks(1, gb(1)), kAnythingGoes, two_gpus());
  static_cast<void>(yard.on(at(0), idle_gpus()));
  static_cast<void>(yard.on(at(1), these_hold(of_card("GPU-a", gb(1)))));
  EXPECT_THAT(commands(yard.add(plan.build(), at(2))), ElementsAre("start 1#1 with 1 GB, 1 whole"));
}

TEST(Neighbours, WhatTheyHaveReservedOfAGpuIsNotPromisedAgain) {
  PlanBuilder plan;
  plan.tasks(2, gb(1)).on_gpus(1, gb(4));
  Yard yard(PlanBuilder().tasks(1, gb(1)), kAnythingGoes, two_gpus());
  static_cast<void>(yard.on(at(0), idle_gpus()));
  static_cast<void>(yard.on(at(1), these_hold(of_card("GPU-b", mb(3'500)))));
  const model::Decision decided = yard.add(plan.build(), at(2));
  EXPECT_THAT(commands(decided), ElementsAre("start 1#1 with 1 GB, 4 GB on 0"));
  EXPECT_THAT(changes(decided), Contains(HasSubstr("another user's run (mona) has reserved 3.5 GB "
                                                   "of GPU 1")));
}

TEST(Claims, ARefusedStartIsAsIfItHadNeverBeenDecided) {
  Yard yard(PlanBuilder().tasks(1, gb(6)));
  EXPECT_THAT(commands(yard.first), ElementsAre("start 0#1 with 6 GB"));
  const model::Decision refused = yard.on(
      kStart, model::ClaimRefused{.attempts = {kFirstAttempt},
                                  .neighbours = {neighbour({.memory = gb(5), .tasks = 1})}});
  EXPECT_THAT(commands(refused), IsEmpty()) << "a neighbour has 5 GB of the 10";
  EXPECT_THAT(changes(refused), ElementsAre(HasSubstr("shape 0: needs 6 GB of memory")));
  EXPECT_FALSE(yard.over());
  EXPECT_THAT(commands(yard.on(at(1), model::NeighboursSeen{})), ElementsAre("start 0#1 with 6 GB"))
      << "its first attempt is still its first";
}

TEST(Claims, WhatIsFreeElsewhereIsTakenInTheSameTurn) {
  PlanBuilder plan;
  plan.tasks(1, gb(1)).on_gpus(1, gb(4), model::GpuIndex{});
  plan.tasks(1, gb(1)).on_gpus(1);
  Yard yard(PlanBuilder().tasks(1, gb(1)), kAnythingGoes, two_gpus());
  static_cast<void>(yard.on(at(0), idle_gpus()));
  const model::Decision first = yard.add(plan.build(), at(1));
  EXPECT_THAT(commands(first),
              ElementsAre("start 1#1 with 1 GB, 4 GB on 0", "start 2#1 with 1 GB, 1 whole"));
  const model::Decision again =
      yard.on(at(1), model::ClaimRefused{.attempts = {{.task = {1}}, {.task = {2}}},
                                         .neighbours = {neighbour(of_card("GPU-b", gb(5)))}});
  EXPECT_THAT(commands(again), ElementsAre("start 1#1 with 1 GB, 4 GB on 0"));
}

TEST(Claims, NothingMoreIsStartedInTheLastRoundOfATurn) {
  Yard yard(PlanBuilder().tasks(1, gb(6)));
  EXPECT_THAT(commands(yard.on(kStart, model::ClaimRefused{.attempts = {kFirstAttempt},
                                                           .neighbours = {},
                                                           .no_more = true})),
              IsEmpty());
  EXPECT_THAT(commands(yard.on(at(1), model::TimePassed{})), ElementsAre("start 0#1 with 6 GB"));
}

TEST(Claims, ARefusedRetryWaitsAsTheRetryThatItIs) {
  Yard yard(PlanBuilder().tasks(1, gb(4)));
  static_cast<void>(yard.started(0));
  const model::Decision again =
      yard.ended(0, at(5), model::KilledBy{.signal = 9, .out_of_memory = true}, gb(2));
  EXPECT_THAT(commands(again), ElementsAre("start 0#2 with 4.8 GB"));
  static_cast<void>(yard.on(
      at(5), model::ClaimRefused{
                 .attempts = {{.task = {0}, .attempt = 2}}, .neighbours = {}, .no_more = true}));
  const model::Decision third = yard.on(at(6), model::TimePassed{});
  EXPECT_THAT(commands(third), ElementsAre("start 0#2 with 4.8 GB"));
  EXPECT_THAT(changes(third), Contains("0#2 AVAILABLE"));
  static_cast<void>(yard.started(0, at(6), 2));
  static_cast<void>(yard.ended(0, at(7), model::ExitedWith{0}, {}, 2));
  EXPECT_TRUE(yard.over());
}

TEST(Claims, ARefusedGrantGoesBackToWaitForItsDevice) {
  PlanBuilder plan;
  plan.tasks(1, gb(1), model::cpus(1)).on_gpus(1, gb(4)).two_phase();
  Yard yard(plan, kAnythingGoes, two_gpus());
  static_cast<void>(yard.on(at(0), idle_gpus()));
  EXPECT_THAT(commands(yard.loaded(0, at(1))), ElementsAre("train 0#1 with 1 GB, 4 GB on 0"));
  const model::Decision refused =
      yard.on(at(1), model::ClaimRefused{.attempts = {kFirstAttempt},
                                         .neighbours = {neighbour(of_card("GPU-a", gb(5)))}});
  EXPECT_THAT(commands(refused), ElementsAre("train 0#1 with 1 GB, 4 GB on 1"));
  static_cast<void>(
      yard.on(at(1), model::ClaimRefused{.attempts = {kFirstAttempt}, .no_more = true}));
  EXPECT_THAT(commands(yard.on(at(2), model::TimePassed{})),
              ElementsAre("train 0#1 with 1 GB, 4 GB on 0"));
  static_cast<void>(yard.says(0, at(3), model::Said::Trained));
  static_cast<void>(yard.ended(0, at(4)));
  EXPECT_TRUE(yard.over());
}

TEST(Claims, OfRefusedTasksNoneRunsOverTheLimitOfItsGroup) {
  PlanBuilder plan;
  plan.group({.name = "g", .parallel_max = 1}).tasks(2, gb(1));
  Yard yard(plan);
  EXPECT_THAT(commands(yard.first), ElementsAre("start 0#1 with 1 GB"));
  const model::Decision again = yard.on(kStart, model::ClaimRefused{.attempts = {kFirstAttempt}});
  EXPECT_THAT(commands(again), ElementsAre("start 0#1 with 1 GB"));
  EXPECT_THAT(commands(yard.ran(0, at(1))), ElementsAre("start 1#1 with 1 GB"));
}

TEST(Fair, AGpuThatComesFreeIsLeftToWhoWaitsAndHasLess) {
  PlanBuilder plan;
  plan.tasks(4, gb(1)).on_gpus(1);
  Yard yard(PlanBuilder().tasks(1, gb(1)), kAnythingGoes, two_gpus());
  static_cast<void>(yard.on(at(0), idle_gpus()));
  EXPECT_THAT(commands(yard.go(yard.add(plan.build(), at(1)), at(1))),
              ElementsAre("start 1#1 with 1 GB, 0 whole", "start 2#1 with 1 GB, 1 whole"));
  model::Neighbour other = neighbour({});
  other.its.want = model::Want{.gpus = 1, .since_unix_s = 7};
  other.waits = Duration{5'000};
  static_cast<void>(yard.on(at(2), model::NeighboursSeen{.neighbours = {other}}));
  const model::Decision ended = yard.ended(1, at(3));
  static_cast<void>(yard.on(at(3), idle_gpus()));
  EXPECT_THAT(commands(ended), IsEmpty());
  const model::Decision looked = yard.on(at(20), model::TimePassed{});
  EXPECT_THAT(commands(looked), IsEmpty()) << "one of two cards each";
  // The other run has got one: a GPU that comes free now is ours again.
  other.its.want.reset();
  other.its.held = of_card("GPU-a", gb(1));
  static_cast<void>(yard.on(at(21), model::NeighboursSeen{.neighbours = {other}}));
  static_cast<void>(yard.ended(2, at(22)));
  EXPECT_THAT(commands(yard.on(at(40), idle_gpus())), ElementsAre("start 3#1 with 1 GB, 1 whole"));
}

TEST(Limits, OurRunsHaveTogetherAsManyGpusAsTheyMay) {
  PlanBuilder plan;
  plan.tasks(3, gb(1)).on_gpus(1, gb(3));
  Yard yard(PlanBuilder().tasks(1, gb(1)), kAnythingGoes, two_gpus());
  static_cast<void>(yard.on(at(0), idle_gpus()));
  static_cast<void>(yard.on(at(0), model::LimitsChanged{.gpus_max = 1, .until = "19:00"}));
  const model::Decision decided = yard.add(plan.build(), at(1));
  EXPECT_THAT(commands(decided),
              ElementsAre("start 1#1 with 1 GB, 3 GB on 0", "start 2#1 with 1 GB, 3 GB on 0"));
  EXPECT_THAT(changes(decided),
              Contains("shape 1: 'limits.gpus' allows your runs 1 GPU in total until 19:00"));
  EXPECT_THAT(commands(yard.on(at(2), model::LimitsChanged{})),
              ElementsAre("start 3#1 with 1 GB, 3 GB on 1"));
}

TEST(Limits, WhatAnotherRunOfOursHasCountsAndWhatAnotherUserHasDoesNot) {
  PlanBuilder plan;
  plan.tasks(1, gb(1)).on_gpus(1);
  model::Neighbour other = neighbour(of_card("GPU-a", gb(1)));
  for (const bool ours : {true, false}) {
    Yard yard(PlanBuilder().tasks(1, gb(1)), kAnythingGoes, two_gpus());
    static_cast<void>(yard.on(at(0), idle_gpus()));
    static_cast<void>(yard.on(at(0), model::LimitsChanged{.gpus_max = 1}));
    other.is_ours = ours;
    static_cast<void>(yard.on(at(0), model::NeighboursSeen{.neighbours = {other}}));
    const std::vector<std::string> started = commands(yard.add(plan.build(), at(1)));
    EXPECT_EQ(started.empty(), ours);
  }
}

TEST(Limits, NothingNewIsGivenOfADrainedGpuAndWhatIsThereStays) {
  PlanBuilder plan;
  plan.tasks(2, gb(1)).on_gpus(1);
  Yard yard(PlanBuilder().tasks(1, gb(1)), kAnythingGoes, two_gpus());
  static_cast<void>(yard.on(at(0), idle_gpus()));
  static_cast<void>(yard.on(at(0), model::LimitsChanged{.drained = {{0}}}));
  EXPECT_THAT(commands(yard.add(plan.build(), at(1))), ElementsAre("start 1#1 with 1 GB, 1 whole"));
  EXPECT_THAT(commands(yard.on(at(2), model::LimitsChanged{.drained = {{1}}})),
              ElementsAre("start 2#1 with 1 GB, 0 whole"));
}

TEST(Limits, WhatRunsOnAGpuThatIsWantedBackAtOnceIsTriedAgainElsewhere) {
  PlanBuilder plan;
  plan.tasks(1, gb(1)).on_gpus(1);
  Yard yard(PlanBuilder().tasks(1, gb(1)), kAnythingGoes, two_gpus());
  static_cast<void>(yard.on(at(0), idle_gpus()));
  static_cast<void>(yard.go(yard.add(plan.build(), at(1)), at(1)));
  EXPECT_THAT(commands(yard.on(at(2), model::LimitsChanged{.drained = {{0}}, .cleared = {{0}}})),
              ElementsAre("stop 1#1"));
  const model::Decision again = yard.ended(1, at(3), model::KilledBy{.signal = 15});
  EXPECT_THAT(commands(again), ElementsAre("start 1#2 with 1 GB, 1 whole"));
  EXPECT_THAT(changes(again), Contains(HasSubstr("its GPU was drained ('trainyard drain --now')")));
}

}  // namespace
}  // namespace trainyard::schedule
