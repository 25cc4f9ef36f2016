// Whether a keeper that does not answer is silent or was away: as its guard counts it, and as it
// sees itself.
//
// Decides, and touches nothing. Any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace trainyard::process {

/// The patience of the guard with a keeper that does not answer, counted in its own looks. A look
/// that the machine did not let it have, because it slept, was paused or had too much to do, does
/// not count.
class KeeperPatience {
 public:
  /// The number of looks in a row that may find it stopped though each has continued it.
  static constexpr int kStoppedMax = 5;
  /// The number of looks in a row at which it may be silent, whatever it does.
  static constexpr int kSilentMax = 60;

  /// The state of the keeper in /proc at a look.
  struct Seen {
    char state = 'S';
    std::int64_t major_faults = 0;
  };
  enum class Step : std::uint8_t {
    Wait,
    Wake,  ///< It is continued.
    Kill,  ///< Another one is to take its place.
  };

  /// The yard has waited for an answer without one.
  void falls_silent();
  void has_answered() { *this = {}; }
  [[nodiscard]] bool is_silent() const { return silent_; }

  /// One look; nothing: it could not be seen.
  Step look(const std::optional<Seen>& keeper);

 private:
  bool silent_ = false;
  int looks_ = 0;
  int found_stopped_ = 0;  ///< In a row.
  std::int64_t major_faults_ = 0;
};

/// Whether the keeper was there all the time: one that is stopped, or does not get the machine,
/// receives nothing meanwhile. Processes that have not answered by then may have; an event that it
/// finds happened at some moment since it last looked.
///
/// Gets each wait of its loop, when that is over.
class KeeperPresence {
 public:
  using Clock = std::chrono::steady_clock;

  /// A keeper that wakes this much later than requested was away. Less is a busy machine.
  static constexpr std::chrono::milliseconds kLate{1'000};

  explicit KeeperPresence(Clock::time_point now) : heard_until_(now), woke_(now) {}

  struct Wait {
    Clock::time_point over;
    std::optional<Clock::time_point> until;  ///< The latest time at which it should have been over.
    bool was_stopped = false;                ///< The keeper was stopped and has been continued.
    bool heard_all = true;                   ///< All messages that were there then.
  };
  /// Returns for how long it may have been away since the wait before; 0: it was there.
  Clock::duration wakes(const Wait& wait);

  /// The end of the last wait. Anything that is not due by then may be answered in the next one.
  [[nodiscard]] Clock::time_point woke() const { return woke_; }

  /// The time of the events that it has just received: now, or, after it was away, no earlier than
  /// this.
  [[nodiscard]] Clock::time_point happened_at() const { return happened_at_; }

 private:
  Clock::time_point heard_until_;  ///< Nothing is unheard that happened before.
  Clock::time_point woke_;
  Clock::time_point happened_at_;
  bool was_away_ = false;  ///< And has not received all events of that time yet.
};

}  // namespace trainyard::process
