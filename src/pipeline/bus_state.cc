#include "pipeline/bus_state.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fnmatch.h>

#include <fmt/format.h>

#include "pipeline/trouble.h"

namespace trainyard::detail {
namespace {

/// How deep this thread is in listeners.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): a thread has it to itself
constinit thread_local int in_listeners = 0;
/// How deep it is in listeners of remote events that it calls itself, not as the thread of a queue.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): a thread has it to itself
constinit thread_local int in_remote_listeners = 0;

/// One more, for as long as it lives: a copy of an event may throw.
class InUse {
 public:
  explicit InUse(int& count) : count_(count) { ++count_; }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;
  ~InUse() { --count_; }

 private:
  int& count_;
};

std::uint64_t next_id() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

/// Destroys what it holds, when it is called no more. By one of those who can.
void empty(Listener& listener) {
  auto holds = Listener::Holds::Something;
  if (!listener.holds.compare_exchange_strong(holds, Listener::Holds::Going)) return;
  listener.call = nullptr;
  listener.holds = Listener::Holds::Nothing;
  listener.holds.notify_all();
}

/// A call of a listener by the thread that emits, as those see it who take it off.
class CallHere {
 public:
  explicit CallHere(Listener& listener)
      : listener_(listener), may_((listener.calls.fetch_add(1) & Listener::kOff) == 0) {}
  CallHere(const CallHere&) = delete;
  CallHere& operator=(const CallHere&) = delete;
  ~CallHere() {
    const std::uint32_t before = listener_.calls.fetch_sub(1);
    if ((before & Listener::kOff) == 0) return;
    listener_.calls.notify_all();
    if (before == (Listener::kOff | 1U)) empty(listener_);
  }
  [[nodiscard]] bool may() const { return may_; }

 private:
  Listener& listener_;
  const bool may_;
};

/// Returns when no call of it goes on, but on a thread that is in a listener: it would wait for
/// itself, or for one that waits for it. Whoever is the first also sees that what it holds goes;
/// another may be a part of that.
void mark_off(Listener& listener) {
  const bool first = (listener.calls.fetch_or(Listener::kOff) & Listener::kOff) == 0;
  if (in_listeners > 0) {
    if (first && listener.queue == nullptr && listener.calls == Listener::kOff) empty(listener);
    return;
  }
  if (listener.queue != nullptr) listener.queue->wait_until_out_of(listener);
  for (std::uint32_t now = listener.calls.load(); now != Listener::kOff;) {
    listener.calls.wait(now);
    now = listener.calls.load();
  }
  if (!first) return;
  empty(listener);
  listener.holds.wait(Listener::Holds::Going);
}

}  // namespace

BusState::BusState(EventBus::OnError on_error) : on_error_(std::move(on_error)), id_(next_id()) {}

void BusState::replace(const std::string& name, std::shared_ptr<const Channel>& before,
                       std::shared_ptr<Channel> after) {
  if (after->listeners.empty()) {
    channels_.erase(name);
  } else {
    before = std::move(after);
  }
  changes_.fetch_add(1, std::memory_order_release);
}

void BusState::add(const std::shared_ptr<Listener>& listener) {
  if (listener->queue != nullptr) listener->queue->keep(listener);
  const std::string name = listener->event;
  const bool is_wanted = listener->codec != nullptr;
  std::shared_ptr<BusRemote> others;
  {
    const std::scoped_lock lock(mutex_);
    if (is_wanted) listener->late.expect(retained_.matching(name, listener->is_pattern));
    insert(listener);
    others = remote_;
  }
  if (!is_wanted) return;
  hear_late(*listener);
  if (others) others->want(name);
}

void BusState::insert(std::shared_ptr<Listener> listener) {
  if (listener->is_pattern) {
    patterns_.push_back(std::move(listener));
    any_patterns_ = true;
    return;
  }
  const std::string name = listener->event;
  auto& now = channels_[name];
  // Who emits holds the channel as it was: what that holds does not go here.
  auto more = now ? std::make_shared<Channel>(*now) : std::make_shared<Channel>(name);
  more->listeners.push_back(std::move(listener));
  replace(name, now, std::move(more));
}

BusState::WhileItFails::WhileItFails(BusState& bus) {
  if (std::uncaught_exceptions() > 0) others_ = bus.remote();
  if (others_) others_->begin_to_fail();
}

BusState::WhileItFails::~WhileItFails() {
  if (others_) others_->has_failed();
}

void BusState::off(Listener& listener) {
  const WhileItFails fails(*this);
  remove(listener);
  mark_off(listener);
}

void BusState::remove(const Listener& listener) {
  std::shared_ptr<const void> left;  // Its captures are destroyed without the lock.
  std::shared_ptr<BusRemote> others;
  {
    const std::scoped_lock lock(mutex_);
    if (!take_out(listener, left) || listener.codec == nullptr) return;
    others = remote_;
    retained_.forget_unheard([this](const std::string& name) { return is_heard(name); });
  }
  if (others) others->want_not(listener.event);
}

bool BusState::take_out(const Listener& listener, std::shared_ptr<const void>& left) {
  const auto is_it = [&](const auto& it) { return it.get() == &listener; };
  if (listener.is_pattern) {
    const auto at = std::ranges::find_if(patterns_, is_it);
    if (at == patterns_.end()) return false;
    left = std::move(*at);
    patterns_.erase(at);
    any_patterns_ = !patterns_.empty();
    return true;
  }
  const auto found = channels_.find(listener.event);
  if (found == channels_.end()) return false;
  const std::shared_ptr<const Channel> before = found->second;
  left = before;
  auto rest = std::make_shared<Channel>(*before);
  if (std::erase_if(rest->listeners, is_it) == 0) return false;
  replace(before->name, found->second, std::move(rest));
  return true;
}

std::size_t BusState::off(std::string_view pattern) {
  const WhileItFails fails(*this);
  const std::string glob(pattern);
  std::vector<std::shared_ptr<Listener>> gone;
  std::shared_ptr<BusRemote> others;
  {
    const std::scoped_lock lock(mutex_);
    others = remote_;
    std::erase_if(patterns_, [&](const auto& listener) {
      if (listener->event != glob && fnmatch(glob.c_str(), listener->event.c_str(), 0) != 0) {
        return false;
      }
      gone.push_back(listener);
      return true;
    });
    any_patterns_ = !patterns_.empty();
    std::erase_if(channels_, [&](const auto& entry) {
      if (entry.first != glob && fnmatch(glob.c_str(), entry.first.c_str(), 0) != 0) return false;
      const auto& listeners = entry.second->listeners;
      gone.insert(gone.end(), listeners.begin(), listeners.end());
      return true;
    });
    changes_.fetch_add(1, std::memory_order_release);
    retained_.forget_unheard([this](const std::string& name) { return is_heard(name); });
  }
  for (const auto& listener : gone) {
    if (others && listener->codec != nullptr) others->want_not(listener->event);
    mark_off(*listener);
  }
  return gone.size();
}

BusState::Recent& BusState::recent_of_this_thread(const EventName& name) {
  constexpr std::size_t kRemembered = 8;
  static thread_local std::array<Recent, kRemembered> all;
  return all[name.hash % kRemembered];
}

const BusState::Channel* BusState::listeners_of(const EventName& name, Recent& recent,
                                                std::shared_ptr<const Channel>& held) {
  if (recent.bus == id_ && recent.hash == name.hash &&
      recent.changes == changes_.load(std::memory_order_acquire) &&
      recent.channel->name == name.text) {
    return recent.channel.get();
  }
  const std::scoped_lock lock(mutex_);
  const auto found = channels_.find(name);
  if (found == channels_.end()) return nullptr;
  held = found->second;
  if (recent.emissions > 0) return held.get();
  // The remembered channel is destroyed with `held`, when nothing here is in use any more: its
  // destructor may emit.
  held = std::exchange(recent.channel, held);
  recent.bus = id_;
  recent.changes = changes_.load();
  recent.hash = name.hash;
  return recent.channel.get();
}

std::size_t BusState::emit(const Emission& emission, Reach reach) {
  if (stopped_.load(std::memory_order_acquire)) [[unlikely]] {
    tell(emission.name.text, "was emitted after the bus had stopped");
    return 0;
  }
  // First to others: here a listener may take as long as it likes.
  if (reach.others) emit_to_others(emission, reach);
  if (!reach.here) return 0;
  if (reach.retained && emission.codec != nullptr) [[unlikely]]
    return emit_retained_here(emission);
  return emit_here(emission);
}

void BusState::notify(const Emission& emission) {
  if (!stopped_.load(std::memory_order_acquire)) emit_here(emission);
}

std::size_t BusState::emit_here(const Emission& emission) {
  if (any_patterns_.load(std::memory_order_relaxed)) [[unlikely]]
    emit_to_patterns(emission);
  const EventName& name = emission.name;
  Recent& recent = recent_of_this_thread(name);
  std::shared_ptr<const Channel> held;
  const Channel* const channel = listeners_of(name, recent, held);
  if (channel == nullptr) return 0;
  const InUse in_use(recent.emissions);
  std::size_t receivers = 0;
  for (const auto& listener : channel->listeners) {
    if (deliver(*listener, emission.type, emission.payload)) ++receivers;
  }
  return receivers;
}

bool BusState::deliver(Listener& listener, const PayloadType& type, const void* payload) {
  listener.late.is_overtaken(listener.event);
  if (listener.type != &type) {
    tell(listener.event,
         fmt::format("carries {}, and a listener takes {}", type.name, listener.type->name));
    return false;
  }
  if (listener.once) {
    if (listener.claimed.exchange(true)) return false;
    remove(listener);
  }
  if (listener.queue == nullptr) {
    call_here(listener, payload);
    return true;
  }
  auto taken = EventQueue::Taken::Closed;
  try {
    taken = listener.queue->push(listener, type, payload);
  } catch (...) {
    tell(listener.event, std::current_exception());
    return false;
  }
  if (taken == EventQueue::Taken::Closed) tell(listener.event, "came when its queue was closed");
  if (taken == EventQueue::Taken::WouldWaitForItself) {
    tell(listener.event, "found its queue full, in a listener of that queue");
  }
  return taken == EventQueue::Taken::Yes;
}

void BusState::call_here(Listener& listener, const void* payload) const {
  const CallHere here(listener);
  if (!here.may()) return;
  std::optional<InUse> in_remote;
  if (listener.codec != nullptr) in_remote.emplace(in_remote_listeners);
  call(listener, payload);
  // Nobody calls it again; what it holds goes with this call.
  if (listener.once) listener.calls.fetch_or(Listener::kOff);
}

bool BusState::is_in_a_listener() { return in_listeners > 0; }

bool BusState::is_in_a_remote_listener() { return in_remote_listeners > 0; }

void BusState::call(Listener& listener, const void* payload) const {
  const InUse in_it(in_listeners);
  try {
    listener.call(payload);
  } catch (...) {
    tell(listener.event, std::current_exception());
  }
}

void BusState::tell(std::string_view event, const std::exception_ptr& error) const {
  if (on_error_) return on_error_(event, error);
  std::fputs(
      fmt::format("trainyard: event '{}': {}\n", event, pipeline::full_text_of(error)).c_str(),
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

void BusState::cut_waits_short() {
  const auto begin = [this] {
    const std::scoped_lock lock(mutex_);
    ++cuts_;
    return cut_short_;
  };
  begin().request_stop();  // Without the lock: it calls those who wait.
}

void BusState::let_waits_be() {
  const std::scoped_lock lock(mutex_);
  if (--cuts_ == 0) cut_short_ = std::stop_source();
}

std::stop_token BusState::waits_cut_short() {
  const std::scoped_lock lock(mutex_);
  return cut_short_.get_token();
}

void BusState::end() {
  // Without the lock: their listeners may use the bus to the last. Nobody makes more of them now.
  for (const auto& queue : queues_) queue->end();
  off("*");
}

std::size_t BusState::stop(Timeout drain_at_most) {
  std::vector<EventQueue*> queues;
  std::shared_ptr<BusRemote> others;
  {
    const std::scoped_lock lock(mutex_);
    if (stopped_.exchange(true)) return 0;
    for (const auto& queue : queues_) queues.push_back(queue.get());
    others = std::exchange(remote_, nullptr);
  }
  if (others) others->bus_stopped(*this);
  const auto until = std::chrono::steady_clock::now() + drain_at_most.time();
  std::size_t left = 0;
  for (EventQueue* queue : queues) {
    const auto rest = std::max<std::chrono::nanoseconds>(until - std::chrono::steady_clock::now(),
                                                         std::chrono::nanoseconds(0));
    left += queue->close(rest, [this](const EventQueue::Left& events) {
      for (const auto& [event, count] : events) {
        tell(event,
             fmt::format("{} of them waited in a queue when the time to stop was over", count));
      }
    });
  }
  ended_.request_stop();
  return left;
}

}  // namespace trainyard::detail
