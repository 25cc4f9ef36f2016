#include "wire/utf8.h"

#include <cstdint>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainyard::wire {
namespace {

TEST(Utf8, TellsHowLongACharacterIs) {
  EXPECT_EQ(utf8_character("a"), (Utf8Character{.valid = true, .bytes = 1}));
  EXPECT_EQ(utf8_character("äb"), (Utf8Character{.valid = true, .bytes = 2}));
  EXPECT_EQ(utf8_character("€b"), (Utf8Character{.valid = true, .bytes = 3}));
  EXPECT_EQ(utf8_character("😀b"), (Utf8Character{.valid = true, .bytes = 4}));
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

TEST(Utf8, WritesWhatItReads) {
  for (std::uint32_t code_point = 1; code_point < 0x110000; ++code_point) {
    if (code_point >= 0xD800 && code_point < 0xE000) continue;
    std::string text;
    append_utf8(text, code_point);
    ASSERT_EQ(utf8_character(text), (Utf8Character{.valid = true, .bytes = text.size()}))
        << code_point;
  }
}

TEST(Utf8, CutsBetweenCharacters) {
  EXPECT_EQ(utf8_prefix("aäb", 4), "aäb");
  EXPECT_EQ(utf8_prefix("aäb", 3), "aä");
  EXPECT_EQ(utf8_prefix("aäb", 2), "a");
  EXPECT_EQ(utf8_prefix("äb", 1), "");
}

TEST(Utf8, ReplacesWhatIsNoCharacter) {
  EXPECT_EQ(valid_utf8("a\xFF\xE2\x82z€"), "a\uFFFD\uFFFDz€");
}

}  // namespace
}  // namespace trainyard::wire
