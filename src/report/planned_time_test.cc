#include "report/planned_time.h"

#include <gtest/gtest.h>

#include "base/time.h"
#include "journal/reader.h"

namespace trainyard::report {
namespace {

constexpr Duration kLong{212'000};
constexpr Instant kEnded{Duration{221'000}};

TEST(PlannedTime, StandsBesideWhatTheRunTook) {
  journal::ExecutionRow known{
      .started = Instant{Duration{1'000}}, .forecast = kLong, .forecast_at_the_worst = kLong};
  EXPECT_EQ(planned_time_text(known), "expected 3:32");
  known.ended = kEnded;
  EXPECT_EQ(planned_time_text(known), "expected 3:32; took 3:40");
}

TEST(PlannedTime, StandsAloneWhereTheRunWasInterrupted) {
  const journal::ExecutionRow known{.started = Instant{Duration{1'000}},
                                    .ended = kEnded,
                                    .how = "interrupted by TERM",
                                    .forecast = kLong};
  EXPECT_EQ(planned_time_text(known), "expected 3:32");
}

TEST(PlannedTime, IsARangeWhereNobodyKnewWhatSharingCosts) {
  const journal::ExecutionRow known{.started = Instant{Duration{1'000}},
                                    .ended = kEnded,
                                    .forecast = kLong,
                                    .forecast_at_the_worst = Duration{571'000}};
  EXPECT_EQ(planned_time_text(known),
            "expected 3:32, or 9:31 if tasks that share a GPU slow each other down; took 3:40");
}

TEST(PlannedTime, IsNothingWhereNobodyKnewIt) {
  EXPECT_EQ(planned_time_text({.ended = kEnded}), "");
}

}  // namespace
}  // namespace trainyard::report
