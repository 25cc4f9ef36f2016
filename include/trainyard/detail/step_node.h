// A step as the pipeline calls it, whatever its kind and its context. Not for users.
//
// A node holds the way back of one call of its step. It allocates nothing after its first call.
#pragma once

#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "trainyard/context.h"
#include "trainyard/step.h"

namespace trainyard::detail {

class StepNode {
 public:
  StepNode() = default;
  StepNode(const StepNode&) = delete;
  StepNode& operator=(const StepNode&) = delete;
  virtual ~StepNode() = default;

  virtual void forward(Context& context) = 0;
  /// Nothing, when nothing waits for the way back.
  virtual void backward(Context& context);
  /// Destroys what waits for the way back, without running it.
  virtual void drop() noexcept;
  virtual void ended(Context& context);
  /// A step of its kind can have a way back.
  [[nodiscard]] virtual bool is_two_way() const { return true; }
  /// Something waits for the way back now.
  [[nodiscard]] virtual bool waits() const = 0;
};

/// F is the step itself, or a reference to it.
template <class C, class F>
class OneWayNode final : public StepNode {
 public:
  explicit OneWayNode(F&& step) : step_(std::forward<F>(step)) {}
  void forward(Context& context) override { step_(static_cast<C&>(context)); }
  [[nodiscard]] bool is_two_way() const override { return false; }
  [[nodiscard]] bool waits() const override { return false; }

 private:
  F step_;
};

template <class C, class F>
class ReturningNode final : public StepNode {
 public:
  explicit ReturningNode(F&& step) : step_(std::forward<F>(step)) {}
  void forward(Context& context) override { back_.emplace(step_(static_cast<C&>(context))); }
  void backward(Context& context) override {
    if (!back_) return;
    // Also when it throws.
    const auto gone = std::unique_ptr<ReturningNode, Dropper>{this};
    if constexpr (requires { static_cast<bool>(*back_); }) {
      if (!static_cast<bool>(*back_)) return;
    }
    if constexpr (std::invocable<Back&, C&>) {
      (*back_)(static_cast<C&>(context));
    } else {
      (*back_)();
    }
  }
  void drop() noexcept override { back_.reset(); }
  [[nodiscard]] bool waits() const override { return back_.has_value(); }

 private:
  using Back = std::decay_t<std::invoke_result_t<F&, C&>>;
  struct Dropper {
    void operator()(ReturningNode* node) const { node->drop(); }
  };
  F step_;
  std::optional<Back> back_;
};

template <class C, class F>
class CoroutineNode final : public StepNode {
 public:
  explicit CoroutineNode(F&& step) : step_(std::forward<F>(step)) {}
  void forward(Context& context) override {
    try {
      FrameBlock::offer(&frame_);
      halves_ = step_(static_cast<C&>(context));
      FrameBlock::offer(nullptr);  // One that made no coroutine has not taken it.
      if (!halves_ || !halves_.forward()) drop();
    } catch (...) {
      FrameBlock::offer(nullptr);
      drop();
      throw;
    }
  }
  void backward(Context&) override {
    if (!halves_) return;
    try {
      halves_.backward();
    } catch (...) {
      drop();
      throw;
    }
    drop();
  }
  void drop() noexcept override { halves_ = Step{}; }
  [[nodiscard]] bool waits() const override { return static_cast<bool>(halves_); }

 private:
  F step_;
  FrameBlock frame_;  // Outlives the coroutine in it.
  Step halves_;
};

template <class C, class F>
class ObjectNode final : public StepNode {
 public:
  explicit ObjectNode(F&& step) : step_(std::forward<F>(step)) {}
  void forward(Context& context) override {
    step_.forward(static_cast<C&>(context));
    waits_ = true;
  }
  void backward(Context& context) override {
    if (std::exchange(waits_, false)) step_.backward(static_cast<C&>(context));
  }
  void drop() noexcept override { waits_ = false; }
  [[nodiscard]] bool waits() const override { return waits_; }
  void ended(Context& context) override {
    if constexpr (requires { step_.ended(static_cast<C&>(context)); }) {
      step_.ended(static_cast<C&>(context));
    }
  }

 private:
  F step_;
  bool waits_ = false;
};

template <class C, class F>
std::unique_ptr<StepNode> make_node(F&& step) {
  using Kind = std::remove_reference_t<F>;
  if constexpr (ObjectStep<Kind, C>) {
    return std::make_unique<ObjectNode<C, F>>(std::forward<F>(step));
  } else if constexpr (OneWayStep<Kind, C>) {
    return std::make_unique<OneWayNode<C, F>>(std::forward<F>(step));
  } else if constexpr (CoroutineStep<Kind, C>) {
    return std::make_unique<CoroutineNode<C, F>>(std::forward<F>(step));
  } else {
    return std::make_unique<ReturningNode<C, F>>(std::forward<F>(step));
  }
}

}  // namespace trainyard::detail
