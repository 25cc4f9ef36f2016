// The needs between tasks of groups that are matched by keys of the matrix.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "job/job_spec.h"
#include "model/plan.h"
#include "text/mistake.h"
#include "text/yaml_reader.h"

namespace trainyard::job {

/// The maximum number of pairs of a job.
constexpr std::size_t kTaskNeedsMax = 10'000'000;

/// In the order that model::Plan wants. `starts` are the numbers of the first task of each group. A
/// task without a counterpart is a mistake. Costs O(pairs).
std::vector<model::TaskNeed> match_tasks(const JobSpec& spec, std::span<const std::uint32_t> starts,
                                         const text::YamlDocument& document,
                                         text::MistakeList& mistakes);

}  // namespace trainyard::job
