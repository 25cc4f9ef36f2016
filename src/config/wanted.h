// What a task asks for in one combination of its matrix: tasks that ask for the same have one
// shape.
#pragma once

#include <compare>

#include "base/time.h"
#include "model/plan.h"
#include "model/resources.h"

namespace trainyard {

struct Wanted {
  Request request;
  Duration time_limit{0};
  bool two_phase = false;
  int ranks = 0;
  bool memory_hard = false;
  bool preemptible = true;
  EarlySignal early_signal;
  bool learns_memory = false;
  bool learns_gpu_memory = false;
  Duration load_expected{0};
  Duration train_expected{0};
  friend auto operator<=>(const Wanted&, const Wanted&) = default;
};

}  // namespace trainyard
