#include "pipeline/durations.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace trainyard::pipeline {
namespace {

using std::chrono::nanoseconds;

TEST(Durations, AreNoneOfNone) {
  const Durations none;
  EXPECT_EQ(none.count(), 0U);
  EXPECT_EQ(none.mean().count(), 0);
  EXPECT_EQ(none.percentile(50), nanoseconds(0));
}

TEST(Durations, KnowTheirMeanExactly) {
  Durations all;
  for (const int each : {1, 2, 1'000'000}) all.add(nanoseconds(each));
  EXPECT_EQ(all.count(), 3U);
  EXPECT_DOUBLE_EQ(all.mean().count(), 1'000'003.0 / 3);
}

TEST(Durations, KnowTheirPercentilesWithinFivePercent) {
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    std::vector<std::int64_t> values(1 + random() % 500);
    Durations all;
    for (std::int64_t& value : values) {
      value = static_cast<std::int64_t>(std::exp2(static_cast<double>(random() % 4'000) / 100));
      all.add(nanoseconds(value));
    }
    std::ranges::sort(values);
    for (const double percent : {1.0, 50.0, 95.0, 100.0}) {
      const auto rank =
          static_cast<std::size_t>(std::ceil(static_cast<double>(values.size()) * percent / 100));
      const auto exact = static_cast<double>(values[std::max<std::size_t>(rank, 1) - 1]);
      EXPECT_NEAR(static_cast<double>(all.percentile(percent).count()), exact, exact * 0.05)
          << "seed " << seed << ", percentile " << percent;
    }
  }
}

TEST(Durations, BearWhatNoClockShows) {
  Durations all;
  all.add(nanoseconds(-5));
  all.add(nanoseconds(std::numeric_limits<std::int64_t>::max()));
  EXPECT_EQ(all.percentile(50), nanoseconds(0));
  EXPECT_GT(all.percentile(100), std::chrono::hours(1));
}

}  // namespace
}  // namespace trainyard::pipeline
