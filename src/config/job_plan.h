// Multiplies a JobSpec into the Plan that the scheduler works with, and finds the mistakes that
// only show then: ids taken twice, a placeholder without a value, an estimate that the machine can
// never hold, groups that need each other in a circle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "config/configuration.h"
#include "config/job_spec.h"
#include "config/learned.h"
#include "config/mistake.h"
#include "config/yaml_reader.h"
#include "model/plan.h"
#include "model/resources.h"

namespace trainyard {

constexpr std::size_t kTasksMax = 1'000'000;

struct PlannedJob {
  Plan plan;
  std::vector<std::string>
      notes;  ///< For people, where what is written and what was learned differ.
  std::vector<std::uint32_t> group_starts;  ///< The number of the first task of each group.
};

/// What the plan is made with, beside the file.
struct PlanBasis {
  const Configuration& configuration;
  const Capacity& capacity;
  const Learned& learned;
};

/// `spec` may have come from a file with mistakes. Those of the plan are added to `mistakes`; then
/// what comes back is not to be used.
PlannedJob plan_job(const JobSpec& spec, const PlanBasis& basis, const YamlDocument& document,
                    MistakeList& mistakes);

}  // namespace trainyard
