// Two-phase tasks: they load, wait with what they loaded, and train when they get a device.
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/status.h"
#include "schedule/test_yard.h"

namespace trainyard::schedule {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr model::KilledBy kKernel{.signal = 9, .out_of_memory = true};

TEST(Stages, LeadATaskThroughItsWholeLife) {
  Yard yard(PlanBuilder().tasks(1, gb(1), model::cpus(1)).two_phase());
  EXPECT_THAT(changes(yard.first), ElementsAre("group 0 running", "0#1 AVAILABLE"));
  EXPECT_THAT(commands(yard.first), ElementsAre("start 0#1 with 1 GB"));
  EXPECT_THAT(changes(yard.started(0)), IsEmpty());
  EXPECT_THAT(changes(yard.says(0, at(1), model::Said::Loading)), ElementsAre("0#1 LOADING"));
  const model::Decision loaded = yard.says(0, at(2), model::Said::Loaded);
  EXPECT_THAT(changes(loaded), ElementsAre("0#1 WAITING", "0#1 TRAINING"));
  EXPECT_THAT(commands(loaded), ElementsAre("train 0#1 with 1 GB"));
  EXPECT_THAT(changes(yard.says(0, at(3), model::Said::Trained)), ElementsAre("0#1 FINISHED"));
  EXPECT_FALSE(yard.over());
  EXPECT_THAT(changes(yard.ended(0, at(4))),
              ElementsAre("0#1 EXITED FINISHED", "group 0 finished"));
  EXPECT_TRUE(yard.over());
}

TEST(Stages, LoadWhileOthersTrainAndTrainWhenThereAreCpus) {
  Yard yard(PlanBuilder().tasks(3, gb(1), model::cpus(4)).two_phase());
  // One is loaded ahead: as much as the machine could train at once.
  EXPECT_THAT(commands(yard.first), ElementsAre("start 0#1 with 1 GB"));
  const model::Decision first = yard.loaded(0, at(1));
  EXPECT_THAT(commands(first), ElementsAre("train 0#1 with 1 GB", "start 1#1 with 1 GB"));
  const model::Decision second = yard.loaded(1, at(2));
  EXPECT_THAT(
      changes(second),
      ElementsAre("1#1 WAITING", "shape 0: needs 4 CPUs: all 4 CPUs are reserved by 1 task"));
  EXPECT_THAT(commands(second), IsEmpty());
  static_cast<void>(yard.says(0, at(3), model::Said::Trained));
  EXPECT_THAT(commands(yard.ended(0, at(4))),
              ElementsAre("train 1#1 with 1 GB", "start 2#1 with 1 GB"));
}

TEST(Stages, LoadNoMoreAheadThanMaxWaitingAndSayWhy) {
  model::Policy policy = kAnythingGoes;
  policy.waiting_max = 2;
  Yard yard(PlanBuilder().tasks(3, gb(1)).two_phase(), policy);
  EXPECT_THAT(commands(yard.first), ElementsAre("start 0#1 with 1 GB", "start 1#1 with 1 GB"));
  EXPECT_THAT(changes(yard.first), Contains("shape 0: max-waiting allows 2 tasks to load ahead"));
  EXPECT_THAT(commands(yard.loaded(0, at(1))),
              ElementsAre("train 0#1 with 1 GB", "start 2#1 with 1 GB"));
}

TEST(Stages, DoNotLetSmallOnesLoadPastALargeOneWithoutEnd) {
  Yard yard(PlanBuilder()
                .tasks(1, gb(1), model::cpus(1))
                .two_phase()
                .tasks(1, gb(1), model::cpus(4))
                .two_phase()
                .tasks(1, gb(1), model::cpus(1))
                .two_phase());
  EXPECT_THAT(commands(yard.first), ElementsAre("start 0#1 with 1 GB"));
  EXPECT_THAT(changes(yard.first), Contains("shape 1: 1 task has loaded ahead already"));
  EXPECT_THAT(commands(yard.loaded(0, at(1))),
              ElementsAre("train 0#1 with 1 GB", "start 1#1 with 1 GB"));
}

TEST(Stages, StartATaskAgainThatRanOutOfMemoryWhileItLoadedWithMore) {
  Yard yard(PlanBuilder().tasks(1, gb(1), model::cpus(1)).two_phase());
  static_cast<void>(yard.started(0));
  static_cast<void>(yard.says(0, at(1), model::Said::Loading));
  const model::Decision said = yard.says(0, at(2), model::Said::OutOfMemory, "MemoryError");
  EXPECT_THAT(changes(said), IsEmpty());
  EXPECT_THAT(commands(said), IsEmpty());
  const model::Decision again = yard.ended(0, at(3), model::ExitedWith{1});
  EXPECT_THAT(changes(again),
              ElementsAre("0#1 INTERRUPT OUT_OF_MEMORY: MemoryError; retrying with 1.2 GB",
                          "0#2 AVAILABLE"));
  EXPECT_THAT(commands(again), ElementsAre("start 0#2 with 1.2 GB"));
}

TEST(Stages, GiveUpLoadingAfterLoadNretryTriesHoweverOftenItTrained) {
  model::Policy policy = kAnythingGoes;
  policy.load_retries = 2;
  Yard yard(PlanBuilder().tasks(1, gb(1), model::cpus(1)).two_phase(), policy);
  // It loads three times for the sake of training, which is counted apart.
  static_cast<void>(yard.loaded(0, at(1)));
  static_cast<void>(yard.ended(0, at(2), kKernel));
  static_cast<void>(yard.loaded(0, at(3), 2));
  static_cast<void>(yard.ended(0, at(4), kKernel, {}, 2));
  static_cast<void>(yard.started(0, at(5), 3));
  static_cast<void>(yard.says(0, at(5), model::Said::Loading, {}, 3));
  EXPECT_THAT(changes(yard.ended(0, at(6), kKernel, {}, 3)), Contains("0#4 AVAILABLE"));
  static_cast<void>(yard.started(0, at(7), 4));
  static_cast<void>(yard.says(0, at(7), model::Said::Loading, {}, 4));
  EXPECT_THAT(changes(yard.ended(0, at(8), kKernel, {}, 4)),
              ElementsAre("0#4 EXCEPTION FAILED OUT_OF_MEMORY: out of memory while loading, "
                          "with 1.7 GB reserved (retry 1 of 1)",
                          "group 0 failed"));
}

TEST(Stages, KeepWhatATaskLoadedWhenItRunsOutOfMemoryInTrainingAndMoreIsFree) {
  Yard yard(PlanBuilder().tasks(1, gb(1), model::cpus(1)).two_phase());
  static_cast<void>(yard.loaded(0, at(1)));
  const model::Decision again = yard.says(0, at(2), model::Said::OutOfMemory, "CUDA out of memory");
  EXPECT_THAT(changes(again),
              ElementsAre("0#1 INTERRUPT OUT_OF_MEMORY: CUDA out of memory; retrying with 1.2 GB",
                          "0#1 WAITING", "0#1 TRAINING"));
  EXPECT_THAT(commands(again), ElementsAre("train 0#1 with 1.2 GB"));
}

TEST(Stages, StartATaskAnewWhenItRunsOutOfMemoryInTrainingAndNoMoreIsFree) {
  Yard yard(PlanBuilder().tasks(2, gb(5), model::cpus(1)).two_phase());
  static_cast<void>(yard.loaded(0, at(1)));
  static_cast<void>(yard.loaded(1, at(1)));
  const model::Decision told = yard.says(0, at(2), model::Said::OutOfMemory, "CUDA out of memory");
  EXPECT_THAT(changes(told), IsEmpty());
  EXPECT_THAT(commands(told), ElementsAre("stop 0#1"));
  EXPECT_THAT(changes(yard.ended(0, at(3), model::KilledBy{15})),
              Contains("0#1 INTERRUPT OUT_OF_MEMORY: out of memory; retrying with 6 GB"));
  static_cast<void>(yard.says(1, at(4), model::Said::Trained));
  EXPECT_THAT(commands(yard.ended(1, at(5))), ElementsAre("start 0#2 with 6 GB"));
}

TEST(Stages, StartATaskOfRanksAnewWhenOneOfThemRunsOutOfMemoryThoughMoreIsFree) {
  Yard yard(PlanBuilder().tasks(1, gb(1), model::cpus(1)).two_phase().ranks(4));
  static_cast<void>(yard.loaded(0, at(1)));
  const model::Decision told =
      yard.says(0, at(2), model::Said::OutOfMemory, "rank 2: CUDA out of memory");
  EXPECT_THAT(changes(told), IsEmpty());
  EXPECT_THAT(commands(told), IsEmpty());
  const model::Decision again = yard.ended(0, at(3), model::ExitedWith{1});
  EXPECT_THAT(changes(again),
              Contains("0#1 INTERRUPT OUT_OF_MEMORY: rank 2: CUDA out of memory; retrying with "
                       "1.2 GB"));
  EXPECT_THAT(commands(again), ElementsAre("start 0#2 with 1.2 GB"));
}

TEST(Stages, EndRanksThatStayAfterOneOfThemRanOutOfMemory) {
  Yard yard(PlanBuilder().tasks(1, gb(1), model::cpus(1)).two_phase().ranks(2));
  static_cast<void>(yard.loaded(0, at(1)));
  static_cast<void>(yard.says(0, at(2), model::Said::OutOfMemory, "CUDA out of memory"));
  EXPECT_THAT(commands(yard.on(at(12), model::TimePassed{})), ElementsAre("stop 0#1"));
}

TEST(Stages, EndATaskThatRanOutOfMemoryInAllOfItsTrainNretryTries) {
  model::Policy policy = kAnythingGoes;
  policy.train_retries = 2;
  Yard yard(PlanBuilder().tasks(1, gb(1), model::cpus(1)).two_phase(), policy);
  static_cast<void>(yard.loaded(0, at(1)));
  EXPECT_THAT(commands(yard.says(0, at(2), model::Said::OutOfMemory, "out of memory")),
              ElementsAre("train 0#1 with 1.2 GB"));
  EXPECT_THAT(commands(yard.says(0, at(3), model::Said::OutOfMemory, "out of memory")),
              ElementsAre("stop 0#1"));
  EXPECT_THAT(changes(yard.ended(0, at(4), model::KilledBy{15})),
              ElementsAre("0#1 EXCEPTION FAILED OUT_OF_MEMORY: out of memory, with 1.2 GB "
                          "reserved (retry 1 of 1)",
                          "group 0 failed"));
}

TEST(Stages, DoNotTryOneAgainThatIsKilledOnRequestWhileItEndsForLackOfMemory) {
  Yard yard(PlanBuilder().tasks(2, gb(5), model::cpus(1)).two_phase());
  static_cast<void>(yard.loaded(0, at(1)));
  static_cast<void>(yard.loaded(1, at(1)));
  static_cast<void>(yard.says(0, at(2), model::Said::OutOfMemory, "CUDA out of memory"));
  EXPECT_THAT(commands(yard.on(at(2), model::KillAsked{.task = {0}, .request = 1})), IsEmpty());
  EXPECT_THAT(changes(yard.ended(0, at(3), model::KilledBy{15})),
              ElementsAre("0#1 EXCEPTION FAILED KILLED: killed on request"));
}

TEST(Stages, TellTheStageThatFailedAndTheProcessesOwnWords) {
  Yard yard(PlanBuilder().tasks(1, gb(1)).two_phase());
  static_cast<void>(yard.started(0));
  static_cast<void>(yard.says(0, at(1), model::Said::Loading));
  EXPECT_THAT(changes(yard.says(0, at(2), model::Said::Failed, "ValueError: no such file")),
              IsEmpty());
  const model::Decision end = yard.ended(0, at(3), model::ExitedWith{1});
  EXPECT_THAT(changes(end), ElementsAre("0#1 EXCEPTION FAILED ERROR: ValueError: no such file",
                                        "group 0 failed"));
  EXPECT_EQ(std::get<model::TaskChanged>(end.changes.front()).stage, Stage::Load);
}

TEST(Stages, EndATaskThatSaysWhatNobodyUnderstands) {
  Yard yard(PlanBuilder().tasks(1, gb(1)).two_phase());
  static_cast<void>(yard.started(0));
  const model::Decision told = yard.says(0, at(1), model::Said::Trained);
  EXPECT_THAT(changes(told), ElementsAre("0#1 UNKNOWN"));
  EXPECT_THAT(commands(told), ElementsAre("stop 0#1"));
  EXPECT_THAT(
      changes(yard.ended(0, at(2), model::KilledBy{15})),
      ElementsAre(
          "0#1 EXCEPTION FAILED ERROR: it reported a step out of order, while it was AVAILABLE",
          "group 0 failed"));
}

TEST(Stages, HearNothingAfterTheLastWord) {
  Yard yard(PlanBuilder().tasks(1, gb(1)).two_phase());
  static_cast<void>(yard.loaded(0, at(1)));
  static_cast<void>(yard.says(0, at(2), model::Said::Trained));
  EXPECT_THAT(changes(yard.says(0, at(2), model::Said::Trained)), IsEmpty());
  EXPECT_THAT(changes(yard.says(0, at(2), model::Said::Failed, "late")), IsEmpty());
  EXPECT_THAT(changes(yard.ended(0, at(3))),
              ElementsAre("0#1 EXITED FINISHED", "group 0 finished"));
}

TEST(Stages, KillATaskThatHasTrainedAndDoesNotEndAndCountItAsFinished) {
  model::Policy policy = kAnythingGoes;
  policy.stop_grace = Duration{5000};
  Yard yard(PlanBuilder().tasks(1, gb(1)).two_phase(), policy);
  static_cast<void>(yard.loaded(0, at(1)));
  static_cast<void>(yard.says(0, at(2), model::Said::Trained));
  EXPECT_EQ(yard.wakeup(), at(7));
  EXPECT_THAT(commands(yard.on(at(7), model::TimePassed{})), ElementsAre("stop 0#1"));
  EXPECT_THAT(commands(yard.on(at(12), model::TimePassed{})), ElementsAre("kill 0#1"));
  EXPECT_THAT(changes(yard.ended(0, at(13), model::KilledBy{9})),
              ElementsAre("0#1 EXITED FINISHED", "group 0 finished"));
}

TEST(Stages, FailATaskThatEndsWellWithoutHavingTrained) {
  Yard yard(PlanBuilder().tasks(1, gb(1)).two_phase());
  static_cast<void>(yard.started(0));
  EXPECT_THAT(
      changes(yard.ended(0, at(1))),
      ElementsAre("0#1 EXCEPTION FAILED EXIT: exited without reporting 'trained'; a script with "
                  "'two-phase' needs trainyard.attempts() or 'trainyard client'",
                  "group 0 failed"));
}

TEST(Stages, AreOverWhenATaskEndsWellThatSaidThatItsEndWillTell) {
  Yard yard(PlanBuilder().tasks(1, gb(1)).two_phase());
  static_cast<void>(yard.started(0));
  static_cast<void>(yard.says(0, at(1), model::Said::Loading));
  static_cast<void>(yard.says(0, at(2), model::Said::Loaded));
  EXPECT_THAT(changes(yard.says(0, at(3), model::Said::Training)), IsEmpty());
  EXPECT_THAT(changes(yard.ended(0, at(4))),
              ElementsAre("0#1 FINISHED", "0#1 EXITED FINISHED", "group 0 finished"));
}

TEST(Stages, FailAScriptThatEndsWellWhileItWaitsToTrainAgain) {
  Yard yard(PlanBuilder().tasks(1, gb(1)).two_phase());
  static_cast<void>(yard.started(0));
  static_cast<void>(yard.says(0, at(1), model::Said::Loading));
  static_cast<void>(yard.says(0, at(2), model::Said::Loaded));
  static_cast<void>(yard.says(0, at(3), model::Said::Training));
  static_cast<void>(yard.says(0, at(4), model::Said::OutOfMemory));
  EXPECT_THAT(
      changes(yard.ended(0, at(5))),
      Contains("0#1 EXCEPTION FAILED EXIT: exited without reporting 'trained'; a script with "
               "'two-phase' needs trainyard.attempts() or 'trainyard client'"));
}

TEST(Stages, FailATaskThatEndsWellWithoutAWordAboutItsTraining) {
  Yard yard(PlanBuilder().tasks(1, gb(1)).two_phase());
  static_cast<void>(yard.started(0));
  static_cast<void>(yard.says(0, at(1), model::Said::Loading));
  static_cast<void>(yard.says(0, at(2), model::Said::Loaded));
  EXPECT_THAT(
      changes(yard.ended(0, at(3))),
      ElementsAre("0#1 EXCEPTION FAILED EXIT: exited without reporting 'trained'; a script with "
                  "'two-phase' needs trainyard.attempts() or 'trainyard client'",
                  "group 0 failed"));
}

TEST(Stages, CountTheTimeOfATaskOnlyWhileItLoadsAndTrains) {
  Yard yard(PlanBuilder()
                .tasks(1, gb(1), model::cpus(4))
                .tasks(1, gb(1), model::cpus(4), Duration{10'000})
                .two_phase());
  static_cast<void>(yard.started(0));
  static_cast<void>(yard.started(1));
  EXPECT_EQ(yard.wakeup(), at(10));
  static_cast<void>(yard.says(1, at(2), model::Said::Loading));
  static_cast<void>(yard.says(1, at(4), model::Said::Loaded));
  EXPECT_EQ(yard.wakeup(), std::nullopt);
  EXPECT_THAT(commands(yard.ended(0, at(100))), ElementsAre("train 1#1 with 1 GB"));
  EXPECT_EQ(yard.wakeup(), at(106));
  EXPECT_THAT(commands(yard.on(at(106), model::TimePassed{})), ElementsAre("stop 1#1"));
}

TEST(Stages, EndOneThatWaitsForItsDeviceWithoutGivingItOne) {
  Yard yard(
      PlanBuilder().tasks(1, gb(1), model::cpus(4)).tasks(1, gb(1), model::cpus(4)).two_phase());
  static_cast<void>(yard.started(0));
  static_cast<void>(yard.loaded(1, at(1)));
  EXPECT_THAT(commands(yard.on(at(2), model::KillAsked{.task = {1}, .request = 7})),
              ElementsAre("stop 1#1"));
  EXPECT_THAT(commands(yard.ended(0, at(3))), IsEmpty());
  const model::Decision end = yard.ended(1, at(4), model::KilledBy{15});
  EXPECT_THAT(changes(end),
              ElementsAre("1#1 EXCEPTION FAILED KILLED: killed on request", "group 0 failed"));
  EXPECT_THAT(commands(end), ElementsAre("answer 7 done"));
}

TEST(Stages, StopThoseThatWaitForADeviceWhenTheRunIsInterrupted) {
  Yard yard(
      PlanBuilder().tasks(1, gb(1), model::cpus(4)).tasks(1, gb(1), model::cpus(4)).two_phase());
  static_cast<void>(yard.started(0));
  static_cast<void>(yard.loaded(1, at(1)));
  const model::Decision told = yard.on(at(2), model::InterruptAsked{});
  EXPECT_THAT(commands(told), UnorderedElementsAre("stop 0#1", "stop 1#1"));
  static_cast<void>(yard.ended(0, at(3), model::KilledBy{15}));
  EXPECT_THAT(changes(yard.ended(1, at(3), model::KilledBy{15})),
              ElementsAre("1#1 INTERRUPT STOPPED: the run was interrupted", "group 0 stopped"));
}

TEST(Stages, LetOneThatHasLoadedTrainThoughRoomIsKeptForAnOlderTask) {
  model::Policy policy = kAnythingGoes;
  policy.passes_max = 1;
  // The last holds the memory that the second waits for, until it has trained.
  Yard yard(PlanBuilder()
                .tasks(1, gb(5), model::cpus(4))
                .tasks(1, gb(6), model::cpus(4))
                .tasks(1, gb(5), model::cpus(2))
                .two_phase(),
            policy);
  EXPECT_THAT(commands(yard.first), ElementsAre("start 0#1 with 5 GB", "start 2#1 with 5 GB"));
  static_cast<void>(yard.started(0));
  EXPECT_THAT(commands(yard.loaded(2, at(1))), IsEmpty());
  EXPECT_THAT(commands(yard.ended(0, at(2))), ElementsAre("train 2#1 with 5 GB"));
  static_cast<void>(yard.says(2, at(3), model::Said::Trained));
  EXPECT_THAT(commands(yard.ended(2, at(4))), ElementsAre("start 1#1 with 6 GB"));
}

}  // namespace
}  // namespace trainyard::schedule
