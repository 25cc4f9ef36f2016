#include "pipeline/bus_state.h"

#include <fnmatch.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pipeline/event_queue.h"
#include "pipeline/trouble.h"
#include "trainyard/event.h"

namespace trainyard::detail {
namespace {

/// How deep this thread is in listeners.
constinit thread_local int in_listeners = 0;

/// A call of a listener, as those see it who take it off.
class CallOf {
 public:
  explicit CallOf(Listener& listener) : listener_(listener) {
    may_ = (listener_.calls.fetch_add(1) & Listener::kOff) == 0;
    ++in_listeners;
  }
  CallOf(const CallOf&) = delete;
  CallOf& operator=(const CallOf&) = delete;
  ~CallOf() {
    --in_listeners;
    if ((listener_.calls.fetch_sub(1) & Listener::kOff) != 0) listener_.calls.notify_all();
  }
  [[nodiscard]] bool may() const { return may_; }

 private:
  Listener& listener_;
  bool may_ = false;
};

void mark_off(Listener& listener) {
  std::uint32_t calls = listener.calls.fetch_or(Listener::kOff) | Listener::kOff;
  while (in_listeners == 0 && calls != Listener::kOff) {
    listener.calls.wait(calls);
    calls = listener.calls.load();
  }
}

}  // namespace

void BusState::add(std::shared_ptr<Listener> listener) {
  const std::scoped_lock lock(mutex_);
  auto& now = listeners_[listener->event];
  auto more = now ? std::make_shared<Listeners>(*now) : std::make_shared<Listeners>();
  more->push_back(std::move(listener));
  now = std::move(more);
}

void BusState::off(Listener& listener) {
  remove(listener);
  mark_off(listener);
}

void BusState::remove(const Listener& listener) {
  std::shared_ptr<const Listeners> before;  // What it holds is destroyed without the lock.
  const std::scoped_lock lock(mutex_);
  const auto found = listeners_.find(listener.event);
  if (found == listeners_.end()) return;
  before = found->second;
  auto rest = std::make_shared<Listeners>(*before);
  std::erase_if(*rest, [&](const auto& it) { return it.get() == &listener; });
  if (rest->empty()) {
    listeners_.erase(found);
  } else {
    found->second = std::move(rest);
  }
}

std::size_t BusState::off(std::string_view pattern) {
  const std::string glob(pattern);
  Listeners gone;
  {
    const std::scoped_lock lock(mutex_);
    std::erase_if(listeners_, [&](const auto& entry) {
      if (fnmatch(glob.c_str(), entry.first.c_str(), 0) != 0) return false;
      gone.insert(gone.end(), entry.second->begin(), entry.second->end());
      return true;
    });
  }
  for (const auto& listener : gone) mark_off(*listener);
  return gone.size();
}

std::shared_ptr<const BusState::Listeners> BusState::listeners_of(const EventName& name,
                                                                  bool& stopped) {
  const std::scoped_lock lock(mutex_);
  stopped = stopped_;
  const auto found = listeners_.find(name);
  return found == listeners_.end() ? nullptr : found->second;
}

std::size_t BusState::emit(EventName name, const PayloadType& type, const void* payload) {
  bool stopped = false;
  const auto listeners = listeners_of(name, stopped);
  if (stopped) {
    tell(name.text, "was emitted after the bus had stopped");
    return 0;
  }
  if (!listeners) return 0;
  std::size_t told = 0;
  for (const auto& listener : *listeners) {
    if (deliver(listener, type, payload)) ++told;
  }
  return told;
}

bool BusState::deliver(const std::shared_ptr<Listener>& listener, const PayloadType& type,
                       const void* payload) {
  if (listener->type != &type) {
    tell(listener->event, fmt::format("carries {}, and a listener takes {}", type.name,
                                      listener->type->name));
    return false;
  }
  if (listener->once) {
    if (listener->claimed.exchange(true)) return false;
    remove(*listener);
  }
  if (listener->queue != nullptr) {
    const auto taken = listener->queue->push(listener, type, payload);
    if (taken == EventQueue::Taken::Closed) tell(listener->event, "came when its queue was closed");
    if (taken == EventQueue::Taken::WouldWaitForItself) {
      tell(listener->event, "found its queue full, in a listener of that queue");
    }
    return taken == EventQueue::Taken::Yes;
  }
  call(*listener, payload);
  return true;
}

void BusState::call(Listener& listener, const void* payload) {
  const CallOf call(listener);
  if (!call.may()) return;
  try {
    listener.call(payload);
  } catch (...) {
    tell(listener.event, std::current_exception());
  }
}

void BusState::tell(std::string_view event, const std::exception_ptr& error) const {
  if (on_error_) return on_error_(event, error);
  std::fputs(fmt::format("trainyard: event '{}': {}\n", event, trouble_of(error).message).c_str(),
             stderr);
}

void BusState::tell(std::string_view event, const std::string& text) const {
  tell(event, std::make_exception_ptr(std::runtime_error(text)));
}

EventQueue& BusState::make_queue(std::size_t events_max) {
  auto queue = std::make_unique<EventQueue>(
      events_max, [this](Listener& listener, const void* payload) { call(listener, payload); });
  const std::scoped_lock lock(mutex_);
  return *queues_.emplace_back(std::move(queue));
}

void BusState::end_queues() {
  std::vector<std::unique_ptr<EventQueue>> queues;  // They end without the lock.
  const std::scoped_lock lock(mutex_);
  queues.swap(queues_);
}

std::size_t BusState::stop(std::chrono::nanoseconds drain_at_most) {
  std::vector<EventQueue*> queues;
  {
    const std::scoped_lock lock(mutex_);
    if (std::exchange(stopped_, true)) return 0;
    for (const auto& queue : queues_) queues.push_back(queue.get());
  }
  const auto until = std::chrono::steady_clock::now() + drain_at_most;
  std::size_t left = 0;
  for (EventQueue* queue : queues) {
    const auto rest = std::max<std::chrono::nanoseconds>(
        until - std::chrono::steady_clock::now(), std::chrono::nanoseconds(0));
    left += queue->close(rest, [this](const EventQueue::Left& events) {
      for (const auto& [event, count] : events) {
        tell(event, fmt::format("{} of them waited in a queue when the time to stop was over", count));
      }
    });
  }
  ended_.request_stop();
  return left;
}

}  // namespace trainyard::detail
