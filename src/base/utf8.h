// Text that may not be UTF-8, one character at a time. No state; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace trainyard {

/// Stands for what was no character.
constexpr std::uint32_t kReplacementCharacter = 0xFFFD;

struct Utf8Character {
  bool valid = false;
  std::size_t bytes = 0;  ///< How many bytes it has; not valid: how many bytes one U+FFFD replaces.
  std::uint32_t code_point = kReplacementCharacter;

  friend bool operator==(const Utf8Character&, const Utf8Character&) = default;
};

/// Looks at the first character of `text`, which is not empty. Overlong forms, surrogates and what
/// lies above U+10FFFF are not valid. What is cut off counts as one (Unicode's maximal subpart).
Utf8Character utf8_character(std::string_view text);

/// Whether a code point acts on a terminal instead of being shown: control characters (in C1 a
/// terminal finds the start of an escape sequence), those that end the line, and those that turn
/// the direction of writing, which could hide the end of a name.
constexpr bool acts_on_a_terminal(std::uint32_t code_point) {
  const bool control = code_point < 0x20 || (code_point >= 0x7F && code_point <= 0x9F);
  const bool line_or_direction = code_point >= 0x2028 && code_point <= 0x202E;
  return control || line_or_direction || (code_point >= 0x2066 && code_point <= 0x2069);
}

/// The text as one line that is safe to show: what acts on a terminal is written as \n, \x1b or
/// \u202e, and a byte that is not UTF-8 as \xff. The text of a JSON document still has its values.
std::string visible(std::string_view text);

/// The same with its lines and tabs as they are.
std::string visible_lines(std::string_view text);

/// Whether a code point leaves nothing to see of itself, so that two texts with it and without it
/// look the same: marks of width zero and of direction, fillers, and Unicode's tags.
bool is_invisible(std::uint32_t code_point);

/// Appends a code point of Unicode.
void append_utf8(std::string& text, std::uint32_t code_point);

/// The longest beginning of valid UTF-8 that has at most `bytes_max` bytes and no half character.
std::string_view utf8_prefix(std::string_view text, std::size_t bytes_max);

/// The text with U+FFFD for what is not UTF-8.
std::string valid_utf8(std::string_view text);

/// A letter from A to Z as a small one; any other byte stays as it is.
constexpr char small_letter(char byte) {
  return byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte - 'A' + 'a') : byte;
}

/// The text with each of its bytes as small_letter() returns it.
std::string in_small_letters(std::string_view text);

}  // namespace trainyard
