#include "process/keeper_presence.h"

#include <gtest/gtest.h>

namespace trainyard::process {
namespace {

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
