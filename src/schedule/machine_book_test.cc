#include "schedule/machine_book.h"

#include <gtest/gtest.h>

#include "schedule/test_yard.h"

namespace trainyard::schedule {
namespace {

constexpr Duration kGrace{10'000};

MachineTime hour_from(int joined) { return {at(joined), at(joined + 3'600), kGrace}; }

TEST(MachineTime, LeavesRoomForTheGraceAndForTheNews) {
  EXPECT_EQ(hour_from(100).last_term(), at(100 + 3'600 - 15));
  EXPECT_EQ(hour_from(100).end_of(Duration{0}), at(100 + 3'585));
  EXPECT_EQ(hour_from(100).end_of(Duration{120'000}), at(100 + 3'465));
}

TEST(MachineTime, GivesASignalHalfOfItAtMost) {
  const MachineTime minute(at(0), at(75), kGrace);
  EXPECT_EQ(minute.end_of(Duration{60'000}), at(30));
}

TEST(MachineTime, IsNeverLessThanNothing) {
  const MachineTime none(at(7), at(8), kGrace);
  EXPECT_EQ(none.last_term(), at(7));
  EXPECT_FALSE(none.is_enough_for({}, at(7)));
}

TEST(MachineTime, HasNoEndWhereNobodyKnowsOne) {
  MachineTime endless(at(0), std::nullopt, kGrace);
  EXPECT_TRUE(endless.is_enough_for({.takes = Duration{1'000'000'000}}, at(1'000'000)));
  endless.began(Duration{0});
  EXPECT_EQ(endless.next_end(), std::nullopt);
}

TEST(MachineTime, IsEnoughForWhoIsDoneByThen) {
  const MachineTime hour = hour_from(0);
  const Duration ten_minutes{600'000};
  EXPECT_TRUE(hour.is_enough_for({.takes = ten_minutes}, at(2'985)));
  EXPECT_FALSE(hour.is_enough_for({.takes = ten_minutes}, at(2'986)));
  EXPECT_TRUE(hour.is_enough_for({}, at(3'584))) << "nobody knows how long it takes";
  EXPECT_FALSE(hour.is_enough_for({}, at(3'585))) << "all are interrupted now";
}

TEST(MachineTime, IsEnoughForWhoGoesOnWhereItWas) {
  const MachineTime hour = hour_from(0);
  const MachineTime::Wish wish{
      .before = Duration{60'000}, .takes = Duration{7'200'000}, .goes_on_where_it_was = true};
  EXPECT_TRUE(hour.is_enough_for(wish, at(3'524)));
  EXPECT_FALSE(hour.is_enough_for(wish, at(3'525))) << "its signal would come at once";
}

TEST(MachineTime, IsNotWaitedForByWhoNeedsMoreThanThereEverIs) {
  EXPECT_TRUE(hour_from(0).is_enough_for({.takes = Duration{3'600'000}}, at(3'000)));
}

TEST(MachineTime, KnowsWhoIsInterruptedNext) {
  MachineTime hour = hour_from(0);
  EXPECT_EQ(hour.next_end(), std::nullopt);
  hour.began(Duration{0});
  hour.began(Duration{120'000});
  hour.began(Duration{60'000});
  EXPECT_EQ(hour.next_end(), at(3'465));
}

}  // namespace
}  // namespace trainyard::schedule
