#include "sys/stop_watch.h"

#include <cstdint>
#include <stop_token>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/check.h"
#include "sys/event_loop.h"

namespace trainyard::sys {

StopWatch::StopWatch(EventLoop& loop, const std::stop_token& stop, EventLoop::Callback stopped)
    : loop_(loop), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), stopped_(std::move(stopped)) {
  check(wake_.get() >= 0, "a descriptor to wake the loop with");
  loop_.watch_readable(wake_.get(), [this] {
    loop_.unwatch(wake_.get());
    stopped_();
  });
  callback_.emplace(stop, [descriptor = wake_.get()] {
    const std::uint64_t one = 1;
    check(::write(descriptor, &one, sizeof one) == sizeof one, "a descriptor that can be written");
  });
}

StopWatch::~StopWatch() {
  // First: it waits for the callback where another thread runs it.
  callback_.reset();
  loop_.unwatch(wake_.get());
}

}  // namespace trainyard::sys
