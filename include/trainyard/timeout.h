// How long a call waits at most: any duration. More than a year, as the max() of every kind of
// duration, means for ever. A value; any thread.
#pragma once

#include <chrono>

namespace trainyard {

class Timeout {
 public:
  template <class Rep, class Period>
  // NOLINTNEXTLINE(google-explicit-constructor): it stands for a duration
  constexpr Timeout(std::chrono::duration<Rep, Period> time) : time_(bounded(time)) {}

  /// From 0 to a year: it can be added to any time.
  [[nodiscard]] constexpr std::chrono::nanoseconds time() const { return time_; }
  [[nodiscard]] constexpr std::chrono::milliseconds milliseconds() const {
    return std::chrono::ceil<std::chrono::milliseconds>(time_);
  }

 private:
  template <class Rep, class Period>
  static constexpr std::chrono::nanoseconds bounded(std::chrono::duration<Rep, Period> time) {
    constexpr std::chrono::nanoseconds kForever = std::chrono::hours(24 * 365);
    // As a floating-point number it cannot overflow.
    const std::chrono::duration<double> seconds(time);
    if (!(seconds.count() > 0)) return std::chrono::nanoseconds(0);
    if (seconds >= kForever) return kForever;
    return std::chrono::duration_cast<std::chrono::nanoseconds>(time);
  }

  std::chrono::nanoseconds time_;
};

}  // namespace trainyard
