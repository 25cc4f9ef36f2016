#include "bench/simulate_many.h"

#include <expected>

#include <gtest/gtest.h>

#include "model/turn.h"

namespace trainyard::bench {
namespace {

TEST(SimulateMany, RunsEveryTaskToItsEndWithRowsAndReasons) {
  const auto counts = simulate_many(make_many(1'000, 100));
  ASSERT_TRUE(counts.has_value()) << counts.error().message;
  EXPECT_EQ(counts->finished, 1'000U);
  EXPECT_GE(counts->rows, 2'000U) << "one when it begins and one when it ends";
  EXPECT_GT(counts->row_bytes, counts->rows * 20);
  EXPECT_GE(counts->reasons, 100U) << "one, and its end, for each shape that waited";
  EXPECT_GT(counts->ended, Instant{});
}

TEST(SimulateMany, TakesLessTimeOnMoreMachines) {
  const model::Plan plan = make_many(1'000, 20);
  const auto one = simulate_many(plan);
  const auto three = simulate_many(plan, 3);
  ASSERT_TRUE(one.has_value() && three.has_value());
  EXPECT_EQ(three->finished, 1'000U);
  EXPECT_LT(three->ended.since_start * 2, one->ended.since_start) << "a third of it, and the rest";
}

TEST(SimulateMany, SaysWhenTheRecorderCouldNotWrite) {
  class Full final : public journal::Recorder {
   public:
    Result<void> commit(const model::Turn& /*turn*/) override {
      return std::unexpected(Error{"no space left on device"});
    }
  } full;
  const auto counts = simulate_many(make_many(3, 2), 1, &full);
  ASSERT_FALSE(counts.has_value());
  EXPECT_EQ(counts.error().message, "the journal cannot be written: no space left on device");
}

}  // namespace
}  // namespace trainyard::bench
