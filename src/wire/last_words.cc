#include "wire/last_words.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/utf8.h"

namespace trainyard::wire {
namespace {

constexpr std::size_t kBytesMax = 300;

/// Takes the last line off the text. What a carriage return was written over is a line as well.
std::string_view take_last_line(std::string_view& text) {
  const std::size_t before = text.find_last_of("\r\n");
  const bool first = before == std::string_view::npos;
  const std::string_view line = first ? text : text.substr(before + 1);
  text = first ? std::string_view() : text.substr(0, before);
  return line;
}

bool says_something(std::string_view line) {
  return std::ranges::any_of(line, [](char byte) {
    const auto value = static_cast<unsigned char>(byte);
    return value >= 0x80 || (value >= '0' && value <= '9') ||
           ((value | 0x20) >= 'a' && (value | 0x20) <= 'z');
  });
}

/// Without what colours it, and what else is no character that is to be seen.
std::string readable(std::string_view line) {
  std::string text;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (line[at] == '\x1b' && at + 1 < line.size() && line[at + 1] == '[') {
      at += 2;
      while (at < line.size() && (line[at] < '@' || line[at] > '~')) ++at;
      continue;
    }
    const auto value = static_cast<unsigned char>(line[at]);
    text += value < 0x20 || value == 0x7f ? ' ' : line[at];
  }
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string::npos) return {};
  text = valid_utf8(text.substr(first, text.find_last_not_of(' ') + 1 - first));
  return std::string(utf8_prefix(text, kBytesMax));
}

constexpr std::string_view kHead = "Traceback (most recent call last):";

std::size_t begin_of_line(std::string_view text, std::size_t at) {
  return at == 0 ? 0 : text.find_last_of("\r\n", at - 1) + 1;
}

/// Whether the traceback is of what Python only mentions on its way out, after what ended it.
bool is_ignored(std::string_view text, std::size_t head) {
  const std::size_t begin = begin_of_line(text, head);
  if (begin == 0) return false;
  const std::size_t before = begin_of_line(text, begin - 1);
  const std::string_view line = text.substr(before, begin - before);
  return line.contains("Exception ignored ") || line.contains("Error in atexit.");
}

/// Of a group of exceptions, what it is called: each line of it has a bar in front.
std::optional<std::string_view> group_in(std::string_view text) {
  constexpr std::string_view kGroup = "+ Exception Group Traceback (most recent call last):";
  const std::size_t head = text.rfind(kGroup);
  if (head == std::string_view::npos) return std::nullopt;
  text.remove_prefix(head + kGroup.size());
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of("\r\n"), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    if (line.starts_with("| ") && line.size() > 2 && line[2] != ' ') return line.substr(2);
  }
  return std::nullopt;
}

/// The line after the frames of the last traceback. torchrun's have "[rank0]: " before each line.
std::optional<std::string_view> exception_in(std::string_view text) {
  std::size_t head = text.rfind(kHead);
  while (head != std::string_view::npos && head > 0 && is_ignored(text, head)) {
    head = text.rfind(kHead, head - 1);
  }
  if (head == std::string_view::npos) return std::nullopt;
  const std::size_t begin = begin_of_line(text, head);
  const std::string_view prefix = text.substr(begin, head - begin);
  if (prefix.contains('|') || prefix.contains('+')) return group_in(text);
  text.remove_prefix(head + kHead.size());
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of("\r\n"), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.starts_with(prefix)) line.remove_prefix(prefix.size());
    if (line.empty() || line.front() == ' ' || line.front() == '\t') continue;
    return line;
  }
  return std::nullopt;
}

}  // namespace

std::string last_words(std::string_view errors) {
  if (const auto exception = exception_in(errors)) return readable(*exception);
  while (!errors.empty()) {
    std::string line = readable(take_last_line(errors));
    if (says_something(line)) return line;
  }
  return {};
}

}  // namespace trainyard::wire
