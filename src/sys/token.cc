#include "sys/token.h"

#include <array>
#include <cstddef>
#include <cstdint>

#include <sys/random.h>
#include <sys/types.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"

namespace trainyard::sys {

std::string random_token() {
  std::array<std::uint8_t, 16> bytes{};
  const ssize_t got = ::getrandom(bytes.data(), bytes.size(), 0);
  check(got == static_cast<ssize_t>(bytes.size()), "random bytes from the kernel");
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

bool same_token(std::string_view one, std::string_view other) {
  if (one.size() != other.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < one.size(); ++i) {
    difference |= static_cast<unsigned char>(one[i] ^ other[i]);
  }
  return difference == 0;
}

}  // namespace trainyard::sys
