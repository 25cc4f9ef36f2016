#include "report/planned_time.h"

#include <gtest/gtest.h>

namespace trainyard::report {
namespace {

constexpr Duration kLong{212'000};
constexpr Instant kEnded{Duration{221'000}};

TEST(PlannedTime, StandsBesideWhatTheRunTook) {
  journal::ExecutionRow known{
      .started = Instant{Duration{1'000}}, .forecast = kLong, .forecast_at_the_worst = kLong};
  EXPECT_EQ(planned_time_text(known), "3m32s in total");
  known.ended = kEnded;
  EXPECT_EQ(planned_time_text(known), "3m32s in total; took 3m40s");
}

TEST(PlannedTime, StandsAloneWhereTheRunWasInterrupted) {
  const journal::ExecutionRow known{.started = Instant{Duration{1'000}},
                                    .ended = kEnded,
                                    .how = "interrupted by TERM",
                                    .forecast = kLong};
  EXPECT_EQ(planned_time_text(known), "3m32s in total");
}

TEST(PlannedTime, IsARangeWhereNobodyKnewWhatSharingCosts) {
  const journal::ExecutionRow known{.started = Instant{Duration{1'000}},
                                    .ended = kEnded,
                                    .forecast = kLong,
                                    .forecast_at_the_worst = Duration{571'000}};
  EXPECT_EQ(planned_time_text(known),
            "3m32s in total, or 9m31s if tasks that share a GPU slow each other down; took 3m40s");
}

TEST(PlannedTime, IsNothingWhereNobodyKnewIt) {
  EXPECT_EQ(planned_time_text({.ended = kEnded}), "");
}

}  // namespace
}  // namespace trainyard::report
