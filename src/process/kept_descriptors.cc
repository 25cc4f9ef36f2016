#include "process/kept_descriptors.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/check.h"
#include "sys/descriptor.h"

namespace trainyard::process {

sys::Descriptor keep_only(sys::Descriptor kept, bool keeps_streams) {
  constexpr int kPlace = STDERR_FILENO + 1;
  // Out of the way of 0 to 2, which may have been free.
  const int high = ::fcntl(kept.get(), F_DUPFD_CLOEXEC, kPlace + 1);
  const int input = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int output = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  check(high >= 0 && input >= 0 && output >= 0, "descriptors for the keeper");
  const auto keep = [&](int standard) {
    // Where it was closed it may be one of the two that were just opened.
    return ::fcntl(standard, F_GETFD) >= 0 && input != standard && output != standard;
  };
  if (!keeps_streams || !keep(STDIN_FILENO)) ::dup2(input, STDIN_FILENO);
  if (!keep(STDERR_FILENO)) ::dup2(output, STDERR_FILENO);
  if (!keeps_streams || !keep(STDOUT_FILENO)) ::dup2(output, STDOUT_FILENO);
  static_cast<void>(kept.release());
  ::dup3(high, kPlace, O_CLOEXEC);
  ::close_range(kPlace + 1, ~0U, 0);
  return sys::Descriptor(kPlace);
}

void let_go_of_streams() {
  const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int standard = 0; nowhere >= 0 && standard <= STDERR_FILENO; ++standard) {
    ::dup2(nowhere, standard);
  }
  if (nowhere > STDERR_FILENO) ::close(nowhere);
}

}  // namespace trainyard::process
