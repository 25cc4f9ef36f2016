#include "sys/writable.h"

#include <poll.h>

namespace trainyard::sys {

bool wait_until_writable(int descriptor, std::chrono::milliseconds at_most) {
  pollfd waiting{.fd = descriptor, .events = POLLOUT, .revents = 0};
  return ::poll(&waiting, 1, static_cast<int>(at_most.count())) > 0;
}

}  // namespace trainyard::sys
