#include "model/gpu_presence.h"

#include <algorithm>
#include <utility>

namespace trainyard::model {

void GpuPresence::see(bool answers, Instant at) {
  is_last_resort_ = false;
  if (!answers) {
    const std::optional<Instant> back = std::exchange(answers_since_, std::nullopt);
    if (gone_since_ && !back) return;
    if (++drop_outs_ > 1) {
      quiet_time_ = std::max(quiet_time_, std::min(2 * quiet_time_, kQuietTimeMax));
    }
    const bool was_back_briefly = back && at - *back < quiet_time_first_;
    if (!was_back_briefly) gone_since_ = at;
    return;
  }
  if (!gone_since_) return;
  if (!answers_since_) answers_since_ = at;
  if (at < *avoided_until()) {
    is_last_resort_ = at - *answers_since_ >= quiet_time_first_;
    return;
  }
  gone_since_.reset();
  answers_since_.reset();
}

std::optional<Instant> GpuPresence::avoided_until() const {
  if (!answers_since_) return std::nullopt;
  return *answers_since_ + quiet_time_;
}

}  // namespace trainyard::model
