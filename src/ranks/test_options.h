// Options of executors in tests.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "trainyard/rank_executor.h"

namespace trainyard::ranks {

/// With limits that a test can wait for, and nothing said.
inline RankExecutorOptions test_options(int ranks,
                                        std::string components = "[{id: tester, type: tester}]") {
  using std::chrono_literals::operator""s;
  return {.ranks = ranks,
          .executor = "tester",
          .components = std::move(components),
          .limits = {.launch = 20s, .initialise = 20s, .event = 10s, .stop = 2s, .close = 2s},
          .note = [](std::string_view) {}};
}

}  // namespace trainyard::ranks
