#include "schedule/waiting_room.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedule/another_try.h"
#include "schedule/test_yard.h"

namespace trainyard::schedule {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::uint32_t> numbers(const std::vector<DelayedTries::Due>& due) {
  std::vector<std::uint32_t> all;
  for (const DelayedTries::Due& one : due) all.push_back(one.task.value);
  return all;
}

TEST(DelayedTries, AreDueTheEarliestFirstAndOnce) {
  DelayedTries tries;
  EXPECT_EQ(tries.first(), std::nullopt);
  tries.add({7}, at(20), gb(1));
  tries.add({3}, at(30), gb(2));
  tries.add({9}, at(10), gb(3));
  EXPECT_EQ(tries.first(), at(10));
  EXPECT_THAT(tries.take_due(at(9)), IsEmpty());
  const std::vector<DelayedTries::Due> due = tries.take_due(at(20));
  EXPECT_THAT(numbers(due), ElementsAre(9, 7));
  EXPECT_EQ(due.front().memory, gb(3));
  EXPECT_THAT(tries.take_due(at(20)), IsEmpty());
  EXPECT_EQ(tries.first(), at(30));
}

TEST(DelayedTries, GoWithTheirGroupAndOneByOne) {
  DelayedTries tries;
  for (const std::uint32_t task : {1U, 2U, 3U, 4U}) tries.add({task}, at(5), gb(1));
  EXPECT_THAT(tries.take({2}, {4}), ElementsAre(model::TaskIndex{2}, model::TaskIndex{3}));
  EXPECT_TRUE(tries.remove({4}));
  EXPECT_FALSE(tries.remove({4}));
  EXPECT_THAT(numbers(tries.take_due(at(5))), ElementsAre(1));
  EXPECT_EQ(tries.first(), std::nullopt);
}

TEST(DelayedTries, AreSpreadWhereAnotherTaskFailedJustBefore) {
  DelayedTries tries;
  const auto delay_of = [&](std::uint32_t task, Instant now) {
    return tries.spread({.task = {task}, .attempt = 1}, now);
  };
  EXPECT_EQ(delay_of(1, at(0)), Duration{0});
  EXPECT_EQ(delay_of(2, at(0)), spread_delay({.task = {2}, .attempt = 1}));
  EXPECT_EQ(delay_of(2, at(0)), Duration{0}) << "the same task failed just before";
  EXPECT_EQ(delay_of(3, at(0) + kRetrySpread), Duration{0}) << "that is long ago";
}

}  // namespace
}  // namespace trainyard::schedule
