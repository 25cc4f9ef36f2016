// Numbers rounded for people. Pure.
#pragma once

#include <cstdint>

namespace trainyard {

/// The next number with at most two digits that are not 0: 1,234 becomes 1,300. Precondition: 0 to
/// 9 * 10^18.
constexpr std::int64_t up_to_two_digits(std::int64_t value) {
  std::int64_t step = 1;
  while (value / step >= 100) step *= 10;
  return (value + step - 1) / step * step;
}

}  // namespace trainyard
