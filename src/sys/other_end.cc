#include "sys/other_end.h"

#include <array>
#include <cerrno>
#include <cstddef>

#include <sys/stat.h>
#include <unistd.h>

namespace trainyard::sys {

bool has_other_end(int descriptor) {
  struct stat about{};
  return ::fstat(descriptor, &about) == 0 && (S_ISFIFO(about.st_mode) || S_ISSOCK(about.st_mode));
}

bool is_other_end_closed(int descriptor) {
  constexpr std::size_t kAtOnce = 65536;
  std::array<char, kAtOnce> forgotten{};
  const ssize_t count = ::read(descriptor, forgotten.data(), forgotten.size());
  if (count < 0) return errno != EAGAIN && errno != EINTR;
  return count == 0;
}

}  // namespace trainyard::sys
