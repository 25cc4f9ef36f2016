#include "workers/router_peer.h"

#include <gtest/gtest.h>

namespace trainyard::workers {
namespace {

TEST(Credit, IsUsedUpBySoManyEventsOrBytes) {
  Credit by_events({.events_max = 8, .bytes_max = 1'000});
  for (int i = 0; i < 7; ++i) by_events.use(1);
  EXPECT_FALSE(by_events.is_used_up());
  by_events.use(1);
  EXPECT_TRUE(by_events.is_used_up());
  Credit by_bytes({.events_max = 8, .bytes_max = 1'000});
  by_bytes.use(999);
  EXPECT_FALSE(by_bytes.is_used_up());
  by_bytes.use(1);
  EXPECT_TRUE(by_bytes.is_used_up());
}

TEST(Credit, RequestsAnAcknowledgementOfEachQuarter) {
  Credit credit({.events_max = 8, .bytes_max = 1'000});
  EXPECT_EQ(credit.use(1), std::nullopt);
  EXPECT_EQ(credit.use(1), 1U) << "a quarter of the events";
  EXPECT_EQ(credit.use(249), std::nullopt);
  EXPECT_EQ(credit.use(1), 2U);
  EXPECT_EQ(credit.use(250), 3U) << "a quarter of the bytes";
}

TEST(Credit, HasRoomAgainWhenHalfIsAcknowledged) {
  Credit credit({.events_max = 8, .bytes_max = 1'000});
  for (int i = 0; i < 8; ++i) credit.use(1);
  EXPECT_TRUE(credit.acknowledge(1));
  EXPECT_FALSE(credit.is_used_up());
  EXPECT_FALSE(credit.has_room());
  EXPECT_TRUE(credit.acknowledge(2));
  EXPECT_TRUE(credit.has_room());
}

TEST(Credit, LetsAnEventGoThatIsLargerThanAll) {
  Credit credit({.events_max = 8, .bytes_max = 1'000});
  EXPECT_EQ(credit.use(5'000), 1U);
  EXPECT_TRUE(credit.is_used_up());
  EXPECT_TRUE(credit.acknowledge(1));
  EXPECT_TRUE(credit.has_room());
}

TEST(Credit, TakesOneAcknowledgementForSeveralRequestsAndNoneThatWasNotRequested) {
  Credit credit({.events_max = 4, .bytes_max = 1'000});
  for (int i = 0; i < 3; ++i) credit.use(1);
  EXPECT_FALSE(credit.acknowledge(4));
  EXPECT_TRUE(credit.acknowledge(3));
  EXPECT_TRUE(credit.acknowledge(2)) << "it has come before";
  EXPECT_TRUE(credit.has_room());
  EXPECT_EQ(credit.use(1), 4U);
}

/// With any limit: where it is used up, the requests that were made make room.
TEST(Credit, NeverWaitsForEventsThatNobodyAcknowledges) {
  for (std::size_t events = 1; events <= 20; ++events) {
    for (std::size_t bytes = 1; bytes <= 20; ++bytes) {
      Credit credit({.events_max = events, .bytes_max = bytes});
      std::uint64_t requested = 0;
      std::size_t size = 0;
      while (!credit.is_used_up()) {
        if (const auto number = credit.use(size++ % 3)) requested = *number;
      }
      EXPECT_TRUE(credit.acknowledge(requested));
      EXPECT_TRUE(credit.has_room()) << events << " events, " << bytes << " bytes";
    }
  }
}

}  // namespace
}  // namespace trainyard::workers
