#include "pipeline/step_caller.h"

#include <algorithm>
#include <memory>
#include <ranges>

#include "pipeline/bus_state.h"
#include "pipeline/trouble.h"
#include "trainyard/any_step.h"
#include "trainyard/step_options.h"

namespace trainyard::pipeline {

void Raised::from(const std::string& step) {
  const std::exception_ptr error = std::current_exception();
  const std::scoped_lock lock(mutex_);
  if (std::ranges::find(known_, error, &Known::first) != known_.end()) return;
  known_.emplace_back(error, std::vector{step_error(step, error)});
  any_ = true;
}

void Raised::all(const std::exception_ptr& thrown_on, std::vector<StepError> errors) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(known_, [&](const Known& known) { return known.first == thrown_on; });
  known_.emplace_back(thrown_on, std::move(errors));
  any_ = true;
}

std::vector<StepError> Raised::errors_of(const std::exception_ptr& error,
                                         const std::string& outside) {
  const std::scoped_lock lock(mutex_);
  const auto known = std::ranges::find(known_, error, &Known::first);
  if (known == known_.end()) return {step_error(outside, error)};
  return known->second;
}

void Raised::forget_all() {
  const std::scoped_lock lock(mutex_);
  known_.clear();
  any_ = false;
}

StepError step_error(std::string step, const std::exception_ptr& error) {
  return {.step = std::move(step), .message = full_text_of(error), .error = error};
}

void StepCaller::call(BoundStep& step, Phase phase, Context& context) {
  const RunningHere here(step);
  std::unique_lock<StepLock> lock;
  if (step.lock != nullptr) lock = std::unique_lock(*step.lock);
  try {
    wrapped(step, phase, context, wrappers_.size());
    // The backward halves of nested calls come after its own, the last call first.
    while (phase == Phase::Backward && !step.nested.empty()) {
      call_back(*step.nested.back());
    }
  } catch (...) {
    raised_.from(step.path);
    throw;
  }
}

void StepCaller::call_back(NestedCall& nested) {
  std::erase(nested.caller->nested, &nested);
  // Also when it throws.
  const std::unique_ptr<NestedCall, void (*)(NestedCall*)> freed(
      &nested, [](NestedCall* call) { call->taken.store(false); });
  if (nested.step->waits()) call(*nested.step, Phase::Backward, *nested.context);
}

void StepCaller::wrapped(BoundStep& step, Phase phase, Context& context, std::size_t wrappers) {
  if (wrappers == 0) return bare(step, phase, context);
  const auto further = [&] { wrapped(step, phase, context, wrappers - 1); };
  wrappers_[wrappers - 1](StepCall{.step = step.path, .phase = phase, .is_part = step.is_part},
                          context, Next(further));
}

void StepCaller::bare(BoundStep& step, Phase phase, Context& context) {
  if (phase == Phase::Backward) {
    if (step.node) return step.node->backward(context);
    for (const auto& part : std::views::reverse(step.parts)) {
      if (part->waits()) call(*part, phase, context);
    }
    return;
  }
  if (step.node) return step.node->forward(context);
  if (step.kind == detail::StepKind::Parallel) return all_forward(step, context);
  for (const auto& part : step.parts) call(*part, phase, context);
}

void StepCaller::all_forward(BoundStep& group, Context& context) {
  WaitsCutShort failed(bus_);
  const auto one = [&](std::size_t part) {
    try {
      call(*group.parts[part], Phase::Forward, context);
    } catch (...) {
      group.part_errors[part] = std::current_exception();
      failed.begin();
    }
    return true;  // The others are called all the same: their errors count, too.
  };
  group.together->run(pool_, SideBySide::Do(one));
  std::exception_ptr first;
  std::vector<StepError> all;
  for (std::size_t i = 0; i < group.parts.size(); ++i) {
    const std::exception_ptr error = std::exchange(group.part_errors[i], nullptr);
    if (!error) continue;
    if (!first) first = error;
    for (StepError& known : raised_.errors_of(error, group.parts[i]->path)) {
      all.push_back(std::move(known));
    }
  }
  if (!first) return;
  raised_.all(first, std::move(all));
  std::rethrow_exception(first);
}

}  // namespace trainyard::pipeline
