// The time that tasks that shared GPUs would have taken alone.
#include "job/time_alone.h"

#include <cstdint>

#include <gtest/gtest.h>

namespace trainyard::job {
namespace {

StayOnGpus on(std::string_view gpus, std::int64_t from_s, std::int64_t until_s) {
  return {.gpus = gpus,
          .from = Instant{Duration{from_s * 1000}},
          .until = Instant{Duration{until_s * 1000}}};
}

using Bounds = TimeAlone::Bounds;

constexpr WorkTogether kNobodyKnows{};

Bounds exactly(std::int64_t milliseconds) {
  return {.least = Duration{milliseconds}, .most = Duration{milliseconds}};
}

TEST(TimeAlone, IsAllOfItWhereNobodyElseWas) {
  TimeAlone times;
  times.add(on("0", 0, 10));
  times.add(on("0", 10, 20));
  times.add(on("1", 0, 20));
  EXPECT_EQ(times.of(on("0", 0, 10), kNobodyKnows), exactly(10'000));
  EXPECT_EQ(times.of(on("0", 10, 20), kNobodyKnows), exactly(10'000));
}

TEST(TimeAlone, IsTheShareThatEachHadOfWhatAllDidTogether) {
  TimeAlone times;
  for (int task = 0; task < 4; ++task) times.add(on("0", 0, 12));
  const StayOnGpus stay = on("0", 0, 12);
  EXPECT_EQ(times.of(stay, {.best = 4, .factor = 2}), exactly(6'000)) << "four do the work of two";
  EXPECT_EQ(times.of(stay, {.best = 4, .factor = 6}), exactly(12'000)) << "never more than it took";
  EXPECT_EQ(times.of(stay, {.best = 7, .factor = 3}), exactly(6'000)) << "in a straight line";
}

TEST(TimeAlone, IsBetweenWhatSharingMayHaveCostWhereNobodyMeasuredIt) {
  TimeAlone times;
  for (int task = 0; task < 4; ++task) times.add(on("0", 0, 12));
  EXPECT_EQ(times.of(on("0", 0, 12), kNobodyKnows),
            (Bounds{.least = Duration{3'000}, .most = Duration{12'000}}));
  EXPECT_EQ(times.of(on("0", 0, 12), {.best = 2, .factor = 1.5}),
            (Bounds{.least = Duration{1'500}, .most = Duration{4'500}}))
      << "more than two do no more than they, and maybe less";
  EXPECT_EQ(times.of(on("0", 0, 12), {.best = 1, .factor = 1}),
            (Bounds{.least = Duration{1'500}, .most = Duration{3'000}}));
}

TEST(TimeAlone, CountsEachMomentByThoseWhoWereThere) {
  TimeAlone times;
  times.add(on("0", 0, 10));
  times.add(on("0", 4, 8));
  times.add(on("0", 6, 8));
  // 4 s alone, 2 s of two, 2 s of three, 2 s alone.
  EXPECT_EQ(times.of(on("0", 0, 10), {.best = 3, .factor = 1}),
            exactly(4'000 + 1'000 + 667 + 2'000));
}

TEST(TimeAlone, GoesByTheFullestOfSeveralGpus) {
  TimeAlone times;
  times.add(on("0,1", 0, 6));
  times.add(on("1", 0, 6));
  times.add(on("1", 0, 6));
  times.add(on("0", 0, 6));
  EXPECT_EQ(times.of(on("0,1", 0, 6), {.best = 3, .factor = 1}), exactly(2'000));
}

}  // namespace
}  // namespace trainyard::job
