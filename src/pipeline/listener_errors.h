// Exceptions of the listeners of a pipeline, until the pipeline fails by them. Any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <string_view>
#include <vector>

#include "trainyard/pipeline_base.h"

namespace trainyard::pipeline {

class ListenerErrors {
 public:
  /// The first so many are kept: what a listener throws on and on says nothing new.
  static constexpr std::size_t kMost = 100;

  void add(std::string_view event, const std::exception_ptr& error);
  /// Asked before each step.
  [[nodiscard]] bool any() const { return any_.load(std::memory_order_relaxed); }
  /// Moves them to the end of `errors`.
  void take(std::vector<StepError>& errors);

 private:
  std::mutex mutex_;
  std::vector<StepError> errors_;
  std::atomic<bool> any_ = false;
};

}  // namespace trainyard::pipeline
