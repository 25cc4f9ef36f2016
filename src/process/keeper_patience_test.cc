#include "process/keeper_patience.h"

#include <gtest/gtest.h>

namespace trainyard::process {
namespace {

using Step = KeeperPatience::Step;

/// The number of looks in a row that return this step.
int count(KeeperPatience& patience, const std::optional<KeeperPatience::Seen>& keeper, Step step) {
  constexpr int kEnough = 1'000;
  for (int looks = 0; looks < kEnough; ++looks) {
    if (patience.look(keeper) != step) return looks;
  }
  return kEnough;
}

constexpr KeeperPatience::Seen kAsleep{.state = 'S', .major_faults = 7};
constexpr KeeperPatience::Seen kStopped{.state = 'T', .major_faults = 7};
constexpr KeeperPatience::Seen kWaitsForADisk{.state = 'D', .major_faults = 7};

TEST(KeeperPatience, HasNothingToBearWhileTheKeeperAnswers) {
  KeeperPatience patience;
  EXPECT_FALSE(patience.is_silent());
  EXPECT_EQ(count(patience, kStopped, Step::Wait), 1'000);
  patience.falls_silent();
  EXPECT_TRUE(patience.is_silent());
  patience.has_answered();
  EXPECT_FALSE(patience.is_silent());
  EXPECT_EQ(count(patience, kStopped, Step::Wait), 1'000);
}

TEST(KeeperPatience, WakesAKeeperThatIsStoppedAndGivesItUpWhenThatDoesNotHelp) {
  KeeperPatience patience;
  patience.falls_silent();
  EXPECT_EQ(count(patience, kStopped, Step::Wake), KeeperPatience::kStoppedMax);
  EXPECT_EQ(patience.look(kStopped), Step::Kill);
}

TEST(KeeperPatience, CountsAnewHowOftenAKeeperWasFoundStoppedWhenItHasGoneOn) {
  KeeperPatience patience;
  patience.falls_silent();
  for (int i = 0; i < 3; ++i) {
    for (int look = 0; look < KeeperPatience::kStoppedMax; ++look) {
      EXPECT_EQ(patience.look(kStopped), Step::Wake);
    }
    EXPECT_EQ(patience.look(kAsleep), Step::Wait);
  }
}

TEST(KeeperPatience, EndsAfterAMinuteOfSilenceWhateverTheKeeperDoes) {
  for (const std::optional<KeeperPatience::Seen>& keeper :
       {std::optional(kAsleep), std::optional(kWaitsForADisk),
        std::optional<KeeperPatience::Seen>()}) {
    KeeperPatience patience;
    patience.falls_silent();
    // The first look sees how often it had to wait for a disk before.
    const int free = keeper ? 1 : 0;
    EXPECT_EQ(count(patience, keeper, Step::Wait), KeeperPatience::kSilentMax - 1 + free);
  }
}

TEST(KeeperPatience, BearsAKeeperThatIsReadBackFromTheDiskForAsLongAsThatTakes) {
  KeeperPatience patience;
  patience.falls_silent();
  KeeperPatience::Seen keeper = kWaitsForADisk;
  for (int look = 0; look < 10 * KeeperPatience::kSilentMax; ++look) {
    ++keeper.major_faults;
    ASSERT_EQ(patience.look(keeper), Step::Wait);
  }
  // The minute begins when the reads from the disk are over.
  EXPECT_EQ(count(patience, keeper, Step::Wait), KeeperPatience::kSilentMax - 1);
}

TEST(KeeperPatience, IsNotUsedUpByASilenceThatIsOver) {
  KeeperPatience patience;
  for (int silence = 0; silence < 3; ++silence) {
    patience.falls_silent();
    for (int look = 0; look < KeeperPatience::kSilentMax - 1; ++look) {
      ASSERT_EQ(patience.look(kAsleep), Step::Wait);
    }
    patience.has_answered();
  }
  // A silence that is reported twice is one silence.
  patience.falls_silent();
  EXPECT_EQ(patience.look(std::nullopt), Step::Wait);
  patience.falls_silent();
  EXPECT_EQ(count(patience, std::nullopt, Step::Wait), KeeperPatience::kSilentMax - 2);
}

using Clock = KeeperPresence::Clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Clock::time_point at(int milliseconds_since) {
  return Clock::time_point(seconds(100) + milliseconds(milliseconds_since));
}

TEST(KeeperPresence, HearsOfWhatHappensWhenItHappensWhileItIsThere) {
  KeeperPresence presence(at(0));
  EXPECT_EQ(presence.wakes({.over = at(60'000), .until = {}}), seconds(0));
  EXPECT_EQ(presence.happened_at(), at(60'000)) << "it had nothing to wake for before";
  EXPECT_EQ(presence.wakes({.over = at(60'100), .until = at(90'000)}), seconds(0));
  EXPECT_EQ(presence.happened_at(), at(60'100));
}

TEST(KeeperPresence, WasAwayWhenItWasStopped) {
  KeeperPresence presence(at(0));
  presence.wakes({.over = at(500), .until = {}});
  EXPECT_EQ(presence.wakes({.over = at(7'000), .until = {}, .was_stopped = true}),
            milliseconds(6'500));
  EXPECT_EQ(presence.happened_at(), at(500)) << "whatever it hears of happened after that";
  EXPECT_EQ(presence.wakes({.over = at(7'001), .until = {}}), seconds(0));
  EXPECT_EQ(presence.happened_at(), at(7'001));
}

TEST(KeeperPresence, WasAwayWhenItWakesMuchLaterThanItAskedFor) {
  KeeperPresence presence(at(0));
  EXPECT_EQ(presence.wakes({.over = at(1'999), .until = at(1'000)}), seconds(0));
  EXPECT_EQ(presence.happened_at(), at(1'999)) << "the machine is busy";
  EXPECT_EQ(presence.wakes({.over = at(4'000), .until = at(3'000)}), milliseconds(2'001));
  EXPECT_EQ(presence.happened_at(), at(1'999));
}

TEST(KeeperPresence, WasAwayUntilItHasHeardAllThatHappenedMeanwhile) {
  KeeperPresence presence(at(500));
  // The kernel breaks off the wait of one that was stopped in it, without a word of what happened.
  EXPECT_EQ(
      presence.wakes({.over = at(7'000), .until = {}, .was_stopped = true, .heard_all = false}),
      milliseconds(6'500));
  EXPECT_EQ(
      presence.wakes({.over = at(7'001), .until = {}, .was_stopped = true, .heard_all = false}),
      milliseconds(1))
      << "no time counts twice";
  EXPECT_EQ(presence.happened_at(), at(500));
  presence.wakes({.over = at(7'002), .until = {}});
  EXPECT_EQ(presence.happened_at(), at(500));
  presence.wakes({.over = at(7'003), .until = {}});
  EXPECT_EQ(presence.happened_at(), at(7'003));
}

}  // namespace

}  // namespace trainyard::process
