#include "report/planned_time.h"

#include <optional>

#include <gtest/gtest.h>

#include "base/time.h"
#include "journal/reader.h"

namespace trainyard::report {
namespace {

constexpr Duration kLong{212'000};

TEST(PlannedTime, StandsBesideWhatTheRunTook) {
  const journal::ExecutionRow known{.forecast = kLong, .forecast_at_the_worst = kLong};
  EXPECT_EQ(planned_time_text(known, std::nullopt), "expected 3:32");
  EXPECT_EQ(planned_time_text(known, Duration{220'000}), "expected 3:32; took 3:40");
}

TEST(PlannedTime, IsARangeWhereNobodyKnewWhatSharingCosts) {
  const journal::ExecutionRow known{.forecast = kLong, .forecast_at_the_worst = Duration{571'000}};
  EXPECT_EQ(planned_time_text(known, Duration{220'000}),
            "expected 3:32, or 9:31 if tasks that share a GPU slow each other down; took 3:40");
}

TEST(PlannedTime, IsNothingWhereNobodyKnewIt) {
  EXPECT_EQ(planned_time_text({}, Duration{220'000}), "");
}

}  // namespace
}  // namespace trainyard::report
