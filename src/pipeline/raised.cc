#include "pipeline/raised.h"

#include <algorithm>

#include "pipeline/trouble.h"

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

}  // namespace trainyard::pipeline
