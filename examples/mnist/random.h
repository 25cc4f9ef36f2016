// Random numbers that are the same with every compiler and standard library, as the distributions
// of <random> are not. Not for secrets. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace mnist {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  /// From 0 to below 1.
  float unit() { return static_cast<float>(engine_() >> 40) * 0x1p-24F; }

  /// From 0 to `bound` - 1; `bound` is at least 1. The tiny bias of the remainder is of no concern.
  std::size_t below(std::size_t bound) { return engine_() % bound; }

  void shuffle(std::vector<std::size_t>& values) {
    for (std::size_t left = values.size(); left > 1; --left) {
      std::swap(values[left - 1], values[below(left)]);
    }
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace mnist
