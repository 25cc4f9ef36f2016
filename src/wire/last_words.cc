#include "wire/last_words.h"

#include <algorithm>
#include <cstddef>

#include "base/utf8.h"
#include "wire/metric_line.h"
#include "wire/traceback.h"

namespace trainyard::wire {
namespace {

constexpr std::size_t kBytesMax = 300;

/// Takes the last line off the text. A carriage return ends a line, too.
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
  std::string text = without_colours(line);
  std::ranges::replace_if(
      text,
      [](char letter) {
        const auto value = static_cast<unsigned char>(letter);
        return value < 0x20 || value == 0x7f;
      },
      ' ');
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string::npos) return {};
  text = valid_utf8(text.substr(first, text.find_last_not_of(' ') + 1 - first));
  return std::string(utf8_prefix(text, kBytesMax));
}

/// "worker 2 failed: ValueError: no such data"; empty where nothing says that of any.
std::string_view failed_worker(std::string_view errors) {
  constexpr std::string_view kBegin = "trainyard parallel: ";
  while (!errors.empty()) {
    std::string_view line = take_last_line(errors);
    if (!line.starts_with(kBegin)) continue;
    line.remove_prefix(kBegin.size());
    if (line.starts_with("worker ") && line.contains(" failed: ")) return line;
  }
  return {};
}

/// How the program itself says that it failed; empty where it does not.
std::string said_failure(std::string_view text) {
  if (const std::string_view worker = failed_worker(text); !worker.empty()) return readable(worker);
  const auto traceback = last_traceback(text);
  return traceback ? readable(traceback->exception) : std::string();
}

std::string last_line(std::string_view text) {
  while (!text.empty()) {
    std::string line = readable(take_last_line(text));
    // A metric says how far the program came.
    if (says_something(line) && !line.starts_with(kMetricBegins)) return line;
  }
  return {};
}

}  // namespace

std::string without_colours(std::string_view text) {
  std::string kept;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (!text.substr(at).starts_with("\x1b[")) {
      kept += text[at];
      continue;
    }
    at += 2;
    while (at < text.size() && (text[at] < '@' || text[at] > '~')) ++at;
  }
  return kept;
}

std::string last_words(std::string_view errors) {
  std::string failure = said_failure(errors);
  return failure.empty() ? last_line(errors) : failure;
}

std::string last_words_of_output(std::string_view output) {
  if (std::string failure = said_failure(output); !failure.empty()) return failure;
  const std::string line = last_line(output);
  // In quotes: what the caller adds, such as "(retry 1 of 1)", is not the program's.
  return line.empty() ? line : "last output: '" + line + "'";
}

}  // namespace trainyard::wire
