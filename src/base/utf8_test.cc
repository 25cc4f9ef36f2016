#include "base/utf8.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard {
namespace {

TEST(Utf8, TellsHowLongACharacterIs) {
  EXPECT_EQ(utf8_character("a"), (Utf8Character{.valid = true, .bytes = 1, .code_point = 'a'}));
  EXPECT_EQ(utf8_character("äb"), (Utf8Character{.valid = true, .bytes = 2, .code_point = 0xE4}));
  EXPECT_EQ(utf8_character("€b"), (Utf8Character{.valid = true, .bytes = 3, .code_point = 0x20AC}));
  EXPECT_EQ(utf8_character("😀b"),
            (Utf8Character{.valid = true, .bytes = 4, .code_point = 0x1F600}));
}

TEST(Utf8, KnowsWhatIsNoCharacter) {
  EXPECT_EQ(utf8_character("\x80"), (Utf8Character{.valid = false, .bytes = 1}));
  EXPECT_EQ(utf8_character("\xFF"), (Utf8Character{.valid = false, .bytes = 1}));
  EXPECT_EQ(utf8_character("\xC0\xAF"), (Utf8Character{.valid = false, .bytes = 1}));  // overlong
  EXPECT_EQ(utf8_character("\xE0\x80\xAF"),
            (Utf8Character{.valid = false, .bytes = 1}));  // overlong
  EXPECT_EQ(utf8_character("\xED\xA0\x80"),
            (Utf8Character{.valid = false, .bytes = 1}));  // surrogate
  EXPECT_EQ(utf8_character("\xF4\x90\x80\x80"), (Utf8Character{.valid = false, .bytes = 1}));
  EXPECT_EQ(utf8_character("\xE2\x82"), (Utf8Character{.valid = false, .bytes = 2}));  // cut off
  EXPECT_EQ(utf8_character("\xF0\x9F\x98x"), (Utf8Character{.valid = false, .bytes = 3}));
}

TEST(Utf8, KnowsWhatCannotBeSeen) {
  for (const std::uint32_t hidden : {0xADU, 0x61CU, 0x200BU, 0x200DU, 0x200FU, 0x202EU, 0x2060U,
                                     0x2069U, 0x3164U, 0xFEFFU, 0xE0041U}) {
    EXPECT_TRUE(is_invisible(hidden)) << hidden;
  }
  for (const std::uint32_t seen : {0x20U, 0x41U, 0xACU, 0xAEU, 0xE4U, 0x200AU, 0x2010U, 0x2027U,
                                   0x20ACU, 0xFE0FU, 0xFFFDU, 0x1F600U}) {
    EXPECT_FALSE(is_invisible(seen)) << seen;
  }
}

TEST(Utf8, WritesWhatItReads) {
  for (std::uint32_t code_point = 1; code_point < 0x110000; ++code_point) {
    if (code_point >= 0xD800 && code_point < 0xE000) continue;
    std::string text;
    append_utf8(text, code_point);
    ASSERT_EQ(utf8_character(text),
              (Utf8Character{.valid = true, .bytes = text.size(), .code_point = code_point}));
  }
}

TEST(Utf8, CutsBetweenCharacters) {
  EXPECT_EQ(utf8_prefix("aäb", 4), "aäb");
  EXPECT_EQ(utf8_prefix("aäb", 3), "aä");
  EXPECT_EQ(utf8_prefix("aäb", 2), "a");
  EXPECT_EQ(utf8_prefix("äb", 1), "");
}

TEST(Utf8, KnowsWhatActsOnATerminal) {
  for (const std::uint32_t acts :
       {0x00U, 0x1BU, 0x7FU, 0x9BU, 0x2028U, 0x202EU, 0x2066U, 0x2069U}) {
    EXPECT_TRUE(acts_on_a_terminal(acts)) << acts;
  }
  for (const std::uint32_t shows : {0x20U, 0x7EU, 0xA0U, 0x2027U, 0x202FU, 0x2065U, 0x206AU}) {
    EXPECT_FALSE(acts_on_a_terminal(shows)) << shows;
  }
}

TEST(Utf8, EscapesWhatActsOnATerminal) {
  EXPECT_EQ(visible("the id 'a\nb\t\r' and '\x1b[2J'"), "the id 'a\\nb\\t\\r' and '\\x1b[2J'");
  EXPECT_EQ(visible(std::string("\0\x7f", 2)), "\\x00\\u007f");
  std::string hidden;
  for (const std::uint32_t code : {0x9BU, 0x202EU, 0x2066U, 0x2028U}) append_utf8(hidden, code);
  EXPECT_EQ(visible(hidden), "\\u009b\\u202e\\u2066\\u2028");
  EXPECT_EQ(visible("a\xff"), "a\\xff");
  EXPECT_EQ(visible("ä€ '\\n' \U0001F600"), "ä€ '\\n' \U0001F600");
  EXPECT_EQ(visible_lines("a\tb\n\n\x1b\r\n"), "a\tb\n\n\\x1b\\r\n");
}

TEST(Utf8, HasSmallLettersForThoseFromAToZAlone) {
  EXPECT_EQ(in_small_letters("AZ az @[ Ä"), "az az @[ Ä");
}

TEST(Utf8, ReplacesWhatIsNoCharacter) {
  EXPECT_EQ(valid_utf8("a\xFF\xE2\x82z€"), "a\uFFFD\uFFFDz€");
}

}  // namespace
}  // namespace trainyard
