// A pipeline as it runs: the steps in their places, the iteration, and what ends it.
//
// Belongs to the thread that runs it, but for finish() and what listeners and jobs report.
#pragma once

#include <atomic>
#include <mutex>

#include "pipeline/background.h"
#include "pipeline/bound_step.h"
#include "pipeline/step_caller.h"
#include "pipeline/worker_pool.h"
#include "trainyard/event_bus.h"
#include "trainyard/pipeline_base.h"

namespace trainyard {
namespace pipeline {

/// Exceptions of the listeners of a pipeline, until the pipeline fails by them. Any thread.
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

/// Whether the run that goes on is to end, and why. Any thread.
class RunEnd {
 public:
  /// A run begins: what was said before does not count.
  void begin_run();
  /// An iteration by hand begins: a failure before it has asked to stop.
  void forget_failure();
  /// The first one counts.
  void finish(std::string why, Outcome outcome = Outcome::Finished);
  /// The run is over, whatever ended it.
  void end_run() { finishing_ = true; }
  [[nodiscard]] bool finishing() const { return finishing_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::string why() const;
  [[nodiscard]] Outcome outcome() const;

  /// Asks to stop from finish() or wake() on.
  [[nodiscard]] std::stop_token token() const;
  /// The run is to end for another reason.
  void wake();

 private:
  mutable std::mutex mutex_;
  std::string why_;
  Outcome outcome_ = Outcome::Finished;
  std::stop_source ending_;
  std::atomic<bool> finishing_ = false;
};

}  // namespace pipeline

class PipelineState {
 public:
  using RenewContext = void (*)(Context&);

  PipelineState(PipelineOptions options, Context& context, RenewContext renew_context);
  PipelineState(const PipelineState&) = delete;
  PipelineState& operator=(const PipelineState&) = delete;
  ~PipelineState();

  void add(std::string name, detail::StepTree tree, detail::StepRules rules);
  void add(pipeline::StepCaller::Wrapper wrapper);
  std::size_t add_nested(std::string name, pipeline::NestedSteps::MakeTree make,
                         detail::StepRules rules);
  void add(std::function<void(const Context&)> iteration_listener) {
    iteration_listeners_.push_back(std::move(iteration_listener));
  }

  RunResult run(RunLimits limits, const std::stop_token& stop);
  void around_runs(PipelineBase::RunBegins begins, PipelineBase::RunEnds ends) {
    around_runs_.emplace_back(std::move(begins), std::move(ends));
  }
  void tell_end(const RunResult& result) {
    for (const auto& [begins, ends] : around_runs_) ends(result);
  }
  void finish(std::string why) { end_->finish(std::move(why)); }
  [[nodiscard]] PipelineBase::Finisher finisher() const {
    return [end = end_](std::string why, Outcome outcome) { end->finish(std::move(why), outcome); };
  }
  [[nodiscard]] std::stop_token ending() const { return end_->token(); }
  [[nodiscard]] bool finishing() const { return end_->finishing(); }

  // By hand. False: it failed, and what waited for its way back is dropped; take the errors.
  bool forward();
  bool backward();
  bool renew();
  bool sync();
  bool forward_one(std::string name, detail::StepTree tree, Context& context);
  std::vector<StepError> take_errors() { return std::exchange(errors_, {}); }
  void set_done() { done_ = true; }
  void close();

  /// In a step. Throws what the nested step throws.
  pipeline::NestedCall& call_nested(std::size_t nested, Context& context);
  void call_back(pipeline::NestedCall& nested) { caller_.call_back(nested); }
  void async(std::string name, std::function<void()> job);

  EventBus& events() { return events_; }
  [[nodiscard]] const pipeline::Surroundings& surroundings() const { return surroundings_; }

 private:
  struct Workers {
    Workers(int count, EventBus& bus) : pool(count), background(pool, bus) {}
    pipeline::WorkerPool pool;
    pipeline::Background background;
  };

  /// A step in its place in the order.
  struct Place {
    pipeline::BoundStep* step = nullptr;
    detail::StepNode* bare = nullptr;  ///< Its node, when nothing else is to be looked at.
  };

  /// A step that is not registered, and waits for its way back.
  struct ByHand {
    std::unique_ptr<pipeline::BoundStep> step;
    Context* context;
  };

  /// Puts what was added since in its place, and starts the workers that it needs.
  bool start();
  bool all_forward();
  bool all_backward();
  bool by_hand_backward();
  bool next_context();
  void refuse_in_a_step() const;
  /// Starts them, the first time.
  Workers& workers();
  void arrange();
  RunResult iterate(RunLimits limits, const std::stop_token& stop);
  RunResult end(Outcome outcome, std::uint64_t steps, std::string why);
  RunResult failed(std::uint64_t steps);
  /// The exception that is being handled ends the iteration.
  bool fail(const std::string& step);
  bool fail_by_listener();
  bool tell_iteration();
  void drop_all() noexcept;
  void drop_steps() noexcept;
  bool forward_in_order();
  bool backward_in_order();
  bool side_by_side(pipeline::SideBySide& order, Phase phase);
  void listener_failed(std::string_view event, const std::exception_ptr& error);

  // First what outlives the rest: jobs and listeners may use it to their end.
  const PipelineOptions options_;
  Context& context_;
  const RenewContext renew_context_;
  StepLock shared_lock_;
  pipeline::Surroundings surroundings_;

  std::vector<std::pair<std::string, detail::StepTree>> added_;  ///< Since the last start.
  std::vector<StepError> mistakes_;  ///< Of steps that cannot be bound; they stay.
  std::vector<std::string> names_;
  std::vector<std::unique_ptr<pipeline::BoundStep>> steps_;
  std::vector<Place> there_;  ///< In order, where they do not run side by side.
  std::vector<Place> back_;   ///< Those that may have a way back, the last first.
  std::optional<pipeline::SideBySide> forward_side_by_side_;
  std::optional<pipeline::SideBySide> backward_side_by_side_;
  pipeline::NestedSteps nested_;
  std::vector<std::function<void(const Context&)>> iteration_listeners_;
  std::vector<std::pair<PipelineBase::RunBegins, PipelineBase::RunEnds>> around_runs_;
  std::vector<ByHand> by_hand_;
  bool has_two_way_ = false;
  bool arranged_ = false;  ///< The places are those of the steps, wrappers and nested ones.
  bool running_ = false;
  bool done_ = false;  ///< The context is that of an iteration that went its way back.
  std::vector<StepError> errors_;
  std::vector<std::exception_ptr> step_errors_;  ///< Of steps side by side.

  // Shared with what finisher() returns.
  std::shared_ptr<pipeline::RunEnd> end_ = std::make_shared<pipeline::RunEnd>();
  pipeline::ListenerErrors listener_errors_;

  EventBus events_;
  pipeline::StepCaller caller_;
  std::mutex mutex_;  ///< Of who starts the workers.
  std::unique_ptr<Workers> workers_;
};

}  // namespace trainyard
