// The step from which an exception comes. The exception passes wrappers and groups as it was
// thrown, so that a wrapper can catch it; this remembers its step. Any thread.
#pragma once

#include <atomic>
#include <exception>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "trainyard/pipeline_base.h"

namespace trainyard::pipeline {

class Raised {
 public:
  /// The exception that is being handled was thrown in that step; no effect when that is known
  /// already, of a step inside of it.
  void from(const std::string& step);

  /// The one that is thrown on stands for all of these.
  void all(const std::exception_ptr& thrown_on, std::vector<StepError> errors);

  /// The errors of an exception; `outside` names its step when none is known.
  std::vector<StepError> errors_of(const std::exception_ptr& error, const std::string& outside);

  /// Nothing that was thrown is on its way any more. Costs next to nothing when nothing was.
  void forget() {
    if (any_.load(std::memory_order_relaxed)) forget_all();
  }

 private:
  using Known = std::pair<std::exception_ptr, std::vector<StepError>>;
  void forget_all();

  std::atomic<bool> any_ = false;
  std::mutex mutex_;
  std::vector<Known> known_;
};

StepError step_error(std::string step, const std::exception_ptr& error);

}  // namespace trainyard::pipeline
