#include "base/utf8.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/check.h"

namespace trainyard {
namespace {

unsigned char byte_at(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

bool continues(std::string_view text, std::size_t at) {
  return at < text.size() && (byte_at(text, at) & 0xC0U) == 0x80U;
}

/// The bytes allowed after the first byte of a character (Unicode, table 3-7).
struct Form {
  std::size_t bytes = 0;  ///< 0: no character begins like this.
  unsigned char second_min = 0x80;
  unsigned char second_max = 0xBF;
};

Form form_of(unsigned char first) {
  if (first < 0x80) return {.bytes = 1};
  if (first < 0xC2) return {};
  if (first < 0xE0) return {.bytes = 2};
  if (first == 0xE0) return {.bytes = 3, .second_min = 0xA0};
  if (first == 0xED) return {.bytes = 3, .second_max = 0x9F};
  if (first < 0xF0) return {.bytes = 3};
  if (first == 0xF0) return {.bytes = 4, .second_min = 0x90};
  if (first < 0xF4) return {.bytes = 4};
  if (first == 0xF4) return {.bytes = 4, .second_max = 0x8F};
  return {};
}

/// The code point of a character that is valid UTF-8.
std::uint32_t code_point_of(std::string_view character) {
  const auto first = static_cast<std::uint32_t>(byte_at(character, 0));
  if (character.size() == 1) return first;
  std::uint32_t code_point = first & (0x7FU >> character.size());
  for (std::size_t i = 1; i < character.size(); ++i) {
    code_point = (code_point << 6U) | (byte_at(character, i) & 0x3FU);
  }
  return code_point;
}

std::string escaped(std::uint32_t code_point) {
  if (code_point == '\n') return "\\n";
  if (code_point == '\r') return "\\r";
  if (code_point == '\t') return "\\t";
  if (code_point < 0x20) return fmt::format("\\x{:02x}", code_point);
  // JSON has others in its texts as they are, and knows them in this form alone.
  return fmt::format("\\u{:04x}", code_point);
}

std::string visible_but(std::string_view text, std::string_view kept) {
  const auto is_plain = [kept](char byte) {
    return (byte >= 0x20 && byte < 0x7F) || kept.contains(byte);
  };
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const auto plain =
        static_cast<std::size_t>(std::ranges::find_if_not(text, is_plain) - text.begin());
    shown += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const Utf8Character found = utf8_character(text);
    const std::string_view character = text.substr(0, found.valid ? found.bytes : 1);
    text.remove_prefix(character.size());
    if (!found.valid) {
      shown += fmt::format("\\x{:02x}", byte_at(character, 0));
    } else if (acts_on_a_terminal(found.code_point)) {
      shown += escaped(found.code_point);
    } else {
      shown += character;
    }
  }
  return shown;
}

}  // namespace

std::string visible(std::string_view text) { return visible_but(text, ""); }

std::string visible_lines(std::string_view text) { return visible_but(text, "\n\t"); }

Utf8Character utf8_character(std::string_view text) {
  check(!text.empty(), "a character has at least one byte");
  const Form form = form_of(byte_at(text, 0));
  if (form.bytes == 1) return {.valid = true, .bytes = 1, .code_point = byte_at(text, 0)};
  if (form.bytes == 0 || !continues(text, 1)) return {.valid = false, .bytes = 1};
  const unsigned char second = byte_at(text, 1);
  if (second < form.second_min || second > form.second_max) return {.valid = false, .bytes = 1};
  std::size_t bytes = 2;
  while (bytes < form.bytes && continues(text, bytes)) ++bytes;
  if (bytes != form.bytes) return {.valid = false, .bytes = bytes};
  return {.valid = true, .bytes = bytes, .code_point = code_point_of(text.substr(0, bytes))};
}

void append_utf8(std::string& text, std::uint32_t code_point) {
  const auto tail = [code_point](unsigned shift) {
    return static_cast<char>(0x80U | ((code_point >> shift) & 0x3FU));
  };
  if (code_point < 0x80) {
    text += static_cast<char>(code_point);
  } else if (code_point < 0x800) {
    text += static_cast<char>(0xC0U | (code_point >> 6U));
    text += tail(0);
  } else if (code_point < 0x10000) {
    text += static_cast<char>(0xE0U | (code_point >> 12U));
    text += tail(6);
    text += tail(0);
  } else {
    text += static_cast<char>(0xF0U | (code_point >> 18U));
    text += tail(12);
    text += tail(6);
    text += tail(0);
  }
}

bool is_invisible(std::uint32_t code_point) {
  struct Range {
    std::uint32_t first;
    std::uint32_t last;
  };
  // Of Unicode 15 what is Default_Ignorable_Code_Point, but for the selectors of variants, which
  // choose how an emoji looks, and what separates lines or is an anchor of annotations.
  constexpr std::array<Range, 16> kRanges{{{.first = 0xAD, .last = 0xAD},
                                           {.first = 0x34F, .last = 0x34F},
                                           {.first = 0x61C, .last = 0x61C},
                                           {.first = 0x115F, .last = 0x1160},
                                           {.first = 0x17B4, .last = 0x17B5},
                                           {.first = 0x180B, .last = 0x180F},
                                           {.first = 0x200B, .last = 0x200F},
                                           {.first = 0x2028, .last = 0x202E},
                                           {.first = 0x2060, .last = 0x206F},
                                           {.first = 0x3164, .last = 0x3164},
                                           {.first = 0xFEFF, .last = 0xFEFF},
                                           {.first = 0xFFA0, .last = 0xFFA0},
                                           {.first = 0xFFF0, .last = 0xFFFB},
                                           {.first = 0x1BCA0, .last = 0x1BCA3},
                                           {.first = 0x1D173, .last = 0x1D17A},
                                           {.first = 0xE0000, .last = 0xE0FFF}}};
  // Nearly everything that is asked about is ASCII.
  if (code_point < kRanges.front().first) return false;
  return std::ranges::any_of(kRanges, [code_point](const Range& range) {
    return code_point >= range.first && code_point <= range.last;
  });
}

std::string_view utf8_prefix(std::string_view text, std::size_t bytes_max) {
  std::size_t end = std::min(text.size(), bytes_max);
  while (end > 0 && continues(text, end)) --end;
  return text.substr(0, end);
}

std::string valid_utf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  while (!text.empty()) {
    const Utf8Character character = utf8_character(text);
    if (character.valid) {
      valid.append(text, 0, character.bytes);
    } else {
      append_utf8(valid, kReplacementCharacter);
    }
    text.remove_prefix(character.bytes);
  }
  return valid;
}

std::string in_small_letters(std::string_view text) {
  std::string small(text);
  std::ranges::transform(small, small.begin(), small_letter);
  return small;
}

}  // namespace trainyard
