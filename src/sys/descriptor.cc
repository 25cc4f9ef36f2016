#include "sys/descriptor.h"

#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/result.h"

namespace trainyard::sys {

Descriptor Descriptor::duplicate(int descriptor) {
  return Descriptor(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
}

void Descriptor::close() {
  // An error of close() on a descriptor that was only read, or whose writes were checked, tells
  // nothing that anybody could act on.
  if (is_open()) static_cast<void>(::close(release()));
}

void open_standard_descriptors() {
  // open() takes the lowest number that is free.
  int opened = 0;
  while (opened >= 0 && opened <= STDERR_FILENO) opened = ::open("/dev/null", O_RDWR);
  Descriptor(opened).close();
}

std::string error_text(int error_number) {
  if (error_number == EMFILE) return "too many open files, see 'ulimit -n'";
  std::string text = std::generic_category().message(error_number);
  // "No such file" reads as the end of a sentence; "I/O" and the like would stay.
  if (text.size() > 1 && text[0] >= 'A' && text[0] <= 'Z' && text[1] >= 'a' && text[1] <= 'z') {
    text[0] = static_cast<char>(text[0] | 0x20);
  }
  return text;
}

bool is_of_machine(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
    case EAGAIN:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case EROFS:
    case EIO:
      return true;
    default:
      return false;
  }
}

Error system_error(std::string_view what, int error_number) {
  return {.message = fmt::format("{}: {}", what, error_text(error_number)),
          .of_machine = is_of_machine(error_number)};
}

}  // namespace trainyard::sys
