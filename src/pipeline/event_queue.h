// Events on their way to listeners that are called on a thread of their own. Bounded; what one
// thread pushes comes out in its order.
//
// A ring of slots that each say which ticket they are for (D. Vyukov's bounded queue): pushing
// takes no lock, and wakes nobody while the queue's thread is busy.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "trainyard/event.h"

namespace trainyard {

namespace detail {
struct Listener;
}  // namespace detail

// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): what each thread writes lies apart
class EventQueue {
 public:
  /// Called on the queue's thread; must not throw.
  using Deliver = std::function<void(detail::Listener& listener, const void* payload)>;

  /// Holds `events_max`, or what makes it a power of two.
  EventQueue(std::size_t events_max, Deliver deliver);
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;
  ~EventQueue() { end(); }
  /// Delivers nothing more. Waits for the listener that is being called. Not on its thread.
  void end();

  /// Keeps it for as long as events for it may be here. To be done before the first push for it.
  void keep(std::shared_ptr<detail::Listener> listener);
  /// The listener is off: returns when it is not called any more.
  void wait_until_out_of(const detail::Listener& listener) const;

  enum class Taken : std::uint8_t { Yes, Closed, WouldWaitForItself };
  /// Copies what it carries; throws what that throws. Waits while it is full. Who pushes holds the
  /// listener meanwhile, too.
  Taken push(detail::Listener& listener, const detail::PayloadType& type, const void* payload);

  /// By name, how many were not delivered.
  using Left = std::map<std::string, std::size_t>;
  /// Takes no more events, and delivers waiting ones for `at_most`. Returns the number of the rest;
  /// its thread calls `left` with them as soon as its listener returns. On that thread this returns
  /// 0 at once.
  std::size_t close(std::chrono::nanoseconds at_most, std::function<void(const Left&)> left);

 private:
  /// One cache line: it goes from the thread that pushes to the queue's, and back.
  struct alignas(64) Slot {
    std::atomic<std::uint64_t> ticket;  ///< Of the push with that number; one on: of its delivery.
    detail::Listener* listener = nullptr;  ///< None: its payload could not be copied.
    const detail::PayloadType* type = nullptr;
    alignas(8) std::array<std::byte, 40> near;  ///< The payload, or where it is.
  };
  struct Held {
    std::shared_ptr<detail::Listener> listener;
    std::optional<std::uint64_t> until;  ///< Nobody pushes for it from that number on.
  };
  enum class Pushed : std::uint8_t { Yes, Full, Closed };
  Pushed try_push(detail::Listener& listener, const detail::PayloadType& type, const void* payload);
  static bool is_near(const detail::PayloadType& type);
  static void* payload_of(Slot& slot);
  static void copy_into(Slot& slot, const detail::PayloadType& type, const void* payload);
  static void drop(Slot& slot) noexcept;

  void work();
  /// False: nothing waits.
  bool deliver_one();
  void free_first();
  void wait_for_more();
  void tell_left();
  void enter(const detail::Listener* listener);
  [[nodiscard]] bool something_waits() const;
  [[nodiscard]] bool given_up() const;
  [[nodiscard]] std::uint64_t waiting() const;
  [[nodiscard]] bool on_its_thread() const {
    return std::this_thread::get_id() == thread_.get_id();
  }

  /// In `last_`: nothing can be pushed any more.
  static constexpr std::uint64_t kClosed = std::uint64_t{1} << 63U;

  const Deliver deliver_;
  std::vector<Slot> ring_;
  const std::uint64_t mask_;
  alignas(64) std::atomic<std::uint64_t> last_ = 0;   ///< The number of the next push.
  alignas(64) std::atomic<std::uint64_t> first_ = 0;  ///< Of the next delivery; its thread writes.
  /// Whom its thread calls or has just called. Its thread writes.
  std::atomic<const detail::Listener*> in_ = nullptr;
  alignas(64) std::atomic<bool> idle_ = false;  ///< Its thread waits for a push.
  std::atomic<int> pushing_ = 0;                ///< So many wait for room.
  std::size_t freed_ = 0;  ///< Places since waiting pushes were last woken. Its thread's.
  /// When what waits is given up, in the time of the steady clock; as good as never until closed.
  std::atomic<std::chrono::nanoseconds::rep> until_;

  std::mutex mutex_;
  std::condition_variable came_;
  std::condition_variable went_;
  std::vector<Held> held_;                 ///< Guarded.
  std::function<void(const Left&)> left_;  ///< Guarded.
  bool ended_ = false;                     ///< Guarded: all that can be has been delivered.
  std::thread thread_;                     // Last: it uses all of the above.
};

}  // namespace trainyard
