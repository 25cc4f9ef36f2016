// The steps of a pipeline that its other steps call: each is one step, of which as many calls can
// wait for their way back as its callers make. Any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "pipeline/bind_step.h"
#include "pipeline/bound_step.h"
#include "trainyard/any_step.h"
#include "trainyard/step_options.h"

namespace trainyard::pipeline {

class NestedSteps {
 public:
  /// Makes a copy that refers to the one step.
  using MakeTree = std::function<detail::StepTree()>;

  std::size_t add(std::string name, MakeTree make, detail::StepRules rules);
  [[nodiscard]] bool empty() const { return count_.load(std::memory_order_relaxed) == 0; }

  /// Puts those that were added since in their place, so that what is wrong is known at the start.
  void bind_new(const Surroundings& surroundings, std::vector<StepError>& mistakes);

  /// A copy that nobody uses, as called by that step; it is the caller's until its way back is gone
  /// or dropped. Throws when the step cannot be placed, or when there is no caller.
  NestedCall& take(std::size_t index, BoundStep* caller, const Surroundings& surroundings);

 private:
  struct Nested {
    std::string name;
    MakeTree make;
    detail::StepRules rules;
    std::vector<std::unique_ptr<NestedCall>> calls;
    bool bound = false;
  };
  static NestedCall& take_free(Nested& nested, const Surroundings& surroundings);
  static std::unique_ptr<NestedCall> make_call(const Nested& nested,
                                               const Surroundings& surroundings,
                                               std::vector<StepError>& mistakes);

  std::atomic<std::size_t> count_ = 0;  ///< Of all: it is asked in every iteration.
  std::mutex mutex_;
  std::vector<std::unique_ptr<Nested>> all_;
};

}  // namespace trainyard::pipeline
