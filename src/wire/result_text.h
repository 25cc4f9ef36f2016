// The result of a task: a JSON object in a file that somebody else wrote. Read strictly, within
// limits, but forgiving where Python's json module is loose.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace trainyard::wire {

constexpr std::size_t kResultBytesMax = std::size_t{1} << 20;
constexpr int kJsonDepthMax = 64;

struct ParsedResult {
  std::string object;   ///< Compact JSON text of an object; empty when there is none.
  std::string warning;  ///< For people; empty when nothing was wrong.
};

/// Reads what a task left. NaN and infinities (as Python writes them: NaN, Infinity, -Infinity)
/// become null, bad UTF-8 is replaced, both with a warning. No JSON, no object, too long, too deep:
/// no result, and a warning that says so with line and column. Cannot fail: a bad result never
/// fails a task (fedflow `set_result`).
ParsedResult parse_result(std::string_view text);

}  // namespace trainyard::wire
