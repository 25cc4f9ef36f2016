#include "sys/output.h"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "sys/event_loop.h"

namespace trainyard::sys {
namespace {

constexpr std::string_view kLeftOut = "\n(lines are left out: they were not read for too long)\n";

bool may_wait(int descriptor) {
  struct stat about{};
  return ::fstat(descriptor, &about) == 0 && !S_ISREG(about.st_mode);
}

/// Sockets cannot be opened once more.
Descriptor opened_once_more(int descriptor) {
  const std::string path = fmt::format("/proc/self/fd/{}", descriptor);
  return Descriptor(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

bool has_room(int descriptor, Duration patience) {
  pollfd wait{.fd = descriptor, .events = POLLOUT, .revents = 0};
  return ::poll(&wait, 1, static_cast<int>(patience.count())) != 0;
}

}  // namespace

Output::Output(int descriptor) : descriptor_(descriptor), may_wait_(may_wait(descriptor)) {
  if (!may_wait_) return;
  own_ = opened_once_more(descriptor);
  if (!own_.is_open()) return;
  descriptor_ = own_.get();
  may_wait_ = false;
}

void Output::write(std::string_view text) {
  write_kept();
  if (kept_.empty()) {
    while (!text.empty() && write_some(text)) continue;
  }
  if (text.empty()) return;
  if (left_out_ || kept_.size() + text.size() > kKeptMax) {
    left_out_ = true;
    return;
  }
  kept_ += text;
}

void Output::write_kept() {
  std::string_view rest = kept_;
  while (!rest.empty() && write_some(rest)) continue;
  kept_.erase(0, kept_.size() - rest.size());
  if (!kept_.empty() || !left_out_) return;
  left_out_ = false;
  kept_ = kLeftOut;
  write_kept();
}

bool Output::write_some(std::string_view& text) const {
  // So little that it fits where there is room at all: all that can be done for a socket.
  constexpr std::size_t kLittle = 256;
  if (may_wait_ && !has_room(descriptor_, Duration{0})) return false;
  const std::size_t piece = may_wait_ ? std::min(text.size(), kLittle) : text.size();
  const ssize_t written = ::write(descriptor_, text.data(), piece);
  if (written >= 0) {
    text.remove_prefix(static_cast<std::size_t>(written));
    return true;
  }
  if (errno == EINTR) return true;
  if (errno == EAGAIN) return false;
  text = {};
  return true;
}

void Output::finish(Duration patience) {
  const Duration end = EventLoop::now() + patience;
  write_kept();
  for (Duration left = patience; !kept_.empty() && left > Duration{0};
       left = end - EventLoop::now()) {
    static_cast<void>(has_room(descriptor_, left));
    write_kept();
  }
}

}  // namespace trainyard::sys
