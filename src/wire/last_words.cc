#include "wire/last_words.h"

#include <algorithm>

#include "base/utf8.h"
#include "wire/metric_line.h"

namespace trainyard::wire {
namespace {

constexpr std::string_view kHead = "Traceback (most recent call last):";
constexpr std::string_view kGroupHead = "+ Exception Group Traceback (most recent call last):";

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

/// The name of a group of exceptions, each line of which has a bar in front.
std::optional<std::string_view> group_in(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of("\r\n"), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    if (line.starts_with("| ") && line.size() > 2 && line[2] != ' ') return line.substr(2);
  }
  return std::nullopt;
}

/// The first line that is not of its frames.
std::optional<std::string_view> exception_in(std::string_view text, std::string_view prefix) {
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

/// Whether the text before a traceback ends with the words by which Python links it to the one
/// before: "During handling of the above exception, another exception occurred:", "The above
/// exception was the direct cause of the following exception:". A blank line has its prefix only.
bool ends_with_link(std::string_view before, std::string_view prefix) {
  constexpr int kBlankMax = 2;
  for (int blank = 0; blank <= kBlankMax && !before.empty(); ++blank) {
    before.remove_suffix(1);  // The end of the line.
    const std::size_t begin = begin_of_line(before, before.size());
    std::string_view line = before.substr(begin);
    before = before.substr(0, begin);
    if (line.starts_with(prefix)) line.remove_prefix(prefix.size());
    if (line.find_first_not_of(" |") == std::string_view::npos) continue;
    return line.contains("the above exception, another") ||
           line.contains("The above exception was the direct cause");
  }
  return false;
}

/// Where the line of the first traceback begins that this one came from.
std::size_t begin_of_chain(std::string_view text, std::size_t head) {
  for (;;) {
    const std::size_t begin = begin_of_line(text, head);
    if (!ends_with_link(text.substr(0, begin), text.substr(begin, head - begin))) return begin;
    head = text.substr(0, begin).rfind(kHead);
    // The one that it came from is longer than what there is of the text.
    if (head == std::string_view::npos) return 0;
  }
}

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

std::optional<Traceback> last_traceback(std::string_view text) {
  std::size_t head = text.rfind(kHead);
  while (head != std::string_view::npos && head > 0 && is_ignored(text, head)) {
    head = text.rfind(kHead, head - 1);
  }
  if (head == std::string_view::npos) return std::nullopt;
  const std::size_t begin = begin_of_line(text, head);
  const std::string_view prefix = text.substr(begin, head - begin);
  std::optional<std::string_view> exception;
  if (prefix.contains('|') || prefix.contains('+')) {
    const std::size_t group = text.rfind(kGroupHead);
    if (group == std::string_view::npos) return std::nullopt;
    exception = group_in(text.substr(group + kGroupHead.size()));
    head = group;
  } else {
    exception = exception_in(text.substr(head + kHead.size()), prefix);
  }
  if (!exception) return std::nullopt;
  return Traceback{.exception = *exception, .begin = begin_of_chain(text, head)};
}

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
