// The last event of each name that was emitted for later listeners, too (Reach::retained), as one
// bus knows it; and the part that a new listener has yet to receive.
//
// RetainedEvents: the owner locks it. LateEvents: any thread.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "trainyard/detail/codec.h"

namespace trainyard::pipeline {

struct RetainedEvent {
  std::string type;  ///< As Codec::type.
  detail::RemotePayload payload;
  bool is_of_others = false;  ///< It came from another process.
};

class RetainedEvents {
 public:
  using All = std::map<std::string, std::shared_ptr<const RetainedEvent>, std::less<>>;

  void keep(std::string_view name, RetainedEvent event);
  /// The retained events of this name, or those whose names match if it is a pattern.
  [[nodiscard]] All matching(const std::string& name, bool is_pattern) const;
  /// Removes events of other processes without a listener: their successors do not come here.
  void forget_unheard(const std::function<bool(const std::string& name)>& is_heard);

 private:
  All all_;
};

/// The retained events that a new listener has yet to receive. An event that is emitted meanwhile
/// is received after them, or replaces the one of its name.
class LateEvents {
 public:
  /// Before anybody else knows the listener.
  void expect(RetainedEvents::All events);
  /// Calls `hear` for each of them that nothing newer has taken the place of.
  using Hear = std::function<void(const std::string& name, const RetainedEvent& event)>;
  void hear(const Hear& hear);
  /// Drops the earlier event of this name, as a newer one is about to be delivered. Waits while
  /// another thread delivers the earlier one.
  void is_overtaken(std::string_view name) {
    if (any_.load(std::memory_order_acquire)) [[unlikely]]
      drop(name);
  }

 private:
  void drop(std::string_view name);

  std::atomic<bool> any_ = false;
  std::recursive_mutex mutex_;  ///< A listener of one may emit another.
  RetainedEvents::All events_;
};

}  // namespace trainyard::pipeline
