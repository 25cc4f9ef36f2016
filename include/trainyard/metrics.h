// Numbers that a training loop tells of itself, as an event: a step timer emits them, and whoever
// shows or keeps them listens.
//
// A step timer emits them when no step runs; a step that emits some of its own does so on its
// thread.
//
//   auto told = loop.events().on(trainyard::kMetrics, [&](const trainyard::Metrics& it) {
//     progress(fraction, it.values);      // a task of a yard: drawn in its report
//   });
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "trainyard/event.h"

namespace trainyard {

struct Metrics {
  std::uint64_t total_step = 0;
  std::map<std::string, double> values = {};  ///< {"learn ms": 0.31}
};
inline constexpr Event<Metrics> kMetrics{"metrics"};

}  // namespace trainyard
