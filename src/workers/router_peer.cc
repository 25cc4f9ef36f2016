#include "workers/router_peer.h"

#include <algorithm>
#include <utility>

namespace trainyard::workers {
namespace {

/// Number of parts of the limit that are acknowledged one by one. Less than one part follows the
/// last request, so a sender never waits for an acknowledgement that does not come.
constexpr std::size_t kParts = 4;

bool is_part(std::size_t amount, std::size_t limit) {
  return amount >= std::max<std::size_t>(1, limit / kParts);
}

}  // namespace

std::optional<std::uint64_t> Credit::use(std::size_t bytes) {
  for (Amount* const each : {&in_flight_, &since_request_}) {
    ++each->events;
    each->bytes += bytes;
  }
  const bool is_due = is_part(since_request_.events, limits_.events_max) ||
                      is_part(since_request_.bytes, limits_.bytes_max);
  if (!is_due) return std::nullopt;
  requested_.push_back(std::exchange(since_request_, {}));
  return acknowledged_ + requested_.size();
}

bool Credit::acknowledge(std::uint64_t number) {
  if (number > acknowledged_ + requested_.size()) return false;
  while (acknowledged_ < number) {
    in_flight_.events -= requested_.front().events;
    in_flight_.bytes -= requested_.front().bytes;
    requested_.pop_front();
    ++acknowledged_;
  }
  return true;
}

}  // namespace trainyard::workers
