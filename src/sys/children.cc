#include "sys/children.h"

#include <array>
#include <charconv>
#include <cstddef>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

namespace trainyard::sys {

ChildList::ChildList()
    : file_(::open(fmt::format("/proc/self/task/{}/children", ::gettid()).c_str(),
                   O_RDONLY | O_CLOEXEC)) {}

std::vector<pid_t> ChildList::read() {
  std::vector<pid_t> children;
  if (!file_.is_open()) {
    for (const ProcessStat& process : scan_.read_all()) {
      if (process.parent == ::getpid()) children.push_back(static_cast<pid_t>(process.pid));
    }
    return children;
  }
  std::string text;
  std::array<char, 4096> chunk{};
  for (;;) {
    const ssize_t got =
        ::pread(file_.get(), chunk.data(), chunk.size(), static_cast<off_t>(text.size()));
    if (got <= 0) break;
    text.append(chunk.data(), static_cast<std::size_t>(got));
  }
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    pid_t pid = 0;
    const auto [rest, error] = std::from_chars(at, end, pid);
    if (error == std::errc{}) children.push_back(pid);
    at = rest + 1;
  }
  return children;
}

}  // namespace trainyard::sys
