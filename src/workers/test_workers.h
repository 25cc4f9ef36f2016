// For the tests of parallel runs: what a worker expects fails it, and so the test.
#pragma once

#include <cstddef>
#include <exception>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "sys/process_scan.h"
#include "trainyard/context.h"
#include "trainyard/event_bus.h"
#include "trainyard/parallel.h"
#include "trainyard/result.h"

namespace trainyard::workers {

struct Train : Context {
  int count = 0;
  static constexpr auto kept = keep<&Train::count>;
};

inline void need(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error("expected " + what);
}

inline void need(const Result<void>& done) {
  if (!done) throw std::runtime_error(done.error().message);
}

/// A bus, and what went wrong on it: "name: why".
struct TellingBus {
  std::vector<std::string> told;
  EventBus bus{[this](std::string_view event, const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& it) {
      told.push_back(std::string(event) + ": " + it.what());
    }
  }};
};

inline ParallelOptions quiet(int workers) {
  return {.workers = workers, .note = [](std::string_view) {}};
}

inline int number_in(const std::string& path) {
  int number = 0;
  std::ifstream(path) >> number;
  return number;
}

/// Ended, whether or not somebody has taken note of it.
inline bool is_gone(int pid) {
  const std::optional<sys::ProcessStat> stat = sys::ProcessScan().read(pid);
  return !stat || stat->state == 'Z' || stat->state == 'X';
}

}  // namespace trainyard::workers
