// The part of a pipeline that does not depend on its context: it runs, finishes, and can be driven
// by hand. See pipeline.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <expected>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "trainyard/any_step.h"
#include "trainyard/context.h"
#include "trainyard/step_options.h"

namespace trainyard {

class EventBus;
class PipelineState;

/// The reason why a run ended.
enum class Outcome : std::uint8_t {
  MaxSteps,  ///< As many iterations as were asked for.
  Finished,  ///< finish() was called, or no step is placed here.
  Stopped,   ///< The stop token, or the parallel run that it is in is stopped.
  Failed,    ///< A step, a listener, the renewal; the steps do not fit together; or another worker.
};
/// "max steps", "finished", "stopped", "failed".
std::string_view to_text(Outcome outcome);

struct StepError {
  /// "learn", "evaluate/upload"; "event 'job.done'" for a listener; "renew", "iteration" for what
  /// comes between iterations; "learn (ended)" for what an object does at the end. Empty: the run
  /// was ended because something else has failed, as another worker.
  std::string step = {};
  /// "std::runtime_error: boom". What it was thrown because of (std::nested_exception) follows, one
  /// a line.
  std::string message = {};
  std::exception_ptr error;  ///< To throw again.
};

/// Why it failed: everything that did, the first step first. Never empty.
struct Failure {
  std::vector<StepError> errors = {};
  /// "step 'learn': loss is not a number", a line for each error.
  [[nodiscard]] std::string text() const;
};

struct RunLimits {
  std::uint64_t max_steps = std::numeric_limits<std::uint64_t>::max();
};

struct [[nodiscard]] RunResult {
  Outcome outcome = Outcome::MaxSteps;
  std::uint64_t steps = 0;  ///< Iterations that this run completed.
  std::string why = {};     ///< The reason given to finish(), or the text of the failure.
  std::vector<StepError> errors = {};  ///< Of a failure.
  explicit operator bool() const { return outcome != Outcome::Failed; }
};

enum class Phase : std::uint8_t { Forward, Backward };

/// The call of a step, as a wrapper of the step sees it.
struct StepCall {
  std::string_view step;  ///< "evaluate/upload"; as long as the pipeline.
  Phase phase = Phase::Forward;
  bool is_part = false;  ///< Of a group, or nested: what it takes, another takes, too.
};

/// Goes on to the next wrapper, and in the end to the step. Valid during the call of the wrapper.
class Next {
 public:
  template <class F>
  explicit Next(const F& function)
      : state_(&function), call_([](const void* state) { (*static_cast<const F*>(state))(); }) {}
  void operator()() const { call_(state_); }

 private:
  const void* state_;
  void (*call_)(const void*);
};

struct PipelineOptions {
  /// Steps that do not conflict run side by side (StepOptions::reads).
  bool async = false;
  /// Threads beside the one that runs the pipeline; started when something is to run on them.
  int n_async_workers = 3;
  /// Beside "standalone", or "distributed" in a worker of a parallel run, "node.<n>" and, where it
  /// is, "async".
  std::vector<std::string> labels = {};
  /// None: it has every role.
  std::vector<Role> roles = {};
  /// The number of its worker in a parallel run (trainyard/worker.h). None: it is alone.
  std::optional<int> node = {};
  /// Called at once with what a listener of events() throws, on its thread, and with events that no
  /// listener could take any more. Empty: that fails the pipeline at its next step.
  std::function<void(std::string_view event, const std::exception_ptr& error)> on_listener_error =
      {};
};

/// The way back of a nested step. Called, it runs the backward half now; dropped, it leaves it to
/// the way back of the step that called. At most once: later calls do nothing. In the iteration and
/// the step in which it was made.
class WayBack {
 public:
  void operator()();

 private:
  friend class PipelineBase;
  void* call_ = nullptr;
  std::uint64_t number_ = 0;
};

class PipelineBase {
 public:
  PipelineBase(const PipelineBase&) = delete;
  PipelineBase& operator=(const PipelineBase&) = delete;

  /// Iterates: all forward halves in order of registration, all backward halves in reverse, then a
  /// new context. Ends between iterations, so what has begun goes its way back. Called again it
  /// goes on: total_step counts over all runs. After a failure the iteration that failed is tried
  /// again with the context that it left. One run at a time: in a step of it this throws
  /// std::logic_error, as driving it by hand does.
  RunResult run(RunLimits limits = {}, const std::stop_token& stop = {});

  /// Ends the run after this iteration. Any thread; the first reason counts. A run begins by
  /// forgetting what was said before it.
  void finish(std::string why = {});
  /// The same as a function, which may outlive the pipeline. `outcome` is that of the run: Failed
  /// where it ends because something else has failed.
  using Finisher = std::function<void(std::string why, Outcome outcome)>;
  [[nodiscard]] Finisher finisher() const;
  /// True from finish() on, and when a run has ended for whatever reason (DI-engine `task.finish`),
  /// until the next one begins.
  [[nodiscard]] bool finishing() const;
  /// Asks to stop when the run that goes on is to end, also by the failure of a listener or of a
  /// step beside: for what a step waits for.
  [[nodiscard]] std::stop_token ending();

  // By hand, when no run is going on: what run() does in turn.
  using Done = std::expected<void, Failure>;
  [[nodiscard]] Done forward();
  [[nodiscard]] Done backward();
  /// Renews the context, and drops backward halves that still wait.
  [[nodiscard]] Done renew();
  /// Waits for what async() started, and helps.
  [[nodiscard]] Done sync();

  /// Told of the end of each run, on its thread, when no step runs; and, where it has a step, first
  /// that it begins: finish() counts from then on.
  using RunBegins = std::function<void()>;
  using RunEnds = std::function<void(const RunResult&)>;
  void around_runs(RunBegins begins, RunEnds ends);

  /// The context is that of an iteration that is done: the next run begins by renewing it.
  void set_done();

  /// Runs it on a worker, beside the steps; the iteration waits for it before its way back, and
  /// before its end. What it throws fails the pipeline then. In any step, and by hand. At most
  /// 1,024 wait; whoever asks for more runs one himself.
  void async(std::string name, std::function<void()> work);

  /// The events of this pipeline. A listener that throws fails it at its next step.
  [[nodiscard]] EventBus& events();

  /// (DI-engine `has_role`) True for every role while the pipeline has none of its own.
  [[nodiscard]] bool has_role(Role role) const;
  /// Whether one of the patterns matches one of the labels; capital letters count.
  [[nodiscard]] bool match_labels(const std::vector<std::string>& patterns) const;
  [[nodiscard]] const std::vector<std::string>& labels() const;

 protected:
  using RenewContext = void (*)(Context&);
  using Wrapper = std::function<void(const StepCall&, Context&, const Next&)>;
  /// Makes one more of a nested step: several calls of it may wait for their way back.
  using MakeTree = std::function<detail::StepTree()>;

  PipelineBase(PipelineOptions options, Context& context, RenewContext renew_context);
  ~PipelineBase();

  void add(std::string name, detail::StepTree tree, detail::StepRules rules);
  void add_wrapper(Wrapper wrapper);
  void add_iteration_listener(std::function<void(const Context&)> told);
  [[nodiscard]] Done forward_one(std::string name, detail::StepTree tree, Context& context);
  std::size_t add_nested(std::string name, MakeTree make, detail::StepRules rules);
  WayBack call_nested(std::size_t nested, Context& context);
  /// Ends all that uses the context: halves that wait, work begun by async(), queues of events.
  void close();

 private:
  std::unique_ptr<PipelineState> state_;
};

}  // namespace trainyard
