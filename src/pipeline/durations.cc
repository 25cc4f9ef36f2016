#include "pipeline/durations.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace trainyard::pipeline {
namespace {

constexpr int kBitsKept = 4;  // Below the highest one.

}  // namespace

std::size_t Durations::bucket_of(std::uint64_t nanoseconds) {
  const auto width = static_cast<int>(std::bit_width(nanoseconds));
  if (width <= kBitsKept) return nanoseconds;
  const int shift = width - kBitsKept - 1;
  const std::uint64_t mantissa = (nanoseconds >> static_cast<unsigned>(shift)) & 15U;
  const auto bucket = (static_cast<std::size_t>(shift + 1) << kBitsKept) + mantissa;
  return std::min(bucket, kBuckets - 1);
}

std::uint64_t Durations::middle_of(std::size_t bucket) {
  if (bucket < 16) return bucket;
  const auto shift = static_cast<unsigned>((bucket >> kBitsKept) - 1);
  const std::uint64_t low = (16 + (bucket & 15U)) << shift;
  return low + ((std::uint64_t{1} << shift) / 2);
}

void Durations::add(std::chrono::nanoseconds duration) {
  const auto positive = std::max<std::chrono::nanoseconds::rep>(duration.count(), 0);
  ++counts_.at(bucket_of(static_cast<std::uint64_t>(positive)));
  ++count_;
  total_ += std::chrono::nanoseconds(positive);
}

std::chrono::duration<double, std::nano> Durations::mean() const {
  const std::chrono::duration<double, std::nano> total = total_;
  return count_ == 0 ? total : total / static_cast<double>(count_);
}

std::chrono::nanoseconds Durations::percentile(double percent) const {
  const auto rank =
      static_cast<std::uint64_t>(std::ceil(static_cast<double>(count_) * percent / 100));
  std::uint64_t seen = 0;
  for (std::size_t bucket = 0; bucket < counts_.size(); ++bucket) {
    seen += counts_.at(bucket);
    if (seen >= rank && seen > 0) return std::chrono::nanoseconds(middle_of(bucket));
  }
  return {};
}

}  // namespace trainyard::pipeline
