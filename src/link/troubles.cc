#include "link/troubles.h"

#include <fmt/format.h>

#include "sys/event_loop.h"

namespace trainyard::link {

std::optional<std::string> Troubles::tell(std::string what) {
  const Duration now = sys::EventLoop::now();
  if (!begin_ || now - *begin_ >= window_) {
    begin_ = now;
    told_ = 0;
  }
  if (told_ == max_) {
    ++held_back_;
    return std::nullopt;
  }
  ++told_;
  if (held_back_ > 0) what += fmt::format(" (and {} more before)", held_back_);
  held_back_ = 0;
  return what;
}

}  // namespace trainyard::link
