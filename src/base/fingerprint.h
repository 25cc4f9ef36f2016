// A number that stands for some texts and numbers: for telling whether they changed, and for seeds.
//
// Not for secrets, and not for hash tables of what strangers send. Pure; any thread.
#pragma once

#include <cstdint>
#include <string_view>

namespace trainyard {

/// FNV-1a, 64 bits: the same on every machine and in every version, unlike std::hash.
class Fingerprint {
 public:
  constexpr void add(std::string_view text) {
    for (const char byte : text) add_byte(static_cast<std::uint8_t>(byte));
    add_byte(0xFF);  // In no UTF-8 text: "ab","c" is not "a","bc".
  }
  constexpr void add(std::int64_t number) {
    for (unsigned shift = 0; shift < 64; shift += 8) {
      add_byte(static_cast<std::uint8_t>(static_cast<std::uint64_t>(number) >> shift));
    }
  }
  [[nodiscard]] constexpr std::uint64_t value() const { return value_; }

 private:
  constexpr void add_byte(std::uint8_t byte) {
    value_ ^= byte;
    value_ *= 0x100000001b3U;
  }
  std::uint64_t value_ = 0xcbf29ce484222325U;
};

}  // namespace trainyard
