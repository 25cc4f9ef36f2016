// The outcomes of tasks when one of their GPUs does not answer for a while.
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/status.h"
#include "schedule/test_yard.h"

namespace trainyard::schedule {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Texts = std::vector<std::string>;

const model::Policy kLosing{.memory_remain = Bytes{0}, .gpu_memory_remain = Bytes{0}};
const model::Capacity kOnlyGpu{
    .memory = gb(10), .cpus = model::cpus(8), .gpus = {{.number = 0, .pci = "a", .memory = gb(8)}}};

/// The first GPU does not answer, or it does.
model::GpusSampled first_answers(bool answers) {
  return {.gpus = {{.present = answers}, {}}, .uses = {}};
}

/// A task's own message comes after the reason for its retry.
model::AttemptEnded failed_with(std::string words, std::uint32_t task, std::uint32_t attempt = 1) {
  return {.key = {{task}, attempt}, .end = model::ExitedWith{1}, .last_words = std::move(words)};
}

Yard one_on_a_gpu(const model::Capacity& machine = kTwoGpus) {
  Yard yard(PlanBuilder().tasks(1, gb(1)).on_gpus(1), kLosing, machine);
  yard.go(yard.first, at(0));
  return yard;
}

/// The same of the only one.
model::GpusSampled only_answers(bool answers) {
  return {.gpus = {{.present = answers}}, .uses = {}};
}

TEST(LostGpu, LosesNoTaskThatDiedWithIt) {
  Yard yard = one_on_a_gpu();
  static_cast<void>(yard.on(at(1), first_answers(false)));
  const model::Decision ended = yard.on(at(2), failed_with("CUDA error: unknown error", 0));
  EXPECT_THAT(
      changes(ended),
      ElementsAre("0#1 INTERRUPT LOST: retry 1 of 5: GPU 0 did not answer while it ran: CUDA "
                  "error: unknown error",
                  "0#2 AVAILABLE"));
  EXPECT_THAT(commands(ended), ElementsAre("start 0#2 with 1 GB, 1 whole"));
}

TEST(LostGpu, LosesATaskThatItTookFromSixTimes) {
  Yard yard = one_on_a_gpu(kOnlyGpu);
  int now = 0;
  for (std::uint32_t attempt = 1; attempt <= 5; ++attempt) {
    static_cast<void>(yard.on(at(now + 1), only_answers(false)));
    EXPECT_THAT(changes(yard.on(at(now + 2), failed_with("", 0, attempt))).front(),
                HasSubstr(fmt::format("INTERRUPT LOST: retry {} of 5: GPU 0 did not", attempt)));
    static_cast<void>(yard.on(at(now + 3), only_answers(true)));
    now += 13;
    EXPECT_THAT(commands(yard.go(yard.on(at(now), only_answers(true)), at(now))),
                ElementsAre(fmt::format("start 0#{} with 1 GB, 0 whole", attempt + 1)))
        << "there is no other GPU";
  }
  static_cast<void>(yard.on(at(now + 1), only_answers(false)));
  EXPECT_EQ(changes(yard.on(at(now + 2), failed_with("", 0, 6))).front(),
            "0#6 EXCEPTION FAILED LOST: GPU 0 did not answer while it ran: exited with code 1");
  EXPECT_TRUE(yard.over());
}

TEST(LostGpu, IsAvoidedByTheRetryAlthoughItHasRoom) {
  Yard yard(PlanBuilder().tasks(2, gb(1)).on_gpus(1), kLosing, kTwoGpus);
  yard.go(yard.first, at(0));
  static_cast<void>(yard.on(at(1), first_answers(false)));
  static_cast<void>(yard.on(at(2), failed_with("", 0)));
  static_cast<void>(yard.on(at(3), first_answers(true)));
  const model::Decision steady = yard.on(at(13), first_answers(true));
  EXPECT_THAT(commands(steady), IsEmpty());
  EXPECT_THAT(changes(steady), Contains(HasSubstr("0 of 1 GPU without tasks, GPU 0 is avoided "
                                                  "because the task was lost on it")));
  static_cast<void>(yard.ended(1, at(20)));
  EXPECT_THAT(commands(yard.on(at(21), first_answers(true))),
              ElementsAre("start 0#2 with 1 GB, 1 whole"));
}

/// The first GPU does not answer, or it does; other processes fill the second one.
model::GpusSampled other_is_full(bool answers) {
  return {.gpus = {{.present = answers}, {.used = gb(8), .of_strangers = gb(8)}}, .uses = {}};
}

TEST(LostGpu, IsUsedAgainByTheRetryWhileOthersFillTheOtherGpu) {
  Yard yard = one_on_a_gpu();
  static_cast<void>(yard.on(at(1), other_is_full(false)));
  static_cast<void>(yard.on(at(2), failed_with("", 0)));
  static_cast<void>(yard.on(at(3), other_is_full(true)));
  EXPECT_THAT(commands(yard.on(at(13), other_is_full(true))),
              ElementsAre("start 0#2 with 1 GB, 0 whole"));
}

TEST(LostGpu, IsUsedAfterTheFirstQuietTimeByATaskThatFitsOnNoOther) {
  Yard yard = one_on_a_gpu();
  // It answers for 14 s at a time, and then not for 3 s.
  int down = 1;
  for (std::uint32_t attempt = 1; attempt <= 4; ++attempt, down += 17) {
    static_cast<void>(yard.on(at(down), other_is_full(false)));
    static_cast<void>(yard.on(at(down + 1), failed_with("", 0, attempt)));
    static_cast<void>(yard.on(at(down + 3), other_is_full(true)));
    EXPECT_THAT(commands(yard.on(at(down + 12), other_is_full(true))), IsEmpty());
    const Instant steady = at(down + 13);
    EXPECT_THAT(commands(yard.go(yard.on(steady, other_is_full(true)), steady)),
                ElementsAre(fmt::format("start 0#{} with 1 GB, 0 whole", attempt + 1)));
  }
}

TEST(LostGpu, IsAvoidedForTheLongerQuietTimeByATaskThatFitsOnAnother) {
  Yard yard(PlanBuilder().tasks(3, gb(1)).on_gpus(1), kLosing, kTwoGpus);
  yard.go(yard.first, at(0));
  static_cast<void>(yard.on(at(1), first_answers(false)));
  static_cast<void>(yard.on(at(2), failed_with("", 0)));
  static_cast<void>(yard.on(at(4), first_answers(true)));
  static_cast<void>(yard.on(at(10), first_answers(false)));
  static_cast<void>(yard.on(at(13), first_answers(true)));
  EXPECT_THAT(commands(yard.on(at(23), first_answers(true))), IsEmpty());
  EXPECT_THAT(commands(yard.on(at(32), first_answers(true))), IsEmpty());
  EXPECT_THAT(commands(yard.on(at(33), first_answers(true))),
              ElementsAre("start 2#1 with 1 GB, 0 whole"));
}

TEST(LostGpu, IsAvoidedByATaskThatLoadsBeforeItTrains) {
  Yard yard(PlanBuilder().tasks(1, gb(1)).on_gpus(1, gb(2)).two_phase(), kLosing, kTwoGpus);
  EXPECT_THAT(commands(yard.loaded(0, at(0))), ElementsAre("train 0#1 with 1 GB, 2 GB on 0"));
  static_cast<void>(yard.on(at(1), first_answers(false)));
  EXPECT_THAT(commands(yard.on(at(2), failed_with("", 0))), ElementsAre("start 0#2 with 1 GB"));
  static_cast<void>(yard.on(at(3), first_answers(true)));
  static_cast<void>(yard.on(at(13), first_answers(true)));
  EXPECT_THAT(commands(yard.loaded(0, at(14), 2)), ElementsAre("train 0#2 with 1 GB, 2 GB on 1"));
}

TEST(LostGpu, ThatIsTheLargestKeepsNoTaskFromTheLargestOfTheOthers) {
  model::Policy policy = kLosing;
  policy.gpu_strategy = model::GpuStrategy::TotalMemory;
  model::Capacity machine = kTwoGpus;
  machine.gpus[0].memory = gb(16);
  Yard yard(
      PlanBuilder().tasks(1, gb(1)).on_gpus(1, gb(2)).two_phase().retries({.out_of_memory = 1}),
      policy, machine);
  EXPECT_THAT(commands(yard.loaded(0, at(0))), ElementsAre("train 0#1 with 1 GB, 2 GB on 0"));
  static_cast<void>(yard.on(at(1), first_answers(false)));
  EXPECT_THAT(commands(yard.on(at(2), failed_with("", 0))), ElementsAre("start 0#2 with 1 GB"));
  EXPECT_THAT(commands(yard.loaded(0, at(3), 2)), ElementsAre("train 0#2 with 1 GB, 2 GB on 1"));
  model::AttemptEnded out_of_memory = failed_with("", 0, 2);
  out_of_memory.out_of_memory = "CUDA out of memory";
  out_of_memory.of_gpu = true;
  const model::Decision alone = yard.on(at(4), out_of_memory);
  EXPECT_THAT(changes(alone), Contains(HasSubstr("alone on the largest GPU")));
  EXPECT_THAT(commands(alone), ElementsAre("start 0#3 with 1 GB"));
}

constexpr int kHour = 3'600;

/// The outcomes of the tasks of a run.
struct Outcome {
  int finished = 0;
  std::map<std::uint32_t, std::uint32_t> attempts;  ///< The last of each task.
};

/// Plays tasks of an hour on two GPUs, in steps of ten seconds. GPU 0 drops out at each half hour,
/// and fails the task on it.
Outcome play_with_drop_outs(Yard& yard) {
  struct Attempt {
    model::AttemptKey key;
    model::GpuIndex gpu;
    int since;
  };
  std::vector<Attempt> running;
  Outcome outcome;
  const auto take_in = [&](model::Decision told, int now) {
    const model::Decision decision = yard.go(std::move(told), at(now));
    for (const model::Change& change : decision.changes) {
      const auto* const task = std::get_if<model::TaskChanged>(&change);
      if (task != nullptr && task->verdict == model::Verdict::Finished) ++outcome.finished;
    }
    for (const model::Command& command : decision.commands) {
      const auto* const start = std::get_if<model::StartAttempt>(&command);
      if (start == nullptr) continue;
      running.push_back({.key = start->key, .gpu = start->site.gpus.front(), .since = now});
      outcome.attempts[start->key.task.value] = start->key.attempt;
    }
  };
  take_in(yard.first, 0);
  for (int now = 10; now < 24 * kHour && !yard.over(); now += 10) {
    const bool answers = now % (kHour / 2) != 0;
    take_in(yard.on(at(now), first_answers(answers)), now);
    for (const Attempt& it : std::exchange(running, {})) {
      const bool lost = !answers && it.gpu == model::GpuIndex{0};
      if (!lost && now - it.since < kHour) {
        running.push_back(it);
      } else if (lost) {
        take_in(yard.on(at(now), failed_with("", it.key.task.value, it.key.attempt)), now);
      } else {
        take_in(yard.ended(it.key.task.value, at(now), model::ExitedWith{0}, {}, it.key.attempt),
                now);
      }
    }
  }
  return outcome;
}

TEST(LostGpu, LeavesTheTasksOfAGpuThatDropsOutEveryHalfHourToTheOther) {
  Yard yard(PlanBuilder().tasks(4, gb(1)).on_gpus(1), kLosing, kTwoGpus);
  const Outcome outcome = play_with_drop_outs(yard);
  EXPECT_EQ(outcome.finished, 4);
  for (const auto& [task, count] : outcome.attempts) EXPECT_LE(count, 2U) << "task " << task;
}

TEST(LostGpu, IsNotToBlameForWhatFailedBeforeOrLongAfter) {
  Yard before = one_on_a_gpu();
  EXPECT_THAT(changes(before.on(at(1), failed_with("no such file", 0))).front(),
              HasSubstr("EXCEPTION FAILED EXIT: no such file"));
  Yard after = one_on_a_gpu();
  static_cast<void>(after.on(at(1), first_answers(false)));
  static_cast<void>(after.on(at(2), first_answers(true)));
  EXPECT_THAT(changes(after.on(at(62), failed_with("no such file", 0))).front(),
              HasSubstr("EXCEPTION FAILED EXIT: no such file"));
}

TEST(LostGpu, IsNotToBlameForWhatWasEndedOnPurpose) {
  Yard yard = one_on_a_gpu();
  static_cast<void>(yard.on(at(1), first_answers(false)));
  static_cast<void>(yard.on(at(2), model::KillAsked{.task = {0}, .request = 1}));
  EXPECT_THAT(changes(yard.ended(0, at(3), model::KilledBy{.signal = 15})).front(),
              HasSubstr("EXCEPTION FAILED KILLED: killed on request"));
}

TEST(LostGpu, IsNotToBlameForATaskOnAnother) {
  Yard yard(PlanBuilder().tasks(1, gb(1)).on_gpus(1, Bytes{0}, model::GpuIndex{1}), kLosing,
            kTwoGpus);
  yard.go(yard.first, at(0));
  static_cast<void>(yard.on(at(1), first_answers(false)));
  EXPECT_THAT(changes(yard.on(at(2), failed_with("", 0))).front(), HasSubstr("FAILED EXIT"));
}

TEST(LostGpu, IsGivenAgainWhenItHasAnsweredForLongEnough) {
  Yard yard = one_on_a_gpu(kOnlyGpu);
  static_cast<void>(yard.on(at(1), only_answers(false)));
  static_cast<void>(yard.on(at(2), failed_with("", 0)));
  for (int second = 3; second < 18; ++second) {
    // It drops out once more on the way.
    EXPECT_THAT(commands(yard.on(at(second), only_answers(second != 7))), IsEmpty()) << second;
  }
  EXPECT_EQ(commands(yard.on(at(18), only_answers(true))), Texts{"start 0#2 with 1 GB, 0 whole"});
}

/// The second does not answer when the run begins.
Yard with_a_late_gpu(const PlanBuilder& plan) {
  model::Capacity machine = kTwoGpus;
  machine.gpus[1] = {.number = 1, .late = true};
  Yard yard(PlanBuilder().tasks(1, gb(1)), kLosing, machine);
  static_cast<void>(yard.on(at(0), model::GpusSampled{.gpus = {{}, {.present = false}}}));
  yard.go(yard.add(plan.build(), at(0)), at(0));
  return yard;
}

model::GpusSampled late_one_answers() {
  return {.gpus = {{}, {}},
          .uses = {},
          .found = {{.gpu = {1},
                     .what = {.number = 1, .uuid = "GPU-b", .memory = gb(16), .late = true}}}};
}

TEST(LateGpu, IsGivenWhenItHasAnsweredForTenSeconds) {
  Yard yard = with_a_late_gpu(PlanBuilder().tasks(2, gb(1)).on_gpus(1));
  EXPECT_THAT(commands(yard.on(at(1), late_one_answers())), IsEmpty());
  EXPECT_EQ(commands(yard.on(at(11), first_answers(true))), Texts{"start 2#1 with 1 GB, 1 whole"});
}

TEST(LateGpu, HasTheMemoryThatItSays) {
  Yard yard = with_a_late_gpu(PlanBuilder().tasks(2, gb(1)).on_gpus(1, gb(7)));
  static_cast<void>(yard.on(at(1), late_one_answers()));
  static_cast<void>(yard.on(at(11), first_answers(true)));
  model::Plan large = PlanBuilder().tasks(1, gb(1)).on_gpus(1, gb(9)).build();
  EXPECT_EQ(commands(yard.add(std::move(large), at(12))), Texts{"start 3#1 with 1 GB, 9 GB on 1"});
}

TEST(LateGpu, MayBeOneThatATaskFitsOn) {
  model::Capacity machine = kTwoGpus;
  machine.gpus[1] = {.number = 1, .late = true};
  const auto never = [&machine](const model::Request& request) {
    return never_fits(request, kLosing, machine).has_value();
  };
  EXPECT_FALSE(never({.gpus = 1, .gpu_memory = gb(200)}));
  EXPECT_FALSE(never({.gpus = 2}));
  EXPECT_TRUE(never({.gpus = 3}));
  // A task that must see its GPUs when it starts never gets a late one.
  EXPECT_TRUE(never({.gpus = 2, .listed_only = true}));
  machine.gpus[1].memory = gb(16);
  EXPECT_TRUE(never({.gpus = 1, .gpu_memory = gb(200)}));
}

TEST(LateGpu, IsWaitedForAMinuteByATaskThatFitsOnNoOther) {
  Yard yard = with_a_late_gpu(PlanBuilder().tasks(1, gb(1)).on_gpus(1, gb(12)));
  const model::GpusSampled silent{.gpus = {{}, {.present = false}}, .uses = {}};
  for (int second = 1; second < 60; ++second) {
    ASSERT_THAT(changes(yard.on(at(second), silent)), Not(Contains(HasSubstr("SKIPPED"))))
        << second;
  }
  EXPECT_THAT(
      changes(yard.on(at(60), silent)),
      Contains(HasSubstr("SKIPPED: no GPU that it fits on is left: some GPUs do not answer")));
}

TEST(LateGpu, ThatTurnsOutTooSmallIsNotWaitedForAnyMore) {
  Yard yard = with_a_late_gpu(PlanBuilder().tasks(1, gb(1)).on_gpus(1, gb(30)));
  EXPECT_THAT(changes(yard.on(at(1), late_one_answers())), Contains(HasSubstr("SKIPPED")));
}

TEST(LateGpu, IsGivenToNoTwoPhaseTaskThatDoesNotSeeIt) {
  Yard yard = with_a_late_gpu(PlanBuilder().tasks(2, gb(1)).on_gpus(1).two_phase());
  static_cast<void>(yard.on(at(1), late_one_answers()));
  static_cast<void>(yard.loaded(1, at(1)));
  static_cast<void>(yard.loaded(2, at(1)));
  EXPECT_THAT(commands(yard.on(at(11), first_answers(true))), IsEmpty());
}

TEST(LostGpu, ThatBlinksForTooLongIsGivenUpLikeOneThatIsGone) {
  Yard yard(PlanBuilder().tasks(2, gb(1)).on_gpus(1), kLosing, kOnlyGpu);
  yard.go(yard.first, at(0));
  Texts said;
  for (int second = 1; second <= 62 && said.empty(); ++second) {
    const bool answers = second % 5 != 1;
    said = changes(yard.on(at(second), only_answers(answers)));
    std::erase_if(
        said, [](const std::string& it) { return !it.contains("no GPU that it fits on is left"); });
  }
  EXPECT_EQ(said,
            Texts{"1#0 INIT SKIPPED: no GPU that it fits on is left: some GPUs do not answer"});
}

}  // namespace
}  // namespace trainyard::schedule
