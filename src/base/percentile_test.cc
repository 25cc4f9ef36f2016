// The 95th percentile is one of the values: nineteen of twenty are not larger.
#include "base/percentile.h"

#include <gtest/gtest.h>

namespace trainyard {
namespace {

/// 1 to `count`, the largest first.
std::vector<int> down_from(int count) {
  std::vector<int> values;
  for (int value = count; value > 0; --value) values.push_back(value);
  return values;
}

TEST(Percentile, IsTheSmallestValueThatNineteenOfTwentyDoNotExceed) {
  EXPECT_EQ(percentile_95(down_from(20)), 19);
  EXPECT_EQ(percentile_95(down_from(21)), 20);
  EXPECT_EQ(percentile_95(down_from(100)), 95);
}

std::vector<int> up_to(int count) {
  std::vector<int> values = down_from(count);
  std::ranges::reverse(values);
  return values;
}

TEST(Percentile, OfHalfIsTheMiddleOneAndOfTwoTheLarger) {
  EXPECT_EQ(middle_of_sorted(up_to(21)), 11);
  EXPECT_EQ(middle_of_sorted(up_to(20)), 11);
  EXPECT_EQ(middle_of_sorted(up_to(2)), 2);
  EXPECT_EQ(middle_of_sorted(up_to(1)), 1);
  EXPECT_EQ(middle_of_sorted(std::vector<int>{}), 0);
}

TEST(Percentile, IsTheLargestOfFew) {
  EXPECT_EQ(percentile_95(down_from(1)), 1);
  EXPECT_EQ(percentile_95(down_from(19)), 19);
  EXPECT_EQ(percentile_95(std::vector<int>{}), 0);
}

}  // namespace
}  // namespace trainyard
