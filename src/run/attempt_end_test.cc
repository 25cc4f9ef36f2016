#include "run/attempt_end.h"

#include <gtest/gtest.h>

namespace trainyard::run {
namespace {

process::ProcessEnded news_of(Bytes largest, Bytes mark, Bytes group_peak = {}) {
  return {.key = {},
          .end = model::ExitedWith{0},
          .usage = {.memory_peak = largest},
          .mark = mark,
          .group_peak = group_peak};
}

TEST(MemoryPeak, IsThatOfTheControlGroupOrOfTheSamplesWhicheverIsMore) {
  const process::ProcessEnded grouped = news_of(mb(900), mb(10), mb(300));
  MemoryPeak peak = memory_peak_of(grouped, {.peak = mb(200)});
  EXPECT_EQ(peak.bytes, mb(300));
  EXPECT_FALSE(peak.at_least);
  peak = memory_peak_of(grouped, {.peak = mb(400)});
  EXPECT_EQ(peak.bytes, mb(400));
  EXPECT_FALSE(peak.at_least);
}

TEST(MemoryPeak, IsAtLeastThatOfTheLargestProcessLessWhatIsNotItsOwn) {
  const MemoryPeak unsampled = memory_peak_of(news_of(mb(500), mb(10)), {});
  EXPECT_EQ(unsampled.bytes, mb(490));
  EXPECT_TRUE(unsampled.at_least);
  const MemoryPeak sampled =
      memory_peak_of(news_of(mb(500), mb(10)), {.peak = mb(200), .others = mb(100)});
  EXPECT_EQ(sampled.bytes, mb(400));
  EXPECT_TRUE(sampled.at_least);
}

TEST(AttemptEnd, IsNoEarlierThanTheAttemptWasSeenToLive) {
  process::ProcessEnded news = news_of({}, {});
  news.at = Duration(1'000);
  const Duration offset(500);
  EXPECT_EQ(attempt_ended_from(news, {.clock_offset = offset}).ended, Instant{Duration(1'500)});
  const Instant before{Duration(1'400)};
  EXPECT_EQ(attempt_ended_from(news, {.clock_offset = offset, .lived_at = before}).ended,
            Instant{Duration(1'500)});
  const Instant after{Duration(2'400)};
  EXPECT_EQ(attempt_ended_from(news, {.clock_offset = offset, .lived_at = after}).ended, after)
      << "the keeper was stopped when it ended";
  news.at.reset();
  EXPECT_FALSE(attempt_ended_from(news, {.clock_offset = offset, .lived_at = after}).ended);
}

TEST(AttemptEnd, SaysWhetherTheAttemptWasToldToEnd) {
  process::ProcessEnded news = news_of({}, {});
  EXPECT_TRUE(attempt_ended_from(news, {}).told_to_end) << "unknown";
  news.told_to_end = false;
  EXPECT_FALSE(attempt_ended_from(news, {}).told_to_end);
}

TEST(AttemptEnd, SaysThatThereIsACheckpoint) {
  process::ProcessEnded news = news_of({}, {});
  news.end = model::ExitedWith{3};
  EXPECT_FALSE(attempt_ended_from(news, {}).has_checkpoint);
  news.left.has_checkpoint = true;
  EXPECT_TRUE(attempt_ended_from(news, {}).has_checkpoint);
}

TEST(AttemptEnd, NamesTheResultFileInAWarning) {
  process::ProcessEnded news = news_of({}, {});
  news.key.attempt = 2;
  news.left.result = "0.98\n";
  EXPECT_EQ(attempt_ended_from(news, {}).warning,
            "result.2.json: is a number, not an object: result discarded");
  news.left.result = R"({"acc": 0.98})";
  EXPECT_EQ(attempt_ended_from(news, {}).warning, "");
}

TEST(MemoryPeak, IsNotRaisedByALittleMoreThanTheMarkOrTheSamples) {
  const MemoryPeak nothing = memory_peak_of(news_of(mb(105), mb(100)), {});
  EXPECT_EQ(nothing.bytes, Bytes{});
  EXPECT_FALSE(nothing.at_least);
  const MemoryPeak sampled = memory_peak_of(news_of(mb(210), {}), {.peak = mb(200)});
  EXPECT_EQ(sampled.bytes, mb(200));
  EXPECT_FALSE(sampled.at_least);
}

TEST(MemoryPeak, IsThatOfTheSamplesWhereTheLargestProcessSaysNothing) {
  const MemoryPeak peak = memory_peak_of(news_of(mb(900), {}), {.peak = mb(200), .alone = true});
  EXPECT_EQ(peak.bytes, mb(200));
  EXPECT_FALSE(peak.at_least);
}

}  // namespace
}  // namespace trainyard::run
