// The order in which tasks start, one rule a test. No process is started here, and time passes only
// as the events say.

#include <cstdint>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/plan.h"
#include "model/resources.h"
#include "schedule/test_yard.h"

namespace trainyard::schedule {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Scheduler, StartsEveryTaskThatFitsAtOnceInTheOrderOfTheJobFile) {
  const Yard yard(PlanBuilder().tasks(3, gb(3)));
  EXPECT_THAT(commands(yard.first),
              ElementsAre("start 0#1 with 3 GB", "start 1#1 with 3 GB", "start 2#1 with 3 GB"));
  EXPECT_THAT(changes(yard.first),
              ElementsAre("group 0 running", "0#1 AVAILABLE", "1#1 AVAILABLE", "2#1 AVAILABLE"));
}

TEST(Scheduler, FollowsTheLifeOfAPlainCommand) {
  Yard yard(PlanBuilder().tasks(1, gb(1)));
  EXPECT_THAT(changes(yard.started(0)), ElementsAre("0#1 TRAINING"));
  EXPECT_THAT(changes(yard.ended(0, at(5))),
              ElementsAre("0#1 FINISHED", "0#1 EXITED FINISHED", "group 0 finished"));
  EXPECT_TRUE(yard.over());
}

TEST(Scheduler, HoldsATaskBackUntilThereIsMemoryAndSaysWhy) {
  Yard yard(PlanBuilder().tasks(2, gb(6)));
  EXPECT_THAT(commands(yard.first), ElementsAre("start 0#1 with 6 GB"));
  EXPECT_THAT(
      changes(yard.first),
      ElementsAre(
          "group 0 running", "0#1 AVAILABLE",
          "shape 0: needs 6 GB of memory, 4 GB available, 6 GB reserved or used by 1 task"));
  static_cast<void>(yard.started(0));
  const model::Decision later = yard.ended(0, at(9));
  EXPECT_THAT(commands(later), ElementsAre("start 1#1 with 6 GB"));
  EXPECT_THAT(changes(later),
              ElementsAre("0#1 FINISHED", "0#1 EXITED FINISHED", "1#1 AVAILABLE", "shape 0: "));
}

TEST(Scheduler, HoldsATaskBackUntilThereAreCpus) {
  const Yard yard(PlanBuilder().tasks(3, gb(1), model::cpus(2)));
  EXPECT_THAT(commands(yard.first), ElementsAre("start 0#1 with 1 GB", "start 1#1 with 1 GB"));
  EXPECT_EQ(changes(yard.first).back(),
            "shape 0: needs 2 CPUs: all 4 CPUs are reserved by 2 tasks");
}

TEST(Scheduler, NeverPromisesAByteTwiceThoughItIsNotTakenYet) {
  Yard yard(PlanBuilder().tasks(3, gb(4)));
  EXPECT_THAT(commands(yard.first), ElementsAre("start 0#1 with 4 GB", "start 1#1 with 4 GB"));
  // Both run and have taken nothing: the machine looks empty, and is not.
  EXPECT_THAT(commands(yard.on(at(1), model::Sampled{.memory_available = gb(10)})), IsEmpty());
}

TEST(Scheduler, CountsWhatOthersUseBesideTheLedger) {
  Yard yard(PlanBuilder()
                .group({.name = "a"})
                .tasks(1, gb(1))
                .group({.name = "b", .needs = {{0}}})
                .tasks(1, gb(5)));
  static_cast<void>(yard.started(0));
  static_cast<void>(yard.on(at(1), model::Sampled{.memory_available = gb(3),
                                                  .tasks = {{.key = {{0}, 1}, .memory = gb(1)}}}));
  const model::Decision later = yard.ended(0, at(2));
  EXPECT_THAT(commands(later), IsEmpty());
  EXPECT_EQ(changes(later).back(),
            "shape 1: needs 5 GB of memory, 4 GB available, other processes use 6 GB")
      << "what the ended task had is free again";
}

TEST(Scheduler, BelievesAMeasurementThatIsHigherThanThePromise) {
  Yard yard(PlanBuilder().tasks(1, gb(2)).tasks(1, gb(9)).tasks(1, gb(4)));
  EXPECT_THAT(commands(yard.first), ElementsAre("start 0#1 with 2 GB", "start 2#1 with 4 GB"));
  static_cast<void>(yard.started(0));
  static_cast<void>(yard.started(2));
  static_cast<void>(yard.on(at(1), model::Sampled{.memory_available = gb(10),
                                                  .tasks = {{.key = {{0}, 1}, .memory = gb(5)}}}));
  EXPECT_THAT(commands(yard.ended(2, at(2))), IsEmpty()) << "5 GB are held, 9 GB do not fit beside";
}

TEST(Scheduler, KeepsWhatTheLimitsKeepFree) {
  const model::Policy remain{.memory_remain = gb(5)};
  EXPECT_THAT(commands(Yard(PlanBuilder().tasks(6, gb(1)), remain).first).size(), 5U);
  const model::Policy share{.memory_utilization_max = 0.7};
  EXPECT_THAT(commands(Yard(PlanBuilder().tasks(9, gb(1)), share).first).size(), 7U);
}

TEST(Scheduler, SaysWhichSettingKeepsMemoryFree) {
  const auto reason = [](const model::Policy& policy) {
    return changes(Yard(PlanBuilder().tasks(2, gb(4)), policy).first).back();
  };
  EXPECT_EQ(reason({.memory_utilization_max = 0.9, .memory_remain = gb(3)}),
            "shape 0: needs 4 GB of memory, 3 GB available (3 GB kept free: remain-limit.memory), "
            "4 GB reserved or used by 1 task");
  EXPECT_EQ(reason({.memory_utilization_max = 0.5, .memory_remain = gb(3)}),
            "shape 0: needs 4 GB of memory, 1 GB available (5 GB kept free: "
            "utilization-limit.memory), 4 GB reserved or used by 1 task");
}

TEST(Scheduler, RunsOneTaskAtATimeWhileOthersUseTheCpus) {
  Yard yard(PlanBuilder().tasks(6, gb(1), model::cpus(1)));
  const auto busy = [](double share) {
    return model::Sampled{.memory_available = gb(10), .cpu_used_by_others = share};
  };
  EXPECT_THAT(changes(yard.on(at(1), busy(0.9))),
              ElementsAre("shape 0: needs 1 CPU: all 4 CPUs are reserved by 4 tasks; other "
                          "processes use 90 % of the CPUs: from 80 %, a task without a GPU starts "
                          "only when no other runs"));
  EXPECT_THAT(commands(yard.ran(0, at(2))), IsEmpty());
  EXPECT_THAT(commands(yard.ran(1, at(3))), IsEmpty());
  EXPECT_THAT(commands(yard.ran(2, at(4))), IsEmpty()) << "one still runs";
  EXPECT_THAT(commands(yard.ran(3, at(5))), ElementsAre("start 4#1 with 1 GB"));
  EXPECT_THAT(commands(yard.ran(4, at(6))), ElementsAre("start 5#1 with 1 GB"));
  EXPECT_THAT(commands(yard.on(at(7), busy(0.1))), IsEmpty());
}

TEST(Scheduler, SaysWhatATaskLacksBesidesTheCpusThatOthersUse) {
  const model::Sampled busy{.memory_available = gb(10), .cpu_used_by_others = 0.9};
  Yard yard(PlanBuilder()
                .group({.name = "g", .parallel_max = 1})
                .tasks(2, gb(1))
                .group({.name = "h"})
                .tasks(1, gb(10)));
  EXPECT_THAT(commands(yard.first), ElementsAre("start 0#1 with 1 GB"));
  EXPECT_THAT(
      changes(yard.on(at(1), busy)),
      ElementsAre(
          "shape 0: max-parallel allows 1 task of its group at once; other "
          "processes use 90 % of the CPUs: from 80 %, a task without a GPU starts only when no "
          "other runs",
          "shape 1: needs 10 GB of memory, 9 GB available, 1 GB reserved or used by 1 task; other "
          "processes use 90 % of the CPUs: from 80 %, a task without a GPU starts only when no "
          "other runs"));
  Yard roomy(PlanBuilder().tasks(1, gb(1)));
  EXPECT_THAT(changes(roomy.on(at(1), busy)), IsEmpty());
  EXPECT_EQ(changes(roomy.add(PlanBuilder().tasks(1, gb(1)).build(), at(2))).back(),
            "shape 1: other processes use 90 % of the CPUs: from 80 %, a task without a GPU starts "
            "only when no other runs");
}

TEST(Scheduler, StartsTheOthersWhenOthersUseTheCpusNoLonger) {
  Yard yard(PlanBuilder().tasks(5, gb(1), model::cpus(1)));
  static_cast<void>(
      yard.on(at(1), model::Sampled{.memory_available = gb(10), .cpu_used_by_others = 0.9}));
  EXPECT_THAT(commands(yard.ran(0, at(2))), IsEmpty());
  EXPECT_THAT(commands(yard.on(
                  at(3), model::Sampled{.memory_available = gb(10), .cpu_used_by_others = 0.1})),
              ElementsAre("start 4#1 with 1 GB"));
}

TEST(Scheduler, StartsTasksOnGpusHoweverBusyOthersKeepTheCpus) {
  const model::Sampled busy{.memory_available = gb(10), .cpu_used_by_others = 0.95};
  Yard yard(PlanBuilder()
                .tasks(1, gb(1), model::cpus(7))
                .tasks(1, gb(1), model::cpus(1))
                .tasks(2, gb(1), model::cpus(1))
                .on_gpus(1)
                .tasks(1, gb(1), model::cpus(1)),
            kAnythingGoes, kTwoGpus);
  static_cast<void>(yard.on(at(1), busy));
  EXPECT_THAT(commands(yard.ran(1, at(2))), ElementsAre("start 2#1 with 1 GB, 0 whole"));
  EXPECT_THAT(commands(yard.ran(2, at(3))), ElementsAre("start 3#1 with 1 GB, 1 whole"));
  EXPECT_THAT(commands(yard.ran(3, at(4))), IsEmpty()) << "task 0 runs on the CPUs";
  EXPECT_THAT(commands(yard.ran(0, at(5))), ElementsAre("start 4#1 with 1 GB"));

  Yard beside(PlanBuilder()
                  .tasks(1, gb(1), model::cpus(1))
                  .on_gpus(1)
                  .tasks(1, gb(1), model::cpus(7))
                  .on_gpus(1)
                  .tasks(2, gb(1), model::cpus(3)),
              kAnythingGoes, kTwoGpus);
  static_cast<void>(beside.on(at(1), busy));
  EXPECT_THAT(commands(beside.ran(1, at(2))), ElementsAre("start 2#1 with 1 GB"))
      << "beside one on a GPU, one on the CPUs";
}

TEST(Scheduler, StartsNothingWhileTheKeeperIsSilent) {
  Yard yard(PlanBuilder().tasks(5, gb(1), model::cpus(1)));
  EXPECT_THAT(changes(yard.on(at(1), model::KeeperSilent{})),
              ElementsAre("shape 0: the keeper (the process that starts tasks) does not respond"));
  EXPECT_THAT(commands(yard.ran(0, at(2))), IsEmpty());
  EXPECT_THAT(commands(yard.on(at(3), model::KeeperSilent{.silent = false})),
              ElementsAre("start 4#1 with 1 GB"));
}

TEST(Scheduler, TellsWhatIsFreeWithEachReadingWhileTasksWait) {
  Yard yard(PlanBuilder().tasks(1, gb(6)).tasks(1, gb(6)));
  const auto told = [](const model::Decision& decision) {
    std::vector<Bytes> free;
    for (const model::Change& change : decision.changes) {
      const auto* const seen = std::get_if<model::HeadroomSeen>(&change);
      if (seen != nullptr) free.push_back(seen->headroom.memory_free);
    }
    return free;
  };
  EXPECT_THAT(told(yard.first), ElementsAre(gb(4)));
  EXPECT_THAT(told(yard.on(at(1), model::Sampled{.memory_available = gb(9)})), ElementsAre(gb(3)));
  EXPECT_THAT(told(yard.on(at(2), model::Sampled{.memory_available = gb(9)})), IsEmpty())
      << "nothing new";
  EXPECT_THAT(told(yard.on(at(3), model::Sampled{.memory_available = gb(7)})), ElementsAre(gb(1)));
  EXPECT_THAT(told(yard.ran(0, at(4))), IsEmpty()) << "nobody waits";
  EXPECT_THAT(told(yard.on(at(5), model::Sampled{.memory_available = gb(8)})), IsEmpty());
}

TEST(Scheduler, IsNotHeldUpByOthersWhoseUseOfTheCpusIsNotLimited) {
  Yard yard(PlanBuilder().tasks(1, gb(6)).tasks(1, gb(6)), {.cpu_utilization_max = 1});
  static_cast<void>(
      yard.on(at(1), model::Sampled{.memory_available = gb(10), .cpu_used_by_others = 1}));
  EXPECT_THAT(commands(yard.ran(0, at(2))), ElementsAre("start 1#1 with 6 GB"));
}

TEST(Scheduler, RunsNoMoreProcessesThanItMay) {
  const Yard by_limit(PlanBuilder().tasks(3, gb(1)), {.processes_max = 1});
  EXPECT_THAT(commands(by_limit.first), ElementsAre("start 0#1 with 1 GB"));
  EXPECT_EQ(changes(by_limit.first).back(), "shape 0: max-process allows 1 task at once");
  const Yard by_machine(PlanBuilder().tasks(3, gb(1)), kAnythingGoes,
                        {.memory = gb(10),
                         .cpus = model::cpus(4),
                         .processes_max = 2,
                         .processes_max_reason = "512 open files"});
  EXPECT_EQ(commands(by_machine.first).size(), 2U);
  EXPECT_EQ(changes(by_machine.first).back(),
            "shape 0: the machine allows 2 tasks at once (512 open files)");
}

TEST(Scheduler, RunsNoMoreTasksOfAGroupThanItsMaxParallel) {
  Yard yard(PlanBuilder().group({.name = "g", .parallel_max = 1}).tasks(2, gb(1)));
  EXPECT_THAT(commands(yard.first), ElementsAre("start 0#1 with 1 GB"));
  EXPECT_EQ(changes(yard.first).back(), "shape 0: max-parallel allows 1 task of its group at once");
  EXPECT_THAT(commands(yard.ran(0, at(1))), ElementsAre("start 1#1 with 1 GB"));
}

TEST(Scheduler, LetsASmallTaskPassABigOneThatDoesNotFit) {
  const Yard yard(PlanBuilder().tasks(1, gb(6)).tasks(1, gb(6)).tasks(1, gb(3)));
  EXPECT_THAT(commands(yard.first), ElementsAre("start 0#1 with 6 GB", "start 2#1 with 3 GB"));
}

TEST(Scheduler, ReservesForTheOldestOnceItWasPassedTooOften) {
  Yard yard(PlanBuilder().tasks(2, gb(3)).tasks(1, gb(9)).tasks(9, gb(3)), {.passes_max = 2});
  EXPECT_THAT(commands(yard.go(yard.first, kStart)),
              ElementsAre("start 0#1 with 3 GB", "start 1#1 with 3 GB", "start 3#1 with 3 GB"))
      << "passed once";
  EXPECT_THAT(commands(yard.go(yard.ended(0, at(10)), at(10))), ElementsAre("start 4#1 with 3 GB"))
      << "passed twice";
  const model::Decision held = yard.ended(1, at(20));
  EXPECT_THAT(commands(held), IsEmpty()) << "now it is kept for";
  EXPECT_EQ(changes(held).back(),
            "shape 2: would delay an older task that waits for more than is free");
  EXPECT_THAT(commands(yard.ended(3, at(30))), IsEmpty());
  EXPECT_THAT(commands(yard.ended(4, at(40))), ElementsAre("start 2#1 with 9 GB"));
}

TEST(Scheduler, ReservesForTheOldestOnceItWasPassedTooLongAgo) {
  Yard yard(PlanBuilder().tasks(2, gb(3)).tasks(1, gb(9)).tasks(9, gb(3)),
            {.passes_max = 1000, .passed_time_max = Duration{60'000}});
  static_cast<void>(yard.go(yard.first, kStart));
  EXPECT_THAT(commands(yard.go(yard.ended(0, at(59), model::ExitedWith{1}), at(59))),
              ElementsAre("start 4#1 with 3 GB"));
  EXPECT_THAT(commands(yard.ended(1, at(60), model::ExitedWith{1})), IsEmpty());
}

TEST(Scheduler, CountsTenTimesAsLongAsTasksTakeWhereThatIsLonger) {
  Yard yard(PlanBuilder().tasks(2, gb(3)).tasks(1, gb(9)).tasks(9, gb(3)),
            {.passes_max = 1000, .passed_time_max = Duration{60'000}});
  static_cast<void>(yard.go(yard.first, kStart));
  EXPECT_THAT(commands(yard.go(yard.ended(0, at(20)), at(20))), ElementsAre("start 4#1 with 3 GB"));
  EXPECT_THAT(commands(yard.go(yard.ended(1, at(199), model::ExitedWith{1}), at(199))),
              ElementsAre("start 5#1 with 3 GB"));
  EXPECT_THAT(commands(yard.ended(3, at(200), model::ExitedWith{1})), IsEmpty());
}

TEST(Scheduler, LetsNothingStartThatDelaysTheForecastStartOfAReservedTask) {
  // Tasks of `quick` take 10 s, one long task of `long` holds memory until 100 s by its limit.
  Yard yard(PlanBuilder()
                .group({.name = "long", .needs = {}})
                .tasks(1, gb(4), {}, Duration{100'000})
                .group({.name = "big", .needs = {}})
                .tasks(1, gb(8))
                .group({.name = "quick", .needs = {}})
                .tasks(3, gb(4), {}, Duration{30'000})
                .group({.name = "slow", .needs = {}})
                .tasks(2, gb(4), {}, Duration{200'000})
                .group({.name = "tiny", .needs = {}})
                .tasks(2, gb(1), {}, Duration{500'000}),
            {.passes_max = 2});
  EXPECT_THAT(commands(yard.first), ElementsAre("start 0#1 with 4 GB", "start 2#1 with 4 GB",
                                                "start 7#1 with 1 GB", "start 8#1 with 1 GB"))
      << "the big one at index 1 was passed three times";
  for (const std::uint32_t task : {0U, 2U, 7U, 8U}) static_cast<void>(yard.started(task));
  // The big one can start at 100 s. Another quick one is gone by 40 s; a slow one would not be.
  EXPECT_THAT(commands(yard.ended(2, at(10))), ElementsAre("start 3#1 with 4 GB"));
  static_cast<void>(yard.started(3, at(10)));
  EXPECT_THAT(commands(yard.ended(3, at(95))), IsEmpty())
      << "at 95 s not even a quick one is gone by 100 s";
  EXPECT_THAT(commands(yard.ended(0, at(99))), ElementsAre("start 1#1 with 8 GB"));
}

TEST(Scheduler, ReservesNothingForATaskThatOthersKeepFromFitting) {
  // Others hold 5 GB: 9 GB will not fit however many of ours end, so no task waits for it.
  Yard yard(PlanBuilder().tasks(2, gb(2)).tasks(1, gb(9)).tasks(4, gb(2)), {.passes_max = 1});
  static_cast<void>(yard.go(yard.first, kStart));
  static_cast<void>(yard.on(at(1), model::Sampled{.memory_available = gb(5)}));
  EXPECT_THAT(commands(yard.ended(0, at(2))), IsEmpty()) << "of 5 GB 4 are promised already";
  EXPECT_THAT(commands(yard.ended(1, at(3))), ElementsAre("start 4#1 with 2 GB"));
  EXPECT_THAT(commands(yard.ended(3, at(4))), ElementsAre("start 5#1 with 2 GB"));
}
}  // namespace
}  // namespace trainyard::schedule
