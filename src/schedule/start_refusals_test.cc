#include "schedule/start_refusals.h"

#include <cstdint>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedule/test_yard.h"

namespace trainyard::schedule {
namespace {

using ::testing::ElementsAre;

constexpr Duration kLongPatience{600'000};

model::AttemptKey attempt_of(std::uint32_t task, std::uint32_t attempt = 1) {
  return {.task = {task}, .attempt = attempt};
}

class StartPauseTest : public testing::Test {
 protected:
  /// Refuses attempt after attempt, each as soon as it may be tried; returns the pauses in seconds.
  std::vector<int> refuse(int times) {
    std::vector<int> pauses;
    for (int i = 0; i < times; ++i) {
      pause_.try_to_start(attempt_of(0));
      pause_.refuse(attempt_of(0), "disk full", now_);
      const Instant next = pause_.tries_at().value_or(now_);
      pauses.push_back(static_cast<int>((next - now_).count() / 1000));
      now_ = next;
    }
    return pauses;
  }

  StartPause pause_;
  Instant now_ = at(10);
};

TEST_F(StartPauseTest, HoldsNothingBackBeforeARefusal) {
  pause_.try_to_start(attempt_of(0));
  EXPECT_FALSE(pause_.is_on());
  EXPECT_FALSE(pause_.awaits(attempt_of(0)));
  EXPECT_FALSE(pause_.holds_back(at(10)));
  EXPECT_EQ(pause_.tries_at(), std::nullopt);
  EXPECT_FALSE(pause_.has_lasted(Duration{0}, at(10)));
}

TEST_F(StartPauseTest, DoublesWithEachRefusalUpToAMinute) {
  EXPECT_THAT(refuse(8), ElementsAre(1, 2, 4, 8, 16, 32, 60, 60));
}

TEST_F(StartPauseTest, HoldsStartsBackUntilItIsOverAndWhileOneIsTried) {
  pause_.refuse(attempt_of(0), "disk full", at(10));
  EXPECT_TRUE(pause_.holds_back(at(10)));
  EXPECT_FALSE(pause_.holds_back(at(11)));
  EXPECT_EQ(pause_.tries_at(), at(11));
  pause_.try_to_start(attempt_of(1));
  EXPECT_TRUE(pause_.holds_back(at(12)));
  EXPECT_TRUE(pause_.awaits(attempt_of(1)));
  EXPECT_EQ(pause_.tries_at(), std::nullopt);
}

TEST_F(StartPauseTest, CountsAttemptsThatWereStartedBeforeItAsOneRefusal) {
  pause_.refuse(attempt_of(0), "disk full", at(10));
  pause_.refuse(attempt_of(1), "no inodes left", at(12));
  EXPECT_EQ(pause_.tries_at(), at(11));
  EXPECT_EQ(pause_.why(), "disk full");
}

TEST_F(StartPauseTest, NamesTheLastCauseAndLastsSinceTheFirst) {
  pause_.refuse(attempt_of(0), "disk full", at(10));
  pause_.try_to_start(attempt_of(1));
  pause_.refuse(attempt_of(1), "no inodes left", at(15));
  EXPECT_EQ(pause_.why(), "no inodes left");
  EXPECT_TRUE(pause_.has_lasted(Duration{5'000}, at(15)));
  EXPECT_FALSE(pause_.has_lasted(Duration{5'001}, at(15)));
}

TEST_F(StartPauseTest, AwaitsAnotherAttemptOnceTheTriedOneIsTakenBack) {
  pause_.refuse(attempt_of(0), "disk full", at(10));
  pause_.try_to_start(attempt_of(1));
  pause_.take_back(attempt_of(2));
  EXPECT_TRUE(pause_.holds_back(at(12))) << "the tried attempt is still awaited";
  pause_.take_back(attempt_of(1));
  EXPECT_FALSE(pause_.holds_back(at(12)));
}

TEST_F(StartPauseTest, IsShortAgainOnceATaskWasStarted) {
  EXPECT_THAT(refuse(3), ElementsAre(1, 2, 4));
  pause_.start(now_);
  EXPECT_FALSE(pause_.is_on());
  EXPECT_THAT(refuse(2), ElementsAre(1, 2));
}

TEST_F(StartPauseTest, KeepsTheLatestStart) {
  pause_.start(at(20));
  pause_.start(at(15));
  EXPECT_EQ(pause_.last_start(), at(20));
}

TEST(StartRefusals, DelayNoTaskWhileNoOtherWasStartedSince) {
  StartRefusals refusals;
  StartPause pause;
  pause.start(at(5));
  for (const int second : {5, 6, 7}) {
    EXPECT_TRUE(refusals.excuse({3}, pause, Duration{0}, at(second)));
    EXPECT_EQ(refusals.delay_of({3}), Duration{0});
  }
}

TEST(StartRefusals, DelayATaskTwiceAsLongEachTimeOnceOthersWereStarted) {
  StartRefusals refusals;
  StartPause pause;
  EXPECT_TRUE(refusals.excuse({3}, pause, kLongPatience, at(0)));
  pause.start(at(1));
  std::vector<int> delays;
  for (int i = 0; i < 8; ++i) {
    EXPECT_TRUE(refusals.excuse({3}, pause, kLongPatience, at(1)));
    delays.push_back(static_cast<int>(refusals.delay_of({3}).count() / 1000));
  }
  EXPECT_THAT(delays, ElementsAre(1, 2, 4, 8, 16, 32, 60, 60));
}

TEST(StartRefusals, ExcuseNoTaskWhoseDelaysAddUpToThePatience) {
  StartRefusals refusals;
  StartPause pause;
  const Duration patience{3'000};
  EXPECT_TRUE(refusals.excuse({3}, pause, patience, at(0)));
  pause.start(at(1));
  EXPECT_TRUE(refusals.excuse({3}, pause, patience, at(1)));
  EXPECT_TRUE(refusals.excuse({3}, pause, patience, at(2)));
  EXPECT_FALSE(refusals.excuse({3}, pause, patience, at(4))) << "it was delayed by 1 s and 2 s";
  EXPECT_FALSE(refusals.contains({3}));
}

TEST(StartRefusals, CountAnewForATaskThatWasForgotten) {
  StartRefusals refusals;
  StartPause pause;
  EXPECT_TRUE(refusals.excuse({3}, pause, kLongPatience, at(0)));
  pause.start(at(1));
  EXPECT_TRUE(refusals.excuse({3}, pause, kLongPatience, at(1)));
  EXPECT_EQ(refusals.delay_of({3}), Duration{1'000});
  refusals.forget({3});
  EXPECT_TRUE(refusals.excuse({3}, pause, kLongPatience, at(2)));
  EXPECT_EQ(refusals.delay_of({3}), Duration{0});
}

}  // namespace
}  // namespace trainyard::schedule
