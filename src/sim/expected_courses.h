// What the tasks of a plan are expected to do, by what is written or was learned of them: what a
// run is forecast from before it begins.
#pragma once

#include <cstddef>
#include <vector>

#include "base/time.h"
#include "model/plan.h"
#include "sim/play_run.h"

namespace trainyard::sim {

struct Expected {
  std::vector<Course> courses;  ///< By task.
  std::size_t unknown = 0;      ///< Tasks of which nobody knows how long they take.
  Duration assumed{0};          ///< What each of these is taken to take: the mean of the others.
};

Expected expected_of(const model::Plan& plan);

/// The same where those who share a GPU gain nothing by that, as far as nobody wrote how much of
/// one they use.
std::vector<Course> at_the_worst(const model::Plan& plan, std::vector<Course> courses);

}  // namespace trainyard::sim
