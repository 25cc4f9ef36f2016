#include "pipeline/listener_errors.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "pipeline/raised.h"

namespace trainyard::pipeline {

void ListenerErrors::add(std::string_view event, const std::exception_ptr& error) {
  const std::scoped_lock lock(mutex_);
  if (errors_.size() < kMost) {
    errors_.push_back(step_error(fmt::format("event '{}'", event), error));
  }
  any_ = true;
}

void ListenerErrors::take(std::vector<StepError>& errors) {
  const std::scoped_lock lock(mutex_);
  std::ranges::move(errors_, std::back_inserter(errors));
  errors_.clear();
  any_ = false;
}

}  // namespace trainyard::pipeline
