// A training loop, composed of steps that share a context (DI-engine `task`):
//
//   trainyard::Pipeline<Train> loop;
//   loop.use("collect", collect)
//       .use("learn", [&](Train& c) { c.loss = learner.learn(c.trajectories); })
//       .use("stop", [&](Train& c) { if (c.train_iter == 1000) loop.finish("learned enough"); });
//   const trainyard::RunResult result = loop.run({.max_steps = 10'000}, stop);
//
// It is one loop in one process; it starts no processes. Belongs to the thread that runs it, but
// for finish() and events(), which any thread may use. Destroyed when nothing of it runs.
//
// Costs, on a plain PC: 2 to 5 ns a step and iteration, 10 for a coroutine, 40 for one with a lock;
// and no allocation after the first iteration.
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "trainyard/any_step.h"  // IWYU pragma: export
#include "trainyard/context.h"   // IWYU pragma: export
#include "trainyard/detail/step_node.h"
#include "trainyard/pipeline_base.h"  // IWYU pragma: export
#include "trainyard/step.h"           // IWYU pragma: export
#include "trainyard/step_options.h"   // IWYU pragma: export

namespace trainyard {

template <class C>
class NestedStep;

template <ContextType C>
class Pipeline : public PipelineBase {
 public:
  explicit Pipeline(PipelineOptions options = {}, C first = {})
      : PipelineBase(std::move(options), context_, &renew_context), context_(std::move(first)) {}

  ~Pipeline() { close(); }

  /// The context of this iteration, or of the last one when none is going on.
  [[nodiscard]] C& context() { return context_; }

  /// Adds a step. Without a name it is "step-1", "step-2", by its place; a name that is there
  /// already becomes "learn#2". Between runs, too; in a step of the pipeline it is an error.
  template <class F>
  Pipeline& use(std::string name, F step, StepOptions<C> options = {}) {
    add(std::move(name), detail::make_tree<C>(std::move(step)),
        detail::rules_of(std::move(options)));
    return *this;
  }
  template <class F>
    requires(!std::convertible_to<F, std::string>)
  Pipeline& use(F step, StepOptions<C> options = {}) {
    return use(std::string{}, std::move(step), std::move(options));
  }

  /// Has both halves of every step run inside of this, those in groups and nested ones, too,
  /// whenever they are added; the last wrapper is the outermost. It calls `next` once, or leaves
  /// the step out. Where steps run side by side, so does the wrapper.
  ///
  ///   loop.wrap([](const StepCall& call, Train&, const Next& next) { Span span{call.step}; next();
  ///   });
  template <std::invocable<const StepCall&, C&, const Next&> W>
  Pipeline& wrap(W wrapper) {
    add_wrapper([wrapper = std::move(wrapper)](const StepCall& call, Context& context,
                                               const Next& next) mutable {
      wrapper(call, static_cast<C&>(context), next);
    });
    return *this;
  }

  /// Told of each iteration when it has gone its way back, on the thread that runs the pipeline,
  /// when no step runs. What it throws fails the pipeline.
  template <std::invocable<const C&> T>
  Pipeline& after_iteration(T told) {
    add_iteration_listener([told = std::move(told)](const Context& context) mutable {
      told(static_cast<const C&>(context));
    });
    return *this;
  }

  /// A step to be called by others (DI-engine `wrap`): its forward half runs at the call, its
  /// backward half when the step that called says so, or after that step's own.
  ///
  ///   auto upload = loop.nested("upload", upload_step);
  ///   loop.use("save", [upload](Train& c) mutable { auto back = upload(c); ...; back(); });
  template <class F>
  NestedStep<C> nested(std::string name, F step, StepOptions<C> options = {}) {
    // Each call of it that waits for its way back refers to the one step.
    const auto shared = std::make_shared<F>(std::move(step));
    return {*this, add_nested(
                       std::move(name), [shared] { return detail::make_tree<C>(*shared); },
                       detail::rules_of(std::move(options)))};
  }

  using PipelineBase::forward;
  /// By hand: runs the forward half of a step that is not registered; its way back comes first in
  /// the next backward(). `context`: for this call alone.
  template <class F>
  [[nodiscard]] Done forward(std::string name, F step) {
    return forward(std::move(name), std::move(step), context_);
  }
  template <class F>
  [[nodiscard]] Done forward(std::string name, F step, C& context) {
    return forward_one(std::move(name), detail::make_tree<C>(std::move(step)), context);
  }

 private:
  friend class NestedStep<C>;
  static void renew_context(Context& context) { trainyard::renew(static_cast<C&>(context)); }

  C context_;
};

/// Made by Pipeline::nested; a value. It must not outlive the pipeline.
template <class C>
class NestedStep {
 public:
  /// In a step of the pipeline; elsewhere it throws std::logic_error.
  WayBack operator()(C& context) const { return pipeline_->call_nested(index_, context); }

 private:
  friend class Pipeline<C>;
  NestedStep(Pipeline<C>& pipeline, std::size_t index) : pipeline_(&pipeline), index_(index) {}

  Pipeline<C>* pipeline_;
  std::size_t index_;
};

}  // namespace trainyard
