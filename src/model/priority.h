// How urgent a task or a submission is among those that wait: the larger goes first.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace trainyard::model {

/// A priority is a whole number from -kPriorityMost to kPriorityMost.
constexpr int kPriorityMost = 1'000;

constexpr bool is_priority(std::int64_t number) {
  return number >= -kPriorityMost && number <= kPriorityMost;
}

Result<int> parse_priority(std::string_view text);

}  // namespace trainyard::model
