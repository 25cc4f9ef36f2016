#include "sys/waker.h"

#include <cstdint>

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/check.h"

namespace trainyard::sys {

Waker::Waker() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  check(event_.is_open(), "a descriptor to wake the loop with");
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

}  // namespace trainyard::sys
