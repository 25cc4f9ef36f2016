#include "sys/pidfd.h"

#include <algorithm>
#include <chrono>

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace trainyard::sys {

// glibc's <sys/pidfd.h> cannot be used from C++ before version 2.37.

Descriptor open_pidfd(std::int64_t pid) {
  return Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, static_cast<int>(pid), 0)));
}

bool wait_until_ended(const Descriptor& pidfd, Duration most) {
  constexpr std::int64_t kLongestWait = 1'000'000'000;
  const auto end = std::chrono::steady_clock::now() + most;
  for (;;) {
    const std::int64_t left =
        std::chrono::ceil<Duration>(end - std::chrono::steady_clock::now()).count();
    pollfd waiting{.fd = pidfd.get(), .events = POLLIN, .revents = 0};
    const int ready =
        ::poll(&waiting, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, kLongestWait)));
    if (ready > 0) return true;
    if (left <= 0) return false;
  }
}

void send_signal(const Descriptor& pidfd, int signal) {
  static_cast<void>(::syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0));
}

}  // namespace trainyard::sys
