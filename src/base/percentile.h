// The value that nearly all others do not exceed, and the one that half of them do not. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace trainyard {

/// As percentile_95(), of values in their order.
template <class Value>
Value percentile_95_of_sorted(const std::vector<Value>& values) {
  return values.empty() ? Value{} : values[((values.size() * 95) + 99) / 100 - 1];
}

/// The middle one of values in their order, of two the larger; nothing's value where there are
/// none.
template <class Value>
Value middle_of_sorted(const std::vector<Value>& values) {
  return values.empty() ? Value{} : values[values.size() / 2];
}

/// The smallest of these of which 95 % are not larger (the nearest-rank method); nothing's value
/// where there are none.
template <class Value>
Value percentile_95(std::vector<Value> values) {
  std::ranges::sort(values);
  return percentile_95_of_sorted(values);
}

}  // namespace trainyard
