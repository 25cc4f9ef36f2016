// Whether tasks may start on a GPU that does not answer at times, by the readings of one run. A GPU
// that drops out and comes back would lose the tasks that start on it, again and again: it is avoided
// until it has answered for a quiet time, which doubles with each drop-out. After the first quiet
// time it is a last resort. Pure.
#pragma once

#include <optional>

#include "base/time.h"

namespace trainyard::model {

class GpuPresence {
 public:
  /// The quiet time does not double beyond this.
  static constexpr Duration kQuietTimeMax{3'600'000};

  /// `quiet_time` is that of the first drop-out.
  explicit GpuPresence(Duration quiet_time) : quiet_time_first_(quiet_time) {}

  /// Adds a reading. Time does not go back.
  void see(bool answers, Instant at);

  /// True from a drop-out until the end of its quiet time.
  [[nodiscard]] bool is_avoided() const { return gone_since_.has_value(); }
  /// True while the GPU is avoided although it has answered for the first quiet time: it is left to
  /// tasks that fit on no other GPU.
  [[nodiscard]] bool is_last_resort() const { return is_last_resort_; }
  /// The end of the quiet time; nothing while the GPU does not answer or is not avoided.
  [[nodiscard]] std::optional<Instant> avoided_until() const;
  /// Start of the present absence; nothing while the GPU answers. An absence continues if the GPU
  /// answered in between for less than the first quiet time.
  [[nodiscard]] std::optional<Instant> gone_since() const {
    return answers_since_ ? std::nullopt : gone_since_;
  }
  /// Number of drop-outs.
  [[nodiscard]] int drop_outs() const { return drop_outs_; }

 private:
  Duration quiet_time_first_;
  Duration quiet_time_ = quiet_time_first_;  ///< After the last drop-out.
  int drop_outs_ = 0;
  bool is_last_resort_ = false;
  std::optional<Instant> gone_since_;     ///< Set while the GPU is avoided.
  std::optional<Instant> answers_since_;  ///< Set during the quiet time.
};

}  // namespace trainyard::model
