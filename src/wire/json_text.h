// JSON that somebody else wrote, made compact and safe to parse: checked within limits by a scanner
// that does not recurse, and mended where writers are commonly loose.
//
// Not a parser into values: numbers stay as they were written. No state; any thread.
#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard::wire {

/// Where text stops being JSON.
struct JsonFault {
  int line = 1;    ///< From 1.
  int column = 1;  ///< From 1, in characters.
  std::string what;
  /// The value that is too deep: "val.history[3]". Empty for any other fault, and for the whole.
  std::string path = {};

  friend bool operator==(const JsonFault&, const JsonFault&) = default;
};

/// "3:14: expected ',' or '}', found ']'"
std::string to_text(const JsonFault& fault);

struct CompactJson {
  std::string text;    ///< Valid JSON in valid UTF-8, without spaces between its parts.
  std::string mended;  ///< The change that was needed, for people; empty when none was.

  friend bool operator==(const CompactJson&, const CompactJson&) = default;
};

/// Reads one JSON value and nothing behind it. A byte order mark before it is skipped. NaN,
/// Infinity, -Infinity and numbers that overflow a double become null, bad UTF-8 and half
/// surrogates become U+FFFD; `mended` reports both. Of members with the same key the last one
/// stays. Deeper than kJsonDepthMax (wire/result_text.h) is a fault. Costs O(n log n) in the length
/// of the text, which the caller bounds.
std::expected<CompactJson, JsonFault> compact_json(std::string_view text);

/// The maximum number of replaced numbers that a warning names.
constexpr std::size_t kReplacedNamedMax = 5;

/// "'loss' was NaN, 'acc' was Infinity: kept as null (and 2 more)", for `count` replaced numbers.
/// `named` are the first of them, at most kReplacedNamedMax: "'loss' was NaN".
std::string replaced_text(const std::vector<std::string>& named, std::size_t count);

}  // namespace trainyard::wire
