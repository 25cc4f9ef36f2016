#include "pipeline/event_queue.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <limits>
#include <new>
#include <utility>

#include "base/check.h"
#include "pipeline/bus_state.h"

namespace trainyard {
namespace {

/// So often its thread looks for more before it goes to sleep: some tens of microseconds, what it
/// costs to be woken. Whoever emits in bursts wakes it once a burst.
constexpr int kLooks = 100;

constexpr auto kNever = std::numeric_limits<std::chrono::nanoseconds::rep>::max();

/// A place that will be written in so many pushes is fetched from the other thread's cache now: the
/// way there and back takes longer than all the rest.
constexpr std::uint64_t kAhead = 4;

void own_soon([[maybe_unused]] const void* place) {
#ifdef __x86_64__
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(place)));
#endif
}

/// One more waits, for as long as it lives: a copy of an event may throw.
class Waits {
 public:
  explicit Waits(std::atomic<int>& count) : count_(count) { ++count_; }
  Waits(const Waits&) = delete;
  Waits& operator=(const Waits&) = delete;
  ~Waits() { --count_; }

 private:
  std::atomic<int>& count_;
};

std::chrono::nanoseconds::rep now() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

EventQueue::EventQueue(std::size_t events_max, Deliver deliver)
    : deliver_(std::move(deliver)),
      ring_(std::bit_ceil(std::max<std::size_t>(events_max, 2))),
      mask_(ring_.size() - 1),
      until_(kNever) {
  for (std::size_t i = 0; i < ring_.size(); ++i) ring_[i].ticket = i;
  thread_ = std::thread([this] { work(); });
}

void EventQueue::end() {
  if (!thread_.joinable()) return;
  check(!on_its_thread(), "that a bus is not destroyed by one of its listeners");
  {
    const std::scoped_lock lock(mutex_);
    last_ |= kClosed;
    until_ = 0;
  }
  came_.notify_all();
  went_.notify_all();
  thread_.join();
}

void EventQueue::keep(std::shared_ptr<detail::Listener> listener) {
  std::vector<Held> gone;  // Their captures are destroyed without the lock.
  const std::scoped_lock lock(mutex_);
  const auto first_gone = std::ranges::partition(held_, [this](Held& held) {
                            if (held.listener.use_count() > 1) return true;
                            // Nobody else has it, so nobody pushes for it any more; this sees all
                            // that was done with it.
                            std::shared_ptr(held.listener).reset();
                            if (!held.until) held.until = last_.load() & ~kClosed;
                            return first_.load(std::memory_order_acquire) < *held.until;
                          }).begin();
  gone.assign(std::make_move_iterator(first_gone), std::make_move_iterator(held_.end()));
  held_.erase(first_gone, held_.end());
  held_.push_back({.listener = std::move(listener)});
}

void EventQueue::wait_until_out_of(const detail::Listener& listener) const {
  while (in_.load() == &listener) in_.wait(&listener);
}

EventQueue::Taken EventQueue::push(detail::Listener& listener, const detail::PayloadType& type,
                                   const void* payload) {
  Pushed pushed = try_push(listener, type, payload);
  if (pushed == Pushed::Full) {
    if (on_its_thread()) return Taken::WouldWaitForItself;
    std::unique_lock lock(mutex_);
    const Waits waits(pushing_);
    went_.wait(lock, [&] {
      pushed = try_push(listener, type, payload);
      return pushed != Pushed::Full;
    });
  }
  if (pushed == Pushed::Closed) return Taken::Closed;
  if (idle_.load()) {
    const std::scoped_lock lock(mutex_);
    came_.notify_one();
  }
  return Taken::Yes;
}

EventQueue::Pushed EventQueue::try_push(detail::Listener& listener, const detail::PayloadType& type,
                                        const void* payload) {
  std::uint64_t number = last_.load(std::memory_order_relaxed);
  for (;;) {
    if ((number & kClosed) != 0) return Pushed::Closed;
    const std::uint64_t ticket = ring_[number & mask_].ticket.load(std::memory_order_acquire);
    if (ticket < number) return Pushed::Full;
    if (ticket == number && last_.compare_exchange_weak(number, number + 1)) break;
    if (ticket > number) number = last_.load(std::memory_order_relaxed);
  }
  own_soon(&ring_[(number + kAhead) & mask_]);
  Slot& slot = ring_[number & mask_];
  slot.listener = nullptr;
  // Its thread says that it is idle before it looks a last time; push() looks after this store.
  const auto publish = [&] { slot.ticket.store(number + 1); };
  try {
    copy_into(slot, type, payload);
  } catch (...) {
    publish();
    throw;
  }
  slot.listener = &listener;
  publish();
  return Pushed::Yes;
}

bool EventQueue::is_near(const detail::PayloadType& type) {
  return type.size <= sizeof(Slot::near) && type.alignment <= 8;
}

void* EventQueue::payload_of(Slot& slot) {
  return is_near(*slot.type) ? slot.near.data() : *reinterpret_cast<void**>(slot.near.data());
}

void EventQueue::copy_into(Slot& slot, const detail::PayloadType& type, const void* payload) {
  slot.type = &type;
  if (is_near(type)) return type.copy(slot.near.data(), payload);
  void* const room = ::operator new(type.size, std::align_val_t(type.alignment));
  try {
    type.copy(room, payload);
  } catch (...) {
    ::operator delete(room, std::align_val_t(type.alignment));
    throw;
  }
  ::new (static_cast<void*>(slot.near.data())) void*(room);
}

void EventQueue::drop(Slot& slot) noexcept {
  void* const payload = payload_of(slot);
  slot.type->destroy(payload);
  if (!is_near(*slot.type)) ::operator delete(payload, std::align_val_t(slot.type->alignment));
}

void EventQueue::work() {
  int looks = 0;
  while (!given_up()) {
    if (deliver_one()) {
      looks = 0;
      continue;
    }
    const bool closed = (last_.load() & kClosed) != 0;
    if (closed && waiting() == 0) break;
    if (closed || ++looks < kLooks) {
      std::this_thread::yield();  // Perhaps who pushes has no CPU.
    } else {
      wait_for_more();
      looks = 0;
    }
  }
  enter(nullptr);
  tell_left();
}

bool EventQueue::something_waits() const {
  const std::uint64_t number = first_.load(std::memory_order_relaxed);
  return ring_[number & mask_].ticket.load() == number + 1;
}

std::uint64_t EventQueue::waiting() const { return (last_.load() & ~kClosed) - first_.load(); }

bool EventQueue::given_up() const {
  const auto until = until_.load(std::memory_order_relaxed);
  return until != kNever && now() >= until;
}

bool EventQueue::deliver_one() {
  if (!something_waits()) {
    enter(nullptr);
    return false;
  }
  Slot& slot = ring_[first_.load(std::memory_order_relaxed) & mask_];
  if (slot.listener != nullptr) {
    enter(slot.listener);
    // Said after entering it, as off() is said before looking who is in it.
    if ((slot.listener->calls.load() & detail::Listener::kOff) == 0) {
      deliver_(*slot.listener, payload_of(slot));
    } else {
      enter(nullptr);
    }
    drop(slot);
  }
  free_first();
  return true;
}

void EventQueue::enter(const detail::Listener* listener) {
  if (in_.load(std::memory_order_relaxed) == listener) return;
  in_.store(listener);
  in_.notify_all();
}

void EventQueue::free_first() {
  const std::uint64_t number = first_.load(std::memory_order_relaxed);
  ring_[number & mask_].ticket.store(number + ring_.size(), std::memory_order_release);
  first_.store(number + 1, std::memory_order_release);
  // Not for each place: who waits would be woken for every event.
  if (pushing_.load(std::memory_order_relaxed) > 0 && ++freed_ >= ring_.size() / 2) {
    freed_ = 0;
    const std::scoped_lock lock(mutex_);
    went_.notify_all();
  }
}

void EventQueue::wait_for_more() {
  std::unique_lock lock(mutex_);
  idle_.store(true);
  went_.notify_all();
  came_.wait(lock, [this] { return something_waits() || (last_.load() & kClosed) != 0; });
  idle_.store(false);
}

void EventQueue::tell_left() {
  Left left;
  for (; waiting() > 0; free_first()) {
    // Who has a place already is about to fill it.
    while (!something_waits()) std::this_thread::yield();
    Slot& slot = ring_[first_.load() & mask_];
    if (slot.listener == nullptr) continue;
    ++left[slot.listener->event];
    drop(slot);
  }
  std::unique_lock lock(mutex_);
  const auto tell = std::exchange(left_, nullptr);
  ended_ = true;
  went_.notify_all();
  lock.unlock();
  if (tell && !left.empty()) tell(left);
}

std::size_t EventQueue::close(std::chrono::nanoseconds at_most,
                              std::function<void(const Left&)> left) {
  std::unique_lock lock(mutex_);
  if ((last_.load() & kClosed) != 0) return 0;
  last_ |= kClosed;
  until_ = now() + at_most.count();
  left_ = std::move(left);
  came_.notify_all();
  went_.notify_all();
  if (on_its_thread()) return 0;
  went_.wait_for(lock, at_most, [this] { return ended_; });
  return waiting();
}

}  // namespace trainyard
