// What the programs that measure workers have in common.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/result.h"
#include "trainyard/buffer.h"

namespace trainyard::bench {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

inline void need(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error("expected " + what);
}

inline void need(const Result<void>& done) {
  if (!done) throw std::runtime_error(done.error().message);
}

inline double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values.empty() ? 0 : values.at(values.size() / 2);
}

/// The relay on one core, those who talk on the other: for all who are compared alike.
inline void pin(bool is_relay) {
  const long cores = ::sysconf(_SC_NPROCESSORS_ONLN);
  if (cores < 2) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(is_relay ? 0 : 1, &set);
  ::sched_setaffinity(0, sizeof set, &set);
}

inline Buffer buffer_of(std::size_t bytes) {
  return {DType::UInt8, {static_cast<std::int64_t>(bytes)}};
}

/// What a worker found goes to the parent in memory that both have.
class Found {
 public:
  Found()
      : values_(static_cast<double*>(::mmap(nullptr, kSize * sizeof(double), PROT_READ | PROT_WRITE,
                                            MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  double& operator[](std::size_t i) const { return values_[i]; }

 private:
  static constexpr std::size_t kSize = 64;
  double* values_;
};

/// As main() of a program: an exit code, and what was wrong on standard error.
inline int run(const char* name, int (*measure)(const std::vector<std::string>& words),
               std::span<char* const> words) {
  try {
    return measure({words.begin(), words.end()});
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", name, error.what());
    return 1;
  }
}

}  // namespace trainyard::bench
