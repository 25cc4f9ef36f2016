// Rounding up for people.
#include "base/rounding.h"

#include <gtest/gtest.h>

namespace trainyard {
namespace {

TEST(Rounding, LeavesTwoDigitsAndNeverLess) {
  EXPECT_EQ(up_to_two_digits(0), 0);
  EXPECT_EQ(up_to_two_digits(99), 99);
  EXPECT_EQ(up_to_two_digits(100), 100);
  EXPECT_EQ(up_to_two_digits(101), 110);
  EXPECT_EQ(up_to_two_digits(1'234), 1'300);
  EXPECT_EQ(up_to_two_digits(368'400'000), 370'000'000);
  EXPECT_EQ(up_to_two_digits(995), 1'000);
}

}  // namespace
}  // namespace trainyard
