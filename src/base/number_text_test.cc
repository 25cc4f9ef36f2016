// What counts as a number.
#include "base/number_text.h"

#include <optional>
#include <string>
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

std::string same_text(std::string_view text) {
  return same_number_text(text, number_in(text).value_or(-1));
}

TEST(NumberText, HasOneTextForOneNumber) {
  EXPECT_EQ(same_text("1e-3"), same_text("0.001"));
  EXPECT_EQ(same_text("007"), same_text("7.0"));
  EXPECT_EQ(same_text("-0"), same_text("0"));
  EXPECT_EQ(same_text("10000000000000000"), same_text("1e16"));
  // Both are 2^53 as doubles.
  EXPECT_NE(same_text("9007199254740993"), same_text("9007199254740992"));
  EXPECT_EQ(same_text("-9007199254740993"), "-9007199254740993");
}

TEST(NumberText, TellsWholeNumbersApartThatAreOneDouble) {
  EXPECT_FALSE(same_whole_number("9007199254740993", "9007199254740992"));
  EXPECT_TRUE(same_whole_number("9007199254740993", "09007199254740993"));
  EXPECT_TRUE(same_whole_number("9007199254740993", "9.007199254740992e15"));
  EXPECT_TRUE(same_whole_number("-0", "0"));
  EXPECT_TRUE(same_whole_number("", "1"));
}

}  // namespace
}  // namespace trainyard
