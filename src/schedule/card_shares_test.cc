#include "schedule/card_shares.h"

#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::schedule {
namespace {

using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

std::vector<std::pair<std::uint32_t, int>> ends_of(const std::vector<CardShares::Timed>& timed) {
  std::vector<std::pair<std::uint32_t, int>> pairs;
  for (const CardShares::Timed& it : timed) {
    pairs.emplace_back(it.task, static_cast<int>(it.ends.count()));
  }
  return pairs;
}
using End = std::pair<std::uint32_t, int>;

TEST(CardShares, SlowNobodyDownAsLongAsTheyFitTogether) {
  CardShares shares(1);
  EXPECT_THAT(ends_of(shares.begin(1, {0}, 400, Duration{100}, Duration{0})),
              UnorderedElementsAre(End{1, 100}));
  EXPECT_THAT(ends_of(shares.begin(2, {0}, 600, Duration{100}, Duration{50})),
              UnorderedElementsAre(End{2, 150}));
  EXPECT_THAT(ends_of(shares.begin(3, {0}, 0, Duration{10}, Duration{50})),
              UnorderedElementsAre(End{3, 60}));
}

TEST(CardShares, SlowAllOfACardDownByTheSameAndOnlyThem) {
  CardShares shares(2);
  shares.begin(1, {0}, 1000, Duration{100}, Duration{0});
  shares.begin(9, {1}, 1000, Duration{100}, Duration{0});
  EXPECT_THAT(ends_of(shares.begin(2, {0}, 1000, Duration{100}, Duration{50})),
              UnorderedElementsAre(End{2, 250}, End{1, 150}));
  EXPECT_EQ(shares.end_of(9), Duration{100});
  // The first has done its work at 150; the other has half of its own left, and the card alone.
  EXPECT_THAT(ends_of(shares.leave(1, Duration{150})), UnorderedElementsAre(End{2, 200}));
  EXPECT_THAT(ends_of(shares.leave(1, Duration{160})), IsEmpty());
  EXPECT_EQ(shares.end_of(1), std::nullopt);
}

TEST(CardShares, LoseAPartByEachBeyondTheFirstWhereTheyCrowdAndDisturbEachOther) {
  CardShares shares(1, 100);
  EXPECT_THAT(ends_of(shares.begin(1, {0}, 500, Duration{300}, Duration{0})),
              UnorderedElementsAre(End{1, 300}));
  // Both fit: neither is disturbed.
  EXPECT_THAT(ends_of(shares.begin(2, {0}, 500, Duration{300}, Duration{0})),
              UnorderedElementsAre(End{2, 300}));
  // One and a half of a card by three, of which two are beyond the first: 1.5 x 1.2.
  EXPECT_THAT(ends_of(shares.begin(3, {0}, 500, Duration{100}, Duration{0})),
              UnorderedElementsAre(End{1, 540}, End{2, 540}, End{3, 180}));
}

TEST(CardShares, LetOneOnSeveralCardsGoAsFastAsOnTheFullest) {
  CardShares shares(2);
  shares.begin(1, {0, 1}, 500, Duration{100}, Duration{0});
  EXPECT_THAT(ends_of(shares.begin(2, {1}, 1000, Duration{100}, Duration{0})),
              UnorderedElementsAre(End{2, 150}, End{1, 150}));
}

}  // namespace
}  // namespace trainyard::schedule
