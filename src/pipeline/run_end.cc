#include "pipeline/run_end.h"

#include <utility>

namespace trainyard::pipeline {

void RunEnd::begin_run() {
  const std::scoped_lock lock(mutex_);
  finishing_ = false;
  if (ending_.stop_requested()) ending_ = std::stop_source();
}

void RunEnd::forget_failure() {
  const std::scoped_lock lock(mutex_);
  if (!finishing_ && ending_.stop_requested()) ending_ = std::stop_source();
}

void RunEnd::finish(std::string why, Outcome outcome) {
  {
    const std::scoped_lock lock(mutex_);
    if (finishing_) return;
    why_ = std::move(why);
    outcome_ = outcome;
    finishing_ = true;
  }
  wake();
}

std::string RunEnd::why() const {
  const std::scoped_lock lock(mutex_);
  return why_;
}

Outcome RunEnd::outcome() const {
  const std::scoped_lock lock(mutex_);
  return outcome_;
}

std::stop_token RunEnd::token() const {
  const std::scoped_lock lock(mutex_);
  return ending_.get_token();
}

void RunEnd::wake() {
  const auto ending = [this] {
    const std::scoped_lock lock(mutex_);
    return ending_;
  };
  ending().request_stop();  // Without the lock: it calls those who wait.
}

}  // namespace trainyard::pipeline
