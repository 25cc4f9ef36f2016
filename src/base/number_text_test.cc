// What counts as a number.
#include "base/number_text.h"

#include <optional>
#include <string_view>

#include <gtest/gtest.h>

namespace trainyard {
namespace {

TEST(NumberText, IsTheSameHoweverANumberIsWritten) {
  EXPECT_EQ(number_in("0.001"), number_in("1e-3"));
  EXPECT_EQ(number_in("1E-3"), number_in("10e-4"));
  EXPECT_EQ(number_in("3"), 3.0);
  EXPECT_EQ(number_in("-0.5"), -0.5);
}

TEST(NumberText, IsNoneWhereAnyOfTheTextIsNoneOrNoDoubleHoldsIt) {
  for (const std::string_view text :
       {"", " 1", "1 ", "1e-3x", "0x10", "nan", "inf", "-inf", "1e999", "a", "1,5", "--1", "+1"}) {
    EXPECT_EQ(number_in(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace trainyard
