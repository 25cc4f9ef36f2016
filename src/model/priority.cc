#include "model/priority.h"

#include <charconv>
#include <expected>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "base/result.h"

namespace trainyard::model {

Error not_a_priority() {
  return Error{fmt::format("must be a whole number between -{0} and {0}", kPriorityMost)};
}

Result<int> parse_priority(std::string_view text) {
  int number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, number);
  if (text.empty() || status != std::errc{} || stop != end || !is_priority(number)) {
    return std::unexpected(not_a_priority());
  }
  return number;
}

}  // namespace trainyard::model
