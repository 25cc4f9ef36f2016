#include "sys/waker.h"

#include <cerrno>
#include <cstdint>
#include <expected>

#include <sys/eventfd.h>
#include <unistd.h>

namespace trainyard::sys {

Result<Waker> Waker::make() {
  Descriptor event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (event.is_open()) return Waker(std::move(event));
  return std::unexpected(system_error("cannot wake another thread", errno));
}

void Waker::wake() const {
  const std::uint64_t one = 1;
  // It fails only where it has been woken more often than anybody can count: it is awake.
  static_cast<void>(::write(event_.get(), &one, sizeof one));
}

void Waker::drain() const {
  std::uint64_t count = 0;
  static_cast<void>(::read(event_.get(), &count, sizeof count));
}

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
