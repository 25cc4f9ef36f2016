#include "model/priority.h"

#include <charconv>
#include <expected>
#include <system_error>

#include <fmt/format.h>

namespace trainyard::model {

Result<int> parse_priority(std::string_view text) {
  int number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, number);
  if (text.empty() || status != std::errc{} || stop != end || !is_priority(number)) {
    return std::unexpected(
        Error{fmt::format("'{0}' is not a whole number from -{1} to {1}", text, kPriorityMost)});
  }
  return number;
}

}  // namespace trainyard::model
