// The expected courses of the tasks of a plan, from their settings and learned estimates. The
// forecast before a run begins is made from them.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/time.h"
#include "model/plan.h"
#include "model/resources.h"
#include "plan/play_run.h"

namespace trainyard::plan {

struct Expected {
  std::vector<Course> courses;  ///< By task.
  std::size_t unknown = 0;      ///< Tasks of which nobody knows how long they take.
  Duration assumed{0};          ///< The assumed duration of each of these: the mean of the others.
};

/// How much of a GPU keeps a task of each group busy that is alone there, as it was measured in
/// earlier runs, in thousandths; 0, or no entry: nobody knows.
using MeasuredShares = std::vector<int>;

Expected expected_of(const model::Plan& plan, const MeasuredShares& measured = {});

/// The same where those who share a GPU gain nothing by that, as far as nobody wrote or measured
/// how much of one they use.
std::vector<Course> at_the_worst(const model::Plan& plan, std::vector<Course> courses);

/// How long a run takes that begins now.
struct RunForecast {
  Duration free{0};          ///< If sharing GPUs costs nothing where nobody knows.
  Duration at_the_worst{0};  ///< If it gains nothing there.
};

/// Plays it, with as many tasks as that takes no time for. Nothing where nobody knows how long some
/// of them take, where there are more, or where the run would never end.
std::optional<RunForecast> forecast_run(const model::Plan& plan, model::Policy policy,
                                        const model::Capacity& capacity,
                                        const MeasuredShares& measured = {});

}  // namespace trainyard::plan
