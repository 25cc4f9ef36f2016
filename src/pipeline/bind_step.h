// From steps as they were registered to steps in their place: names, locks, and whether they belong
// here at all. Pure, but for the steps it moves.
#pragma once

#include <string>
#include <vector>

#include "pipeline/bound_step.h"
#include "trainyard/any_step.h"
#include "trainyard/pipeline_base.h"
#include "trainyard/step_options.h"

namespace trainyard::pipeline {

/// The properties of a pipeline on which the binding of its steps depends.
struct Surroundings {
  std::vector<std::string> labels;
  std::vector<Role> roles;
  bool is_alone = true;  ///< There are no other workers who might play a role.
  StepLock* shared_lock = nullptr;
  PipelineState* pipeline = nullptr;
};

/// Whether one of the patterns (*, ?, [abc]) matches one of the labels.
bool match_any(const std::vector<std::string>& patterns, const std::vector<std::string>& labels);

bool has_role(const Surroundings& surroundings, Role role);

/// Puts it in its place as `path`. A step that does not belong here, with all its parts: nothing.
/// Adds to `mistakes`: a label that no pipeline has, a role that no pipeline has, a lock that would
/// wait for itself.
std::unique_ptr<BoundStep> bind_step(detail::StepTree tree, std::string path,
                                     const Surroundings& surroundings,
                                     std::vector<StepError>& mistakes);

/// A nested step is called: throws when a part of it would wait for a lock that one of those around
/// the call holds.
void check_locks_of_callers(BoundStep& nested);

/// "learn", or "step-3"; "learn#2" when there is one already.
std::string unused_name(std::string name, const detail::StepTree& tree, std::size_t number,
                        const std::vector<std::string>& taken);

/// The pairs of steps that must keep their order, as they touch the same, without pairs that follow
/// from others.
std::vector<std::pair<std::size_t, std::size_t>> conflicts(
    const std::vector<std::unique_ptr<BoundStep>>& steps, const Context& context);

}  // namespace trainyard::pipeline
