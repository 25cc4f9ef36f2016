// An amount of memory, and how to write one: 500_MB, 2_GiB.
//
// A plain value; any thread.
#pragma once

#include <compare>
#include <cstdint>

namespace trainyard {

/// A type of its own, so that it is never mixed up with a count or a time.
struct Bytes {
  std::int64_t count = 0;

  friend auto operator<=>(Bytes, Bytes) = default;
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return {a.count + b.count}; }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return {a.count - b.count}; }
  constexpr Bytes& operator+=(Bytes other) {
    count += other.count;
    return *this;
  }
  constexpr Bytes& operator-=(Bytes other) {
    count -= other.count;
    return *this;
  }
};

inline namespace literals {

/// Powers of 1000.
consteval Bytes operator""_MB(unsigned long long count) {
  return {static_cast<std::int64_t>(count) * 1'000'000};
}
consteval Bytes operator""_GB(unsigned long long count) {
  return {static_cast<std::int64_t>(count) * 1'000'000'000};
}
/// Powers of 1024.
consteval Bytes operator""_MiB(unsigned long long count) {
  return {static_cast<std::int64_t>(count) << 20U};
}
consteval Bytes operator""_GiB(unsigned long long count) {
  return {static_cast<std::int64_t>(count) << 30U};
}

}  // namespace literals

}  // namespace trainyard
