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
  ++call.number;
  return call;
}

NestedCall& NestedSteps::take_free(Nested& nested, const Place& place) {
  for (const auto& call : nested.calls) {
    if (!call->taken.exchange(true)) return *call;
  }
  detail::StepTree tree = nested.make();
  tree.options = nested.options;
  std::vector<StepError> mistakes;
  auto step = place_step(std::move(tree), nested.name, place, mistakes);
  if (!mistakes.empty()) std::rethrow_exception(mistakes.front().error);
  if (!step) {
    throw std::logic_error(fmt::format("nested step '{}' is not placed here", nested.name));
  }
  auto call = std::make_unique<NestedCall>();
  call->step = std::move(step);
  call->taken = true;
  return *nested.calls.emplace_back(std::move(call));
}

}  // namespace trainyard
