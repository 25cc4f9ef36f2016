#include "pipeline/event_queue.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>

#include "base/check.h"
#include "pipeline/bus_state.h"
#include "trainyard/event.h"

namespace trainyard {
namespace {

/// So many are delivered before those who wait for room hear of it.
constexpr std::size_t kAtOnce = 256;

constexpr auto kNever = std::numeric_limits<std::chrono::nanoseconds::rep>::max();

std::chrono::nanoseconds::rep now() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

EventQueue::EventQueue(std::size_t events_max, Deliver deliver)
    : deliver_(std::move(deliver)), ring_(std::max<std::size_t>(events_max, 1)), until_(kNever) {
  thread_ = std::thread([this] { work(); });
}

EventQueue::~EventQueue() {
  check(!on_its_thread(), "that a bus is not destroyed by one of its listeners");
  {
    const std::scoped_lock lock(mutex_);
    closed_ = true;
    until_ = 0;
  }
  came_.notify_all();
  went_.notify_all();
  thread_.join();
}

EventQueue::Taken EventQueue::push(std::shared_ptr<detail::Listener> listener,
                                   const detail::PayloadType& type, const void* payload) {
  std::unique_lock lock(mutex_);
  if (count_ == ring_.size() && !closed_) {
    if (on_its_thread()) return Taken::WouldWaitForItself;
    ++pushing_;
    went_.wait(lock, [&] { return count_ < ring_.size() || closed_; });
    --pushing_;
  }
  if (closed_) return Taken::Closed;
  Waiting& place = ring_[(first_ + count_) % ring_.size()];
  keep(place, type, payload);
  place.listener = std::move(listener);
  ++count_;
  if (idle_) came_.notify_one();
  return Taken::Yes;
}

void EventQueue::keep(Waiting& place, const detail::PayloadType& type, const void* payload) {
  const bool fits = type.size <= sizeof(place.near) && type.alignment <= alignof(std::max_align_t);
  void* const room =
      fits ? place.near : ::operator new(type.size, std::align_val_t(type.alignment));
  try {
    type.copy(room, payload);
  } catch (...) {
    if (!fits) ::operator delete(room, std::align_val_t(type.alignment));
    throw;
  }
  place.type = &type;
  place.payload = room;
}

void EventQueue::drop(Waiting& place) noexcept {
  place.type->destroy(place.payload);
  if (place.payload != place.near) {
    ::operator delete(place.payload, std::align_val_t(place.type->alignment));
  }
  place.listener.reset();
}

void EventQueue::work() {
  std::unique_lock lock(mutex_);
  while (!given_up()) {
    if (count_ > 0) {
      deliver_some(lock);
    } else if (closed_) {
      break;
    } else {
      idle_ = true;
      came_.wait(lock, [&] { return count_ > 0 || closed_; });
      idle_ = false;
    }
  }
  const auto tell = std::exchange(left_, nullptr);
  // Nobody adds to what waits any more.
  lock.unlock();
  const Left left = drop_all();
  if (tell && !left.empty()) tell(left);
}

bool EventQueue::given_up() const {
  const auto until = until_.load(std::memory_order_relaxed);
  return until != kNever && now() >= until;
}

void EventQueue::deliver_some(std::unique_lock<std::mutex>& lock) {
  const std::size_t some = std::min(count_, kAtOnce);
  lock.unlock();
  std::size_t done = 0;
  while (done < some && !given_up()) {
    Waiting& place = ring_[(first_ + done) % ring_.size()];
    deliver_(*place.listener, place.payload);
    drop(place);
    delivered_.store(++done, std::memory_order_relaxed);
  }
  lock.lock();
  first_ = (first_ + done) % ring_.size();
  count_ -= done;
  delivered_.store(0, std::memory_order_relaxed);
  if (pushing_ > 0 || closed_) went_.notify_all();
}

EventQueue::Left EventQueue::drop_all() {
  Left left;
  for (; count_ > 0; --count_) {
    Waiting& place = ring_[first_];
    ++left[place.listener->event];
    drop(place);
    first_ = (first_ + 1) % ring_.size();
  }
  return left;
}

std::size_t EventQueue::close(std::chrono::nanoseconds at_most,
                              std::function<void(const Left&)> left) {
  std::unique_lock lock(mutex_);
  if (closed_) return 0;
  closed_ = true;
  until_ = now() + at_most.count();
  left_ = std::move(left);
  came_.notify_all();
  went_.notify_all();
  if (on_its_thread()) return 0;
  went_.wait_for(lock, at_most, [&] { return count_ == 0; });
  return count_ - delivered_;
}

}  // namespace trainyard
