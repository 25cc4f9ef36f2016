// Whether a task is tried again, row by row.
#include "schedule/another_try.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace trainyard::schedule {
namespace {

constexpr model::Policy kPolicy{.load_retries = 3, .train_retries = 2};

model::Terms with(model::Retries retries) { return {.retries = retries}; }

std::optional<AnotherTry> after(Setback setback, const Tries& tries, const model::Terms& terms,
                                Stage stage = Stage::Train) {
  return another_try(setback, stage, tries, terms, kPolicy);
}

std::optional<AnotherTry> of(int number, int most, Duration delay = Duration{0}) {
  return AnotherTry{.delay = delay, .number = number, .most = most};
}

TEST(RetryDelay, IsDrawnBetweenOneAndOneAndAHalfOfItForEachAttempt) {
  const Duration delay{30'000};
  std::set<Duration> drawn;
  std::set<Duration> spread;
  for (std::uint32_t task = 0; task < 16; ++task) {
    const model::AttemptKey failed{.task = {task}, .attempt = 1};
    drawn.insert(drawn_delay(delay, failed));
    spread.insert(spread_delay(failed));
    EXPECT_EQ(drawn_delay(delay, failed), drawn_delay(delay, failed));
  }
  EXPECT_GT(drawn.size(), 12U);
  EXPECT_GE(*drawn.begin(), delay);
  EXPECT_LE(*drawn.rbegin(), Duration{45'000});
  EXPECT_GT(*drawn.rbegin() - *drawn.begin(), Duration{7'500});
  EXPECT_GT(spread.size(), 12U);
  EXPECT_GE(*spread.begin(), Duration{0});
  EXPECT_LE(*spread.rbegin(), kRetrySpread);
  EXPECT_GT(*spread.rbegin() - *spread.begin(), kRetrySpread / 2);
  const model::AttemptKey second{.task = {0}, .attempt = 2};
  EXPECT_NE(drawn_delay(delay, second), drawn_delay(delay, {.task = {0}, .attempt = 1}));
}

TEST(AnotherTry, IsNoneAfterAFailureUnlessRetriesSaySo) {
  EXPECT_EQ(after(Setback::Failed, {.failed = 1}, {}), std::nullopt);
  EXPECT_EQ(after(Setback::Failed, {.failed = 1}, with({.failures = 2})), of(2, 3));
  EXPECT_EQ(after(Setback::Failed, {.failed = 2}, with({.failures = 2})), of(3, 3));
  EXPECT_EQ(after(Setback::Failed, {.failed = 3}, with({.failures = 2})), std::nullopt);
}

TEST(AnotherTry, ComesAfterTheTimeLimitOnlyWhereThatIsSaid) {
  EXPECT_EQ(after(Setback::TimeLimit, {.failed = 1}, with({.failures = 2})), std::nullopt);
  const model::Terms said = with({.failures = 2, .after_time_limit = true});
  EXPECT_EQ(after(Setback::TimeLimit, {.failed = 1}, said), of(2, 3));
  EXPECT_EQ(after(Setback::TimeLimit, {.failed = 3}, said), std::nullopt);
  EXPECT_EQ(after(Setback::TimeLimit, {.failed = 1}, with({.after_time_limit = true})),
            std::nullopt);
}

TEST(AnotherTry, AfterOutOfMemoryIsCountedByTheSettingsUnlessTheTaskSaysHowManyMore) {
  EXPECT_EQ(after(Setback::OutOfMemory, {.train_out_of_memory = 1}, {}), of(2, 2));
  EXPECT_EQ(after(Setback::OutOfMemory, {.train_out_of_memory = 2}, {}), std::nullopt);
  EXPECT_EQ(after(Setback::OutOfMemory, {.load_out_of_memory = 2}, {}, Stage::Load), of(3, 3));
  EXPECT_EQ(after(Setback::OutOfMemory, {.load_out_of_memory = 3}, {}, Stage::Load), std::nullopt);
  EXPECT_EQ(after(Setback::OutOfMemory, {.train_out_of_memory = 4}, with({.out_of_memory = 4})),
            of(5, 5));
  EXPECT_EQ(after(Setback::OutOfMemory, {.train_out_of_memory = 1}, with({.out_of_memory = 0})),
            std::nullopt);
}

TEST(AnotherTry, EndsWhereTheCountsEndWhateverTheTermsSay) {
  const model::Terms without_end = with({.failures = 1'000'000, .out_of_memory = 1'000'000});
  EXPECT_EQ(after(Setback::Failed, {.failed = 254}, without_end), of(255, 255));
  EXPECT_EQ(after(Setback::Failed, {.failed = 255}, without_end), std::nullopt);
  EXPECT_EQ(after(Setback::OutOfMemory, {.train_out_of_memory = 254}, without_end), of(255, 255));
  EXPECT_EQ(after(Setback::OutOfMemory, {.train_out_of_memory = 255}, without_end), std::nullopt);
}

TEST(AnotherTry, IsNotSpentByWhatWasNobodysFault) {
  const model::Terms terms = with({.failures = 1, .out_of_memory = 1});
  const Tries tries{.train_out_of_memory = 1, .failed = 1, .lost = 5, .preempted = 5};
  EXPECT_EQ(after(Setback::Failed, tries, terms), of(2, 2));
  EXPECT_EQ(after(Setback::OutOfMemory, tries, terms), of(2, 2));
  EXPECT_EQ(after(Setback::Lost, {.failed = 9, .lost = 1}, terms), of(2, 6));
}

TEST(AnotherTry, AfterWhatWasNobodysFaultComesFiveTimes) {
  for (const Setback setback : {Setback::Lost, Setback::Preempted}) {
    EXPECT_EQ(after(setback, {.lost = 5, .preempted = 5}, {}), of(6, 6));
    EXPECT_EQ(after(setback, {.lost = 6, .preempted = 6}, {}), std::nullopt);
  }
}

TEST(AnotherTry, AfterOutOfMemoryBecauseOfOthersComesFiveTimesAlsoWithoutRetriesForMemory) {
  const model::Terms none = with({.out_of_memory = 0});
  const Tries tries{.train_out_of_memory = 1, .crowded = 1};
  EXPECT_EQ(after(Setback::OutOfMemory, tries, none), std::nullopt);
  EXPECT_EQ(after(Setback::Crowded, tries, none), of(2, 6));
  EXPECT_EQ(after(Setback::Crowded, {.crowded = 5}, none), of(6, 6));
  EXPECT_EQ(after(Setback::Crowded, {.crowded = 6}, none), std::nullopt);
}

TEST(AnotherTry, ComesAsOftenAsTheMachineRefusesAStartAndIsNotCounted) {
  Tries tries;
  tries.count(Setback::StartRefused, Stage::Train);
  EXPECT_EQ(after(Setback::StartRefused, tries, {}), of(2, 0));
  EXPECT_EQ(after(Setback::Failed, {.failed = 1}, with({.failures = 1})), of(2, 2));
  EXPECT_EQ(tries.failed, 0);
}

TEST(AnotherTry, ComesAsOftenAsSomebodyWantsAGpuBack) {
  Tries tries;
  for (int i = 1; i <= 300; ++i) {
    tries.count(Setback::Cleared, Stage::Train);
    const auto next = another_try(Setback::Cleared, Stage::Train, tries, {}, {});
    ASSERT_TRUE(next.has_value()) << i;
    EXPECT_EQ(to_text(*next), fmt::format("retry {}", std::min(i, 255)));
  }
}

TEST(AnotherTry, NeverComesAfterAnEndThatSomebodyWanted) {
  EXPECT_EQ(after(Setback::Final, {}, with({.failures = 9, .out_of_memory = 9})), std::nullopt);
}

TEST(AnotherTry, WaitsTwiceAsLongEachTimeAndAtMostAnHour) {
  const model::Terms terms = with({.failures = 254, .delay = Duration{30'000}});
  const auto delay = [&](std::uint8_t failed) {
    return after(Setback::Failed, {.failed = failed}, terms)->delay;
  };
  EXPECT_EQ(delay(1), Duration{30'000});
  EXPECT_EQ(delay(2), Duration{60'000});
  EXPECT_EQ(delay(4), Duration{240'000});
  EXPECT_EQ(delay(8), Duration{3'600'000});
  EXPECT_EQ(delay(254), Duration{3'600'000});
  EXPECT_EQ(after(Setback::Failed, {.failed = 3}, with({.failures = 9}))->delay, Duration{0});
  EXPECT_EQ(after(Setback::OutOfMemory, {.train_out_of_memory = 1}, terms)->delay, Duration{0});
}

TEST(AnotherTry, IsToldInWords) {
  EXPECT_EQ(to_text(AnotherTry{.number = 2, .most = 3}), "retry 1 of 2");
  EXPECT_EQ(to_text(AnotherTry{.delay = Duration{30'000}, .number = 2, .most = 3}),
            "retry 1 of 2 in 30 s");
  EXPECT_EQ(delay_text(Duration{300}), "0.3 s");
  EXPECT_EQ(delay_text(Duration{90'000}), "1m30s");
  EXPECT_EQ(delay_text(Duration{50 * 60'000}), "50m");
  EXPECT_EQ(delay_text(kRetryDelayMax), "1h");
}

TEST(AnotherTry, CountsItsDelayDownInItsMessage) {
  const std::string retry = "retry 1 of 2 in 50m: exit code 3 in 10 s";
  EXPECT_EQ(with_time_left(retry, Duration{0}), retry);
  EXPECT_EQ(with_time_left(retry, Duration{20'000}), "retry 1 of 2 in 49m40s: exit code 3 in 10 s");
  EXPECT_EQ(with_time_left("retry 1 in 18 s: exited with code 2", Duration{2'460}),
            "retry 1 in 15.5 s: exited with code 2");
  EXPECT_EQ(with_time_left(retry, Duration{50 * 60'000}), "retry 1 of 2: exit code 3 in 10 s");
  const std::string refused =
      "not started (no retry is used up, next start in 10 s): no space left in 5 s";
  EXPECT_EQ(with_time_left(refused, Duration{1'000}),
            "not started (no retry is used up, next start in 9 s): no space left in 5 s");
  EXPECT_EQ(with_time_left(refused, Duration{10'000}),
            "not started (no retry is used up): no space left in 5 s");
  for (const char* const other : {"", "retry 1 of 2: trained in 5 s", "retry in peace: no",
                                  "MemoryError; retrying with 2 GB", "ended in 5 s: no"}) {
    EXPECT_EQ(with_time_left(other, Duration{1'000}), other);
  }
}

TEST(Tries, CountEachCauseForItselfAndStayAtTheMost) {
  Tries tries;
  tries.count(Setback::OutOfMemory, Stage::Load);
  tries.count(Setback::OutOfMemory, Stage::Train);
  tries.count(Setback::Failed, Stage::Train);
  tries.count(Setback::TimeLimit, Stage::Load);
  tries.count(Setback::Preempted, Stage::Train);
  tries.count(Setback::Final, Stage::Train);
  EXPECT_EQ(tries.load_out_of_memory, 1);
  EXPECT_EQ(tries.train_out_of_memory, 1);
  EXPECT_EQ(tries.failed, 2);
  EXPECT_EQ(tries.preempted, 1);
  EXPECT_EQ(tries.lost, 0);
  for (int i = 0; i < 300; ++i) tries.count(Setback::Lost, Stage::Train);
  EXPECT_EQ(tries.lost, 255);
}

}  // namespace
}  // namespace trainyard::schedule
