// Text as a terminal shows it: how wide it is, how it is cut, and what must not reach it. Also the
// two forms of numbers that base/ does not have. Pure functions.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace trainyard::report {

/// The number of columns in a terminal: 2 for a CJK letter or an emoji, 0 for a combining mark.
int columns_of(std::string_view text);

/// The text in one line that is safe to show: a run of white space becomes one space, control
/// characters (escape sequences begin with one) and what reverses the direction of writing are
/// dropped, bad UTF-8 becomes U+FFFD.
std::string plain(std::string_view text);

/// At most this number of its columns, never half a letter; "…" at the end says that it was cut.
std::string cut(std::string_view text, int columns);

/// Spaces after, or before, until it is so wide.
std::string pad_right(std::string_view text, int columns);
std::string pad_left(std::string_view text, int columns);

/// The width of each column of these rows of cells.
std::vector<int> column_widths(std::span<const std::vector<std::string>> rows);

/// "9,960".
std::string with_commas(std::int64_t number);

/// "1 task", "9,960 tasks".
std::string counted(std::int64_t number, std::string_view noun);
std::string counted(std::unsigned_integral auto number, std::string_view noun) {
  return counted(static_cast<std::int64_t>(number), noun);
}

/// "6 columns left out (loss, epochs, f1, lr, ...)": names the first four.
std::string columns_left_out(std::span<const std::string> names);

/// "00:02:05.009", and "--:--:--.---" for nothing.
std::string clock_text(std::optional<Duration> duration);

}  // namespace trainyard::report
