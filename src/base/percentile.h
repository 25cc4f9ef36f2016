// The value that nearly all others do not exceed, and the one that half of them do not. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace trainyard {

/// The smallest of these of which 95 % are not larger (the nearest-rank method); nothing's value
/// where there are none.
template <class Value>
Value percentile_95(std::vector<Value> values) {
  if (values.empty()) return {};
  const std::size_t place = ((values.size() * 95) + 99) / 100 - 1;
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(place));
  return values[place];
}

/// The middle one in their order, of two the larger; nothing's value where there are none.
template <class Value>
Value middle(std::vector<Value> values) {
  if (values.empty()) return {};
  const auto place = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, place);
  return *place;
}

}  // namespace trainyard
