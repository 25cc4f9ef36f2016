#include "process/kept_descriptors.h"

#include <cerrno>
#include <cstdlib>
#include <string>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace trainyard::process {

sys::Descriptor keep_only(sys::Descriptor kept, const Kept& beside) {
  constexpr int kPlace = STDERR_FILENO + 1;
  static_assert(kHeldPlace == kPlace + 1);
  const bool keeps_streams = beside.streams;
  const bool moves = !beside.inherited;
  // Out of the way of 0 to 2, which may have been free, and of each other.
  const int high = ::fcntl(kept.get(), F_DUPFD_CLOEXEC, kHeldPlace + 1);
  const int held =
      !moves || beside.held < 0 ? -1 : ::fcntl(beside.held, F_DUPFD_CLOEXEC, kHeldPlace + 1);
  const int input = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int output = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (high < 0 || input < 0 || output < 0) end_unstarted(errno);
  const auto keep = [&](int standard) {
    // If it was closed, it may be one of the two that were just opened.
    return ::fcntl(standard, F_GETFD) >= 0 && input != standard && output != standard;
  };
  if (!keeps_streams || !keep(STDIN_FILENO)) ::dup2(input, STDIN_FILENO);
  if (!keep(STDERR_FILENO)) ::dup2(output, STDERR_FILENO);
  if (!keeps_streams || !keep(STDOUT_FILENO)) ::dup2(output, STDOUT_FILENO);
  static_cast<void>(kept.release());
  if (!moves) {
    std::vector<int> stay = *beside.inherited;
    stay.push_back(high);
    stay.push_back(beside.held);
    sys::close_all_but(std::move(stay));
    return sys::Descriptor(high);
  }
  ::dup3(high, kPlace, O_CLOEXEC);
  if (held >= 0) ::dup3(held, kHeldPlace, O_CLOEXEC);
  ::close_range(held >= 0 ? kHeldPlace + 1 : kHeldPlace, ~0U, 0);
  return sys::Descriptor(kPlace);
}

void end_unstarted(int error) {
  const std::string text =
      "trainyard: " + sys::system_error("cannot start the keeper", error).message + "\n";
  static_cast<void>(::write(STDERR_FILENO, text.data(), text.size()));
  ::_exit(EXIT_FAILURE);
}

void let_go_of_streams() {
  const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int standard = 0; nowhere >= 0 && standard <= STDERR_FILENO; ++standard) {
    ::dup2(nowhere, standard);
  }
  if (nowhere > STDERR_FILENO) ::close(nowhere);
}

}  // namespace trainyard::process
