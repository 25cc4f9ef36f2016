// One task of a group is tried before the others start.
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
#include "schedule/another_try.h"
#include "schedule/test_yard.h"

namespace trainyard::schedule {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Words = std::vector<std::string>;

PlanBuilder tries_first() { return PlanBuilder().group({.name = "g", .try_first = true}); }

model::Policy with_gpus(bool auto_adjust) {
  return {.memory_remain = Bytes{0},
          .gpu_memory_remain = Bytes{0},
          .gpu_memory_least = gb(1),
          .auto_adjust = auto_adjust};
}

TEST(TriedFirst, TheLargestStartsAloneAndTheOthersSayWhoTheyWaitFor) {
  Yard yard(tries_first().tasks(1, gb(1)).tasks(1, gb(3)).tasks(1, gb(3)).tasks(1, gb(2)));
  EXPECT_EQ(commands(yard.first), Words{"start 1#1 with 3 GB"});
  EXPECT_EQ(changes(yard.first),
            (Words{"group 0 running", "shape 0: waits for a task, which runs first ('try-first')",
                   "shape 2: waits for a task, which runs first ('try-first')",
                   "shape 3: waits for a task, which runs first ('try-first')", "1#1 AVAILABLE"}));
}

TEST(TriedFirst, OnGpusTheLargestIsTheOneThatNeedsMostOfThem) {
  Yard yard(tries_first()
                .tasks(1, gb(4))
                .tasks(1, gb(1))
                .on_gpus(1, gb(6))
                .tasks(1, gb(2))
                .on_gpus(1, gb(4))
                .tasks(1, gb(1))
                .on_gpus(1),
            with_gpus(false), kTwoGpus);
  EXPECT_EQ(commands(yard.first), Words{"start 3#1 with 1 GB, 0 whole"})
      << "a whole one is more than any part";
}

TEST(TriedFirst, OthersStartWhenItHasLivedLongEnough) {
  Yard yard(tries_first().tasks(3, gb(2)));
  EXPECT_EQ(yard.wakeup(), std::nullopt);
  EXPECT_EQ(changes(yard.started(0, at(10))),
            (Words{"0#1 TRAINING",
                   "shape 0: waits for a task, which runs first ('try-first'): 0.0 s of 2m"}));
  EXPECT_EQ(yard.wakeup(), at(130));
  EXPECT_THAT(commands(yard.on(at(129), model::TimePassed{})), IsEmpty());
  const model::Decision seen =
      yard.on(at(90), model::Sampled{.memory_available = gb(8), .tasks = {}});
  ASSERT_EQ(seen.changes.size(), 1U);
  EXPECT_EQ(std::get<model::HeadroomSeen>(seen.changes[0]).headroom.at, at(90));
  EXPECT_EQ(commands(yard.on(at(130), model::TimePassed{})),
            (Words{"start 1#1 with 2 GB", "start 2#1 with 2 GB"}));
  EXPECT_EQ(yard.wakeup(), std::nullopt);
}

TEST(TriedFirst, OthersStartWhenItHasEndedWell) {
  Yard yard(tries_first().tasks(3, gb(2)));
  const model::Decision done = yard.ran(0, at(1));
  EXPECT_EQ(commands(done), (Words{"start 1#1 with 2 GB", "start 2#1 with 2 GB"}));
  EXPECT_EQ(changes(done).back(), "shape 0: ");
}

TEST(TriedFirst, OthersStartWhenItSaysHowFarItIs) {
  Yard yard(tries_first().tasks(3, gb(2)));
  const auto tells = [&](std::uint32_t attempt, Instant when) {
    return commands(
        yard.on(when, model::Progressed{.key = {{0}, attempt}, .fraction = 0.1, .values = {}}));
  };
  EXPECT_THAT(tells(1, at(0)), IsEmpty()) << "its process is not known to exist";
  static_cast<void>(yard.started(0, at(1)));
  EXPECT_THAT(tells(9, at(2)), IsEmpty()) << "that is another attempt";
  EXPECT_EQ(tells(1, at(2)), (Words{"start 1#1 with 2 GB", "start 2#1 with 2 GB"}));
}

TEST(TriedFirst, OfTwoPhasesOnlyTrainingCounts) {
  Yard yard(tries_first().tasks(2, gb(2)).two_phase());
  static_cast<void>(yard.started(0, at(0)));
  static_cast<void>(yard.says(0, at(0), model::Said::Loading));
  EXPECT_THAT(
      commands(yard.on(at(500), model::Progressed{.key = {{0}, 1}, .fraction = 0.5, .values = {}})),
      IsEmpty());
  EXPECT_EQ(commands(yard.says(0, at(600), model::Said::Loaded)), Words{"train 0#1 with 2 GB"});
  EXPECT_EQ(yard.wakeup(), at(720));
  EXPECT_EQ(commands(yard.on(at(720), model::TimePassed{})), Words{"start 1#1 with 2 GB"});
}

TEST(TriedFirst, OthersAreNotStartedWhenItFails) {
  Yard yard(tries_first()
                .tasks(2, gb(2))
                .tasks(1, gb(1))
                .group({.name = "h", .needs = {{0}}})
                .tasks(1, gb(1)));
  const model::Decision failed = yard.ran(0, at(1), model::ExitedWith{2});
  EXPECT_THAT(commands(failed), IsEmpty());
  const std::string why = "the task that 'try-first' ran first failed: exited with code 2";
  EXPECT_EQ(changes(failed),
            (Words{"0#1 EXCEPTION FAILED EXIT: exited with code 2", "1#0 INIT SKIPPED: " + why,
                   "2#0 INIT SKIPPED: " + why, "shape 0: ", "shape 1: ", "group 0 failed",
                   "3#0 INIT SKIPPED: needs group 'g', where a task failed",
                   "shape 2: ", "group 1 skipped: needs group 'g', where a task failed"}));
  EXPECT_EQ(ended_with_group(failed), (std::vector<std::uint32_t>{1, 2}));
  EXPECT_TRUE(yard.over());
}

TEST(TriedFirst, ItIsTriedAgainWhileTheOthersWait) {
  Yard yard(tries_first().tasks(2, gb(2)).retries({.failures = 1, .delay = Duration{5'000}}));
  EXPECT_THAT(commands(yard.ran(0, at(1), model::ExitedWith{2})), IsEmpty());
  const Instant again = at(1) + drawn_delay(Duration{5'000}, {.task = {0}, .attempt = 1});
  EXPECT_EQ(commands(yard.on(again, model::TimePassed{})), Words{"start 0#2 with 2 GB"});
  static_cast<void>(yard.started(0, again, 2));
  EXPECT_EQ(yard.wakeup(), again + Duration{120'000}) << "its life begins anew";
  EXPECT_EQ(commands(yard.ended(0, again + Duration{1'000}, model::ExitedWith{0}, {}, 2)),
            Words{"start 1#1 with 2 GB"});
}

TEST(TriedFirst, WithMoreMemoryTheOthersStillWait) {
  Yard yard(tries_first().tasks(2, gb(2)), {.memory_remain = Bytes{0}, .train_retries = 2});
  static_cast<void>(yard.started(0, at(0)));
  EXPECT_EQ(commands(yard.ended(0, at(1), model::KilledBy{.signal = 9, .out_of_memory = true})),
            Words{"start 0#2 with 2.4 GB"});
  static_cast<void>(yard.started(0, at(1), 2));
  EXPECT_THAT(
      changes(yard.ended(0, at(2), model::KilledBy{.signal = 9, .out_of_memory = true}, {}, 2)),
      Contains(HasSubstr("1#0 INIT SKIPPED: the task that 'try-first' ran first failed: out of "
                         "memory, with 2.4 GB reserved (retry 1 of 1)")));
}

TEST(TriedFirst, TheNextLargestIsTriedWhenSomebodyEndsIt) {
  Yard yard(tries_first().tasks(1, gb(1)).tasks(1, gb(3)).tasks(1, gb(2)));
  static_cast<void>(yard.started(1, at(0)));
  static_cast<void>(yard.on(at(1), model::KillAsked{.task = {1}, .request = 7}));
  EXPECT_EQ(commands(yard.ended(1, at(2), model::KilledBy{.signal = 15})),
            (Words{"answer 7 done", "start 2#1 with 2 GB"}));
  static_cast<void>(yard.on(at(3), model::KillAsked{.task = {0}, .request = 8}));
  EXPECT_EQ(yard.wakeup(), std::nullopt) << "nobody waits for it any more";
}

TEST(TriedFirst, OneThatIsLeftIsNotHeldForNobody) {
  Yard yard(tries_first().tasks(1, gb(1)).tasks(1, gb(3)));
  static_cast<void>(yard.started(1, at(0)));
  static_cast<void>(yard.on(at(1), model::KillAsked{.task = {1}, .request = 7}));
  EXPECT_EQ(commands(yard.ended(1, at(2), model::KilledBy{.signal = 15})),
            (Words{"answer 7 done", "start 0#1 with 1 GB"}));
  static_cast<void>(yard.started(0, at(2)));
  EXPECT_EQ(yard.wakeup(), std::nullopt);
  EXPECT_EQ(commands(Yard(tries_first().tasks(1, gb(1))).first), Words{"start 0#1 with 1 GB"});
}

TEST(TriedFirst, ItsLossSaysNothingOfTheOthers) {
  Yard yard(tries_first().tasks(1, gb(1)).tasks(1, gb(3)).tasks(1, gb(2)));
  for (std::uint32_t attempt = 1; attempt < 10; ++attempt) {
    static_cast<void>(yard.started(1, at(1), attempt));
    const Words then = commands(yard.ended(1, at(2), model::Vanished{"gone"}, {}, attempt));
    ASSERT_EQ(then.size(), 1U);
    if (then[0] == "start 2#1 with 2 GB") return;
    ASSERT_THAT(then[0], HasSubstr("start 1#"));
  }
  FAIL() << "it is lost for good some day";
}

TEST(TriedFirst, AnInterruptStopsWhoWaitsForIt) {
  Yard yard(tries_first().tasks(2, gb(2)));
  static_cast<void>(yard.started(0, at(0)));
  const model::Decision stopped = yard.on(at(1), model::InterruptAsked{});
  EXPECT_THAT(changes(stopped), Contains("1#0 INIT STOPPED: the run was interrupted"));
  static_cast<void>(yard.ended(0, at(2), model::KilledBy{.signal = 15}));
  EXPECT_TRUE(yard.over());
}

TEST(TriedFirst, WhatItTakesOfAGpuRaisesTheOthers) {
  Yard yard(tries_first().tasks(1, gb(1)).on_gpus(1, gb(4)).tasks(2, gb(1)).on_gpus(1, gb(2)),
            with_gpus(true), kTwoGpus);
  EXPECT_EQ(commands(yard.first), Words{"start 0#1 with 1 GB, 4 GB on 0"});
  static_cast<void>(yard.started(0, at(0)));
  static_cast<void>(yard.on(
      at(60), model::GpusSampled{
                  .gpus = {{.used = gb(6)}, {}}, .uses = {{{{0}, 1}, {0}, gb(6)}}, .found = {}}));
  EXPECT_EQ(commands(yard.on(at(120), model::TimePassed{})),
            (Words{"start 1#1 with 1 GB, 3 GB on 1", "start 2#1 with 1 GB, 3 GB on 1"}))
      << "half as much again as was written";
}

TEST(TriedFirst, OthersOfTheirGroupAloneWait) {
  Yard yard(tries_first().tasks(2, gb(1)).group({.name = "h"}).tasks(2, gb(1)));
  EXPECT_EQ(commands(yard.first),
            (Words{"start 0#1 with 1 GB", "start 2#1 with 1 GB", "start 3#1 with 1 GB"}));
}

TEST(TriedFirst, WhatItHadReachedBeforeARestartCounts) {
  model::Plan plan = tries_first().tasks(1, gb(1)).tasks(1, gb(3)).tasks(1, gb(2)).build();
  plan.reached = {{.task = {2}, .memory = gb(5)}};
  Yard yard(plan);
  EXPECT_EQ(commands(yard.first), Words{"start 2#1 with 5 GB"});
  EXPECT_EQ(commands(yard.ran(2, at(1))), (Words{"start 0#1 with 1 GB", "start 1#1 with 3 GB"}));
}

}  // namespace
}  // namespace trainyard::schedule
