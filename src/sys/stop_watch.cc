#include "sys/stop_watch.h"

#include <utility>

namespace trainyard::sys {

StopWatch::StopWatch(EventLoop& loop, const std::stop_token& stop, EventLoop::Callback stopped)
    : stopped_(std::make_shared<EventLoop::Callback>(std::move(stopped))) {
  callback_.emplace(stop, [&loop, weak = std::weak_ptr(stopped_)] {
    loop.post([weak] {
      // Nothing when the watch has gone in between.
      if (const auto callback = weak.lock()) (*callback)();
    });
  });
}

}  // namespace trainyard::sys
