#include "pipeline/nested_steps.h"

#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pipeline/placed_step.h"
#include "pipeline/placement.h"
#include "trainyard/any_step.h"
#include "trainyard/pipeline_base.h"
#include "trainyard/step_options.h"

namespace trainyard {

std::size_t NestedSteps::add(std::string name, MakeTree make, StepOptions options) {
  const std::scoped_lock lock(mutex_);
  Nested& nested = *all_.emplace_back(std::make_unique<Nested>());
  nested.name = std::move(name);
  nested.make = std::move(make);
  nested.options = std::move(options);
  return count_++;
}

NestedCall& NestedSteps::take(std::size_t index, PlacedStep* caller, const Place& place) {
  const std::scoped_lock lock(mutex_);
  Nested& nested = *all_.at(index);
  if (caller == nullptr || caller->pipeline != place.pipeline) {
    throw std::logic_error(fmt::format(
        "nested step '{}' is called outside of the steps of its pipeline", nested.name));
  }
  NestedCall& call = take_free(nested, place);
  call.caller = caller;
  call.step->around = caller;
  ++call.number;
  return call;
}

void NestedSteps::place_new(const Place& place, std::vector<StepError>& mistakes) {
  const std::scoped_lock lock(mutex_);
  for (const auto& nested : all_) {
    if (std::exchange(nested->placed, true)) continue;
    auto call = make_call(*nested, place, mistakes);
    if (call) nested->calls.push_back(std::move(call));
  }
}

NestedCall& NestedSteps::take_free(Nested& nested, const Place& place) {
  for (const auto& call : nested.calls) {
    if (!call->taken.exchange(true)) return *call;
  }
  std::vector<StepError> mistakes;
  auto call = make_call(nested, place, mistakes);
  if (!mistakes.empty()) std::rethrow_exception(mistakes.front().error);
  if (!call) {
    throw std::logic_error(fmt::format("nested step '{}' is not placed here", nested.name));
  }
  call->taken = true;
  return *nested.calls.emplace_back(std::move(call));
}

std::unique_ptr<NestedCall> NestedSteps::make_call(const Nested& nested, const Place& place,
                                                   std::vector<StepError>& mistakes) {
  detail::StepTree tree = nested.make();
  tree.options = nested.options;
  auto step = place_step(std::move(tree), nested.name, place, mistakes);
  if (!step) return nullptr;
  auto call = std::make_unique<NestedCall>();
  call->step = std::move(step);
  call->step->is_part = true;
  return call;
}

}  // namespace trainyard
