// Events between the parts of a program: who emits one need not know who listens.
//
//   EventBus bus;
//   Subscription heard = bus.on(job_done, [&](const JobDone& it) { total += it.loss; });
//   bus.emit(job_done, {.id = 7, .loss = 0.1});
//
//   bus.emit(kBestModel, model, trainyard::remote);   // here, and to the workers that listen
//
//   auto pending = bus.expect(job_done);         // armed before the job is started,
//   start_job();                                 // so that it cannot be missed
//   auto done = pending.wait(2s, stop);
//
// A listener is called at once, on the thread that emits (DI-engine calls it on a thread of its
// pool): in order of registration, and in the order in which one thread emits. Several threads may
// be in it at the same time. One that was registered with an EventQueue is called on the queue's
// thread instead, one event at a time.
//
// Errors are reported to `on_error` at once: an exception of a listener, an event that cannot be
// taken any more, a listener of another type. No event is dropped without a report. A pipeline's
// bus fails the pipeline (Pipeline::events).
//
// In a worker of a parallel run (trainyard/worker.h) the bus goes on to the others: a RemoteEvent,
// or JSON by a plain name, that is emitted with a Reach is heard by those there that listen to it.
// Elsewhere there are no others.
//
// Any thread may call anything. A listener may emit, add and remove listeners, and stop the bus.
// Emitting to one listener costs some tens of nanoseconds.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>
#include <type_traits>
#include <utility>

#include "trainyard/event.h"
#include "trainyard/json.h"  // IWYU pragma: export
#include "trainyard/timeout.h"

namespace trainyard {

namespace detail {
class BusState;
struct Listener;
class BusAccess;
class BusWaiter;
}  // namespace detail

/// The listeners that an event reaches.
struct Reach {
  bool here = true;       ///< The listeners of this bus.
  bool others = true;     ///< Those of the other workers.
  bool retained = false;  ///< The last one is also heard by those who begin to listen later.
};
inline constexpr Reach remote{};
inline constexpr Reach remote_only{.here = false};
inline constexpr Reach retained{.retained = true};

/// Takes its listener off when it is destroyed, also of once(). Then the listener is called no
/// more; and no call of it goes on, if this is not done in a listener.
class [[nodiscard("dropped, it takes its listener off at once")]] Subscription {
 public:
  Subscription() = default;
  Subscription(Subscription&& other) noexcept = default;
  Subscription& operator=(Subscription&& other) noexcept;
  ~Subscription();

  void off();
  /// Leaves it there for as long as there is a bus.
  void detach();

 private:
  friend class EventBus;
  Subscription(std::weak_ptr<detail::BusState> bus, std::shared_ptr<detail::Listener> listener);
  std::weak_ptr<detail::BusState> bus_;
  std::shared_ptr<detail::Listener> listener_;
};

/// Where listeners are called by a thread of their own, in order. Made by EventBus::make_queue, and
/// lives as long as the bus.
class EventQueue;

/// Why no event came. Failed: another step of the pipeline whose bus it is; the one that waits is
/// to end, too.
enum class NoEvent : std::uint8_t { Deadline, Stopped, BusStopped, Failed };
/// "deadline", "stopped", "bus stopped", "failed".
std::string_view to_text(NoEvent why);

namespace detail {

/// One event that is waited for.
class BusWaiter {
 public:
  /// `event` is the name of one that others may send; empty: it stays in this process.
  BusWaiter(std::weak_ptr<BusState> bus, std::string_view event);
  /// Notifies the waiter; the payload must be in its place.
  void came() const;
  /// Whether it came.
  [[nodiscard]] std::expected<void, NoEvent> wait(Timeout at_most,
                                                  const std::stop_token& stop) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace detail

/// The next event of a kind, from when this was made.
template <class P>
class [[nodiscard]] Expectation {
 public:
  /// Waits until it has come, however long ago. Again, too.
  std::expected<P, NoEvent> wait(Timeout at_most, const std::stop_token& stop = {}) {
    const auto came = waiter_.wait(at_most, stop);
    if (!came) return std::unexpected(came.error());
    return value_->value();  // NOLINT(bugprone-unchecked-optional-access): it came
  }
  /// The same without a deadline, for what can be ended: a step gives its pipeline's ending().
  std::expected<P, NoEvent> wait(const std::stop_token& stop) {
    return wait(std::chrono::nanoseconds::max(), stop);
  }

 private:
  friend class EventBus;
  Expectation(std::weak_ptr<detail::BusState> bus, std::string_view event)
      : waiter_(std::move(bus), event) {}
  detail::BusWaiter waiter_;
  std::shared_ptr<std::optional<P>> value_ = std::make_shared<std::optional<P>>();
  Subscription listener_;
};

class EventBus {
 public:
  using OnError = std::function<void(std::string_view event, const std::exception_ptr& error)>;

  /// `on_error` is called on the thread where it went wrong, perhaps on several at once, and must
  /// not throw. Without one, a line goes to standard error.
  explicit EventBus(OnError on_error = {});
  EventBus(const EventBus&) = delete;
  EventBus& operator=(const EventBus&) = delete;
  /// Stops, with a second for what waits. Not in a listener.
  ~EventBus();

  /// Calls `listener` for each event from now on, with what it carries or with nothing.
  template <class P, class F>
  Subscription on(const Event<P>& event, F listener) {
    return add(event.name, {&detail::kPayloadType<P>, event.codec}, caller<P>(std::move(listener)),
               nullptr, false);
  }
  template <class P, class F>
  Subscription on(const Event<P>& event, EventQueue& queue, F listener) {
    static_assert(std::is_copy_constructible_v<P>, "what waits is copied");
    return add(event.name, {&detail::kPayloadType<P>, event.codec}, caller<P>(std::move(listener)),
               &queue, false);
  }
  /// For one event: never twice, however many threads emit.
  template <class P, class F>
  Subscription once(const Event<P>& event, F listener) {
    return add(event.name, {&detail::kPayloadType<P>, event.codec}, caller<P>(std::move(listener)),
               nullptr, true);
  }
  template <class P, class F>
  Subscription once(const Event<P>& event, EventQueue& queue, F listener) {
    static_assert(std::is_copy_constructible_v<P>, "what waits is copied");
    return add(event.name, {&detail::kPayloadType<P>, event.codec}, caller<P>(std::move(listener)),
               &queue, true);
  }

  /// The same by a plain name; what it carries is JSON.
  using JsonListener = std::function<void(const Json&)>;
  Subscription on(std::string_view event, JsonListener listener);
  Subscription on(std::string_view event, EventQueue& queue, JsonListener listener);
  Subscription once(std::string_view event, JsonListener listener);
  Subscription once(std::string_view event, EventQueue& queue, JsonListener listener);
  /// Calls it for every event whose name matches the pattern (*, ?, [abc]) and that has a JSON
  /// form: JSON by a plain name, and RemoteEvents. With the name, and after those that listen to
  /// it.
  using PatternListener = std::function<void(std::string_view event, const Json&)>;
  Subscription on(std::string_view pattern, PatternListener listener);

  /// Takes off all listeners of the event of this name, and of those whose names match it as a
  /// pattern (*, ?, [abc]), and says how many. As Subscription::off for each.
  std::size_t off(std::string_view pattern);

  /// Returns how many listeners it was told to, or put into the queue of. Does not throw: what goes
  /// wrong, also when it is copied for a queue, is passed to on_error. But a listener of a worker
  /// that fails is ended by an exception, where its event would wait for one that reads nothing.
  template <class P>
  std::size_t emit(const Event<P>& event, const std::type_identity_t<P>& payload) {
    return emit(event.name, {&detail::kPayloadType<P>, event.codec}, &payload, {.others = false});
  }
  /// To others, too, or to them alone: returns how many heard it here.
  template <class P>
  std::size_t emit(const RemoteEvent<P>& event, const std::type_identity_t<P>& payload,
                   Reach reach) {
    return emit(event.name, {&detail::kPayloadType<P>, event.codec}, &payload, reach);
  }
  template <class P>
  std::size_t emit(const Event<P>&, const std::type_identity_t<P>&, Reach) {
    static_assert(sizeof(P) == 0,
                  "what goes to other processes is a RemoteEvent (trainyard/remote_event.h)");
    return 0;
  }
  template <std::same_as<NoPayload> P>
  std::size_t emit(const RemoteEvent<P>& event, Reach reach) {
    constexpr static NoPayload kNothing;
    return emit(event.name, {&detail::kPayloadType<NoPayload>, event.codec}, &kNothing, reach);
  }
  std::size_t emit(std::string_view event, const Json& payload, Reach reach);
  template <class P>
  std::size_t emit(const Event<P>& event) {
    static_assert(std::same_as<P, NoPayload>, "this event carries something: emit(event, {...})");
    constexpr static NoPayload kNothing;
    return emit(event.name, {&detail::kPayloadType<NoPayload>, event.codec}, &kNothing,
                {.others = false});
  }
  std::size_t emit(std::string_view event, const Json& payload);

  /// Arms now what is waited for later.
  template <std::copy_constructible P>
  Expectation<P> expect(const Event<P>& event) {
    Expectation<P> pending(state_, event.codec == nullptr ? std::string_view() : event.name.text);
    pending.listener_ =
        once(event, [waiter = pending.waiter_, value = pending.value_](const P& payload) {
          value->emplace(payload);
          waiter.came();
        });
    return pending;
  }
  Expectation<Json> expect(std::string_view event);
  /// Waits for the next one: for at most so long, or until `stop`. On a worker of a pipeline
  /// another takes its place meanwhile, so that who is to emit is not waited for in vain.
  template <std::copy_constructible P>
  std::expected<P, NoEvent> wait_for(const Event<P>& event, Timeout at_most,
                                     const std::stop_token& stop = {}) {
    return expect(event).wait(at_most, stop);
  }
  std::expected<Json, NoEvent> wait_for(std::string_view event, Timeout at_most,
                                        const std::stop_token& stop = {});
  /// Without a deadline: until it comes, `stop`, the end of the bus or the failure of a step.
  template <std::copy_constructible P>
  std::expected<P, NoEvent> wait_for(const Event<P>& event, const std::stop_token& stop) {
    return expect(event).wait(stop);
  }
  std::expected<Json, NoEvent> wait_for(std::string_view event, const std::stop_token& stop);

  /// At most `events_max` wait in it, with the one that is being told, or what makes it a power of
  /// two; whoever emits one more waits until there is room. A listener
  /// that does so in the queue's own thread would wait for itself: its event is passed to on_error.
  EventQueue& make_queue(std::size_t events_max = 8'192);

  /// No more events from now on; those that wait in queues are delivered, for at most so long. What
  /// is left then is passed to on_error and counted. In a listener it does not wait for that
  /// listener's own queue. Again: no effect.
  std::size_t stop(Timeout drain_at_most = std::chrono::seconds(5));

 private:
  using Call = std::move_only_function<void(const void*)>;
  /// The payload type of an event, and its codec; no codec: the event stays in this process.
  struct Carries {
    const detail::PayloadType* type;
    const detail::Codec* codec;
  };
  template <class P, class F>
  static Call caller(F listener) {
    static_assert(std::invocable<F&, const P&> || std::invocable<F&>,
                  "a listener is called with what the event carries, or with nothing");
    return [listener = std::move(listener)](const void* payload) mutable {
      if constexpr (std::invocable<F&, const P&>) {
        listener(*static_cast<const P*>(payload));
      } else {
        listener();
      }
    };
  }
  Subscription add(detail::EventName name, Carries carries, Call call, EventQueue* queue,
                   bool once);
  std::size_t emit(detail::EventName name, Carries carries, const void* payload, Reach reach);
  friend class WaitsCutShort;
  friend class PipelineState;
  friend class detail::BusAccess;
  /// Stopped, and its queues' threads have ended: waits for the listeners that they call.
  void end();

  std::shared_ptr<detail::BusState> state_;
};

}  // namespace trainyard
