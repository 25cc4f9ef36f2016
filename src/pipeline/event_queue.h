// Events on their way to listeners that are called on a thread of their own. Bounded; in order.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "trainyard/event.h"

namespace trainyard {

namespace detail {
struct Listener;
}  // namespace detail

class EventQueue {
 public:
  using Deliver = std::function<void(detail::Listener& listener, const void* payload)>;

  /// Calls `deliver` on its thread, which must not throw.
  EventQueue(std::size_t events_max, Deliver deliver);
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;
  /// Delivers nothing more. Waits for the listener that is being called. Not on its thread.
  ~EventQueue();

  enum class Taken : std::uint8_t { Yes, Closed, WouldWaitForItself };
  /// Copies what it carries. Waits while it is full.
  Taken push(std::shared_ptr<detail::Listener> listener, const detail::PayloadType& type,
             const void* payload);

  /// By name, how many were not delivered.
  using Left = std::map<std::string, std::size_t>;
  /// Takes no more, and delivers what waits for at most so long. Returns how many are left then;
  /// its thread tells `left` which, as soon as it is out of its listener. On that thread it returns
  /// 0 at once.
  std::size_t close(std::chrono::nanoseconds at_most, std::function<void(const Left&)> left);

 private:
  struct Waiting {
    std::shared_ptr<detail::Listener> listener;
    const detail::PayloadType* type = nullptr;
    void* payload = nullptr;  ///< In `near`, or allocated.
    alignas(std::max_align_t) std::byte near[48];
  };
  static void keep(Waiting& place, const detail::PayloadType& type, const void* payload);
  static void drop(Waiting& place) noexcept;
  void work();
  void deliver_some(std::unique_lock<std::mutex>& lock);
  [[nodiscard]] bool given_up() const;
  Left drop_all();
  [[nodiscard]] bool on_its_thread() const { return std::this_thread::get_id() == thread_.get_id(); }

  const Deliver deliver_;
  std::mutex mutex_;
  std::condition_variable came_;
  std::condition_variable went_;
  std::vector<Waiting> ring_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
  int pushing_ = 0;    ///< Threads that wait until there is room.
  bool idle_ = false;  ///< Its thread waits for events.
  bool closed_ = false;
  std::function<void(const Left&)> left_;
  /// Of the first ones, so many have been delivered.
  std::atomic<std::size_t> delivered_ = 0;
  /// When what waits is given up, in the time of the steady clock; as good as never until closed.
  std::atomic<std::chrono::nanoseconds::rep> until_;
  std::thread thread_;  // Last: it uses all of the above.
};

}  // namespace trainyard
