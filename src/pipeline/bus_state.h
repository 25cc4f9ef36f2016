// Who listens to what: the part of an event bus that its subscriptions share. Any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "pipeline/event_queue.h"
#include "trainyard/event.h"
#include "trainyard/event_bus.h"

namespace trainyard::detail {

struct Listener {
  std::string event;
  const PayloadType* type = nullptr;
  std::move_only_function<void(const void*)> call;
  EventQueue* queue = nullptr;  ///< None: it is called at once.
  bool once = false;

  std::atomic<bool> claimed = false;  ///< Of a once: somebody has its event.
  /// How many threads are in it, and kOff when it is taken off.
  std::atomic<std::uint32_t> calls = 0;
  static constexpr std::uint32_t kOff = 1U << 31U;
};

class BusState {
 public:
  explicit BusState(EventBus::OnError on_error) : on_error_(std::move(on_error)) {}

  void add(std::shared_ptr<Listener> listener);
  /// When it returns, no call of the listener goes on, unless this thread is in a listener: it would
  /// wait for itself, or for one that waits for it.
  void off(Listener& listener);
  std::size_t off(std::string_view pattern);
  std::size_t emit(EventName name, const PayloadType& type, const void* payload);
  /// Calls it, unless it was taken off. What it throws is told.
  void call(Listener& listener, const void* payload);
  void tell(std::string_view event, const std::exception_ptr& error) const;
  void tell(std::string_view event, const std::string& text) const;

  EventQueue& make_queue(std::size_t events_max);
  std::size_t stop(std::chrono::nanoseconds drain_at_most);
  /// Waits for the listeners that they call. Not in a listener of theirs.
  void end_queues();
  [[nodiscard]] std::stop_token ended() const { return ended_.get_token(); }

 private:
  using Listeners = std::vector<std::shared_ptr<Listener>>;
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(const EventName& name) const { return name.hash; }
    std::size_t operator()(const std::string& name) const { return EventName(name).hash; }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const EventName& one, const std::string& other) const {
      return one.text == other;
    }
    bool operator()(const std::string& one, const EventName& other) const {
      return one == other.text;
    }
    bool operator()(const std::string& one, const std::string& other) const {
      return one == other;
    }
  };
  /// Nobody who emits from now on calls it.
  void remove(const Listener& listener);
  /// Nothing when nobody listens; `stopped` when nobody will any more.
  std::shared_ptr<const Listeners> listeners_of(const EventName& name, bool& stopped);
  bool deliver(const std::shared_ptr<Listener>& listener, const PayloadType& type,
               const void* payload);

  const EventBus::OnError on_error_;
  std::stop_source ended_;
  std::mutex mutex_;
  /// Each list is made anew when it changes: whoever emits goes on with the one he has.
  std::unordered_map<std::string, std::shared_ptr<const Listeners>, Hash, Equal> listeners_;
  std::vector<std::unique_ptr<EventQueue>> queues_;
  bool stopped_ = false;
};

}  // namespace trainyard::detail
