#include "schedule/estimates.h"

#include <gtest/gtest.h>

namespace trainyard::schedule {
namespace {

constexpr model::ShapeIndex kShape{3};

TEST(Estimates, KnowNothingBeforeATaskHasFinished) {
  Estimates estimates;
  EXPECT_EQ(estimates.needed(kShape).memory, Bytes{});
  estimates.unfinished(kShape, {}, {.memory = gb(2), .gpu_memory = gb(3)});
  EXPECT_EQ(estimates.needed(kShape).memory, Bytes{});
  EXPECT_EQ(estimates.seen(kShape).memory, gb(2));
  EXPECT_EQ(estimates.seen(kShape).gpu_memory, gb(3));
}

TEST(Estimates, AddAMarginThatIsSmallerWhereMoreIsKnown) {
  Estimates estimates;
  for (int tasks = 1; tasks <= 5; ++tasks) {
    estimates.finished(kShape, {.memory = gb(10)});
    EXPECT_EQ(estimates.needed(kShape).memory, tasks < 5 ? gb(12) : gb(11));
  }
  EXPECT_EQ(estimates.seen(kShape).memory, gb(10));
  EXPECT_EQ(estimates.needed({4}).memory, Bytes{});
}

TEST(Estimates, TakeThe95thPercentile) {
  Estimates estimates;
  for (std::int64_t i = 1; i <= 100; ++i) estimates.finished(kShape, {.gpu_memory = mb(10 * i)});
  EXPECT_EQ(estimates.seen(kShape).gpu_memory, mb(950));
  EXPECT_EQ(estimates.needed(kShape).gpu_memory, mb(1045));
}

TEST(Estimates, TakeTheMiddleOneOfThoseThatShareAGpu) {
  Estimates estimates;
  EXPECT_EQ(estimates.usual_gpu_memory(kShape), Bytes{});
  const auto after = [&](Bytes peak) {
    estimates.finished(kShape, {.gpu_memory = peak});
    return estimates.usual_gpu_memory(kShape);
  };
  EXPECT_EQ(after(gb(2)), mb(2400));
  EXPECT_EQ(after(gb(10)), gb(12)) << "of two the larger";
  EXPECT_EQ(after(gb(5)), gb(6));
  EXPECT_EQ(after(gb(3)), gb(6));
  estimates.unfinished(kShape, {}, {.gpu_memory = gb(20)});
  EXPECT_EQ(after(gb(4)), mb(4400)) << "it has what it took, and the next one has not";
}

TEST(Estimates, AreNeverUnderWhatOneThatRunsHasTaken) {
  Estimates estimates;
  estimates.finished(kShape, {.memory = gb(1)});
  estimates.unfinished(kShape, {}, {.memory = gb(3)});
  estimates.unfinished(kShape, {}, {.memory = gb(2)});
  EXPECT_EQ(estimates.needed(kShape).memory, gb(3));
  estimates.unfinished(kShape, {.memory = gb(3)}, {.memory = gb(4)});
  EXPECT_EQ(estimates.needed(kShape).memory, gb(4));
  estimates.unfinished(kShape, {.memory = gb(4)}, {});
  EXPECT_EQ(estimates.needed(kShape).memory, gb(2)) << "the other one still has that";
  estimates.unfinished(kShape, {.memory = gb(2)}, {});
  EXPECT_EQ(estimates.needed(kShape).memory, mb(1200));
}

TEST(Estimates, RememberTheLastOnesAlone) {
  Estimates estimates;
  for (std::size_t i = 0; i < Estimates::kPeaksMax; ++i) {
    estimates.finished(kShape, {.memory = gb(9)});
  }
  for (std::size_t i = 0; i < Estimates::kPeaksMax; ++i) {
    estimates.finished(kShape, {.memory = gb(1)});
  }
  EXPECT_EQ(estimates.seen(kShape).memory, gb(1));
}

TEST(Estimates, DoNotCountWhatNobodySaw) {
  Estimates estimates;
  estimates.finished(kShape, {.memory = gb(1), .gpu_memory = {}});
  EXPECT_EQ(estimates.needed(kShape).gpu_memory, Bytes{});
}

}  // namespace
}  // namespace trainyard::schedule
