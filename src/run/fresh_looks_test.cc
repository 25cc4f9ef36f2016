#include "run/fresh_looks.h"

#include <cstdint>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::run {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr Instant after(std::int64_t milliseconds) { return {Duration{milliseconds}}; }

TEST(FreshLooks, AreFourInTheFirstHalfSecondOfAnAttempt) {
  FreshLooks looks;
  EXPECT_EQ(looks.next(), std::nullopt);
  looks.add({7}, after(1'000));
  for (const std::int64_t at : {1'050, 1'100, 1'200, 1'400}) {
    EXPECT_EQ(looks.next(), after(at));
    EXPECT_THAT(looks.take_due(after(at - 1)), IsEmpty());
    EXPECT_THAT(looks.take_due(after(at)), ElementsAre(model::TaskIndex{7}));
  }
  EXPECT_EQ(looks.next(), std::nullopt);
}

TEST(FreshLooks, ThatAreLateAreOne) {
  FreshLooks looks;
  looks.add({7}, after(0));
  EXPECT_THAT(looks.take_due(after(300)), SizeIs(1));
  EXPECT_EQ(looks.next(), after(400));
  EXPECT_THAT(looks.take_due(after(900)), SizeIs(1));
  EXPECT_EQ(looks.next(), std::nullopt);
}

TEST(FreshLooks, EndWithTheAttemptAndBeginAnewWithTheNext) {
  FreshLooks looks;
  looks.add({7}, after(0));
  looks.remove({7});
  EXPECT_EQ(looks.next(), std::nullopt);
  looks.add({7}, after(500));
  EXPECT_EQ(looks.next(), after(550));
}

TEST(FreshLooks, HaveAPauseBetweenThem) {
  FreshLooks looks;
  looks.add({1}, after(0));
  looks.add({2}, after(1));
  EXPECT_THAT(looks.take_due(after(50)), ElementsAre(model::TaskIndex{1}));
  EXPECT_EQ(looks.next(), after(75)) << "and not already at 51";
}

TEST(FreshLooks, AreBoundedHoweverManyBeginAtOnce) {
  FreshLooks looks;
  for (std::uint32_t task = 0; task < 1'000; ++task) looks.add({task}, after(0));
  std::size_t looked = 0;
  int times = 0;
  while (const std::optional<Instant> next = looks.next()) {
    const std::vector<model::TaskIndex> due = looks.take_due(*next);
    EXPECT_THAT(due, SizeIs(FreshLooks::kAtOnceMax));
    looked += due.size();
    ++times;
  }
  EXPECT_EQ(times, 4);
  EXPECT_EQ(looked, 4 * FreshLooks::kAtOnceMax);
}

}  // namespace
}  // namespace trainyard::run
