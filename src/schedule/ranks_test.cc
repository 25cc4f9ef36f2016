// Messages about a task of several ranks that ended badly: they name the rank.
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/time.h"
#include "model/event.h"
#include "schedule/test_yard.h"

namespace trainyard::schedule {
namespace {

model::AttemptEnded end_of(model::End end, model::RanksAtEnd ranks) {
  return {.key = {.task = {0}, .attempt = 1},
          .end = std::move(end),
          .usage = {},
          .ranks = std::move(ranks)};
}

Yard yard_of(int ranks, Duration time_limit = {}) {
  Yard yard(PlanBuilder().tasks(1, gb(1), {}, time_limit).ranks(ranks));
  static_cast<void>(yard.started(0, at(1)));
  return yard;
}

/// The last message of the task when its attempt ends so.
std::string told(Yard& yard, model::AttemptEnded ended, Instant when = at(2)) {
  const auto lines = changes(yard.on(when, std::move(ended)));
  EXPECT_FALSE(lines.empty());
  const std::string line = lines.empty() ? "" : lines.front();
  return line.substr(line.find(": ") + 2);
}

TEST(Ranks, AreNamedWhenOneFails) {
  Yard yard = yard_of(3);
  EXPECT_EQ(told(yard, end_of(model::KilledBy{.signal = 9}, {.failed = 2, .finished = {}})),
            "rank 2: killed by signal 9 (SIGKILL)");
}

TEST(Ranks, AreNamedBeforeWhatTheySaidLast) {
  Yard yard = yard_of(3);
  model::AttemptEnded ended = end_of(model::ExitedWith{1}, {.failed = 0, .finished = {2, 1}});
  ended.last_words = "ConnectionResetError: peer is gone";
  EXPECT_EQ(
      told(yard, ended),
      "rank 0: ConnectionResetError: peer is gone; ranks 1 and 2 had exited before with code 0");
}

TEST(Ranks, AreCountedWhenManyHadEndedBefore) {
  Yard yard = yard_of(8);
  EXPECT_EQ(told(yard, end_of(model::ExitedWith{1}, {.failed = 0, .finished = {1, 2, 3, 4, 5}})),
            "rank 0: exited with code 1; 5 of 8 ranks had exited before with code 0");
}

TEST(Ranks, ThatAreStillRunningAtTheTimeLimitAreNamed) {
  for (const auto& [ranks, finished, words] :
       {std::tuple(3, std::vector<int>{}, "all 3 ranks were still running"),
        std::tuple(3, std::vector<int>{2, 0}, "rank 1 was still running"),
        std::tuple(4, std::vector<int>{3}, "ranks 0, 1 and 2 were still running")}) {
    Yard yard = yard_of(ranks, Duration{5'000});
    static_cast<void>(yard.on(at(10), model::TimePassed{}));
    EXPECT_EQ(
        told(yard, end_of(model::KilledBy{.signal = 15}, {.failed = {}, .finished = finished}),
             at(11)),
        std::string("time limit of 5 s reached; ") + words);
  }
}

TEST(Ranks, ThatHadTheMostMemoryAreNamedWhenItRanOut) {
  Yard yard(PlanBuilder().tasks(1, gb(1)).ranks(2).memory_hard());
  static_cast<void>(yard.started(0, at(1)));
  EXPECT_EQ(
      told(yard, end_of(model::KilledBy{.signal = 9, .out_of_memory = true, .over_limit = true},
                        {.failed = 0, .finished = {}, .largest = 1, .largest_memory = mb(900)})),
      "used more memory than its limit of 1 GB (memory-limit: hard); rank 1 had the most memory, "
      "900 MB");
}

TEST(Ranks, OfWhichOneRanOutOfMemoryAreNamedWithEachTry) {
  Yard yard = yard_of(2);
  model::AttemptEnded ended = end_of(
      model::ExitedWith{1}, {.failed = 1, .finished = {}, .largest = {}, .largest_memory = {}});
  ended.out_of_memory = "MemoryError";
  EXPECT_EQ(told(yard, ended), "rank 1: MemoryError; retrying with 1.2 GB");
}

TEST(Ranks, ThatHadTheMostMemoryOfTheMachineAreNotNamedWhereThatOfAGpuRanOut) {
  Yard yard(PlanBuilder().tasks(1, gb(1)).ranks(2).on_gpus(1, gb(2)), {}, kTwoGpus);
  static_cast<void>(yard.started(0, at(1)));
  model::AttemptEnded ended = end_of(
      model::ExitedWith{1}, {.failed = 1, .finished = {}, .largest = 0, .largest_memory = mb(900)});
  ended.out_of_memory = "CUDA out of memory";
  ended.of_gpu = true;
  EXPECT_EQ(told(yard, ended), "rank 1: CUDA out of memory; retrying with 3 GB on its GPU");
}

TEST(Ranks, AreNotToldOfWhereATaskIsOneProcess) {
  Yard yard = yard_of(0);
  EXPECT_EQ(told(yard, end_of(model::ExitedWith{1}, {})), "exited with code 1");
}

}  // namespace
}  // namespace trainyard::schedule
