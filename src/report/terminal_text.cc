#include "report/terminal_text.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/utf8.h"

namespace trainyard::report {
namespace {

constexpr char32_t kReplacement = 0xFFFD;
constexpr std::string_view kReplacementText = "\xEF\xBF\xBD";

struct Letter {
  char32_t code = kReplacement;
  std::size_t size = 1;
  bool good = false;
};

struct Range {
  char32_t first;
  char32_t last;
};

constexpr std::array<Range, 16> kWide{{{.first = 0x1100, .last = 0x115F},
                                       {.first = 0x2E80, .last = 0x303E},
                                       {.first = 0x3041, .last = 0x33FF},
                                       {.first = 0x3400, .last = 0x4DBF},
                                       {.first = 0x4E00, .last = 0x9FFF},
                                       {.first = 0xA000, .last = 0xA4CF},
                                       {.first = 0xAC00, .last = 0xD7A3},
                                       {.first = 0xF900, .last = 0xFAFF},
                                       {.first = 0xFE30, .last = 0xFE6F},
                                       {.first = 0xFF00, .last = 0xFF60},
                                       {.first = 0xFFE0, .last = 0xFFE6},
                                       {.first = 0x1F300, .last = 0x1F64F},
                                       {.first = 0x1F680, .last = 0x1F6FF},
                                       {.first = 0x1F900, .last = 0x1F9FF},
                                       {.first = 0x20000, .last = 0x2FFFD},
                                       {.first = 0x30000, .last = 0x3FFFD}}};
constexpr std::array<Range, 5> kZero{{{.first = 0x0300, .last = 0x036F},
                                      {.first = 0x1AB0, .last = 0x1AFF},
                                      {.first = 0x200B, .last = 0x200F},
                                      {.first = 0x20D0, .last = 0x20FF},
                                      {.first = 0xFE00, .last = 0xFE0F}}};
template <std::size_t Size>
bool within(const std::array<Range, Size>& ranges, char32_t code) {
  return std::ranges::any_of(
      ranges, [code](const Range& range) { return code >= range.first && code <= range.last; });
}

/// The first letter of a text that is not empty; of bad UTF-8 one byte.
Letter first_letter(std::string_view text) {
  if (const auto byte = static_cast<unsigned char>(text.front()); byte < 0x80) {
    return {.code = byte, .size = 1, .good = true};
  }
  const Utf8Character character = utf8_character(text);
  if (!character.valid) return {};
  return {.code = character.code_point, .size = character.bytes, .good = true};
}

int columns_of(const Letter& letter) {
  if (letter.code >= 0x20 && letter.code < 0x7F) return 1;
  if (letter.code < 0x20 || letter.code == 0x7F || within(kZero, letter.code)) return 0;
  return within(kWide, letter.code) ? 2 : 1;
}

bool is_space(char32_t code) {
  return code == ' ' || (code >= '\t' && code <= '\r') || code == 0x2028 || code == 0x2029;
}

}  // namespace

int columns_of(std::string_view text) {
  int columns = 0;
  while (!text.empty()) {
    const Letter letter = first_letter(text);
    columns += columns_of(letter);
    text.remove_prefix(letter.size);
  }
  return columns;
}

std::string plain(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  bool space = false;
  while (!text.empty()) {
    const Letter letter = first_letter(text);
    const std::string_view bytes = text.substr(0, letter.size);
    text.remove_prefix(letter.size);
    if (is_space(letter.code)) {
      space = !shown.empty();
      continue;
    }
    if (letter.good && acts_on_a_terminal(letter.code)) continue;
    if (space) shown += ' ';
    space = false;
    shown += letter.good ? bytes : kReplacementText;
  }
  return shown;
}

std::string cut(std::string_view text, int columns) {
  if (columns <= 0) return {};
  int used = 0;
  std::size_t kept = 0;  // The bytes that fit with one column left for the mark.
  std::size_t place = 0;
  while (place < text.size()) {
    const Letter letter = first_letter(text.substr(place));
    used += columns_of(letter);
    if (used > columns) return std::string(text.substr(0, kept)) + "…";
    place += letter.size;
    if (used < columns) kept = place;
  }
  return std::string(text);
}

std::string pad_right(std::string_view text, int columns) {
  std::string padded(text);
  padded.append(static_cast<std::size_t>(std::max(0, columns - columns_of(text))), ' ');
  return padded;
}

std::string pad_left(std::string_view text, int columns) {
  std::string padded(static_cast<std::size_t>(std::max(0, columns - columns_of(text))), ' ');
  padded += text;
  return padded;
}

std::vector<int> column_widths(std::span<const std::vector<std::string>> rows) {
  std::vector<int> widths;
  for (const std::vector<std::string>& cells : rows) {
    widths.resize(std::max(widths.size(), cells.size()), 0);
    for (std::size_t i = 0; i < cells.size(); ++i) {
      widths[i] = std::max(widths[i], columns_of(cells[i]));
    }
  }
  return widths;
}

std::string with_commas(std::int64_t number) {
  std::string text = fmt::format("{}", number);
  const std::size_t digits_start = number < 0 ? 1 : 0;
  for (std::size_t place = text.size(); place > digits_start + 3;) {
    place -= 3;
    text.insert(place, 1, ',');
  }
  return text;
}

std::string counted(std::int64_t number, std::string_view noun) {
  return fmt::format("{} {}{}", with_commas(number), noun, number == 1 ? "" : "s");
}

std::string columns_left_out(std::span<const std::string> names) {
  constexpr std::size_t kNamedMax = 4;
  const std::size_t named = std::min(names.size(), kNamedMax);
  return fmt::format("{} left out ({}{})", counted(names.size(), "column"),
                     fmt::join(names.first(named), ", "), names.size() > named ? ", ..." : "");
}

std::string clock_text(std::optional<Duration> duration) {
  if (!duration || duration->count() < 0) return "--:--:--.---";
  const std::int64_t milliseconds = duration->count();
  return fmt::format("{:02}:{:02}:{:02}.{:03}", milliseconds / 3'600'000,
                     milliseconds / 60'000 % 60, milliseconds / 1000 % 60, milliseconds % 1000);
}

}  // namespace trainyard::report
