// The ways to cap a task of a job to a part of its GPU: Job::cappers().
#include <algorithm>

#include "hardware/mps.h"
#include "job/job.h"
#include "job/job_state.h"

namespace trainyard::job {

Cappers Job::State::cappers_of(const Bound& bound, const Variables& said,
                               const std::string& working_directory) const {
  const bool amd = !capacity.gpus.empty() && capacity.gpus.front().maker == model::GpuMaker::Amd;
  if (amd) {
    return {.why_not =
                "on AMD's GPUs only the kernel keeps to one ('dmem'), in a control group "
                "that is ours"};
  }
  CapBasis basis{.program = first_word(*bound.task, bound.bindings),
                 .working_directory = working_directory,
                 .environment = said,
                 .mps = false};
  for (const auto& [variable, value] : environment) {
    if (find_variable(said, variable) == nullptr) basis.environment.emplace_back(variable, value);
  }
  const std::string* const pipes = find_variable(basis.environment, hardware::kMpsPipes);
  basis.mps = hardware::find_mps(pipes == nullptr ? hardware::kMpsDirectory : *pipes).has_value();
  return find_cappers(basis);
}

Cappers Job::cappers(model::TaskIndex task) const {
  const State::Bound bound = state_->bind(task);
  return state_->cappers_of(bound, said_variables(*bound.group, *bound.task, bound.bindings),
                            state_->working_directory_of(bound));
}

Variables Job::State::caps_for(const Cappers& cappers, const model::Shape& shape,
                               const model::Grant& grant) const {
  const int gpus = std::max(shape.terms.request.gpus, 1);
  CapAmount amount{.most = grant.memory_max,
                   .sharing = std::max(1, (shape.terms.ranks + gpus - 1) / gpus),
                   .ranks = shape.terms.ranks > 0,
                   .total = grant.memory_max,
                   .gpus_of_machine = static_cast<int>(capacity.gpus.size())};
  if (!grant.gpus.empty()) {
    amount.total = std::ranges::min(grant.gpus, {}, &model::Gpu::memory).memory;
  }
  return cap_variables(cappers, amount);
}

}  // namespace trainyard::job
