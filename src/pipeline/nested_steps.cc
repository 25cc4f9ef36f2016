#include "pipeline/nested_steps.h"

#include <exception>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "trainyard/pipeline_base.h"

namespace trainyard::pipeline {

std::size_t NestedSteps::add(std::string name, MakeTree make, detail::StepRules rules) {
  const std::scoped_lock lock(mutex_);
  Nested& nested = *all_.emplace_back(std::make_unique<Nested>());
  nested.name = std::move(name);
  nested.make = std::move(make);
  nested.rules = std::move(rules);
  return count_++;
}

NestedCall& NestedSteps::take(std::size_t index, BoundStep* caller,
                              const Surroundings& surroundings) {
  const std::scoped_lock lock(mutex_);
  Nested& nested = *all_.at(index);
  if (caller == nullptr || caller->pipeline != surroundings.pipeline) {
    throw std::logic_error(fmt::format(
        "nested step '{}' is called outside of the steps of its pipeline", nested.name));
  }
  NestedCall& call = take_free(nested, surroundings);
  call.caller = caller;
  call.step->around = caller;
  ++call.number;
  return call;
}

void NestedSteps::bind_new(const Surroundings& surroundings, std::vector<StepError>& mistakes) {
  const std::scoped_lock lock(mutex_);
  for (const auto& nested : all_) {
    if (std::exchange(nested->bound, true)) continue;
    auto call = make_call(*nested, surroundings, mistakes);
    if (call) nested->calls.push_back(std::move(call));
  }
}

NestedCall& NestedSteps::take_free(Nested& nested, const Surroundings& surroundings) {
  for (const auto& call : nested.calls) {
    if (!call->taken.exchange(true)) return *call;
  }
  std::vector<StepError> mistakes;
  auto call = make_call(nested, surroundings, mistakes);
  if (!mistakes.empty()) std::rethrow_exception(mistakes.front().error);
  if (!call) {
    throw std::logic_error(fmt::format("nested step '{}' is not placed here", nested.name));
  }
  call->taken = true;
  return *nested.calls.emplace_back(std::move(call));
}

std::unique_ptr<NestedCall> NestedSteps::make_call(const Nested& nested,
                                                   const Surroundings& surroundings,
                                                   std::vector<StepError>& mistakes) {
  detail::StepTree tree = nested.make();
  tree.rules = nested.rules;
  auto step = bind_step(std::move(tree), nested.name, surroundings, mistakes);
  if (!step) return nullptr;
  auto call = std::make_unique<NestedCall>();
  call->step = std::move(step);
  call->step->is_part = true;
  return call;
}

}  // namespace trainyard::pipeline
