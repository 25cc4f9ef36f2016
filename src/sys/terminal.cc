#include "sys/terminal.h"

#include <cerrno>
#include <cstddef>

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/utf8.h"
#include "sys/environment.h"

namespace trainyard::sys {

bool is_terminal(int descriptor) { return isatty(descriptor) == 1; }

bool can_redraw(int descriptor) { return is_terminal(descriptor) && variable("TERM") != "dumb"; }

bool takes_colour(int descriptor) { return can_redraw(descriptor) && !variable("NO_COLOR"); }

int terminal_width(int descriptor) {
  winsize size{};
  constexpr int kUsual = 80;
  if (ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUsual;
  return size.ws_col;
}

std::error_code write_text(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(descriptor, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno == EPIPE) return {};
    if (errno != EAGAIN) return {errno, std::generic_category()};
    pollfd wait{.fd = descriptor, .events = POLLOUT, .revents = 0};
    if (poll(&wait, 1, -1) < 0 && errno != EINTR) return {errno, std::generic_category()};
  }
  return {};
}

void write_standard_error(std::string_view text) {
  static_cast<void>(write_text(kStandardError, visible_lines(text)));
}

}  // namespace trainyard::sys
