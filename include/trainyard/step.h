// The steps of a pipeline, which come in four kinds (DI-engine "middleware"):
//
//   [](Train& c) { c.loss = learn(c); }                          // one half: on the way forward
//   [](Train& c) { return [&c] { log(c.loss); }; }               // returns its backward half
//   [](Train& c) -> trainyard::Step {                            // both halves in one function
//     c.trajectories = collect();
//     co_yield trainyard::after;                                 // here all later steps run
//     c.env_step += c.trajectories.size();
//   }
//   struct Saver { void forward(Train&); void backward(Train&); };  // an object with both
//
// On the way back the halves run in the reverse order of registration. A backward half is called
// with nothing or with the context, as it likes. A std::function that is empty has no way back.
//
// An object may also have `void ended(Train&)`, called once at the end of a run that had an
// iteration, however it ends but for a failure: on the way back, as it were, of the whole run. No
// lock is held then, and no wrapper is around it.
#pragma once

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <functional>
#include <type_traits>
#include <utility>

#include "trainyard/context.h"

namespace trainyard {

struct After {};
/// `co_yield after;`: the rest runs on the way back. Once a step: a second one fails it.
inline constexpr After after;

namespace detail {

/// Where the frame of a step's coroutine lies from iteration to iteration: allocated the first
/// time.
class FrameBlock {
 public:
  FrameBlock() = default;
  FrameBlock(const FrameBlock&) = delete;
  FrameBlock& operator=(const FrameBlock&) = delete;
  ~FrameBlock() { ::operator delete(memory_); }

  /// The block that the next coroutine of this thread takes, if it fits and is not taken.
  static void offer(FrameBlock* block) { offered_ = block; }
  static void* take(std::size_t size) {
    FrameBlock* const block = std::exchange(offered_, nullptr);
    if (block == nullptr || block->taken_ || size + sizeof(Header) > block->size_) [[unlikely]] {
      return take_anew(block, size);
    }
    block->taken_ = true;
    return static_cast<Header*>(block->memory_) + 1;
  }
  static void give_back(void* frame) {
    Header* const header = static_cast<Header*>(frame) - 1;
    if (header->owner == nullptr) return ::operator delete(header);
    header->owner->taken_ = false;
  }

 private:
  static void* take_anew(FrameBlock* block, std::size_t size);
  /// In front of each frame: whose it is; none for one of its own.
  struct alignas(alignof(std::max_align_t)) Header {
    FrameBlock* owner;
  };
  // A trivial type: a destructor would cost each access a check. Whoever offers takes back.
  // NOLINTNEXTLINE(readability-identifier-naming): a member, which the check takes for a variable
  static inline constinit thread_local FrameBlock* offered_ = nullptr;

  void* memory_ = nullptr;
  std::size_t size_ = 0;
  bool taken_ = false;
};

[[noreturn]] void throw_second_yield();

}  // namespace detail

/// The return type of a step with both halves in one function. Made by the compiler, run by the
/// pipeline.
class [[nodiscard]] Step {
 public:
  struct promise_type {
    Step get_return_object() { return Step{Handle::from_promise(*this)}; }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    std::suspend_always yield_value(After) noexcept { return {}; }
    void return_void() {}
    // On to who resumed it.
    void unhandled_exception() { throw; }

    static void* operator new(std::size_t size) { return detail::FrameBlock::take(size); }
    static void operator delete(void* frame) { detail::FrameBlock::give_back(frame); }
  };

  Step() = default;
  Step(Step&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Step& operator=(Step&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Step() {
    if (handle_) handle_.destroy();
  }

  /// Runs to its yield, and says that there is a second half; or to its end.
  bool forward() {
    handle_.resume();
    return !handle_.done();
  }
  /// Runs the second half. Throws when that yields again.
  void backward() {
    handle_.resume();
    if (!handle_.done()) detail::throw_second_yield();
  }
  explicit operator bool() const { return static_cast<bool>(handle_); }

 private:
  using Handle = std::coroutine_handle<promise_type>;
  explicit Step(Handle handle) : handle_(handle) {}
  Handle handle_;
};

/// The return type of a function that returns its backward half.
template <class B, class C>
concept BackwardHalf = std::invocable<B&> || std::invocable<B&, C&>;

template <class F, class C>
concept OneWayStep = std::invocable<F&, C&> && std::is_void_v<std::invoke_result_t<F&, C&>>;
template <class F, class C>
concept CoroutineStep = std::invocable<F&, C&> && std::same_as<std::invoke_result_t<F&, C&>, Step>;
template <class F, class C>
concept ReturningStep = std::invocable<F&, C&> && !OneWayStep<F, C> && !CoroutineStep<F, C> &&
                        BackwardHalf<std::invoke_result_t<F&, C&>, C>;
template <class F, class C>
concept ObjectStep = requires(F& step, C& context) {
  step.forward(context);
  step.backward(context);
};
/// One of the four kinds, or a std::reference_wrapper of one.
template <class F, class C>
concept StepOf =
    OneWayStep<std::unwrap_reference_t<F>, C> || CoroutineStep<std::unwrap_reference_t<F>, C> ||
    ReturningStep<std::unwrap_reference_t<F>, C> || ObjectStep<std::unwrap_reference_t<F>, C>;

}  // namespace trainyard
