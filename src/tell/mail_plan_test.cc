#include "tell/mail_plan.h"

#include <cstdint>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::tell {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Instant minute(int minutes) { return {Duration{60'000} * minutes}; }

std::vector<std::uint32_t> numbers(const std::vector<model::GroupIndex>& groups) {
  std::vector<std::uint32_t> values;
  for (const model::GroupIndex group : groups) values.push_back(group.value);
  return values;
}

TEST(MailPlan, SendsTheFirstReportAtOnceAndGathersThoseThatComeWithinTheInterval) {
  MailPlan plan({.min_interval = Duration{3'600'000}, .mails_max = 10});
  EXPECT_EQ(plan.due(), std::nullopt);
  plan.add({0});
  EXPECT_THAT(numbers(plan.take(minute(5))), ElementsAre(0));
  plan.add({1});
  plan.add({2});
  plan.add({1});
  EXPECT_EQ(plan.due(), minute(65));
  EXPECT_THAT(plan.take(minute(64)), IsEmpty());
  EXPECT_THAT(numbers(plan.take(minute(65))), ElementsAre(1, 2));
  EXPECT_THAT(plan.take(minute(200)), IsEmpty());
}

TEST(MailPlan, KeepsTheLastMailThatThereMayBeForTheEnd) {
  MailPlan plan({.min_interval = Duration{0}, .mails_max = 3});
  for (std::uint32_t group = 0; group < 5; ++group) {
    plan.add({group});
    const auto taken = plan.take(minute(static_cast<int>(group)));
    if (group < 2) {
      EXPECT_THAT(numbers(taken), ElementsAre(group));
    } else {
      EXPECT_THAT(taken, IsEmpty());
    }
  }
  EXPECT_EQ(plan.due(), std::nullopt);
  EXPECT_THAT(numbers(plan.take_rest()), ElementsAre(2, 3, 4));
  EXPECT_THAT(plan.take_rest(), IsEmpty());
}

TEST(MailPlan, HasNoLimitWhereThereIsNone) {
  MailPlan plan({.min_interval = Duration{0}, .mails_max = 0});
  for (std::uint32_t group = 0; group < 100; ++group) {
    plan.add({group});
    EXPECT_THAT(numbers(plan.take(minute(0))), ElementsAre(group));
  }
}

}  // namespace
}  // namespace trainyard::tell
