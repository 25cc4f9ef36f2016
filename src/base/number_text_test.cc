#include "base/number_text.h"

#include <utility>

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

std::strong_ordering compare(std::string_view one, std::string_view other) {
  return compare_numbers({.text = one, .number = number_in(one).value_or(-1)},
                         {.text = other, .number = number_in(other).value_or(-1)});
}

TEST(NumberText, ComparesWholeNumbersThatAreOneDoubleByTheirDigits) {
  for (const auto& [smaller, larger] : {std::pair("9007199254740992", "9007199254740993"),
                                        std::pair("9.007199254740992e15", "9007199254740993"),
                                        std::pair("9999999999999999", "10000000000000000"),
                                        std::pair("-9007199254740993", "-9007199254740992"),
                                        std::pair("9", "10"), std::pair("-0.5", "0.5")}) {
    EXPECT_EQ(compare(smaller, larger), std::strong_ordering::less) << smaller;
    EXPECT_EQ(compare(larger, smaller), std::strong_ordering::greater) << smaller;
  }
  for (const auto& [one, other] :
       {std::pair("9007199254740993", "09007199254740993"), std::pair("10000000000000000", "1e16"),
        std::pair("-0", "0"), std::pair("1e-3", "0.001"), std::pair("7", "7.0")}) {
    EXPECT_EQ(compare(one, other), std::strong_ordering::equal) << one;
  }
}

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
