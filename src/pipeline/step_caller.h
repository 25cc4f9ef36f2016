// Runs one half of a step with all that is around and in it: its lock, the wrappers, the parts of a
// group, the nested steps that it called. The pipeline calls a bare step without this.
//
// Several threads may call, each its own steps.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/bound_step.h"
#include "pipeline/worker_pool.h"
#include "trainyard/context.h"
#include "trainyard/event_bus.h"
#include "trainyard/pipeline_base.h"

namespace trainyard::pipeline {

/// The step from which an exception comes. The exception passes wrappers and groups as it was
/// thrown, so that a wrapper can catch it; this remembers its step. Any thread.
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

class StepCaller {
 public:
  explicit StepCaller(EventBus& bus) : bus_(bus) {}

  using Wrapper = std::function<void(const StepCall&, Context&, const Next&)>;

  void add(Wrapper wrapper) { wrappers_.push_back(std::move(wrapper)); }
  [[nodiscard]] bool has_wrappers() const { return !wrappers_.empty(); }
  /// Who helps with parallel groups; may be none.
  void use(WorkerPool* pool) { pool_ = pool; }

  /// Throws what the step throws, and knows whose it was.
  void call(BoundStep& step, Phase phase, Context& context);
  /// Has a nested step go its way back, which waits for it in its caller.
  void call_back(NestedCall& nested);
  Raised& raised() { return raised_; }

  /// The step that this thread runs, of whatever pipeline.
  static BoundStep* running() { return running_; }

 private:
  friend class RunningHere;
  void wrapped(BoundStep& step, Phase phase, Context& context, std::size_t wrappers);
  void bare(BoundStep& step, Phase phase, Context& context);
  void all_forward(BoundStep& group, Context& context);

  // A trivial type, so that each step can set it.
  // NOLINTNEXTLINE(readability-identifier-naming): a member, which the check takes for a variable
  static inline constinit thread_local BoundStep* running_ = nullptr;

  EventBus& bus_;
  std::vector<Wrapper> wrappers_;
  Raised raised_;
  WorkerPool* pool_ = nullptr;
};

/// Marks the steps that this thread runs: the given one, or those passed to is(), until destroyed.
class RunningHere {
 public:
  RunningHere() : before_(StepCaller::running_) {}
  explicit RunningHere(BoundStep& step) : RunningHere() { is(step); }
  RunningHere(const RunningHere&) = delete;
  RunningHere& operator=(const RunningHere&) = delete;
  ~RunningHere() { StepCaller::running_ = before_; }

  static void is(BoundStep& step) { StepCaller::running_ = &step; }

 private:
  BoundStep* before_;
};

}  // namespace trainyard::pipeline
