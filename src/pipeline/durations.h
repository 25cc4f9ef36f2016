// Many durations in little memory: their mean, exactly, and their percentiles within 5 %. Pure.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ratio>

namespace trainyard::pipeline {

class Durations {
 public:
  void add(std::chrono::nanoseconds duration);

  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] std::chrono::nanoseconds total() const { return total_; }
  /// 0 of none.
  [[nodiscard]] std::chrono::duration<double, std::nano> mean() const;
  /// The value that `percent` of 100 do not exceed, by nearest rank; 0 of none.
  [[nodiscard]] std::chrono::nanoseconds percentile(double percent) const;

 private:
  // Sixteen buckets for each doubling, 44 times, which is some hours; shorter than 16 ns each has
  // its own.
  static constexpr std::size_t kBuckets = 704;
  static std::size_t bucket_of(std::uint64_t nanoseconds);
  static std::uint64_t middle_of(std::size_t bucket);

  std::array<std::uint64_t, kBuckets> counts_{};
  std::uint64_t count_ = 0;
  std::chrono::nanoseconds total_{};
};

}  // namespace trainyard::pipeline
